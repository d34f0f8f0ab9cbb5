package answers

import (
	"fmt"
	"slices"
	"strings"

	"github.com/google/cel-go/common/types"

	"github.com/celsius-scheduler/celsius/engine/language"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/engine/reference/values"
	"github.com/celsius-scheduler/celsius/engine/report"
	"github.com/celsius-scheduler/celsius/rules/eval"
)

// All requires every row to agree. The first row that says no is the answer.
func (x *Answers) All(site string, f *language.Frame) policy.Answer {
	return x.AllOf(x.p.Rules(site), f)
}

// AllOf does what All does, for these rows.
func (x *Answers) AllOf(rows []*policy.Rule, f *language.Frame) policy.Answer {
	for _, r := range rows {
		if x.Opinion(r, f) == language.No {
			return policy.Answer{Rule: r, Text: x.Text(r, f)}
		}
	}
	return policy.Answer{Yes: true}
}

// Any requires one row that says yes.
func (x *Answers) Any(site string, f *language.Frame) policy.Answer {
	return x.AnyOf(x.p.Rules(site), f)
}

// AnyOf does what Any does, for these rows.
func (x *Answers) AnyOf(rows []*policy.Rule, f *language.Frame) policy.Answer {
	for _, r := range rows {
		if x.Opinion(r, f) == language.Yes {
			return policy.Answer{Yes: true, Rule: r, Text: x.Text(r, f)}
		}
	}
	return policy.Answer{}
}

// Vote evaluates tier by tier. A refusal decides. Otherwise a permit in the tier decides. If no row has an opinion, the answer is a permit.
func (x *Answers) Vote(site string, f *language.Frame) policy.Answer {
	permit := policy.Answer{Yes: true}
	for _, r := range x.p.Rules(site) {
		if permit.Rule != nil && r.Tier != permit.Rule.Tier {
			break
		}
		switch x.Opinion(r, f) {
		case language.No:
			return policy.Answer{Rule: r, Text: x.Text(r, f)}
		case language.Yes:
			if permit.Rule == nil {
				permit.Rule = r
			}
		case language.Abstain:
		}
	}
	return permit
}

// IsReady returns the outcome of jobReady for a job.
func (x *Answers) IsReady(j *model.Job) bool { return x.All(policy.JobReady, x.Frame().OfJob(j)).Yes }

// Starving returns the outcome of jobStarving for a job. The first tier with rows decides: no row may return no. Without rows it is false.
func (x *Answers) Starving(j *model.Job) bool {
	starving := false
	list := x.p.Rules(policy.JobStarving)
	for _, r := range list {
		if r.Tier != list[0].Tier {
			break
		}
		switch x.Opinion(r, x.Frame().OfJob(j)) {
		case language.No:
			return false
		case language.Yes:
			starving = true
		case language.Abstain:
		}
	}
	return starving
}

// Condition evaluates a condition of a step. An error counts as false, and adds a warning that names the subject.
func (x *Answers) Condition(e *eval.Expr, f *language.Frame, about string) bool {
	if e == nil {
		return true
	}
	v := values.Eval(e, f)
	if v != types.True && v != types.False {
		x.warn(fmt.Sprintf("%s%s: %v", about, strings.TrimSpace(e.Text.Value), v))
	}
	return v == types.True
}

// Count evaluates a step's number. An error counts as 0, and adds a warning.
func (x *Answers) Count(e *eval.Expr) int {
	v := values.Eval(e, x.Frame())
	n, ok := v.(types.Int)
	if !ok {
		x.warn(fmt.Sprintf("%s: %v", strings.TrimSpace(e.Text.Value), v))
	}
	return int(n)
}

// JobsOf returns the jobs that a step takes, by queue: they wait for something, and idle is false for them.
func (x *Answers) JobsOf(step *policy.Step, idle func(*model.Job) bool) map[*model.Queue][]*model.Job {
	jobs := map[*model.Queue][]*model.Job{}
	for _, j := range x.c.JobsByKey() {
		if report.MayWait(j) && j.Seated() && !idle(j) && x.JobPasses(step, j) {
			jobs[j.Queue] = append(jobs[j.Queue], j)
		}
	}
	return jobs
}

// JobPasses reports whether a step applies to a job.
func (x *Answers) JobPasses(step *policy.Step, j *model.Job) bool {
	return x.Condition(step.Condition(policy.KeyJobs), x.Frame().OfJob(j), "job "+j.Key+": ")
}

// TaskPasses reports whether a step applies to a task.
func (x *Answers) TaskPasses(step *policy.Step, t *model.Task) bool {
	return x.Condition(step.Condition(policy.KeyTasks), x.Frame().OfTask(t), "pod "+t.Key+": ") && t.Waits()
}

// sorted sorts objects by the first difference of their keys in tier order, and then by tie.
func sorted[T comparable](x *Answers, site string, list []T, about func(T) *language.Frame, tie func(a, b T) int) {
	keys := map[T][]language.Key{}
	for _, o := range list {
		keys[o] = x.Keys(site, about(o))
	}
	slices.SortFunc(list, func(a, b T) int {
		for i, r := range x.p.Rules(site) {
			if c := r.Compare(&keys[a][i], &keys[b][i]); c != 0 {
				return c
			}
		}
		return tie(a, b)
	})
}

// FirstQueue returns the first of the queues that have jobs left.
func (x *Answers) FirstQueue(of map[*model.Queue][]*model.Job) *model.Queue {
	var list []*model.Queue
	for _, q := range x.c.QueuesByName() {
		if len(of[q]) > 0 {
			list = append(list, q)
		}
	}
	sorted(x, policy.QueueOrder, list, x.Frame().OfQueue, policy.QueueAge)
	return list[0]
}

// SortJobs sorts jobs of a queue.
func (x *Answers) SortJobs(list []*model.Job) {
	sorted(x, policy.JobOrder, list, x.Frame().OfJobAlone, policy.JobAge)
}

// SortTasks sorts tasks of a job.
func (x *Answers) SortTasks(list []*model.Task) {
	sorted(x, policy.TaskOrder, list, x.Frame().OfTaskAlone, policy.TaskTie)
	slices.SortStableFunc(list, policy.NeededFirst)
}
