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

// World is a cluster as the rows of a policy see it at one moment: every view of an object leads back to it.
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
	// Shared says that several goroutines evaluate at once: what is not of one node is only read. It begins by Share.
	Shared bool
	// Meter gives what an expression draws its budget from; nil: each evaluation has one of its own.
	Meter func(*eval.Expr) *eval.Meter
}

// Moment is the moment of a cycle at which the world is seen.
type Moment struct {
	Cycle       uint64
	Now         types.Timestamp
	nowRoot     any // see nowValue
	Action      ref.Val
	UsedAtStart model.Resources
	// Sizes are the domains of the nodes that are chosen from, while scores that read them are computed.
	Sizes []int32
}

// constants are values and types that many reads give.
type constants struct {
	typ       viewTypes
	noStrings ref.Val // the map without entries
	noWords   ref.Val // the list without strings
	dims      *Dims
}

// kept is what was made for one read and serves the next.
type kept struct {
	views           views
	Namespaces      map[string]*NamespaceView
	NamespacesSwept slab.Swept
	dictionaries    map[aspect]*dictionary // of what only the objects of nodes tell
	nodeClasses     nodeClasses
	memoRoom        slab.Of[Memo]
	offers          []offer
	Keep            int // how much of a kind may be kept of what is gone
}

// Values computes what the fields of the language cannot tell by themselves.
type Values interface {
	// Starving returns the outcome of jobStarving.
	Starving(j *model.Job) bool
	// IsReady returns the outcome of jobReady.
	IsReady(j *model.Job) bool
}

// Layout is what a policy adds to what there is to see.
type Layout struct {
	// Memos are how many computed fields an object of each type has.
	Memos struct{ Cluster, Namespace, Queue, Job, Task, Node int }
	// Pipeline is the names of its actions.
	Pipeline ref.Val
}

// MemosOf are those of a type.
func (l *Layout) MemosOf(typeName string) *int {
	return map[string]*int{
		"Cluster": &l.Memos.Cluster, "Namespace": &l.Memos.Namespace, "Queue": &l.Memos.Queue, "Job": &l.Memos.Job, "Task": &l.Memos.Task,
		"Node": &l.Memos.Node,
	}[typeName]
}

// mostKept is how much of a kind may be kept of what is gone, beyond as much again as is there, so that the memory depends on what the
// cluster holds, and not on how long it has been followed.
const mostKept = 1024

// Anew is the same moment of the cycle, seen by one who has seen nothing yet.
func (w *World) Anew() *World {
	out := NewWorld(w.c, w.layout, w.Values)
	out.Now, out.Action, out.UsedAtStart, out.Sizes, out.volumes = w.Now, w.Action, w.UsedAtStart, w.Sizes, w.volumes
	return out
}

// Cluster that is seen.
func (w *World) Cluster() *model.Cluster { return w.c }

// SetTime sets the time.
func (w *World) SetTime(now time.Time) { w.Now, w.nowRoot = types.Timestamp{Time: now}, nil }

// nowValue is now as expressions read it, in one box for all of them.
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

// Breathe is that of the cluster.
func (w *World) Breathe() { w.c.Breathe() }

// BreaksOff reports whether Breathe may break off what runs.
func (w *World) BreaksOff() bool { return w.c.Enough != nil }

// NewWorld begins to see a cluster.
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

// Run says which action runs, for rows that ask.
func (w *World) Run(action string) { w.Action = types.String(action) }

// Among asks for scores of a task on the nodes that are chosen from.
func (w *World) Among(t *model.Task, nodes []int32, ask func()) {
	w.Sizes = w.TopologyOf(t).SizesAmong(nodes)
	ask()
	w.Sizes = nil
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
	a, ok := v.(*Amounts)
	if !ok {
		return nil, false
	}
	return a.Resources, true
}

// Held is a value that stays as it is: what the cluster has moves on in place.
func Held(v ref.Val) ref.Val {
	if a, ok := v.(*Amounts); ok {
		return &Amounts{a.Resources.Clone(), a.Dims}
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
