package whatif

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/celsius-scheduler/celsius/engine"
	"github.com/celsius-scheduler/celsius/engine/explain"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/engine/policy/join"
	"github.com/celsius-scheduler/celsius/engine/session"
	"github.com/celsius-scheduler/celsius/rules/source"
	"github.com/celsius-scheduler/celsius/statemachines/objects"
)

// Values of Outcome.Starts: when a job would start.
const (
	Now   = "Now"   // the next cycle would bind pods of it
	After = "After" // after the pods are gone that would be evicted for it, or that are terminating
	Later = "Later" // the job would wait
	Never = "Never" // a pod of it requests more than any node has
)

// Asker answers questions about a cluster, and keeps caches between questions. The caches save work, but affect no decision. The zero value
// is ready. It has one owner: that of the cluster.
type Asker struct {
	decider engine.Decider
}

// Asked states the user's permissions and the time of a question.
type Asked struct {
	// Session decides in this cluster. It is not changed.
	Session *session.Session
	Now     time.Time
	// Sees is that of explain.Cycle.
	Sees func(namespace string) bool
}

// Answer states what would be decided.
type Answer struct {
	Policy string    `json:"policy"` // NAME@GENERATION
	Time   time.Time `json:"time"`
	// Jobs are the new jobs, in their order.
	Jobs []Outcome `json:"jobs,omitempty"`
	// Others are the jobs for which the next cycle would decide differently than without the change, in key order. Hidden summarizes those in
	// namespaces that the user may not see.
	Others []Difference `json:"others,omitempty"`
	Hidden Hidden       `json:"hidden,omitzero"`
	// Text is the complete answer, for people.
	Text string `json:"text"`
}

// Hidden summarizes jobs of namespaces that the user may not see.
type Hidden struct {
	Jobs    int `json:"jobs,omitempty"`    // number of jobs whose decisions differ
	Evicted int `json:"evicted,omitempty"` // number of their evicted pods
}

// Outcome states what would happen to a new job.
type Outcome struct {
	Job    string `json:"job"`
	Starts string `json:"starts"` // Now, After, Later or Never
	// Binds are its pods that would be bound. Promised are its pods that would get a node from which others leave. Evicts are the evictions
	// for it.
	Binds    []model.Bind  `json:"binds,omitempty"`
	Promised []model.Bind  `json:"promised,omitempty"`
	Evicts   []model.Evict `json:"evicts,omitempty"`
	Waits    []model.Wait  `json:"waits,omitempty"`
}

// mostCycles is how many cycles a question runs: after a cycle admits Jobs, the next one contains their pods.
const mostCycles = 3

// Ask returns what the next cycle would decide after a change. The error names the part of the change that is impossible.
func (a *Asker) Ask(q Asked, change *Change) (*Answer, error) {
	whole := false
	defer func() {
		if !whole { // a panic may have left partial results; the trials undo the changes of the cluster
			*a = Asker{}
		}
	}()
	out, err := a.ask(q, change)
	whole = true
	return out, err
}

func (a *Asker) ask(q Asked, change *Change) (*Answer, error) {
	c, p := q.Session.Cluster(), q.Session.Policy()
	if change.Policy != nil {
		with, issues := join.With(p, change.Policy)
		if with == nil {
			return nil, fmt.Errorf("policy %s cannot be combined with %s: %w", change.Policy.Name, p.Generations(), issues.Err())
		}
		p = with
	}
	a.prepare(q.Session)
	before, err := a.before(q)
	if err != nil {
		return nil, err
	}
	trial := model.Try(c)
	defer trial.End()
	in, err := change.into(c, trial, q.Now)
	if err != nil {
		return nil, err
	}
	decider := &a.decider
	if p != q.Session.Policy() { // nothing is known about its decisions
		decider = &engine.Decider{}
	}
	after, err := in.decide(decider, p, q.Now)
	if err != nil {
		return nil, err
	}
	return answer(q, in, explain.New(decider.Session(), after), before)
}

// prepare drops the session of another cluster or policy, and starts with the settled values of s.
func (a *Asker) prepare(s *session.Session) {
	if side := a.decider.Session(); side == nil || side.Cluster() != s.Cluster() || side.Policy() != s.Policy() {
		a.decider = *engine.NewDecider(session.New(s.Cluster(), s.Policy()), nil)
	}
	session.BeganAs(a.decider.Session(), s)
}

// before returns the plan of the next cycle without the change.
func (a *Asker) before(q Asked) (*model.Plan, error) {
	trial := model.Try(q.Session.Cluster())
	defer trial.End()
	return (&arrival{c: q.Session.Cluster(), trial: trial}).decide(&a.decider, q.Session.Policy(), q.Now)
}

// decide runs a cycle, and another one with the pods of the Jobs that it admitted.
func (a *arrival) decide(d *engine.Decider, p *policy.Policy, now time.Time) (all *model.Plan, err error) {
	for range mostCycles {
		all = d.Decide(a.c, p, now).After(all)
		if made, err := a.follow(); err != nil || !made {
			return all, err
		}
	}
	return all, nil
}

// answer builds the answer, while the cluster still contains the change.
func answer(q Asked, in *arrival, x *explain.Cycle, before *model.Plan) (*Answer, error) {
	x.Sees, x.Controllers = q.Sees, func(job string) string { return in.refused[job].why }
	out := &Answer{Policy: fmt.Sprintf("%s@%d", x.Plan.Policy, x.Plan.Generation), Time: q.Now}
	var text strings.Builder
	sees := func(key string) bool {
		namespace, _, _ := strings.Cut(strings.TrimPrefix(key, "~"), "/")
		return q.Sees == nil || q.Sees(namespace)
	}
	for _, key := range in.jobs {
		o, told, err := outcome(in, x, key, sees)
		if err != nil {
			return nil, err
		}
		out.Jobs = append(out.Jobs, *o)
		text.WriteString(told)
	}
	for _, d := range Differ(before, x.Plan, slices.Concat(in.jobs, in.gone)) {
		if !sees(d.Job) {
			out.Hidden.Jobs++
			out.Hidden.Evicted += d.After.Evicted
			continue
		}
		for _, f := range []*Fate{&d.Before, &d.After} {
			f.For = slices.DeleteFunc(f.For, func(key string) bool { return !sees(key) })
		}
		out.Others = append(out.Others, d)
	}
	text.WriteString(others(out, x.Titles))
	out.Text = text.String()
	return out, nil
}

// outcome states what would happen to a job.
func outcome(in *arrival, x *explain.Cycle, key string, sees func(key string) bool) (o *Outcome, text string, err error) {
	j := in.c.Jobs[key]
	namespace, name, _ := strings.Cut(key, "/")
	told, err := x.Object(explain.Job, namespace, name)
	if err != nil {
		return nil, "", err //nolint:wrapcheck // it names the job
	}
	o = &Outcome{Job: x.Titles.Of(key), Starts: Later, Binds: told.Binds, Waits: told.Waits}
	for i := range x.Plan.Evicts {
		if e := &x.Plan.Evicts[i]; e.ForJob == key {
			if sees(e.Task) {
				o.Evicts = append(o.Evicts, x.Masked(*e))
			} else {
				o.Evicts = append(o.Evicts, model.Evict{Task: "a pod of another namespace", Node: e.Node, Action: e.Action, Rows: e.Rows})
			}
		}
	}
	for i := range x.Plan.Pipelines {
		if b := &x.Plan.Pipelines[i]; b.Job == key {
			o.Promised = append(o.Promised, *b)
		}
	}
	head, err := o.starts(in, x, j)
	if err != nil {
		return nil, "", err
	}
	if o.Starts == Later || o.Starts == Never {
		return o, source.Line(head) + "\n" + strings.TrimPrefix(told.Text, "job "+o.Job+"\n"), nil
	}
	refused, line := in.refused[o.Job], ""
	if refused.pods > 0 {
		line = "  the API server refuses " + explain.Count(refused.pods, "pod") + ": " + source.Line(refused.why) + "\n"
	}
	return o, fmt.Sprintf("%s: %s of %d\n%s%s%s",
		source.Line(head), explain.Count(len(o.Binds)+len(o.Promised), "pod"), len(j.Tasks)+refused.pods,
		line, places(slices.Concat(o.Binds, o.Promised)), victims(o.Evicts)), nil
}

// starts finds when a job would start, and returns a sentence about it.
func (o *Outcome) starts(in *arrival, x *explain.Cycle, j *model.Job) (head string, err error) {
	head = "job " + o.Job + " "
	switch {
	case len(o.Binds) > 0:
		o.Starts = Now
		return head + "would start now", nil
	case len(o.Promised) > 0 && len(o.Evicts) > 0:
		o.Starts = After
		return head + "would start once " + explain.Count(len(o.Evicts), "pod") + " evicted for it " + isAre(len(o.Evicts)) + " gone", nil
	case len(o.Promised) > 0:
		o.Starts = After
		return head + "would start once pods that leave already are gone", nil
	}
	never, err := in.never(x.Session, j)
	switch {
	case err != nil:
		return "", err
	case never != "":
		o.Starts = Never
		return head + "could never start: " + never, nil
	case x.NeverStarts(j) != "": // the cause below states why
		o.Starts = Never
		return head + "could never start", nil
	}
	return head + "would wait", nil
}

// never states that a pod requests more than any node has, if that keeps its job from starting; "" for any other job. Call it last, because
// it adds the pods of a Job that was not admitted.
func (a *arrival) never(s *session.Session, j *model.Job) (string, error) {
	for _, job := range a.open {
		if group := objects.GroupName(job); model.Key(job.Namespace, group) == j.Key {
			if err := errors.Join(a.podsOf(job, group), a.add()); err != nil {
				return "", err
			}
		}
	}
	roles := s.KeptBackBy(j)
	for _, t := range j.Tasks {
		a.c.Breathe()
		if !slices.Contains(roles, t.Role) {
			continue
		}
		if why := s.NeverFits(t); why != "" {
			return "its pod " + t.Key + ": " + why, nil
		}
	}
	return "", nil
}

// mostRows is the maximum number of nodes, and of evicted pods, in a text.
const mostRows = 20

// places lists for each node which pods would be placed there.
func places(binds []model.Bind) string {
	on := map[string][]string{}
	for i := range binds {
		on[binds[i].Node] = append(on[binds[i].Node], binds[i].Task)
	}
	rows := [][]string{{"NODE", "PODS"}}
	nodes := slices.Sorted(maps.Keys(on))
	for i, node := range nodes {
		if i == mostRows {
			rows = append(rows, []string{fmt.Sprintf("and %s more", explain.Count(len(nodes)-i, "node"))})
			break
		}
		slices.SortFunc(on[node], byNumber)
		var names []string
		self := func(name *string) string { return *name }
		for _, group := range explain.Fold(on[node], self, func(_, _ *string) bool { return true }, func(*string) bool { return false }) {
			names = append(names, explain.Range(group[0], group[len(group)-1]))
		}
		rows = append(rows, []string{node, strings.Join(names, ", ")})
	}
	return explain.Columns("  ", rows)
}

// byNumber compares names of pods. Names that differ only in the number at their ends are compared by that number.
func byNumber(a, b string) int {
	inA, numberA, _ := explain.Numbered(a)
	inB, numberB, _ := explain.Numbered(b)
	return cmp.Or(strings.Compare(inA, inB), numberA-numberB, strings.Compare(a, b))
}

// victims lists the pods that would be evicted, and the rows that permit it.
func victims(evicts []model.Evict) string {
	if len(evicts) == 0 {
		return ""
	}
	rows := [][]string{{"EVICTED", "QUEUE", "NODE", "AS THESE ROWS PERMIT"}}
	for i := range evicts {
		e := &evicts[i]
		if i == mostRows {
			rows = append(rows, []string{fmt.Sprintf("and %s more", explain.Count(len(evicts)-i, "pod"))})
			break
		}
		rows = append(rows, []string{e.Task, e.Queue, e.Node, strings.Join(e.Rows, ", ")})
	}
	return explain.Columns("  ", rows)
}

func isAre(n int) string {
	if n == 1 {
		return "is"
	}
	return "are"
}

// mostOthers is the maximum number of other jobs in a text.
const mostOthers = 30

// others lists the jobs whose decisions would differ.
func others(a *Answer, titles explain.Titles) string {
	if len(a.Others) == 0 && a.Hidden.Jobs == 0 {
		return "nothing else would be decided otherwise\n"
	}
	var out strings.Builder
	out.WriteString("what else would be decided otherwise\n")
	if len(a.Others) > 0 {
		rows := [][]string{{"JOB", "QUEUE", "AS THINGS ARE", "THEN"}}
		for i := range a.Others {
			d := &a.Others[i]
			if i == mostOthers {
				rows = append(rows, []string{fmt.Sprintf("and %d more", len(a.Others)-i)})
				break
			}
			rows = append(rows, []string{titles.Of(d.Job), d.Queue, d.Before.text(&d.After, titles), d.After.text(&d.Before, titles)})
		}
		out.WriteString(explain.Columns("  ", rows))
	}
	if h := a.Hidden; h.Jobs > 0 {
		text := "  " + explain.Count(h.Jobs, "job") + " of other namespaces"
		if h.Evicted > 0 {
			text += ", of which " + explain.Count(h.Evicted, "pod") + " would be evicted"
		}
		out.WriteString(text + "\n")
	}
	return out.String()
}
