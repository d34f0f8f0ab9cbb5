// Package proof checks evictions after they were decided. It does not use the search that found them: it places the promised tasks again,
// treats all victims as gone, and asks the policy whether the reasons that the plan states are true.
//
//	proof.go     a cycle: what is recorded before it, and the plan that is checked after it
//	promises.go  the checks of each promise with evictions
//	progress.go  whether evictions make progress
//	stable.go    whether victims would take the resources back
//	gangs.go     the same for promises to several tasks of a job at once, and for gangs that are evicted as a whole
package proof

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/engine/reference/answers"
	"github.com/celsius-scheduler/celsius/engine/reference/values"
)

// Kind is the type of a violation.
type Kind string

// Kinds of violations.
const (
	// Fit: a task does not fit the node that it is promised, even with all victims gone, or its job would not start with it.
	Fit Kind = "fit"
	// Lost: a step that evicts promised a task a node without victims, and the task no longer fits there.
	Lost Kind = "lost"
	// Needed: all promises would stay valid without this eviction.
	Needed Kind = "needed"
	// Stable: once it is pending again, the victim could evict its preemptor, or another task that was promised a place on that node.
	Stable Kind = "stable"
	// Legal: no combination of rows permits the eviction by the tiers of the policy, vetoes included.
	Legal Kind = "legal"
	// Row: a row that the plan names did not permit the eviction when the resources were freed. By the end of the cycle other rows may permit
	// it.
	Row Kind = "row"
	// Certificate: the plan does not state for which task, by which rows and why the victim is evicted, or what it states is not true.
	Certificate Kind = "certificate"
	// AtEnd: what the plan states about a victim was true when the victim was chosen. Later evictions of the same action made it untrue.
	AtEnd Kind = "atEnd"
	// Candidate: the step does not apply to such victims, or the victim is protected for now.
	Candidate Kind = "candidate"
	// BestEffort: a task that requests nothing displaces a task that requests something, which the step does not allow.
	BestEffort Kind = "bestEffort"
	// Foreign: the victim belongs to another scheduler, or holds no resources.
	Foreign Kind = "foreign"
	// Twice: the victim is already evicted.
	Twice Kind = "twice"
	// Untold: a task is evicted, but the plan does not list it.
	Untold Kind = "untold"
	// Gang: a gang is evicted below its minimum, but not as a whole, under a policy that keeps gangs whole.
	Gang Kind = "gang"
	// Progress: by the order of a table that permits the eviction by comparing the two, the victim comes before the task. Or the task's queue
	// may not evict tasks for its promise.
	Progress Kind = "progress"
	// Idle: the task fits a node where no eviction is necessary.
	Idle Kind = "idle"
)

// Violation is a fault of an eviction, or of the promise for which pods are evicted.
type Violation struct {
	Kind   Kind
	Task   string // the pod that gets the resources; "" if unknown
	Victim string // "" if the violation belongs to the promise as a whole
	Text   string
}

func (v Violation) String() string {
	text := string(v.Kind) + ": "
	if v.Victim != "" {
		text += "pod " + v.Victim + " goes"
		if v.Task != "" {
			text += " for " + v.Task
		}
	} else {
		text += "room is made for " + v.Task
	}
	return text + ", but " + v.Text
}

// Run checks one cycle after the other. The zero value is ready.
type Run struct {
	// Enough reports whether to stop checking. It is called from time to time; nil: everything is checked.
	Enough  func() bool
	settled values.Settled
}

// Decide computes a plan, as an engine does.
type Decide = func(c *model.Cluster, p *policy.Policy, now time.Time) *model.Plan

// Checked returns a Decide that checks each plan, and reports violations to tell. The checks do not change the cluster.
func (r *Run) Checked(decide Decide, tell func(*model.Plan, []Violation)) Decide {
	return func(c *model.Cluster, p *policy.Policy, now time.Time) *model.Plan {
		x := r.Begin(c, p, now)
		plan := decide(c, p, now)
		if wrong := x.Check(plan); len(wrong) > 0 {
			tell(plan, wrong)
		}
		return plan
	}
}

// Cycle is one cycle whose plan is checked.
type Cycle struct {
	*answers.Answers
	c     *model.Cluster
	p     *policy.Policy
	now   time.Time
	began []model.Status       // by slot: the status before the cycle
	bound map[*model.Task]bool // the tasks that the cycle bound
	// Records of earlier cycles that rows read. After the cycle, model.Past contains those of this cycle.
	stuck    map[string]bool
	exceeded map[string]time.Time
	fired    map[string]time.Time
	plan     *model.Plan
	txn      *model.Txn
	wrong    []Violation
	patience
}

// patience determines when to stop checking.
type patience struct {
	enough func() bool // nil: the check is never cut short
	cut    bool        // the checks stopped before the end
}

func (x *patience) stops() bool {
	x.cut = x.cut || x.enough != nil && x.enough()
	return x.cut
}

// Cut reports whether the checks stopped before the end.
func (x *patience) Cut() bool { return x.cut }

// Begin records, before a cycle, what cannot be seen after it: which tasks are already evicted, and values that settle as the cycle begins.
func (r *Run) Begin(c *model.Cluster, p *policy.Policy, now time.Time) *Cycle {
	if r.settled == nil {
		r.settled = values.Settled{}
	}
	x := &Cycle{
		c: c, p: p, now: now, bound: map[*model.Task]bool{}, began: make([]model.Status, c.Slots.Tasks.Len()),
		patience: patience{enough: r.Enough}, stuck: maps.Clone(c.Past.Stuck), exceeded: maps.Clone(c.Past.Exceeded),
		fired: maps.Clone(c.Past.Fired),
	}
	for _, t := range c.Tasks {
		x.began[t.Slot] = t.Status
	}
	x.Answers = answers.New(c, p, now, r.settled)
	x.settle()
	return x
}

// settle computes the values that settle as the cycle begins, and those that settle at the start of a run. They cannot be computed later.
func (x *Cycle) settle() {
	for _, at := range []string{"start", "cycle"} {
		for _, a := range x.p.Attributes() {
			if a.Settle != at {
				continue
			}
			for _, owner := range x.World().Owners(a.On) {
				if at == "cycle" && x.stops() {
					return
				}
				x.Attribute(a, owner)
			}
		}
	}
}

// was returns the status that a task had before the cycle evicted it.
func (x *Cycle) was(t *model.Task) model.Status {
	if x.bound[t] {
		return model.Binding
	}
	return x.began[t.Slot]
}

// Check checks the plan of the cycle, with the cluster as the cycle left it: evicted tasks are Releasing, and promised tasks are Pending
// again. Afterwards it restores the cluster. If the checks stop early, the violations found until then are valid.
func (x *Cycle) Check(plan *model.Plan) []Violation {
	if x.cut {
		return nil
	}
	stuck, exceeded := x.c.Past.Stuck, x.c.Past.Exceeded
	x.c.Past.Stuck, x.c.Past.Exceeded = x.stuck, x.exceeded
	defer func() { x.c.Past.Stuck, x.c.Past.Exceeded = stuck, exceeded }()
	x.wrong, x.plan, x.txn = nil, plan, x.c.Begin()
	victims := x.victims(plan)
	if len(plan.Evicts) == 0 {
		return x.wrong
	}
	for _, b := range plan.Binds {
		if t := x.c.Tasks[b.Task]; t != nil && x.was(t) == model.Pending {
			x.bound[t] = true
		}
	}
	for _, t := range x.c.TasksByKey() {
		if t.Status == model.Releasing && t.Node != model.NoNode {
			x.txn.Leave(t)
		}
	}
	x.recall()
	x.putBack(plan.Holds, x.txn.Allocate)
	victims = naming{x}.check(victims)
	x.gangs(victims)
	promises := x.promises(plan, victims)
	x.putBack(plan.Pipelines, x.txn.Pipeline)
	x.checkPromises(promises)
	x.txn.Rollback(0)
	x.c.Turn = nil
	return x.wrong
}

// recall restores for jobs what the end of the cycle reset: whether the cycle admitted them, and how many of their tasks it bound.
func (x *Cycle) recall() {
	for _, a := range x.plan.Admits {
		if j := x.c.Jobs[a.Job]; j != nil {
			x.txn.Recall(j, true, j.PlacedNow)
		}
	}
	for t := range x.bound {
		x.txn.Recall(t.Job, t.Job.AdmittedNow, t.Job.PlacedNow+1)
	}
}

// handle records which pod is checked: the preemptor if there is one, because without it the eviction is not needed; otherwise the victim.
func (x *Cycle) handle(preemptor string, victim *model.Task) {
	if t := x.c.Tasks[preemptor]; t != nil {
		victim = t
	}
	if victim != nil {
		x.c.Handle(victim)
	}
}

func (x *Cycle) violated(kind Kind, task, victim, text string, args ...any) {
	x.wrong = append(x.wrong, Violation{kind, task, victim, fmt.Sprintf(text, args...)})
}

// victims returns the evictions of a plan that can be checked, and reports violations of each eviction alone.
func (x *Cycle) victims(plan *model.Plan) (out []victim) {
	told := map[*model.Task]bool{}
	for place, e := range plan.Evicts {
		t := x.c.Tasks[e.Task]
		x.handle(e.For, t)
		switch {
		case t == nil:
			x.violated(Foreign, e.For, e.Task, "there is no such pod")
			continue
		case told[t] || x.was(t) == model.Releasing:
			x.violated(Twice, e.For, e.Task, "it goes already")
			continue
		case t.Foreign || t.Job.Queue == nil:
			x.violated(Foreign, e.For, e.Task, "it is not this scheduler's, or has no queue")
			told[t] = true
			continue
		case t.Status != model.Releasing || t.Node == model.NoNode:
			x.violated(Untold, e.For, e.Task, "the cluster has it %s", t.Status)
			continue
		case t.NodeName != e.Node:
			x.violated(Certificate, e.For, e.Task, "it is on node %s, not on %s", t.NodeName, e.Node)
		}
		told[t] = true
		out = append(out, victim{t, e, place})
	}
	for _, t := range x.c.TasksByKey() {
		if t.Status == model.Releasing && x.was(t) != model.Releasing && !told[t] {
			x.violated(Untold, "", t.Key, "the plan does not tell of it")
		}
	}
	return out
}

// gangs finds gangs that are evicted below their minimum, but not as a whole.
func (x *Cycle) gangs(victims []victim) {
	taken := map[*model.Job]int64{}
	for _, v := range victims {
		if x.was(v.task).HoldsResources() {
			taken[v.task.Job]++
		}
	}
	for _, v := range victims {
		j := v.task.Job
		left, kept := j.Ready(), x.keepsGangs() || x.onlyByGangs(victims, j)
		if kept && left < j.MinMember && left+taken[j] >= j.MinMember && j.Holding() > 0 {
			x.violated(Gang, v.evict.For, v.task.Key, "of the %d pods of %s that must be there together %d are left", j.MinMember, j.Key, left)
		}
	}
}

// keepsGangs reports whether the policy has the rows with which the table gang keeps gangs whole, as vetoes.
func (x *Cycle) keepsGangs() bool {
	return slices.ContainsFunc([]string{policy.Preemptable, policy.Reclaimable}, func(site string) bool {
		return slices.ContainsFunc(x.p.Rules(site), func(r *policy.Rule) bool { return r.Veto && r.Name == "keep-gang-whole" })
	})
}

// putBack repeats what ended with the cycle, as far as possible.
func (x *Cycle) putBack(list []model.Bind, do func(*model.Task, int32, []int)) {
	for _, b := range list {
		t, row := x.c.Tasks[b.Task], x.row(b.Node)
		if t == nil || t.Status != model.Pending || row == model.NoNode {
			continue // reported where it matters
		}
		do(t, row, b.GPUs)
		x.txn.Reserve(t, b.Volumes)
		if err := x.txn.Pin(t, b.CPUs); err != nil {
			x.violated(Fit, b.Task, "", "%v", err)
		}
	}
}

func (x *Cycle) row(node string) int32 {
	if row, ok := x.c.Nodes.Index[node]; ok {
		return row
	}
	return model.NoNode
}
