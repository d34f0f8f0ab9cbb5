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

// NoNode is the row of a task that is nowhere.
const NoNode = int32(-1)

// Cluster is the one state that decisions are made on. It has one owner and no
// locks: deltas go in by Apply, tentative steps by a Txn, and nothing else
// changes it. Fields are read by engine/language and all above it; only this
// package writes them.
type Cluster struct {
	// Dims interns resource names; all Resources of this cluster are indexed by it.
	Dims *Dims
	// Seed of the run: node ties and hash01 depend on it.
	Seed int64
	// SchedulerNames are the names whose pods are ours; all other pods are usage only.
	SchedulerNames []string
	// Workload is what the cluster is used for, as a record of the past or a forecast has it, in place of the tasks
	// that happen to be known. nil: these.
	Limits   Limits // of the sizes of pods and PodGroups
	Workload []Shape

	// Turn is what Handle noted last: an object of Apply, a task, a job, an attribute of the policy. nil: none. A caller that recovers a
	// panic reads from it which object to leave out.
	Turn any
	// OnTurn is called by Handle; nil: nothing is called. Tests of the recovery panic in it.
	OnTurn func(object any)
	// Enough is asked by Breathe whether to break off; nil: never.
	Enough func() bool

	Nodes  Nodes
	Queues map[string]*Queue // by name
	// QueueLimits is bumped when a queue is added or removed, or its parent, state or capability changes: causes of waits name these.
	QueueLimits uint64
	Jobs        map[string]*Job  // by namespace/name, orphans under their pod's key with the prefix "~"
	Tasks       map[string]*Task // by namespace/name

	PriorityClasses map[string]*PriorityClass
	Namespaces      map[string]*Namespace
	Quotas          map[string][]*Quota // by namespace, in name order
	Budgets         Budgets
	Measures        map[string]*Measure   // by node, whether it is there or not
	Numas           map[string]*numa.Node // likewise
	Answers         extender.Answers      // what extenders said
	Storage         Storage

	// Total is the sum of Allocatable over ready nodes.
	Total Resources
	// Used is the sum of node use, over ready nodes, now.
	Used Resources
	// UsedElsewhere is the sum of node use over nodes that are not ready, now.
	UsedElsewhere Resources
	// Usable is the sum of Allocatable over nodes that accept pods (ready and not cordoned), and of what pods used on all other nodes at
	// the last Apply, up to what these offer.
	Usable Resources
	// ReadyNodes counts the nodes that are ready.
	ReadyNodes int
	// Claiming counts the tasks of ours that claim resources (DRA) and are Pending or Binding.
	Claiming int

	Past Past

	// Slots are those of tasks, jobs and queues. Slot 0 is that of objects which no cluster has.
	Slots struct{ Tasks, Jobs, Queues follow.Slots }

	// TaskLog, JobLog and QueueLog name what was touched, in order, for caches with a
	// cursor of their own. A task's change touches its job and its queue; a job's change does not touch its tasks.
	TaskLog  follow.Log[*Task]
	JobLog   follow.Log[*Job]
	QueueLog follow.Log[*Queue]

	// Clock is bumped by every change of anything.
	Clock uint64
	// ObjectClock is bumped by every Apply, not by tentative steps.
	ObjectClock uint64
	// NamespaceClock is bumped by every change of a namespace.
	NamespaceClock uint64

	content uint64 // see Content
	books   bookkeeping
}

// Past is what earlier cycles did that later ones read.
type Past struct {
	Fired  map[string]time.Time // when rows and steps were asked last that rest in between, by their names
	Rivals rivals.Book
	Unread unread.Book // the mistakes of the objects, from when they were last applied
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

// Nodes is a struct of arrays, one row a node. Rows of deleted nodes are reused.
type Nodes struct {
	Rows  []*Node          // nil where the row is free
	Index map[string]int32 // name -> row

	// One column a dimension, indexed [dim][row], in the units of Dims; absent is NaN
	// in Allocatable and 0 in the others. Capacity has no column: see CapacityOf. Dimensions that
	// nobody on the table has share columns of nothing: they are written through Cluster only.
	Allocatable [][]float64
	Used        [][]float64
	Releasing   [][]float64
	Pipelined   [][]float64

	TaskCount []int32 // tasks on the node, releasing included, pipelined not
	// Unasked are those of TaskCount that request no CPU, or no Memory, by that dimension.
	Unasked [Memory + 1][]int32
	Tasks   [][]*Task // in key order, pipelined ones too
	GPUs    [][]GPU

	// Order is the rank of a row for ties: by name, or the permutation that
	// Cluster.SetNodeOrder installed. The lowest rank wins. Ranked is bumped when ranks are given anew.
	Order  []int32
	Ranked uint64

	// Object and Version are bumped when the node's object, or anything of the
	// node, changes. Log names the touched rows in order. Slots are the rows.
	Object  []uint64
	Version []uint64
	Log     follow.Log[int32]
	Slots   follow.Slots

	dims    *Dims
	sorted  []int   // dims.Sorted(), of as many dimensions as there are columns
	byOrder []int32 // rows in use, by Order
	few     slab.Of[*Task]
	columns columnBook
	rests   map[spotOf]float64 // see rest
}

// Node is what a node's object says.
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
	// Object is for library code that wants the Kubernetes object. Never changed.
	Object *corev1.Node

	capacity Resources
	nodeGPUs
}

// nodeGPUs is what a node's object says of its devices.
type nodeGPUs struct {
	gpuCount     int
	gpuMemory    int64        // bytes of each device
	cards        []cards.Card // where the node tells of each of its devices
	unlistedGPUs bool         // it has devices, and does not list GPUResource
}

// Told is what others tell of a node; nil: nothing.
type Told struct {
	Measure *Measure   // what was measured of its load
	Numa    *numa.Node // which of its CPUs lie where, and are free
}

// Status is where a task is in its life, as the scheduler sees it.
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
	Gone // Releasing, and while a step looks ahead as if it were gone already
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
	Job       *Job   // never nil: orphans and other schedulers' pods have a job of their own with Orphan
	Foreign   bool   // another scheduler's: usage only

	Priority         int64
	PreemptionPolicy string
	Preemptable      bool
	RevocableZone    string
	Labels           map[string]string
	Annotations      map[string]string
	CreatedAt        time.Time
	StartedAt        time.Time // zero: not started
	ScheduledAt      time.Time // zero: not scheduled
	Spared           time.Time // until when nobody evicts it, because an eviction was refused; zero: it was not
	Gated            bool
	BestEffort       bool
	booked           *PodTerms // as its PodGroup's terms count it; bookedIn is the key of that group
	bookedIn         string
	compared         bool // its labels and terms are counted in its namespace
	Vain             bool // it found no place in this turn; set by engine/action through Cluster.SetVain
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

	*Template // what its pod has in common with others; never nil

	HasVolumes bool     // claims volumes, or names disks itself
	Claims     []string // namespace/name of the claims of its volumes, each once
	HasClaims  bool     // claims resources (DRA)
	// NominatedNode has room for it that others left or leave, from one cycle to the next; see Cluster.Nominate.
	NominatedNode string

	Status Status
	Node   int32 // row, or NoNode
	// NodeName is the node that the task is on or promised to. It is kept where there is
	// no such node, and for finished tasks, which have Node NoNode.
	NodeName string
	GPUs     []int // devices held or promised, by index; never changed in place
	// Volumes is what was promised with its placement and has to be done for its claims first; never changed in place.
	Volumes []VolumeBind

	Object *corev1.Pod

	group     string // key of the PodGroup that the pod names; "" for none and for foreign pods
	boundIn   string // the queue in which it was bound; "": not known, or not bound
	role      *Role
	knownGPUs bool     // the pod states GPUs, or this process decided them; they are not guessed
	cards     []string // UUIDs of the devices, where these have some: GPUs follows from them, and from how the node lists its devices
	recorded  bool     // what it holds on its node, and its rights, are as its binding had them
	gone      bool     // deleted, or replaced by a pod of another UID
	ours      bool     // this process decided the node that the pod names
	claims    bool     // see unproven
}

// requestParts is what the request of a task is made of.
type requestParts struct {
	// RequestsGPUs is true if the containers request GPUResource. Only a node that lists GPUResource can then give the pod devices.
	RequestsGPUs bool

	containers Resources // what the containers request; the tasks of a template share it
	asked      Resources // Request, with the resources that the node does not list; nil: there are none
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
	Name               string // of the Job or the pod for which the PodGroup was made; else the PodGroup's
	Title              string // namespace/name by which people know it; the last tie of orders, before Key
	Namespace          string
	Orphan             bool   // no PodGroup: its task is gone from its group, or is another scheduler's
	QueueName          string // of an orphan: that in which its task was bound, "" for none
	Queue              *Queue // nil where no such queue exists
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
	AdmittedAt  time.Time // when a cycle of ours let it in; zero: none did

	Tasks             []*Task // in key order
	Roles             []*Role // in name order
	Counts            [NumStatus]int64
	PendingBestEffort int64
	PlacedNow         int64
	Allocated         Resources // of Allocated, Binding, Bound, Running
	Occupied          Resources // see Queue
	Request           Resources // Allocated, Pending and Expected
	Expected          Resources // of pods that it is to have and that are not there yet; nil: none
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

	template *Template // of the task that was read last and had no other to share; nil: none
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
	Limit       Resources // what of Capability limits
	Guarantee   Resources
	Deserved    Resources
	Reclaimable bool
	Parent      string
	// DequeueStrategy states whether the jobs behind a job that cannot start wait (fifo) or pass it (traverse).
	DequeueStrategy string
	Open            bool
	State           string
	// NodeGroups is nil where the queue says nothing of groups of nodes.
	NodeGroups *NodeGroups
	// NodeGroupLimits are limits of use by node group. Where what they are written in is wrong they are nil, and
	// NodeGroupLimitsError says so.
	NodeGroupLimits      map[string]Resources
	NodeGroupLimitsError error

	Jobs      map[string]*Job  // by key; orphans are those whose tasks were bound in it
	Phases    map[string]int64 // of its jobs; orphans have none
	Allocated Resources
	// Occupied is the sum of what its tasks hold on nodes. It counts Allocated, Binding, Bound, Running, Releasing and Unknown tasks.
	// Unlike Allocated it counts a task until its pod has ended. It does not count a task that is only promised a node.
	Occupied Resources
	Request  Resources // of its jobs, of what is Expected that of those that were let in

	Object  any // *v1beta1.Queue
	Version uint64

	rests rests
}

// PriorityClass is what a PriorityClass object says.
type PriorityClass struct {
	Name             string
	Value            int64
	Default          bool
	PreemptionPolicy string
}

// Namespace is what a Namespace object says.
type Namespace struct {
	Name   string
	Labels map[string]string
}
