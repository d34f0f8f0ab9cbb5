package session

import (
	"cmp"
	"slices"
	"time"

	"github.com/celsius-scheduler/celsius/engine/follow"
	"github.com/celsius-scheduler/celsius/engine/language"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/engine/slab"
	"github.com/celsius-scheduler/celsius/rules"
)

// Heap returns its items in order, the first item of that moment first. It reads keys again when what they read may have changed. Items
// that were put before the first Take are sorted once. Items that come later, or whose keys changed since, are in a separate heap. An
// object is in one heap of a session at a time, and for at most one cycle.
type Heap[T comparable] struct {
	s    *orders
	rows []*policy.Rule // rows of the order site
	heaped[T]
	items   *follow.BySlot[*heapItem[T]] // shared by all heaps of the session
	log     *follow.Log[T]
	cursor  follow.Cursor[T] // in log
	clock   uint64
	objects uint64       // the cluster's ObjectClock
	far     policy.Reach // how far the keys read: determines how many are read again after a change

	count int // number of all items
	gathering[T]
	heap []*heapItem[T]

	slab  slab.Of[heapItem[T]]
	spare []*heapItem[T] // taken items, for reuse
}

// gathering contains the items that were put before the first Take.
type gathering[T comparable] struct {
	run      []*heapItem[T] // in order from next on, with gaps
	next     int
	gathered bool // run is sorted
}

// heaped contains the functions that a heap calls for its objects.
type heaped[T any] struct {
	keys    func(x T, room []language.Key) ([]language.Key, time.Time)
	created func(T) time.Time
	tie     func(a, b T) int // for objects that were created at the same moment
	version func(T) uint64
	slot    func(T) int32
}

type heapItem[T comparable] struct {
	Ranked[T]
	in      *Heap[T]
	version uint64
	index   int // in the heap, or in the run if inRun is true
	inRun   bool
}

// heapItems contains the items of all heaps of a session, by the slots of their objects.
type heapItems struct {
	jobs   follow.BySlot[*heapItem[*model.Job]]
	queues follow.BySlot[*heapItem[*model.Queue]]
}

// begin drops the items of objects that are gone.
func (x *heapItems) begin(c *model.Cluster) {
	x.jobs.Follow(&c.Slots.Jobs)
	x.queues.Follow(&c.Slots.Queues)
}

// Ranked is an object with its keys in an order.
type Ranked[T any] struct {
	Of   T
	keys []language.Key
	// created is the creation time of Of when the keys were read. Another object may have the same name since.
	created time.Time
	// Until is the first moment at which the keys may change although only time passes; zero: there is none.
	Until time.Time
}

func (h *Heap[T]) compare(a, b *heapItem[T]) int {
	for i, r := range h.rows {
		if c := r.Compare(&a.keys[i], &b.keys[i]); c != 0 {
			return c
		}
	}
	return cmp.Or(a.created.Compare(b.created), h.tie(a.Of, b.Of))
}

// byAge orders items with equal keys: the oldest comes first.
func (h *Heap[T]) byAge(a, b T) int { return cmp.Or(h.created(a).Compare(h.created(b)), h.tie(a, b)) }

func (h *Heap[T]) less(a, b *heapItem[T]) bool { return h.compare(a, b) < 0 }

// set puts an item at index i of the heap.
func (h *Heap[T]) set(item *heapItem[T], i int) { h.heap[i], item.index = item, i }

// up moves the item at index i towards the first position, until the item above it is not greater.
func (h *Heap[T]) up(i int) {
	item := h.heap[i]
	for i > 0 {
		above := (i - 1) / 2
		if !h.less(item, h.heap[above]) {
			break
		}
		h.set(h.heap[above], i)
		i = above
	}
	h.set(item, i)
}

// down moves the item at index i away from the first position, and reports whether it moved.
func (h *Heap[T]) down(i int) (moved bool) {
	item, start := h.heap[i], i
	for {
		kid := 2*i + 1
		if kid >= len(h.heap) {
			break
		}
		if next := kid + 1; next < len(h.heap) && h.less(h.heap[next], h.heap[kid]) {
			kid = next
		}
		if !h.less(h.heap[kid], item) {
			break
		}
		h.set(h.heap[kid], i)
		i = kid
	}
	h.set(item, i)
	return i > start
}

func (h *Heap[T]) push(item *heapItem[T]) {
	item.inRun = false
	h.heap = append(h.heap, item)
	h.up(len(h.heap) - 1)
}

// Put adds an item.
func (h *Heap[T]) Put(x T) {
	var item *heapItem[T]
	if n := len(h.spare); n > 0 {
		item, h.spare = h.spare[n-1], h.spare[:n-1]
	} else {
		item = h.slab.New()
	}
	item.Of, item.in = x, h
	h.read(item)
	h.items.Set(h.slot(x), item)
	if h.count++; h.gathered {
		h.push(item)
		return
	}
	item.index, item.inRun = len(h.run), true
	h.run = append(h.run, item)
}

// Take removes the first item; false: there is none.
func (h *Heap[T]) Take() (x T, ok bool) {
	item := h.take()
	if item == nil {
		return x, false
	}
	x = item.Of
	h.spare = append(h.spare, item)
	return x, true
}

// TakeRanked does what Take does, and also returns the item's keys.
func (h *Heap[T]) TakeRanked() (r Ranked[T], ok bool) {
	item := h.take()
	if item == nil {
		return r, false
	}
	r = item.Ranked
	item.keys = nil // the keys belong to the caller now
	h.spare = append(h.spare, item)
	return r, true
}

func (h *Heap[T]) take() *heapItem[T] {
	item := h.first()
	if item == nil {
		return nil
	}
	h.count--
	if item.inRun {
		h.run[h.next] = nil
		h.next++
	} else {
		last := len(h.heap) - 1
		h.set(h.heap[last], 0)
		h.heap[last] = nil
		if h.heap = h.heap[:last]; last > 0 {
			h.down(0)
		}
	}
	h.items.Set(h.slot(item.Of), nil)
	return item
}

// First returns the item that Take would remove; false: there is none. The result is valid until the next call.
func (h *Heap[T]) First() (*Ranked[T], bool) {
	item := h.first()
	if item == nil {
		return nil, false
	}
	return &item.Ranked, true
}

func (h *Heap[T]) first() *heapItem[T] {
	if h.count == 0 {
		return nil
	}
	h.gather()
	h.refresh()
	for h.next < len(h.run) && h.run[h.next] == nil {
		h.next++
	}
	switch {
	case h.next == len(h.run):
		return h.heap[0]
	case len(h.heap) > 0 && h.less(h.heap[0], h.run[h.next]):
		return h.heap[0]
	}
	return h.run[h.next]
}

// gather sorts the items that were put so far.
func (h *Heap[T]) gather() {
	if h.gathered {
		return
	}
	h.gathered = true
	slices.SortFunc(h.run, h.compare)
	for i, item := range h.run {
		item.index = i
	}
}

// refresh reads keys again. Usually it reads those of touched items. If keys follow a tree, it reads those of items with a change on their
// path. If keys read more than that, or objects changed, it reads all.
func (h *Heap[T]) refresh() {
	if h.clock == h.s.c.Clock {
		return
	}
	h.clock = h.s.c.Clock
	touched, ok := h.cursor.Read(h.log)
	switch {
	case !ok || h.far == policy.BeyondIt || h.objects != h.s.c.ObjectClock:
		h.readAll()
	case h.far == policy.AlongTree:
		for _, item := range h.all() {
			h.look(item)
		}
	default:
		for _, x := range touched {
			if item := h.items.Get(h.slot(x)); item != nil && item.Of == x && item.in == h {
				h.look(item)
			}
		}
	}
}

// look reads the keys of an item again if the item changed since they were read.
func (h *Heap[T]) look(item *heapItem[T]) {
	if item.version == h.version(item.Of) {
		return
	}
	h.read(item)
	switch {
	case item.inRun:
		h.run[item.index] = nil
		h.push(item)
	case !h.down(item.index):
		h.up(item.index)
	}
}

// all lists the items in the heap.
func (h *Heap[T]) all() []*heapItem[T] {
	out := make([]*heapItem[T], 0, h.count)
	for _, item := range h.run[h.next:] {
		if item != nil {
			out = append(out, item)
		}
	}
	return append(out, h.heap...)
}

// readAll reads all keys again, and builds the heap from scratch.
func (h *Heap[T]) readAll() {
	h.heap, h.run, h.next, h.objects = h.all(), nil, 0, h.s.c.ObjectClock
	for i, item := range h.heap {
		h.read(item)
		item.index, item.inRun = i, false
	}
	for i := len(h.heap)/2 - 1; i >= 0; i-- {
		h.down(i)
	}
}

func (h *Heap[T]) read(item *heapItem[T]) {
	item.version, item.created = h.version(item.Of), h.created(item.Of)
	item.keys, item.Until = h.keys(item.Of, item.keys)
}

// moves returns how far from an item the keys of a site read values that change within a cycle, and along which trees.
func (s *orders) moves(site, root string) (far policy.Reach, trees []*policy.QuotaTree) {
	for _, r := range s.p.Rules(site) {
		for _, read := range r.Reads.All {
			if read.Changes > rules.ByCycle {
				far, trees = max(far, s.p.Reach(read, root)), s.p.TreesOf(trees, read)
			}
		}
	}
	return far, trees
}

// flatQueues returns a heap of queues that reads the keys of each queue again separately.
func (s *orders) flatQueues() *Heap[*model.Queue] {
	far, trees := s.moves(policy.QueueOrder, "queue")
	var h *Heap[*model.Queue]
	h = &Heap[*model.Queue]{
		s: s, rows: s.p.Rules(policy.QueueOrder), far: far, clock: s.c.Clock, objects: s.c.ObjectClock,
		log: &s.c.QueueLog, cursor: s.c.QueueLog.End(), items: &s.items.queues,
		heaped: heaped[*model.Queue]{
			keys: func(q *model.Queue, room []language.Key) ([]language.Key, time.Time) {
				if h.gathered { // a value that is read again during a walk usually changed
					return s.queueKeysAfresh(q, room), time.Time{}
				}
				return s.queueKeys(q, room), time.Time{}
			},
			created: func(q *model.Queue) time.Time { return q.CreatedAt },
			tie:     func(a, b *model.Queue) int { return cmp.Compare(a.Name, b.Name) },
			slot:    func(q *model.Queue) int32 { return q.Slot },
			version: func(q *model.Queue) uint64 {
				version := q.Version
				for _, t := range trees {
					version += s.accounts.PathVersion(t, q)
				}
				return version
			},
		},
	}
	return h
}

// Jobs returns an empty heap of jobs. Its order: rows of jobOrder, then creation time, then namespace/name.
func (s *orders) Jobs() *Heap[*model.Job] {
	far, _ := s.moves(policy.JobOrder, "job")
	return &Heap[*model.Job]{
		s: s, rows: s.p.Rules(policy.JobOrder), far: far, clock: s.c.Clock, objects: s.c.ObjectClock,
		log: &s.c.JobLog, cursor: s.c.JobLog.End(), items: &s.items.jobs,
		heaped: heaped[*model.Job]{
			keys: s.jobKeys, tie: policy.JobTie,
			created: func(j *model.Job) time.Time { return j.CreatedAt },
			slot:    func(j *model.Job) int32 { return j.Slot },
			version: func(j *model.Job) uint64 { return j.Version },
		},
	}
}

// Rank reads the keys of a job again.
func (s *orders) Rank(r *Ranked[*model.Job]) {
	r.created = r.Of.CreatedAt
	r.keys, r.Until = s.jobKeys(r.Of, r.keys)
}

// Compare returns a negative number if a comes before b in the order of jobs.
func (s *orders) Compare(a, b *Ranked[*model.Job]) int {
	if c := cmp.Or(s.compareKeys(policy.JobOrder, a.keys, b.keys), a.created.Compare(b.created)); c != 0 {
		return c
	}
	return policy.JobTie(a.Of, b.Of)
}
