package policy

import (
	"slices"
	"time"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/rules"
)

// field declares one member of an object type.
func field[T any](name string, t *cel.Type, changes rules.Changes, doc string, get func(T) ref.Val) *rules.Member {
	return &rules.Member{Name: name, Type: t, Doc: doc, Changes: changes, Get: func(o any) ref.Val {
		v, ok := o.(T)
		if !ok {
			return types.NewErr("no field %q: the object is null", name)
		}
		return get(v)
	}}
}

// hidden declares what only functions read.
func hidden[T any](name string, doc string, get func(T) ref.Val) *rules.Member {
	m := field(name, cel.StringType, rules.ByObject, doc, get)
	m.Hidden = true
	return m
}

// related marks a field that other objects change, too.
func related(m *rules.Member) *rules.Member {
	m.Related = true
	return m
}

// bounded sets the most elements, for the cost estimate.
func bounded(m *rules.Member, most uint64) *rules.Member {
	m.Bound = most
	return m
}

func stamped(t time.Time) ref.Val {
	if t.IsZero() {
		return types.NullValue
	}
	return types.Timestamp{Time: t}
}

func stringList(items []string) ref.Val { return types.NewStringList(types.DefaultTypeAdapter, items) }

func stringMapType() *cel.Type { return cel.MapType(cel.StringType, cel.StringType) }

// objects declares every type of the language with its fields.
func objects() []*rules.Object {
	return append([]*rules.Object{
		{Name: "Task", Type: taskType(), Doc: "A pod, as a scheduler sees it.", Members: slices.Concat(taskFields(), nearFields(), imageFields())},
		{Name: "Job", Type: jobType(), Doc: "A PodGroup and its tasks.", Members: jobFields()},
		{Name: "Role", Type: roleType(), Doc: "The tasks of a job that share a task-spec name.", Members: roleFields()},
		{Name: "Queue", Type: queueType(), Doc: "A queue; raw figures of the object lie under spec.", Members: queueFields()},
		{Name: "QueueSpec", Type: queueSpecType(), Doc: "The figures of a queue as its object has them.", Members: queueSpecFields()},
		{Name: "Node", Type: nodeType(), Doc: "A node that is ready.", Members: append(nodeFields(), domainFields()...)},
		{Name: "Taint", Type: taintType(), Doc: "A taint of a node.", Members: taintFields()},
		{Name: "GPU", Type: gpuType(), Doc: "One device of a node.", Members: gpuFields()},
		{Name: "Cluster", Type: clusterType(), Doc: "The whole cluster.", Members: clusterFields()},
		{Name: "Typical", Type: typicalType(), Doc: "The most frequent shapes of task: a value of the accounting function `typicalTasks`, for `fragGain`."},
		{Name: "ShareTree", Type: shareTreeType(), Leaf: true, Doc: "Shares of jobs and queues along a tree, as the accounting function hdrf keeps them."},
		{Name: "Resources", Type: resourcesType(), Leaf: true, Doc: "A partial map from resource name to an amount, exact inside; reading one gives a double.", Members: resourceFields()},
	}, namespaceObjects()...)
}

func resourceFields() []*rules.Member {
	get := func(name string) func(a *amounts) ref.Val {
		return func(a *amounts) ref.Val { return types.Double(a.get(name)) }
	}
	return []*rules.Member{
		field("cpu", cel.DoubleType, rules.Static, "in cores", get("cpu")),
		field("memory", cel.DoubleType, rules.Static, "in bytes", get("memory")),
		field("pods", cel.DoubleType, rules.Static, "pods", get("pods")),
	}
}

func taskFields() []*rules.Member {
	type v = *taskView
	str, num, boolean := cel.StringType, cel.IntType, cel.BoolType
	return append([]*rules.Member{
		field("name", str, rules.Static, "pod name", func(t v) ref.Val { return t.podName }),
		field("namespace", str, rules.Static, "pod namespace", func(t v) ref.Val { return types.String(t.of.Namespace) }),
		field("uid", str, rules.Static, "pod UID", func(t v) ref.Val { return types.String(t.of.UID) }),
		field("role", str, rules.Static, "annotation, else label, volcano.sh/task-spec, \"\" if none", func(t v) ref.Val { return types.String(t.of.Role) }),
		field("index", num, rules.Static, "task-index, else the numeric suffix of the name, -1 if none", func(t v) ref.Val { return types.Int(t.of.Index) }),
		field("job", jobType(), rules.ByObject, "its job; never null (a pod without a group has a job of its own, with orphan)", func(t v) ref.Val { return t.s.jobView(t.of.Job) }),
		field("queue", queueType(), rules.ByObject, "job.queue, for short", func(t v) ref.Val { return t.s.queueView(t.of.Job.Queue) }),
		field("priority", num, rules.ByObject, "pod.spec.priority, else 1; annotation volcano.sh/task-priority overrides", func(t v) ref.Val { return types.Int(t.of.Priority) }),
		field("priorityClassName", str, rules.Static, "pod.spec.priorityClassName", func(t v) ref.Val { return types.String(t.of.PriorityClassName) }),
		related(field("preemptionPolicy", str, rules.Static, "PreemptLowerPriority or Never", func(t v) ref.Val { return types.String(t.of.PreemptionPolicy) })),
		field("status", str, rules.ByStep, "Pending, Allocated, Pipelined, Binding, Bound, Running, Releasing, Succeeded, Failed, Unknown", func(t v) ref.Val { return types.String(t.of.Status.String()) }),
		field("request", resourcesType(), rules.ByObject, "what it is accounted for: containers, sidecars and overhead; pods is 1", func(t v) ref.Val { return t.s.amounts(t.of.Request) }),
		field("initRequest", resourcesType(), rules.ByObject, "what it needs to start: request, or its init containers where they need more", func(t v) ref.Val { return t.s.amounts(t.of.InitRequest) }),
		field("bestEffort", boolean, rules.ByObject, "initRequest is empty but for pods", func(t v) ref.Val { return types.Bool(t.of.BestEffort) }),
		field("gated", boolean, rules.ByObject, "has scheduling gates", func(t v) ref.Val { return types.Bool(t.of.Gated) }),
		field("preemptable", boolean, rules.ByObject, "annotation, else label, volcano.sh/preemptable; unset true, malformed false", func(t v) ref.Val { return types.Bool(t.of.Preemptable) }),
		field("revocableZone", str, rules.ByObject, "annotation volcano.sh/revocable-zone, \"\" if none", func(t v) ref.Val { return types.String(t.of.RevocableZone) }),
		field("labels", stringMapType(), rules.ByObject, "pod labels", func(t v) ref.Val { return t.labels }),
		field("annotations", stringMapType(), rules.ByObject, "pod annotations", func(t v) ref.Val { return t.annotations }),
		field("nodeName", str, rules.ByStep, "where it is or is promised, \"\" if nowhere", func(t v) ref.Val { return types.String(t.nodeName()) }),
		field("node", nodeType(), rules.ByStep, "the same as an object; null if nowhere", func(t v) ref.Val { return t.node() }),
		field("createdAt", cel.TimestampType, rules.Static, "pod creation", func(t v) ref.Val { return types.Timestamp{Time: t.of.CreatedAt} }),
		field("startedAt", cel.TimestampType, rules.ByObject, "status.startTime, null before", func(t v) ref.Val { return stamped(t.of.StartedAt) }),
		field("scheduledAt", cel.TimestampType, rules.ByObject, "when it was scheduled, null before", func(t v) ref.Val { return stamped(t.of.ScheduledAt) }),
		field("gpuCount", num, rules.ByObject, "devices asked", func(t v) ref.Val { return types.Int(t.of.GPUCount) }),
		field("gpuMilli", num, rules.ByObject, "thousandths of a device asked of each", func(t v) ref.Val { return types.Int(t.of.GPUMilli) }),
		field("gpuMemory", num, rules.ByObject, "bytes of device memory asked of each", func(t v) ref.Val { return types.Int(t.of.GPUMemory) }),
		field("gpuModels", cel.ListType(str), rules.ByObject, "allowed models, empty: any", func(t v) ref.Val { return stringList(t.of.GPUModels) }),
		field("gpuTag", str, rules.ByObject, "\"share\", \"<k>-gpu\", \"\" without GPU", func(t v) ref.Val { return types.String(t.of.GPUTag) }),
		field("hasAffinity", boolean, rules.ByObject, "has inter-pod (anti-)affinity or spread terms", func(t v) ref.Val { return types.Bool(t.of.HasAffinity) }),
		field("holdsResources", boolean, rules.ByStep, "status Allocated, Binding, Bound or Running", func(t v) ref.Val { return types.Bool(t.of.HoldsResources()) }),
		hidden("nodeTerms", "nodeSelector and required node affinity", func(t v) ref.Val { return types.String(t.of.NodeAffinityKey) }),
		hidden("preferredNodeTerms", "preferred node affinity", func(t v) ref.Val { return types.String(t.of.PreferredKey) }),
		hidden("tolerations", "tolerations", func(t v) ref.Val { return types.String(t.of.TolerationsKey) }),
		hidden("hostPorts", "host ports", func(t v) ref.Val { return types.String(t.of.HostPortsKey) }),
	}, volumeFields()...)
}

func (t *taskView) nodeName() string {
	if t.of.Node == model.NoNode {
		return ""
	}
	return t.s.c.Nodes.Rows[t.of.Node].Name
}

func (t *taskView) node() ref.Val {
	if t.of.Node == model.NoNode {
		return types.NullValue
	}
	return t.s.nodeView(t.of.Node)
}

func jobFields() []*rules.Member {
	type v = *jobView
	str, num, boolean := cel.StringType, cel.IntType, cel.BoolType
	count := func(name, doc string, changes rules.Changes, get func(j *model.Job) int64) *rules.Member {
		return field(name, num, changes, doc, func(j v) ref.Val { return types.Int(get(j.of)) })
	}
	return append([]*rules.Member{
		field("name", str, rules.Static, "PodGroup name", func(j v) ref.Val { return types.String(j.of.Name) }),
		field("namespace", str, rules.Static, "namespace", func(j v) ref.Val { return types.String(j.of.Namespace) }),
		field("uid", str, rules.Static, "namespace/name", func(j v) ref.Val { return types.String(j.of.Key) }),
		field("orphan", boolean, rules.ByObject, "its PodGroup is gone", func(j v) ref.Val { return types.Bool(j.of.Orphan) }),
		field("queue", queueType(), rules.ByObject, "its queue", func(j v) ref.Val { return j.s.queueView(j.of.Queue) }),
		count("priority", "value of the PodGroup's PriorityClass, else of the default class, else 0", rules.ByObject, func(j *model.Job) int64 { return j.Priority }),
		field("createdAt", cel.TimestampType, rules.Static, "creation of the PodGroup", func(j v) ref.Val { return types.Timestamp{Time: j.of.CreatedAt} }),
		field("phase", str, rules.ByAdmit, "Pending, Inqueue, Running, Unknown, Completed", func(j v) ref.Val { return types.String(j.of.Phase) }),
		field("admittedNow", boolean, rules.ByAdmit, "let in by admit in this cycle", func(j v) ref.Val { return types.Bool(j.of.AdmittedNow) }),
		field("labels", stringMapType(), rules.ByObject, "labels of the PodGroup", func(j v) ref.Val { return j.labels }),
		field("annotations", stringMapType(), rules.ByObject, "annotations of the PodGroup", func(j v) ref.Val { return j.annotations }),
		field("preemptable", boolean, rules.ByObject, "annotation of the PodGroup; unset false", func(j v) ref.Val { return types.Bool(j.of.Preemptable) }),
		field("preemptableForGang", boolean, rules.ByObject, "as preemptable, but unset true", func(j v) ref.Val { return types.Bool(j.of.PreemptableForGang) }),
		field("hasTopology", boolean, rules.ByObject, "networkTopology or sub-groups are set", func(j v) ref.Val { return types.Bool(j.of.HasTopology) }),
		count("minMember", "spec.minMember", rules.ByObject, func(j *model.Job) int64 { return j.MinMember }),
		field("minResources", resourcesType(), rules.ByObject, "spec.minResources, empty if absent", func(j v) ref.Val { return j.s.amounts(j.of.MinResources) }),
		field("hasMinResources", boolean, rules.ByObject, "spec.minResources is there", func(j v) ref.Val { return types.Bool(j.of.HasMinResources) }),
		bounded(field("roles", cel.ListType(roleType()), rules.ByStep, "tasks by role, in name order", func(j v) ref.Val { return j.roleList() }), 64),
		count("roleMinTotal", "sum of minTaskMember", rules.ByObject, func(j *model.Job) int64 { return j.RoleMinTotal }),
		count("taskCount", "all tasks", rules.ByObject, func(j *model.Job) int64 { return int64(len(j.Tasks)) }),
		count("pendingTasks", "status Pending", rules.ByStep, func(j *model.Job) int64 { return j.Counts[model.Pending] }),
		count("pendingBestEffort", "status Pending and bestEffort, but for those that found no place in this turn", rules.ByStep, func(j *model.Job) int64 { return j.PendingBestEffort }),
		count("pipelinedTasks", "status Pipelined", rules.ByStep, func(j *model.Job) int64 { return j.Counts[model.Pipelined] }),
		count("allocatedTasks", "Allocated, Binding, Bound, Running", rules.ByStep, allocatedTasks),
		count("readyTasks", "allocatedTasks and Succeeded", rules.ByStep, (*model.Job).Ready),
		count("validTasks", "readyTasks, Pipelined and Pending", rules.ByStep, (*model.Job).Valid),
		count("runningTasks", "status Running", rules.ByStep, func(j *model.Job) int64 { return j.Counts[model.Running] }),
		count("releasingTasks", "status Releasing", rules.ByStep, func(j *model.Job) int64 { return j.Counts[model.Releasing] }),
		count("succeededTasks", "status Succeeded", rules.ByObject, func(j *model.Job) int64 { return j.Counts[model.Succeeded] }),
		count("failedTasks", "status Failed", rules.ByObject, func(j *model.Job) int64 { return j.Counts[model.Failed] }),
		count("placedNow", "allocated or pipelined in this cycle", rules.ByStep, func(j *model.Job) int64 { return j.PlacedNow }),
		field("allocated", resourcesType(), rules.ByStep, "sum of request over allocatedTasks", func(j v) ref.Val { return j.s.amounts(j.of.Allocated) }),
		field("request", resourcesType(), rules.ByStep, "allocated and Pending", func(j v) ref.Val { return j.s.amounts(j.of.Request) }),
		field("gatedRequest", resourcesType(), rules.ByObject, "sum of request over gated tasks", func(j v) ref.Val { return j.s.amounts(j.of.GatedRequest) }),
		related(field("starving", boolean, rules.ByStep, "outcome of jobStarving; only an action's filters may read it", func(j v) ref.Val { return types.Bool(j.s.Starving(j.of)) })),
	}, namespaceJobFields()...)
}

func allocatedTasks(j *model.Job) int64 {
	return j.Counts[model.Allocated] + j.Counts[model.Binding] + j.Counts[model.Bound] + j.Counts[model.Running]
}

func (j *jobView) roleList() ref.Val {
	if j.roles == nil || j.version != j.of.Version {
		j.version = j.of.Version
		j.roles = listOf(j.of.Roles, func(r *model.Role) ref.Val {
			return &roleView{view[model.Role]{of: r, s: j.s, typ: roleType()}, j.of}
		})
	}
	return j.roles
}

func roleFields() []*rules.Member {
	type v = *roleView
	num := cel.IntType
	ready := func(r *model.Role) int64 {
		return r.Counts[model.Allocated] + r.Counts[model.Binding] + r.Counts[model.Bound] + r.Counts[model.Running] + r.Counts[model.Succeeded]
	}
	return []*rules.Member{
		field("name", cel.StringType, rules.Static, "task-spec name", func(r v) ref.Val { return types.String(r.of.Name) }),
		field("min", num, rules.ByObject, "minTaskMember of the role, 0 if none", func(r v) ref.Val { return types.Int(r.of.Min) }),
		field("ready", num, rules.ByStep, "allocated, Succeeded, and Pending bestEffort but for those that found no place in this turn", func(r v) ref.Val { return types.Int(ready(r.of) + r.of.PendingBestEffort) }),
		field("pipelined", num, rules.ByStep, "status Pipelined", func(r v) ref.Val { return types.Int(r.of.Counts[model.Pipelined]) }),
		field("pending", num, rules.ByStep, "status Pending", func(r v) ref.Val { return types.Int(r.of.Counts[model.Pending]) }),
		field("valid", num, rules.ByStep, "ready, pipelined and pending, each task once", func(r v) ref.Val {
			return types.Int(ready(r.of) + r.of.Counts[model.Pipelined] + r.of.Counts[model.Pending])
		}),
		field("failed", cel.BoolType, rules.ByFold, "a task of this role found no node in this turn", func(r v) ref.Val { return types.Bool(r.of.Failed) }),
	}
}

func queueFields() []*rules.Member {
	type v = *queueView
	str, num, boolean := cel.StringType, cel.IntType, cel.BoolType
	phase := func(p string) func(q v) ref.Val {
		return func(q v) ref.Val { return types.Int(q.of.Phases[p]) }
	}
	return append([]*rules.Member{
		field("name", str, rules.Static, "name", func(q v) ref.Val { return types.String(q.of.Name) }),
		field("uid", str, rules.Static, "UID", func(q v) ref.Val { return types.String(q.of.UID) }),
		field("createdAt", cel.TimestampType, rules.Static, "creation", func(q v) ref.Val { return types.Timestamp{Time: q.of.CreatedAt} }),
		field("spec", queueSpecType(), rules.ByObject, "raw figures of the object", func(q v) ref.Val {
			return &specView{view[model.Queue]{of: q.of, s: q.s, typ: queueSpecType()}}
		}),
		field("priority", num, rules.ByObject, "spec.priority, 0 if unset", func(q v) ref.Val { return types.Int(q.of.Priority) }),
		field("open", boolean, rules.ByObject, "state is Open (unset: Open)", func(q v) ref.Val { return types.Bool(q.of.Open) }),
		field("annotations", stringMapType(), rules.ByObject, "annotations", func(q v) ref.Val { return q.annotations }),
		field("labels", stringMapType(), rules.ByObject, "labels", func(q v) ref.Val { return q.labels }),
		field("jobCount", num, rules.ByObject, "jobs known", func(q v) ref.Val { return types.Int(len(q.of.Jobs)) }),
		field("pendingJobs", num, rules.ByAdmit, "jobs of phase Pending", phase("Pending")),
		field("runningJobs", num, rules.ByObject, "jobs of phase Running", phase("Running")),
		field("allocated", resourcesType(), rules.ByStep, "sum of request over the allocatedTasks of its jobs", func(q v) ref.Val { return q.s.amounts(q.of.Allocated) }),
		field("request", resourcesType(), rules.ByStep, "allocated and Pending", func(q v) ref.Val { return q.s.amounts(q.of.Request) }),
	}, nodeGroupFields()...)
}

func queueSpecFields() []*rules.Member {
	type v = *specView
	amount := func(name, doc string, get func(q *model.Queue) model.Resources) *rules.Member {
		return field(name, resourcesType(), rules.ByObject, doc, func(q v) ref.Val { return q.s.amounts(get(q.of)) })
	}
	return []*rules.Member{
		field("weight", cel.IntType, rules.ByObject, "weight, 1 if unset", func(q v) ref.Val { return types.Int(q.of.Weight) }),
		amount("capability", "most the queue may hold; may lack dimensions", func(q *model.Queue) model.Resources { return q.Capability }),
		amount("guarantee", "guarantee.resource", func(q *model.Queue) model.Resources { return q.Guarantee }),
		amount("deserved", "deserved", func(q *model.Queue) model.Resources { return q.Deserved }),
		field("reclaimable", cel.BoolType, rules.ByObject, "may others take back from it; unset true", func(q v) ref.Val { return types.Bool(q.of.Reclaimable) }),
		field("parent", cel.StringType, rules.ByObject, "parent queue, \"\" if none", func(q v) ref.Val { return types.String(q.of.Parent) }),
	}
}

func nodeFields() []*rules.Member {
	type v = *nodeView
	str, num := cel.StringType, cel.IntType
	amount := func(name, doc string, changes rules.Changes, get func(n *model.Nodes, row int32) model.Resources) *rules.Member {
		return field(name, resourcesType(), changes, doc, func(n v) ref.Val { return n.s.amounts(get(&n.s.c.Nodes, n.of.Row)) })
	}
	return []*rules.Member{
		field("name", str, rules.Static, "name", func(n v) ref.Val { return n.nodeName }),
		field("labels", stringMapType(), rules.ByObject, "labels", func(n v) ref.Val { return n.labels }),
		field("annotations", stringMapType(), rules.ByObject, "annotations", func(n v) ref.Val { return n.annotations }),
		bounded(field("taints", cel.ListType(taintType()), rules.ByObject, "taints", func(n v) ref.Val { return n.taints }), 32),
		field("unschedulable", cel.BoolType, rules.ByObject, "cordoned", func(n v) ref.Val { return types.Bool(n.of.Unschedulable) }),
		field("ready", cel.BoolType, rules.ByObject, "condition Ready (a node that is not is never offered)", func(n v) ref.Val { return types.Bool(n.of.Ready) }),
		amount("allocatable", "what pods may use", rules.ByObject, (*model.Nodes).AllocatableOf),
		amount("capacity", "what the machine has", rules.ByObject, (*model.Nodes).CapacityOf),
		amount("idle", "allocatable less used", rules.ByStep, (*model.Nodes).IdleOf),
		amount("used", "accounted, releasing included", rules.ByStep, (*model.Nodes).UsedOf),
		amount("releasing", "of tasks on their way out", rules.ByStep, (*model.Nodes).ReleasingOf),
		amount("pipelined", "promised to tasks that wait for what is being released", rules.ByStep, (*model.Nodes).PipelinedOf),
		amount("futureIdle", "idle and releasing, less pipelined", rules.ByStep, (*model.Nodes).FutureIdleOf),
		field("taskCount", num, rules.ByStep, "tasks on it, releasing included, pipelined not", func(n v) ref.Val { return types.Int(n.s.c.Nodes.TaskCount[n.of.Row]) }),
		field("maxTasks", num, rules.ByObject, "allocatable pods", func(n v) ref.Val { return types.Int(n.s.c.Nodes.AllocatableOf(n.of.Row).Get(model.Pods) / 1000) }),
		bounded(field("tasks", cel.ListType(taskType()), rules.ByStep, "tasks on it, by name; dear", func(n v) ref.Val {
			return listOf(n.s.tasksOn(n.of.Row), func(t *model.Task) ref.Val { return n.s.taskView(t) })
		}), 512),
		field("revocableZone", str, rules.ByObject, "label volcano.sh/revocable-zone, \"\" if none", func(n v) ref.Val { return types.String(n.of.Labels["volcano.sh/revocable-zone"]) }),
		bounded(field("gpus", cel.ListType(gpuType()), rules.ByStep, "devices by index", func(n v) ref.Val { return n.devicesNow().list }), 16),
		field("gpuModel", str, rules.ByObject, "model of its devices, \"\" if unknown", func(n v) ref.Val { return types.String(n.of.GPUModel) }),
		field("gpuFree", num, rules.ByStep, "sum of free over gpus, in thousandths of a device", func(n v) ref.Val { return types.Int(n.s.gpuSum(n.of.Row, func(g *model.GPU) int64 { return g.Free })) }),
		field("gpuCapacity", num, rules.ByObject, "sum of capacity over gpus, in thousandths of a device", func(n v) ref.Val {
			return types.Int(n.s.gpuSum(n.of.Row, func(g *model.GPU) int64 { return g.Capacity }))
		}),
		field("gpuTags", cel.MapType(str, num), rules.ByStep, "gpuTag to tasks on the node", func(n v) ref.Val { return n.s.gpuTags(n.of.Row) }),
	}
}

func (s *Session) gpuSum(row int32, get func(*model.GPU) int64) int64 {
	sum, gpus := int64(0), s.c.Nodes.GPUs[row]
	for i := range gpus {
		sum += get(&gpus[i])
	}
	return sum
}

func (s *Session) gpuTags(row int32) ref.Val {
	tags := map[ref.Val]ref.Val{}
	for _, t := range s.c.Nodes.Tasks[row] {
		if t.GPUTag != "" && t.Status != model.Pipelined {
			n, _ := tags[types.String(t.GPUTag)].(types.Int)
			tags[types.String(t.GPUTag)] = n + 1
		}
	}
	return types.NewRefValMap(types.DefaultTypeAdapter, tags)
}

func taintFields() []*rules.Member {
	type v = *taintView
	return []*rules.Member{
		field("key", cel.StringType, rules.ByObject, "key", func(t v) ref.Val { return types.String(t.of.key) }),
		field("value", cel.StringType, rules.ByObject, "value", func(t v) ref.Val { return types.String(t.of.value) }),
		field("effect", cel.StringType, rules.ByObject, "NoSchedule, PreferNoSchedule or NoExecute", func(t v) ref.Val { return types.String(t.of.effect) }),
	}
}

func gpuFields() []*rules.Member {
	type v = *gpuView
	num := cel.IntType
	return []*rules.Member{
		field("index", num, rules.Static, "index on its node", func(g v) ref.Val { return types.Int(g.of.Index) }),
		field("model", cel.StringType, rules.ByObject, "model, \"\" if unknown", func(g v) ref.Val { return types.String(g.of.Model) }),
		field("capacity", num, rules.ByObject, "1000 for a whole device", func(g v) ref.Val { return types.Int(g.of.Capacity) }),
		field("free", num, rules.ByStep, "thousandths that are free", func(g v) ref.Val { return types.Int(g.of.Free) }),
		field("memory", num, rules.ByObject, "bytes", func(g v) ref.Val { return types.Int(g.of.Memory) }),
		field("memoryFree", num, rules.ByStep, "bytes that are free", func(g v) ref.Val { return types.Int(g.of.MemoryFree) }),
		field("taskCount", num, rules.ByStep, "tasks that share it", func(g v) ref.Val { return types.Int(g.of.TaskCount) }),
	}
}

func clusterFields() []*rules.Member {
	type v = *clusterView
	return []*rules.Member{
		field("allocatable", resourcesType(), rules.ByObject, "sum over ready nodes", func(c v) ref.Val { return c.s.amounts(c.of.Total) }),
		field("used", resourcesType(), rules.ByStep, "sum of node.used over ready nodes, now", func(c v) ref.Val { return c.s.amounts(c.of.Used) }),
		field("usedAtStart", resourcesType(), rules.ByCycle, "the same as the cycle began", func(c v) ref.Val { return c.s.amounts(c.s.usedAtStart) }),
		field("nodeCount", cel.IntType, rules.ByObject, "ready nodes", func(c v) ref.Val { return types.Int(c.of.ReadyNodes) }),
		field("taskCount", cel.IntType, rules.ByObject, "all tasks", func(c v) ref.Val { return types.Int(len(c.of.Tasks)) }),
		field("seed", cel.IntType, rules.Static, "of the run", func(c v) ref.Val { return types.Int(c.of.Seed) }),
		hidden("workload", "shapes of the tasks that the cluster is used for", func(c v) ref.Val { return types.Int(c.of.ObjectClock) }),
	}
}
