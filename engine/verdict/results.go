package verdict

import "github.com/celsius-scheduler/celsius/engine/language"

// rowResults contains the results of one row of a table by node, for all classes of which the row reads the same. Most rows read little of
// a task, so that many classes need only one evaluation.
type rowResults[T language.Opinion | float64] struct {
	what []T
	// at is by node: the version of the node, plus 1; of its object, if the row reads only that. 0: the result is unknown, or the row failed,
	// which is counted for each class.
	at []uint64
	// alike contains the result by the number of nodes, in its epoch, if nodes with the same number are equal for the row.
	alike struct {
		what  []T
		epoch []uint64
	}
	// held states that some class uses it.
	held bool
}

// resultStore contains the results of the rows of one site, by row and by what the row reads of a class.
type resultStore[T language.Opinion | float64] struct {
	By    map[string]*rowResults[T]
	spare []*rowResults[T] // unused; their memory is used again
}

// mostSpare is how many unused columns, or classes, are kept for their memory.
const mostSpare = 8

// of returns the results with a key, for this many nodes. It creates them if necessary.
func (x *resultStore[T]) of(key []byte, rows int) *rowResults[T] {
	s := x.By[string(key)]
	if s == nil {
		s = x.vacant()
		x.By[string(key)] = s
	}
	s.grow(rows)
	return s
}

func (x *resultStore[T]) vacant() *rowResults[T] {
	last := len(x.spare) - 1
	if last < 0 {
		return &rowResults[T]{}
	}
	s := x.spare[last]
	x.spare = x.spare[:last]
	clear(s.at)
	clear(s.alike.epoch)
	return s
}

func (s *rowResults[T]) grow(rows int) {
	if more := rows - len(s.what); more > 0 {
		s.what, s.at = append(s.what, make([]T, more)...), append(s.at, make([]uint64, more)...)
	}
}

// forget drops the results that no class uses.
func (x *resultStore[T]) forget() {
	for key, s := range x.By {
		if !s.held {
			delete(x.By, key)
			if len(x.spare) < mostSpare {
				x.spare = append(x.spare, s)
			}
		}
		s.held = false
	}
}

// recall copies the result for a node from an equal node; false: it is unknown.
func (s *rowResults[T]) recall(a *Alike, r *Row, row int32, at uint64) bool {
	if !r.Amounts {
		return false
	}
	code := int(a.Of(row))
	if code >= len(s.alike.epoch) || s.alike.epoch[code] != a.Epoch {
		return false
	}
	s.what[row], s.at[row] = s.alike.what[code], at
	return true
}

// learn stores the result of a row for a node.
func (s *rowResults[T]) learn(a *Alike, r *Row, row int32, x T, at uint64) {
	s.what[row], s.at[row] = x, at
	if !r.Amounts {
		return
	}
	code := int(a.Of(row))
	if more := code + 1 - len(s.alike.what); more > 0 {
		s.alike.what, s.alike.epoch = append(s.alike.what, make([]T, more)...), append(s.alike.epoch, make([]uint64, more)...)
	}
	s.alike.what[code], s.alike.epoch[code] = x, a.Epoch
}

// forget drops the result of a row for a node, and for equal nodes that have not used it.
func (s *rowResults[T]) forget(a *Alike, r *Row, row int32) {
	s.at[row] = 0
	if code := int(a.Of(row)); r.Amounts && code < len(s.alike.epoch) {
		s.alike.epoch[code] = 0
	}
}
