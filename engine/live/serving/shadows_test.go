package serving

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/celsius-scheduler/celsius/crds/policy/v1alpha1"
)

// shadowSpec is rightSpec in mode Shadow.
var shadowSpec = strings.Replace(rightSpec, "Active", "Shadow", 1)

// TestShadows checks that a shadow's status reports its mode and its results, and that it is obeyed only after its mode changes.
func TestShadows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newPolicyWorld(t)
		p, stop := w.start("default", "celsius")
		defer stop()
		w.put("default", rightSpec)
		for _, name := range []string{"d", "b", "c", "a"} {
			w.put(name, shadowSpec)
		}
		var names []string
		for _, s := range p.Shadows() {
			names = append(names, s.Name)
		}
		w.check("who decides", strings.Join(names, " "), "a b c")
		w.check("serving", serving(p), "default@1 Active")
		w.check("one too many", strings.Contains(w.status("d"),
			"Active=False Shadow: a shadow that does not decide: the first 3 by name do; change the mode of one of these\n"), true)
		w.put("c", strings.Replace(shadowSpec, "Shadow", "Paused", 1)) // this is the remedy
		w.check("another mode", strings.Contains(w.status("d"), "deciding alongside default@1"), true)
		w.put("c", shadowSpec)
		w.check("one too many again", strings.Contains(w.status("d"), "a shadow that does not decide"), true)
		beside := "observed 1 rules 11 warnings 0\nCompiled=True Compiled: 11 rules\nActive=False Shadow: deciding alongside default@1, " +
			"without effect; status.shadows counts the differences\n"
		w.check("before it decides", w.status("a"), beside)

		p.Shadowed(p.Shadows()[0], &v1alpha1.ShadowStatus{
			Generation: 1, Beside: "default@1", Cycles: v1alpha1.ShadowCycles{Decided: 7, Otherwise: 2},
		})
		synctest.Wait()
		w.check("decided", w.status("a"), beside+"celsius shadows 1 beside default@1: 2 of 7 cycles otherwise\n")
		written := w.written()
		w.settle()
		w.check("no news, no writes", w.written(), written)

		w.put("a", shadowSpec)
		w.check("another generation", strings.Contains(w.status("a"), "celsius shadows"), false)
		w.put("b", brokenSpec)
		w.check("a broken one", strings.Contains(w.status("b"), "Active=False NotSelected"), true)
		w.check("makes room", strings.Contains(w.status("d"), "deciding alongside default@1"), true)

		w.put("default", shadowSpec)
		w.check("what was to be served became a shadow", serving(p), "default@1 Active")
		w.check("what was to be served became a shadow", strings.Contains(w.status("default"),
			"Active=False Shadow: a shadow that does not decide"), true)
		w.delete("a")
		w.delete("c")
		w.check("it decides as well", strings.Contains(w.status("default"), "Active=False Shadow: deciding alongside default@1, without "+
			"effect; status.shadows counts the differences. Scheduler celsius is to serve this policy by its flag --policy: set spec.mode to "+
			"Active to have it obeyed\n"), true)
		w.put("default", rightSpec)
		w.check("active again", serving(p), "default@3 Active")
	})
}

// TestShadowsBesideParts checks that a shadow decides alongside the serving policies for their own queues, in the place that it would have.
func TestShadowsBesideParts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newPolicyWorld(t)
		p, stop := w.start("default", "celsius")
		defer stop()
		w.put("default", rightSpec)
		w.put("lab", labSpec)
		inShadow := func(queues string) string {
			return strings.NewReplacer("Active", "Shadow", "queue.name == 'lab'", queues, "own", "tried").Replace(labSpec)
		}
		w.put("a", shadowSpec)
		w.put("b", inShadow(" queue.name == 'lab'"))
		w.put("m", inShadow("queue.name == 'other'"))
		plays := func() (out []string) {
			for _, s := range p.Shadows() {
				out = append(out, fmt.Sprintf("%s@%d: %s", s.Name, s.Generation, tables(s)))
			}
			return out
		}
		w.check("serving", tablesOf(p)+" as "+p.Current().Generations(), "gang lab:own as default@1+lab@1")
		w.check("whole, in the place of a part, and beside it", plays(), []string{
			"a@1: gang lab:own", "b@1: gang b:tried", "m@1: gang lab:own m:tried",
		})
		w.check("told so", strings.Contains(w.status("m"), "Shadow: deciding alongside default@1 and lab@1, without effect"), true)

		before := p.Shadows()
		p.Shadowed(before[0], &v1alpha1.ShadowStatus{Generation: 1, Beside: "default@1+lab@1"})
		w.put("m", inShadow("queue.name == 'third'"))
		w.check("nothing else is compiled anew", slices.Equal(p.Shadows()[:2], before[:2]), true)
		w.put("lab", labSpec)
		w.check("another generation of a part", plays()[0], "a@1: gang lab:own")
		w.check("begins anew", strings.Contains(w.status("a"), "celsius shadows"), false)
		w.delete("lab")
		w.check("without parts", plays(), []string{"a@1: gang", "b@1: gang b:tried", "m@2: gang m:tried"})
		w.check("what is gone is forgotten", len(p.shadows.found), 0)
	})
}

// TestShadowsThatDoNotJoin checks that the status reports why a shadow cannot be joined, and that other shadows decide instead.
func TestShadowsThatDoNotJoin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newPolicyWorld(t)
		p, stop := w.start("default", "celsius")
		defer stop()
		w.put("default", rightSpec)
		w.put("a", strings.NewReplacer("Active", "Shadow", `"predicates"`, `"attributes":[{"name":"servedBy","on":"queue","settle":"cycle",`+
			`"expression":"'me'"}],"predicates"`).Replace(labSpec))
		for _, name := range []string{"b", "c", "d"} {
			w.put(name, shadowSpec)
		}
		var names []string
		for _, s := range p.Shadows() {
			names = append(names, s.Name)
		}
		w.check("who decides", names, []string{"b", "c", "d"})
		w.check("why the other does not", strings.Contains(w.status("a"), "Active=False DoesNotJoin: a shadow that does not decide: generation "+
			"1 cannot be combined with default@1: queuePolicies[0].spec.tiers[0].tables[0].inline.attributes[0]: both tables"), true)
		w.check("is tried once", len(p.shadows.played), 4)
		w.delete("a")
		w.check("what is gone is forgotten", len(p.shadows.played), 3)
	})
}
