package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	batchv1alpha1 "github.com/celsius-scheduler/celsius/crds/batch/v1alpha1"
)

// +kubebuilder:object:root=true
// +kubebuilder:resource:path=jobflows,scope=Namespaced,shortName=jf
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.state.phase`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`

// JobFlow makes Jobs from JobTemplates, each once the Jobs that it depends on are Completed, or
// as far as its probe asks.
type JobFlow struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// What is wanted.
	// +optional
	Spec JobFlowSpec `json:"spec,omitempty"`

	// What was last seen; written by the controllers.
	// +optional
	Status JobFlowStatus `json:"status,omitempty"`
}

// +kubebuilder:object:root=true

// JobFlowList is what a list request for jobflows answers.
type JobFlowList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	// The jobflows found.
	Items []JobFlow `json:"items"`
}

// RetainPolicy says what becomes of a flow's Jobs once all are Completed.
// +kubebuilder:validation:Enum=retain;delete
type RetainPolicy string

// The values of RetainPolicy.
const (
	// Retain keeps them.
	Retain RetainPolicy = "retain"
	// Delete deletes them.
	Delete RetainPolicy = "delete"
)

// JobFlowSpec is what is wanted of a JobFlow.
type JobFlowSpec struct {
	// The Jobs of the flow.
	// +listType=atomic
	// +optional
	Flows []Flow `json:"flows,omitempty"`

	// What becomes of the Jobs once all are Completed. Unset: they are kept.
	// +optional
	JobRetainPolicy RetainPolicy `json:"jobRetainPolicy,omitempty"`
}

// Flow is one Job of a JobFlow.
type Flow struct {
	// The name of the JobTemplate that the Job is made from. The Job is called after the
	// JobFlow and it: JOBFLOW-NAME.
	// +kubebuilder:validation:MinLength=1
	Name string `json:"name"`

	// What the Job waits for. Unset: nothing.
	// +optional
	DependsOn *DependsOn `json:"dependsOn,omitempty"`

	// What the Job has other than its template.
	// +optional
	Patch *Patch `json:"patch,omitempty"`
}

// DependsOn is what a Job of a flow waits for.
type DependsOn struct {
	// The names of the flows whose Jobs must be Completed, or, as far as the probe asks of them,
	// be as it says.
	// +listType=atomic
	// +optional
	Targets []string `json:"targets,omitempty"`

	// What must hold of the pods of these Jobs, so that the flow begins before they are Completed.
	// A Job of which no task is named here is waited for until it is.
	// +optional
	Probe *Probe `json:"probe,omitempty"`
}

// Patch is what a Job of a flow has other than its template.
type Patch struct {
	// What is merged into the template: tasks, containers and what else Kubernetes keys by
	// name, each into the one of its name; other lists take the place of the template's.
	// +optional
	JobSpec *batchv1alpha1.JobSpec `json:"jobSpec,omitempty"`
}

// Probe is what must hold of the Jobs that a flow depends on, all of it, while they run.
type Probe struct {
	// Paths that the pods of a task must answer.
	// +listType=atomic
	// +optional
	HTTPGetList []HTTPGet `json:"httpGetList,omitempty"`

	// Ports at which the pods of a task must be reached.
	// +listType=atomic
	// +optional
	TCPSocketList []TCPSocket `json:"tcpSocketList,omitempty"`

	// Phases that pods of a task must have.
	// +listType=atomic
	// +optional
	TaskStatusList []TaskStatus `json:"taskStatusList,omitempty"`
}

// HTTPGet is a path that the pods of a task must answer with a status from 200 to 399.
type HTTPGet struct {
	// The task.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	TaskName string `json:"taskName,omitempty"`

	// The path, such as /healthz.
	// +optional
	Path string `json:"path,omitempty"`

	// The port of the pods.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=65535
	// +optional
	Port int32 `json:"port,omitempty"`

	// A header that is sent with the request.
	// +optional
	HTTPHeader *HTTPHeader `json:"httpHeader,omitempty"`
}

// HTTPHeader is a header of a request.
type HTTPHeader struct {
	// The name of the header.
	// +optional
	Name string `json:"name,omitempty"`

	// The value of the header.
	// +optional
	Value string `json:"value,omitempty"`
}

// TCPSocket is a port at which the pods of a task must be reached.
type TCPSocket struct {
	// The task.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	TaskName string `json:"taskName,omitempty"`

	// The port of the pods.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=65535
	Port int32 `json:"port"`
}

// TaskStatus is a phase that a pod of a task must have.
type TaskStatus struct {
	// The task.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	TaskName string `json:"taskName,omitempty"`

	// The phase of a pod, such as Succeeded.
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Phase string `json:"phase,omitempty"`
}

// Phase is where a JobFlow stands.
// +kubebuilder:validation:Enum=Succeed;Terminating;Failed;Running;Pending
type Phase string

// The values of Phase.
const (
	// Succeed: every Job is Completed, or was.
	Succeed Phase = "Succeed"
	// Terminating is written by nobody here.
	Terminating Phase = "Terminating"
	// Failed: a Job failed, or was terminated. Nothing follows.
	Failed Phase = "Failed"
	// Running: a Job runs, or is Completed.
	Running Phase = "Running"
	// Pending: no Job runs yet.
	Pending Phase = "Pending"
)

// JobFlowStatus is what was last seen of a JobFlow.
type JobFlowStatus struct {
	// Jobs that are Pending.
	// +listType=atomic
	// +optional
	PendingJobs []string `json:"pendingJobs,omitempty"`

	// Jobs that are Running.
	// +listType=atomic
	// +optional
	RunningJobs []string `json:"runningJobs,omitempty"`

	// Jobs that are Failed.
	// +listType=atomic
	// +optional
	FailedJobs []string `json:"failedJobs,omitempty"`

	// Jobs that are Completed.
	// +listType=atomic
	// +optional
	CompletedJobs []string `json:"completedJobs,omitempty"`

	// Jobs that are Terminated.
	// +listType=atomic
	// +optional
	TerminatedJobs []string `json:"terminatedJobs,omitempty"`

	// Jobs that have no phase yet, or are Aborting, Aborted or Restarting.
	// +listType=atomic
	// +optional
	UnKnowJobs []string `json:"unKnowJobs,omitempty"`

	// What became of each Job, those that are gone included.
	// +listType=atomic
	// +optional
	JobStatusList []JobStatus `json:"jobStatusList,omitempty"`

	// What was last seen of each Job that is there, by its name.
	// +optional
	Conditions map[string]Condition `json:"conditions,omitempty"`

	// Where the flow stands.
	// +optional
	State State `json:"state,omitempty"`
}

// State is where a JobFlow stands.
type State struct {
	// The phase.
	// +optional
	Phase Phase `json:"phase,omitempty"`
}

// JobStatus is what became of one Job of a flow.
type JobStatus struct {
	// The name of the Job.
	// +optional
	Name string `json:"name,omitempty"`

	// Its phase.
	// +optional
	State batchv1alpha1.JobPhase `json:"state,omitempty"`

	// When it was created.
	// +optional
	StartTimestamp *metav1.Time `json:"startTimestamp,omitempty"`

	// When it ended.
	// +optional
	EndTimestamp *metav1.Time `json:"endTimestamp,omitempty"`

	// How often it was restarted.
	// +optional
	RestartCount int32 `json:"restartCount,omitempty"`

	// The phases that it was in.
	// +listType=atomic
	// +optional
	RunningHistories []JobRunningHistory `json:"runningHistories,omitempty"`
}

// JobRunningHistory is one phase that a Job was in.
type JobRunningHistory struct {
	// When it was first seen in it.
	// +optional
	StartTimestamp *metav1.Time `json:"startTimestamp,omitempty"`

	// When it was first seen in another.
	// +optional
	EndTimestamp *metav1.Time `json:"endTimestamp,omitempty"`

	// The phase.
	// +optional
	State batchv1alpha1.JobPhase `json:"state,omitempty"`
}

// Condition is what was last seen of one Job of a flow.
type Condition struct {
	// Its phase.
	// +optional
	Phase batchv1alpha1.JobPhase `json:"phase,omitempty"`

	// When it was created.
	// +optional
	CreateTimestamp *metav1.Time `json:"createTime,omitempty"`

	// How long it ran.
	// +optional
	RunningDuration *metav1.Duration `json:"runningDuration,omitempty"`

	// The pods of each task, by phase.
	// +optional
	TaskStatusCount map[string]batchv1alpha1.TaskState `json:"taskStatusCount,omitempty"`
}
