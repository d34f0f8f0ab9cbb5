package policy

import (
	"cmp"
	"slices"
)

// nearby is what a class rests on besides its task and each node: the company of its tasks.
type nearby struct {
	// company is nil where nobody's terms concern the class: then this costs nothing.
	company *company
	moves   uint64   // of nodes between domains
	cursors []uint64 // in the logs of company.watched
	scored  []uint64 // by row: the node's version, plus 1, of the scores that do not read the company
	marked  []uint64 // by row: the round in which it was looked at again
	round   uint64
	again   []int32 // rows of the last round

	// group is there where a score reads which nodes are chosen from; want and sizes are of the last time.
	group *group
	want  fit
	sizes []int32
}

// meet finds the class's company, and forgets what was remembered of an older one.
func (c *Class) meet() {
	near := &c.near
	near.company, near.group = nil, nil
	if !c.s.columns.peers {
		return
	}
	co := c.s.company(c.s.taskView(c.task))
	near.moves = c.s.peers.moves
	if co.idle() {
		return
	}
	rows := len(c.at)
	near.company = co
	near.scored, near.marked = resized(near.scored, rows), resized(near.marked, rows)
	near.cursors = resized(near.cursors, len(co.watched))
	for i, ta := range co.watched {
		near.cursors[i] = ta.next()
	}
	if c.s.columns.late && co.template != nil && len(co.template.soft) > 0 {
		near.group = newGroup(co.template)
	}
}

// strangers says that the class's company is another now, or that nodes changed their domains: all is computed anew.
func (c *Class) strangers() bool {
	if !c.s.columns.peers {
		return false
	}
	co, old := c.s.company(c.s.taskView(c.task)), c.near.company
	if old == nil {
		return !c.s.columns.alike(co, &company{})
	}
	return c.near.moves != c.s.peers.moves || !c.s.columns.alike(co, old)
}

// alike says that two companies agree in what the active rows read: tasks of one class always do, until the terms of
// pods change.
func (cs *columns) alike(a, b *company) bool {
	return a == b || a.template == b.template && (!cs.matched || a.matched == b.matched) && (!cs.images || a.imagesKey == b.imagesKey)
}

// catchUpPeers looks again at the nodes of the domains where something changed: of one domain after most placements.
func (c *Class) catchUpPeers() {
	near := &c.near
	near.again = near.again[:0]
	if near.company == nil {
		return
	}
	near.round++
	for i, ta := range near.company.watched {
		domains, ok := ta.since(near.cursors[i])
		near.cursors[i] = ta.next()
		if !ok || slices.Contains(domains, allDomains) {
			for d := range ta.where.rows {
				c.mark(ta.where.rows[d])
			}
			continue
		}
		for _, d := range domains {
			c.mark(ta.where.rows[d])
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
	sizes := near.group.sizes(want)
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
func (c *Class) scoreAmong(x *template, f *Frame) {
	want, group := c.want(), newGroup(x)
	var rows []int32
	for _, row := range c.s.c.Nodes.ByOrder() {
		if c.at[row].verdict == 0 && c.at[row].fits == want {
			group.add(row, want, 1)
			rows = append(rows, row)
		}
	}
	c.s.sizes = group.sizes(want)
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
