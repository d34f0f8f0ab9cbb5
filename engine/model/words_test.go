package model

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestAmountText checks that amounts are written as people write them, in the largest unit that fits.
func TestAmountText(t *testing.T) {
	t.Parallel()
	d := NewDims()
	gpu := d.Intern("nvidia.com/gpu")
	for _, c := range []struct {
		dim    int
		amount float64
		want   string
	}{
		{CPU, 89800, "89.8"},
		{CPU, 57143, "57.143"},
		{CPU, 57142.857, "57.143"},
		{CPU, 600, "0.6"},
		{CPU, 1, "0.001"},
		{CPU, 0.0123456, "0.0000123"},
		{CPU, 2000, "2"},
		{CPU, -1500, "-1.5"},
		{CPU, 0, "0"},
		{CPU, math.Copysign(0, -1), "0"},
		{CPU, math.Inf(1), "without limit"},
		{Memory, 44800 << 30, "43.75Ti"},
		{Memory, 1 << 30, "1Gi"},
		{Memory, 1500 << 20, "1.465Gi"},
		{Memory, 1_500_000_000, "1.5G"},
		{Memory, 5_000_000_000_000, "5T"},
		{Memory, 1_234_567_890, "1.15Gi"},
		{Memory, 1000, "1000"},
		{Memory, 1023, "1023"},
		{Memory, -(512 << 20), "-512Mi"},
		{Memory, 3 << 60, "3Ei"},
		{Memory, 5000 << 60, "5000Ei"},
		{Pods, 4800, "4.8"},
		{gpu, 56000, "56"},
		{gpu, 500, "0.5"},
	} {
		if got := d.AmountText(c.dim, c.amount); got != c.want {
			t.Errorf("%v of %s: %q, want %q", c.amount, d.Name(c.dim), got, c.want)
		}
	}
}

// TestAmountTexts shows that two amounts that differ are written differently.
func TestAmountTexts(t *testing.T) {
	d := NewDims()
	for _, c := range []struct {
		dim        int
		a, b       float64
		one, other string
	}{
		{Memory, 16 << 30, 16777212 << 10, "16384Mi", "16383.996Mi"},
		{Memory, 1 << 40, 1<<40 - 1, "1073741824Ki", "1073741823.999Ki"},
		{Memory, 1.5e9, 1.5e9 + 1e6, "1.397Gi", "1.398Gi"},
		{Memory, 32 << 30, 16 << 30, "32Gi", "16Gi"},
		{Memory, 16 << 30, 16 << 30, "16Gi", "16Gi"},
		{CPU, 2 * d.units[CPU], 2*d.units[CPU] + d.units[CPU]/10000, "2", "2.0001"},
	} {
		if one, other := d.AmountTexts(c.dim, c.a, c.b); one != c.one || other != c.other {
			t.Errorf("%v and %v are %s and %s, want %s and %s", c.a, c.b, one, other, c.one, c.other)
		}
	}
}

func TestWaitText(t *testing.T) {
	t.Parallel()
	fit := NodeCount{Table: "builtin", Rule: "fit", Text: "Insufficient cpu", Count: 4}
	taint := func(text string, count int) NodeCount {
		return NodeCount{Table: "predicates", Rule: "taints", Text: text, Count: count}
	}
	var got []string
	for _, w := range []Wait{
		{Reason: Reason{Text: "alone"}},
		{Reason: Reason{Table: "gang", Rule: "all-or-nothing", Text: "0 of 2"}},
		{Reason: Reason{Table: "builtin", Rule: "fit", Text: "0/4 nodes are available: 4 Insufficient cpu"}, Nodes: []NodeCount{fit}},
		{
			Reason: Reason{Table: "predicates", Rule: "taints", Text: "0/7: 2 a, 1 b, 4 Insufficient cpu"},
			Nodes:  []NodeCount{taint("a", 2), taint("b", 1), fit},
		},
		{
			Reason: Reason{Table: "predicates", Rule: "taints", Text: "0/3"},
			Nodes:  []NodeCount{{Table: "predicates", Rule: "taints", Text: "a", Count: 3, Example: true}},
		},
	} {
		got = append(got, w.String())
	}
	want := []string{
		"alone", "gang/all-or-nothing: 0 of 2", "builtin/fit: 0/4 nodes are available: 4 Insufficient cpu",
		"predicates/taints: 0/7: 2 a, 1 b, 4 Insufficient cpu (3 predicates/taints, 4 builtin/fit)",
		"predicates/taints: 0/3 (3 predicates/taints a, and 2 like it)",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestBindText checks that a binding states why it chose the node, with the relevant parts of the score.
func TestBindText(t *testing.T) {
	t.Parallel()
	b := Bind{
		Reason: Reason{Table: "binpack", Rule: "binpack", Text: "score 60.5, next n2 with 20"},
		Scores: []RowScore{{"nodeorder", "least", 10.5}, {"nodeorder", "nothing", 0}, {"binpack", "binpack", 50}},
	}
	if got, want := b.Why(), "binpack/binpack: score 60.5, next n2 with 20 (50 binpack/binpack, 10.5 nodeorder/least)"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	only := Bind{Reason: Reason{Text: "the only node that fits"}}
	if got := only.Why(); got != "the only node that fits" {
		t.Errorf("%q", got)
	}
}
