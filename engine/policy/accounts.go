package policy

import (
	"math"
	"slices"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"github.com/celsius-scheduler/celsius/engine/model"
)

// sumState keeps a sum by delta: a member that changed is taken out with its old value and put in with the new.
type sumState struct {
	at      stamp // cycle and object clock of the last rebuild
	clock   uint64
	cursor  uint64
	members map[any]member
	// totals are by owner (a queue, a job, the name of a namespace, nil for the cluster), then by what `by` gives, "" without it.
	totals map[any]map[string]*Total
	// erred are the members that have no value, as an argument erred: each cycle is told of them.
	erred map[any]bool
	// broken says that some value had a fraction: what is taken out again then leaves its last bits behind, so
	// that the sum is made anew instead.
	broken bool
}

type member struct {
	owner any
	by    string
	value ref.Val
}

// Total is a sum of Resources, with how many members have each dimension, or of numbers.
type Total struct {
	members int
	amounts model.Resources
	having  []int
	number  float64
	// What they lack of the exact sums.
	amountsRest model.Resources
	numberRest  float64
}

// Add counts a value of one more member in, or with sign -1 out.
func (t *Total) Add(v ref.Val, sign int) {
	t.members += sign
	a, ok := v.(*amounts)
	if !ok {
		x, _ := Number(v)
		t.number, t.numberRest = model.AddExactly(t.number, t.numberRest, float64(sign)*x)
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
		t.amounts.AddExactly(&t.amountsRest, i, float64(sign)*a.r[i])
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
	x, _ := Number(v)
	return x == math.Trunc(x)
}

// sum is the value of a sum attribute for one owner. It costs what has changed since it was last asked for; the first
// time in a cycle, a look at every member.
func (s *Session) sum(x *Attribute, owner ref.Val) ref.Val {
	st := s.sumState(x)
	var key any
	switch v := owner.(type) {
	case *queueView:
		key = v.of
	case *jobView:
		key = v.of
	case *namespaceView:
		key = v.of.Name
	}
	if x.Args["by"] == nil {
		return s.Sum(x.Type, st.totals[key][""])
	}
	out := make(map[ref.Val]ref.Val, len(st.totals[key]))
	for by, t := range st.totals[key] {
		out[types.String(by)] = s.Sum(x.Type.Parameters()[1], t)
	}
	return types.NewRefValMap(types.DefaultTypeAdapter, out)
}

// sumState is a sum as the cluster is now.
func (s *Session) sumState(x *Attribute) *sumState {
	st := s.sums[x]
	if st == nil {
		st = &sumState{}
		s.sums[x] = st
	}
	s.catchUp(x, st)
	return st
}

// Sum is a total as a value of a type; nil is nothing.
func (w *World) Sum(typ *cel.Type, t *Total) ref.Val {
	if t == nil {
		t = &Total{}
	}
	switch typ.Kind() {
	case types.IntKind:
		return types.Int(wholeOf(t.number))
	case types.DoubleKind:
		return types.Double(t.number)
	default:
		return w.Amounts(t.amounts.Clone())
	}
}

// catchUp brings a sum up to date, by what has changed where that will do, else anew.
func (s *Session) catchUp(x *Attribute, st *sumState) {
	at := s.stampOf(x.byAction)
	at.clock = s.c.ObjectClock
	if st.members == nil || s.NoCache {
		s.sumUp(x, st, at)
		return
	}
	if x.kept && !st.broken && st.at != at {
		s.nextCycle(x, st, at)
	}
	switch {
	case st.at != at:
		s.sumUp(x, st, at)
	case st.clock == s.c.Clock:
	case x.memberOwn && !st.broken && s.replay(x, st) && !st.broken:
		st.clock = s.c.Clock
	default:
		s.sumUp(x, st, at)
	}
}

// sumUp makes a sum anew, with a look at every member.
func (s *Session) sumUp(x *Attribute, st *sumState, at stamp) {
	*st = sumState{at: at, clock: s.c.Clock, members: map[any]member{}, totals: map[any]map[string]*Total{}, erred: map[any]bool{}}
	switch x.Over {
	case "queue":
		st.cursor = s.c.QueueLog.Next()
		for _, q := range s.c.QueuesByName() {
			s.member(x, st, q)
		}
	case "task":
		st.cursor = s.c.TaskLog.Next()
		for _, j := range s.c.JobsByKey() { // by job, as there are fewer of them to be sorted
			for _, t := range j.Tasks {
				s.member(x, st, t)
			}
		}
	default:
		st.cursor = s.c.JobLog.Next()
		for _, j := range s.c.JobsByKey() {
			s.member(x, st, j)
		}
	}
}

// nextCycle takes a sum over into a new cycle, or past an Apply: members that are gone are in the log. What erred is asked
// again, as a fault is one of a cycle.
func (s *Session) nextCycle(x *Attribute, st *sumState, at stamp) {
	if !s.replay(x, st) || st.broken {
		return // it is made anew
	}
	if st.at.cycle != at.cycle {
		for _, of := range membersInOrder(st.erred) {
			s.member(x, st, of)
		}
	}
	st.at, st.clock = at, s.c.Clock
}

// membersInOrder lists members by their keys, for the first fault of a cycle to be the same each time.
func membersInOrder(members map[any]bool) []any {
	byName := map[string]any{}
	for of := range members {
		switch m := of.(type) {
		case *model.Task:
			byName[m.Job.Key+" "+m.Key] = m
		case *model.Job:
			byName[m.Key] = m
		case *model.Queue:
			byName[m.Name] = m
		}
	}
	out := make([]any, 0, len(members))
	for _, name := range sortedKeys(byName) {
		out = append(out, byName[name])
	}
	return out
}

// replay updates the members that changed since; false: the log was cut.
func (s *Session) replay(x *Attribute, st *sumState) bool {
	switch x.Over {
	case "queue":
		return replayed(s, x, st, &s.c.QueueLog)
	case "task":
		return replayed(s, x, st, &s.c.TaskLog)
	}
	return replayed(s, x, st, &s.c.JobLog)
}

func replayed[T any](s *Session, x *Attribute, st *sumState, log *model.Log[T]) bool {
	entries, ok := log.Since(st.cursor)
	for _, m := range entries {
		s.member(x, st, m)
	}
	st.cursor = log.Next()
	return ok
}

// member puts the present value of one member in place of its old one.
func (s *Session) member(x *Attribute, st *sumState, of any) {
	f := s.frame()
	defer s.done()
	if old, known := st.members[of]; known {
		group := st.totals[old.owner]
		group[old.by].Add(old.value, -1)
		if group[old.by].members == 0 {
			delete(group, old.by)
		}
		delete(st.members, of)
	}
	delete(st.erred, of)
	owner, ok := f.member(x, of)
	if !ok {
		return
	}
	is := member{owner: owner}
	if w := x.Args["when"]; w != nil {
		if held := w.Eval(f); held != types.True {
			s.faultIn(x, st, of, f, held)
			return
		}
	}
	if by := x.Args["by"]; by != nil {
		v := by.Eval(f)
		text, isString := v.(types.String)
		if !isString {
			s.faultIn(x, st, of, f, v)
			return
		}
		is.by = string(text)
	}
	is.value = x.Args["of"].Eval(f)
	if types.IsError(is.value) {
		s.faultIn(x, st, of, f, is.value)
		return
	}
	is.value = Held(is.value)
	st.put(is)
	st.members[of] = is
}

// member makes a member of a sum what the frame is about, and gives its owner; false: it has none.
func (f *Frame) member(x *Attribute, of any) (owner any, ok bool) {
	var job *model.Job
	switch m := of.(type) {
	case *model.Queue:
		if f.s.c.Queues[m.Name] != m {
			return nil, false // it is gone
		}
		f.queue = f.s.queueView(m)
		return nil, true
	case *model.Job:
		if m.Orphan || f.s.c.Jobs[m.Key] != m {
			return nil, false
		}
		f.job, job = f.s.jobView(m), m
	case *model.Task:
		if f.s.c.Tasks[m.Key] != m {
			return nil, false
		}
		f.task, job = f.s.taskView(m), m.Job
	}
	switch x.On {
	case "queue":
		return job.Queue, job.Queue != nil
	case "job":
		return job, true
	case "namespace":
		return job.Namespace, true
	}
	return nil, true
}

func (st *sumState) put(m member) {
	group := st.totals[m.owner]
	if group == nil {
		group = map[string]*Total{}
		st.totals[m.owner] = group
	}
	t := group[m.by]
	if t == nil {
		t = &Total{}
		group[m.by] = t
	}
	t.Add(m.value, 1)
	st.broken = st.broken || !whole(m.value)
}

// faultIn counts an error of a member, where v is one.
func (s *Session) faultIn(x *Attribute, st *sumState, of any, f *Frame, v ref.Val) {
	if types.IsError(v) {
		st.erred[of] = true
		s.faultOf(x, f, v)
	}
}
