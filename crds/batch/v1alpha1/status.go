package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// JobPhase is where a job stands in its life.
type JobPhase string

// The phases of a job.
const (
	// Pending waits for its gang to run.
	Pending JobPhase = "Pending"
	// Aborting waits for its pods to go, upon AbortJob.
	Aborting JobPhase = "Aborting"
	// Aborted has no running pod and may be resumed.
	Aborted JobPhase = "Aborted"
	// Running has as many pods running or finished as its gang needs.
	Running JobPhase = "Running"
	// Restarting waits for its pods to go before it starts anew.
	Restarting JobPhase = "Restarting"
	// Completing waits for its pods to go, upon CompleteJob.
	Completing JobPhase = "Completing"
	// Completed has ended well.
	Completed JobPhase = "Completed"
	// Terminating waits for its pods to go, upon TerminateJob.
	Terminating JobPhase = "Terminating"
	// Terminated was ended and cannot be resumed.
	Terminated JobPhase = "Terminated"
	// Failed has ended badly, or was restarted too often.
	Failed JobPhase = "Failed"
)

// JobEvent is the reason of a Kubernetes event that is written on a job.
type JobEvent string

// The reasons of events on a job.
const (
	// CommandIssued: a user's Command was taken.
	CommandIssued JobEvent = "CommandIssued"
	// PluginError: a job plugin failed.
	PluginError JobEvent = "PluginError"
	// PVCError: a claim could not be made or found.
	PVCError JobEvent = "PVCError"
	// PodGroupError: the PodGroup could not be made or changed.
	PodGroupError JobEvent = "PodGroupError"
	// PodGroupPending: the PodGroup cannot be scheduled; the message says why.
	PodGroupPending JobEvent = "PodGroupPending"
	// ExecuteAction: an action was begun.
	ExecuteAction JobEvent = "ExecuteAction"
	// JobStatusError: the status could not be written.
	JobStatusError JobEvent = "JobStatusError"
)

// JobState is a phase with its reason.
type JobState struct {
	// Where the job stands.
	// +kubebuilder:validation:Enum=Pending;Aborting;Aborted;Running;Restarting;Completing;Completed;Terminating;Terminated;Failed
	// +optional
	Phase JobPhase `json:"phase,omitempty"`

	// Why, as one word in CamelCase, for programs.
	// +optional
	Reason string `json:"reason,omitempty"`

	// Why, in words for people.
	// +optional
	Message string `json:"message,omitempty"`

	// When the phase last changed.
	// +optional
	LastTransitionTime metav1.Time `json:"lastTransitionTime,omitempty"`
}

// TaskState counts the pods of one task.
type TaskState struct {
	// How many pods are in each pod phase.
	// +optional
	Phase map[corev1.PodPhase]int32 `json:"phase,omitempty"`
}

// JobCondition is one step of a job's history: a phase and when it was entered.
type JobCondition struct {
	// The phase that was entered.
	Status JobPhase `json:"status"`

	// When.
	// +optional
	LastTransitionTime *metav1.Time `json:"lastTransitionTime,omitempty"`
}

// The types of the conditions in status.limitConditions. Each is True from half of its limit on. DeletionNear is True from the end of the
// job on.
const (
	// RefusalLimitNear counts how many times in a row the API server refused objects of the job. At the limit the job is terminated.
	RefusalLimitNear = "RefusalLimitNear"
	// RetryLimitNear counts the restarts of the job, without resumes. At the limit, spec.maxRetry, the job ends.
	RetryLimitNear = "RetryLimitNear"
	// TaskRetryLimitNear counts the restarts of the containers of one task. At the limit, maxRetry of the task, a policy acts.
	TaskRetryLimitNear = "TaskRetryLimitNear"
	// TimeoutNear reports that the cause of a policy with a timeout lasts. At the end of the timeout the policy acts.
	TimeoutNear = "TimeoutNear"
	// DeletionNear reports when a finished job is deleted, because of spec.ttlSecondsAfterFinished.
	DeletionNear = "DeletionNear"
)

// JobLimitCondition reports whether a limit will soon end or delete the job, or have a policy act.
type JobLimitCondition struct {
	// Which limit: RefusalLimitNear, RetryLimitNear, TaskRetryLimitNear, TimeoutNear or DeletionNear.
	// +required
	Type string `json:"type"`

	// True while the limit is near, False once it no longer is.
	// +required
	Status metav1.ConditionStatus `json:"status"`

	// Why the status is True or False, as one word in CamelCase, for programs.
	// +optional
	Reason string `json:"reason,omitempty"`

	// The count, the limit, what happens at the limit, and what prevents it.
	// +optional
	Message string `json:"message,omitempty"`

	// How much of the limit is used. It is missing where the limit is a time.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Count int32 `json:"count,omitempty"`

	// The count at which the limit is reached. It is missing where the limit is a time.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Limit int32 `json:"limit,omitempty"`

	// When the status last changed between True and False.
	// +optional
	LastTransitionTime metav1.Time `json:"lastTransitionTime,omitempty"`
}

// JobStatus is what was last seen of a job. The controllers write it.
type JobStatus struct {
	// Where the job stands now.
	// +optional
	State JobState `json:"state,omitempty"`

	// The size of the gang that is acted by.
	// +kubebuilder:validation:Minimum=0
	// +optional
	MinAvailable int32 `json:"minAvailable,omitempty"`

	// The pods of each task, by its name, counted by phase.
	// +optional
	TaskStatusCount map[string]TaskState `json:"taskStatusCount,omitempty"`

	// How many pods are pending.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Pending int32 `json:"pending,omitempty"`

	// How many pods run.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Running int32 `json:"running,omitempty"`

	// How many pods succeeded.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Succeeded int32 `json:"succeeded,omitempty"`

	// How many pods failed.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Failed int32 `json:"failed,omitempty"`

	// How many pods are being deleted.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Terminating int32 `json:"terminating,omitempty"`

	// How many pods are in a phase that is not known.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Unknown int32 `json:"unknown,omitempty"`

	// Counts the times that the job's pods were killed; pods of an older version are not
	// listened to.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Version int32 `json:"version,omitempty"`

	// How often the job was restarted.
	// +kubebuilder:validation:Minimum=0
	// +optional
	RetryCount int32 `json:"retryCount,omitempty"`

	// How long the job has run, or ran.
	// +optional
	RunningDuration *metav1.Duration `json:"runningDuration,omitempty"`

	// What was made for the job, so that it is not made twice: plugin-<name> and
	// volume-pvc-<name>, each to itself.
	// +optional
	ControlledResources map[string]string `json:"controlledResources,omitempty"`

	// Every phase that the job entered, in order.
	// +optional
	Conditions []JobCondition `json:"conditions,omitempty"`

	// Which limits of the job are near, and which were. Volcano's API does not have this field: its conditions hold phases, and its
	// clients read each of them as one.
	// +listType=map
	// +listMapKey=type
	// +optional
	LimitConditions []JobLimitCondition `json:"limitConditions,omitempty"`
}
