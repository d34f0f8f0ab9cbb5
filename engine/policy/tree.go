package policy

import (
	"bytes"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/quota"
	"github.com/celsius-scheduler/celsius/rules"
)

// quotaTreeFunction is the accounting function that gives several computed fields at once.
const quotaTreeFunction = "quotaTree"

// rollUpArgument names what is added up along the tree.
const rollUpArgument = "rollUp"

// QuotaTree is a compiled quotaTree: what its computed fields, which are parts of it, share.
type QuotaTree struct {
	Attribute *Attribute // for reports of its errors
	Args      map[string]*rules.Expr
	RollUps   []RollUp
	// flat is true where there is no tree for good: a queue's path is the queue itself.
	flat bool
	// moving says that who stands where, or what a queue may hold, moves with steps.
	moving   bool
	byAction bool
	// kept says that queues say where they stand, and what is added up, by nothing but what they are touched with, so that a tree holds from
	// cycle to cycle; sums are what they add up for that.
	kept bool
	sums []*Attribute
}

// RollUp is one figure that is added up.
type RollUp struct {
	name string
	Expr *rules.Expr
	// own says that a queue's term reads only what the queue is touched with, of all that moves with steps.
	own bool
}

// treePart is a computed field that a quotaTree gives.
type treePart struct {
	name, doc string
	typ       *cel.Type
	args      []string // what it depends on
	get       func(at *TreePlaces, i int) ref.Val
}

// treeParts lists the fields that every quotaTree gives.
func treeParts() []treePart {
	structure := structureArguments()
	limits := append([]string{"total", "guarantee", "capability"}, structure...)
	amount := func(of func(p *quota.Place) model.Resources) func(*TreePlaces, int) ref.Val {
		return func(at *TreePlaces, i int) ref.Val { return at.w.Amounts(of(&at.places[i])) }
	}
	return []treePart{
		{"path", "queues from below the root down to this one, itself last; of the root, the root", cel.ListType(queueType()), structure, func(at *TreePlaces, i int) ref.Val { return at.paths[i] }},
		{"root", "the root of its tree; itself where there is no tree", queueType(), structure, func(at *TreePlaces, i int) ref.Val { return at.w.queueView(at.queues[at.places[i].Root]) }},
		{"leaf", "no queue names it as its parent", cel.BoolType, structure, func(at *TreePlaces, i int) ref.Val { return types.Bool(at.places[i].Leaf) }},
		{"treeValid", "its parents lead to the root", cel.BoolType, structure, func(at *TreePlaces, i int) ref.Val { return types.Bool(at.places[i].Problem == "") }},
		{"treeProblem", "why its parents do not lead to the root, \"\" if they do", cel.StringType, structure, func(at *TreePlaces, i int) ref.Val { return types.String(at.places[i].Problem) }},
		{"capability", "its own capability, with what it lacks from above; a missing dimension is no limit", resourcesType(), append([]string{"capability"}, structure...), amount(func(p *quota.Place) model.Resources { return p.Capability })},
		{"realCapability", "the most that it may hold: what there is above, less what its siblings are guaranteed, and no more than its capability", resourcesType(), limits, amount(func(p *quota.Place) model.Resources { return p.Real })},
		{"deserved", "what it deserves, at least its guarantee", resourcesType(), append([]string{"deserved"}, limits...), amount(func(p *quota.Place) model.Resources { return p.Deserved })},
	}
}

// quotaTree compiles one, and makes its fields visible.
func (s *tableScope) quotaTree(a *rules.Attribute) {
	t := s.treeArguments(a)
	if t == nil {
		for _, part := range treeParts() {
			s.failed["Queue."+part.name] = true
		}
		for _, name := range rollUpNames(a) {
			s.failed["Queue."+name] = true
		}
		return
	}
	for _, part := range treeParts() {
		reads := &rules.Reads{}
		args := map[string]*rules.Expr{}
		for _, name := range part.args {
			if e := t.Args[name]; e != nil {
				args[name] = e
				members(reads, e.Reads, "queue", "cluster")
			}
		}
		m := s.treeField(t, a, args, reads, part)
		if part.name == "path" && m != nil {
			m.Bound = mostLevels
			s.p.trees[m] = t
		}
	}
	for k, r := range t.RollUps {
		// The way from a queue to all that its sums are made of.
		below := &rules.Member{Name: "below", Origin: toMembers, Changes: rules.ByObject}
		s.p.trees[below] = t
		reads := &rules.Reads{}
		for _, name := range structureArguments() {
			if e := t.Args[name]; e != nil {
				members(reads, e.Reads, "queue", "cluster")
			}
		}
		for _, read := range r.Expr.Reads.All {
			if read.Root == "queue" {
				read.Steps = append([]rules.Step{{Member: below, Each: true}}, read.Steps...)
			}
			reads.Add(&rules.Reads{All: []rules.Read{read}})
		}
		s.treeField(t, a, map[string]*rules.Expr{rollUpArgument: r.Expr}, reads, treePart{
			name: r.name, typ: resourcesType(), doc: "the sum of " + strings.TrimSpace(r.Expr.Text.Value) + " over it and all queues below it",
			get: func(at *TreePlaces, i int) ref.Val { return at.w.Amounts(at.sums[k].Of(i).Clone()) },
		})
	}
}

// mostLevels bounds the depth of a tree, for the cost estimate.
const mostLevels = 16

// treeField makes one computed field of a tree.
func (s *tableScope) treeField(t *QuotaTree, a *rules.Attribute, args map[string]*rules.Expr, reads *rules.Reads, part treePart) *rules.Member {
	x := &Attribute{
		Table: s.entry.name, Name: part.name, On: a.On, Settle: a.Settle, Function: a.Function, Type: part.typ, Args: args,
		Tree: t, part: part.get,
	}
	if a.When.Value != "" {
		if x.When = s.compile(a.When, []string{"queue"}, rules.Bool()); x.When == nil {
			s.failed["Queue."+part.name] = true
			return nil
		}
		reads.Add(x.When.Reads)
	}
	doc := part.doc
	if a.Description != "" {
		doc = a.Description + ": " + doc
	}
	return s.publish(x, a, doc, reads)
}

// structureArguments decide who is above whom.
func structureArguments() []string { return []string{"parent", "root", "flat"} }

// treeArguments compiles the arguments; nil: there was a mistake.
func (s *tableScope) treeArguments(a *rules.Attribute) *QuotaTree {
	if a.On != "queue" {
		s.report(a.At.Issuef("write on: queue", "quotaTree is on queues, not on %s", a.On))
		return nil
	}
	t := &QuotaTree{Attribute: &Attribute{Table: s.entry.name, Name: a.Name}, Args: map[string]*rules.Expr{}, kept: true}
	if settings, sums := s.treeSettings(t, a), s.treeSums(t, a); !settings || !sums {
		return nil
	}
	if e := t.Args["flat"]; e != nil && e.Constant() {
		t.flat = e.Eval(s.probe) == types.True
	}
	return t
}

// treeSettings compiles what decides who stands where, and what a queue may hold; false: there was a mistake.
func (s *tableScope) treeSettings(t *QuotaTree, a *rules.Attribute) bool {
	str, amount := rules.Exactly(cel.StringType, "a string"), rules.Exactly(resourcesType(), "Resources")
	wants := map[string]rules.Kind{"parent": str, "root": str, "flat": rules.Bool(), "total": amount, "guarantee": amount, "capability": amount, "deserved": amount}
	needed := []string{"parent", "root", "total"}
	for _, name := range sortedKeys(wants) {
		text, ok := a.Args[name]
		if !ok {
			continue
		}
		roots := []string{"queue"}
		if slices.Contains([]string{"root", "flat", "total"}, name) {
			roots = nil
		}
		e := s.compile(text, roots, wants[name])
		if e == nil {
			needed = append(needed, name)
			continue
		}
		t.Args[name] = e
		t.moving = t.moving || e.Reads.Changes() > rules.ByCycle
		if len(roots) > 0 {
			s.p.keepReads(t, e.Reads)
		}
		t.byAction = t.byAction || readsAction(e.Reads)
	}
	return !slices.ContainsFunc(needed, func(name string) bool { return t.Args[name] == nil }) // reported where it is missing
}

// treeSums compiles what is added up; false: there was a mistake.
func (s *tableScope) treeSums(t *QuotaTree, a *rules.Attribute) bool {
	whole := true
	for _, name := range rollUpNames(a) {
		r := s.rollUp(a, name)
		if r == nil {
			whole = false
			continue
		}
		t.RollUps = append(t.RollUps, *r)
		s.p.keepReads(t, r.Expr.Reads)
		t.byAction = t.byAction || readsAction(r.Expr.Reads)
	}
	return whole
}

// keepReads finds out whether a tree that asks this of its queues can be kept.
func (p *Policy) keepReads(t *QuotaTree, reads *rules.Reads) {
	for _, r := range reads.All {
		t.kept = t.kept && p.lasting(r, "queue")
		for _, step := range r.Steps {
			switch x := p.computed[step.Member]; {
			case x == nil || x.Function == "":
			case x.Function == "sum":
				t.sums = append(t.sums, x)
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

// rollUp compiles one figure that is added up.
func (s *tableScope) rollUp(a *rules.Attribute, name string) *RollUp {
	text := a.Args[rollUpArgument+"."+name]
	bad := func(message, hint string) *RollUp {
		s.report(text.Issue(0, len([]rune(text.Value)), message, hint))
		return nil
	}
	if !regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]*$`).MatchString(name) {
		return bad(fmt.Sprintf("%q is no name of a field", name), "use letters, digits and _, and begin with a letter")
	}
	if slices.ContainsFunc(treeParts(), func(p treePart) bool { return p.name == name }) {
		return bad(fmt.Sprintf("quotaTree itself computes queue.%s", name), "choose another name")
	}
	e := s.compile(text, []string{"queue"}, rules.Exactly(resourcesType(), "Resources"))
	if e == nil {
		return nil
	}
	r := &RollUp{name: name, Expr: e, own: true}
	for _, read := range e.Reads.All {
		r.own = r.own && (read.Changes <= rules.ByCycle || s.p.reach(read, "queue") == within)
	}
	return r
}

// TreePlaces is where queues stand in a tree, with what is added up along it: what the tree's computed fields are read from.
type TreePlaces struct {
	w      *World
	queues []*model.Queue
	index  map[*model.Queue]int
	places []quota.Place
	paths  []ref.Val
	sums   []*quota.Sums // by roll-up
}

// PlaceQueues finds where queues stand that bring what parties say, in the same order. In a tree a limit that is not there is written
// out as infinite, since a missing amount reads 0. Nothing is added up yet.
func (w *World) PlaceQueues(t *QuotaTree, queues []*model.Queue, parties []quota.Party, root string, flat bool, total model.Resources) *TreePlaces {
	at := &TreePlaces{w: w, queues: queues, index: make(map[*model.Queue]int, len(queues)), paths: make([]ref.Val, len(queues))}
	if flat {
		at.places = quota.Flat(total, parties)
	} else {
		at.places = quota.Tree(root, total, parties)
		for i := range at.places {
			p := &at.places[i]
			for dim := range w.c.Dims.Len() {
				if !p.Real.Has(dim) {
					p.Real.Set(dim, math.Inf(1))
				}
			}
		}
	}
	for i, q := range queues {
		at.index[q] = i
		path := make([]ref.Val, len(at.places[i].Path))
		for k, on := range at.places[i].Path {
			path[k] = w.queueView(queues[on])
		}
		at.paths[i] = list(path)
	}
	for range t.RollUps {
		at.sums = append(at.sums, quota.NewSums(at.places))
	}
	return at
}

// Fail says why a queue's parents do not lead to the root, beside what the tree itself finds: it may hold nothing.
func (at *TreePlaces) Fail(i int, problem string) {
	if problem != "" {
		at.places[i].Problem = problem
	}
	if at.places[i].Problem != "" {
		at.places[i].Real = nil
	}
}

// Add says what a queue has of a roll-up, and whether that is another amount than it was.
func (at *TreePlaces) Add(rollUp, i int, r model.Resources) bool { return at.sums[rollUp].Set(i, r) }

// Read gives a computed field of the tree for a queue.
func (at *TreePlaces) Read(x *Attribute, q *model.Queue) ref.Val {
	i, ok := at.index[q]
	if !ok {
		return types.NewErr("there is no queue %q any more", q.Name)
	}
	return x.part(at, i)
}

// treeState is a quotaTree as the cluster is now: who stands where, and the sums, kept by delta.
type treeState struct {
	*TreePlaces
	at     stamp
	dims   int    // how many resources were known
	clock  uint64 // of the cluster, at the last look
	cursor uint64 // into the log of queues
	// What the tree is made of: what queues say of themselves, their views, and what is said of all.
	parties []quota.Party
	views   []ref.Val
	shared  []byte
	// erred says that something of it erred: each cycle is told of it.
	erred bool
	// changed is when a queue's sums were last found to differ; moved lists whose did.
	changed []uint64
	moved   model.Log[*model.Queue]
}

// treeOf brings a tree up to date. It costs one look at the log where nothing changed, one evaluation and one addition for each level, for
// each queue that did, and everything anew where a queue stands elsewhere or may hold something else; for each cycle, where something errs, or reads more
// than its own queue.
func (s *Session) treeOf(t *QuotaTree) *treeState {
	st := s.trees[t]
	at := s.stampOf(t.byAction)
	at.clock = s.c.ObjectClock
	if st != nil && st.dims == s.c.Dims.Len() && !s.NoCache && (st.at == at || t.kept && s.keepTree(t, st)) {
		st.at = at
		if st.clock == s.c.Clock {
			return st
		}
		if !t.moving && s.replayTree(t, st) {
			st.clock = s.c.Clock
			return st
		}
	}
	erring := s.erring
	st = s.plantTree(t)
	st.at, st.erred = at, s.erring != erring
	s.trees[t] = st
	return st
}

// keepTree says whether a tree is, but for its sums, what it would be if it were made anew in another cycle, or after an Apply.
func (s *Session) keepTree(t *QuotaTree, st *treeState) bool {
	touched, known := s.c.QueueLog.Since(st.cursor)
	if !known || st.erred || len(st.queues) != len(s.c.Queues) {
		return false
	}
	for _, x := range t.sums {
		if len(s.sumState(x).erred) > 0 {
			return false
		}
	}
	if !bytes.Equal(s.sharedByTree(t), st.shared) {
		return false
	}
	for _, q := range touched {
		i, ok := st.index[q]
		if !ok || s.c.Queues[q.Name] != q || s.queueView(q) != st.views[i] {
			return false
		}
		if p, err := s.party(t, q); err != nil || !sameParty(&p, &st.parties[i]) {
			return false
		}
	}
	return true
}

// sameParty says that a queue brings what it brought.
func sameParty(a, b *quota.Party) bool {
	return a.Parent == b.Parent && identical(a.Guarantee, b.Guarantee) && identical(a.Capability, b.Capability) && identical(a.Deserved, b.Deserved)
}

// sharedByTree is a text of what is said of all queues.
func (s *Session) sharedByTree(t *QuotaTree) []byte {
	f := s.frame()
	defer s.done()
	var out []byte
	for _, name := range []string{"total", "root", "flat"} {
		if e := t.Args[name]; e != nil {
			out = encode(out, e.Eval(f))
		}
	}
	return out
}

// replayTree takes in the queues that changed; false: the tree must be made anew.
func (s *Session) replayTree(t *QuotaTree, st *treeState) bool {
	for _, r := range t.RollUps {
		if !r.own {
			return false
		}
	}
	entries, ok := s.c.QueueLog.Since(st.cursor)
	if !ok {
		return false
	}
	seen, erring := map[*model.Queue]bool{}, s.erring
	for _, q := range entries {
		if i, ok := st.index[q]; ok && !seen[q] {
			seen[q] = true
			s.enterTree(t, st, i)
		}
	}
	st.cursor, st.erred = s.c.QueueLog.Next(), st.erred || s.erring != erring
	return true
}

// enterTree adds up what one queue has now.
func (s *Session) enterTree(t *QuotaTree, st *treeState, i int) {
	f := s.frame()
	defer s.done()
	f.queue = s.queueView(st.queues[i])
	differs := false
	for k, r := range t.RollUps {
		v := r.Expr.Eval(f)
		a, ok := v.(*amounts)
		if !ok {
			s.faultOf(t.Attribute, f, v)
			a = &amounts{}
		}
		differs = st.Add(k, i, a.r) || differs
	}
	for at := i; differs && at >= 0; at = st.places[at].Above {
		st.changed[at] = s.c.Clock
		st.moved.Add(st.queues[at])
	}
}

// plantTree makes a tree anew.
func (s *Session) plantTree(t *QuotaTree) *treeState {
	st := &treeState{dims: s.c.Dims.Len(), clock: s.c.Clock, cursor: s.c.QueueLog.Next(), shared: s.sharedByTree(t)}
	queues := s.c.QueuesByName()
	st.parties, st.views = make([]quota.Party, len(queues)), make([]ref.Val, len(queues))
	wrong := map[int]string{}
	for i, q := range queues {
		st.views[i] = s.queueView(q)
		var err ref.Val
		if st.parties[i], err = s.party(t, q); err != nil {
			wrong[i] = fmt.Sprint(err)
		}
	}
	total, flat, root := s.treeSettings(t)
	st.TreePlaces = s.PlaceQueues(t, queues, st.parties, root, flat, total)
	st.changed = make([]uint64, len(queues))
	for i := range queues {
		st.Fail(i, wrong[i])
		st.changed[i] = s.c.Clock
		s.enterTree(t, st, i)
	}
	return st
}

// party evaluates what one queue brings. An error is of that queue alone.
func (s *Session) party(t *QuotaTree, q *model.Queue) (quota.Party, ref.Val) {
	f := s.frame()
	defer s.done()
	f.queue = s.queueView(q)
	p := quota.Party{Name: q.Name}
	parent := t.Args["parent"].Eval(f)
	name, ok := parent.(types.String)
	if !ok {
		s.faultOf(t.Attribute, f, parent)
		return p, parent
	}
	p.Parent = string(name)
	for arg, into := range map[string]*model.Resources{"guarantee": &p.Guarantee, "capability": &p.Capability, "deserved": &p.Deserved} {
		e := t.Args[arg]
		if e == nil {
			continue
		}
		v := e.Eval(f)
		a, ok := v.(*amounts)
		if !ok {
			s.faultOf(t.Attribute, f, v)
			return quota.Party{Name: q.Name, Parent: p.Parent}, v
		}
		*into = a.r.Clone()
	}
	return p, nil
}

// treeSettings evaluates what is said of the whole tree.
func (s *Session) treeSettings(t *QuotaTree) (total model.Resources, flat bool, root string) {
	f := s.frame()
	defer s.done()
	whole := t.Args["total"].Eval(f)
	if a, ok := whole.(*amounts); ok {
		total = a.r
	} else {
		s.faultOf(t.Attribute, f, whole)
	}
	if e := t.Args["flat"]; e != nil && e.Eval(f) == types.True {
		return total, true, ""
	}
	v := t.Args["root"].Eval(f)
	name, ok := v.(types.String)
	if !ok {
		s.faultOf(t.Attribute, f, v)
	}
	return total, false, string(name)
}

// pathVersion is when anything that the queues on a queue's path sum up was last found to differ. The root, where
// every sum moves with every step, is on no path but its own.
func (s *Session) pathVersion(t *QuotaTree, q *model.Queue) uint64 {
	st := s.treeOf(t)
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

// treeVersion sums up the versions of the trees that a queue's value goes along.
func (s *Session) treeVersion(trees []*QuotaTree, owner ref.Val) uint64 {
	q, ok := owner.(*queueView)
	if !ok {
		return s.c.Clock
	}
	version := uint64(0)
	for _, t := range trees {
		version += s.pathVersion(t, q.of)
	}
	return version
}

// quotaTreeShape declares the function for tables and for the reference.
func quotaTreeShape() rules.AttributeFunction {
	var parts []string
	for _, part := range treeParts() {
		parts = append(parts, fmt.Sprintf("`queue.%s`, %s", part.name, part.doc))
	}
	doc := "On a queue: what queues may hold along the tree that their parents make, as several computed fields: " + strings.Join(parts, "; ") + "; and each name of rollUp. In a tree the root may hold what its capability says; where that has no limit and a queue directly below " +
		"is guaranteed something, the total stands for it. Going down, a queue may hold what its parent may, less what its siblings are guaranteed, and no more than its capability, which " +
		"takes from above what it lacks. Where there is no tree (flat), a queue may hold the total, less what others are guaranteed, and no more than its capability, and deserves no more than it may hold. " +
		"A queue whose parents are not there, or go in a circle, may hold nothing, nor may those below it; the others do not notice. Who stands where is found once for each change of objects; a sum costs one addition for each level."
	return rules.AttributeFunction{Name: quotaTreeFunction, Doc: doc, Args: []rules.Argument{
		{Name: "parent", Doc: "Name of the queue above; \"\" is the root."},
		{Name: "root", Doc: "Name of the queue at the top; sees no queue."},
		{Name: "flat", Optional: true, Doc: "Whether there is no tree: each queue is a leaf and its own root; sees no queue. False, if it is left out."},
		{Name: "total", Doc: "Resources that there are in all; sees no queue."},
		{Name: "guarantee", Optional: true, Doc: "Resources kept for the queue."},
		{Name: "capability", Optional: true, Doc: "Most Resources for the queue. A dimension that is missing, or cpu or memory that is not above 0, is no limit."},
		{Name: "deserved", Optional: true, Doc: "Resources that the queue is due."},
		{Name: rollUpArgument, Optional: true, Map: true, Doc: "Names of further computed fields, each with Resources of a queue: the field is their sum over the queue and all below it."},
	}}
}
