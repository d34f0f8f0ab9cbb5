package session

import (
	"bytes"

	"github.com/celsius-scheduler/celsius/engine/language"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/engine/policy/facts"
	"github.com/celsius-scheduler/celsius/rules"
	"github.com/celsius-scheduler/celsius/rules/eval"
)

// branching is a row of queueOrder whose key is a list along a path. Each part of the key belongs to one node of a tree of queues. The
// queues below a node share its part. So a change of the part moves them all at once, and does not change the order among them.
type branching struct {
	row int // index among the rows of the site
	// Either the row is queue.path.map(q, each), along a tree of queues, ...
	tree *policy.QuotaTree
	each *eval.Each
	// ... or it is the key of a queue in a tree of shares.
	shares *policy.Attribute
}

// branchingOf returns the branching row of queueOrder. Only reads of values that can change within a cycle matter. Exactly one row must
// read such values beyond the queue itself. branchingOf returns nil if there is no such row, or more than one. It also returns nil if that
// row is not a branching row, or does not always have an opinion.
func (s *orders) branchingOf() *branching {
	var found *branching
	for i, r := range s.p.Rules(policy.QueueOrder) {
		far := policy.Within
		for _, read := range r.Reads.All {
			if read.Changes > rules.ByCycle {
				far = max(far, s.p.Reach(read, "queue"))
			}
		}
		if far == policy.Within {
			continue
		}
		b := branchingRow(s.p, r)
		if b == nil || found != nil || !s.always(r) {
			return nil
		}
		b.row, found = i, b
	}
	return found
}

// always reports whether a row has an opinion on everything.
func (s *orders) always(r *policy.Rule) bool {
	if r.When == nil {
		return true
	}
	f := s.ask.Frame()
	defer s.ask.Done()
	has, err := s.ask.Guard(r, f)
	return r.When.Constant() && has && err == nil
}

// branchingRow returns the branching of a row; nil: the row is not branching.
func branchingRow(p *policy.Policy, r *policy.Rule) *branching {
	if function, paths, ok := r.Expression.Call(); ok {
		if function != language.ShareKeyFunction || len(paths) != 2 || paths[1] != "queue" {
			return nil
		}
		if x := sharesAt(p, paths[0]); x != nil {
			return &branching{shares: x}
		}
		return nil
	}
	each, ok := r.Expression.Each()
	if !ok {
		return nil
	}
	b := &branching{each: each}
	for _, read := range r.Reads.All {
		if read.Changes <= rules.ByCycle {
			continue
		}
		t := treeOfElements(p, each, read)
		if t == nil || b.tree != nil && b.tree != t {
			return nil
		}
		b.tree = t
	}
	if b.tree == nil {
		return nil
	}
	return b
}

// sharesAt returns the tree of shares that a path leads to; nil: there is none, or several tables have one with that name.
func sharesAt(p *policy.Policy, path string) (found *policy.Attribute) {
	for _, x := range p.Attributes() {
		if x.Account == nil || !x.Type.IsExactType(language.ShareTreeType()) || path != "cluster."+x.Name {
			continue
		}
		if found != nil {
			return nil
		}
		found = x
	}
	return found
}

// treeOfElements returns the tree of queues along whose paths a list is built. What is read of each queue on the path must change only with
// that queue, or be summed up for it by the tree; nil: there is no such tree.
func treeOfElements(p *policy.Policy, each *eval.Each, read rules.Read) *policy.QuotaTree {
	if len(read.Steps) < 2 || each.Over != "queue."+read.Steps[0].Member.Name {
		return nil
	}
	t := p.Trees[read.Steps[0].Member]
	if t == nil || t.Flat || t.Moving {
		return nil
	}
	read.Steps = read.Steps[1:]
	for _, step := range read.Steps {
		if on := p.Trees[step.Member]; on != nil && (on != t || step.Member.Get != nil) {
			return nil
		}
	}
	if p.Reach(read, "queue") == policy.BeyondIt {
		return nil
	}
	return t
}

// Queues is a heap of queues. Its order: rows of queueOrder, then creation time, then name. If a row branches, the heap is a tree of heaps,
// in which a change costs a few comparisons per level.
//
// If queues are at different depths, one key may be the beginning of another, and equal to it. This is no order. For example, a is at [5],
// b at [5, 1] and c at [5, 3]: a is equal to both, and b comes before c. If c was created first and b last, c comes before a, a before b,
// and b before c. The queue that is taken first then depends on which queues are compared. Such queues stay on the flat heap.
type Queues struct {
	flat *Heap[*model.Queue]
	tree branchHeap // nil: there is none
}

// Queues returns an empty heap of queues.
func (s *orders) Queues() *Queues {
	q := &Queues{flat: s.flatQueues()}
	b := s.branchingOf()
	if b == nil {
		return q
	}
	lasts, text := s.lasts(b)
	if q.tree = s.branches; q.tree == nil || !bytes.Equal(text, s.clusterText) || !q.tree.begin() {
		if b.shares != nil {
			q.tree = newBranches(s, b.row, &shareBranches{s: s, of: b.shares}, q.flat)
		} else {
			q.tree = newBranches(s, b.row, &quotaBranches{s: s, tree: b.tree, each: b.each}, q.flat)
		}
	}
	if s.branches = nil; lasts {
		s.branches, s.clusterText = q.tree, text
	}
	return q
}

// lasts reports whether the keys of queues stay valid from walk to walk, except for what a hierarchy follows. They do while the values that
// are read of the cluster have the same text.
func (s *orders) lasts(b *branching) (ok bool, text []byte) {
	for i, r := range s.p.Rules(policy.QueueOrder) {
		for _, read := range r.Reads.All {
			switch {
			case i != b.row:
			case b.shares != nil:
				continue // the hierarchy follows all of it
			case len(read.Steps) > 1:
				read.Steps = read.Steps[1:] // a part is read with its queue
			}
			if !facts.Lasting(s.p, read) {
				return false, nil
			}
			if read.Root == "cluster" && !policy.OfMembers(read) {
				text = language.EncodeRead(text, s.ClusterView, &read)
			}
		}
	}
	return true, text
}

// Put adds a queue.
func (q *Queues) Put(x *model.Queue) {
	if q.tree != nil {
		if q.tree.put(x) {
			return
		}
		q.fell(x)
		return
	}
	q.flat.Put(x)
}

// fell moves all queues to the flat heap, permanently.
func (q *Queues) fell(more ...*model.Queue) {
	for _, x := range append(q.tree.all(), more...) {
		q.flat.Put(x)
	}
	q.tree, q.flat.s.branches = nil, nil
}

// Take removes the first queue; false: there is none.
func (q *Queues) Take() (*model.Queue, bool) {
	if q.tree != nil {
		if q.tree.refresh() {
			return q.tree.take()
		}
		q.fell()
	}
	return q.flat.Take()
}
