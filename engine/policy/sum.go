package policy

import (
	"fmt"
	"math"
	"slices"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"github.com/celsius-scheduler/celsius/engine/follow"
	"github.com/celsius-scheduler/celsius/engine/language"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/rules"
	"github.com/celsius-scheduler/celsius/rules/source"
)

// sumFunction returns the accounting function that adds up over the members of an owner.
func sumFunction() *Accounting {
	return &Accounting{
		Name: "sum",
		Doc: "A sum over the members of the owner: a queue's jobs, a job's, queue's or namespace's tasks, all of the cluster, and its nodes " +
			"that are ready. Jobs that stand for one pod without a group are left out, their tasks are not. It is kept by delta: a member that " +
			"changed is taken out with its old value and put in with the new.",
		Args: []AccountingArgument{
			{Name: overArgument, Doc: "The word `task`, `job`, `queue` or `node`: what the members are."},
			{Name: "of", Doc: "What is added for each member: Resources or a number.", Sees: member, Want: summable()},
			{Name: "when", Optional: true, Doc: "Which members count; all, if it is left out.", Sees: member, Want: rules.Bool()},
			{Name: "by", Optional: true, Doc: "A string by which members are told apart: the result is a map from it to the sums, without those " +
				"that have no member.", Sees: member, Want: rules.String()},
		},
		OfMembers: true,
		Held:      "kept by delta",
		check:     checkSum,
		Compile:   compileSum,
	}
}

func summable() rules.Kind {
	return rules.Kind{Name: "Resources or a number", Accepts: func(t *cel.Type) bool {
		return t.IsExactType(language.ResourcesType()) || t.Kind() == types.IntKind || t.Kind() == types.DoubleKind
	}}
}

// checkSum reports members that an owner does not have.
func checkSum(s *TableScope, a *rules.Attribute) bool {
	over := a.Args[overArgument]
	if !over.Written() {
		return false // reported where it is missing
	}
	allowed := map[string][]string{
		"cluster": {"job", "node", "queue", "task"}, "namespace": {"job", "task"}, "queue": {"job", "task"}, "job": {"task"},
	}[a.On]
	if slices.Contains(allowed, over.Value) {
		return true
	}
	hint := "a sum is on the cluster, a namespace, a queue or a job"
	if allowed != nil {
		hint = source.Suggest(over.Value, allowed)
	}
	s.report(over.Issue(0, len(over.Value), fmt.Sprintf("a sum on %s cannot go over %q", a.On, over.Value), hint))
	return false
}

func compileSum(s *TableScope, a *rules.Attribute, x *Account) bool {
	f := s.OneField(x, a, a.On)
	f.Over = a.Args[overArgument].Value
	if f.Type = x.Args["of"].Type; x.Args["by"] != nil {
		f.Type = cel.MapType(cel.StringType, f.Type)
	}
	own, lasting := true, true
	x.Timed = followsTime(x.Args)
	for _, e := range x.Args {
		for _, r := range e.Reads.All {
			if r.Root == "now" && x.Timed {
				continue // a member is evaluated again when time changes its amount
			}
			lasting = lasting && s.p.lasting(r, f.Over)
			own = own && (r.Changes <= rules.ByCycle || s.p.Reach(r, f.Over) == Within || r.Root == f.Over && ofItsNode(r))
		}
	}
	x.Keep = func(kept *Accounts) Kept {
		return &sumState{Derived: Derived{Accounts: kept, byAction: f.ByAction, Follows: own, Lasts: lasting}, x: f, timed: timed{on: x.Timed}}
	}
	return true
}

// sumState is a sum that is updated from change logs: the old value of a changed member is subtracted, and the new value is added.
type sumState struct {
	Derived
	x *Attribute
	// The read position in the log of its members. Only the cursor for the members' type is used.
	tasks  follow.Cursor[*model.Task]
	jobs   follow.Cursor[*model.Job]
	queues follow.Cursor[*model.Queue]
	nodes  follow.Cursor[int32]

	members map[any]sumMember
	// totals are by owner (a queue, a job, the name of a namespace, nil for the cluster), then by the value of `by`; "" without it.
	totals map[any]map[string]*Total
	// without contains members without a value, because an argument failed. Each cycle reports them.
	without map[any]bool
	// broken means that some value had a fraction. Subtracting it would leave rounding errors, so the sum is rebuilt instead.
	broken bool
	timed  timed
}

// sumMember is the contribution of one member.
type sumMember struct {
	owner any
	by    string
	value ref.Val
}

// Total is a sum of Resources, with the number of members that have each dimension, or a sum of numbers.
type Total struct {
	members int
	amounts model.Resources
	having  []int
	number  float64
	// The difference to the exact sums.
	amountsRest model.Resources
	numberRest  float64
}

// Add adds the value of one more member, or subtracts it if sign is -1.
func (t *Total) Add(v ref.Val, sign int) {
	t.members += sign
	a, ok := v.(*language.Amounts)
	if !ok {
		x, _ := language.Number(v)
		t.number, t.numberRest = model.AddExactly(t.number, t.numberRest, float64(sign)*x)
		return
	}
	for len(t.having) < len(a.Resources) {
		t.having = append(t.having, 0)
	}
	for i := range a.Resources {
		if !a.Resources.Has(i) {
			continue
		}
		t.having[i] += sign
		t.amounts.AddExactly(&t.amountsRest, i, float64(sign)*a.Resources[i])
		if t.having[i] == 0 {
			t.amounts[i] = model.Absent()
		}
	}
}

// whole reports whether a value has no fraction.
func whole(v ref.Val) bool {
	if a, ok := v.(*language.Amounts); ok {
		return !slices.ContainsFunc(a.Resources, func(x float64) bool { return x == x && x != math.Trunc(x) })
	}
	x, _ := language.Number(v)
	return x == math.Trunc(x)
}

// Value implements Kept. Its cost is that of the changes since the last call, or a visit of every member.
func (st *sumState) Value(x *Attribute, owner ref.Val) ref.Val {
	st.Update()
	st.tellNext()
	var key any
	switch v := owner.(type) {
	case *language.QueueView:
		key = v.Of
	case *language.JobView:
		key = v.Of
	case *language.NamespaceView:
		key = v.Of.Name
	}
	if x.Args["by"] == nil {
		return Sum(st.Accounts.World, x.Type, st.totals[key][""])
	}
	out := make(map[ref.Val]ref.Val, len(st.totals[key]))
	for by, t := range st.totals[key] {
		out[types.String(by)] = Sum(st.Accounts.World, x.Type.Parameters()[1], t)
	}
	return types.NewRefValMap(types.DefaultTypeAdapter, out)
}

// tellNext records when time next changes the sum.
func (st *sumState) tellNext() {
	if next, ok := st.timed.next(); ok {
		st.Accounts.Ask.Until(next)
	}
}

// Erring implements Kept.
func (st *sumState) Erring() bool { return len(st.without) > 0 }

// Sum returns a total as a value of a type. A nil total is zero.
func Sum(w *language.World, typ *cel.Type, t *Total) ref.Val {
	if t == nil {
		t = &Total{}
	}
	switch typ.Kind() {
	case types.IntKind:
		return types.Int(language.WholeOf(t.number))
	case types.DoubleKind:
		return types.Double(t.number)
	default:
		return w.Amounts(t.amounts.Clone())
	}
}

// Update implements Kept.
func (st *sumState) Update() { st.Bring(st) }

// Rebuild implements Deriver. It visits every member.
func (st *sumState) Rebuild() bool {
	c := st.Accounts.c
	st.members, st.totals, st.without, st.broken = map[any]sumMember{}, map[any]map[string]*Total{}, map[any]bool{}, false
	st.timed.restart(st.Accounts.Now.Time)
	switch st.x.Over {
	case "queue":
		st.queues.Skip(&c.QueueLog)
		for _, q := range c.QueuesByName() {
			st.member(q)
		}
	case "node":
		st.nodes.Skip(&c.Nodes.Log)
		for _, row := range c.Nodes.ByOrder() {
			st.member(row)
		}
	case "task":
		st.tasks.Skip(&c.TaskLog)
		for _, j := range c.JobsByKey() { // by job, because sorting jobs is faster than sorting tasks
			for _, t := range j.Tasks {
				st.member(t)
			}
		}
	default:
		st.jobs.Skip(&c.JobLog)
		for _, j := range c.JobsByKey() {
			st.member(j)
		}
	}
	return true
}

// Carry implements Deriver. Deleted members are in the log. Members with errors are evaluated again, because each cycle reports its errors.
func (st *sumState) Carry(to language.Stamp) bool {
	if !st.Replay(to) {
		return false
	}
	if st.at.Cycle != to.Cycle {
		for _, of := range st.erringInOrder() {
			st.member(of)
		}
	}
	return true
}

// erringInOrder returns the members without a value, by key or by the order of nodes. So the first error of a cycle is the same each time.
func (st *sumState) erringInOrder() []any {
	byName := map[string]any{}
	for of := range st.without {
		switch m := of.(type) {
		case *model.Task:
			byName[m.Job.Key+" "+m.Key] = m
		case *model.Job:
			byName[m.Key] = m
		case *model.Queue:
			byName[m.Name] = m
		}
	}
	out := make([]any, 0, len(st.without))
	for _, row := range st.Accounts.c.Nodes.ByOrder() {
		if st.without[row] {
			out = append(out, row)
		}
	}
	for _, name := range sortedKeys(byName) {
		out = append(out, byName[name])
	}
	return out
}

// Replay implements Deriver.
func (st *sumState) Replay(language.Stamp) bool {
	if st.broken || !st.timed.pass(st.Accounts.Now.Time, st.member) {
		return false
	}
	known := false
	switch c := st.Accounts.c; st.x.Over {
	case "queue":
		known = replayed(st, &st.queues, &c.QueueLog)
	case "node":
		known = replayed(st, &st.nodes, &c.Nodes.Log)
	case "task":
		known = replayed(st, &st.tasks, &c.TaskLog)
	default:
		known = replayed(st, &st.jobs, &c.JobLog)
	}
	return known && !st.broken
}

// replayed applies the current values of the members that changed; false: the log does not show which changed.
func replayed[T any](st *sumState, cursor *follow.Cursor[T], log *follow.Log[T]) bool {
	entries, ok := cursor.Read(log)
	for _, m := range entries {
		st.member(m)
	}
	return ok
}

// member replaces the value of one member.
func (st *sumState) member(of any) {
	st.timed.begin()
	st.replace(of)
	st.timed.end(of)
}

func (st *sumState) replace(of any) {
	s, x := st.Accounts, st.x
	f := s.Ask.Frame()
	defer s.Ask.Done()
	if old, known := st.members[of]; known {
		group := st.totals[old.owner]
		group[old.by].Add(old.value, -1)
		if group[old.by].members == 0 {
			delete(group, old.by)
		}
		delete(st.members, of)
	}
	delete(st.without, of)
	owner, ok := s.member(f, x, of)
	if !ok {
		return
	}
	is := sumMember{owner: owner}
	if w := x.Args["when"]; w != nil {
		held := w.Eval(f)
		st.timed.watch(w, f)
		if held != types.True {
			st.faultIn(of, f, held)
			return
		}
	}
	if by := x.Args["by"]; by != nil {
		v := by.Eval(f)
		st.timed.watch(by, f)
		text, isString := v.(types.String)
		if !isString {
			st.faultIn(of, f, v)
			return
		}
		is.by = string(text)
	}
	is.value = x.Args["of"].Eval(f)
	st.timed.watch(x.Args["of"], f)
	if types.IsError(is.value) {
		st.faultIn(of, f, is.value)
		return
	}
	is.value = language.Held(is.value)
	st.put(is)
	st.members[of] = is
}

// member sets the frame to a member of a sum, and returns the member's owner; false: it has none.
func (s *Accounts) member(f *language.Frame, x *Attribute, of any) (owner any, ok bool) {
	var job *model.Job
	switch m := of.(type) {
	case *model.Queue:
		if s.c.Queues[m.Name] != m {
			return nil, false // it was deleted
		}
		f.Queue = s.QueueView(m)
		return nil, true
	case int32:
		if n := s.c.Nodes.Rows[m]; n == nil || !n.Ready {
			return nil, false
		}
		f.Node = s.NodeView(m)
		return nil, true
	case *model.Job:
		if m.Orphan || s.c.Jobs[m.Key] != m {
			return nil, false
		}
		f.Job, job = s.JobView(m), m
	case *model.Task:
		if s.c.Tasks[m.Key] != m {
			return nil, false
		}
		f.Task, job = s.TaskView(m), m.Job
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

func (st *sumState) put(m sumMember) {
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

// faultIn records an error of a member if v is an error.
func (st *sumState) faultIn(of any, f *language.Frame, v ref.Val) {
	if types.IsError(v) {
		st.without[of] = true
		st.Accounts.Ask.FaultOf(st.x, f, v)
	}
}
