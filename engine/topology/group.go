package topology

// sizesOfAll counts, for each preferred constraint, the domains among all nodes that are ready: a walk over the nodes.
func (p *Counts) sizesOfAll(co *Context) []int32 {
	g := co.NewGroup()
	for row, node := range p.c.Nodes.Rows {
		if node != nil && node.Ready {
			g.Add(int32(row), 0, 1)
		}
	}
	return g.Sizes(0)
}

// SizesAmong counts them among some nodes; nil where there is no preferred constraint.
func (co *Context) SizesAmong(nodes []int32) []int32 {
	g := co.NewGroup()
	if g == nil {
		return nil
	}
	for _, row := range nodes {
		g.Add(row, 0, 1)
	}
	return g.Sizes(0)
}

// kinds of nodes that a group can tell apart.
const kinds = 3

// Group counts, for each preferred spread constraint, the domains of the nodes that can be chosen from, apart for nodes of several kinds
// (those that fit now, or later), which the caller numbers from 0.
type Group struct {
	of    *template
	nodes [kinds]int32
	count [kinds][][]int32 // by kind, constraint and domain
	size  [kinds][]int32   // domains with nodes, by kind and constraint
	out   []int32          // reused
}

// NewGroup is without nodes; nil where there is no preferred constraint.
func (co *Context) NewGroup() *Group {
	if !co.spreads() {
		return nil
	}
	x := co.template
	g := &Group{of: x, out: make([]int32, len(x.preferredSpread))}
	for f := range g.count {
		g.count[f], g.size[f] = make([][]int32, len(x.preferredSpread)), make([]int32, len(x.preferredSpread))
		for i := range x.preferredSpread {
			g.count[f][i] = make([]int32, len(x.preferredSpread[i].where.rows))
		}
	}
	return g
}

// Add counts a node in, or out. Nodes without the label of some constraint are passed over.
func (g *Group) Add(row int32, f uint8, by int32) {
	if !g.of.softIn(row) {
		return
	}
	g.nodes[f] += by
	for i := range g.of.preferredSpread {
		d := g.of.preferredSpread[i].where.of[row]
		was := g.count[f][i][d]
		g.count[f][i][d] += by
		switch {
		case was == 0:
			g.size[f][i]++
		case was+by == 0:
			g.size[f][i]--
		}
	}
}

// Sizes are the numbers of domains; valid until the next call.
func (g *Group) Sizes(f uint8) []int32 {
	copy(g.out, g.size[f])
	for i := range g.of.preferredSpread {
		if g.of.preferredSpread[i].byNode {
			g.out[i] = g.nodes[f]
		}
	}
	return g.out
}
