package controller

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "github.com/celsius-scheduler/celsius/crds/batch/v1alpha1"
	"github.com/celsius-scheduler/celsius/statemachines/objects"
)

// claimKey is the prefix of Volcano's entry in status.controlledResources for a created claim. Claims keep their data and exist as long as
// the job.
const claimKey = "volume-pvc-"

// claims creates the claims that a job requests, writes their names into its volumes, and checks that the other claims exist. It returns
// why the job waits if that is not possible.
func (r *jobs) claims(ctx context.Context, w *world) (*waiting, error) {
	names := map[int]string{} // by volume
	for i := range w.job.Spec.Volumes {
		v := &w.job.Spec.Volumes[i]
		if v.VolumeClaim == nil {
			if wait, err := r.hasClaim(ctx, w, i); wait != nil || err != nil {
				return wait, err
			}
			continue
		}
		claim := objects.Claim(w.job, v)
		if err := r.makeClaim(ctx, w, claim, v.VolumeClaimName != ""); err != nil {
			err = fmt.Errorf("spec.volumes[%d].volumeClaim: %w", i, err)
			return &waiting{pvcError, err.Error(), true}, err
		}
		if v.VolumeClaimName != claim.Name {
			names[i] = claim.Name
		}
		w.claimed = append(w.claimed, claim.Name)
	}
	if len(names) == 0 {
		return nil, nil
	}
	named := w.job.DeepCopy()
	if err := r.client.Patch(ctx, named, namesPatch(w.job, names), client.FieldOwner(fieldManager)); err != nil {
		return nil, fmt.Errorf("write the names of claims into job %s/%s: %w", w.job.Namespace, w.job.Name, ofGone(err))
	}
	w.job, w.rec.version = named, named.ResourceVersion
	return nil, nil
}

// namesPatch writes the names of claims, by volume, and nothing else. A merge patch would write whole volumes, with amounts in another form
// than in the object, such as 1Gi for 1024Mi. The API server refuses the patch if the job has changed.
func namesPatch(job *batchv1alpha1.Job, names map[int]string) client.Patch {
	type operation struct {
		Op    string `json:"op"`
		Path  string `json:"path"`
		Value string `json:"value"`
	}
	patch := []operation{{"replace", "/metadata/resourceVersion", job.ResourceVersion}}
	for _, i := range slices.Sorted(maps.Keys(names)) {
		patch = append(patch, operation{"add", fmt.Sprintf("/spec/volumes/%d/volumeClaimName", i), names[i]})
	}
	data, err := json.Marshal(patch)
	if err != nil {
		panic(err) // texts alone
	}
	return client.RawPatch(types.JSONPatchType, data)
}

// hasClaim checks that the claim of a volume exists.
func (r *jobs) hasClaim(ctx context.Context, w *world, i int) (*waiting, error) {
	name := w.job.Spec.Volumes[i].VolumeClaimName
	err := r.live.Get(ctx, types.NamespacedName{Namespace: w.job.Namespace, Name: name}, &corev1.PersistentVolumeClaim{})
	switch {
	case apierrors.IsNotFound(err):
		w.again = sooner(w.again, lookAgain)
		return &waiting{claimNotFound, fmt.Sprintf("spec.volumes[%d].volumeClaimName: there is no PersistentVolumeClaim %s in namespace %s", i,
			name, w.job.Namespace), true}, nil
	case err != nil:
		return nil, fmt.Errorf("read PersistentVolumeClaim %s/%s: %w", w.job.Namespace, name, err)
	}
	return nil, nil
}

// makeClaim creates a claim. An existing claim of that name is accepted if it belongs to the job or the job names it.
func (r *jobs) makeClaim(ctx context.Context, w *world, claim *corev1.PersistentVolumeClaim, named bool) error {
	err := r.client.Create(ctx, claim.DeepCopy(), client.FieldOwner(fieldManager))
	if err == nil {
		return nil
	}
	if !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("make PersistentVolumeClaim %s: %w", claim.Name, err)
	}
	if named {
		return nil
	}
	found := &corev1.PersistentVolumeClaim{}
	if err := r.live.Get(ctx, client.ObjectKeyFromObject(claim), found); err != nil {
		return fmt.Errorf("read PersistentVolumeClaim %s: %w", claim.Name, err)
	}
	if !metav1.IsControlledBy(found, w.job) {
		return fmt.Errorf("PersistentVolumeClaim %s %w", claim.Name, errForeign)
	}
	return nil
}

// enterClaims writes the created claims into a status.
func (w *world) enterClaims(s *batchv1alpha1.JobStatus) {
	for _, name := range w.claimed {
		if s.ControlledResources == nil {
			s.ControlledResources = map[string]string{}
		}
		s.ControlledResources[claimKey+name] = name
	}
}
