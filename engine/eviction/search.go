// Package eviction frees resources for a task. It decides on which node, by evicting which pods, and why each of these evictions is
// necessary. engine/reference/eviction defines its behavior.
package eviction

import (
	"slices"

	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/engine/report"
	"github.com/celsius-scheduler/celsius/engine/session"
	"github.com/celsius-scheduler/celsius/engine/subsets"
)

// Room is the promise of a node to a task, and the victims for it.
type Room struct {
	Task    *model.Task
	Bind    model.Bind
	Victims []Victim // in the order in which they were evicted
	// Placing states that the resources are free now, no pod is evicted, and a later step would place the task.
	Placing bool
	row     int32
	by      *Search // the search of the step that found it
}

// Victim is a task that is evicted for another.
type Victim struct {
	session.Victim
	needed model.Reason // why the promise of at would fail without this eviction
	at     *model.Task
	was    model.Status
}

// Search frees resources for the tasks of one step.
type Search struct {
	Options
	c           *model.Cluster
	scope, site string
	allocatable bool
	later       []*policy.Step
	gone        []*model.Task // tasks that were once treated as gone, in the order of the first time
	known       map[*model.Task]bool
	kept        keeping
	barred      map[barred]bool
	denied      denials // the denials in the present turn of a job
	who         *session.Candidates
	barren      barren
	sets        int // number of sets of candidates that may still be tried for the present task or gang
	vain        inVain
	together    together
}

// keeping contains the kept promises.
type keeping struct {
	rooms []Room // all promises of this cycle so far
	of    map[*model.Job][]int
	turns map[*model.Job]int // number of turns by job, in this step
}

// Options contains the input of a Search.
type Options struct {
	Session *session.Session
	Txn     *model.Txn
	Step    *policy.Step // nil: there is none, because promises are only renewed
	Action  string
	// Warn receives errors of conditions.
	Warn func(text string)
	// Served are the jobs for which pods are evicted, and the jobs that still wait for resources that evicted pods freed. Their own pods
	// are not evicted for other jobs meanwhile.
	Served map[*model.Job]bool
	// InVain receives why no pod is evicted for a task, or, if the task is nil, for a job as a whole. nil: the reasons are dropped.
	InVain func(*model.Job, *model.Task, model.InVain)
	// About reports whether a step would consider a waiting task.
	About func(*policy.Step, *model.Task) bool
}

// New returns the Search of a step, or of the renewal of promises.
func New(o Options) *Search {
	x := &Search{Options: o, c: o.Session.Cluster(), known: map[*model.Task]bool{}}
	x.kept.of, x.kept.turns = map[*model.Job][]int{}, map[*model.Job]int{}
	if o.Step != nil {
		x.later, x.who = o.Session.Policy().PlacingAfter(o.Step), session.NewCandidates(o.Session, o.Step, o.Warn)
		x.scope, x.site = o.Step.Word(policy.KeyScope), o.Step.Word(policy.KeyVictims)
		x.allocatable, x.vain.tell = o.Step.Gate(policy.Allocatable), o.InVain
	}
	return x
}

// LookAhead treats all tasks that are being released as gone until LookBack, so that promises see the nodes as they will be.
func (x *Search) LookAhead() {
	for row, releasing := range x.c.Nodes.Releasing[model.Pods] {
		if releasing == 0 {
			continue
		}
		for _, t := range slices.Clone(x.c.Nodes.Tasks[row]) {
			if t.Status == model.Releasing {
				x.leave(t)
			}
		}
	}
}

// leave treats a task as gone.
func (x *Search) leave(t *model.Task) {
	x.Txn.Leave(t)
	if !x.known[t] {
		x.known[t], x.gone = true, append(x.gone, t)
	}
}

// LookBack ends LookAhead: it treats these tasks as Releasing again.
func (x *Search) LookBack() {
	for _, t := range x.gone {
		if t.Status == model.Gone {
			x.Txn.Return(t, model.Releasing)
		}
	}
}

// RoomFor finds a place for a task: without evictions if possible, otherwise on the first node where evictions free enough resources. If
// the step commits each task at once, the place is stable.
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
	x.vain.told(x, t.Job, t, found)
	return r, found
}

func (x *Search) roomFor(t *model.Task) (r Room, found bool) {
	x.vain.Reset()
	x.sets = subsets.Most
	if !x.Session.Feasible(t).Yes {
		return Room{}, false
	}
	before := x.Txn.Mark()
	if r, found = x.roomThere(t); found && x.scope == policy.ScopeJob {
		x.Txn.Rollback(before)
		return Room{}, false // a step with the scope of its own job cannot provide it
	}
	if found {
		return r, true
	}
	if nobodyWithin(x.scope, t) {
		return Room{}, false
	}
	kind, known := x.who.Kind(t)
	x.barren.begin(kind, known, len(x.c.Nodes.Rows))
	nodes := x.nodes(t)
	if x.Step.Word(policy.KeyNodes) == policy.ByCost {
		return x.cheapest(t, nodes)
	}
	for _, row := range nodes {
		x.c.Breathe()
		before := x.Txn.Mark()
		if r, found = x.roomMade(t, row); found {
			return r, true
		}
		x.Txn.Rollback(before)
	}
	return Room{}, false
}

// Renew promises a task its nominated node again, if the task may still have it.
func (x *Search) Renew(t *model.Task) (r Room, ok bool) {
	row, ok := x.c.Nodes.Index[t.NominatedNode]
	if !ok || !t.Job.Seated() || t.Job.Phase == model.PhasePending || !x.Session.Valid(t.Job).Yes || !x.Session.Feasible(t).Yes ||
		!x.Session.MayAllocate(t) || !x.Session.Class(t).TakesLater(row) {
		return Room{}, false
	}
	r, ok = x.promise(t, row, nil)
	r.Bind.Reason = report.Kept()
	return r, ok
}

// nodes returns the nodes where resources for a task are or can be freed, in the order of the step.
func (x *Search) nodes(t *model.Task) []int32 {
	class := x.Session.Class(t)
	nodes := class.Curable()
	if x.Step.Word(policy.KeyNodes) == policy.ByOrder {
		return nodes
	}
	return class.ByScore(nodes, nodes)
}

// roomThere promises the first node where no eviction is necessary.
func (x *Search) roomThere(t *model.Task) (r Room, found bool) {
	if !x.mayAllocate(t) {
		return Room{}, false
	}
	class := x.Session.Class(t)
	nodes := class.Roomy()
	if len(nodes) > 1 && x.Step.Word(policy.KeyNodes) != policy.ByOrder {
		nodes = class.ByScore(class.Curable(), nodes)
	}
	for _, row := range nodes {
		x.c.Breathe()
		if !class.TakesLater(row) {
			continue
		}
		placing := x.thereNow(t, row) && x.placed(t)
		if r, found = x.promise(t, row, nil); found {
			r.Placing = placing
			return r, true
		}
	}
	return Room{}, false
}

// placed reports whether a later step would place a task if resources are free now.
func (x *Search) placed(t *model.Task) bool {
	return slices.ContainsFunc(x.later, func(s *policy.Step) bool { return x.About(s, t) })
}

// thereNow reports whether a node has enough free resources for a task, in addition to those of the tasks that are treated as gone.
func (x *Search) thereNow(t *model.Task, row int32) bool {
	asked := t.Request
	for _, o := range x.gone {
		if o.Status != model.Gone || o.NodeName != x.c.Nodes.Rows[row].Name {
			continue
		}
		if asked = asked.Add(o.Request); t.GPUCount > 0 && o.GPUCount > 0 || len(t.Pins) > 0 && len(o.Pins) > 0 {
			return false
		}
	}
	return x.c.Nodes.FitsIdle(asked, row)
}

// roomMade evicts one task after the other until the task fits. It then undoes the evictions that are not necessary, and promises the node.
func (x *Search) roomMade(t *model.Task, row int32) (r Room, found bool) {
	candidates, back := x.candidates(t, row)
	start := x.Txn.Mark()
	if !x.enough(t, row, candidates) {
		x.vain.node(candidates, back, (*report.InVain).TooLittle)
		return Room{}, false
	}
	lets, kept := x.Session.Victims(x.question(t), candidates) // the first to be evicted first
	gone, found := x.takeAway(t, row, lets, false)
	var still model.Reason // why the node refuses the task although all candidates are evicted
	if !found {
		if x.vain.tell != nil && len(lets) == len(candidates) {
			still = x.refusal(t, row)
		}
		x.Txn.Rollback(start)
		gone, found = x.takeAway(t, row, lets, true)
	}
	fits := found // the task would fit if the rows permitted the evictions
	if found {
		gone = x.needed(t, row, gone)
		found = x.permitted(t, gone)
	}
	if !found && (fits || len(lets) < len(candidates)) {
		x.Txn.Rollback(start)
		gone, found = x.anySet(t, row, candidates)
	}
	if found {
		if r, found = x.promise(t, row, gone); !found {
			x.vain.NoVolumes()
		}
		return r, found
	}
	if fits {
		x.vain.OnlyTogether()
		return Room{}, false
	}
	x.vain.node(candidates, back, func(v *report.InVain) {
		if len(lets) == len(candidates) {
			v.StillRefused(still)
			return
		}
		table, rule := kept.Names()
		v.Kept(x.site, table, rule)
	})
	x.denied.note(candidates, lets)
	return Room{}, false
}

// needed returns the victims that the task needs. It undoes each eviction without which the task still fits, beginning with the last one.
func (x *Search) needed(t *model.Task, row int32, gone []Victim) []Victim {
	for before := 0; before != len(gone); {
		before = len(gone)
		for i := len(gone) - 1; i >= 0; i-- {
			v := &gone[i]
			x.Txn.Return(v.Task, v.was)
			if x.takes(t, row) {
				gone = slices.Delete(gone, i, i+1)
				continue
			}
			x.leave(v.Task)
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
	x.Session.SortVictims(x.question(t), candidates)
	var may []*model.Task // the candidates that the rows permit to evict alone
	for _, v := range candidates {
		if lets, _ := x.Session.Victims(x.question(t), []*model.Task{v}); len(lets) > 0 {
			may = append(may, v)
		}
	}
	if !x.enough(t, row, may) {
		return nil, false
	}
	start := x.Txn.Mark()
	set := make([]*model.Task, 0, len(may))
	subsets.Each(len(may), &x.sets, func(numbers []int) (done, without bool) {
		x.c.Breathe()
		set = set[:0]
		for _, i := range numbers {
			set = append(set, may[i])
		}
		if !x.enough(t, row, set) {
			return false, false
		}
		gone = nil
		for _, v := range set {
			gone = append(gone, Victim{Victim: session.Victim{Task: v}, was: v.Status})
			x.leave(v)
		}
		if without = x.takes(t, row); without {
			found = x.permitted(t, gone)
		}
		if !found {
			x.Txn.Rollback(start)
		}
		return found, without
	})
	return gone, found
}

// takeAway evicts one pod after the other until the task fits. If choosy is true, it spares each pod whose eviction makes a predicate
// refuse the node. The task may have to be on the same node as that pod.
func (x *Search) takeAway(t *model.Task, row int32, lets []session.Victim, choosy bool) (gone []Victim, found bool) {
	spared := false
	for _, v := range lets {
		before, was := choosy && x.Session.Class(t).RowRefuses(row), v.Task.Status
		x.leave(v.Task)
		if choosy && !before && x.Session.Class(t).RowRefuses(row) {
			x.Txn.Return(v.Task, was)
			spared = true
			continue
		}
		gone = append(gone, Victim{Victim: v, was: was})
		if choosy && !spared {
			continue // this case was tried before
		}
		if x.takes(t, row) {
			return gone, true
		}
	}
	return nil, false
}

// isServed reports whether pods are evicted for the job of v: its own pods are then not evicted for another job.
func (x *Search) isServed(t, v *model.Task) bool { return t.Job != v.Job && x.Served[v.Job] }

// spared reports whether an eviction of a task was refused a short while ago. The task may be evicted again later, although nothing else
// changes.
func (x *Search) spared(v *model.Task) bool {
	if !v.Spared.After(x.Session.Now.Time) {
		return false
	}
	x.Session.Until(v.Spared)
	return true
}

// enough reports whether a task could fit if all candidates were evicted, by resource amounts alone. If not, no row need be evaluated.
func (x *Search) enough(t *model.Task, row int32, candidates []*model.Task) bool {
	for _, dim := range x.c.Nodes.Dims() {
		if !t.Request.Has(dim) {
			continue
		}
		room := x.c.Nodes.FutureIdle(dim, row)
		for _, v := range candidates {
			room += v.Request.Get(dim)
		}
		if t.Request[dim] > room+model.Slack {
			return false
		}
	}
	return true
}

func (x *Search) question(t *model.Task) session.Question {
	return session.Question{Site: x.site, Scope: x.scope, For: t, Txn: x.Txn}
}

// permitted evaluates the rows once more for exactly the tasks that are evicted in the end. The rows must allow all of them.
func (x *Search) permitted(t *model.Task, gone []Victim) bool {
	tasks := make([]*model.Task, len(gone))
	for i, v := range gone {
		x.Txn.Return(v.Task, v.was)
		tasks[i] = v.Task
	}
	lets, _ := x.Session.Victims(x.question(t), tasks)
	for i, v := range gone {
		at := slices.IndexFunc(lets, func(l session.Victim) bool { return l.Task == v.Task })
		if at < 0 {
			return false
		}
		gone[i].Victim = lets[at]
		x.leave(v.Task)
	}
	return true
}

func (x *Search) mayAllocate(t *model.Task) bool { return !x.allocatable || x.Session.MayAllocate(t) }

// takes reports whether a task may have the resources that are or will be free on a node.
func (x *Search) takes(t *model.Task, row int32) bool {
	return x.mayAllocate(t) && x.Session.Class(t).TakesLater(row)
}

// refusal returns why takes is false.
func (x *Search) refusal(t *model.Task, row int32) model.Reason {
	if x.allocatable {
		if a := x.Session.Allocatable(t); !a.Yes {
			return a.Reason()
		}
	}
	return x.Session.Class(t).RefusedLater(row)
}

// promise promises a node to a task. victims are evicted for it.
func (x *Search) promise(t *model.Task, row int32, victims []Victim) (r Room, ok bool) {
	volumes, err := x.Session.Bindings(t, row)
	if err != nil {
		return Room{}, false
	}
	b := model.Bind{
		Task: t.Key, UID: t.UID, Job: t.Job.Key, Queue: t.Job.QueueName, Node: x.c.Nodes.Rows[row].Name, Action: x.Action,
		Feasible: 1, Reason: report.RoomMade(len(victims)),
	}
	b.GPUs, b.Volumes = x.Session.Devices(t, row, true), volumes
	x.Txn.Pipeline(t, row, b.GPUs)
	x.Txn.Reserve(t, volumes)
	b.CPUs = t.CPUs.String()
	return Room{Task: t, Bind: b, row: row, Victims: victims, by: x}, true
}

// GiveBack undoes evictions that some promises do not need together, the last victim first. A promise may move to another node whose
// resources others free. An eviction may be unnecessary because of the other evictions on the same node.
func (x *Search) GiveBack(done []Room) {
	x.together.gated = gatedApart(x.Session, done)
	for i := len(done) - 1; i >= 0 && len(done) > 1; i-- {
		if r := &done[i]; len(r.Victims) > 0 && r.by.scope != policy.ScopeJob && r.mayFitElsewhere(&x.together.vacant) {
			x.elsewhere(done, i)
		}
	}
	x.spare(done)
}

// mayFitElsewhere reports whether a task may fit without its victims, by resource amounts alone.
func (r *Room) mayFitElsewhere(others *vacant) bool {
	nodes := &r.by.c.Nodes
	if others.beside(r.by.c, r.Task.Request, r.row) {
		return true
	}
	for dim, want := range r.Task.Request {
		room := nodes.FutureIdle(dim, r.row) + r.Task.Request.Get(dim)
		for _, v := range r.Victims {
			room -= v.Task.Request.Get(dim)
		}
		if want > room+2*model.Slack { // the order of additions may round differently
			return false
		}
	}
	return true
}

// elsewhere moves one promise to a place that needs no eviction and that no task would take back. If there is no such place, nothing
// changes.
func (x *Search) elsewhere(done []Room, which int) {
	before, was := x.Txn.Mark(), done[which]
	var there []int // promises on the same node, which may depend on these victims
	for i := range done {
		if done[i].row == was.row {
			x.Txn.Unplace(done[i].Task)
			if i != which {
				there = append(there, i)
			}
		}
	}
	for _, v := range was.Victims {
		x.Txn.Return(v.Task, v.was)
	}
	rooms, refused := renewed(done, there)
	if ok := refused == nil; ok {
		if done[which], ok = was.by.roomThere(was.Task); ok {
			if x.gateRefuses(done) == nil && len(x.takers(done, done[which].row)) == 0 {
				for n, i := range there {
					done[i] = rooms[n]
				}
				return
			}
		}
		done[which] = was
	}
	x.Txn.Rollback(before)
}

// renewed makes some promises again, up to the first that fails.
func renewed(done []Room, which []int) (rooms []Room, refused *Room) {
	for _, i := range which {
		r := &done[i]
		if !r.by.takes(r.Task, r.row) {
			return nil, r
		}
		again, ok := r.by.promise(r.Task, r.row, r.Victims)
		if again.Placing = r.Placing; !ok {
			return nil, r
		}
		rooms = append(rooms, again)
	}
	return rooms, nil
}

// spare undoes evictions that the promises on their node do not need, the last victim first, until all others are necessary.
func (x *Search) spare(done []Room) {
	on := map[int32][]int{} // the promises on each node
	for i := range done {
		on[done[i].row] = append(on[done[i].row], i)
	}
	for before := -1; before != going(done); {
		before = going(done)
		for i := range slices.Backward(done) {
			for k := range slices.Backward(done[i].Victims) {
				x.without(done, on[done[i].row], i, k)
			}
		}
	}
}

// going returns the number of victims.
func going(done []Room) (n int) {
	for i := range done {
		n += len(done[i].Victims)
	}
	return n
}

// without undoes the eviction of one victim, if the promises on its node and all gates still allow it. Otherwise it records for which task
// the victim is needed.
func (x *Search) without(done []Room, there []int, of, which int) {
	before, all := x.Txn.Mark(), done[of].Victims
	v := &all[which]
	for _, i := range there {
		x.Txn.Unplace(done[i].Task)
	}
	x.Txn.Return(v.Task, v.was)
	done[of].Victims = slices.Delete(slices.Clone(all), which, which+1)
	rooms, refused := renewed(done, there)
	var why model.Reason
	if refused != nil {
		why = refused.by.refusal(refused.Task, refused.row)
	} else if refused = x.gateRefuses(done); refused != nil {
		why = refused.gateAnswer()
	}
	if refused == nil {
		for n, i := range there {
			done[i] = rooms[n]
		}
		return
	}
	done[of].Victims = all
	x.Txn.Rollback(before)
	v.isNeeded(&done[of], refused.Task, why)
}

// isNeeded records why a victim must be evicted. Assume that this victim is still on its node, and that all other promises are in place.
// The reason then refuses the node to its preemptor, or otherwise to the task at.
func (v *Victim) isNeeded(own *Room, at *model.Task, why model.Reason) {
	txn := own.by.Txn
	before := txn.Mark()
	txn.Unplace(own.Task)
	txn.Return(v.Task, v.was)
	if v.needed, v.at = why, at; !own.by.takes(own.Task, own.row) {
		v.needed, v.at = own.by.refusal(own.Task, own.row), own.Task
	}
	txn.Rollback(before)
}

// gateRefuses returns the first promise that the gate allocatable rejects, as if all other promises were already in place.
func (x *Search) gateRefuses(done []Room) *Room {
	for _, i := range x.together.gated {
		r := &done[i]
		before := x.Txn.Mark()
		x.Txn.Unplace(r.Task)
		ok := x.Session.MayAllocate(r.Task)
		if x.Txn.Rollback(before); !ok {
			return r
		}
	}
	return nil
}

// gateAnswer returns why the gate rejects it.
func (r *Room) gateAnswer() model.Reason {
	txn := r.by.Txn
	before := txn.Mark()
	defer txn.Rollback(before)
	txn.Unplace(r.Task)
	return r.by.Session.Allocatable(r.Task).Reason()
}

// Stands reports whether a promise is unchanged.
func (r *Room) Stands() bool { return r.Task.Status == model.Pipelined && r.Task.Node == r.row }

// Keep keeps promises for the rest of the cycle.
func (x *Search) Keep(done ...Room) {
	for _, r := range done {
		x.kept.of[r.Task.Job] = append(x.kept.of[r.Task.Job], len(x.kept.rooms))
		if x.kept.rooms = append(x.kept.rooms, r); len(r.Victims) > 0 {
			x.Served[r.Task.Job] = true
		}
	}
}

// KeepTurn keeps the promises of a turn, or one of them, and counts the turn.
func (x *Search) KeepTurn(done ...Room) {
	x.Keep(done...)
	x.kept.turns[done[0].Task.Job]++
}

// Kept returns the promises of the cycle, without victims that none of them needs.
func (x *Search) Kept() []Room {
	x.GiveBack(x.kept.rooms)
	return x.kept.rooms
}

// Evicts returns the evictions for a task, for the plan.
func (r *Room) Evicts() (out []model.Evict) {
	for _, v := range r.Victims {
		first := policy.Answer{Rule: v.Lets[0]}.Reason()
		e := report.Evict(v.Task, r.Task, r.Bind.Action, r.by.Step.Via(), first, v.Rows())
		out = append(out, report.Needed(e, v.at, v.needed))
	}
	return out
}
