package session

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
)

func aVolume(claim string) corev1.Volume {
	return corev1.Volume{
		Name:         claim,
		VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim}},
	}
}

func aClass(name, provisioner string) *storagev1.StorageClass {
	return &storagev1.StorageClass{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Provisioner: provisioner,
		VolumeBindingMode: new(storagev1.VolumeBindingWaitForFirstConsumer),
	}
}

// aPersistentVolume returns a free volume that nodes of a zone reach; "": all nodes.
func aPersistentVolume(name, zone string) *corev1.PersistentVolume {
	v := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{}}}
	v.Spec.StorageClassName, v.Spec.AccessModes = "local", []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	v.Spec.Capacity = amountList("storage=10Gi")
	v.Status.Phase = corev1.VolumeAvailable
	if zone != "" {
		v.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "zone", Operator: corev1.NodeSelectorOpIn, Values: []string{zone}}},
		}}}}
	}
	return v
}

func aClaim(name, class string, edits ...func(*corev1.PersistentVolumeClaim)) *corev1.PersistentVolumeClaim {
	c := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "a"}}
	c.Spec.StorageClassName, c.Spec.AccessModes = &class, []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	c.Spec.Resources.Requests = amountList("storage=1Gi")
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

func someStorage() []any {
	return []any{
		aClass("local", "kubernetes.io/no-provisioner"), aClass("made", "disks.example.com"),
		aPersistentVolume("v1", "east"), aPersistentVolume("v2", "west"), aClaim("c1", "local"), aClaim("c2", "local"), aClaim("c3", "made"),
	}
}

func twinStorage(t *rapid.T) any {
	class := drawOf(t, "class", "local", "local", "made")
	switch drawOf(t, "kind", "volume", "claim", "claim", "class", "limits") {
	case "volume":
		return aPersistentVolume(drawOf(t, "volume", "v1", "v2", "v3"), drawOf(t, "zone", "", "east", "west"))
	case "claim":
		return aClaim(drawOf(t, "claim", "c1", "c2", "c3"), class, func(c *corev1.PersistentVolumeClaim) {
			if volume := drawOf(t, "bound", "", "", "v1", "v2"); volume != "" {
				boundTo(volume)(c)
			}
			if drawOf(t, "exclusive", false, false, true) {
				c.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOncePod}
			}
		})
	case "class":
		return aClass(class, drawOf(t, "provisioner", "kubernetes.io/no-provisioner", "disks.example.com"))
	}
	return &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: drawOf(t, "node", "n1", "n2")}, Spec: storagev1.CSINodeSpec{
		Drivers: []storagev1.CSINodeDriver{{
			Name:        "disks.example.com",
			Allocatable: &storagev1.VolumeNodeResources{Count: new(drawOf(t, "limit", int32(0), 1))},
		}},
	}}
}

const volumeRows = `
taskFeasible:
- {name: known, expression: "task.claimsExist()"}
predicates:
- {name: free, when: task.hasVolumes, expression: "task.volumesFree(node)"}
- {name: limits, expression: "task.volumeLimitsFit(node)"}
- {name: zone, when: task.hasVolumes, expression: "task.volumeZonesFit(node)"}
- {name: binding, expression: "task.volumesFit(node) || node.unschedulable"}
scores:
- {name: fewest, expression: -node.taskCount, normalize: minMax}
`

// TestVolumesRemembered checks that cached results of nodes, together with evaluations about volumes, are the same as without caches. This
// is also so if a score reads volumes.
func TestVolumesRemembered(t *testing.T) {
	for name, rows := range map[string]string{
		"predicates": volumeRows,
		"a score":    volumeRows + "- {name: reached, expression: 'task.volumesFit(node) ? 1 : 0', normalize: max}\n",
	} {
		t.Run(name, func(t *testing.T) {
			p := loaded(t, policyText(rows))
			rapid.Check(t, func(t *rapid.T) { newTwins(p, placements).run(t) })
		})
	}
}

// TestVolumesCostNothing checks that a task without volumes costs no evaluation of a row with the guard hasVolumes.
func TestVolumesCostNothing(t *testing.T) {
	c := aCluster(t, aQueue("q"), aGroup("g", "q"), aNode("n1", "cpu=8 pods=9"), aNode("n2", "cpu=8 pods=9"), aPod("p", "cpu=1"),
		aPod("with", "cpu=1", func(p *corev1.Pod) { p.Spec.Volumes = []corev1.Volume{aVolume("c1")} }))
	apply(t, c, someStorage()...)
	s := begun(t, c, volumeRows)
	evaluated := func(name string) uint64 {
		for _, r := range s.p.Rules(policy.Predicates) {
			if r.Name == name {
				return s.Evaluated(r)
			}
		}
		t.Fatalf("no row %s", name)
		return 0
	}
	s.Class(c.Tasks["a/p"])
	if free, limits := evaluated("free"), evaluated("limits"); free != 0 || limits != 2 {
		t.Errorf("guarded row: %d evaluations, want 0; unguarded: %d, want 2", free, limits)
	}
	s.Class(c.Tasks["a/with"])
	if free := evaluated("free"); free != 2 {
		t.Errorf("a task with volumes: %d evaluations, want 2", free)
	}
}

func TestBindings(t *testing.T) {
	mounts := func(claims ...string) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			for _, claim := range claims {
				p.Spec.Volumes = append(p.Spec.Volumes, aVolume(claim))
			}
		}
	}
	east := func(n *corev1.Node) { n.Labels["zone"] = "east" }
	for _, c := range []struct {
		name    string
		claims  []string
		objects []any
		want    []model.VolumeBind
		err     string
	}{
		{"none", nil, nil, nil, ""},
		{"bound", []string{"b"}, []any{aPersistentVolume("v9", ""), aClaim("b", "local", boundTo("v9"))}, nil, ""},
		{"to be bound", []string{"c1"}, nil, []model.VolumeBind{{Claim: "a/c1", Volume: "v1"}}, ""},
		{"to be made", []string{"c3"}, nil, []model.VolumeBind{{Claim: "a/c3"}}, ""},
		{"both", []string{"c3", "c1"}, nil, []model.VolumeBind{{Claim: "a/c1", Volume: "v1"}, {Claim: "a/c3"}}, ""},
		{
			"of equal volumes the first by name",
			[]string{"c1"},
			[]any{aPersistentVolume("v0", "east"), aPersistentVolume("v00", "east")},
			[]model.VolumeBind{{Claim: "a/c1", Volume: "v0"}},
			"",
		},
		{"no volume is left", []string{"c1", "c2"}, nil, nil, "volumes of pod a/p do not fit node n1"},
		{"missing", []string{"x"}, nil, nil, `persistentvolumeclaim "x" not found`},
	} {
		t.Run(c.name, func(t *testing.T) {
			cl := aCluster(t, append(append(someStorage(), aNode("n1", "cpu=8 pods=9", east), aPod("p", "cpu=1", mounts(c.claims...))),
				c.objects...)...)
			s := begun(t, cl, volumeRows)
			for range 2 { // an evaluation has no side effects
				got, err := s.Bindings(cl.Tasks["a/p"], 0)
				if diff := cmp.Diff(c.want, got); diff != "" {
					t.Errorf("bindings (-want +got):\n%s", diff)
				}
				if text := errText(err); text != c.err {
					t.Errorf("error %q, want %q", text, c.err)
				}
			}
		})
	}
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
