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

	// Expressions with a name, that rows read as variables.<name>; each is evaluated when
	// first read, and later ones may read earlier ones.
	// +listType=map
	// +listMapKey=name
	// +optional
	Variables []Variable `json:"variables,omitempty"`

	// Computed fields of objects, that rows of this table and of later ones read like
	// fields of their own.
	// +listType=map
	// +listMapKey=name
	// +optional
	Attributes []Attribute `json:"attributes,omitempty"`

	// Over queue: keys by which queues take turns.
	// +listType=map
	// +listMapKey=name
	// +optional
	QueueOrder []Row `json:"queueOrder,omitempty"`

	// Over job: keys by which jobs of a queue take turns.
	// +listType=map
	// +listMapKey=name
	// +optional
	JobOrder []Row `json:"jobOrder,omitempty"`

	// Over task: keys by which tasks of a job take turns.
	// +listType=map
	// +listMapKey=name
	// +optional
	TaskOrder []Row `json:"taskOrder,omitempty"`

	// Over job: what must hold for the job to be looked at.
	// +listType=map
	// +listMapKey=name
	// +optional
	JobValid []Row `json:"jobValid,omitempty"`

	// Over job: what must hold for its nodes to be kept.
	// +listType=map
	// +listMapKey=name
	// +optional
	JobReady []Row `json:"jobReady,omitempty"`

	// Over job: what must hold for its promised nodes to be held until the end
	// of the cycle.
	// +listType=map
	// +listMapKey=name
	// +optional
	JobPipelined []Row `json:"jobPipelined,omitempty"`

	// Over job: whether it wants more tasks placed, by force if need be.
	// +listType=map
	// +listMapKey=name
	// +optional
	JobStarving []Row `json:"jobStarving,omitempty"`

	// Over job, queue: a vote on letting the job into its queue. True permits,
	// false refuses.
	// +listType=map
	// +listMapKey=name
	// +optional
	JobEnqueueable []Row `json:"jobEnqueueable,omitempty"`

	// Over queue: where true the queue is passed over.
	// +listType=map
	// +listMapKey=name
	// +optional
	Overused []Row `json:"overused,omitempty"`

	// Over queue, job, task: what must hold for the queue to take the task.
	// +listType=map
	// +listMapKey=name
	// +optional
	Allocatable []Row `json:"allocatable,omitempty"`

	// Over queue, job: whether the job may start although its queue then holds more than
	// its share.
	// +listType=map
	// +listMapKey=name
	// +optional
	BeyondShare []Row `json:"beyondShare,omitempty"`

	// Over queue, job, task: what must hold for the task to be bound now. A task
	// that is refused gets no idle node.
	// +listType=map
	// +listMapKey=name
	// +optional
	Bindable []Row `json:"bindable,omitempty"`

	// Over queue, job, request: what must hold for the queue to take by force.
	// +listType=map
	// +listMapKey=name
	// +optional
	Preemptive []Row `json:"preemptive,omitempty"`

	// Over task, job: whether it can be placed anywhere at all.
	// +listType=map
	// +listMapKey=name
	// +optional
	TaskFeasible []Row `json:"taskFeasible,omitempty"`

	// Over task, node, job, queue: what must hold for the task to run on the
	// node.
	// +listType=map
	// +listMapKey=name
	// +optional
	Predicates []Row `json:"predicates,omitempty"`

	// Over task, node, job, queue: numbers whose sum chooses among the nodes.
	// +listType=map
	// +listMapKey=name
	// +optional
	Scores []Row `json:"scores,omitempty"`

	// Over task, node, gpu: what must hold for the task to have the device.
	// +listType=map
	// +listMapKey=name
	// +optional
	DevicePredicates []Row `json:"devicePredicates,omitempty"`

	// Over task, node, gpu: numbers whose sum chooses among a node's devices.
	// +listType=map
	// +listMapKey=name
	// +optional
	DeviceScores []Row `json:"deviceScores,omitempty"`

	// Over preemptor, victim: whether the victim may go for a job of its own
	// queue.
	// +listType=map
	// +listMapKey=name
	// +optional
	Preemptable []Row `json:"preemptable,omitempty"`

	// Over preemptor, victim: whether the victim may go for a job of another
	// queue.
	// +listType=map
	// +listMapKey=name
	// +optional
	Reclaimable []Row `json:"reclaimable,omitempty"`

	// Over job, victim, scope: whether the victim may go for a whole gang.
	// +listType=map
	// +listMapKey=name
	// +optional
	Evictable []Row `json:"evictable,omitempty"`

	// Over task: who should go now.
	// +listType=map
	// +listMapKey=name
	// +optional
	Victims []Row `json:"victims,omitempty"`

	// Over preemptor, victim: keys by which victims go.
	// +listType=map
	// +listMapKey=name
	// +optional
	VictimOrder []Row `json:"victimOrder,omitempty"`

	// Over preemptor, victim, scope: numbers, what it costs that the victim goes.
	// +listType=map
	// +listMapKey=name
	// +optional
	VictimCost []Row `json:"victimCost,omitempty"`

	// Over queue: numbers, how much it holds beyond its due, for the proof of evictions.
	// +listType=map
	// +listMapKey=name
	// +optional
	BeyondDue []Row `json:"beyondDue,omitempty"`
}

// Param declares a parameter of a table.
// +kubebuilder:pruning:PreserveUnknownFields
type Param struct {
	// bool, int, double, string, duration, resources, list(string), map(string,double) or
	// map(string,string).
	Type string `json:"type"`

	// The value where a policy gives none. Without it and without optional, a policy must
	// give one.
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	Default *runtime.RawExtension `json:"default,omitempty"`

	// Whether it may be left without a value.
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

	// The values that it may have, where they are few.
	// +listType=atomic
	// +optional
	Enum []string `json:"enum,omitempty"`

	// What it does, for people.
	// +optional
	Description string `json:"description,omitempty"`

	// The name of Volcano's argument that means the same.
	// +optional
	Volcano string `json:"volcano,omitempty"`
}

// Variable is an expression with a name.
// +kubebuilder:pruning:PreserveUnknownFields
type Variable struct {
	// The name.
	// +kubebuilder:validation:MinLength=1
	Name string `json:"name"`

	// What it is remembered for: task, job, queue, node or victim; unset: the cycle. Write
	// the key in quotes: YAML 1.1 reads a bare on as true.
	// +optional
	On string `json:"on,omitempty"`

	// The CEL expression.
	Expression string `json:"expression"`
}

// Attribute is a computed field of an object: an expression, or one accounting function.
// +kubebuilder:pruning:PreserveUnknownFields
type Attribute struct {
	// The name that rows read it by.
	// +kubebuilder:validation:MinLength=1
	Name string `json:"name"`

	// Whose field it is: cluster, namespace, queue, job, task or node. Write the key in
	// quotes: YAML 1.1 reads a bare on as true.
	// +optional
	On string `json:"on,omitempty"`

	// When it settles: current (moves with every tentative step), cycle (computed once a
	// cycle) or start (once a run).
	// +optional
	Settle string `json:"settle,omitempty"`

	// Whether only this table may read it.
	// +optional
	Private bool `json:"private,omitempty"`

	// CEL over params: where false the attribute is left out.
	// +optional
	When string `json:"when,omitempty"`

	// The CEL expression that it is.
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

	// A tree of shares by weight, of which queues' keys of order are read.
	// +optional
	HDRF *HDRF `json:"hdrf,omitempty"`

	// Tasks of a job that should run together.
	// +optional
	Buckets *Buckets `json:"buckets,omitempty"`

	// The shapes of task that are most common.
	// +optional
	TypicalTasks *TypicalTasks `json:"typicalTasks,omitempty"`

	// What a service outside says, which is asked between cycles.
	// +optional
	Answer *Answer `json:"answer,omitempty"`
}

// Sum adds up an expression over objects.
// +kubebuilder:pruning:PreserveUnknownFields
type Sum struct {
	// Over which objects: job, task or queue.
	Over string `json:"over"`

	// CEL: which of them count; unset: all.
	// +optional
	When string `json:"when,omitempty"`

	// CEL: what each adds, Resources or a number.
	Of string `json:"of"`

	// CEL: a string by which the sum is divided; the result is then a map.
	// +optional
	By string `json:"by,omitempty"`
}

// WaterFill divides a total among queues. Every field is CEL; all but total see queue.
// +kubebuilder:pruning:PreserveUnknownFields
type WaterFill struct {
	// Which queues take part; unset: all.
	// +optional
	Among string `json:"among,omitempty"`

	// What is divided.
	Total string `json:"total"`

	// The queue's weight, more than 0.
	// +optional
	Weight string `json:"weight,omitempty"`

	// What the queue gets at least.
	// +optional
	Floor string `json:"floor,omitempty"`

	// What it gets at most; a resource left out has no limit.
	// +optional
	Ceiling string `json:"ceiling,omitempty"`

	// What it wants.
	// +optional
	Demand string `json:"demand,omitempty"`
}

// QuotaTree computes quotas along the tree of queues. Every field is CEL; all but root,
// flat and total see queue.
// +kubebuilder:pruning:PreserveUnknownFields
type QuotaTree struct {
	// The name of the queue above; empty: root.
	// +optional
	Parent string `json:"parent,omitempty"`

	// The name of the queue at the top.
	// +optional
	Root string `json:"root,omitempty"`

	// Whether there is no tree after all.
	// +optional
	Flat string `json:"flat,omitempty"`

	// What the tree as a whole has.
	// +optional
	Total string `json:"total,omitempty"`

	// What is kept for the queue.
	// +optional
	Guarantee string `json:"guarantee,omitempty"`

	// The most that it may use.
	// +optional
	Capability string `json:"capability,omitempty"`

	// What it is due.
	// +optional
	Deserved string `json:"deserved,omitempty"`

	// More amounts to add up from the leaves to the root, by the name of the attribute
	// that each becomes.
	// +optional
	RollUp map[string]string `json:"rollUp,omitempty"`
}

// HDRF is hierarchical dominant resource fairness. Every field is CEL.
// +kubebuilder:pruning:PreserveUnknownFields
type HDRF struct {
	// Over queue: its path from the root, "root/a/b".
	Path string `json:"path"`

	// Over queue: one weight a part of the path, "1/2/8".
	Weights string `json:"weights"`

	// What there is in all.
	Total string `json:"total"`

	// Over job: what it uses.
	Allocated string `json:"allocated"`

	// Over job: what it uses and wants.
	Request string `json:"request"`
}

// Buckets are tasks of a job that should run together. Every field is CEL over job.
// +kubebuilder:pruning:PreserveUnknownFields
type Buckets struct {
	// Tasks to put together, "ps,worker;ps,evaluator".
	// +optional
	Affinity string `json:"affinity,omitempty"`

	// Tasks to keep apart, likewise.
	// +optional
	AntiAffinity string `json:"antiAffinity,omitempty"`

	// Tasks in order, "ps,worker".
	// +optional
	Order string `json:"order,omitempty"`
}

// TypicalTasks are the shapes of task that make up most of the workload.
// +kubebuilder:pruning:PreserveUnknownFields
type TypicalTasks struct {
	// The part of the workload that they cover, from 0 to 1, or CEL over params.
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	Cover runtime.RawExtension `json:"cover"`
}

// Answer is what a service outside says of a task, a job or a queue.
// +kubebuilder:pruning:PreserveUnknownFields
type Answer struct {
	// CEL over params: the address that is asked.
	URL string `json:"url"`

	// The form of the question: predicate, prioritize, jobEnqueueable, jobReady or
	// queueOverused.
	As string `json:"as"`

	// CEL over params: for how long an answer is waited for.
	Timeout string `json:"timeout"`

	// CEL over params: after what time it is asked again.
	Refresh string `json:"refresh"`
}

// Row is one rule. Which of its fields may be used depends on its section; the compiler
// says so.
// +kubebuilder:pruning:PreserveUnknownFields
type Row struct {
	// The name, unique in the section; decisions are explained by it.
	// +kubebuilder:validation:MinLength=1
	Name string `json:"name"`

	// CEL: where false the row has no opinion.
	// +optional
	When string `json:"when,omitempty"`

	// CEL: the rule, a bool, or in scores a number.
	// +optional
	Expression string `json:"expression,omitempty"`

	// CEL, in orders: the key, a number, string, bool, timestamp or list of them. The
	// smallest comes first.
	// +optional
	By string `json:"by,omitempty"`

	// In orders: the greatest comes first.
	// +optional
	Descending bool `json:"descending,omitempty"`

	// One word in CamelCase for conditions.
	// +optional
	Reason string `json:"reason,omitempty"`

	// Why, for people; may have parts in CEL, {{node.name}}.
	// +optional
	Message string `json:"message,omitempty"`

	// In scores: what the number is multiplied by; a number, or CEL over params (1).
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	Weight *runtime.RawExtension `json:"weight,omitempty"`

	// In scores: how numbers are brought to 0..100 over the nodes: none, max, minMax,
	// inverseMax or inverseSum.
	// +optional
	Normalize string `json:"normalize,omitempty"`

	// In scores: how they are rounded after that.
	// +optional
	Round *Round `json:"round,omitempty"`

	// In victim sections: true makes a no final in all tiers; true, false, or CEL over
	// params.
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	Veto *runtime.RawExtension `json:"veto,omitempty"`

	// In predicates: whether evicting somebody could make the node fit; true, false, or
	// CEL over params.
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	Curable *runtime.RawExtension `json:"curable,omitempty"`

	// In overused, allocatable and bindable: true states that the row protects the shares of queues. A step whose
	// gates name beyondShare does not ask it.
	// +optional
	Share *bool `json:"share,omitempty"`

	// In victimCost: how the numbers of those who go become one: sum, max or thenMax (sum).
	// +optional
	Fold string `json:"fold,omitempty"`

	// In victims: the row names somebody at most once in this time, such as 1m, or CEL
	// over params.
	// +optional
	Every string `json:"every,omitempty"`

	// In victims: how many the row names at most; a whole number, or CEL over params.
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	Limit *runtime.RawExtension `json:"limit,omitempty"`

	// What holds where the row fails to evaluate: deny, allow or skip; unset: what is safe
	// in its section.
	// +optional
	OnError string `json:"onError,omitempty"`
}

// Round says how a score is rounded.
// +kubebuilder:pruning:PreserveUnknownFields
type Round struct {
	// trunc, floor, ceil or nearest.
	// +optional
	Mode string `json:"mode,omitempty"`

	// To multiples of this; a number, or CEL over params (1).
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	Step *runtime.RawExtension `json:"step,omitempty"`
}

// SchedulingPolicyStatus is what became of a policy.
type SchedulingPolicyStatus struct {
	// The generation of the policy that the rest of the status is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Compiled: whether it can be served. Active: whether it is; where it is not, the
	// message names what is served in its place.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// What the compiler warns of.
	// +optional
	TypeChecking *TypeChecking `json:"typeChecking,omitempty"`

	// How many rows the policy has in all, those of its tables included.
	// +optional
	RuleCount int32 `json:"ruleCount,omitempty"`

	// How many warnings there are.
	// +optional
	WarningCount int32 `json:"warningCount,omitempty"`

	// Which schedulers serve it, and which generation of it.
	// +listType=map
	// +listMapKey=name
	// +optional
	Schedulers []SchedulerStatus `json:"schedulers,omitempty"`

	// What the schedulers found that decide by it as a shadow, beside what they serve.
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

// TypeChecking is what the compiler found that is no mistake.
type TypeChecking struct {
	// The warnings, in the order of the policy.
	// +listType=atomic
	// +optional
	ExpressionWarnings []ExpressionWarning `json:"expressionWarnings,omitempty"`
}

// ExpressionWarning is a warning with its place.
type ExpressionWarning struct {
	// The path of the field: spec.tiers[0].tables[0].inline.scores[0].expression.
	FieldRef string `json:"fieldRef"`

	// The warning, with the place inside the expression.
	Warning string `json:"warning"`
}

// SchedulerStatus is a scheduler that serves the policy.
type SchedulerStatus struct {
	// The scheduler's name, as pods name it.
	Name string `json:"name"`

	// The generation of the policy that it serves.
	Generation int64 `json:"generation"`

	// The rows that erred since this process serves the generation, fifty at most, in the
	// order in which they first did. Counts are brought up to date once a minute.
	// +listType=atomic
	// +optional
	RuleErrors []RuleErrors `json:"ruleErrors,omitempty"`
}

// ShadowStatus is how a policy decides as a shadow beside the one that a scheduler serves. It is
// brought up to date every ten seconds at most.
type ShadowStatus struct {
	// The scheduler's name, as pods name it.
	Name string `json:"name"`

	// The generation of the policy that is the shadow.
	Generation int64 `json:"generation"`

	// The policies beside which it decides, as default@3, or default@3+lab@1 where lab serves queues
	// of its own. With others counts begin anew.
	Beside string `json:"beside"`

	// When the first cycle was in which it decided.
	Since metav1.Time `json:"since"`

	// In how many cycles it decided, and how long that took.
	Cycles ShadowCycles `json:"cycles"`

	// How many pods fare otherwise by it.
	Pods ShadowPods `json:"pods"`

	// The latest differences, one of a job and kind, newest first.
	// +listType=atomic
	// +optional
	Differences []ShadowDifference `json:"differences,omitempty"`

	// The rows of it that erred, as those of schedulers.
	// +listType=atomic
	// +optional
	RuleErrors []RuleErrors `json:"ruleErrors,omitempty"`
}

// ShadowCycles are the cycles beside which a shadow decided.
type ShadowCycles struct {
	// How many it decided.
	Decided int64 `json:"decided"`

	// In how many of them it would have bound or evicted otherwise.
	Otherwise int64 `json:"otherwise"`

	// How many passed by without it, so that it takes no more than a twentieth of the time.
	Skipped int64 `json:"skipped"`

	// How many times it took so long that it was broken off.
	BrokenOff int64 `json:"brokenOff"`

	// How long it takes on the average.
	Mean metav1.Duration `json:"mean"`

	// How long it took at most.
	Longest metav1.Duration `json:"longest"`
}

// ShadowPods are the pods that fare otherwise by a shadow.
type ShadowPods struct {
	// It would have bound them to another node, in the same cycle.
	Elsewhere int64 `json:"elsewhere"`

	// They were bound, and would have waited by it.
	Later int64 `json:"later"`

	// They waited, and would have been bound by it.
	Sooner int64 `json:"sooner"`

	// It would have evicted them, and they stayed.
	Evicted int64 `json:"evicted"`

	// They were evicted, and would have stayed by it.
	Spared int64 `json:"spared"`
}

// ShadowDifference is a pod that fares otherwise by a shadow.
type ShadowDifference struct {
	// When it was found.
	Time metav1.Time `json:"time"`

	// Elsewhere, Later, Sooner, Evicted or Spared.
	Kind string `json:"kind"`

	// The queue of its job.
	Queue string `json:"queue"`

	// The pod: NAMESPACE/NAME.
	Pod string `json:"pod"`

	// What was decided, and what the shadow would have.
	Text string `json:"text"`
}

// RuleErrors are the errors of one row. What its onError says held in its place.
type RuleErrors struct {
	// The section of the row, as predicates; attributes for an attribute.
	Site string `json:"site"`

	// The table.
	Table string `json:"table"`

	// The row.
	Rule string `json:"rule"`

	// How many evaluations erred. What is remembered is not evaluated again.
	Count int64 `json:"count"`

	// How many of them exceeded the row's budget, or came when its steps of a cycle were used up.
	// +optional
	OverBudget int64 `json:"overBudget,omitempty"`

	// What the row erred for in the last cycle in which it did, as a pod and a node.
	LastObject string `json:"lastObject"`

	// The error of that evaluation.
	LastError string `json:"lastError"`

	// When that cycle was.
	LastTime metav1.Time `json:"lastTime"`
}
