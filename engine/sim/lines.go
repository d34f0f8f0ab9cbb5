package sim

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	schedulingv1beta1 "github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
	"github.com/celsius-scheduler/celsius/engine/model"
)

// decision is one line of a report: what was decided about one task or job.
type decision struct {
	verb  string // admit, bind, evict, pipeline, hold, wait
	what  string // a pod's or a job's title
	queue string
	node  string
	why   string
	bind  *model.Bind  // of a bind, pipeline or hold
	evict *model.Evict // of an evict
	wait  *model.Wait  // of a wait
}

// plain is what a line tells people, to be compared.
func (d decision) plain() decision {
	d.bind, d.evict, d.wait = nil, nil, nil
	return d
}

// decisionsOf are the lines of a plan for the cluster, in the order in which they were decided.
func decisionsOf(c *model.Cluster, plan *model.Plan, fold bool) []decision {
	titles := titlesOf(c)
	var out []decision
	for _, a := range plan.Admits {
		out = append(out, decision{verb: "admit", what: titles.of(a.Job), queue: a.Queue, why: a.Reason.String()})
	}
	placed := func(verb string, binds []model.Bind) {
		for i := range binds {
			b := &binds[i]
			out = append(out, decision{verb: verb, what: b.Task, queue: b.Queue, node: place(b), why: b.Reason.String(), bind: b})
		}
	}
	placed("bind", plan.Binds)
	for i := range plan.Evicts {
		e := &plan.Evicts[i]
		out = append(out, decision{verb: "evict", what: e.Task, queue: e.Queue, node: e.Node, why: becauseOf(e, "; "), evict: e})
	}
	placed("pipeline", plan.Pipelines)
	placed("hold", plan.Holds)
	for i := range plan.Waits {
		wait := &plan.Waits[i]
		what := wait.Task
		if what == "" {
			what = titles.of(wait.Job)
		}
		out = append(out, decision{verb: "wait", what: what, queue: wait.Queue, why: wait.String(), wait: wait})
	}
	if fold {
		return folded(out)
	}
	return out
}

// forWhom says for whom a pod goes, in which action, and by which rows.
func forWhom(e *model.Evict) string {
	if e.For == "" {
		return fmt.Sprintf("in %s: %s", e.Action, e.Reason.Text)
	}
	return fmt.Sprintf("in %s: for %s, as %s", e.Action, e.For, permit(e.Rows))
}

// becauseOf says for whom a pod goes, by which rows, and if it is for another why that needs it.
func becauseOf(e *model.Evict, between string) string {
	if e.For == "" {
		return forWhom(e)
	}
	return forWhom(e) + between + needed(e)
}

// permit is "a/x permits", or "a/x, b/y and c/z permit".
func permit(rows []string) string {
	last := len(rows) - 1
	if last < 1 {
		return strings.Join(rows, "") + " permits"
	}
	return strings.Join(rows[:last], ", ") + " and " + rows[last] + " permit"
}

// needed says why the other has no place unless this one goes.
func needed(e *model.Evict) string {
	if row := model.RowName(e.Needed.Table, e.Needed.Rule); row != "" {
		return fmt.Sprintf("%s (%s)", e.Needed.Text, row)
	}
	return e.Needed.Text
}

// told is a plan with a wait for each pod that shares its job's reason: what its node was, or that it was not tried.
func told(c *model.Cluster, plan *model.Plan) *model.Plan {
	out := *plan
	out.Waits, out.Warnings = nil, append(slices.Clone(plan.Warnings), unheeded(c)...)
	promised := map[string]bool{}
	for _, b := range slices.Concat(plan.Pipelines, plan.Holds) {
		promised[b.Task] = true
	}
	for waits := plan.Waits; len(waits) > 0; {
		first, of := &waits[0], 1
		for of < len(waits) && waits[of].Job == first.Job {
			of++
		}
		out.Waits = append(out.Waits, waits[:of]...)
		if job := c.Jobs[first.Job]; job != nil && first.Task == "" && first.Tried != nil {
			out.Waits = append(out.Waits, shared(first, job, waits[1:of], promised)...)
		}
		waits = waits[of:]
	}
	return &out
}

// unheeded are what PodGroups ask for that no decision heeds, each with the first that does.
func unheeded(c *model.Cluster) (warnings []string) {
	of := map[string][]string{}
	for key, j := range c.Jobs {
		if g, ok := j.Object.(*schedulingv1beta1.PodGroup); ok && j.HasTopology {
			for _, text := range model.Unheeded(g) {
				of[text] = append(of[text], key)
			}
		}
	}
	for _, text := range slices.Sorted(maps.Keys(of)) {
		warnings = append(warnings, fmt.Sprintf("PodGroup %s (of %d): %s", slices.Min(of[text]), len(of[text]), text))
	}
	return warnings
}

// shared are the waits of a job's pods that have none of their own, and are promised nothing.
func shared(wait *model.Wait, job *model.Job, own []model.Wait, promised map[string]bool) []model.Wait {
	has := map[string]bool{}
	for i := range own {
		has[own[i].Task] = true
	}
	var out []model.Wait
	for t, fared := range wait.Tasks(job) {
		if has[t.Key] || promised[t.Key] || t.Gated || t.Foreign {
			continue
		}
		pod := *wait
		pod.Task, pod.Tried, pod.Fared = t.Key, nil, fared
		out = append(out, pod)
	}
	return out
}

// place is a node, and the devices and the CPUs held there.
func place(b *model.Bind) string {
	out := b.Node
	if len(b.GPUs) > 0 {
		out += " gpu " + join(b.GPUs)
	}
	if b.CPUs != "" {
		out += " cpu " + b.CPUs
	}
	return out
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return strconv.Itoa(n) + " " + what + "s"
}

// folded joins neighbours that differ in nothing but the number at the end of the
// name, where the numbers go up by one: worker-0, worker-1, worker-2 is worker-[0-2].
// Of pods that are evicted the last mostly goes first, so theirs may go down, too: worker-[2-0].
func folded(lines []decision) []decision {
	var out []decision
	for _, group := range foldedGroups(lines) {
		out = append(out, joined(group))
	}
	return out
}

// foldedGroups are the neighbours that folded joins.
func foldedGroups(lines []decision) [][]decision {
	var out [][]decision
	for i := 0; i < len(lines); {
		prefix, first, ok := numbered(lines[i].what)
		j, step := i+1, 1
		if ok && lines[i].evict != nil && j < len(lines) && follows(lines[j], lines[i], prefix, first-1) {
			step = -1
		}
		for ok && j < len(lines) && follows(lines[j], lines[i], prefix, first+step*(j-i)) {
			j++
		}
		out = append(out, lines[i:j])
		i = j
	}
	return out
}

// joined is a group as one line.
func joined(group []decision) decision {
	d := group[0]
	if len(group) > 1 {
		prefix, first, _ := numbered(d.what)
		_, last, _ := numbered(group[len(group)-1].what)
		d.what, d.bind, d.evict = fmt.Sprintf("%s[%d-%d]", prefix, first, last), nil, nil
	}
	return d
}

// follows says whether a line is the same as another, but for the number wanted.
func follows(d, first decision, prefix string, number int) bool {
	p, n, ok := numbered(d.what)
	return ok && p == prefix && n == number &&
		d.verb == first.verb && d.node == first.node && d.queue == first.queue && d.why == first.why
}

// numbered cuts a name before the number at its end; a number with leading zeros is none.
func numbered(name string) (prefix string, n int, ok bool) {
	prefix = strings.TrimRight(name, "0123456789")
	digits := name[len(prefix):]
	n, err := strconv.Atoi(digits)
	if err != nil || strconv.Itoa(n) != digits || !strings.HasSuffix(prefix, "-") {
		return "", 0, false
	}
	return prefix, n, true
}
