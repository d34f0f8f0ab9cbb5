package policy

import (
	"cmp"
	"slices"

	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/topology"
)

// nearby is what a class rests on besides its task and each node: the topology context of its tasks.
type nearby struct {
	// context is nil where nobody's terms concern the class: then this costs nothing.
	context *topology.Context
	moves   uint64   // of nodes between domains
	cursors []uint64 // in the logs of what the context watches
	scored  []uint64 // by row: the node's version, plus 1, of the scores that do not read the context
	marked  []uint64 // by row: the round in which it was looked at again
	round   uint64
	again   []int32 // rows of the last round

	// group is there where a score reads which nodes are chosen from; want and sizes are of the last time.
	group *topology.Group
	want  fit
	sizes []int32
}

// meet finds the class's context, and forgets what was remembered of an older one.
func (c *Class) meet() {
	near := &c.near
	near.context, near.group = nil, nil
	if !c.s.columns.peers {
		return
	}
	co := c.s.topologyOf(c.task)
	near.moves = c.s.topology.Moves()
	if len(co.Watched()) == 0 {
		return
	}
	rows := len(c.at)
	near.context = co
	near.scored, near.marked = model.Resized(near.scored, rows), model.Resized(near.marked, rows)
	near.cursors = model.Resized(near.cursors, len(co.Watched()))
	for i, ta := range co.Watched() {
		near.cursors[i] = ta.Next()
	}
	if c.s.columns.late {
		near.group = co.NewGroup()
	}
}

// strangers says that the class's context is another now, or that nodes changed their domains: all is computed anew.
func (c *Class) strangers() bool {
	if !c.s.columns.peers {
		return false
	}
	co, old := c.s.topologyOf(c.task), c.near.context
	if old == nil {
		return !c.s.columns.alike(co, &topology.Context{})
	}
	return c.near.moves != c.s.topology.Moves() || !c.s.columns.alike(co, old)
}

// alike says that two contexts agree in what the active rows read: tasks of one class always do, until the terms of
// pods change.
func (cs *columns) alike(a, b *topology.Context) bool {
	return a == b || a.Terms() == b.Terms() && (!cs.matched || a.Matched() == b.Matched()) && (!cs.images || a.Images() == b.Images())
}

// catchUpPeers looks again at the nodes of the domains where something changed: of one domain after most placements.
func (c *Class) catchUpPeers() {
	near := &c.near
	near.again = near.again[:0]
	if near.context == nil {
		return
	}
	near.round++
	for i, ta := range near.context.Watched() {
		domains, ok := ta.Since(near.cursors[i])
		near.cursors[i] = ta.Next()
		if !ok || slices.Contains(domains, topology.AllDomains) {
			for d := range ta.Domains() {
				c.mark(ta.Rows(int32(d)))
			}
			continue
		}
		for _, d := range domains {
			c.mark(ta.Rows(d))
		}
	}
	order := c.s.c.Nodes.Order
	slices.SortFunc(near.again, func(a, b int32) int { return cmp.Compare(order[a], order[b]) })
	f := c.s.frame().OfTask(c.task)
	defer c.s.done()
	for _, row := range near.again {
		if c.at[row].verdict == notOffered || c.at[row].plain != 0 {
			continue
		}
		f.node = c.s.nodeView(row)
		c.contest.move(row)
		c.count(row, -1)
		c.at[row].fits = c.fit(row)
		c.judge(f, row, true)
	}
}

func (c *Class) mark(rows []int32) {
	for _, row := range rows {
		if c.near.marked[row] != c.near.round {
			c.near.marked[row] = c.near.round
			c.near.again = append(c.near.again, row)
		}
	}
}

// scoreLate computes the scores that depend on which nodes are chosen from: on the nodes that were looked at, or on all,
// where the group is another or the number of its domains changed.
func (c *Class) scoreLate(touched []int32) {
	near := &c.near
	if near.group == nil {
		return
	}
	want := c.want()
	sizes := near.group.Sizes(uint8(want))
	near.again = append(near.again, touched...)
	rows := near.again
	if want != near.want || !slices.Equal(sizes, near.sizes) {
		rows = c.s.c.Nodes.ByOrder()
		near.want, near.sizes = want, append(near.sizes[:0], sizes...)
	}
	f := c.s.frame().OfTask(c.task)
	defer c.s.done()
	c.s.sizes = near.sizes
	defer func() { c.s.sizes = nil }()
	for _, row := range rows {
		if c.at[row].verdict != 0 || c.at[row].fits != want {
			continue
		}
		f.node = c.s.nodeView(row)
		c.contest.move(row)
		for k := range c.s.columns.scores {
			if c.layers[len(c.s.columns.predicates)+k] == ofGroup {
				c.value(f, k, row)
			}
		}
		c.sum(row)
	}
}

// scoreAmong is scoreLate for one task with volumes, which leave it fewer nodes to choose from than its class has. What it computes
// is not the class's.
func (c *Class) scoreAmong(co *topology.Context, f *Frame) {
	want, group := c.want(), co.NewGroup()
	var rows []int32
	for _, row := range c.s.c.Nodes.ByOrder() {
		if c.at[row].verdict == 0 && c.at[row].fits == want {
			group.Add(row, uint8(want), 1)
			rows = append(rows, row)
		}
	}
	c.s.sizes = group.Sizes(uint8(want))
	defer func() { c.s.sizes = nil }()
	c.raw, c.values = slices.Clone(c.raw), slices.Clone(c.values)
	c.uniform, c.first, c.valued = slices.Clone(c.uniform), slices.Clone(c.first), slices.Clone(c.valued)
	for k := range c.s.columns.scores {
		if c.layers[len(c.s.columns.predicates)+k] != ofGroup {
			continue
		}
		c.raw[k], c.values[k], c.uniform[k], c.valued[k] = make([]float64, len(c.at)), nil, true, false
		for _, row := range rows {
			f.Point(row)
			c.value(f, k, row)
		}
	}
	for _, row := range rows {
		c.sum(row)
	}
}

// want is the group that a node is chosen from: those that fit now, or, where there are none, later.
func (c *Class) want() fit {
	if c.now > 0 {
		return fitsNow
	}
	return fitsLater
}
