package serving

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/celsius-scheduler/celsius/crds/policy/v1alpha1"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/engine/policy/parts"
	"github.com/celsius-scheduler/celsius/engine/policy/rollback"
)

const (
	// tellEvery is the minimum time between two statuses that differ only in the error counts of rows.
	tellEvery = time.Minute
	// mostRows is the maximum number of failed rows in a status. mostText is the maximum length of their texts, in characters.
	mostRows = 50
	mostText = 300
)

// eventErred means that a row failed for the first time in a generation.
const eventErred = "RowErred"

// rowErrors counts the errors of rows for each serving candidate since it began to serve. Any goroutine may use it.
type rowErrors struct {
	mu sync.Mutex
	// by contains the choices that may have decided cycles which have not ended, oldest first.
	by []choice
	of map[*candidate]*tally
}

// tally counts the failed rows of a candidate, by their names in its own text.
type tally struct {
	rows  []v1alpha1.RuleErrors // failed rows in the order of their first error
	shown []v1alpha1.RuleErrors // rows at the last report; so the written status does not change with each cycle
	next  time.Time             // when changed counts must be reported again
	told  int                   // the number of rows that events have reported
	faults
}

// serve starts counting the errors of a new choice, and drops the counts of candidates that no longer serve.
func (e *rowErrors) serve(c choice) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.by = append(slices.DeleteFunc(e.by, func(x choice) bool { return x.policy == c.policy }), c)
	of := map[*candidate]*tally{}
	for _, x := range c.all() {
		if of[x] = e.of[x]; of[x] == nil {
			of[x] = &tally{}
		}
	}
	e.of = of
}

// add collects the errors of a cycle. It reports whether there is news: a row that failed for the first time, or counts that must be
// published. Errors of a policy that decided the cycle and no longer serves are dropped.
func (e *rowErrors) add(by *policy.Policy, plan *model.Plan, now time.Time) (news bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	at := slices.IndexFunc(e.by, func(x choice) bool { return x.policy == by })
	if at < 0 {
		return false
	}
	e.by = e.by[at:]
	own := map[string][]model.RuleError{} // by policy with its own queues; "": the policy for all other queues
	for i := range plan.Errors {
		x := plan.Errors[i]
		var part string
		part, x.Table, _ = parts.Of(x.Table)
		own[part] = append(own[part], x)
	}
	for _, c := range e.by[0].all() {
		part := ""
		if c != e.by[0].serving {
			part = c.name
		}
		if t := e.of[c]; t != nil && len(own[part]) > 0 && t.add(own[part], now) {
			news = true
		}
	}
	return news
}

func (t *tally) add(errors []model.RuleError, now time.Time) (news bool) {
	known := len(t.rows)
	faulty := t.faults.add(errors) && t.cycles <= mostFaulty
	t.rows = AddErrors(t.rows, &model.Plan{Errors: errors}, now)
	news = len(t.rows) > known || !now.Before(t.next)
	if news {
		t.shown, t.next = slices.Clone(t.rows), now.Add(tellEvery)
	}
	return news || faulty
}

// faults returns the faults of a serving candidate.
func (e *rowErrors) faults(c *candidate) faults {
	e.mu.Lock()
	defer e.mu.Unlock()
	if t := e.of[c]; t != nil {
		return t.faults
	}
	return faults{}
}

// AddErrors adds the errors of a cycle to earlier errors, row by row.
func AddErrors(rows []v1alpha1.RuleErrors, plan *model.Plan, now time.Time) []v1alpha1.RuleErrors {
	for i := range plan.Errors {
		x := &plan.Errors[i]
		at := slices.IndexFunc(rows, func(r v1alpha1.RuleErrors) bool { return r.Site == x.Site && r.Table == x.Table && r.Rule == x.Rule })
		if at < 0 {
			at = len(rows)
			rows = append(rows, v1alpha1.RuleErrors{Site: x.Site, Table: x.Table, Rule: x.Rule})
		}
		r := &rows[at]
		r.Count += int64(x.Count)
		r.OverBudget += int64(x.OverBudget)
		r.LastObject, r.LastError, r.LastTime = cut(x.Object, mostText), cut(x.Text, mostText), metav1.NewTime(now).Rfc3339Copy()
	}
	return rows
}

// rows returns the failed rows of a serving candidate, and those of them that no event has reported.
func (e *rowErrors) rows(c *candidate) (all, fresh []v1alpha1.RuleErrors) {
	e.mu.Lock()
	defer e.mu.Unlock()
	t := e.of[c]
	if t == nil {
		return nil, nil
	}
	told := t.told
	t.told = len(t.shown)
	return t.shown, t.shown[told:]
}

// total returns the number of errors of a serving candidate.
func (e *rowErrors) total(c *candidate) (out rollback.RowErrors) {
	e.mu.Lock()
	defer e.mu.Unlock()
	t := e.of[c]
	if t == nil {
		return out
	}
	for i := range t.rows {
		r := &t.rows[i]
		out.Count += r.Count
		if i == 0 {
			out.First = fmt.Sprintf("%s erred for %s: %s", rowOf(r), r.LastObject, r.LastError)
		}
	}
	return out
}

// Observe takes in a cycle that has ended, and the policy that decided it. Only the goroutine of cycles may call it.
func (p *Policies) Observe(by *policy.Policy, plan *model.Plan, now time.Time) {
	first := p.lastCycle.Load() == 0
	p.Cycled(now)
	if p.erring.add(by, plan, now) || first {
		p.poke()
	}
}

// tellErred records an event for each row.
func (p *Policies) tellErred(u *unstructured.Unstructured, rows []v1alpha1.RuleErrors) {
	for i := range rows {
		r := &rows[i]
		p.o.Events.Eventf(u, corev1.EventTypeWarning, eventErred, "%s",
			cut(fmt.Sprintf("%s erred for %s: %s", rowOf(r), r.LastObject, r.LastError), mostEvent))
	}
}

func rowOf(r *v1alpha1.RuleErrors) string {
	return fmt.Sprintf("%s (%s)", model.RowName(r.Table, r.Rule), r.Site)
}

// erringCondition returns a condition that lists the failed rows of a generation in all schedulers that serve it; nil: no row failed.
func erringCondition(schedulers []v1alpha1.SchedulerStatus, generation int64) *metav1.Condition {
	var rows []string
	for _, s := range schedulers {
		for i := range s.RuleErrors {
			if name := rowOf(&s.RuleErrors[i]); s.Generation == generation && !slices.Contains(rows, name) {
				rows = append(rows, name)
			}
		}
	}
	if len(rows) == 0 {
		return nil
	}
	slices.Sort(rows)
	message := fmt.Sprintf("%s erred, and what onError says held in place of what they would have said: %s", count(len(rows), "row"),
		strings.Join(rows[:min(len(rows), mostMistakes)], ", "))
	if more := len(rows) - mostMistakes; more > 0 {
		message += fmt.Sprintf(", and %d more", more)
	}
	return &metav1.Condition{
		Type: v1alpha1.ConditionErring, Status: metav1.ConditionTrue, Reason: "RowsErred",
		Message: message + "; status.schedulers has counts, and the last errors",
	}
}
