package policy

import (
	"bytes"
	"math"
	"slices"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"github.com/celsius-scheduler/celsius/engine/follow"
	"github.com/celsius-scheduler/celsius/engine/language"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/quota"
	"github.com/celsius-scheduler/celsius/rules"
)

// waterFillFunction returns the accounting function that divides a total among queues.
func waterFillFunction() *Accounting {
	amount := rules.Exactly(language.ResourcesType(), "Resources")
	return &Accounting{
		Name: "waterFill",
		Doc: "On a queue: a fair part of a total. In rounds, each queue that is not met gets its weighted part of what remains, is cut to " +
			"ceiling and demand and raised to floor; it is met when its demand is, or when nothing changed for it. It ends when every queue is " +
			"met, or nothing remains or changes. Settles once a cycle unless `settle` says otherwise.",
		Args: []AccountingArgument{
			{Name: "among", Optional: true, Doc: "Which queues take part; all, if it is left out. Reading the value of one that does not is an " +
				"error.", Sees: "queue", Want: rules.Bool()},
			{Name: "total", Doc: "Resources that are shared out; sees no queue.", Want: amount},
			{
				Name: "weight", Doc: "A number above 0. A queue with another one is left out, which is an error of that queue.",
				Sees: "queue", Want: rules.Number(),
			},
			{Name: "floor", Optional: true, Doc: "Resources that the queue gets in any case.", Sees: "queue", Want: amount},
			{
				Name: "ceiling", Optional: true, Doc: "Most Resources for the queue; a missing dimension is no limit.",
				Sees: "queue", Want: amount,
			},
			{Name: "whole", Optional: true, Doc: "Whether parts of extended resources, which are devices, are whole numbers: rounded by largest " +
				"remainder, then by rank, then by the queues' names, where all demands are whole; sees no queue.", Want: rules.Bool()},
			{
				Name: "rank", Optional: true, Doc: "A number. If queues have equal remainders, the queue with the larger number is rounded up first.",
				Sees: "queue", Want: rules.Number(),
			},
			{Name: "demand", Doc: "What the queue can use; a missing dimension is 0.", Sees: "queue", Want: amount},
		},
		On:        []string{"queue"},
		Settles:   "cycle",
		AllAtOnce: true,
		Compile:   compileWaterFill,
	}
}

func compileWaterFill(s *TableScope, a *rules.Attribute, x *Account) bool {
	f := s.OneField(x, a, "cluster")
	f.Type = language.ResourcesType()
	claims := &claimReads{}
	for _, name := range sortedKeys(x.Args) {
		if name != "total" && name != "whole" {
			s.p.claimReads(claims, x.Args[name].Reads)
		}
	}
	x.Keep = func(kept *Accounts) Kept {
		settles := f.Settle != "current"
		return &fillState{
			Derived: Derived{Accounts: kept, byAction: f.ByAction && !settles, Follows: true, Lasts: true, settles: settles}, x: f, reads: claims,
		}
	}
	return true
}

// claimReads lists what the claims of a waterFill read, except changes that are logged for their own queue.
type claimReads struct {
	// shared are fields of the cluster. If one changes, all claims may change.
	shared []rules.Read
	// accounts belong to the queues themselves. An account with an error reports it in each cycle.
	accounts []*Account
	// byCycle means that a claim may change in another cycle although its queue did not change.
	byCycle bool
	// beyond means that a claim reads data whose changes are not tracked here.
	beyond bool
}

// claimReads adds the reads of one argument.
func (p *Policy) claimReads(c *claimReads, reads *rules.Reads) {
	for _, r := range reads.All {
		switch {
		case r.Root == "now", r.Root == "action": // a cycle begins with no action
			c.byCycle = true
		case r.Root == "cluster" && OfMembers(r): // on the path to a computed field of the cluster, or to a field that sets beyond
		case r.Root == "cluster" && len(r.Steps) == 1 && Encodable(r.Steps[0].Member.Type):
			c.shared = append(c.shared, r)
		case r.Root == "queue":
			p.claimReadsOwn(c, r)
		default:
			c.beyond = c.beyond || r.Changes > rules.Static
		}
	}
}

// claimReadsOwn adds a read that begins at the claim's queue.
func (p *Policy) claimReadsOwn(c *claimReads, r rules.Read) {
	if len(r.Steps) == 0 || p.Reach(r, "queue") != Within {
		c.beyond = true
		return
	}
	for _, step := range r.Steps {
		x := p.computed[step.Member]
		if x == nil {
			continue
		}
		c.byCycle = c.byCycle || x.Settle == "cycle" || x.Settle == "start"
		switch {
		case x.Account == nil:
		case !x.Account.Function.OfMembers:
			c.beyond = true
		case !slices.Contains(c.accounts, x.Account):
			c.accounts = append(c.accounts, x.Account)
		}
	}
}

// stale reports whether claims may have changed between two moments although neither their queues nor the shared fields changed.
func (c *claimReads) stale(then, now language.Stamp) bool {
	return c.beyond || c.byCycle && then.Cycle != now.Cycle || then.Action != now.Action
}

// Encodable reports whether values of a type are equal if and only if their encodings are equal.
func Encodable(t *cel.Type) bool {
	switch t.Kind() {
	case types.BoolKind, types.IntKind, types.DoubleKind, types.StringKind:
		return true
	default:
		return t.IsExactType(language.ResourcesType())
	}
}

// fillState is the result of one waterFill, with its claims.
type fillState struct {
	Derived
	x     *Attribute
	reads *claimReads

	cursor follow.Cursor[*model.Queue]
	shared []byte         // the encoded cluster fields that claims read
	queues []*model.Queue // all queues in name order
	index  map[*model.Queue]int
	claims []claim // the claims of the queues
	total  model.Resources
	whole  bool // shares of devices are whole numbers
	water  quota.Water
	// Scratch.
	todo   []int // claims to evaluate again
	next   quota.Claim
	taking []quota.Claim
}

// claim is the claim of one queue and its share.
type claim struct {
	quota.Claim
	takes bool    // the queue takes part
	err   ref.Val // the error of an argument, a *types.Err; nil: none
	value ref.Val // the share, or err; nil: it takes no part
	// told is the value at the last call of FillVersion. version counts its changes.
	told    ref.Val
	version uint64
}

// FillVersion returns a number that changes when a queue's share changes.
func (s *Accounts) FillVersion(x *Account, q *model.Queue) uint64 {
	st, ok := s.Of(x).(*fillState)
	if !ok {
		return s.c.Clock
	}
	st.Update()
	i, ok := st.index[q]
	if !ok {
		return s.c.Clock
	}
	c := &st.claims[i]
	if c.version == 0 || c.told != c.value {
		s.filled++
		c.told, c.version = c.value, s.filled
	}
	return c.version
}

// Value implements Kept.
func (st *fillState) Value(x *Attribute, owner ref.Val) ref.Val {
	st.Update()
	q, ok := owner.(*language.QueueView)
	if i, known := st.index[q.Of]; ok && known && st.claims[i].value != nil {
		return st.claims[i].value
	}
	return types.NewErr("%s has no value for queue %s: it takes no part", x.Name, q.Of.Name)
}

// Update implements Kept. For each changed queue it costs one evaluation of the arguments. If a claim or the total changed, it also costs
// the rounds of quota.Water.
func (st *fillState) Update() { st.Bring(st) }

// Carry implements Deriver. A replay finds the changed claims.
func (st *fillState) Carry(language.Stamp) bool { return true }

// Rebuild implements Deriver.
func (st *fillState) Rebuild() bool {
	st.forget()
	return st.Replay(st.at)
}

// forget drops all results.
func (st *fillState) forget() { *st = fillState{Derived: st.Derived, x: st.x, reads: st.reads} }

// Replay implements Deriver.
func (st *fillState) Replay(to language.Stamp) bool {
	s, x := st.Accounts, st.x
	f := s.Ask.Frame()
	defer s.Ask.Done()
	whole := x.Args["total"].Eval(f)
	total, ok := whole.(*language.Amounts)
	if !ok {
		s.Ask.FaultOf(x, f, whole)
		st.forget()
		return true
	}
	changed := st.findClaims(to)
	if e := x.Args["whole"]; e != nil {
		whole := e.Eval(f) == types.True
		changed, st.whole = changed || whole != st.whole, whole
	}
	for _, i := range st.todo {
		f.Queue = s.QueueView(st.queues[i])
		changed = st.claim(f, i) || changed
	}
	if changed || !identical(st.total, total.Resources) {
		st.total = append(st.total[:0], total.Resources...)
		st.share()
	}
	return true
}

// findClaims collects the claims that may have changed, and reports whether queues were added or deleted.
func (st *fillState) findClaims(to language.Stamp) (regrouped bool) {
	c := st.Accounts.c
	shared := st.sharedNow()
	touched, known := st.cursor.Read(&c.QueueLog)
	another := st.at.Cycle != to.Cycle
	all := !known || st.reads.stale(st.at, to) || !bytes.Equal(shared, st.shared)
	regrouped = !known || st.others(c, touched)
	if st.shared = shared; regrouped {
		st.regroup(c.QueuesByName())
	}
	st.todo = st.todo[:0]
	for _, q := range touched {
		if i, ok := st.index[q]; ok && !all {
			st.todo = append(st.todo, i)
		}
	}
	for i := range st.claims {
		if all || another && st.claims[i].err != nil { // each cycle reports its errors
			st.todo = append(st.todo, i)
		}
	}
	slices.Sort(st.todo) // makes the first error the same each time
	st.todo = slices.Compact(st.todo)
	return regrouped
}

// sharedNow returns an encoding of the shared fields. Computing it also reports the errors of the queues' accounts.
func (st *fillState) sharedNow() []byte {
	if len(st.Accounts.c.Queues) == 0 {
		return nil
	}
	var out []byte
	for _, r := range st.reads.shared {
		out = language.Encode(out, language.Follow(st.Accounts.ClusterView, r.Steps))
	}
	for _, x := range st.reads.accounts {
		st.Accounts.Of(x).Update()
	}
	return out
}

// others reports whether a queue was added or deleted. touched are the changed queues.
func (st *fillState) others(c *model.Cluster, touched []*model.Queue) bool {
	return len(st.queues) != len(c.Queues) || slices.ContainsFunc(touched, func(q *model.Queue) bool {
		_, was := st.index[q]
		return was != (c.Queues[q.Name] == q)
	})
}

// regroup keeps the claims of remaining queues. New queues get empty claims.
func (st *fillState) regroup(queues []*model.Queue) {
	claims, index := make([]claim, len(queues)), make(map[*model.Queue]int, len(queues))
	for i, q := range queues {
		index[q] = i
		if was, ok := st.index[q]; ok {
			claims[i] = st.claims[was]
		}
	}
	st.queues, st.claims, st.index = queues, claims, index
}

// claim evaluates the arguments for the queue of a frame, and reports whether its claim changed.
func (st *fillState) claim(f *language.Frame, i int) (changed bool) {
	x, c := st.x, &st.claims[i]
	took := c.takes
	if w := x.Args["among"]; w != nil && w.Eval(f) != types.True {
		c.takes, c.err, c.value = false, nil, nil
		return took
	}
	if c.err = claimInto(x, f, &st.next); c.err != nil {
		st.Accounts.Ask.FaultOf(x, f, c.err)
		c.takes, c.value = false, c.err
		return took
	}
	if took && sameClaim(&c.Claim, &st.next) {
		return false
	}
	if !took {
		c.value = nil
	}
	c.takes = true
	c.Claim, st.next = st.next, c.Claim
	return true
}

func sameClaim(a, b *quota.Claim) bool {
	return a.Weight == b.Weight && a.Rank == b.Rank && identical(a.Floor, b.Floor) && identical(a.Ceiling, b.Ceiling) &&
		identical(a.Demand, b.Demand)
}

// claimInto evaluates one queue's arguments into the memory of another claim. An error is a *types.Err.
func claimInto(x *Attribute, f *language.Frame, c *quota.Claim) ref.Val {
	weight := x.Args["weight"].Eval(f)
	w, ok := language.Number(weight)
	if !ok || !(w > 0) {
		return types.NewErr("weight of queue %s must be above 0, is %s", f.Subject(), language.Text(weight))
	}
	c.Weight, c.Rank = w, 0
	if e := x.Args["rank"]; e != nil {
		rank := e.Eval(f)
		if c.Rank, ok = language.Number(rank); !ok || math.IsNaN(c.Rank) {
			return types.NewErr("rank of queue %s must be a number, is %s", f.Subject(), language.Text(rank))
		}
	}
	return amountsInto(x.Args, f, []amountArgument{{"floor", &c.Floor}, {"ceiling", &c.Ceiling}, {"demand", &c.Demand}})
}

// identical reports whether amounts are equal bit by bit.
func identical(a, b model.Resources) bool {
	return slices.EqualFunc(a, b, func(x, y float64) bool { return math.Float64bits(x) == math.Float64bits(y) })
}

// share divides the total. A queue whose share did not change keeps the same value.
func (st *fillState) share() {
	st.taking = st.taking[:0]
	for i := range st.claims {
		if st.claims[i].takes {
			st.taking = append(st.taking, st.claims[i].Claim)
		}
	}
	st.water.Fill(st.total, st.taking)
	if st.whole {
		st.water.Round(st.Accounts.c.Dims.Devices())
	}
	n := 0
	for i := range st.claims {
		c := &st.claims[i]
		if !c.takes {
			continue
		}
		r := st.water.Of(n)
		n++
		if was, ok := c.value.(*language.Amounts); !ok || !identical(was.Resources, r) {
			c.value = st.Accounts.Amounts(r.Clone())
		}
	}
}
