package model

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	podresource "k8s.io/component-helpers/resource"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"github.com/celsius-scheduler/celsius/engine/podspec"
)

// readPod reads a Pod object, with the status and the node that the object states. old is the known task, or nil. readPod leaves out fields
// with a mistake.
func (c *Cluster) readPod(key string, o *corev1.Pod, old *Task, m *mistakes) *Task {
	t := &Task{
		Key:           key,
		Name:          o.Name,
		Namespace:     o.Namespace,
		UID:           string(o.UID),
		Role:          cmp.Or(o.Annotations[RoleAnnotation], o.Labels[RoleAnnotation]),
		Index:         podIndex(o),
		Foreign:       !slices.Contains(c.SchedulerNames, o.Spec.SchedulerName),
		Preemptable:   readPreemptable(o.Annotations, o.Labels, true),
		RevocableZone: o.Annotations[RevocableZoneAnnotation],
		Labels:        o.Labels,
		Annotations:   o.Annotations,
		CreatedAt:     o.CreationTimestamp.Time,
		Gated:         len(o.Spec.SchedulingGates) > 0,
		HasClaims:     len(o.Spec.ResourceClaims) > 0,
		NominatedNode: o.Status.NominatedNodeName,
		Status:        podStatus(o),
		Node:          NoNode,
		NodeName:      o.Spec.NodeName,
		Object:        o,
	}
	if t.UID == "" {
		t.UID = t.Key
	}
	if !t.Foreign {
		t.group = c.groupOf(o)
	}
	t.Priority = podPriority(o, m)
	if len(t.RevocableZone) > validation.LabelValueMaxLength { // no node label can match it, and its record would be as long
		m.add(annotation(RevocableZoneAnnotation), "has %d characters; the name of a zone has %d at most", len(t.RevocableZone),
			validation.LabelValueMaxLength)
		t.RevocableZone = ""
	}
	t.PreemptionPolicy = c.preemptionPolicy(o)
	readTimes(t, o)
	o = c.Limits.limited(o, m)
	template := c.templateOf(o, t, old)
	if template != nil && template.sameRequests(o) {
		t.setContainers(c.Dims, template.request)
	} else {
		readRequests(c.Dims, t, o, m)
	}
	readTaskGPUs(c.Dims, t, m)
	t.readPins()
	t.readDecided(c.Dims, old, m)
	// If the pod requests a share of a device in Volcano's form, the device is not part of the requests.
	t.BestEffort = t.Request.IsEmpty() && t.GPUCount == 0
	if template == nil {
		template = readTemplate(o, m)
		template.request, template.faulty = t.containers, len(m.errs) > 0
		c.know(template)
	}
	t.take(template)
	readVolumes(t, o)
	return t
}

// podStatus returns the status of a task that follows from its pod's object alone.
func podStatus(o *corev1.Pod) Status {
	switch o.Status.Phase {
	case corev1.PodSucceeded:
		return Succeeded
	case corev1.PodFailed:
		return Failed
	case corev1.PodRunning, corev1.PodPending, "":
		switch {
		case lingers(o):
			return Unknown
		case o.DeletionTimestamp != nil:
			return Releasing
		case o.Status.Phase == corev1.PodRunning:
			return Running
		case o.Spec.NodeName != "":
			return Bound
		}
		return Pending
	case corev1.PodUnknown:
	}
	return Unknown
}

// longGrace is the grace period above which nothing waits for the resources of a pod that its owner deleted.
const longGrace = 5 * time.Minute

// lingers reports whether a pod was deleted, but not by an eviction, with a grace period above longGrace. Its resources are promised to
// no pod. Otherwise a tenant could make other pods wait as long as it likes, together with the idle nodes that their gangs hold.
func lingers(o *corev1.Pod) bool {
	if o.DeletionTimestamp == nil || o.DeletionGracePeriodSeconds == nil || *o.DeletionGracePeriodSeconds <= int64(longGrace/time.Second) {
		return false
	}
	return !slices.ContainsFunc(o.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue
	})
}

// namedGroup returns the name of the PodGroup that a pod names, "" if it names none.
func namedGroup(o *corev1.Pod) string {
	return cmp.Or(o.Annotations[GroupAnnotation], o.Annotations[VolcanoGroupAnnotation])
}

// groupOf returns the key of the PodGroup that a pod names, "" if it names none.
func (c *Cluster) groupOf(o *corev1.Pod) string {
	name := namedGroup(o)
	if name == "" {
		return ""
	}
	var buffer [128]byte
	key := appendKey(buffer[:0], o.Namespace, name)
	if j := c.Jobs[string(key)]; j != nil {
		return j.Key // all its tasks share one string
	}
	return string(key)
}

// podIndex returns the pod's index: the annotation, otherwise the number after the last hyphen of its name; -1 if there is none.
func podIndex(o *corev1.Pod) int64 {
	if text, ok := o.Annotations[IndexAnnotation]; ok {
		if i, err := strconv.ParseUint(text, 10, 62); err == nil {
			return int64(i)
		}
	}
	if cut := strings.LastIndexByte(o.Name, '-'); cut >= 0 {
		if i, err := strconv.ParseUint(o.Name[cut+1:], 10, 62); err == nil {
			return int64(i)
		}
	}
	return -1
}

func podPriority(o *corev1.Pod, m *mistakes) int64 {
	priority := int64(1)
	if o.Spec.Priority != nil {
		priority = int64(*o.Spec.Priority)
	}
	text, ok := o.Annotations[PriorityAnnotation]
	if !ok {
		return priority
	}
	v, err := strconv.ParseInt(text, 10, 32)
	if err != nil {
		m.add(annotation(PriorityAnnotation), "%q is no whole number of 32 bits", text)
		return priority
	}
	return v
}

// preemptionPolicy returns the pod's policy, otherwise that of its class, otherwise the default of the API.
func (c *Cluster) preemptionPolicy(o *corev1.Pod) string {
	if o.Spec.PreemptionPolicy != nil {
		return string(*o.Spec.PreemptionPolicy)
	}
	if p := c.PriorityClasses[o.Spec.PriorityClassName]; p != nil && p.PreemptionPolicy != "" {
		return p.PreemptionPolicy
	}
	return string(corev1.PreemptLowerPriority)
}

func readTimes(t *Task, o *corev1.Pod) {
	if o.Status.StartTime != nil {
		t.StartedAt = o.Status.StartTime.Time
	}
	for _, cond := range o.Status.Conditions {
		if cond.Type == corev1.PodScheduled && cond.Status == corev1.ConditionTrue {
			t.ScheduledAt = cond.LastTransitionTime.Time
		}
	}
}

// readRequests sets what the task requests, computed as for the kubelet and kube-scheduler by the helper of Kubernetes. The result always
// contains cpu, memory and pods. So a pod without a cpu request does not fit on a node where cpu is over-used.
func readRequests(d *Dims, t *Task, o *corev1.Pod, m *mistakes) {
	o = withDefaultRequests(tame(o))
	if len(o.Spec.Containers) == 1 && len(o.Spec.InitContainers)+len(o.Spec.Overhead) == 0 && o.Spec.Resources == nil &&
		!podspec.TellsResources(&o.Status) {
		t.setContainers(d, podAmounts(d, o.Spec.Containers[0].Resources.Requests, m)) // there is nothing to add up
	} else {
		t.setContainers(d, podAmounts(d, podspec.Requests(o), m))
	}
	m.notNegative(d, "spec.containers[].resources.requests", t.Request)
}

func podAmounts(d *Dims, list corev1.ResourceList, m *mistakes) Resources {
	r := d.requested(list, "spec.containers[].resources.requests", m)
	for len(r) <= Pods {
		r = append(r, Absent())
	}
	if dim, ok := d.Find(GPUMemoryResource); ok && r.Has(dim) {
		r[dim] = Absent() // an annotation requests device memory: no kubelet grants this resource
		m.add("spec.containers[].resources.requests["+GPUMemoryResource+"]", "is no resource; ask by the annotation of that name")
	}
	r[CPU], r[Memory], r[Pods] = r.Get(CPU), r.Get(Memory), d.Unit(Pods)
	return r
}

func isSidecar(ctr *corev1.Container) bool {
	return ctr.RestartPolicy != nil && *ctr.RestartPolicy == corev1.ContainerRestartPolicyAlways
}

// withDefaultRequests returns the pod with each missing request set to its limit. The API server does the same, but pods from files did not
// pass through one.
func withDefaultRequests(o *corev1.Pod) *corev1.Pod {
	lacks := func(r *corev1.ResourceRequirements) bool {
		for name := range r.Limits {
			if _, ok := r.Requests[name]; !ok {
				return true
			}
		}
		return false
	}
	containerLacks := func(ctr corev1.Container) bool { return lacks(&ctr.Resources) }
	if !slices.ContainsFunc(o.Spec.Containers, containerLacks) &&
		!slices.ContainsFunc(o.Spec.InitContainers, containerLacks) && (o.Spec.Resources == nil || !lacks(o.Spec.Resources)) {
		return o
	}
	o = o.DeepCopy()
	for _, list := range [][]corev1.Container{o.Spec.Containers, o.Spec.InitContainers} {
		for i := range list {
			defaultRequests(&list[i].Resources, nil)
		}
	}
	if o.Spec.Resources != nil {
		// For the pod as a whole, the sum of its containers' requests takes precedence over its limit.
		defaultRequests(o.Spec.Resources, podresource.AggregateContainerRequests(o, podresource.PodResourcesOptions{}))
	}
	return o
}

func defaultRequests(r *corev1.ResourceRequirements, known corev1.ResourceList) {
	for name, limit := range r.Limits {
		_, has := r.Requests[name]
		if _, elsewhere := known[name]; has || elsewhere {
			continue
		}
		if r.Requests == nil {
			r.Requests = corev1.ResourceList{}
		}
		r.Requests[name] = limit
	}
}

// readTemplate reads the fields that a pod has in common with others.
func readTemplate(o *corev1.Pod, m *mistakes) *Template {
	t := &Template{pod: o, PriorityClassName: o.Spec.PriorityClassName, Tolerations: o.Spec.Tolerations}
	var required *corev1.NodeSelector
	var preferred []corev1.PreferredSchedulingTerm
	if a := o.Spec.Affinity; a != nil && a.NodeAffinity != nil {
		required = a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
		preferred = a.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution
	}
	const field = "spec.affinity.nodeAffinity"
	if required != nil {
		if _, err := nodeaffinity.NewNodeSelector(required); err != nil {
			m.add(field+".requiredDuringSchedulingIgnoredDuringExecution", "%v", err)
		}
	}
	if required != nil || len(o.Spec.NodeSelector) > 0 {
		t.NodeAffinity = nodeaffinity.GetRequiredNodeAffinity(o)
		t.NodeAffinityKey = text(struct {
			Selector map[string]string    `json:",omitempty"`
			Required *corev1.NodeSelector `json:",omitempty"`
		}{o.Spec.NodeSelector, required})
	}
	t.NodeAffinityLabels, t.NodeAffinityFields = labelsOfTerms(o.Spec.NodeSelector, required)
	if len(preferred) > 0 {
		terms, err := nodeaffinity.NewPreferredSchedulingTerms(preferred)
		if err != nil {
			m.add(field+".preferredDuringSchedulingIgnoredDuringExecution", "%v", err)
		} else {
			t.PreferredNodes, t.PreferredKey = terms, text(preferred)
		}
	}
	if len(t.Tolerations) > 0 {
		t.TolerationsKey = text(t.Tolerations)
	}
	t.PodTerms = readPodTerms(o, m)
	t.HasAffinity = t.PodTerms != nil
	t.readContainers(o)
	return t
}

// labelsOfTerms lists the node labels that a selector and required terms read, by name, and reports whether they read fields.
func labelsOfTerms(selector map[string]string, required *corev1.NodeSelector) (labels []string, fields bool) {
	for key := range selector {
		labels = append(labels, key)
	}
	if required != nil {
		for i := range required.NodeSelectorTerms {
			term := &required.NodeSelectorTerms[i]
			fields = fields || len(term.MatchFields) > 0
			for j := range term.MatchExpressions {
				labels = append(labels, term.MatchExpressions[j].Key)
			}
		}
	}
	slices.Sort(labels)
	return slices.Compact(labels), fields
}

// text returns a canonical text of API types: JSON, with the keys of its maps in order.
func text(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprintf("%+v", v) // no API type fails to marshal; this text would still distinguish terms
	}
	return string(b)
}

// readContainers reads host ports and images.
func (t *Template) readContainers(o *corev1.Pod) {
	for i := range o.Spec.InitContainers {
		ctr := &o.Spec.InitContainers[i]
		if isSidecar(ctr) {
			t.addHostPorts(ctr)
		}
		t.addImage(ctr)
	}
	for i := range o.Spec.Containers {
		t.addHostPorts(&o.Spec.Containers[i])
		t.addImage(&o.Spec.Containers[i])
	}
	for _, image := range podspec.Images(&o.Spec) {
		t.Images = append(t.Images, normalImage(image))
	}
	if len(t.HostPorts) == 0 {
		return
	}
	slices.SortFunc(t.HostPorts, func(a, b HostPort) int { return strings.Compare(a.String(), b.String()) })
	t.HostPorts = slices.Compact(t.HostPorts)
	keys := make([]string, len(t.HostPorts))
	for i, p := range t.HostPorts {
		keys[i] = p.String()
	}
	t.HostPortsKey = strings.Join(keys, ",")
}

func (t *Template) addImage(ctr *corev1.Container) {
	t.Containers++
	if ctr.Image != "" {
		t.Images = append(t.Images, normalImage(ctr.Image))
	}
}

func (t *Template) addHostPorts(ctr *corev1.Container) {
	for _, p := range ctr.Ports {
		if p.HostPort <= 0 {
			continue
		}
		port := HostPort{Protocol: string(p.Protocol), IP: p.HostIP, Port: p.HostPort}
		if port.Protocol == "" {
			port.Protocol = string(corev1.ProtocolTCP)
		}
		if port.IP == "" {
			port.IP = "0.0.0.0"
		}
		t.HostPorts = append(t.HostPorts, port)
	}
}

// String returns the form "TCP/0.0.0.0/80".
func (p HostPort) String() string {
	return p.Protocol + "/" + p.IP + "/" + strconv.Itoa(int(p.Port))
}

// ForeignPods returns the waiting pods that name a job as their group but belong to another scheduler. If they name several schedulers, it
// returns the pods of the first pod's scheduler, in key order. The job does not count them.
func ForeignPods(c *Cluster, j *Job) []*Task {
	if j.Orphan {
		return nil
	}
	var all []*Task
	for _, t := range c.Tasks {
		if t.Foreign && t.Waits() && c.groupOf(t.Object) == j.Key {
			all = append(all, t)
		}
	}
	slices.SortFunc(all, func(a, b *Task) int { return strings.Compare(a.Key, b.Key) })
	return slices.DeleteFunc(all, func(t *Task) bool { return t.Object.Spec.SchedulerName != all[0].Object.Spec.SchedulerName })
}
