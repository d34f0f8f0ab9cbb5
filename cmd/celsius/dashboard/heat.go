package dashboard

import (
	"math"
	"slices"
)

// The values of a cell in addition to a percentage: notOffered means that the node does not have the resource.
const (
	notOffered  = 255
	flagReady   = 1
	flagCordon  = 2
	mostPercent = 200
)

// heat is the usage of each node: one byte for each node and column. A byte is a percentage or notOffered. The last column contains flags.
type heat struct {
	names   []string
	columns [][]byte
}

// heat returns the present heat map. If the names are unchanged, it reuses the slice of before, so that a comparison is inexpensive.
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

// heatEvent is the message with a heat map: either the whole map, or the cells of the changed nodes.
type heatEvent struct {
	// Names are the names of all nodes, if they differ from those that were sent before.
	Names []string `json:"names,omitzero"`
	// At contains the numbers of the changed nodes. If it is absent, the message contains all nodes.
	At []int `json:"at,omitempty"`
	// Cells contains the columns one after the other, in base64. Each has the length of At or Names.
	Cells []byte `json:"cells"`
}

// sameNames reports whether two maps contain the same nodes.
func (h *heat) sameNames(o *heat) bool {
	return o != nil && len(h.names) == len(o.names) && len(h.columns) == len(o.columns) &&
		(len(h.names) == 0 || &h.names[0] == &o.names[0])
}

// differs reports whether a cell of a node has changed.
func (h *heat) differs(o *heat, node int) bool {
	for c, column := range h.columns {
		if column[node] != o.columns[c][node] {
			return true
		}
	}
	return false
}

// after returns the message for a page that has received another map, or nil for none. It returns false if nothing has changed.
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
		if 4*len(e.At) < len(h.names) { // a number takes about four times as many bytes as a cell
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
