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
	"github.com/celsius-scheduler/celsius/engine/policy/parts"
	"github.com/celsius-scheduler/celsius/engine/policy/rollback"
)

const (
	// tellEvery is the least time between two statuses that differ in nothing but how often rows erred.
	tellEvery = time.Minute
	// mostRows is how many rows a status names that erred, mostText how many characters of what each erred for, and of why.
	mostRows = 50
	mostText = 300
)

// eventErred: a row erred for the first time under a generation.
const eventErred = "RowErred"

// rowErrors counts the errors of rows under one generation of a policy. It is for any goroutine.
type rowErrors struct {
	mu         sync.Mutex
	name       string
	generation int64
	rows       []v1alpha1.RuleErrors // in the order in which they first erred
	shown      []v1alpha1.RuleErrors // rows as they were when there was news last: what is written does not move with each cycle
	next       time.Time             // when counts are news again
	told       int                   // how many rows events told of
}

// add takes in the errors of a cycle, and says whether there is news: a row that erred for the first time, or counts that are due.
func (e *rowErrors) add(plan *model.Plan, now time.Time) (news bool) {
	if len(plan.Errors) == 0 {
		return false
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.name != plan.Policy || e.generation != plan.Generation {
		e.name, e.generation, e.rows, e.shown, e.told, e.next = plan.Policy, plan.Generation, nil, nil, 0, time.Time{}
	}
	known := len(e.rows)
	e.rows = AddErrors(e.rows, plan, now)
	news = len(e.rows) > known || !now.Before(e.next)
	if news {
		e.shown, e.next = slices.Clone(e.rows), now.Add(tellEvery)
	}
	return news
}

// AddErrors adds the errors of a cycle to those of before, row by row.
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

// forget drops what is known: another policy serves, perhaps one of the same name and generation.
func (e *rowErrors) forget() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.name, e.generation, e.rows, e.shown, e.told, e.next = "", 0, nil, nil, 0, time.Time{}
}

// of gives the rows that erred under a candidate, and those of them that no event told of until now.
func (e *rowErrors) of(c *candidate) (all, fresh []v1alpha1.RuleErrors) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.name != c.name || e.generation != c.generation {
		return nil, nil
	}
	told := e.told
	e.told = len(e.shown)
	return e.shown, e.shown[told:]
}

// rowsOf are the rows of a candidate among those that erred, by the names that they have in its own text.
func rowsOf(rows []v1alpha1.RuleErrors, c *candidate) (out []v1alpha1.RuleErrors) {
	for i := range rows {
		r := rows[i]
		part, table, ofPart := parts.Of(r.Table)
		if ofPart != c.ofQueues || ofPart && part != c.name {
			continue
		}
		r.Table = table
		out = append(out, r)
	}
	return out
}

// total are the errors of a candidate until now, beside or in the place of what serves.
func (e *rowErrors) total(c, serving *candidate) (out rollback.RowErrors) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if serving == nil || e.name != serving.name || e.generation != serving.generation {
		return out
	}
	for i, r := range rowsOf(e.rows, c) {
		out.Count += r.Count
		if i == 0 {
			out.First = fmt.Sprintf("%s erred for %s: %s", rowOf(&r), r.LastObject, r.LastError)
		}
	}
	return out
}

// Observe takes in a cycle that has ended. It is for the goroutine of cycles.
func (p *Policies) Observe(plan *model.Plan, now time.Time) {
	p.Cycled(now)
	if p.erring.add(plan, now) {
		p.poke()
	}
}

// tellErred has an event tell of rows.
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

// erringCondition says which rows erred of those that schedulers serve of a generation; nil: none did.
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
