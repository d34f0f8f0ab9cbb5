package model

import (
	"iter"
	"slices"
	"time"

	"github.com/celsius-scheduler/celsius/engine/extender"
)

// Reason states why a decision was taken: the site, the rule that decided and its table, and a text for people.
type Reason struct {
	Site  string `json:"site,omitempty"`
	Table string `json:"table,omitempty"`
	Rule  string `json:"rule,omitempty"`
	// Reason is CamelCase, for conditions.
	Reason string `json:"reason,omitempty"`
	Text   string `json:"text,omitempty"`
}

// Plan contains all that a cycle decided. Binds are in the order of the decisions. A Plan shares no data with the Cluster that a later
// change could alter.
type Plan struct {
	Policy     string    `json:"policy"`
	Generation int64     `json:"generation"`
	Now        time.Time `json:"now"`

	Admits    []Admit       `json:"admits,omitempty"`
	Binds     []Bind        `json:"binds,omitempty"`
	Evicts    []Evict       `json:"evicts,omitempty"`
	Pipelines []Bind        `json:"pipelines,omitempty"` // promised the resources of releasing tasks; the next cycle decides again
	Holds     []Bind        `json:"holds,omitempty"`     // allocated for a job that waits for its pipelined tasks; not bound
	Waits     []Wait        `json:"waits,omitempty"`
	Jobs      []*JobStatus  `json:"jobs,omitempty"` // in key order; plans share unchanged entries
	Queues    []QueueStatus `json:"queues,omitempty"`
	Errors    []RuleError   `json:"errors,omitempty"`
	Warnings  []string      `json:"warnings,omitempty"`

	// Fired contains the entries of Past.Fired that this cycle set.
	Fired map[string]time.Time `json:"fired,omitempty"`

	// Asks contains the questions for extenders: what rows of the policy read and no extender answered yet, or answered too long ago.
	Asks []extender.Ask `json:"asks,omitempty"`

	// KeptUntil is when the next cycle decides differently about kept resources, although nothing else changes: resources are no longer kept,
	// or no longer from jobs of other namespaces. The zero time: nothing is kept.
	KeptUntil time.Time `json:"-"`
	// Same states that this is the plan of the previous cycle, which ran on the same state. Only Now differs.
	Same bool `json:"-"`
}

// DecideBy lowers KeptUntil to a moment. It ignores the zero time.
func (p *Plan) DecideBy(at time.Time) {
	if !at.IsZero() && (p.KeptUntil.IsZero() || at.Before(p.KeptUntil)) {
		p.KeptUntil = at
	}
}

// Remember records in the cluster for which tasks the plan evicts its victims.
func (p *Plan) Remember(c *Cluster) {
	for i := range p.Evicts {
		if e := &p.Evicts[i]; c.Jobs[e.Job] != nil && c.Jobs[e.ForJob] != nil {
			c.Past.Rivals.Evicted(e.UID, e.Job, e.ForJob, p.Now)
		}
	}
	touchJobs(c, c.Past.Rivals.Forget(p.Now))
}

// After returns the plan of two cycles in one moment: what first and p decided, and the state after p. nil: there was no first cycle.
func (p *Plan) After(first *Plan) *Plan {
	if first == nil {
		return p
	}
	both := *p
	both.Admits = slices.Concat(first.Admits, p.Admits)
	both.Binds = slices.Concat(first.Binds, p.Binds)
	both.Evicts = slices.Concat(first.Evicts, p.Evicts)
	both.Warnings = slices.Clone(first.Warnings)
	for _, text := range p.Warnings {
		if !slices.Contains(both.Warnings, text) {
			both.Warnings = append(both.Warnings, text)
		}
	}
	both.Errors = SumErrors(slices.Clone(first.Errors), p.Errors)
	return &both
}

// SumErrors adds the errors of more cycles to sum. The result contains each row once.
func SumErrors(sum, more []RuleError) []RuleError {
	for _, e := range more {
		i := slices.IndexFunc(sum, func(x RuleError) bool { return x.Site == e.Site && x.Table == e.Table && x.Rule == e.Rule })
		if i < 0 {
			sum = append(sum, e)
			continue
		}
		sum[i].Count += e.Count
		sum[i].OverBudget += e.OverBudget
		sum[i].Panicked += e.Panicked
	}
	return sum
}

// Admit admits a job to its queue: PodGroup Pending -> Inqueue.
type Admit struct {
	Job    string `json:"job"`
	Queue  string `json:"queue"`
	Reason Reason `json:"reason"`
}

// Bind binds a task to a node.
type Bind struct {
	Task  string `json:"task"`
	UID   string `json:"uid,omitempty"`
	Job   string `json:"job"`
	Queue string `json:"queue"`
	Node  string `json:"node"`
	GPUs  []int  `json:"gpus,omitempty"`
	// CPUs are the exclusive CPUs of the task, as 0,2-4.
	CPUs string `json:"cpus,omitempty"`
	// Volumes are the changes to its claims that must be done before the pod is bound.
	Volumes       []VolumeBind `json:"volumes,omitempty"`
	Action        string       `json:"action"`
	Score         float64      `json:"score"`
	Scores        []RowScore   `json:"scores,omitempty"` // by row, weighted; only if there was a choice
	RunnerUp      string       `json:"runnerUp,omitempty"`
	RunnerUpScore float64      `json:"runnerUpScore,omitempty"`
	Feasible      int          `json:"feasible"` // number of nodes to choose from
	Reason        Reason       `json:"reason"`
}

// Evict evicts a task from its node. It contains the beneficiary and the reasons.
type Evict struct {
	Task  string `json:"task"`
	UID   string `json:"uid,omitempty"`
	Job   string `json:"job"`
	Queue string `json:"queue"`
	Node  string `json:"node"`
	// For is the task that gets the resources, ForJob and ForQueue its job and queue; "" if the eviction serves no other task.
	For      string `json:"for,omitempty"`
	ForJob   string `json:"forJob,omitempty"`
	ForQueue string `json:"forQueue,omitempty"`
	Action   string `json:"action"`
	// Via is the way to evict: "" for the Eviction API, which honours disruption budgets; ViaDelete for a deletion.
	Via string `json:"via,omitempty"`
	// Reason is the first row that allows the eviction. Rows contains all rows that do, as table/rule.
	Reason Reason   `json:"reason"`
	Rows   []string `json:"rows,omitempty"`
	// Needed states why the preemptor would not fit on the node without this eviction. If NeededFor is set, Needed states it for that task.
	Needed    Reason `json:"needed,omitzero"`
	NeededFor string `json:"neededFor,omitempty"`
	// Whole states that the whole job is evicted. Needed then is what rejects the preemptor if none of its tasks were evicted.
	Whole bool `json:"whole,omitempty"`
}

// ViaDelete evicts a task regardless of its disruption budgets.
const ViaDelete = "delete"

// RowScore is the part of a score that one row gives, after normalisation, rounding and weight.
type RowScore struct {
	Table string  `json:"table"`
	Rule  string  `json:"rule"`
	Score float64 `json:"score"`
}

// Wait states why a job, or one task of it, was not placed. Task is "" for the job as a whole.
type Wait struct {
	Job    string `json:"job"`
	Task   string `json:"task,omitempty"`
	Queue  string `json:"queue"`
	Action string `json:"action,omitempty"`
	Reason Reason `json:"reason"`
	// Nodes states how many nodes each row rejected.
	Nodes []NodeCount `json:"nodes,omitempty"`
	// Place is the job's position in the order of its queue, starting at 1, among the jobs of the same step: jobs that wait for admission, or
	// for nodes. 0: it was not computed.
	Place int `json:"place,omitempty"`
	// Tried states what happened to the pods of a job in a turn that was undone; nil: there was none. Jobs with equal results share it.
	Tried *Tried `json:"-"`
	// Fared states what happened to a task in a turn of its job that was undone. The task shares the job's reason.
	Fared Fared `json:"fared,omitzero"`
	// InVain states, for each action that looked for victims, why no pod is evicted for it.
	InVain []InVain `json:"inVain,omitempty"`
}

// InVain states why an action evicts no pod for a task or a gang.
type InVain struct {
	Action string `json:"action"`
	Scope  string `json:"scope"` // the scope of the pods that it considered: policy.ScopeJob, ScopeQueue, ScopeOtherQueues
	// Nodes counts the nodes, or for a gang the pods, by reason. Nodes without a candidate do not count.
	Nodes []NodeCount `json:"nodes"`
}

// Equal reports whether both have the same content.
func (v InVain) Equal(o InVain) bool {
	return v.Action == o.Action && v.Scope == o.Scope && slices.Equal(v.Nodes, o.Nodes)
}

// Tried is a turn of a job that was undone as a whole.
type Tried struct {
	Waiting int     // number of tasks that waited
	Found   []Found // in order; all other tasks have a wait of their own, or were not tried
}

// Found is a node that was found for a task, and then rolled back. Task is the task's index among the waiting tasks, in key order.
type Found struct {
	Task int
	Node string
}

// Fared states what happened to one task in a turn that was undone. The zero value: nothing is known.
type Fared struct {
	Node    string `json:"node,omitempty"` // the node that was found for it, and rolled back
	Untried bool   `json:"untried,omitempty"`
}

// Equal reports whether both have the same content.
func (t *Tried) Equal(o *Tried) bool {
	if t == nil || o == nil {
		return t == o
	}
	return t.Waiting == o.Waiting && slices.Equal(t.Found, o.Found)
}

// Tasks iterates over the waiting tasks of a job, in key order. For each task without a wait of its own it also returns what happened to
// it.
func (w *Wait) Tasks(j *Job) iter.Seq2[*Task, Fared] {
	return func(yield func(*Task, Fared) bool) {
		known := w.Tried != nil && int64(w.Tried.Waiting) == j.Counts[Pending]+j.Counts[Pipelined]
		n, next := 0, 0 // index of the task, and index of the next task in Found
		for _, t := range j.Tasks {
			if !t.Waits() {
				continue
			}
			var fared Fared
			switch {
			case !known || t.Gated:
			case next < len(w.Tried.Found) && w.Tried.Found[next].Task == n:
				fared.Node = w.Tried.Found[next].Node
				next++
			default:
				fared.Untried = true
			}
			if n++; !yield(t, fared) {
				return
			}
		}
	}
}

// NodeCount is how many nodes one row rejected. If the message of a row depends on the node, there is one entry for each text, if they are
// few.
type NodeCount struct {
	Table string `json:"table"`
	Rule  string `json:"rule"`
	Text  string `json:"text"`
	Count int    `json:"count"`
	// Example states that Text belongs to the first of these nodes, which it names. The texts of the other nodes may differ.
	Example bool `json:"example,omitempty"`
	// Everywhere is set if the row reads nothing of nodes, so that it would also reject an added node. It contains the CamelCase reason.
	Everywhere string `json:"everywhere,omitempty"`
}

// JobStatus is the status that a PodGroup should have after the cycle (docs/volcano.md, PodGroups at the end of a cycle).
type JobStatus struct {
	Job       string     `json:"job"`
	Phase     string     `json:"phase"`
	Running   int64      `json:"running"`
	Succeeded int64      `json:"succeeded"`
	Failed    int64      `json:"failed"`
	Condition *Condition `json:"condition,omitempty"`
}

// Condition is a condition of a PodGroup.
type Condition struct {
	Type    string `json:"type"` // Unschedulable or Scheduled
	Status  string `json:"status"`
	Reason  string `json:"reason"`
	Message string `json:"message,omitempty"`
	// Cause is the row that the message comes from, as table/rule.
	Cause string `json:"-"`
}

// QueueStatus contains the allocated resources of a queue after the cycle.
type QueueStatus struct {
	Queue     string            `json:"queue"`
	Allocated map[string]string `json:"allocated,omitempty"` // as Kubernetes quantities
}

// RuleError counts how many evaluations of a row failed in the cycle, with the text of the first error. Remembered results are not
// evaluated again. So the count states how much was computed, not how much is wrong.
type RuleError struct {
	Site   string `json:"site"`
	Table  string `json:"table"`
	Rule   string `json:"rule"`
	Count  int    `json:"count"`
	Object string `json:"object"` // the object of the first failed evaluation
	Text   string `json:"text"`
	// OverBudget counts the evaluations that exceeded the row's budget, or for which no budget was left.
	OverBudget int `json:"overBudget,omitempty"`
	// Panicked counts the evaluations in which a function of the language panicked; the evaluation recovers it.
	Panicked int `json:"panicked,omitempty"`
}
