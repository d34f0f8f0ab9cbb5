package model

import (
	"maps"
	"slices"
	"strings"
)

// Nominate records the node on which victims free resources for a task, so that later cycles keep the resources for it; "" removes the
// record. Only a waiting task of ours has such a node.
func (c *Cluster) Nominate(t *Task, node string) {
	if t.Foreign || !t.Waits() {
		node = ""
	}
	if c.books.nominated[t] == (node != "") && t.NominatedNode == node {
		return
	}
	t.NominatedNode = node
	if node == "" {
		delete(c.books.nominated, t)
	} else {
		c.books.nominated[t] = true
	}
	c.changed()
}

// Nominated returns the tasks with a nominated node, in key order.
func (c *Cluster) Nominated() []*Task {
	if len(c.books.nominated) == 0 {
		return nil
	}
	return slices.SortedFunc(maps.Keys(c.books.nominated), func(a, b *Task) int { return strings.Compare(a.Key, b.Key) })
}
