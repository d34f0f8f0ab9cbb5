package manifest_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/celsius-scheduler/celsius/engine/sim/manifest"
)

// TestWorkGrowsWithSize loads a Job of many tasks and a Pod of many containers. Twice as many must not take more than about twice the
// memory: the checks of each one must not read all the others.
func TestWorkGrowsWithSize(t *testing.T) { // not parallel, because it counts allocations
	const job, pod = `{"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"name": "j"}, "spec": {"tasks": [%s]}}`,
		`{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [%s]}}`
	const task = `{"name": "t%d", "replicas": 1, "minAvailable": 1, "template": {"spec": {"containers": [{"name": "c"}]}}}`
	for object, part := range map[string]string{job: task, pod: `{"name": "c%d"}`} {
		allocations := func(parts int) float64 {
			var all []string
			for n := range parts {
				all = append(all, fmt.Sprintf(part, n))
			}
			text := []byte(fmt.Sprintf(object, strings.Join(all, ",")))
			return testing.AllocsPerRun(1, func() {
				if o, issues := manifest.Load(manifest.Options{}, manifest.Source{Name: "f", Data: text}); len(o.Items) != 1 || len(issues) > 0 {
					t.Fatal(issues)
				}
			})
		}
		if few, many := allocations(500), allocations(1000); many > 2.2*few {
			t.Errorf("%.60s: 500 parts take %.0f allocations, and 1000 take %.0f", object, few, many)
		}
	}
}
