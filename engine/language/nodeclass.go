package language

import (
	"maps"
	"slices"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/rules"
)

// mostNodeClasses limits how many node classes are remembered from one cycle to the next. A tenant could otherwise fill the memory with
// requirements that differ.
const mostNodeClasses = 4096

// SeenNodes remembers what of the nodes decides which pods may use them: names, labels, taints and allocatable amounts.
type SeenNodes struct {
	nodes   []seenNode // by row
	sum     uint64     // of the versions of all nodes, plus 1
	Changes uint64     // grows whenever a node changes
}

type seenNode struct {
	version     uint64 // of the object of the node
	changed     uint64 // SeenNodes.Changes at the last change
	node        model.Node
	allocatable model.Resources
}

// Update compares the nodes with what was seen last, and reports whether one changed. Other objects change more often than nodes, and then
// no node is compared.
func (x *SeenNodes) Update(n *model.Nodes) (changed bool) {
	sum := uint64(1)
	for _, version := range n.Object {
		sum += version // no version ever falls
	}
	if x.sum == sum {
		return false
	}
	x.sum = sum
	x.nodes = append(x.nodes, make([]seenNode, max(len(n.Object)-len(x.nodes), 0))...)
	for row, version := range n.Object {
		was := &x.nodes[row]
		if was.version == version {
			continue
		}
		is := seenNode{version: version, changed: was.changed}
		if node := n.Rows[row]; node != nil {
			is.node, is.allocatable = *node, n.AllocatableOf(int32(row))
		}
		if !is.alike(was) {
			x.Changes++
			is.changed, changed = x.Changes, true
		}
		*was = is
	}
	return changed
}

func (x *seenNode) alike(y *seenNode) bool {
	return x.node.Name == y.node.Name && maps.Equal(x.node.Labels, y.node.Labels) && slices.Equal(x.node.Taints, y.node.Taints) &&
		x.allocatable.Equal(y.allocatable)
}

// nodeClasses remembers, by node class, which nodes its pods may use and what these have idle.
type nodeClasses struct {
	seen SeenNodes
	of   map[string]*nodeClass
}

// nodeClass is the nodes that at least one of some pods may use.
type nodeClass struct {
	pods []*model.Task // one of each requirement; none: every node
	rows []bool        // the nodes, by row
	seen uint64        // SeenNodes.Changes that rows are of, plus 1
	idle model.Resources
	at   uint64 // the clock of the cluster that idle is of, plus 1
}

// classOfNodes returns the node class of a job: a text that is the same for jobs whose pods that no node has yet require the same labels of
// nodes and have the same tolerations. It is "" if there are no such pods.
func (v *JobView) classOfNodes() string {
	w := v.World
	if v.nodeClassAt == w.c.ObjectClock+1 {
		return v.nodeClass
	}
	class, pods := readNodeClass(v.Of)
	if w.Shared {
		return class
	}
	v.nodeClass, v.nodeClassAt = class, w.c.ObjectClock+1
	if w.nodeClasses.of[class] == nil {
		if w.nodeClasses.of == nil {
			w.nodeClasses.of = map[string]*nodeClass{}
		}
		w.nodeClasses.of[class] = &nodeClass{pods: pods}
	}
	return class
}

// readNodeClass returns the node class of a job, and one of its pods for each requirement.
func readNodeClass(j *model.Job) (class string, pods []*model.Task) {
	for _, t := range j.Tasks {
		alike := func(other *model.Task) bool {
			return other.NodeAffinityKey == t.NodeAffinityKey && other.TolerationsKey == t.TolerationsKey
		}
		if t.Object.Spec.NodeName == "" && !slices.ContainsFunc(pods, alike) {
			pods = append(pods, t)
		}
	}
	keys := make([]string, 0, len(pods))
	for _, t := range pods {
		keys = append(keys, t.NodeRequirements())
	}
	slices.Sort(keys)
	return strings.Join(keys, "\n"), pods
}

// idleFor returns what the nodes that accept pods, and that pods of a class may use, have idle now; false: no job has the class.
func (v *ClusterView) idleFor(class string) (idle model.Resources, found bool) {
	w := v.World
	x, seen := w.nodeClasses.of[class], &w.nodeClasses.seen
	if x == nil {
		for _, j := range w.c.JobsByKey() { // it was forgotten, or its jobs were not read yet
			if of, pods := readNodeClass(j); of == class {
				x = &nodeClass{pods: pods}
				break
			}
		}
		if x == nil {
			return nil, false
		}
	}
	if x.at == w.c.Clock+1 {
		return x.idle, true
	}
	if w.Shared {
		x, seen = &nodeClass{pods: x.pods}, &SeenNodes{}
	}
	n := &w.c.Nodes
	x.update(seen, n)
	x.idle, x.at = nil, w.c.Clock+1
	for _, dim := range n.Columns() {
		sum := 0.0
		for row, may := range x.rows {
			if may && n.Rows[row].AcceptsPods() {
				sum += max(n.Idle(dim, int32(row)), 0)
			}
		}
		x.idle.Set(dim, sum)
	}
	return x.idle, true
}

// update brings the rows up to date.
func (x *nodeClass) update(seen *SeenNodes, n *model.Nodes) {
	seen.Update(n)
	if x.seen == seen.Changes+1 {
		return
	}
	x.rows = append(x.rows, make([]bool, max(len(n.Rows)-len(x.rows), 0))...)
	for row, node := range n.Rows {
		if x.seen == 0 || seen.nodes[row].changed >= x.seen {
			x.rows[row] = node != nil && (len(x.pods) == 0 || slices.ContainsFunc(x.pods, func(t *model.Task) bool { return mayUse(t, node) }))
		}
	}
	x.seen = seen.Changes + 1
}

// mayUse reports whether the labels and the taints of a node permit it to a pod. A requirement that cannot be read permits the node.
func mayUse(t *model.Task, node *model.Node) bool {
	if _, found := t.FirstUntolerated(node); found {
		return false
	}
	matches, err := matchesRequired(t, node)
	return matches || err != nil
}

// nodeClassFunctions are those of a node class.
func nodeClassFunctions() []*rules.Function {
	idle := Method("idleFor", "What is idle now on the nodes that accept pods and that the pods of a node class (job.nodeClass) may use by "+
		"labels and taints: the sum of allocatable - used. An error if no job has the class.",
		[]*cel.Type{ClusterType(), cel.StringType}, ResourcesType(), func(args ...ref.Val) ref.Val {
			c, ok := args[0].(*ClusterView)
			class, isString := args[1].(types.String)
			if !ok || !isString {
				return wrongArgument(args[1])
			}
			idle, found := c.idleFor(string(class))
			if !found {
				return types.NewErr("no job has the node class %q", string(class))
			}
			return &Amounts{idle, c.World.dims}
		}, "{0}.idleByNode")
	idle.Overloads[0].Cost = 200
	total := Method("total", "The sum of all Resources of the list.", []*cel.Type{cel.ListType(ResourcesType())}, ResourcesType(), totalOf,
		rules.Arguments)
	return []*rules.Function{called(idle, "class"), total}
}

func totalOf(args ...ref.Val) ref.Val {
	out := &Amounts{}
	list, ok := args[0].(interface {
		Size() ref.Val
		Get(index ref.Val) ref.Val
	})
	if !ok {
		return wrongArgument(args[0])
	}
	n, _ := list.Size().(types.Int)
	for i := range n {
		a, ok := list.Get(i).(*Amounts)
		if !ok {
			return wrongArgument(list.Get(i))
		}
		out = &Amounts{out.Resources.Add(a.Resources), out.with(a)}
	}
	return out
}
