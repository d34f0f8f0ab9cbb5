package model

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
)

// list parses "cpu=1 memory=2Gi".
func list(text string) corev1.ResourceList {
	out := corev1.ResourceList{}
	for part := range strings.FieldsSeq(text) {
		name, amount, _ := strings.Cut(part, "=")
		out[corev1.ResourceName(name)] = resource.MustParse(amount)
	}
	return out
}

func container(requests string) corev1.Container {
	return corev1.Container{Resources: corev1.ResourceRequirements{Requests: list(requests)}}
}

func sidecar(requests string) corev1.Container {
	ctr := container(requests)
	always := corev1.ContainerRestartPolicyAlways
	ctr.RestartPolicy = &always
	return ctr
}

// pod returns a Pending pod of ours, in namespace a and group g.
func pod(name, requests string, edits ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: "a", UID: types.UID("uid-" + name),
			Annotations: map[string]string{GroupAnnotation: "g"}, Labels: map[string]string{},
		},
		Spec: corev1.PodSpec{SchedulerName: "celsius", Containers: []corev1.Container{container(requests)}},
	}
	for _, edit := range edits {
		edit(p)
	}
	if p.Spec.NodeName != "" && AsBound(p) != nil {
		delete(p.Annotations, RecordAnnotation)
	}
	return p
}

func on(node string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.NodeName, p.Status.Phase = node, corev1.PodRunning }
}

func annotated(keysAndValues ...string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		for i := 0; i < len(keysAndValues); i += 2 {
			p.Annotations[keysAndValues[i]] = keysAndValues[i+1]
		}
	}
}

func created(second int) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.CreationTimestamp = metav1.NewTime(time.Unix(int64(second), 0)) }
}

func deleting(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: time.Unix(9, 0)} }

func node(name, allocatable string, edits ...func(*corev1.Node)) *corev1.Node {
	n := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{}, Annotations: map[string]string{}},
		Status:     corev1.NodeStatus{Allocatable: list(allocatable), Capacity: list(allocatable)},
	}
	for _, edit := range edits {
		edit(n)
	}
	return n
}

func group(name, queue string, edits ...func(*v1beta1.PodGroup)) *v1beta1.PodGroup {
	g := &v1beta1.PodGroup{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "a"}}
	g.Spec.Queue = queue
	for _, edit := range edits {
		edit(g)
	}
	return g
}

func queue(name string) *v1beta1.Queue {
	return &v1beta1.Queue{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func upserts(objects ...any) []Delta {
	deltas := make([]Delta, len(objects))
	for i, o := range objects {
		deltas[i] = Delta{Op: Upsert, Object: o}
	}
	return deltas
}

// cluster returns a cluster with the objects, which must have no mistakes.
func cluster(t *testing.T, objects ...any) *Cluster {
	t.Helper()
	c := NewCluster(Options{})
	apply(t, c, upserts(objects...)...)
	return c
}

// apply applies deltas, and expects no error and no broken promise.
func apply(t *testing.T, c *Cluster, deltas ...Delta) {
	t.Helper()
	for _, err := range c.Apply(deltas...) {
		t.Error(err)
	}
	check(t, c)
}

func check(t *testing.T, c *Cluster) {
	t.Helper()
	if err := c.Check(); err != nil {
		t.Fatal(err)
	}
}

// words formats resources with the names of their dimensions, so that it does not depend on the order in which names were added.
func words(d *Dims, r Resources) string {
	var out []string
	for _, i := range d.Sorted() {
		if r.Has(i) {
			out = append(out, d.Name(i)+"="+strconv.FormatFloat(r[i], 'f', -1, 64))
		}
	}
	return strings.Join(out, " ")
}

// dump writes everything that a reader may see of a cluster, except versions, logs and row numbers.
func dump(c *Cluster) string {
	var b strings.Builder
	say := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	d := c.Dims
	say("cluster total{%s} used{%s} ready=%d", words(d, c.Total), words(d, c.Used), c.ReadyNodes)
	dumpStorage(say, c)
	for _, row := range c.Nodes.ByOrder() {
		n, o := &c.Nodes, c.Nodes.Rows[row]
		say("node %s ready=%t cordoned=%t labels=%v allocatable{%s} capacity{%s} used{%s} releasing{%s} pipelined{%s}",
			o.Name, o.Ready, o.Unschedulable, o.Labels, words(d, n.AllocatableOf(row)), words(d, n.CapacityOf(row)),
			words(d, n.UsedOf(row)), words(d, n.ReleasingOf(row)), words(d, n.PipelinedOf(row)))
		say("  idle{%s} future{%s} tasks=%d gpus=%v", words(d, n.IdleOf(row)), words(d, n.FutureIdleOf(row)), n.TaskCount[row], n.GPUs[row])
		for _, t := range n.Tasks[row] {
			say("  has %s", t.Key)
		}
	}
	say("quotas %s", quotasOf(c))
	say("outside %s", outside(c))
	for _, q := range c.QueuesByName() {
		say("queue %s weight=%d open=%t capability{%s} allocated{%s} request{%s} phases=%v jobs=%v",
			q.Name, q.Weight, q.Open, words(d, q.Capability), words(d, q.Allocated), words(d, q.Request), q.Phases, sortedKeys(q.Jobs))
	}
	for _, j := range c.JobsByKey() {
		say("job %s orphan=%t queue=%s/%t priority=%d phase=%s admitted=%t placed=%d min=%d/{%s} roleMin=%v/%d preemptable=%t/%t",
			j.Key, j.Orphan, j.QueueName, j.Queue != nil, j.Priority, j.Phase, j.AdmittedNow, j.PlacedNow, j.MinMember,
			words(d, j.MinResources), j.RoleMin, j.RoleMinTotal, j.Preemptable, j.PreemptableForGang)
		say("  counts=%v bestEffort=%d allocated{%s} request{%s} gated{%s}", j.Counts, j.PendingBestEffort,
			words(d, j.Allocated), words(d, j.Request), words(d, j.GatedRequest))
		for _, r := range j.Roles {
			shown := *r
			shown.template = nil // it depends on which task was read last
			say("  role %+v", shown)
		}
		for _, t := range j.Tasks {
			dumpTask(say, c, t)
		}
	}
	return b.String()
}

func dumpTask(say func(string, ...any), c *Cluster, t *Task) {
	say("  task %s uid=%s role=%q index=%d foreign=%t priority=%d policy=%s preemptable=%t gated=%t bestEffort=%t",
		t.Key, t.UID, t.Role, t.Index, t.Foreign, t.Priority, t.PreemptionPolicy, t.Preemptable, t.Gated, t.BestEffort)
	say("    %s node=%q found=%t request{%s} gpu=%dx%d/%d %v %q holds %v known=%t", t.Status, t.NodeName, t.Node != NoNode,
		words(c.Dims, t.Request), t.GPUCount, t.GPUMilli, t.GPUMemory, t.GPUModels, t.GPUTag, t.GPUs, t.knownGPUs)
	if t.HasVolumes {
		say("    claims %v, promised %v", t.Claims, t.Volumes)
	}
}

func dumpStorage(say func(string, ...any), c *Cluster) {
	ids := slices.SortedFunc(maps.Keys(c.Storage.Objects), func(a, b StorageID) int { return strings.Compare(a.Kind+a.Key, b.Kind+b.Key) })
	for _, id := range ids {
		say("%s %s", id.Kind, id.Key)
	}
	say("promised %v, used %v", c.Storage.promised, c.Storage.users)
}
