package sim

import (
	"fmt"
	"maps"
	"slices"

	schedulingv1beta1 "github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
	"github.com/celsius-scheduler/celsius/engine/explain"
	"github.com/celsius-scheduler/celsius/engine/model"
)

// decision is one line of a report: a decision about one task or job.
type decision struct {
	verb  string // admit, bind, evict, pipeline, hold, wait
	what  string // the title of a pod or a job
	queue string
	node  string
	why   string
	bind  *model.Bind  // set for a bind, pipeline or hold
	evict *model.Evict // set for an evict
	wait  *model.Wait  // set for a wait
}

// plain returns a line without its details, for comparisons.
func (d decision) plain() decision {
	d.bind, d.evict, d.wait = nil, nil, nil
	return d
}

// decisionsOf returns the lines of a plan for the cluster, in the order of the decisions.
func decisionsOf(c *model.Cluster, plan *model.Plan, fold bool) []decision {
	titles := explain.TitlesOf(c)
	var out []decision
	for _, a := range plan.Admits {
		out = append(out, decision{verb: "admit", what: titles.Of(a.Job), queue: a.Queue, why: a.Reason.String()})
	}
	placed := func(verb string, binds []model.Bind) {
		for i := range binds {
			b := &binds[i]
			out = append(out, decision{verb: verb, what: b.Task, queue: b.Queue, node: explain.Place(b), why: b.Reason.String(), bind: b})
		}
	}
	placed("bind", plan.Binds)
	for i := range plan.Evicts {
		e := &plan.Evicts[i]
		out = append(out, decision{verb: "evict", what: e.Task, queue: e.Queue, node: e.Node, why: explain.BecauseOf(e, "; "), evict: e})
	}
	placed("pipeline", plan.Pipelines)
	placed("hold", plan.Holds)
	for i := range plan.Waits {
		wait := &plan.Waits[i]
		what := wait.Task
		if what == "" {
			what = titles.Of(wait.Job)
		}
		out = append(out, decision{verb: "wait", what: what, queue: wait.Queue, why: wait.String(), wait: wait})
	}
	if fold {
		return folded(out)
	}
	return out
}

// told returns a plan with a separate wait for each pod that shares its job's reason: its node, or that it was not tried.
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

// unheeded returns the fields of PodGroups that no decision honors, each with the first PodGroup that has it.
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

// shared returns the waits of a job's pods that have no wait of their own and are promised nothing.
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

// folded joins adjacent lines that differ only in a number at the end of the name, if the numbers increase by one. So worker-0, worker-1,
// worker-2 becomes worker-[0-2]. Numbers of evicted pods may also decrease, because the last pod is usually evicted first: worker-[2-0].
func folded(lines []decision) []decision {
	var out []decision
	for _, group := range foldedGroups(lines) {
		out = append(out, joined(group))
	}
	return out
}

// foldedGroups returns the groups of lines that folded joins.
func foldedGroups(lines []decision) [][]decision {
	return explain.Fold(lines, func(d *decision) string { return d.what }, func(a, b *decision) bool {
		return a.verb == b.verb && a.node == b.node && a.queue == b.queue && a.why == b.why
	}, func(d *decision) bool { return d.evict != nil })
}

// joined returns a group as one line.
func joined(group []decision) decision {
	d := group[0]
	if len(group) > 1 {
		d.what, d.bind, d.evict = explain.Range(d.what, group[len(group)-1].what), nil, nil
	}
	return d
}
