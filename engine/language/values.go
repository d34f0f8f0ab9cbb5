package language

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

// Object returns a type of the language for objects. CEL compares types by name only.
func Object(name string, trait ...int) *cel.Type { return cel.ObjectType(name, trait...) }

// TaskType returns the type of tasks.
func TaskType() *cel.Type { return Object("Task") }

// JobType returns the type of jobs.
func JobType() *cel.Type { return Object("Job") }

// QueueType returns the type of queues.
func QueueType() *cel.Type { return Object("Queue") }

// NodeType returns the type of nodes.
func NodeType() *cel.Type { return Object("Node") }

// GPUType returns the type of a node's devices.
func GPUType() *cel.Type { return Object("GPU") }

// ClusterType returns the type of the cluster.
func ClusterType() *cel.Type { return Object("Cluster") }

func roleType() *cel.Type      { return Object("Role") }
func queueSpecType() *cel.Type { return Object("QueueSpec") }
func taintType() *cel.Type     { return Object("Taint") }

// ResourcesType returns the type of amounts by resource.
func ResourcesType() *cel.Type {
	return Object("Resources", traits.AdderType, traits.SubtractorType, traits.IndexerType, traits.ContainerType)
}

// View is the common part of all wrappers of model objects. Two views are equal if they wrap the same object.
type View[T any] struct {
	Of    *T
	World *World
	typ   *cel.Type
	Memos []Memo // computed members, by Attribute.Slot
}

// viewTypes contains the types of views, created once per session.
type viewTypes struct {
	task, job, role, queue, spec, node, taint, gpu, cluster *cel.Type
}

// Memo is a value that is valid while its stamp is current.
type Memo struct {
	Stamp Stamp
	Value ref.Val
}

type (
	// TaskView is a task as a value.
	TaskView struct {
		View[model.Task]
		labels, annotations ref.Val // set at the first read
		request             Amounts // a reused box
		ClassKey            string
		ClassAt             Stamp
		Volumes             *VolumeMemo
		topology            topology.TaskMemo
	}
	// JobView is a job as a value.
	JobView struct {
		View[model.Job]
		labels, annotations                                      ref.Val // set at the first read
		allocated, request, expected, gatedRequest, minResources Amounts // boxes
		roles                                                    *roleList
		buckets                                                  *bucketsValue // the buckets for a version of the job, plus 1
		bucketsAt                                                uint64
		nodeClass                                                string // as of ObjectClock plus 1
		nodeClassAt                                              uint64
	}
	// QueueView is a queue as a value.
	QueueView struct {
		View[model.Queue]
		labels, annotations          ref.Val
		limits                       ref.Val // limits by node group, set at the first read
		allocated, occupied, request Amounts // boxes
		spec                         specView
	}
	// NodeView is a node as a value.
	NodeView struct {
		View[model.Node]
		labels, annotations ref.Val // set at the first read
		taints              ref.Val // set at the first read
		free                freeDevices
		gpus                GPUViews
		tags                tags
	}
	roleView struct {
		View[model.Role]
		job *model.Job
	}
	taintView struct{ View[taint] }
	// GPUView is a device as a value.
	GPUView struct {
		View[model.GPU]
		row   int32
		later bool
	}
	// ClusterView is the cluster as a value.
	ClusterView struct {
		View[model.Cluster]
		allocatable, usable, used, usedAtStart Amounts // boxes
	}
	specView struct {
		View[model.Queue]
		capability, limit, guarantee, deserved Amounts // boxes
	}
	taint struct{ key, value, effect string }
)

// ConvertToNative implements ref.Val. Wrappers have no other form.
func (v *View[T]) ConvertToNative(reflect.Type) (any, error) {
	return nil, fmt.Errorf("a %s has no other form", v.typ.TypeName())
}

// ConvertToType implements ref.Val.
func (v *View[T]) ConvertToType(t ref.Type) ref.Val {
	if t == types.TypeType {
		return v.typ
	}
	return types.NewErr("a %s cannot become a %s", v.typ.TypeName(), t.TypeName())
}

// Equal implements ref.Val. It compares the wrapped objects.
func (v *View[T]) Equal(other ref.Val) ref.Val {
	o, ok := other.Value().(interface{ identity() any })
	return types.Bool(ok && o.identity() == any(v.Of))
}

// Type implements ref.Val.
func (v *View[T]) Type() ref.Type { return v.typ }

func (v *View[T]) identity() any { return v.Of }

// Value implements ref.Val. It returns the wrapper itself, because members are read from it.
func (v *TaskView) Value() any { return v }

// Value implements ref.Val.
func (v *JobView) Value() any { return v }

// Value implements ref.Val.
func (v *QueueView) Value() any { return v }

// Value implements ref.Val.
func (v *NodeView) Value() any { return v }

// Value implements ref.Val.
func (v *roleView) Value() any { return v }

// Value implements ref.Val.
func (v *taintView) Value() any { return v }

// Value implements ref.Val.
func (v *GPUView) Value() any { return v }

// Value implements ref.Val.
func (v *ClusterView) Value() any { return v }

// Value implements ref.Val.
func (v *specView) Value() any { return v }

func (v *NodeView) taintList() ref.Val {
	if v.taints == nil {
		taints := make([]ref.Val, len(v.Of.Taints))
		for i, t := range v.Of.Taints {
			taints[i] = &taintView{View[taint]{Of: &taint{t.Key, t.Value, string(t.Effect)}, World: v.World, typ: v.World.typ.taint}}
		}
		v.taints = List(taints)
	}
	return v.taints
}

// strings is stringMap, computed at the first read.
func (w *World) strings(kept *ref.Val, m map[string]string) ref.Val {
	if *kept == nil {
		*kept = w.stringMap(m)
	}
	return *kept
}

// stringMap returns a map of strings as a value. All empty maps share one value.
func (w *World) stringMap(m map[string]string) ref.Val {
	if len(m) > 0 {
		return StringMap(m)
	}
	return w.noStrings
}

// StringMap returns a map of strings as a value.
func StringMap(m map[string]string) ref.Val {
	return types.NewStringStringMap(types.DefaultTypeAdapter, m)
}

// List returns a list as a value.
func List(values []ref.Val) ref.Val {
	return types.NewRefValList(types.DefaultTypeAdapter, values)
}

func listOf[T any](items []T, f func(T) ref.Val) ref.Val {
	out := make([]ref.Val, len(items))
	for i, x := range items {
		out[i] = f(x)
	}
	return List(out)
}

// Number converts a numeric value to a float64; false: it is not numeric.
func Number(v ref.Val) (float64, bool) {
	switch x := v.(type) {
	case types.Double:
		return float64(x), true
	case types.Int:
		return float64(x), true
	}
	return 0, false
}

// Text returns a value as text for users.
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
	case *typical: // its name is a key, not its text
		return x.of.String()
	case interface{ name() string }:
		return x.name()
	}
	if s, ok := v.ConvertToType(types.StringType).(types.String); ok {
		return string(s)
	}
	return "a " + v.Type().TypeName()
}

// Names of objects, for comparing whole objects.
func (v *TaskView) name() string  { return v.Of.Key }
func (v *JobView) name() string   { return v.Of.Key }
func (v *QueueView) name() string { return v.Of.Name }
func (v *NodeView) name() string  { return v.Of.Name }
func (v *roleView) name() string  { return v.Of.Name }

// TasksOn returns the tasks on a node by name, without promised ones.
func (w *World) TasksOn(row int32) []*model.Task {
	var out []*model.Task
	for _, t := range w.c.Nodes.Tasks[row] {
		if t.Status != model.Pipelined {
			out = append(out, t)
		}
	}
	slices.SortFunc(out, func(a, b *model.Task) int { return cmp.Compare(a.Key, b.Key) })
	return out
}

// VolumeMemo caches the verdicts of rows that read volumes about a task, by node.
type VolumeMemo struct {
	Pod     *corev1.Pod
	Status  model.Status
	Storage uint64 // the version of the storage
	Verdict []int16
	Version []uint64 // the version of the node, plus 1; 0: not evaluated
}
