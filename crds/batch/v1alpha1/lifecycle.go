package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Action is what a controller does to a Job or Queue when an event happens or a Command
// asks for it.
type Action string

// Actions that users may write in a policy or a Command.
const (
	// AbortJobAction ends the job's running pods and keeps the finished; it can be resumed.
	AbortJobAction Action = "AbortJob"
	// RestartJobAction ends all pods and starts the job anew, one retry more.
	RestartJobAction Action = "RestartJob"
	// RestartTaskAction restarts all pods of the task in which the event happened.
	RestartTaskAction Action = "RestartTask"
	// RestartPodAction restarts only the pod to which the event happened.
	RestartPodAction Action = "RestartPod"
	// RestartPartitionAction restarts the partition of the pod to which the event happened.
	RestartPartitionAction Action = "RestartPartition"
	// TerminateJobAction ends the job for good; it cannot be resumed.
	TerminateJobAction Action = "TerminateJob"
	// CompleteJobAction ends the unfinished pods and calls the job completed.
	CompleteJobAction Action = "CompleteJob"
	// ResumeJobAction starts an aborted job again.
	ResumeJobAction Action = "ResumeJob"
)

// Actions of the controllers' own, refused in a policy. Users may command OpenQueue and
// CloseQueue.
const (
	// SyncJobAction brings pods and status in line with the spec.
	SyncJobAction Action = "SyncJob"
	// EnqueueAction is kept for old clients.
	EnqueueAction Action = "EnqueueJob"
	// SyncQueueAction brings a queue's status in line with its PodGroups.
	SyncQueueAction Action = "SyncQueue"
	// OpenQueueAction lets a queue take new work.
	OpenQueueAction Action = "OpenQueue"
	// CloseQueueAction stops a queue from taking new work.
	CloseQueueAction Action = "CloseQueue"
)

// Event is something that happened to a Job or one of its pods.
// +kubebuilder:validation:Enum=*;PodPending;PodRunning;PodFailed;PodEvicted;Unknown;TaskCompleted;TaskFailed;OutOfSync;CommandIssued;JobUpdated
type Event string

// Events that users may write in a policy.
const (
	// AnyEvent is any event at all.
	AnyEvent Event = "*"
	// PodPendingEvent: a pod has been pending; needs a timeout.
	PodPendingEvent Event = "PodPending"
	// PodFailedEvent: a pod failed.
	PodFailedEvent Event = "PodFailed"
	// PodEvictedEvent: a pod was deleted.
	PodEvictedEvent Event = "PodEvicted"
	// JobUnknownEvent: part of the gang runs and part cannot be scheduled.
	JobUnknownEvent Event = "Unknown"
	// TaskCompletedEvent: all pods of a task succeeded.
	TaskCompletedEvent Event = "TaskCompleted"
	// TaskFailedEvent: the pods of a task restarted more often than its maxRetry.
	TaskFailedEvent Event = "TaskFailed"
	// JobUpdatedEvent: the job was scaled.
	JobUpdatedEvent Event = "JobUpdated"
)

// Events of the controllers' own: the schema takes them, as Volcano's does, and the
// webhook refuses them in a policy.
const (
	// PodRunningEvent: a pod runs.
	PodRunningEvent Event = "PodRunning"
	// OutOfSyncEvent: something changed that calls for a sync only.
	OutOfSyncEvent Event = "OutOfSync"
	// CommandIssuedEvent: a user sent a Command.
	CommandIssuedEvent Event = "CommandIssued"
)

// LifecyclePolicy says which action follows upon which event, or upon which exit code of
// a container. Exactly one of the two is given. Which actions and events users may write is
// asked by the webhook: for lists without a bound it costs the schema too much.
// +kubebuilder:validation:XValidation:rule="(has(self.event) || has(self.events) && self.events.size() > 0) != has(self.exitCode)",message="must name either events (event, events) or an exitCode, and not both"
// +kubebuilder:validation:XValidation:rule="!has(self.exitCode) || self.exitCode != 0",message="exitCode 0 is success and cannot have a policy; write that of a failure, or wait for the event TaskCompleted"
// +kubebuilder:validation:XValidation:rule="has(self.action)",message="must say what to do: an action such as RestartJob"
type LifecyclePolicy struct {
	// What to do: AbortJob, RestartJob, RestartTask, RestartPod, RestartPartition,
	// TerminateJob, CompleteJob or ResumeJob.
	// +optional
	Action Action `json:"action,omitempty"`

	// The event upon which to do it; "*" is any. Each event may be named once in a list
	// of policies, and "*" only alone.
	// +optional
	Event Event `json:"event,omitempty"`

	// More events upon which to do it.
	// +optional
	Events []Event `json:"events,omitempty"`

	// The exit code of a failed container upon which to do it; never 0.
	// +optional
	ExitCode *int32 `json:"exitCode,omitempty"`

	// How long the event must last before the action is taken, such as 5m; unset: at
	// once. PodPending needs it.
	// +optional
	Timeout *metav1.Duration `json:"timeout,omitempty"`
}
