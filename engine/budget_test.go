package engine_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/celsius-scheduler/celsius/engine"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/engine/volume"
)

// dear makes a policy with one row in addition to shipped tables.
func dear(t *testing.T, row string) *policy.Policy {
	t.Helper()
	return compile(t, "dear", policyOf("mode: Active", "name: dear\ninline:\n  predicates:\n  - "+row, "name: predicates",
		"name: gang")).policies[0]
}

// crowd makes nodes, and jobs of one pod each. No two pods are alike.
func crowd(t *testing.T, nodes, pods int) *model.Cluster {
	t.Helper()
	c := model.NewCluster(model.Options{Volumes: volume.New})
	deltas := []model.Delta{upsert(benchQueue("default"))}
	for i := range nodes {
		deltas = append(deltas, upsert(benchNode(i, "64")))
	}
	for i := range pods {
		deltas = append(deltas, gang(fmt.Sprintf("job-%02d", i), 1, int64(100+i), benchStart())...)
	}
	for _, err := range c.Apply(deltas...) {
		t.Fatal(err)
	}
	return c
}

const fourLoops = `{name: loops, onError: %s, expression: "lists.range(10).all(a, lists.range(10).all(b, lists.range(10).all(c, ` +
	`lists.range(10).all(d, node.name + task.name != string(a + b + c + d)))))"}`

// TestARowHasItsShareOfACycle checks a row of four loops over ten. It takes its share of a cycle and no more. Its onError decides about the
// remaining objects. With allow all of them are placed in the first cycle. With deny each cycle places as many as the row had steps for.
// The overrun is counted, and two schedulers decide the same.
func TestARowHasItsShareOfACycle(t *testing.T) {
	for _, test := range []struct {
		onError string
		least   int
		most    int
	}{{"allow", 40, 40}, {"deny", 1, 39}} {
		var plans []string
		for range 2 {
			c, p := crowd(t, 50, 40), dear(t, fmt.Sprintf(fourLoops, test.onError))
			var d engine.Decider
			plan := d.Decide(c, p, benchStart())
			if n := len(plan.Binds); n < test.least || n > test.most {
				t.Errorf("onError %s: %d pods are bound", test.onError, n)
			}
			if len(plan.Errors) != 1 || plan.Errors[0].OverBudget == 0 || plan.Errors[0].OverBudget != plan.Errors[0].Count ||
				!strings.Contains(plan.Errors[0].Text, "10000000 steps a cycle") {
				t.Errorf("onError %s: %v", test.onError, plan.Errors)
			}
			text, err := json.Marshal(plan)
			if err != nil {
				t.Fatal(err)
			}
			plans = append(plans, string(text))
			if test.onError == "deny" { // the next cycle asks about the others
				if next := d.Decide(c, p, benchStart().Add(time.Second)); len(next.Binds) == 0 {
					t.Error("no pod is bound in the second cycle")
				}
			}
		}
		if plans[0] != plans[1] {
			t.Errorf("onError %s: two plans differ", test.onError)
		}
	}
}
