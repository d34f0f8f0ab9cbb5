package quota_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/quota"
)

// asking is a member that asks for many equal pieces.
type asking struct {
	path    string
	weights []float64
	piece   model.Resources
	count   int
}

// deal gives out pieces one by one. Each goes to the member whose group is first. It ends when no member that wants a piece can have one.
func deal(total model.Resources, all []asking) []int {
	s := quota.NewShares(total)
	path := func(i int) []string { return strings.Split(all[i].path, "/") }
	given, left := make([]int, len(all)), total.Clone()
	for i, a := range all {
		s.Group(path(i), a.weights)
		s.Set(fmt.Sprint(i), path(i), nil, a.piece.Scale(float64(a.count)))
	}
	for {
		next := -1
		for i, a := range all {
			if given[i] < a.count && a.piece.Fits(left) && (next < 0 || quota.CompareKeys(s.Key(path(i)), s.Key(path(next))) < 0) {
				next = i
			}
		}
		if next < 0 {
			return given
		}
		given[next]++
		left = left.Sub(all[next].piece)
		s.Set(fmt.Sprint(next), path(next), all[next].piece.Scale(float64(given[next])), all[next].piece.Scale(float64(all[next].count)))
	}
}

// TestSharesByTurns checks examples from the literature: how many pieces each member gets.
func TestSharesByTurns(t *testing.T) {
	t.Parallel()
	both, cpu, memory := amounts(1000, 1000), amounts(1000, 0), amounts(0, 1000)
	for _, test := range []struct {
		name  string
		total model.Resources
		all   []asking
		want  []int
	}{
		{
			"plain shares: 9 CPU and 18 GB, one asks for <1,4>, one for <3,1>", amounts(9000, 18000),
			[]asking{{path: "root/a", piece: amounts(1000, 4000), count: 10}, {path: "root/b", piece: amounts(3000, 1000), count: 10}},
			[]int{3, 2},
		},
		{
			"a group is not blamed for what its members have beyond the least of them", amounts(10000, 10000),
			[]asking{
				{path: "root/sci", weights: []float64{100, 50}, piece: both, count: 10},
				{path: "root/eng/dev", weights: []float64{100, 50, 50}, piece: cpu, count: 10},
				{path: "root/eng/prod", weights: []float64{100, 50, 50}, piece: memory, count: 10},
			},
			[]int{5, 5, 5},
		},
		{
			"a group whose one member is blocked does not block the other", amounts(30000, 30000),
			[]asking{
				{path: "root/one", weights: []float64{100, 25}, piece: cpu, count: 30},
				{path: "root/two", weights: []float64{100, 25}, piece: cpu, count: 30},
				{path: "root/three/a", weights: []float64{100, 25, 50}, piece: cpu, count: 30},
				{path: "root/three/b", weights: []float64{100, 25, 50}, piece: memory, count: 30},
				{path: "root/four", weights: []float64{100, 25}, piece: memory, count: 30},
			},
			[]int{10, 10, 10, 15, 15},
		},
		{
			"by weight", amounts(9000, 9000),
			[]asking{
				{path: "root/a", weights: []float64{1, 2}, piece: both, count: 9},
				{path: "root/b", weights: []float64{1, 1}, piece: both, count: 9},
			},
			[]int{6, 3},
		},
		{
			"a weight below 1, and none, is 1", amounts(9000, 9000),
			[]asking{{path: "root/a", weights: []float64{1, 0.1}, piece: both, count: 9}, {path: "root/b", piece: both, count: 9}},
			[]int{5, 4},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(test.want, deal(test.total, test.all)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// member is the last setting of a member of a tree.
type member struct {
	path       []string
	has, wants model.Resources
}

// planted is a tree with these members, which were set in some order.
type planted struct {
	total model.Resources
	paths [][]string
}

func (p planted) empty() *quota.Shares {
	s := quota.NewShares(p.total)
	for i, path := range p.paths {
		s.Group(path, []float64{1, float64(i), 2})
	}
	return s
}

func (p planted) of(members map[string]member, order ...string) *quota.Shares {
	s := p.empty()
	for _, key := range order {
		if m, ok := members[key]; ok {
			s.Set(key, m.path, m.has, m.wants)
		}
	}
	return s
}

func (p planted) keys(s *quota.Shares) string {
	var out []string
	for _, path := range p.paths {
		out = append(out, fmt.Sprint(s.Key(path)))
	}
	return strings.Join(out, "\n")
}

func drawMember(t *rapid.T, paths [][]string) member {
	m := member{rapid.SampledFrom(paths).Draw(t, "path"), drawAmounts(t, "has", 30, 10), drawAmounts(t, "wants", 60, 10)}
	if rapid.IntRange(0, 9).Draw(t, "fraction") == 0 {
		m.has = m.has.Scale(1.0 / 3)
	}
	return m
}

// TestSharesDoNotRemember checks that keys depend only on what members have and want. Earlier settings and questions do not change them.
func TestSharesDoNotRemember(t *testing.T) {
	t.Parallel()
	names := []string{"1", "2", "3", "4", "5"}
	rapid.Check(t, func(t *rapid.T) {
		p := planted{drawAmounts(t, "total", 100, 1), [][]string{{"root"}, {"root", "a"}, {"root", "a", "x"}, {"root", "a", "y"}, {"root", "b"}}}
		now, s := map[string]member{}, p.empty()
		for range rapid.IntRange(0, 25).Draw(t, "changes") {
			key := rapid.SampledFrom(names).Draw(t, "key")
			switch rapid.SampledFrom([]string{"set", "set", "drop", "ask"}).Draw(t, "what") {
			case "set":
				now[key] = drawMember(t, p.paths)
				s.Set(key, now[key].path, now[key].has, now[key].wants)
			case "drop":
				delete(now, key)
				s.Drop(key)
			case "ask":
				p.keys(s)
			}
		}
		fresh := p.of(now, rapid.Permutation(names).Draw(t, "order")...)
		if diff := cmp.Diff(p.keys(fresh), p.keys(s)); diff != "" {
			t.Fatalf("-at once +by way of changes:\n%s", diff)
		}
	})
}

// TestSharesIf checks that an addition by If counts like a setting, and that it is gone afterwards.
func TestSharesIf(t *testing.T) {
	t.Parallel()
	names := []string{"1", "2", "3"}
	rapid.Check(t, func(t *rapid.T) {
		p := planted{drawAmounts(t, "total", 100, 1), [][]string{{"root"}, {"root", "a"}, {"root", "a", "x"}, {"root", "b"}}}
		now := map[string]member{}
		for _, key := range names {
			now[key] = drawMember(t, p.paths)
		}
		s := p.of(now, names...)
		before, inside := p.keys(s), ""
		more := []quota.Change{
			{Key: rapid.SampledFrom(append(names, "not there")).Draw(t, "to"), More: drawAmounts(t, "more", 20, 5)},
			{Key: rapid.SampledFrom(names).Draw(t, "from"), More: drawAmounts(t, "less", 20, 5).Scale(-1)},
		}
		s.If(more, func() { inside = p.keys(s) })
		if diff := cmp.Diff(before, p.keys(s)); diff != "" {
			t.Fatalf("-before +after:\n%s", diff)
		}
		for _, c := range more {
			if m, ok := now[c.Key]; ok {
				m.has = m.has.Add(c.More)
				now[c.Key] = m
			}
		}
		if diff := cmp.Diff(p.keys(p.of(now, names...)), inside); diff != "" {
			t.Fatalf("-set +inside:\n%s", diff)
		}
	})
}

// TestSharesOfGroups checks that a group has no more than its members have. A group is saturated exactly if all its members are.
func TestSharesOfGroups(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		total := amounts(100000, 1<<36, 100000, 100000)
		s := quota.NewShares(total)
		var sum model.Resources
		for i := range rapid.IntRange(1, 6).Draw(t, "members") {
			has := drawAmounts(t, "has", 30, 10)
			sum.AddIn(has, 1)
			s.Set(fmt.Sprint(i), []string{"root", rapid.SampledFrom([]string{"a", "b"}).Draw(t, "group")}, has, drawAmounts(t, "wants", 60, 10))
		}
		root := s.Key([]string{"root"})[0]
		if root.Share > sum.Share(total)+1e-12 {
			t.Fatalf("the root has a share of %g, all together have %g", root.Share, sum.Share(total))
		}
		all := true
		for _, group := range []string{"a", "b"} {
			if key := s.Key([]string{"root", group}); len(key) > 1 {
				all = all && key[1].Saturated
			}
		}
		if root.Saturated != all {
			t.Fatalf("the root is saturated: %v, its groups all are: %v", root.Saturated, all)
		}
	})
}

// TestKeysOfDifferentLengthsAreNoOrder shows why keys of different lengths give no order. The short key equals both long keys on their
// common levels, but the long keys differ. A rule that breaks such ties does not make an order.
func TestKeysOfDifferentLengthsAreNoOrder(t *testing.T) {
	t.Parallel()
	a, b, c := []quota.Rank{{Share: 5}}, []quota.Rank{{Share: 5}, {Share: 1}}, []quota.Rank{{Share: 5}, {Share: 3}}
	got := []int{quota.CompareKeys(a, b), quota.CompareKeys(a, c), quota.CompareKeys(b, c)}
	if want := []int{0, 0, -1}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
