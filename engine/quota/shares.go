package quota

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/celsius-scheduler/celsius/engine/follow"
	"github.com/celsius-scheduler/celsius/engine/model"
)

// Shares is a tree of dominant shares: members lie below groups, groups below groups. It is hierarchical dominant
// resource fairness (Bhattacharya et al., Hierarchical Scheduling for Diverse Datacenter Workloads, SoCC 2013):
// in a group those that can still take something count as if all had no more than the least of them, so that no
// group is blamed for what its members hold beyond that, and those that can take no more count as they are.
//
// A change costs, at the next question, one addition for each sibling on the way up that has anything, since the least among them
// scales all others; where a resource runs out or is free again, all members are looked at anew.
type Shares struct {
	total    model.Resources
	used     amount
	broken   bool   // some member has a fraction: used is made anew instead of kept by delta
	demanded []bool // by dimension: less than the total is used
	before   []bool // the same memory, of the last time
	root     *Group
	members  map[string]*leaf
	moved    follow.Log[*Group] // whose ranks have changed
}

// Group is an inner node of Shares. Its children are in the order of their names, so that sums do not depend on history.
type Group struct {
	name     string
	above    *Group
	weight   float64
	groups   []*Group
	holding  []*leaf // members directly below that have a share of anything
	open     int     // members directly below that can take more
	stale    bool
	standing standing
	rank     Rank
}

// leaf is one member.
type leaf struct {
	key        string
	path       []string // as it was set
	above      *Group
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
	s := &Shares{total: total.Clone(), root: &Group{weight: 1}, members: map[string]*leaf{}}
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
			at.groups = slices.Insert(at.groups, k, &Group{name: path[i], above: at, weight: weight})
			at.groups[k].touch()
		}
		at = at.groups[k]
	}
}

func (g *Group) find(name string) (int, bool) {
	return slices.BinarySearchFunc(g.groups, name, func(g *Group, name string) int { return strings.Compare(g.name, name) })
}

// hold notes that a member directly below has a share of something, or has none any more.
func (g *Group) hold(l *leaf, share bool) {
	k, held := slices.BinarySearchFunc(g.holding, l.key, func(l *leaf, key string) int { return strings.Compare(l.key, key) })
	switch {
	case share && !held:
		g.holding = slices.Insert(g.holding, k, l)
	case !share && held:
		g.holding = slices.Delete(g.holding, k, k+1)
	}
}

// touch has a group, and those above, counted again.
func (g *Group) touch() {
	for ; g != nil && !g.stale; g = g.above {
		g.stale = true
	}
}

// at is the group of a path, or the last one on the way that is there.
func (s *Shares) at(path []string) *Group {
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
	l := s.members[key]
	if l == nil || !slices.Equal(l.path, path) {
		s.Drop(key)
		s.Group(path, nil)
		l = &leaf{key: key, path: slices.Clone(path), above: s.at(path), standing: standing{saturated: true}}
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
	l.above.hold(l, false)
	if !l.standing.saturated {
		l.above.open--
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
	now := s.before[:0]
	for i := range max(len(s.total), len(s.used.of)) {
		now = append(now, s.used.of.Get(i) < s.total.Get(i))
	}
	s.before, s.demanded = s.demanded, now
	if slices.Equal(s.before, s.demanded) {
		return
	}
	for _, l := range s.members {
		s.settle(l)
	}
}

// settle counts one member.
func (s *Shares) settle(l *leaf) {
	if !l.standing.saturated {
		l.above.open--
	}
	l.standing = standing{has: l.has, share: l.has.Share(s.total), saturated: s.saturated(l)}
	if !l.standing.saturated {
		l.above.open++
	}
	l.above.hold(l, l.standing.share != 0)
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
func (s *Shares) count(g *Group) {
	if !g.stale {
		return
	}
	g.stale = false
	least := 1.0
	for _, child := range g.groups {
		s.count(child)
		least = child.standing.least(least)
	}
	for _, l := range g.holding {
		least = l.standing.least(least)
	}
	sum := standing{has: g.standing.has[:0], saturated: g.open == 0}
	for _, child := range g.groups {
		sum.saturated = sum.saturated && child.standing.saturated
		sum.add(&child.standing, least)
	}
	for _, l := range g.holding {
		sum.add(&l.standing, least)
	}
	sum.share = sum.has.Share(s.total)
	g.standing = sum
	if rank := (Rank{sum.saturated, sum.share / g.weight}); rank != g.rank {
		g.rank = rank
		s.moved.Add(g)
	}
}

// least is the smaller of a share and that of one who can take more.
func (c *standing) least(share float64) float64 {
	if c.share == 0 || c.saturated {
		return share
	}
	return min(share, c.share)
}

// add counts one who has something: as it is, or, if it can take more, scaled to the least.
func (c *standing) add(o *standing, least float64) {
	switch {
	case o.share == 0:
	case o.saturated:
		c.has.AddIn(o.has, 1)
	default:
		c.has.AddIn(o.has, least/o.share)
	}
}

// Moved lists the groups whose ranks have changed since the last time that a reader asked. They may repeat, and the list is valid until
// the next question. Where ok is false, it is not known which have.
func (s *Shares) Moved(reader *follow.Cursor[*Group]) (groups []*Group, ok bool) {
	s.count(s.root)
	return reader.Read(&s.moved)
}

// Groups are those on a path, from below the root down, as far as they are there.
func (s *Shares) Groups(path []string) []*Group {
	var out []*Group
	at := s.root
	for _, name := range path[min(1, len(path)):] {
		k, ok := at.find(name)
		if !ok {
			break
		}
		at = at.groups[k]
		out = append(out, at)
	}
	return out
}

// Rank of a group among its siblings, as it was when the tree was last asked anything.
func (g *Group) Rank() Rank { return g.rank }

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
	out := []Rank{s.root.rank}
	for _, g := range s.Groups(path) {
		out = append(out, g.rank)
	}
	return out
}

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
