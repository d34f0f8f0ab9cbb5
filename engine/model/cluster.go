package model

import (
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/celsius-scheduler/celsius/engine/cards"
	"github.com/celsius-scheduler/celsius/engine/extender"
	"github.com/celsius-scheduler/celsius/engine/follow"
	"github.com/celsius-scheduler/celsius/engine/numa"
	"github.com/celsius-scheduler/celsius/engine/rivals"
	"github.com/celsius-scheduler/celsius/engine/slab"
	"github.com/celsius-scheduler/celsius/engine/unread"
)

// NoNode is the row of a task that is on no node.
const NoNode = int32(-1)

// Cluster is the state on which decisions are made. It has one owner and no locks. Only two ways change it: Apply applies deltas, and a Txn
// applies tentative steps. engine/language and the packages above it read the fields; only this package writes them.
type Cluster struct {
	// Dims maps resource names to dimensions. All Resources of this cluster are indexed by it.
	Dims *Dims
	// Seed of the run. Ties of nodes and the function hash01 depend on it.
	Seed int64
	// SchedulerNames are the scheduler names of our pods. All other pods only use resources.
	SchedulerNames []string
	// Workload describes the pods that the cluster is used for, from a record of the past or a forecast. It replaces the known tasks; nil: the
	// known tasks describe the workload.
	Limits   Limits // of the sizes of pods and PodGroups
	Workload []Shape

	// Turn is the object that Handle recorded last: an object of Apply, a task, a job, or an attribute of the policy. nil: none. A caller that
	// recovers a panic reads from it which object to leave out.
	Turn any
	// OnTurn is called by Handle; nil: Handle calls nothing. Tests of the recovery panic in it.
	OnTurn func(object any)
	// Enough is called by Breathe. If it returns true, the work stops; nil: the work never stops.
	Enough func() bool

	Nodes  Nodes
	Queues map[string]*Queue // by name
	// QueueLimits increases when a queue is added or removed, or its parent, state or capability changes. Causes of waits contain these.
	QueueLimits uint64
	Jobs        map[string]*Job  // by namespace/name, orphans under their pod's key with the prefix "~"
	Tasks       map[string]*Task // by namespace/name

	PriorityClasses map[string]*PriorityClass
	Namespaces      map[string]*Namespace
	Quotas          map[string][]*Quota // by namespace, in name order
	Budgets         Budgets
	Measures        map[string]*Measure   // by node, even if the node does not exist
	Numas           map[string]*numa.Node // by node, even if the node does not exist
	Answers         extender.Answers      // answers of extenders
	Storage         Storage

	// Total is the sum of Allocatable over ready nodes.
	Total Resources
	// Used is the sum of node use, over ready nodes, now.
	Used Resources
	// UsedElsewhere is the sum of node use over nodes that are not ready, now.
	UsedElsewhere Resources
	// Usable is the sum of Allocatable over nodes that accept pods (ready and not cordoned). It also includes what pods used on all other
	// nodes at the last Apply, up to what these nodes offer.
	Usable Resources
	// ReadyNodes counts the nodes that are ready.
	ReadyNodes int
	// Claiming counts our tasks that claim resources (DRA) and are Pending or Binding.
	Claiming int

	Past Past

	// Slots are the slots of tasks, jobs and queues. No object of a cluster has slot 0.
	Slots struct{ Tasks, Jobs, Queues follow.Slots }

	// TaskLog, JobLog and QueueLog list what was touched, in order, for caches that have a cursor of their own. A change of a task touches its
	// job and its queue. A change of a job does not touch its tasks.
	TaskLog  follow.Log[*Task]
	JobLog   follow.Log[*Job]
	QueueLog follow.Log[*Queue]

	// Clock increases with every change.
	Clock uint64
	// ObjectClock increases with every Apply, but not with tentative steps.
	ObjectClock uint64
	// NamespaceClock increases with every change of a namespace.
	NamespaceClock uint64

	content uint64 // see Content
	books   bookkeeping
}

// Past contains what earlier cycles did and later cycles read.
type Past struct {
	Fired  map[string]time.Time // when rows and steps that have a pause between two evaluations were last evaluated, by their names
	Rivals rivals.Book
	Unread unread.Book // the mistakes of the objects, as of their last Apply
	// Stuck contains the keys of the jobs that would not start even if other pods ended or were evicted; see Cluster.SetStuck.
	Stuck map[string]bool
	// Exceeded is when a job of a queue last started in a step with the gate beyondShare, by the name of the queue; see
	// Cluster.SetExceeded.
	Exceeded map[string]time.Time
}

// clone returns a copy.
func (p *Past) clone() Past {
	return Past{
		Fired: maps.Clone(p.Fired), Rivals: p.Rivals.Clone(), Unread: p.Unread.Clone(), Stuck: maps.Clone(p.Stuck),
		Exceeded: maps.Clone(p.Exceeded),
	}
}

// Nodes is a struct of arrays with one row per node. New nodes reuse the rows of deleted nodes.
type Nodes struct {
	Rows  []*Node          // nil where the row is free
	Index map[string]int32 // name -> row

	// One column per dimension, indexed [dim][row], in the units of Dims. A missing amount is NaN in Allocatable and 0 in the others. Capacity
	// has no column: see CapacityOf. Dimensions that no node or task uses share empty columns, so only Cluster may write to columns.
	Allocatable [][]float64
	Used        [][]float64
	Releasing   [][]float64
	Pipelined   [][]float64

	TaskCount []int32 // tasks on the node: releasing tasks count, pipelined tasks do not
	// Unasked counts the tasks of TaskCount that request no CPU, or no Memory, by that dimension.
	Unasked [Memory + 1][]int32
	Tasks   [][]*Task // in key order; pipelined tasks are included
	GPUs    [][]GPU

	// Order is the rank of a row for ties: by name, or the permutation of Cluster.SetNodeOrder. The lowest rank wins. Ranked increases when
	// the ranks are computed again.
	Order  []int32
	Ranked uint64

	// Object and Version increase when the node's object, or anything of the node, changes. Log lists the touched rows in order. Slots
	// contains the rows.
	Object  []uint64
	Version []uint64
	Log     follow.Log[int32]
	Slots   follow.Slots

	dims    *Dims
	sorted  []int   // dims.Sorted(), computed for as many dimensions as there are columns
	byOrder []int32 // rows in use, by Order
	few     slab.Of[*Task]
	columns columnBook
	rests   map[spotOf]float64 // see rest
}

// Node contains the fields of a node's object.
type Node struct {
	Row           int32
	Name          string
	Labels        map[string]string
	Annotations   map[string]string
	Taints        []corev1.Taint
	Unschedulable bool
	Ready         bool
	GPUModel      string
	// Images maps an image's normalised name to its size in bytes.
	Images map[string]int64
	Told
	// Object is the Kubernetes object, for library code that needs it. It never changes.
	Object *corev1.Node

	capacity Resources
	nodeGPUs
}

// nodeGPUs contains the devices of a node's object.
type nodeGPUs struct {
	gpuCount     int
	gpuMemory    int64        // bytes of each device
	cards        []cards.Card // set if the node describes each of its devices
	unlistedGPUs bool         // it has devices, but does not list GPUResource
}

// Told contains what other objects state about a node; nil: nothing.
type Told struct {
	Measure *Measure   // the measured load of the node
	Numa    *numa.Node // the NUMA nodes of its CPUs, and which CPUs are free
}

// Status is the state of a task in its life, as the scheduler sees it.
type Status uint8

// The statuses of a task (docs/volcano.md, Task statuses).
const (
	Pending Status = iota
	Pipelined
	Allocated
	Binding
	Bound
	Running
	Releasing
	Succeeded
	Failed
	Unknown
	Gone // Releasing, but a step that looks ahead treats the task as if it were gone already
	NumStatus
)

// Task is a pod, as a scheduler sees it.
type Task struct {
	Key       string // namespace/name
	Slot      int32  // see Cluster.Slots
	Name      string
	Namespace string
	UID       string
	Role      string // annotation, else label, volcano.sh/task-spec
	Index     int64  // annotation volcano.sh/task-index, else the numeric suffix of the name; -1 if none
	Job       *Job   // never nil: orphans, and pods of other schedulers, have a job of their own with Orphan
	Foreign   bool   // the pod belongs to another scheduler and only uses resources

	Priority         int64
	PreemptionPolicy string
	Preemptable      bool
	RevocableZone    string
	Labels           map[string]string
	Annotations      map[string]string
	CreatedAt        time.Time
	StartedAt        time.Time // zero: not started
	ScheduledAt      time.Time // zero: not scheduled
	Spared           time.Time // no task evicts it before this time, because an eviction was refused; zero: no eviction was refused
	Gated            bool
	BestEffort       bool
	booked           *PodTerms // its terms as its PodGroup counts them; bookedIn is the key of that group
	bookedIn         string
	compared         bool // its namespace counts its labels and terms
	Vain             bool // no place was found for it in this turn; set by engine/action through Cluster.SetVain
	// Request is the amount that the kubelet and kube-scheduler count for the pod, including init containers, until the pod is finished. It
	// does not contain extended resources that the pod's node does not list. It contains the devices that the pod asks for by annotations.
	Request Resources
	requestParts

	Devices
	Pinned

	// Unadmitted is true if nothing proves that the pod was placed on its node (see unproven) and the kubelet would not admit it now. Its
	// resources count as used on the node. In the queue they count as requested, but not as allocated. Its status is Unknown, or Releasing
	// if the pod is being deleted.
	Unadmitted bool

	*Template // fields that it has in common with other pods; never nil

	HasVolumes bool     // the pod claims volumes, or names disks directly
	Claims     []string // namespace/name of the claims of its volumes, without duplicates
	HasClaims  bool     // the pod claims resources (DRA)
	// NominatedNode has resources for the task, which victims free. It stays from one cycle to the next; see Cluster.Nominate.
	NominatedNode string

	Status Status
	Node   int32 // row, or NoNode
	// NodeName is the node that the task is on or is promised to. It is set even if the node does not exist, and for finished tasks, which
	// have Node NoNode.
	NodeName string
	GPUs     []int // indexes of the devices that it holds or is promised; never changed in place
	// Volumes are the volumes that were promised with its placement and must be bound first; never changed in place.
	Volumes []VolumeBind

	Object *corev1.Pod

	group     string // key of the PodGroup that the pod names; "" for none and for foreign pods
	boundIn   string // the queue in which it was bound; "": unknown, or not bound
	role      *Role
	knownGPUs bool     // the pod states GPUs, or this process decided them; they are not guessed
	cards     []string // UUIDs of the devices, if they have any; GPUs is then computed from them and from the order of devices in the node
	recorded  bool     // its devices and its permissions come from the record of its binding
	gone      bool     // deleted, or replaced by a pod of another UID
	ours      bool     // this process decided the node that the pod names
	claims    bool     // see unproven
}

// requestParts contains the parts of a task's request.
type requestParts struct {
	// RequestsGPUs is true if the containers request GPUResource. Only a node that lists GPUResource can then give the pod devices.
	RequestsGPUs bool

	containers Resources // requests of the containers, shared by the tasks of a template
	asked      Resources // Request plus the resources that the node does not list; nil: the node lists all
}

// HostPort is a port that a pod claims on its node.
type HostPort struct {
	Protocol string
	IP       string
	Port     int32
}

// Job is a PodGroup and its tasks.
type Job struct {
	Key                string // namespace/name of the PodGroup
	Slot               int32  // see Cluster.Slots
	Name               string // of the Job or pod that owns the PodGroup; otherwise of the PodGroup itself
	Title              string // namespace/name that users know; the last tie-breaker of orders, before Key
	Namespace          string
	Orphan             bool   // no PodGroup: the PodGroup of its task does not exist, or the task is foreign
	QueueName          string // for an orphan: the queue in which its task was bound, "" for none
	Queue              *Queue // nil if the queue does not exist
	Priority           int64
	PriorityClassName  string
	CreatedAt          time.Time
	Labels             map[string]string
	Annotations        map[string]string
	Preemptable        bool
	PreemptableForGang bool
	HasTopology        bool
	MinMember          int64
	MinResources       Resources
	HasMinResources    bool
	RoleMin            map[string]int64
	RoleMinTotal       int64

	Phase       string // Pending, Inqueue, Running, Unknown, Completed
	AdmittedNow bool
	AdmittedAt  time.Time // when a cycle of ours admitted the job; zero: no cycle did

	Tasks             []*Task // in key order
	Roles             []*Role // in name order
	Counts            [NumStatus]int64
	PendingBestEffort int64
	PlacedNow         int64
	Allocated         Resources // of Allocated, Binding, Bound and Running tasks
	Occupied          Resources // see Queue
	Request           Resources // Allocated, Pending and Expected
	Expected          Resources // of pods that the job should have and that do not exist yet; nil: none
	GatedRequest      Resources // of gated tasks, and requests of tasks on nodes that no kubelet grants

	Object  any // *v1beta1.PodGroup, nil for orphans
	Version uint64

	owner    string // key of the batch Job that controls the PodGroup; "" for none
	ownerUID types.UID
	rests    rests
	marked   bool // in books.marked
	untidy   bool // in books.untidy
}

// Role is the tasks of a job that share a task-spec name.
type Role struct {
	Name              string
	Min               int64
	Counts            [NumStatus]int64
	PendingBestEffort int64
	Failed            bool // a task of it found no node in this turn; set by engine/action through Cluster.SetRoleFailed

	template *Template // of the last task that was read and shared no other template; nil: none
}

// Queue is a Volcano queue.
type Queue struct {
	Name        string
	Slot        int32 // see Cluster.Slots
	UID         string
	CreatedAt   time.Time
	Labels      map[string]string
	Annotations map[string]string
	Weight      int64
	Priority    int64
	Capability  Resources
	Limit       Resources // the part of Capability that is a limit
	Guarantee   Resources
	Deserved    Resources
	Reclaimable bool
	Parent      string
	// DequeueStrategy states whether the jobs behind a job that cannot start wait (fifo) or pass it (traverse).
	DequeueStrategy string
	Open            bool
	State           string
	// NodeGroups is nil if the queue has no node group affinity.
	NodeGroups *NodeGroups
	// NodeGroupLimits are limits of use by node group. If their annotation has a mistake, they are nil and NodeGroupLimitsError describes it.
	NodeGroupLimits      map[string]Resources
	NodeGroupLimitsError error

	Jobs      map[string]*Job  // by key; its orphans are those whose tasks were bound in it
	Phases    map[string]int64 // number of its jobs by phase; orphans do not count
	Allocated Resources
	// Occupied is the sum of what its tasks hold on nodes. It counts Allocated, Binding, Bound, Running, Releasing and Unknown tasks. Unlike
	// Allocated it counts a task until its pod has ended. It does not count a task that is only promised a node.
	Occupied Resources
	Request  Resources // of its jobs; Expected counts only for admitted jobs

	Object  any // *v1beta1.Queue
	Version uint64

	rests rests
}

// PriorityClass contains the fields of a PriorityClass object.
type PriorityClass struct {
	Name             string
	Value            int64
	Default          bool
	PreemptionPolicy string
}

// Namespace contains the fields of a Namespace object.
type Namespace struct {
	Name   string
	Labels map[string]string
}
