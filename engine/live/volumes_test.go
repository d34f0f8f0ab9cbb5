package live

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	storagehelpers "k8s.io/component-helpers/storage/volume"

	"github.com/celsius-scheduler/celsius/engine/model"
)

// Volume implements storage.
func (f *fakeServer) Volume(_ context.Context, name string) (*corev1.PersistentVolume, error) {
	if v := f.volumes[name]; v != nil {
		return v.DeepCopy(), nil
	}
	return nil, apierrors.NewNotFound(corev1.Resource("persistentvolumes"), name)
}

// Claim implements storage.
func (f *fakeServer) Claim(_ context.Context, namespace, name string) (*corev1.PersistentVolumeClaim, error) {
	if c := f.claims[model.Key(namespace, name)]; c != nil {
		return c.DeepCopy(), nil
	}
	return nil, apierrors.NewNotFound(corev1.Resource("persistentvolumeclaims"), name)
}

// UpdateVolume implements storage.
func (f *fakeServer) UpdateVolume(_ context.Context, v *corev1.PersistentVolume) error {
	if f.volumes[v.Name].ResourceVersion != v.ResourceVersion {
		return apierrors.NewConflict(corev1.Resource("persistentvolumes"), v.Name, errors.New("it has changed"))
	}
	f.writes = append(f.writes, "volume "+v.Name+" for "+model.Key(v.Spec.ClaimRef.Namespace, v.Spec.ClaimRef.Name))
	f.put(v)
	return nil
}

// UpdateClaim implements storage.
func (f *fakeServer) UpdateClaim(_ context.Context, c *corev1.PersistentVolumeClaim) error {
	if f.claims[model.Key(c.Namespace, c.Name)].ResourceVersion != c.ResourceVersion {
		return apierrors.NewConflict(corev1.Resource("persistentvolumeclaims"), c.Name, errors.New("it has changed"))
	}
	f.writes = append(f.writes, "claim "+model.Key(c.Namespace, c.Name)+" to "+c.Annotations[storagehelpers.AnnSelectedNode])
	f.put(c)
	return nil
}

// bindVolumes does the work of the volume controller: it binds the volumes that refer to a claim.
func (f *fakeServer) bindVolumes() {
	for _, v := range f.volumes {
		if v.Spec.ClaimRef == nil || v.Status.Phase == corev1.VolumeBound {
			continue
		}
		c := f.claims[model.Key(v.Spec.ClaimRef.Namespace, v.Spec.ClaimRef.Name)].DeepCopy()
		c.Spec.VolumeName, c.Status.Phase = v.Name, corev1.ClaimBound
		metav1.SetMetaDataAnnotation(&c.ObjectMeta, storagehelpers.AnnBindCompleted, "yes")
		v = v.DeepCopy()
		v.Status.Phase = corev1.VolumeBound
		f.put(v, c)
	}
}

func testClass(name, provisioner string) *storagev1.StorageClass {
	return &storagev1.StorageClass{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Provisioner: provisioner,
		VolumeBindingMode: new(storagev1.VolumeBindingWaitForFirstConsumer),
	}
}

// testVolume returns a free volume of class local that one node can reach.
func testVolume(name, node string) *corev1.PersistentVolume {
	v := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}}
	v.Spec.StorageClassName, v.Spec.AccessModes = "local", []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	v.Spec.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	v.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
		MatchExpressions: []corev1.NodeSelectorRequirement{{
			Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn,
			Values: []string{node},
		}},
	}}}}
	v.Status.Phase = corev1.VolumeAvailable
	return v
}

func testClaim(name, class string) *corev1.PersistentVolumeClaim {
	c := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	c.Spec.StorageClassName, c.Spec.AccessModes = &class, []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	c.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	return c
}

// claiming adds the claim data to a pod.
func claiming(p *corev1.Pod) *corev1.Pod {
	p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: "data", VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"},
	}})
	return p
}

// about returns the writes of volumes and claims, and the accepted bindings.
func (f *fakeServer) about() []string {
	return slices.DeleteFunc(slices.Clone(f.writes), func(w string) bool {
		return !strings.HasPrefix(w, "volume ") && !strings.HasPrefix(w, "claim ") && !strings.HasPrefix(w, "bind ")
	})
}

func wrote(t *testing.T, f *fakeServer, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, f.about()); diff != "" {
		t.Fatalf("writes (-want +got):\n%s", diff)
	}
}

func TestVolumesAreBoundBeforeThePod(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		f := r.server
		f.put(testNode("n1", "4"), testNode("n2", "4"), testQueue("default"), testGroup("g", 1),
			testClass("local", "kubernetes.io/no-provisioner"),
			testVolume("v2", "n2"), testClaim("data", "local"), claiming(testPod("a", "g", "1")))
		r.settle(3)
		wrote(t, f, "volume v2 for default/data") // written once, regardless of the number of checks
		if got := r.cluster.Tasks["default/a"].Status; got != model.Binding {
			t.Errorf("while the volume is not bound the pod is %s", got)
		}
		f.bindVolumes()
		r.settle(5)
		wrote(t, f, "volume v2 for default/data", "bind default/a n2")
	})
}

func TestVolumesAreMadeForANode(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		f := r.server
		f.put(testNode("n1", "4"), testQueue("default"), testGroup("g", 2), testClass("disk", "disks.example.com"), testClaim("data", "disk"),
			claiming(testPod("a", "g", "1")), claiming(testPod("b", "g", "1")))
		r.settle(3)
		wrote(t, f, "claim default/data to n1") // two pods share it
		c := f.claims["default/data"].DeepCopy()
		v := testVolume("made", "n1")
		v.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "default", Name: "data", UID: c.UID}
		f.put(v)
		f.bindVolumes()
		r.settle(5)
		if diff := cmp.Diff([]string{"default/a n1", "default/b n1"}, slices.Sorted(slices.Values(f.bindings))); diff != "" {
			t.Errorf("bindings (-want +got):\n%s", diff)
		}
	})
}

// If the volumes of a pod are not bound in time, the scheduler decides again on the pod after a while. By then the obstacle may be gone, or
// another volume may be available.
func TestVolumesThatAreNotBound(t *testing.T) {
	for _, c := range []struct {
		name  string
		class string
		spoil func(f *fakeServer)
		why   string
	}{
		{"in time", "local", func(*fakeServer) { time.Sleep(time.Minute) }, "were not bound within 1m0s"},
		{"as another claim was first", "local", func(f *fakeServer) {
			v := f.volumes["v1"].DeepCopy()
			v.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "other", Name: "claim"}
			f.put(v)
		}, "volume v1 was bound to claim other/claim"},
		{"as the volume went", "local", func(f *fakeServer) { f.drop(f.volumes["v1"]) }, "volume v1 is not there any more"},
		{"as the claim went", "local", func(f *fakeServer) { f.drop(f.claims["default/data"]) }, "claim default/data is not there any more"},
		{"as none could be made", "disk", func(f *fakeServer) {
			c := f.claims["default/data"].DeepCopy()
			delete(c.Annotations, storagehelpers.AnnSelectedNode)
			f.put(c)
		}, "no volume could be made for claim default/data on node n1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				f := r.server
				f.put(testNode("n1", "4"), testQueue("default"), testGroup("g", 1), testClass("local", "kubernetes.io/no-provisioner"),
					testClass("disk", "disks.example.com"),
					testVolume("v1", "n1"), testClaim("data", c.class), claiming(testPod("a", "g", "1")))
				r.settle(1)
				c.spoil(f)
				for range 100 { // until the next check has found it
					r.server.deliver(-1)
					for r.work() {
					}
					if r.tick(); r.intake.holds["default/a"] != nil {
						break
					}
					time.Sleep(50 * time.Millisecond)
				}
				h := r.intake.holds["default/a"]
				if h == nil || !strings.Contains(h.why, c.why) {
					t.Fatalf("the pod's binding was refused by %+v, want %q", h, c.why)
				}
				if p := r.cluster.Storage.Promised(model.StorageID{
					Kind: model.PersistentVolume,
					Key:  "v1",
				}); r.cluster.Tasks["default/a"].Status == model.Pending && p != "" {
					t.Errorf("v1 is still promised to %s", p)
				}
				if len(f.bindings) != 0 {
					t.Errorf("bound: %v", f.bindings)
				}
			})
		})
	}
}

// The data of a pod that is deleted while its volumes are bound is forgotten.
func TestAPodGoesWhileItsVolumesAreBound(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		f := r.server
		f.put(testNode("n1", "4"), testQueue("default"), testGroup("g", 1), testClass("local", "kubernetes.io/no-provisioner"),
			testVolume("v1", "n1"), testClaim("data", "local"), claiming(testPod("a", "g", "1")))
		r.settle(1)
		f.drop(f.pods["default/a"])
		r.settle(10)
		f.bindVolumes()
		r.settle(10)
		wrote(t, f, "volume v1 for default/data")
		if got := r.cluster.Storage.Promised(model.StorageID{Kind: model.PersistentVolume, Key: "v1"}); got != "" {
			t.Errorf("v1 is still promised to %s", got)
		}
	})
}
