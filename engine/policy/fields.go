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

func stamped(t time.Time) ref.Val {
	if t.IsZero() {
		return types.NullValue
	}
	return types.Timestamp{Time: t}
}

func stringList(items []string) ref.Val { return types.NewStringList(types.DefaultTypeAdapter, items) }

// words is a list of strings; there is but one that is empty.
func (w *World) words(items []string) ref.Val {
	if len(items) > 0 {
		return stringList(items)
	}
	return w.noWords
}

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
	get := func(name string) func(a *amounts) float64 {
		return func(a *amounts) float64 { return a.get(name) }
	}
	return []*rules.Member{
		doubleField("cpu", rules.Static, "in cores", get("cpu")),
		doubleField("memory", rules.Static, "in bytes", get("memory")),
		doubleField("pods", rules.Static, "pods", get("pods")),
	}
}

func taskFields() []*rules.Member {
	type v = *taskView
	str := cel.StringType
	return append([]*rules.Member{
		stringField("name", rules.Static, "pod name", func(t v) string { return t.of.Name }),
		stringField("namespace", rules.Static, "pod namespace", func(t v) string { return t.of.Namespace }),
		stringField("uid", rules.Static, "pod UID", func(t v) string { return t.of.UID }),
		stringField("role", rules.Static, "annotation, else label, volcano.sh/task-spec, \"\" if none", func(t v) string { return t.of.Role }),
		intField("index", rules.Static, "task-index, else the numeric suffix of the name, -1 if none", func(t v) int64 { return t.of.Index }),
		field("job", jobType(), rules.ByObject, "its job; never null (a pod without a group has a job of its own, with orphan)", func(t v) ref.Val { return t.w.jobView(t.of.Job) }),
		field("queue", queueType(), rules.ByObject, "job.queue, for short", func(t v) ref.Val { return t.w.queueView(t.of.Job.Queue) }),
		intField("priority", rules.ByObject, "pod.spec.priority, else 1; annotation volcano.sh/task-priority overrides", func(t v) int64 { return t.of.Priority }),
		stringField("priorityClassName", rules.Static, "pod.spec.priorityClassName", func(t v) string { return t.of.PriorityClassName }),
		oneOf(related(stringField("preemptionPolicy", rules.Static, "whether it may take the place of others", func(t v) string { return t.of.PreemptionPolicy })), "PreemptLowerPriority", "Never"),
		oneOf(stringField("status", rules.ByStep, "where it stands in its life", func(t v) string { return t.of.Status.String() }), model.Statuses()...),
		amountField("request", rules.ByObject, "what it is accounted for: containers, sidecars and overhead; pods is 1", func(t v) (model.Resources, *amounts, *World) { return t.of.Request, &t.request, t.w }),
		amountField("initRequest", rules.ByObject, "what it needs to start: request, or its init containers where they need more", func(t v) (model.Resources, *amounts, *World) { return t.of.InitRequest, &t.initRequest, t.w }),
		boolField("bestEffort", rules.ByObject, "initRequest is empty but for pods", func(t v) bool { return t.of.BestEffort }),
		boolField("gated", rules.ByObject, "has scheduling gates", func(t v) bool { return t.of.Gated }),
		boolField("preemptable", rules.ByObject, "annotation, else label, volcano.sh/preemptable; unset true, malformed false", func(t v) bool { return t.of.Preemptable }),
		stringField("revocableZone", rules.ByObject, "annotation volcano.sh/revocable-zone, \"\" if none", func(t v) string { return t.of.RevocableZone }),
		field("labels", stringMapType(), rules.ByObject, "pod labels", func(t v) ref.Val { return t.w.strings(&t.labels, t.of.Labels) }),
		field("annotations", stringMapType(), rules.ByObject, "pod annotations", func(t v) ref.Val { return t.w.strings(&t.annotations, t.of.Annotations) }),
		stringField("nodeName", rules.ByStep, "where it is or is promised, \"\" if nowhere", func(t v) string { return t.nodeName() }),
		field("node", nodeType(), rules.ByStep, "the same as an object; null if nowhere", func(t v) ref.Val { return t.node() }),
		field("createdAt", cel.TimestampType, rules.Static, "pod creation", func(t v) ref.Val { return types.Timestamp{Time: t.of.CreatedAt} }),
		field("startedAt", cel.TimestampType, rules.ByObject, "status.startTime, null before", func(t v) ref.Val { return stamped(t.of.StartedAt) }),
		field("scheduledAt", cel.TimestampType, rules.ByObject, "when it was scheduled, null before", func(t v) ref.Val { return stamped(t.of.ScheduledAt) }),
		intField("gpuCount", rules.ByObject, "devices asked", func(t v) int64 { return t.of.GPUCount }),
		intField("gpuMilli", rules.ByObject, "thousandths of a device asked of each", func(t v) int64 { return t.of.GPUMilli }),
		intField("gpuMemory", rules.ByObject, "bytes of device memory asked of each", func(t v) int64 { return t.of.GPUMemory }),
		field("gpuModels", cel.ListType(str), rules.ByObject, "allowed models, empty: any", func(t v) ref.Val { return t.w.words(t.of.GPUModels) }),
		stringField("gpuTag", rules.ByObject, "\"share\", \"<k>-gpu\", \"\" without GPU", func(t v) string { return t.of.GPUTag }),
		boolField("hasAffinity", rules.ByObject, "has inter-pod (anti-)affinity or spread terms", func(t v) bool { return t.of.HasAffinity }),
		boolField("holdsResources", rules.ByStep, "status Allocated, Binding, Bound or Running", func(t v) bool { return t.of.HoldsResources() }),
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
	return t.w.c.Nodes.Rows[t.of.Node].Name
}

func (t *taskView) node() ref.Val {
	if t.of.Node == model.NoNode {
		return types.NullValue
	}
	return t.w.nodeView(t.of.Node)
}

func jobFields() []*rules.Member {
	type v = *jobView
	count := func(name, doc string, changes rules.Changes, get func(j *model.Job) int64) *rules.Member {
		return intField(name, changes, doc, func(j v) int64 { return get(j.of) })
	}
	return append([]*rules.Member{
		stringField("name", rules.Static, "name of the Job that it is, or of the pod or its controller where the PodGroup was made for that; else of the PodGroup", func(j v) string { return j.of.Name }),
		stringField("namespace", rules.Static, "namespace", func(j v) string { return j.of.Namespace }),
		stringField("uid", rules.Static, "namespace/name of the PodGroup", func(j v) string { return j.of.Key }),
		boolField("orphan", rules.ByObject, "its PodGroup is gone; its queue is that in which its pod was bound", func(j v) bool { return j.of.Orphan }),
		field("queue", queueType(), rules.ByObject, "its queue", func(j v) ref.Val { return j.w.queueView(j.of.Queue) }),
		count("priority", "value of the PodGroup's PriorityClass, else of the default class, else 0", rules.ByObject, func(j *model.Job) int64 { return j.Priority }),
		field("createdAt", cel.TimestampType, rules.Static, "creation of the PodGroup", func(j v) ref.Val { return types.Timestamp{Time: j.of.CreatedAt} }),
		oneOf(stringField("phase", rules.ByAdmit, "of the PodGroup", func(j v) string { return j.of.Phase }), "Pending", "Inqueue", "Running", "Unknown", "Completed"),
		boolField("admittedNow", rules.ByAdmit, "let in by admit in this cycle", func(j v) bool { return j.of.AdmittedNow }),
		field("labels", stringMapType(), rules.ByObject, "labels of the PodGroup", func(j v) ref.Val { return j.w.strings(&j.labels, j.of.Labels) }),
		field("annotations", stringMapType(), rules.ByObject, "annotations of the PodGroup", func(j v) ref.Val { return j.w.strings(&j.annotations, j.of.Annotations) }),
		boolField("preemptable", rules.ByObject, "annotation of the PodGroup; unset false", func(j v) bool { return j.of.Preemptable }),
		boolField("preemptableForGang", rules.ByObject, "as preemptable, but unset true", func(j v) bool { return j.of.PreemptableForGang }),
		boolField("hasTopology", rules.ByObject, "networkTopology or sub-groups are set", func(j v) bool { return j.of.HasTopology }),
		count("minMember", "spec.minMember", rules.ByObject, func(j *model.Job) int64 { return j.MinMember }),
		amountField("minResources", rules.ByObject, "spec.minResources, empty if absent", func(j v) (model.Resources, *amounts, *World) { return j.of.MinResources, &j.minResources, j.w }),
		boolField("hasMinResources", rules.ByObject, "spec.minResources is there", func(j v) bool { return j.of.HasMinResources }),
		bounded(field("roles", cel.ListType(roleType()), rules.ByStep, "tasks by role, in name order", func(j v) ref.Val { return j.rolesNow() }), 64),
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
		amountField("allocated", rules.ByStep, "sum of request over allocatedTasks", func(j v) (model.Resources, *amounts, *World) { return j.of.Allocated, &j.allocated, j.w }),
		amountField("request", rules.ByStep, "what it asks for, whether its pods are there or not: allocated, Pending, and expected", func(j v) (model.Resources, *amounts, *World) { return j.of.Request, &j.request, j.w }),
		amountField("expected", rules.ByObject, "the part of request for which there are no pods yet: of a Job the replicas of its tasks that were not made, until it ends; of another PodGroup the part of minResources "+
			"that belongs to the pods that minMember lacks, until it has run", func(j v) (model.Resources, *amounts, *World) { return j.of.Expected, &j.expected, j.w }),
		amountField("gatedRequest", rules.ByObject, "sum of request over gated tasks", func(j v) (model.Resources, *amounts, *World) { return j.of.GatedRequest, &j.gatedRequest, j.w }),
		related(boolField("starving", rules.ByStep, "outcome of jobStarving; only an action's filters may read it", func(j v) bool { return j.w.values.Starving(j.of) })),
	}, namespaceJobFields()...)
}

func allocatedTasks(j *model.Job) int64 {
	return j.Counts[model.Allocated] + j.Counts[model.Binding] + j.Counts[model.Bound] + j.Counts[model.Running]
}

func roleFields() []*rules.Member {
	type v = *roleView
	ready := func(r *model.Role) int64 {
		return r.Counts[model.Allocated] + r.Counts[model.Binding] + r.Counts[model.Bound] + r.Counts[model.Running] + r.Counts[model.Succeeded]
	}
	return []*rules.Member{
		stringField("name", rules.Static, "task-spec name", func(r v) string { return r.of.Name }),
		intField("min", rules.ByObject, "minTaskMember of the role, 0 if none", func(r v) int64 { return r.of.Min }),
		intField("ready", rules.ByStep, "allocated, Succeeded, and Pending bestEffort but for those that found no place in this turn", func(r v) int64 { return ready(r.of) + r.of.PendingBestEffort }),
		intField("pipelined", rules.ByStep, "status Pipelined", func(r v) int64 { return r.of.Counts[model.Pipelined] }),
		intField("pending", rules.ByStep, "status Pending", func(r v) int64 { return r.of.Counts[model.Pending] }),
		intField("valid", rules.ByStep, "ready, pipelined and pending, each task once", func(r v) int64 {
			return ready(r.of) + r.of.Counts[model.Pipelined] + r.of.Counts[model.Pending]
		}),
		boolField("failed", rules.ByFold, "a task of this role found no node in this turn", func(r v) bool { return r.of.Failed }),
	}
}

func queueFields() []*rules.Member {
	type v = *queueView
	phase := func(p string) func(q v) int64 {
		return func(q v) int64 { return q.of.Phases[p] }
	}
	return append([]*rules.Member{
		stringField("name", rules.Static, "name", func(q v) string { return q.of.Name }),
		stringField("uid", rules.Static, "UID", func(q v) string { return q.of.UID }),
		field("createdAt", cel.TimestampType, rules.Static, "creation", func(q v) ref.Val { return types.Timestamp{Time: q.of.CreatedAt} }),
		field("spec", queueSpecType(), rules.ByObject, "raw figures of the object", func(q v) ref.Val {
			return &q.spec
		}),
		intField("priority", rules.ByObject, "spec.priority, 0 if unset", func(q v) int64 { return q.of.Priority }),
		boolField("open", rules.ByObject, "state is Open (unset: Open)", func(q v) bool { return q.of.Open }),
		field("annotations", stringMapType(), rules.ByObject, "annotations", func(q v) ref.Val { return q.annotations }),
		field("labels", stringMapType(), rules.ByObject, "labels", func(q v) ref.Val { return q.labels }),
		intField("jobCount", rules.ByObject, "jobs known", func(q v) int64 { return q.of.JobCount() }),
		intField("pendingJobs", rules.ByAdmit, "jobs of phase Pending", phase("Pending")),
		intField("runningJobs", rules.ByObject, "jobs of phase Running", phase("Running")),
		amountField("allocated", rules.ByStep, "sum of request over the allocatedTasks of its jobs", func(q v) (model.Resources, *amounts, *World) { return q.of.Allocated, &q.allocated, q.w }),
		amountField("request", rules.ByStep, "allocated and Pending, and what is expected of its jobs that were let in", func(q v) (model.Resources, *amounts, *World) { return q.of.Request, &q.request, q.w }),
	}, nodeGroupFields()...)
}

func queueSpecFields() []*rules.Member {
	type v = *specView
	amount := func(name, doc string, get func(q v) (model.Resources, *amounts)) *rules.Member {
		return amountField(name, rules.ByObject, doc, func(q v) (model.Resources, *amounts, *World) {
			r, box := get(q)
			return r, box, q.w
		})
	}
	return []*rules.Member{
		intField("weight", rules.ByObject, "weight, 1 if unset", func(q v) int64 { return q.of.Weight }),
		amount("capability", "most the queue may hold; may lack dimensions", func(q v) (model.Resources, *amounts) { return q.of.Capability, &q.capability }),
		amount("limit", "what of capability is a limit: cpu and memory of 0 are none, 0 of anything else is one", func(q v) (model.Resources, *amounts) { return q.of.Limit, &q.limit }),
		amount("guarantee", "guarantee.resource", func(q v) (model.Resources, *amounts) { return q.of.Guarantee, &q.guarantee }),
		amount("deserved", "deserved", func(q v) (model.Resources, *amounts) { return q.of.Deserved, &q.deserved }),
		boolField("reclaimable", rules.ByObject, "may others take back from it; unset true", func(q v) bool { return q.of.Reclaimable }),
		stringField("parent", rules.ByObject, "parent queue, \"\" if none", func(q v) string { return q.of.Parent }),
	}
}

// tags is the tags of the tasks with devices on a node, each with how many have it, as of a version of the node plus 1.
type tags struct {
	version uint64
	counts  ref.Val
}

// gpuTags counts anew only where the node has changed.
func (n *nodeView) gpuTags() ref.Val {
	nodes, row := &n.w.c.Nodes, n.of.Row
	at := nodes.Version[row] + 1
	if n.tags.version == at && !n.w.NoCache {
		return n.tags.counts
	}
	counts := map[ref.Val]ref.Val{}
	for _, t := range nodes.Tasks[row] {
		if t.GPUTag != "" && t.Status != model.Pipelined {
			n, _ := counts[types.String(t.GPUTag)].(types.Int)
			counts[types.String(t.GPUTag)] = n + 1
		}
	}
	n.tags = tags{at, types.NewRefValMap(types.DefaultTypeAdapter, counts)}
	return n.tags.counts
}

func taintFields() []*rules.Member {
	type v = *taintView
	return []*rules.Member{
		stringField("key", rules.ByObject, "key", func(t v) string { return t.of.key }),
		stringField("value", rules.ByObject, "value", func(t v) string { return t.of.value }),
		oneOf(stringField("effect", rules.ByObject, "what it does to pods that do not tolerate it", func(t v) string { return t.of.effect }), "NoSchedule", "PreferNoSchedule", "NoExecute"),
	}
}

func gpuFields() []*rules.Member {
	type v = *gpuView
	return []*rules.Member{
		intField("index", rules.Static, "index on its node", func(g v) int64 { return int64(g.of.Index) }),
		stringField("model", rules.ByObject, "model, \"\" if unknown", func(g v) string { return g.of.Model }),
		intField("capacity", rules.ByObject, "1000 for a whole device", func(g v) int64 { return g.of.Capacity }),
		intField("free", rules.ByStep, "thousandths that are free", func(g v) int64 { return g.of.Free }),
		intField("memory", rules.ByObject, "bytes", func(g v) int64 { return g.of.Memory }),
		intField("memoryFree", rules.ByStep, "bytes that are free", func(g v) int64 { return g.of.MemoryFree }),
		intField("taskCount", rules.ByStep, "tasks that share it", func(g v) int64 { return int64(g.of.TaskCount) }),
	}
}

func clusterFields() []*rules.Member {
	type v = *clusterView
	return []*rules.Member{
		amountField("allocatable", rules.ByObject, "sum over ready nodes", func(c v) (model.Resources, *amounts, *World) { return c.of.Total, &c.allocatable, c.w }),
		amountField("used", rules.ByStep, "sum of node.used over ready nodes, now", func(c v) (model.Resources, *amounts, *World) { return c.of.Used, &c.used, c.w }),
		amountField("usedAtStart", rules.ByCycle, "the same as the cycle began", func(c v) (model.Resources, *amounts, *World) { return c.w.usedAtStart, &c.usedAtStart, c.w }),
		intField("nodeCount", rules.ByObject, "ready nodes", func(c v) int64 { return int64(c.of.ReadyNodes) }),
		intField("taskCount", rules.ByObject, "all tasks", func(c v) int64 { return int64(len(c.of.Tasks)) }),
		intField("seed", rules.Static, "of the run", func(c v) int64 { return c.of.Seed }),
		hidden("workload", "shapes of the tasks that the cluster is used for", func(c v) ref.Val { return types.Int(c.of.ObjectClock) }),
	}
}
