package manifest

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/rules/source"
)

// GracePeriod is the default grace period of a pod.
const GracePeriod = 30 * time.Second

// podStatuses returns the values of ShortSpec.Status.
func podStatuses() []string {
	return []string{"Pending", "Bound", "Running", "Releasing", "Succeeded", "Failed"}
}

// podOf creates the pod of a spec, without a name, and returns the names of the nodes for the pods of the spec. The parameter pods is the
// number of these pods. The parameter of describes their owner: a task, or an entry of pods. The pod is nil if the spec has a mistake.
func (c *converter) podOf(v source.Value, s *ShortSpec, of string, pods int) (*corev1.Pod, []string) {
	before := len(c.issues)
	p := &corev1.Pod{}
	p.Spec.SchedulerName = c.scheduler
	p.Spec.Containers = []corev1.Container{{Name: "main", Image: cmp.Or(s.Image, "main"), Resources: withLimits(s.requests())}}
	for i, port := range s.Ports {
		if port < 1 || port > 65535 {
			c.report(At(v, "ports", i).Issuef("", "must be between 1 and 65535, found %d", port))
		}
		p.Spec.Containers[0].Ports = append(p.Spec.Containers[0].Ports, corev1.ContainerPort{
			HostPort: port, ContainerPort: port,
			Protocol: corev1.ProtocolTCP,
		})
	}
	p.Spec.NodeSelector, p.Spec.Affinity, p.Spec.TopologySpreadConstraints = s.NodeSelector, s.Affinity, s.Spread
	mount(p, s.Claims)
	for i, text := range s.Tolerations {
		toleration, err := parseToleration(text)
		if err != nil {
			c.report(At(v, "tolerations", i).Issuef("a toleration is written key=value:Effect", "%v", err))
		}
		p.Spec.Tolerations = append(p.Spec.Tolerations, toleration)
	}
	if s.Gated {
		p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "gate"}}
	}
	c.gpus(v, p, s)
	c.life(v, p, s)
	nodes := c.standing(v, p, s)
	if len(nodes) > 1 && pods > 0 && len(nodes) > pods {
		c.report(At(v, "node").Issuef("write no more nodes than pods", "%q stands for %d nodes, but the number of pods of the %s is %d",
			s.Node, len(nodes), of, pods))
	}
	if len(c.issues) > before {
		return nil, nil
	}
	return p, nodes
}

func (s *ShortSpec) requests() corev1.ResourceList {
	out := corev1.ResourceList{}
	if s.CPU != nil {
		out[corev1.ResourceCPU] = *s.CPU
	}
	if s.Memory != nil {
		out[corev1.ResourceMemory] = *s.Memory
	}
	for name, q := range s.Extended {
		out[corev1.ResourceName(name)] = q
	}
	if s.GPUs > 0 && s.GPUMilli == 0 && s.GPUMemory == nil {
		out[model.GPUResource] = *resource.NewQuantity(int64(s.GPUs), resource.DecimalSI)
	}
	return out
}

// withLimits sets a container's limit to its request for each extended resource, because the API server requires this.
func withLimits(requests corev1.ResourceList) corev1.ResourceRequirements {
	r := corev1.ResourceRequirements{Requests: requests}
	for name, amount := range requests {
		if !strings.Contains(string(name), "/") {
			continue
		}
		if r.Limits == nil {
			r.Limits = corev1.ResourceList{}
		}
		r.Limits[name] = amount
	}
	return r
}

// gpus writes a pod's request for devices. Whole devices are a plain request.
func (c *converter) gpus(v source.Value, p *corev1.Pod, s *ShortSpec) {
	c.notNegative(At(v, "gpus"), int64(s.GPUs))
	if s.GPUMilli < 0 || s.GPUMilli > 1000 {
		c.report(At(v, "gpuMilli").Issuef("", "must be between 1 and 1000, found %d", s.GPUMilli))
	}
	if s.GPUMilli > 0 || s.GPUMemory != nil {
		metav1.SetMetaDataAnnotation(&p.ObjectMeta, model.GPUCountAnnotation, strconv.Itoa(int(max(s.GPUs, 1))))
	}
	if s.GPUMilli > 0 {
		metav1.SetMetaDataAnnotation(&p.ObjectMeta, model.GPUMilliAnnotation, strconv.Itoa(int(s.GPUMilli)))
	}
	if s.GPUMemory != nil {
		metav1.SetMetaDataAnnotation(&p.ObjectMeta, model.GPUMemoryAnnotation, s.GPUMemory.String())
	}
	if len(s.GPUModels) > 0 && s.GPUs == 0 && s.GPUMilli == 0 && s.GPUMemory == nil {
		c.report(At(v, "gpuModels").Issuef("add gpus, gpuMilli or gpuMemory", "says which devices will do, but the pod asks for none"))
	}
	if len(s.GPUModels) > 0 {
		metav1.SetMetaDataAnnotation(&p.ObjectMeta, model.GPUModelsAnnotation, strings.Join(s.GPUModels, "|"))
	}
}

// life writes the annotation with a pod's life.
func (c *converter) life(v source.Value, p *corev1.Pod, s *ShortSpec) {
	switch {
	case s.Run == nil && s.ExitCode != 0:
		c.report(At(v, "exitCode").Issuef("add run: 30s, say", "has no effect without run: the pod does not end"))
	case s.Run == nil:
	case s.Run.Duration < 0:
		c.report(At(v, "run").Issuef("", "must not be negative, found %s", s.Run.Duration))
	case s.ExitCode < 0 || s.ExitCode > 255:
		c.report(At(v, "exitCode").Issuef("", "must be between 0 and 255, found %d", s.ExitCode))
	case s.ExitCode == 0:
		metav1.SetMetaDataAnnotation(&p.ObjectMeta, LifeAnnotation, fmt.Sprintf("{run: %s}", s.Run.Duration))
	default:
		metav1.SetMetaDataAnnotation(&p.ObjectMeta, LifeAnnotation, fmt.Sprintf("{run: %s, exitCodes: {main: %d}}", s.Run.Duration, s.ExitCode))
	}
}

// standing writes the state of a pod's life. settle sets its node.
func (c *converter) standing(v source.Value, p *corev1.Pod, s *ShortSpec) []string {
	c.oneOf(At(v, "status"), s.Status, podStatuses())
	status := s.Status
	if status == "" && s.Node != "" {
		status = "Running"
	}
	switch status {
	case "Running", "Releasing":
		p.Status.Phase = corev1.PodRunning
	case "Succeeded", "Failed":
		p.Status.Phase = corev1.PodPhase(status)
	default:
		p.Status.Phase = corev1.PodPending
	}
	if status == "Releasing" {
		p.DeletionTimestamp = &metav1.Time{Time: c.now.Add(GracePeriod)}
	}
	switch {
	case s.Node == "" && slices.Contains([]string{"Bound", "Running", "Releasing"}, status):
		c.report(At(v, "status").Issuef("say on which node", "a pod that is %s has a node", status))
	case s.Node != "" && status == "Pending":
		c.report(At(v, "node").Issuef("leave one of them out, or write Bound", "a pod that is Pending has no node"))
	case s.Node != "":
		nodes, err := ExpandName(s.Node)
		if err != nil {
			c.report(At(v, "node").Issuef("a range is written n[1-3]", "%v", err))
		}
		return nodes
	}
	return nil
}

// settle puts the i-th pod of a task, or of an entry of pods, on its node. Pods get the nodes of a range in turn.
func settle(p *corev1.Pod, nodes []string, i int) {
	if len(nodes) == 0 {
		return
	}
	p.Spec.NodeName = nodes[i%len(nodes)]
	if p.Status.Phase == corev1.PodRunning {
		Start(p, p.CreationTimestamp.Time)
	}
}

// Start sets a pod that has a node to Running.
func Start(p *corev1.Pod, now time.Time) {
	p.Status.Phase = corev1.PodRunning
	t := metav1.NewTime(now)
	if p.Status.StartTime == nil {
		p.Status.StartTime = &t
	}
	if !slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.PodScheduled }) {
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{
			Type: corev1.PodScheduled, Status: corev1.ConditionTrue,
			LastTransitionTime: t,
		})
	}
}
