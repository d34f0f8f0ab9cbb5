package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The PodGroup has no status subresource, as Volcano's has none: clients that write the
// whole object keep working.

// +kubebuilder:object:root=true
// +kubebuilder:resource:path=podgroups,scope=Namespaced,shortName=pg;podgroup-v1beta1
// +kubebuilder:printcolumn:name="STATUS",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="minMember",type=integer,JSONPath=`.spec.minMember`
// +kubebuilder:printcolumn:name="RUNNINGS",type=integer,JSONPath=`.status.running`
// +kubebuilder:printcolumn:name="AGE",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="QUEUE",type=string,priority=1,JSONPath=`.spec.queue`

// PodGroup is a group of pods that start together: at least minMember pods start, or none.
type PodGroup struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// The desired state of the PodGroup.
	// +optional
	Spec PodGroupSpec `json:"spec,omitempty"`

	// The observed state of the PodGroup. The controllers write the phase Pending, the scheduler
	// writes all other values.
	// +optional
	Status PodGroupStatus `json:"status,omitempty"`
}

// +kubebuilder:object:root=true

// PodGroupList is what a list request for PodGroups answers.
type PodGroupList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	// The PodGroups found.
	Items []PodGroup `json:"items"`
}

// PodGroupSpec is what is wanted of a PodGroup.
type PodGroupSpec struct {
	// How many pods must be able to start before any pod starts. At least 0.
	// +kubebuilder:validation:Minimum=0
	// +optional
	MinMember int32 `json:"minMember,omitempty"`

	// How many pods of each task must be able to start before any pod starts, by the name of the
	// task.
	// +kubebuilder:validation:XValidation:rule="self.all(task, self[task] >= 0)",message="has a number below 0; write how many pods of the task must be able to start"
	// +optional
	MinTaskMember map[string]int32 `json:"minTaskMember,omitempty"`

	// The queue whose share of the cluster the pods are counted against.
	// +kubebuilder:default:="default"
	// +optional
	Queue string `json:"queue,omitempty"`

	// The PriorityClass of the group as a whole. Unset: the default PriorityClass; if there is no
	// default PriorityClass, the priority is 0.
	// +optional
	PriorityClassName string `json:"priorityClassName,omitempty"`

	// The sum of the resources that minMember pods need. The group is admitted to its queue only
	// if these resources are free. Unset: the group is always admitted.
	// +optional
	MinResources *corev1.ResourceList `json:"minResources,omitempty"`

	// How close to each other in the network the pods must run. Unset: no requirement.
	// +optional
	NetworkTopology *NetworkTopologySpec `json:"networkTopology,omitempty"`

	// How the pods are divided into subgroups. The pods of a subgroup start together and run close
	// together.
	// +optional
	SubGroupPolicy []SubGroupPolicySpec `json:"subGroupPolicy,omitempty"`
}

// SubGroupPolicySpec divides some of a PodGroup's pods into groups of one size.
type SubGroupPolicySpec struct {
	// The policy's name, unique in the PodGroup.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Name string `json:"name,omitempty"`

	// How close to each other in the network the pods of a subgroup must run.
	// +optional
	NetworkTopology *NetworkTopologySpec `json:"networkTopology,omitempty"`

	// The number of pods in each subgroup. At least 1. Default: 1.
	// +kubebuilder:default:=1
	// +kubebuilder:validation:Minimum=1
	// +optional
	SubGroupSize *int32 `json:"subGroupSize,omitempty"`

	// How many subgroups must be able to start before any subgroup starts. At least 0. Default: 0.
	// +kubebuilder:default:=0
	// +kubebuilder:validation:Minimum=0
	// +optional
	MinSubGroups *int32 `json:"minSubGroups,omitempty"`

	// The pods of the PodGroup to which the policy applies.
	// +optional
	LabelSelector *metav1.LabelSelector `json:"labelSelector,omitempty"`

	// The keys of the labels that divide these pods. Pods with the same values of all of these
	// labels form one subgroup.
	// +listType=atomic
	// +optional
	MatchLabelKeys []string `json:"matchLabelKeys,omitempty"`
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
	// Whether the limit is required (hard) or preferred (soft). Default: hard.
	// +kubebuilder:default:=hard
	// +optional
	Mode NetworkTopologyMode `json:"mode,omitempty"`

	// The number of the highest tier of HyperNodes over which the pods may spread. At least 0.
	// +kubebuilder:validation:Minimum=0
	// +optional
	HighestTierAllowed *int `json:"highestTierAllowed,omitempty"`

	// The name of the highest tier of HyperNodes over which the pods may spread. It cannot be set
	// together with highestTierAllowed.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	HighestTierName string `json:"highestTierName,omitempty"`
}

// PodGroupPhase is where a PodGroup stands.
// +kubebuilder:validation:Enum=Pending;Inqueue;Running;Unknown;Completed
type PodGroupPhase string

// The phases of a PodGroup.
const (
	// PodGroupPending waits to be let into its queue; its pods are not made yet.
	PodGroupPending PodGroupPhase = "Pending"
	// PodGroupInqueue was let in: its pods may be made, and wait for nodes.
	PodGroupInqueue PodGroupPhase = "Inqueue"
	// PodGroupRunning has at least minMember pods running.
	PodGroupRunning PodGroupPhase = "Running"
	// PodGroupUnknown has some pods running and others that cannot be scheduled.
	PodGroupUnknown PodGroupPhase = "Unknown"
	// PodGroupCompleted has only finished pods.
	PodGroupCompleted PodGroupPhase = "Completed"
)

// PodGroupConditionType is what a condition of a PodGroup is about.
type PodGroupConditionType string

// The types of conditions.
const (
	// PodGroupUnschedulableType: the last attempt to schedule the group failed.
	PodGroupUnschedulableType PodGroupConditionType = "Unschedulable"
	// PodGroupScheduled: the group has its nodes.
	PodGroupScheduled PodGroupConditionType = "Scheduled"
)

// Reasons of conditions.
const (
	// PodFailedReason: a pod of the group failed.
	PodFailedReason = "PodFailed"
	// PodDeletedReason: a pod of the group was deleted.
	PodDeletedReason = "PodDeleted"
	// NotEnoughResourcesReason: there is not room enough for the group.
	NotEnoughResourcesReason = "NotEnoughResources"
	// NotEnoughPodsReason: the group has fewer pods than minMember.
	NotEnoughPodsReason = "NotEnoughTasks"
	// NotEnoughPodsOfTaskReason: a task has fewer pods than its minTaskMember.
	NotEnoughPodsOfTaskReason = "NotEnoughPodsOfTask"
	// ScheduledReason is the reason of the condition Scheduled: a whole sentence, as
	// clients of Volcano expect it.
	ScheduledReason = "tasks in gang are ready to be scheduled"
)

// PodGroupCondition is one statement about a PodGroup.
type PodGroupCondition struct {
	// The type of the condition: Unschedulable or Scheduled.
	// +optional
	Type PodGroupConditionType `json:"type,omitempty"`

	// The status of the condition: True, False or Unknown.
	// +optional
	Status corev1.ConditionStatus `json:"status,omitempty"`

	// The ID of the scheduling cycle in which the condition was found.
	// +optional
	TransitionID string `json:"transitionID,omitempty"`

	// The time at which the condition last changed.
	// +optional
	LastTransitionTime metav1.Time `json:"lastTransitionTime,omitempty"`

	// The reason of the condition, for programs.
	// +optional
	Reason string `json:"reason,omitempty"`

	// The reason of the condition, as text for people.
	// +optional
	Message string `json:"message,omitempty"`
}

// PodGroupStatus is what was last seen of a PodGroup.
type PodGroupStatus struct {
	// The phase of the group: Pending, Inqueue, Running, Unknown or Completed.
	// +optional
	Phase PodGroupPhase `json:"phase,omitempty"`

	// The conditions of the group, as of the last attempt to schedule it.
	// +optional
	Conditions []PodGroupCondition `json:"conditions,omitempty"`

	// The number of pods that run.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Running int32 `json:"running,omitempty"`

	// The number of pods that succeeded.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Succeeded int32 `json:"succeeded,omitempty"`

	// The number of pods that failed.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Failed int32 `json:"failed,omitempty"`
}
