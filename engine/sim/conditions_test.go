package sim

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/celsius-scheduler/celsius/engine"
	"github.com/celsius-scheduler/celsius/engine/explain"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/engine/volume"
)

// reached is the part of a cause that counts the nodes that reach volumes, and names a pod. A condition leaves the number out, because it
// changes more often than the reason, and names the first pod that was refused.
var reached = regexp.MustCompile(`, so (only nodes there|\d+ of \d+ nodes?) can run pod \S+;`)

// TestConditionBeginsWithCause runs scenarios of jobs that wait. The condition of each PodGroup that cannot start begins with the cause
// that an explanation of the job states, if it states one.
func TestConditionBeginsWithCause(t *testing.T) {
	t.Parallel()
	wanted := map[string]string{
		"pending/its_volume_is_in_another_zone": "claim imagenet is bound to volume pvc-0b7f in zone eu-west-1b, so only nodes there can run " +
			"pod default/train-0; free resources or add a node there, or use another claim | 1/1 tasks in gang unschedulable: " +
			"predicates/volume-zone: ",
		"pending/a_queue_above_is_full": "queue dept, above the job's queue team-b, is full: it lacks cpu 1 for the pod: it may hold cpu 4, " +
			"has cpu 3 | 1/1 tasks in gang unschedulable: capacity/within-capability: ",
	}
	for _, name := range scenarioFiles(t) {
		folder, _, _ := strings.Cut(name, "/")
		if !slices.Contains([]string{"pending", "explain", "volumes"}, folder) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path, data := scenarioFile(t, name)
			var d engine.Decider
			var messages []string
			_, err := RunScenario(path, data, ScenarioOptions{Compile: loadOnce, World: Options{
				Volumes: volume.New,
				Decide: func(c *model.Cluster, p *policy.Policy, now time.Time) *model.Plan {
					plan := d.Decide(c, p, now)
					messages = append(messages, conditions(t, explain.New(d.Session(), plan))...)
					return plan
				},
			}})
			if err != nil {
				t.Fatal(err)
			}
			if want := wanted[name]; want != "" && (len(messages) == 0 || !strings.HasPrefix(messages[0], want)) {
				t.Errorf("the conditions are %q, want %q …", messages, want)
			}
		})
	}
}

// conditions returns the messages of PodGroups that cannot start, and compares each with the explanation of its job.
func conditions(t *testing.T, x *explain.Cycle) (out []string) {
	t.Helper()
	for _, j := range x.Plan.Jobs {
		if j.Condition == nil || j.Condition.Type != "Unschedulable" {
			continue
		}
		namespace, name, _ := strings.Cut(j.Job, "/")
		told, err := x.Object(explain.Job, namespace, name)
		if err != nil {
			t.Fatal(err)
		}
		_, cause, _ := strings.Cut(told.Text, "\n  cause  ")
		cause, _, _ = strings.Cut(cause, "\n")
		if !strings.HasPrefix(reached.ReplaceAllString(j.Condition.Message, ""), reached.ReplaceAllString(cause, "")) {
			t.Errorf("the condition of %s is %q, and the cause is %q", j.Job, j.Condition.Message, cause)
		}
		out = append(out, j.Condition.Message)
	}
	return out
}
