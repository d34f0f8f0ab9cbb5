package policy

import (
	"container/heap"

	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/quota"
)

// keyPart is what a node of the tree has, for all queues below it.
type keyPart struct {
	key Key
	at  *branch // nil: nobody below is there
}

// branches are the queues that are there, as a tree of heaps.
type branches struct {
	*branching
	s    *Session
	flat *Heap[*model.Queue] // for its order of ties
	top  *branch
	at   map[*model.Queue]*branch
	// depth is how many parts a key has; -1: none is known yet.
	depth int

	clock, cursor uint64 // of the cluster and its log of queues
	parts         map[any]*keyPart
	trees         *treeState
	number        uint64 // of trees, when it was looked at last
	shared        *shareTree
	moved         uint64 // into the log of either
}

// branch is a node with queues below it, or a queue.
type branch struct {
	x     *branches
	above *branch
	index int
	part  *keyPart
	kids  []*branch

	queue   *model.Queue
	keys    []Key // of the other rows
	path    []*keyPart
	version uint64

	first *branch // of the queues below; of a queue itself
}

func newBranches(s *Session, b *branching, flat *Heap[*model.Queue]) *branches {
	x := &branches{branching: b, s: s, flat: flat}
	x.clear()
	return x
}

func (x *branches) clear() {
	x.top, x.at, x.parts, x.depth = &branch{x: x}, map[*model.Queue]*branch{}, map[any]*keyPart{}, -1
	x.trees, x.shared, x.clock, x.cursor = nil, nil, x.s.c.Clock, x.s.c.QueueLog.Next()
}

// all lists the queues that are there, and forgets them.
func (x *branches) all() []*model.Queue {
	out := make([]*model.Queue, 0, len(x.at))
	var walk func(b *branch)
	walk = func(b *branch) {
		if b.queue != nil {
			out = append(out, b.queue)
		}
		for _, kid := range b.kids {
			walk(kid)
		}
	}
	walk(x.top)
	x.clear()
	return out
}

// put adds a queue; false: it has no key that fits in.
func (x *branches) put(q *model.Queue) bool {
	if !x.refresh() {
		return false
	}
	b := &branch{x: x, queue: q}
	var ok bool
	if b.path, ok = x.pathOf(q); !ok || x.depth >= 0 && len(b.path) != x.depth {
		return false
	}
	x.depth = len(b.path)
	x.read(b)
	at := x.top
	for _, p := range b.path {
		if p.at == nil {
			p.at = &branch{x: x, above: at, part: p}
			at.kids = append(at.kids, p.at)
			p.at.index = len(at.kids) - 1
		}
		at = p.at
	}
	b.above, b.index = at, len(at.kids)
	at.kids = append(at.kids, b)
	x.at[q] = b
	b.rise()
	return true
}

// read reads the keys of the rows that do not branch.
func (x *branches) read(b *branch) {
	f := x.s.frame()
	defer x.s.done()
	f.queue = x.s.queueView(b.queue)
	b.version, b.keys = b.queue.Version, x.s.keysBut(QueueOrder, x.row, f, b.keys)
}

// take removes the first queue.
func (x *branches) take() (*model.Queue, bool) {
	b := x.top.first
	if b == nil {
		return nil, false
	}
	q := b.queue
	delete(x.at, q)
	for {
		above := b.above
		heap.Remove(above, b.index)
		if above.part == nil || len(above.kids) > 0 {
			above.rise()
			return q, true
		}
		above.part.at = nil
		b = above
	}
}

// rise puts a branch in its place among its siblings, and those above it as well.
func (b *branch) rise() {
	for ; b.above != nil; b = b.above {
		b.find()
		heap.Fix(b.above, b.index)
	}
	b.find()
}

// find is the first queue below.
func (b *branch) find() {
	switch {
	case b.queue != nil:
		b.first = b
	case len(b.kids) > 0:
		b.first = b.kids[0].first
	default:
		b.first = nil
	}
}

// Len implements sort.Interface.
func (b *branch) Len() int { return len(b.kids) }

// Less implements sort.Interface.
func (b *branch) Less(i, j int) bool { return b.x.before(b.kids[i].first, b.kids[j].first) }

// Swap implements sort.Interface.
func (b *branch) Swap(i, j int) {
	b.kids[i], b.kids[j] = b.kids[j], b.kids[i]
	b.kids[i].index, b.kids[j].index = i, j
}

// Push implements heap.Interface.
func (b *branch) Push(any) {}

// Pop implements heap.Interface.
func (b *branch) Pop() any {
	last := b.kids[len(b.kids)-1]
	b.kids[len(b.kids)-1] = nil
	b.kids = b.kids[:len(b.kids)-1]
	return last
}

// before is the order of queues.
func (x *branches) before(a, b *branch) bool {
	for i, r := range x.s.p.rules[QueueOrder] {
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

func comparePaths(a, b []*keyPart) int {
	for i := range min(len(a), len(b)) {
		if a[i] == b[i] {
			continue
		}
		if c := a[i].key.compare(&b[i].key); c != 0 {
			return c
		}
	}
	return 0
}

// refresh reads again what has changed, one node after the other, so that each finds all others in order; false: that cannot be told.
func (x *branches) refresh() bool {
	if x.clock == x.s.c.Clock && (x.trees != nil || x.shared != nil) {
		return true
	}
	x.clock = x.s.c.Clock
	touched, known := x.s.c.QueueLog.Since(x.cursor)
	x.cursor = x.s.c.QueueLog.Next()
	if x.shares != nil {
		known = x.refreshShares() && known
	} else {
		known = x.refreshTree() && known && x.readParts(touched)
	}
	for _, q := range touched {
		if b := x.at[q]; b != nil && b.version != q.Version {
			x.read(b)
			b.rise()
		}
	}
	return known
}

// refreshShares brings a tree of shares up to date.
func (x *branches) refreshShares() bool {
	t, ok := readAttribute(x.shares, x.s.cluster.Value()).(*shareTree)
	if !ok || x.shared != nil && x.shared.tree != t.tree {
		return false
	}
	groups, next, known := t.tree.Moved(x.moved)
	if x.shared == nil {
		groups, known = nil, true
	}
	x.shared, x.moved = t, next
	for _, g := range groups {
		p := x.parts[g]
		if p == nil {
			continue
		}
		k, ok := rankKey(g.Rank())
		if !ok {
			return false
		}
		x.set(p, k)
	}
	return known
}

// refreshTree brings a tree of queues up to date.
func (x *branches) refreshTree() bool {
	st := x.s.treeOf(x.tree)
	if x.trees != nil && x.number != st.number {
		return false
	}
	queues, known := st.moved.Since(x.moved)
	if x.trees == nil {
		queues, known = nil, true
	}
	x.trees, x.number, x.moved = st, st.number, st.moved.Next()
	return known && x.readParts(queues)
}

// readParts reads the parts of queues again; false: one has none.
func (x *branches) readParts(of []*model.Queue) bool {
	for _, q := range of {
		p := x.parts[q]
		if p == nil {
			continue
		}
		k, ok := x.partOf(q)
		if !ok {
			return false
		}
		x.set(p, k)
	}
	return true
}

// set gives a node another part.
func (x *branches) set(p *keyPart, k Key) {
	p.key = k
	if p.at != nil {
		p.at.rise()
	}
}

// pathOf gives the nodes on the way to a queue; false: it has no key.
func (x *branches) pathOf(q *model.Queue) (path []*keyPart, ok bool) {
	if x.shares != nil {
		names, ok := x.shared.paths[q]
		groups := x.shared.tree.Groups(names)
		if !ok || len(groups) != len(names)-1 {
			return nil, false
		}
		for _, g := range groups {
			p, ok := x.node(g, func() (Key, bool) { return rankKey(g.Rank()) })
			if !ok {
				return nil, false
			}
			path = append(path, p)
		}
		return path, true
	}
	i, ok := x.trees.index[q]
	if !ok {
		return nil, false
	}
	for _, k := range x.trees.places[i].Path {
		on := x.trees.queues[k]
		p, ok := x.node(on, func() (Key, bool) { return x.partOf(on) })
		if !ok {
			return nil, false
		}
		path = append(path, p)
	}
	return path, true
}

// node is that of a group, or of a queue.
func (x *branches) node(of any, read func() (Key, bool)) (*keyPart, bool) {
	if p := x.parts[of]; p != nil {
		return p, true
	}
	k, ok := read()
	if !ok {
		return nil, false
	}
	p := &keyPart{key: k}
	x.parts[of] = p
	return p, true
}

// partOf is what a queue has on the paths that lead through it.
func (x *branches) partOf(q *model.Queue) (Key, bool) {
	f := x.s.frame()
	defer x.s.done()
	return KeyOf(x.each.Of(f, x.s.queueView(q)))
}

// rankKey is what a group has in the keys of the queues below it, as the function key has it.
func rankKey(r quota.Rank) (Key, bool) {
	saturated := 0.0
	if r.Saturated {
		saturated = 1
	}
	first, _ := floatKeyOf(saturated)
	second, ok := floatKeyOf(r.Share)
	return listOfKeys([]Key{first, second}), ok
}
