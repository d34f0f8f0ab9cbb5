package serving

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/celsius-scheduler/celsius/crds/policy/v1alpha1"
)

// shadowSpec is rightSpec as a shadow.
var shadowSpec = strings.Replace(rightSpec, "Active", "Shadow", 1)

// TestShadows: a policy that is a shadow is told so, how it fares is told, and it is obeyed only once its mode says so.
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
		beside := "observed 1 rules 11 warnings 0\nCompiled=True Compiled: 11 rules\nActive=False Shadow: deciding beside default@1, with no " +
			"consequences; status.shadows counts what differs\n"
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
		w.check("makes room", strings.Contains(w.status("d"), "deciding beside default@1"), true)

		w.put("default", shadowSpec)
		w.check("what was to be served became a shadow", serving(p), "default@1 Active")
		w.check("what was to be served became a shadow", strings.Contains(w.status("default"),
			"Active=False Shadow: a shadow that does not decide"), true)
		w.delete("a")
		w.delete("c")
		w.check("it decides as well", strings.Contains(w.status("default"), "Active=False Shadow: deciding beside default@1, with no "+
			"consequences; status.shadows counts what differs. Scheduler celsius is to serve this policy by its flag --policy: set spec.mode to "+
			"Active to have it obeyed\n"), true)
		w.put("default", rightSpec)
		w.check("active again", serving(p), "default@3 Active")
	})
}
