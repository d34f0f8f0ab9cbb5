package model

import "github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"

// Annotations and labels that this package reads.
const (
	// GroupAnnotation names a pod's PodGroup, in the pod's namespace.
	GroupAnnotation = v1beta1.KubeGroupNameAnnotationKey
	// VolcanoGroupAnnotation is read where GroupAnnotation is missing.
	VolcanoGroupAnnotation = v1beta1.VolcanoGroupNameAnnotationKey
	// RoleAnnotation names a pod's role in its job.
	RoleAnnotation = "volcano.sh/task-spec"
	// IndexAnnotation is a pod's number in its role.
	IndexAnnotation = "volcano.sh/task-index"
	// WaitingTimeAnnotation is how long a PodGroup may wait, in Go's syntax.
	WaitingTimeAnnotation = v1beta1.JobWaitingTime
	// OldWaitingTimeAnnotation is read where WaitingTimeAnnotation is missing.
	OldWaitingTimeAnnotation = v1beta1.LegacyJobWaitingTime
	// NodeGroupLimitsAnnotation has a queue's limits by node group, as JSON.
	NodeGroupLimitsAnnotation = v1beta1.NodeGroupResourceLimitsAnnotationKey
	// PriorityAnnotation overrides a pod's priority.
	PriorityAnnotation = v1beta1.TaskPriority
	// PreemptableKey, an annotation or else a label, says whether a pod or a job may be evicted for another.
	PreemptableKey = v1beta1.PodPreemptable
	// CooldownKey, a label or else an annotation, is how long a pod is spared from when it was scheduled on.
	CooldownKey = v1beta1.CooldownTime
	// MinAvailableAnnotation is how many pods of a PodGroup are to stay through a disruption, a number or a percentage.
	MinAvailableAnnotation = v1beta1.JDBMinAvailable
	// MaxUnavailableAnnotation is how many of them may be missing at a time.
	MaxUnavailableAnnotation = v1beta1.JDBMaxUnavailable
	// RevocableZoneAnnotation names the zone of revocable nodes on which a pod may run.
	RevocableZoneAnnotation = v1beta1.RevocableZone

	// GPUCountAnnotation is how many devices a pod wants, 1 where a share is given.
	GPUCountAnnotation = "celsius.dev/gpu-count"
	// GPUMilliAnnotation is the share of each device in thousandths, 1 to 1000.
	GPUMilliAnnotation = "celsius.dev/gpu-milli"
	// GPUMemoryAnnotation is on a pod the memory that it wants of each device, on a node the memory of each
	// device; a quantity.
	GPUMemoryAnnotation = "celsius.dev/gpu-memory"
	// GPUModelsAnnotation lists the models that suit a pod, with "|" between them.
	GPUModelsAnnotation = "celsius.dev/gpu-models"
	// RecordAnnotation is what a binding decided of its pod: see Record. Nobody but a binding may write it.
	RecordAnnotation = "celsius.dev/bound"
	// GPUsAnnotation lists the devices that a bound pod holds: "0,1". It is for who runs the pod; what counts is in the record.
	GPUsAnnotation = "celsius.dev/gpus"
	// NodeGPUsAnnotation is how many devices a node has that does not list GPUResource.
	NodeGPUsAnnotation = "celsius.dev/gpus-count"
	// GPUModelAnnotation is the model of a node's devices.
	GPUModelAnnotation = "celsius.dev/gpu-model"
	// GPUProductLabel is the model where GPUModelAnnotation is missing.
	GPUProductLabel = "nvidia.com/gpu.product"
	// GPUResource counts whole devices in a node's allocatable and in a container's requests.
	GPUResource = "nvidia.com/gpu"
	// GPUMemoryResource counts the bytes of device memory that pods ask for by GPUMemoryAnnotation, and that nodes offer.
	GPUMemoryResource = GPUMemoryAnnotation
)

// Phases of a PodGroup.
const (
	PhasePending   = string(v1beta1.PodGroupPending)
	PhaseInqueue   = string(v1beta1.PodGroupInqueue)
	PhaseRunning   = string(v1beta1.PodGroupRunning)
	PhaseUnknown   = string(v1beta1.PodGroupUnknown)
	PhaseCompleted = string(v1beta1.PodGroupCompleted)
)

// QueueOpen is the state of a queue that takes jobs.
const QueueOpen = string(v1beta1.QueueStateOpen)

// WholeGPU is a whole device, in thousandths.
const WholeGPU = 1000
