package sim

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/engine/sim/manifest"
	"github.com/celsius-scheduler/celsius/engine/volume"
	"github.com/celsius-scheduler/celsius/rules/source"
)

const samplesDir = "../../samples"

// sampleFiles returns the files below samples with an extension, by path.
func sampleFiles(t *testing.T, ending string) []string {
	t.Helper()
	var out []string
	err := filepath.WalkDir(samplesDir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && strings.HasSuffix(path, ending) {
			out = append(out, path)
		}
		return err
	})
	if err != nil || len(out) == 0 {
		t.Fatalf("no samples %s in %s: %v", ending, samplesDir, err)
	}
	return out
}

func samplePolicy(t *testing.T, path string) *policy.Policy {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	doc, issues := policyOf(manifest.Source{Name: path, Data: data})
	if doc == nil {
		t.Fatal(issues)
	}
	p, more := policy.Load(doc)
	if issues = append(issues, more...); len(issues) > 0 {
		t.Fatal(issues)
	}
	return p
}

// sampleWorld returns samples/cluster with the queues and jobs.
func sampleWorld(t *testing.T, now time.Time) *World {
	t.Helper()
	w := NewWorld(Options{Volumes: volume.New, Now: now})
	sources, err := manifest.Read(nil, samplesDir+"/cluster", samplesDir+"/queues", samplesDir+"/jobs")
	if err != nil {
		t.Fatal(err)
	}
	if _, issues := w.Load(sources...); len(issues) > 0 {
		t.Fatal(issues)
	}
	check(t, w)
	return w
}

// TestSamplesAreRead loads every YAML file below samples separately, and jobs of samples/jobplugins with the plugins in that folder. None
// has a mistake. It skips the folders whose objects need a cluster: Kubernetes' own workloads, commands, admission rules, invalid objects,
// and the JobTemplates for these.
func TestSamplesAreRead(t *testing.T) {
	t.Parallel()
	for _, path := range sampleFiles(t, ".yaml") {
		if slices.Contains([]string{"workloads", "commands", "admission", "invalid"}, filepath.Base(filepath.Dir(path))) ||
			path == samplesDir+"/invalid/given/jobtemplates.yaml" {
			continue
		}
		paths := []string{path}
		if dir := filepath.Dir(path); dir == samplesDir+"/jobplugins/jobs" {
			plugins, err := filepath.Glob(filepath.Dir(dir) + "/*.yaml")
			if err != nil {
				t.Fatal(err)
			}
			paths = append(paths, plugins...)
		}
		sources, err := manifest.Read(nil, paths...)
		if err != nil {
			t.Fatal(err)
		}
		w := NewWorld(Options{Volumes: volume.New})
		policies, issues := w.Load(sources...)
		if issues.Err() != nil {
			t.Errorf("%s: %v", path, issues)
		}
		for _, p := range policies {
			if _, issues := policy.Load(p.Doc); len(issues) > 0 {
				t.Errorf("%s: %v", path, issues)
			}
		}
	}
}

// TestInvalidPolicies checks that the policies of samples/invalid are refused, as in a cluster.
func TestInvalidPolicies(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(samplesDir + "/invalid/policy-*.yaml")
	if err != nil || len(files) < 5 {
		t.Fatalf("%d invalid policies: %v", len(files), err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		doc, issues := policyOf(manifest.Source{Name: file, Data: data})
		if doc != nil {
			_, more := policy.Load(doc)
			issues = append(issues, more...)
		}
		if issues.Err() == nil {
			t.Errorf("%s is taken", file)
		}
	}
}

// TestSamplesDecide runs the sample jobs under the default policy and those of samples/policies.
func TestSamplesDecide(t *testing.T) {
	t.Parallel()
	day := time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC)
	houseRules, launch := samplesDir+"/policies/house-rules.yaml", samplesDir+"/policies/launch.yaml"
	tests := []struct {
		name, policy string // "": the default policy
		now          time.Time
	}{
		{"default", "", day},
		{"house-rules-by-day", houseRules, day},
		{"house-rules-by-night", houseRules, day.Add(12 * time.Hour)},
		{"launch", launch, day},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			w := sampleWorld(t, test.now)
			p, issues := policy.Default()
			if test.policy != "" {
				p = samplePolicy(t, test.policy)
			}
			if issues.Err() != nil {
				t.Fatal(issues)
			}
			w.Policy = p
			r, err := w.Run(1)
			if err != nil {
				t.Fatal(err)
			}
			check(t, w)
			text, err := r.Write("table")
			if err != nil {
				t.Fatal(err)
			}
			golden(t, "samples/"+test.name+".golden", string(text))
		})
	}
}

// TestLaunch checks the decisions of the sample launch: each pod is on a node that had the fewest pods among the nodes where it fits.
func TestLaunch(t *testing.T) {
	t.Parallel()
	w := newTestWorld(t, `
apiVersion: sim.celsius.dev/v1alpha1
kind: World
nodes: [{name: "n[1-5]", cpu: 8}]
jobs:
- {name: on, replicas: 3, cpu: 1, node: n2}
- {name: also, replicas: 2, cpu: 1, node: n4}
- {name: many, replicas: 9, cpu: 1}
- {name: few, replicas: 4, cpu: 1}
`)
	w.Policy = samplePolicy(t, samplesDir+"/policies/launch.yaml")
	pods := map[string]int{"n1": 0, "n2": 3, "n3": 0, "n4": 2, "n5": 0}
	plan, err := w.Cycle()
	if err != nil {
		t.Fatal(err)
	}
	check(t, w)
	if len(plan.Binds) != 13 {
		t.Errorf("%d pods are bound, want 13", len(plan.Binds))
	}
	for _, b := range plan.Binds {
		for node, n := range pods {
			if n < pods[b.Node] {
				t.Errorf("%s went to %s with %d pods, %s had %d", b.Task, b.Node, pods[b.Node], node, n)
			}
		}
		pods[b.Node]++
	}
	if got := w.Cluster().Nodes.TaskCount[w.Cluster().Nodes.Index["n2"]]; got > 4 {
		t.Errorf("n2 has %d pods of 18 on five nodes", got)
	}
}

// TestSampleScenarios runs the scenarios below samples, which may name the sample policies. A section with the name of a sample policy must
// equal it.
func TestSampleScenarios(t *testing.T) {
	t.Parallel()
	sources, err := manifest.Read(nil, samplesDir+"/policies")
	if err != nil {
		t.Fatal(err)
	}
	objects, _ := manifest.Load(manifest.Options{}, sources...)
	policies := map[string]*source.Document{}
	for _, p := range objects.Policies {
		policies[p.Name] = p.Doc
	}
	for _, path := range sampleFiles(t, ".txtar") {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		r, err := RunScenario(path, data, ScenarioOptions{World: withVolumes(), Update: updating(), AfterCycle: checked, Policies: policies})
		if err != nil || r.Diff != "" || r.Heading == "" || len(r.Unused) > 0 {
			t.Errorf("%s: %v, heading %q, unused %v, %s", path, err, r.Heading, r.Unused, r.Diff)
		}
		for _, f := range txtar.Parse(r.Archive).Files {
			if !strings.HasSuffix(f.Name, ".yaml") {
				continue
			}
			want, err := os.ReadFile(filepath.Join(samplesDir, "policies", f.Name))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), string(f.Data)); diff != "" {
				t.Errorf("%s: the section is not the sample %s (-sample +section)\n%s", path, f.Name, diff)
			}
		}
		if updating() {
			if err := os.WriteFile(path, r.Archive, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
}
