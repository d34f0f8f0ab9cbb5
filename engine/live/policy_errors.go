package live

import (
	"fmt"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/celsius-scheduler/celsius/crds/policy/v1alpha1"
	"github.com/celsius-scheduler/celsius/engine/model"
)

// tellEvery is the least time between two statuses that differ in nothing but how often rows erred.
const tellEvery = time.Minute

// eventOverBudget: evaluations of a row exceed its budget.
const eventOverBudget = "RowOverBudget"

// rowErrors counts the errors of rows under one generation of a policy. It is for any goroutine.
type rowErrors struct {
	mu         sync.Mutex
	name       string
	generation int64
	rows       []model.RuleError // in the order in which they first erred; Object and Text are of the last
	next       time.Time         // when counts are told of again
}

// add takes in the errors of a cycle, and says whether there is news: a row that erred for the first time, or counts that are due.
func (e *rowErrors) add(plan *model.Plan, now time.Time) (news bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.name != plan.Policy || e.generation != plan.Generation {
		e.name, e.generation, e.rows = plan.Policy, plan.Generation, nil
	}
	for _, x := range plan.Errors {
		known := e.find(&x)
		if known == nil {
			e.rows, news = append(e.rows, x), true
			continue
		}
		news = news || known.OverBudget == 0 && x.OverBudget > 0
		known.Count += x.Count
		known.OverBudget += x.OverBudget
		known.Object, known.Text = x.Object, x.Text
	}
	news = news || len(plan.Errors) > 0 && !now.Before(e.next)
	if news {
		e.next = now.Add(tellEvery)
	}
	return news
}

func (e *rowErrors) find(x *model.RuleError) *model.RuleError {
	for i := range e.rows {
		if r := &e.rows[i]; r.Site == x.Site && r.Table == x.Table && r.Rule == x.Rule {
			return r
		}
	}
	return nil
}

// overBudget gives the rows of a candidate that exceeded their budgets.
func (e *rowErrors) overBudget(c *candidate) []model.RuleError {
	e.mu.Lock()
	defer e.mu.Unlock()
	if c.policy == nil || e.name != c.policy.Name || e.generation != c.policy.Generation {
		return nil
	}
	var out []model.RuleError
	for _, r := range e.rows {
		if r.OverBudget > 0 {
			out = append(out, r)
		}
	}
	return out
}

// Observe takes in a cycle that has ended. It is for the goroutine of cycles.
func (p *policies) Observe(plan *model.Plan, now time.Time) {
	p.Cycled(now)
	if p.erring.add(plan, now) {
		p.poke()
	}
}

// budgetCondition says which rows exceeded their budgets; nil: none did.
func budgetCondition(rows []model.RuleError) *metav1.Condition {
	if len(rows) == 0 {
		return nil
	}
	var said []string
	for _, r := range rows[:min(len(rows), mostMistakes)] {
		said = append(said, fmt.Sprintf("%s/%s (%s) %s, last for %s: %s", r.Table, r.Rule, r.Site, count(r.OverBudget, "time"), r.Object, r.Text))
	}
	message := count(len(rows), "row") + " exceeded the budget since this scheduler serves the generation; what onError says holds for these evaluations: " + strings.Join(said, "; ")
	return &metav1.Condition{Type: v1alpha1.ConditionWithinBudget, Status: metav1.ConditionFalse, Reason: "RowsOverBudget", Message: message}
}

// tellOverBudget has an event tell of each row once for a generation.
func (p *policies) tellOverBudget(u *unstructured.Unstructured, c *candidate, rows []model.RuleError) {
	before := p.saidOf(u.GetUID())
	if before.budgets.generation != c.generation {
		before.budgets = toldRows{generation: c.generation, rows: map[string]bool{}}
	}
	for _, r := range rows {
		key := r.Site + "/" + r.Table + "/" + r.Rule
		if !before.budgets.rows[key] {
			before.budgets.rows[key] = true
			p.o.Events.Eventf(u, corev1.EventTypeWarning, eventOverBudget, "%s", cut(fmt.Sprintf("%s/%s (%s) for %s: %s", r.Table, r.Rule, r.Site, r.Object, r.Text), mostEvent))
		}
	}
}

// toldRows are the rows of a generation that events told of.
type toldRows struct {
	generation int64
	rows       map[string]bool
}
