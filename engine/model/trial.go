package model

import (
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
)

// Trial is a hypothetical state of a cluster. End undoes everything that was changed, decided and remembered since Try. It also restores
// the decisions that objects cannot show yet. Everything that was touched counts as changed once more.
//
// Only one trial can be open, and no Apply may run meanwhile.
type Trial struct {
	c         *Cluster
	steps     []step // committed steps
	open      []*Txn // transactions that may have uncommitted steps, if a cycle was stopped
	past      Past
	nominated map[*Task]string // nodes
	added     []Delta          // the deltas that undo each object that was added or replaced
	left      []left
	vain      []*Task // tasks whose Vain may still be set, if a turn was stopped
}

// left is a removed job, with its tasks and with what its batch Job states about its pods.
type left struct {
	job   *Job // nil: only its tasks were removed
	tasks []*Task
	owner string
	spec  *jobSpec // nil: it was not removed
}

// Try begins a trial.
func Try(c *Cluster) *Trial {
	x := &Trial{
		c: c, past: c.Past.clone(),
		nominated: make(map[*Task]string, len(c.books.nominated)),
	}
	for t := range c.books.nominated {
		x.nominated[t] = t.NominatedNode
	}
	c.books.trial, c.books.terms.held = x, true
	return x
}

// addedAtOnce is how many objects a trial adds before it may be stopped.
const addedAtOnce = 100

// Add adds objects, as Apply does. A Node or a Queue replaces the object with the same name. The cluster must not have the other objects
// yet. Add leaves out objects with a mistake, and returns the mistakes.
func (x *Trial) Add(objects ...any) []error {
	var wrong []error
	deltas := make([]Delta, 0, len(objects))
	for _, o := range objects {
		kind, meta, ok := identify(o)
		old := replaceable(x.c, o)
		switch {
		case old != nil:
			x.added = append(x.added, Delta{Op: Upsert, Object: old})
			deltas = append(deltas, Delta{Op: Upsert, Object: o})
		case ok && has(x.c, kind, meta.GetNamespace(), meta.GetName()):
			m := mistakes{object: o, kind: kind, namespace: meta.GetNamespace(), name: meta.GetName(), namespaced: namespaced(kind)}
			m.add("", "is there already")
			wrong = append(wrong, m.errs...)
		default:
			x.added = append(x.added, Delta{Op: Delete, Object: o})
			deltas = append(deltas, Delta{Op: Upsert, Object: o})
		}
	}
	for part := range slices.Chunk(deltas, addedAtOnce) {
		x.c.Breathe()
		wrong = append(wrong, x.c.Apply(part...)...)
	}
	return wrong
}

// replaceable returns the object of the cluster that a Node or a Queue replaces; nil: there is none.
func replaceable(c *Cluster, o any) any {
	switch o := o.(type) {
	case *corev1.Node:
		if row, there := c.Nodes.Index[o.Name]; there {
			return c.Nodes.Rows[row].Object
		}
	case *v1beta1.Queue:
		if q := c.Queues[o.Name]; q != nil {
			return q.Object
		}
	}
	return nil
}

// has reports whether the cluster contains an object of this kind and name. It knows the kinds that a trial can add.
func has(c *Cluster, kind, namespace, name string) bool {
	switch kind {
	case "Pod":
		return c.Tasks[Key(namespace, name)] != nil
	case "PodGroup":
		return c.Jobs[Key(namespace, name)] != nil
	case "Job":
		return c.books.specs[Key(namespace, name)] != nil
	}
	return false
}

// Remove removes a job, its tasks, and the batch Job that owns it.
func (x *Trial) Remove(j *Job) {
	l := left{job: j, tasks: append([]*Task(nil), j.Tasks...)}
	defer x.removeOwner(j.owner, j.ownerUID)
	x.left = append(x.left, l)
	applyAs(x.c, func() {
		for _, t := range l.tasks {
			x.c.removeTask(t)
		}
		if !j.Orphan {
			x.c.removeGroup(j.Key)
		}
	})
}

// RemoveTask removes one task and leaves its job.
func (x *Trial) RemoveTask(t *Task) {
	x.left = append(x.left, left{tasks: []*Task{t}})
	applyAs(x.c, func() { x.c.removeTask(t) })
}

// RemoveOwned removes a batch Job, and its PodGroups with their tasks. It returns the PodGroups, and false if there is no such Job.
func (x *Trial) RemoveOwned(key string) (removed []*Job, found bool) {
	found = x.c.books.specs[key] != nil
	for _, j := range slices.Clone(x.c.books.owned.list(key)) {
		x.Remove(j)
		removed, found = append(removed, j), true
	}
	x.removeOwner(key, "")
	return removed, found
}

// Removed lists the tasks that were removed.
func (x *Trial) Removed() iter.Seq[*Task] {
	return func(yield func(*Task) bool) {
		for _, l := range x.left {
			for _, t := range l.tasks {
				if !yield(t) {
					return
				}
			}
		}
	}
}

// removeOwner removes a batch Job. If a UID is given, it removes only the Job with this UID.
func (x *Trial) removeOwner(key string, uid types.UID) {
	spec := x.c.books.specs[key]
	if spec == nil || uid != "" && spec.uid != "" && spec.uid != uid {
		return
	}
	x.left = append(x.left, left{owner: key, spec: spec})
	applyAs(x.c, func() {
		delete(x.c.books.specs, key)
		x.c.reckonOwned(key)
	})
}

// End restores the cluster.
func (x *Trial) End() {
	c := x.c
	c.books.trial = nil
	for _, t := range x.vain {
		c.SetVain(t, false)
	}
	for _, txn := range slices.Backward(x.open) {
		txn.Rollback(0)
	}
	(&Txn{c: c, log: x.steps}).Rollback(0)
	slices.Reverse(x.added)
	for rest := x.added; len(rest) > 0; {
		op := rest[0].Op
		n := slices.IndexFunc(rest, func(d Delta) bool { return d.Op != op })
		if n < 0 {
			n = len(rest)
		}
		errs := c.Apply(rest[:n]...)
		if op == Delete && len(errs) > 0 { // an object that was replaced may have mistakes of its own
			c.broken(fmt.Errorf("end a trial: %w", errors.Join(errs...)))
		}
		rest = rest[n:]
	}
	applyAs(c, func() {
		for _, l := range slices.Backward(x.left) {
			restore(c, l)
		}
	})
	for t := range maps.Clone(c.books.nominated) {
		if _, was := x.nominated[t]; !was {
			c.Nominate(t, "")
		}
	}
	for t, node := range x.nominated {
		c.Nominate(t, node)
	}
	touchPast(c, &x.past)
	c.books.terms.held = false
	c.Past = x.past
	c.CloseCycle()
}

// touchPast marks as changed what rows read of earlier cycles and what differs between was and now.
func touchPast(c *Cluster, was *Past) {
	if !c.Past.Rivals.SameTakers(&was.Rivals) {
		touchJobs(c, append(c.Past.Rivals.Losers(), was.Rivals.Losers()...))
	}
	for _, stuck := range []map[string]bool{c.Past.Stuck, was.Stuck} {
		for key := range stuck {
			if c.Past.Stuck[key] != was.Stuck[key] {
				touchJobs(c, []string{key})
			}
		}
	}
	for _, exceeded := range []map[string]time.Time{c.Past.Exceeded, was.Exceeded} {
		for name := range exceeded {
			if q := c.Queues[name]; q != nil && !c.Past.Exceeded[name].Equal(was.Exceeded[name]) {
				c.touchQueue(q)
			}
		}
	}
}

// restore adds a removed job again, as it was.
func restore(c *Cluster, l left) {
	if l.spec != nil {
		c.books.specs[l.owner] = l.spec
		c.reckonOwned(l.owner)
		return
	}
	if j := l.job; j != nil && !j.Orphan {
		j.Slot = c.Slots.Jobs.Take()
		putJob(c, j)
		c.books.owned.put(j.owner, j.Key, j, j.owner != "")
		for _, name := range sortedKeys(j.RoleMin) {
			j.role(name)
		}
		c.enterQueue(j)
		c.untidy(j)
		c.touchJob(j)
	}
	for _, t := range l.tasks {
		t.gone = false
		t.Slot = c.Slots.Tasks.Take()
		c.Tasks[t.Key] = t
		c.joinJob(t)
		c.bookTerms(t)
		c.seat(t)
		c.account(t, 1)
		c.touchTask(t, NoNode)
	}
}
