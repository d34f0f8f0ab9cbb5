package model

import "github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"

// Annotations and labels that this package reads.
const (
	// GroupAnnotation names a pod's PodGroup, in the pod's namespace.
	GroupAnnotation = v1beta1.KubeGroupNameAnnotationKey
	// VolcanoGroupAnnotation is read if GroupAnnotation is missing.
	VolcanoGroupAnnotation = v1beta1.VolcanoGroupNameAnnotationKey
	// RoleAnnotation names a pod's role in its job.
	RoleAnnotation = "volcano.sh/task-spec"
	// IndexAnnotation is a pod's number in its role.
	IndexAnnotation = "volcano.sh/task-index"
	// WaitingTimeAnnotation is how long a PodGroup may wait, in Go's syntax.
	WaitingTimeAnnotation = v1beta1.JobWaitingTime
	// OldWaitingTimeAnnotation is read if WaitingTimeAnnotation is missing.
	OldWaitingTimeAnnotation = v1beta1.LegacyJobWaitingTime
	// NodeGroupLimitsAnnotation contains a queue's limits by node group, as JSON.
	NodeGroupLimitsAnnotation = v1beta1.NodeGroupResourceLimitsAnnotationKey
	// PriorityAnnotation overrides a pod's priority.
	PriorityAnnotation = v1beta1.TaskPriority
	// PreemptableKey is an annotation, or otherwise a label. It states whether a pod or a job may be evicted for another.
	PreemptableKey = v1beta1.PodPreemptable
	// CooldownKey is a label, or otherwise an annotation. It states for how long a pod is protected from eviction after it was scheduled.
	CooldownKey = v1beta1.CooldownTime
	// MinAvailableAnnotation is how many pods of a PodGroup must stay during a disruption, as a number or a percentage.
	MinAvailableAnnotation = v1beta1.JDBMinAvailable
	// MaxUnavailableAnnotation is how many of them may be missing at a time.
	MaxUnavailableAnnotation = v1beta1.JDBMaxUnavailable
	// RevocableZoneAnnotation names the zone of revocable nodes on which a pod may run.
	RevocableZoneAnnotation = v1beta1.RevocableZone

	// GPUCountAnnotation is how many devices a pod requests; the default is 1 if the pod requests a share.
	GPUCountAnnotation = "celsius.dev/gpu-count"
	// GPUMilliAnnotation is the share of each device in thousandths, 1 to 1000.
	GPUMilliAnnotation = "celsius.dev/gpu-milli"
	// GPUMemoryAnnotation is a quantity. On a pod it is the requested memory of each device, on a node the memory of each device.
	GPUMemoryAnnotation = "celsius.dev/gpu-memory"
	// GPUModelsAnnotation lists the models that a pod accepts, separated by "|".
	GPUModelsAnnotation = "celsius.dev/gpu-models"
	// RecordAnnotation contains what a binding decided for its pod: see Record. Only a binding may write it.
	RecordAnnotation = "celsius.dev/bound"
	// GPUsAnnotation lists the devices that a bound pod holds: "0,1". It is for the program that runs the pod; the scheduler reads the record.
	GPUsAnnotation = "celsius.dev/gpus"
	// NodeGPUsAnnotation is the number of devices of a node that does not list GPUResource.
	NodeGPUsAnnotation = "celsius.dev/gpus-count"
	// GPUModelAnnotation is the model of a node's devices.
	GPUModelAnnotation = "celsius.dev/gpu-model"
	// GPUProductLabel is the model if GPUModelAnnotation is missing.
	GPUProductLabel = "nvidia.com/gpu.product"
	// GPUResource counts whole devices in a node's allocatable and in a container's requests.
	GPUResource = "nvidia.com/gpu"
	// GPUMemoryResource counts the bytes of device memory that pods request by GPUMemoryAnnotation, and that nodes offer.
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

// QueueOpen is the state of a queue that accepts jobs.
const QueueOpen = string(v1beta1.QueueStateOpen)

// WholeGPU is a whole device, in thousandths.
const WholeGPU = 1000
