package policy

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	corev1 "k8s.io/api/core/v1"

	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/topology"
)

// The types of the language that stand for the cluster's objects. They exist once, because
// CEL compares types by name only.
func object(name string, trait ...int) *cel.Type { return cel.ObjectType(name, trait...) }

func taskType() *cel.Type      { return object("Task") }
func jobType() *cel.Type       { return object("Job") }
func roleType() *cel.Type      { return object("Role") }
func queueType() *cel.Type     { return object("Queue") }
func queueSpecType() *cel.Type { return object("QueueSpec") }
func nodeType() *cel.Type      { return object("Node") }
func taintType() *cel.Type     { return object("Taint") }
func gpuType() *cel.Type       { return object("GPU") }
func clusterType() *cel.Type   { return object("Cluster") }
func resourcesType() *cel.Type {
	return object("Resources", traits.AdderType, traits.SubtractorType, traits.IndexerType, traits.ContainerType)
}

// view is what all wrappers of model objects share: they are values by identity.
type view[T any] struct {
	of   *T
	w    *World
	typ  *cel.Type
	memo []memo // computed members, by Attribute.slot
}

// viewTypes are the types of views, made once a session.
type viewTypes struct {
	task, job, role, queue, spec, node, taint, gpu, cluster *cel.Type
}

// memo is a value that holds while its stamp does.
type memo struct {
	stamp stamp
	value ref.Val
}

type (
	taskView struct {
		view[model.Task]
		labels, annotations  ref.Val // once they were read
		request, initRequest amounts // boxes
		classKey             string
		classAt              stamp
		volumes              *volumeMemo
		topology             topology.TaskMemo
	}
	jobView struct {
		view[model.Job]
		labels, annotations                                      ref.Val // once they were read
		allocated, request, expected, gatedRequest, minResources amounts // boxes
		roles                                                    *roleList
	}
	queueView struct {
		view[model.Queue]
		labels, annotations ref.Val
		limits              ref.Val // by node group, once they were read
		allocated, request  amounts // boxes
		spec                specView
	}
	nodeView struct {
		view[model.Node]
		object              uint64
		labels, annotations ref.Val // once they were read
		taints              ref.Val // likewise
		free                freeDevices
		gpus                gpuViews
		tags                tags
	}
	roleView struct {
		view[model.Role]
		job *model.Job
	}
	taintView   struct{ view[taint] }
	gpuView     struct{ view[model.GPU] }
	clusterView struct {
		view[model.Cluster]
		allocatable, used, usedAtStart amounts // boxes
	}
	specView struct {
		view[model.Queue]
		capability, limit, guarantee, deserved amounts // boxes
	}
	taint struct{ key, value, effect string }
)

// ConvertToNative implements ref.Val: wrappers have no other form.
func (v *view[T]) ConvertToNative(reflect.Type) (any, error) {
	return nil, fmt.Errorf("a %s has no other form", v.typ.TypeName())
}

// ConvertToType implements ref.Val.
func (v *view[T]) ConvertToType(t ref.Type) ref.Val {
	if t == types.TypeType {
		return v.typ
	}
	return types.NewErr("a %s cannot become a %s", v.typ.TypeName(), t.TypeName())
}

// Equal implements ref.Val: the same object.
func (v *view[T]) Equal(other ref.Val) ref.Val {
	o, ok := other.Value().(interface{ identity() any })
	return types.Bool(ok && o.identity() == any(v.of))
}

// Type implements ref.Val.
func (v *view[T]) Type() ref.Type { return v.typ }

func (v *view[T]) identity() any { return v.of }

// Value implements ref.Val: the wrapper itself, which members are read from.
func (v *taskView) Value() any { return v }

// Value implements ref.Val.
func (v *jobView) Value() any { return v }

// Value implements ref.Val.
func (v *queueView) Value() any { return v }

// Value implements ref.Val.
func (v *nodeView) Value() any { return v }

// Value implements ref.Val.
func (v *roleView) Value() any { return v }

// Value implements ref.Val.
func (v *taintView) Value() any { return v }

// Value implements ref.Val.
func (v *gpuView) Value() any { return v }

// Value implements ref.Val.
func (v *clusterView) Value() any { return v }

// Value implements ref.Val.
func (v *specView) Value() any { return v }

func (w *World) taskView(t *model.Task) *taskView {
	if v, ok := t.View.(*taskView); ok && v.w == w && v.of == t {
		return v
	}
	var v *taskView
	if w.shared {
		v = &taskView{view: view[model.Task]{memo: make([]memo, w.layout.Memos.Task)}}
	} else {
		v = w.taskRoom(t.Job)
		v.memo = w.memoRoom.Slice(w.layout.Memos.Task)
	}
	v.of, v.w, v.typ = t, w, w.typ.task
	t.View = v
	return v
}

// taskLot is how many views of tasks are made at once. They keep each other, and the tasks they are of, so they are of one job,
// whose tasks come and go together.
const taskLot = 8

func (w *World) taskRoom(j *model.Job) *taskView {
	if len(w.lot) == 0 || w.lotOf != j {
		w.lot, w.lotOf = make([]taskView, min(max(j.Counts[model.Pending], 1), taskLot)), j
	}
	v := &w.lot[0]
	w.lot = w.lot[1:]
	return v
}

func (w *World) jobView(j *model.Job) *jobView {
	if v, ok := j.View.(*jobView); ok && v.w == w && v.of == j {
		return v
	}
	v := &jobView{view: view[model.Job]{of: j, w: w, typ: w.typ.job, memo: w.memoRoom.Slice(w.layout.Memos.Job)}}
	j.View = v
	return v
}

func (w *World) queueView(q *model.Queue) ref.Val {
	if q == nil {
		return types.NullValue
	}
	if v, ok := q.View.(*queueView); ok && v.w == w && v.of == q {
		return v
	}
	v := &queueView{view: view[model.Queue]{of: q, w: w, typ: w.typ.queue, memo: make([]memo, w.layout.Memos.Queue)}, labels: w.stringMap(q.Labels), annotations: w.stringMap(q.Annotations)}
	v.spec = specView{view: view[model.Queue]{of: q, w: w, typ: w.typ.spec}}
	q.View = v
	return v
}

func (w *World) nodeView(row int32) *nodeView {
	n := w.c.Nodes.Rows[row]
	if v, ok := n.View.(*nodeView); ok && v.w == w && v.of == n && v.object == w.c.Nodes.Object[row] {
		return v
	}
	v := &nodeView{
		view: view[model.Node]{of: n, w: w, typ: w.typ.node, memo: make([]memo, w.layout.Memos.Node)}, object: w.c.Nodes.Object[row],
	}
	n.View = v
	return v
}

func (v *nodeView) taintList() ref.Val {
	if v.taints == nil {
		taints := make([]ref.Val, len(v.of.Taints))
		for i, t := range v.of.Taints {
			taints[i] = &taintView{view[taint]{of: &taint{t.Key, t.Value, string(t.Effect)}, w: v.w, typ: v.w.typ.taint}}
		}
		v.taints = list(taints)
	}
	return v.taints
}

// strings is stringMap, made when it is read for the first time.
func (w *World) strings(kept *ref.Val, m map[string]string) ref.Val {
	if *kept == nil {
		*kept = w.stringMap(m)
	}
	return *kept
}

// stringMap is a map as rows see it; there is but one without entries.
func (w *World) stringMap(m map[string]string) ref.Val {
	if len(m) > 0 {
		return stringMap(m)
	}
	return w.noStrings
}

func stringMap(m map[string]string) ref.Val {
	return types.NewStringStringMap(types.DefaultTypeAdapter, m)
}

func list(values []ref.Val) ref.Val {
	return types.NewRefValList(types.DefaultTypeAdapter, values)
}

func listOf[T any](items []T, f func(T) ref.Val) ref.Val {
	out := make([]ref.Val, len(items))
	for i, x := range items {
		out[i] = f(x)
	}
	return list(out)
}

// Number reads a numeric result.
func Number(v ref.Val) (float64, bool) {
	switch x := v.(type) {
	case types.Double:
		return float64(x), true
	case types.Int:
		return float64(x), true
	}
	return 0, false
}

// Text writes a value for people.
func Text(v ref.Val) string {
	switch x := v.(type) {
	case types.String:
		return string(x)
	case types.Double:
		return strconv.FormatFloat(float64(x), 'g', 6, 64)
	case *types.Err:
		return "(" + x.Error() + ")"
	case traits.Lister:
		var parts []string
		for it := x.Iterator(); it.HasNext() == types.True; {
			parts = append(parts, Text(it.Next()))
		}
		return strings.Join(parts, ", ")
	case traits.Mapper:
		var parts []string
		for it := x.Iterator(); it.HasNext() == types.True; {
			k := it.Next()
			parts = append(parts, Text(k)+": "+Text(x.Get(k)))
		}
		slices.Sort(parts)
		return strings.Join(parts, ", ")
	case *types.Optional:
		if !x.HasValue() {
			return "none"
		}
		return Text(x.GetValue())
	case interface{ name() string }:
		return x.name()
	}
	if s, ok := v.ConvertToType(types.StringType).(types.String); ok {
		return string(s)
	}
	return "a " + v.Type().TypeName()
}

// The names of objects, where one is compared as a whole.
func (v *taskView) name() string  { return v.of.Key }
func (v *jobView) name() string   { return v.of.Key }
func (v *queueView) name() string { return v.of.Name }
func (v *nodeView) name() string  { return v.of.Name }
func (v *roleView) name() string  { return v.of.Name }

// tasksOn lists the tasks on a node by name, promised ones left out.
func (w *World) tasksOn(row int32) []*model.Task {
	var out []*model.Task
	for _, t := range w.c.Nodes.Tasks[row] {
		if t.Status != model.Pipelined {
			out = append(out, t)
		}
	}
	slices.SortFunc(out, func(a, b *model.Task) int { return cmp.Compare(a.Key, b.Key) })
	return out
}

// volumeMemo is what the rows that read volumes said to a task, by node.
type volumeMemo struct {
	pod     *corev1.Pod
	status  model.Status
	storage uint64 // version
	verdict []int16
	version []uint64 // of the node, plus 1; 0: not asked
}
