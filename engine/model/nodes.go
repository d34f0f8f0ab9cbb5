package model

import (
	"cmp"
	"encoding/binary"
	"hash/fnv"
	"math"
	"slices"
	"strings"
)

// noRank is the Order of a row that is not in use.
const noRank = math.MaxInt32

// ByOrder lists the rows in use by Order, which breaks ties. The slice is shared: do not change it.
func (n *Nodes) ByOrder() []int32 { return n.byOrder }

// Idle returns allocatable - used in a dimension, in inner units. It is below 0 if pods use more than the node offers.
func (n *Nodes) Idle(dim int, row int32) float64 {
	if dim >= len(n.Allocatable) {
		return 0
	}
	return present(n.Allocatable[dim][row]) - n.Used[dim][row]
}

// FutureIdle returns idle + releasing - pipelined in a dimension, in inner units.
func (n *Nodes) FutureIdle(dim int, row int32) float64 {
	if dim >= len(n.Allocatable) {
		return 0
	}
	return present(n.Allocatable[dim][row]) - n.Used[dim][row] + n.Releasing[dim][row] - n.Pipelined[dim][row]
}

// FitsIdle reports whether r fits the idle resources of the node now: every dimension of r, with a tolerance of Slack.
func (n *Nodes) FitsIdle(r Resources, row int32) bool {
	for i, want := range r {
		if want == want && want > n.Idle(i, row)+Slack {
			return false
		}
	}
	return true
}

// Moves reports whether the node has a releasing or a pipelined task. Otherwise its future idle equals its idle.
func (n *Nodes) Moves(row int32) bool {
	return n.Releasing[Pods][row] != 0 || n.Pipelined[Pods][row] != 0 // every task uses at least one pod slot
}

// FitsFuture reports whether r fits the resources that the node will have idle after the releasing tasks are gone.
func (n *Nodes) FitsFuture(r Resources, row int32) bool {
	for i, want := range r {
		if want == want && want > n.FutureIdle(i, row)+Slack {
			return false
		}
	}
	return true
}

// Dims returns every dimension in the order in which output shows them. The slice is shared: do not change it.
func (n *Nodes) Dims() []int {
	if len(n.sorted) != n.dims.Len() {
		n.sorted = n.dims.Sorted()
	}
	return n.sorted
}

// AllocatableOf returns what the node offers to pods, in the dimensions that its object lists.
func (n *Nodes) AllocatableOf(row int32) Resources {
	return n.collect(func(i int) (float64, bool) { v := n.Allocatable[i][row]; return v, v == v })
}

// CapacityOf returns the capacity of the node, in the dimensions that its object lists.
func (n *Nodes) CapacityOf(row int32) Resources { return n.Rows[row].capacity.Clone() }

// Capacity returns the capacity of the node in a dimension, in inner units; 0 if absent.
func (n *Nodes) Capacity(dim int, row int32) float64 { return n.Rows[row].capacity.Get(dim) }

// UsedOf returns what the tasks on the node use; releasing tasks are included. Like the other sums, it has the dimensions of allocatable,
// and each other dimension in which it is not 0.
func (n *Nodes) UsedOf(row int32) Resources {
	return n.sum(row, func(i int) float64 { return n.Used[i][row] })
}

// ReleasingOf returns the part of UsedOf that releasing tasks use.
func (n *Nodes) ReleasingOf(row int32) Resources {
	return n.sum(row, func(i int) float64 { return n.Releasing[i][row] })
}

// PipelinedOf returns what is promised to tasks that wait for releasing tasks to end.
func (n *Nodes) PipelinedOf(row int32) Resources {
	return n.sum(row, func(i int) float64 { return n.Pipelined[i][row] })
}

// IdleOf returns AllocatableOf - UsedOf.
func (n *Nodes) IdleOf(row int32) Resources {
	return n.sum(row, func(i int) float64 { return n.Idle(i, row) })
}

// FutureIdleOf returns IdleOf + ReleasingOf - PipelinedOf.
func (n *Nodes) FutureIdleOf(row int32) Resources {
	return n.sum(row, func(i int) float64 { return n.FutureIdle(i, row) })
}

func (n *Nodes) sum(row int32, of func(i int) float64) Resources {
	return n.collect(func(i int) (float64, bool) {
		v := of(i)
		return v, v != 0 || n.Allocatable[i][row] == n.Allocatable[i][row]
	})
}

func (n *Nodes) collect(of func(i int) (float64, bool)) Resources {
	out := make(Resources, len(n.Allocatable))
	for i := range out {
		v, ok := of(i)
		if !ok {
			v = Absent()
		}
		out[i] = v
	}
	return out
}

// present returns an amount of a column, or 0 if it is absent.
func present(v float64) float64 {
	if v != v {
		return 0
	}
	return v
}

// take gives a new node a free row, or adds one. The columns of the row are empty.
func (n *Nodes) take(node *Node) int32 {
	row := n.Slots.Take()
	if int(row) == len(n.Rows) {
		n.addRow()
	}
	node.Row = row
	n.Rows[row], n.Index[node.Name] = node, row
	return row
}

func (n *Nodes) addRow() {
	n.grow()
	n.addToColumns()
	n.Rows = append(n.Rows, nil)
	n.TaskCount = append(n.TaskCount, 0)
	for dim := range n.Unasked {
		n.Unasked[dim] = append(n.Unasked[dim], 0)
	}
	n.Tasks = append(n.Tasks, nil)
	n.GPUs = append(n.GPUs, nil)
	n.Order = append(n.Order, noRank)
	n.Object = append(n.Object, 0)
	n.Version = append(n.Version, 0)
}

// release frees a row that has no tasks any more. The versions of the row keep increasing, so that no reader mistakes the next node in the
// row for this one.
func (n *Nodes) release(row int32) {
	n.setAllocatable(row, nil)
	delete(n.Index, n.Rows[row].Name)
	n.Rows[row], n.GPUs[row], n.Tasks[row], n.Order[row] = nil, nil, nil, noRank
	n.Slots.Leave(row)
}

// attach adds a task to the list of its row, which is in key order.
func (n *Nodes) attach(t *Task) {
	list := n.Tasks[t.Node]
	if len(list) == cap(list) {
		list = n.moreRoom(list)
	}
	i, _ := slices.BinarySearchFunc(list, t.Key, taskKey)
	n.Tasks[t.Node] = slices.Insert(list, i, t)
}

// fewTasks is the initial capacity of a node's list of tasks.
const fewTasks = 4

// moreRoom returns a node's list with a larger capacity. The initial lists share one chunk with those of other nodes, so it clears the old
// one.
func (n *Nodes) moreRoom(list []*Task) []*Task {
	if cap(list) == 0 {
		return n.few.Slice(fewTasks)[:0]
	}
	more := make([]*Task, len(list), 2*cap(list))
	copy(more, list)
	clear(list)
	return more
}

func (n *Nodes) detach(t *Task) {
	if i, ok := slices.BinarySearchFunc(n.Tasks[t.Node], t.Key, taskKey); ok {
		n.Tasks[t.Node] = slices.Delete(n.Tasks[t.Node], i, i+1)
	}
}

func taskKey(t *Task, key string) int { return strings.Compare(t.Key, key) }

// order computes the ranks of the rows: by the given rank, otherwise by a hash if there is a seed, otherwise by name.
func (n *Nodes) order(rank map[string]int, seed int64) {
	type place struct {
		row  int32
		rank uint64
		name string
	}
	places := make([]place, 0, len(n.Index))
	for row, node := range n.Rows {
		if node == nil {
			continue
		}
		p := place{row: int32(row), name: node.Name}
		switch i, ok := rank[node.Name]; {
		case ok:
			p.rank = uint64(i) ^ 1<<63 // keeps the order of signed numbers
		case rank != nil:
			p.rank = math.MaxUint64
		case seed != 0:
			p.rank = seededRank(seed, node.Name)
		}
		places = append(places, p)
	}
	slices.SortFunc(places, func(a, b place) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), strings.Compare(a.name, b.name))
	})
	n.Ranked++
	n.byOrder = n.byOrder[:0]
	for i, p := range places {
		n.Order[p.row] = int32(i)
		n.byOrder = append(n.byOrder, p.row)
	}
}

// seededRank returns the same number on every machine and in every process.
func seededRank(seed int64, name string) uint64 {
	h := fnv.New64a()
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], uint64(seed))
	h.Write(b[:])
	h.Write([]byte(name))
	// The high bits of FNV change little for names that differ only in the last character, so mix the bits once more.
	x := h.Sum64()
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	return x
}
