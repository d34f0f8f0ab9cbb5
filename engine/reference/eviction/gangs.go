package eviction

import (
	"slices"

	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/engine/report"
	"github.com/celsius-scheduler/celsius/engine/subsets"
)

// Gangs searches victims for gangs. Its victims are units: single tasks, or parts of a gang that are evicted together.
type Gangs struct {
	*Search
	needs []Need // the needs that the step has kept so far
}

// Need contains the promises for several tasks of a job, which are made as a whole, and the victims for them.
type Need struct {
	Rooms     []Room
	Units     []Unit       // in the order in which they were evicted
	Pipelined model.Reason // why the job may be held with it
}

// Placing reports that the resources are free now, no pod is evicted, and a later step would place the tasks.
func (n Need) Placing() bool {
	return !slices.ContainsFunc(n.Rooms, func(r Room) bool { return !r.Placing })
}

// Unit is either a task that its gang can spare, or all tasks of a gang that it cannot spare. The latter are evicted after the tasks that
// the gang can spare, and only together with them.
type Unit struct {
	victims []Victim
	whole   bool
	at      Room         // the promise that would fail without the eviction
	needed  model.Reason // the reason why it would fail
}

// Take frees resources for as many of a job's tasks as it may be held with. It stops when the turn is over or no resources are found. It
// returns the remaining tasks. The job gets another turn for them only if the step still applies to it; otherwise there are none.
func (x *Gangs) Take(j *model.Job, tasks []*model.Task, over func() bool) (needs []Need, left []*model.Task) {
	for ended := false; !ended; {
		tasks = slices.DeleteFunc(slices.Clone(tasks), func(t *model.Task) bool { return t.Status != model.Pending })
		x.SortTasks(tasks)
		may := x.mayTake(j, tasks)
		if len(may) == 0 {
			return needs, nil
		}
		before := x.Txn.Mark()
		n, found := x.stableRoom(j, may)
		x.tellInVain(j, nil, found || len(needs) > 0)
		if !found || n.Placing() || len(n.Rooms) < len(may) && !x.mayTakeRoom(j, n) {
			x.Txn.Rollback(before)
			return needs, nil
		}
		x.KeepNeed(n)
		needs, ended = append(needs, n), over()
	}
	if !x.JobPasses(x.Step, j) {
		return needs, nil
	}
	return needs, slices.DeleteFunc(tasks, func(t *model.Task) bool { return t.Status != model.Pending })
}

// permitted reports whether the queue of a job may evict tasks for an amount.
func (x *Gangs) permitted(j *model.Job, amount model.Resources) bool {
	return !x.Step.Gate(policy.Preemptive) || x.All(policy.Preemptive, x.Frame().OfJob(j).OfRequest(amount)).Yes
}

// mayTake returns the tasks, in their order, for which the queue may evict tasks together. It leaves out the others.
func (x *Gangs) mayTake(j *model.Job, tasks []*model.Task) (out []*model.Task) {
	var all, sum model.Resources
	for _, t := range tasks {
		all = all.Add(t.Request)
	}
	if x.permitted(j, all) {
		return tasks
	}
	for _, t := range tasks {
		if x.permitted(j, sum.Add(t.Request)) {
			out, sum = append(out, t), sum.Add(t.Request)
		}
	}
	return out
}

// mayTakeRoom reports whether the queue may evict tasks for the promises of a need, in the state before the need was found.
func (x *Gangs) mayTakeRoom(j *model.Job, n Need) bool {
	before := x.Txn.Mark()
	defer x.Txn.Rollback(before)
	var sum model.Resources
	for _, r := range n.Rooms {
		sum = sum.Add(r.Task.Request)
		x.Txn.Unplace(r.Task)
	}
	for _, u := range n.Units {
		x.stay(u)
	}
	return x.permitted(j, sum)
}

// stableRoom finds promises for a gang that no victim would take back.
func (x *Gangs) stableRoom(j *model.Job, tasks []*model.Task) (n Need, found bool) {
	before := x.Txn.Mark()
	for ok, again, tries := false, true, 0; again && tries < policy.MostUnstable; tries++ {
		if n, found = x.RoomForGang(j, tasks); !found {
			return n, false
		}
		if ok, again = x.StableNeed(n); ok {
			return n, true
		}
		x.Txn.Rollback(before)
	}
	return Need{}, false
}

// RoomForGang finds places for as many of a job's tasks, in their order, as the job may be held with, and for at least one. It evicts no
// pod if possible, otherwise the fewest units, in their order, that are all needed.
func (x *Gangs) RoomForGang(j *model.Job, tasks []*model.Task) (n Need, found bool) {
	start := x.Txn.Mark()
	x.vain.Reset()
	x.sets = subsets.Most
	if n, found = x.allPlaced(j, tasks); found {
		return n, true
	}
	x.Txn.Rollback(start)
	units := x.units(tasks[0])
	enough := func(count int) bool {
		x.Txn.Rollback(start)
		for _, u := range units[:count] {
			x.leave(u)
		}
		n, found = x.allPlaced(j, tasks)
		return found
	}
	few, many := 0, min(1, len(units))
	for ; many > few && !enough(many); few, many = many, min(2*many, len(units)) {
	}
	for many-few > 1 {
		if middle := (few + many) / 2; enough(middle) {
			many = middle
		} else {
			few = middle
		}
	}
	if many == few || !enough(many) {
		x.Txn.Rollback(start)
		x.vain.PodsTooFew(len(victimsOf(units)))
		return Need{}, false
	}
	n.Units = slices.Clone(units[:many])
	x.dropUnneeded(&n)
	x.spareUnits(n.Rooms, &n.Units)
	x.keepGangs(tasks[0], &n)
	if !x.unitsPermitted(tasks[0], n.Units) {
		x.Txn.Rollback(start)
		x.vain.PodsOnlyTogether(len(victimsOf(n.Units)))
		return Need{}, false
	}
	return n, true
}

// keepGangs applies to gangs that would be evicted as a whole. If only pods that such a gang can spare are necessary victims, keepGangs
// evicts only these, although the gang would otherwise spare other pods first.
func (x *Gangs) keepGangs(t *model.Task, n *Need) {
	kept := false
	for _, whole := range slices.Backward(slices.Clone(n.Units)) {
		j := whole.victims[0].Task.Job
		isOf := func(u Unit) bool { return u.victims[0].Task.Job == j }
		of := slices.DeleteFunc(slices.Clone(n.Units), func(u Unit) bool { return !isOf(u) })
		if whole.whole && len(of) > 1 {
			kept = x.keepGang(t, n, j, victimsOf(of), slices.DeleteFunc(slices.Clone(n.Units), isOf)) || kept
		}
	}
	if kept {
		x.spareUnits(n.Rooms, &n.Units)
	}
}

// keepGang first spares the pods one by one, beginning with the last victim. The victims that remain may be pods that the gang cannot lose,
// although other pods could be evicted in their place. Therefore keepGang then tries sets of the pods.
func (x *Gangs) keepGang(t *model.Task, n *Need, j *model.Job, pods []Victim, others []Unit) (kept bool) {
	before := x.Txn.Mark()
	goOnly := func(rooms []Room, parts []Unit) bool {
		first := slices.IndexFunc(others, func(u Unit) bool { return u.whole })
		if first < 0 {
			first = len(others)
		}
		all := slices.Insert(slices.Clone(others), first, parts...)
		if !x.canSpare(j, parts) || !x.unitsPermitted(t, all) {
			x.Txn.Rollback(before)
			return false
		}
		n.Rooms, n.Units = rooms, all
		return true
	}
	rooms, parts := n.Rooms, []Unit(nil)
	for _, v := range slices.Backward(pods) {
		one, ok := Unit{victims: []Victim{v}}, false
		if rooms, _, _, ok = x.withoutUnits(rooms, []Unit{one}); !ok {
			parts = append([]Unit{one}, parts...)
		}
	}
	if goOnly(rooms, parts) {
		return true
	}
	subsets.Each(len(pods), &x.sets, func(set []int) (done, without bool) {
		var in, rest []Unit
		for i, v := range pods {
			if slices.Contains(set, i) {
				in = append(in, Unit{victims: []Victim{v}})
			} else {
				rest = append(rest, Unit{victims: []Victim{v}})
			}
		}
		rooms, _, _, ok := x.withoutUnits(n.Rooms, rest)
		kept = ok && goOnly(rooms, in)
		return kept, ok
	})
	return kept
}

// canSpare reports whether a job can lose all pods of some units. It assumes that no other pod of the job was evicted in the meantime.
func (x *Gangs) canSpare(j *model.Job, units []Unit) bool {
	before := x.Txn.Mark()
	var tasks []*model.Task
	for _, u := range units {
		x.stay(u)
		tasks = append(tasks, u.victims[0].Task)
	}
	can := len(spareable(j, tasks)) == len(tasks)
	x.Txn.Rollback(before)
	return can
}

// leave treats the pods of a unit as evicted.
func (x *Gangs) leave(u Unit) {
	for _, v := range u.victims {
		x.Txn.Leave(v.Task)
	}
}

// stay treats the pods of a unit as running again.
func (x *Gangs) stay(u Unit) {
	for _, v := range u.victims {
		x.Txn.Return(v.Task, v.was)
	}
}

// allPlaced promises nodes to tasks of a job in the present state, one after the other, until the job may be held. Each gets the best node
// that accepts it.
func (x *Gangs) allPlaced(j *model.Job, tasks []*model.Task) (n Need, found bool) {
	failed := map[string]bool{}
	for over := false; len(tasks) > 0 && !found && !over; tasks = tasks[1:] {
		t := tasks[0]
		r, ok := Room{}, false
		if (t.Role == "" || !failed[t.Role]) && x.All(policy.TaskFeasible, x.Frame().OfTask(t)).Yes {
			if r, ok = x.onAny(t, x.roomThere); !ok {
				failed[t.Role] = true
				x.Cluster.SetRoleFailed(j, t.Role, true)
				over = !x.Condition(x.Step.Condition(policy.KeyOnNoNode), x.Frame().OfJob(j), "job "+j.Key+": ")
			}
		}
		if !ok {
			x.Cluster.SetVain(t, t.BestEffort)
			continue
		}
		n.Rooms = append(n.Rooms, r)
		if a := x.Vote(policy.JobPipelined, x.Frame().OfJob(j)); a.Yes {
			n.Pipelined, found = a.Reason(), true
		}
	}
	for role := range failed {
		x.Cluster.SetRoleFailed(j, role, false)
	}
	for _, t := range j.Tasks {
		x.Cluster.SetVain(t, false)
	}
	return n, found
}

// units returns the units that may be evicted for a task and others of its job, the first to be evicted first. Tasks that gangs can spare
// come before whole gangs.
func (x *Gangs) units(t *model.Task) (out []Unit) {
	var candidates, spare []*model.Task
	for _, v := range x.Cluster.TasksByKey() {
		if v.Node != model.NoNode && x.isCandidate(t, v) {
			candidates = append(candidates, v)
		}
	}
	all := len(candidates)
	candidates = slices.DeleteFunc(candidates, func(v *model.Task) bool { return x.barred[barred{v, t.Job}] })
	x.vain.PodsTakenBack(all - len(candidates))
	x.SortVictims(x.question(t), candidates)
	can := map[*model.Task]bool{}
	rest := map[*model.Job][]*model.Task{}
	var gangs []*model.Task // the first task of each
	for _, v := range candidates {
		if _, known := rest[v.Job]; known {
			continue
		}
		of := slices.DeleteFunc(slices.Clone(candidates), func(o *model.Task) bool { return o.Job != v.Job })
		for _, o := range spareable(v.Job, of) {
			can[o] = true
		}
		rest[v.Job] = slices.DeleteFunc(slices.Clone(of), func(o *model.Task) bool { return can[o] })
		if x.Step.Flag(policy.KeyWhole) && len(rest[v.Job]) > 0 && mayGoWhole(v.Job, of) {
			gangs = append(gangs, rest[v.Job][0])
		}
	}
	x.SortGangs(x.question(t), gangs)
	spare = slices.DeleteFunc(slices.Clone(candidates), func(v *model.Task) bool { return !can[v] })
	var asked [][]*model.Task
	for _, v := range spare {
		asked = append(asked, []*model.Task{v})
	}
	for _, v := range gangs {
		asked = append(asked, rest[v.Job])
	}
	if x.Step.Word(policy.KeyNodes) == policy.ByCost {
		x.sortByCost(t, asked[:len(spare)], func(unit []*model.Task) []*model.Task { return unit })
		x.sortByCost(t, asked[len(spare):], func(unit []*model.Task) []*model.Task {
			return slices.DeleteFunc(slices.Clone(candidates), func(v *model.Task) bool { return v.Job != unit[0].Job })
		})
	}
	x.vain.PodsNotSpared(len(candidates) - len(slices.Concat(asked...)))
	return x.let(t, asked, spare, can)
}

// let returns the units that the rows allow to evict. The part that a gang cannot spare is included only together with all tasks that it
// can spare.
func (x *Gangs) let(t *model.Task, asked [][]*model.Task, spare []*model.Task, can map[*model.Task]bool) (out []Unit) {
	let := map[*model.Task]bool{}
	units, kept := x.Units(x.question(t), asked)
	table, rule := kept.Names()
	x.vain.PodsKept(len(slices.Concat(asked...))-len(slices.Concat(units...)), x.Step.Word(policy.KeyVictims), table, rule)
	for _, lets := range units {
		u := Unit{whole: !can[lets[0].Task]}
		for _, v := range lets {
			let[v.Task] = true
			u.victims = append(u.victims, Victim{Victim: v, was: v.Task.Status})
		}
		kept := func(v *model.Task) bool { return v.Job == lets[0].Task.Job && !let[v] }
		if !u.whole || !slices.ContainsFunc(spare, kept) {
			out = append(out, u)
		}
	}
	return out
}

// spareable returns the first tasks of a job that it can lose and still have the pods that it needs. If the job already has too few, it
// returns all tasks, or none if the job has a promise.
func spareable(j *model.Job, tasks []*model.Task) (out []*model.Task) {
	surplus := j.Ready() - j.MinMember
	switch {
	case surplus < 0 && j.Counts[model.Pipelined] > 0:
		return nil
	case surplus < 0:
		return tasks
	}
	taken := map[string]int64{}
	for _, t := range tasks {
		role := slices.IndexFunc(j.Roles, func(r *model.Role) bool { return r.Name == t.Role })
		if int64(len(out)) == surplus ||
			j.MinMember >= j.RoleMinTotal && role >= 0 && j.Roles[role].Ready()-taken[t.Role] <= j.Roles[role].Min {
			continue
		}
		taken[t.Role]++
		out = append(out, t)
	}
	return out
}

// mayGoWhole reports whether a job may be evicted as a whole: all its running tasks are candidates, and it has no promise itself.
func mayGoWhole(j *model.Job, candidates []*model.Task) bool {
	return j.Counts[model.Pipelined] == 0 && !slices.ContainsFunc(j.Tasks, func(t *model.Task) bool {
		return (t.HoldsResources() || t.MayGo()) && !slices.Contains(candidates, t)
	})
}

// dropUnneeded removes at once all units on nodes without a promise, if the promises stay valid.
func (x *Gangs) dropUnneeded(n *Need) {
	var stay, goes []Unit
	for _, u := range slices.Backward(n.Units) {
		there := slices.ContainsFunc(u.victims, func(v Victim) bool {
			return slices.ContainsFunc(n.Rooms, func(r Room) bool { return r.Bind.Node == v.Task.NodeName })
		})
		if there || !u.whole && goesWhole(goes, u.victims[0].Task.Job) {
			goes = append(goes, u)
		} else {
			stay = append(stay, u)
		}
	}
	if rooms, _, _, ok := x.withoutUnits(n.Rooms, stay); ok {
		slices.Reverse(goes)
		n.Rooms, n.Units = rooms, goes
	}
}

// goesWhole reports whether a job is evicted as a whole.
func goesWhole(units []Unit, j *model.Job) bool {
	return slices.ContainsFunc(units, func(u Unit) bool { return u.whole && u.victims[0].Task.Job == j })
}

// spareUnits removes units that are not needed for some promises, the last victim first, until all others are needed. It records the
// reasons of those.
func (x *Gangs) spareUnits(rooms []Room, units *[]Unit) {
	for before := -1; before != len(*units); {
		before = len(*units)
		for i, u := range slices.Backward(*units) {
			whole := func(units []Unit) bool { return goesWhole(units, u.victims[0].Task.Job) }
			if !u.whole && (whole(*units) || slices.ContainsFunc(x.needs, func(n Need) bool { return whole(n.Units) })) {
				continue // it is evicted together with the rest of its gang
			}
			less, refused, why, ok := x.withoutUnits(rooms, []Unit{u})
			if ok {
				copy(rooms, less)
				*units = slices.Delete(*units, i, i+1)
				continue
			}
			own := refused.Task.Job == rooms[0].Task.Job
			if own {
				(*units)[i].at, (*units)[i].needed = refused, why
			}
			if !x.isNeeded(&(*units)[i], rooms) && !own {
				(*units)[i].at, (*units)[i].needed = refused, why
			}
		}
	}
}

// isNeeded records which promise to the job of the first one would fail without the eviction of a unit, and why. All other promises are in
// place. It first tries the promise that was recorded before, and otherwise takes the first that fails. It reports whether any fails.
func (x *Gangs) isNeeded(u *Unit, rooms []Room) bool {
	own, before := slices.Clone(rooms), x.Txn.Mark()
	own = slices.DeleteFunc(own, func(r Room) bool { return r.Task.Job != rooms[0].Task.Job })
	known := slices.DeleteFunc(slices.Clone(own), func(r Room) bool { return r.Task != u.at.Task })
	for _, r := range slices.Concat(known, own) {
		x.Txn.Unplace(r.Task)
		x.stay(*u)
		why, refuses := x.refusesForce(r.Task, r.Row)
		if x.Txn.Rollback(before); !refuses {
			continue
		}
		if u.at.Task != r.Task || u.needed.Table != why.Table || u.needed.Rule != why.Rule {
			u.needed = why
		}
		u.at = r
		return true
	}
	return false
}

// withoutUnits returns some promises without the eviction of some units. Promises on their nodes stay there if possible, and otherwise move
// to a node with free resources. All others must stay valid. If this fails, nothing changes, and refused is the first promise that fails.
func (x *Gangs) withoutUnits(rooms []Room, units []Unit) (less []Room, refused Room, why model.Reason, ok bool) {
	less = slices.Clone(rooms)
	before := x.Txn.Mark()
	touched := func(r Room) bool {
		return slices.ContainsFunc(units, func(u Unit) bool {
			return slices.ContainsFunc(u.victims, func(v Victim) bool { return v.Task.NodeName == r.Bind.Node })
		})
	}
	for _, r := range rooms {
		if touched(r) {
			x.Txn.Unplace(r.Task)
		}
	}
	for _, u := range units {
		x.stay(u)
	}
	for i, r := range rooms {
		if !touched(r) {
			continue
		}
		why, refuses := x.refusesForce(r.Task, r.Row)
		if ok = !refuses; ok {
			less[i], ok = x.promise(r.Task, r.Row, nil)
		}
		if !ok {
			less[i], ok = x.onAny(r.Task, x.roomThere)
		}
		if !ok {
			x.Txn.Rollback(before)
			return rooms, r, why, false
		}
	}
	for _, r := range less { // a promise on another node still has its amounts, but rows may read which tasks are on nodes now
		mark := x.Txn.Mark()
		x.Txn.Unplace(r.Task)
		why, _ := x.refusesForce(r.Task, r.Row)
		ok = x.gateHolds(r.Task) && !x.RowRefuses(r.Task, r.Row)
		if x.Txn.Rollback(mark); !ok {
			x.Txn.Rollback(before)
			return rooms, r, why, false
		}
	}
	return less, Room{}, model.Reason{}, true
}

// gateHolds evaluates the gate allocatable for a task, if the step has it.
func (x *Gangs) gateHolds(t *model.Task) bool {
	return !x.Step.Gate(policy.Allocatable) || x.All(policy.Allocatable, x.Frame().OfTask(t)).Yes
}

// unitsPermitted evaluates the rows once more for exactly the units that are evicted in the end. The rows must allow all of them.
func (x *Gangs) unitsPermitted(t *model.Task, units []Unit) bool {
	var asked [][]*model.Task
	for _, u := range units {
		x.stay(u)
		asked = append(asked, nil)
		for _, v := range u.victims {
			asked[len(asked)-1] = append(asked[len(asked)-1], v.Task)
		}
	}
	lets, _ := x.Units(x.question(t), asked)
	all := len(lets) == len(units)
	for i := range lets {
		for k, v := range lets[i] {
			if all {
				units[i].victims[k].Victim = v
			}
		}
	}
	for _, u := range units {
		x.leave(u)
	}
	return all
}

// victimsOf returns the victims of some units.
func victimsOf(units []Unit) (out []Victim) {
	for _, u := range units {
		out = append(out, u.victims...)
	}
	return out
}

// KeepNeed adds a need to those that the step has kept.
func (x *Gangs) KeepNeed(n Need) {
	x.needs = append(x.needs, n)
	x.Served[n.Rooms[0].Task.Job] = x.Served[n.Rooms[0].Task.Job] || len(n.Units) > 0
}

// Needs returns the needs that the step has kept, without the units that none of them needs.
func (x *Gangs) Needs() []Need {
	for i := range slices.Backward(x.needs) {
		var rooms []Room // its own first
		for k := range x.needs {
			rooms = append(rooms, x.needs[(i+k)%len(x.needs)].Rooms...)
		}
		x.spareUnits(rooms, &x.needs[i].Units)
		for k := range x.needs {
			rooms = rooms[copy(x.needs[(i+k)%len(x.needs)].Rooms, rooms):]
		}
	}
	x.noteNeeded()
	for i := range x.needs {
		n := &x.needs[i]
		count := len(x.EvictsForGang(*n))
		for k := range n.Rooms {
			if n.Rooms[k].Bind.Reason = report.RoomMade(0); count > 0 {
				n.Rooms[k].Bind.Reason = report.GangRoomMade(count)
			}
		}
	}
	return x.needs
}

// noteNeeded records for all units again why they are needed: which promise would fail in the final state. If that is a promise of the
// unit's own need, it records why the promise would have failed when it was made. If it would not have failed then, it records a promise
// that fails for the same reason in both states.
func (x *Gangs) noteNeeded() {
	for _, n := range x.needs {
		for i := range n.Units {
			x.isNeeded(&n.Units[i], n.Rooms)
		}
	}
	before := x.Txn.Mark()
	then := map[*Unit][]Unit{} // other promises that would have failed
	for _, n := range slices.Backward(x.needs) {
		for i := range n.Units {
			then[&n.Units[i]] = x.neededThen(&n.Units[i], n.Rooms)
		}
		for _, r := range n.Rooms {
			x.Txn.Unplace(r.Task)
		}
		for _, u := range n.Units {
			x.stay(u)
		}
	}
	x.Txn.Rollback(before)
	for u, others := range then {
		for _, other := range others {
			if now := other; x.isNeeded(&now, []Room{other.at}) && now.needed.Table == other.needed.Table && now.needed.Rule == other.needed.Rule {
				u.at, u.needed = other.at, other.needed
				break
			}
		}
	}
}

// neededThen records why the promise that fails in the final state would have failed when it was made. If it would not have failed, it
// returns the promises that would have.
func (x *Gangs) neededThen(u *Unit, rooms []Room) (others []Unit) {
	k := slices.IndexFunc(rooms, func(r Room) bool { return r.Task == u.at.Task })
	if k < 0 || x.isNeeded(u, rooms[k:k+1]) {
		return nil
	}
	for k := range rooms {
		if other := *u; x.isNeeded(&other, rooms[k:k+1]) {
			others = append(others, other)
		}
	}
	return others
}

// EvictsForGang returns the evictions for a need, for the plan.
func (x *Gangs) EvictsForGang(n Need) (out []model.Evict) {
	for _, u := range n.Units {
		why := u // if its gang is evicted as a whole, the reason of the unit that the gang cannot spare
		for _, o := range n.Units {
			if o.whole && o.victims[0].Task.Job == u.victims[0].Task.Job {
				why = o
			}
		}
		for _, v := range u.victims {
			own, first := n.Rooms[0].Task, policy.Answer{Rule: v.Lets[0]}.Reason()
			if why.at.Task.Job == own.Job {
				own = why.at.Task
			}
			e := report.Evict(v.Task, own, x.Action, x.Step.Via(), first, v.Rows())
			out = append(out, report.ForGang(e, why.at.Task, why.at.Bind.Node, why.needed, why.whole))
		}
	}
	return out
}
