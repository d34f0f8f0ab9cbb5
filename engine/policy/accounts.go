package policy

import (
	"cmp"
	"math"
	"slices"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/quota"
)

// sumState keeps a sum by delta: a member that changed is taken out with its old value and put in with the new.
type sumState struct {
	at      stamp // cycle and object clock of the last rebuild
	clock   uint64
	cursor  uint64
	members map[any]member
	totals  map[any]*total // by owner: a queue, or nil for the cluster
	// broken says that some value had a fraction: what is taken out again then leaves its last bits behind, so
	// that the sum is made anew instead.
	broken bool
}

type member struct {
	owner any
	value ref.Val
}

// total is a sum of Resources, with how many members have each dimension, or of numbers.
type total struct {
	amounts model.Resources
	having  []int
	number  float64
}

func (t *total) add(v ref.Val, sign int) {
	a, ok := v.(*amounts)
	if !ok {
		x, _ := number(v)
		t.number += float64(sign) * x
		return
	}
	for len(t.having) < len(a.r) {
		t.having = append(t.having, 0)
	}
	for i := range a.r {
		if !a.r.Has(i) {
			continue
		}
		t.having[i] += sign
		t.amounts.Set(i, t.amounts.Get(i)+float64(sign)*a.r[i])
		if t.having[i] == 0 {
			t.amounts[i] = model.Absent()
		}
	}
}

// whole says that a value has no fraction.
func whole(v ref.Val) bool {
	if a, ok := v.(*amounts); ok {
		return !slices.ContainsFunc(a.r, func(x float64) bool { return x == x && x != math.Trunc(x) })
	}
	x, _ := number(v)
	return x == math.Trunc(x)
}

// sum is the value of a sum attribute for one owner.
func (s *Session) sum(x *attribute, owner ref.Val) ref.Val {
	st := s.sums[x]
	if st == nil {
		st = &sumState{}
		s.sums[x] = st
	}
	s.catchUp(x, st)
	var key any
	if q, ok := owner.(*queueView); ok {
		key = q.of
	}
	t := st.totals[key]
	if t == nil {
		t = &total{}
	}
	switch x.typ.Kind() {
	case types.IntKind:
		return types.Int(t.number)
	case types.DoubleKind:
		return types.Double(t.number)
	default:
		return s.amounts(t.amounts.Clone())
	}
}

func (s *Session) catchUp(x *attribute, st *sumState) {
	at := s.stampOf(x.byAction)
	at.clock = s.c.ObjectClock
	if st.members != nil && st.at == at && !s.NoCache {
		if st.clock == s.c.Clock {
			return
		}
		if x.memberOwn && !st.broken && s.replay(x, st) && !st.broken {
			st.clock = s.c.Clock
			return
		}
	}
	*st = sumState{at: at, clock: s.c.Clock, members: map[any]member{}, totals: map[any]*total{}}
	if x.over == "queue" {
		st.cursor = s.c.QueueLog.Next()
		for _, name := range sortedKeys(s.c.Queues) {
			s.member(x, st, s.c.Queues[name])
		}
		return
	}
	st.cursor = s.c.JobLog.Next()
	for _, key := range sortedKeys(s.c.Jobs) {
		if j := s.c.Jobs[key]; !j.Orphan {
			s.member(x, st, j)
		}
	}
}

// replay updates the members that changed since; false: the log was cut.
func (s *Session) replay(x *attribute, st *sumState) bool {
	if x.over == "queue" {
		entries, ok := s.c.QueueLog.Since(st.cursor)
		for _, q := range entries {
			s.member(x, st, q)
		}
		st.cursor = s.c.QueueLog.Next()
		return ok
	}
	entries, ok := s.c.JobLog.Since(st.cursor)
	for _, j := range entries {
		if !j.Orphan {
			s.member(x, st, j)
		}
	}
	st.cursor = s.c.JobLog.Next()
	return ok
}

// member puts the present value of one member in place of its old one.
func (s *Session) member(x *attribute, st *sumState, of any) {
	f := s.frame()
	defer s.done()
	var owner any
	switch m := of.(type) {
	case *model.Job:
		f.job = s.jobView(m)
		if x.on == "queue" {
			if m.Queue == nil {
				return
			}
			owner = m.Queue
		}
	case *model.Queue:
		f.queue = s.queueView(m)
	}
	if old, ok := st.members[of]; ok {
		st.totals[old.owner].add(old.value, -1)
		delete(st.members, of)
	}
	if w := x.args["when"]; w != nil {
		if held := w.Eval(f); held != types.True {
			if types.IsError(held) {
				s.faultOf(x, f, held)
			}
			return
		}
	}
	v := x.args["of"].Eval(f)
	if types.IsError(v) {
		s.faultOf(x, f, v)
		return
	}
	if a, ok := v.(*amounts); ok {
		v = &amounts{a.r.Clone(), a.dims}
	}
	t := st.totals[owner]
	if t == nil {
		t = &total{}
		st.totals[owner] = t
	}
	t.add(v, 1)
	st.broken = st.broken || !whole(v)
	st.members[of] = member{owner, v}
}

// fillState is the outcome of one waterFill.
type fillState struct {
	at     stamp
	values map[*model.Queue]ref.Val
}

// fill is the value of a waterFill attribute for one queue.
func (s *Session) fill(x *attribute, owner ref.Val) ref.Val {
	st := s.fills[x]
	at := stamp{cycle: s.cycle}
	if x.settle == "current" {
		at = s.stampOf(x.byAction)
		at.clock = s.c.Clock
	}
	if st == nil || st.at != at {
		st = &fillState{at, s.waterFill(x)}
		s.fills[x] = st
	}
	q, ok := owner.(*queueView)
	if v := st.values[q.of]; ok && v != nil {
		return v
	}
	return types.NewErr("%s has no value for queue %s: it takes no part", x.name, q.of.Name)
}

func (s *Session) waterFill(x *attribute) map[*model.Queue]ref.Val {
	values := map[*model.Queue]ref.Val{}
	var queues []*model.Queue
	var claims []quota.Claim
	f := s.frame()
	defer s.done()
	whole := x.args["total"].Eval(f)
	total, ok := whole.(*amounts)
	if !ok {
		s.faultOf(x, f, whole)
		return values
	}
	all := make([]*model.Queue, 0, len(s.c.Queues))
	for _, q := range s.c.Queues {
		all = append(all, q)
	}
	slices.SortFunc(all, func(a, b *model.Queue) int { return cmp.Compare(a.Name, b.Name) })
	for _, q := range all {
		f.queue = s.queueView(q)
		if w := x.args["among"]; w != nil && w.Eval(f) != types.True {
			continue
		}
		claim, err := claimOf(x, f)
		if err != nil {
			s.faultOf(x, f, err)
			values[q] = err
			continue
		}
		queues, claims = append(queues, q), append(claims, claim)
	}
	for i, r := range quota.WaterFill(total.r, claims) {
		values[queues[i]] = s.amounts(r)
	}
	return values
}

// claimOf evaluates one queue's arguments; an error is a *types.Err.
func claimOf(x *attribute, f *Frame) (quota.Claim, ref.Val) {
	c := quota.Claim{}
	weight := x.args["weight"].Eval(f)
	w, ok := number(weight)
	if !ok || !(w > 0) {
		return c, types.NewErr("weight of queue %s must be above 0, is %s", f.subject(), text(weight))
	}
	c.Weight = w
	for _, arg := range []struct {
		name string
		into *model.Resources
	}{{"floor", &c.Floor}, {"ceiling", &c.Ceiling}, {"demand", &c.Demand}} {
		e := x.args[arg.name]
		if e == nil {
			continue
		}
		v := e.Eval(f)
		a, ok := v.(*amounts)
		if !ok {
			return c, v
		}
		*arg.into = a.r.Clone()
	}
	return c, nil
}
