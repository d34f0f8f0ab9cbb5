package statemachines

import "time"

// Facts contains the inputs of guards. A machine reads only the fields of its own kind. A nil field reads as empty.
type Facts struct {
	Job   *Job
	Queue *Queue
	Flow  *Flow
	// Parent is the parent of the Queue, or nil.
	Parent  *Queue
	CronJob *CronJob
	// Now is the present time. Since is when the present phase was entered. It is zero if that is not known. In that case no row with `after`
	// applies.
	Now, Since time.Time
}

// Job is a Job in the form that guards read through the roots job, spec and status.
type Job struct {
	Name, Namespace, UID, Queue string
	Labels, Annotations         map[string]string
	CreatedAt                   time.Time
	Deleting                    bool

	// Fields of the spec.
	MinAvailable int32
	MinSuccess   *int32
	MaxRetry     int32
	Tasks        []Task

	Status JobStatus
	// Pods returns the job's pods for guards that read them; nil: the job has none.
	Pods func() []Pod
}

// JobStatus contains the counts of a Job.
type JobStatus struct {
	Pending, Running, Succeeded, Failed, Terminating, Unknown int32
	// MinAvailable is the size of the gang for which the status was computed.
	MinAvailable, RetryCount, Version int32
	// ResumeCount is how many of the restarts in RetryCount were resumes.
	ResumeCount int32
}

// Task is one task of a Job with its pods counted. A pod that is being deleted counts as terminating only.
type Task struct {
	Name string
	// Replicas is the requested number of pods. MinAvailable is nil if the author omitted it.
	Replicas     int32
	MinAvailable *int32
	// MaxRetry is the number of container restarts at which the task fails: 0 means 3, and -1 means never.
	MaxRetry                                                  int32
	Pending, Running, Succeeded, Failed, Terminating, Unknown int32
	// Restarts is the number of container restarts of the task's pods that are pending or running. Init containers count, too.
	Restarts int32
	// FinishedAt is when the last of the finished pods ended; zero if none has ended.
	FinishedAt time.Time
}

// Queue is a Queue in the form that guards read through the roots queue and parent.
type Queue struct {
	Name, Parent, State string
	// ClosedByParent states that the queue was closed because its parent was closed.
	ClosedByParent      bool
	Labels, Annotations map[string]string
	// The number of PodGroups of the queue by phase.
	Pending, Inqueue, Running, Unknown, Completed int32
}

// Flow is a JobFlow in the form that guards read through the root flow. Only the Jobs of the flows in its spec are counted.
type Flow struct {
	Name, Namespace, Phase string
	// Retain is retain or delete.
	Retain              string
	Labels, Annotations map[string]string
	// Flows is the number of flows in the spec.
	Flows int32
	// Completed also counts completed Jobs that were deleted. Unknown counts Jobs without a phase and in any other phase.
	Pending, Running, Completed, Failed, Terminated, Unknown int32
}

// CronJob is a CronJob in the form that guards read through the root cronJob.
type CronJob struct {
	Name, Namespace, ConcurrencyPolicy string
	Suspend                            bool
	// Active is how many of its Jobs have not ended.
	Active              int32
	Labels, Annotations map[string]string
}

// MadeJob is a Job that a CronJob has created, in the form that event rows read.
type MadeJob struct {
	Name, Phase         string
	Labels, Annotations map[string]string
}

// Pod is a pod of a Job, in the form that event rows read.
type Pod struct {
	Name, UID, Node     string
	Role                string // the name of its task
	Labels, Annotations map[string]string
	// Phase is Pending, Running, Succeeded, Failed or Unknown. Reason and Message are those of the status.
	Phase, Reason, Message string
	Deleting               bool
	CreatedAt, StartedAt   time.Time
	// FinishedAt is when the last container ended. DeletedAt is when the deletion was requested. They are zero if that is not known.
	FinishedAt, DeletedAt time.Time
	// Version is the job version in which the pod was created.
	Version int32
	// Containers are all containers, with init containers first.
	Containers []Container
}

// Container is one container of a pod.
type Container struct {
	Name string
	Init bool
	// ExitCode is nil unless the container has ended.
	ExitCode *int32
	// Waiting is why the container does not run yet, for example ImagePullBackOff. Terminated is why it ended, for example OOMKilled.
	Waiting, Terminated string
	Restarts            int32
	Ready               bool
}

// PodGroup is the PodGroup of a Job, in the form that event rows read.
type PodGroup struct{ Name, Phase string }

// ChangeKind is the type of a change.
type ChangeKind uint8

// The types of changes.
const (
	Updated ChangeKind = iota
	Added
	Deleted
)

// The sources that events of a Job come from.
const (
	FromJob      = "job"
	FromPod      = "pod"
	FromPodGroup = "podGroup"
	FromCommand  = "command"
)

// FromQueue is the source of events of a Queue, in addition to FromCommand and FromPodGroup.
const FromQueue = "queue"

// FromFlow is the source of events of a JobFlow: a change of the JobFlow, its Jobs or their templates.
const FromFlow = "jobFlow"

// FromSchedule is the source of events of a CronJob at a scheduled start. FromJob is its other source.
const FromSchedule = "schedule"

// Change is one change of an object. Only the fields of its source must be set. A nil field reads as empty.
type Change struct {
	Kind ChangeKind
	Now  time.Time
	// Pod is the present pod, or its last known state if it was deleted. PodWas is the pod before the change, or nil if it was added.
	Pod, PodWas *Pod
	// Task is the task of the pod, with its pods counted after the change.
	Task *Task
	// PodGroup and PodGroupWas are the PodGroup after and before the change.
	PodGroup, PodGroupWas *PodGroup
	// Job is the Job that the change belongs to, counted after the change.
	Job   *Job
	Queue *Queue
	Flow  *Flow
	// CronJob is the CronJob that the change belongs to, and MadeJob is the one of its Jobs that changed.
	CronJob *CronJob
	MadeJob *MadeJob
	// Action is the action that a Command requests.
	Action string
}
