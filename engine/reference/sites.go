package reference

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"github.com/celsius-scheduler/celsius/engine/language"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/rules/eval"
)

// evaluate computes an expression by cel-go. One whose cost is not known to be small has a budget for each evaluation, in steps that are those of
// its compiled form: to be over it is an error. The budget that the evaluations of a row share in a cycle is the engine's alone, as it
// draws on how often a row is asked.
func evaluate(e *eval.Expr, f *language.Frame) ref.Val {
	if e.Metered {
		return e.Eval(f)
	}
	return e.Interpret(f)
}

// opinion asks a row of a yes-or-no site: none where its guard does not hold; what its onError says where it errs.
func (x *cycle) opinion(r *policy.Rule, f *language.Frame) language.Opinion {
	v := x.value(r, f)
	switch v {
	case nil:
		return language.Abstain
	case types.True:
		return language.Yes
	case types.False:
		return language.No
	}
	x.fault(r.Site.Name, r.Table, r.Name, f, v)
	deny := policy.Denial(r.Site)
	switch r.OnError {
	case "deny":
		return deny
	case "allow":
		return language.Yes + language.No - deny
	}
	return language.Abstain
}

// number asks a row of scores: NaN where it has no opinion, or errs.
func (x *cycle) number(r *policy.Rule, f *language.Frame) float64 {
	v := x.value(r, f)
	if v == nil {
		return math.NaN()
	}
	n, ok := language.Number(v)
	if ok && (math.IsNaN(n) || math.IsInf(n, 0)) {
		v, ok = types.NewErr("the score is %v", n), false
	}
	if !ok {
		x.fault(r.Site.Name, r.Table, r.Name, f, v)
		return math.NaN()
	}
	return n
}

// value is what a row gives: nil where its guard does not hold, an error where that errs.
func (x *cycle) value(r *policy.Rule, f *language.Frame) ref.Val {
	if r.When != nil {
		if held := evaluate(r.When, f); held != types.True {
			if held == types.False {
				return nil
			}
			return held
		}
	}
	return evaluate(r.Expression, f)
}

// text is what a row says against what it was asked about: its message, its expression, or how it erred.
func (x *cycle) text(r *policy.Rule, f *language.Frame) string {
	if v := x.value(r, f); types.IsError(v) {
		return fmt.Sprintf("erred: %v", v)
	}
	if r.Message == nil {
		return r.Expression.Text.Value + " does not hold"
	}
	return r.Message.Words(func(e *eval.Expr) ref.Val { return evaluate(e, f) })
}

// all wants every row to agree; the first that says no is the answer.
func (x *cycle) all(site string, f *language.Frame) policy.Answer {
	for _, r := range x.p.Rules(site) {
		if x.opinion(r, f) == language.No {
			return policy.Answer{Rule: r, Text: x.text(r, f)}
		}
	}
	return policy.Answer{Yes: true}
}

// any wants one row that says yes.
func (x *cycle) any(site string, f *language.Frame) policy.Answer {
	for _, r := range x.p.Rules(site) {
		if x.opinion(r, f) == language.Yes {
			return policy.Answer{Yes: true, Rule: r, Text: x.text(r, f)}
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
		switch x.opinion(r, f) {
		case language.No:
			return policy.Answer{Rule: r, Text: x.text(r, f)}
		case language.Yes:
			if permit.Rule == nil {
				permit.Rule = r
			}
		case language.Abstain:
		}
	}
	return permit
}

// Starving implements policy.Values: all rows of the first tier of jobStarving that has any, none of which says no; nobody: no.
func (x *cycle) Starving(j *model.Job) bool {
	starving := false
	list := x.p.Rules(policy.JobStarving)
	for _, r := range list {
		if r.Tier != list[0].Tier {
			break
		}
		switch x.opinion(r, x.world().Frame().OfJob(j)) {
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
	v := evaluate(e, f)
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
	return x.condition(step.Condition(policy.KeyJobs), x.world().Frame().OfJob(j), "job "+j.Key+": ")
}

func (x *cycle) taskPasses(step *policy.Step, t *model.Task) bool {
	return x.condition(step.Condition(policy.KeyTasks), x.world().Frame().OfTask(t), "pod "+t.Key+": ") && t.Waits()
}

// keys are an object's sort keys by the rows of a site. What errs, or has no order, is none.
func (x *cycle) keys(site string, f *language.Frame) []policy.Key {
	var out []policy.Key
	for _, r := range x.p.Rules(site) {
		var k policy.Key
		if v := x.value(r, f); v != nil {
			var ok bool
			if k, ok = policy.KeyOf(v); !ok {
				x.fault(r.Site.Name, r.Table, r.Name, f, v)
				k = policy.Key{}
			}
		}
		out = append(out, k)
	}
	return out
}

// sorted puts objects in order: the first difference of their keys in tier order, then tie.
func sorted[T comparable](x *cycle, site string, list []T, about func(T) *language.Frame, tie func(a, b T) int) {
	keys := map[T][]policy.Key{}
	for _, o := range list {
		keys[o] = x.keys(site, about(o))
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
	sorted(x, policy.QueueOrder, list, x.world().Frame().OfQueue, func(a, b *model.Queue) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.Name, b.Name))
	})
	return list[0]
}

func (x *cycle) sortJobs(list []*model.Job) {
	sorted(x, policy.JobOrder, list, x.world().Frame().OfJobAlone, func(a, b *model.Job) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), policy.JobTie(a, b))
	})
}

func (x *cycle) sortTasks(list []*model.Task) {
	sorted(x, policy.TaskOrder, list, x.world().Frame().OfTaskAlone, policy.TaskTie)
}
