package model

import (
	"iter"
	"slices"
	"time"

	"github.com/celsius-scheduler/celsius/engine/extender"
)

// Reason says why: which site asked, which rule of which table answered, and the text for people.
type Reason struct {
	Site  string `json:"site,omitempty"`
	Table string `json:"table,omitempty"`
	Rule  string `json:"rule,omitempty"`
	// Reason is CamelCase, for conditions.
	Reason string `json:"reason,omitempty"`
	Text   string `json:"text,omitempty"`
}

// Plan is all that a cycle decided. Binds are in the order in which they were decided.
// A Plan shares nothing with the Cluster that a later change could alter.
type Plan struct {
	Policy     string    `json:"policy"`
	Generation int64     `json:"generation"`
	Now        time.Time `json:"now"`

	Admits    []Admit       `json:"admits,omitempty"`
	Binds     []Bind        `json:"binds,omitempty"`
	Evicts    []Evict       `json:"evicts,omitempty"`
	Pipelines []Bind        `json:"pipelines,omitempty"` // promised on what is being released; decided anew next cycle
	Holds     []Bind        `json:"holds,omitempty"`     // allocated for a job that waits for its pipelined rest; no bind
	Waits     []Wait        `json:"waits,omitempty"`
	Jobs      []*JobStatus  `json:"jobs,omitempty"` // in key order; plans share those that stay the same
	Queues    []QueueStatus `json:"queues,omitempty"`
	Errors    []RuleError   `json:"errors,omitempty"`
	Warnings  []string      `json:"warnings,omitempty"`

	// Fired is what of Past.Fired this cycle has set.
	Fired map[string]time.Time `json:"fired,omitempty"`

	// Asks is what extenders are to be asked: what rows of the policy read, and was not said yet, or too long ago.
	Asks []extender.Ask `json:"asks,omitempty"`

	// KeptUntil is when the next cycle decides differently about places that are kept, although nothing else changes: a place is not kept any
	// more, or not from a job of another namespace. The zero time: no place is kept.
	KeptUntil time.Time `json:"-"`
	// Same says that, but for Now, this is the plan of the cycle before, which was at the same state.
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

// After is the plan of a moment in which this one was made after another: what both did, and how things stand after the last. nil:
// there was no other.
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

// SumErrors adds the errors of more cycles to those of some, a row once.
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

// Admit lets a job into its queue: PodGroup Pending -> Inqueue.
type Admit struct {
	Job    string `json:"job"`
	Queue  string `json:"queue"`
	Reason Reason `json:"reason"`
}

// Bind puts a task on a node.
type Bind struct {
	Task  string `json:"task"`
	UID   string `json:"uid,omitempty"`
	Job   string `json:"job"`
	Queue string `json:"queue"`
	Node  string `json:"node"`
	GPUs  []int  `json:"gpus,omitempty"`
	// CPUs are those that are its own, as 0,2-4.
	CPUs string `json:"cpus,omitempty"`
	// Volumes is what has to be done for its claims before the pod is bound.
	Volumes       []VolumeBind `json:"volumes,omitempty"`
	Action        string       `json:"action"`
	Score         float64      `json:"score"`
	Scores        []RowScore   `json:"scores,omitempty"` // by row, weighted; only where there was a choice
	RunnerUp      string       `json:"runnerUp,omitempty"`
	RunnerUpScore float64      `json:"runnerUpScore,omitempty"`
	Feasible      int          `json:"feasible"` // nodes chosen from
	Reason        Reason       `json:"reason"`
}

// Evict takes a task off its node, with what it is for and why this one.
type Evict struct {
	Task  string `json:"task"`
	UID   string `json:"uid,omitempty"`
	Job   string `json:"job"`
	Queue string `json:"queue"`
	Node  string `json:"node"`
	// For is the task for which room is made, ForJob and ForQueue its job and queue; "" where the task goes for no other's sake.
	For      string `json:"for,omitempty"`
	ForJob   string `json:"forJob,omitempty"`
	ForQueue string `json:"forQueue,omitempty"`
	Action   string `json:"action"`
	// Via is how: "" by the Eviction API, which honours disruption budgets, ViaDelete by deletion.
	Via string `json:"via,omitempty"`
	// Reason is the first row that lets it go; Rows are all that do, as table/rule.
	Reason Reason   `json:"reason"`
	Rows   []string `json:"rows,omitempty"`
	// Needed is why the preemptor would have no place on the node without this eviction; if NeededFor is set, why that task would have
	// none.
	Needed    Reason `json:"needed,omitzero"`
	NeededFor string `json:"neededFor,omitempty"`
	// Whole says that it goes with all others of its job: Needed is what refuses the other, were they all spared.
	Whole bool `json:"whole,omitempty"`
}

// ViaDelete is how a task is evicted that is to go whatever its disruption budgets say.
const ViaDelete = "delete"

// RowScore is one row's part of a score, after normalisation, rounding and weight.
type RowScore struct {
	Table string  `json:"table"`
	Rule  string  `json:"rule"`
	Score float64 `json:"score"`
}

// Wait says why a job, or one task of it, was left. Task is "" for the job as a whole.
type Wait struct {
	Job    string `json:"job"`
	Task   string `json:"task,omitempty"`
	Queue  string `json:"queue"`
	Action string `json:"action,omitempty"`
	Reason Reason `json:"reason"`
	// Nodes is a histogram: how many nodes each row rejected.
	Nodes []NodeCount `json:"nodes,omitempty"`
	// Place is the job's place in its queue's order, 1 the first, among those that the same step comes to: who wait to be let in, or
	// for nodes. 0 where it was not asked.
	Place int `json:"place,omitempty"`
	// Tried is how the pods of a job fared in a turn that was undone; nil: there was none. Jobs that fared alike share it.
	Tried *Tried `json:"-"`
	// Fared is how a task fared in such a turn of its job, whose reason it shares.
	Fared Fared `json:"fared,omitzero"`
	// InVain states, for each action that looked for victims, why no pod is evicted for it.
	InVain []InVain `json:"inVain,omitempty"`
}

// InVain is why an action has nobody go for a task, or for a gang.
type InVain struct {
	Action string `json:"action"`
	Scope  string `json:"scope"` // whose pods it looked at: policy.ScopeJob, ScopeQueue, ScopeOtherQueues
	// Nodes counts the nodes, or, for a gang, the pods of each kind. Nodes without a candidate are not counted.
	Nodes []NodeCount `json:"nodes"`
}

// Equal says whether both tell the same.
func (v InVain) Equal(o InVain) bool {
	return v.Action == o.Action && v.Scope == o.Scope && slices.Equal(v.Nodes, o.Nodes)
}

// Tried is a turn of a job that was undone as a whole.
type Tried struct {
	Waiting int     // tasks that waited
	Found   []Found // in order; the others are those with a wait of their own, and those that were not tried
}

// Found is a node that was found for a task, and rolled back. The task is told by its place among those that wait, in key order.
type Found struct {
	Task int
	Node string
}

// Fared is how one task fared in a turn that was undone. The zero value: nothing is known.
type Fared struct {
	Node    string `json:"node,omitempty"` // that was found for it, and rolled back
	Untried bool   `json:"untried,omitempty"`
}

// Equal says whether both tell the same.
func (t *Tried) Equal(o *Tried) bool {
	if t == nil || o == nil {
		return t == o
	}
	return t.Waiting == o.Waiting && slices.Equal(t.Found, o.Found)
}

// Tasks goes through the tasks of a job that waits, in key order, with how each fared that has no wait of its own.
func (w *Wait) Tasks(j *Job) iter.Seq2[*Task, Fared] {
	return func(yield func(*Task, Fared) bool) {
		known := w.Tried != nil && int64(w.Tried.Waiting) == j.Counts[Pending]+j.Counts[Pipelined]
		n, next := 0, 0 // the task's place, and that of the next one in Found
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

// NodeCount is how many nodes one row rejected. A row whose message tells of the node has one for each text, if these are few.
type NodeCount struct {
	Table string `json:"table"`
	Rule  string `json:"rule"`
	Text  string `json:"text"`
	Count int    `json:"count"`
	// Example says that the text is that of the first of these nodes, which it names, or of which others have other texts.
	Example bool `json:"example,omitempty"`
	// Everywhere is set where the row reads nothing of nodes, so that it would refuse an added node too. It holds the CamelCase reason.
	Everywhere string `json:"everywhere,omitempty"`
}

// JobStatus is what a PodGroup's status should be after the cycle (docs/volcano.md, PodGroups at the end of a cycle).
type JobStatus struct {
	Job       string     `json:"job"`
	Phase     string     `json:"phase"`
	Running   int64      `json:"running"`
	Succeeded int64      `json:"succeeded"`
	Failed    int64      `json:"failed"`
	Condition *Condition `json:"condition,omitempty"`
}

// Condition is a PodGroup's condition.
type Condition struct {
	Type    string `json:"type"` // Unschedulable or Scheduled
	Status  string `json:"status"`
	Reason  string `json:"reason"`
	Message string `json:"message,omitempty"`
	// Cause is the row that the message is of, as table/rule.
	Cause string `json:"-"`
}

// QueueStatus is what a queue holds after the cycle.
type QueueStatus struct {
	Queue     string            `json:"queue"`
	Allocated map[string]string `json:"allocated,omitempty"` // as Kubernetes quantities
}

// RuleError counts how many evaluations of a row erred in the cycle, with the first error's text. What is
// remembered is not evaluated again, so the count says how much was computed, not how much is wrong.
type RuleError struct {
	Site   string `json:"site"`
	Table  string `json:"table"`
	Rule   string `json:"rule"`
	Count  int    `json:"count"`
	Object string `json:"object"` // what it was first evaluated for
	Text   string `json:"text"`
	// OverBudget says how many of them are evaluations that exceeded the row's budget, or that there was none left for.
	OverBudget int `json:"overBudget,omitempty"`
	// Panicked counts the evaluations in which a function of the language panicked; the evaluation recovers it.
	Panicked int `json:"panicked,omitempty"`
}
