package policy

import (
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
	c *model.Cluster
	p *Policy
	// NoCache makes every question be answered afresh. The answers are the same.
	NoCache bool

	values      Values
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
	slots     struct{ task, job int } // memos of each
	lot       []taskView              // views that are still to be used, for tasks of lotOf
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

	kept            int // mostKept
	namespacesSwept model.Swept
}

// Values computes what a policy adds to the fields of the language. An error is a *types.Err.
type Values interface {
	// Attribute is a computed field of the object that a view is of.
	Attribute(x *Attribute, of ref.Val) ref.Val
	// Variable is a variable of a table, for what a frame is about.
	Variable(v *Variable, f *Frame) ref.Val
	// Starving is the answer of jobStarving.
	Starving(j *model.Job) bool
}

// init begins a world with nothing in it that was seen.
func (w *World) init(c *model.Cluster, p *Policy, values Values) {
	*w = World{c: c, p: p, values: values, action: types.String(""), namespaces: map[string]*namespaceView{}, kept: mostKept, noStrings: stringMap(nil), noWords: stringList(nil), dictionaries: map[aspect]*dictionary{}}
	w.typ = viewTypes{task: taskType(), job: jobType(), role: roleType(), queue: queueType(), spec: queueSpecType(), node: nodeType(), taint: taintType(), gpu: gpuType(), cluster: clusterType()}
	w.slots.task, w.slots.job = p.slots["Task"], p.slots["Job"]
	w.dims = &dims{Dims: c.Dims, shared: &w.shared}
	w.topology = topology.New(c, func(t *model.Task) *topology.TaskMemo { return &w.taskView(t).topology })
	w.cluster = &clusterView{view: view[model.Cluster]{of: c, w: w, typ: w.typ.cluster, memo: make([]memo, p.slots["Cluster"])}}
}

// Anew is the same moment of the cycle, seen by one who has seen nothing yet.
func (w *World) Anew() *World {
	out := NewWorld(w.c, w.p, w.values)
	out.now, out.action, out.usedAtStart, out.sizes, out.volumes = w.now, w.action, w.usedAtStart, w.sizes, w.volumes
	return out
}

// Policy that the world is seen by.
func (w *World) Policy() *Policy { return w.p }

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

// NewWorld begins to see a cluster by a policy.
func NewWorld(c *model.Cluster, p *Policy, values Values) *World {
	w := &World{}
	w.init(c, p, values)
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

// Owners are views of all that has a computed field, in the order of their names, nodes in that of their rows.
func (w *World) Owners(x *Attribute) []ref.Val {
	var out []ref.Val
	switch x.On {
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
		for _, key := range sortedKeys(w.c.Tasks) {
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
