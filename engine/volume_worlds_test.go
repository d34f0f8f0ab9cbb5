package engine_test

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	storagehelpers "k8s.io/component-helpers/storage/volume"
	"pgregory.net/rapid"

	"github.com/celsius-scheduler/celsius/engine/model"
)

// These are the storage classes of a world with volumes, and the drivers that make and attach volumes.
const (
	localClass     = "local" // volumes that exist, bound for their first consumer
	madeClass      = "made"  // volumes that are made for their first consumer
	immediateClass = "now"   // bound at once; the scheduler does nothing for them
	diskDriver     = "disks.example.com"
)

// withVolumes gives a world storage: classes, volumes that all or some nodes reach, and limits of volumes per node. Claims are bound,
// unbound or missing. Some pods use the claims, and all of this may change between cycles.
func withVolumes(t *rapid.T, w *world) {
	w.volumes = true
	for _, o := range w.objects {
		useVolumes(t, o)
	}
	for _, name := range []string{localClass, madeClass, immediateClass} {
		w.objects = append(w.objects, drawClass(t, name))
	}
	if seldomer(t, "capacities", 4) {
		w.objects = append(w.objects, &storagev1.CSIDriver{
			ObjectMeta: metav1.ObjectMeta{Name: diskDriver}, Spec: storagev1.CSIDriverSpec{StorageCapacity: new(true)},
		}, drawCapacity(t))
	}
	for i := range rapid.IntRange(1, 4).Draw(t, "volumes") {
		w.objects = append(w.objects, drawVolume(t, fmt.Sprint("v", i+1)))
	}
	for i := range rapid.IntRange(3, 5).Draw(t, "claims") {
		w.objects = append(w.objects, drawClaim(t, fmt.Sprint("c", i+1)))
	}
	for i := range 4 {
		if seldomer(t, "limited", 2) {
			w.objects = append(w.objects, drawLimits(t, fmt.Sprint("n", i+1)))
		}
	}
	for i, deltas := range w.changes {
		for _, d := range deltas {
			if o, ok := d.Object.(metav1.Object); ok && d.Op == model.Upsert {
				useVolumes(t, o)
			}
		}
		for range rapid.IntRange(0, 2).Draw(t, "changes of storage") {
			w.changes[i] = append(w.changes[i], drawStorageChange(t))
		}
	}
}

// useVolumes makes a pod use volumes in some cases, and gives a node the zone label that volumes read.
func useVolumes(t *rapid.T, o metav1.Object) {
	switch o := o.(type) {
	case *corev1.Node:
		o.Labels[corev1.LabelTopologyZone] = o.Labels["zone"]
	case *corev1.Pod:
		for _, volume := range one(t, "uses", nil, nil, nil, []string{"c1"}, []string{"c2"}, []string{"c3"}, []string{"c1", "c4"}, []string{"c5"},
			[]string{"own"}) {
			v := corev1.Volume{Name: volume}
			if volume == "own" {
				v.Ephemeral = &corev1.EphemeralVolumeSource{}
			} else {
				v.PersistentVolumeClaim = &corev1.PersistentVolumeClaimVolumeSource{ClaimName: volume}
			}
			o.Spec.Volumes = append(o.Spec.Volumes, v)
		}
	}
}

func drawClass(t *rapid.T, name string) *storagev1.StorageClass {
	class := &storagev1.StorageClass{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Provisioner: storagehelpers.NotSupportedProvisioner,
		VolumeBindingMode: new(storagev1.VolumeBindingWaitForFirstConsumer),
	}
	switch name {
	case immediateClass:
		class.VolumeBindingMode = new(storagev1.VolumeBindingImmediate)
	case madeClass:
		class.Provisioner = diskDriver
		if zone := one(t, "made in", "", "", "east"); zone != "" {
			class.AllowedTopologies = []corev1.TopologySelectorTerm{{
				MatchLabelExpressions: []corev1.TopologySelectorLabelRequirement{{Key: corev1.LabelTopologyZone, Values: []string{zone}}},
			}}
		}
	}
	return class
}

func drawCapacity(t *rapid.T) *storagev1.CSIStorageCapacity {
	return &storagev1.CSIStorageCapacity{
		ObjectMeta: metav1.ObjectMeta{Name: "room", Namespace: "a"}, StorageClassName: madeClass,
		NodeTopology: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelTopologyZone: one(t, "room in", "east", "west")}},
		Capacity:     new(resource.MustParse(one(t, "room", "2Gi", "20Gi"))),
	}
}

func drawVolume(t *rapid.T, name string) *corev1.PersistentVolume {
	v := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{}, UID: types.UID("uid-" + name)}}
	v.Spec.StorageClassName = one(t, "class of a volume", localClass, localClass, madeClass, immediateClass)
	v.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce, corev1.ReadWriteOncePod}
	v.Spec.Capacity = list(one(t, "size", "storage=10Gi", "storage=3Gi"))
	v.Status.Phase = corev1.VolumeAvailable
	if seldomer(t, "attached", 2) {
		v.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: diskDriver, VolumeHandle: name}
	}
	if zone := one(t, "zone of a volume", "", "", "east", "west"); zone != "" {
		v.Labels[corev1.LabelTopologyZone] = zone
	}
	switch reached := one(t, "reached from", "", "", "", "n1", "n2", "east", "west"); reached {
	case "":
	case "east", "west":
		v.Spec.NodeAffinity = reachedFrom("zone", reached)
	default:
		v.Spec.NodeAffinity = reachedFrom(corev1.LabelHostname, reached)
	}
	return v
}

func reachedFrom(key, value string) *corev1.VolumeNodeAffinity {
	return &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
		MatchExpressions: []corev1.NodeSelectorRequirement{{Key: key, Operator: corev1.NodeSelectorOpIn, Values: []string{value}}},
	}}}}
}

func drawClaim(t *rapid.T, name string) *corev1.PersistentVolumeClaim {
	c := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "a", UID: types.UID("uid-" + name)}}
	c.Spec.StorageClassName = new(one(t, "class", localClass, localClass, madeClass, madeClass, localClass, immediateClass))
	c.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{
		one(t, "mode", corev1.ReadWriteOnce, corev1.ReadWriteOnce, corev1.ReadWriteOncePod),
	}
	c.Spec.Resources.Requests = list(one(t, "size", "storage=1Gi", "storage=5Gi"))
	c.Status.Phase = corev1.ClaimPending
	if volume := one(t, "bound to", "", "", "", "", "", "v1", "v2", "v5"); volume != "" {
		c.Spec.VolumeName, c.Status.Phase = volume, corev1.ClaimBound
		metav1.SetMetaDataAnnotation(&c.ObjectMeta, storagehelpers.AnnBindCompleted, "yes")
	}
	if seldom(t, "leaving") {
		c.DeletionTimestamp = new(at(60))
	}
	return c
}

// drawLimits draws how many volumes a node can attach.
func drawLimits(t *rapid.T, node string) *storagev1.CSINode {
	count := int32(rapid.IntRange(0, 2).Draw(t, "most"))
	return &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: node}, Spec: storagev1.CSINodeSpec{Drivers: []storagev1.CSINodeDriver{
		{Name: diskDriver, NodeID: node, Allocatable: &storagev1.VolumeNodeResources{Count: &count}},
	}}}
}

// drawStorageChange draws a change of storage between two cycles.
func drawStorageChange(t *rapid.T) model.Delta {
	number := rapid.IntRange(1, 5).Draw(t, "which")
	volume, claim, node := fmt.Sprint("v", number), fmt.Sprint("c", number), fmt.Sprint("n", min(number, 4))
	switch rapid.IntRange(0, 6).Draw(t, "change of storage") {
	case 0:
		return model.Delta{Op: model.Delete, Object: &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: volume}}}
	case 1:
		return model.Delta{Op: model.Delete, Object: &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: claim, Namespace: "a"}}}
	case 2:
		return model.Delta{Object: drawClass(t, madeClass)}
	case 3:
		return model.Delta{Object: drawLimits(t, node)}
	case 4:
		return model.Delta{Object: drawVolume(t, volume)}
	}
	return model.Delta{Object: drawClaim(t, claim)}
}

// bound returns the objects after a binding's claims are served. Each claim has its volume, and missing volumes were made.
func bound(c *model.Cluster, b model.Bind) []model.Delta {
	var out []model.Delta
	for _, v := range b.Volumes {
		claim, ok := c.Storage.Objects[model.StorageID{Kind: model.VolumeClaim, Key: v.Claim}].(*corev1.PersistentVolumeClaim)
		if !ok {
			continue
		}
		claim = claim.DeepCopy()
		pv, ok := c.Storage.Objects[model.StorageID{Kind: model.PersistentVolume, Key: v.Volume}].(*corev1.PersistentVolume)
		if ok {
			pv = pv.DeepCopy()
		} else {
			pv = &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "made-" + strings.ReplaceAll(v.Claim, "/", "-")}}
			pv.Spec.StorageClassName, pv.Spec.AccessModes = *claim.Spec.StorageClassName, claim.Spec.AccessModes
			pv.Spec.Capacity = claim.Spec.Resources.Requests
			pv.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: diskDriver, VolumeHandle: pv.Name}
			pv.Spec.NodeAffinity = reachedFrom(corev1.LabelHostname, b.Node)
		}
		pv.Spec.ClaimRef = &corev1.ObjectReference{Kind: model.VolumeClaim, Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID}
		pv.Status.Phase, claim.Status.Phase, claim.Spec.VolumeName = corev1.VolumeBound, corev1.ClaimBound, pv.Name
		metav1.SetMetaDataAnnotation(&claim.ObjectMeta, storagehelpers.AnnBindCompleted, "yes")
		out = append(out, model.Delta{Object: pv}, model.Delta{Object: claim})
	}
	return out
}
