package model

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func claimed(claim string) corev1.Volume {
	return corev1.Volume{Name: "v-" + claim, VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim},
	}}
}

func withVolumes(volumes ...corev1.Volume) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.Volumes = volumes }
}

func volumeNamed(name string) *corev1.PersistentVolume {
	return &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func claimNamed(name string) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "a"}}
}

func TestClaimsOfAPod(t *testing.T) {
	ephemeral := corev1.Volume{Name: "scratch", VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}}
	disk := corev1.Volume{Name: "disk", VolumeSource: corev1.VolumeSource{ISCSI: &corev1.ISCSIVolumeSource{IQN: "x"}}}
	empty := corev1.Volume{Name: "tmp", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}
	for _, c := range []struct {
		name    string
		volumes []corev1.Volume
		has     bool
		claims  []string
	}{
		{"none", nil, false, nil},
		{"emptyDir", []corev1.Volume{empty}, false, nil},
		{"a claim, twice", []corev1.Volume{claimed("c1"), empty, claimed("c1")}, true, []string{"a/c1"}},
		{"ephemeral", []corev1.Volume{ephemeral, claimed("c1")}, true, []string{"a/p-scratch", "a/c1"}},
		{"a disk of its own", []corev1.Volume{disk}, true, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			task := cluster(t, pod("p", "cpu=1", withVolumes(c.volumes...))).Tasks["a/p"]
			if task.HasVolumes != c.has {
				t.Errorf("HasVolumes is %t", task.HasVolumes)
			}
			if diff := cmp.Diff(c.claims, task.Claims); diff != "" {
				t.Errorf("claims (-want +got):\n%s", diff)
			}
		})
	}
}

// TestReserve checks that the storage promises of a placement begin and end with it.
func TestReserve(t *testing.T) {
	c := cluster(t, node("n1", "cpu=4 pods=9"), volumeNamed("v1"), claimNamed("c1"), claimNamed("c2"),
		pod("p1", "cpu=1", withVolumes(claimed("c1"), claimed("c2"))), pod("p2", "cpu=1"))
	p1 := c.Tasks["a/p1"]
	volume, claim := StorageID{PersistentVolume, "v1"}, StorageID{VolumeClaim, "a/c2"}
	want := func(ofVolume, ofClaim string, users int) {
		t.Helper()
		check(t, c)
		if got := c.Storage.Promised(volume); got != ofVolume {
			t.Errorf("v1 is promised to %q, want %q", got, ofVolume)
		}
		if got := c.Storage.Promised(claim); got != ofClaim {
			t.Errorf("a/c2 is promised to %q, want %q", got, ofClaim)
		}
		if got := c.Storage.Users("a/c1"); got != users {
			t.Errorf("a/c1 has %d users, want %d", got, users)
		}
	}
	x := c.Begin()
	place := func() {
		x.Allocate(p1, 0, nil)
		x.Reserve(p1, []VolumeBind{{Claim: "a/c1", Volume: "v1"}, {Claim: "a/c2"}})
	}
	place()
	want("a/c1", "n1", 1)
	x.Unplace(p1)
	want("", "", 0)
	mark := x.Mark()
	place()
	version := c.Storage.Version
	x.Rollback(mark)
	want("", "", 0)
	if c.Storage.Version == version {
		t.Error("taking a promise back is no change")
	}
	place()
	x.Bind(p1)
	x.Commit()
	// An update of the pod that cannot show the binding yet does not end the promises. The bound pod does not end them either.
	apply(t, c, upserts(pod("p1", "cpu=1", withVolumes(claimed("c1"), claimed("c2"))))...)
	want("a/c1", "n1", 1)
	apply(t, c, upserts(pod("p1", "cpu=1", withVolumes(claimed("c1"), claimed("c2")), on("n1")))...)
	want("a/c1", "n1", 1)
	apply(t, c, Delta{Op: Forget, Object: pod("p1", "cpu=1", withVolumes(claimed("c1"), claimed("c2")))})
	want("", "", 0)
}

// TestReserveTwice checks that a volume is promised only once.
func TestReserveTwice(t *testing.T) {
	c := cluster(t, node("n1", "cpu=4 pods=9"), pod("p1", "cpu=1", withVolumes(claimed("c1"))), pod("p2", "cpu=1", withVolumes(claimed("c2"))))
	x := c.Begin()
	for _, name := range []string{"1", "2"} {
		task := c.Tasks["a/p"+name]
		x.Allocate(task, 0, nil)
		x.Reserve(task, []VolumeBind{{Claim: "a/c" + name, Volume: "v1"}})
	}
	if err := c.Check(); err == nil {
		t.Error("two claims were promised one volume, and Check says nothing")
	}
}

func TestStorageObjects(t *testing.T) {
	class := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "fast"}}
	c := cluster(t, class, claimNamed("c1"), volumeNamed("v1"))
	if got := c.Storage.Objects[StorageID{StorageClass, "fast"}]; got != class {
		t.Errorf("the class is %v", got)
	}
	before := c.Storage.Log.End()
	apply(t, c, Delta{Op: Delete, Object: claimNamed("c1")})
	if _, there := c.Storage.Objects[StorageID{VolumeClaim, "a/c1"}]; there {
		t.Error("the claim is still there")
	}
	changed, ok := before.Read(&c.Storage.Log)
	if diff := cmp.Diff([]StorageID{{VolumeClaim, "a/c1"}}, changed); diff != "" || !ok {
		t.Errorf("log (-want +got):\n%s", diff)
	}
	if errs := c.Apply(Delta{Op: Upsert, Object: &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "x"}}}); len(errs) != 1 {
		t.Errorf("a claim without namespace: %v", errs)
	}
}
