package policy

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"

	"github.com/celsius-scheduler/celsius/engine/language"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/rules"
)

// Key is one sort key: absent comes last, whichever way the row sorts.
type Key struct {
	kind keyKind
	bits int64 // of an int, or of a double
	s    string
	list *[]Key
}

type keyKind uint8

const (
	noKey keyKind = iota
	intKey
	floatKey
	stringKey
	listKey
)

// KeyOf reads a sort key; false where the value has no order (NaN).
func KeyOf(v ref.Val) (Key, bool) {
	switch x := v.(type) {
	case types.Bool:
		if x {
			return Key{kind: intKey, bits: 1}, true
		}
		return Key{kind: intKey}, true
	case types.Int:
		return Key{kind: intKey, bits: int64(x)}, true
	case types.Double:
		return floatKeyOf(float64(x))
	case types.String:
		return Key{kind: stringKey, s: string(x)}, true
	case types.Timestamp:
		return Key{kind: intKey, bits: x.UnixNano()}, true
	case types.Duration:
		return Key{kind: intKey, bits: int64(x.Duration)}, true
	case traits.Lister:
		var list []Key
		for i := range language.SizeOf(x) {
			k, ok := KeyOf(x.Get(i))
			if !ok {
				return Key{}, false
			}
			list = append(list, k)
		}
		return listOfKeys(list), true
	}
	return Key{}, false
}

func floatKeyOf(x float64) (Key, bool) {
	return Key{kind: floatKey, bits: int64(math.Float64bits(x))}, !math.IsNaN(x)
}

func listOfKeys(list []Key) Key { return Key{kind: listKey, list: &list} }

// compare orders two keys; an int and a double compare as numbers. Where one list is the beginning
// of the other they are equal.
func (k *Key) compare(o *Key) int {
	switch {
	case k.kind == listKey && o.kind == listKey:
		a, b := *k.list, *o.list
		for i := range min(len(a), len(b)) {
			if c := a[i].compare(&b[i]); c != 0 {
				return c
			}
		}
		return 0
	case k.kind == stringKey:
		return cmp.Compare(k.s, o.s)
	case k.kind == intKey && o.kind == intKey:
		return cmp.Compare(k.bits, o.bits)
	}
	return cmp.Compare(k.number(), o.number())
}

func (k *Key) number() float64 {
	if k.kind == intKey {
		return float64(k.bits)
	}
	return math.Float64frombits(uint64(k.bits))
}

// keys computes the keys of all rows of an order site. Room is where they are put, if there is any.
func (s *Session) keys(site string, f *language.Frame, room []Key) []Key {
	return s.keysBut(site, -1, f, room)
}

// keysBut leaves one row out.
func (s *Session) keysBut(site string, but int, f *language.Frame, room []Key) []Key {
	list := s.p.rules[site]
	out := room
	if len(out) != len(list) {
		out = s.keyRoom.Slice(len(list))
	}
	for i, r := range list {
		out[i] = Key{}
		if i == but {
			continue
		}
		has, err := s.guard(r, f)
		if err == nil && has {
			out[i], err = s.key(r, f)
		}
		if err != nil {
			out[i] = Key{}
			s.fault(r, f, err)
		}
	}
	return out
}

// key computes the key of one row; an error is the value that is none.
func (s *Session) key(r *Rule, f *language.Frame) (k Key, err ref.Val) {
	e := r.Expression
	defer s.watch(e, f)
	switch e.Type.Kind() {
	case types.BoolKind:
		x, err := e.Holds(f)
		if x {
			k.bits = 1
		}
		k.kind = intKey
		return k, err
	case types.DoubleKind:
		x, err := e.Number(f)
		if k, ok := floatKeyOf(x); ok || err != nil {
			return k, err
		}
		return Key{}, types.Double(x)
	default:
		v := e.Eval(f)
		if k, ok := KeyOf(v); ok {
			return k, nil
		}
		return Key{}, v
	}
}

// compareKeys is the first difference in tier order.
func (s *Session) compareKeys(site string, a, b []Key) int {
	for i, r := range s.p.rules[site] {
		if c := r.Compare(&a[i], &b[i]); c != 0 {
			return c
		}
	}
	return 0
}

// Compare compares two keys of the row: who has none comes last, whichever way the row sorts.
func (r *Rule) Compare(x, y *Key) int {
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
func (s *Session) queueKeys(q *model.Queue, room []Key) []Key {
	f := s.frame()
	defer s.done()
	f.Queue = s.QueueView(q)
	return s.keys(QueueOrder, f, room)
}

// jobKeys also gives the moment until which they hold; zero: while the job does.
func (s *Session) jobKeys(j *model.Job, room []Key) (keys []Key, until time.Time) {
	f := s.frame()
	defer s.done()
	f.Job = s.JobView(j)
	return s.until(func() []Key { return s.keys(JobOrder, f, room) })
}

func (s *Session) taskKeys(t *model.Task) []Key {
	f := s.frame()
	defer s.done()
	f.Task = s.TaskView(t)
	return s.keys(TaskOrder, f, nil)
}

// SortTasks orders tasks by the rows of taskOrder, then numeric suffix, creation time and name.
func (s *Session) SortTasks(tasks []*model.Task) {
	switch {
	case len(tasks) < 2:
		return
	case len(s.p.rules[TaskOrder]) == 0:
		slices.SortFunc(tasks, TaskTie)
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
		return TaskTie(a.Of, b.Of)
	})
	for i := range ranked {
		tasks[i] = ranked[i].Of
	}
}

// TaskTie is the final order of tasks. Names come before UIDs: creation times are whole seconds, UIDs are random, and one manifest must
// not get other places each time.
func TaskTie(a, b *model.Task) int {
	if a.Index >= 0 && b.Index >= 0 && a.Index != b.Index {
		return cmp.Compare(a.Index, b.Index)
	}
	return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.Key, b.Key), cmp.Compare(a.UID, b.UID))
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
