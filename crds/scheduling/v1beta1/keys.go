package v1beta1

// Keys of labels and annotations. Where a comment says "pod", controllers copy the key
// from the Job to its pods.
const (
	// AnnotationPrefix opens every key that is copied from an owner to its PodGroup.
	AnnotationPrefix = "volcano.sh/"

	// KubeGroupNameAnnotationKey, on a pod, names its PodGroup. It is what joins the two.
	KubeGroupNameAnnotationKey = "scheduling.k8s.io/group-name"
	// VolcanoGroupNameAnnotationKey, on a pod, is the other spelling of the same.
	VolcanoGroupNameAnnotationKey = GroupName + "/group-name"
	// VolcanoGroupMinMemberAnnotationKey, on an owner of bare pods, is the minMember of
	// the PodGroup that is made for them: a whole number in decimal digits.
	VolcanoGroupMinMemberAnnotationKey = GroupName + "/group-min-member"
	// VolcanoGroupMinResourcesAnnotationKey, on an owner of bare pods, is the
	// minResources of that PodGroup, as JSON.
	VolcanoGroupMinResourcesAnnotationKey = GroupName + "/group-min-resources"
	// QueueNameAnnotationKey, on a pod or a namespace, names the queue.
	QueueNameAnnotationKey = GroupName + "/queue-name"
	// QueueAllocationGateKey, on a pod, asks that its queue's quota lift the scheduling
	// gate of that name.
	QueueAllocationGateKey = GroupName + "/queue-allocation-gate"

	// PodPreemptable, on a pod or a PodGroup, is "true" or "false".
	PodPreemptable = AnnotationPrefix + "preemptable"
	// CooldownTime, on a pod, is how long it is safe from preemption after it was
	// scheduled: a Go duration.
	CooldownTime = AnnotationPrefix + "cooldown-time"
	// RevocableZone, on a pod, is the zone that may be taken back from it ("*": any); on
	// a node, as a label, the zone that it is in.
	RevocableZone = AnnotationPrefix + "revocable-zone"
	// JDBMinAvailable, on a Job or PodGroup, is how many of its pods stay through an
	// eviction: a positive number or a percentage from 1% to 99%.
	JDBMinAvailable = AnnotationPrefix + "jdb-min-available"
	// JDBMaxUnavailable, on a Job or PodGroup, is how many of its pods may be missing at
	// once, in the same form.
	JDBMaxUnavailable = AnnotationPrefix + "jdb-max-unavailable"

	// NumaPolicyKey, on a pod, is its NUMA policy: none, best-effort, restricted or
	// single-numa-node.
	NumaPolicyKey = AnnotationPrefix + "numa-topology-policy"
	// TopologyDecisionAnnotation, on a pod, holds the NUMA nodes chosen for it, as JSON.
	TopologyDecisionAnnotation = AnnotationPrefix + "topology-decision"

	// JobWaitingTime, on a PodGroup, is the longest that it should wait: a Go duration.
	JobWaitingTime = AnnotationPrefix + "sla-waiting-time"
	// LegacyJobWaitingTime is the older spelling of the same.
	LegacyJobWaitingTime = "sla-waiting-time"

	// KubeHierarchyAnnotationKey, on a queue, is its path from the root: "root/a/b".
	KubeHierarchyAnnotationKey = AnnotationPrefix + "hierarchy"
	// KubeHierarchyWeightAnnotationKey, on a queue, holds one weight a part of that
	// path: "1/2/8".
	KubeHierarchyWeightAnnotationKey = AnnotationPrefix + "hierarchy-weights"

	// NodeGroupNameKey, on a node, as a label, names the group of nodes that it is in.
	NodeGroupNameKey = AnnotationPrefix + "nodegroup-name"
	// NodeGroupResourceLimitsAnnotationKey, on a queue, bounds what it may use in each
	// group of nodes, as JSON.
	NodeGroupResourceLimitsAnnotationKey = AnnotationPrefix + "nodegroup-resource-limits"

	// TaskPriority, on a pod, overrides the pod's priority: a whole number.
	TaskPriority = AnnotationPrefix + "task-priority"
	// PodQosLevel, on a pod, is its level of service on the node: LC, HLS, LS or BE.
	PodQosLevel = AnnotationPrefix + "qos-level"

	// TaskTopologyAffinity, on a PodGroup, lists tasks to put together: "ps,worker;…".
	TaskTopologyAffinity = AnnotationPrefix + "task-topology-affinity"
	// TaskTopologyAntiAffinity, on a PodGroup, lists tasks to keep apart, likewise.
	TaskTopologyAntiAffinity = AnnotationPrefix + "task-topology-anti-affinity"
	// TaskTopologyTaskOrder, on a PodGroup, lists tasks in the order of placing.
	TaskTopologyTaskOrder = AnnotationPrefix + "task-topology-task-order"
)

// Names of extended resources for shared devices.
const (
	// ResourceGPUMemory is memory of one shared device, in MiB.
	ResourceGPUMemory = AnnotationPrefix + "gpu-memory"
	// ResourceGPUNumber counts whole devices.
	ResourceGPUNumber = AnnotationPrefix + "gpu-number"
	// ResourceVGPUNumber counts virtual devices.
	ResourceVGPUNumber = AnnotationPrefix + "vgpu-number"
	// ResourceVGPUMemory is memory of one virtual device, in MiB.
	ResourceVGPUMemory = AnnotationPrefix + "vgpu-memory"
	// ResourceVGPUMemoryPercentage is the same as a percentage of the device.
	ResourceVGPUMemoryPercentage = AnnotationPrefix + "vgpu-memory-percentage"
	// ResourceVGPUCores is compute of one virtual device, as a percentage of it.
	ResourceVGPUCores = AnnotationPrefix + "vgpu-cores"
)

// DefaultQueue is the queue of work that names none.
const DefaultQueue = "default"

// ClosedByParentAnnotationKey marks a queue that was closed because the queue above it was: "true" or "false".
const ClosedByParentAnnotationKey = "volcano.sh/closed-by-parent"

// RootQueue is the queue that all others are under.
const RootQueue = "root"
