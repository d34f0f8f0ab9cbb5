package quota

import (
	"fmt"
	"slices"
	"strings"

	"github.com/celsius-scheduler/celsius/engine/model"
)

// Party is one member of a tree of quotas. In its capability, a missing dimension, or a cpu or memory that is not above 0, is no limit.
type Party struct {
	Name string
	// name of the parent; "" is the root
	Parent     string
	Guarantee  model.Resources
	Capability model.Resources
	Deserved   model.Resources
}

// Place is the position of a party, and what it may hold there. Parties are identified by their index.
type Place struct {
	// Above is the parent; -1 for the root, and for a party that is alone.
	Above int
	// Root is the root of the party's tree: the party itself, if it is alone.
	Root int
	// Path contains the parties from below the root down to the party itself. The path of the root is the root.
	Path []int
	// Leaf states that no party names this party as its parent.
	Leaf bool
	// Problem states why the party is below no root; "" if it is. Such a party is alone, and may hold nothing.
	Problem string
	// Capability is the party's own; missing dimensions are inherited from its parent.
	Capability model.Resources
	// Real is the maximum that the party may hold. In a tree, a missing dimension is no limit; in Flat, it is 0.
	Real model.Resources
	// Deserved is at least the guarantee.
	Deserved model.Resources
}

// Flat places parties next to each other under a total. No party may hold what is guaranteed to others. No party deserves more than it may
// hold, except its guarantee. The cost is one step per party.
func Flat(total model.Resources, parties []Party) []Place {
	var guaranteed model.Resources
	for _, p := range parties {
		guaranteed.AddIn(p.Guarantee, 1)
	}
	places := make([]Place, len(parties))
	for i, p := range parties {
		limit := p.Capability.Limit()
		hold := total.Over(guaranteed).Add(p.Guarantee).Cap(limit)
		places[i] = Place{
			Above: -1, Root: i, Path: []int{i}, Leaf: true, Capability: limit, Real: hold,
			Deserved: p.Deserved.Cap(hold).Max(p.Guarantee),
		}
	}
	return places
}

// Tree places parties below the party called root. From the top down, a party may hold what its parent may hold, minus what its siblings
// are guaranteed, and at most its capability. For a resource that its capability does not list, the limit of its parent applies.
//
// The root may hold its capability. If it has none, the total applies in the dimensions in which a direct child has a guarantee. So there
// is a limit from which to reserve the guarantee. The root deserves the sum of what the parties below it deserve.
//
// A party is placed alone with a Problem if its chain of parents does not end at the root, or forms a circle. The same applies to all
// parties below it. The other parties are not affected. The cost is one step for each party on each path.
func Tree(root string, total model.Resources, parties []Party) []Place {
	t := &treeBuilder{
		root: root, parties: parties, index: make(map[string]int, len(parties)), places: make([]Place, len(parties)),
		seen: make([]visit, len(parties)),
	}
	for i, p := range parties {
		t.index[p.Name] = i
		t.places[i] = Place{
			Above: -1, Root: i, Path: []int{i}, Leaf: true, Capability: p.Capability.Limit(),
			Deserved: p.Deserved.Max(p.Guarantee),
		}
	}
	top, ok := t.index[root]
	for i := range parties {
		t.climb(i)
	}
	if ok {
		t.places[top].Real = t.places[top].Capability
		t.down(top, total)
	}
	return t.places
}

type visit uint8

const (
	unseen visit = iota
	climbing
	placed
)

type treeBuilder struct {
	root    string
	parties []Party
	index   map[string]int
	places  []Place
	seen    []visit
	below   [][]int
}

// parent returns the parent's name of a party. An empty name means the root, which has no parent.
func (t *treeBuilder) parent(i int) string {
	if p := t.parties[i].Parent; p != "" {
		return p
	}
	return t.root
}

// climb determines whether a party is below the root.
func (t *treeBuilder) climb(from int) {
	var way []int
	problem := ""
	for i := from; ; {
		if t.seen[i] == placed {
			problem = t.places[i].Problem
			break
		}
		if t.seen[i] == climbing {
			problem = t.circle(way[slices.Index(way, i):])
			break
		}
		t.seen[i] = climbing
		way = append(way, i)
		if t.parties[i].Name == t.root {
			break
		}
		above, ok := t.index[t.parent(i)]
		if !ok {
			problem = fmt.Sprintf("%q is below %q, which is not there", t.parties[i].Name, t.parent(i))
			break
		}
		t.places[above].Leaf = false
		i = above
	}
	for _, i := range way {
		t.seen[i], t.places[i].Problem = placed, problem
		if problem == "" && t.parties[i].Name != t.root {
			t.places[i].Above = t.index[t.parent(i)]
		}
	}
}

// circle describes a circle of parents, beginning with its first name.
func (t *treeBuilder) circle(of []int) string {
	first := 0
	for k, i := range of {
		if t.parties[i].Name < t.parties[of[first]].Name {
			first = k
		}
	}
	var names []string
	for k := range len(of) + 1 {
		names = append(names, fmt.Sprintf("%q", t.parties[of[(first+k)%len(of)]].Name))
	}
	return "parents go in a circle: " + strings.Join(names, " below ")
}

// down places all parties below a root.
func (t *treeBuilder) down(top int, total model.Resources) {
	t.below = make([][]int, len(t.parties))
	for i := range t.places {
		if above := t.places[i].Above; above >= 0 {
			t.below[above] = append(t.below[above], i)
		}
	}
	var deserved model.Resources
	for queue := []int{top}; len(queue) > 0; queue = queue[1:] {
		at := queue[0]
		var guaranteed model.Resources
		for _, i := range t.below[at] {
			guaranteed.AddIn(t.parties[i].Guarantee, 1)
		}
		whole := t.places[at].Real
		if at == top {
			whole = reserve(whole, total, guaranteed)
		}
		free := whole.Over(guaranteed)
		for _, i := range t.below[at] {
			t.place(i, at, top, whole, free)
			if at == top {
				deserved.AddIn(t.places[i].Deserved, 1)
			}
		}
		queue = append(queue, t.below[at]...)
	}
	if len(t.below[top]) > 0 {
		t.places[top].Deserved = deserved
	}
}

// place computes what one party may hold. Its parent may hold whole, of which free is guaranteed to no party.
func (t *treeBuilder) place(i, above, top int, whole, free model.Resources) {
	p, own := &t.places[i], t.parties[i].Guarantee
	p.Root = top
	if above != top {
		p.Path = append(slices.Clone(t.places[above].Path), i)
	}
	p.Capability = orElse(p.Capability, t.places[above].Capability)
	p.Real = orElse(free.Add(own).Only(whole).Cap(whole).Cap(p.Capability), p.Capability)
}

// reserve limits whole to the total in dimensions where it has no limit and a party has a guarantee.
func reserve(whole, total, guaranteed model.Resources) model.Resources {
	out := whole.Clone()
	for i := range guaranteed {
		if !out.Has(i) && guaranteed.Get(i) > 0 {
			out.Set(i, total.Get(i))
		}
	}
	return out
}

// orElse returns a, with its missing dimensions taken from b.
func orElse(a, b model.Resources) model.Resources {
	out := a.Clone()
	for i := range b {
		if b.Has(i) && !out.Has(i) {
			out.Set(i, b[i])
		}
	}
	return out
}
