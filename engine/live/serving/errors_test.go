package serving

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/celsius-scheduler/celsius/engine/model"
)

// erringPlan returns a plan in which two rows failed.
func erringPlan() *model.Plan {
	return &model.Plan{Errors: []model.RuleError{
		{
			Site: "predicates", Table: "house", Rule: "loops", Count: 3, OverBudget: 2, Object: "a/p on n1",
			Text: "exceeded its budget of 1000000 steps",
		},
		{Site: "scores", Table: "house", Rule: "odd", Count: 1, Object: "a/q on n2", Text: "no such key: x"},
	}}
}

// The status lists failed rows with their counts and last errors: at once for a new row, else once a minute. One event reports the first
// error of each row.
func TestPolicyRowsErr(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newPolicyWorld(t)
		p, stop := w.start("default", "celsius")
		w.put("default", rightSpec)
		prove(p)
		w.take()
		plan, wrote := erringPlan(), w.written()
		for range 50 {
			p.Observe(p.Current(), plan, time.Now())
			time.Sleep(time.Second)
			synctest.Wait()
		}
		const says = "Erring=True RowsErred: 2 rows erred, and what onError says held in place of what they would have said: " +
			"house/loops (predicates), house/odd (scores); status.schedulers has counts, and the last errors\n"
		entries := func(times int) string {
			return fmt.Sprintf("celsius serves 1\n"+
				"  house/loops (predicates) erred %d times, %d over budget, last for a/p on n1: exceeded its budget of 1000000 steps\n"+
				"  house/odd (scores) erred %d times, 0 over budget, last for a/q on n2: no such key: x\n", 3*times, 2*times, times)
		}
		w.check("at once", strings.Contains(w.status("default"), says) && strings.Contains(w.status("default"), entries(1)), true)
		w.check("events", w.take(), []string{
			"Warning RowErred default: house/loops (predicates) erred for a/p on n1: exceeded its budget of 1000000 steps",
			"Warning RowErred default: house/odd (scores) erred for a/q on n2: no such key: x",
		})
		if n := w.written() - wrote; n != 2 {
			t.Errorf("%d writes of the status in 50 cycles", n)
		}
		time.Sleep(tellEvery)
		plan.Errors[1].Object, plan.Errors[1].Text = "a/r on n3", "no such key: "+strings.Repeat("y", 1000)
		p.Observe(p.Current(), plan, time.Now())
		synctest.Wait()
		later := strings.Replace(entries(51), "a/q on n2: no such key: x", "a/r on n3: no such key: "+strings.Repeat("y", mostText-14)+"…", 1)
		w.check("later", strings.Contains(w.status("default"), later), true)

		w.put("default", warnedSpec)
		w.check("another generation", strings.Contains(w.status("default"), "Erring"), false)
		w.check("another generation", strings.HasSuffix(w.status("default"), "celsius serves 2\n"), true)
		w.check("events", len(w.take()), 1) // the event of its activation
		stop()
	})
}

// Errors of a replaced policy are not reported for the new one, even if it has the same name and generation.
func TestPolicyRowsErredOfAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newPolicyWorld(t)
		p, stop := w.start("default", "celsius")
		w.put("default", rightSpec)
		p.Observe(p.Current(), erringPlan(), time.Now())
		synctest.Wait()
		w.check("of the first", strings.Contains(w.status("default"), "Erring=True"), true)
		u, err := w.get("default")
		if err == nil {
			err = w.api.Delete(t.Context(), u)
		}
		if err != nil {
			t.Fatal(err)
		}
		w.put("default", rightSpec)
		w.check("of the second", strings.Contains(w.status("default"), "Erring"), false)
		w.check("of the second", strings.HasSuffix(w.status("default"), "celsius serves 1\n"), true)
		w.take()
		p.Observe(p.Current(), erringPlan(), time.Now())
		synctest.Wait()
		w.check("events", len(w.take()), 2)
		stop()
	})
}

// A cycle that ends between the write of a status and the next check is not written at once. Otherwise the writes would never end while a
// row fails.
func TestPolicyRowsErrEachCycle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newPolicyWorld(t)
		p, stop := w.start("default", "celsius")
		w.put("default", rightSpec)
		prove(p)
		wrote := w.written()
		w.refusing(func(what string) error {
			if what == "apply status" {
				p.Observe(p.Current(), erringPlan(), time.Now())
			}
			return nil
		})
		p.Observe(p.Current(), erringPlan(), time.Now())
		for range 20 {
			time.Sleep(time.Second)
			w.settle()
		}
		if n := w.written() - wrote; n != 2 {
			t.Errorf("%d writes of the status in 20 seconds", n)
		}
		w.refusing(nil)
		stop()
	})
}

// If rows fail in one of two schedulers that serve a policy, they are in its entry, and both write the same condition.
func TestPolicyRowsErrUnderOneOfTwo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newPolicyWorld(t)
		p, stopA := w.start("default", "celsius")
		_, stopB := w.start("default", "volcano")
		w.put("default", rightSpec)
		wrote := w.written()
		p.Observe(p.Current(), erringPlan(), time.Now())
		for range 20 {
			w.settle()
		}
		w.check("condition", strings.Contains(w.status("default"), "Erring=True"), true)
		w.check("entries", strings.Count(w.status("default"), " erred ") == 2 && strings.Contains(w.status("default"),
			"celsius serves 1\n  house/loops"), true)
		if n := w.written() - wrote; n < 2 || n > 3 {
			t.Errorf("%d writes of the status", n)
		}
		stopA()
		_, stopA = w.start("default", "celsius")
		w.settle()
		w.check("restarted", strings.Contains(w.status("default"), "err"), false)
		stopA()
		stopB()
	})
}
