package policy

import (
	"cmp"
	"math"
	"slices"
	"time"

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
func (k *key) compare(o *key) int {
	switch {
	case k.kind == listKey && o.kind == listKey:
		for i := range min(len(k.list), len(o.list)) {
			if c := k.list[i].compare(&o.list[i]); c != 0 {
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

func (k *key) number() float64 {
	if k.kind == intKey {
		return float64(k.i)
	}
	return k.f
}

// keys computes the keys of all rows of an order site.
func (s *Session) keys(site string, f *Frame) []key { return s.keysBut(site, -1, f) }

// keysBut leaves one row out.
func (s *Session) keysBut(site string, but int, f *Frame) []key {
	list := s.p.rules[site]
	out := make([]key, len(list))
	for i, r := range list {
		if i == but {
			continue
		}
		has, err := s.guard(r, f)
		if err == nil && has {
			v := r.Expression.Eval(f)
			s.watch(r.Expression, f)
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
		if c := compareOne(r, &a[i], &b[i]); c != 0 {
			return c
		}
	}
	return 0
}

// compareOne compares two keys of one row: who has none comes last, whichever way the row sorts.
func compareOne(r *Rule, x, y *key) int {
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

// jobKeys also gives the moment until which they hold; zero: while the job does.
func (s *Session) jobKeys(j *model.Job) (keys []key, until time.Time) {
	f := s.frame()
	defer s.done()
	f.job = s.jobView(j)
	return s.until(func() []key { return s.keys(JobOrder, f) })
}

func (s *Session) taskKeys(t *model.Task) []key {
	f := s.frame()
	defer s.done()
	f.task = s.taskView(t)
	return s.keys(TaskOrder, f)
}

// SortTasks orders tasks by the rows of taskOrder, then numeric suffix, creation time and UID.
func (s *Session) SortTasks(tasks []*model.Task) {
	switch {
	case len(tasks) < 2:
		return
	case len(s.p.rules[TaskOrder]) == 0:
		slices.SortFunc(tasks, taskTie)
		return
	}
	ranked := make([]Ranked[*model.Task], len(tasks))
	for i, t := range tasks {
		ranked[i] = Ranked[*model.Task]{Of: t, keys: s.taskKeys(t)}
	}
	slices.SortFunc(ranked, func(a, b Ranked[*model.Task]) int {
		if c := s.compareKeys(TaskOrder, a.keys, b.keys); c != 0 {
			return c
		}
		return taskTie(a.Of, b.Of)
	})
	for i := range ranked {
		tasks[i] = ranked[i].Of
	}
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
