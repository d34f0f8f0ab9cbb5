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

// mostBefore is the maximum number of jobs before another job that are named.
const mostBefore = 5

// job explains a job, and each of its pods with a decision.
func (x *Cycle) job(j *model.Job) string {
	var out strings.Builder
	out.WriteString(x.head(j))
	type pod struct{ name, why string }
	var pods []pod // equal decisions are reported once
	for _, t := range j.Tasks {
		if why := x.task(t) + fieldsLeftOut(x, "Pod", t.Key); why != "" {
			pods = append(pods, pod{t.Key, why})
		}
	}
	name, same := func(p *pod) string { return p.name }, func(a, b *pod) bool { return a.why == b.why }
	for _, group := range Fold(pods, name, same, func(*pod) bool { return false }) {
		printf(&out, "  pod %s\n", Range(group[0].name, group[len(group)-1].name))
		out.WriteString(indented(group[0].why))
	}
	return out.String()
}

// head explains a job without its pods.
func (x *Cycle) head(j *model.Job) string {
	var out strings.Builder
	printf(&out, "job %s\n", x.Titles.Of(j.Key))
	out.WriteString(Columns("  ", x.facts(j)))
	for _, a := range x.Plan.Admits {
		if a.Job == j.Key {
			why := cmp.Or(a.Reason.String(), "the job reserves no resources, so no row was evaluated")
			printf(&out, "  admitted: %s\n", why)
		}
	}
	if w := x.decisions().waits[j.Key]; w != nil {
		out.WriteString(x.waiting("  ", w, j, nil))
	}
	return out.String()
}

// facts returns what is known about a job without any evaluation.
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

// rootCause states why a waiting job cannot start in the present state, whatever other jobs do, or to which nodes its volumes restrict it.
// It is "" if neither applies, or the job does not wait.
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
	causes := report.Causes{Cluster: x.cluster, Answers: x.Session}
	return causes.OfQueue(j, x.firstLimit(j))
}

// NeverStarts states why a job could not start even if the nodes of the cluster, or its queue, were empty. It returns "" for any other job.
func (x *Cycle) NeverStarts(j *model.Job) string {
	if !report.MayWait(j) || j.Orphan {
		return ""
	}
	causes := report.Causes{Cluster: x.cluster, Answers: x.Session}
	return cmp.Or(x.Session.NeverStarts(j), causes.NeverInQueue(j, x.firstLimit(j)))
}

// firstLimit returns the wait of a job for its queue. For a job that was not admitted, this is the wait of the job itself. For an admitted
// job, it is the first wait of the job's pods for a limit of a queue, as queueLimit returns it.
func (x *Cycle) firstLimit(j *model.Job) *model.Wait {
	if j.Phase == model.PhasePending {
		return x.decisions().waits[j.Key]
	}
	return x.queueLimit(j)
}

// queueLimit returns the first wait of a job's pods for a limit of a queue. It is nil if a pod waits for anything else, or no pod waits.
func (x *Cycle) queueLimit(j *model.Job) *model.Wait {
	var waits []*model.Wait
	for _, t := range j.Tasks {
		if of := x.decisions().of[t.Key]; of != nil && t.Status == model.Pending {
			waits = append(waits, of.waits...)
		}
	}
	return report.FirstLimit(slices.Values(waits))
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
	which, them := "pod "+pods[0].Key+" names", "it"
	if len(pods) > 1 {
		which, them = fmt.Sprintf("%s, such as %s, name", Count(len(pods), "pod"), pods[0].Key), "them"
	}
	return fmt.Sprintf("%s, so this scheduler, which serves %s, does not place %s; correct schedulerName in the job and its pod templates",
		which+" "+foreignName(pods[0], ours), strings.Join(ours, ", "), them)
}

// foreignName names the scheduler of a pod that is not ours, and which of ours was probably meant.
func foreignName(t *model.Task, ours []string) string {
	name := t.Object.Spec.SchedulerName
	if near := source.Nearest(name, ours); near != "" {
		return fmt.Sprintf("scheduler %q (did you mean %s?)", name, near)
	}
	return fmt.Sprintf("scheduler %q", name)
}

// foreignPod explains a waiting pod of another scheduler. schedulerName of an existing pod cannot be changed.
func (x *Cycle) foreignPod(t *model.Task) string {
	ours, remedy := x.cluster.SchedulerNames, "create the pod again with another schedulerName"
	if len(t.Object.OwnerReferences) > 0 {
		remedy = "correct schedulerName in the object that creates the pod, and delete the pod"
	}
	return Columns("  ", [][]string{
		{"cause", fmt.Sprintf("the pod names %s, so this scheduler, which serves %s, does not place it; if it should, %s",
			foreignName(t, ours), strings.Join(ours, ", "), remedy)},
		{"phase", x.standing(t)},
	})
}

// volumeCause looks at the first waiting pod with volumes in one place. It states how many nodes reach the volumes, or which claim of the
// pod no node can use. It returns "" if neither applies.
func (x *Cycle) volumeCause(j *model.Job) string {
	storage, err := x.Session.Storage()
	if err != nil {
		return ""
	}
	for _, t := range j.Tasks {
		if !t.HasVolumes || !t.Waits() || t.Foreign {
			continue
		}
		if defect := storage.Defect(t); defect != "" {
			return report.DefectCause(t, defect)
		}
		places := storage.Places(t)
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
		if reached < len(all) {
			return report.PlacesCause(t, places, reached, len(all))
		}
	}
	return ""
}

// place returns a job's position in the order of its queue, and which waiting jobs come before it; "" if the position is unknown.
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

// pod explains a pod: the decisions about it, or otherwise where it is. For a waiting pod it also explains the job.
func (x *Cycle) pod(t *model.Task) string {
	if t.Foreign && t.Waits() { // the scheduler knows nothing else about it
		return sprintf("pod %s\n", t.Key) + x.foreignPod(t) + fieldsLeftOut(x, "Pod", t.Key)
	}
	text := x.task(t)
	if text == "" {
		text = x.past(t)
	}
	if text == "" {
		text = sprintf("  %s\n", x.standing(t))
	}
	if of := x.decisions().of[t.Key]; t.Status == model.Pending && (of == nil || len(of.waits) == 0) {
		text += indented(x.head(t.Job))
	}
	return sprintf("pod %s\n", t.Key) + text + fieldsLeftOut(x, "Pod", t.Key)
}

// task returns the cycle's decisions about a pod; "" if there are none.
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
		printf(&out, "  %s is evicted for it, permitted by %s\n", x.podName(e.Task), enumerate(e.Rows))
	}
	return out.String()
}

// past returns the decisions of earlier cycles about a pod; "": they are unknown.
func (x *Cycle) past(t *model.Task) string {
	if x.Past == nil {
		return ""
	}
	var out strings.Builder
	if e := x.Past.evicts.of(t.Key); e != nil && e.What.UID == t.UID {
		out.WriteString(x.eviction(&e.What) + decidedAt(e))
	} else if b := x.Past.binds.of(t.Key); b != nil && b.What.UID == t.UID {
		out.WriteString(sprintf("  %s\n", x.standing(t)) + binding("bound to", &b.What) + decidedAt(b))
	}
	return out.String()
}

// decidedAt states when the decision was made, and by which policy.
func decidedAt[T any](d *Decided[T]) string {
	return sprintf("  decided at %s by policy %s\n", d.At.UTC().Format(time.RFC3339), d.Policy)
}

// podName returns the name of a pod, if the user who asks may know it.
func (x *Cycle) podName(key string) string {
	if key == "" || x.sees(key) {
		return key
	}
	return "a pod of another namespace"
}

// Masked returns an eviction without the names of beneficiaries in namespaces that the user may not see.
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

// standing states where a pod without a decision is.
func (x *Cycle) standing(t *model.Task) string {
	switch {
	case t.Foreign:
		return fmt.Sprintf("%s, another scheduler's", t.Shown())
	case t.Node == model.NoNode && t.Status == model.Pending:
		return "Pending, as its job"
	case t.Node == model.NoNode:
		return t.Shown().String()
	}
	return fmt.Sprintf("%s on %s", t.Shown(), x.cluster.Nodes.Rows[t.Node].Name)
}

// binding states where a pod was placed, the alternatives, and the score by row.
func binding(verb string, b *model.Bind) string {
	text := sprintf("  %s %s", verb, Place(b))
	if b.Action != "" {
		text += " in " + b.Action
	}
	if why := b.Reason.String(); why != "" {
		text += ": " + source.Line(why)
	}
	text += "\n  of " + Count(b.Feasible, "node")
	if b.RunnerUp != "" {
		text += sprintf(", before %s with %s", b.RunnerUp, model.Score(b.RunnerUpScore))
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
