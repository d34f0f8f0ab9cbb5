package language

import (
	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types/ref"

	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/rules"
)

func budgetType() *cel.Type { return Object("Budget") }

// budgetView is a PodDisruptionBudget as a value.
type budgetView struct{ View[model.Budget] }

// Value implements ref.Val.
func (v *budgetView) Value() any { return v }

func (v *budgetView) name() string { return v.Of.Namespace + "/" + v.Of.Name }

// budgetTaskFields returns the fields of a task about its disruption budgets.
func budgetTaskFields() []*rules.Member {
	return []*rules.Member{
		bounded(field("disruptionBudgets", cel.ListType(budgetType()), FromSpec|FromRelated, rules.ByObject,
			"PodDisruptionBudgets that select its pod, by name, except those whose status already counts the pod as gone",
			func(t *TaskView) ref.Val {
				return listOf(t.World.budgets.Of(t.Of), func(b *model.Budget) ref.Val {
					return &budgetView{View[model.Budget]{Of: b, World: t.World, typ: budgetType()}}
				})
			}), 8),
	}
}

func budgetObject() *rules.Object {
	type v = *budgetView
	return &rules.Object{
		Name: "Budget", Type: budgetType(), Doc: "A PodDisruptionBudget, as its status has it.", Members: []*rules.Member{
			stringField("name", FromIdentity, rules.Static, "name", func(b v) string { return b.Of.Name }),
			intField("allowed", FromRelated|FromAll, rules.ByStep, "how many more of its pods may go now: status.disruptionsAllowed, less those "+
				"that are being evicted and of which the status does not tell yet", func(b v) int64 { return b.World.budgets.Left(b.Of) }),
		},
	}
}
