package policy

import (
	"encoding/binary"
	"math"

	"github.com/celsius-scheduler/celsius/engine/model"
)

// said is what one row of a table says of each node, to all classes that are alike in what the row reads of them: most
// rows read little of a task, so that many classes need but one evaluation of them.
type said[T Opinion | float64] struct {
	what []T
	// at is by node: the version of its object where the row reads no more of it, else of the node, plus 1; 0: it is not
	// known what the row says, or it erred, which is counted for each class.
	at []uint64
	// alike is what it says of nodes of a number, in its epoch, where nodes of one number are the same to it.
	alike struct {
		what  []T
		epoch []uint64
	}
	// held says that some class has it.
	held bool
}

// saidStore is what the rows of one site said, by row and by what they read of a class.
type saidStore[T Opinion | float64] struct {
	by    map[string]*said[T]
	spare []*said[T] // forgotten; their memory is used again
}

// mostSpare is how many columns, or classes, of the past are kept for their memory.
const mostSpare = 8

// of gives what is kept under a key, or begins it, for that many nodes.
func (x *saidStore[T]) of(key []byte, rows int) *said[T] {
	s := x.by[string(key)]
	if s == nil {
		s = x.vacant()
		x.by[string(key)] = s
	}
	s.grow(rows)
	return s
}

func (x *saidStore[T]) vacant() *said[T] {
	last := len(x.spare) - 1
	if last < 0 {
		return &said[T]{}
	}
	s := x.spare[last]
	x.spare = x.spare[:last]
	clear(s.at)
	clear(s.alike.epoch)
	return s
}

func (s *said[T]) grow(rows int) {
	if more := rows - len(s.what); more > 0 {
		s.what, s.at = append(s.what, make([]T, more)...), append(s.at, make([]uint64, more)...)
	}
}

// forget drops what no class has.
func (x *saidStore[T]) forget() {
	for key, s := range x.by {
		if !s.held {
			delete(x.by, key)
			if len(x.spare) < mostSpare {
				x.spare = append(x.spare, s)
			}
		}
		s.held = false
	}
}

// shares says that what a row says of a node to a class depends on nothing but the node, what the row reads of the class,
// and the epoch. Where nobody has terms that concern a class, what is in a node's domains is nothing to it.
func (c *Class) shares(r *rowPlan) bool {
	return !c.s.NoCache && !r.own && !r.volumes && !r.beyond && (c.near.context == nil || !r.peers)
}

// join gives a class the columns of its rows: those that it shares with others, and those that are its own.
func (c *Class) join() {
	cs, rows := &c.s.columns, len(c.at)
	c.opinions, c.values = sized(c.opinions, len(cs.predicates)), sized(c.values, len(cs.scores))
	c.raw = sized(c.raw, len(cs.scores))
	var key []byte
	for k, r := range cs.predicates {
		c.opinions[k] = nil
		if c.shares(r) {
			key = c.rowKey(key[:0], r)
			c.opinions[k] = cs.opinions.of(key, rows)
		}
	}
	for k, r := range cs.scores {
		if c.shares(r) {
			key = c.rowKey(key[:0], r)
			c.values[k] = cs.values.of(key, rows)
			c.raw[k] = c.values[k].what
			continue
		}
		if c.values[k] != nil {
			c.values[k], c.raw[k] = nil, nil
		}
		c.raw[k] = model.Resized(c.raw[k], rows)
	}
	if cs.left = true; len(cs.opinions.by)+len(cs.values.by) > 2*(len(cs.classes)+1)*(len(cs.predicates)+len(cs.scores)) {
		cs.forget()
	}
}

// hold says that the class has its columns still.
func (c *Class) hold() {
	for _, x := range c.opinions {
		if x != nil {
			x.held = true
		}
	}
	for _, x := range c.values {
		if x != nil {
			x.held = true
		}
	}
}

// rowKey is a text of a row and of all that it reads besides the nodes.
func (c *Class) rowKey(b []byte, r *rowPlan) []byte {
	b = binary.AppendVarint(b, int64(r.Number))
	if r.byEpoch {
		b = append(b, c.epoch...)
	}
	return c.s.encodeReads(b, c.task, r.class)
}

// versionFor is what a row's answer for a node holds as long as, plus 1.
func (s *Session) versionFor(r *rowPlan, row int32) uint64 {
	return s.versionsOf(r)[row] + 1
}

// versionsOf are by row: a row's answer for a node holds as long as its version does.
func (s *Session) versionsOf(r *rowPlan) []uint64 {
	if r.static {
		return s.c.Nodes.Object
	}
	return s.c.Nodes.Version
}

// look makes a frame of a class look at a node, if it does not yet.
func (s *Session) look(f *Frame, row int32) {
	if f.node == nil {
		f.node = s.nodeView(row)
	}
}

// recall takes what a row said of a node from what it said of one like it; false: it has not been asked.
func (s *said[T]) recall(a *alike, r *rowPlan, row int32, at uint64) bool {
	if !r.amounts {
		return false
	}
	code := int(a.of(row))
	if code >= len(s.alike.epoch) || s.alike.epoch[code] != a.epoch {
		return false
	}
	s.what[row], s.at[row] = s.alike.what[code], at
	return true
}

// learn keeps what a row said of a node.
func (s *said[T]) learn(a *alike, r *rowPlan, row int32, x T, at uint64) {
	s.what[row], s.at[row] = x, at
	if !r.amounts {
		return
	}
	code := int(a.of(row))
	if more := code + 1 - len(s.alike.what); more > 0 {
		s.alike.what, s.alike.epoch = append(s.alike.what, make([]T, more)...), append(s.alike.epoch, make([]uint64, more)...)
	}
	s.alike.what[code], s.alike.epoch[code] = x, a.epoch
}

// unlearn drops what a row said of a node, and of those like it that have not been told.
func (s *said[T]) unlearn(a *alike, r *rowPlan, row int32) {
	s.at[row] = 0
	if code := int(a.of(row)); r.amounts && code < len(s.alike.epoch) {
		s.alike.epoch[code] = 0
	}
}

// opinion is what a predicate says of a row's node.
func (c *Class) opinion(k int, r *rowPlan, f *Frame, row int32) Opinion {
	shared, at := c.opinions[k], c.s.versionFor(r, row)
	if shared != nil && (shared.at[row] == at || shared.recall(&c.s.alike, r, row, at)) {
		return shared.what[row]
	}
	faults := c.s.erring
	c.s.look(f, row)
	var x Opinion
	if c.guards[k] == holds {
		x = c.s.says(r.Rule, f)
	} else {
		x = c.s.opinion(r.Rule, f)
	}
	if shared != nil && c.s.erring == faults {
		shared.learn(&c.s.alike, r, row, x, at)
	}
	return x
}

// value is what a row of scores says of a row's node: NaN where it has no opinion, or erred.
func (c *Class) value(f *Frame, k int, row int32) {
	r, shared := c.s.columns.scores[k], c.values[k]
	at := c.s.versionFor(r, row)
	if shared == nil || shared.at[row] != at && !shared.recall(&c.s.alike, r, row, at) {
		faults := c.s.erring
		c.s.look(f, row)
		c.raw[k][row] = c.valueAfresh(f, k, r)
		if shared != nil && c.s.erring == faults {
			shared.learn(&c.s.alike, r, row, c.raw[k][row], at)
		}
	}
	c.note(k, c.raw[k][row])
}

// note keeps whether all values of a score row are one.
func (c *Class) note(k int, raw float64) {
	if !c.valued[k] {
		c.first[k], c.valued[k] = raw, true
	}
	c.uniform[k] = c.uniform[k] && (raw == c.first[k] || raw != raw && c.first[k] != c.first[k])
}

func (c *Class) valueAfresh(f *Frame, k int, r *rowPlan) float64 {
	switch c.guard(len(c.s.columns.predicates)+k, r, f) {
	case stays:
		return math.NaN()
	case holds:
		return c.s.value(r.Rule, f)
	default:
		return c.s.score(r.Rule, f)
	}
}
