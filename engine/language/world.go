package language

import (
	"maps"
	"slices"
	"time"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"github.com/celsius-scheduler/celsius/engine/disruption"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/slab"
	"github.com/celsius-scheduler/celsius/engine/topology"
	"github.com/celsius-scheduler/celsius/rules/eval"
)

// World is a cluster as the rows of a policy see it at one moment. Every view of an object refers to its World.
type World struct {
	c      *model.Cluster
	layout Layout
	Values Values
	Moment
	constants
	kept

	ClusterView *ClusterView
	volumes     model.Volumes
	Topology    *topology.Counts
	budgets     *disruption.Budgets
	// Shared means that several goroutines evaluate at once. Data that does not belong to one node is then read only. Share sets it.
	Shared bool
	// Meter returns the meter with an expression's budget; nil: each evaluation has its own budget.
	Meter func(*eval.Expr) *eval.Meter
}

// Moment is the moment of a cycle at which the world is read.
type Moment struct {
	Cycle       uint64
	Now         types.Timestamp
	nowRoot     any // the time as a value, see nowValue
	Action      ref.Val
	UsedAtStart model.Resources
	// Sizes are the domain sizes among the candidate nodes, while scores that read them are computed.
	Sizes []int32
}

// constants contains values and types that many reads return.
type constants struct {
	typ       viewTypes
	noStrings ref.Val // the empty map
	noWords   ref.Val // the empty list of strings
	dims      *Dims
}

// kept contains data that is reused between reads.
type kept struct {
	views           views
	Namespaces      map[string]*NamespaceView
	NamespacesSwept slab.Swept
	dictionaries    map[aspect]*dictionary // dictionaries of data that depends only on node objects
	nodeClasses     nodeClasses
	memoRoom        slab.Of[Memo]
	offers          []offer
	Keep            int // how much data of deleted objects of one type may be kept
}

// Values computes fields that the language itself cannot compute.
type Values interface {
	// Starving returns the outcome of jobStarving.
	Starving(j *model.Job) bool
	// IsReady returns the outcome of jobReady.
	IsReady(j *model.Job) bool
}

// Layout contains what a policy adds to the fields of the language.
type Layout struct {
	// Memos contains the number of computed fields of each type.
	Memos struct{ Cluster, Namespace, Queue, Job, Task, Node int }
	// Pipeline contains the names of its actions.
	Pipeline ref.Val
}

// MemosOf returns the number for a type.
func (l *Layout) MemosOf(typeName string) *int {
	return map[string]*int{
		"Cluster": &l.Memos.Cluster, "Namespace": &l.Memos.Namespace, "Queue": &l.Memos.Queue, "Job": &l.Memos.Job, "Task": &l.Memos.Task,
		"Node": &l.Memos.Node,
	}[typeName]
}

// mostKept limits the data of deleted objects of one type: mostKept plus the number of existing objects. So memory depends on the size of
// the cluster, and not on the running time.
const mostKept = 1024

// Anew returns a World for the same moment without any cached data.
func (w *World) Anew() *World {
	out := NewWorld(w.c, w.layout, w.Values)
	out.Now, out.Action, out.UsedAtStart, out.Sizes, out.volumes = w.Now, w.Action, w.UsedAtStart, w.Sizes, w.volumes
	return out
}

// Cluster returns the cluster.
func (w *World) Cluster() *model.Cluster { return w.c }

// SetTime sets the time.
func (w *World) SetTime(now time.Time) { w.Now, w.nowRoot = types.Timestamp{Time: now}, nil }

// nowValue returns now for expressions. All expressions share one box.
func (w *World) nowValue() any {
	switch {
	case w.nowRoot != nil:
		return w.nowRoot
	case w.Shared:
		return w.Now
	}
	w.nowRoot = w.Now
	return w.nowRoot
}

// Breathe calls Breathe of the cluster.
func (w *World) Breathe() { w.c.Breathe() }

// BreaksOff reports whether Breathe may stop the running work.
func (w *World) BreaksOff() bool { return w.c.Enough != nil }

// NewWorld returns a World of a cluster.
func NewWorld(c *model.Cluster, layout Layout, values Values) *World {
	w := &World{c: c, layout: layout, Values: values}
	w.Action, w.Keep = types.String(""), mostKept
	w.noStrings, w.noWords, w.dims = StringMap(nil), StringList(nil), &Dims{Dims: c.Dims, Shared: &w.Shared}
	w.Namespaces, w.dictionaries = map[string]*NamespaceView{}, map[aspect]*dictionary{}
	w.typ = viewTypes{
		task: TaskType(), job: JobType(), role: roleType(), queue: QueueType(), spec: queueSpecType(), node: NodeType(),
		taint: taintType(), gpu: GPUType(), cluster: ClusterType(),
	}
	w.Topology = topology.New(c, func(t *model.Task) *topology.TaskMemo { return &w.TaskView(t).topology })
	w.budgets = disruption.New(c)
	w.ClusterView = &ClusterView{View: View[model.Cluster]{Of: c, World: w, typ: w.typ.cluster, Memos: make([]Memo, layout.Memos.Cluster)}}
	w.LimitViews()
	return w
}

// BeginAt begins a cycle.
func (w *World) BeginAt(now time.Time) {
	w.SetTime(now)
	w.UsedAtStart, w.Action = w.c.Used.Clone(), types.String("")
}

// Run sets the running action for rows that read it.
func (w *World) Run(action string) { w.Action = types.String(action) }

// Among calls ask while scores of a task are computed among the given candidate nodes.
func (w *World) Among(t *model.Task, nodes []int32, ask func()) {
	w.Sizes = w.TopologyOf(t).SizesAmong(nodes)
	ask()
	w.Sizes = nil
}

// Owner returns the object of a view.
func Owner(view ref.Val) any {
	if v, ok := view.(interface{ identity() any }); ok {
		return v.identity()
	}
	return nil
}

// AmountsOf converts a value to Resources; false: it has another type.
func AmountsOf(v ref.Val) (model.Resources, bool) {
	a, ok := v.(*Amounts)
	if !ok {
		return nil, false
	}
	return a.Resources, true
}

// Held returns a value that does not change, because amounts of the cluster change in place.
func Held(v ref.Val) ref.Val {
	if a, ok := v.(*Amounts); ok {
		return &Amounts{a.Resources.Clone(), a.Dims}
	}
	return v
}

// OwnerName returns the name of the object of a view for users; "" for the cluster.
func OwnerName(view ref.Val) string {
	if o, ok := view.(interface{ name() string }); ok {
		return o.name()
	}
	return ""
}

// Owners returns the views of all objects of a type, ordered by name, or by row for nodes.
func (w *World) Owners(on string) []ref.Val {
	var out []ref.Val
	switch on {
	case "cluster":
		out = append(out, w.ClusterView)
	case "queue":
		for _, q := range w.c.QueuesByName() {
			out = append(out, w.QueueView(q))
		}
	case "job":
		for _, j := range w.c.JobsByKey() {
			out = append(out, w.JobView(j))
		}
	case "task":
		for _, key := range slices.Sorted(maps.Keys(w.c.Tasks)) {
			out = append(out, w.TaskView(w.c.Tasks[key]))
		}
	case "namespace":
		for _, name := range w.NamespaceNames() {
			out = append(out, w.NamespaceView(name))
		}
	case "node":
		for row, n := range w.c.Nodes.Rows {
			if n != nil {
				out = append(out, w.NodeView(int32(row)))
			}
		}
	}
	return out
}
