package serving

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
)

// labSpec is a policy of queues, with a row of its own.
const labSpec = `{"mode":"Active","queues":"queue.name == 'lab'","rollback":{"rowErrors":0},"pipeline":["allocate"],"tiers":[{"name":"t",` +
	`"tables":[{"name":"own","inline":{"predicates":[{"name":"p","expression":"node.ready"}]}}]}]}`

// tablesOf are those of the rows that decide.
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

// TestPartsLife follows a policy of queues through what can happen to it beside the one of all others.
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
			"in the queues that it names, beside default@1\ncelsius serves 1\n")
		w.check("events", w.take(), []string{
			"Normal PolicyActivated lab: scheduler celsius serves lab@1 (1 rules) in the queues that it names, beside the embedded default",
			"Normal PolicyActivated default: scheduler celsius serves default@1 (11 rules)",
		})
		w.check("kept", w.revisions(), []string{
			"celsius-policy-3 default@1", "celsius-policy-2 lab@1", "celsius-policy-1 the embedded default",
		})

		w.put("default", brokenSpec)
		w.check("what serves in place of a broken one is of all queues", serving(p), "default@1 Active")
		w.put("default", strings.Replace(rightSpec, "Active", "Paused", 1))
		w.check("paused", serving(p), "default@3 Paused")
		w.check("paused", strings.Contains(w.status("lab"), "Active=False Paused: serving lab@1 in the queues that it names, beside default@3, "+
			"which is paused"), true)
		w.put("default", rightSpec)
		w.take()

		bad := &model.Plan{Policy: "default", Generation: 4, Errors: []model.RuleError{
			{Site: "predicates", Table: "lab:own", Rule: "p", Count: 2, Object: "pod a/b", Text: "no"},
		}}
		p.Observe(bad, time.Now())
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
		w.check("after two deaths", strings.Contains(w.status("lab"), "Active=False SchedulerDied: default@4 serves its queues, because the "+
			"scheduler died 2 times"), true)
		w.put("lab", strings.Replace(labSpec, "Active", "Shadow", 1))
		w.check("a shadow", tablesOf(p)+" "+p.Shadows()[0].Name, "gang lab")
		w.check("a shadow beside all others", p.Shadows()[0].RuleCount(), p.Current().RuleCount()+1)
		w.delete("lab")
		w.check("deleted", len(p.Shadows()), 0)
		kill()
	})
}
