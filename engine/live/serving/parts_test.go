package serving

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
)

// labSpec is a policy for its own queues, with one row.
const labSpec = `{"mode":"Active","queues":"queue.name == 'lab'","rollback":{"rowErrors":0},"pipeline":["allocate"],"tiers":[{"name":"t",` +
	`"tables":[{"name":"own","inline":{"predicates":[{"name":"p","expression":"node.ready"}]}}]}]}`

// tablesOf returns the tables of the current policy's rows.
func tablesOf(p *Policies) string { return tables(p.Current()) }

func tables(p *policy.Policy) string {
	var out []string
	for _, r := range p.All {
		if len(out) == 0 || out[len(out)-1] != r.Table {
			out = append(out, r.Table)
		}
	}
	return strings.Join(out, " ")
}

// TestPartsLife follows a policy for its own queues through all events.
func TestPartsLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newPolicyWorld(t)
		p, kill := w.start("default", "celsius")
		w.put("lab", labSpec)
		w.check("beside the embedded default", strings.HasSuffix(tablesOf(p), " lab:own"), true)
		w.put("default", rightSpec)
		w.check("beside another", tablesOf(p), "gang lab:own")
		w.check("serving", serving(p), "default@1 Active")
		w.check("status", w.status("lab"), "observed 1 rules 1 warnings 0\nCompiled=True Compiled: 1 rule\nActive=True Serving: serving lab@1 "+
			"in the queues that it names, alongside default@1\ncelsius serves 1\n")
		w.check("events", w.take(), []string{
			"Normal PolicyActivated lab: scheduler celsius serves lab@1 (1 rules) in the queues that it names, alongside the embedded default",
			"Normal PolicyActivated default: scheduler celsius serves default@1 (11 rules)",
		})
		w.check("kept", w.revisions(), []string{
			"celsius-policy-3 default@1", "celsius-policy-2 lab@1", "celsius-policy-1 the embedded default",
		})

		w.put("default", brokenSpec)
		w.check("what serves in place of a broken one is of all queues", serving(p), "default@1 Active")
		w.put("default", strings.Replace(rightSpec, "Active", "Paused", 1))
		w.check("paused", serving(p), "default@3 Paused")
		w.check("paused", strings.Contains(w.status("lab"), "Active=False Paused: serving lab@1 in the queues that it names, alongside "+
			"default@3, which is paused"), true)
		w.put("default", rightSpec)
		w.take()

		bad := &model.Plan{Errors: []model.RuleError{
			{Site: "predicates", Table: "lab:own", Rule: "p", Count: 2, Object: "pod a/b", Text: "no"},
		}}
		p.Observe(p.Current(), bad, time.Now())
		time.Sleep(guardLook)
		synctest.Wait()
		w.check("taken back", tablesOf(p), "gang")
		w.check("taken back", strings.Contains(w.status("lab"), "Active=False RolledBack: default@4 serves its queues, because generation 1 was "+
			"rolled back: its rows erred 2 times, and spec.rollback.rowErrors is 0 (own/p (predicates) erred for pod a/b: no); change the policy "+
			"to have it tried again\n"), true)
		w.check("of the other nothing erred", strings.Contains(w.status("default"), "erred"), false)

		w.put("lab", labSpec)
		w.check("changed", tablesOf(p), "gang lab:own")
		for range 2 {
			kill()
			p, kill = w.start("default", "celsius")
		}
		w.check("after two deaths", tablesOf(p), "gang lab:own")
		w.put("lab", strings.Replace(labSpec, "Active", "Shadow", 1))
		w.check("a shadow", tablesOf(p)+" "+p.Shadows()[0].Name, "gang lab")
		w.check("a shadow beside all others", p.Shadows()[0].RuleCount(), p.Current().RuleCount()+1)
		w.delete("lab")
		w.check("deleted", len(p.Shadows()), 0)
		kill()
	})
}

// erredOf returns a plan in which a row of a table failed.
func erredOf(table string, count int) *model.Plan {
	return &model.Plan{Errors: []model.RuleError{
		{Site: "predicates", Table: table, Rule: "p", Count: count, Object: "pod a/b", Text: "no"},
	}}
}

// TestPartsErrors checks that errors belong to the generation that decided the cycle, even if another one serves when the cycle ends.
// Counts of unchanged policies continue.
func TestPartsErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newPolicyWorld(t)
		p, stop := w.start("default", "celsius")
		defer func() { stop() }()
		w.put("default", rightSpec)
		w.put("default", guarded(`{"rowErrors":3}`))
		w.put("lab", labSpec)
		w.take()
		old := p.Current()
		p.Observe(old, erredOf("house", 2), time.Now())
		synctest.Wait()
		w.put("lab", labSpec)
		p.Observe(old, erredOf("lab:own", 2), time.Now())
		time.Sleep(guardLook)
		synctest.Wait()
		w.check("the fix serves", strings.Contains(w.status("lab"), "Active=True Serving: serving lab@2"), true)
		w.check("what erred before it is not told of it", strings.Contains(w.status("lab"), "erred"), false)
		w.check("that of the other is", strings.Contains(w.status("default"), "house/p (predicates) erred 2 times"), true)
		p.Observe(p.Current(), erredOf("house", 2), time.Now())
		time.Sleep(guardLook)
		synctest.Wait()
		w.check("counted since it began to serve", serving(p), "default@1 Active")
		p.Observe(p.Current(), erredOf("lab:own", 1), time.Now())
		time.Sleep(guardLook)
		synctest.Wait()
		w.check("its own errors are", tablesOf(p), "gang")
		w.put("lab", strings.Replace(labSpec, `"rowErrors":0`, `"rowErrors":9`, 1))
		both := erredOf("lab:own", 1)
		both.Errors = append(both.Errors, erredOf("house", 1).Errors...)
		p.Observe(p.Current(), both, time.Now())
		synctest.Wait()
		w.check("rows are told of their own policy", slices.DeleteFunc(w.take(), func(s string) bool { return !strings.Contains(s, "RowErred") }),
			[]string{
				"Warning RowErred default: house/p (predicates) erred for pod a/b: no", // comes from default@2
				"Warning RowErred default: house/p (predicates) erred for pod a/b: no", // comes from default@1
				"Warning RowErred lab: own/p (predicates) erred for pod a/b: no",
			})
	})
}

// clashingSpec is a policy with which no policy for its own queues can be joined.
const clashingSpec = `{"mode":"Active","pipeline":["allocate"],"tiers":[{"name":"t","tables":[{"name":"own","inline":{"attributes":[` +
	`{"name":"servedBy","on":"queue","settle":"cycle","expression":"'me'"}],"jobReady":[{"name":"r","expression":"true"}]}}]}]}`

// TestPartsFallBack checks that an event and a metric report whose queues another policy serves: once, and for any reason.
func TestPartsFallBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newPolicyWorld(t)
		p, kill := w.start("default", "celsius")
		w.put("default", rightSpec)
		w.put("lab", labSpec)
		w.take()
		told := func(what, instead string, want ...string) {
			t.Helper()
			look()
			w.settle()
			w.mu.Lock()
			got := w.instead
			w.mu.Unlock()
			w.check(what, got, instead)
			events := slices.DeleteFunc(w.take(), func(s string) bool {
				return strings.Contains(s, "PolicyActivated") || strings.Contains(s, "RowErred")
			})
			w.check(what, strings.Join(events, "\n"), strings.Join(want, "\n"))
		}
		told("it serves", "")
		p.Observe(p.Current(), erredOf("lab:own", 1), time.Now())
		told("rolled back", "RolledBack", "Warning PolicyFallback lab: default@1 serves its queues, because generation 1 was rolled back: its "+
			"rows erred 1 times, and spec.rollback.rowErrors is 0 (own/p (predicates) erred for pod a/b: no); change the policy to have it tried "+
			"again")
		w.put("lab", labSpec)
		told("changed", "")
		w.put("lab", strings.Replace(labSpec, `"rollback":{"rowErrors":0},`, "", 1))
		for range mostFaulty {
			p.Observe(p.Current(), faulty("lab:own", 1, 0), time.Now())
			look()
		}
		told("faulty", "RowFaulty", "Warning PolicyFallback lab: default@1 serves its queues with the predicates of generation 3, because "+
			"generation 3 is faulty: row own/dear (scores) failed for team-a/train-0 on n1: exceeded its budget of 1000000 steps; change the "+
			"policy to have it tried again")
		w.put("lab", labSpec)
		told("changed again", "")
		w.put("default", clashingSpec)
		says := "default@2 serves its queues, because generation 4 cannot be combined with it: "
		if !strings.Contains(w.status("lab"), "Active=False DoesNotJoin: "+says) {
			t.Errorf("it does not join:\n%s", w.status("lab"))
		}
		if events := strings.Join(w.take(), "\n"); !strings.Contains(events, "Warning PolicyFallback lab: "+says) {
			t.Errorf("no event that it does not join:\n%s", events)
		}
		told("does not join", "DoesNotJoin")
		w.put("lab", strings.Replace(brokenSpec, `"Active"`, `"Active","queues":"queue.name == 'lab'"`, 1))
		says = "serves its queues, because generation 5 does not compile: "
		if events := strings.Join(w.take(), "\n"); !strings.Contains(events, "Warning PolicyRejected lab: default@2 "+says) ||
			strings.Contains(events, "PolicyFallback") {
			t.Errorf("events of one that does not compile:\n%s", events)
		}
		told("does not compile", "DoesNotCompile")
		w.check("status", strings.Contains(w.status("lab"), "Active=False DoesNotCompile: default@2 "+says), true)
		w.put("default", rightSpec)
		w.delete("lab")
		told("deleted", "")
		kill()
	})
}
