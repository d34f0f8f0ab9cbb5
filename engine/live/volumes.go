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
	// Between two looks at the claims of an order whose volumes are not bound yet: at first, and at most.
	volumesFirst = 50 * time.Millisecond
	volumesMost  = 2 * time.Second
)

// storage is what the API server has of volumes.
type storage interface {
	// Volume reads a PersistentVolume.
	Volume(ctx context.Context, name string) (*corev1.PersistentVolume, error)
	// Claim reads a PersistentVolumeClaim.
	Claim(ctx context.Context, namespace, name string) (*corev1.PersistentVolumeClaim, error)
	// UpdateVolume writes a volume that nobody has changed since it was read.
	UpdateVolume(ctx context.Context, v *corev1.PersistentVolume) error
	// UpdateClaim writes a claim that nobody has changed since it was read.
	UpdateClaim(ctx context.Context, c *corev1.PersistentVolumeClaim) error
}

// coreStorage is storage by the core client.
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

// volumeWork is how far an order's volumes are.
type volumeWork struct {
	until    time.Time       // then it is given up; zero: not begun
	looks    int             // at the claims
	selected map[string]bool // claims of which it was seen that a volume is being made for the order's node
	done     bool
}

// errVolumes is why an order's volumes will not be bound: the pod is decided on anew.
type errVolumes struct{ text string }

func (e errVolumes) Error() string { return e.text }

func volumeErrorf(format string, args ...any) error {
	return errVolumes{fmt.Sprintf(format, args...)}
}

// volumes does what an order's claims need before the pod is bound, and looks whether others have done their part. Where
// they have not, it gives how long to wait for the next look; no worker waits meanwhile. An errVolumes is final.
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
			waits = err.Error() // of the server, or a conflict: it is tried again
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

// volume does what one claim needs. It says whether the claim is bound.
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

// claimVolume has a volume refer to the claim that it was promised to: the volume controller binds the two.
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

// selectNode has a volume made for a claim where it can be used on the order's node. Whoever makes volumes takes the
// word back when it cannot.
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

// prepare sees to an order's volumes. It says whether the pod can be bound now; where it cannot, it has seen to what follows.
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
		return false // the end: who leads next finds the claims as they are
	}
	if o.volumes.looks > 1 && b.left(ctx, o) {
		b.feed.add(change{object: &bindOutcome{o, gone, nil}}, false)
		return false
	}
	b.outbox.Later(wait, outbox.Binding, "volumes/"+orderKey(o.Task, o.UID), func(ctx context.Context) { b.try(ctx, o) })
	return false
}

// left says whether the pod that volumes are bound for is not there any more.
func (b *binder) left(ctx context.Context, o *order) bool {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	pod, err := b.pods.Get(ctx, o.namespace, o.name)
	return apierrors.IsNotFound(err) || err == nil && (string(pod.UID) != o.UID || pod.DeletionTimestamp != nil || pod.Spec.NodeName != "")
}
