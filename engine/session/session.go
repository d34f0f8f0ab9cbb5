package session

import (
	"time"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"github.com/celsius-scheduler/celsius/engine/language"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/engine/policy/facts"
	"github.com/celsius-scheduler/celsius/engine/slab"
	"github.com/celsius-scheduler/celsius/engine/verdict"
	"github.com/celsius-scheduler/celsius/rules"
	"github.com/celsius-scheduler/celsius/rules/eval"
)

// Session runs a Policy on a Cluster: it evaluates each site, and remembers results that stay valid. It has one owner, as the cluster has.
type Session struct {
	base
	answers
	orders

	accounts *policy.Accounts
	verdicts *verdict.Verdicts
	rest     rest
	meters   meters

	starts      map[started]ref.Val
	startsSwept slab.Swept
}

// base contains the fields that all parts of a session share.
type base struct {
	*language.World
	p   *policy.Policy
	c   *model.Cluster
	ask *evaluator
}

// New returns a session that remembers nothing.
func New(c *model.Cluster, p *policy.Policy) *Session {
	s := &Session{starts: map[started]ref.Val{}, meters: metersOf(p)}
	w := language.NewWorld(c, p.Layout, s)
	w.Meter = func(e *eval.Expr) *eval.Meter { return s.meters.of[e] }
	s.base = base{World: w, p: p, c: c, ask: newEvaluator(w, p)}
	s.accounts = policy.NewAccounts(w, p, s.ask)
	s.answers, s.orders = answers{s.base}, orders{base: s.base, accounts: s.accounts}
	s.outlook = s.newOutlook(facts.QueueOrderReads(p))
	s.verdicts = verdict.New(w, p, s.ask)
	s.initRest()
	return s
}

// Policy returns the policy of the session.
func (s *Session) Policy() *policy.Policy { return s.p }

// Evaluated returns how often a rule of the session's policy was evaluated since the session began. Keys of orders do not count.
func (s *Session) Evaluated(r *policy.Rule) uint64 { return s.ask.evaluated[r.Number] }

// Begin starts a cycle. It computes attributes that settle once per cycle from the present state.
func (s *Session) Begin(now time.Time) {
	s.Cycle++
	s.SetTime(now)
	s.rest.begun, s.rest.now, s.ask.until = s.c.Content(), now, time.Time{}
	s.rest.values = string(s.timeParts())
	s.timeText = s.rest.values
	s.UsedAtStart = s.c.Used.Clone()
	s.ask.noFaults()
	s.meters.begin()
	s.Action = types.String("")
	s.verdicts.Begin(s.Cycle)
	s.forget()
	s.LimitDictionaries()
	s.rest.passed = s.accounts.PassTime()
	for _, x := range s.p.Attributes() {
		if x.Settle == "cycle" || x.Settle == "start" {
			s.c.Handle(x)
			s.settle(x)
		}
	}
	s.c.Turn = nil
}

// settle computes an attribute that does not change within a cycle for all its owners.
func (s *Session) settle(x *policy.Attribute) {
	if x.Account != nil && x.Account.Function.AllAtOnce && x.When == nil {
		s.accounts.Of(x.Account).Update()
		return
	}
	for _, view := range s.Owners(x.On) {
		s.c.Breathe()
		policy.ReadAttribute(x, view)
	}
}

// SetAction sets the running action, for rows that read it.
func (s *Session) SetAction(name string) {
	if s.Action != types.String(name) {
		s.Action = types.String(name)
	}
	s.ask.actions++
}

// Variable implements Values. It computes a variable once for its owner, until something changes.
func (s *Session) Variable(v *policy.Variable, f *language.Frame) ref.Val {
	held := &f.Workspace.Variables[v.Slot]
	at := s.ask.StampOf(v.ByAction)
	on := f.Owner(v.On)
	if v.Expr.Reads.Changes() > rules.ByCycle || on != nil {
		at.Clock = s.c.Clock
	}
	if held.Value != nil && (!v.ByTime || !s.ask.asking) && held.Stamp == at && held.On == on {
		return held.Value
	}
	value := v.Expr.Eval(f)
	s.ask.Watch(v.Expr, f)
	*held = language.HeldValue{Memo: language.Memo{Stamp: at, Value: value}, On: on}
	return value
}

// Attribute implements Values. It returns a computed field from its memo, or computes it.
func (s *Session) Attribute(x *policy.Attribute, owner ref.Val) ref.Val {
	m, version := s.memoOf(x, owner)
	if x.Settle == "start" {
		return s.atStart(x, owner, m)
	}
	at := s.ask.StampOf(x.ByAction)
	switch {
	case x.Settle == "cycle":
		at.Action = 0
	case x.Changes <= rules.ByCycle:
	case x.Reach == policy.Within:
		at.Clock = version + 1
	case x.Reach == policy.AlongTree:
		at.Clock = version + s.accounts.TreeVersion(x.Trees, owner) + 1
	default:
		at.Clock = s.c.Clock + 1
	}
	if m.Value != nil && m.Stamp == at && (!x.ByTime || !s.ask.asking) {
		return m.Value
	}
	m.Value = s.compute(x, owner)
	m.Stamp = at
	return m.Value
}

// memoOf returns the memo of a computed field of an object, and the object's version.
func (s *Session) memoOf(x *policy.Attribute, owner ref.Val) (m *language.Memo, version uint64) {
	switch v := owner.(type) {
	case *language.QueueView:
		return &v.Memos[x.Slot], v.Of.Version
	case *language.JobView:
		return &v.Memos[x.Slot], v.Of.Version
	case *language.TaskView:
		return &v.Memos[x.Slot], v.Of.Job.Version
	case *language.NodeView:
		return &v.Memos[x.Slot], s.c.Nodes.Version[v.Of.Row]
	case *language.NamespaceView:
		return &v.Memos[x.Slot], s.c.Clock
	}
	return &s.ClusterView.Memos[x.Slot], s.c.Clock
}

// started identifies the value of an attribute with settle start.
type started struct {
	of    *policy.Attribute
	owner string
}

// atStart returns the value of the first cycle, or of the first cycle in which its owner existed. If an evaluation exceeds its budget, the
// result is valid for the cycle only, and the next cycle computes it again.
func (s *Session) atStart(x *policy.Attribute, owner ref.Val, m *language.Memo) ref.Val {
	key := started{x, language.OwnerName(owner)}
	if v, ok := s.starts[key]; ok {
		return v
	}
	at := s.ask.StampOf(false)
	if m.Value != nil && m.Stamp == at {
		return m.Value
	}
	v := s.compute(x, owner)
	if rules.Exceeded(v) {
		*m = language.Memo{Stamp: at, Value: v}
		return v
	}
	s.starts[key] = v
	return v
}

func (s *Session) compute(x *policy.Attribute, owner ref.Val) ref.Val {
	f := s.ask.Frame()
	defer s.ask.Done()
	f.About(owner)
	if x.When != nil {
		held := x.When.Eval(f)
		s.ask.Watch(x.When, f)
		if held != types.True {
			if types.IsError(held) {
				return held
			}
			return types.NewErr("%s has no value here: its guard is false", x.Name)
		}
	}
	if x.Account != nil {
		return s.accounts.Of(x.Account).Value(x, owner)
	}
	v := x.Expr.Eval(f)
	s.ask.Watch(x.Expr, f)
	return language.Held(v)
}

// Faults returns the errors of rows in this cycle, in the order of their first occurrence.
func (s *Session) Faults() []model.RuleError { return s.ask.Faults() }

// Spread sets when several processors evaluate one row. The answers are the same.
func (s *Session) Spread(over Split) { s.ask.Split = over }

// Until records that something that the plan depends on may change at that moment. The zero time has no effect.
func (s *Session) Until(moment time.Time) { s.ask.Until(moment) }

// NeverFits returns a text for a task that requests more than any empty node has; otherwise "".
func (s *Session) NeverFits(t *model.Task) string { return s.verdicts.NeverFits(t) }

// NodeSizes returns a number that changes whenever NeverStarts may return a different result for a job that did not change.
func (s *Session) NodeSizes() uint64 { return s.verdicts.NodeSizes() }

// NeverStarts returns why a job can never start on the nodes that the cluster has; "" for any other job.
func (s *Session) NeverStarts(j *model.Job) string { return s.verdicts.NeverStarts(j) }

// GangNeverStarts reports whether the pods of a job that must start together can never start on the nodes that the cluster has.
func (s *Session) GangNeverStarts(j *model.Job) bool { return s.verdicts.GangNeverStarts(j) }

// KeptBackBy returns the roles of the pods that keep a job from starting because they fit no node that the cluster has.
func (s *Session) KeptBackBy(j *model.Job) []string { return s.verdicts.KeptBackBy(j) }

// ReadsOpen reports whether the row of a reason depends on whether the queue is open.
func (s *Session) ReadsOpen(why model.Reason) bool { return s.Policy().Row(why).ReadsOpen() }

// Devices chooses the devices of a node for a task, by index in ascending order. It chooses those with the largest sums of deviceScores
// among the devices that are free enough. With later, it also counts what will be free after all releasing tasks are gone.
func (s *Session) Devices(t *model.Task, row int32, later bool) []int {
	return s.verdicts.Devices(t, row, later)
}

// Class returns the updated class of a task, as the task sees it. It is valid until the next call.
func (s *Session) Class(t *model.Task) *verdict.Class { return s.verdicts.Of(t) }
