package explain

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/report"
	"github.com/celsius-scheduler/celsius/rules/source"
)

// mostBefore is how many of the jobs that come before another are named.
const mostBefore = 5

// job explains a job, and each pod of it that something was decided about.
func (x *Cycle) job(j *model.Job) string {
	var out strings.Builder
	out.WriteString(x.head(j))
	type pod struct{ name, why string }
	var pods []pod // what is decided alike is told once
	for _, t := range j.Tasks {
		if why := x.task(t) + fieldsLeftOut(x, "Pod", t.Key); why != "" {
			pods = append(pods, pod{t.Key, why})
		}
	}
	name, same := func(p *pod) string { return p.name }, func(a, b *pod) bool { return a.why == b.why }
	for _, group := range Fold(pods, name, same, func(*pod) bool { return false }) {
		out.WriteString("  pod " + Range(group[0].name, group[len(group)-1].name) + "\n" + indented(group[0].why))
	}
	return out.String()
}

// head is a job without its pods.
func (x *Cycle) head(j *model.Job) string {
	var out strings.Builder
	fmt.Fprintf(&out, "job %s\n", x.Titles.Of(j.Key))
	out.WriteString(Columns("  ", x.facts(j)))
	for _, a := range x.Plan.Admits {
		if a.Job == j.Key {
			why := cmp.Or(a.Reason.String(), "it reserves nothing, so nobody was asked")
			fmt.Fprintf(&out, "  admitted: %s\n", why)
		}
	}
	if w := x.decisions().waits[j.Key]; w != nil {
		out.WriteString(x.waiting("  ", w, j, nil))
	}
	return out.String()
}

// facts are what is known of a job without asking why.
func (x *Cycle) facts(j *model.Job) [][]string {
	queue := j.QueueName
	if j.Queue == nil {
		queue += ", which is not there"
		if why := x.cluster.Past.Unread.Why("Queue", j.QueueName); why != "" {
			queue = j.QueueName + ": " + cannotRead(why)
		}
	}
	var rows [][]string
	if why := x.rootCause(j); why != "" {
		rows = append(rows, []string{"cause", why})
	}
	rows = append(rows, [][]string{
		{"queue", queue + x.place(j)},
		{"phase", j.Phase},
		{"pods", fmt.Sprintf("%s; %d must start together", StatusCounts(j), j.MinMember)},
	}...)
	if age := x.Plan.Now.Sub(j.CreatedAt); age >= time.Second && j.Phase != model.PhaseCompleted {
		rows = append(rows, []string{"age", age.Truncate(time.Second).String()})
	}
	return rows
}

// rootCause states why a job that waits cannot start as things are, whatever other jobs do, or to which nodes its volumes restrict it. It
// is "" where neither applies, or the job does not wait.
func (x *Cycle) rootCause(j *model.Job) string {
	why := cmp.Or(controllersCause(x, x.Titles.Of(j.Key)), x.foreignCause(j), leftOutCause(x, j))
	if why != "" || !report.MayWait(j) || j.Orphan {
		return why
	}
	return cmp.Or(x.Session.NeverStarts(j), x.queueCause(j), x.volumeCause(j))
}

// queueCause states which queue makes a job wait: its own queue, which is closed or full, or a queue above it. It is "" if a pod has
// another reason, or if the reason of the job as a whole states the cause already.
func (x *Cycle) queueCause(j *model.Job) string {
	first := x.queueLimit(j)
	admitted := j.Phase != model.PhasePending
	if !admitted {
		first = x.decisions().waits[j.Key]
	}
	if first == nil || j.Queue == nil {
		return ""
	}
	if !j.Queue.Open && x.readsOpen(first.Reason) {
		return x.closedCause(j)
	}
	if why := capabilityCause(x, j, first); why != "" {
		return why
	}
	for _, above := range x.above(j.Queue) {
		if _, rest, ok := strings.Cut(first.Reason.Text, "queue "+above+" lacks "); ok {
			return fmt.Sprintf("queue %s, above the job's queue %s, is full: it lacks %s", above, j.QueueName, rest)
		}
	}
	if !admitted {
		return ""
	}
	if above := limitsAbove(x, j, first); above != "" {
		return fmt.Sprintf("queue %s, above the job's queue %s, limits it: %s", above, j.QueueName, first.Reason.Text)
	}
	return first.Reason.Text
}

// limitsAbove returns the queue above a job's queue that limits the resource that the job's queue lacks. It returns "" if the job's queue
// has a capability for that resource itself, or if no queue above it has one.
func limitsAbove(x *Cycle, j *model.Job, first *model.Wait) (name string) {
	_, lacks, ok := strings.Cut(first.Reason.Text, "queue "+j.QueueName+" lacks ")
	resource, _, _ := strings.Cut(lacks, " ")
	dim, known := x.cluster.Dims.Find(resource)
	if !ok || !known || j.Queue.Capability.Has(dim) {
		return ""
	}
	least := 0.0
	for _, above := range x.above(j.Queue) {
		if most := x.cluster.Queues[above].Capability; most.Has(dim) && (name == "" || most.Get(dim) < least) {
			name, least = above, most.Get(dim)
		}
	}
	return name
}

// capabilityCause states that a job that waits for a limit of a queue could not start even if its queue, or a queue above it, were empty.
func capabilityCause(x *Cycle, j *model.Job, first *model.Wait) string {
	if _, limited := report.Own(first); !limited && !strings.Contains(first.Reason.Text, "queue "+j.QueueName+" lacks ") {
		return ""
	}
	for _, name := range append([]string{j.QueueName}, x.above(j.Queue)...) {
		if q := x.cluster.Queues[name]; q != nil {
			if why := report.QueueNeverHolds(x.cluster, j, q); why != "" {
				return why
			}
		}
	}
	return ""
}

// closedCause returns how a user opens the closed queue of a job. The queues above it must be opened first, beginning with the highest
// one.
func (x *Cycle) closedCause(j *model.Job) string {
	command := func(queue string) string { return "celsius queue operate " + queue + " --action open" }
	why := fmt.Sprintf("queue %s is %s and starts no jobs", j.QueueName, j.Queue.State)
	var closed []string // the highest first
	for _, above := range x.above(j.Queue) {
		if q := x.cluster.Queues[above]; !q.Open {
			closed = slices.Insert(closed, 0, above)
		}
	}
	if len(closed) == 0 {
		return fmt.Sprintf("%s; open it (%s), or use another queue", why, command(j.QueueName))
	}
	top := closed[0]
	why += fmt.Sprintf(", and queue %s above it is %s; open %s (%s)", top, x.cluster.Queues[top].State, top, command(top))
	for _, next := range append(closed[1:], j.QueueName) {
		why += fmt.Sprintf(", then %s if it stays closed (%s)", next, command(next))
	}
	return why + ", or use another queue"
}

// queueLimit returns the first wait of a job's pods for a limit of a queue. It is nil if a pod waits for anything else, or no pod waits.
func (x *Cycle) queueLimit(j *model.Job) (first *model.Wait) {
	for _, t := range j.Tasks {
		of := x.decisions().of[t.Key]
		if of == nil || t.Status != model.Pending {
			continue
		}
		for _, w := range of.waits {
			if w.Fared.Node != "" {
				continue // it found a node: it waits because other pods of its gang do
			}
			own, limited := report.Own(w)
			if own && !limited {
				return nil
			}
			if own && first == nil {
				first = w
			}
		}
	}
	return first
}

// readsOpen reports whether the row of a reason depends on whether the queue is open.
func (x *Cycle) readsOpen(why model.Reason) bool {
	r := ruleOf(x.Session.Policy(), why)
	if r == nil {
		return false
	}
	for i := range r.Reads.All {
		if r.Reads.All[i].String() == "queue.open" {
			return true
		}
	}
	return false
}

// above lists the queues above a queue, the nearest first.
func (x *Cycle) above(q *model.Queue) (names []string) {
	for parent := x.cluster.Queues[q.Parent]; parent != nil && !slices.Contains(names, parent.Name); parent = x.cluster.Queues[parent.Parent] {
		names = append(names, parent.Name)
	}
	return names
}

// foreignCause states that waiting pods of a job name another scheduler, and which of ours was probably meant. It is "" for a job that has
// enough pods without them.
func (x *Cycle) foreignCause(j *model.Job) string {
	if j.TaskCount() >= max(1, j.MinMember) {
		return ""
	}
	ours := x.cluster.SchedulerNames
	pods := model.ForeignPods(x.cluster, j)
	if len(pods) == 0 {
		return ""
	}
	name, meant := pods[0].Object.Spec.SchedulerName, ""
	if near := source.Nearest(name, ours); near != "" {
		meant = " (did you mean " + near + "?)"
	}
	which, them := "pod "+pods[0].Key+" names", "it"
	if len(pods) > 1 {
		which, them = fmt.Sprintf("%s, such as %s, name", Count(len(pods), "pod"), pods[0].Key), "them"
	}
	return fmt.Sprintf("%s scheduler %q%s, so this scheduler, which serves %s, does not place %s; correct schedulerName in the job and its "+
		"pod templates", which, name, meant, strings.Join(ours, ", "), them)
}

// volumeCause states for the first waiting pod that has volumes in one place how many nodes reach these. It is "" where all do.
func (x *Cycle) volumeCause(j *model.Job) string {
	storage, err := x.Session.Storage()
	if err != nil {
		return ""
	}
	for _, t := range j.Tasks {
		places := ""
		if t.HasVolumes && t.Waits() && !t.Foreign {
			places = storage.Places(t)
		}
		if places == "" {
			continue
		}
		all, reached := x.cluster.Nodes.ByOrder(), 0
		for _, row := range all {
			fits, err1 := storage.Fits(t, row)
			inZone, err2 := storage.ZoneFits(t, row)
			if fits && inZone && err1 == nil && err2 == nil {
				reached++
			}
		}
		switch {
		case reached == 0:
			return fmt.Sprintf("no node reaches the volumes of pod %s: %s; add a node there, or use another claim", t.Key, places)
		case reached < len(all):
			return fmt.Sprintf("%s, so %d of %s can run pod %s; free resources or add a node there, or use another claim", places, reached,
				Count(len(all), "node"), t.Key)
		}
	}
	return ""
}

// place is a job's place in its queue's order, and which of those that wait, too, come before it; "" where it was not asked.
func (x *Cycle) place(j *model.Job) string {
	places := map[string]int{}
	for i := range x.Plan.Waits {
		if w := &x.Plan.Waits[i]; w.Queue == j.QueueName && w.Place > 0 {
			places[w.Job] = w.Place
		}
	}
	own := places[j.Key]
	if own == 0 {
		return ""
	}
	var before []string
	for key, place := range places {
		if place < own {
			before = append(before, key)
		}
	}
	slices.SortFunc(before, func(a, b string) int { return cmp.Or(places[a]-places[b], strings.Compare(a, b)) })
	text := fmt.Sprintf(", place %d in its order", own)
	if len(before) > 0 {
		text += ", after " + x.names(before, mostBefore)
	}
	return text
}

// pod explains a pod: what was decided about it, or else where it is, and of one that waits its job.
func (x *Cycle) pod(t *model.Task) string {
	text := x.task(t)
	if text == "" {
		text = x.past(t)
	}
	if text == "" {
		text = "  " + x.standing(t) + "\n"
	}
	if of := x.decisions().of[t.Key]; t.Status == model.Pending && (of == nil || len(of.waits) == 0) {
		text += indented(x.head(t.Job))
	}
	return "pod " + t.Key + "\n" + text + fieldsLeftOut(x, "Pod", t.Key)
}

// task is what the cycle decided about a pod; "" where that is nothing.
func (x *Cycle) task(t *model.Task) string {
	var out strings.Builder
	if of := x.decisions().of[t.Key]; of != nil {
		for _, group := range []struct {
			verb  string
			binds []*model.Bind
		}{{"bound to", of.bound}, {"promised", of.promised}, {"held on", of.held}} {
			for _, b := range group.binds {
				out.WriteString(binding(group.verb, b))
			}
		}
		for _, w := range of.waits {
			out.WriteString(x.waiting("  ", w, t.Job, t))
		}
		for _, e := range of.evicts {
			out.WriteString(x.eviction(e) + certificate(x, e))
		}
	}
	for _, e := range x.decisions().goes[t.Key] {
		fmt.Fprintf(&out, "  %s goes for it, as %s\n", x.podName(e.Task), permit(e.Rows))
	}
	return out.String()
}

// past is what earlier cycles decided about a pod; "": that is not known.
func (x *Cycle) past(t *model.Task) string {
	if x.Past == nil {
		return ""
	}
	var out strings.Builder
	if e := x.Past.evicts.of(t.Key); e != nil && e.What.UID == t.UID {
		out.WriteString(x.eviction(&e.What) + decidedAt(e))
	} else if b := x.Past.binds.of(t.Key); b != nil && b.What.UID == t.UID {
		out.WriteString("  " + x.standing(t) + "\n" + binding("bound to", &b.What) + decidedAt(b))
	}
	return out.String()
}

// decidedAt says when, and by which policy.
func decidedAt[T any](d *Decided[T]) string {
	return fmt.Sprintf("  decided at %s by policy %s\n", d.At.UTC().Format(time.RFC3339), d.Policy)
}

// podName is that of a pod, if who asks may know it.
func (x *Cycle) podName(key string) string {
	if key == "" || x.sees(key) {
		return key
	}
	return "a pod of another namespace"
}

// Masked is an eviction without the names of those in other namespaces for whom it is.
func (x *Cycle) Masked(e model.Evict) model.Evict {
	for _, pod := range []string{e.For, e.NeededFor} {
		if !x.sees(pod) {
			e.Needed.Text = strings.ReplaceAll(e.Needed.Text, pod, x.podName(pod))
		}
	}
	if !x.sees(e.ForJob) {
		e.ForJob = ""
	}
	e.For, e.NeededFor = x.podName(e.For), x.podName(e.NeededFor)
	return e
}

// eviction returns for which pod a pod is evicted, by which rows, and why.
func (x *Cycle) eviction(v *model.Evict) string {
	named := x.Masked(*v)
	return fmt.Sprintf("  evicted from %s %s\n", v.Node, BecauseOf(&named, "\n  "))
}

// standing is where a pod is that nothing was decided about.
func (x *Cycle) standing(t *model.Task) string {
	switch {
	case t.Foreign:
		return fmt.Sprintf("%s, another scheduler's", t.Status)
	case t.Node == model.NoNode && t.Status == model.Pending:
		return "Pending, as its job"
	case t.Node == model.NoNode:
		return t.Status.String()
	}
	return fmt.Sprintf("%s on %s", t.Status, x.cluster.Nodes.Rows[t.Node].Name)
}

// binding is where a pod went, what else there was, and the score by row.
func binding(verb string, b *model.Bind) string {
	text := fmt.Sprintf("  %s %s", verb, Place(b))
	if b.Action != "" {
		text += " in " + b.Action
	}
	if why := b.Reason.String(); why != "" {
		text += ": " + why
	}
	text += "\n  of " + Count(b.Feasible, "node")
	if b.RunnerUp != "" {
		text += fmt.Sprintf(", before %s with %s", b.RunnerUp, model.Score(b.RunnerUpScore))
	}
	text += "\n"
	if len(b.Scores) == 0 {
		return text
	}
	rows := [][]string{{"SCORE", "ROW"}}
	for _, s := range b.Scores {
		rows = append(rows, []string{model.Score(s.Score), model.RowName(s.Table, s.Rule)})
	}
	return text + Columns("    ", append(rows, []string{model.Score(b.Score), "in all"}))
}
