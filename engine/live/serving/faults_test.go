package serving

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/engine/policy/parts"
)

// ownedSpec returns a spec with a predicate, and with this fallback after a fault.
func ownedSpec(fallback string) string {
	if fallback != "" {
		fallback = `"fallback":"` + fallback + `",`
	}
	return `{` + fallback + `"mode":"Active","pipeline":["enqueue","allocate"],"tiers":[{"name":"t","tables":[{"name":"house","inline":` +
		`{"predicates":[{"name":"own-nodes","expression":"node.labels[?'team'].orValue('') == task.labels['team']","onError":"allow"}],` +
		`"scores":[{"name":"dear","expression":"1.0"}]}}]}]}`
}

// faulty returns a plan in which a row was faulty.
func faulty(table string, overBudget, panicked int) *model.Plan {
	text := "exceeded its budget of 1000000 steps"
	if panicked > 0 {
		text = "internal error: runtime error: index out of range [3] with length 3"
	}
	return &model.Plan{Errors: []model.RuleError{{
		Site: "scores", Table: table, Rule: "dear", Count: 4, Object: "team-a/train-0 on n1", Text: text,
		OverBudget: overBudget, Panicked: panicked,
	}}}
}

// prove completes the trial of the serving policy.
func prove(p *Policies) {
	p.Observe(p.Current(), &model.Plan{}, time.Now())
	look()
	time.Sleep(trialTime)
	p.Observe(p.Current(), &model.Plan{}, time.Now())
	look()
}

// predicatesOf returns the predicates in force, by table, with their answer on an error.
func predicatesOf(p *policy.Policy) string {
	var out []string
	for _, r := range p.All {
		if parts.Predicate(r.Site.Name) {
			out = append(out, r.Table+"/"+r.Name+" "+r.OnError)
		}
	}
	return strings.Join(out, ", ")
}

// TestKilledSchedulersAreNoEvidence: however often the scheduler's process ends soon after it began to serve a generation, that generation
// serves. Otherwise a user who can have the process killed for its memory would choose the generation.
func TestKilledSchedulersAreNoEvidence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newServedWorld(t, rightSpec)
		p, kill := w.start("default", "celsius")
		w.put("default", ownedSpec(""))
		w.put("lab", labSpec)
		for range 5 {
			w.take()
			p.Observe(p.Current(), &model.Plan{}, time.Now()) // it ends within its first cycles
			kill()
			p, kill = w.start("default", "celsius")
			w.check("after a death", serving(p), "default@2 Active")
			w.check("after a death", tablesOf(p), "house lab:own")
			w.check("after a death", strings.Contains(strings.Join(w.take(), "\n"), "PolicyFallback"), false)
		}
		kill()
	})
}

// TestFaultyRows checks a generation whose rows panic or exceed their budget in two cycles of its trial. The generation before it serves
// again. An event, the condition Active and the metric state the reason. The predicates of the faulty generation stay in force, and deny on
// an error.
func TestFaultyRows(t *testing.T) {
	for _, test := range []struct{ name, text string }{
		{"panic", "internal error: runtime error: index out of range [3] with length 3"},
		{"budget", "exceeded its budget of 1000000 steps"},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				plan := faulty("house", 4, 0)
				if test.name == "panic" {
					plan = faulty("house", 0, 4)
				}
				w := newServedWorld(t, rightSpec)
				p, stop := w.start("default", "celsius")
				w.put("default", ownedSpec(""))
				p.Observe(p.Current(), plan, time.Now())
				look()
				w.check("one cycle", serving(p), "default@2 Active")
				p.Observe(p.Current(), erred(9), time.Now())
				look()
				w.check("errors that are no faults", serving(p), "default@2 Active")
				w.take()
				p.Observe(p.Current(), plan, time.Now())
				look()
				says := "serving default@1 with the predicates of generation 2, because generation 2 is faulty: row house/dear (scores) failed for " +
					"team-a/train-0 on n1: " + test.text + "; change the policy to have it tried again"
				for _, when := range []string{"two cycles", "after a start"} {
					w.check(when, serving(p), "default@1 Active")
					w.check(when, predicatesOf(p.Current()), "default:house/own-nodes deny")
					w.check(when, tablesOf(p), "gang default:house")
					w.check(when, strings.Contains(w.status("default"), "Active=False RowFaulty: "+says+"\n"), true)
					w.mu.Lock()
					w.check(when, w.instead, "RowFaulty")
					w.mu.Unlock()
					w.check(when, w.take(), []string{"Warning PolicyFallback default: " + says})
					stop()
					p, stop = w.start("default", "celsius")
					p.Observe(p.Current(), &model.Plan{}, time.Now())
				}
				w.put("default", ownedSpec(""))
				w.check("changed", serving(p), "default@3 Active")
				w.check("changed", predicatesOf(p.Current()), "house/own-nodes allow")
				stop()
			})
		})
	}
}

// TestFallbackStops checks the fallback Stop: no pod of the faulty policy's queues is placed, for all queues and for some.
func TestFallbackStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newServedWorld(t, rightSpec)
		p, stop := w.start("default", "celsius")
		defer stop()
		ofLab := strings.NewReplacer(`"queues"`, `"fallback":"Stop","queues"`, `"rollback":{"rowErrors":0},`, "").Replace(labSpec)
		w.put("lab", ofLab)
		for range mostFaulty {
			p.Observe(p.Current(), faulty("lab:own", 1, 0), time.Now())
			look()
		}
		w.check("of some queues", serving(p), "default@1 Active")
		w.check("of some queues", predicatesOf(p.Current()), "lab:stopped/policy-faulty deny")
		w.check("of some queues", strings.Contains(w.status("lab"), "Active=False RowFaulty: default@1 serves its queues and places no pod in "+
			"them, as spec.fallback is Stop, because generation 1 is faulty: row own/dear (scores) failed"), true)
		w.delete("lab")
		w.put("default", ownedSpec("Stop"))
		for range mostFaulty {
			p.Observe(p.Current(), faulty("house", 1, 0), time.Now())
			look()
		}
		w.check("of all queues", serving(p), "default@1 Paused")
		w.check("of all queues", strings.Contains(w.status("default"), "Active=False RowFaulty: serving default@1, paused, as spec.fallback is "+
			"Stop, because generation 2 is faulty"), true)
	})
}

// TestFaultyPart checks that the predicates of a faulty policy apply to pods of its own queues only.
func TestFaultyPart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newServedWorld(t, ownedSpec(""))
		p, stop := w.start("default", "celsius")
		defer stop()
		w.put("lab", strings.Replace(labSpec, `"rollback":{"rowErrors":0},`, "", 1))
		for range mostFaulty {
			p.Observe(p.Current(), faulty("lab:own", 0, 1), time.Now())
			look()
		}
		w.check("tables", tablesOf(p), "house lab:own")
		for _, r := range p.Current().Rules("predicates") {
			part, _, _ := parts.Of(r.Table)
			w.check(r.Table, r.When.Text.Value, `queue.judgedBy == "`+part+`"`)
		}
		for _, r := range p.Current().Rules("scores") {
			w.check(r.Table, r.When.Text.Value, `queue.servedBy == ""`)
		}
		w.check("status", strings.Contains(w.status("lab"), "Active=False RowFaulty: default@1 serves its queues with the predicates of "+
			"generation 1, because generation 1 is faulty"), true)
	})
}

// TestTrialPasses checks that a policy is no longer on trial after two minutes of cycles, also after a restart.
func TestTrialPasses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newServedWorld(t, rightSpec)
		p, stop := w.start("default", "celsius")
		w.put("default", ownedSpec(""))
		time.Sleep(time.Hour)
		w.check("no cycle has ended", p.kept.of(p.serving).Annotations[annotationProved], "")
		refuse := errors.New("busy")
		w.refusing(func(what string) error {
			if what == "update *v1.ControllerRevision" {
				return refuse
			}
			return nil
		})
		for range 20 {
			p.Observe(p.Current(), &model.Plan{}, time.Now())
			look()
			look()
		}
		w.check("what cannot be stored", p.kept.of(p.serving).Annotations[annotationProved], "")
		w.refusing(nil)
		time.Sleep(time.Minute)
		look()
		w.check("stored later", p.kept.of(p.serving).Annotations[annotationProved], "2m0s")
		for range 2 {
			for range 2 * mostFaulty {
				p.Observe(p.Current(), faulty("house", 1, 1), time.Now())
				look()
			}
			w.check("faults after the trial", serving(p), "default@2 Active")
			stop()
			p, stop = w.start("default", "celsius")
		}
		stop()
	})
}
