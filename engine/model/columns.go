package model

import "slices"

// columnBook lists the dimensions that have columns of their own in the table of nodes. These are cpu, memory, pods, and what a node offers
// or a task on a node requests. Any user can name a resource in a pod. Until a node offers or holds it, the name costs no memory per node.
type columnBook struct {
	own  []int   // dimensions with columns of their own, ascending
	owns []bool  // by dimension
	held []int32 // by dimension: number of nodes that offer it, plus tasks on nodes that request it
	// The columns of all other dimensions: empty in each row.
	absent, zero []float64
	loose        bool // a dimension that was held is no longer held
}

// Columns returns the dimensions that some node may offer, use or promise, ascending. The slice is shared: do not change it.
func (n *Nodes) Columns() []int { return n.columns.own }

// grow adds columns for the dimensions that were added since the last call.
func (n *Nodes) grow() {
	if len(n.Allocatable) == n.dims.Len() {
		return
	}
	b := &n.columns
	for dim := len(n.Allocatable); dim < n.dims.Len(); dim++ {
		n.Allocatable, n.Used = append(n.Allocatable, b.absent), append(n.Used, b.zero)
		n.Releasing, n.Pipelined = append(n.Releasing, b.zero), append(n.Pipelined, b.zero)
		b.owns, b.held = append(b.owns, false), append(b.held, 0)
		if dim <= Pods {
			n.open(dim)
		}
	}
	n.sorted = nil
}

// open gives a dimension columns of its own.
func (n *Nodes) open(dim int) {
	rows := len(n.columns.absent)
	n.Allocatable[dim], n.Used[dim] = slices.Clone(n.columns.absent), make([]float64, rows)
	n.Releasing[dim], n.Pipelined[dim] = make([]float64, rows), make([]float64, rows)
	n.columns.owns[dim] = true
	at, _ := slices.BinarySearch(n.columns.own, dim)
	n.columns.own = slices.Insert(n.columns.own, at, dim)
}

// share gives a dimension the shared empty columns.
func (n *Nodes) share(dim int) {
	b := &n.columns
	n.Allocatable[dim], n.Used[dim], n.Releasing[dim], n.Pipelined[dim] = b.absent, b.zero, b.zero, b.zero
}

// hold adds by to the number of nodes and tasks that hold a dimension.
func (n *Nodes) hold(dim int, by int32) {
	b := &n.columns
	b.held[dim] += by
	switch {
	case b.held[dim] == 0:
		b.loose = true
	case !b.owns[dim]:
		n.open(dim)
	}
}

// holdRequest counts a task that was added to a node (by 1) or removed from it (by -1).
func (n *Nodes) holdRequest(r Resources, by int32) {
	for dim := Pods + 1; dim < len(r); dim++ {
		if r.Has(dim) {
			n.hold(dim, by)
		}
	}
}

// letGo removes the columns of dimensions that nothing holds. Do not call it while steps can be undone, because an undo may need the
// columns.
func (n *Nodes) letGo() {
	b := &n.columns
	if !b.loose {
		return
	}
	b.loose = false
	b.own = slices.DeleteFunc(b.own, func(dim int) bool {
		if dim <= Pods || b.held[dim] > 0 {
			return false
		}
		b.owns[dim] = false
		n.share(dim)
		return true
	})
}

// columnKind selects one of the sums over a node's tasks.
type columnKind uint8

const (
	used columnKind = iota
	releasing
	pipelined
)

// spotOf identifies one amount of one node.
type spotOf struct {
	kind columnKind
	dim  int
	row  int32
}

func (n *Nodes) columnsOf(k columnKind) [][]float64 {
	switch k {
	case releasing:
		return n.Releasing
	case pipelined:
		return n.Pipelined
	case used:
	}
	return n.Used
}

// rest returns the rounding error of a sum over a node's tasks. It is 0 unless the sum is too large for any node.
func (n *Nodes) rest(k columnKind, dim int, row int32) float64 { return n.rests[spotOf{k, dim, row}] }

// addColumn adds sign times r to the sums of a row.
func (n *Nodes) addColumn(k columnKind, row int32, r Resources, sign float64) {
	columns := n.columnsOf(k)
	for i, v := range r {
		if v != v {
			continue
		}
		at := &columns[i][row]
		if sum := *at + sign*v; len(n.rests) == 0 && sum < Most && sum > -Most {
			*at = sum
			continue
		}
		n.addExactly(spotOf{k, i, row}, at, sign*v)
	}
}

func (n *Nodes) addExactly(spot spotOf, at *float64, v float64) {
	sum, rest := AddExactly(*at, n.rests[spot], v)
	*at = sum
	if rest == 0 {
		delete(n.rests, spot)
		return
	}
	if n.rests == nil {
		n.rests = map[spotOf]float64{}
	}
	n.rests[spot] = rest
}

func (n *Nodes) addToColumns() {
	b := &n.columns
	b.absent, b.zero = append(b.absent, Absent()), append(b.zero, 0)
	for dim := range n.Allocatable {
		if !b.owns[dim] {
			n.share(dim)
			continue
		}
		n.Allocatable[dim] = append(n.Allocatable[dim], Absent())
		n.Used[dim] = append(n.Used[dim], 0)
		n.Releasing[dim] = append(n.Releasing[dim], 0)
		n.Pipelined[dim] = append(n.Pipelined[dim], 0)
	}
}

func (n *Nodes) setAllocatable(row int32, r Resources) {
	n.grow()
	for dim := range r {
		if r.Has(dim) && !n.columns.owns[dim] {
			n.open(dim)
		}
	}
	for _, dim := range n.columns.own {
		was, now := n.Allocatable[dim][row], Absent()
		if r.Has(dim) {
			now = r[dim]
		}
		n.Allocatable[dim][row] = now
		switch {
		case now == now && was != was:
			n.hold(dim, 1)
		case now != now && was == was:
			n.hold(dim, -1)
		}
	}
}

// offers reports whether the node offers exactly r to pods.
func (n *Nodes) offers(row int32, r Resources) bool {
	n.grow()
	for dim := range r {
		if r.Has(dim) && !n.columns.owns[dim] {
			return false
		}
	}
	for _, dim := range n.columns.own {
		if v := n.Allocatable[dim][row]; r.Has(dim) != (v == v) || r.Has(dim) && r[dim] != v {
			return false
		}
	}
	return true
}
