package dashboard

import (
	"math"
	"slices"
)

// What a cell says beside how much is taken: notOffered stands for a node that has none of a resource.
const (
	notOffered  = 255
	flagReady   = 1
	flagCordon  = 2
	mostPercent = 200
)

// heat is how much of each node is taken: a byte a node and column, the percentage, or notOffered. The last column has flags.
type heat struct {
	names   []string
	columns [][]byte
}

// heat is that of now. Names are the slice of before where they are the same, so that it is cheap to see.
func (s *state) heat(x sums, shown []int, before *heat) *heat {
	names := s.nodeNames()
	h := &heat{names: names}
	if before != nil && slices.Equal(before.names, names) {
		h.names = before.names
	}
	for range len(shown) + 1 {
		h.columns = append(h.columns, make([]byte, len(names)))
	}
	for i, name := range names {
		n := s.nodes[name]
		for c, r := range shown {
			h.columns[c][i] = percent(x.used[i].of(r), n.offers.of(r))
		}
		flags := byte(0)
		if n.ready {
			flags |= flagReady
		}
		if n.cordoned {
			flags |= flagCordon
		}
		h.columns[len(shown)][i] = flags
	}
	return h
}

func percent(used, offered float64) byte {
	switch {
	case offered <= 0:
		return notOffered
	case used <= 0:
		return 0
	}
	return byte(min(math.Ceil(100*used/offered-1e-9), mostPercent))
}

// heatEvent is what is sent of a heat map: all of it, or the cells of the nodes that changed.
type heatEvent struct {
	// Names of all nodes, where they are others than were sent before.
	Names []string `json:"names,omitzero"`
	// At are the numbers of the nodes that changed; absent: all.
	At []int `json:"at,omitempty"`
	// Cells are the columns one after the other, each as long as At or Names, in base64.
	Cells []byte `json:"cells"`
}

// sameNames says whether two maps are of the same nodes.
func (h *heat) sameNames(o *heat) bool {
	return o != nil && len(h.names) == len(o.names) && len(h.columns) == len(o.columns) &&
		(len(h.names) == 0 || &h.names[0] == &o.names[0])
}

// differs says whether a cell of a node is another.
func (h *heat) differs(o *heat, node int) bool {
	for c, column := range h.columns {
		if column[node] != o.columns[c][node] {
			return true
		}
	}
	return false
}

// after is what somebody must be sent who has another map, nil: none; false: nothing.
func (h *heat) after(sent *heat) (e heatEvent, any bool) {
	if h.sameNames(sent) {
		for i := range h.names {
			if h.differs(sent, i) {
				e.At = append(e.At, i)
			}
		}
		if len(e.At) == 0 {
			return e, false
		}
		if 4*len(e.At) < len(h.names) { // a number takes some four times as much as a cell
			for _, column := range h.columns {
				for _, i := range e.At {
					e.Cells = append(e.Cells, column[i])
				}
			}
			return e, true
		}
		e.At = nil
	} else {
		e.Names = h.names
		if e.Names == nil {
			e.Names = []string{}
		}
	}
	e.Cells = slices.Concat(h.columns...)
	return e, true
}
