package policy

import (
	"cmp"
	"container/heap"

	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/rules"
)

// Heap gives its items in order, first the first at that moment: keys are read again when what they
// read may have changed.
type Heap[T comparable] struct {
	s       *Session
	site    string
	keys    func(T) []key
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
	of      T
	keys    []key
	version uint64
	index   int
}

// Len implements sort.Interface.
func (h *Heap[T]) Len() int { return len(h.items) }

// Less implements sort.Interface.
func (h *Heap[T]) Less(i, j int) bool {
	if c := h.s.compareKeys(h.site, h.items[i].keys, h.items[j].keys); c != 0 {
		return c < 0
	}
	return h.tie(h.items[i].of, h.items[j].of) < 0
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
		h.at[item.of] = item
	}
}

// Pop implements heap.Interface.
func (h *Heap[T]) Pop() any {
	last := h.items[len(h.items)-1]
	h.items = h.items[:len(h.items)-1]
	delete(h.at, last.of)
	return last
}

// Put adds an item.
func (h *Heap[T]) Put(x T) {
	heap.Push(h, &heapItem[T]{of: x, keys: h.keys(x), version: h.version(x)})
}

// Take removes the first item; false: there is none.
func (h *Heap[T]) Take() (T, bool) {
	h.refresh()
	if len(h.items) == 0 {
		var none T
		return none, false
	}
	item, ok := heap.Pop(h).(*heapItem[T])
	return item.of, ok
}

// refresh reads keys again: those of items that were touched; where keys go along a tree, those of items with something
// new on their path; where keys read more than that, all.
func (h *Heap[T]) refresh() {
	if h.clock == h.s.c.Clock && !h.s.NoCache {
		return
	}
	h.clock = h.s.c.Clock
	touched, ok := h.log.Since(h.cursor)
	h.cursor = h.log.Next()
	if !ok || h.far == beyondIt || h.s.NoCache {
		for _, item := range h.items {
			item.keys, item.version = h.keys(item.of), h.version(item.of)
		}
		heap.Init(h)
		return
	}
	if h.far == alongTree {
		touched = make([]T, 0, len(h.items))
		for _, item := range h.items {
			touched = append(touched, item.of)
		}
	}
	for _, x := range touched {
		if item := h.at[x]; item != nil && item.version != h.version(x) {
			item.keys, item.version = h.keys(x), h.version(x)
			heap.Fix(h, item.index)
		}
	}
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

// Queues is an empty heap of queues: rows of queueOrder, then creation time, then UID.
func (s *Session) Queues() *Heap[*model.Queue] {
	far, trees := s.moves(QueueOrder, "queue")
	return &Heap[*model.Queue]{
		s: s, site: QueueOrder, keys: s.queueKeys, far: far, clock: s.c.Clock,
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
		tie: func(a, b *model.Job) int {
			return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.Key, b.Key))
		},
	}
}
