package beside

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/celsius-scheduler/celsius/engine/explain"
	"github.com/celsius-scheduler/celsius/engine/model"
)

// wish is a decision of the policy about one object. It lasts over cycles, until the other scheduler does it or the object is gone.
type wish struct {
	about
	key, job, queue string
	cycle           int       // the last cycle that decided it
	since           time.Time // the first of the uninterrupted cycles up to that one
	choices         []choice  // the recently chosen nodes; "" for the admission of a job
	bind            *model.Bind
	says            string // the reason in the last cycle
	// owed is since when the policy's decision is outstanding, either because the other scheduler has not done it or because it did something
	// else instead. Zero: it is not outstanding.
	owed time.Time
	told *Difference // set when it was owed for longer than the grace period
}

// choice is a node, and when it was last chosen.
type choice struct {
	node string
	at   time.Time
}

// latest returns the node that was last chosen.
func (w *wish) latest() string { return w.choices[len(w.choices)-1].node }

// last returns when it was last decided.
func (w *wish) last() time.Time { return w.choices[len(w.choices)-1].at }

// choose records the decision of a cycle.
func (w *wish) choose(node string, cycle int, now time.Time, grace time.Duration) {
	if w.cycle != cycle-1 || w.since.IsZero() {
		w.since = now
	}
	w.cycle = cycle
	w.choices = slices.DeleteFunc(w.choices, func(c choice) bool { return c.node == node || now.Sub(c.at) > grace })
	w.choices = append(w.choices, choice{node, now})
}

// wish records the decisions of the last cycle, and which earlier decisions it did not repeat.
func (x *Shadow) wish(now time.Time) {
	for i := range x.plan.Admits {
		a := &x.plan.Admits[i]
		w := x.wished(about{Admit, a.Job}, a.Job, a.Job, a.Queue)
		w.choose("", x.cycle, now, x.o.Grace)
		w.says = cmp.Or(a.Reason.String(), "the job reserves no resources, so no row was evaluated")
	}
	for i := range x.plan.Binds {
		b := &x.plan.Binds[i]
		w := x.wished(about{Bind, b.UID}, b.Task, b.Job, b.Queue)
		w.choose(b.Node, x.cycle, now, x.o.Grace)
		w.bind = b
	}
	for i := range x.plan.Evicts {
		e := &x.plan.Evicts[i]
		w := x.wished(about{Evict, e.UID}, e.Task, e.Job, e.Queue)
		w.choose(e.Node, x.cycle, now, x.o.Grace)
		w.says = explain.ForWhom(e)
	}
	var owed []*wish
	for of, w := range x.wishes {
		if !x.there(w) || w.owed.IsZero() && now.Sub(w.last()) > x.o.Grace {
			delete(x.wishes, of)
			continue
		}
		if x.owes(w, now) && (w.verb != Admit || x.witness.lets) {
			owed = append(owed, w)
		}
	}
	slices.SortFunc(owed, func(a, b *wish) int { return cmp.Or(strings.Compare(a.key, b.key), strings.Compare(a.verb, b.verb)) })
	for _, w := range owed {
		w.told = x.ledger.add(&Difference{
			Verb: w.verb, Kind: NotYet, Object: x.title(w.about, w.key), Job: w.job, Queue: w.queue, Since: w.owed, At: now,
			Other:   Side{Text: x.witness.silence(w.about, w.job)},
			Celsius: Side{Node: w.latest(), Text: w.why()},
		})
		x.book(celsius, w.owed, w, w.latest())
	}
	x.strayed = false
}

// owes reports whether a wish is owed for longer than the grace period and was not reported yet. A wish becomes owed when it was decided
// for that long without a break. It also becomes owed when it is no longer decided because the other scheduler did something else.
func (x *Shadow) owes(w *wish, now time.Time) bool {
	decided := w.cycle == x.cycle
	if w.owed.IsZero() && (decided && now.Sub(w.since) > x.o.Grace || w.cycle == x.cycle-1 && x.strayed) {
		w.owed = w.since
	}
	return w.told == nil && !w.owed.IsZero() && now.Sub(w.owed) > x.o.Grace
}

// wished returns the wish for a decision, and creates it if it does not exist.
func (x *Shadow) wished(what about, key, job, queue string) *wish {
	w := x.wishes[what]
	if w == nil {
		w = &wish{about: what, key: key}
		x.wishes[what] = w
	}
	w.job, w.queue = job, queue
	return w
}

// there reports whether a wish can still be carried out.
func (x *Shadow) there(w *wish) bool {
	if w.verb == Admit {
		j := x.cluster.Jobs[w.key]
		return j != nil && j.Phase == model.PhasePending
	}
	t := x.cluster.Tasks[w.key]
	if t == nil || t.UID != w.id {
		return false
	}
	if w.verb == Evict {
		return t.MayGo()
	}
	return t.Waits()
}

func (w *wish) why() string {
	if w.bind != nil {
		return w.bind.Why()
	}
	return w.says
}

// title returns the title of a job or the key of a pod.
func (x *Shadow) title(what about, key string) string {
	if what.verb == Admit {
		if j := x.cluster.Jobs[key]; j != nil {
			return j.Title
		}
	}
	return key
}

// did reports whether the other scheduler's decision is among those of the policy within a grace period, and whether there were any. A nil
// wish has none.
func (w *wish) did(d *deed, cycle int, at time.Time, grace time.Duration) (same, fresh bool) {
	if w == nil {
		return false, false
	}
	if w.cycle == cycle { // it remains valid until the next decision
		same, fresh = w.latest() == d.node, true
	}
	for _, c := range w.choices {
		if at.Sub(c.at) <= grace {
			same, fresh = same || c.node == d.node, true
		}
	}
	return same, fresh
}

// compare compares a decision of the other scheduler with the recent decisions of the policy. It leaves the cluster unchanged.
func (x *Shadow) compare(did *deed, at time.Time) {
	w := x.wishes[did.about]
	delete(x.wishes, did.about)
	if did.verb == Evict && x.drained(did.node) {
		return
	}
	d := &Difference{Verb: did.verb, Object: x.title(did.about, did.key), Job: did.key, At: at, Other: Side{Node: did.node, Text: did.says}}
	t := x.cluster.Tasks[did.key]
	if did.verb != Admit && t != nil {
		d.Job, d.Queue = t.Job.Key, t.Job.QueueName
	} else if j := x.cluster.Jobs[did.key]; j != nil {
		d.Queue = j.QueueName
	}
	same, fresh := w.did(did, x.cycle, at, x.o.Grace)
	switch {
	case w != nil && !w.owed.IsZero() && at.Sub(w.owed) > x.o.Grace:
		d.Kind, d.Since = Later, w.owed
	case same:
		d.Kind = Alike
	case fresh:
		d.Kind = Elsewhere
	default:
		d.Kind = Alone
	}
	x.strayed = x.strayed || !same
	x.stale = x.stale || !same || w.latest() != did.node
	if w != nil {
		d.Celsius = Side{Node: w.latest(), Text: w.why()}
	}
	x.settle(d, w, t)
}

// drained reports whether a node is cordoned. Its pods are evicted by whoever drains it, not by the scheduler.
func (x *Shadow) drained(node string) bool {
	row, there := x.cluster.Nodes.Index[node]
	return there && x.cluster.Nodes.Rows[row].Unschedulable
}

// settle records the other scheduler's decision and the policy's view of it.
func (x *Shadow) settle(d *Difference, w *wish, t *model.Task) {
	switch {
	case d.Kind == Alone && d.Verb == Evict:
		d.Celsius.Text = "stays"
	case d.Kind == Alone:
		d.Celsius.Text = x.whyWaits(d, t)
	case d.Verb == Bind && d.Kind != Alike && d.Celsius.Node != d.Other.Node && t != nil && x.asked < mostAnew:
		x.asked++
		x.against(d, t)
	}
	if w != nil && w.told != nil {
		x.ledger.became(w.told, d)
	} else {
		x.ledger.add(d)
	}
	of := &wish{about: about{verb: d.Verb}, key: d.Object, job: d.Job, queue: d.Queue}
	x.book(other, d.At, of, d.Other.Node)
	switch d.Kind {
	case Alike:
		x.book(celsius, d.At, of, d.Other.Node)
	case Elsewhere:
		x.book(celsius, d.At, of, d.Celsius.Node)
	case Later:
		x.book(celsius, d.Since, of, d.Celsius.Node)
	}
}

// book records for the comparison by jobs when one side carries out a decision.
func (x *Shadow) book(side int, at time.Time, what *wish, node string) {
	if j := x.cluster.Jobs[what.job]; j != nil {
		x.ledger.titles[j.Key] = j.Title
	}
	plan := &model.Plan{Now: at}
	switch what.verb {
	case Bind:
		plan.Binds = []model.Bind{{Task: what.key, Job: what.job, Queue: what.queue, Node: node}}
	case Evict:
		plan.Evicts = []model.Evict{{Task: what.key, Job: what.job, Queue: what.queue, Node: node}}
	}
	x.ledger.jobs.Note(side, plan)
}

// waiting contains the waits of a plan by task and by job.
type waiting struct {
	tasks, jobs map[string]*model.Wait
	kept        map[string]string // by task: the resources promised to it
}

// whyWaits returns why the last plan leaves a pod or a job waiting.
func (x *Shadow) whyWaits(d *Difference, t *model.Task) string {
	s := &x.waiting
	if s.tasks == nil {
		*s = waiting{map[string]*model.Wait{}, map[string]*model.Wait{}, map[string]string{}}
		for i := range x.plan.Waits {
			if w := &x.plan.Waits[i]; w.Task != "" {
				s.tasks[w.Task] = w
			} else {
				s.jobs[w.Job] = w
			}
		}
		for i := range x.plan.Pipelines {
			b := &x.plan.Pipelines[i]
			s.kept[b.Task] = fmt.Sprintf("waits for resources that are being released on node %s: %s", b.Node, b.Reason)
		}
		for i := range x.plan.Holds {
			b := &x.plan.Holds[i]
			s.kept[b.Task] = fmt.Sprintf("a place on node %s is kept while its group waits for the rest: %s", b.Node, b.Reason)
		}
	}
	if t == nil {
		if w := s.jobs[d.Job]; w != nil {
			return "waits: " + w.String()
		}
		return "waits: nothing was decided of it"
	}
	if kept := s.kept[t.Key]; kept != "" {
		return kept
	}
	if w := s.tasks[t.Key]; w != nil {
		return "waits: " + w.String()
	}
	if w := s.jobs[t.Job.Key]; w != nil {
		own := *w
		for mate, fared := range w.Tasks(t.Job) {
			if mate == t {
				own.Fared = fared
			}
		}
		return "waits: " + own.String()
	}
	if t.Job.Orphan {
		return "waits: its PodGroup is not there"
	}
	return "waits: nothing was decided of it"
}
