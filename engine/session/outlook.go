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

// Outlook tells whether a step would hear of a queue's jobs what it heard of them before, as far as that is told by neither a job nor by
// nodes: by numbers for what the rows read of the queue, of the queues above it, and of the cluster.
type Outlook struct {
	s       *orders
	reads   *facts.QueueReads
	queues  follow.BySlot[*queueSight]
	cluster sight
	room    []byte // reused
	// verdicts are what nodes say; nil of the order of queues, which asks none.
	verdicts *verdict.Verdicts

	at      moment // that cluster is of
	numbers uint64 // that were given so far
}

// Sight is what a step's rows see of a queue and of the cluster: while it is the same, all of that is.
type Sight struct{ queue, cluster uint64 }

// moment is when something was read: all is as it was while the cluster's content is, within a cycle.
type moment struct{ cycle, content uint64 }

// sight is something that was read, and its number.
type sight struct {
	text   []byte
	number uint64
}

// queueSight is what was read of one queue. What moves with nothing but the queue, its trees, and what is shared out, is read again where
// these did; the rest at each moment.
type queueSight struct {
	of        *model.Queue
	near, far sight
	version   nearVersion
	lists     bool   // some list of which elements are read is not empty
	at        moment // that all is of
	number    uint64 // of both
}

// nearVersion tells when Near may be another: the version of the queue, plus 1, and those of its trees and of what it gets.
type nearVersion struct{ queue, trees, fills uint64 }

// OutlookOf is that of a step; nil where what its rows read is not told by the job, its queue, the cluster and the nodes.
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

// Begin starts a cycle: it forgets what was read of queues that are gone.
func (o *Outlook) Begin() { o.queues.Follow(&o.s.c.Slots.Queues) }

// Of is what is seen of a queue now.
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

// again reads something again, and says whether it is another.
func (o *Outlook) again(x *sight, read func([]byte) []byte) (moved bool) {
	text := read(o.room[:0])
	o.room = text
	if x.number > 0 && bytes.Equal(text, x.text) {
		return false
	}
	x.text, x.number = append(x.text[:0], text...), o.next()
	return true
}

// Refused is why no node takes a task, which was just found.
func (o *Outlook) Refused(t *model.Task) verdict.Refusal { return o.verdicts.Refused(t) }

// StillRefused says that nodes refuse a task, which has not changed, as they did.
func (o *Outlook) StillRefused(t *model.Task, r verdict.Refusal) bool {
	return o.verdicts.StillRefused(t, r)
}

func (o *Outlook) next() uint64 {
	o.numbers++
	return o.numbers
}

// emptyList says that a step from an object leads to nothing.
func emptyList(of ref.Val, step rules.Step) bool {
	l, ok := step.Member.Get(of.Value()).(traits.Lister)
	return ok && language.SizeOf(l) == 0
}

// encodeAll appends what some reads give for an object.
func encodeAll(b []byte, of ref.Val, reads []rules.Read) []byte {
	for i := range reads {
		b = language.EncodeRead(b, of, &reads[i])
	}
	return b
}
