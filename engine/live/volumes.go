package live

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	storagehelpers "k8s.io/component-helpers/storage/volume"

	"github.com/celsius-scheduler/celsius/engine/live/outbox"
	"github.com/celsius-scheduler/celsius/engine/model"
)

const (
	// volumesFirst and volumesMost are the first and the longest wait between two checks of claims whose volumes are not bound yet.
	volumesFirst = 50 * time.Millisecond
	volumesMost  = 2 * time.Second
)

// storage is the part of the API for volumes that the scheduler uses.
type storage interface {
	// Volume reads a PersistentVolume.
	Volume(ctx context.Context, name string) (*corev1.PersistentVolume, error)
	// Claim reads a PersistentVolumeClaim.
	Claim(ctx context.Context, namespace, name string) (*corev1.PersistentVolumeClaim, error)
	// UpdateVolume writes a volume. It fails if the volume has changed since it was read.
	UpdateVolume(ctx context.Context, v *corev1.PersistentVolume) error
	// UpdateClaim writes a claim. It fails if the claim has changed since it was read.
	UpdateClaim(ctx context.Context, c *corev1.PersistentVolumeClaim) error
}

// coreStorage implements storage with the core client.
type coreStorage struct {
	client corev1client.CoreV1Interface
}

func (s coreStorage) Volume(ctx context.Context, name string) (*corev1.PersistentVolume, error) {
	return s.client.PersistentVolumes().Get(ctx, name, metav1.GetOptions{})
}

func (s coreStorage) Claim(ctx context.Context, namespace, name string) (*corev1.PersistentVolumeClaim, error) {
	return s.client.PersistentVolumeClaims(namespace).Get(ctx, name, metav1.GetOptions{})
}

func (s coreStorage) UpdateVolume(ctx context.Context, v *corev1.PersistentVolume) error {
	_, err := s.client.PersistentVolumes().Update(ctx, v, metav1.UpdateOptions{FieldManager: FieldManager})
	return err
}

func (s coreStorage) UpdateClaim(ctx context.Context, c *corev1.PersistentVolumeClaim) error {
	_, err := s.client.PersistentVolumeClaims(c.Namespace).Update(ctx, c, metav1.UpdateOptions{FieldManager: FieldManager})
	return err
}

// volumeWork is the progress of an order's volumes.
type volumeWork struct {
	until    time.Time       // the deadline; zero: not begun
	looks    int             // number of checks of the claims
	selected map[string]bool // claims that were seen with the order's node as selected node
	done     bool
}

// errVolumes is the reason why an order's volumes cannot be bound. The scheduler decides on the pod again.
type errVolumes struct{ text string }

func (e errVolumes) Error() string { return e.text }

func volumeErrorf(format string, args ...any) error {
	return errVolumes{fmt.Sprintf(format, args...)}
}

// volumes does the scheduler's part for an order's claims, and checks whether the controllers have done theirs. If not, it returns the wait
// before the next check; no worker waits meanwhile. An errVolumes is final.
func (b *binder) volumes(ctx context.Context, o *order) (wait time.Duration, err error) {
	w := &o.volumes
	if len(o.Volumes) == 0 || w.done {
		return 0, nil
	}
	now := time.Now()
	if w.until.IsZero() {
		w.until, w.selected = now.Add(b.volumeTimeout), map[string]bool{}
	}
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	waits := ""
	for _, v := range o.Volumes {
		bound, err := b.volume(ctx, o, v)
		var final errVolumes
		switch {
		case errors.As(err, &final):
			return 0, err
		case err != nil:
			waits = err.Error() // an error of the server, or a conflict: it is tried again
		case !bound:
			waits = "claim " + v.Claim + " is not bound"
		}
	}
	if waits == "" {
		w.done = true
		return 0, nil
	}
	if now.After(w.until) {
		return 0, volumeErrorf("its volumes were not bound within %s: %s", b.volumeTimeout, waits)
	}
	wait = min(volumesFirst<<min(w.looks, 10), volumesMost)
	w.looks++
	return wait, nil
}

// volume does the scheduler's part for one claim. It reports whether the claim is bound.
func (b *binder) volume(ctx context.Context, o *order, v model.VolumeBind) (bool, error) {
	namespace, name, _ := strings.Cut(v.Claim, "/")
	claim, err := b.storage.Claim(ctx, namespace, name)
	switch {
	case apierrors.IsNotFound(err):
		return false, volumeErrorf("claim %s is not there any more", v.Claim)
	case err != nil:
		return false, err
	case claim.DeletionTimestamp != nil:
		return false, volumeErrorf("claim %s is being deleted", v.Claim)
	case v.Volume != "" && claim.Spec.VolumeName != "" && claim.Spec.VolumeName != v.Volume:
		return false, volumeErrorf("claim %s was bound to volume %s, not to %s", v.Claim, claim.Spec.VolumeName, v.Volume)
	case claim.Spec.VolumeName != "":
		return metav1.HasAnnotation(claim.ObjectMeta, storagehelpers.AnnBindCompleted), nil
	case v.Volume != "":
		return false, b.claimVolume(ctx, claim, v)
	}
	return false, b.selectNode(ctx, o, claim, v)
}

// claimVolume makes a volume refer to the claim that it was promised to. The volume controller then binds the two.
func (b *binder) claimVolume(ctx context.Context, claim *corev1.PersistentVolumeClaim, v model.VolumeBind) error {
	pv, err := b.storage.Volume(ctx, v.Volume)
	switch {
	case apierrors.IsNotFound(err):
		return volumeErrorf("volume %s is not there any more", v.Volume)
	case err != nil:
		return err
	case pv.Spec.ClaimRef != nil && !storagehelpers.IsVolumeBoundToClaim(pv, claim):
		return volumeErrorf("volume %s was bound to claim %s", v.Volume, model.Key(pv.Spec.ClaimRef.Namespace, pv.Spec.ClaimRef.Name))
	}
	pv, changed, err := storagehelpers.GetBindVolumeToClaim(pv, claim)
	if err != nil || !changed {
		return err
	}
	return b.storage.UpdateVolume(ctx, pv)
}

// selectNode requests a new volume for a claim that is usable on the order's node. A provisioner that cannot create it removes the
// annotation.
func (b *binder) selectNode(ctx context.Context, o *order, claim *corev1.PersistentVolumeClaim, v model.VolumeBind) error {
	selected := claim.Annotations[storagehelpers.AnnSelectedNode]
	switch {
	case selected == o.Node:
		o.volumes.selected[v.Claim] = true
		return nil
	case selected != "":
		return volumeErrorf("a volume for claim %s is being made for node %s", v.Claim, selected)
	case o.volumes.selected[v.Claim]:
		return volumeErrorf("no volume could be made for claim %s on node %s", v.Claim, o.Node)
	}
	claim = claim.DeepCopy()
	metav1.SetMetaDataAnnotation(&claim.ObjectMeta, storagehelpers.AnnSelectedNode, o.Node)
	if err := b.storage.UpdateClaim(ctx, claim); err != nil {
		return err
	}
	o.volumes.selected[v.Claim] = true
	return nil
}

// prepare binds an order's volumes. It reports whether the pod can be bound now. If not, it has scheduled the next try or reported a
// failure.
func (b *binder) prepare(ctx context.Context, o *order) bool {
	wait, err := b.volumes(ctx, o)
	switch {
	case err != nil:
		b.log.V(1).Info("volumes not bound", "pod", o.Task, "node", o.Node, "error", err.Error())
		b.feed.add(change{object: &bindOutcome{o, refused, err}}, false)
		return false
	case wait == 0:
		return true
	case ctx.Err() != nil:
		return false // shutdown: the next leader finds the claims as they are
	}
	if o.volumes.looks > 1 && b.left(ctx, o) {
		b.feed.add(change{object: &bindOutcome{o, gone, nil}}, false)
		return false
	}
	b.outbox.Later(wait, outbox.Binding, "volumes/"+orderKey(o.Task, o.UID), func(ctx context.Context) { b.try(ctx, o) })
	return false
}

// left reports whether the pod whose volumes are being bound is gone, terminating or bound.
func (b *binder) left(ctx context.Context, o *order) bool {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	pod, err := b.pods.Get(ctx, o.namespace, o.name)
	return apierrors.IsNotFound(err) || err == nil && (string(pod.UID) != o.UID || pod.DeletionTimestamp != nil || pod.Spec.NodeName != "")
}
