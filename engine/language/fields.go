package language

import (
	"slices"
	"strconv"
	"time"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"k8s.io/kubectl/pkg/util/qos"

	"github.com/celsius-scheduler/celsius/engine/cards"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/rules"
)

func stamped(t time.Time) ref.Val {
	if t.IsZero() {
		return types.NullValue
	}
	return types.Timestamp{Time: t}
}

// StringList returns a list of strings as a value.
func StringList(items []string) ref.Val { return types.NewStringList(types.DefaultTypeAdapter, items) }

// words returns a list of strings. All empty lists share one value.
func (w *World) words(items []string) ref.Val {
	if len(items) > 0 {
		return StringList(items)
	}
	return w.noWords
}

func stringMapType() *cel.Type { return cel.MapType(cel.StringType, cel.StringType) }

// Objects returns every type of the language with its fields.
func Objects() []*rules.Object {
	return append([]*rules.Object{
		{
			Name: "Task", Type: TaskType(), Doc: "A pod, as a scheduler sees it.",
			Members: slices.Concat(taskFields(), nearFields(), imageFields()),
		},
		{Name: "Job", Type: JobType(), Doc: "A PodGroup and its tasks.", Members: jobFields()},
		{Name: "Role", Type: roleType(), Doc: "The tasks of a job that share a task-spec name.", Members: roleFields()},
		{Name: "Queue", Type: QueueType(), Doc: "A queue; raw figures of the object lie under spec.", Members: queueFields()},
		{Name: "QueueSpec", Type: queueSpecType(), Doc: "The figures of a queue as its object has them.", Members: queueSpecFields()},
		{Name: "Node", Type: NodeType(), Doc: "A node that is ready.", Members: append(nodeFields(), domainFields()...)},
		budgetObject(),
		{Name: "Taint", Type: taintType(), Doc: "A taint of a node.", Members: taintFields()},
		{Name: "GPU", Type: GPUType(), Doc: "One device of a node.", Members: gpuFields()},
		{Name: "Cluster", Type: ClusterType(), Doc: "The whole cluster.", Members: clusterFields()},
		{Name: "Typical", Type: TypicalType(), Doc: "The most frequent shapes of task: a value of the accounting function `typicalTasks`, for " +
			"`fragGain`."},
		{
			Name: "Buckets", Type: BucketsType(), Leaf: true,
			Doc: "The tasks of a job, put together by what its owner says of its roles: a value of the function `taskBuckets`.",
		},
		answerObject(),
		{
			Name: "ShareTree", Type: ShareTreeType(), Leaf: true,
			Doc: "Shares of jobs and queues along a tree, as the accounting function hdrf keeps them.",
		},
		{
			Name: "Resources", Type: ResourcesType(), Leaf: true,
			Doc: "A partial map from resource name to an amount, exact inside; reading one gives a double.", Members: resourceFields(),
		},
	}, namespaceObjects()...)
}

func resourceFields() []*rules.Member {
	get := func(name string) func(a *Amounts) float64 {
		return func(a *Amounts) float64 { return a.get(name) }
	}
	return []*rules.Member{
		doubleField("cpu", FromSpec, rules.Static, "in cores", get("cpu")),
		doubleField("memory", FromSpec, rules.Static, "in bytes", get("memory")),
		doubleField("pods", FromSpec, rules.Static, "pods", get("pods")),
	}
}

func taskFields() []*rules.Member {
	type v = *TaskView
	str := cel.StringType
	return append([]*rules.Member{
		stringField("name", FromIdentity, rules.Static, "pod name", func(t v) string { return t.Of.Name }),
		stringField("namespace", FromSpec, rules.Static, "pod namespace", func(t v) string { return t.Of.Namespace }),
		stringField("uid", FromIdentity, rules.Static, "pod UID", func(t v) string { return t.Of.UID }),
		stringField("role", FromSpec, rules.Static, "annotation, else label, volcano.sh/task-spec, \"\" if none",
			func(t v) string { return t.Of.Role }),
		intField("index", FromSpec, rules.Static, "task-index, else the numeric suffix of the name, -1 if none",
			func(t v) int64 { return t.Of.Index }),
		field("job", JobType(), ToJob, rules.ByObject, "its job; never null (a pod without a group has a job of its own, with orphan)",
			func(t v) ref.Val { return t.World.JobView(t.Of.Job) }),
		field("queue", QueueType(), ToQueue, rules.ByObject, "job.queue, for short",
			func(t v) ref.Val { return t.World.QueueView(t.Of.Job.Queue) }),
		intField("priority", FromSpec, rules.ByObject, "pod.spec.priority, else 1; annotation volcano.sh/task-priority overrides",
			func(t v) int64 { return t.Of.Priority }),
		stringField("priorityClassName", FromSpec, rules.Static, "pod.spec.priorityClassName",
			func(t v) string { return t.Of.PriorityClassName }),
		oneOf(stringField("preemptionPolicy", FromSpec|FromRelated, rules.ByObject, "whether it may take the place of others",
			func(t v) string { return t.Of.PreemptionPolicy }), "PreemptLowerPriority", "Never"),
		oneOf(stringField("status", FromState, rules.ByStep, "where it stands in its life", func(t v) string { return t.Of.Status.String() }),
			model.Statuses()...),
		amountField("request", FromSpec, rules.ByObject,
			"what it counts for until it is finished, as for the kubelet: the larger of its containers and of each init container, with "+
				"sidecars, overhead, the pod's own requests, what a kubelet granted, and devices of its annotations; pods is 1",
			func(t v) (model.Resources, *Amounts, *World) { return t.Of.Request, &t.request, t.World }),
		amountField("initRequest", FromSpec, rules.ByObject, "deprecated: the same as request",
			func(t v) (model.Resources, *Amounts, *World) { return t.Of.Request, &t.request, t.World }),
		boolField("bestEffort", FromSpec, rules.ByObject, "request is empty except for pods", func(t v) bool { return t.Of.BestEffort }),
		oneOf(stringField("qosClass", FromSpec, rules.ByObject, "Kubernetes' class of its quality of service",
			func(t v) string { return string(qos.GetPodQOS(t.Of.Object)) }), "BestEffort", "Burstable", "Guaranteed"),
		boolField("gated", FromSpec, rules.ByObject, "has scheduling gates", func(t v) bool { return t.Of.Gated }),
		boolField("preemptable", FromSpec, rules.ByObject, "annotation, else label, volcano.sh/preemptable; unset true, malformed false",
			func(t v) bool { return t.Of.Preemptable }),
		stringField("revocableZone", FromSpec, rules.ByObject, "annotation volcano.sh/revocable-zone, \"\" if none",
			func(t v) string { return t.Of.RevocableZone }),
		field("labels", stringMapType(), FromSpec, rules.ByObject, "pod labels",
			func(t v) ref.Val { return t.World.strings(&t.labels, t.Of.Labels) }),
		field("annotations", stringMapType(), FromSpec, rules.ByObject, "pod annotations",
			func(t v) ref.Val { return t.World.strings(&t.annotations, t.Of.Annotations) }),
		stringField("nodeName", FromState, rules.ByStep, "where it is or is promised, \"\" if nowhere", func(t v) string { return t.nodeName() }),
		field("node", NodeType(), ToNode, rules.ByStep, "the same as an object; null if nowhere", func(t v) ref.Val { return t.node() }),
		field("createdAt", cel.TimestampType, FromSpec, rules.Static, "pod creation",
			func(t v) ref.Val { return types.Timestamp{Time: t.Of.CreatedAt} }),
		field("startedAt", cel.TimestampType, FromSpec, rules.ByObject, "status.startTime, null before",
			func(t v) ref.Val { return stamped(t.Of.StartedAt) }),
		field("scheduledAt", cel.TimestampType, FromSpec, rules.ByObject, "when it was scheduled, null before",
			func(t v) ref.Val { return stamped(t.Of.ScheduledAt) }),
		intField("gpuCount", FromSpec, rules.ByObject, "devices asked", func(t v) int64 { return t.Of.GPUCount }),
		intField("gpuMilli", FromSpec, rules.ByObject, "thousandths of a device asked of each", func(t v) int64 { return t.Of.GPUMilli }),
		intField("gpuMemory", FromSpec, rules.ByObject, "bytes of device memory asked of each", func(t v) int64 { return t.Of.GPUMemory }),
		intField("gpuPercent", FromSpec, rules.ByObject, "percent of its memory asked of each device, in place of gpuMemory; 0: none",
			func(t v) int64 { return t.Of.GPUPercent }),
		oneOf(stringField("gpuKind", FromSpec, rules.ByObject, "by which of Volcano's resources devices are asked: volcano.sh/gpu-memory, "+
			"volcano.sh/gpu-number, or volcano.sh/vgpu-number and its like; \"\" by none of them",
			func(t v) string { return t.Of.GPUKind }), "", cards.Memory, cards.Number, cards.Share),
		field("gpuModels", cel.ListType(str), FromSpec, rules.ByObject, "allowed models, empty: any",
			func(t v) ref.Val { return t.World.words(t.Of.GPUModels) }),
		stringField("gpuTag", FromSpec, rules.ByObject, "\"share\", \"<k>-gpu\", \"\" without GPU", func(t v) string { return t.Of.GPUTag }),
		boolField("hasAffinity", FromSpec, rules.ByObject, "has inter-pod (anti-)affinity or spread terms",
			func(t v) bool { return t.Of.HasAffinity }),
		boolField("holdsResources", FromState, rules.ByStep, "status Allocated, Binding, Bound or Running",
			func(t v) bool { return t.Of.HoldsResources() }),
		hidden("requestsGPUs", FromSpec, rules.ByObject, "its containers request "+model.GPUResource,
			func(t v) ref.Val { return types.String(strconv.FormatBool(t.Of.RequestsGPUs)) }),
		hidden("nodeTerms", FromSpec, rules.ByObject, "nodeSelector and required node affinity",
			func(t v) ref.Val { return types.String(t.Of.NodeAffinityKey) }),
		hidden("preferredNodeTerms", FromSpec, rules.ByObject, "preferred node affinity",
			func(t v) ref.Val { return types.String(t.Of.PreferredKey) }),
		hidden("tolerations", FromSpec, rules.ByObject, "tolerations", func(t v) ref.Val { return types.String(t.Of.TolerationsKey) }),
		hidden("hostPorts", FromSpec, rules.ByObject, "host ports", func(t v) ref.Val { return types.String(t.Of.HostPortsKey) }),
	}, append(slices.Concat(volumeFields(), budgetTaskFields(), numaTaskFields()), bucketTaskField(),
		answersField(func(t v) *World { return t.World }))...)
}

func (t *TaskView) nodeName() string {
	if t.Of.Node == model.NoNode {
		return ""
	}
	return t.World.c.Nodes.Rows[t.Of.Node].Name
}

func (t *TaskView) node() ref.Val {
	if t.Of.Node == model.NoNode {
		return types.NullValue
	}
	return t.World.NodeView(t.Of.Node)
}

func jobFields() []*rules.Member {
	type v = *JobView
	count := func(name, doc string, origin rules.Origin, changes rules.Changes, get func(j *model.Job) int64) *rules.Member {
		return intField(name, origin, changes, doc, func(j v) int64 { return get(j.Of) })
	}
	return append([]*rules.Member{
		stringField("name", FromSpec, rules.Static,
			"name of the Job that it is, or of the pod or its controller where the PodGroup was made for that; else of the PodGroup",
			func(j v) string { return j.Of.Name }),
		stringField("namespace", FromSpec, rules.Static, "namespace", func(j v) string { return j.Of.Namespace }),
		stringField("uid", FromIdentity, rules.Static, "namespace/name of the PodGroup", func(j v) string { return j.Of.Key }),
		boolField("orphan", FromState, rules.ByObject, "its PodGroup is gone; its queue is that in which its pod was bound",
			func(j v) bool { return j.Of.Orphan }),
		field("queue", QueueType(), ToQueue, rules.ByObject, "its queue", func(j v) ref.Val { return j.World.QueueView(j.Of.Queue) }),
		count("priority", "value of the PodGroup's PriorityClass, else of the default class, else 0", FromSpec, rules.ByObject,
			func(j *model.Job) int64 { return j.Priority }),
		field("createdAt", cel.TimestampType, FromSpec, rules.Static, "creation of the PodGroup",
			func(j v) ref.Val { return types.Timestamp{Time: j.Of.CreatedAt} }),
		oneOf(stringField("phase", FromState, rules.ByAdmit, "of the PodGroup", func(j v) string { return j.Of.Phase }), "Pending", "Inqueue",
			"Running", "Unknown", "Completed"),
		field("admittedAt", cel.TimestampType, FromState, rules.ByAdmit,
			"when it was admitted; the creation of the PodGroup if the running scheduler did not admit it",
			func(j v) ref.Val { return types.Timestamp{Time: admittedAt(j.Of)} }),
		boolField("stuck", FromState|FromWaits, rules.ByObject, "the last cycle found that none of its pods waits for room, so the job would "+
			"not start if other pods left: no node accepts them for another reason, its queue or a gate holds them, or its gang lacks pods",
			func(j v) bool { return j.World.c.IsStuck(j.Of) }),
		boolField("admittedNow", FromState, rules.ByAdmit, "admitted by admit in this cycle", func(j v) bool { return j.Of.AdmittedNow }),
		field("labels", stringMapType(), FromSpec, rules.ByObject, "labels of the PodGroup",
			func(j v) ref.Val { return j.World.strings(&j.labels, j.Of.Labels) }),
		field("annotations", stringMapType(), FromSpec, rules.ByObject, "annotations of the PodGroup",
			func(j v) ref.Val { return j.World.strings(&j.annotations, j.Of.Annotations) }),
		stringField("nodeClass", FromSpec, rules.ByObject, "a text that is the same for jobs whose pods require the same labels of nodes and "+
			"have the same tolerations. It considers the pods that are on no node: those that request devices, or all if none does",
			func(j v) string { return j.classOfNodes() }),
		boolField("preemptable", FromSpec, rules.ByObject, "annotation of the PodGroup; unset false", func(j v) bool { return j.Of.Preemptable }),
		boolField("preemptableForGang", FromSpec, rules.ByObject, "as preemptable, but unset true",
			func(j v) bool { return j.Of.PreemptableForGang }),
		boolField("hasTopology", FromSpec, rules.ByObject, "networkTopology or sub-groups are set", func(j v) bool { return j.Of.HasTopology }),
		count("minMember", "spec.minMember", FromSpec, rules.ByObject, func(j *model.Job) int64 { return j.MinMember }),
		amountField("minResources", FromSpec, rules.ByObject, "spec.minResources, empty if absent",
			func(j v) (model.Resources, *Amounts, *World) { return j.Of.MinResources, &j.minResources, j.World }),
		boolField("hasMinResources", FromSpec, rules.ByObject, "spec.minResources is there", func(j v) bool { return j.Of.HasMinResources }),
		bounded(field("roles", cel.ListType(roleType()), ToParts, rules.ByStep, "tasks by role, in name order",
			func(j v) ref.Val { return j.rolesNow() }), 64),
		bounded(field("pods", cel.ListType(TaskType()), ToMembers, rules.ByStep, "its tasks, by name; expensive", func(j v) ref.Val {
			return listOf(j.Of.Tasks, func(t *model.Task) ref.Val { return j.World.TaskView(t) })
		}), 512),
		count("roleMinTotal", "sum of minTaskMember", FromSpec, rules.ByObject, func(j *model.Job) int64 { return j.RoleMinTotal }),
		count("taskCount", "all tasks", FromState, rules.ByObject, func(j *model.Job) int64 { return int64(len(j.Tasks)) }),
		count("pendingTasks", "status Pending", FromState, rules.ByStep, func(j *model.Job) int64 { return j.Counts[model.Pending] }),
		count("pendingBestEffort", "status Pending and bestEffort, except gated tasks and those that found no place in this turn", FromState,
			rules.ByStep, func(j *model.Job) int64 { return j.PendingBestEffort }),
		count("pipelinedTasks", "status Pipelined", FromState, rules.ByStep, func(j *model.Job) int64 { return j.Counts[model.Pipelined] }),
		count("allocatedTasks", "Allocated, Binding, Bound, Running", FromState, rules.ByStep, allocatedTasks),
		count("readyTasks", "allocatedTasks and Succeeded", FromState, rules.ByStep, (*model.Job).Ready),
		count("validTasks", "readyTasks, Pipelined and Pending", FromState, rules.ByStep, (*model.Job).Valid),
		count("runningTasks", "status Running", FromState, rules.ByStep, func(j *model.Job) int64 { return j.Counts[model.Running] }),
		count("releasingTasks", "status Releasing", FromState, rules.ByStep, func(j *model.Job) int64 {
			return j.Counts[model.Releasing] + j.Counts[model.Gone]
		}),
		count("succeededTasks", "status Succeeded", FromState, rules.ByObject, func(j *model.Job) int64 { return j.Counts[model.Succeeded] }),
		count("failedTasks", "status Failed", FromState, rules.ByObject, func(j *model.Job) int64 { return j.Counts[model.Failed] }),
		count("placedNow", "allocated or pipelined in this cycle", FromState, rules.ByStep, func(j *model.Job) int64 { return j.PlacedNow }),
		amountField("allocated", FromState, rules.ByStep,
			"sum of request over allocatedTasks and pipelinedTasks: who is promised room has taken it",
			func(j v) (model.Resources, *Amounts, *World) { return j.Of.Allocated, &j.allocated, j.World }),
		amountField("request", FromState, rules.ByStep, "what it asks for, whether its pods are there or not: allocated, Pending, and expected",
			func(j v) (model.Resources, *Amounts, *World) { return j.Of.Request, &j.request, j.World }),
		amountField("expected", FromState, rules.ByObject, "the part of request for which there are no pods yet: of a Job the replicas of its "+
			"tasks that were not made, until it ends; of another PodGroup the part of minResources "+
			"that belongs to the pods that minMember lacks, until it has run",
			func(j v) (model.Resources, *Amounts, *World) { return j.Of.Expected, &j.expected, j.World }),
		amountField("next", FromState, rules.ByStep,
			"what it requests next: with the pods that each role lacks and that minMember lacks, or with "+
				"one more pod if it has started; without pods that request nothing; pods that do not exist yet count as in expected",
			func(j v) (model.Resources, *Amounts, *World) { return j.Of.Next(), nil, j.World }),
		amountField("gatedRequest", FromState, rules.ByStep,
			"sum of request over gated tasks, and what tasks on nodes ask for and no kubelet grants",
			func(j v) (model.Resources, *Amounts, *World) { return j.Of.GatedRequest, &j.gatedRequest, j.World }),
		boolField("starving", FromStarving, rules.ByStep, "outcome of jobStarving; only the conditions of an action's steps may read it",
			func(j v) bool { return j.World.Values.Starving(j.Of) }),
		boolField("ready", FromReady, rules.ByStep, "outcome of jobReady; only the conditions of an action's steps may read it",
			func(j v) bool { return j.World.Values.IsReady(j.Of) }),
	}, append(slices.Concat(unavailableJobFields(), namespaceJobFields()), bucketJobField(), takersField(),
		answersField(func(j v) *World { return j.World }))...)
}

func admittedAt(j *model.Job) time.Time {
	if j.AdmittedAt.IsZero() {
		return j.CreatedAt
	}
	return j.AdmittedAt
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
		stringField("name", FromSpec, rules.Static, "task-spec name", func(r v) string { return r.Of.Name }),
		intField("min", FromSpec, rules.ByObject, "minTaskMember of the role, 0 if none", func(r v) int64 { return r.Of.Min }),
		intField("ready", FromState, rules.ByStep, "allocated, Succeeded, and those that pendingBestEffort counts",
			func(r v) int64 { return ready(r.Of) + r.Of.PendingBestEffort }),
		intField("pipelined", FromState, rules.ByStep, "status Pipelined", func(r v) int64 { return r.Of.Counts[model.Pipelined] }),
		intField("pending", FromState, rules.ByStep, "status Pending", func(r v) int64 { return r.Of.Counts[model.Pending] }),
		intField("valid", FromState, rules.ByStep, "ready, pipelined and pending, each task once", func(r v) int64 {
			return ready(r.Of) + r.Of.Counts[model.Pipelined] + r.Of.Counts[model.Pending]
		}),
		boolField("failed", FromState, rules.ByFold, "a task of this role found no node in this turn", func(r v) bool { return r.Of.Failed }),
	}
}

func queueFields() []*rules.Member {
	type v = *QueueView
	phase := func(p string) func(q v) int64 {
		return func(q v) int64 { return q.Of.Phases[p] }
	}
	return append([]*rules.Member{
		stringField("name", FromIdentity, rules.Static, "name", func(q v) string { return q.Of.Name }),
		stringField("uid", FromIdentity, rules.Static, "UID", func(q v) string { return q.Of.UID }),
		field("createdAt", cel.TimestampType, FromSpec, rules.Static, "creation",
			func(q v) ref.Val { return types.Timestamp{Time: q.Of.CreatedAt} }),
		field("spec", queueSpecType(), ToParts, rules.ByObject, "raw figures of the object", func(q v) ref.Val {
			return &q.spec
		}),
		intField("priority", FromSpec, rules.ByObject, "spec.priority, 0 if unset", func(q v) int64 { return q.Of.Priority }),
		boolField("open", FromSpec, rules.ByObject, "state is Open (unset: Open)", func(q v) bool { return q.Of.Open }),
		field("annotations", stringMapType(), FromSpec, rules.ByObject, "annotations", func(q v) ref.Val { return q.annotations }),
		field("labels", stringMapType(), FromSpec, rules.ByObject, "labels", func(q v) ref.Val { return q.labels }),
		intField("jobCount", FromState, rules.ByObject, "jobs known", func(q v) int64 { return q.Of.JobCount() }),
		intField("pendingJobs", FromState, rules.ByAdmit, "jobs of phase Pending", phase("Pending")),
		intField("runningJobs", FromState, rules.ByObject, "jobs of phase Running", phase("Running")),
		amountField("allocated", FromHeld, rules.ByStep, "sum of request over the allocatedTasks and pipelinedTasks of its jobs",
			func(q v) (model.Resources, *Amounts, *World) { return q.Of.Allocated, &q.allocated, q.World }),
		amountField("occupied", FromHeld, rules.ByStep,
			"sum of request over the tasks of its jobs that are on a node, until their pods have ended or "+
				"are deleted: Allocated, Binding, Bound, Running, Releasing and Unknown. Pipelined tasks do not count",
			func(q v) (model.Resources, *Amounts, *World) { return q.Of.Occupied, &q.occupied, q.World }),
		amountField("request", FromState, rules.ByStep, "allocated and Pending, and expected of its admitted jobs",
			func(q v) (model.Resources, *Amounts, *World) { return q.Of.Request, &q.request, q.World }),
		field("exceededAt", cel.TimestampType, FromState, rules.ByObject,
			"the last cycle in which a step with the gate beyondShare started pods of "+
				"its jobs; the beginning of 1970 if none did, or since the scheduler started",
			func(q v) ref.Val { return types.Timestamp{Time: q.World.c.ExceededAt(q.Of)} }),
		answersField(func(q v) *World { return q.World }),
	}, nodeGroupFields()...)
}

func queueSpecFields() []*rules.Member {
	type v = *specView
	amount := func(name, doc string, get func(q v) (model.Resources, *Amounts)) *rules.Member {
		return amountField(name, FromSpec, rules.ByObject, doc, func(q v) (model.Resources, *Amounts, *World) {
			r, box := get(q)
			return r, box, q.World
		})
	}
	return []*rules.Member{
		intField("weight", FromSpec, rules.ByObject, "weight, 1 if unset", func(q v) int64 { return q.Of.Weight }),
		amount("capability", "most the queue may hold; may lack dimensions",
			func(q v) (model.Resources, *Amounts) { return q.Of.Capability, &q.capability }),
		amount("limit", "what of capability is a limit: cpu and memory of 0 are none, 0 of anything else is one",
			func(q v) (model.Resources, *Amounts) { return q.Of.Limit, &q.limit }),
		amount("guarantee", "guarantee.resource", func(q v) (model.Resources, *Amounts) { return q.Of.Guarantee, &q.guarantee }),
		amount("deserved", "deserved", func(q v) (model.Resources, *Amounts) { return q.Of.Deserved, &q.deserved }),
		boolField("reclaimable", FromSpec, rules.ByObject, "may others take back from it; unset true",
			func(q v) bool { return q.Of.Reclaimable }),
		stringField("parent", FromSpec, rules.ByObject, "parent queue, \"\" if none", func(q v) string { return q.Of.Parent }),
		stringField("dequeueStrategy", FromSpec, rules.ByObject,
			"fifo: jobs wait behind one that cannot start; traverse, also if unset: they pass it", func(q v) string { return q.Of.DequeueStrategy }),
	}
}

// tags contains the tags of the tasks with devices on a node, with the number of tasks for each. version is the version of the node plus 1.
type tags struct {
	version uint64
	counts  ref.Val
}

// gpuTags counts again only after the node changed.
func (n *NodeView) gpuTags() ref.Val {
	nodes, row := &n.World.c.Nodes, n.Of.Row
	at := nodes.Version[row] + 1
	if n.tags.version == at {
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
		stringField("key", FromSpec, rules.ByObject, "key", func(t v) string { return t.Of.key }),
		stringField("value", FromSpec, rules.ByObject, "value", func(t v) string { return t.Of.value }),
		oneOf(stringField("effect", FromSpec, rules.ByObject, "what it does to pods that do not tolerate it",
			func(t v) string { return t.Of.effect }), "NoSchedule", "PreferNoSchedule", "NoExecute"),
	}
}

func gpuFields() []*rules.Member {
	type v = *GPUView
	return []*rules.Member{
		intField("index", FromSpec|FromAmounts, rules.Static, "index on its node", func(g v) int64 { return int64(g.Of.Index) }),
		stringField("model", FromSpec|FromAmounts, rules.ByObject, "model, \"\" if unknown", func(g v) string { return g.Of.Model }),
		intField("capacity", FromSpec|FromAmounts, rules.ByObject, "1000 for a whole device", func(g v) int64 { return g.Of.Capacity }),
		intField("free", FromState|FromAmounts, rules.ByStep, "thousandths that are free", func(g v) int64 { return g.Of.Free }),
		intField("memory", FromSpec|FromAmounts, rules.ByObject, "bytes", func(g v) int64 { return g.Of.Memory }),
		intField("memoryFree", FromState|FromAmounts, rules.ByStep, "bytes that are free", func(g v) int64 { return g.Of.MemoryFree }),
		intField("taskCount", FromState|FromAmounts, rules.ByStep, "tasks that share it", func(g v) int64 { return int64(g.Of.TaskCount) }),
		intField("sharers", FromSpec, rules.ByObject, "tasks that may share it, 0 if unset", func(g v) int64 { return int64(g.Of.Sharers) }),
		stringField("uuid", FromSpec, rules.ByObject, "UUID, \"\" if unknown", func(g v) string { return g.Of.UUID }),
		stringField("mode", FromSpec, rules.ByObject, "how it is shared, as its node says: hami-core or mig; \"\" if unknown",
			func(g v) string { return g.Of.Mode }),
		hidden("unlisted", FromSpec|FromAmounts, rules.ByObject, "its node does not list "+model.GPUResource,
			func(g v) ref.Val { return types.String(strconv.FormatBool(g.Of.Unlisted)) }),
		boolField("healthy", FromSpec, rules.ByObject, "its node does not say that it is broken", func(g v) bool { return !g.Of.Unhealthy }),
		bounded(field("tasks", cel.ListType(TaskType()), ToTasks, rules.ByStep, "tasks that share it, by name",
			func(g v) ref.Val { return g.tasks() }), 16),
	}
}

func clusterFields() []*rules.Member {
	type v = *ClusterView
	return []*rules.Member{
		amountField("allocatable", FromCluster, rules.ByObject, "sum over ready nodes",
			func(c v) (model.Resources, *Amounts, *World) { return c.Of.Total, &c.allocatable, c.World }),
		amountField("usable", FromCluster, rules.ByObject,
			"sum of node.allocatable over the nodes that accept pods (ready, not cordoned), "+
				"and of what pods use on all other nodes, up to what these offer",
			func(c v) (model.Resources, *Amounts, *World) { return c.Of.Usable, &c.usable, c.World }),
		amountField("taken", FromCluster, rules.ByStep,
			"sum of node.used over all nodes, now; on nodes that accept no pods, up to what these offer",
			func(c v) (model.Resources, *Amounts, *World) { return c.Of.Taken(), nil, c.World }),
		amountField("used", FromCluster, rules.ByStep, "sum of node.used over ready nodes, now",
			func(c v) (model.Resources, *Amounts, *World) { return c.Of.Used, &c.used, c.World }),
		amountField("usedAtStart", FromCluster, rules.ByCycle, "the same as the cycle began",
			func(c v) (model.Resources, *Amounts, *World) { return c.World.UsedAtStart, &c.usedAtStart, c.World }),
		intField("nodeCount", FromCluster, rules.ByObject, "ready nodes", func(c v) int64 { return int64(c.Of.ReadyNodes) }),
		intField("taskCount", FromCluster, rules.ByObject, "all tasks", func(c v) int64 { return int64(len(c.Of.Tasks)) }),
		intField("seed", FromCluster, rules.Static, "of the run", func(c v) int64 { return c.Of.Seed }),
		hidden("idleByNode", FromCluster, rules.ByStep, "what each node has idle, and which pods may use it",
			func(c v) ref.Val { return types.Int(c.Of.Clock) }),
		hidden("workload", FromCluster, rules.ByObject, "shapes of the tasks that the cluster is used for",
			func(c v) ref.Val { return types.Int(c.Of.ObjectClock) }),
	}
}
