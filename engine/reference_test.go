package engine_test

import (
	"fmt"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/engine/reference"
)

// byReference goes through a world's history as run.plans does, decided by the reference.
func byReference(t *rapid.T, r run) []string {
	c := model.NewCluster(model.Options{})
	var out []string
	var by reference.Run
	now := time.Unix(1_700_000_100, 0).UTC()
	for n, deltas := range r.history() {
		c.Apply(deltas...)
		for _, pause := range pauses() {
			plan := by.Decide(c, r.policies[0], now.Add(time.Duration(n)*time.Minute+pause))
			if err := c.Check(); err != nil {
				t.Fatalf("cycle %d, %v later: %v", n, pause, err)
			}
			plan.Errors = nil
			out = append(out, written(t, plan))
			c.Apply(started(c, plan)...)
		}
	}
	return out
}

// The engine decides what the reference decides, to the byte: under every policy that ships, under those that other properties use, and
// under as many that are drawn.
func TestReference(t *testing.T) {
	t.Parallel()
	tried := samplePolicies(t)
	for _, p := range policies(t) {
		tried[p.name] = p.policies[0]
	}
	for seed := range uint64(drawnPolicies) {
		tried[fmt.Sprint("drawn-", seed)] = newDrawer(seed).policy(t)
	}
	for name, p := range tried {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(t *rapid.T) {
				w := drawRichWorld(t)
				r := run{world: w, policies: []*policy.Policy{p}, noErrors: true}
				if diff := gocmp.Diff(byReference(t, r), r.plans(t)); diff != "" {
					w.Log(t)
					t.Fatalf("-reference +engine:\n%s", diff)
				}
			})
		})
	}
}

// drawnPolicies is how many are drawn: with a hundred worlds each, and those under policies that ship, they are ten thousand and more.
const drawnPolicies = 90
