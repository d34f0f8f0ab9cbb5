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
		doubleField("cpu", fromSpec, rules.Static, "in cores", get("cpu")),
		doubleField("memory", fromSpec, rules.Static, "in bytes", get("memory")),
		doubleField("pods", fromSpec, rules.Static, "pods", get("pods")),
	}
}

func taskFields() []*rules.Member {
	type v = *taskView
	str := cel.StringType
	return append([]*rules.Member{
		stringField("name", fromIdentity, rules.Static, "pod name", func(t v) string { return t.of.Name }),
		stringField("namespace", fromSpec, rules.Static, "pod namespace", func(t v) string { return t.of.Namespace }),
		stringField("uid", fromIdentity, rules.Static, "pod UID", func(t v) string { return t.of.UID }),
		stringField("role", fromSpec, rules.Static, "annotation, else label, volcano.sh/task-spec, \"\" if none", func(t v) string { return t.of.Role }),
		intField("index", fromSpec, rules.Static, "task-index, else the numeric suffix of the name, -1 if none", func(t v) int64 { return t.of.Index }),
		field("job", jobType(), toJob, rules.ByObject, "its job; never null (a pod without a group has a job of its own, with orphan)", func(t v) ref.Val { return t.w.jobView(t.of.Job) }),
		field("queue", queueType(), toQueue, rules.ByObject, "job.queue, for short", func(t v) ref.Val { return t.w.queueView(t.of.Job.Queue) }),
		intField("priority", fromSpec, rules.ByObject, "pod.spec.priority, else 1; annotation volcano.sh/task-priority overrides", func(t v) int64 { return t.of.Priority }),
		stringField("priorityClassName", fromSpec, rules.Static, "pod.spec.priorityClassName", func(t v) string { return t.of.PriorityClassName }),
		oneOf(stringField("preemptionPolicy", fromSpec|fromRelated, rules.ByObject, "whether it may take the place of others", func(t v) string { return t.of.PreemptionPolicy }), "PreemptLowerPriority", "Never"),
		oneOf(stringField("status", fromState, rules.ByStep, "where it stands in its life", func(t v) string { return t.of.Status.String() }), model.Statuses()...),
		amountField("request", fromSpec, rules.ByObject, "what it is accounted for: containers, sidecars and overhead; pods is 1", func(t v) (model.Resources, *amounts, *World) { return t.of.Request, &t.request, t.w }),
		amountField("initRequest", fromSpec, rules.ByObject, "what it needs to start: request, or its init containers where they need more", func(t v) (model.Resources, *amounts, *World) { return t.of.InitRequest, &t.initRequest, t.w }),
		boolField("bestEffort", fromSpec, rules.ByObject, "initRequest is empty but for pods", func(t v) bool { return t.of.BestEffort }),
		boolField("gated", fromSpec, rules.ByObject, "has scheduling gates", func(t v) bool { return t.of.Gated }),
		boolField("preemptable", fromSpec, rules.ByObject, "annotation, else label, volcano.sh/preemptable; unset true, malformed false", func(t v) bool { return t.of.Preemptable }),
		stringField("revocableZone", fromSpec, rules.ByObject, "annotation volcano.sh/revocable-zone, \"\" if none", func(t v) string { return t.of.RevocableZone }),
		field("labels", stringMapType(), fromSpec, rules.ByObject, "pod labels", func(t v) ref.Val { return t.w.strings(&t.labels, t.of.Labels) }),
		field("annotations", stringMapType(), fromSpec, rules.ByObject, "pod annotations", func(t v) ref.Val { return t.w.strings(&t.annotations, t.of.Annotations) }),
		stringField("nodeName", fromState, rules.ByStep, "where it is or is promised, \"\" if nowhere", func(t v) string { return t.nodeName() }),
		field("node", nodeType(), toNode, rules.ByStep, "the same as an object; null if nowhere", func(t v) ref.Val { return t.node() }),
		field("createdAt", cel.TimestampType, fromSpec, rules.Static, "pod creation", func(t v) ref.Val { return types.Timestamp{Time: t.of.CreatedAt} }),
		field("startedAt", cel.TimestampType, fromSpec, rules.ByObject, "status.startTime, null before", func(t v) ref.Val { return stamped(t.of.StartedAt) }),
		field("scheduledAt", cel.TimestampType, fromSpec, rules.ByObject, "when it was scheduled, null before", func(t v) ref.Val { return stamped(t.of.ScheduledAt) }),
		intField("gpuCount", fromSpec, rules.ByObject, "devices asked", func(t v) int64 { return t.of.GPUCount }),
		intField("gpuMilli", fromSpec, rules.ByObject, "thousandths of a device asked of each", func(t v) int64 { return t.of.GPUMilli }),
		intField("gpuMemory", fromSpec, rules.ByObject, "bytes of device memory asked of each", func(t v) int64 { return t.of.GPUMemory }),
		field("gpuModels", cel.ListType(str), fromSpec, rules.ByObject, "allowed models, empty: any", func(t v) ref.Val { return t.w.words(t.of.GPUModels) }),
		stringField("gpuTag", fromSpec, rules.ByObject, "\"share\", \"<k>-gpu\", \"\" without GPU", func(t v) string { return t.of.GPUTag }),
		boolField("hasAffinity", fromSpec, rules.ByObject, "has inter-pod (anti-)affinity or spread terms", func(t v) bool { return t.of.HasAffinity }),
		boolField("holdsResources", fromState, rules.ByStep, "status Allocated, Binding, Bound or Running", func(t v) bool { return t.of.HoldsResources() }),
		hidden("nodeTerms", fromSpec, rules.ByObject, "nodeSelector and required node affinity", func(t v) ref.Val { return types.String(t.of.NodeAffinityKey) }),
		hidden("preferredNodeTerms", fromSpec, rules.ByObject, "preferred node affinity", func(t v) ref.Val { return types.String(t.of.PreferredKey) }),
		hidden("tolerations", fromSpec, rules.ByObject, "tolerations", func(t v) ref.Val { return types.String(t.of.TolerationsKey) }),
		hidden("hostPorts", fromSpec, rules.ByObject, "host ports", func(t v) ref.Val { return types.String(t.of.HostPortsKey) }),
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
	count := func(name, doc string, origin rules.Origin, changes rules.Changes, get func(j *model.Job) int64) *rules.Member {
		return intField(name, origin, changes, doc, func(j v) int64 { return get(j.of) })
	}
	return append([]*rules.Member{
		stringField("name", fromSpec, rules.Static, "name of the Job that it is, or of the pod or its controller where the PodGroup was made for that; else of the PodGroup", func(j v) string { return j.of.Name }),
		stringField("namespace", fromSpec, rules.Static, "namespace", func(j v) string { return j.of.Namespace }),
		stringField("uid", fromIdentity, rules.Static, "namespace/name of the PodGroup", func(j v) string { return j.of.Key }),
		boolField("orphan", fromState, rules.ByObject, "its PodGroup is gone; its queue is that in which its pod was bound", func(j v) bool { return j.of.Orphan }),
		field("queue", queueType(), toQueue, rules.ByObject, "its queue", func(j v) ref.Val { return j.w.queueView(j.of.Queue) }),
		count("priority", "value of the PodGroup's PriorityClass, else of the default class, else 0", fromSpec, rules.ByObject, func(j *model.Job) int64 { return j.Priority }),
		field("createdAt", cel.TimestampType, fromSpec, rules.Static, "creation of the PodGroup", func(j v) ref.Val { return types.Timestamp{Time: j.of.CreatedAt} }),
		oneOf(stringField("phase", fromState, rules.ByAdmit, "of the PodGroup", func(j v) string { return j.of.Phase }), "Pending", "Inqueue", "Running", "Unknown", "Completed"),
		boolField("admittedNow", fromState, rules.ByAdmit, "let in by admit in this cycle", func(j v) bool { return j.of.AdmittedNow }),
		field("labels", stringMapType(), fromSpec, rules.ByObject, "labels of the PodGroup", func(j v) ref.Val { return j.w.strings(&j.labels, j.of.Labels) }),
		field("annotations", stringMapType(), fromSpec, rules.ByObject, "annotations of the PodGroup", func(j v) ref.Val { return j.w.strings(&j.annotations, j.of.Annotations) }),
		boolField("preemptable", fromSpec, rules.ByObject, "annotation of the PodGroup; unset false", func(j v) bool { return j.of.Preemptable }),
		boolField("preemptableForGang", fromSpec, rules.ByObject, "as preemptable, but unset true", func(j v) bool { return j.of.PreemptableForGang }),
		boolField("hasTopology", fromSpec, rules.ByObject, "networkTopology or sub-groups are set", func(j v) bool { return j.of.HasTopology }),
		count("minMember", "spec.minMember", fromSpec, rules.ByObject, func(j *model.Job) int64 { return j.MinMember }),
		amountField("minResources", fromSpec, rules.ByObject, "spec.minResources, empty if absent", func(j v) (model.Resources, *amounts, *World) { return j.of.MinResources, &j.minResources, j.w }),
		boolField("hasMinResources", fromSpec, rules.ByObject, "spec.minResources is there", func(j v) bool { return j.of.HasMinResources }),
		bounded(field("roles", cel.ListType(roleType()), toParts, rules.ByStep, "tasks by role, in name order", func(j v) ref.Val { return j.rolesNow() }), 64),
		count("roleMinTotal", "sum of minTaskMember", fromSpec, rules.ByObject, func(j *model.Job) int64 { return j.RoleMinTotal }),
		count("taskCount", "all tasks", fromState, rules.ByObject, func(j *model.Job) int64 { return int64(len(j.Tasks)) }),
		count("pendingTasks", "status Pending", fromState, rules.ByStep, func(j *model.Job) int64 { return j.Counts[model.Pending] }),
		count("pendingBestEffort", "status Pending and bestEffort, but for those that found no place in this turn", fromState, rules.ByStep, func(j *model.Job) int64 { return j.PendingBestEffort }),
		count("pipelinedTasks", "status Pipelined", fromState, rules.ByStep, func(j *model.Job) int64 { return j.Counts[model.Pipelined] }),
		count("allocatedTasks", "Allocated, Binding, Bound, Running", fromState, rules.ByStep, allocatedTasks),
		count("readyTasks", "allocatedTasks and Succeeded", fromState, rules.ByStep, (*model.Job).Ready),
		count("validTasks", "readyTasks, Pipelined and Pending", fromState, rules.ByStep, (*model.Job).Valid),
		count("runningTasks", "status Running", fromState, rules.ByStep, func(j *model.Job) int64 { return j.Counts[model.Running] }),
		count("releasingTasks", "status Releasing", fromState, rules.ByStep, func(j *model.Job) int64 { return j.Counts[model.Releasing] }),
		count("succeededTasks", "status Succeeded", fromState, rules.ByObject, func(j *model.Job) int64 { return j.Counts[model.Succeeded] }),
		count("failedTasks", "status Failed", fromState, rules.ByObject, func(j *model.Job) int64 { return j.Counts[model.Failed] }),
		count("placedNow", "allocated or pipelined in this cycle", fromState, rules.ByStep, func(j *model.Job) int64 { return j.PlacedNow }),
		amountField("allocated", fromState, rules.ByStep, "sum of request over allocatedTasks", func(j v) (model.Resources, *amounts, *World) { return j.of.Allocated, &j.allocated, j.w }),
		amountField("request", fromState, rules.ByStep, "what it asks for, whether its pods are there or not: allocated, Pending, and expected", func(j v) (model.Resources, *amounts, *World) { return j.of.Request, &j.request, j.w }),
		amountField("expected", fromState, rules.ByObject, "the part of request for which there are no pods yet: of a Job the replicas of its tasks that were not made, until it ends; of another PodGroup the part of minResources "+
			"that belongs to the pods that minMember lacks, until it has run", func(j v) (model.Resources, *amounts, *World) { return j.of.Expected, &j.expected, j.w }),
		amountField("gatedRequest", fromState, rules.ByObject, "sum of request over gated tasks", func(j v) (model.Resources, *amounts, *World) { return j.of.GatedRequest, &j.gatedRequest, j.w }),
		boolField("starving", fromAnswers, rules.ByStep, "outcome of jobStarving; only an action's filters may read it", func(j v) bool { return j.w.values.Starving(j.of) }),
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
		stringField("name", fromSpec, rules.Static, "task-spec name", func(r v) string { return r.of.Name }),
		intField("min", fromSpec, rules.ByObject, "minTaskMember of the role, 0 if none", func(r v) int64 { return r.of.Min }),
		intField("ready", fromState, rules.ByStep, "allocated, Succeeded, and Pending bestEffort but for those that found no place in this turn", func(r v) int64 { return ready(r.of) + r.of.PendingBestEffort }),
		intField("pipelined", fromState, rules.ByStep, "status Pipelined", func(r v) int64 { return r.of.Counts[model.Pipelined] }),
		intField("pending", fromState, rules.ByStep, "status Pending", func(r v) int64 { return r.of.Counts[model.Pending] }),
		intField("valid", fromState, rules.ByStep, "ready, pipelined and pending, each task once", func(r v) int64 {
			return ready(r.of) + r.of.Counts[model.Pipelined] + r.of.Counts[model.Pending]
		}),
		boolField("failed", fromState, rules.ByFold, "a task of this role found no node in this turn", func(r v) bool { return r.of.Failed }),
	}
}

func queueFields() []*rules.Member {
	type v = *queueView
	phase := func(p string) func(q v) int64 {
		return func(q v) int64 { return q.of.Phases[p] }
	}
	return append([]*rules.Member{
		stringField("name", fromIdentity, rules.Static, "name", func(q v) string { return q.of.Name }),
		stringField("uid", fromIdentity, rules.Static, "UID", func(q v) string { return q.of.UID }),
		field("createdAt", cel.TimestampType, fromSpec, rules.Static, "creation", func(q v) ref.Val { return types.Timestamp{Time: q.of.CreatedAt} }),
		field("spec", queueSpecType(), toParts, rules.ByObject, "raw figures of the object", func(q v) ref.Val {
			return &q.spec
		}),
		intField("priority", fromSpec, rules.ByObject, "spec.priority, 0 if unset", func(q v) int64 { return q.of.Priority }),
		boolField("open", fromSpec, rules.ByObject, "state is Open (unset: Open)", func(q v) bool { return q.of.Open }),
		field("annotations", stringMapType(), fromSpec, rules.ByObject, "annotations", func(q v) ref.Val { return q.annotations }),
		field("labels", stringMapType(), fromSpec, rules.ByObject, "labels", func(q v) ref.Val { return q.labels }),
		intField("jobCount", fromState, rules.ByObject, "jobs known", func(q v) int64 { return q.of.JobCount() }),
		intField("pendingJobs", fromState, rules.ByAdmit, "jobs of phase Pending", phase("Pending")),
		intField("runningJobs", fromState, rules.ByObject, "jobs of phase Running", phase("Running")),
		amountField("allocated", fromState, rules.ByStep, "sum of request over the allocatedTasks of its jobs", func(q v) (model.Resources, *amounts, *World) { return q.of.Allocated, &q.allocated, q.w }),
		amountField("request", fromState, rules.ByStep, "allocated and Pending, and what is expected of its jobs that were let in", func(q v) (model.Resources, *amounts, *World) { return q.of.Request, &q.request, q.w }),
	}, nodeGroupFields()...)
}

func queueSpecFields() []*rules.Member {
	type v = *specView
	amount := func(name, doc string, get func(q v) (model.Resources, *amounts)) *rules.Member {
		return amountField(name, fromSpec, rules.ByObject, doc, func(q v) (model.Resources, *amounts, *World) {
			r, box := get(q)
			return r, box, q.w
		})
	}
	return []*rules.Member{
		intField("weight", fromSpec, rules.ByObject, "weight, 1 if unset", func(q v) int64 { return q.of.Weight }),
		amount("capability", "most the queue may hold; may lack dimensions", func(q v) (model.Resources, *amounts) { return q.of.Capability, &q.capability }),
		amount("limit", "what of capability is a limit: cpu and memory of 0 are none, 0 of anything else is one", func(q v) (model.Resources, *amounts) { return q.of.Limit, &q.limit }),
		amount("guarantee", "guarantee.resource", func(q v) (model.Resources, *amounts) { return q.of.Guarantee, &q.guarantee }),
		amount("deserved", "deserved", func(q v) (model.Resources, *amounts) { return q.of.Deserved, &q.deserved }),
		boolField("reclaimable", fromSpec, rules.ByObject, "may others take back from it; unset true", func(q v) bool { return q.of.Reclaimable }),
		stringField("parent", fromSpec, rules.ByObject, "parent queue, \"\" if none", func(q v) string { return q.of.Parent }),
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
		stringField("key", fromSpec, rules.ByObject, "key", func(t v) string { return t.of.key }),
		stringField("value", fromSpec, rules.ByObject, "value", func(t v) string { return t.of.value }),
		oneOf(stringField("effect", fromSpec, rules.ByObject, "what it does to pods that do not tolerate it", func(t v) string { return t.of.effect }), "NoSchedule", "PreferNoSchedule", "NoExecute"),
	}
}

func gpuFields() []*rules.Member {
	type v = *gpuView
	return []*rules.Member{
		intField("index", fromSpec|fromAmounts, rules.Static, "index on its node", func(g v) int64 { return int64(g.of.Index) }),
		stringField("model", fromSpec|fromAmounts, rules.ByObject, "model, \"\" if unknown", func(g v) string { return g.of.Model }),
		intField("capacity", fromSpec|fromAmounts, rules.ByObject, "1000 for a whole device", func(g v) int64 { return g.of.Capacity }),
		intField("free", fromState|fromAmounts, rules.ByStep, "thousandths that are free", func(g v) int64 { return g.of.Free }),
		intField("memory", fromSpec|fromAmounts, rules.ByObject, "bytes", func(g v) int64 { return g.of.Memory }),
		intField("memoryFree", fromState|fromAmounts, rules.ByStep, "bytes that are free", func(g v) int64 { return g.of.MemoryFree }),
		intField("taskCount", fromState|fromAmounts, rules.ByStep, "tasks that share it", func(g v) int64 { return int64(g.of.TaskCount) }),
	}
}

func clusterFields() []*rules.Member {
	type v = *clusterView
	return []*rules.Member{
		amountField("allocatable", fromCluster, rules.ByObject, "sum over ready nodes", func(c v) (model.Resources, *amounts, *World) { return c.of.Total, &c.allocatable, c.w }),
		amountField("used", fromCluster, rules.ByStep, "sum of node.used over ready nodes, now", func(c v) (model.Resources, *amounts, *World) { return c.of.Used, &c.used, c.w }),
		amountField("usedAtStart", fromCluster, rules.ByCycle, "the same as the cycle began", func(c v) (model.Resources, *amounts, *World) { return c.w.usedAtStart, &c.usedAtStart, c.w }),
		intField("nodeCount", fromCluster, rules.ByObject, "ready nodes", func(c v) int64 { return int64(c.of.ReadyNodes) }),
		intField("taskCount", fromCluster, rules.ByObject, "all tasks", func(c v) int64 { return int64(len(c.of.Tasks)) }),
		intField("seed", fromCluster, rules.Static, "of the run", func(c v) int64 { return c.of.Seed }),
		hidden("workload", fromCluster, rules.ByObject, "shapes of the tasks that the cluster is used for", func(c v) ref.Val { return types.Int(c.of.ObjectClock) }),
	}
}
