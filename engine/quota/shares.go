package quota

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/celsius-scheduler/celsius/engine/model"
)

// Shares is a tree of dominant shares: members lie below groups, groups below groups. It is hierarchical dominant
// resource fairness (Bhattacharya et al., Hierarchical Scheduling for Diverse Datacenter Workloads, SoCC 2013):
// in a group those that can still take something count as if all had no more than the least of them, so that no
// group is blamed for what its members hold beyond that, and those that can take no more count as they are.
//
// A change costs, at the next question, one addition for each sibling on the way up; where a resource runs out or
// is free again, all members are looked at anew.
type Shares struct {
	total    model.Resources
	used     amount
	broken   bool   // some member has a fraction: used is made anew instead of kept by delta
	demanded []bool // by dimension: less than the total is used
	root     *group
	members  map[string]*leaf
}

// group is an inner node. Its children are in the order of their names, so that sums do not depend on history.
type group struct {
	name     string
	above    *group
	weight   float64
	groups   []*group
	leaves   []*leaf
	stale    bool
	standing standing
}

// leaf is one member.
type leaf struct {
	key        string
	above      *group
	has, wants model.Resources
	standing   standing
}

// standing is what counts of a node: what it has, the dominant share of that, and whether it can take no more.
type standing struct {
	has       model.Resources
	share     float64
	saturated bool
}

// NewShares is an empty tree over what there is in all.
func NewShares(total model.Resources) *Shares {
	s := &Shares{total: total.Clone(), root: &group{weight: 1}, members: map[string]*leaf{}}
	s.root.stale = true
	s.demand()
	return s
}

// Group makes sure of the group at a path, whose first part is the root's name and is not looked at. Weights go with
// the parts of the path; those of groups that are there already are not heeded. A missing weight, and one below 1, is 1.
func (s *Shares) Group(path []string, weights []float64) {
	at := s.root
	for i := 1; i < len(path); i++ {
		k, ok := at.find(path[i])
		if !ok {
			weight := 1.0
			if i < len(weights) && weights[i] > 1 {
				weight = weights[i]
			}
			at.groups = slices.Insert(at.groups, k, &group{name: path[i], above: at, weight: weight})
			at.groups[k].touch()
		}
		at = at.groups[k]
	}
}

func (g *group) find(name string) (int, bool) {
	return slices.BinarySearchFunc(g.groups, name, func(g *group, name string) int { return strings.Compare(g.name, name) })
}

func (g *group) findLeaf(key string) (int, bool) {
	return slices.BinarySearchFunc(g.leaves, key, func(l *leaf, key string) int { return strings.Compare(l.key, key) })
}

// touch has a group, and those above, counted again.
func (g *group) touch() {
	for ; g != nil && !g.stale; g = g.above {
		g.stale = true
	}
}

// at is the group of a path, or the last one on the way that is there.
func (s *Shares) at(path []string) *group {
	at := s.root
	for _, name := range path[min(1, len(path)):] {
		k, ok := at.find(name)
		if !ok {
			break
		}
		at = at.groups[k]
	}
	return at
}

// Set says what a member of the group at a path has, and has and wants together. Keys are unique in the tree.
func (s *Shares) Set(key string, path []string, has, wants model.Resources) {
	s.Group(path, nil)
	above := s.at(path)
	l := s.members[key]
	if l == nil || l.above != above {
		s.Drop(key)
		l = &leaf{key: key, above: above}
		k, _ := above.findLeaf(key)
		above.leaves = slices.Insert(above.leaves, k, l)
		s.members[key] = l
	}
	l.wants = wants.Clone()
	s.hold(l, has.Clone())
	s.demand()
}

// Drop takes a member out, if it is there.
func (s *Shares) Drop(key string) {
	l := s.members[key]
	if l == nil {
		return
	}
	delete(s.members, key)
	if k, ok := l.above.findLeaf(key); ok {
		l.above.leaves = slices.Delete(l.above.leaves, k, k+1)
	}
	l.above.touch()
	s.used.add(l.has, -1)
	s.demand()
}

// If adds to what members have, calls ask, and takes it back. A key that is not there is passed over.
func (s *Shares) If(more []Change, ask func()) {
	type old struct {
		of  *leaf
		has model.Resources
	}
	var before []old
	for _, c := range more {
		l := s.members[c.Key]
		if l == nil {
			continue
		}
		before = append(before, old{l, l.has})
		s.hold(l, l.has.Add(c.More))
	}
	s.demand()
	ask()
	for _, o := range slices.Backward(before) {
		s.hold(o.of, o.has)
	}
	s.demand()
}

// Change is what a member is to have beside what it has; an amount below 0 is taken from it.
type Change struct {
	Key  string
	More model.Resources
}

func (s *Shares) hold(l *leaf, has model.Resources) {
	s.broken = s.broken || !whole(has)
	s.used.add(l.has, -1)
	l.has = has
	s.used.add(l.has, 1)
	s.settle(l)
}

// demand finds out which resources are left; where that changed, all members are looked at anew.
func (s *Shares) demand() {
	if s.broken {
		s.used = amount{}
		for _, key := range slices.Sorted(maps.Keys(s.members)) {
			s.used.add(s.members[key].has, 1)
		}
	}
	now := make([]bool, max(len(s.total), len(s.used.of)))
	for i := range now {
		now[i] = s.used.of.Get(i) < s.total.Get(i)
	}
	if slices.Equal(now, s.demanded) {
		return
	}
	s.demanded = now
	for _, l := range s.members {
		s.settle(l)
	}
}

// settle counts one member.
func (s *Shares) settle(l *leaf) {
	l.standing = standing{has: l.has, share: l.has.Share(s.total), saturated: s.saturated(l)}
	l.above.touch()
}

// saturated says that a member can take no more: of some resource it has all that it wants, or it wants one that is used up.
func (s *Shares) saturated(l *leaf) bool {
	for i := range l.wants {
		wants := l.wants.Get(i)
		if wants == 0 {
			continue
		}
		if has := l.has.Get(i); has != 0 && has >= wants || i >= len(s.demanded) || !s.demanded[i] {
			return true
		}
	}
	return false
}

// count brings a group's standing up to date.
func (s *Shares) count(g *group) {
	if !g.stale {
		return
	}
	all := make([]*standing, 0, len(g.groups)+len(g.leaves))
	for _, child := range g.groups {
		s.count(child)
		all = append(all, &child.standing)
	}
	for _, l := range g.leaves {
		all = append(all, &l.standing)
	}
	g.stale = false
	least := 1.0
	for _, c := range all {
		if c.share != 0 && !c.saturated {
			least = min(least, c.share)
		}
	}
	g.standing = standing{saturated: true}
	for _, c := range all {
		g.standing.saturated = g.standing.saturated && c.saturated
		switch {
		case c.share == 0:
		case c.saturated:
			g.standing.has.AddIn(c.has, 1)
		default:
			g.standing.has.AddIn(c.has, least/c.share)
		}
	}
	g.standing.share = g.standing.has.Share(s.total)
}

// Rank is one level of a Key: those that can take no more come last, then the smaller share of its weight comes first.
type Rank struct {
	Saturated bool
	Share     float64
}

func (r Rank) compare(o Rank) int {
	if r.Saturated != o.Saturated {
		if o.Saturated {
			return -1
		}
		return 1
	}
	return cmp.Compare(r.Share, o.Share)
}

// Key is the place of the group at a path among all others: its ranks from the root down. Whose
// comes first at the first difference takes the next turn.
func (s *Shares) Key(path []string) []Rank {
	s.count(s.root)
	at := s.root
	out := []Rank{s.root.rank()}
	for _, name := range path[min(1, len(path)):] {
		k, ok := at.find(name)
		if !ok {
			break
		}
		at = at.groups[k]
		out = append(out, at.rank())
	}
	return out
}

func (g *group) rank() Rank { return Rank{g.standing.saturated, g.standing.share / g.weight} }

// CompareKeys says whose turn is first: below 0 the first one's, above 0 the other's, 0 where one key is the
// beginning of the other.
func CompareKeys(a, b []Rank) int {
	for i := range min(len(a), len(b)) {
		if c := a[i].compare(b[i]); c != 0 {
			return c
		}
	}
	return 0
}
