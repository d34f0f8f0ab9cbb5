package verdict

import "github.com/celsius-scheduler/celsius/engine/language"

// rowResults are what one row of a table says of each node, to all classes that are alike in what the row reads of them: most
// rows read little of a task, so that many classes need but one evaluation of them.
type rowResults[T language.Opinion | float64] struct {
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

// resultStore is what the rows of one site said, by row and by what they read of a class.
type resultStore[T language.Opinion | float64] struct {
	By    map[string]*rowResults[T]
	spare []*rowResults[T] // forgotten; their memory is used again
}

// mostSpare is how many columns, or classes, of the past are kept for their memory.
const mostSpare = 8

// of gives what is kept under a key, or begins it, for that many nodes.
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

// forget drops what no class has.
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

// recall takes what a row said of a node from what it said of one like it; false: it has not been asked.
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

// learn keeps what a row said of a node.
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

// forget drops what a row said of a node, and of those like it that have not been told.
func (s *rowResults[T]) forget(a *Alike, r *Row, row int32) {
	s.at[row] = 0
	if code := int(a.Of(row)); r.Amounts && code < len(s.alike.epoch) {
		s.alike.epoch[code] = 0
	}
}
