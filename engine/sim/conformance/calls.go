package conformance

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/session"
)

// scoreSlack is the maximum difference of two scores that count as equal.
const scoreSlack = 1e-6

// answers returns, for each of Volcano's session calls, the function that asks the sites of a policy. An answer has the form of the
// recording.
func answers() map[string]func(*asker, Call) (string, error) {
	return map[string]func(*asker, Call) (string, error){
		"NodeOrderFn":    (*asker).nodeOrder,
		"PredicateFn":    (*asker).predicate,
		"JobEnqueueable": (*asker).jobEnqueueable,
		"TaskOrderFn":    (*asker).taskOrder,
		"JobOrderFn":     (*asker).jobOrder,
		"Allocatable":    (*asker).allocatable,
		"Overused":       (*asker).overused,
	}
}

// victimTasks is the call that asks which pods are evicted without a preemptor. The action shuffle asks the same.
const (
	victimTasks = "VictimTasks"
	shuffle     = "shuffle"
)

// answerable reports whether a site can answer a call.
func answerable(fn string) bool { return fn == victimTasks || answers()[fn] != nil }

// actions returns the case's actions. A case that only asks for victims gets the action that evicts them.
func (c *Case) actions() []string {
	asks := func(call Call) bool { return call.Fn == victimTasks }
	if len(c.Config.Actions) == 0 && c.Mode == "calls" && slices.ContainsFunc(c.Observed.TestCalls, asks) {
		return []string{shuffle}
	}
	return c.Config.Actions
}

// victims compares the victims. If Volcano's runs differ, because it visits the pods of a job in any order, it compares the number of
// victims per job.
func (s *opened) victims(d *differ, call Call) {
	var ours, theirs []string
	for _, e := range s.decide().Evicts {
		ours = append(ours, e.Task)
	}
	if err := json.Unmarshal(call.Result, &theirs); err != nil {
		d.add(call.String(), "", err.Error())
		return
	}
	written := func(tasks []string) string {
		slices.Sort(tasks)
		return strings.Join(tasks, " ")
	}
	if len(s.c.Observed.TestCallVariants) > 1 {
		written = s.perJob
	}
	if a, b := written(ours), written(theirs); a != b {
		d.add(call.String(), a, b)
	}
}

// perJob counts tasks by job.
func (s *opened) perJob(tasks []string) string {
	counts := map[string]int{}
	for _, key := range tasks {
		job := "no job"
		if t := s.state.Tasks[key]; t != nil && t.Job != nil {
			job = t.Job.Key
		}
		counts[job]++
	}
	var parts []string
	for _, job := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, fmt.Sprintf("%d of %s", counts[job], job))
	}
	return strings.Join(parts, ", ")
}

// asker asks the questions of a case in a session.
type asker struct {
	state *model.Cluster
	s     *session.Session
}

func (s *opened) asker() *asker {
	a := &asker{s.state, session.New(s.state, s.policy)}
	a.s.Begin(s.c.Origin.RecordedAt)
	return a
}

// calls asks all recorded questions and returns the answers that differ.
func (s *opened) calls() []string {
	a := s.asker()
	var d differ
	for _, call := range s.c.Observed.TestCalls {
		if call.Fn == victimTasks {
			s.victims(&d, call)
			continue
		}
		ours, err := answers()[call.Fn](a, call)
		if err != nil {
			ours = err.Error()
		}
		if theirs := call.answer(); !sameAnswer(ours, theirs) {
			d.add(call.String(), ours, theirs)
		}
	}
	return d.lines
}

// String returns the question as text.
func (c Call) String() string {
	parts := []string{c.Fn, c.Job, c.Queue, c.Task, c.Node, c.L, c.R}
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), " ")
}

// answer returns Volcano's answer: a score, fit or unfit, or the result.
func (c Call) answer() string {
	switch {
	case c.Score != nil:
		return strconv.FormatFloat(*c.Score, 'f', -1, 64)
	case len(c.Result) > 0:
		return string(c.Result)
	}
	return fits(c.Error == nil)
}

func fits(ok bool) string {
	if ok {
		return "fits"
	}
	return "does not fit"
}

// sameAnswer compares numbers within scoreSlack, and everything else as text.
func sameAnswer(a, b string) bool {
	x, err := strconv.ParseFloat(a, 64)
	y, err2 := strconv.ParseFloat(b, 64)
	if err != nil || err2 != nil {
		return a == b
	}
	return math.Abs(x-y) <= scoreSlack
}

func (a *asker) task(key string) (*model.Task, error) {
	if t := a.state.Tasks[key]; t != nil {
		return t, nil
	}
	return nil, fmt.Errorf("the case has no pod %s", key)
}

func (a *asker) job(key string) (*model.Job, error) {
	if j := a.state.Jobs[key]; j != nil {
		return j, nil
	}
	return nil, fmt.Errorf("the case has no PodGroup %s", key)
}

func (a *asker) spot(c Call) (*model.Task, int32, error) {
	t, err := a.task(c.Task)
	if err != nil {
		return nil, 0, err
	}
	row, ok := a.state.Nodes.Index[c.Node]
	if !ok {
		return nil, 0, fmt.Errorf("the case has no node %s", c.Node)
	}
	return t, row, nil
}

func (a *asker) nodeOrder(c Call) (string, error) {
	t, row, err := a.spot(c)
	if err != nil {
		return "", err
	}
	sum := 0.0
	for _, s := range a.s.Score(t, row) {
		sum += s.Score
	}
	return strconv.FormatFloat(sum, 'f', -1, 64), nil
}

func (a *asker) predicate(c Call) (string, error) {
	t, row, err := a.spot(c)
	if err != nil {
		return "", err
	}
	return fits(a.s.Fits(t, row).Yes), nil
}

func (a *asker) jobEnqueueable(c Call) (string, error) {
	j, err := a.job(c.Job)
	if err != nil {
		return "", err
	}
	return strconv.FormatBool(a.s.Enqueueable(j).Yes), nil
}

func (a *asker) taskOrder(c Call) (string, error) {
	l, err := a.task(c.L)
	if err != nil {
		return "", err
	}
	r, err := a.task(c.R)
	if err != nil {
		return "", err
	}
	tasks := []*model.Task{r, l}
	a.s.SortTasks(tasks)
	return strconv.FormatBool(tasks[0] == l), nil
}

func (a *asker) jobOrder(c Call) (string, error) {
	l, err := a.job(c.L)
	if err != nil {
		return "", err
	}
	r, err := a.job(c.R)
	if err != nil {
		return "", err
	}
	jobs := a.s.Jobs()
	jobs.Put(r)
	jobs.Put(l)
	first, _ := jobs.Take()
	return strconv.FormatBool(first == l), nil
}

func (a *asker) allocatable(c Call) (string, error) {
	t, err := a.task(c.Task)
	if err != nil {
		return "", err
	}
	return strconv.FormatBool(a.s.Allocatable(t).Yes), nil
}

func (a *asker) overused(c Call) (string, error) {
	q := a.state.Queues[c.Queue]
	if q == nil {
		return "", fmt.Errorf("the case has no queue %s", c.Queue)
	}
	return strconv.FormatBool(a.s.Overused(q).Yes), nil
}
