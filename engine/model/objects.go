package model

import (
	"cmp"
	"reflect"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metricsv1beta1 "k8s.io/metrics/pkg/apis/metrics/v1beta1"

	batchv1alpha1 "github.com/celsius-scheduler/celsius/crds/batch/v1alpha1"
	nodeinfov1alpha1 "github.com/celsius-scheduler/celsius/crds/nodeinfo/v1alpha1"
	"github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
	"github.com/celsius-scheduler/celsius/engine/extender"
)

// Key returns the form in which objects with a namespace are named here: namespace/name.
func Key(namespace, name string) string { return namespace + "/" + name }

// appendKey appends what Key returns. It is for look-ups that do not store the string.
func appendKey(b []byte, namespace, name string) []byte {
	return append(append(append(b, namespace...), '/'), name...)
}

// Identify returns the kind and the metadata of an object; false for nil, and for a kind that the model does not know.
func Identify(object any) (kind string, meta metav1.Object, ok bool) { return identify(object) }

// identify returns the kind and the metadata of an object; false for nil, and for a kind that the model does not know.
func identify(object any) (kind string, meta metav1.Object, ok bool) {
	kind = kindOf(object)
	if kind == "" || reflect.ValueOf(object).IsNil() {
		return kind, nil, false
	}
	meta, ok = object.(metav1.Object)
	return kind, meta, ok
}

// kindOf returns the kind of an object, or "".
func kindOf(object any) string {
	switch object.(type) {
	case *corev1.Node:
		return "Node"
	case *corev1.Pod:
		return "Pod"
	case *corev1.Namespace:
		return "Namespace"
	case *corev1.ResourceQuota:
		return "ResourceQuota"
	case *policyv1.PodDisruptionBudget:
		return "PodDisruptionBudget"
	case *metricsv1beta1.NodeMetrics:
		return "NodeMetrics"
	case *nodeinfov1alpha1.Numatopology:
		return "Numatopology"
	case *extender.Answer:
		return extender.Kind
	case *schedulingv1.PriorityClass:
		return "PriorityClass"
	case *v1beta1.PodGroup:
		return "PodGroup"
	case *batchv1alpha1.Job:
		return "Job"
	case *v1beta1.Queue:
		return "Queue"
	}
	return storageKind(object)
}

// namespaced reports whether objects of a kind have namespaces.
func namespaced(kind string) bool {
	switch kind {
	case "Pod", "PodGroup", "Job", "ResourceQuota", "PodDisruptionBudget", VolumeClaim, StorageCapacity:
		return true
	}
	return false
}

// readNode reads a Node object, and returns what it offers. It leaves out fields with a mistake.
func readNode(d *Dims, o *corev1.Node, m *mistakes) (*Node, Resources) {
	n := &Node{
		Name:          o.Name,
		Labels:        o.Labels,
		Annotations:   o.Annotations,
		Taints:        o.Spec.Taints,
		Unschedulable: o.Spec.Unschedulable,
		Ready:         nodeReady(o),
		GPUModel:      o.Annotations[GPUModelAnnotation],
		Images:        map[string]int64{},
		Object:        o,
	}
	if n.GPUModel == "" {
		n.GPUModel = o.Labels[GPUProductLabel]
	}
	for _, image := range o.Status.Images {
		for _, name := range image.Names {
			n.Images[normalImage(name)] = image.SizeBytes
		}
	}
	offered := o.Status.Allocatable
	if len(offered) == 0 {
		offered = o.Status.Capacity // the default of the API
	}
	allocatable := d.Offers(offered)
	n.capacity = d.Offers(o.Status.Capacity)
	m.notNegative(d, "status.allocatable", allocatable)
	n.readNodeGPUs(d, o, allocatable, m)
	return n, n.offerDevices(d, allocatable)
}

// nodeReady reports whether the Ready condition is True, or missing.
func nodeReady(o *corev1.Node) bool {
	for _, c := range o.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return true
}

// normalImage adds the default tag to an image name without a tag.
func normalImage(name string) string {
	if strings.LastIndex(name, ":") <= strings.LastIndex(name, "/") {
		return name + ":latest"
	}
	return name
}

// readQueue reads a Queue object.
func readQueue(d *Dims, o *v1beta1.Queue, m *mistakes) *Queue {
	q := &Queue{
		Name:            o.Name,
		UID:             string(o.UID),
		CreatedAt:       o.CreationTimestamp.Time,
		Labels:          o.Labels,
		Annotations:     o.Annotations,
		Weight:          int64(o.Spec.Weight),
		Priority:        int64(o.Spec.Priority),
		Capability:      d.Offers(o.Spec.Capability),
		Guarantee:       d.Offers(o.Spec.Guarantee.Resource),
		Deserved:        d.Offers(o.Spec.Deserved),
		Reclaimable:     o.Spec.Reclaimable == nil || *o.Spec.Reclaimable,
		Parent:          o.Spec.Parent,
		DequeueStrategy: cmp.Or(string(o.Spec.DequeueStrategy), string(v1beta1.DequeueStrategyTraverse)),
		State:           string(o.Status.State),
		NodeGroups:      readNodeGroups(o.Spec.Affinity),
		Jobs:            map[string]*Job{},
		Phases:          map[string]int64{},
		Allocated:       emptySum(),
		Occupied:        emptySum(),
		Request:         emptySum(),
		Object:          o,
	}
	q.NodeGroupLimits, q.NodeGroupLimitsError = readNodeGroupLimits(d, o.Annotations)
	if q.UID == "" {
		q.UID = q.Name
	}
	if q.Weight == 0 {
		q.Weight = 1 // the default of the API
	}
	if q.State == "" {
		q.State = QueueOpen
	}
	q.Open = q.State == QueueOpen
	q.Limit = q.Capability.Limit()
	if q.Weight < 0 {
		m.add("spec.weight", "%d is below 1", q.Weight)
	}
	m.notNegative(d, "spec.capability", q.Capability)
	m.notNegative(d, "spec.guarantee.resource", q.Guarantee)
	m.notNegative(d, "spec.deserved", q.Deserved)
	return q
}

// Unheeded lists the fields of a PodGroup that no decision uses yet.
func Unheeded(o *v1beta1.PodGroup) (says []string) {
	if o.Spec.NetworkTopology != nil {
		says = append(says, "spec.networkTopology: how close pods are in the network is not looked at")
	}
	if len(o.Spec.SubGroupPolicy) > 0 {
		says = append(says, "spec.subGroupPolicy: minMember of all pods start together, in whatever groups within the group they are")
	}
	return says
}

// readGroup reads a PodGroup object into a new job.
func readGroup(d *Dims, o *v1beta1.PodGroup, m *mistakes) *Job {
	j := &Job{
		Key:               Key(o.Namespace, o.Name),
		Name:              nameOf(o),
		Namespace:         o.Namespace,
		QueueName:         o.Spec.Queue,
		PriorityClassName: o.Spec.PriorityClassName,
		CreatedAt:         o.CreationTimestamp.Time,
		Labels:            o.Labels,
		Annotations:       o.Annotations,
		HasTopology:       len(Unheeded(o)) > 0,
		MinMember:         int64(o.Spec.MinMember),
		HasMinResources:   o.Spec.MinResources != nil,
		Phase:             string(o.Status.Phase),
		Object:            o,
	}
	if j.Title = j.Key; j.Name != o.Name {
		j.Title = Key(j.Namespace, j.Name)
	}
	j.owner, j.ownerUID = ownerJob(o)
	if j.QueueName == "" {
		j.QueueName = "default" // the default of the API
	}
	j.Preemptable = readPreemptable(o.Annotations, o.Labels, false)
	j.PreemptableForGang = readPreemptable(o.Annotations, o.Labels, true)
	if j.HasMinResources {
		j.MinResources = d.requested(usable(*o.Spec.MinResources), "spec.minResources", m)
		m.notNegative(d, "spec.minResources", j.MinResources)
	}
	if j.MinMember < 0 {
		m.add("spec.minMember", "%d is below 0", j.MinMember)
	}
	for _, role := range sortedKeys(o.Spec.MinTaskMember) {
		least := int64(o.Spec.MinTaskMember[role])
		if least < 0 {
			m.add("spec.minTaskMember["+role+"]", "%d is below 0", least)
		}
		if j.RoleMin == nil {
			j.RoleMin = make(map[string]int64, len(o.Spec.MinTaskMember))
		}
		j.RoleMin[role] = least
		j.RoleMinTotal += least
	}
	switch j.Phase {
	case "":
		j.Phase = PhasePending
	case PhasePending, PhaseInqueue, PhaseRunning, PhaseUnknown, PhaseCompleted:
	default:
		m.add("status.phase", "%q is none of Pending, Inqueue, Running, Unknown, Completed", j.Phase)
	}
	return j
}

// readPriorityClass reads a PriorityClass object.
func readPriorityClass(o *schedulingv1.PriorityClass) *PriorityClass {
	p := &PriorityClass{Name: o.Name, Value: int64(o.Value), Default: o.GlobalDefault}
	if o.PreemptionPolicy != nil {
		p.PreemptionPolicy = string(*o.PreemptionPolicy)
	}
	return p
}

// readPreemptable reads the annotation, otherwise the label. A value that is not a boolean counts as false, as in Volcano.
func readPreemptable(annotations, labels map[string]string, unset bool) bool {
	text, ok := annotations[PreemptableKey]
	if !ok {
		text, ok = labels[PreemptableKey]
	}
	if !ok {
		return unset
	}
	v, err := strconv.ParseBool(text)
	return err == nil && v
}

// usable leaves out the quota keys that Volcano's Job controller writes in addition to the resources, because no node has them.
func usable(list corev1.ResourceList) corev1.ResourceList {
	out := corev1.ResourceList{}
	for name, q := range list {
		n := string(name)
		if !strings.HasPrefix(n, "requests.") && !strings.HasPrefix(n, "limits.") && !strings.HasPrefix(n, "count/") {
			out[name] = q
		}
	}
	return out
}
