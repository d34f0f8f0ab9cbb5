package policy

import (
	"maps"
	"slices"
	"time"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/topology"
	"github.com/celsius-scheduler/celsius/engine/volume"
	"github.com/celsius-scheduler/celsius/rules"
)

// World is a cluster as the rows of a policy see it at one moment: every view of an object leads back to it.
type World struct {
	c      *model.Cluster
	layout Layout
	// NoCache makes every question be answered afresh. The answers are the same.
	NoCache bool

	values      worldValues
	now         types.Timestamp
	action      ref.Val
	usedAtStart model.Resources
	cluster     *clusterView
	typ         viewTypes
	namespaces  map[string]*namespaceView
	volumes     *volume.Volumes
	topology    *topology.Counts
	// sizes are the domains of the nodes that are chosen from, while scores that read them are computed.
	sizes []int32

	noStrings ref.Val // the map without entries
	noWords   ref.Val // the list without strings
	memoRoom  model.Slab[memo]
	lot       []taskView // views that are still to be used, for tasks of lotOf
	lotOf     *model.Job
	dims      *dims
	// shared says that several goroutines evaluate at once: what is not of one node is only read.
	shared       bool
	cycle        uint64
	dictionaries map[aspect]*dictionary // of what only the objects of nodes tell
	// meter gives what an expression draws its budget from; nil: each evaluation has one of its own.
	meter   func(*rules.Expr) *rules.Meter
	nowRoot any     // see nowValue
	offers  []offer // reused

	kept            int // how much of a kind may be kept of what is gone
	namespacesSwept model.Swept
}

// worldValues computes what the fields of the language cannot tell by themselves.
type worldValues interface {
	// Starving is the answer of jobStarving.
	Starving(j *model.Job) bool
}

// Layout is what a policy adds to what there is to see.
type Layout struct {
	// Memos are how many computed fields an object of each type has.
	Memos struct{ Cluster, Namespace, Queue, Job, Task, Node int }
	// Pipeline is the names of its actions.
	Pipeline ref.Val
}

// memosOf are those of a type.
func (l *Layout) memosOf(typeName string) *int {
	return map[string]*int{
		"Cluster": &l.Memos.Cluster, "Namespace": &l.Memos.Namespace, "Queue": &l.Memos.Queue, "Job": &l.Memos.Job, "Task": &l.Memos.Task, "Node": &l.Memos.Node,
	}[typeName]
}

// mostKept is how much of a kind may be kept of what is gone, beyond as much again as is there, so that the memory depends on what the
// cluster holds, and not on how long it has been followed.
const mostKept = 1024

// init begins a world with nothing in it that was seen.
func (w *World) init(c *model.Cluster, layout Layout, values worldValues) {
	*w = World{
		c: c, layout: layout, values: values, action: types.String(""), kept: mostKept, noStrings: stringMap(nil), noWords: stringList(nil),
		namespaces: map[string]*namespaceView{}, dictionaries: map[aspect]*dictionary{},
	}
	w.typ = viewTypes{task: taskType(), job: jobType(), role: roleType(), queue: queueType(), spec: queueSpecType(), node: nodeType(), taint: taintType(), gpu: gpuType(), cluster: clusterType()}
	w.dims = &dims{Dims: c.Dims, shared: &w.shared}
	w.topology = topology.New(c, func(t *model.Task) *topology.TaskMemo { return &w.taskView(t).topology })
	w.cluster = &clusterView{view: view[model.Cluster]{of: c, w: w, typ: w.typ.cluster, memo: make([]memo, layout.Memos.Cluster)}}
}

// Anew is the same moment of the cycle, seen by one who has seen nothing yet.
func (w *World) Anew() *World {
	out := newWorld(w.c, w.layout, w.values)
	out.now, out.action, out.usedAtStart, out.sizes, out.volumes = w.now, w.action, w.usedAtStart, w.sizes, w.volumes
	return out
}

// Cluster that is seen.
func (w *World) Cluster() *model.Cluster { return w.c }

// at sets the time.
func (w *World) at(now time.Time) { w.now, w.nowRoot = types.Timestamp{Time: now}, nil }

// nowValue is now as expressions read it, in one box for all of them.
func (w *World) nowValue() any {
	switch {
	case w.nowRoot != nil:
		return w.nowRoot
	case w.shared:
		return w.now
	}
	w.nowRoot = w.now
	return w.nowRoot
}

// newWorld begins to see a cluster.
func newWorld(c *model.Cluster, layout Layout, values worldValues) *World {
	w := &World{}
	w.init(c, layout, values)
	return w
}

// BeginAt begins a cycle.
func (w *World) BeginAt(now time.Time) {
	w.at(now)
	w.usedAtStart, w.action = w.c.Used.Clone(), types.String("")
}

// Run says which action runs, for rows that ask.
func (w *World) Run(action string) { w.action = types.String(action) }

// Among asks for scores of a task on the nodes that are chosen from.
func (w *World) Among(t *model.Task, nodes []int32, ask func()) {
	w.sizes = w.topologyOf(t).SizesAmong(nodes)
	ask()
	w.sizes = nil
}

// Owner is the object that a view is of.
func Owner(view ref.Val) any {
	if v, ok := view.(interface{ identity() any }); ok {
		return v.identity()
	}
	return nil
}

// AmountsOf reads Resources; false: the value is none.
func AmountsOf(v ref.Val) (model.Resources, bool) {
	a, ok := v.(*amounts)
	if !ok {
		return nil, false
	}
	return a.r, true
}

// Held is a value that stays as it is: what the cluster has moves on in place.
func Held(v ref.Val) ref.Val {
	if a, ok := v.(*amounts); ok {
		return &amounts{a.r.Clone(), a.dims}
	}
	return v
}

// OwnerName is the name of the object that a view is of, as people know it; "" for the cluster.
func OwnerName(view ref.Val) string {
	if o, ok := view.(interface{ name() string }); ok {
		return o.name()
	}
	return ""
}

// Owners are views of all objects of a type, by its word, in the order of their names, nodes in that of their rows.
func (w *World) Owners(on string) []ref.Val {
	var out []ref.Val
	switch on {
	case "cluster":
		out = append(out, w.cluster)
	case "queue":
		for _, q := range w.c.QueuesByName() {
			out = append(out, w.queueView(q))
		}
	case "job":
		for _, j := range w.c.JobsByKey() {
			out = append(out, w.jobView(j))
		}
	case "task":
		for _, key := range slices.Sorted(maps.Keys(w.c.Tasks)) {
			out = append(out, w.taskView(w.c.Tasks[key]))
		}
	case "namespace":
		for _, name := range w.namespaceNames() {
			out = append(out, w.namespaceView(name))
		}
	case "node":
		for row, n := range w.c.Nodes.Rows {
			if n != nil {
				out = append(out, w.nodeView(int32(row)))
			}
		}
	}
	return out
}
