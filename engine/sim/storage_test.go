package sim

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	storagehelpers "k8s.io/component-helpers/storage/volume"

	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/engine/sim/manifest"
)

// TestStorageHelpers compares our functions of claims and volumes with Kubernetes' own helpers.
func TestStorageHelpers(t *testing.T) {
	t.Parallel()
	for here, want := range map[string]string{
		annBindCompleted: storagehelpers.AnnBindCompleted,
		annProvisionedBy: storagehelpers.AnnDynamicallyProvisioned,
		annSelectedNode:  storagehelpers.AnnSelectedNode,
	} {
		if here != want {
			t.Errorf("the annotation is %s, want %s", here, want)
		}
	}
	for _, class := range []*string{nil, new(""), new("fast")} {
		for _, beta := range []map[string]string{nil, {corev1.BetaStorageClassAnnotation: ""}, {corev1.BetaStorageClassAnnotation: "slow"}} {
			claim := &corev1.PersistentVolumeClaim{}
			claim.Spec.StorageClassName, claim.Annotations = class, beta
			if got, want := storageClassOf(claim), storagehelpers.GetPersistentVolumeClaimClass(claim); got != want {
				t.Errorf("class %v, annotations %v: %q, want %q", class, beta, got, want)
			}
		}
	}
	claim := &corev1.PersistentVolumeClaim{}
	claim.Namespace, claim.Name, claim.UID = "a", "c", "1"
	for _, ref := range []*corev1.ObjectReference{
		nil,
		{},
		{Namespace: "a", Name: "c"},
		{Namespace: "a", Name: "d"},
		{Namespace: "b", Name: "c"},
		{Namespace: "a", Name: "c", UID: types.UID("1")},
		{Namespace: "a", Name: "c", UID: types.UID("2")},
	} {
		pv := &corev1.PersistentVolume{}
		pv.Spec.ClaimRef = ref
		if got, want := isMeantFor(pv, claim), storagehelpers.IsVolumeBoundToClaim(pv, claim); got != want {
			t.Errorf("%v: meant for the claim: %v, want %v", ref, got, want)
		}
	}
}

// TestVolumesAreNotLookedAt runs worlds without a volume library. A pod without volumes runs. A pod with volumes waits and gets the reason,
// even if no row of the policy reads volumes.
func TestVolumesAreNotLookedAt(t *testing.T) {
	t.Parallel()
	const plain = `apiVersion: scheduling.celsius.dev/v1alpha1
kind: SchedulingPolicy
metadata: {name: plain}
spec:
  pipeline: [enqueue, allocate]
  tiers:
  - name: only
    tables:
    - {name: gang}
`
	for name, policies := range map[string]string{"the default policy": "", "a policy that does not ask": plain} {
		w := NewWorld(Options{})
		loaded, issues := w.Load(manifest.Source{Name: "w.yaml", Data: []byte(`apiVersion: sim.celsius.dev/v1alpha1
kind: World
nodes: [{name: n1, cpu: 4}]
storageClasses: [{name: disk, wait: true, provisioner: disks.example.com}]
claims: [{name: data, class: disk}]
jobs:
- {name: has, cpu: 1, claims: [data]}
- {name: none, cpu: 1}
---
` + policies)})
		if issues.Err() != nil {
			t.Fatal(issues)
		}
		w.Policy, issues = policy.Default()
		if len(loaded) > 0 {
			w.Policy, issues = policy.Load(loaded[0].Doc)
		}
		if issues.Err() != nil {
			t.Fatal(issues)
		}
		r, err := w.Run(1)
		if err != nil {
			t.Fatal(err)
		}
		text := r.Text(false)
		if !strings.Contains(text, "volumes are not looked at here") {
			t.Errorf("%s: it is not told that volumes are not looked at:\n%s", name, text)
		}
		for _, b := range r.Plans[0].Binds {
			if b.Task != "default/none-0" {
				t.Errorf("%s: %s was bound", name, b.Task)
			}
		}
		if len(r.Plans[0].Binds) != 1 {
			t.Errorf("%s: %d pods were bound, want none-0 alone", name, len(r.Plans[0].Binds))
		}
	}
}
