package live

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "github.com/celsius-scheduler/celsius/crds/batch/v1alpha1"
	"github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
	"github.com/celsius-scheduler/celsius/engine/model"
)

// changed returns a later version of an object.
func changed[T client.Object](o T, change func(T)) T {
	next := o.DeepCopyObject().(T)
	next.SetResourceVersion("2")
	change(next)
	return next
}

func TestMatters(t *testing.T) {
	pod, node, group, queue := testPod("a", "g", "1"), testNode("n", "1"), testGroup("g", 1), testQueue("q")
	bound := changed(pod, func(p *corev1.Pod) { p.Spec.NodeName = "n" })
	bound.ResourceVersion = "1"
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "1"}, Status: corev1.ResourceQuotaStatus{
		Hard: corev1.ResourceList{"cpu": resource.MustParse("4")}, Used: corev1.ResourceList{"cpu": resource.MustParse("2")},
	}}
	budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "1"}}
	budget.Status.DisruptionsAllowed = 1
	claim, attachment, limits, pool := testClaim("c", "local"), &storagev1.VolumeAttachment{}, &storagev1.CSINode{},
		&storagev1.CSIStorageCapacity{}
	job := &batchv1alpha1.Job{Spec: batchv1alpha1.JobSpec{SchedulerName: "celsius"}}
	for _, c := range []struct {
		name     string
		old, new any
		want     urgency
	}{
		{"a resync", pod, pod, notAtAll},
		{
			"our own word on a pod's status", pod,
			changed(pod, func(p *corev1.Pod) { p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled}} }), lazily,
		},
		{"a gate is lifted", changed(pod, func(p *corev1.Pod) {
			p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "x"}}
			p.ResourceVersion = "1"
		}), changed(pod, func(*corev1.Pod) {}), urgently},
		{"a pod gets its group", pod, changed(pod, func(p *corev1.Pod) { p.Annotations["scheduling.k8s.io/group-name"] = "h" }), urgently},
		{"a pod is bound", pod, changed(pod, func(p *corev1.Pod) { p.Spec.NodeName = "n" }), lazily},
		{"a pod runs", bound, changed(bound, func(p *corev1.Pod) { p.Status.Phase = corev1.PodRunning }), lazily},
		{"a pod ends", bound, changed(bound, func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }), urgently},
		{"a pod is being deleted", bound, changed(bound, func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{} }), urgently},
		{"a heartbeat", node, changed(node, func(n *corev1.Node) { n.Status.Conditions[0].LastHeartbeatTime = metav1.Now() }), notAtAll},
		{"a cordon", node, changed(node, func(n *corev1.Node) { n.Spec.Unschedulable = true }), urgently},
		{"a node grows", node, changed(node, func(n *corev1.Node) {
			n.Status.Allocatable = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")}
		}), urgently},
		{"a PodGroup's status", group, changed(group, func(g *v1beta1.PodGroup) { g.Status.Running = 1; g.Generation++ }), lazily},
		{"a PodGroup's spec", group, changed(group, func(g *v1beta1.PodGroup) { g.Spec.MinMember = 2 }), urgently},
		{"a queue's counts", queue, changed(queue, func(q *v1beta1.Queue) { q.Status.Running = 1 }), lazily},
		{"a queue is closed", queue, changed(queue, func(q *v1beta1.Queue) { q.Status.State = v1beta1.QueueStateClosed }), urgently},
		{"a queue's spec", queue, changed(queue, func(q *v1beta1.Queue) { q.Generation++ }), urgently},
		{"a quota again", quota, quota, notAtAll},
		{
			"less of a quota is used", quota, changed(quota, func(q *corev1.ResourceQuota) { q.Status.Used["cpu"] = resource.MustParse("1") }),
			urgently,
		},
		{"more of it is used", quota, changed(quota, func(q *corev1.ResourceQuota) { q.Status.Used["cpu"] = resource.MustParse("3") }), lazily},
		{
			"a quota limits otherwise", quota, changed(quota, func(q *corev1.ResourceQuota) { q.Status.Hard["cpu"] = resource.MustParse("5") }),
			urgently,
		},
		{"a budget again", budget, budget, notAtAll},
		{
			"a budget lets more go", budget, changed(budget, func(b *policyv1.PodDisruptionBudget) { b.Status.DisruptionsAllowed = 2 }),
			urgently,
		},
		{
			"it lets fewer go", budget, changed(budget, func(b *policyv1.PodDisruptionBudget) { b.Status.DisruptionsAllowed = 0 }),
			lazily,
		},
		{"a budget is another", budget, changed(budget, func(b *policyv1.PodDisruptionBudget) { b.Generation = 2 }), urgently},
		{"a claim's event, again", claim, claim, notAtAll},
		{"a claim is bound", claim, changed(claim, func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeName = "v" }), urgently},
		{"a volume is attached", attachment, changed(attachment, func(a *storagev1.VolumeAttachment) { a.Status.Attached = true }), notAtAll},
		{"a node can attach more", limits, changed(limits, func(n *storagev1.CSINode) {
			n.Spec.Drivers = []storagev1.CSINodeDriver{{Name: "d"}}
		}), urgently},
		{"a pool was counted again", pool, changed(pool, func(*storagev1.CSIStorageCapacity) {}), notAtAll},
		{"a pool has less", pool, changed(pool, func(c *storagev1.CSIStorageCapacity) {
			c.Capacity = resource.NewQuantity(1, resource.BinarySI)
		}), urgently},
		{"a Job's status", job, changed(job, func(j *batchv1alpha1.Job) { j.Status.Running = 1 }), notAtAll},
	} {
		if got := matters([]string{"celsius"}, c.old, c.new); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}

// A new pod starts a cycle only if it can be placed: its group is known, and it is ours.
func TestCanBePlaced(t *testing.T) {
	pod := testPod("a", "g", "1")
	for _, c := range []struct {
		name string
		pod  *corev1.Pod
		want bool
	}{
		{"ours", pod, true},
		{"another's", changed(pod, func(p *corev1.Pod) { p.Spec.SchedulerName = "another" }), false},
		{"bound", changed(pod, func(p *corev1.Pod) { p.Spec.NodeName = "n" }), false},
		{"alone", changed(pod, func(p *corev1.Pod) { p.Annotations = nil }), true},
		{"of a controller, without a group yet", changed(pod, func(p *corev1.Pod) {
			p.Annotations, p.OwnerReferences = nil, []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "r", Controller: new(true)}}
		}), false},
	} {
		f := newFeed()
		handler([]string{"celsius"}, f).OnAdd(c.pod, false)
		if urgent := f.since().urgent; urgent.IsZero() == c.want {
			t.Errorf("%s: asks for a cycle: %v", c.name, !urgent.IsZero())
		}
	}
}

// A PodGroup without pods belongs to the scheduler that its Job names.
func TestServesByJob(t *testing.T) {
	job := func(scheduler string) *batchv1alpha1.Job {
		return &batchv1alpha1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "j"}, Spec: batchv1alpha1.JobSpec{
			SchedulerName: scheduler,
		}}
	}
	owned := testGroup("g", 1)
	owned.OwnerReferences = []metav1.OwnerReference{{APIVersion: "batch.volcano.sh/v1alpha1", Kind: "Job", Name: "j", Controller: new(true)}}
	for _, c := range []struct {
		name    string
		names   []string
		objects []any
		want    bool
	}{
		{"ours", []string{"celsius"}, []any{job("celsius"), owned}, true},
		{"ours, the Job is seen later", []string{"celsius"}, []any{owned, job("celsius")}, true},
		{"another's", []string{"celsius", "volcano"}, []any{owned, job("another")}, false},
		{"of a Job that names none", []string{"volcano"}, []any{owned, job("")}, true},
		{"of nobody, and we serve volcano", []string{"celsius", "volcano"}, []any{testGroup("g", 1)}, true},
		{"of nobody, and we do not", []string{"celsius"}, []any{testGroup("g", 1)}, false},
		{"its pod is ours", []string{"celsius"}, []any{testGroup("g", 1), testPod("a", "g", "1")}, true},
	} {
		in := newIntake(c.names, &nodeBook{}, func(string) string { return "" })
		for _, o := range c.objects {
			if g, ok := o.(*v1beta1.PodGroup); ok {
				o = g.DeepCopy()
			}
			in.object(nil, change{object: o}, time.Now())
		}
		if got := in.groups["default/g"].served; got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

// TestAPodGroupChangesItsOwner changes, adds or removes the owner of a PodGroup, and then deletes the PodGroup. Afterwards intake must
// store nothing of the PodGroup.
func TestAPodGroupChangesItsOwner(t *testing.T) {
	in := newIntake([]string{"celsius"}, &nodeBook{}, func(string) string { return "" })
	job := func(name string) *batchv1alpha1.Job {
		j := &batchv1alpha1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "nlp", Name: name, UID: types.UID("uid-" + name)}}
		j.Spec.SchedulerName = "celsius"
		return j
	}
	group := func(owner string) *v1beta1.PodGroup {
		g := &v1beta1.PodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "nlp", Name: "bert-large", UID: "uid-group"}}
		if owner != "" {
			g.OwnerReferences = []metav1.OwnerReference{{
				APIVersion: batchv1alpha1.GroupVersion.String(), Kind: "Job", Name: owner, UID: types.UID("uid-" + owner), Controller: new(true),
			}}
		}
		return g
	}
	owners := []string{"", "train", "evaluate"}
	for _, first := range owners {
		for _, second := range owners {
			in.job(nil, model.Upsert, job("train"))
			in.job(nil, model.Upsert, job("evaluate"))
			in.podGroup(nil, model.Upsert, group(first))
			in.podGroup(nil, model.Upsert, group(second))
			in.podGroup(nil, model.Delete, group(second))
			if len(in.owned) > 0 || len(in.groups) > 0 {
				t.Errorf("owned by %q, then by %q: intake keeps %v of a PodGroup that is gone", first, second, in.owned)
			}
			in.job(nil, model.Delete, job("train"))
			in.job(nil, model.Delete, job("evaluate"))
		}
	}
}
