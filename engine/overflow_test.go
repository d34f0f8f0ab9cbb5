package engine_test

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/celsius-scheduler/celsius/engine"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
)

// TestReferenceOverflow compares the engine with the reference where scores are as large and as small as numbers can be. A score that is
// not a number within the bounds is an error of its row. No sum of scores is infinite: a Plan with such a number cannot be written.
func TestReferenceOverflow(t *testing.T) {
	t.Parallel()
	var worlds, erred, chosen atomic.Int64
	t.Cleanup(func() {
		t.Logf("%d worlds; in %d a row errs, and in %d a score chooses a node", worlds.Load(), erred.Load(), chosen.Load())
		if all := worlds.Load(); all >= 100 && (erred.Load() < all/3 || chosen.Load() < all/10) {
			t.Errorf("of %d worlds rows err in %d, and scores choose in %d: want a third and a tenth", all, erred.Load(), chosen.Load())
		}
	})
	var tried []*policy.Policy
	for seed := range uint64(40) {
		tried = append(tried, newDrawer(seed).extremes(t))
	}
	rapid.Check(t, func(t *rapid.T) {
		w, p := drawRichWorld(t), one(t, "policy", tried...)
		var found bool
		r := run{world: w, policies: []*policy.Policy{p}, noErrors: true}
		want := byReference(t, r, new(seenWorlds))
		r.after = func(_ *model.Cluster, d *engine.Decider, _ *model.Plan) {
			found = found || slices.ContainsFunc(d.Session().Faults(), func(e model.RuleError) bool {
				return strings.Contains(e.Text, "a score must be a number from")
			})
		}
		if diff := gocmp.Diff(want, r.plans(t)); diff != "" {
			w.Log(t)
			t.Fatalf("-reference +engine:\n%s", diff)
		}
		worlds.Add(1)
		if found {
			erred.Add(1)
		}
		if slices.ContainsFunc(want, func(plan string) bool { return strings.Contains(plan, `"runnerUp"`) }) {
			chosen.Add(1)
		}
	})
}

// extremes returns a policy whose numbers differ by node, and lie at or beyond the bounds of scores.
func (d *drawer) extremes(t *testing.T) *policy.Policy {
	t.Helper()
	sizes := []string{"0.0", "1.5", "1e99", "1e100", "1e-100", "1e-101", "5e-324"}
	if d.IntN(3) > 0 {
		sizes = append(sizes, "1.7e308", "1e101", "1e200 * 1e200", "0.0 / 0.0")
	}
	number := func(of string) string {
		var list []string
		for range 7 {
			list = append(list, pick(d, "", "", "-")+"("+pick(d, sizes...)+")")
		}
		return fmt.Sprintf("[%s][int(hash01([%s, '%d']) * 7.0)]", strings.Join(list, ", "), of, d.IntN(100))
	}
	rows := func(n int, of, more string) (text string) {
		for i := range n {
			weight := pick(d, "1", "1e50", "-1e50", "1e-50")
			text += fmt.Sprintf("  - {name: extreme-%d, expression: %q%s}\n", i, number(of), strings.ReplaceAll(more, "WEIGHT", weight))
			more = strings.ReplaceAll(more, "minMax", pick(d, "minMax", "max", "inverseMax", "inverseSum", "none"))
		}
		return text
	}
	rounded := pick(d, "", ", round: {mode: floor, step: 1e-50}", ", round: {mode: nearest, step: 1e50}", ", round: {mode: trunc}")
	own := "name: own\ninline:\n  scores:\n" +
		rows(1+d.IntN(3), pick(d, "node.name", "node.name, task.name"), ", normalize: minMax, weight: WEIGHT"+rounded) +
		"  deviceScores:\n" + rows(1, "node.name, string(gpu.index)", ", weight: WEIGHT") +
		"  victimCost:\n" + rows(1+d.IntN(2), "victim.name", pick(d, "", ", fold: max"))
	spec := pick(d, "", "pipeline: [enqueue, allocate, preempt, reclaim, backfill]")
	return compile(t, "extremes", policyOf(spec, own,
		"{name: gang}", "{name: predicates}", "{name: priority}", "{name: nodeorder}")).policies[0]
}
