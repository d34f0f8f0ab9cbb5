package cluster

import (
	"fmt"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/celsius-scheduler/celsius/engine/sim/manifest"
)

// TestSnapshotHasWhatSimulateReads checks that a snapshot contains every Kubernetes kind that a simulation reads. Otherwise, a simulation
// of the snapshot would decide something else than the cluster.
func TestSnapshotHasWhatSimulateReads(t *testing.T) {
	kinds := snapshotKinds()
	read := 0
	for gvk := range scheme.Scheme.AllKnownTypes() {
		gvk = schema.GroupVersionKind{Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind}
		text := fmt.Sprintf("apiVersion: %s\nkind: %s\nmetadata: {name: team-quota}\n", gvk.GroupVersion(), gvk.Kind)
		objects, _ := manifest.Load(manifest.Options{}, manifest.Source{Name: "object.yaml", Data: []byte(text)})
		if objects == nil || len(objects.Items) == 0 {
			continue
		}
		read++
		if !slices.Contains(kinds, gvk) {
			t.Errorf("simulate reads %s, which a snapshot does not contain", gvk)
		}
	}
	if read < 10 {
		t.Errorf("only %d kinds are read", read)
	}
}
