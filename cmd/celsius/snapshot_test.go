package main

import (
	"bytes"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/celsius-scheduler/celsius/cmd/celsius/cluster"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/engine/sim"
	"github.com/celsius-scheduler/celsius/engine/sim/manifest"
	"github.com/celsius-scheduler/celsius/engine/volume"
)

// snapshotFiles returns the files with the objects of a cluster.
func snapshotFiles() []string {
	return []string{
		"../../samples/cluster/nodes.yaml", "../../samples/queues/queues.yaml", "../../samples/jobs/train.yaml", "../../samples/jobs/sweep.yaml",
		"../../samples/training/mpi.yaml", "testdata/snapshot/pods.yaml",
	}
}

// TestSnapshotDecides checks that a snapshot leads to the same decisions as the complete cluster. An anonymous snapshot leads to the same
// decisions with other names.
func TestSnapshotDecides(t *testing.T) {
	objects, texts := readAll(t)
	whole := decidedOf(t, texts...)
	for _, o := range objects {
		cluster.Trim(o)
	}
	trimmed := written(t, objects)
	if got := decidedOf(t, trimmed); !slices.Equal(got, whole) {
		t.Errorf("of the snapshot it is decided\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(whole, "\n"))
	}
	cluster.Anonymize(objects)
	anonymous := written(t, objects)
	got := decidedOf(t, anonymous)
	if len(got) != len(whole) || len(got) < 5 {
		t.Fatalf("without names it is decided\n%s\nwant as many as\n%s", strings.Join(got, "\n"), strings.Join(whole, "\n"))
	}
	for _, of := range []int{0, 1} { // pods, and nodes, in the order of their names
		if a, b := ranks(got, of), ranks(whole, of); !slices.Equal(a, b) {
			t.Errorf("without names it is decided\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(whole, "\n"))
		}
	}
	for _, secret := range []string{"s3cr3t", "rm -rf"} {
		if bytes.Contains(trimmed, []byte(secret)) {
			t.Errorf("%q stands in the snapshot", secret)
		}
	}
	for _, word := range []string{"s3cr3t", "rm -rf", "hunter2", "apollo", "train", "research"} {
		if bytes.Contains(anonymous, []byte(word)) {
			t.Errorf("%q stands in the snapshot without names", word)
		}
	}
}

// TestSnapshotKeepsWhyContainersWait checks that a simulation of a snapshot names the image that a dependency cannot pull. The snapshot
// keeps nothing else of the statuses of containers.
func TestSnapshotKeepsWhyContainersWait(t *testing.T) {
	o := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(`{apiVersion: v1, kind: Pod, metadata: {name: p}, status: {phase: Pending,
  containerStatuses: [{name: a, imageID: x, state: {waiting: {reason: ErrImagePull, message: s3cr3t}}},
    {name: b, ready: true, state: {running: {}}}],
  initContainerStatuses: [{name: c, state: {terminated: {message: s3cr3t}}}]}}`), &o.Object); err != nil {
		t.Fatal(err)
	}
	cluster.Trim(o)
	want := map[string]any{"phase": "Pending", "containerStatuses": []any{
		map[string]any{"name": "a", "ready": false, "state": map[string]any{"waiting": map[string]any{"reason": "ErrImagePull"}}},
	}}
	if got := o.Object["status"]; !reflect.DeepEqual(got, want) {
		t.Errorf("the snapshot has %v, want %v", got, want)
	}
}

// readAll reads the files. It returns the objects and the original texts.
func readAll(t *testing.T) (objects []*unstructured.Unstructured, texts [][]byte) {
	t.Helper()
	for _, name := range snapshotFiles() {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, data)
		for document := range strings.SplitSeq(string(data), "\n---\n") {
			o := &unstructured.Unstructured{}
			if err := yaml.Unmarshal([]byte(document), &o.Object); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if len(o.Object) > 0 {
				objects = append(objects, o)
			}
		}
	}
	return objects, texts
}

// written returns objects in the form of a snapshot.
func written(t *testing.T, objects []*unstructured.Unstructured) []byte {
	t.Helper()
	var out bytes.Buffer
	for _, o := range objects {
		text, err := yaml.Marshal(o.Object)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&out, "---\n%s", text)
	}
	return out.Bytes()
}

// decidedOf returns the decisions of one cycle about files: each binding, as pod and node.
func decidedOf(t *testing.T, files ...[]byte) []string {
	t.Helper()
	p, issues := policy.Default()
	if issues.Err() != nil {
		t.Fatal(issues)
	}
	w := sim.NewWorld(sim.Options{Volumes: volume.New, Now: time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)})
	w.Policy = p
	var sources []manifest.Source
	for i, data := range files {
		sources = append(sources, manifest.Source{Name: fmt.Sprint(i), Data: data})
	}
	if _, issues := w.Load(sources...); issues.Err() != nil {
		t.Fatal(issues)
	}
	var out []string
	for range 2 {
		plan, err := w.Cycle()
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, bindsOf(plan)...)
		if err := w.Advance(time.Second); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

func bindsOf(plan *model.Plan) (out []string) {
	for i := range plan.Binds {
		out = append(out, plan.Binds[i].Task+" "+plan.Binds[i].Node)
	}
	return out
}

// ranks returns the rank of one word of each line among these words of all lines, in alphabetical order.
func ranks(lines []string, word int) []int {
	words := make([]string, len(lines))
	for i, line := range lines {
		words[i] = strings.Fields(line)[word]
	}
	order := slices.Compact(slices.Sorted(slices.Values(words)))
	out := make([]int, len(words))
	for i, w := range words {
		out[i], _ = slices.BinarySearch(order, w)
	}
	return out
}
