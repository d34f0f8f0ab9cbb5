package sim

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/celsius-scheduler/celsius/engine"
	"github.com/celsius-scheduler/celsius/engine/explain"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/engine/volume"
)

// TestToExplainChangesNothing runs every scenario twice. In one run, everything is explained after each cycle by the session that continues
// deciding. The plans are the same, and the cluster stays consistent.
func TestToExplainChangesNothing(t *testing.T) {
	t.Parallel()
	for _, name := range scenarioFiles(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path, data := scenarioFile(t, name)
			plain, err := RunScenario(path, data, ScenarioOptions{World: withVolumes(), Compile: loadOnce})
			if err != nil {
				t.Fatal(err)
			}
			var d engine.Decider
			explained, err := RunScenario(path, data, ScenarioOptions{Compile: loadOnce, World: Options{
				Volumes: volume.New,
				Decide: func(c *model.Cluster, p *policy.Policy, now time.Time) *model.Plan {
					plan := d.Decide(c, p, now)
					explainAll(t, explain.New(d.Session(), plan), c)
					return plan
				},
			}})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(writtenPlans(t, plain.Plans), writtenPlans(t, explained.Plans)); diff != "" {
				t.Errorf("-plain +explained:\n%s", diff)
			}
		})
	}
}

// explainAll explains each existing job, pod, queue and node.
func explainAll(t *testing.T, x *explain.Cycle, c *model.Cluster) {
	t.Helper()
	content := c.Content()
	about := func(kind, key string) {
		namespace, name, namespaced := strings.Cut(key, "/")
		if !namespaced {
			namespace, name = "", key
		}
		if told, err := x.Object(kind, namespace, name); err != nil || told.Text == "" {
			t.Errorf("%s %s: %v", kind, key, err)
		}
	}
	for key, j := range c.Jobs {
		if !j.Orphan {
			about(explain.Job, key)
		}
	}
	for key := range c.Tasks {
		about(explain.Pod, key)
	}
	for name := range c.Queues {
		about(explain.Queue, name)
	}
	for name := range c.Nodes.Index {
		about(explain.Node, name)
	}
	if now := c.Content(); now != content {
		t.Errorf("the cluster's content is %d after it was explained, and was %d", now, content)
	}
	if wrong := c.Check(); wrong != nil {
		t.Errorf("the cluster after it was explained: %v", wrong)
	}
}
