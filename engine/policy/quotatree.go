package policy

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"github.com/celsius-scheduler/celsius/engine/follow"
	"github.com/celsius-scheduler/celsius/engine/language"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/quota"
	"github.com/celsius-scheduler/celsius/rules"
	"github.com/celsius-scheduler/celsius/rules/eval"
)

// quotaTreeFunction returns the accounting function for several computed fields of a tree of queues.
func quotaTreeFunction() *Accounting {
	var parts []string
	for _, part := range treeParts() {
		parts = append(parts, fmt.Sprintf("`queue.%s`, %s", part.name, part.doc))
	}
	doc := "On a queue: what queues may hold along the tree that their parents make, as several computed fields: " +
		strings.Join(parts, "; ") +
		"; and each name of rollUp. In a tree the root may hold what its capability says; where that has no limit and a queue directly below " +
		"is guaranteed something, the total stands for it. Going down, a queue may hold what its parent may, less what its siblings are " +
		"guaranteed, and no more than its capability, which takes from above what it lacks. Where there is no tree (flat), a queue may hold " +
		"the total, less what others are guaranteed, and no more than its capability, and deserves no more than it may hold. A queue whose " +
		"parents are not there, or go in a circle, may hold nothing, nor may those below it; the others do not notice. Who stands where is " +
		"found once for each change of objects; a sum costs one addition for each level."
	str, amount := rules.Exactly(cel.StringType, "a string"), rules.Exactly(language.ResourcesType(), "Resources")
	return &Accounting{
		Name: "quotaTree",
		Doc:  doc,
		Args: []AccountingArgument{
			{Name: "parent", Doc: "Name of the queue above; \"\" is the root.", Sees: "queue", Want: str},
			{Name: "root", Doc: "Name of the queue at the top; sees no queue.", Want: str},
			{Name: "flat", Optional: true, Doc: "Whether there is no tree: each queue is a leaf and its own root; sees no queue. False, if it " +
				"is left out.", Want: rules.Bool()},
			{Name: "total", Doc: "Resources that there are in all; sees no queue.", Want: amount},
			{Name: "guarantee", Optional: true, Doc: "Resources kept for the queue.", Sees: "queue", Want: amount},
			{Name: "capability", Optional: true, Doc: "Most Resources for the queue. A dimension that is missing, or cpu or memory that is not " +
				"above 0, is no limit.", Sees: "queue", Want: amount},
			{Name: "deserved", Optional: true, Doc: "Resources that the queue is due.", Sees: "queue", Want: amount},
			{Name: rollUpArgument, Optional: true, Map: true, Doc: "Names of further computed fields, each with Resources of a queue: the field " +
				"is their sum over the queue and all below it.", Sees: "queue", Want: amount},
		},
		On:      []string{"queue"},
		Held:    "kept by delta",
		fields:  treeFields,
		check:   checkRollUps,
		Compile: compileTree,
	}
}

// rollUpArgument names the amounts that are added up along the tree.
const rollUpArgument = "rollUp"

// QuotaTree is a compiled quotaTree. It contains the common data of its computed fields.
type QuotaTree struct {
	*Account
	Attribute *Attribute // used to report its errors
	RollUps   []RollUp
	// Flat is true if there is never a tree: a queue's path is the queue itself.
	Flat bool
	// Moving means that positions or limits of queues can change within a cycle.
	Moving   bool
	byAction bool
	// kept means that positions and sums depend only on changes that are logged for queues. So a tree can be kept over cycles. The accounts in
	// sums compute the values that are added up.
	kept bool
	sums []*Account
}

// RollUp is one amount that is added up.
type RollUp struct {
	name string
	Expr *eval.Expr
	// own means that, of everything that changes with steps, a queue's amount depends only on changes that are logged for the queue.
	own bool
}

// treeFields returns the names of the fields of a quotaTree.
func treeFields(a *rules.Attribute) []string {
	var out []string
	for _, part := range treeParts() {
		out = append(out, part.name)
	}
	return append(out, rollUpNames(a)...)
}

func compileTree(s *TableScope, a *rules.Attribute, x *Account) bool {
	t := &QuotaTree{Account: x, Attribute: &Attribute{Table: s.entry.name, Name: a.Name}, kept: true}
	if !s.treeReads(t, a) {
		return false
	}
	if e := x.Args["flat"]; e != nil && e.Constant() {
		t.Flat = e.Eval(s.probe) == types.True
	}
	x.Timed = t.kept && slices.ContainsFunc(t.sums, func(sum *Account) bool { return sum.Timed })
	x.Keep = func(kept *Accounts) Kept {
		follows := !t.Moving && !slices.ContainsFunc(t.RollUps, func(r RollUp) bool { return !r.own })
		return &TreeState{Derived: Derived{Accounts: kept, byAction: t.byAction, Follows: follows, Lasts: t.kept}, t: t}
	}
	for _, part := range treeParts() {
		args := map[string]*eval.Expr{}
		for _, name := range part.args {
			if e := x.Args[name]; e != nil {
				args[name] = e
			}
		}
		field := s.treeField(t, a, args, part)
		switch part.name {
		case "path":
			field.then = func(m *rules.Member) {
				m.Bound = mostLevels
				s.p.Trees[m] = t
			}
		case limitedBy:
			field.then = func(m *rules.Member) { m.Bound = mostLevels + 1 } // including the root, which is only on its own path
		}
		x.Fields = append(x.Fields, field)
	}
	for k, r := range t.RollUps {
		x.Fields = append(x.Fields, s.rollUpField(t, a, k, r))
	}
	return true
}

// treeField returns one computed field of a tree that depends on some arguments.
func (s *TableScope) treeField(t *QuotaTree, a *rules.Attribute, args map[string]*eval.Expr, part treePart) accountField {
	x := s.field(a, part.name)
	x.Type, x.Args, x.Tree, x.part = part.typ, args, t, part.get
	reads := &rules.Reads{}
	for _, e := range args {
		members(reads, e.Reads, "queue", "cluster")
	}
	doc := part.doc
	if a.Description != "" {
		doc = a.Description + ": " + doc
	}
	return accountField{Attribute: x, doc: doc, reads: reads}
}

// rollUpField returns the computed field for an amount that is added up. It reads the positions of queues, and the queues below.
func (s *TableScope) rollUpField(t *QuotaTree, a *rules.Attribute, k int, r RollUp) accountField {
	// The path from a queue to everything that its sums contain.
	below := &rules.Member{Name: "below", Origin: language.ToMembers, Changes: rules.ByObject}
	s.p.Trees[below] = t
	f := s.treeField(t, a, nil, treePart{
		name: r.name, typ: language.ResourcesType(),
		doc: "the sum of " + strings.TrimSpace(r.Expr.Text.Value) + " over it and all queues below it",
		get: func(at *TreePlaces, i int) ref.Val { return at.w.Amounts(at.sums[k].Of(i).Clone()) },
	})
	f.Args = map[string]*eval.Expr{rollUpArgument: r.Expr}
	for _, name := range structureArguments() {
		if e := t.Args[name]; e != nil {
			members(f.reads, e.Reads, "queue", "cluster")
		}
	}
	for _, read := range r.Expr.Reads.All {
		if read.Root == "queue" {
			read.Steps = append([]rules.Step{{Member: below, Each: true}}, read.Steps...)
		}
		f.reads.Add(&rules.Reads{All: []rules.Read{read}})
	}
	return f
}

// mostLevels bounds the depth of a tree, for the cost estimate.
const mostLevels = 16

// structureArguments are the arguments that decide the positions of queues.
func structureArguments() []string { return []string{"parent", "root", "flat"} }

// treeReads determines how a tree with these arguments is cached; false: the name of a roll-up is invalid.
func (s *TableScope) treeReads(t *QuotaTree, a *rules.Attribute) bool {
	whole := true
	for _, arg := range t.Function.Args {
		e := t.Args[arg.Name]
		if e == nil {
			continue
		}
		t.Moving = t.Moving || e.Reads.Changes() > rules.ByCycle
		if arg.Sees != "" {
			s.p.keepReads(t, e)
		}
		t.byAction = t.byAction || readsAction(e.Reads)
	}
	for _, name := range rollUpNames(a) {
		r := s.rollUp(name, t.Args[rollUpArgument+"."+name])
		if r == nil {
			whole = false
			continue
		}
		t.RollUps = append(t.RollUps, *r)
		s.p.keepReads(t, r.Expr)
		t.byAction = t.byAction || readsAction(r.Expr.Reads)
	}
	return whole
}

// keepReads determines whether a tree with this argument can be kept over cycles.
func (p *Policy) keepReads(t *QuotaTree, e *eval.Expr) {
	for _, r := range e.Reads.All {
		if r.Root == "now" && len(e.NowParts) == 0 {
			continue // only computed fields read the time; they are checked below
		}
		t.kept = t.kept && p.lasting(r, "queue")
		for _, step := range r.Steps {
			switch x := p.computed[step.Member]; {
			case x == nil:
			case x.Account == nil:
				t.kept = t.kept && !x.ByTime
			case x.ByTime && !x.Account.Timed:
				t.kept = false
			case x.Account.Function.OfMembers:
				t.sums = append(t.sums, x.Account)
			default:
				t.kept = false
			}
		}
	}
}

func rollUpNames(a *rules.Attribute) []string {
	var out []string
	for _, key := range sortedKeys(a.Args) {
		if name, ok := strings.CutPrefix(key, rollUpArgument+"."); ok {
			out = append(out, name)
		}
	}
	return out
}

// checkRollUps reports invalid field names. It does not stop the compilation of the arguments, so that all mistakes are reported at once.
func checkRollUps(s *TableScope, a *rules.Attribute) bool {
	for _, name := range rollUpNames(a) {
		if message, hint := misnamed(name); message != "" {
			text := a.Args[rollUpArgument+"."+name]
			s.report(text.Issue(0, len([]rune(text.Value)), message, hint))
		}
	}
	return true
}

// misnamed returns why the name of a roll-up is not a valid field name, or "".
func misnamed(name string) (message, hint string) {
	switch {
	case !regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]*$`).MatchString(name):
		return fmt.Sprintf("%q is no name of a field", name), "use letters, digits and _, and begin with a letter"
	case slices.ContainsFunc(treeParts(), func(p treePart) bool { return p.name == name }):
		return fmt.Sprintf("quotaTree itself computes queue.%s", name), "choose another name"
	}
	return "", ""
}

// rollUp returns one amount that is added up; nil: its name is invalid.
func (s *TableScope) rollUp(name string, e *eval.Expr) *RollUp {
	if message, _ := misnamed(name); message != "" {
		return nil
	}
	r := &RollUp{name: name, Expr: e, own: true}
	for _, read := range e.Reads.All {
		r.own = r.own && (read.Changes <= rules.ByCycle || s.p.Reach(read, "queue") == Within)
	}
	return r
}

// TreeState is a quotaTree for the current cluster: the positions of queues and their sums. It is updated from change logs.
type TreeState struct {
	Derived
	t *QuotaTree

	*TreePlaces
	dims   int // the number of known resources
	passed int // how often time had changed the sums at the last update
	cursor follow.Cursor[*model.Queue]
	// The inputs of the tree: the data of each queue, the queues' views, and the data for all queues.
	parties []quota.Party
	views   []ref.Val
	shared  []byte
	// changed is when a change of a queue's sums was last found. Moved lists the queues with such changes.
	changed []uint64
	Moved   follow.Log[*model.Queue]
}

// TreeOf returns the current state of a tree.
func (s *Accounts) TreeOf(t *QuotaTree) *TreeState {
	st, _ := s.Of(t.Account).(*TreeState)
	st.Update()
	return st
}

// Value implements Kept.
func (st *TreeState) Value(x *Attribute, owner ref.Val) ref.Val {
	st.Update()
	for _, sum := range st.timedSums() {
		sum.tellNext()
	}
	q, ok := owner.(*language.QueueView)
	if !ok {
		return types.NewErr("%s is a field of queues", x.Name)
	}
	return st.Read(x, q.Of)
}

// Update implements Kept. Without changes it costs one check of the log. For each changed queue it costs one evaluation, and one addition
// per level. It rebuilds the tree if a position or a limit of a queue changed. It rebuilds it in each cycle if an argument fails, or reads
// more than its own queue.
func (st *TreeState) Update() { st.Bring(st) }

// Carry implements Deriver. It checks the structure along which the sums are added up.
func (st *TreeState) Carry(language.Stamp) bool {
	s := st.Accounts
	touched, known := st.cursor.Peek(&s.c.QueueLog)
	if !known || st.erred || st.dims != s.c.Dims.Len() || len(st.queues) != len(s.c.Queues) {
		return false
	}
	for _, x := range st.t.sums {
		sum := s.Of(x)
		if sum.Update(); sum.Erring() {
			return false
		}
	}
	if st.passed != st.passedNow() || !bytes.Equal(st.sharedNow(), st.shared) {
		return false
	}
	for _, q := range touched {
		i, ok := st.index[q]
		if !ok || s.c.Queues[q.Name] != q || s.QueueView(q) != st.views[i] {
			return false
		}
		if p, err := st.party(q); err != nil || !sameParty(&p, &st.parties[i]) {
			return false
		}
	}
	return true
}

// sameParty reports whether a queue's data is unchanged.
func sameParty(a, b *quota.Party) bool {
	return a.Parent == b.Parent && identical(a.Guarantee, b.Guarantee) && identical(a.Capability, b.Capability) &&
		identical(a.Deserved, b.Deserved)
}

// sharedNow returns an encoding of the data for all queues.
func (st *TreeState) sharedNow() []byte {
	f := st.Accounts.Ask.Frame()
	defer st.Accounts.Ask.Done()
	var out []byte
	for _, name := range []string{"total", "root", "flat"} {
		if e := st.t.Args[name]; e != nil {
			out = language.Encode(out, e.Eval(f))
		}
	}
	return out
}

// timedSums returns those sums of the tree that time changes.
func (st *TreeState) timedSums() (out []*sumState) {
	for _, x := range st.t.sums {
		if sum, ok := st.Accounts.Of(x).(*sumState); ok && x.Timed {
			out = append(out, sum)
		}
	}
	return out
}

// passedNow returns how often time has changed these sums. QueueLog does not record such changes.
func (st *TreeState) passedNow() (n int) {
	for _, sum := range st.timedSums() {
		n += sum.timed.passed
	}
	return n
}

// Replay implements Deriver. It adds up the changes.
func (st *TreeState) Replay(language.Stamp) bool {
	entries, ok := st.cursor.Read(&st.Accounts.c.QueueLog)
	if ok {
		eachOnce(entries, func(q *model.Queue) {
			if i, known := st.index[q]; known {
				st.enter(i)
			}
		})
	}
	return ok
}

// enter adds up the current amounts of one queue.
func (st *TreeState) enter(i int) {
	s, t := st.Accounts, st.t
	f := s.Ask.Frame()
	defer s.Ask.Done()
	f.Queue = s.QueueView(st.queues[i])
	differs := false
	for k, r := range t.RollUps {
		v := r.Expr.Eval(f)
		a, ok := v.(*language.Amounts)
		if !ok {
			s.Ask.FaultOf(t.Attribute, f, v)
			a = &language.Amounts{}
		}
		differs = st.Add(k, i, a.Resources) || differs
	}
	for at := i; differs && at >= 0; at = st.places[at].Above {
		st.changed[at] = s.c.Clock
		st.Moved.Add(st.queues[at])
	}
}

// Rebuild implements Deriver.
func (st *TreeState) Rebuild() bool {
	s, t := st.Accounts, st.t
	st.cursor.Skip(&s.c.QueueLog)
	st.dims, st.shared = s.c.Dims.Len(), st.sharedNow()
	defer func() { st.passed = st.passedNow() }()
	queues := s.c.QueuesByName()
	st.parties, st.views = make([]quota.Party, len(queues)), make([]ref.Val, len(queues))
	wrong := map[int]string{}
	for i, q := range queues {
		st.views[i] = s.QueueView(q)
		var err ref.Val
		if st.parties[i], err = st.party(q); err != nil {
			wrong[i] = fmt.Sprint(err)
		}
	}
	total, flat, root := st.settings()
	st.TreePlaces = PlaceQueues(s.World, t, queues, st.parties, root, flat, total)
	st.changed = make([]uint64, len(queues))
	for i := range queues {
		st.Fail(i, wrong[i])
		st.changed[i] = s.c.Clock
		st.enter(i)
	}
	return true
}

// party evaluates the data of one queue. An error affects only that queue.
func (st *TreeState) party(q *model.Queue) (quota.Party, ref.Val) {
	s, t := st.Accounts, st.t
	f := s.Ask.Frame()
	defer s.Ask.Done()
	f.Queue = s.QueueView(q)
	p := quota.Party{Name: q.Name}
	parent := t.Args["parent"].Eval(f)
	name, ok := parent.(types.String)
	if !ok {
		s.Ask.FaultOf(t.Attribute, f, parent)
		return p, parent
	}
	p.Parent = string(name)
	list := []amountArgument{{"capability", &p.Capability}, {"deserved", &p.Deserved}, {"guarantee", &p.Guarantee}}
	if err := amountsInto(t.Args, f, list); err != nil {
		s.Ask.FaultOf(t.Attribute, f, err)
		return quota.Party{Name: q.Name, Parent: p.Parent}, err
	}
	return p, nil
}

// settings evaluates the data for the whole tree.
func (st *TreeState) settings() (total model.Resources, flat bool, root string) {
	s, t := st.Accounts, st.t
	f := s.Ask.Frame()
	defer s.Ask.Done()
	whole := t.Args["total"].Eval(f)
	if a, ok := whole.(*language.Amounts); ok {
		total = a.Resources
	} else {
		s.Ask.FaultOf(t.Attribute, f, whole)
	}
	if e := t.Args["flat"]; e != nil && e.Eval(f) == types.True {
		return total, true, ""
	}
	v := t.Args["root"].Eval(f)
	name, ok := v.(types.String)
	if !ok {
		s.Ask.FaultOf(t.Attribute, f, v)
	}
	return total, false, string(name)
}

// Path returns the queues from the root's child down to a queue; false: no path leads to it.
func (st *TreeState) Path(q *model.Queue) ([]*model.Queue, bool) {
	i, ok := st.index[q]
	if !ok {
		return nil, false
	}
	path := make([]*model.Queue, len(st.places[i].Path))
	for level, k := range st.places[i].Path {
		path[level] = st.queues[k]
	}
	return path, true
}

// PathVersion returns when a change of the sums was last found for any queue on a queue's path. The root, whose sums change with every
// step, is only on its own path.
func (s *Accounts) PathVersion(t *QuotaTree, q *model.Queue) uint64 {
	st := s.TreeOf(t)
	at, ok := st.index[q]
	if !ok {
		return s.c.Clock
	}
	last := uint64(0)
	for _, on := range st.places[at].Path {
		last = max(last, st.changed[on])
	}
	return last
}

// TreeVersion returns the sum of the versions of the trees along which a queue's value is computed.
func (s *Accounts) TreeVersion(trees []*QuotaTree, owner ref.Val) uint64 {
	q, ok := owner.(*language.QueueView)
	if !ok {
		return s.c.Clock
	}
	version := uint64(0)
	for _, t := range trees {
		version += s.PathVersion(t, q.Of)
	}
	return version
}
