package language

import (
	"maps"
	"slices"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"

	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/quota"
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

// nodeClasses remembers, by node class, which nodes its pods may use.
type nodeClasses struct {
	seen SeenNodes
	of   map[string]*nodeClass
}

// nodeClass is the nodes that at least one of some pods may use.
type nodeClass struct {
	pods []*model.Task // one for each requirement; none: every node
	rows []bool        // the nodes, by row
	seen uint64        // SeenNodes.Changes that rows are of, plus 1
	idle []float64     // what the nodes that accept pods have idle, by dimension
	at   uint64        // the clock of the cluster that idle is of, plus 1
}

// classOfNodes returns the node class of a job: a text that is the same for jobs whose pods require the same labels of nodes and have the
// same tolerations. It considers the pods that are on no node: those that request devices, or all if no pod does. It is "" if there are no
// such pods.
func (v *JobView) classOfNodes() string {
	w := v.World
	if v.nodeClassAt == w.c.ObjectClock+1 {
		return v.nodeClass
	}
	class, pods := readNodeClass(v.Of, w.c.Dims.Devices())
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

// readNodeClass returns the node class of a job, and one of its pods for each requirement. units is Dims.Devices.
func readNodeClass(j *model.Job, units []float64) (class string, pods []*model.Task) {
	devices := false
	for _, t := range j.Tasks {
		if t.Object.Spec.NodeName != "" {
			continue
		}
		requests := hasDevices(t.Request, units)
		if requests && !devices {
			devices, pods = true, nil
		}
		alike := func(other *model.Task) bool {
			return other.NodeAffinityKey == t.NodeAffinityKey && other.TolerationsKey == t.TolerationsKey
		}
		if requests == devices && !slices.ContainsFunc(pods, alike) {
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

// hasDevices reports whether an amount of a device is above 0. units is Dims.Devices.
func hasDevices(r model.Resources, units []float64) bool {
	for dim, unit := range units {
		if unit > 0 && r.Get(dim) > 0 {
			return true
		}
	}
	return false
}

// nodeClass returns the nodes of a class, up to date; nil: no job has the class.
func (v *ClusterView) nodeClass(class string) *nodeClass {
	w := v.World
	x, seen := w.nodeClasses.of[class], &w.nodeClasses.seen
	if x == nil {
		units := w.c.Dims.Devices()
		for _, j := range w.c.JobsByKey() { // it was dropped, or its jobs were not read yet
			if of, pods := readNodeClass(j, units); of == class {
				x = &nodeClass{pods: pods}
				break
			}
		}
		if x == nil {
			return nil
		}
	}
	if w.Shared {
		x, seen = &nodeClass{pods: x.pods}, &SeenNodes{}
	}
	x.update(seen, &w.c.Nodes)
	return x
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

// reachable returns the largest amounts of lacked that the idle resources of the nodes can cover together, if each class uses only its own
// nodes. No idle resource counts twice. It considers quota.MostTakers classes: first those that lack devices, then the others, each by
// name. The amounts of further classes do not count.
func (v *ClusterView) reachable(lacked map[string]*Amounts) (model.Resources, ref.Val) {
	if len(lacked) == 0 {
		return nil, nil
	}
	c := v.World.c
	units := c.Dims.Devices()
	names := slices.SortedFunc(maps.Keys(lacked), func(a, b string) int {
		if of, other := hasDevices(lacked[a].Resources, units), hasDevices(lacked[b].Resources, units); of != other {
			return map[bool]int{true: -1, false: 1}[of]
		}
		return strings.Compare(a, b)
	})
	names = names[:min(len(names), quota.MostTakers)]
	if len(names) == 1 {
		return v.reachableByOne(names[0], lacked[names[0]].Resources)
	}
	by := make([]uint64, len(c.Nodes.Rows)) // the classes that may use a node, a bit for each
	for i, name := range names {
		class := v.nodeClass(name)
		if class == nil {
			return nil, types.NewErr("no job has the node class %q", name)
		}
		for row, may := range class.rows {
			if may && c.Nodes.Rows[row].AcceptsPods() {
				by[row] |= 1 << i
			}
		}
	}
	var out model.Resources
	lacks := make([]float64, len(names))
	for dim := range c.Dims.Len() {
		any := false
		for i, name := range names {
			r := lacked[name].Resources
			lacks[i], any = r.Get(dim), any || r.Has(dim)
		}
		if any {
			out.Set(dim, quota.Flow(lacks, idleBy(&c.Nodes, dim, by)))
		}
	}
	return out, nil
}

// reachableByOne is reachable of one class: there is nothing to share.
func (v *ClusterView) reachableByOne(name string, lacked model.Resources) (model.Resources, ref.Val) {
	class := v.nodeClass(name)
	if class == nil {
		return nil, types.NewErr("no job has the node class %q", name)
	}
	c := v.World.c
	if class.at != c.Clock+1 {
		class.idle, class.at = slices.Grow(class.idle[:0], c.Dims.Len()), c.Clock+1
		for dim := range c.Dims.Len() {
			class.idle = append(class.idle, class.idleOf(&c.Nodes, dim))
		}
	}
	var out model.Resources
	for dim, idle := range class.idle {
		if lacked.Has(dim) {
			out.Set(dim, min(max(lacked[dim], 0), idle))
		}
	}
	return out, nil
}

// idleOf returns what the nodes of a class that accept pods have idle in a dimension.
func (x *nodeClass) idleOf(n *model.Nodes, dim int) (sum float64) {
	for row, may := range x.rows {
		if may && n.Rows[row].AcceptsPods() {
			sum += max(n.Idle(dim, int32(row)), 0)
		}
	}
	return sum
}

// idleBy adds up what is idle in a dimension on the nodes, by the classes that may use them.
func idleBy(n *model.Nodes, dim int, by []uint64) map[uint64]float64 {
	out := map[uint64]float64{}
	sum, of := 0.0, uint64(0)
	for row, classes := range by {
		if classes != of { // most neighbors are alike
			out[of] += sum
			sum, of = 0, classes
		}
		if classes != 0 {
			sum += max(n.Idle(dim, int32(row)), 0)
		}
	}
	out[of] += sum
	delete(out, 0)
	return out
}

// nodeClassFunctions are the functions on node classes.
func nodeClassFunctions() []*rules.Function {
	amounts := cel.MapType(cel.StringType, ResourcesType())
	f := Method("reachable", "The largest part of some amounts, by node class (job.nodeClass), that can be idle now on the nodes that the "+
		"pods of each class may use by labels and taints. Only nodes that accept pods count, and no idle resource counts twice. At most 64 "+
		"classes count: first those with devices, then by name. An error if no job has a class.",
		[]*cel.Type{ClusterType(), amounts}, ResourcesType(), func(args ...ref.Val) ref.Val {
			c, ok := args[0].(*ClusterView)
			if !ok {
				return wrongArgument(args[0])
			}
			lacked, err := amountsByName(args[1])
			if err != nil {
				return err
			}
			out, err := c.reachable(lacked)
			if err != nil {
				return err
			}
			return &Amounts{out, c.World.dims}
		}, "{0}.idleByNode")
	f.Overloads[0].Cost = 1000
	total := Method("total", "The sum of all Resources of the map.", []*cel.Type{amounts}, ResourcesType(), func(args ...ref.Val) ref.Val {
		all, err := amountsByName(args[0])
		if err != nil {
			return err
		}
		out := &Amounts{}
		for _, name := range slices.Sorted(maps.Keys(all)) {
			out = &Amounts{out.Resources.Add(all[name].Resources), out.with(all[name])}
		}
		return out
	}, rules.Arguments)
	return []*rules.Function{called(f, "amounts"), total}
}

// amountsByName reads a map from names to Resources.
func amountsByName(v ref.Val) (map[string]*Amounts, ref.Val) {
	m, ok := v.(traits.Mapper)
	if !ok {
		return nil, wrongArgument(v)
	}
	out := map[string]*Amounts{}
	for it := m.Iterator(); it.HasNext() == types.True; {
		key := it.Next()
		name, isString := key.(types.String)
		a, isAmounts := m.Get(key).(*Amounts)
		if !isString || !isAmounts {
			return nil, wrongArgument(m.Get(key))
		}
		out[string(name)] = a
	}
	return out, nil
}
