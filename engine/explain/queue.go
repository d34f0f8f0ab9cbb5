package explain

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/engine/session"
)

const (
	// mostInLine is the maximum number of waiting jobs of a queue that are listed.
	mostInLine = 20
	// mostAbout is the maximum number of waiting jobs that are evaluated for one node.
	mostAbout = 500
)

// queue explains a queue: what it holds and may hold, the fields that the policy computes, and the waiting jobs, in order.
func (x *Cycle) queue(q *model.Queue) string {
	var out strings.Builder
	printf(&out, "queue %s\n", q.Name)
	rows := [][]string{{"state", cmp.Or(q.State, "Open") + ", weight " + fmt.Sprint(q.Weight)}}
	if q.Parent != "" {
		rows[0][1] += ", below " + q.Parent
	}
	if jobs := phases(q.Phases); jobs != "" {
		rows = append(rows, []string{"jobs", jobs})
	}
	rows = append(rows, []string{"allocated", x.amounts(q.Allocated)})
	if text := x.terminating(q); text != "" {
		rows = append(rows, []string{"terminating", text})
	}
	rows = append(rows, []string{"asked for", x.amounts(q.Request)})
	for _, of := range []struct {
		name string
		r    model.Resources
	}{{"deserved", q.Deserved}, {"guarantee", q.Guarantee}, {"capability", q.Capability}} {
		if text := x.amounts(of.r); text != "nothing" {
			rows = append(rows, []string{of.name, text})
		}
	}
	out.WriteString(Columns("  ", rows))
	out.WriteString(computed("queue", session.Fields(x.Session, "queue", x.Session.QueueView(q))))
	if a := x.Session.Overused(q); a.Yes {
		printf(&out, "  skipped where a step heeds overused: %s\n", a.Reason().String())
		out.WriteString(x.told("    ", a.Rule, session.Subject{Queue: q}))
	}
	out.WriteString(x.line(q))
	return out.String()
}

// terminating states what the terminating pods of a queue still hold, and when the last of their grace periods ends.
func (x *Cycle) terminating(q *model.Queue) string {
	var sum model.Resources
	var last time.Time
	pods := 0
	for _, j := range x.cluster.JobsByKey() {
		if j.Queue != q || j.Counts[model.Releasing]+j.Counts[model.Gone]+j.Counts[model.Unknown] == 0 {
			continue
		}
		for _, t := range j.Tasks {
			if !t.Leaves() && t.Status != model.Gone {
				continue
			}
			pods++
			sum = sum.Add(t.Request)
			if at := t.Object.DeletionTimestamp; at != nil && at.After(last) {
				last = at.Time
			}
		}
	}
	if pods == 0 {
		return ""
	}
	text := Count(pods, "pod") + " still hold " + x.amounts(sum)
	if pods == 1 {
		text = "1 pod still holds " + x.amounts(sum)
	}
	if last.After(x.Plan.Now) {
		text += "; grace periods end within " + last.Sub(x.Plan.Now).Round(time.Second).String()
	}
	return text
}

// computed lists the fields that the policy computes for an object; "" if there are none.
func computed(of string, fields []session.Field) string {
	if len(fields) == 0 {
		return ""
	}
	var rows [][]string
	for _, f := range fields {
		rows = append(rows, []string{of + "." + f.Name, f.Value, "table " + f.Table})
	}
	return "  the policy computes\n" + Columns("    ", rows)
}

// amounts returns the amounts that are not 0.
func (x *Cycle) amounts(r model.Resources) string {
	r = r.Clone()
	for dim := range r {
		if r.Has(dim) && r[dim] == 0 {
			r[dim] = math.NaN()
		}
	}
	return x.cluster.Dims.Text(r)
}

// phases returns the number of jobs by phase: "1 Inqueue, 2 Running".
func phases(of map[string]int64) string {
	var parts []string
	for _, phase := range slices.Sorted(maps.Keys(of)) {
		if of[phase] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", of[phase], phase))
		}
	}
	return strings.Join(parts, ", ")
}

// line lists the waiting jobs of a queue, in its order. Jobs without a position come last.
func (x *Cycle) line(q *model.Queue) string {
	var waits []*model.Wait
	told := map[string]bool{}
	for i := range x.Plan.Waits {
		w := &x.Plan.Waits[i]
		if w.Queue != q.Name || told[w.Job] {
			continue
		}
		told[w.Job] = true // the wait of a job as a whole comes first
		waits = append(waits, w)
	}
	if len(waits) == 0 {
		return "  no job waits in it\n"
	}
	slices.SortStableFunc(waits, func(a, b *model.Wait) int {
		last := func(w *model.Wait) bool { return w.Place == 0 }
		if last(a) != last(b) {
			return cmp.Compare(b.Place, a.Place)
		}
		return cmp.Or(cmp.Compare(a.Place, b.Place), strings.Compare(a.Job, b.Job))
	})
	rows, hidden, more := [][]string{{"PLACE", "JOB", "WHY"}}, 0, 0
	for _, w := range waits {
		switch {
		case !x.sees(w.Job):
			hidden++
		case len(rows) > mostInLine:
			more++
		default:
			place := "-"
			if w.Place > 0 {
				place = fmt.Sprint(w.Place)
			}
			rows = append(rows, []string{place, x.Titles.Of(w.Job), w.Why() + x.cause(w)})
		}
	}
	text := fmt.Sprintf("  %s in it\n", Count(len(waits), "job")+" wait")
	if len(waits) == 1 {
		text = "  1 job waits in it\n"
	}
	if len(rows) > 1 {
		text += Columns("    ", rows)
	}
	if more > 0 {
		text += fmt.Sprintf("    and %d more\n", more)
	}
	if hidden > 0 {
		text += fmt.Sprintf("    and %s\n", Count(hidden, "job")+" of other namespaces")
	}
	return text
}

// cause states why a pod of a job waits if the job waits because of its pods; "" if that is already stated.
func (x *Cycle) cause(of *model.Wait) string {
	if of.Reason.Site != policy.JobReady {
		return ""
	}
	for i := range x.Plan.Waits {
		if w := &x.Plan.Waits[i]; w.Job == of.Job && w.Task != "" && w.Reason != of.Reason {
			return "; its pod " + w.Task + ": " + w.Why()
		}
	}
	return ""
}

// node explains a node: the pods on it, and why it rejects waiting pods.
func (x *Cycle) node(row int32) string {
	var out strings.Builder
	n := &x.cluster.Nodes
	of := n.Rows[row]
	printf(&out, "node %s\n", of.Name)
	rows := [][]string{
		{"state", NodeState(of)},
		{"has", x.amounts(n.AllocatableOf(row))},
		{"idle", x.amounts(n.IdleOf(row))},
		{"pods", Count(int(n.TaskCount[row]), "pod") + x.on(row)},
	}
	if text := x.amounts(n.ReleasingOf(row)); text != "nothing" {
		rows = append(rows, []string{"releasing", text})
	}
	out.WriteString(Columns("  ", rows))
	out.WriteString(computed("node", session.Fields(x.Session, "node", x.Session.NodeView(row))))
	for i := range x.Plan.Binds {
		if b := &x.Plan.Binds[i]; b.Node == of.Name {
			printf(&out, "  took %s: %s\n", x.podName(b.Task), b.Reason.String())
		}
	}
	out.WriteString(x.turnsAway(row))
	return out.String()
}

// on lists the jobs whose pods are on a node.
func (x *Cycle) on(row int32) string {
	var jobs []string
	for _, t := range x.cluster.Nodes.Tasks[row] {
		if !slices.Contains(jobs, t.Job.Key) {
			jobs = append(jobs, t.Job.Key)
		}
	}
	if len(jobs) == 0 {
		return ""
	}
	slices.Sort(jobs)
	return " of " + x.names(jobs, mostBefore)
}

// turnsAway counts the waiting jobs by the reason why a node rejects a pod of them.
func (x *Cycle) turnsAway(row int32) string {
	type reason struct{ row, why string }
	var order []reason
	by := map[reason][]string{}
	asked := 0
	for i := range x.Plan.Waits {
		w := &x.Plan.Waits[i]
		j := x.cluster.Jobs[w.Job]
		if asked == mostAbout || j == nil || i > 0 && x.Plan.Waits[i-1].Job == w.Job {
			continue
		}
		t := x.typical(&model.Wait{}, j)
		if t == nil {
			continue
		}
		asked++
		why := reason{why: "it would take a pod of it"}
		if r, refuses := WhyNot(x.Session, t, row); refuses {
			why = reason{model.RowName(r.Table, r.Rule), r.Text}
		}
		if by[why] == nil {
			order = append(order, why)
		}
		by[why] = append(by[why], w.Job)
	}
	if len(order) == 0 {
		return ""
	}
	slices.SortStableFunc(order, func(a, b reason) int { return len(by[b]) - len(by[a]) })
	rows := [][]string{{"JOBS", "ROW", "WHY", "OF"}}
	for _, why := range order {
		rows = append(rows, []string{fmt.Sprint(len(by[why])), cmp.Or(why.row, "-"), why.why, x.names(by[why], mostNodes)})
	}
	return "  of the jobs that wait\n" + Columns("    ", rows)
}

// told states what a row read about a subject, as lines; "" if there is no row.
func (x *Cycle) told(indent string, r *policy.Rule, on session.Subject) string {
	if r == nil {
		return ""
	}
	told, err := session.Tell(x.Session, r, on)
	if err != nil {
		return ""
	}
	var out strings.Builder
	write(&out, indent, &told)
	return out.String()
}
