package statemachines

import (
	"strings"
	"testing"
	"time"

	"github.com/celsius-scheduler/celsius/rules/source"
)

// TestNoCircles searches the built-in machines for circles, because Default does not. The search must take about a second.
func TestNoCircles(t *testing.T) {
	for _, name := range Names() {
		text, err := shipped.ReadFile(name + ".yaml")
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if _, issues := LoadFile(name+".yaml", text); len(issues) > 0 {
			t.Errorf("%s: %s", name, issues)
		}
		if took := time.Since(began); took > 10*time.Second { // a high limit for busy machines: it takes about 50 ms of one core
			t.Errorf("%s: the check took %s", name, took)
		}
	}
}

// TestCircleOfJobs removes a condition in the machine of jobs that excluded one of two transitions. The check reports both transitions,
// their circle and an input that shows it. A second case has a guard with a number that only few objects reach.
func TestCircleOfJobs(t *testing.T) {
	text, err := shipped.ReadFile("job.yaml")
	if err != nil {
		t.Fatal(err)
	}
	guard := "status.pending > job.replicas - spec.minAvailable\n" +
		"            && status.running + status.succeeded + status.failed < spec.minAvailable"
	for name, c := range map[string]struct {
		guard    string
		severity source.Severity
	}{
		"as it was":  {"status.pending > job.replicas - spec.minAvailable", source.Warning},
		"any waits":  {"status.pending >= 1", source.Error},
		"seven wait": {"status.pending == 7", source.Error},
	} {
		broken := strings.Replace(string(text), guard, c.guard, 1)
		if broken == string(text) {
			t.Fatal("the guard of gang-broken is another one")
		}
		_, issues := LoadFile("job.yaml", []byte(broken))
		if len(issues) != 1 || issues[0].Severity != c.severity {
			t.Errorf("%s: %s", name, issues)
			continue
		}
		for _, want := range []string{"Running", "Pending", "gang-runs", "gang-broken", "status.pending = ", "spec.minAvailable = "} {
			if !strings.Contains(issues[0].Message, want) {
				t.Errorf("%s: %q lacks %s", name, issues[0].Message, want)
			}
		}
	}
}
