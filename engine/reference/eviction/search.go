// Package eviction frees resources for a task. It decides on which node, by evicting which pods, and why each of these evictions is
// necessary.
package eviction

import (
	"slices"

	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/engine/reference/answers"
	"github.com/celsius-scheduler/celsius/engine/report"
	"github.com/celsius-scheduler/celsius/engine/subsets"
)

// Search frees resources for the tasks of one step.
type Search struct {
	*answers.Answers
	Cluster *model.Cluster
	Policy  *policy.Policy
	Txn     *model.Txn
	Step    *policy.Step
	Action  string
	Kept    []Room              // the promises of this cycle so far
	denied  map[*model.Job]bool // jobs of which the rows protected some tasks in a turn, although a task would fit if they were evicted
	barred  map[barred]bool
	turns   map[*model.Job]int // number of kept turns in this step
	// Served are the jobs for which pods are evicted, and the jobs that still wait for resources that evicted pods freed. Their own pods
	// are not evicted for other jobs meanwhile.
	Served map[*model.Job]bool
	// Waits receives the reasons why no pod is evicted for a task. nil: the reasons are dropped, as during a trial.
	Waits *report.Waits
	vain  report.InVain
	sets  int // number of sets of candidates that may still be tried for the present task or gang
}

// Room is the promise of a node to a task, and the victims for it.
type Room struct {
	Task    *model.Task
	Bind    model.Bind
	Row     int32
	Victims []Victim // in the order in which they were evicted
	// Placing states that the resources are free now, no pod is evicted, and a later step would place the task.
	Placing bool
	step    *policy.Step // the step that found it
}

// Victim is a task that is evicted for another.
type Victim struct {
	answers.Victim
	Needed model.Reason // why the promise of at would fail without this eviction
	at     *model.Task
	was    model.Status
}

// LookAhead treats all releasing tasks as gone until LookBack, so that promises see the nodes as they will be.
func (x *Search) LookAhead() {
	x.barred, x.turns = map[barred]bool{}, map[*model.Job]int{}
	for _, t := range x.Cluster.TasksByKey() {
		if t.Status == model.Releasing && t.Node != model.NoNode {
			x.Txn.Leave(t)
		}
	}
}

// LookBack ends LookAhead: it treats these tasks as Releasing again.
func (x *Search) LookBack() {
	for _, t := range x.Cluster.TasksByKey() {
		if t.Status == model.Gone {
			x.Txn.Return(t, model.Releasing)
		}
	}
}

// RoomFor finds a node for a task: without evictions if possible, otherwise on the first node where evictions free enough resources. If the
// step commits by task, the result is stable.
func (x *Search) RoomFor(t *model.Task) (r Room, found bool) {
	before := x.Txn.Mark()
	for ok, again, tries := false, true, 0; !ok && again && tries < policy.MostUnstable; tries++ {
		x.Txn.Rollback(before)
		if r, found = x.roomFor(t); !found || x.Step.Word(policy.KeyCommit) != "task" {
			break
		}
		ok, again = x.Stable([]Room{r})
		found = ok
	}
	if !found {
		x.Txn.Rollback(before)
	}
	x.tellInVain(t.Job, t, found)
	return r, found
}

// tellInVain reports why no pod is evicted for a task, or for a gang. If a node was found, it clears the reason.
func (x *Search) tellInVain(j *model.Job, t *model.Task, found bool) {
	if found {
		x.vain.Reset()
	}
	if x.Waits != nil {
		x.Waits.SetInVain(j, t, x.vain.Told(x.Action, x.Step.Word(policy.KeyScope)))
	}
}

func (x *Search) roomFor(t *model.Task) (r Room, found bool) {
	x.vain.Reset()
	x.sets = subsets.Most
	if !x.All(policy.TaskFeasible, x.Frame().OfTask(t)).Yes {
		return Room{}, false
	}
	before := x.Txn.Mark()
	if r, found = x.onAny(t, x.roomThere); found && x.Step.Word(policy.KeyScope) == policy.ScopeJob {
		x.Txn.Rollback(before)
		return Room{}, false // a step with the scope of its own job cannot provide it
	}
	if found {
		return r, true
	}
	if x.Step.Word(policy.KeyNodes) == policy.ByCost {
		return x.cheapest(t)
	}
	return x.onAny(t, x.roomMade)
}

// Renew promises a task its nominated node again, if the task may still have it.
func (x *Search) Renew(t *model.Task) (r Room, ok bool) {
	row, ok := x.Cluster.Nodes.Index[t.NominatedNode]
	if !ok || !t.Job.Seated() || t.Job.Phase == model.PhasePending || !x.Cluster.Nodes.Rows[row].Ready ||
		!x.All(policy.JobValid, x.Frame().OfJob(t.Job)).Yes || !x.All(policy.TaskFeasible, x.Frame().OfTask(t)).Yes ||
		!x.All(policy.Allocatable, x.Frame().OfTask(t)).Yes {
		return Room{}, false
	}
	if _, refuses := x.RefusesLater(t, row); refuses {
		return Room{}, false
	}
	r, ok = x.promise(t, row, nil)
	r.Bind.Reason = report.Kept()
	return r, ok
}

// onAny calls try for the nodes in the order of the step.
func (x *Search) onAny(t *model.Task, try func(*model.Task, int32) (Room, bool)) (r Room, found bool) {
	for _, row := range x.nodes(t) {
		before := x.Txn.Mark()
		if r, found = try(t, row); found {
			return r, true
		}
		x.Txn.Rollback(before)
	}
	return Room{}, false
}

// nodes returns the nodes where resources for a task are or can be freed, in the order of the step.
func (x *Search) nodes(t *model.Task) []int32 {
	nodes := slices.DeleteFunc(slices.Clone(x.Cluster.Nodes.ByOrder()), func(row int32) bool { return !x.Curable(t, row) })
	if x.Step.Word(policy.KeyNodes) == policy.ByOrder {
		return nodes
	}
	return x.ByScore(t, nodes)
}

// roomThere promises a node where no eviction is necessary.
func (x *Search) roomThere(t *model.Task, row int32) (r Room, found bool) {
	if _, refuses := x.refusesForce(t, row); refuses {
		return Room{}, false
	}
	placing := x.thereNow(t, row) && x.placedLater(t)
	r, found = x.promise(t, row, nil)
	r.Placing = placing
	return r, found
}

// thereNow reports whether a node has enough free resources for a task, in addition to those of the tasks that are treated as gone.
func (x *Search) thereNow(t *model.Task, row int32) bool {
	asked := t.Request
	for _, o := range x.Cluster.TasksByKey() {
		if o.Status == model.Gone && o.NodeName == x.Cluster.Nodes.Rows[row].Name {
			if asked = asked.Add(o.Request); t.GPUCount > 0 && o.GPUCount > 0 || len(t.Pins) > 0 && len(o.Pins) > 0 {
				return false
			}
		}
	}
	return x.Cluster.Nodes.FitsIdle(asked, row)
}

// placedLater reports whether a later step would place a task if resources are free now.
func (x *Search) placedLater(t *model.Task) bool {
	return slices.ContainsFunc(x.Policy.PlacingAfter(x.Step), func(s *policy.Step) bool { return x.about(s, t) })
}

// about reports whether a step would consider a waiting task.
func (x *Search) about(s *policy.Step, t *model.Task) bool {
	return x.Condition(s.Condition(policy.KeyWhen), x.Frame(), "") && x.JobPasses(s, t.Job) && x.TaskPasses(s, t)
}

// roomMade evicts one task after the other until the task fits. It then undoes the evictions that are not necessary, and promises the node.
func (x *Search) roomMade(t *model.Task, row int32) (r Room, found bool) {
	candidates, back := x.candidates(t, row)
	start := x.Txn.Mark()
	lets, kept := x.Victims(x.question(t), candidates) // the first to be evicted first
	gone, found := x.takeAway(t, row, lets, false)
	var why model.Reason // why the node refuses the task although all candidates are evicted
	if !found {
		why, _ = x.refusesForce(t, row)
		x.Txn.Rollback(start)
		gone, found = x.takeAway(t, row, lets, true)
	}
	fits := found // the task would fit if the rows permitted the evictions
	if found {
		gone, found = x.permitted(t, x.needed(t, row, gone))
	}
	if !found && x.enough(t, row, candidates) && (fits || len(lets) < len(candidates)) {
		x.Txn.Rollback(start)
		gone, found = x.anySet(t, row, candidates)
	}
	if found {
		if r, found = x.promise(t, row, gone); !found {
			x.vain.NoVolumes()
		}
		return r, found
	}
	x.Txn.Rollback(start)
	if fits {
		x.vain.OnlyTogether()
		return Room{}, false
	}
	switch {
	case back:
		x.vain.TakenBack()
	case len(candidates) == 0:
	case !x.enough(t, row, candidates):
		x.vain.TooLittle()
	case len(lets) == len(candidates):
		x.vain.StillRefused(why)
	default:
		table, rule := kept.Names()
		x.vain.Kept(x.Step.Word(policy.KeyVictims), table, rule)
	}
	x.deny(t, row, candidates, lets)
	return Room{}, false
}

// needed returns the victims that the task needs. It undoes each eviction without which the task still fits, beginning with the last one.
func (x *Search) needed(t *model.Task, row int32, gone []Victim) []Victim {
	for before := 0; before != len(gone); {
		before = len(gone)
		for i, v := range slices.Backward(gone) {
			x.Txn.Return(v.Task, v.was)
			if _, refuses := x.refusesForce(t, row); refuses {
				x.Txn.Leave(v.Task)
			} else {
				gone = slices.Delete(gone, i, i+1)
			}
		}
	}
	return gone
}

// anySet evicts the first set of candidates that meets three conditions: the task fits, it needs every eviction of the set, and the rows
// permit these evictions together. One by one, the rows may permit evictions that do not help, and then refuse the evictions that do.
func (x *Search) anySet(t *model.Task, row int32, candidates []*model.Task) (gone []Victim, found bool) {
	if x.sets == 0 {
		return nil, false
	}
	var may []*model.Task // the candidates that the rows permit to evict alone
	for _, v := range candidates {
		if lets, _ := x.Victims(x.question(t), []*model.Task{v}); len(lets) > 0 {
			may = append(may, v)
		}
	}
	if !x.enough(t, row, may) {
		return nil, false
	}
	start := x.Txn.Mark()
	subsets.Each(len(may), &x.sets, func(set []int) (done, without bool) {
		x.Txn.Rollback(start)
		gone = nil
		for _, i := range set {
			gone = append(gone, Victim{Victim: answers.Victim{Task: may[i]}, was: may[i].Status})
			x.Txn.Leave(may[i])
		}
		if _, refuses := x.refusesForce(t, row); refuses {
			return false, false
		}
		gone, found = x.permitted(t, gone)
		return found, true
	})
	return gone, found
}

// takeAway evicts one pod after the other until the task fits. If choosy is true, it spares each pod whose eviction makes a predicate
// refuse the node. The task may have to be on the same node as that pod.
func (x *Search) takeAway(t *model.Task, row int32, lets []answers.Victim, choosy bool) (gone []Victim, found bool) {
	for _, v := range lets {
		before, was := x.RowRefuses(t, row), v.Task.Status
		x.Txn.Leave(v.Task)
		if choosy && !before && x.RowRefuses(t, row) {
			x.Txn.Return(v.Task, was)
			continue
		}
		gone = append(gone, Victim{Victim: v, was: was})
		if _, refuses := x.refusesForce(t, row); !refuses {
			return gone, true
		}
	}
	return nil, false
}

// candidates returns the tasks on a node that may be evicted for a task, before the rows are evaluated. back reports that other tasks would
// qualify, but would take the resources back.
func (x *Search) candidates(t *model.Task, row int32) (out []*model.Task, back bool) {
	for _, v := range x.Cluster.Nodes.Tasks[row] {
		if x.isCandidate(t, v) {
			out = append(out, v)
		}
	}
	all := len(out)
	out = slices.DeleteFunc(out, func(v *model.Task) bool { return x.barred[barred{v, t.Job}] })
	return out, len(out) < all
}

// enough reports whether a task could fit if all candidates were evicted, by resource amounts alone.
func (x *Search) enough(t *model.Task, row int32, candidates []*model.Task) bool {
	for _, dim := range x.Cluster.Nodes.Dims() {
		room := x.Cluster.Nodes.FutureIdle(dim, row)
		for _, v := range candidates {
			room += v.Request.Get(dim)
		}
		if t.Request.Has(dim) && t.Request[dim] > room+model.Slack {
			return false
		}
	}
	return true
}

// isCandidate reports whether the rows are evaluated for a task at all. They are not if its eviction was refused a short while ago.
func (x *Search) isCandidate(t, v *model.Task) bool {
	scope := x.Step.Word(policy.KeyScope)
	return v.MayGo() && inScope(scope, t, v) && !v.Spared.After(x.World().Now.Time) && (t.Job == v.Job || !x.Served[v.Job]) &&
		x.Condition(x.Step.Condition(policy.KeyCandidates), x.Frame().OfVictim(t, v, scope), "pod "+v.Key+": ")
}

// question asks which tasks may be evicted for a task.
func (x *Search) question(t *model.Task) answers.Question {
	return answers.Question{Site: x.Step.Word(policy.KeyVictims), Scope: x.Step.Word(policy.KeyScope), For: t, Txn: x.Txn}
}

// inScope reports whether the scope of a step contains a task that may be evicted for another.
func inScope(scope string, t, v *model.Task) bool {
	switch scope {
	case policy.ScopeJob:
		return v.Job == t.Job
	case policy.ScopeQueue:
		return v.Job != t.Job && v.Job.Queue == t.Job.Queue
	}
	return v.Job.Queue != t.Job.Queue
}

// permitted evaluates the rows once more for exactly the tasks that are evicted in the end. The rows must allow all of them.
func (x *Search) permitted(t *model.Task, gone []Victim) (by []Victim, ok bool) {
	var tasks []*model.Task
	for _, v := range gone {
		x.Txn.Return(v.Task, v.was)
		tasks = append(tasks, v.Task)
	}
	lets, _ := x.Victims(x.question(t), tasks)
	for i, v := range gone {
		at := slices.IndexFunc(lets, func(l answers.Victim) bool { return l.Task == v.Task })
		if at < 0 {
			return nil, false
		}
		gone[i].Victim = lets[at]
		x.Txn.Leave(v.Task)
	}
	return gone, true
}

// refusesForce states why a task may not have the resources that are or will be free on a node.
func (x *Search) refusesForce(t *model.Task, row int32) (why model.Reason, refuses bool) {
	if x.Step.Gate(policy.Allocatable) {
		if a := x.All(policy.Allocatable, x.Frame().OfTask(t)); !a.Yes {
			return a.Reason(), true
		}
	}
	return x.RefusesLater(t, row)
}

// promise promises a node to a task. victims are evicted for it.
func (x *Search) promise(t *model.Task, row int32, victims []Victim) (r Room, ok bool) {
	volumes, err := x.World().Bindings(t, row)
	if err != nil {
		return Room{}, false
	}
	b := model.Bind{Node: x.Cluster.Nodes.Rows[row].Name, Feasible: 1, Reason: report.RoomMade(len(victims))}
	b.Task, b.UID, b.Job, b.Queue, b.Action = t.Key, t.UID, t.Job.Key, t.Job.QueueName, x.Action
	b.GPUs, b.Volumes = x.Devices(t, answers.Choice{Row: row, Later: true}), volumes
	x.Txn.Pipeline(t, row, b.GPUs)
	x.Txn.Reserve(t, volumes)
	b.CPUs = t.CPUs.String()
	return Room{Task: t, Bind: b, Row: row, Victims: victims, step: x.Step}, true
}

// Keep keeps the promises of a turn, and counts the turn.
func (x *Search) Keep(done ...Room) {
	x.Kept = append(x.Kept, done...)
	x.turns[done[0].Task.Job]++
	for _, r := range done {
		x.Served[r.Task.Job] = x.Served[r.Task.Job] || len(r.Victims) > 0
	}
}

// GiveBack undoes evictions that some promises do not need together, the last victim first. A promise may move to another node whose
// resources others free. An eviction may be unnecessary because of the other evictions on the same node.
func (x *Search) GiveBack(done []Room) []Room {
	for i := len(done) - 1; i >= 0 && len(done) > 1; i-- {
		if len(done[i].Victims) > 0 && done[i].step.Word(policy.KeyScope) != policy.ScopeJob {
			done = x.elsewhere(done, i)
		}
	}
	return x.spare(done)
}

// elsewhere returns the promises with one of them moved to another place, if there is such a place. The place needs no eviction, and no
// task would take it back.
func (x *Search) elsewhere(done []Room, which int) []Room {
	less, before, r := slices.Clone(done), x.Txn.Mark(), done[which]
	for _, o := range done {
		if o.Row == r.Row {
			x.Txn.Unplace(o.Task)
		}
	}
	for _, v := range r.Victims {
		x.Txn.Return(v.Task, v.was)
	}
	ok := true
	for i, o := range done { // promises on the same node may depend on these victims
		if o.Row == r.Row && i != which && ok {
			_, refuses := x.asOf(o.step).refusesForce(o.Task, o.Row)
			if ok = !refuses; ok {
				less[i], ok = x.again(o, o.Victims)
			}
		}
	}
	if ok {
		less[which], ok = x.asOf(r.step).onAny(r.Task, x.asOf(r.step).roomThere)
		less[which].Bind.Action = r.Bind.Action
	}
	if !ok || x.gateRefuses(less) != nil || len(x.takers(less, less[which].Row)) > 0 {
		x.Txn.Rollback(before)
		return done
	}
	return less
}

// spare undoes evictions that the promises on their node do not need, the last victim first, until all others are necessary.
func (x *Search) spare(done []Room) []Room {
	for before := -1; before != going(done); {
		before = going(done)
		for i := range slices.Backward(done) {
			for k := range slices.Backward(done[i].Victims) {
				done = x.without(done, i, k)
			}
		}
	}
	return done
}

// going returns the number of victims.
func going(done []Room) (n int) {
	for _, r := range done {
		n += len(r.Victims)
	}
	return n
}

// without undoes the eviction of one victim, if the promises on its node and all gates still allow it. Otherwise it records for which task
// the victim is needed.
func (x *Search) without(done []Room, of, which int) []Room {
	less, before, v := slices.Clone(done), x.Txn.Mark(), &done[of].Victims[which]
	var there []int // the promises on the node
	for i, r := range done {
		if r.Row == done[of].Row {
			there = append(there, i)
			x.Txn.Unplace(r.Task)
		}
	}
	x.Txn.Return(v.Task, v.was)
	less[of].Victims = slices.Delete(slices.Clone(done[of].Victims), which, which+1)
	for _, i := range there {
		r := done[i]
		why, refuses := x.asOf(r.step).refusesForce(r.Task, r.Row)
		ok := false
		if !refuses {
			less[i], ok = x.again(r, less[i].Victims)
		}
		if !ok {
			x.Txn.Rollback(before)
			x.isNeeded(&done[of], v, r.Task, why)
			return done
		}
	}
	if r := x.gateRefuses(less); r != nil {
		why := x.gateAnswer(r).Reason()
		x.Txn.Rollback(before)
		x.isNeeded(&done[of], v, r.Task, why)
		return done
	}
	return less
}

// isNeeded records why a victim must be evicted. Assume that this victim is still on its node, and that all other promises are in place.
// The reason then refuses the node to its preemptor, or otherwise to the task at.
func (x *Search) isNeeded(own *Room, v *Victim, at *model.Task, why model.Reason) {
	before := x.Txn.Mark()
	x.Txn.Unplace(own.Task)
	x.Txn.Return(v.Task, v.was)
	v.Needed, v.at = why, at
	if why, refuses := x.asOf(own.step).refusesForce(own.Task, own.Row); refuses {
		v.Needed, v.at = why, own.Task
	}
	x.Txn.Rollback(before)
}

// asOf returns the search for another step.
func (x *Search) asOf(step *policy.Step) *Search {
	out := *x
	out.Step = step
	return &out
}

// again makes a promise again, with these victims.
func (x *Search) again(r Room, victims []Victim) (Room, bool) {
	again, ok := x.asOf(r.step).promise(r.Task, r.Row, victims)
	again.Bind.Action, again.Placing = r.Bind.Action, r.Placing
	return again, ok
}

// gateRefuses returns the first promise that the gate allocatable rejects, as if all other promises were already in place.
func (x *Search) gateRefuses(done []Room) *Room {
	for i, r := range done {
		if r.step.Gate(policy.Allocatable) && !x.gateAnswer(&r).Yes {
			return &done[i]
		}
	}
	return nil
}

func (x *Search) gateAnswer(r *Room) policy.Answer {
	before := x.Txn.Mark()
	defer x.Txn.Rollback(before)
	x.Txn.Unplace(r.Task)
	return x.All(policy.Allocatable, x.Frame().OfTask(r.Task))
}

// Evicts returns the evictions for a task, for the plan.
func Evicts(r Room) (out []model.Evict) {
	for _, v := range r.Victims {
		first := policy.Answer{Rule: v.Lets[0]}.Reason()
		e := report.Evict(v.Task, r.Task, r.Bind.Action, r.step.Via(), first, v.Rows())
		out = append(out, report.Needed(e, v.at, v.Needed))
	}
	return out
}
