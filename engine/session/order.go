package session

import (
	"slices"
	"time"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"github.com/celsius-scheduler/celsius/engine/follow"
	"github.com/celsius-scheduler/celsius/engine/language"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/engine/slab"
	"github.com/celsius-scheduler/celsius/rules"
)

// orders sorts queues, jobs and tasks.
type orders struct {
	base
	accounts *policy.Accounts
	keyRoom  slab.Of[language.Key]
	items    heapItems
	byTime   bool   // the order of jobs reads the time
	timeText string // the values of the parts that read only the time, in this cycle
	queueOrder
}

// queueOrder contains what is kept of the order of queues from walk to walk.
type queueOrder struct {
	branches    branchHeap // nil: there is none
	clusterText []byte     // what rows read of the cluster when branches was created
	outlook     *Outlook   // of the rows of queueOrder; nil: they read values that are not compared
	known       follow.BySlot[*knownKeys]
}

// knownKeys contains the keys of a queue. They are valid while its sight is the same.
type knownKeys struct {
	sight Sight
	keys  []language.Key
}

// begin starts a cycle.
func (x *queueOrder) begin(c *model.Cluster) {
	x.known.Follow(&c.Slots.Queues)
	if x.outlook != nil {
		x.outlook.Begin()
	}
}

// keys computes the keys of all rows of an order site. It writes them to room, if room has the right length.
func (s *orders) keys(site string, f *language.Frame, room []language.Key) []language.Key {
	return s.keysBut(site, -1, f, room)
}

// keysBut returns the keys of all rows of an order except one.
func (s *orders) keysBut(site string, but int, f *language.Frame, room []language.Key) []language.Key {
	list := s.p.Rules(site)
	out := room
	if len(out) != len(list) {
		out = s.keyRoom.Slice(len(list))
	}
	for i, r := range list {
		out[i] = language.Key{}
		if i == but {
			continue
		}
		has, err := s.ask.Guard(r, f)
		if err == nil && has {
			out[i], err = s.key(r, f)
		}
		if err != nil {
			out[i] = language.Key{}
			s.ask.Fault(r, f, err)
		}
	}
	return out
}

// key computes the key of one row. If it fails, it returns an empty key and the error.
func (s *orders) key(r *policy.Rule, f *language.Frame) (k language.Key, err ref.Val) {
	e := r.Expression
	defer s.ask.Watch(e, f)
	switch e.Type.Kind() {
	case types.BoolKind:
		x, err := e.Holds(f)
		return language.BoolKey(x), err
	case types.DoubleKind:
		x, err := e.Number(f)
		if k, ok := language.NumberKey(x); ok || err != nil {
			return k, err
		}
		return language.Key{}, types.Double(x)
	default:
		v := e.Eval(f)
		if k, ok := language.KeyOf(v); ok {
			return k, nil
		}
		return language.Key{}, v
	}
}

// compareKeys returns the first difference, in the order of tiers.
func (s *orders) compareKeys(site string, a, b []language.Key) int {
	for i, r := range s.p.Rules(site) {
		if c := r.Compare(&a[i], &b[i]); c != 0 {
			return c
		}
	}
	return 0
}

// queueKeys returns the present keys of a queue. It uses the cached keys while the queue's sight is the same.
func (s *orders) queueKeys(q *model.Queue, room []language.Key) []language.Key {
	if s.outlook == nil || len(s.c.Queues) < 2 {
		return s.queueKeysAfresh(q, room)
	}
	sight, known := s.outlook.Of(q), s.known.Get(q.Slot)
	if known != nil && known.sight == sight {
		if len(room) != len(known.keys) {
			room = s.keyRoom.Slice(len(known.keys))
		}
		copy(room, known.keys)
		return room
	}
	errors := s.ask.Errors()
	keys := s.queueKeysAfresh(q, room)
	if known == nil {
		known = &knownKeys{}
		s.known.Set(q.Slot, known)
	}
	if known.sight, known.keys = sight, append(known.keys[:0], keys...); s.ask.Errors() != errors {
		known.sight = Sight{} // read again in the next cycle, so that each cycle reports the error
	}
	return keys
}

func (s *orders) queueKeysAfresh(q *model.Queue, room []language.Key) []language.Key {
	f := s.ask.Frame()
	defer s.ask.Done()
	f.Queue = s.QueueView(q)
	return s.keys(policy.QueueOrder, f, room)
}

// jobKeys also returns the moment until which the keys are valid; zero: while the job does not change.
func (s *orders) jobKeys(j *model.Job, room []language.Key) (keys []language.Key, until time.Time) {
	f := s.ask.Frame()
	defer s.ask.Done()
	f.Job = s.JobView(j)
	return s.until(func() []language.Key { return s.keys(policy.JobOrder, f, room) })
}

func (s *orders) taskKeys(t *model.Task) []language.Key {
	f := s.ask.Frame()
	defer s.ask.Done()
	f.Task = s.TaskView(t)
	return s.keys(policy.TaskOrder, f, nil)
}

// SortTasks orders tasks by NeededFirst, then by the rows of taskOrder, then by TaskTie.
func (s *orders) SortTasks(tasks []*model.Task) {
	if len(tasks) < 2 {
		return
	}
	ranked := make([]Ranked[*model.Task], len(tasks))
	for i, t := range tasks {
		ranked[i] = Ranked[*model.Task]{Of: t, keys: s.taskKeys(t)}
	}
	slices.SortFunc(ranked, func(a, b Ranked[*model.Task]) int {
		if c := policy.NeededFirst(a.Of, b.Of); c != 0 {
			return c
		}
		if c := s.compareKeys(policy.TaskOrder, a.keys, b.keys); c != 0 {
			return c
		}
		return policy.TaskTie(a.Of, b.Of)
	})
	for i := range ranked {
		tasks[i] = ranked[i].Of
	}
}

// TasksMove reports whether the order of tasks can change within a turn.
func (s *orders) TasksMove() bool {
	for _, r := range s.p.Rules(policy.TaskOrder) {
		if r.Reads.Changes() > rules.ByCycle {
			return true
		}
	}
	return false
}

// until computes keys, and the moment until which they are valid.
func (s *orders) until(keys func() []language.Key) ([]language.Key, time.Time) {
	if !s.byTime {
		return keys(), time.Time{}
	}
	x := s.ask
	others, asking := x.until, x.asking
	x.until, x.asking = time.Time{}, true
	out, until := keys(), x.until
	x.until, x.asking = others, asking
	return out, until
}
