package model

import (
	"encoding/json"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/celsius-scheduler/celsius/engine/numa"
)

// Record contains what a binding decided for its pod: its accounted resources and its permissions, for as long as it is on that node. Later
// changes of annotations and labels by the pod's owner have no effect on it. The binding writes it to the pod as RecordAnnotation, for the
// next leader. It names one pod and one node, so it has no effect on any other.
type Record struct {
	UID  string `json:"uid"`
	Node string `json:"node"`
	// Group is the name of the PodGroup, Queue is its queue at that time.
	Group         string `json:"group,omitempty"`
	Queue         string `json:"queue,omitempty"`
	Priority      int64  `json:"priority"`
	Preemptable   bool   `json:"preemptable"`
	RevocableZone string `json:"revocableZone,omitempty"`
	// GPUs are the device numbers, if the node has them. GPUMilli and GPUMemory or GPUPercent are what the pod holds of each device.
	GPUs []int `json:"gpus,omitempty"`
	// Cards are the UUIDs of the devices; they replace GPUs if the node states them.
	Cards      []string `json:"cards,omitempty"`
	GPUKind    string   `json:"gpuKind,omitempty"`
	GPUCount   int64    `json:"gpuCount,omitempty"`
	GPUMilli   int64    `json:"gpuMilli,omitempty"`
	GPUMemory  int64    `json:"gpuMemory,omitempty"`
	GPUPercent int64    `json:"gpuPercent,omitempty"`
	// CPUs are its exclusive CPUs, as 0,2-4.
	CPUs string `json:"cpus,omitempty"`
}

// mayJoin reports whether a task belongs to the job of the PodGroup that it names. A bound task stays in the queue that gave it resources.
// It does not join a group that is now in another queue, or that was created again there.
func (t *Task) mayJoin(j *Job) bool { return t.boundIn == "" || t.boundIn == j.QueueName }

// Group returns the name of the PodGroup that the pod names; "" for none and for foreign pods.
func (t *Task) Group() string { return t.group[strings.Index(t.group, "/")+1:] }

// Record returns the record of a task that has a node.
func (t *Task) Record() Record {
	r := Record{
		UID: t.UID, Node: t.NodeName, Queue: t.boundIn, Priority: t.Priority, Preemptable: t.Preemptable,
		RevocableZone: t.RevocableZone, GPUKind: t.GPUKind, GPUCount: t.GPUCount, GPUMilli: t.GPUMilli, GPUMemory: t.GPUMemory,
		GPUPercent: t.GPUPercent, CPUs: t.CPUs.String(),
	}
	r.Group = t.Group()
	if t.knownGPUs {
		r.GPUs = t.GPUs
	}
	r.Cards = t.cards
	return r
}

// String returns the record as it is written.
func (r Record) String() string { return text(r) }

// obey sets a task to what a binding decided.
func (t *Task) obey(d *Dims, r *Record) {
	t.group, t.boundIn = "", ""
	if r.Group != "" {
		t.group, t.boundIn = Key(t.Namespace, r.Group), r.Queue
	}
	t.Priority, t.Preemptable, t.RevocableZone = r.Priority, r.Preemptable, r.RevocableZone
	t.wantGPUs(d, Devices{
		GPUKind: r.GPUKind, GPUCount: r.GPUCount, GPUMilli: r.GPUMilli, GPUMemory: r.GPUMemory, GPUPercent: r.GPUPercent,
	})
	t.GPUs, t.knownGPUs, t.cards, t.recorded = r.GPUs, r.GPUs != nil, r.Cards, true
	t.CPUs, _ = numa.Parse(r.CPUs) // possible has checked it
}

// keep sets a task to what was decided for its older version, which has the same node.
func (t *Task) keep(d *Dims, old *Task) {
	t.group, t.boundIn, t.Priority, t.Preemptable, t.RevocableZone = old.group, old.boundIn, old.Priority, old.Preemptable, old.RevocableZone
	t.wantGPUs(d, old.Devices)
	t.GPUs, t.knownGPUs, t.cards, t.recorded = nil, old.knownGPUs, old.cards, true
	t.CPUs = old.CPUs
	if old.knownGPUs {
		t.GPUs = old.GPUs
	}
}

// Resume makes a Pending task Binding or Releasing on a node. A record contains the decision, but its pod does not show it.
func Resume(c *Cluster, t *Task, status Status, r *Record, volumes []VolumeBind) {
	old, next := *t, *t
	old.Status, old.NodeName, old.Volumes = status, r.Node, volumes
	old.obey(c.Dims, r)
	next.assume(c.Dims, &old)
	applyAs(c, func() { c.replaceTask(t, &next) })
}

// decided reports whether our decision gave a task its node and its devices. Either its pod does not show them yet, or its record states
// them.
func (t *Task) decided() bool {
	return t.recorded || t.Status.onNode() && t.Object.Spec.NodeName == ""
}

// readDecided restores what was decided for a task whose pod has a node: from the task's older version, otherwise from its record. Without
// a record, the annotations are the owner's claim. A share of a device then counts as the whole device, so that no pod holds more than is
// counted. Requests in Volcano's form are in the containers, which no user can change.
func (t *Task) readDecided(d *Dims, old *Task, m *mistakes) {
	if t.NodeName == "" {
		return
	}
	if !t.Foreign {
		if old != nil && old.UID == t.UID && old.NodeName == t.NodeName && old.decided() {
			t.keep(d, old)
			return
		}
		if r := readRecord(t.Annotations, t.UID, t.NodeName, m); r != nil {
			t.obey(d, r)
			return
		}
	}
	if t.GPUCount > 0 && t.GPUKind == "" {
		t.GPUMilli, t.GPUMemory = WholeGPU, 0
		t.countDevices(d)
	}
}

// readRecord returns the record of a pod on its node; nil if there is none, or if it belongs to another pod or node.
func readRecord(annotations map[string]string, uid, node string, m *mistakes) *Record {
	written, ok := annotations[RecordAnnotation]
	if !ok {
		return nil
	}
	var r Record
	if err := json.Unmarshal([]byte(written), &r); err != nil {
		m.add(annotation(RecordAnnotation), "is no record of a binding: %v; devices count as held whole", err)
		return nil
	}
	switch {
	case r.UID != uid || r.Node != node:
		m.add(annotation(RecordAnnotation), "is of pod %s on node %s, not of %s on %s; devices count as held whole", r.UID, r.Node, uid, node)
		return nil
	case !r.possible():
		m.add(annotation(RecordAnnotation), "names devices that nobody can hold: %q; devices count as held whole", written)
		return nil
	}
	return &r
}

// possible reports whether the devices of a record are possible, and sorts them.
func (r *Record) possible() bool {
	n := len(r.GPUs)
	if n == 0 {
		r.GPUs = nil
	}
	slices.Sort(r.GPUs)
	listed := n == 0 || int64(n) == r.GPUCount && r.GPUs[0] >= 0 && r.GPUs[n-1] < maxNodeGPUs && len(slices.Compact(slices.Clone(r.GPUs))) == n
	listed = listed && (len(r.Cards) == 0 || n == 0 && int64(len(r.Cards)) == r.GPUCount)
	_, err := numa.Parse(r.CPUs)
	within := func(v, most int64) bool { return v >= 0 && v <= most }
	return listed && err == nil && within(r.GPUCount, maxNodeGPUs) && within(r.GPUMilli, WholeGPU) &&
		within(r.GPUMemory, Most) && within(r.GPUPercent, 100)
}

// GroupOf returns the name of the PodGroup that a pod belongs to, "" for none: the group of its binding, otherwise the group that it names.
func GroupOf(o *corev1.Pod) string {
	if o.Spec.NodeName != "" {
		if r := readRecord(o.Annotations, string(o.UID), o.Spec.NodeName, &mistakes{}); r != nil {
			return r.Group
		}
	}
	return namedGroup(o)
}

// AsBound writes to a pod that requests shares of devices the record that its binding would have written. It reads the pod itself. It is
// for worlds of files, in which no binding writes to bound pods.
func AsBound(o *corev1.Pod) error {
	if !asksForDevices(o.Annotations) {
		return nil // the object states the rest
	}
	m := mistakes{object: o, kind: "Pod", name: o.Name, namespace: o.Namespace, namespaced: true}
	said := o.DeepCopy()
	said.Spec.NodeName = ""
	t := NewCluster(Options{SchedulerNames: []string{o.Spec.SchedulerName}}).readPod(Key(o.Namespace, o.Name), said, nil, &m)
	t.NodeName = o.Spec.NodeName
	t.GPUs = readDevices(t, &t.Devices, &m)
	t.knownGPUs = t.GPUs != nil
	if len(m.errs) > 0 {
		return m.errs[0]
	}
	o.Annotations[RecordAnnotation] = t.Record().String()
	return nil
}
