package quota

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/celsius-scheduler/celsius/engine/follow"
	"github.com/celsius-scheduler/celsius/engine/model"
)

// Shares is a tree of dominant shares: members are below groups, and groups below groups. It is hierarchical dominant resource fairness
// (Bhattacharya et al., Hierarchical Scheduling for Diverse Datacenter Workloads, SoCC 2013). In a group, children that can still receive
// resources count as if each had only the smallest of their shares. So a group is not charged for what its members hold beyond that.
// Children that can receive no more count as they are.
//
// At the next question, a change costs one addition for each sibling with a share on the path to the root. The reason is that the smallest
// share scales all others. If a resource is used up, or is free again, all members are computed again.
type Shares struct {
	total    model.Resources
	used     amount
	broken   bool   // some member has a fraction: used is computed from scratch instead of by differences
	demanded []bool // by dimension: less than the total is used
	before   []bool // the previous value, whose memory is used again
	root     *Group
	members  map[string]*leaf
	moved    follow.Log[*Group] // groups whose ranks changed
}

// Group is an inner node of Shares. Its children are in name order, so that sums do not depend on history.
type Group struct {
	name     string
	above    *Group
	weight   float64
	groups   []*Group
	holding  []*leaf // members directly below with a share above 0
	open     int     // number of members directly below that can receive more
	stale    bool
	standing standing
	rank     Rank
}

// leaf is one member.
type leaf struct {
	key        string
	path       []string // the path as it was set
	above      *Group
	has, wants model.Resources
	standing   standing
}

// standing is what a node counts for: its amounts, their dominant share, and whether it can receive no more.
type standing struct {
	has       model.Resources
	share     float64
	saturated bool
}

// NewShares returns an empty tree over a total.
func NewShares(total model.Resources) *Shares {
	s := &Shares{total: total.Clone(), root: &Group{weight: 1}, members: map[string]*leaf{}}
	s.root.stale = true
	s.demand()
	return s
}

// Group creates the group at a path, if it does not exist. The first part of the path is the name of the root, and is not read. weights
// contains a weight for each part of the path; those of existing groups are ignored. A missing weight, or one below 1, is 1.
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

// hold adds a member directly below to holding, or removes it.
func (g *Group) hold(l *leaf, share bool) {
	k, held := slices.BinarySearchFunc(g.holding, l.key, func(l *leaf, key string) int { return strings.Compare(l.key, key) })
	switch {
	case share && !held:
		g.holding = slices.Insert(g.holding, k, l)
	case !share && held:
		g.holding = slices.Delete(g.holding, k, k+1)
	}
}

// touch marks a group, and the groups above it, to be counted again.
func (g *Group) touch() {
	for ; g != nil && !g.stale; g = g.above {
		g.stale = true
	}
}

// at returns the group of a path, or the last existing group on the path.
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

// Set sets what a member of the group at a path has, and what it has and wants together. Keys are unique in the tree.
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

// Drop removes a member, if it exists.
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

// If adds amounts to what members have, calls ask, and restores the amounts. It ignores unknown keys.
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

// Change is an amount that a member has in addition to its own; an amount below 0 is subtracted.
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

// demand determines which resources are left. If that changed, it computes all members again.
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

// saturated reports whether a member can receive no more: it has all that it wants of some resource, or it wants a resource that is used
// up.
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

// count computes a group's standing again, if it is stale.
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

// least returns the smaller of share and the child's share. It ignores a child that can receive no more.
func (c *standing) least(share float64) float64 {
	if c.share == 0 || c.saturated {
		return share
	}
	return min(share, c.share)
}

// add adds the amounts of a child: unchanged, or scaled to the smallest share if the child can receive more.
func (c *standing) add(o *standing, least float64) {
	switch {
	case o.share == 0:
	case o.saturated:
		c.has.AddIn(o.has, 1)
	default:
		c.has.AddIn(o.has, least/o.share)
	}
}

// Moved lists the groups whose ranks changed since the reader's last call. Groups may repeat, and the list is valid until the next call. ok
// is false if the changes are unknown.
func (s *Shares) Moved(reader *follow.Cursor[*Group]) (groups []*Group, ok bool) {
	s.count(s.root)
	return reader.Read(&s.moved)
}

// Groups returns the existing groups on a path, from below the root downwards.
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

// Rank returns the rank of a group among its siblings, as of the last call of a method of the tree.
func (g *Group) Rank() Rank { return g.rank }

// Rank is one level of a Key. Groups that can receive no more come last. Among the others, the smaller weighted share comes first.
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

// Key returns the position of the group at a path among all others: its ranks from the root down. The group that comes first at the first
// difference gets the next turn.
func (s *Shares) Key(path []string) []Rank {
	s.count(s.root)
	out := []Rank{s.root.rank}
	for _, g := range s.Groups(path) {
		out = append(out, g.rank)
	}
	return out
}

// CompareKeys compares two keys: below 0 if a is first, above 0 if b is first, 0 if one key is the beginning of the other.
func CompareKeys(a, b []Rank) int {
	for i := range min(len(a), len(b)) {
		if c := a[i].compare(b[i]); c != 0 {
			return c
		}
	}
	return 0
}
