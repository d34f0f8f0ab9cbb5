package sim

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/sim/manifest"
)

// Annotations of the volume controller and the provisioner, and two of their functions, as in component-helpers/storage/volume. That
// package links a client of the API server, with the types of all its APIs.
const (
	annBindCompleted = "pv.kubernetes.io/bind-completed"
	annProvisionedBy = "pv.kubernetes.io/provisioned-by"
	annSelectedNode  = "volume.kubernetes.io/selected-node"
)

// storageClassOf returns the storage class that a claim requests; "": none.
func storageClassOf(claim *corev1.PersistentVolumeClaim) string {
	if class, ok := claim.Annotations[corev1.BetaStorageClassAnnotation]; ok {
		return class
	}
	if claim.Spec.StorageClassName == nil {
		return ""
	}
	return *claim.Spec.StorageClassName
}

// isMeantFor reports whether a volume refers to the claim.
func isMeantFor(pv *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) bool {
	ref := pv.Spec.ClaimRef
	return ref != nil && ref.Namespace == claim.Namespace && ref.Name == claim.Name && (ref.UID == "" || ref.UID == claim.UID)
}

// completeStorage completes storage objects as the API server, its admission and the volume controller do. A claim without a class gets the
// default one. A claim that names its volume is bound to it, unless the volume belongs to another claim.
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
		if o.Status.Phase == corev1.ClaimBound && o.Spec.VolumeName != "" {
			metav1.SetMetaDataAnnotation(&o.ObjectMeta, annBindCompleted, "yes") // the volume controller writes it with the phase
		}
		pv, ok := c.find(model.PersistentVolume, "", o.Spec.VolumeName).(*corev1.PersistentVolume)
		if ok && o.Status.Phase == corev1.ClaimPending && (pv.Spec.ClaimRef == nil || isMeantFor(pv, o)) {
			bound := pv.DeepCopy()
			bindVolume(bound, o)
			*pv = *bound
		}
	}
}

// defaultStorageClass returns the class that admission sets in claims without one; nil: none.
func (c *completion) defaultStorageClass() *string {
	for _, i := range c.items {
		if class, ok := i.Object.(*storagev1.StorageClass); ok && class.Annotations["storageclass.kubernetes.io/is-default-class"] == "true" {
			return &class.Name
		}
	}
	return nil
}

// bindVolume binds a volume and a claim as the volume controller does: each refers to the other and has its annotations.
func bindVolume(pv *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) {
	pv.Spec.ClaimRef = &corev1.ObjectReference{
		APIVersion: "v1", Kind: model.VolumeClaim, Namespace: claim.Namespace, Name: claim.Name,
		UID: claim.UID,
	}
	pv.Status.Phase = corev1.VolumeBound
	claim.Spec.VolumeName = pv.Name
	metav1.SetMetaDataAnnotation(&claim.ObjectMeta, annBindCompleted, "yes")
	claim.Status.Phase, claim.Status.Capacity, claim.Status.AccessModes = corev1.ClaimBound, pv.Spec.Capacity, pv.Spec.AccessModes
}

// bindVolumes does everything that a binding's claims need first: the scheduler's part, and at once the part of the volume controller and
// of the provisioner.
func (w *World) bindVolumes(b *model.Bind) ([]metav1.Object, error) {
	var changed []metav1.Object
	for _, v := range b.Volumes {
		namespace, name, _ := strings.Cut(v.Claim, "/")
		old, ok := w.objects[manifest.ID{Kind: model.VolumeClaim, Namespace: namespace, Name: name}].(*corev1.PersistentVolumeClaim)
		if !ok {
			return nil, fmt.Errorf("bind volumes of pod %s: there is no claim %s", b.Task, v.Claim)
		}
		if old.Spec.VolumeName != "" {
			continue // another pod of this cycle has already bound it
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

// volumeFor returns a copy of the named volume. Without a name, it returns a new volume for the claim on the node.
func (w *World) volumeFor(claim *corev1.PersistentVolumeClaim, name, node string) (*corev1.PersistentVolume, error) {
	if name != "" {
		pv, ok := w.objects[manifest.ID{Kind: model.PersistentVolume, Name: name}].(*corev1.PersistentVolume)
		if !ok {
			return nil, fmt.Errorf("there is no volume %s", name)
		}
		return pv.DeepCopy(), nil
	}
	className := storageClassOf(claim)
	class, ok := w.objects[manifest.ID{Kind: model.StorageClass, Name: className}].(*storagev1.StorageClass)
	if !ok {
		return nil, fmt.Errorf("there is no storage class %s", className)
	}
	metav1.SetMetaDataAnnotation(&claim.ObjectMeta, annSelectedNode, node)
	pv := &corev1.PersistentVolume{}
	pv.Name = "pvc-" + claim.Namespace + "-" + claim.Name
	pv.CreationTimestamp = metav1.NewTime(w.now)
	metav1.SetMetaDataAnnotation(&pv.ObjectMeta, annProvisionedBy, class.Provisioner)
	pv.Spec.StorageClassName, pv.Spec.AccessModes, pv.Spec.VolumeMode = class.Name, claim.Spec.AccessModes, claim.Spec.VolumeMode
	pv.Spec.Capacity = corev1.ResourceList{corev1.ResourceStorage: claim.Spec.Resources.Requests[corev1.ResourceStorage]}
	pv.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: class.Provisioner, VolumeHandle: pv.Name}
	if n, ok := w.objects[manifest.ID{Kind: "Node", Name: node}].(*corev1.Node); ok {
		pv.Spec.NodeAffinity = reachable(class, n)
	}
	return pv, nil
}

// reachable returns from where a new volume can be used: the node's part of the class's topologies; nil: everywhere.
func reachable(class *storagev1.StorageClass, n *corev1.Node) *corev1.VolumeNodeAffinity {
	for _, term := range class.AllowedTopologies {
		var match []corev1.NodeSelectorRequirement
		for _, e := range term.MatchLabelExpressions {
			if value := n.Labels[e.Key]; slices.Contains(e.Values, value) {
				match = append(match, corev1.NodeSelectorRequirement{Key: e.Key, Operator: corev1.NodeSelectorOpIn, Values: []string{value}})
			}
		}
		if len(match) == len(term.MatchLabelExpressions) && len(match) > 0 {
			return manifest.NodesWith(match)
		}
	}
	return nil
}
