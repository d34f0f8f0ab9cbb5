package policy

import (
	"cmp"
	"container/heap"
	"math"
	"slices"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"

	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/rules"
)

// key is one sort key: absent comes last, whichever way the row sorts.
type key struct {
	kind keyKind
	i    int64
	f    float64
	s    string
	list []key
}

type keyKind uint8

const (
	noKey keyKind = iota
	intKey
	floatKey
	stringKey
	listKey
)

// keyOf reads a sort key; false where the value has no order (NaN).
func keyOf(v ref.Val) (key, bool) {
	switch x := v.(type) {
	case types.Bool:
		if x {
			return key{kind: intKey, i: 1}, true
		}
		return key{kind: intKey}, true
	case types.Int:
		return key{kind: intKey, i: int64(x)}, true
	case types.Double:
		return key{kind: floatKey, f: float64(x)}, !math.IsNaN(float64(x))
	case types.String:
		return key{kind: stringKey, s: string(x)}, true
	case types.Timestamp:
		return key{kind: intKey, i: x.UnixNano()}, true
	case types.Duration:
		return key{kind: intKey, i: int64(x.Duration)}, true
	case traits.Lister:
		out := key{kind: listKey}
		for it := x.Iterator(); it.HasNext() == types.True; {
			k, ok := keyOf(it.Next())
			if !ok {
				return key{}, false
			}
			out.list = append(out.list, k)
		}
		return out, true
	}
	return key{}, false
}

// compare orders two keys; an int and a double compare as numbers. Where one list is the beginning
// of the other they are equal.
func (k key) compare(o key) int {
	switch {
	case k.kind == listKey && o.kind == listKey:
		for i := range min(len(k.list), len(o.list)) {
			if c := k.list[i].compare(o.list[i]); c != 0 {
				return c
			}
		}
		return 0
	case k.kind == stringKey:
		return cmp.Compare(k.s, o.s)
	case k.kind == intKey && o.kind == intKey:
		return cmp.Compare(k.i, o.i)
	}
	return cmp.Compare(k.number(), o.number())
}

func (k key) number() float64 {
	if k.kind == intKey {
		return float64(k.i)
	}
	return k.f
}

// keys computes the keys of all rows of an order site.
func (s *Session) keys(site string, f *Frame) []key {
	list := s.p.rules[site]
	out := make([]key, len(list))
	for i, r := range list {
		has, err := s.guard(r, f)
		if err == nil && has {
			v := r.Expression.Eval(f)
			if k, ok := keyOf(v); ok {
				out[i] = k
				continue
			}
			err = v
		}
		if err != nil {
			s.fault(r, f, err)
		}
	}
	return out
}

// compareKeys is the first difference in tier order.
func (s *Session) compareKeys(site string, a, b []key) int {
	for i, r := range s.p.rules[site] {
		if c := compareOne(r, a[i], b[i]); c != 0 {
			return c
		}
	}
	return 0
}

// compareOne compares two keys of one row: who has none comes last, whichever way the row sorts.
func compareOne(r *Rule, x, y key) int {
	switch {
	case x.kind == noKey && y.kind == noKey:
		return 0
	case x.kind == noKey:
		return 1
	case y.kind == noKey:
		return -1
	}
	if r.Descending {
		return y.compare(x)
	}
	return x.compare(y)
}

// queueKeys and the like are an object's keys now.
func (s *Session) queueKeys(q *model.Queue) []key {
	f := s.frame()
	defer s.done()
	f.queue = s.queueView(q)
	return s.keys(QueueOrder, f)
}

func (s *Session) jobKeys(j *model.Job) []key {
	f := s.frame()
	defer s.done()
	f.job = s.jobView(j)
	return s.keys(JobOrder, f)
}

func (s *Session) taskKeys(t *model.Task) []key {
	f := s.frame()
	defer s.done()
	f.task = s.taskView(t)
	return s.keys(TaskOrder, f)
}

// Heap gives its items in order, first the first at that moment: keys are read again when what they
// read may have changed.
type Heap[T any] struct {
	s       *Session
	site    string
	keys    func(T) []key
	tie     func(a, b T) int
	version func(T) uint64
	global  bool // keys read more than the item itself: all are read again when anything changed
	clock   uint64
	items   []*heapItem[T]
}

type heapItem[T any] struct {
	of      T
	keys    []key
	version uint64
}

// Len, Less, Swap, Push and Pop are for container/heap.
func (h *Heap[T]) Len() int { return len(h.items) }

// Less implements sort.Interface.
func (h *Heap[T]) Less(i, j int) bool {
	if c := h.s.compareKeys(h.site, h.items[i].keys, h.items[j].keys); c != 0 {
		return c < 0
	}
	return h.tie(h.items[i].of, h.items[j].of) < 0
}

// Swap implements sort.Interface.
func (h *Heap[T]) Swap(i, j int) { h.items[i], h.items[j] = h.items[j], h.items[i] }

// Push implements heap.Interface.
func (h *Heap[T]) Push(x any) {
	if item, ok := x.(*heapItem[T]); ok {
		h.items = append(h.items, item)
	}
}

// Pop implements heap.Interface.
func (h *Heap[T]) Pop() any {
	last := h.items[len(h.items)-1]
	h.items = h.items[:len(h.items)-1]
	return last
}

// Put adds an item.
func (h *Heap[T]) Put(x T) {
	heap.Push(h, &heapItem[T]{x, h.keys(x), h.version(x)})
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

// refresh reads keys again: all of them where they read more than their item, else none, because an
// item that is in the heap is not being worked on, so it does not change.
func (h *Heap[T]) refresh() {
	if h.clock == h.s.c.Clock && !h.s.NoCache {
		return
	}
	h.clock = h.s.c.Clock
	changed := false
	for _, item := range h.items {
		if v := h.version(item.of); h.global || v != item.version || h.s.NoCache {
			item.keys, item.version, changed = h.keys(item.of), v, true
		}
	}
	if changed {
		heap.Init(h)
	}
}

// moves says whether the keys of a site read more, of what changes within a cycle, than the item itself.
func (s *Session) moves(site, root string) bool {
	for _, r := range s.p.rules[site] {
		for _, read := range r.Reads.All {
			if read.Changes > rules.ByCycle && !(read.Root == root && shallow(read)) && !read.Through {
				return true
			}
			if read.Through && read.Changes > rules.ByCycle && read.Root != root {
				return true
			}
		}
	}
	return false
}

// Queues is an empty heap of queues: rows of queueOrder, then creation time, then UID.
func (s *Session) Queues() *Heap[*model.Queue] {
	return &Heap[*model.Queue]{s: s, site: QueueOrder, keys: s.queueKeys, global: s.moves(QueueOrder, "queue"), clock: s.c.Clock,
		version: func(q *model.Queue) uint64 { return q.Version },
		tie: func(a, b *model.Queue) int {
			return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.UID, b.UID), cmp.Compare(a.Name, b.Name))
		}}
}

// Jobs is an empty heap of jobs: rows of jobOrder, then creation time, then UID (namespace/name).
func (s *Session) Jobs() *Heap[*model.Job] {
	return &Heap[*model.Job]{s: s, site: JobOrder, keys: s.jobKeys, global: s.moves(JobOrder, "job"), clock: s.c.Clock,
		version: func(j *model.Job) uint64 { return j.Version },
		tie: func(a, b *model.Job) int {
			return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.Key, b.Key))
		}}
}

// SortTasks orders tasks by the rows of taskOrder, then numeric suffix, creation time and UID.
func (s *Session) SortTasks(tasks []*model.Task) {
	keys := make(map[*model.Task][]key, len(tasks))
	if len(s.p.rules[TaskOrder]) > 0 {
		for _, t := range tasks {
			keys[t] = s.taskKeys(t)
		}
	}
	slices.SortFunc(tasks, func(a, b *model.Task) int {
		if len(keys) > 0 {
			if c := s.compareKeys(TaskOrder, keys[a], keys[b]); c != 0 {
				return c
			}
		}
		return taskTie(a, b)
	})
}

// taskTie is the final order of tasks.
func taskTie(a, b *model.Task) int {
	if a.Index >= 0 && b.Index >= 0 && a.Index != b.Index {
		return cmp.Compare(a.Index, b.Index)
	}
	return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.UID, b.UID), cmp.Compare(a.Key, b.Key))
}

// TasksMove says whether the order of tasks can change within a turn.
func (s *Session) TasksMove() bool {
	for _, r := range s.p.rules[TaskOrder] {
		if r.Reads.Changes() > rules.ByCycle {
			return true
		}
	}
	return false
}
