package explain

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/engine/report"
	"github.com/celsius-scheduler/celsius/engine/session"
	"github.com/celsius-scheduler/celsius/rules/eval"
)

const (
	// mostNodes is how many rejected nodes of a row are named. mostRows is for how many such rows the values are shown.
	mostNodes = 3
	mostRows  = 4
	// mostInDepth is for how many kinds of pods the nodes are listed.
	mostInDepth = 10
)

// waiting explains why a job, or its pod t, waits: the reason with the values that its row read, the nodes by what rejects them, and what
// would help.
func (x *Cycle) waiting(indent string, w *model.Wait, j *model.Job, t *model.Task) string {
	step := ""
	if w.Action != "" {
		step = " in " + w.Action
	}
	var out strings.Builder
	printf(&out, "%swaits%s: %s\n", indent, step, cmp.Or(w.Why(), "-"))
	if t == nil {
		t = x.typical(w, j)
	}
	if w.Task == "" || !x.shares(w) {
		out.WriteString(x.values(indent+"  ", w.Reason, j, t, ""))
	}
	// A pod without which its job can start is no reason why the job waits.
	if t != nil && len(w.Nodes) == 0 && (w.Task != "" || slices.Contains(x.Session.KeptBackBy(j), t.Role)) {
		if never := x.Session.NeverFits(t); never != "" && !strings.Contains(w.Why(), never) {
			printf(&out, "%s  of its pod %s: %s\n", indent, t.Key, never)
		}
	}
	out.WriteString(x.nodes(indent+"  ", w, j, t))
	for _, v := range w.InVain {
		out.WriteString(indent + "  " + v.What() + ":\n" + histogram(indent+"    ", "COUNT", v.Nodes, nil))
	}
	if t != nil && len(w.Nodes) > 0 && nobodyAsked(x.Session, t) {
		printf(&out, "%s  preempt finds no victims: no action of policy %s evicts pods of lower-priority jobs\n", indent,
			x.Session.Policy().Name)
	}
	return out.String()
}

// nobodyAsked reports whether lower-priority jobs of the task's queue run, and no action of the policy evicts pods for others.
func nobodyAsked(s *session.Session, t *model.Task) bool {
	return len(s.Policy().Displacing()) == 0 && slices.ContainsFunc(s.Cluster().JobsByKey(), func(j *model.Job) bool {
		return j.QueueName == t.Job.QueueName && j.Priority < t.Job.Priority && j.Counts[model.Running] > 0 && !j.Orphan
	})
}

// nodes states which nodes reject a waiting pod, why, and what would help. It computes this once for equal pods, and for at most
// mostInDepth kinds.
func (x *Cycle) nodes(indent string, w *model.Wait, j *model.Job, t *model.Task) string {
	if len(w.Nodes) == 0 || t == nil {
		return ""
	}
	about := fmt.Sprint(indent, j.Key, t.Role, t.Request, w.Nodes)
	if text, known := x.inDepth[about]; known {
		return text
	}
	if len(x.inDepth) == mostInDepth {
		return histogram(indent, "NODES", w.Nodes, nil)
	}
	var out strings.Builder
	open := x.openToFirst(j, t)
	x.asTried(j, t, func(txn *model.Txn) {
		refused := x.refused(t, w.Nodes)
		out.WriteString(histogram(indent, "NODES", w.Nodes, refused))
		for i, n := range w.Nodes {
			if len(refused[i]) > 0 && i < mostRows {
				out.WriteString(x.values(indent, model.Reason{Site: policy.Predicates, Table: n.Table, Rule: n.Rule}, j, t, refused[i][0]))
			}
		}
		ofJob, heading := x.helpJob(txn, j, t), "it would help if"
		if ofJob != "" {
			heading = "this pod would fit if"
		}
		if help := x.help(w, t, open); len(help) > 0 {
			out.WriteString(indent + heading + "\n")
			for _, h := range help {
				printf(&out, "%s  %s\n", indent, h)
			}
		}
		if ofJob != "" {
			out.WriteString(indent + ofJob + "\n")
		}
	})
	x.inDepth[about] = out.String()
	return x.inDepth[about]
}

// asTried calls do with the nodes as pod t found them: other pods of its job are on the nodes that they had found, and that were rolled
// back since. Afterwards it restores the cluster.
func (x *Cycle) asTried(j *model.Job, t *model.Task, do func(*model.Txn)) {
	txn := x.cluster.Begin()
	defer txn.Rollback(0)
	if w := x.decisions().waits[j.Key]; w != nil && w.Tried != nil {
		for mate, fared := range w.Tasks(j) {
			row, there := x.cluster.Nodes.Index[fared.Node]
			if there && mate != t && mate.Status == model.Pending && x.cluster.Nodes.FitsFuture(mate.Request, row) {
				txn.Pipeline(mate, row, x.Session.Devices(mate, row, true))
			}
		}
	}
	do(txn)
}

// openToFirst returns the nodes that other pods of a job found, and that would accept pod t if these pods were elsewhere.
func (x *Cycle) openToFirst(j *model.Job, t *model.Task) map[int32]bool {
	w := x.decisions().waits[j.Key]
	if w == nil || w.Tried == nil {
		return nil
	}
	out, class := map[int32]bool{}, x.Session.Class(t)
	for mate, fared := range w.Tasks(j) {
		if row, there := x.cluster.Nodes.Index[fared.Node]; there && mate != t && class.TakesLater(row) {
			out[row] = true
		}
	}
	return out
}

// shares reports whether a pod waits for the same reason as its job, which is already explained.
func (x *Cycle) shares(w *model.Wait) bool {
	of := x.decisions().waits[w.Job]
	return of != nil && of.Reason == w.Reason
}

// typical returns a waiting pod of a job, if possible one that no node accepts; nil: no pod waits.
func (x *Cycle) typical(w *model.Wait, j *model.Job) (first *model.Task) {
	roles := map[string]bool{}
	for t := range w.Tasks(j) {
		if t.Gated || t.Foreign || roles[t.Role] {
			continue
		}
		roles[t.Role] = true
		if first == nil {
			first = t
		}
		if len(w.Nodes) > 0 && !slices.ContainsFunc(x.cluster.Nodes.ByOrder(), x.Session.Class(t).TakesLater) {
			return t
		}
	}
	return first
}

// WhyNot states why a node rejects a pod, after all releasing tasks are gone; false: the node accepts it.
func WhyNot(s *session.Session, t *model.Task, row int32) (why model.Reason, refuses bool) {
	class := s.Class(t)
	switch {
	case !s.Cluster().Nodes.Rows[row].Ready:
		return report.Refused(report.NotReady()), true
	case class.TakesLater(row):
		return why, false
	}
	return class.RefusedLater(row), true
}

// refused returns for each count of nodes the names of some of them, as they are after the cycle.
func (x *Cycle) refused(t *model.Task, counts []model.NodeCount) [][]string {
	out := make([][]string, len(counts))
	if t == nil {
		return out
	}
	left := len(counts)
	for _, row := range x.cluster.Nodes.ByOrder() {
		x.cluster.Breathe()
		if left == 0 {
			break
		}
		i := x.counted(t, row, counts)
		if i < 0 || len(out[i]) == mostNodes {
			continue
		}
		if out[i] = append(out[i], x.cluster.Nodes.Rows[row].Name); len(out[i]) == mostNodes || len(out[i]) == counts[i].Count {
			left--
		}
	}
	return out
}

// counted returns the index of the count that contains a node; below 0: the node accepts the pod, or now rejects it for another reason. It
// evaluates the row's message for the node only if the row has several counts.
func (x *Cycle) counted(t *model.Task, row int32, counts []model.NodeCount) int {
	if r := x.Session.Class(t).Refuser(row); r != nil {
		of := func(n model.NodeCount) bool { return n.Table == r.Table && n.Rule == r.Name }
		first := slices.IndexFunc(counts, of)
		if first < 0 || !slices.ContainsFunc(counts[first+1:], of) {
			return first
		}
	}
	why, refuses := WhyNot(x.Session, t, row)
	if !refuses {
		return -1
	}
	return slices.IndexFunc(counts, func(n model.NodeCount) bool {
		return n.Table == why.Table && n.Rule == why.Rule && (n.Text == why.Text || n.Example)
	})
}

// histogram formats counts: the number, the row, the reason, and some of the nodes; "" if there are none.
func histogram(indent, of string, counts []model.NodeCount, on [][]string) string {
	if len(counts) == 0 {
		return ""
	}
	rows := [][]string{{of, "ROW", "WHY"}}
	if on != nil {
		rows[0] = append(rows[0], "ON")
	}
	for i, n := range counts {
		row := []string{fmt.Sprint(n.Count), model.RowName(n.Table, n.Rule), n.Why()}
		if on != nil {
			text := strings.Join(on[i], ", ")
			if n.Count > len(on[i]) && text != "" {
				text += ", …"
			}
			row = append(row, text)
		}
		rows = append(rows, row)
	}
	return Columns(indent, rows)
}

// subject returns the input of the row that is the reason why a job or its pod waits; false: it is unknown.
func subject(r *policy.Rule, j *model.Job, t *model.Task, node string) (on session.Subject, ok bool) {
	switch r.Site.Name {
	case policy.JobValid, policy.JobReady, policy.JobPipelined, policy.JobStarving, policy.JobEnqueueable:
		return session.Subject{Job: j}, true
	case policy.Overused:
		return session.Subject{Queue: j.Queue}, j.Queue != nil
	case policy.Allocatable, policy.Bindable, policy.TaskFeasible:
		return session.Subject{Task: t}, t != nil
	case policy.Preemptive:
		if t != nil {
			on = session.Subject{Job: j, Request: t.Request}
		}
		return on, t != nil
	case policy.Predicates:
		return session.Subject{Task: t, Node: node}, t != nil && node != ""
	}
	return on, false
}

// values shows the values that the row of a reason read, as they are after the cycle. It returns "" if there is no row, or if the row no
// longer rejects.
func (x *Cycle) values(indent string, why model.Reason, j *model.Job, t *model.Task, node string) string {
	r := x.Session.Policy().Row(why)
	if r == nil || r.Expression.Constant() {
		return ""
	}
	on, ok := subject(r, j, t, node)
	if !ok {
		return ""
	}
	told, err := session.Tell(x.Session, r, on)
	if err != nil || told.Value != fmt.Sprint(r.Site.DenyIs) {
		return ""
	}
	where := ""
	if node != "" {
		where = " on " + node
	}
	var out strings.Builder
	printf(&out, "%s%s%s is %s:\n", indent, model.RowName(r.Table, r.Name), where, told.Value)
	write(&out, indent+"  ", &told)
	return out.String()
}

// write formats an evaluation. Joined conditions get one line each, followed by their results.
func write(out *strings.Builder, indent string, told *eval.Told) {
	if told.Join == "" {
		printf(out, "%s%s\n", indent, told.Text)
		return
	}
	rows := [][]string{}
	var add func(deep string, of *eval.Told)
	add = func(deep string, of *eval.Told) {
		for i := range of.Parts {
			p, sign := &of.Parts[i], ""
			if i > 0 {
				sign = of.Join + " "
			}
			value := cmp.Or(p.Value, "was not asked")
			if p.Join == "" {
				rows = append(rows, []string{deep + sign + p.Text, value})
				continue
			}
			rows = append(rows, []string{deep + sign + "(", value})
			add(deep+"  ", p)
			rows = append(rows, []string{deep + ")"})
		}
	}
	add("", told)
	out.WriteString(Columns(indent, rows))
}
