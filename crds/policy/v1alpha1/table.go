package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// InlineTable is a table of rules that is written in the policy. Every section is a list
// of rows; a section without rows has no opinion.
// +kubebuilder:pruning:PreserveUnknownFields
type InlineTable struct {
	// Parameters that rows read as params.<name>, by name.
	// +optional
	Params map[string]Param `json:"params,omitempty"`

	// Named expressions that rows read as variables.<name>. Each is evaluated when it is first
	// read. An expression may read the variables that are listed before it.
	// +listType=map
	// +listMapKey=name
	// +optional
	Variables []Variable `json:"variables,omitempty"`

	// Computed fields of objects. Rows of this table and of later tables read them like built-in
	// fields.
	// +listType=map
	// +listMapKey=name
	// +optional
	Attributes []Attribute `json:"attributes,omitempty"`

	// Rows over queue: sort keys. They state the order in which queues have their turns.
	// +listType=map
	// +listMapKey=name
	// +optional
	QueueOrder []Row `json:"queueOrder,omitempty"`

	// Rows over job: sort keys. They state the order in which the jobs of a queue have their
	// turns.
	// +listType=map
	// +listMapKey=name
	// +optional
	JobOrder []Row `json:"jobOrder,omitempty"`

	// Rows over task: sort keys. They state the order in which the tasks of a job have their
	// turns.
	// +listType=map
	// +listMapKey=name
	// +optional
	TaskOrder []Row `json:"taskOrder,omitempty"`

	// Rows over job: whether the job is considered. All rows must be true.
	// +listType=map
	// +listMapKey=name
	// +optional
	JobValid []Row `json:"jobValid,omitempty"`

	// Rows over job: whether the placements of the job are kept. All rows must be true.
	// +listType=map
	// +listMapKey=name
	// +optional
	JobReady []Row `json:"jobReady,omitempty"`

	// Rows over job: a vote on holding the nodes that are promised to the job until the end of the
	// cycle.
	// +listType=map
	// +listMapKey=name
	// +optional
	JobPipelined []Row `json:"jobPipelined,omitempty"`

	// Rows over job: whether the job needs more tasks placed, if necessary by evictions.
	// +listType=map
	// +listMapKey=name
	// +optional
	JobStarving []Row `json:"jobStarving,omitempty"`

	// Rows over job and queue: a vote on admitting the job to its queue. True permits, false
	// refuses.
	// +listType=map
	// +listMapKey=name
	// +optional
	JobEnqueueable []Row `json:"jobEnqueueable,omitempty"`

	// Rows over queue: whether the queue is skipped. One row that is true is enough.
	// +listType=map
	// +listMapKey=name
	// +optional
	Overused []Row `json:"overused,omitempty"`

	// Rows over queue, job and task: whether the queue may take the task. All rows must be true.
	// +listType=map
	// +listMapKey=name
	// +optional
	Allocatable []Row `json:"allocatable,omitempty"`

	// Rows over queue, job and request: whether the job may start although its queue then uses
	// more than its share.
	// +listType=map
	// +listMapKey=name
	// +optional
	BeyondShare []Row `json:"beyondShare,omitempty"`

	// Rows over queue, job and task: whether the task may be bound now. All rows must be true. A
	// task that is refused gets no idle node.
	// +listType=map
	// +listMapKey=name
	// +optional
	Bindable []Row `json:"bindable,omitempty"`

	// Rows over queue, job and request: whether the queue may evict pods of other queues. All rows
	// must be true.
	// +listType=map
	// +listMapKey=name
	// +optional
	Preemptive []Row `json:"preemptive,omitempty"`

	// Rows over task and job: whether the task can be placed on any node. All rows must be true.
	// +listType=map
	// +listMapKey=name
	// +optional
	TaskFeasible []Row `json:"taskFeasible,omitempty"`

	// Rows over task, node, job and queue: whether the task may run on the node. All rows must be
	// true.
	// +listType=map
	// +listMapKey=name
	// +optional
	Predicates []Row `json:"predicates,omitempty"`

	// Rows over task, node, job and queue: numbers. The node with the largest sum is chosen.
	// +listType=map
	// +listMapKey=name
	// +optional
	Scores []Row `json:"scores,omitempty"`

	// Rows over task, node and gpu: whether the task may have the device. All rows must be true.
	// +listType=map
	// +listMapKey=name
	// +optional
	DevicePredicates []Row `json:"devicePredicates,omitempty"`

	// Rows over task, node and gpu: numbers. The devices of a node with the largest sums are
	// chosen.
	// +listType=map
	// +listMapKey=name
	// +optional
	DeviceScores []Row `json:"deviceScores,omitempty"`

	// Rows over preemptor and victim: whether the victim may be evicted for a job of its own
	// queue.
	// +listType=map
	// +listMapKey=name
	// +optional
	Preemptable []Row `json:"preemptable,omitempty"`

	// Rows over preemptor and victim: whether the victim may be evicted for a job of another
	// queue.
	// +listType=map
	// +listMapKey=name
	// +optional
	Reclaimable []Row `json:"reclaimable,omitempty"`

	// Rows over job, victim and scope: whether the victim may be evicted for a whole gang.
	// +listType=map
	// +listMapKey=name
	// +optional
	Evictable []Row `json:"evictable,omitempty"`

	// Rows over victim: whether the pod is evicted now, for no other pod.
	// +listType=map
	// +listMapKey=name
	// +optional
	Victims []Row `json:"victims,omitempty"`

	// Rows over preemptor and victim: sort keys. They state the order in which victims are
	// evicted.
	// +listType=map
	// +listMapKey=name
	// +optional
	VictimOrder []Row `json:"victimOrder,omitempty"`

	// Rows over preemptor, victim and scope: numbers. They state the cost of evicting the victim.
	// +listType=map
	// +listMapKey=name
	// +optional
	VictimCost []Row `json:"victimCost,omitempty"`

	// Rows over queue: numbers. They state how much the queue uses beyond its deserved share. Only
	// the check of evictions reads them.
	// +listType=map
	// +listMapKey=name
	// +optional
	BeyondDue []Row `json:"beyondDue,omitempty"`
}

// Param declares a parameter of a table.
// +kubebuilder:pruning:PreserveUnknownFields
type Param struct {
	// The type of the value: bool, int, double, string, duration, resources, list(string),
	// map(string,double) or map(string,string).
	Type string `json:"type"`

	// The value if the policy sets none. If neither default nor optional is set, a policy must set
	// a value.
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	Default *runtime.RawExtension `json:"default,omitempty"`

	// Whether the parameter may have no value. Default: false.
	// +optional
	Optional bool `json:"optional,omitempty"`

	// The least value.
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	Min *runtime.RawExtension `json:"min,omitempty"`

	// The greatest value.
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	Max *runtime.RawExtension `json:"max,omitempty"`

	// The permitted values. Unset: all values of the type.
	// +listType=atomic
	// +optional
	Enum []string `json:"enum,omitempty"`

	// The effect of the parameter, as text for people.
	// +optional
	Description string `json:"description,omitempty"`

	// The name of the argument of Volcano with the same meaning.
	// +optional
	Volcano string `json:"volcano,omitempty"`
}

// Variable is an expression with a name.
// +kubebuilder:pruning:PreserveUnknownFields
type Variable struct {
	// The name, by which rows read the variable.
	// +kubebuilder:validation:MinLength=1
	Name string `json:"name"`

	// The object for which the value is cached: task, job, queue, node or victim. Unset: the value
	// is cached once per cycle. Write the key in quotes, because YAML 1.1 reads a bare on as true.
	// +optional
	On string `json:"on,omitempty"`

	// The CEL expression.
	Expression string `json:"expression"`
}

// Attribute is a computed field of an object: an expression, or one accounting function.
// +kubebuilder:pruning:PreserveUnknownFields
type Attribute struct {
	// The name of the field, by which rows read it.
	// +kubebuilder:validation:MinLength=1
	Name string `json:"name"`

	// The object to which the field belongs: cluster, namespace, queue, job, task or node. Write
	// the key in quotes, because YAML 1.1 reads a bare on as true.
	// +optional
	On string `json:"on,omitempty"`

	// When the value is computed. current: it follows every tentative step. cycle: once per cycle.
	// start: once per run.
	// +optional
	Settle string `json:"settle,omitempty"`

	// Whether only this table may read the attribute. Default: false.
	// +optional
	Private bool `json:"private,omitempty"`

	// CEL over params. If it is false, the attribute does not exist.
	// +optional
	When string `json:"when,omitempty"`

	// The CEL expression that computes the value.
	// +optional
	Expression string `json:"expression,omitempty"`

	// A sum over objects.
	// +optional
	Sum *Sum `json:"sum,omitempty"`

	// A division of a total among queues by weight, with floor, ceiling and demand.
	// +optional
	WaterFill *WaterFill `json:"waterFill,omitempty"`

	// Quotas along the tree of queues.
	// +optional
	QuotaTree *QuotaTree `json:"quotaTree,omitempty"`

	// A tree of weighted shares. The sort keys of queues are read from it.
	// +optional
	HDRF *HDRF `json:"hdrf,omitempty"`

	// Tasks of a job that should run together.
	// +optional
	Buckets *Buckets `json:"buckets,omitempty"`

	// The most common shapes of tasks.
	// +optional
	TypicalTasks *TypicalTasks `json:"typicalTasks,omitempty"`

	// The answer of an external service, which is requested between cycles.
	// +optional
	Answer *Answer `json:"answer,omitempty"`
}

// Sum adds up an expression over objects.
// +kubebuilder:pruning:PreserveUnknownFields
type Sum struct {
	// The objects that are summed: job, task or queue.
	Over string `json:"over"`

	// CEL: which of these objects count. Unset: all objects.
	// +optional
	When string `json:"when,omitempty"`

	// CEL: the amount that each object adds, Resources or a number.
	Of string `json:"of"`

	// CEL: a string by which objects are grouped. The result is then a map from this string to the
	// sum.
	// +optional
	By string `json:"by,omitempty"`
}

// WaterFill divides a total among queues. Every field is CEL; all but total see queue.
// +kubebuilder:pruning:PreserveUnknownFields
type WaterFill struct {
	// The queues that take part. Unset: all queues.
	// +optional
	Among string `json:"among,omitempty"`

	// The amount that is divided.
	Total string `json:"total"`

	// The weight of the queue, greater than 0.
	// +optional
	Weight string `json:"weight,omitempty"`

	// The least amount that the queue gets.
	// +optional
	Floor string `json:"floor,omitempty"`

	// The largest amount that the queue gets. A resource that is not listed has no limit.
	// +optional
	Ceiling string `json:"ceiling,omitempty"`

	// The amount that the queue requests.
	// +optional
	Demand string `json:"demand,omitempty"`
}

// QuotaTree computes quotas along the tree of queues. Every field is CEL; all but root,
// flat and total see queue.
// +kubebuilder:pruning:PreserveUnknownFields
type QuotaTree struct {
	// The name of the parent queue. Empty: root.
	// +optional
	Parent string `json:"parent,omitempty"`

	// The name of the root queue.
	// +optional
	Root string `json:"root,omitempty"`

	// Whether the queues form no tree.
	// +optional
	Flat string `json:"flat,omitempty"`

	// The amount of the whole tree.
	// +optional
	Total string `json:"total,omitempty"`

	// The amount that is reserved for the queue.
	// +optional
	Guarantee string `json:"guarantee,omitempty"`

	// The largest amount that the queue may use.
	// +optional
	Capability string `json:"capability,omitempty"`

	// The deserved share of the queue.
	// +optional
	Deserved string `json:"deserved,omitempty"`

	// Further amounts that are added up from the leaves to the root. Each key is the name of the
	// attribute that the amount becomes.
	// +optional
	RollUp map[string]string `json:"rollUp,omitempty"`
}

// HDRF is hierarchical dominant resource fairness. Every field is CEL.
// +kubebuilder:pruning:PreserveUnknownFields
type HDRF struct {
	// Over queue: the path of the queue from the root, such as root/a/b.
	Path string `json:"path"`

	// Over queue: one weight for each part of the path, such as 1/2/8.
	Weights string `json:"weights"`

	// The amount that all queues share.
	Total string `json:"total"`

	// Over job: the amount that the job uses.
	Allocated string `json:"allocated"`

	// Over job: the amount that the job uses, plus the amount that it still requests.
	Request string `json:"request"`
}

// Buckets are tasks of a job that should run together. Every field is CEL over job.
// +kubebuilder:pruning:PreserveUnknownFields
type Buckets struct {
	// Tasks that are placed together, such as ps,worker;ps,evaluator.
	// +optional
	Affinity string `json:"affinity,omitempty"`

	// Tasks that are placed apart, in the same form.
	// +optional
	AntiAffinity string `json:"antiAffinity,omitempty"`

	// The order in which tasks are placed, such as ps,worker.
	// +optional
	Order string `json:"order,omitempty"`
}

// TypicalTasks are the shapes of task that make up most of the workload.
// +kubebuilder:pruning:PreserveUnknownFields
type TypicalTasks struct {
	// The part of the workload that the shapes cover, from 0 to 1, or CEL over params.
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	Cover runtime.RawExtension `json:"cover"`
}

// Answer is what a service outside says of a task, a job or a queue.
// +kubebuilder:pruning:PreserveUnknownFields
type Answer struct {
	// CEL over params: the address of the service.
	URL string `json:"url"`

	// The form of the request: predicate, prioritize, jobEnqueueable, jobReady or queueOverused.
	As string `json:"as"`

	// CEL over params: how long to wait for an answer.
	Timeout string `json:"timeout"`

	// CEL over params: the time after which the request is repeated.
	Refresh string `json:"refresh"`
}

// Row is one rule. Its section determines which fields may be set; the compiler reports fields
// that may not be set.
// +kubebuilder:pruning:PreserveUnknownFields
type Row struct {
	// The name, unique in the section. Explanations of decisions contain it.
	// +kubebuilder:validation:MinLength=1
	Name string `json:"name"`

	// CEL: if it is false, the row has no opinion.
	// +optional
	When string `json:"when,omitempty"`

	// CEL: the rule, a bool, or in scores a number.
	// +optional
	Expression string `json:"expression,omitempty"`

	// CEL, in orders: the sort key, a number, string, bool, timestamp or list of them. The
	// smallest key comes first.
	// +optional
	By string `json:"by,omitempty"`

	// In orders: whether the largest key comes first. Default: false.
	// +optional
	Descending bool `json:"descending,omitempty"`

	// The reason that conditions contain, one word in CamelCase.
	// +optional
	Reason string `json:"reason,omitempty"`

	// The explanation for people. It may contain CEL, such as {{node.name}}.
	// +optional
	Message string `json:"message,omitempty"`

	// In scores: the factor by which the number is multiplied; a number, or CEL over params.
	// Default: 1.
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	Weight *runtime.RawExtension `json:"weight,omitempty"`

	// In scores: how the numbers of all nodes are scaled to 0 to 100: none, max, minMax,
	// inverseMax or inverseSum. Default: none.
	// +optional
	Normalize string `json:"normalize,omitempty"`

	// In scores: how the numbers are rounded after they are scaled.
	// +optional
	Round *Round `json:"round,omitempty"`

	// In victim sections: whether a refusal by this row is final in all tiers; true, false, or CEL
	// over params. Default: false.
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	Veto *runtime.RawExtension `json:"veto,omitempty"`

	// In predicates: whether an eviction could make the node suitable; true, false, or CEL over
	// params.
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	Curable *runtime.RawExtension `json:"curable,omitempty"`

	// In overused, allocatable and bindable: whether the row protects the shares of queues. A step
	// whose gates name beyondShare does not evaluate such a row.
	// +optional
	Share *bool `json:"share,omitempty"`

	// In victimCost: how the numbers of all victims are combined: sum, max or thenMax. Default:
	// sum.
	// +optional
	Fold string `json:"fold,omitempty"`

	// In victims: the shortest time between two evaluations of the row, such as 1m, or CEL over
	// params.
	// +optional
	Every string `json:"every,omitempty"`

	// In victims: the largest number of victims that the row names; a whole number, or CEL over
	// params.
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	Limit *runtime.RawExtension `json:"limit,omitempty"`

	// The result of the row if its evaluation fails: deny, allow or skip. Unset: the safe result
	// of its section.
	// +optional
	OnError string `json:"onError,omitempty"`
}

// Round says how a score is rounded.
// +kubebuilder:pruning:PreserveUnknownFields
type Round struct {
	// The direction: trunc, floor, ceil or nearest.
	// +optional
	Mode string `json:"mode,omitempty"`

	// Numbers are rounded to multiples of this value; a number, or CEL over params. Default: 1.
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	Step *runtime.RawExtension `json:"step,omitempty"`
}

// SchedulingPolicyStatus is the observed state of a policy.
type SchedulingPolicyStatus struct {
	// The generation of the policy that the status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// The conditions of the policy. Compiled: whether the policy can be served. Active: whether it
	// is served. If Active is False, the message names the policy that is served instead.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// The warnings of the compiler.
	// +optional
	TypeChecking *TypeChecking `json:"typeChecking,omitempty"`

	// The number of rows of the policy, including the rows of its tables.
	// +optional
	RuleCount int32 `json:"ruleCount,omitempty"`

	// The number of warnings.
	// +optional
	WarningCount int32 `json:"warningCount,omitempty"`

	// The schedulers that serve the policy, each with the generation that it serves.
	// +listType=map
	// +listMapKey=name
	// +optional
	Schedulers []SchedulerStatus `json:"schedulers,omitempty"`

	// The results of schedulers that compute decisions by this policy as a shadow, alongside the
	// policies that they serve.
	// +listType=map
	// +listMapKey=name
	// +optional
	Shadows []ShadowStatus `json:"shadows,omitempty"`
}

// Types of conditions of a policy.
const (
	// ConditionCompiled: the policy has no mistake.
	ConditionCompiled = "Compiled"
	// ConditionActive: a scheduler serves it.
	ConditionActive = "Active"
	// ConditionErring is there, and True, where rows erred under this generation: the message
	// names them, and the entries of schedulers tell the rest.
	ConditionErring = "Erring"
)

// ReasonNotSelected is the reason of condition Active=False where no scheduler's flag
// --policy names the policy.
const ReasonNotSelected = "NotSelected"

// TypeChecking contains the warnings of the compiler.
type TypeChecking struct {
	// The warnings, in the order of the policy.
	// +listType=atomic
	// +optional
	ExpressionWarnings []ExpressionWarning `json:"expressionWarnings,omitempty"`
}

// ExpressionWarning is a warning with its place.
type ExpressionWarning struct {
	// The path of the field, such as spec.tiers[0].tables[0].inline.scores[0].expression.
	FieldRef string `json:"fieldRef"`

	// The warning, with its position in the expression.
	Warning string `json:"warning"`
}

// SchedulerStatus is a scheduler that serves the policy.
type SchedulerStatus struct {
	// The name of the scheduler, as in spec.schedulerName of pods.
	Name string `json:"name"`

	// The generation of the policy that the scheduler serves.
	Generation int64 `json:"generation"`

	// The rows with errors since this process began to serve the generation, in the order of their
	// first error. At most 50. Counts are updated once per minute.
	// +listType=atomic
	// +optional
	RuleErrors []RuleErrors `json:"ruleErrors,omitempty"`
}

// ShadowStatus is how a policy decides as a shadow beside the one that a scheduler serves. It is
// brought up to date every ten seconds at most.
type ShadowStatus struct {
	// The name of the scheduler, as in spec.schedulerName of pods.
	Name string `json:"name"`

	// The generation of the policy that is the shadow.
	Generation int64 `json:"generation"`

	// The served policies with which the shadow is compared, such as default@3. If lab serves
	// queues of its own, the value is default@3+lab@1. The counts restart at 0 when this value
	// changes.
	Beside string `json:"beside"`

	// The time of the first cycle in which the shadow decided.
	Since metav1.Time `json:"since"`

	// The number of cycles in which the shadow decided, and their duration.
	Cycles ShadowCycles `json:"cycles"`

	// The number of pods for which the decision of the shadow differs.
	Pods ShadowPods `json:"pods"`

	// The latest differences, newest first, one for each job and kind.
	// +listType=atomic
	// +optional
	Differences []ShadowDifference `json:"differences,omitempty"`

	// The rows of the shadow with errors, in the same form as in schedulers.
	// +listType=atomic
	// +optional
	RuleErrors []RuleErrors `json:"ruleErrors,omitempty"`
}

// ShadowCycles are the cycles beside which a shadow decided.
type ShadowCycles struct {
	// The number of cycles in which the shadow decided.
	Decided int64 `json:"decided"`

	// The number of these cycles in which the shadow would have bound or evicted other pods, or
	// bound pods to other nodes.
	Otherwise int64 `json:"otherwise"`

	// The number of cycles that the shadow skipped, so that it uses at most one twentieth of the
	// time.
	Skipped int64 `json:"skipped"`

	// The number of cycles in which the shadow was stopped because it took too long.
	BrokenOff int64 `json:"brokenOff"`

	// The mean duration of a cycle of the shadow.
	Mean metav1.Duration `json:"mean"`

	// The longest duration of a cycle of the shadow.
	Longest metav1.Duration `json:"longest"`
}

// ShadowPods are the pods that fare otherwise by a shadow.
type ShadowPods struct {
	// The number of pods that the shadow would have bound to another node in the same cycle.
	Elsewhere int64 `json:"elsewhere"`

	// The number of pods that were bound and would have waited under the shadow.
	Later int64 `json:"later"`

	// The number of pods that waited and would have been bound by the shadow.
	Sooner int64 `json:"sooner"`

	// The number of pods that were not evicted and would have been evicted by the shadow.
	Evicted int64 `json:"evicted"`

	// The number of pods that were evicted and would not have been evicted by the shadow.
	Spared int64 `json:"spared"`
}

// ShadowDifference is a pod that fares otherwise by a shadow.
type ShadowDifference struct {
	// The time at which the difference was found.
	Time metav1.Time `json:"time"`

	// The kind of the difference: Elsewhere, Later, Sooner, Evicted or Spared.
	Kind string `json:"kind"`

	// The queue of the pod's job.
	Queue string `json:"queue"`

	// The pod, as NAMESPACE/NAME.
	Pod string `json:"pod"`

	// The decision of the scheduler, and the decision of the shadow.
	Text string `json:"text"`
}

// RuleErrors contains the errors of one row. For each failed evaluation the onError of the row was
// applied.
type RuleErrors struct {
	// The section of the row, such as predicates. For an attribute: attributes.
	Site string `json:"site"`

	// The name of the table.
	Table string `json:"table"`

	// The name of the row.
	Rule string `json:"rule"`

	// The number of evaluations that failed. A cached result is not evaluated and not counted
	// again.
	Count int64 `json:"count"`

	// The number of these evaluations that exceeded the budget of the row, or that came after its
	// steps of a cycle were used up.
	// +optional
	OverBudget int64 `json:"overBudget,omitempty"`

	// The object of the last failed evaluation, such as a pod and a node.
	LastObject string `json:"lastObject"`

	// The error of the last failed evaluation.
	LastError string `json:"lastError"`

	// The time of the cycle of the last failed evaluation.
	LastTime metav1.Time `json:"lastTime"`
}
