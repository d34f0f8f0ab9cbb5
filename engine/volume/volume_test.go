package volume

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/celsius-scheduler/celsius/engine/model"
)

const (
	zoneLabel = corev1.LabelTopologyZone
	driver    = "disks.example.com"
)

func list(resourceName corev1.ResourceName, amount string) corev1.ResourceList {
	return corev1.ResourceList{resourceName: resource.MustParse(amount)}
}

func node(name, zone string) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name}}}
	if zone != "" {
		n.Labels[zoneLabel] = zone
	}
	n.Status.Allocatable = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("8"), corev1.ResourcePods: resource.MustParse("99")}
	return n
}

func pod(name string, volumes ...corev1.Volume) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name, UID: types.UID(name)}}
	p.Spec.SchedulerName, p.Spec.Volumes = "celsius", volumes
	return p
}

func runs(p *corev1.Pod) *corev1.Pod {
	p.Spec.NodeName, p.Status.Phase = "n1", corev1.PodRunning
	return p
}

func claimed(claim string) corev1.Volume {
	return corev1.Volume{Name: claim, VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{
		ClaimName: claim,
	}}}
}

func iscsi(readOnly bool) corev1.Volume {
	return corev1.Volume{Name: "disk", VolumeSource: corev1.VolumeSource{ISCSI: &corev1.ISCSIVolumeSource{IQN: "x", ReadOnly: readOnly}}}
}

func classNamed(name, provisioner string, edits ...func(*storagev1.StorageClass)) *storagev1.StorageClass {
	c := &storagev1.StorageClass{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Provisioner: provisioner,
		VolumeBindingMode: new(storagev1.VolumeBindingWaitForFirstConsumer),
	}
	for _, edit := range edits {
		edit(c)
	}
	return c
}

// volume makes a free volume of class local that all nodes reach.
func volume(name, size string, edits ...func(*corev1.PersistentVolume)) *corev1.PersistentVolume {
	v := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}}
	v.Spec.StorageClassName, v.Spec.AccessModes, v.Spec.Capacity = "local", []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		list(corev1.ResourceStorage, size)
	v.Status.Phase = corev1.VolumeAvailable
	for _, edit := range edits {
		edit(v)
	}
	return v
}

func reachedFrom(node string) func(*corev1.PersistentVolume) {
	return func(v *corev1.PersistentVolume) {
		v.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchExpressions: []corev1.NodeSelectorRequirement{{
				Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn,
				Values: []string{node},
			}},
		}}}}
	}
}

func inZone(zone string) func(*corev1.PersistentVolume) {
	return func(v *corev1.PersistentVolume) { v.Labels = map[string]string{zoneLabel: zone} }
}

func attachable(v *corev1.PersistentVolume) {
	v.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: driver, VolumeHandle: v.Name}
}

func claim(name, class string, edits ...func(*corev1.PersistentVolumeClaim)) *corev1.PersistentVolumeClaim {
	c := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name, UID: types.UID(name)}}
	c.Spec.StorageClassName, c.Spec.AccessModes = &class, []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	c.Spec.Resources.Requests = list(corev1.ResourceStorage, "5Gi")
	for _, edit := range edits {
		edit(c)
	}
	return c
}

func boundTo(volume string) func(*corev1.PersistentVolumeClaim) {
	return func(c *corev1.PersistentVolumeClaim) {
		c.Spec.VolumeName = volume
		c.Annotations = map[string]string{"pv.kubernetes.io/bind-completed": "yes"}
	}
}

func exclusive(c *corev1.PersistentVolumeClaim) {
	c.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOncePod}
}

func limits(count int32) *storagev1.CSINode {
	return &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: "n1"}, Spec: storagev1.CSINodeSpec{
		Drivers: []storagev1.CSINodeDriver{{Name: driver, NodeID: "n1", Allocatable: &storagev1.VolumeNodeResources{Count: &count}}},
	}}
}

func cluster(t testing.TB, objects ...any) *model.Cluster {
	t.Helper()
	c := model.NewCluster(model.Options{})
	apply(t, c, objects...)
	return c
}

func apply(t testing.TB, c *model.Cluster, objects ...any) {
	t.Helper()
	for _, o := range objects {
		for _, err := range c.Apply(model.Delta{Object: o}) {
			t.Fatal(err)
		}
	}
}

func asked(t testing.TB, c *model.Cluster) *Volumes {
	t.Helper()
	v, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	p, ok := v.(*Volumes)
	if !ok {
		t.Fatalf("the library gives %T", v)
	}
	return p
}

// answers returns the answers for a task: its trouble, and then by node which of the four questions are answered no.
func answers(t *testing.T, v *Volumes, task *model.Task) string {
	t.Helper()
	trouble, err := v.Trouble(task)
	if err != nil {
		return "error: " + err.Error()
	}
	if trouble != "" {
		return trouble
	}
	var out []string
	for _, row := range v.c.Nodes.ByOrder() {
		no := v.c.Nodes.Rows[row].Name
		for _, q := range []struct {
			name string
			ask  func(*model.Task, int32) (bool, error)
		}{{"fits", v.Fits}, {"zone", v.ZoneFits}, {"limits", v.LimitsFit}, {"free", v.Free}} {
			ok, err := q.ask(task, row)
			if err != nil {
				t.Fatalf("%s: %v", q.name, err)
			}
			if !ok {
				no += " !" + q.name
			}
		}
		out = append(out, no)
	}
	return strings.Join(out, ", ")
}

func TestAnswers(t *testing.T) {
	scratch := corev1.Volume{Name: "scratch", VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}}
	owned := func(c *corev1.PersistentVolumeClaim) {
		c.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: "p", UID: "p", Controller: new(true)}}
	}
	capacity := func(size string) *storagev1.CSIStorageCapacity {
		q := resource.MustParse(size)
		return &storagev1.CSIStorageCapacity{
			ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "pool"}, StorageClassName: "made", Capacity: &q,
			NodeTopology: &metav1.LabelSelector{MatchLabels: map[string]string{zoneLabel: "east"}},
		}
	}
	tracked := &storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: driver}, Spec: storagev1.CSIDriverSpec{StorageCapacity: new(true)}}
	attachment := &storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: "x"}, Spec: storagev1.VolumeAttachmentSpec{
		Attacher: driver, NodeName: "n1", Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: new("other")},
	}}
	immediate := func(c *storagev1.StorageClass) { c.VolumeBindingMode = nil }
	west := func(c *storagev1.StorageClass) {
		c.AllowedTopologies = []corev1.TopologySelectorTerm{
			{MatchLabelExpressions: []corev1.TopologySelectorLabelRequirement{{Key: zoneLabel, Values: []string{"west"}}}},
		}
	}
	for _, c := range []struct {
		name    string
		pod     *corev1.Pod
		objects []any
		want    string
	}{
		{"no claims", pod("p"), nil, "n1, n2"},
		{"a missing claim", pod("p", claimed("c")), nil, `persistentvolumeclaim "c" not found`},
		{
			"an ephemeral volume without its claim", pod("p", scratch), nil,
			`waiting for ephemeral volume controller to create the persistentvolumeclaim "p-scratch"`,
		},
		{
			"an ephemeral volume", pod("p", scratch),
			[]any{volume("v", "9Gi", reachedFrom("n2")), claim("p-scratch", "local", owned)},
			"n1 !fits, n2",
		},
		{
			"an ephemeral volume whose claim is another's", pod("p", scratch),
			[]any{claim("p-scratch", "local")},
			"PVC a/p-scratch was not created for pod a/p (pod is not owner)",
		},
		{"a claim that is being deleted", pod("p", claimed("c")), []any{claim("c", "local", func(c *corev1.PersistentVolumeClaim) {
			c.DeletionTimestamp = &metav1.Time{}
		})}, `persistentvolumeclaim "c" is being deleted`},
		{
			"a class that binds at once", pod("p", claimed("c")),
			[]any{classNamed("now", driver, immediate), claim("c", "now")},
			"pod has unbound immediate PersistentVolumeClaims",
		},
		{
			"a bound volume", pod("p", claimed("c")),
			[]any{volume("v", "9Gi", reachedFrom("n2")), claim("c", "local", boundTo("v"))},
			"n1 !fits, n2",
		},
		{"a bound volume that is gone", pod("p", claimed("c")), []any{claim("c", "local", boundTo("v"))}, "n1 !fits !zone, n2 !fits !zone"},
		{"a volume that is too small", pod("p", claimed("c")), []any{volume("v", "4Gi"), claim("c", "local")}, "n1 !fits, n2 !fits"},
		{
			"a volume of another zone", pod("p", claimed("c")),
			[]any{volume("v", "9Gi", inZone("west")), claim("c", "local", boundTo("v"))},
			"n1 !zone, n2",
		},
		{"the volumes of its node, or of no one node", pod("p", claimed("c"), claimed("d")), []any{
			volume("v", "9Gi", reachedFrom("n1")), volume("w", "9Gi", reachedFrom("n2")), volume("x", "9Gi"), claim("c", "local"),
			claim("d", "local"),
		}, "n1, n2"},
		{"a volume that is for its claim already", pod("p", claimed("c")), []any{
			volume("v", "9Gi", reachedFrom("n2"), func(v *corev1.PersistentVolume) {
				v.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "a", Name: "c"}
			}),
			volume("w", "9Gi"), claim("c", "local"),
		}, "n1 !fits, n2"},
		{"a volume that is for another claim", pod("p", claimed("c")), []any{
			volume("v", "9Gi", func(v *corev1.PersistentVolume) { v.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "a", Name: "d"} }),
			claim("c", "local"),
		}, "n1 !fits, n2 !fits"},
		{"a volume that is made", pod("p", claimed("c")), []any{claim("c", "made")}, "n1, n2"},
		{"where the class allows", pod("p", claimed("c")), []any{classNamed("made", driver, west), claim("c", "made")}, "n1 !fits, n2"},
		{"where there is capacity", pod("p", claimed("c")), []any{tracked, capacity("9Gi"), claim("c", "made")}, "n1, n2 !fits"},
		{"where capacity is too small", pod("p", claimed("c")), []any{tracked, capacity("1Gi"), claim("c", "made")}, "n1 !fits, n2 !fits"},
		{"limits", pod("p", claimed("c")), []any{limits(0), volume("v", "9Gi", attachable), claim("c", "local", boundTo("v"))}, "n1 !limits, n2"},
		{"limits, of what others have", pod("p", claimed("c")), []any{
			limits(1), volume("v", "9Gi", attachable), volume("w", "9Gi", attachable),
			claim("c", "local", boundTo("v")), claim("d", "local", boundTo("w")), runs(pod("old", claimed("d"))),
		}, "n1 !limits, n2"},
		{"limits, of the same volume", pod("p", claimed("c")), []any{
			limits(1), volume("v", "9Gi", attachable), claim("c", "local", boundTo("v")), runs(pod("old", claimed("c"))),
		}, "n1, n2"},
		{"limits, of what is still attached", pod("p", claimed("c")), []any{
			limits(1), volume("v", "9Gi", attachable), volume("other", "9Gi", attachable), attachment, claim("c", "local", boundTo("v")),
		}, "n1 !limits, n2"},
		{"limits, of what will be made", pod("p", claimed("c")), []any{limits(0), claim("c", "made")}, "n1 !limits, n2"},
		{"a claim for one pod", pod("p", claimed("c")), []any{
			volume("v", "9Gi"), claim("c", "local", boundTo("v"), exclusive),
			runs(pod("old", claimed("c"))),
		}, "n1 !free, n2 !free"},
		{"a disk that another writes to", pod("p", iscsi(true)), []any{runs(pod("old", iscsi(false)))}, "n1 !free, n2"},
		{"a disk that both read", pod("p", iscsi(true)), []any{runs(pod("old", iscsi(true)))}, "n1, n2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			cl := cluster(t, node("n1", "east"), node("n2", "west"), classNamed("local", "kubernetes.io/no-provisioner"), classNamed("made", driver))
			v := asked(t, cl)
			apply(t, cl, append(c.objects, c.pod)...)
			if diff := cmp.Diff(c.want, answers(t, v, cl.Tasks["a/p"])); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestChangesAreSeen checks that the answers are of the current cluster, also after more changes than the log of the cluster has entries.
func TestChangesAreSeen(t *testing.T) {
	c := cluster(t, node("n1", ""), classNamed("local", "kubernetes.io/no-provisioner"), claim("c", "local"), pod("p", claimed("c")))
	v, task := asked(t, c), c.Tasks["a/p"]
	want := func(text string) {
		t.Helper()
		if got := answers(t, v, task); got != text {
			t.Errorf("%q, want %q", got, text)
		}
	}
	want("n1 !fits")
	apply(t, c, volume("v", "9Gi"))
	want("n1")
	c.Apply(model.Delta{Op: model.Delete, Object: volume("v", "9Gi")})
	want("n1 !fits")
	for range 1 << 17 {
		c.Apply(model.Delta{Object: claim("other", "local")})
	}
	apply(t, c, volume("v", "9Gi"))
	c.Apply(model.Delta{Op: model.Delete, Object: claim("other", "local")})
	want("n1")
	c.Apply(model.Delta{Op: model.Delete, Object: claim("c", "local")})
	want(`persistentvolumeclaim "c" not found`)
	if got := v.Missing(task); got != "a/c" {
		t.Errorf("missing is %q", got)
	}
}

// TestPromises checks that a volume promised to one task is not available to another. It is available again after the promise is withdrawn.
func TestPromises(t *testing.T) {
	c := cluster(t, node("n1", ""), node("n2", ""), classNamed("local", "kubernetes.io/no-provisioner"), classNamed("made", driver),
		volume("v", "9Gi"), claim("c1", "local"), claim("c2", "local"), claim("c3", "made"),
		pod("p1", claimed("c1"), claimed("c3")), pod("p2", claimed("c2")), pod("p3", claimed("c3")), pod("p4", claimed("c1")))
	v := asked(t, c)
	look := func() string {
		var out []string
		for _, name := range []string{"p2", "p3", "p4"} {
			out = append(out, answers(t, v, c.Tasks["a/"+name]))
		}
		return strings.Join(out, "; ")
	}
	const free, taken = "n1, n2; n1, n2; n1, n2", "n1 !fits, n2 !fits; n1, n2 !fits; n1, n2"
	if got := look(); got != free {
		t.Errorf("at first: %s", got)
	}
	x, p1 := c.Begin(), c.Tasks["a/p1"]
	bindings, err := v.Bindings(p1, c.Nodes.Index["n1"])
	if diff := cmp.Diff([]model.VolumeBind{{Claim: "a/c1", Volume: "v"}, {Claim: "a/c3"}}, bindings); diff != "" || err != nil {
		t.Fatalf("%v (-want +got):\n%s", err, diff)
	}
	if got := look(); got != free {
		t.Errorf("asking promised something: %s", got)
	}
	x.Allocate(p1, c.Nodes.Index["n1"], nil)
	x.Reserve(p1, bindings)
	if got := look(); got != taken {
		t.Errorf("promised: %s", got)
	}
	x.Rollback(0)
	if got := look(); got != free {
		t.Errorf("taken back: %s", got)
	}
}

// BenchmarkFits asks about one pod on all nodes. Each node has its own volume that only it reaches, as with local disks.
func BenchmarkFits(b *testing.B) {
	for _, nodes := range []int{1000, 5000} {
		b.Run(fmt.Sprintf("nodes=%d", nodes), func(b *testing.B) {
			var objects []any
			for i := range nodes {
				name := fmt.Sprintf("n%d", i)
				objects = append(objects, node(name, "east"), volume("v-"+name, "9Gi", reachedFrom(name)))
			}
			objects = append(objects, classNamed("local", "kubernetes.io/no-provisioner"), claim("bound", "local", boundTo("v-n7")),
				claim("free", "local"),
				pod("bound", claimed("bound")), pod("free", claimed("free")))
			c := cluster(b, objects...)
			v := asked(b, c)
			for _, name := range []string{"bound", "free"} {
				b.Run(name, func(b *testing.B) {
					task, fit := c.Tasks["a/"+name], 0
					for b.Loop() {
						fit = 0
						for _, row := range c.Nodes.ByOrder() {
							if ok, _ := v.Fits(task, row); ok {
								fit++
							}
						}
					}
					b.ReportMetric(float64(fit), "nodes")
				})
			}
		})
	}
}
