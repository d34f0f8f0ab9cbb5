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

// SchedulingPolicy is all that a scheduler decides by: which actions run, in which
// order, and by which rules they order, filter, score, evict and admit. A scheduler
// serves the policy that its flag --policy names.
type SchedulingPolicy struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// The policy.
	Spec SchedulingPolicySpec `json:"spec"`

	// Whether it compiled, and who serves it; written by the leading scheduler.
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
	// Active: the scheduler that serves this policy decides by it. Paused: it binds and
	// evicts nothing, and goes on writing status; the switch for an incident. Shadow: the
	// schedulers decide by it beside what they serve, on the same state, and do nothing of
	// it; status.shadows counts and shows what differs.
	// +kubebuilder:default:=Active
	// +optional
	Mode Mode `json:"mode,omitempty"`

	// CEL over queue: which queues the policy serves, beside the one that serves all others.
	// In these it orders jobs and tasks, chooses nodes and says who may go; between queues the
	// other one decides, and who goes for another queue must be allowed to by both. Unset: it
	// serves no queue unless a scheduler's flag --policy names it, which then serves all.
	// +kubebuilder:validation:MinLength=1
	// +optional
	Queues string `json:"queues,omitempty"`

	// When a scheduler that serves this policy takes it back by itself: it goes on with what
	// served before, until the policy is changed.
	// +optional
	Rollback *Rollback `json:"rollback,omitempty"`

	// What is in force of a generation of this policy that is not served any more, because
	// its rows were faulty or it was rolled back. KeepPredicates: the generation before
	// serves, and the predicates of this one judge where pods may run; a pod that a faulty
	// predicate cannot judge waits. Stop: no pod is placed. Unset: KeepPredicates after a
	// fault, and nothing of this generation after a rollback by spec.rollback.
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

	// Actions of the policy's own; one with the name of a shipped action replaces it.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	// +optional
	Actions []Action `json:"actions,omitempty"`

	// Sets of tables in order of precedence: what the first can decide the next is not
	// asked about.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	// +optional
	Tiers []Tier `json:"tiers,omitempty"`
}

// Rollback says when a policy is taken back.
// +kubebuilder:pruning:PreserveUnknownFields
type Rollback struct {
	// For how long after a scheduler began to serve the policy the rest is looked at, such
	// as 30m. A generation for which that has passed is not looked at again, after a restart
	// neither. Unset: for as long as it serves.
	// +optional
	Within string `json:"within,omitempty"`

	// How many errors of rows are borne; one more, and the policy is taken back. Unset: any
	// number.
	// +kubebuilder:validation:Minimum=0
	// +optional
	RowErrors *int64 `json:"rowErrors,omitempty"`

	// Bounds of metrics of the scheduler; beyond one, and the policy is taken back.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	// +optional
	Metrics []RollbackMetric `json:"metrics,omitempty"`
}

// RollbackMetric is a bound of a metric of the scheduler.
// +kubebuilder:pruning:PreserveUnknownFields
type RollbackMetric struct {
	// The name, as the scheduler's /metrics has it; of a histogram with _count or _sum. While
	// it has no series it is within its bounds.
	// +kubebuilder:validation:MinLength=1
	Name string `json:"name"`

	// Labels that choose series; what has all of them is summed.
	// +optional
	Labels map[string]string `json:"labels,omitempty"`

	// What it may not be above; a number.
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	Above *runtime.RawExtension `json:"above,omitempty"`

	// What it may not be below; a number.
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	Below *runtime.RawExtension `json:"below,omitempty"`

	// What counts is how much it has risen since the scheduler began to serve the policy.
	// +optional
	Rise bool `json:"rise,omitempty"`

	// For how long it must be beyond its bound, such as 1m; unset: once is enough.
	// +optional
	For string `json:"for,omitempty"`
}

// Action is a named list of steps.
// +kubebuilder:pruning:PreserveUnknownFields
type Action struct {
	// The name, as pipeline has it.
	// +kubebuilder:validation:MinLength=1
	Name string `json:"name"`

	// What the action does, in order.
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=256
	Steps []Step `json:"steps"`
}

// Step is one verb with its parameters. Each parameter is for the verbs that its
// description names.
// +kubebuilder:pruning:PreserveUnknownFields
type Step struct {
	// admit lets jobs into their queues; place finds nodes for tasks; displace finds
	// nodes by evicting others; evict evicts what the victims rows name.
	Verb string `json:"verb"`

	// All verbs: CEL over cluster and pipeline; where false the step is left out (true).
	// +optional
	When string `json:"when,omitempty"`

	// admit, place, displace: CEL over job; which jobs are looked at (true).
	// +optional
	Jobs string `json:"jobs,omitempty"`

	// place, displace: CEL over task; which tasks are looked at
	// (task.status == 'Pending' && !task.gated).
	// +optional
	Tasks string `json:"tasks,omitempty"`

	// admit: false lets jobs in without asking the jobEnqueueable rows (true).
	// +optional
	Vote *bool `json:"vote,omitempty"`

	// place, displace: which of overused, allocatable, beyondShare and preemptive are asked.
	// +listType=atomic
	// +optional
	Gates []string `json:"gates,omitempty"`

	// place, displace: job keeps or undoes what was found for a job as a whole; task
	// keeps each task's node by itself.
	// +optional
	Commit string `json:"commit,omitempty"`

	// place, displace: how long one job keeps the floor before queues and jobs are
	// ordered again: untilReady, untilFed, oneTask or all.
	// +optional
	Turn string `json:"turn,omitempty"`

	// place, displace: CEL over job, where a role that found no node has failed set; true
	// goes on with the job's other tasks.
	// +optional
	OnNoNode string `json:"onNoNode,omitempty"`

	// place: for how long after a job was let in its places are kept while its pods are
	// being made, at most 1m (0s: not at all).
	// +optional
	AwaitPods string `json:"awaitPods,omitempty"`

	// admit, place, displace: CEL over job; whether a job that waits after its turn blocks
	// the jobs that come after it in its queue (false).
	// +optional
	BlocksQueue string `json:"blocksQueue,omitempty"`

	// displace: from whom room is taken: queue (other jobs of the same), job (itself) or
	// otherQueues.
	// +optional
	Scope string `json:"scope,omitempty"`

	// displace, evict: CEL over preemptor, victim and job, of evict over victim; who is a candidate before the rows
	// are asked.
	// +optional
	Candidates string `json:"candidates,omitempty"`

	// displace, evict: the section of rows that is asked: preemptable, reclaimable,
	// evictable or victims.
	// +optional
	Victims string `json:"victims,omitempty"`

	// displace: which of the nodes is taken on which others have to go: byScore, byOrder or byCost.
	// +optional
	Nodes string `json:"nodes,omitempty"`

	// displace, evict: how those go who are evicted: evict asks the API server to evict them, as
	// far as PodDisruptionBudgets let it; delete deletes them whatever budgets say (evict).
	// +optional
	Via string `json:"via,omitempty"`

	// displace: whether room is made for a task at a time, by evicting pods, or for all that a
	// job needs to start, by evicting what gangs can spare and gangs as a whole: task or gang
	// (task).
	// +optional
	Unit string `json:"unit,omitempty"`

	// displace: with unit gang, whether gangs may go as a whole that have nothing to spare
	// (true).
	// +optional
	WholeBundles *bool `json:"wholeBundles,omitempty"`

	// No verb yet: with unit gang, how many domains of the network are tried at most.
	// +kubebuilder:validation:Minimum=1
	// +optional
	MaxDomains *int32 `json:"maxDomains,omitempty"`

	// evict: the most evictions of one cycle, a whole number or CEL over cluster; unset:
	// no limit.
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	Budget *runtime.RawExtension `json:"budget,omitempty"`

	// evict: the step runs at most once in this time, such as 5m, or CEL over params.
	// +optional
	Every string `json:"every,omitempty"`
}

// Tier is tables of one rank.
// +kubebuilder:pruning:PreserveUnknownFields
type Tier struct {
	// The name, unique in the policy.
	// +kubebuilder:validation:MinLength=1
	Name string `json:"name"`

	// CEL that stands before the when of each row of the tier's tables: where it is false the row has no opinion, as if it were not there.
	// It may read what all of these rows see, but for params and variables, which are a table's own (true).
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
	// The name, unique in the tier; names a shipped table unless table or inline is given.
	// +kubebuilder:validation:MinLength=1
	Name string `json:"name"`

	// The shipped table, where its name is not the name of this entry.
	// +optional
	Table string `json:"table,omitempty"`

	// CEL that stands before the when of each row of the table: where it is false the row has no opinion, as if it were not there. It may
	// read what all of these rows see. Attributes are computed all the same (true).
	// +optional
	When string `json:"when,omitempty"`

	// Values for the table's parameters, by name: true, 1.2, 10m, [cpu], or as the
	// parameter's type has it.
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	Params map[string]runtime.RawExtension `json:"params,omitempty"`

	// The only sections of the table to use, such as [jobOrder]. Variables stay, and so do
	// attributes, jobValid, evictable, victimOrder, victimCost and beyondDue unless without
	// names them.
	// +listType=set
	// +optional
	Only []string `json:"only,omitempty"`

	// The sections of the table to leave out.
	// +listType=set
	// +optional
	Without []string `json:"without,omitempty"`

	// A table of the policy's own.
	// +optional
	Inline *InlineTable `json:"inline,omitempty"`
}
