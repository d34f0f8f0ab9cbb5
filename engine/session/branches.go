package session

import (
	"container/heap"
	"slices"

	"github.com/celsius-scheduler/celsius/engine/follow"
	"github.com/celsius-scheduler/celsius/engine/language"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/engine/quota"
	"github.com/celsius-scheduler/celsius/rules/eval"
)

// hierarchy is a tree of queues. Each node has a part of the keys of all queues below it. N identifies a node.
type hierarchy[N comparable] interface {
	// update updates the hierarchy; false: it was replaced, or does not exist.
	update() bool
	// changed calls again for the nodes whose parts may have changed since the last call. touched are the changed queues. false: the changes
	// are unknown, or again returned false.
	changed(touched []*model.Queue, again func(N) bool) bool
	// path returns the path to a queue; false: there is none.
	path(q *model.Queue) ([]N, bool)
	// part returns the part of a key that belongs to a node; false: the node has no key.
	part(node N) (language.Key, bool)
}

// branchHeap is a heap of queues that follows a hierarchy.
type branchHeap interface {
	// begin starts a walk with an empty heap; false: the cached hierarchy is stale.
	begin() bool
	// put adds a queue; false: the queue has no key that fits the heap.
	put(q *model.Queue) bool
	// take removes the first queue.
	take() (*model.Queue, bool)
	// refresh reads again what has changed; false: the changes are unknown.
	refresh() bool
	// all lists the queues in the heap.
	all() []*model.Queue
}

// keyPart is the part of the keys that a node of the hierarchy gives to all queues below it.
type keyPart[N comparable] struct {
	key language.Key
	at  *branch[N] // nil: no queue below is in the heaps
	// run contains the queues below that were put into the run of a walk.
	run  []*branch[N]
	walk uint64
}

// branches contains the queues of a walk. Queues that were put before the first take are in one run, which is sorted once. Queues that came
// later, or whose keys changed since, are in a tree of heaps. Keys and parts are kept from walk to walk.
type branches[N comparable] struct {
	s    *orders
	row  int // index of the row of the site whose keys follow the hierarchy
	of   hierarchy[N]
	flat *Heap[*model.Queue] // for its order of ties
	top  *branch[N]
	// leaves contains the known branches of queues; run contains those of this walk.
	leaves follow.BySlot[*branch[N]]
	run    branchRun[N]
	// depth is the number of parts of a key; -1: not known yet.
	depth int

	begun  bool
	clock  uint64 // of the cluster, at the last refresh
	cursor follow.Cursor[*model.Queue]
	parts  map[N]*keyPart[N]
	again  func(N) bool // calls x.reread
}

// branchRun contains queues in order from index next on, with gaps.
type branchRun[N comparable] struct {
	list     []*branch[N]
	next     int
	gathered bool
	walk     uint64
	last     []*branch[N] // the list of the previous walk, without gaps
}

// branch is a queue, or a node with queues below it.
type branch[N comparable] struct {
	x     *branches[N]
	above *branch[N] // nil for a queue that is not in the heaps
	index int        // in the kids of above, or in the run
	part  *keyPart[N]
	kids  []*branch[N]

	queue   *model.Queue
	keys    []language.Key // the keys of the other rows
	path    []*keyPart[N]
	version uint64 // of the queue, when its keys were read
	walk    uint64 // the last walk in which it was put into the run
	inRun   bool

	first *branch[N] // the first of the queues below; a queue itself
}

func newBranches[N comparable](s *orders, row int, of hierarchy[N], flat *Heap[*model.Queue]) *branches[N] {
	x := &branches[N]{s: s, row: row, of: of, flat: flat, top: nil, parts: map[N]*keyPart[N]{}, depth: -1}
	x.again = x.reread
	x.top = &branch[N]{x: x}
	x.clock, x.cursor = x.s.c.Clock, x.s.c.QueueLog.End()
	return x
}

// begin starts a walk.
func (x *branches[N]) begin() bool {
	x.leaves.Follow(&x.s.c.Slots.Queues)
	x.each(func(b *branch[N]) { b.inRun, b.above = false, nil }) // left by an unfinished walk
	r := &x.run
	r.last = append(r.last[:0], r.list...)
	r.list, r.next, r.gathered = r.list[:0], 0, false
	r.walk++
	x.top.kids, x.top.first, x.depth = nil, nil, -1
	return x.refresh()
}

// all lists the queues in the run and in the heaps.
func (x *branches[N]) all() (out []*model.Queue) {
	x.each(func(b *branch[N]) { out = append(out, b.queue) })
	return out
}

// each calls do for the queues in the run and in the heaps.
func (x *branches[N]) each(do func(b *branch[N])) {
	for _, b := range x.run.list[x.run.next:] {
		if b != nil {
			do(b)
		}
	}
	var walk func(b *branch[N])
	walk = func(b *branch[N]) {
		for _, kid := range b.kids {
			walk(kid)
		}
		if b.queue != nil {
			do(b)
		}
	}
	walk(x.top)
}

// put adds a queue; false: the queue has no key that fits the heap.
func (x *branches[N]) put(q *model.Queue) bool {
	if !x.refresh() {
		return false
	}
	b := x.leaves.Get(q.Slot)
	if b == nil || b.queue != q || b.version != q.Version {
		b = &branch[N]{x: x, queue: q}
		var ok bool
		if b.path, ok = x.pathOf(q); !ok {
			return false
		}
		x.read(b)
		b.first = b
		x.leaves.Set(q.Slot, b)
	}
	if x.depth >= 0 && len(b.path) != x.depth {
		return false
	}
	x.depth = len(b.path)
	if x.run.gathered {
		x.enter(b)
	} else {
		x.line(b)
	}
	return true
}

// line appends a queue to the run.
func (x *branches[N]) line(b *branch[N]) {
	r := &x.run
	r.list = append(r.list, b)
	b.walk, b.inRun, b.above = r.walk, true, nil
	for _, p := range b.path {
		if p.walk != r.walk {
			p.walk, p.run, p.at = r.walk, p.run[:0], nil
		}
		p.run = append(p.run, b)
	}
}

// gather sorts the run. It starts with the order of the previous walk, because most of the order usually stays the same.
func (x *branches[N]) gather() {
	r := &x.run
	if r.gathered {
		return
	}
	r.gathered = true
	compare := func(a, b *branch[N]) int {
		if x.before(a, b) {
			return -1
		}
		return 1
	}
	if !slices.IsSortedFunc(r.list, compare) {
		n := 0
		for _, b := range r.last {
			if b != nil && b.walk == r.walk && b.inRun {
				b.inRun = false // the branch already has its position
				r.last[n] = b
				n++
			}
		}
		for _, b := range r.list {
			if b.inRun {
				r.last = append(r.last[:n], b)
				n++
			}
		}
		r.list, r.last = r.last[:n], r.list[:0]
		if !slices.IsSortedFunc(r.list, compare) {
			slices.SortFunc(r.list, compare)
		}
	}
	for i, b := range r.list {
		b.index, b.inRun = i, true
	}
}

// leave removes a queue from the run.
func (x *branches[N]) leave(b *branch[N]) {
	x.run.list[b.index], b.inRun = nil, false
}

// enter puts a queue into the heaps.
func (x *branches[N]) enter(b *branch[N]) {
	at := x.top
	for _, p := range b.path {
		if p.walk != x.run.walk {
			p.walk, p.run, p.at = x.run.walk, p.run[:0], nil
		}
		if p.at == nil {
			p.at = &branch[N]{x: x, above: at, part: p}
			at.kids = append(at.kids, p.at)
			p.at.index = len(at.kids) - 1
		}
		at = p.at
	}
	b.above, b.index = at, len(at.kids)
	at.kids = append(at.kids, b)
	b.rise()
}

// read reads the keys of the rows that do not branch.
func (x *branches[N]) read(b *branch[N]) {
	f := x.s.ask.Frame()
	defer x.s.ask.Done()
	f.Queue = x.s.QueueView(b.queue)
	errors := x.s.ask.Errors()
	b.version, b.keys = b.queue.Version, x.s.keysBut(policy.QueueOrder, x.row, f, b.keys)
	if x.s.ask.Errors() != errors {
		b.version = 0 // read again in the next cycle, so that each cycle reports the error
	}
}

// take removes the first queue.
func (x *branches[N]) take() (*model.Queue, bool) {
	x.gather()
	r, b := &x.run, x.top.first
	for r.next < len(r.list) && r.list[r.next] == nil {
		r.next++
	}
	if r.next < len(r.list) && (b == nil || x.before(r.list[r.next], b)) {
		b = r.list[r.next]
		b.inRun = false
		r.next++
		return b.queue, true
	}
	if b == nil {
		return nil, false
	}
	q := b.queue
	for {
		above := b.above
		heap.Remove(above, b.index)
		b.above = nil
		if above.part == nil || len(above.kids) > 0 {
			above.rise()
			return q, true
		}
		above.part.at = nil
		b = above
	}
}

// rise restores the heap order of a branch among its siblings, and that of the branches above it.
func (b *branch[N]) rise() {
	for ; b.above != nil; b = b.above {
		b.find()
		heap.Fix(b.above, b.index)
	}
	b.find()
}

// find sets first, the first queue below.
func (b *branch[N]) find() {
	switch {
	case b.queue != nil:
		b.first = b
	case len(b.kids) > 0:
		b.first = b.kids[0].first
	default:
		b.first = nil
	}
}

func (b *branch[N]) Len() int { return len(b.kids) }

func (b *branch[N]) Less(i, j int) bool { return b.x.before(b.kids[i].first, b.kids[j].first) }

func (b *branch[N]) Swap(i, j int) {
	b.kids[i], b.kids[j] = b.kids[j], b.kids[i]
	b.kids[i].index, b.kids[j].index = i, j
}

func (b *branch[N]) Push(any) {}

func (b *branch[N]) Pop() any {
	last := b.kids[len(b.kids)-1]
	b.kids[len(b.kids)-1] = nil
	b.kids = b.kids[:len(b.kids)-1]
	return last
}

// before reports whether a comes before b in the order of queues.
func (x *branches[N]) before(a, b *branch[N]) bool {
	for i, r := range x.s.p.Rules(policy.QueueOrder) {
		var c int
		if i == x.row {
			c = comparePaths(a.path, b.path)
			if r.Descending {
				c = -c
			}
		} else {
			c = r.Compare(&a.keys[i], &b.keys[i])
		}
		if c != 0 {
			return c < 0
		}
	}
	return x.flat.byAge(a.queue, b.queue) < 0
}

func comparePaths[N comparable](a, b []*keyPart[N]) int {
	for i := range min(len(a), len(b)) {
		if a[i] == b[i] {
			continue
		}
		if c := a[i].key.Compare(&b[i].key); c != 0 {
			return c
		}
	}
	return 0
}

// refresh reads the changed nodes one after the other, so that all others are in order each time; false: the changes are unknown.
func (x *branches[N]) refresh() bool {
	if x.begun && x.clock == x.s.c.Clock {
		return true
	}
	x.begun, x.clock = true, x.s.c.Clock
	touched, known := x.cursor.Read(&x.s.c.QueueLog)
	known = x.of.update() && known && x.of.changed(touched, x.again)
	for _, q := range touched {
		b := x.leaves.Get(q.Slot)
		switch {
		case b == nil || b.queue != q || b.version == q.Version:
		case b.inRun:
			if x.read(b); x.run.gathered {
				x.leave(b)
				x.enter(b)
			}
		case b.above != nil:
			x.read(b)
			b.rise()
		}
	}
	return known
}

// reread reads the part of a node again; false: it has none.
func (x *branches[N]) reread(node N) bool {
	p := x.parts[node]
	if p == nil {
		return true
	}
	k, ok := x.of.part(node)
	if !ok {
		return false
	}
	if k.Same(&p.key) {
		return true
	}
	if p.key = k; p.walk != x.run.walk {
		return true
	}
	if p.at != nil {
		p.at.rise()
	}
	if x.run.gathered {
		for _, b := range p.run {
			if b.inRun {
				x.leave(b)
				x.enter(b)
			}
		}
		p.run = p.run[:0]
	}
	return true
}

// pathOf returns the nodes on the path to a queue; false: it has no key.
func (x *branches[N]) pathOf(q *model.Queue) (path []*keyPart[N], ok bool) {
	nodes, ok := x.of.path(q)
	if !ok {
		return nil, false
	}
	for _, node := range nodes {
		p := x.parts[node]
		if p == nil {
			k, ok := x.of.part(node)
			if !ok {
				return nil, false
			}
			p = &keyPart[N]{key: k}
			x.parts[node] = p
		}
		path = append(path, p)
	}
	return path, true
}

// quotaBranches presents a tree of quotas as a hierarchy: a node is a queue.
type quotaBranches struct {
	s       *orders
	tree    *policy.QuotaTree
	now     *policy.TreeState
	each    *eval.Each // computes the part of a queue on the path
	version uint64
	moved   follow.Cursor[*model.Queue]
}

func (h *quotaBranches) update() bool {
	h.now = h.s.accounts.TreeOf(h.tree)
	if h.version == 0 {
		h.version = h.now.Version
		h.moved.Skip(&h.now.Moved)
	}
	return h.version == h.now.Version
}

func (h *quotaBranches) changed(touched []*model.Queue, again func(*model.Queue) bool) bool {
	queues, known := h.moved.Read(&h.now.Moved)
	for _, list := range [][]*model.Queue{queues, touched} {
		for _, q := range list {
			known = known && again(q)
		}
	}
	return known
}

func (h *quotaBranches) path(q *model.Queue) ([]*model.Queue, bool) {
	return h.now.Path(q)
}

func (h *quotaBranches) part(q *model.Queue) (language.Key, bool) {
	f := h.s.ask.Frame()
	defer h.s.ask.Done()
	return language.KeyOf(h.each.Of(f, h.s.QueueView(q)))
}

// shareBranches presents a tree of shares as a hierarchy: a node is a group.
type shareBranches struct {
	s     *orders
	of    *policy.Attribute
	tree  *language.ShareTree // nil: not read yet
	moved follow.Cursor[*quota.Group]
}

func (h *shareBranches) update() bool {
	t, ok := policy.ReadAttribute(h.of, h.s.ClusterView.Value()).(*language.ShareTree)
	if !ok || h.tree != nil && h.tree.Tree != t.Tree {
		return false
	}
	if h.tree == nil {
		t.Tree.Moved(&h.moved) // record moves from now on
	}
	h.tree = t
	return true
}

func (h *shareBranches) changed(_ []*model.Queue, again func(*quota.Group) bool) bool {
	groups, known := h.tree.Tree.Moved(&h.moved)
	for _, g := range groups {
		known = known && again(g)
	}
	return known
}

func (h *shareBranches) path(q *model.Queue) ([]*quota.Group, bool) {
	names, ok := h.tree.Paths[q]
	groups := h.tree.Tree.Groups(names)
	return groups, ok && len(groups) == len(names)-1
}

func (h *shareBranches) part(g *quota.Group) (language.Key, bool) { return rankKey(g.Rank()) }

// rankKey returns the part that a group has in the keys of the queues below it, as the function key computes it.
func rankKey(r quota.Rank) (language.Key, bool) {
	saturated := 0.0
	if r.Saturated {
		saturated = 1
	}
	first, _ := language.NumberKey(saturated)
	second, ok := language.NumberKey(r.Share)
	return language.ListKey([]language.Key{first, second}), ok
}
