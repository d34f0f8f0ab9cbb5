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

// Queue is a share of the cluster, and the jobs that use it or wait for it.
type Queue struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// The desired state of the queue.
	// +optional
	Spec QueueSpec `json:"spec,omitempty"`

	// The observed state of the queue. The scheduler writes allocated, the controllers write the
	// state and the counts.
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
	// The weight of the queue. Queues share the cluster in proportion to their weights. From 1 to
	// 65535. Default: 1.
	// +kubebuilder:default:=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	// +optional
	Weight int32 `json:"weight,omitempty"`

	// The upper limit of the resources that the queue may use. A resource that is not listed has
	// no limit.
	// +optional
	Capability corev1.ResourceList `json:"capability,omitempty"`

	// Whether other queues may reclaim the resources that this queue uses beyond its deserved
	// share. Default: true.
	// +optional
	Reclaimable *bool `json:"reclaimable,omitempty"`

	// Other clusters to which the jobs of the queue are sent.
	// +optional
	ExtendClusters []Cluster `json:"extendClusters,omitempty"`

	// The resources that are reserved for the queue, even while it does not use them.
	// +optional
	Guarantee Guarantee `json:"guarantee,omitempty"`

	// The groups of nodes on which the pods of the queue run.
	// +optional
	Affinity *Affinity `json:"affinity,omitempty"`

	// The type of the queue, a word that its owner chooses. At most 253 characters.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Type string `json:"type,omitempty"`

	// The name of the parent queue. Unset: root.
	// +optional
	Parent string `json:"parent,omitempty"`

	// The deserved share of the queue. The queue may use more while other queues do not need it;
	// they reclaim the excess when they do.
	// +optional
	Deserved corev1.ResourceList `json:"deserved,omitempty"`

	// Queues of a higher priority are served first and reclaimed from last.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Priority int32 `json:"priority,omitempty"`

	// How to handle the jobs behind a job that cannot start. fifo: they wait. traverse: they may
	// start before it. Default: traverse.
	// +kubebuilder:default:=traverse
	// +optional
	DequeueStrategy DequeueStrategy `json:"dequeueStrategy,omitempty"`

	// Quotas of devices that pods request by ResourceClaims.
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
	// The upper limit of the devices that the queue may use, by DeviceClass.
	// +optional
	Capability map[string]DRAResourceQuota `json:"capability,omitempty"`

	// The deserved share of the queue, by DeviceClass.
	// +optional
	Deserved map[string]DRAResourceQuota `json:"deserved,omitempty"`

	// The devices that are reserved for the queue, by DeviceClass.
	// +optional
	Guarantee map[string]DRAResourceQuota `json:"guarantee,omitempty"`
}

// DRAResourceQuota is an amount of devices of one DeviceClass.
type DRAResourceQuota struct {
	// The number of devices.
	Count int64 `json:"count"`

	// The amount of each capacity by which devices are shared, such as cores or memory.
	// +optional
	Capacity map[string]resource.Quantity `json:"capacity,omitempty"`
}

// Cluster is another cluster that jobs may be sent to.
type Cluster struct {
	// The name of the cluster.
	// +optional
	Name string `json:"name,omitempty"`

	// The weight of the cluster. Clusters share the jobs in proportion to their weights.
	// +optional
	Weight int32 `json:"weight,omitempty"`

	// The resources of the cluster.
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
	// The node groups on which the pods run.
	// +optional
	NodeGroupAffinity *NodeGroupAffinity `json:"nodeGroupAffinity,omitempty"`

	// The node groups that the pods avoid.
	// +optional
	NodeGroupAntiAffinity *NodeGroupAntiAffinity `json:"nodeGroupAntiAffinity,omitempty"`
}

// NodeGroupAffinity names groups of nodes to run on.
type NodeGroupAffinity struct {
	// The names of node groups. The pods run only on nodes of these groups.
	// +optional
	RequiredDuringSchedulingIgnoredDuringExecution []string `json:"requiredDuringSchedulingIgnoredDuringExecution,omitempty"`

	// The names of node groups on which the pods preferably run.
	// +optional
	PreferredDuringSchedulingIgnoredDuringExecution []string `json:"preferredDuringSchedulingIgnoredDuringExecution,omitempty"`
}

// NodeGroupAntiAffinity names groups of nodes to keep away from.
type NodeGroupAntiAffinity struct {
	// The names of node groups on which the pods must not run.
	// +optional
	RequiredDuringSchedulingIgnoredDuringExecution []string `json:"requiredDuringSchedulingIgnoredDuringExecution,omitempty"`

	// The names of node groups that the pods preferably avoid.
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
	// The names of the reserved nodes.
	// +optional
	Nodes []string `json:"nodes,omitempty"`

	// The idle resources on the reserved nodes.
	// +optional
	Resource corev1.ResourceList `json:"resource,omitempty"`
}

// QueueStatus is what was last seen of a queue.
type QueueStatus struct {
	// The state of the queue. Open: it accepts jobs. Closing: it accepts no jobs and still has
	// some. Closed: it accepts no jobs and has none. Unknown: the state cannot be determined.
	// +optional
	State QueueState `json:"state,omitempty"`

	// The number of PodGroups of the queue in the phase Unknown.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Unknown int32 `json:"unknown,omitempty"`

	// The number of PodGroups of the queue in the phase Pending.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Pending int32 `json:"pending,omitempty"`

	// The number of PodGroups of the queue in the phase Running.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Running int32 `json:"running,omitempty"`

	// The number of PodGroups of the queue in the phase Inqueue.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Inqueue int32 `json:"inqueue,omitempty"`

	// The number of PodGroups of the queue in the phase Completed.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Completed int32 `json:"completed,omitempty"`

	// The nodes that are reserved for the queue.
	// +optional
	Reservation Reservation `json:"reservation,omitempty"`

	// The resources that the pods of the queue use now.
	// +optional
	Allocated corev1.ResourceList `json:"allocated"`

	// The conditions of the queue. Volcano's queues do not have this field.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// QueueSharesOverParent is the condition that what a queue is guaranteed or deserves is, with the queues beside it that came earlier,
// more than the queue above them has. A queue of which that never was so does not have it.
const QueueSharesOverParent = "SharesOverParent"
