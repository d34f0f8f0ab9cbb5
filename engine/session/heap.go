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

// Heap gives its items in order, first the first at that moment: keys are read again when what they
// read may have changed. What is put before the first is asked for is sorted once; what comes later, or
// has other keys since, is in a heap beside. An object is in one heap of a session at a time, for no longer than a cycle.
type Heap[T comparable] struct {
	s    *orders
	rows []*policy.Rule // of the order
	heaped[T]
	items   *follow.BySlot[*heapItem[T]] // of all heaps of the session
	log     *follow.Log[T]
	cursor  follow.Cursor[T] // in log
	clock   uint64
	objects uint64       // the cluster's ObjectClock
	far     policy.Reach // of what the keys read: how much is read again when anything changed

	count int // of all that is there
	gathering[T]
	heap []*heapItem[T]

	slab  slab.Of[heapItem[T]]
	spare []*heapItem[T] // that were taken, to be used again
}

// gathering is what was put before the first was asked for.
type gathering[T comparable] struct {
	run      []*heapItem[T] // in order from next on, with gaps
	next     int
	gathered bool // run is sorted
}

// heaped is what a heap asks of its objects.
type heaped[T any] struct {
	keys    func(x T, room []language.Key) ([]language.Key, time.Time)
	created func(T) time.Time
	tie     func(a, b T) int // of those created at the same moment
	version func(T) uint64
	slot    func(T) int32
}

type heapItem[T comparable] struct {
	Ranked[T]
	in      *Heap[T]
	version uint64
	index   int // in the heap, or where inRun in the run
	inRun   bool
}

// heapItems are those of all heaps of a session, by which an object's item is found.
type heapItems struct {
	jobs   follow.BySlot[*heapItem[*model.Job]]
	queues follow.BySlot[*heapItem[*model.Queue]]
}

// begin drops what a heap of an earlier cycle left of objects that are gone.
func (x *heapItems) begin(c *model.Cluster) {
	x.jobs.Follow(&c.Slots.Jobs)
	x.queues.Follow(&c.Slots.Queues)
}

// Ranked is something with its place in an order: its keys.
type Ranked[T any] struct {
	Of   T
	keys []language.Key
	// created is when Of was, as of the moment when the keys were read: it may be another object of its name since.
	created time.Time
	// Until is the first moment at which the keys may be others though nothing but time moved; zero: there is none.
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

// byAge is the order of those whose keys are the same: who was created first comes first.
func (h *Heap[T]) byAge(a, b T) int { return cmp.Or(h.created(a).Compare(h.created(b)), h.tie(a, b)) }

func (h *Heap[T]) less(a, b *heapItem[T]) bool { return h.compare(a, b) < 0 }

// set puts an item at an index of the heap.
func (h *Heap[T]) set(item *heapItem[T], i int) { h.heap[i], item.index = item, i }

// up moves the item at an index towards the first, as far as it goes before those on its way.
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

// down moves it away from the first, and says whether it moved.
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

// TakeRanked is Take, with the item's place in the order.
func (h *Heap[T]) TakeRanked() (r Ranked[T], ok bool) {
	item := h.take()
	if item == nil {
		return r, false
	}
	r = item.Ranked
	item.keys = nil // they are the caller's now
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

// First is the item that Take would remove; false: there is none. It holds until the next call.
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

// gather sorts what was put so far.
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

// refresh reads keys again: those of items that were touched; where keys go along a tree, those of items with something
// new on their path; where keys read more than that, or objects changed, all.
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

// look reads the keys of an item again, if it is another than when they were read.
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

// all lists what is there.
func (h *Heap[T]) all() []*heapItem[T] {
	out := make([]*heapItem[T], 0, h.count)
	for _, item := range h.run[h.next:] {
		if item != nil {
			out = append(out, item)
		}
	}
	return append(out, h.heap...)
}

// readAll reads all keys again, and makes the heap anew.
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

// moves says how far from an item lies what the keys of a site read, of what changes within a cycle, and along which trees.
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

// flatQueues is a heap of queues that reads keys again one by one.
func (s *orders) flatQueues() *Heap[*model.Queue] {
	far, trees := s.moves(policy.QueueOrder, "queue")
	var h *Heap[*model.Queue]
	h = &Heap[*model.Queue]{
		s: s, rows: s.p.Rules(policy.QueueOrder), far: far, clock: s.c.Clock, objects: s.c.ObjectClock,
		log: &s.c.QueueLog, cursor: s.c.QueueLog.End(), items: &s.items.queues,
		heaped: heaped[*model.Queue]{
			keys: func(q *model.Queue, room []language.Key) ([]language.Key, time.Time) {
				if h.gathered { // what is read again within a walk is another in general
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

// Jobs is an empty heap of jobs: rows of jobOrder, then creation time, then namespace/name.
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

// Rank brings a job's place in the order of jobs up to date.
func (s *orders) Rank(r *Ranked[*model.Job]) {
	r.created = r.Of.CreatedAt
	r.keys, r.Until = s.jobKeys(r.Of, r.keys)
}

// Compare is negative where a comes before b in the order of jobs.
func (s *orders) Compare(a, b *Ranked[*model.Job]) int {
	if c := cmp.Or(s.compareKeys(policy.JobOrder, a.keys, b.keys), a.created.Compare(b.created)); c != 0 {
		return c
	}
	return policy.JobTie(a.Of, b.Of)
}
