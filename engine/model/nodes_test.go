package model

import (
	"strings"
	"testing"
)

// order returns the names of the nodes in the order of ties.
func order(c *Cluster) string {
	var names []string
	for _, row := range c.Nodes.ByOrder() {
		names = append(names, c.Nodes.Rows[row].Name)
	}
	return strings.Join(names, " ")
}

func TestNodeOrder(t *testing.T) {
	objects := upserts(node("c", ""), node("a", ""), node("d", ""), node("b", ""))
	build := func(seed int64) *Cluster {
		c := NewCluster(Options{Seed: seed})
		apply(t, c, objects...)
		return c
	}
	c := build(0)
	if got := order(c); got != "a b c d" {
		t.Errorf("without a seed: %s", got)
	}
	version := c.Nodes.Version[0]
	c.SetNodeOrder(map[string]int{"d": -1, "b": 5, "gone": 0})
	if got := order(c); got != "d b a c" {
		t.Errorf("ranked: %s, want d b a c", got)
	}
	if c.Nodes.Version[0] == version {
		t.Error("a new order is no change of a node")
	}
	apply(t, c, Delta{Delete, node("b", "")}, Delta{Upsert, node("0", "")})
	if got := order(c); got != "d 0 a c" {
		t.Errorf("ranked, after a change: %s, want d 0 a c", got)
	}
	c.SetNodeOrder(nil)
	if got := order(c); got != "0 a c d" {
		t.Errorf("rank of nothing: %s, want 0 a c d", got)
	}
}

func TestSeededNodeOrder(t *testing.T) {
	seen := map[string]bool{}
	for seed := range int64(50) {
		var first string
		for _, names := range []string{"a b c d", "d c b a"} {
			c := NewCluster(Options{Seed: seed + 1})
			for name := range strings.FieldsSeq(names) {
				apply(t, c, upserts(node(name, ""))...)
			}
			if first == "" {
				first = order(c)
			}
			if got := order(c); got != first {
				t.Errorf("seed %d: %s or %s, as the nodes came", seed, first, got)
			}
		}
		seen[first] = true
	}
	// After 50 draws of 24 orders, the probability that 12 were not drawn is below 1 in 10^5.
	if len(seen) < 12 {
		t.Errorf("50 seeds gave %d orders only", len(seen))
	}
}
