package language

import (
	"fmt"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/numa"
	"github.com/celsius-scheduler/celsius/rules"
)

// numaNodeFields returns the fields of a node from its Numatopology.
func numaNodeFields() []*rules.Member {
	of := func(get func(n *numa.Node) string) func(n *model.Nodes, row int32) string {
		return func(n *model.Nodes, row int32) string {
			if x := n.Rows[row].Numa; x != nil {
				return get(x)
			}
			return ""
		}
	}
	return []*rules.Member{
		nodeString("cpuManagerPolicy", FromSpec, rules.ByObject, "policy of its kubelet's CPU manager, static where containers get CPUs of "+
			"their own; \"\" where there is no Numatopology", of(func(n *numa.Node) string { return n.CPUManager })),
		oneOf(nodeString("topologyManagerPolicy", FromSpec, rules.ByObject, "policy of its kubelet's topology manager; \"\" where there is no "+
			"Numatopology", of(func(n *numa.Node) string { return n.Policy })), "", numa.None, numa.BestEffort, numa.Restricted, numa.SingleNUMA),
		nodeInt("freeCPUs", FromSpec|FromState, rules.ByStep, "CPUs that no task has for itself, or is promised; 0 where the CPU manager is "+
			"not static", func(n *model.Nodes, row int32) int64 { return int64(model.FreeCPUs(n, row).Len()) }),
		hidden("cpus", FromSpec|FromState, rules.ByStep, "which CPUs these are", func(n *NodeView) ref.Val {
			return types.String(model.FreeCPUs(&n.World.c.Nodes, n.Of.Row).String())
		}),
		hidden("cpuPlaces", FromSpec, rules.ByObject, "where its CPUs are", func(n *NodeView) ref.Val {
			return types.String(n.Of.Numa.Places())
		}),
	}
}

// numaTaskFields returns the fields of a task about exclusive CPUs.
func numaTaskFields() []*rules.Member {
	return []*rules.Member{
		intField("pinnedCPUs", FromSpec, rules.ByObject, "CPUs that it is to have for itself where the CPU manager is static: of the class "+
			"Guaranteed, those of containers that ask for whole ones", func(t *TaskView) (sum int64) {
			for _, n := range t.Of.Pins {
				sum += int64(n)
			}
			return sum
		}),
		hidden("pins", FromSpec, rules.ByObject, "these, by container", func(t *TaskView) ref.Val { return types.String(fmt.Sprint(t.Of.Pins)) }),
	}
}

// numaFunctions returns the functions about the CPUs of a node that a task would get.
func numaFunctions() []*rules.Function {
	about := func(name, doc string, result *cel.Type, of func(numa.Choice) ref.Val) *rules.Function {
		return Method(name, doc, []*cel.Type{NodeType(), TaskType()}, result, func(args ...ref.Val) ref.Val {
			n, okN := args[0].(*NodeView)
			t, okT := args[1].(*TaskView)
			if !okN || !okT {
				return wrongArgument(args[0])
			}
			return of(model.CPUsFor(&n.World.c.Nodes, t.Of, n.Of.Row))
		}, "{0}.cpus", "{0}.cpuPlaces", "{0}.cpuManagerPolicy", "{0}.topologyManagerPolicy", "{1}.pins")
	}
	return []*rules.Function{
		about("admitsCPUs", "Whether the node's topology manager would let the task in with the CPUs that it would have: restricted wants each "+
			"container's on as few NUMA nodes as it takes on the empty machine, single-numa-node on one, best-effort as many as it asks for; none "+
			"lets everybody in, as does a node whose CPU manager is not static.",
			cel.BoolType, func(c numa.Choice) ref.Val { return types.Bool(c.Admitted) }),
		about("numaNodes", "On how many NUMA nodes of the node the CPUs would be that the task would have for itself; 0 where it has none.",
			cel.IntType, func(c numa.Choice) ref.Val { return types.Int(c.Nodes) }),
	}
}
