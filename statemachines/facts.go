package statemachines

import "time"

// Facts is what guards read when a machine is asked. Only the part of the machine's own kind is read; what is nil
// reads as empty.
type Facts struct {
	Job   *Job
	Queue *Queue
	Flow  *Flow
	// Parent is the queue above the Queue; nil where there is none.
	Parent  *Queue
	CronJob *CronJob
	// Now is the time of asking; Since is when the present phase was entered, zero where that is not known (then no
	// row with `after` holds yet).
	Now, Since time.Time
}

// Job is a Job as guards read it: by the roots job, spec and status.
type Job struct {
	Name, Namespace, UID, Queue string
	Labels, Annotations         map[string]string
	CreatedAt                   time.Time
	Deleting                    bool

	// Of the spec.
	MinAvailable int32
	MinSuccess   *int32
	MaxRetry     int32
	Tasks        []Task

	Status JobStatus
	// Pods makes the list of its pods for guards that read them; nil: there are none.
	Pods func() []Pod
}

// JobStatus is what is counted of a Job.
type JobStatus struct {
	Pending, Running, Succeeded, Failed, Terminating, Unknown int32
	// MinAvailable is the size of the gang that the status was made for.
	MinAvailable, RetryCount, Version int32
	// ResumeCount is how many of the restarts that RetryCount counts were resumes.
	ResumeCount int32
}

// Task is one task of a Job with its pods counted. A pod that is being deleted counts as terminating only.
type Task struct {
	Name string
	// Replicas is how many pods are wanted; MinAvailable is nil where the author left it out.
	Replicas     int32
	MinAvailable *int32
	// MaxRetry is how many restarts of containers make the task fail: 0 is 3, -1 is never.
	MaxRetry                                                  int32
	Pending, Running, Succeeded, Failed, Terminating, Unknown int32
	// Restarts is the sum over all containers, init containers too, of the task's pods that are pending or running.
	Restarts int32
	// FinishedAt is when the last of its pods that have ended did so; zero while none has.
	FinishedAt time.Time
}

// Queue is a Queue as guards read it: by the roots queue and parent.
type Queue struct {
	Name, Parent, State string
	// ClosedByParent says that it was closed because the queue above it was.
	ClosedByParent      bool
	Labels, Annotations map[string]string
	// PodGroups of the queue by phase.
	Pending, Inqueue, Running, Unknown, Completed int32
}

// Flow is a JobFlow as guards read it: by the root flow. Jobs are counted that its spec lists, whoever else was made for it.
type Flow struct {
	Name, Namespace, Phase string
	// Retain is retain or delete.
	Retain              string
	Labels, Annotations map[string]string
	// Flows is how many Jobs are wanted.
	Flows int32
	// Completed counts those that are, and those that were and are gone; Unknown those without a phase, and in any other.
	Pending, Running, Completed, Failed, Terminated, Unknown int32
}

// CronJob is a CronJob as guards read it: by the root cronJob.
type CronJob struct {
	Name, Namespace, ConcurrencyPolicy string
	Suspend                            bool
	// Active is how many of its Jobs have not ended.
	Active              int32
	Labels, Annotations map[string]string
}

// MadeJob is a Job that a CronJob has made, as event rows read it.
type MadeJob struct {
	Name, Phase         string
	Labels, Annotations map[string]string
}

// Pod is a pod of a Job, as event rows read it.
type Pod struct {
	Name, UID, Node     string
	Role                string // the task that it is of
	Labels, Annotations map[string]string
	// Phase is Pending, Running, Succeeded, Failed or Unknown; Reason and Message are those of the status.
	Phase, Reason, Message string
	Deleting               bool
	CreatedAt, StartedAt   time.Time
	// FinishedAt is when its last container ended, DeletedAt when its deletion was requested; zero where that is not known.
	FinishedAt, DeletedAt time.Time
	// Version is the job version that the pod was made in.
	Version int32
	// Containers are all of them: init containers first.
	Containers []Container
}

// Container is one container of a pod.
type Container struct {
	Name string
	Init bool
	// ExitCode is nil unless the container has ended.
	ExitCode *int32
	// Waiting is why it does not run yet: ImagePullBackOff. Terminated is why it ended: OOMKilled.
	Waiting, Terminated string
	Restarts            int32
	Ready               bool
}

// PodGroup is the PodGroup of a Job, as event rows read it.
type PodGroup struct{ Name, Phase string }

// ChangeKind says what happened to an object.
type ChangeKind uint8

// What can happen to an object.
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

// FromQueue is where events of a Queue come from, besides FromCommand and FromPodGroup.
const FromQueue = "queue"

// FromFlow is where events of a JobFlow come from: a change of it, of its Jobs or of their templates.
const FromFlow = "jobFlow"

// FromSchedule is where events of a CronJob come from when a Job is due, besides FromJob.
const FromSchedule = "schedule"

// Change is one change of an object. Only what belongs to the source need be set; what is nil reads as empty.
type Change struct {
	Kind ChangeKind
	Now  time.Time
	// Pod is the pod now, or as it was last seen if it was deleted; PodWas is the pod before, nil if it was added.
	Pod, PodWas *Pod
	// Task is the task of the pod, with its pods counted after the change.
	Task *Task
	// PodGroup now and before.
	PodGroup, PodGroupWas *PodGroup
	// Job that the change belongs to, counted after the change.
	Job   *Job
	Queue *Queue
	Flow  *Flow
	// CronJob that the change belongs to, and which of its Jobs has changed.
	CronJob *CronJob
	MadeJob *MadeJob
	// Action is what a Command asks for.
	Action string
}
