package verdict

import "slices"

// selection is memory for lists of nodes that become shorter. It records which nodes were dropped from all of them.
type selection struct {
	arena   []int32
	dropped []int32
	round   uint64
	marks   []uint64 // by row of the node table: the round in which it was dropped
}

// begin forgets all lists. rows is the number of rows, and entries the maximum number of entries of the next lists.
func (x *selection) begin(rows, entries int) {
	x.round++
	x.dropped, x.arena = x.dropped[:0], slices.Grow(x.arena[:0], entries)
	for len(x.marks) < rows {
		x.marks = append(x.marks, 0)
	}
}

func (x *selection) isDropped(row int32) bool { return x.marks[row] == x.round }

func (x *selection) drop(rows ...int32) {
	for _, row := range rows {
		if !x.isDropped(row) {
			x.marks[row] = x.round
			x.dropped = append(x.dropped, row)
		}
	}
}

// only lists the rows for which keep returns true, and that are not dropped.
func (x *selection) only(rows []int32, keep func(row int32) bool) []int32 {
	from := len(x.arena)
	for _, row := range rows {
		if x.marks[row] != x.round && keep(row) {
			x.arena = append(x.arena, row)
		}
	}
	return x.arena[from:len(x.arena):len(x.arena)]
}
