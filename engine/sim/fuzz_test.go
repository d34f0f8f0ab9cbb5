package sim

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/celsius-scheduler/celsius/engine/sim/manifest"
	"github.com/celsius-scheduler/celsius/engine/volume"
	"github.com/celsius-scheduler/celsius/rules/source"
)

// few is the maximum number of objects in a document of a fuzz target, because more objects only take time.
const few = 500

// FuzzLoad checks that no file causes a panic, that every issue is inside the file, and that the cluster stays consistent.
func FuzzLoad(f *testing.F) {
	archives, err := filepath.Glob("testdata/issues/*.txtar")
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range archives {
		archive, err := txtar.ParseFile(name)
		if err != nil {
			f.Fatal(err)
		}
		for _, file := range archive.Files {
			for document := range bytes.SplitSeq(file.Data, []byte("---\n")) {
				f.Add(document)
			}
		}
	}
	for _, name := range []string{"testdata/kubectl/all.yaml", "testdata/kubectl/groups.json"} {
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 1<<14 {
			t.Skip("takes only time")
		}
		w := NewWorld(Options{Volumes: volume.New, MaxObjects: few})
		_, issues := w.Load(manifest.Source{Name: "fuzz.yaml", Data: data})
		inside(t, issues, "fuzz.yaml", data)
		check(t, w)
	})
}

// inside fails for an issue outside of its file.
func inside(t *testing.T, issues source.Issues, file string, data []byte) {
	t.Helper()
	lines := 1 + strings.Count(string(data), "\n") + strings.Count(string(data), "\r")
	for _, i := range issues {
		if i.Line == 0 && i.Severity == source.Warning {
			continue // about the whole file
		}
		if i.File != file || i.Line < 1 || i.Line > lines || i.Column < 1 {
			t.Errorf("an issue lies outside its file of %d lines: %s", lines, i.Error())
		}
	}
}

// preemptSections contain a world in which a pod is evicted for another pod, and the policy for it.
const preemptSections = `-- p --
apiVersion: scheduling.celsius.dev/v1alpha1
kind: SchedulingPolicy
metadata: {name: p}
spec:
  pipeline: [enqueue, allocate, preempt]
  tiers: [{name: first, tables: [{name: priority}, {name: gang}]}]
-- w --
apiVersion: sim.celsius.dev/v1alpha1
kind: World
nodes: [{name: n1, cpu: 2}]
priorityClasses: {high: 5}
jobs:
- {name: low, replicas: 2, min: 1, cpu: 1, node: n1}
- {name: high, priority: high, cpu: 1}
`

// FuzzScenario checks that no scenario causes a panic, that an error names the scenario, and that the output of -update is a scenario that
// passes.
func FuzzScenario(f *testing.F) {
	f.Add([]byte("# R.\nload w\nfinish j-0\nshow pods\ncmp want\n" + worldSection + "-- want --\n"))
	f.Add([]byte("now 2026-03-01T00:00:00Z\nseed 3\nload w\nadvance 1h\ndrain n1\nshow jobs\ncmp want\n" + worldSection + "-- want --\n"))
	f.Add([]byte("load w\ncycle 2\nexplain all\ncmp want\n" + worldSection + "-- want --\n"))
	f.Add([]byte("policy p\nload w\ncycle\nadvance 31s\ncycle\nexplain all\nshow timeline\ncmp want\n" + preemptSections + "-- want --\n"))
	f.Add([]byte("check p\ncmp want\n-- p --\na: b\n-- want --\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 1<<12 {
			t.Skip("takes only time")
		}
		r, err := RunScenario("fuzz.txtar", data, ScenarioOptions{Update: true, World: Options{Volumes: volume.New, MaxObjects: few}})
		var issues source.Issues
		switch {
		case errors.As(err, &issues):
			inside(t, issues, "fuzz.txtar", data)
		case err != nil && !strings.HasPrefix(err.Error(), "fuzz.txtar:"):
			t.Errorf("an error does not name the scenario: %v", err)
		case err == nil:
			again, err := RunScenario("fuzz.txtar", r.Archive, ScenarioOptions{World: Options{Volumes: volume.New, MaxObjects: few}})
			if err != nil || again.Diff != "" {
				t.Errorf("after -update: %v\n%s", err, again.Diff)
			}
		}
	})
}
