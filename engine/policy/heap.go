package policy

import (
	"cmp"
	"container/heap"
	"time"

	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/rules"
)

// Heap gives its items in order, first the first at that moment: keys are read again when what they
// read may have changed.
type Heap[T comparable] struct {
	s       *Session
	site    string
	keys    func(T) ([]key, time.Time)
	tie     func(a, b T) int
	version func(T) uint64
	log     *model.Log[T]
	cursor  uint64 // into log
	clock   uint64
	far     reach // of what the keys read: how much is read again when anything changed
	items   []*heapItem[T]
	at      map[T]*heapItem[T]
}

type heapItem[T comparable] struct {
	Ranked[T]
	version uint64
	index   int
}

// Ranked is something with its place in an order: its keys.
type Ranked[T any] struct {
	Of   T
	keys []key
	// Until is the first moment at which the keys may be others though nothing but time moved; zero: there is none.
	Until time.Time
}

// Len implements sort.Interface.
func (h *Heap[T]) Len() int { return len(h.items) }

// Less implements sort.Interface.
func (h *Heap[T]) Less(i, j int) bool {
	if c := h.s.compareKeys(h.site, h.items[i].keys, h.items[j].keys); c != 0 {
		return c < 0
	}
	return h.tie(h.items[i].Of, h.items[j].Of) < 0
}

// Swap implements sort.Interface.
func (h *Heap[T]) Swap(i, j int) {
	h.items[i], h.items[j] = h.items[j], h.items[i]
	h.items[i].index, h.items[j].index = i, j
}

// Push implements heap.Interface.
func (h *Heap[T]) Push(x any) {
	if item, ok := x.(*heapItem[T]); ok {
		item.index = len(h.items)
		h.items = append(h.items, item)
		h.at[item.Of] = item
	}
}

// Pop implements heap.Interface.
func (h *Heap[T]) Pop() any {
	last := h.items[len(h.items)-1]
	h.items = h.items[:len(h.items)-1]
	delete(h.at, last.Of)
	return last
}

// Put adds an item.
func (h *Heap[T]) Put(x T) {
	item := &heapItem[T]{Ranked: Ranked[T]{Of: x}, version: h.version(x)}
	item.keys, item.Until = h.keys(x)
	heap.Push(h, item)
}

// Take removes the first item; false: there is none.
func (h *Heap[T]) Take() (T, bool) {
	r, ok := h.TakeRanked()
	return r.Of, ok
}

// TakeRanked is Take, with the item's place in the order.
func (h *Heap[T]) TakeRanked() (r Ranked[T], ok bool) {
	if !h.refresh() {
		return r, false
	}
	item, ok := heap.Pop(h).(*heapItem[T])
	return item.Ranked, ok
}

// First is the item that Take would remove; false: there is none. It holds until the next call.
func (h *Heap[T]) First() (*Ranked[T], bool) {
	if !h.refresh() {
		return nil, false
	}
	return &h.items[0].Ranked, true
}

// refresh reads keys again: those of items that were touched; where keys go along a tree, those of items with something
// new on their path; where keys read more than that, all.
func (h *Heap[T]) refresh() (some bool) {
	if len(h.items) == 0 || h.clock == h.s.c.Clock && !h.s.NoCache {
		return len(h.items) > 0
	}
	h.clock = h.s.c.Clock
	touched, ok := h.log.Since(h.cursor)
	h.cursor = h.log.Next()
	if !ok || h.far == beyondIt || h.s.NoCache {
		for _, item := range h.items {
			h.read(item)
		}
		heap.Init(h)
		return true
	}
	if h.far == alongTree {
		touched = make([]T, 0, len(h.items))
		for _, item := range h.items {
			touched = append(touched, item.Of)
		}
	}
	for _, x := range touched {
		if item := h.at[x]; item != nil && item.version != h.version(x) {
			h.read(item)
			heap.Fix(h, item.index)
		}
	}
	return true
}

func (h *Heap[T]) read(item *heapItem[T]) {
	item.version = h.version(item.Of)
	item.keys, item.Until = h.keys(item.Of)
}

// moves says how far from an item lies what the keys of a site read, of what changes within a cycle, and along which trees.
func (s *Session) moves(site, root string) (far reach, trees []*quotaTree) {
	for _, r := range s.p.rules[site] {
		for _, read := range r.Reads.All {
			if read.Changes > rules.ByCycle {
				far, trees = max(far, s.p.reach(read, root)), s.p.treesOf(trees, read)
			}
		}
	}
	return far, trees
}

// flatQueues is a heap of queues that reads keys again one by one.
func (s *Session) flatQueues() *Heap[*model.Queue] {
	far, trees := s.moves(QueueOrder, "queue")
	return &Heap[*model.Queue]{
		s: s, site: QueueOrder, keys: func(q *model.Queue) ([]key, time.Time) { return s.queueKeys(q), time.Time{} }, far: far, clock: s.c.Clock,
		log: &s.c.QueueLog, cursor: s.c.QueueLog.Next(), at: map[*model.Queue]*heapItem[*model.Queue]{},
		version: func(q *model.Queue) uint64 {
			version := q.Version
			for _, t := range trees {
				version += s.pathVersion(t, q)
			}
			return version
		},
		tie: func(a, b *model.Queue) int {
			return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.UID, b.UID), cmp.Compare(a.Name, b.Name))
		},
	}
}

// Jobs is an empty heap of jobs: rows of jobOrder, then creation time, then UID (namespace/name).
func (s *Session) Jobs() *Heap[*model.Job] {
	far, _ := s.moves(JobOrder, "job")
	return &Heap[*model.Job]{
		s: s, site: JobOrder, keys: s.jobKeys, far: far, clock: s.c.Clock,
		log: &s.c.JobLog, cursor: s.c.JobLog.Next(), at: map[*model.Job]*heapItem[*model.Job]{},
		version: func(j *model.Job) uint64 { return j.Version },
		tie:     jobTie,
	}
}

// jobTie is the final order of jobs.
func jobTie(a, b *model.Job) int {
	return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.Key, b.Key))
}

// Rank gives a job its place in the order of jobs, as it is now.
func (s *Session) Rank(j *model.Job) Ranked[*model.Job] {
	r := Ranked[*model.Job]{Of: j}
	r.keys, r.Until = s.jobKeys(j)
	return r
}

// Compare is negative where a comes before b in the order of jobs.
func (s *Session) Compare(a, b *Ranked[*model.Job]) int {
	return cmp.Or(s.compareKeys(JobOrder, a.keys, b.keys), jobTie(a.Of, b.Of))
}

// OrderEpoch is a text of what the order of jobs rests on besides the jobs themselves and the passing of time; false where that
// moves within a cycle, or cannot be told.
func (s *Session) OrderEpoch() (string, bool) {
	if far, _ := s.moves(JobOrder, "job"); far != within {
		return "", false
	}
	var b []byte
	for _, r := range s.p.rules[JobOrder] {
		for _, read := range r.Reads.All {
			switch {
			case read.Root == "cluster" && !ofMembers(read):
				b = encodeKey(b, follow(s.cluster, read.Steps), read.Key)
			case read.Root == "job" && !s.local(read):
				return "", false
			case read.Root == "action":
				b = encode(b, s.action)
			}
		}
	}
	return string(append(b, s.rest.values...)), true
}
