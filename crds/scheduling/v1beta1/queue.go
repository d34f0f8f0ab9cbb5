package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +kubebuilder:object:root=true
// +kubebuilder:resource:path=queues,scope=Cluster,shortName=q;queue-v1beta1
// +kubebuilder:subresource:status
// +kubebuilder:validation:XValidation:rule="self.?spec.?parent.orValue('') != self.metadata.name || oldSelf.?spec.?parent.orValue('') == self.metadata.name",optionalOldSelf=true,fieldPath=".spec.parent",message="is the queue itself; name the queue above it, or root"
// +kubebuilder:printcolumn:name="PARENT",type=string,JSONPath=`.spec.parent`
// +kubebuilder:printcolumn:name="STATE",type=string,JSONPath=`.status.state`
// +kubebuilder:printcolumn:name="SHARES-OVER-PARENT",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="SharesOverParent")].status`

// Queue is a share of the cluster, and the work that waits for it.
type Queue struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// What is wanted.
	// +optional
	Spec QueueSpec `json:"spec,omitempty"`

	// What was last seen; state and counts are written by the controllers, allocated by
	// the scheduler.
	// +optional
	Status QueueStatus `json:"status,omitempty"`
}

// +kubebuilder:object:root=true

// QueueList is what a list request for queues answers.
type QueueList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	// The queues found.
	Items []Queue `json:"items"`
}

// QueueSpec is what is wanted of a queue.
type QueueSpec struct {
	// The queue's share of the cluster, in proportion to the weights of the others.
	// +kubebuilder:default:=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	// +optional
	Weight int32 `json:"weight,omitempty"`

	// The most that the queue may ever use; a resource left out has no limit.
	// +optional
	Capability corev1.ResourceList `json:"capability,omitempty"`

	// Whether others may take back what the queue uses beyond its due; unset: true.
	// +optional
	Reclaimable *bool `json:"reclaimable,omitempty"`

	// Other clusters that the queue's jobs are sent to.
	// +optional
	ExtendClusters []Cluster `json:"extendClusters,omitempty"`

	// What is kept for the queue, used or not.
	// +optional
	Guarantee Guarantee `json:"guarantee,omitempty"`

	// Which groups of nodes the queue's pods run on.
	// +optional
	Affinity *Affinity `json:"affinity,omitempty"`

	// A word of the user's own for what kind of queue it is.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Type string `json:"type,omitempty"`

	// The queue that this one is under; unset: root.
	// +optional
	Parent string `json:"parent,omitempty"`

	// What the queue is due. It may use more while others do not need it, and gives that
	// back when they do.
	// +optional
	Deserved corev1.ResourceList `json:"deserved,omitempty"`

	// Queues of a higher priority are served first and reclaimed from last.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Priority int32 `json:"priority,omitempty"`

	// Whether a job that cannot start blocks the jobs behind it (fifo) or is passed
	// (traverse).
	// +kubebuilder:default:=traverse
	// +optional
	DequeueStrategy DequeueStrategy `json:"dequeueStrategy,omitempty"`

	// Quotas of devices that are asked for by ResourceClaims.
	// +optional
	DRA *DRAQuota `json:"dra,omitempty"`
}

// DequeueStrategy says what becomes of the jobs behind one that cannot start.
// +kubebuilder:validation:Enum=fifo;traverse
type DequeueStrategy string

// The values of DequeueStrategy.
const (
	// DequeueStrategyFIFO holds them up.
	DequeueStrategyFIFO DequeueStrategy = "fifo"
	// DequeueStrategyTraverse goes on with them.
	DequeueStrategyTraverse DequeueStrategy = "traverse"
)

// DRAQuota is quotas of devices, each by the name of a DeviceClass.
type DRAQuota struct {
	// The most that the queue may ever use.
	// +optional
	Capability map[string]DRAResourceQuota `json:"capability,omitempty"`

	// What the queue is due.
	// +optional
	Deserved map[string]DRAResourceQuota `json:"deserved,omitempty"`

	// What is kept for the queue.
	// +optional
	Guarantee map[string]DRAResourceQuota `json:"guarantee,omitempty"`
}

// DRAResourceQuota is an amount of devices of one DeviceClass.
type DRAResourceQuota struct {
	// How many devices.
	Count int64 `json:"count"`

	// How much of what devices can be shared by, such as cores or memory.
	// +optional
	Capacity map[string]resource.Quantity `json:"capacity,omitempty"`
}

// Cluster is another cluster that jobs may be sent to.
type Cluster struct {
	// Its name.
	// +optional
	Name string `json:"name,omitempty"`

	// Its share of the jobs, in proportion to the weights of the others.
	// +optional
	Weight int32 `json:"weight,omitempty"`

	// What it has room for.
	// +optional
	Capacity corev1.ResourceList `json:"capacity,omitempty"`
}

// Guarantee is what is kept for a queue.
type Guarantee struct {
	// The amount of each resource.
	// +optional
	Resource corev1.ResourceList `json:"resource,omitempty"`
}

// Affinity says which groups of nodes a queue's pods run on. The group of a node is its
// label volcano.sh/nodegroup-name.
type Affinity struct {
	// The groups to run on.
	// +optional
	NodeGroupAffinity *NodeGroupAffinity `json:"nodeGroupAffinity,omitempty"`

	// The groups to keep away from.
	// +optional
	NodeGroupAntiAffinity *NodeGroupAntiAffinity `json:"nodeGroupAntiAffinity,omitempty"`
}

// NodeGroupAffinity names groups of nodes to run on.
type NodeGroupAffinity struct {
	// Groups that the pods must run on.
	// +optional
	RequiredDuringSchedulingIgnoredDuringExecution []string `json:"requiredDuringSchedulingIgnoredDuringExecution,omitempty"`

	// Groups that the pods should run on.
	// +optional
	PreferredDuringSchedulingIgnoredDuringExecution []string `json:"preferredDuringSchedulingIgnoredDuringExecution,omitempty"`
}

// NodeGroupAntiAffinity names groups of nodes to keep away from.
type NodeGroupAntiAffinity struct {
	// Groups that the pods must not run on.
	// +optional
	RequiredDuringSchedulingIgnoredDuringExecution []string `json:"requiredDuringSchedulingIgnoredDuringExecution,omitempty"`

	// Groups that the pods should not run on.
	// +optional
	PreferredDuringSchedulingIgnoredDuringExecution []string `json:"preferredDuringSchedulingIgnoredDuringExecution,omitempty"`
}

// QueueState says whether a queue takes work.
// +kubebuilder:validation:Enum=Open;Closed;Closing;Unknown
type QueueState string

// The states of a queue.
const (
	// QueueStateOpen takes work.
	QueueStateOpen QueueState = "Open"
	// QueueStateClosed takes none, and has none left.
	QueueStateClosed QueueState = "Closed"
	// QueueStateClosing takes none, and has some left.
	QueueStateClosing QueueState = "Closing"
	// QueueStateUnknown could not be told.
	QueueStateUnknown QueueState = "Unknown"
)

// QueueEvent is something that happened to a queue.
type QueueEvent string

// The events of a queue.
const (
	// QueueOutOfSyncEvent: the queue or a PodGroup of it changed.
	QueueOutOfSyncEvent QueueEvent = "OutOfSync"
	// QueueCommandIssuedEvent: a user sent a Command.
	QueueCommandIssuedEvent QueueEvent = "CommandIssued"
)

// QueueAction is what the controller does to a queue.
type QueueAction string

// The actions on a queue.
const (
	// SyncQueueAction brings the status in line with the PodGroups.
	SyncQueueAction QueueAction = "SyncQueue"
	// OpenQueueAction lets it take work.
	OpenQueueAction QueueAction = "OpenQueue"
	// CloseQueueAction stops it from taking work.
	CloseQueueAction QueueAction = "CloseQueue"
)

// Reservation is nodes that are kept for a queue.
type Reservation struct {
	// Their names.
	// +optional
	Nodes []string `json:"nodes,omitempty"`

	// What is idle on them.
	// +optional
	Resource corev1.ResourceList `json:"resource,omitempty"`
}

// QueueStatus is what was last seen of a queue.
type QueueStatus struct {
	// Whether the queue takes work.
	// +optional
	State QueueState `json:"state,omitempty"`

	// How many of its PodGroups are in phase Unknown.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Unknown int32 `json:"unknown,omitempty"`

	// How many are Pending.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Pending int32 `json:"pending,omitempty"`

	// How many are Running.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Running int32 `json:"running,omitempty"`

	// How many are Inqueue.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Inqueue int32 `json:"inqueue,omitempty"`

	// How many are Completed.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Completed int32 `json:"completed,omitempty"`

	// Nodes that are kept for the queue.
	// +optional
	Reservation Reservation `json:"reservation,omitempty"`

	// What the queue's pods use now.
	// +optional
	Allocated corev1.ResourceList `json:"allocated"`

	// What else is to be known of the queue. Volcano's queues have none.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// QueueSharesOverParent is the condition that what a queue is guaranteed or deserves is, with the queues beside it that came earlier,
// more than the queue above them has. A queue of which that never was so does not have it.
const QueueSharesOverParent = "SharesOverParent"
