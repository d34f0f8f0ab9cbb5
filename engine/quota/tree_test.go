package quota_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/quota"
	_ "github.com/celsius-scheduler/celsius/engine/seeds"
)

// stands describes a place in words: its path, the mark of a leaf, what it may hold, what it deserves, and its problem.
func stands(parties []quota.Party, p quota.Place) string {
	var path []string
	for _, i := range p.Path {
		path = append(path, parties[i].Name)
	}
	text := strings.Join(path, "/")
	if p.Leaf {
		text += " leaf"
	}
	show := func(what string, r model.Resources) {
		for i, dim := range []string{"cpu", "memory", "pods", "gpu"} {
			if r.Has(i) {
				text += fmt.Sprintf(", %s %s %g", what, dim, r[i])
			}
		}
	}
	show("holds", p.Real)
	show("deserves", p.Deserved)
	if p.Problem != "" {
		text += ", " + p.Problem
	}
	return text
}

func TestTree(t *testing.T) {
	t.Parallel()
	total := amounts(8000, 800)
	for _, test := range []struct {
		name    string
		parties []quota.Party
		want    []string
	}{
		{"the root alone", []quota.Party{{Name: "root"}}, []string{"root leaf"}},
		{
			"without limits",
			[]quota.Party{{Name: "root"}, {Name: "a"}, {Name: "b", Parent: "a"}},
			[]string{"root", "a", "a/b leaf"},
		},
		{
			"limits are taken over from above, and cut",
			[]quota.Party{
				{Name: "root", Capability: amounts(6000)},
				{Name: "a", Parent: "root", Capability: amounts(-1, 400)},
				{Name: "b", Parent: "a", Capability: amounts(2000)},
				{Name: "c", Parent: "a", Capability: amounts(9000, 500)},
			},
			[]string{
				"root, holds cpu 6000", "a, holds cpu 6000, holds memory 400", "a/b leaf, holds cpu 2000, holds memory 400",
				"a/c leaf, holds cpu 6000, holds memory 400",
			},
		},
		{
			"cpu that is not above 0 is no limit, a device that is not is one",
			[]quota.Party{
				{Name: "root", Capability: amounts(6000, -1, -1, 4000)},
				{Name: "a", Capability: amounts(0, 0, -1, 0)},
			},
			[]string{"root, holds cpu 6000, holds gpu 4000", "a leaf, holds cpu 6000, holds gpu 0"},
		},
		{
			"guarantees of siblings",
			[]quota.Party{
				{Name: "root", Capability: amounts(6000)},
				{Name: "a", Guarantee: amounts(1000), Deserved: amounts(500, 50)},
				{Name: "b", Guarantee: amounts(2000), Deserved: amounts(3000)},
				{Name: "c", Parent: "b", Guarantee: amounts(500)},
				{Name: "d", Parent: "b"},
			},
			[]string{
				"root, holds cpu 6000, deserves cpu 4000, deserves memory 50", "a leaf, holds cpu 4000, deserves cpu 1000, deserves memory 50",
				"b, holds cpu 5000, deserves cpu 3000", "b/c leaf, holds cpu 5000, deserves cpu 500", "b/d leaf, holds cpu 4500",
			},
		},
		{
			"the total stands for a root without limits, where something is guaranteed",
			[]quota.Party{{Name: "root"}, {Name: "a", Guarantee: amounts(1000)}, {Name: "b"}},
			[]string{"root, deserves cpu 1000", "a leaf, holds cpu 8000, deserves cpu 1000", "b leaf, holds cpu 7000"},
		},
		{
			"more is guaranteed than there is",
			[]quota.Party{{Name: "root", Capability: amounts(1000)}, {Name: "a", Guarantee: amounts(1500)}, {Name: "b", Guarantee: amounts(500)}},
			[]string{
				"root, holds cpu 1000, deserves cpu 2000", "a leaf, holds cpu 1000, deserves cpu 1500",
				"b leaf, holds cpu 500, deserves cpu 500",
			},
		},
		{
			"no root",
			[]quota.Party{{Name: "a", Capability: amounts(1)}, {Name: "b", Parent: "a"}},
			[]string{`a, "a" is below "root", which is not there`, `b leaf, "a" is below "root", which is not there`},
		},
		{
			"a parent that is not there",
			[]quota.Party{{Name: "root"}, {Name: "a"}, {Name: "b", Parent: "x"}, {Name: "c", Parent: "b"}},
			[]string{"root", "a leaf", `b, "b" is below "x", which is not there`, `c leaf, "b" is below "x", which is not there`},
		},
		{
			"a circle, one below it, and one on its own",
			[]quota.Party{
				{Name: "root"},
				{Name: "below", Parent: "q"},
				{Name: "q", Parent: "p"},
				{Name: "p", Parent: "q"},
				{Name: "own", Parent: "own"},
				{Name: "a"},
			},
			[]string{
				"root", `below leaf, parents go in a circle: "p" below "q" below "p"`, `q, parents go in a circle: "p" below "q" below "p"`,
				`p, parents go in a circle: "p" below "q" below "p"`, `own, parents go in a circle: "own" below "own"`, "a leaf",
			},
		},
		{
			"the root's own parent is not looked at",
			[]quota.Party{{Name: "root", Parent: "a"}, {Name: "a"}},
			[]string{"root", "a leaf"},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			before := fmt.Sprint(test.parties)
			var got []string
			for _, p := range quota.Tree("root", total, test.parties) {
				got = append(got, stands(test.parties, p))
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if after := fmt.Sprint(test.parties); after != before {
				t.Errorf("it changed its arguments:\n%s\n%s", before, after)
			}
		})
	}
}

func TestFlat(t *testing.T) {
	t.Parallel()
	parties := []quota.Party{
		{Name: "a", Parent: "no matter", Guarantee: amounts(1000), Capability: amounts(6000, 0), Deserved: amounts(9000, 900)},
		{Name: "b", Guarantee: amounts(2000, 100), Deserved: amounts(500)},
	}
	var got []string
	for _, p := range quota.Flat(amounts(8000, 800, 10), parties) {
		got = append(got, stands(parties, p))
	}
	want := []string{
		"a leaf, holds cpu 6000, holds memory 700, holds pods 10, deserves cpu 6000, deserves memory 700",
		"b leaf, holds cpu 7000, holds memory 800, holds pods 10, deserves cpu 2000, deserves memory 100",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// drawParties draws several trees, circles, and parties whose parents do not exist.
func drawParties(t *rapid.T) []quota.Party {
	names := []string{"root", "a", "b", "c", "d", "e", "f", "g"}[:rapid.IntRange(2, 8).Draw(t, "parties")]
	if rapid.IntRange(0, 9).Draw(t, "no root") == 0 {
		names = names[1:]
	}
	var out []quota.Party
	for i, name := range names {
		p := quota.Party{
			Name:       name,
			Guarantee:  drawAmounts(t, "guarantee of "+name, 40, 60),
			Capability: drawAmounts(t, "capability of "+name, 300, 600),
			Deserved:   drawAmounts(t, "deserved of "+name, 100, 60),
		}
		switch rapid.IntRange(0, 12).Draw(t, "kind of parent of "+name) {
		case 0:
			p.Parent = "nowhere"
		case 1:
			p.Parent = rapid.SampledFrom(names).Draw(t, "any parent of "+name)
		case 2, 3:
		default:
			p.Parent = names[rapid.IntRange(0, max(i-1, 0)).Draw(t, "parent of "+name)]
			if p.Parent == name {
				p.Parent = ""
			}
		}
		out = append(out, p)
	}
	return out
}

// TestTreePathsLeadUp checks the paths of the parties below the root. Each path begins below the root and ends with the party. Each step is
// the parent of the next one. All other parties may hold nothing.
func TestTreePathsLeadUp(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		parties := drawParties(t)
		places := quota.Tree("root", drawAmounts(t, "total", 400, 1), parties)
		for i, p := range places {
			name := parties[i].Name
			if p.Problem != "" {
				if p.Above >= 0 || !slices.Equal(p.Path, []int{i}) || len(p.Real) > 0 {
					t.Fatalf("%s stands alone, but has %+v", name, p)
				}
				continue
			}
			if name != "root" && (p.Path[len(p.Path)-1] != i || places[p.Path[0]].Above != p.Root || parties[p.Root].Name != "root") {
				t.Fatalf("%s has the path %v below %d", name, p.Path, p.Root)
			}
			for k := 1; k < len(p.Path); k++ {
				if places[p.Path[k]].Above != p.Path[k-1] {
					t.Fatalf("%s has the path %v, but %d is not below %d", name, p.Path, p.Path[k], p.Path[k-1])
				}
			}
		}
	})
}

// TestTreeStaysWithinParents checks that no party may hold more than its parent, or more than its own capability. Each party deserves its
// guarantee.
func TestTreeStaysWithinParents(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		parties := drawParties(t)
		places := quota.Tree("root", drawAmounts(t, "total", 400, 1), parties)
		for i, p := range places {
			name := parties[i].Name
			for dim := range gpu + 1 {
				if p.Above >= 0 && places[p.Above].Real.Has(dim) && (!p.Real.Has(dim) || p.Real[dim] > places[p.Above].Real[dim]) {
					t.Fatalf("%s may hold %v of dimension %d, its parent %v", name, p.Real, dim, places[p.Above].Real)
				}
				if limit := parties[i].Capability; limit.Has(dim) && limit[dim] > 0 && p.Real.Get(dim) > limit[dim] {
					t.Fatalf("%s may hold %v, its capability is %v", name, p.Real, limit)
				}
				if p.Deserved.Get(dim) < parties[i].Guarantee.Get(dim) && name != "root" {
					t.Fatalf("%s deserves %v, is guaranteed %v", name, p.Deserved, parties[i].Guarantee)
				}
			}
		}
	})
}

// TestTreeKeepsGuaranteesFree checks that a parent covers what a party may hold plus the guarantees of its siblings. This holds as long as
// the parent covers all guarantees.
func TestTreeKeepsGuaranteesFree(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		parties := drawParties(t)
		places := quota.Tree("root", drawAmounts(t, "total", 400, 0), parties)
		for i, p := range places {
			if p.Above < 0 || !places[p.Above].Real.Has(model.CPU) {
				continue
			}
			whole, others, all := places[p.Above].Real.Get(model.CPU), 0.0, 0.0
			for k, o := range places {
				if o.Above == p.Above {
					all += parties[k].Guarantee.Get(model.CPU)
					if k != i {
						others += parties[k].Guarantee.Get(model.CPU)
					}
				}
			}
			if all <= whole && p.Real.Get(model.CPU)+others > whole {
				t.Fatalf("%s may hold %g, others are guaranteed %g, of %g", parties[i].Name, p.Real.Get(model.CPU), others, whole)
			}
		}
	})
}

// TestTreeHasNoFavourites checks that the order of parties does not matter.
func TestTreeHasNoFavourites(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		parties, total := drawParties(t), drawAmounts(t, "total", 400, 1)
		order := rapid.Permutation(indices(len(parties))).Draw(t, "order")
		shuffled := make([]quota.Party, len(order))
		for to, from := range order {
			shuffled[to] = parties[from]
		}
		tree := func(parties []quota.Party) map[string]string {
			out := map[string]string{}
			for i, p := range quota.Tree("root", total, parties) {
				out[parties[i].Name] = stands(parties, p)
			}
			return out
		}
		if diff := cmp.Diff(tree(parties), tree(shuffled)); diff != "" {
			t.Fatalf("-in order +shuffled:\n%s", diff)
		}
		flat := func(parties []quota.Party) map[string]string {
			out := map[string]string{}
			for i, p := range quota.Flat(total, parties) {
				out[parties[i].Name] = stands(parties, p)
			}
			return out
		}
		if diff := cmp.Diff(flat(parties), flat(shuffled)); diff != "" {
			t.Fatalf("flat: -in order +shuffled:\n%s", diff)
		}
	})
}

// TestSumsAreConserved checks sums after settings in any order. Each party has its own amount and the amounts of all below it. Only the
// last setting counts.
func TestSumsAreConserved(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		parties := drawParties(t)
		places := quota.Tree("root", nil, parties)
		s := quota.NewSums(places)
		own := make([]model.Resources, len(parties))
		for range rapid.IntRange(0, 30).Draw(t, "changes") {
			i := rapid.IntRange(0, len(parties)-1).Draw(t, "whose")
			v := drawAmounts(t, "amounts", 50, 20)
			if rapid.IntRange(0, 19).Draw(t, "fraction") == 0 {
				v = v.Scale(1.0 / 3)
			}
			differs := !v.Equal(own[i])
			own[i] = v
			if s.Set(i, v) != differs {
				t.Fatalf("Set says that it changed: %v, it did: %v", !differs, differs)
			}
		}
		again := quota.NewSums(places)
		for i := range own {
			again.Set(i, own[i])
		}
		for i := range places {
			var want model.Resources
			for k := range places {
				at := k
				for ; at >= 0 && at != i; at = places[at].Above {
				}
				if at == i {
					want.AddIn(own[k], 1)
				}
			}
			for dim := range gpu + 1 {
				if w, v := want.Get(dim), s.Of(i).Get(dim); want.Has(dim) != s.Of(i).Has(dim) || math.Abs(w-v) > 1e-12*w {
					t.Fatalf("%s has %v, should have %v", parties[i].Name, s.Of(i), want)
				}
			}
			if !s.Of(i).Equal(again.Of(i)) {
				t.Fatalf("%s: %v by way of changes, %v at once", parties[i].Name, s.Of(i), again.Of(i))
			}
		}
	})
}
