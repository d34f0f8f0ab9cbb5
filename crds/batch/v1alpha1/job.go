package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +kubebuilder:object:root=true
// +kubebuilder:resource:path=jobs,scope=Namespaced,shortName=vcjob;vj
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="STATUS",type=string,JSONPath=`.status.state.phase`
// +kubebuilder:printcolumn:name="minAvailable",type=integer,JSONPath=`.status.minAvailable`
// +kubebuilder:printcolumn:name="RUNNINGS",type=integer,JSONPath=`.status.running`
// +kubebuilder:printcolumn:name="AGE",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="QUEUE",type=string,priority=1,JSONPath=`.spec.queue`

// Job is a batch job: tasks, each of some pods that are alike, which start together and
// whose ends decide how the job ends.
type Job struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// What is wanted.
	// +optional
	Spec JobSpec `json:"spec,omitempty"`

	// What was last seen; written by the controllers.
	// +optional
	Status JobStatus `json:"status,omitempty"`
}

// +kubebuilder:object:root=true

// JobList is what a list request for jobs answers.
type JobList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	// The jobs found.
	Items []Job `json:"items"`
}

// JobSpec is what is wanted of a job. After creation only minAvailable,
// priorityClassName, and replicas and minAvailable of the tasks may change.
type JobSpec struct {
	// The scheduler of those of the job's pods whose template names none.
	// +optional
	SchedulerName string `json:"schedulerName,omitempty"`

	// How many pods must be able to start before any does: the size of the gang. Unset
	// or 0: the sum over the tasks of minAvailable, or of replicas where that is unset.
	// +kubebuilder:validation:Minimum=0
	// +optional
	MinAvailable int32 `json:"minAvailable,omitempty"`

	// Volumes that every container of every pod mounts.
	// +optional
	Volumes []VolumeSpec `json:"volumes,omitempty"`

	// The tasks, at least one.
	// +kubebuilder:validation:MinItems=1
	// +optional
	Tasks []TaskSpec `json:"tasks,omitempty"`

	// What to do upon which event, for tasks whose own policies do not say.
	// +optional
	Policies []LifecyclePolicy `json:"policies,omitempty"`

	// The job plugins in use, by name, each with its command-line arguments.
	// +optional
	Plugins map[string][]string `json:"plugins,omitempty"`

	// How long the user thinks the job will run, such as 2h; for information only.
	// +optional
	RunningEstimate *metav1.Duration `json:"runningEstimate,omitempty"`

	// The queue whose share of the cluster the job is counted against.
	// +kubebuilder:default:="default"
	// +optional
	Queue string `json:"queue,omitempty"`

	// How often the job may be restarted before it is called failed.
	// +kubebuilder:default:=3
	// +kubebuilder:validation:Minimum=0
	// +optional
	MaxRetry int32 `json:"maxRetry,omitempty"`

	// How many seconds after its end the job is deleted; 0: at once; unset: never.
	// +kubebuilder:validation:Minimum=0
	// +optional
	TTLSecondsAfterFinished *int32 `json:"ttlSecondsAfterFinished,omitempty"`

	// The PriorityClass of the job as a whole.
	// +optional
	PriorityClassName string `json:"priorityClassName,omitempty"`

	// How many pods must succeed for the job to be completed; unset: minAvailable.
	// +kubebuilder:validation:Minimum=1
	// +optional
	MinSuccess *int32 `json:"minSuccess,omitempty"`

	// How close to each other in the network the job's pods must run.
	// +optional
	NetworkTopology *NetworkTopologySpec `json:"networkTopology,omitempty"`
}

// VolumeSpec is a volume that every container of a job mounts: a claim that exists, by
// name, or one to be made.
// +kubebuilder:validation:XValidation:rule="has(self.volumeClaim) || has(self.volumeClaimName) && self.volumeClaimName.size() > 0",message="must have a volumeClaim or a volumeClaimName"
type VolumeSpec struct {
	// Where in the containers it is mounted; without ':'.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:Pattern=`^[^:]+$`
	MountPath string `json:"mountPath"`

	// The PersistentVolumeClaim to use. For a volumeClaim, the name of the claim that was
	// made, filled in by the controller.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	VolumeClaimName string `json:"volumeClaimName,omitempty"`

	// The claim to make; its fields are those of a PersistentVolumeClaim's spec.
	// +optional
	VolumeClaim *corev1.PersistentVolumeClaimSpec `json:"volumeClaim,omitempty"`
}

// NumaPolicy says how strictly a pod's CPUs and devices are kept on one NUMA node.
// +kubebuilder:validation:Enum=none;best-effort;restricted;single-numa-node
type NumaPolicy string

// The NUMA policies.
const (
	// None does not look at NUMA nodes.
	None NumaPolicy = "none"
	// BestEffort prefers few NUMA nodes.
	BestEffort NumaPolicy = "best-effort"
	// Restricted takes only a preferred set of NUMA nodes.
	Restricted NumaPolicy = "restricted"
	// SingleNumaNode takes one NUMA node or none.
	SingleNumaNode NumaPolicy = "single-numa-node"
)

// TaskSpec is some pods of a job that are made from one template.
// +kubebuilder:validation:XValidation:rule="!has(self.minAvailable) || self.minAvailable <= (has(self.replicas) ? self.replicas : 0)",message="minAvailable must not be greater than replicas"
type TaskSpec struct {
	// The task's name, unique in the job; part of the names of its pods. Unset: "default"
	// and the task's number.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +optional
	Name string `json:"name,omitempty"`

	// How many pods.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Replicas int32 `json:"replicas,omitempty"`

	// How many of them must be able to start before any pod of the job does; unset: all.
	// +kubebuilder:validation:Minimum=0
	// +optional
	MinAvailable *int32 `json:"minAvailable,omitempty"`

	// The template of the pods; its fields are those of a Deployment's template.
	// +optional
	Template corev1.PodTemplateSpec `json:"template,omitempty"`

	// What to do upon which event of this task; asked before the job's policies.
	// +optional
	Policies []LifecyclePolicy `json:"policies,omitempty"`

	// How strictly each pod is kept on one NUMA node; other than none it needs whole CPUs.
	// +optional
	TopologyPolicy NumaPolicy `json:"topologyPolicy,omitempty"`

	// How often the task's containers may restart before the task has failed; -1: without
	// limit.
	// +kubebuilder:default:=3
	// +optional
	MaxRetry int32 `json:"maxRetry,omitempty"`

	// The tasks that must run before this one is started.
	// +optional
	DependsOn *DependsOn `json:"dependsOn,omitempty"`

	// How the task's pods are divided into groups that start together and close together.
	// +optional
	PartitionPolicy *PartitionPolicySpec `json:"partitionPolicy,omitempty"`
}

// Iteration says how many of the tasks that are depended on must run.
// +kubebuilder:validation:Enum=any;all
type Iteration string

// The values of Iteration.
const (
	// IterationAny waits for one of the tasks.
	IterationAny Iteration = "any"
	// IterationAll waits for all of them.
	IterationAll Iteration = "all"
)

// DependsOn names the tasks that must run before a task is started.
type DependsOn struct {
	// The names of the tasks.
	// +optional
	Name []string `json:"name,omitempty"`

	// Whether any one of them is enough, or all are needed; unset: all.
	// +optional
	Iteration Iteration `json:"iteration,omitempty"`
}

// PartitionPolicySpec divides the pods of a task into groups of one size.
// +kubebuilder:validation:XValidation:rule="!has(self.minPartitions) || self.minPartitions <= self.totalPartitions",message="minPartitions must not be greater than totalPartitions"
type PartitionPolicySpec struct {
	// How many groups; times partitionSize it is the task's replicas.
	// +kubebuilder:validation:Minimum=1
	TotalPartitions int32 `json:"totalPartitions"`

	// How many pods each group has.
	// +kubebuilder:validation:Minimum=1
	PartitionSize int32 `json:"partitionSize"`

	// How close to each other in the network the pods of a group must run.
	// +optional
	NetworkTopology *NetworkTopologySpec `json:"networkTopology,omitempty"`

	// How many groups must be able to start before any does.
	// +kubebuilder:default:=0
	// +kubebuilder:validation:Minimum=0
	// +optional
	MinPartitions int32 `json:"minPartitions,omitempty"`
}

// NetworkTopologyMode says whether closeness is demanded or preferred.
// +kubebuilder:validation:Enum=hard;soft
type NetworkTopologyMode string

// The values of NetworkTopologyMode.
const (
	// HardNetworkTopologyMode leaves pods waiting rather than apart.
	HardNetworkTopologyMode NetworkTopologyMode = "hard"
	// SoftNetworkTopologyMode places them apart where they cannot be close.
	SoftNetworkTopologyMode NetworkTopologyMode = "soft"
)

// NetworkTopologySpec says how close to each other in the network pods must run. The
// highest tier is given by number or by name.
// +kubebuilder:validation:XValidation:rule="!(has(self.highestTierAllowed) && has(self.highestTierName) && self.highestTierName.size() > 0)",message="highestTierAllowed and highestTierName exclude each other; keep one of them"
type NetworkTopologySpec struct {
	// hard demands it, soft prefers it.
	// +kubebuilder:default:=hard
	// +optional
	Mode NetworkTopologyMode `json:"mode,omitempty"`

	// The number of the highest tier of HyperNodes that the pods may spread over.
	// +kubebuilder:validation:Minimum=0
	// +optional
	HighestTierAllowed *int `json:"highestTierAllowed,omitempty"`

	// The name of that tier; not together with highestTierAllowed.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	HighestTierName string `json:"highestTierName,omitempty"`
}
