package sim

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	storagehelpers "k8s.io/component-helpers/storage/volume"

	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/rules/source"
)

// storageKinds are the kinds of storage that a world may hold.
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

// storageKind is the kind of an object of storage, "" for all others.
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

// completeStorage gives objects of storage what the API server, its admission and the volume controller give them: a claim
// without a class has the default one, and a claim that names its volume is bound to it, if that is nobody else's.
func (c *completion) completeStorage(object metav1.Object) {
	switch o := object.(type) {
	case *storagev1.StorageClass:
		if o.VolumeBindingMode == nil {
			o.VolumeBindingMode = new(storagev1.VolumeBindingImmediate)
		}
	case *corev1.PersistentVolume:
		if o.Status.Phase == "" {
			o.Status.Phase = corev1.VolumeAvailable
		}
	case *corev1.PersistentVolumeClaim:
		if o.Spec.StorageClassName == nil && o.Spec.VolumeName == "" {
			o.Spec.StorageClassName = c.defaultStorageClass()
		}
		if o.Status.Phase == "" {
			o.Status.Phase = corev1.ClaimPending
		}
		pv, ok := c.find(model.PersistentVolume, "", o.Spec.VolumeName).(*corev1.PersistentVolume)
		if ok && o.Status.Phase == corev1.ClaimPending && (pv.Spec.ClaimRef == nil || storagehelpers.IsVolumeBoundToClaim(pv, o)) {
			bound := pv.DeepCopy()
			bindVolume(bound, o)
			*pv = *bound
		}
	}
}

// defaultStorageClass is the class that admission gives to claims which name none; nil where there is none.
func (c *completion) defaultStorageClass() *string {
	for _, i := range c.items {
		if class, ok := i.object.(*storagev1.StorageClass); ok && class.Annotations["storageclass.kubernetes.io/is-default-class"] == "true" {
			return &class.Name
		}
	}
	return nil
}

// bindVolume makes of a volume and a claim what the volume controller makes of them: each names the other, and says so.
func bindVolume(pv *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) {
	pv.Spec.ClaimRef = &corev1.ObjectReference{
		APIVersion: "v1", Kind: model.VolumeClaim, Namespace: claim.Namespace, Name: claim.Name,
		UID: claim.UID,
	}
	pv.Status.Phase = corev1.VolumeBound
	claim.Spec.VolumeName = pv.Name
	metav1.SetMetaDataAnnotation(&claim.ObjectMeta, storagehelpers.AnnBindCompleted, "yes")
	claim.Status.Phase, claim.Status.Capacity, claim.Status.AccessModes = corev1.ClaimBound, pv.Spec.Capacity, pv.Spec.AccessModes
}

// bindVolumes does what a binding needs done for its claims first: the scheduler's part, and at once what the volume
// controller and the provisioner do then.
func (w *World) bindVolumes(b *model.Bind) ([]metav1.Object, error) {
	var changed []metav1.Object
	for _, v := range b.Volumes {
		namespace, name, _ := strings.Cut(v.Claim, "/")
		old, ok := w.objects[objectID{model.VolumeClaim, namespace, name}].(*corev1.PersistentVolumeClaim)
		if !ok {
			return nil, fmt.Errorf("bind volumes of pod %s: there is no claim %s", b.Task, v.Claim)
		}
		if old.Spec.VolumeName != "" {
			continue // another pod of this cycle brought it about
		}
		claim := old.DeepCopy()
		pv, err := w.volumeFor(claim, v.Volume, b.Node)
		if err != nil {
			return nil, fmt.Errorf("bind volumes of pod %s: %w", b.Task, err)
		}
		bindVolume(pv, claim)
		changed = append(changed, pv, claim)
	}
	return changed, nil
}

// volumeFor is a copy of the named volume, or where none is named one that is made for the claim on the node.
func (w *World) volumeFor(claim *corev1.PersistentVolumeClaim, name, node string) (*corev1.PersistentVolume, error) {
	if name != "" {
		pv, ok := w.objects[objectID{kind: model.PersistentVolume, name: name}].(*corev1.PersistentVolume)
		if !ok {
			return nil, fmt.Errorf("there is no volume %s", name)
		}
		return pv.DeepCopy(), nil
	}
	className := storagehelpers.GetPersistentVolumeClaimClass(claim)
	class, ok := w.objects[objectID{kind: model.StorageClass, name: className}].(*storagev1.StorageClass)
	if !ok {
		return nil, fmt.Errorf("there is no storage class %s", className)
	}
	metav1.SetMetaDataAnnotation(&claim.ObjectMeta, storagehelpers.AnnSelectedNode, node)
	pv := &corev1.PersistentVolume{}
	pv.Name = "pvc-" + claim.Namespace + "-" + claim.Name
	pv.CreationTimestamp = metav1.NewTime(w.now)
	metav1.SetMetaDataAnnotation(&pv.ObjectMeta, storagehelpers.AnnDynamicallyProvisioned, class.Provisioner)
	pv.Spec.StorageClassName, pv.Spec.AccessModes, pv.Spec.VolumeMode = class.Name, claim.Spec.AccessModes, claim.Spec.VolumeMode
	pv.Spec.Capacity = corev1.ResourceList{corev1.ResourceStorage: claim.Spec.Resources.Requests[corev1.ResourceStorage]}
	pv.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: class.Provisioner, VolumeHandle: pv.Name}
	if n, ok := w.objects[objectID{kind: "Node", name: node}].(*corev1.Node); ok {
		pv.Spec.NodeAffinity = reachable(class, n)
	}
	return pv, nil
}

// reachable is from where a new volume can be used: the node's part of the class's topologies; nil for everywhere.
func reachable(class *storagev1.StorageClass, n *corev1.Node) *corev1.VolumeNodeAffinity {
	for _, term := range class.AllowedTopologies {
		var match []corev1.NodeSelectorRequirement
		for _, e := range term.MatchLabelExpressions {
			if value := n.Labels[e.Key]; slices.Contains(e.Values, value) {
				match = append(match, corev1.NodeSelectorRequirement{Key: e.Key, Operator: corev1.NodeSelectorOpIn, Values: []string{value}})
			}
		}
		if len(match) == len(term.MatchLabelExpressions) && len(match) > 0 {
			return nodesWith(match)
		}
	}
	return nil
}

func nodesWith(match []corev1.NodeSelectorRequirement) *corev1.VolumeNodeAffinity {
	return &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: match}}}}
}

// Below, the short format's part in storage.

func (c *converter) storageClass(v source.Value, name string, s *ShortStorageClass) {
	class := &storagev1.StorageClass{Provisioner: s.Provisioner}
	class.Name = name
	if class.Provisioner == "" {
		class.Provisioner = storagehelpers.NotSupportedProvisioner
	}
	if s.Wait {
		class.VolumeBindingMode = new(storagev1.VolumeBindingWaitForFirstConsumer)
	}
	if len(s.Topology) > 0 {
		term := corev1.TopologySelectorTerm{}
		for _, key := range sortedKeys(s.Topology) {
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
	for _, key := range sortedKeys(s.Nodes) {
		match = append(match, corev1.NodeSelectorRequirement{Key: key, Operator: corev1.NodeSelectorOpIn, Values: []string{s.Nodes[key]}})
	}
	if s.Node != "" {
		match = append(match, corev1.NodeSelectorRequirement{
			Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn,
			Values: []string{s.Node},
		})
	}
	if len(match) > 0 {
		pv.Spec.NodeAffinity = nodesWith(match)
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

// modes reads access modes by their initials, as kubectl writes them; none: ReadWriteOnce.
func (c *converter) modes(v source.Value, words []string) []corev1.PersistentVolumeAccessMode {
	known := map[string]corev1.PersistentVolumeAccessMode{
		"RWO": corev1.ReadWriteOnce, "ROX": corev1.ReadOnlyMany, "RWX": corev1.ReadWriteMany, "RWOP": corev1.ReadWriteOncePod,
	}
	var out []corev1.PersistentVolumeAccessMode
	for i, word := range words {
		c.oneOf(at(v, "modes", i), word, sortedKeys(known))
		out = append(out, known[word])
	}
	if out == nil {
		out = append(out, corev1.ReadWriteOnce)
	}
	return out
}

// attachLimits emits the CSINode that says how many volumes of each driver a node can attach.
func (c *converter) attachLimits(v source.Value, name string, limits map[string]int32) {
	if len(limits) == 0 {
		return
	}
	n := &storagev1.CSINode{}
	n.Name = name
	for _, driver := range sortedKeys(limits) {
		count := limits[driver]
		c.notNegative(at(v, "attachLimits", driver), int64(count))
		n.Spec.Drivers = append(n.Spec.Drivers, storagev1.CSINodeDriver{Name: driver, NodeID: name, Allocatable: &storagev1.VolumeNodeResources{
			Count: &count,
		}})
	}
	c.emit(model.CSINode, v, n)
}

// mount gives a pod a volume for each claim.
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
	// Wait has volumes bound for their first consumer, when that is placed; default at once, which in a world is nobody's work.
	Wait bool `json:"wait"`
	// Provisioner that makes volumes; default none.
	Provisioner string `json:"provisioner"`
	// Topology is the values that a label of the node may have where volumes are made, by label; default any.
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
	// Labels of the volume, its zone among them.
	Labels map[string]string `json:"labels"`
	// Node that alone reaches it; default all do.
	Node string `json:"node"`
	// Nodes is the labels of the nodes that reach it.
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
	// Volume that it is bound to; default none yet.
	Volume string `json:"volume"`
}
