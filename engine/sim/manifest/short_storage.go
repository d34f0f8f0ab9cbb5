package manifest

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/rules/source"
)

// storageKinds returns the types of storage objects that a world may contain.
func storageKinds() []kind {
	const storage = "storage.k8s.io/v1"
	return []kind{
		{"v1", model.PersistentVolume, false, func() metav1.Object { return &corev1.PersistentVolume{} }},
		{"v1", model.VolumeClaim, true, func() metav1.Object { return &corev1.PersistentVolumeClaim{} }},
		{storage, model.StorageClass, false, func() metav1.Object { return &storagev1.StorageClass{} }},
		{storage, model.CSINode, false, func() metav1.Object { return &storagev1.CSINode{} }},
		{storage, model.CSIDriver, false, func() metav1.Object { return &storagev1.CSIDriver{} }},
		{storage, model.StorageCapacity, true, func() metav1.Object { return &storagev1.CSIStorageCapacity{} }},
		{storage, model.VolumeAttachment, false, func() metav1.Object { return &storagev1.VolumeAttachment{} }},
	}
}

// storageKind returns the kind of a storage object; "" for other objects.
func storageKind(o metav1.Object) string {
	switch o.(type) {
	case *corev1.PersistentVolume:
		return model.PersistentVolume
	case *corev1.PersistentVolumeClaim:
		return model.VolumeClaim
	case *storagev1.StorageClass:
		return model.StorageClass
	case *storagev1.CSINode:
		return model.CSINode
	case *storagev1.CSIDriver:
		return model.CSIDriver
	case *storagev1.CSIStorageCapacity:
		return model.StorageCapacity
	case *storagev1.VolumeAttachment:
		return model.VolumeAttachment
	}
	return ""
}

// NodesWith returns the node affinity of a volume that matching nodes can reach.
func NodesWith(match []corev1.NodeSelectorRequirement) *corev1.VolumeNodeAffinity {
	return &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: match}}}}
}

// noProvisioner is the provisioner of classes whose volumes an administrator creates in advance.
const noProvisioner = "kubernetes.io/no-provisioner"

func (c *converter) storageClass(v source.Value, name string, s *ShortStorageClass) {
	class := &storagev1.StorageClass{Provisioner: s.Provisioner}
	class.Name = name
	if class.Provisioner == "" {
		class.Provisioner = noProvisioner
	}
	if s.Wait {
		class.VolumeBindingMode = new(storagev1.VolumeBindingWaitForFirstConsumer)
	}
	if len(s.Topology) > 0 {
		term := corev1.TopologySelectorTerm{}
		for _, key := range slices.Sorted(maps.Keys(s.Topology)) {
			term.MatchLabelExpressions = append(term.MatchLabelExpressions, corev1.TopologySelectorLabelRequirement{
				Key: key, Values: s.Topology[key],
			})
		}
		class.AllowedTopologies = []corev1.TopologySelectorTerm{term}
	}
	c.emit(model.StorageClass, v, class)
}

func (c *converter) volume(v source.Value, name string, s *ShortVolume) {
	pv := &corev1.PersistentVolume{}
	pv.Name, pv.Labels = name, s.Labels
	pv.Spec.StorageClassName = s.Class
	pv.Spec.Capacity = corev1.ResourceList{corev1.ResourceStorage: either(s.Size, "10Gi")}
	pv.Spec.AccessModes = c.modes(v, s.Modes)
	if s.Driver != "" {
		pv.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: s.Driver, VolumeHandle: name}
	}
	var match []corev1.NodeSelectorRequirement
	for _, key := range slices.Sorted(maps.Keys(s.Nodes)) {
		match = append(match, corev1.NodeSelectorRequirement{Key: key, Operator: corev1.NodeSelectorOpIn, Values: []string{s.Nodes[key]}})
	}
	if s.Node != "" {
		match = append(match, corev1.NodeSelectorRequirement{
			Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn,
			Values: []string{s.Node},
		})
	}
	if len(match) > 0 {
		pv.Spec.NodeAffinity = NodesWith(match)
	}
	c.emit(model.PersistentVolume, v, pv)
}

func (c *converter) claim(v source.Value, name string, s *ShortClaim) {
	claim := &corev1.PersistentVolumeClaim{}
	claim.Name, claim.Namespace = name, s.Namespace
	claim.Spec.StorageClassName, claim.Spec.VolumeName = &s.Class, s.Volume
	claim.Spec.AccessModes = c.modes(v, s.Modes)
	claim.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: either(s.Size, "1Gi")}
	c.emit(model.VolumeClaim, v, claim)
}

// modes parses the abbreviations of access modes that kubectl uses; none: ReadWriteOnce.
func (c *converter) modes(v source.Value, words []string) []corev1.PersistentVolumeAccessMode {
	known := map[string]corev1.PersistentVolumeAccessMode{
		"RWO": corev1.ReadWriteOnce, "ROX": corev1.ReadOnlyMany, "RWX": corev1.ReadWriteMany, "RWOP": corev1.ReadWriteOncePod,
	}
	var out []corev1.PersistentVolumeAccessMode
	for i, word := range words {
		c.oneOf(At(v, "modes", i), word, slices.Sorted(maps.Keys(known)))
		out = append(out, known[word])
	}
	if out == nil {
		out = append(out, corev1.ReadWriteOnce)
	}
	return out
}

// attachLimits emits the CSINode with the maximum number of attached volumes by driver.
func (c *converter) attachLimits(v source.Value, name string, limits map[string]int32) {
	if len(limits) == 0 {
		return
	}
	n := &storagev1.CSINode{}
	n.Name = name
	for _, driver := range slices.Sorted(maps.Keys(limits)) {
		count := limits[driver]
		c.notNegative(At(v, "attachLimits", driver), int64(count))
		n.Spec.Drivers = append(n.Spec.Drivers, storagev1.CSINodeDriver{Name: driver, NodeID: name, Allocatable: &storagev1.VolumeNodeResources{
			Count: &count,
		}})
	}
	c.emit(model.CSINode, v, n)
}

// mount adds a volume to a pod for each claim.
func mount(p *corev1.Pod, claims []string) {
	for _, claim := range claims {
		p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: claim, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim},
		}})
	}
}

// ShortStorageClass is a storage class.
type ShortStorageClass struct {
	// Name, or a range of names.
	Name string `json:"name"`
	// Wait binds volumes when their first consumer is placed. By default they would be bound at once, which no part of a world does.
	Wait bool `json:"wait"`
	// Provisioner that creates volumes; default none.
	Provisioner string `json:"provisioner"`
	// Topology contains the node label values, by label, where volumes can be created; default any.
	Topology map[string][]string `json:"topology"`
}

// ShortVolume is a PersistentVolume. A claim that names it is bound to it.
type ShortVolume struct {
	// Name, or a range of names.
	Name string `json:"name"`
	// Class; default none.
	Class string `json:"class"`
	// Size; default 10Gi.
	Size *resource.Quantity `json:"size"`
	// Modes: RWO, ROX, RWX, RWOP; default RWO.
	Modes []string `json:"modes"`
	// Labels of the volume, including its zone.
	Labels map[string]string `json:"labels"`
	// Node is the only node that can reach it; default all nodes.
	Node string `json:"node"`
	// Nodes contains the labels of the nodes that can reach it.
	Nodes map[string]string `json:"nodes"`
	// Driver that attaches it (CSI); default none.
	Driver string `json:"driver"`
}

// ShortClaim is a PersistentVolumeClaim.
type ShortClaim struct {
	// Name, or a range of names.
	Name string `json:"name"`
	// Namespace; default "default".
	Namespace string `json:"namespace"`
	// Class; default none.
	Class string `json:"class"`
	// Size; default 1Gi.
	Size *resource.Quantity `json:"size"`
	// Modes: RWO, ROX, RWX, RWOP; default RWO.
	Modes []string `json:"modes"`
	// Volume that it is bound to; default not bound.
	Volume string `json:"volume"`
}
