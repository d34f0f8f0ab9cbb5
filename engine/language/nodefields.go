package language

import (
	"strconv"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/rules"
)

func nodeFields() []*rules.Member {
	type v = *NodeView
	str, num := cel.StringType, cel.IntType
	members := []*rules.Member{
		nodeString("name", FromIdentity, rules.Static, "name", func(n *model.Nodes, row int32) string { return n.Rows[row].Name }),
		codedLabels(field("labels", stringMapType(), FromSpec, rules.ByObject, "labels",
			func(n v) ref.Val { return n.World.strings(&n.labels, n.Of.Labels) })),
		field("annotations", stringMapType(), FromSpec, rules.ByObject, "annotations",
			func(n v) ref.Val { return n.World.strings(&n.annotations, n.Of.Annotations) }),
		coded(bounded(field("taints", cel.ListType(taintType()), ToParts, rules.ByObject, "taints", func(n v) ref.Val { return n.taintList() }),
			32), taintText),
		coded(nodeBool("unschedulable", FromSpec, rules.ByObject, "cordoned",
			func(n *model.Nodes, row int32) bool { return n.Rows[row].Unschedulable }),
			func(n *model.Node) string { return strconv.FormatBool(n.Unschedulable) }),
		nodeBool("ready", FromSpec, rules.ByObject, "condition Ready (a node that is not is never offered)",
			func(n *model.Nodes, row int32) bool { return n.Rows[row].Ready }),
	}
	for _, a := range NodeAmounts() {
		members = append(members, a.member())
	}
	members = append(members, numaNodeFields()...)
	return append(members, []*rules.Member{
		nodeInt("taskCount", FromState|FromAmounts, rules.ByStep, "tasks on it, releasing included, pipelined not",
			func(n *model.Nodes, row int32) int64 { return int64(n.TaskCount[row]) }),
		nodeInt("maxTasks", FromSpec|FromAmounts, rules.ByObject, "allocatable pods",
			func(n *model.Nodes, row int32) int64 { return int64(allocatable(n, model.Pods, row) / 1000) }),
		bounded(field("tasks", cel.ListType(TaskType()), ToTasks, rules.ByStep, "tasks on it, by name; expensive", func(n v) ref.Val {
			return listOf(n.World.TasksOn(n.Of.Row), func(t *model.Task) ref.Val { return n.World.TaskView(t) })
		}), 512),
		coded(nodeString("revocableZone", FromSpec, rules.ByObject, "label volcano.sh/revocable-zone, \"\" if none",
			func(n *model.Nodes, row int32) string { return revocableZone(n.Rows[row]) }), revocableZone),
		nodeDouble("cpuUsage", FromSpec|FromMeasures, rules.ByObject, "measured use of cpu, in percent of what the machine has; 0 where nothing "+
			"was measured", measured(model.CPU)),
		nodeDouble("memoryUsage", FromSpec|FromMeasures, rules.ByObject, "measured use of memory, in percent of what the machine has; 0 where "+
			"nothing was measured", measured(model.Memory)),
		field("usageAt", cel.TimestampType, FromMeasures, rules.ByObject, "when that was measured; null where it never was", func(n v) ref.Val {
			if n.Of.Measure == nil {
				return types.NullValue
			}
			return types.Timestamp{Time: n.Of.Measure.At}
		}),
		bounded(field("gpus", cel.ListType(GPUType()), ToParts|FromAmounts, rules.ByStep, "devices by index",
			func(n v) ref.Val { return n.DevicesNow().list }), 16),
		coded(nodeString("gpuModel", FromSpec|FromAmounts, rules.ByObject, "model of its devices, \"\" if unknown",
			func(n *model.Nodes, row int32) string { return n.Rows[row].GPUModel }),
			func(n *model.Node) string { return n.GPUModel }),
		nodeInt("gpuFree", FromState|FromAmounts, rules.ByStep, "sum of free over gpus, in thousandths of a device",
			func(n *model.Nodes, row int32) int64 {
				return gpuSum(n.GPUs[row], func(g *model.GPU) int64 { return g.Free })
			}),
		nodeInt("gpuCapacity", FromSpec|FromAmounts, rules.ByObject, "sum of capacity over gpus, in thousandths of a device",
			func(n *model.Nodes, row int32) int64 {
				return gpuSum(n.GPUs[row], func(g *model.GPU) int64 { return g.Capacity })
			}),
		field("gpuTags", cel.MapType(str, num), FromState, rules.ByStep, "gpuTag to tasks on the node", (*NodeView).gpuTags),
	}...)
}

// measured returns a getter for the used CPU or memory of a node, in percent of the machine's capacity, or otherwise of allocatable.
func measured(dim int) func(n *model.Nodes, row int32) float64 {
	return func(n *model.Nodes, row int32) float64 {
		x, whole := n.Rows[row].Measure, n.Capacity(dim, row)
		if whole <= 0 {
			whole = allocatable(n, dim, row)
		}
		if x == nil || whole <= 0 {
			return 0
		}
		return 100 * x.Use[dim] / whole
	}
}

func revocableZone(n *model.Node) string { return n.Labels["volcano.sh/revocable-zone"] }

func gpuSum(gpus []model.GPU, get func(*model.GPU) int64) int64 {
	sum := int64(0)
	for i := range gpus {
		sum += get(&gpus[i])
	}
	return sum
}

// allocatable returns a node's allocatable amount in a dimension, or 0.
func allocatable(n *model.Nodes, dim int, row int32) float64 {
	return amountIn(n.Allocatable, dim, row)
}

// used returns the usage of a node's tasks in a dimension, including tasks that are being released.
func used(n *model.Nodes, dim int, row int32) float64 { return amountIn(n.Used, dim, row) }

func amountIn(columns [][]float64, dim int, row int32) float64 {
	if dim >= len(columns) {
		return 0
	}
	return present(columns[dim][row])
}

// present returns an amount of a column; 0 if it is absent.
func present(v float64) float64 {
	if v != v {
		return 0
	}
	return v
}

// Members of Node of plain types, which can also be read for many rows at once.

func nodeString(name string, origin rules.Origin, changes rules.Changes, doc string,
	get func(n *model.Nodes, row int32) string,
) *rules.Member {
	m := stringField(name, origin, changes, doc, ofRow(get))
	m.Strings = ofRows(get)
	return m
}

func nodeInt(name string, origin rules.Origin, changes rules.Changes, doc string, get func(n *model.Nodes, row int32) int64) *rules.Member {
	m := intField(name, origin, changes, doc, ofRow(get))
	m.Ints = ofRows(get)
	return m
}

func nodeDouble(name string, origin rules.Origin, changes rules.Changes, doc string,
	get func(n *model.Nodes, row int32) float64,
) *rules.Member {
	m := doubleField(name, origin, changes, doc, ofRow(get))
	m.Doubles = ofRows(get)
	return m
}

func nodeBool(name string, origin rules.Origin, changes rules.Changes, doc string, get func(n *model.Nodes, row int32) bool) *rules.Member {
	m := boolField(name, origin, changes, doc, ofRow(get))
	m.Bools = ofRows(get)
	return m
}

func ofRow[X any](get func(n *model.Nodes, row int32) X) func(n *NodeView) X {
	return func(n *NodeView) X { return get(&n.World.c.Nodes, n.Of.Row) }
}

func ofRows[X any](get func(n *model.Nodes, row int32) X) func(t rules.Rows, rows []int32, out []X) {
	return func(t rules.Rows, rows []int32, out []X) {
		n := &worldOf(t).c.Nodes
		for i, row := range rows {
			out[i] = get(n, row)
		}
	}
}

// nodeAmount is a Resources member of Node. It can be read as a whole, or as one dimension in internal units; 0 if it is absent.
type nodeAmount struct {
	Name    string
	origin  rules.Origin
	changes rules.Changes
	doc     string
	whole   func(n *model.Nodes, row int32) model.Resources
	at      func(n *model.Nodes, dim int, row int32) float64
}

// NodeAmounts returns the Resources fields of Node.
func NodeAmounts() []nodeAmount {
	return []nodeAmount{
		{
			"allocatable", FromSpec | FromAmounts, rules.ByObject, "what pods may use, with unlisted devices that annotations state",
			(*model.Nodes).AllocatableOf, allocatable,
		},
		{"capacity", FromSpec, rules.ByObject, "what the machine has", (*model.Nodes).CapacityOf, (*model.Nodes).Capacity},
		{"idle", FromState | FromAmounts, rules.ByStep, "allocatable less used", (*model.Nodes).IdleOf, (*model.Nodes).Idle},
		{"used", FromState | FromAmounts, rules.ByStep, "accounted, releasing included", (*model.Nodes).UsedOf, used},
		{
			"releasing", FromState | FromAmounts, rules.ByStep, "of tasks on their way out", (*model.Nodes).ReleasingOf,
			func(n *model.Nodes, dim int, row int32) float64 { return amountIn(n.Releasing, dim, row) },
		},
		{
			"pipelined", FromState | FromAmounts, rules.ByStep, "promised to tasks that wait for what is being released", (*model.Nodes).PipelinedOf,
			func(n *model.Nodes, dim int, row int32) float64 { return amountIn(n.Pipelined, dim, row) },
		},
		{
			"futureIdle", FromState | FromAmounts, rules.ByStep, "idle and releasing, less pipelined", (*model.Nodes).FutureIdleOf,
			(*model.Nodes).FutureIdle,
		},
	}
}

func (a nodeAmount) member() *rules.Member {
	m := field(a.Name, ResourcesType(), a.origin, a.changes, a.doc,
		func(n *NodeView) ref.Val { return n.World.Amounts(a.whole(&n.World.c.Nodes, n.Of.Row)) })
	m.Part = func(by, part string) *rules.Member {
		p := amountPart(m, by, part, func(of resourceName, n *NodeView) (float64, float64) {
			dim, ok := of.in(n.World.c.Dims)
			if !ok {
				return 0, 1
			}
			return a.at(&n.World.c.Nodes, dim, n.Of.Row), n.World.c.Dims.Unit(dim)
		})
		of := dimension(part)
		switch {
		case p == nil:
		case p.Double != nil:
			p.Doubles = func(t rules.Rows, rows []int32, out []float64) {
				if unit := a.inner(worldOf(t).c, of, rows, out); unit != 1 {
					for i := range out {
						out[i] /= unit
					}
				}
			}
		default:
			p.Ints = func(t rules.Rows, rows []int32, out []int64) {
				d := workspaceOf(t)
				d.left = RoomFor(d.left, len(rows))
				unit := a.inner(worldOf(t).c, of, rows, d.left)
				for i, x := range d.left {
					out[i] = inMilli(x, unit)
				}
			}
		}
		return p
	}
	return m
}

// inner reads one resource of many rows in internal units, and returns how many of these make one of the user's units.
func (a nodeAmount) inner(c *model.Cluster, of resourceName, rows []int32, out []float64) (unit float64) {
	dim, ok := of.in(c.Dims)
	if !ok {
		clear(out)
		return 1
	}
	a.fill(&c.Nodes, dim, rows, out)
	return c.Dims.Unit(dim)
}

// fill reads one dimension of many rows. It reads common fields directly from the arrays.
func (a nodeAmount) fill(n *model.Nodes, dim int, rows []int32, out []float64) {
	if dim >= len(n.Allocatable) {
		clear(out)
		return
	}
	all, taken := n.Allocatable[dim], n.Used[dim]
	switch a.Name {
	case "allocatable":
		for i, row := range rows {
			out[i] = present(all[row])
		}
	case "used":
		for i, row := range rows {
			out[i] = taken[row]
		}
	case "idle":
		for i, row := range rows {
			out[i] = present(all[row]) - taken[row]
		}
	default:
		for i, row := range rows {
			out[i] = a.at(n, dim, row)
		}
	}
}
