package sim

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy/coverage"
	"github.com/celsius-scheduler/celsius/engine/reference"
	"github.com/celsius-scheduler/celsius/engine/report"
	"github.com/celsius-scheduler/celsius/engine/volume"
)

// TestScenariosByReference runs every scenario once with the engine and once with the reference. The plans are equal byte by byte.
func TestScenariosByReference(t *testing.T) {
	t.Parallel()
	for _, name := range scenarioFiles(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path, data := scenarioFile(t, name)
			engine, err := RunScenario(path, data, ScenarioOptions{World: withVolumes(), Compile: loadOnce})
			if err != nil {
				t.Fatal(err)
			}
			if slices.ContainsFunc(engine.Plans, report.OutOfSteps) {
				t.Skip("a row had no steps left in a cycle, on which what is remembered does not draw: the reference has no such budget (decision 31)")
			}
			plain, err := RunScenario(path, data, ScenarioOptions{Compile: loadOnce, World: byReference()})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(writtenPlans(t, plain.Plans), writtenPlans(t, engine.Plans)); diff != "" {
				t.Errorf("-reference +engine:\n%s", diff)
			}
		})
	}
}

// TestWatchedScenarios runs every scenario with watched policies. The plans are the same, except if a row has no budget left in a cycle:
// cel-go evaluates watched expressions, and counts steps differently.
func TestWatchedScenarios(t *testing.T) {
	t.Parallel()
	for _, name := range scenarioFiles(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path, data := scenarioFile(t, name)
			plain, err := RunScenario(path, data, ScenarioOptions{World: withVolumes(), Compile: loadOnce})
			if err != nil {
				t.Fatal(err)
			}
			var r coverage.Recorder
			watched, err := RunScenario(path, data, ScenarioOptions{Compile: r.Load, World: byReference()})
			if err != nil {
				t.Fatal(err)
			}
			diff := cmp.Diff(writtenPlans(t, plain.Plans), writtenPlans(t, watched.Plans))
			if usesUp := slices.ContainsFunc(plain.Plans, report.OutOfSteps); diff != "" && !usesUp || len(watched.Plans) != len(plain.Plans) {
				t.Errorf("-plain +watched:\n%s", diff)
			}
			// Joined policies are compiled once more, together.
			decides := len(plain.Plans) > 0 && name != "displace/a_paused_policy" && !strings.HasPrefix(name, "queuepolicies/")
			report := r.Report(func(coverage.Place) bool { return true })
			if decides && report.Seen == 0 || report.Seen > report.Of {
				t.Errorf("%d of %d was seen", report.Seen, report.Of)
			}
		})
	}
}

// writtenPlans returns plans as text.
func writtenPlans(t *testing.T, plans []*model.Plan) []string {
	t.Helper()
	var out []string
	for _, plan := range plans {
		text, err := report.Written(plan)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, text)
	}
	return out
}

// byReference returns the options of a world in which the reference decides.
func byReference() Options {
	return Options{Volumes: volume.New, Decide: (&reference.Run{}).Decide}
}
