package eviction

import (
	"maps"
	"slices"
	"strings"

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
func (n *Need) Placing() bool {
	return !slices.ContainsFunc(n.Rooms, func(r Room) bool { return !r.Placing })
}

// Tasks returns the tasks with promises.
func (n *Need) Tasks() (out []*model.Task) {
	for _, r := range n.Rooms {
		out = append(out, r.Task)
	}
	return out
}

// Victims returns the tasks that are evicted for the need.
func (n *Need) Victims() []*model.Task { return victimsOf(n.Units) }

func victimsOf(units []Unit) (out []*model.Task) {
	for _, u := range units {
		for _, v := range u.victims {
			out = append(out, v.Task)
		}
	}
	return out
}

// Unit is either a task that its gang can spare, or all tasks of a gang that it cannot spare. The latter are evicted after the tasks that
// the gang can spare, and only together with them.
type Unit struct {
	victims []Victim
	whole   bool
	at      Room         // the promise that would fail without the eviction
	needed  model.Reason // the reason why it would fail
}

func (u *Unit) job() *model.Job { return u.victims[0].Task.Job }

// TellInVain reports why no pod is evicted for a gang. If a part of the gang has a place, it clears the reason.
func (x *Gangs) TellInVain(j *model.Job, found bool) { x.vain.told(x.Search, j, nil, found) }

// StableRoom finds places for a gang that no victim would take back.
func (x *Gangs) StableRoom(j *model.Job, tasks []*model.Task) (n Need, found bool) {
	before := x.Txn.Mark()
	for ok, again, tries := false, true, 0; again && tries < policy.MostUnstable; tries++ {
		if n, found = x.RoomForGang(j, tasks); !found {
			return n, false
		}
		if ok, again = x.StableNeed(&n); ok {
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
		for i := range units[:count] {
			x.goes(&units[i])
		}
		n, found = x.allPlaced(j, tasks)
		return found
	}
	few, many := 0, min(1, len(units))
	for many > few && !enough(many) {
		few, many = many, min(2*many, len(units))
	}
	last := many // the last number that was tried
	for many-few > 1 {
		last = (few + many) / 2
		if enough(last) {
			many = last
		} else {
			few = last
		}
	}
	if many == few || last != many && !enough(many) {
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
	spares, kept := map[*model.Job]bool{}, false
	for i := range n.Units {
		if u := &n.Units[i]; !u.whole {
			spares[u.job()] = true
		}
	}
	for _, whole := range slices.Backward(slices.Clone(n.Units)) {
		if whole.whole && spares[whole.job()] {
			kept = x.keepGang(t, n, whole.job()) || kept
		}
	}
	if kept {
		x.spareUnits(n.Rooms, &n.Units)
	}
}

// keepGang first spares the pods one by one, beginning with the last victim. The victims that remain may be pods that the gang cannot lose,
// although other pods could be evicted in their place. Therefore keepGang then tries sets of the pods.
func (x *Gangs) keepGang(t *model.Task, n *Need, j *model.Job) (kept bool) {
	before := x.Txn.Mark()
	var units []Unit // units of other gangs
	var pods []Victim
	for _, u := range n.Units {
		if u.job() == j {
			pods = append(pods, u.victims...)
		} else {
			units = append(units, u)
		}
	}
	first := slices.IndexFunc(units, func(u Unit) bool { return u.whole })
	if first < 0 {
		first = len(units)
	}
	goOnly := func(rooms []Room, parts []Unit) bool {
		all := slices.Insert(slices.Clone(units), first, parts...)
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
			parts = append(parts, one)
		}
	}
	slices.Reverse(parts)
	if goOnly(rooms, parts) {
		return true
	}
	subsets.Each(len(pods), &x.sets, func(set []int) (done, without bool) {
		x.c.Breathe()
		parts, rest := split(pods, set)
		rooms, _, _, ok := x.withoutUnits(n.Rooms, rest)
		kept = ok && goOnly(rooms, parts)
		return kept, ok
	})
	return kept
}

// split returns one unit for each pod: in holds the pods with the numbers of a set, rest holds the other pods.
func split(pods []Victim, set []int) (in, rest []Unit) {
	for i, v := range pods {
		if one := (Unit{victims: []Victim{v}}); slices.Contains(set, i) {
			in = append(in, one)
		} else {
			rest = append(rest, one)
		}
	}
	return in, rest
}

// canSpare reports whether a job can lose all pods of some units. It assumes that no other pod of the job was evicted in the meantime.
func (x *Gangs) canSpare(j *model.Job, units []Unit) bool {
	before := x.Txn.Mark()
	for i := range units {
		x.stays(&units[i])
	}
	can := len(spareable(j, victimsOf(units))) == len(units)
	x.Txn.Rollback(before)
	return can
}

// Before calls ask in the state before a need was found.
func (x *Gangs) Before(n *Need, ask func()) {
	before := x.Txn.Mark()
	defer x.Txn.Rollback(before)
	for _, r := range n.Rooms {
		x.Txn.Unplace(r.Task)
	}
	for i := range n.Units {
		x.stays(&n.Units[i])
	}
	ask()
}

// goes treats the pods of a unit as evicted.
func (x *Gangs) goes(u *Unit) {
	for _, v := range u.victims {
		x.leave(v.Task)
	}
}

// stays treats the pods of a unit as running again.
func (x *Gangs) stays(u *Unit) {
	for _, v := range u.victims {
		x.Txn.Return(v.Task, v.was)
	}
}

// allPlaced promises nodes to tasks of a job in the present state, one after the other, until the job may be held. Each gets the best node
// that accepts it.
func (x *Gangs) allPlaced(j *model.Job, tasks []*model.Task) (n Need, found bool) {
	var failed []string
	var vain []*model.Task
	for over := false; len(tasks) > 0 && !found && !over; tasks = tasks[1:] {
		t := tasks[0]
		r, ok := Room{}, false
		if (t.Role == "" || !slices.Contains(failed, t.Role)) && x.Session.Feasible(t).Yes {
			if r, ok = x.roomThere(t); !ok {
				failed = append(failed, t.Role)
				x.c.SetRoleFailed(j, t.Role, true)
				over = !x.goesOn(j)
			}
		}
		if !ok {
			if t.BestEffort {
				x.c.SetVain(t, true)
				vain = append(vain, t)
			}
			continue
		}
		n.Rooms = append(n.Rooms, r)
		a := x.Session.Pipelined(j)
		if found = a.Yes; found {
			n.Pipelined = a.Reason()
		}
	}
	for _, role := range failed {
		x.c.SetRoleFailed(j, role, false)
	}
	for _, t := range vain {
		x.c.SetVain(t, false)
	}
	return n, found
}

// goesOn reports whether to try a job's other tasks after one found no node.
func (x *Gangs) goesOn(j *model.Job) bool {
	condition := x.Step.Condition(policy.KeyOnNoNode)
	if condition == nil {
		return true
	}
	ok, err := x.Session.JobFilter(condition, j)
	if err != nil {
		x.Warn("job " + j.Key + ": " + err.Error())
	}
	return ok
}

// units returns the units that may be evicted for a task and others of its job, the first to be evicted first. Tasks that gangs can spare
// come before whole gangs.
func (x *Gangs) units(t *model.Task) (out []Unit) {
	candidates, of, jobs := x.everybody(t)
	can := map[*model.Task]bool{}
	for _, j := range jobs {
		for _, v := range spareable(j, of[j]) {
			can[v] = true
		}
	}
	var asked [][]*model.Task
	for _, v := range candidates {
		if can[v] {
			asked = append(asked, []*model.Task{v})
		}
	}
	spare := len(asked)
	if x.Step.Flag(policy.KeyWhole) {
		asked = append(asked, x.gangs(t, jobs, of, can)...)
	}
	if x.Step.Word(policy.KeyNodes) == policy.ByCost {
		x.sortByCost(t, asked[:spare], func(unit []*model.Task) []*model.Task { return unit })
		x.sortByCost(t, asked[spare:], func(unit []*model.Task) []*model.Task { return of[unit[0].Job] })
	}
	let := map[*model.Job]int{} // number of tasks that the rows allow to evict, of those that can be spared
	x.vain.PodsNotSpared(len(candidates) - inAll(asked))
	units, kept := x.Session.Units(x.question(t), asked)
	table, rule := kept.Names()
	x.vain.PodsKept(inAll(asked)-inAll(units), x.site, table, rule)
	for _, lets := range units {
		u := Unit{whole: !can[lets[0].Task]}
		for _, v := range lets {
			u.victims = append(u.victims, Victim{Victim: v, was: v.Task.Status})
		}
		j := u.job()
		if !u.whole {
			let[j]++
		} else if let[j]+len(lets) < len(of[j]) {
			continue
		}
		out = append(out, u)
	}
	return out
}

// inAll returns the total length of some lists.
func inAll[T any](lists [][]T) (n int) {
	for _, list := range lists {
		n += len(list)
	}
	return n
}

// gangs returns, for each job that may be evicted as a whole, the tasks that it cannot spare. The first to be evicted comes first.
func (x *Gangs) gangs(t *model.Task, jobs []*model.Job, of map[*model.Job][]*model.Task, can map[*model.Task]bool) (out [][]*model.Task) {
	rest := map[*model.Job][]*model.Task{}
	var firsts []*model.Task
	for _, j := range jobs {
		left := slices.DeleteFunc(slices.Clone(of[j]), func(v *model.Task) bool { return can[v] })
		if len(left) > 0 && mayGoWhole(j, of[j]) {
			rest[j], firsts = left, append(firsts, left[0])
		}
	}
	x.Session.SortGangs(x.question(t), firsts)
	for _, v := range firsts {
		out = append(out, rest[v.Job])
	}
	return out
}

// everybody returns all tasks that the step may evict for a task, the first to be evicted first. of contains them by job, and jobs are in
// the order of their first tasks.
func (x *Gangs) everybody(t *model.Task) (all []*model.Task, of map[*model.Job][]*model.Task, jobs []*model.Job) {
	for row := range x.c.Nodes.Tasks {
		x.c.Breathe()
		all = x.inScope(t, int32(row), all)
	}
	slices.SortFunc(all, func(a, b *model.Task) int { return strings.Compare(a.Key, b.Key) })
	all, _ = x.who.Of(t, all)
	asked := len(all)
	all = x.unbarred(t, all)
	x.vain.PodsTakenBack(asked - len(all))
	x.Session.SortVictims(x.question(t), all)
	of = map[*model.Job][]*model.Task{}
	for _, v := range all {
		if len(of[v.Job]) == 0 {
			jobs = append(jobs, v.Job)
		}
		of[v.Job] = append(of[v.Job], v)
	}
	return all, of, jobs
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
	spare := map[string]int64{} // the number of pods that each role can spare
	if j.MinMember >= j.RoleMinTotal {
		for _, r := range j.Roles {
			spare[r.Name] = r.Ready() - r.Min
		}
	}
	for _, t := range tasks {
		if int64(len(out)) == surplus {
			break
		}
		if left, bound := spare[t.Role]; bound && left <= 0 {
			continue
		} else if bound {
			spare[t.Role] = left - 1
		}
		out = append(out, t)
	}
	return out
}

// mayGoWhole reports whether a job may be evicted as a whole: all its running tasks are candidates, and it has no promise itself.
func mayGoWhole(j *model.Job, candidates []*model.Task) bool {
	if j.Counts[model.Pipelined] > 0 {
		return false
	}
	running := 0
	for _, t := range j.Tasks {
		if t.HoldsResources() || t.MayGo() {
			running++
		}
	}
	return running == len(candidates)
}

// rowsOf returns the nodes of some units.
func (x *Gangs) rowsOf(units []Unit) map[int32]bool {
	out := map[int32]bool{}
	for i := range units {
		for _, v := range units[i].victims {
			if row, ok := x.c.Nodes.Index[v.Task.NodeName]; ok {
				out[row] = true
			}
		}
	}
	return out
}

// dropUnneeded removes at once all units on nodes without a promise, if the promises stay valid.
func (x *Gangs) dropUnneeded(n *Need) {
	promised, whole := map[int32]bool{}, map[*model.Job]bool{}
	for _, r := range n.Rooms {
		promised[r.row] = true
	}
	var stay, goes []Unit
	for _, u := range slices.Backward(n.Units) {
		there := false
		for row := range x.rowsOf([]Unit{u}) {
			there = there || promised[row]
		}
		if there || !u.whole && whole[u.job()] {
			goes, whole[u.job()] = append(goes, u), whole[u.job()] || u.whole
		} else {
			stay = append(stay, u)
		}
	}
	if rooms, _, _, ok := x.withoutUnits(n.Rooms, stay); ok {
		slices.Reverse(goes)
		n.Rooms, n.Units = rooms, goes
	}
}

// spareUnits removes units that are not needed for some promises, the last victim first, until all others are needed. It records the
// reasons of those.
func (x *Gangs) spareUnits(rooms []Room, units *[]Unit) {
	whole := wholeOf(*units)
	for _, n := range x.needs {
		maps.Copy(whole, wholeOf(n.Units))
	}
	for before := -1; before != len(*units); {
		before = len(*units)
		for i, u := range slices.Backward(*units) {
			if !u.whole && whole[u.job()] {
				continue // it is evicted together with the rest of its gang
			}
			less, refused, why, ok := x.withoutUnits(rooms, []Unit{u})
			if ok {
				copy(rooms, less)
				*units = slices.Delete(*units, i, i+1)
				if u.whole {
					delete(whole, u.job())
				}
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
	known := slices.IndexFunc(rooms, func(r Room) bool { return r.Task == u.at.Task })
	if known >= 0 && rooms[known].Task.Job == rooms[0].Task.Job && x.breaks(u, rooms[known]) {
		return true
	}
	for i, r := range rooms {
		if i != known && r.Task.Job == rooms[0].Task.Job && x.breaks(u, r) {
			return true
		}
	}
	return false
}

// breaks reports whether a promise would fail without the eviction of a unit, with all other promises in place. It records the reason.
func (x *Gangs) breaks(u *Unit, r Room) bool {
	before := x.Txn.Mark()
	defer x.Txn.Rollback(before)
	x.Txn.Unplace(r.Task)
	if x.stays(u); x.takes(r.Task, r.row) {
		return false
	}
	if why := x.refusal(r.Task, r.row); u.at.Task != r.Task || u.needed.Table != why.Table || u.needed.Rule != why.Rule {
		u.needed = why
	}
	u.at = r
	return true
}

// wholeOf returns the jobs that are evicted as a whole.
func wholeOf(units []Unit) map[*model.Job]bool {
	whole := map[*model.Job]bool{}
	for i := range units {
		if u := &units[i]; u.whole {
			whole[u.job()] = true
		}
	}
	return whole
}

// withoutUnits returns some promises without the eviction of some units. Promises on their nodes stay there if possible, and otherwise move
// to a node with free resources. All others must stay valid. If this fails, nothing changes, and refused is the first promise that fails.
func (x *Gangs) withoutUnits(rooms []Room, units []Unit) (less []Room, refused Room, why model.Reason, ok bool) {
	less = slices.Clone(rooms)
	before, touched := x.Txn.Mark(), x.rowsOf(units)
	for _, r := range rooms {
		if touched[r.row] {
			x.Txn.Unplace(r.Task)
		}
	}
	for i := range units {
		x.stays(&units[i])
	}
	for i, r := range rooms {
		if !touched[r.row] {
			continue
		}
		why = model.Reason{}
		if ok = x.takes(r.Task, r.row); ok {
			less[i], ok = x.promise(r.Task, r.row, nil)
		} else {
			why = x.refusal(r.Task, r.row)
		}
		if !ok {
			less[i], ok = x.roomThere(r.Task)
		}
		if !ok {
			x.Txn.Rollback(before)
			return rooms, r, why, false
		}
	}
	for _, r := range less { // a promise on another node still has its amounts, but rows may read which tasks are on nodes now
		mark := x.Txn.Mark()
		x.Txn.Unplace(r.Task)
		if ok = x.mayAllocate(r.Task) && !x.Session.Class(r.Task).RowRefuses(r.row); !ok {
			why = x.refusal(r.Task, r.row)
		}
		if x.Txn.Rollback(mark); !ok {
			x.Txn.Rollback(before)
			return rooms, r, why, false
		}
	}
	return less, Room{}, model.Reason{}, true
}

// unitsPermitted evaluates the rows once more for exactly the units that are evicted in the end. The rows must allow all of them.
func (x *Gangs) unitsPermitted(t *model.Task, units []Unit) bool {
	asked := make([][]*model.Task, len(units))
	for i := range units {
		x.stays(&units[i])
		for _, v := range units[i].victims {
			asked[i] = append(asked[i], v.Task)
		}
	}
	lets, _ := x.Session.Units(x.question(t), asked)
	if len(lets) == len(units) {
		for i := range lets {
			for k, v := range lets[i] {
				units[i].victims[k].Victim = v
			}
		}
	}
	for i := range units {
		x.goes(&units[i])
	}
	return len(lets) == len(units)
}

// KeepNeed adds a need to those that the step has kept.
func (x *Gangs) KeepNeed(n Need) {
	x.needs = append(x.needs, n)
	if len(n.Units) > 0 {
		x.Served[n.Rooms[0].Task.Job] = true
	}
}

// Needs returns the needs that the step has kept, without the units that none of them needs.
func (x *Gangs) Needs() []Need {
	for i := range slices.Backward(x.needs) {
		if len(x.needs) == 1 {
			break // no promise was made since
		}
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
		count := len(x.needs[i].Victims())
		for k := range x.needs[i].Rooms {
			b := &x.needs[i].Rooms[k].Bind
			if b.Reason = report.RoomMade(0); count > 0 {
				b.Reason = report.GangRoomMade(count)
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
		for i := range n.Units {
			x.stays(&n.Units[i])
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
func (x *Gangs) EvictsForGang(n *Need) (out []model.Evict) {
	whole := map[*model.Job]*Unit{} // the reason of a gang's essential tasks applies to all its tasks
	for i := range n.Units {
		if u := &n.Units[i]; u.whole {
			whole[u.job()] = u
		}
	}
	for i := range n.Units {
		u := &n.Units[i]
		why := u
		if all := whole[u.job()]; all != nil {
			why = all
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
