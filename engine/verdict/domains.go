package verdict

import (
	"slices"

	"github.com/celsius-scheduler/celsius/engine/follow"
	"github.com/celsius-scheduler/celsius/engine/slab"
	"github.com/celsius-scheduler/celsius/engine/topology"
)

// domains contains what a class depends on in addition to its task and each node: the tasks in the nodes' topology domains.
type domains struct {
	// context is nil if no terms apply to the class: it then costs nothing.
	context *topology.Context
	moves   uint64                 // number of moves of nodes between domains
	cursors []follow.Cursor[int32] // in the logs that the context watches
	scored  []uint64               // by row: the node's version, plus 1, for the scores that do not read the context
	marked  []uint64               // by row: the round in which it was last evaluated again
	round   uint64
	around  []int32 // rows of the last round, in the nodes' order

	// group is set if a score reads which nodes are in the group to choose from. want and sizes are of the last evaluation.
	group *topology.Group
	want  fit
	sizes []int32
}

// meet finds the class's topology context, and forgets what depends on an older one.
func (c *Class) meet() {
	x := &c.domains
	x.context, x.group = nil, nil
	if !c.v.Plan.Peers {
		return
	}
	context := c.v.TopologyOf(c.Task)
	x.moves = c.v.Topology.Moves()
	if len(context.Watched()) == 0 {
		return
	}
	rows := len(c.Cells)
	x.context = context
	x.scored, x.marked = slab.Resized(x.scored, rows), slab.Resized(x.marked, rows)
	x.cursors = slab.Resized(x.cursors, len(context.Watched()))
	for i, ta := range context.Watched() {
		x.cursors[i].Skip(&ta.Log)
	}
	if c.v.Plan.late {
		x.group = context.NewGroup()
	}
}

// otherTopology reports whether the class's topology context changed, or nodes changed their domains: then everything is computed again.
func (c *Class) otherTopology() bool {
	plan, v := c.v.Plan, c.v
	if !plan.Peers {
		return false
	}
	now, old := v.TopologyOf(c.Task), c.domains.context
	if old == nil {
		return !plan.sameTopology(now, &topology.Context{})
	}
	return c.domains.moves != v.Topology.Moves() || !plan.sameTopology(now, old)
}

// sameTopology reports whether two contexts agree on what the active rows read. Tasks of one class always do, until the terms of pods
// change.
func (cs *Plan) sameTopology(a, b *topology.Context) bool {
	return a == b || a.Terms() == b.Terms() && (!cs.Matched || a.Matched() == b.Matched()) && (!cs.Images || a.Images() == b.Images())
}

// lookAround lists the nodes of the domains that changed: usually one domain after a placement.
func (c *Class) lookAround() {
	x := &c.domains
	x.around = x.around[:0]
	x.round++
	for i, ta := range x.context.Watched() {
		changed, ok := x.cursors[i].Read(&ta.Log)
		if !ok || slices.Contains(changed, topology.AllDomains) {
			for d := range ta.Domains() {
				x.mark(ta.Rows(int32(d)))
			}
			continue
		}
		for _, d := range changed {
			x.mark(ta.Rows(d))
		}
	}
}

func (x *domains) mark(rows []int32) {
	for _, row := range rows {
		if x.marked[row] != x.round {
			x.marked[row] = x.round
			x.around = append(x.around, row)
		}
	}
}

// scoreGroup evaluates the scores that depend on the group to choose from. It does so for the nodes that were evaluated again. If the group
// changed, or the number of its domains, it does so for all nodes.
func (c *Class) scoreGroup(touched []int32) {
	group := c.domains.group
	if group == nil {
		return
	}
	x, want := &c.domains, c.Want()
	sizes := group.Sizes(uint8(want))
	x.around = append(x.around[:0], c.v.InOrder(x.around)...)
	x.around = append(x.around, c.v.InOrder(touched)...)
	rows := x.around
	if want != x.want || !slices.Equal(sizes, x.sizes) {
		rows = c.v.nodes.ByOrder()
		x.want, x.sizes = want, append(x.sizes[:0], sizes...)
	}
	f := c.v.ask.Frame().OfTask(c.Task)
	defer c.v.ask.Done()
	c.v.Sizes = x.sizes
	defer func() { c.v.Sizes = nil }()
	for _, row := range rows {
		if !c.Cells[row].in(want) {
			continue
		}
		f.Point(row)
		c.Chooser.moved(row)
		for k, of := range c.Rows.scoreLayers {
			if of == ofGroup {
				c.Rows.value(f, k, row)
			}
		}
		c.Cells[row].base = c.Rows.sum(row)
	}
}
