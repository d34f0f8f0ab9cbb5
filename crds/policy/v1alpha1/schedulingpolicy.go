package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// +kubebuilder:object:root=true
// +kubebuilder:resource:path=schedulingpolicies,scope=Cluster,shortName=spol
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="MODE",type=string,JSONPath=`.spec.mode`
// +kubebuilder:printcolumn:name="COMPILED",type=string,JSONPath=`.status.conditions[?(@.type=="Compiled")].status`
// +kubebuilder:printcolumn:name="ACTIVE",type=string,JSONPath=`.status.conditions[?(@.type=="Active")].status`
// +kubebuilder:printcolumn:name="RULES",type=integer,JSONPath=`.status.ruleCount`
// +kubebuilder:printcolumn:name="WARNINGS",type=integer,JSONPath=`.status.warningCount`
// +kubebuilder:printcolumn:name="AGE",type=date,JSONPath=`.metadata.creationTimestamp`

// SchedulingPolicy is a complete set of scheduling rules. It lists the actions of a cycle in
// order. Its rows order jobs, filter and score nodes, evict pods and admit jobs. A scheduler
// serves the policy that its flag --policy names.
type SchedulingPolicy struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// The policy.
	Spec SchedulingPolicySpec `json:"spec"`

	// The state of the policy: whether it compiles and which schedulers serve it. The leading
	// scheduler writes it.
	// +optional
	Status SchedulingPolicyStatus `json:"status,omitempty"`
}

// +kubebuilder:object:root=true

// SchedulingPolicyList is what a list request for policies answers.
type SchedulingPolicyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	// The policies found.
	Items []SchedulingPolicy `json:"items"`
}

// Mode says whether a policy is at work.
// +kubebuilder:validation:Enum=Active;Paused;Shadow
type Mode string

// The modes of a policy.
const (
	// ModeActive decides.
	ModeActive Mode = "Active"
	// ModePaused binds nothing and evicts nothing; status goes on.
	ModePaused Mode = "Paused"
	// ModeShadow decides beside the policy that is served, and nothing follows from it.
	ModeShadow Mode = "Shadow"
)

// SchedulingPolicySpec is the policy itself.
// +kubebuilder:pruning:PreserveUnknownFields
type SchedulingPolicySpec struct {
	// How schedulers use the policy; the default is Active. Active: the scheduler that serves this
	// policy decides by it. Paused: the scheduler binds and evicts nothing, but continues to write
	// status; use it during an incident. Shadow: schedulers also compute decisions by this policy,
	// on the same state as the served policy, and do not carry them out. status.shadows counts and
	// shows the differences.
	// +kubebuilder:default:=Active
	// +optional
	Mode Mode `json:"mode,omitempty"`

	// CEL over queue: the queues that this policy serves, in addition to the policy that serves
	// all other queues. In its queues this policy orders jobs and tasks, chooses nodes and selects
	// victims. Between queues the other policy decides. An eviction for a job of another queue
	// needs the permission of both policies. Unset: the policy serves no queue unless the flag
	// --policy of a scheduler names it; then it serves all queues.
	// +kubebuilder:validation:MinLength=1
	// +optional
	Queues string `json:"queues,omitempty"`

	// When a scheduler that serves this policy rolls it back automatically. The scheduler then
	// continues with the policy generation that it served before, until this policy is changed.
	// Unset: no automatic rollback.
	// +optional
	Rollback *Rollback `json:"rollback,omitempty"`

	// What applies of a generation of this policy that is no longer served, because its rows were
	// faulty or it was rolled back. KeepPredicates: the previous generation is served, and the
	// predicates of this generation still decide where pods may run. A pod that a faulty predicate
	// cannot judge waits. Stop: no pod is placed. Unset: KeepPredicates after a fault; after a
	// rollback by spec.rollback, nothing of this generation applies.
	// +kubebuilder:validation:Enum=KeepPredicates;Stop
	// +optional
	Fallback string `json:"fallback,omitempty"`

	// Which objects the messages on pods and PodGroups may name. OwnNamespace: events and
	// conditions on an object name no pod or job of another namespace, so a tenant whose pod
	// is evicted does not learn which pod replaces it. AllNamespaces: they do. Unset: OwnNamespace.
	// +kubebuilder:validation:Enum=OwnNamespace;AllNamespaces
	// +optional
	Messages string `json:"messages,omitempty"`

	// The names of the actions of one cycle, in the order in which they run: enqueue,
	// allocate, preempt, reclaim, backfill, shuffle, and those under actions.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +optional
	Pipeline []string `json:"pipeline,omitempty"`

	// Actions that the policy defines. An action with the name of a built-in action replaces it.
	// At most 64.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	// +optional
	Actions []Action `json:"actions,omitempty"`

	// Sets of tables in order of precedence. A later tier is evaluated only for questions that the
	// earlier tiers leave undecided. At most 64.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	// +optional
	Tiers []Tier `json:"tiers,omitempty"`
}

// Rollback states when a policy is rolled back.
// +kubebuilder:pruning:PreserveUnknownFields
type Rollback struct {
	// How long the other conditions are checked after a scheduler begins to serve the policy, such
	// as 30m. When this time has passed, the generation is not checked again, even after a
	// restart. Unset: for as long as the policy is served.
	// +optional
	Within string `json:"within,omitempty"`

	// The largest number of row errors that is tolerated. With one more error the policy is rolled
	// back. Unset: any number.
	// +kubebuilder:validation:Minimum=0
	// +optional
	RowErrors *int64 `json:"rowErrors,omitempty"`

	// Bounds of metrics of the scheduler. If a metric exceeds its bound, the policy is rolled
	// back. At most 32.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	// +optional
	Metrics []RollbackMetric `json:"metrics,omitempty"`
}

// RollbackMetric is a bound of a metric of the scheduler.
// +kubebuilder:pruning:PreserveUnknownFields
type RollbackMetric struct {
	// The name of the metric, as in /metrics of the scheduler. For a histogram, add _count or
	// _sum. A metric without series is within its bounds.
	// +kubebuilder:validation:MinLength=1
	Name string `json:"name"`

	// Labels that select series. The values of all series that have all of these labels are
	// summed.
	// +optional
	Labels map[string]string `json:"labels,omitempty"`

	// The upper bound, a number. A larger value exceeds the bound.
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	Above *runtime.RawExtension `json:"above,omitempty"`

	// The lower bound, a number. A smaller value exceeds the bound.
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	Below *runtime.RawExtension `json:"below,omitempty"`

	// Whether the bounds apply to the increase of the metric since the scheduler began to serve
	// the policy. Default: false, the bounds apply to the value itself.
	// +optional
	Rise bool `json:"rise,omitempty"`

	// How long the value must be beyond its bound, such as 1m. Unset: a single check is enough.
	// +optional
	For string `json:"for,omitempty"`
}

// Action is a named list of steps.
// +kubebuilder:pruning:PreserveUnknownFields
type Action struct {
	// The name of the action, by which pipeline lists it.
	// +kubebuilder:validation:MinLength=1
	Name string `json:"name"`

	// The steps of the action, in the order in which they run. At least 1, at most 256.
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=256
	Steps []Step `json:"steps"`
}

// Step is one verb with its parameters. Each parameter is for the verbs that its
// description names.
// +kubebuilder:pruning:PreserveUnknownFields
type Step struct {
	// The verb of the step. admit admits jobs to their queues. place finds nodes for tasks.
	// displace finds nodes for tasks by evicting other pods. evict evicts the pods that rows of
	// victims name.
	Verb string `json:"verb"`

	// All verbs: CEL over cluster and pipeline. If it is false, the step is skipped. Default:
	// true.
	// +optional
	When string `json:"when,omitempty"`

	// admit, place, displace: CEL over job. It selects the jobs that the step considers. Default:
	// true.
	// +optional
	Jobs string `json:"jobs,omitempty"`

	// place, displace: CEL over task. It selects the tasks that the step considers. Default:
	// task.status == 'Pending' && !task.gated.
	// +optional
	Tasks string `json:"tasks,omitempty"`

	// admit: whether the rows of jobEnqueueable are evaluated. If false, all jobs are admitted
	// without them. Default: true.
	// +optional
	Vote *bool `json:"vote,omitempty"`

	// place, displace: the gates that are evaluated, out of overused, allocatable, beyondShare and
	// preemptive.
	// +listType=atomic
	// +optional
	Gates []string `json:"gates,omitempty"`

	// place, displace: which placements are kept or undone together. job: all placements of a job.
	// task: each task by itself. Default: job.
	// +optional
	Commit string `json:"commit,omitempty"`

	// place, displace: how long the turn of one job lasts before queues and jobs are ordered
	// again: untilReady, untilFed, oneTask or all. Default: untilReady.
	// +optional
	Turn string `json:"turn,omitempty"`

	// place, displace: CEL over job, evaluated after no node was found for a task. In it, the role
	// of that task has failed set. If it is true, the step continues with the other tasks of the
	// job.
	// +optional
	OnNoNode string `json:"onNoNode,omitempty"`

	// place: how long after the admission of a job places are kept for its pods that do not exist
	// yet. At most 1m. Default: 0s, no places are kept.
	// +optional
	AwaitPods string `json:"awaitPods,omitempty"`

	// admit, place, displace: CEL over job. It states whether a job that waits after its turn
	// blocks the jobs that come after it in its queue. Default: false.
	// +optional
	BlocksQueue string `json:"blocksQueue,omitempty"`

	// displace: which pods may be evicted. queue: pods of other jobs of the same queue. job: pods
	// of the job itself. otherQueues: pods of other queues. Default: queue.
	// +optional
	Scope string `json:"scope,omitempty"`

	// displace, evict: CEL over preemptor, victim and job; for evict, CEL over victim. It selects
	// the pods for which the rows are evaluated.
	// +optional
	Candidates string `json:"candidates,omitempty"`

	// displace, evict: the section of rows that permits or names victims: preemptable,
	// reclaimable, evictable or victims.
	// +optional
	Victims string `json:"victims,omitempty"`

	// displace: which node is chosen among the nodes on which pods must be evicted: byScore,
	// byOrder or byCost. Default: byScore.
	// +optional
	Nodes string `json:"nodes,omitempty"`

	// displace, evict: how pods are evicted. evict: by the eviction API, which respects
	// PodDisruptionBudgets. delete: by deleting the pods, regardless of budgets. Default: evict.
	// +optional
	Via string `json:"via,omitempty"`

	// displace: for how much resources are freed at once. task: for one task, by evicting pods.
	// gang: for all pods that a job needs to start. These are obtained by evicting pods that gangs
	// can spare, and whole gangs. Default: task.
	// +optional
	Unit string `json:"unit,omitempty"`

	// displace: with unit gang, whether gangs that have no pods to spare may be evicted as a
	// whole. Default: true.
	// +optional
	WholeBundles *bool `json:"wholeBundles,omitempty"`

	// No verb yet: with unit gang, the largest number of network topology domains to try. At least
	// 1.
	// +kubebuilder:validation:Minimum=1
	// +optional
	MaxDomains *int32 `json:"maxDomains,omitempty"`

	// evict: the largest number of evictions in one cycle, a whole number or CEL over cluster.
	// Unset: no limit.
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	Budget *runtime.RawExtension `json:"budget,omitempty"`

	// evict: the shortest time between two runs of the step, such as 5m, or CEL over params.
	// Unset: the step runs in every cycle.
	// +optional
	Every string `json:"every,omitempty"`
}

// Tier is tables of one rank.
// +kubebuilder:pruning:PreserveUnknownFields
type Tier struct {
	// The name, unique in the policy.
	// +kubebuilder:validation:MinLength=1
	Name string `json:"name"`

	// CEL that applies before the when of each row of all tables of the tier. If it is false, a
	// row has no opinion, as if it did not exist. It may read everything that all of these rows
	// can read, except params and variables, which belong to one table. Default: true.
	// +optional
	When string `json:"when,omitempty"`

	// The tables. Where the order of rows matters, earlier ones come first.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=128
	// +optional
	Tables []Table `json:"tables,omitempty"`
}

// Table is one use of a table of rules: a shipped one by its name, or one written here.
// +kubebuilder:pruning:PreserveUnknownFields
// +kubebuilder:validation:XValidation:rule="!(has(self.table) && has(self.inline))",message="table and inline exclude each other; keep one of them"
type Table struct {
	// The name of the entry, unique in the tier. It names a built-in table unless table or inline
	// is set.
	// +kubebuilder:validation:MinLength=1
	Name string `json:"name"`

	// The name of the built-in table, if it differs from the name of this entry.
	// +optional
	Table string `json:"table,omitempty"`

	// CEL that applies before the when of each row of the table. If it is false, a row has no
	// opinion, as if it did not exist. It may read everything that all of these rows can read.
	// Attributes are computed in any case. Default: true.
	// +optional
	When string `json:"when,omitempty"`

	// Values of the parameters of the table, by name. A value has the form that the type of the
	// parameter requires, such as true, 1.2, 10m or [cpu].
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	Params map[string]runtime.RawExtension `json:"params,omitempty"`

	// The sections of the table to use, such as [jobOrder]; all others are left out. Variables,
	// attributes, jobValid, evictable, victimOrder, victimCost and beyondDue stay unless without
	// names them. Unset: all sections.
	// +listType=set
	// +optional
	Only []string `json:"only,omitempty"`

	// The sections of the table to leave out.
	// +listType=set
	// +optional
	Without []string `json:"without,omitempty"`

	// A table that is defined in this policy.
	// +optional
	Inline *InlineTable `json:"inline,omitempty"`
}
