package reference

import (
	"fmt"
	"slices"
	"strings"

	"github.com/google/cel-go/common/types"

	"github.com/celsius-scheduler/celsius/engine/language"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/engine/reference/values"
	"github.com/celsius-scheduler/celsius/rules/eval"
)

// all wants every row to agree; the first that says no is the answer.
func (x *cycle) all(site string, f *language.Frame) policy.Answer {
	for _, r := range x.p.Rules(site) {
		if x.Opinion(r, f) == language.No {
			return policy.Answer{Rule: r, Text: x.Text(r, f)}
		}
	}
	return policy.Answer{Yes: true}
}

// any wants one row that says yes.
func (x *cycle) any(site string, f *language.Frame) policy.Answer {
	for _, r := range x.p.Rules(site) {
		if x.Opinion(r, f) == language.Yes {
			return policy.Answer{Yes: true, Rule: r, Text: x.Text(r, f)}
		}
	}
	return policy.Answer{}
}

// vote goes tier by tier: a refusal is final, else a permit is; nobody: permit.
func (x *cycle) vote(site string, f *language.Frame) policy.Answer {
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

// starving asks all rows of the first tier of jobStarving that has any, none of which says no; nobody: no.
func (x *cycle) starving(j *model.Job) bool {
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

// condition evaluates a condition of a step. An error is false, and a warning about what it was asked.
func (x *cycle) condition(e *eval.Expr, f *language.Frame, about string) bool {
	if e == nil {
		return true
	}
	v := values.Eval(e, f)
	if v != types.True && v != types.False {
		x.warn(fmt.Sprintf("%s%s: %v", about, strings.TrimSpace(e.Text.Value), v))
	}
	return v == types.True
}

func (x *cycle) warn(text string) {
	if !slices.Contains(x.plan.Warnings, text) {
		x.plan.Warnings = append(x.plan.Warnings, text)
	}
}

func (x *cycle) jobPasses(step *policy.Step, j *model.Job) bool {
	return x.condition(step.Condition(policy.KeyJobs), x.Frame().OfJob(j), "job "+j.Key+": ")
}

func (x *cycle) taskPasses(step *policy.Step, t *model.Task) bool {
	return x.condition(step.Condition(policy.KeyTasks), x.Frame().OfTask(t), "pod "+t.Key+": ") && t.Waits()
}

// sorted puts objects in order: the first difference of their keys in tier order, then tie.
func sorted[T comparable](x *cycle, site string, list []T, about func(T) *language.Frame, tie func(a, b T) int) {
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

func (x *cycle) firstQueue(of map[*model.Queue][]*model.Job) *model.Queue {
	var list []*model.Queue
	for _, q := range x.c.QueuesByName() {
		if len(of[q]) > 0 {
			list = append(list, q)
		}
	}
	sorted(x, policy.QueueOrder, list, x.Frame().OfQueue, policy.QueueAge)
	return list[0]
}

func (x *cycle) sortJobs(list []*model.Job) {
	sorted(x, policy.JobOrder, list, x.Frame().OfJobAlone, policy.JobAge)
}

func (x *cycle) sortTasks(list []*model.Task) {
	sorted(x, policy.TaskOrder, list, x.Frame().OfTaskAlone, policy.TaskTie)
}
