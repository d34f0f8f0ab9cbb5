package topology

import "slices"

// sizesOfAll counts, for each preferred constraint, the domains among all ready nodes. It walks over all nodes.
func (p *Counts) sizesOfAll(co *Context) []int32 {
	g := co.NewGroup()
	for row, node := range p.c.Nodes.Rows {
		if node != nil && node.Ready {
			g.Add(int32(row), 0, 1)
		}
	}
	return g.Sizes(0)
}

// SizesAmong counts the domains among some nodes; nil if there is no preferred constraint.
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

// kinds is the number of kinds of nodes in a group.
const kinds = 3

// Group counts, for each preferred spread constraint, the domains of the nodes to choose from. It counts separately for several kinds of
// nodes (those that fit now, or later), which the caller numbers from 0.
type Group struct {
	of    *template
	nodes [kinds]int32
	over  []*domains       // the different topologies of the constraints
	at    []int            // by constraint: index of its topology in over; -1 if each node is a domain
	count [kinds][][]int32 // by kind, topology and domain
	size  [kinds][]int32   // number of domains with nodes, by kind and topology
	out   []int32          // scratch memory
}

// NewGroup returns a Group without nodes; nil if there is no preferred constraint.
func (co *Context) NewGroup() *Group {
	if !co.spreads() {
		return nil
	}
	x := co.template
	g := &Group{of: x, out: make([]int32, len(x.preferredSpread))}
	for i := range x.preferredSpread {
		if x.preferredSpread[i].byNode {
			g.at = append(g.at, -1)
			continue
		}
		where := x.preferredSpread[i].where
		at := slices.Index(g.over, where)
		if at < 0 {
			at, g.over = len(g.over), append(g.over, where)
		}
		g.at = append(g.at, at)
	}
	for f := range g.count {
		g.count[f], g.size[f] = make([][]int32, len(g.over)), make([]int32, len(g.over))
		for i, where := range g.over {
			g.count[f][i] = make([]int32, len(where.rows))
		}
	}
	return g
}

// Add adds a node (by 1), or removes it (by -1). It ignores nodes without the label of some constraint.
func (g *Group) Add(row int32, f uint8, by int32) {
	if !g.of.softIn(row) {
		return
	}
	g.nodes[f] += by
	for i, where := range g.over {
		d := where.at(row)
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

// Sizes returns the numbers of domains. They are valid until the next call.
func (g *Group) Sizes(f uint8) []int32 {
	for i, at := range g.at {
		if at < 0 {
			g.out[i] = g.nodes[f]
		} else {
			g.out[i] = g.size[f][at]
		}
	}
	return g.out
}
