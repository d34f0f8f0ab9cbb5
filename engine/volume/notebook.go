package volume

import (
	"cmp"
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/celsius-scheduler/celsius/engine/model"
)

// notebook is a client without a connection. It records which volumes and claims the binder asks it to update. This is how the package
// learns the decisions of the binder, which does not return them.
type notebook struct {
	kubernetes.Interface // nil: no other method is called
	notes                []model.VolumeBind
}

// CoreV1 implements kubernetes.Interface.
func (n *notebook) CoreV1() corev1client.CoreV1Interface { return coreNotes{book: n} }

// take returns the recorded updates, by claim, and removes them.
func (n *notebook) take() []model.VolumeBind {
	out := n.notes
	n.notes = nil
	slices.SortFunc(out, func(a, b model.VolumeBind) int { return cmp.Compare(a.Claim, b.Claim) })
	return slices.Compact(out)
}

type coreNotes struct {
	corev1client.CoreV1Interface
	book *notebook
}

// PersistentVolumes implements corev1client.CoreV1Interface.
func (c coreNotes) PersistentVolumes() corev1client.PersistentVolumeInterface {
	return volumeNotes{book: c.book}
}

// PersistentVolumeClaims implements corev1client.CoreV1Interface.
func (c coreNotes) PersistentVolumeClaims(string) corev1client.PersistentVolumeClaimInterface {
	return claimNotes{book: c.book}
}

type volumeNotes struct {
	corev1client.PersistentVolumeInterface
	book *notebook
}

// Update records that a volume is to be bound to the claim that it refers to.
func (v volumeNotes) Update(_ context.Context, pv *corev1.PersistentVolume, _ metav1.UpdateOptions) (*corev1.PersistentVolume, error) {
	if ref := pv.Spec.ClaimRef; ref != nil {
		v.book.notes = append(v.book.notes, model.VolumeBind{Claim: model.Key(ref.Namespace, ref.Name), Volume: pv.Name})
	}
	return pv, nil
}

type claimNotes struct {
	corev1client.PersistentVolumeClaimInterface
	book *notebook
}

// Update records that a volume is to be provisioned for a claim.
func (c claimNotes) Update(_ context.Context, claim *corev1.PersistentVolumeClaim, _ metav1.UpdateOptions) (*corev1.PersistentVolumeClaim,
	error,
) {
	c.book.notes = append(c.book.notes, model.VolumeBind{Claim: model.Key(claim.Namespace, claim.Name)})
	return claim, nil
}
