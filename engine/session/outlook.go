package session

import (
	"bytes"
	"slices"

	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"

	"github.com/celsius-scheduler/celsius/engine/follow"
	"github.com/celsius-scheduler/celsius/engine/language"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/engine/policy/facts"
	"github.com/celsius-scheduler/celsius/engine/verdict"
	"github.com/celsius-scheduler/celsius/rules"
)

// Outlook determines whether a step would read the same about a queue as before. It covers what the rows read of the queue, of the queues
// above it, and of the cluster, but neither of jobs nor of nodes. It assigns a number to each state of these values.
type Outlook struct {
	s       *orders
	reads   *facts.QueueReads
	queues  follow.BySlot[*queueSight]
	cluster sight
	room    []byte // scratch memory
	// verdicts contains the answers for nodes; nil for the order of queues, which reads no nodes.
	verdicts *verdict.Verdicts

	at      moment // of the last read of cluster
	numbers uint64 // number of assigned numbers
}

// Sight identifies what a step's rows read of a queue and of the cluster: if it is the same, all these values are the same.
type Sight struct{ queue, cluster uint64 }

// moment is when something was read. Within a cycle, nothing changes while the content of the cluster is the same.
type moment struct{ cycle, content uint64 }

// sight is the text of values that were read, and the number of this state.
type sight struct {
	text   []byte
	number uint64
}

// queueSight is what was read of one queue. near contains values that change only with the queue, its trees, and its fills. They are read
// again after such a change. far contains all other values, which are read at each moment.
type queueSight struct {
	of        *model.Queue
	near, far sight
	version   nearVersion
	lists     bool   // a list whose elements are read is not empty
	at        moment // the last read of near and far
	number    uint64 // the number of the state of near and far
}

// nearVersion determines when near may change: the version of the queue plus 1, and the versions of its trees and of its fills.
type nearVersion struct{ queue, trees, fills uint64 }

// OutlookOf returns the Outlook of a step; nil if its rows read more than the job, its queue, the cluster and the nodes.
func OutlookOf(s *Session, step *policy.Step) *Outlook {
	o := s.newOutlook(facts.QueueReadsOf(s.p, step))
	if o != nil {
		o.verdicts = s.verdicts
	}
	return o
}

func (s *orders) newOutlook(reads *facts.QueueReads) *Outlook {
	if reads == nil {
		return nil
	}
	return &Outlook{s: s, reads: reads}
}

// Begin starts a cycle: it drops what was read of queues that are gone.
func (o *Outlook) Begin() { o.queues.Follow(&o.s.c.Slots.Queues) }

// Of returns the present sight of a queue.
func (o *Outlook) Of(q *model.Queue) Sight {
	now := moment{o.s.Cycle, o.s.c.Content()}
	if o.at != now {
		o.at = now
		o.again(&o.cluster, func(b []byte) []byte {
			return append(encodeAll(b, o.s.ClusterView, o.reads.Cluster), o.s.timeText...)
		})
	}
	return Sight{o.ofQueue(q, now), o.cluster.number}
}

func (o *Outlook) ofQueue(q *model.Queue, now moment) uint64 {
	x := o.queues.Get(q.Slot)
	if x == nil || x.of != q {
		x = &queueSight{of: q}
		o.queues.Set(q.Slot, x)
	}
	if x.at == now {
		return x.number
	}
	x.at = now
	view := o.s.QueueView(q)
	moved := false
	version := nearVersion{queue: q.Version + 1, trees: o.s.accounts.TreeVersion(o.reads.Trees, view)}
	for _, fill := range o.reads.Fills {
		version.fills += o.s.accounts.FillVersion(fill, q)
	}
	if x.version != version {
		x.version = version
		moved = o.again(&x.near, func(b []byte) []byte { return encodeAll(b, view, o.reads.Near) })
		x.lists = slices.ContainsFunc(o.reads.Listed, func(r rules.Read) bool { return !emptyList(view, r.Steps[0]) })
	}
	if len(o.reads.Far) > 0 || x.lists || len(x.far.text) > 0 {
		moved = o.again(&x.far, func(b []byte) []byte {
			if b = encodeAll(b, view, o.reads.Far); x.lists {
				b = encodeAll(b, view, o.reads.Listed)
			}
			return b
		}) || moved
	}
	if moved {
		x.number = o.next()
	}
	return x.number
}

// again reads values again, and reports whether they changed.
func (o *Outlook) again(x *sight, read func([]byte) []byte) (moved bool) {
	text := read(o.room[:0])
	o.room = text
	if x.number > 0 && bytes.Equal(text, x.text) {
		return false
	}
	x.text, x.number = append(x.text[:0], text...), o.next()
	return true
}

// Refused returns why no node accepts a task, which was just computed.
func (o *Outlook) Refused(t *model.Task) verdict.Refusal { return o.verdicts.Refused(t) }

// StillRefused reports whether nodes reject a task as before. The task must not have changed.
func (o *Outlook) StillRefused(t *model.Task, r verdict.Refusal) bool {
	return o.verdicts.StillRefused(t, r)
}

func (o *Outlook) next() uint64 {
	o.numbers++
	return o.numbers
}

// emptyList reports whether the field of an object that a step reads is an empty list. of is the object.
func emptyList(of ref.Val, step rules.Step) bool {
	l, ok := step.Member.Get(of.Value()).(traits.Lister)
	return ok && language.SizeOf(l) == 0
}

// encodeAll appends the values of some reads for an object.
func encodeAll(b []byte, of ref.Val, reads []rules.Read) []byte {
	for i := range reads {
		b = language.EncodeRead(b, of, &reads[i])
	}
	return b
}
