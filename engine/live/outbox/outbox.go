// Package outbox contains a priority queue for writes to the API server, and workers that send them. Priorities: bindings; then statuses
// that a client needs before it can create pods; then evictions; then other statuses; then events. All writes about one object share one
// entry. The newest replaces a write that was not sent yet, and two writes of one object never run at once. The number of concurrent writes
// adapts to the API server: see pace.
package outbox

import (
	"context"
	"sync"
	"time"

	"github.com/celsius-scheduler/celsius/engine/live/recovery"
)

// Class is the priority of a write. Lower values go first.
type Class uint8

// The classes.
const (
	Binding  Class = iota // bindings
	Awaited               // statuses that a client needs before it can create pods
	Eviction              // evictions, each with the condition on its pod
	Status                // other statuses
	Event                 // the events
	numClasses
)

// String returns the name of the class in metrics.
func (c Class) String() string { return [...]string{"bind", "waiter", "evict", "status", "event"}[c] }

// While bindings wait, one write of another class is sent after this number of bindings, so that no class starves. A PodGroup's status
// costs the API server twice as much as a binding, because it is a custom resource. While a status waits, later statuses of the same object
// are merged into it. So statuses and events are sent rarely, unless they have waited long. Evictions are few, and pods wait for their
// resources.
const (
	bindsPerWaiter   = 4
	bindsPerEviction = 10
	bindsPerStatus   = 200
	bindsPerLate     = 20
	lateAfter        = 30 * time.Second
)

// slowEach is the number of waiting statuses and events that allows one more concurrent write of them. A few are sent one after another. A
// new binding then shares the API server with one of them, not with a quarter of all workers.
const slowEach = 16

// maxEvents is the maximum number of waiting events. Further events are dropped.
const maxEvents = 20000

// lastAnswers is the time for running writes to finish when Run ends.
const lastAnswers = 2 * time.Second

// Outbox contains the waiting writes, ordered by class. All writes under one key share one entry. The newest replaces a write that was not
// sent, and two writes of one key never run at once.
type Outbox struct {
	mu      sync.Mutex
	ready   *sync.Cond
	queues  [numClasses][]*entry
	entries map[string]*entry // waiting and running writes, by key
	waiting [numClasses]int
	under   int // running writes
	slow    int // running writes of the classes from Eviction on
	pace    pace
	// Failed receives a panic of a write; nil: the panic ends the process.
	Failed func(p *recovery.Panic)
	served [numClasses]int // bindings since the last write of each class
	closed bool
}

// entry is one write.
type entry struct {
	key    string
	class  Class
	queued bool
	since  time.Time // when it began to wait
	do     func(context.Context)
	// The write that was put while do was running.
	next      func(context.Context)
	nextClass Class
}

// New returns an outbox with this maximum number of concurrent writes.
func New(workers int) *Outbox {
	o := &Outbox{entries: map[string]*entry{}, pace: newPace(workers)}
	o.ready = sync.NewCond(&o.mu)
	return o
}

// Put queues do for a worker. do must return when its context ends. Put returns false, and do will not run, if it is an event and too many
// events wait already.
func (o *Outbox) Put(c Class, key string, do func(context.Context)) (taken bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return true // no one counts this any more
	}
	if c == Event && o.waiting[Event] >= maxEvents {
		return false
	}
	e := o.entries[key]
	switch {
	case e == nil:
		e = &entry{key: key}
		o.entries[key] = e
		o.push(e, c, do)
	case e.queued:
		e.do = do
		if c < e.class {
			o.waiting[e.class]--
			o.push(e, c, do) // pop ignores its old place in the queue
		}
	default:
		e.next, e.nextClass = do, c
	}
	return true
}

func (o *Outbox) push(e *entry, c Class, do func(context.Context)) {
	e.class, e.do, e.queued, e.since = c, do, true, time.Now()
	o.queues[c] = append(o.queues[c], e)
	o.waiting[c]++
	o.ready.Signal()
}

// Later calls Put after a delay.
func (o *Outbox) Later(after time.Duration, c Class, key string, do func(context.Context)) {
	time.AfterFunc(after, func() { o.Put(c, key, do) })
}

// Cancel removes a write that was not sent, and reports whether there was one.
func (o *Outbox) Cancel(key string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	e := o.entries[key]
	switch {
	case e == nil:
		return false
	case e.queued:
		e.queued = false
		o.waiting[e.class]--
		delete(o.entries, key)
		return true
	case e.next != nil:
		e.next = nil
		return true
	}
	return false
}

// Answered records that a binding succeeded. sent is when it was sent.
func (o *Outbox) Answered(sent time.Time) {
	o.adjust(func(at time.Time) { o.pace.answered(sent, at, o.waiting[Binding] > 0) })
}

// Unanswered records a binding with an unknown outcome. sent is when it was sent.
func (o *Outbox) Unanswered(sent time.Time) {
	o.adjust(func(at time.Time) { o.pace.unanswered(sent, at) })
}

// adjust updates the pace, and wakes workers if it allows more of them.
func (o *Outbox) adjust(learn func(at time.Time)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	was := o.pace.limit
	learn(time.Now())
	if o.pace.limit > was {
		o.ready.Broadcast()
	}
}

// AtOnce returns the current limit of concurrent writes.
func (o *Outbox) AtOnce() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.pace.limit
}

// Depths returns the number of waiting writes of each class.
func (o *Outbox) Depths() [numClasses]int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.waiting
}

// Run sends writes until ctx ends, and returns when all workers have stopped. Running writes get lastAnswers to finish, because the next
// leader can begin sooner if fewer writes have an unknown outcome.
func (o *Outbox) Run(ctx context.Context) {
	work, cut := context.WithCancel(context.WithoutCancel(ctx))
	defer cut()
	stop := context.AfterFunc(ctx, func() {
		time.AfterFunc(lastAnswers, cut)
		o.mu.Lock()
		defer o.mu.Unlock()
		o.closed = true
		o.ready.Broadcast()
	})
	defer stop()
	var all sync.WaitGroup
	for range o.pace.most {
		all.Go(func() {
			for o.Step(work) {
				continue
			}
		})
	}
	all.Wait()
}

// Step waits for the next write and runs it; false: the outbox is closed.
func (o *Outbox) Step(ctx context.Context) bool {
	e := o.take()
	if e == nil {
		return false
	}
	defer o.finish(e)
	if o.Failed == nil {
		e.do(ctx)
	} else if p := recovery.Catch(recovery.Worker, func() { e.do(ctx) }); p != nil {
		o.Failed(p)
	}
	return true
}

// take waits for the next write; nil when the outbox is closed.
func (o *Outbox) take() *entry {
	o.mu.Lock()
	defer o.mu.Unlock()
	for !o.closed {
		c, ok := o.next()
		if !ok || o.under >= o.pace.limit {
			o.ready.Wait()
			continue
		}
		e := o.pop(c)
		o.waiting[c]--
		e.queued = false
		o.under++
		if c >= Eviction {
			o.slow++
		}
		return e
	}
	return nil
}

// next returns the class of the next write.
func (o *Outbox) next() (Class, bool) {
	slow := numClasses
	if o.slow < o.slowAtOnce() {
		for c := Eviction; c < numClasses; c++ {
			if o.waiting[c] > 0 {
				slow = c
				break
			}
		}
	}
	switch {
	case o.waiting[Binding] > 0:
		o.served[Awaited]++
		o.served[Eviction]++
		o.served[Status]++
		if o.waiting[Awaited] > 0 && o.served[Awaited] > bindsPerWaiter {
			o.served[Awaited] = 0
			return Awaited, true
		}
		if slow == Eviction && o.served[Eviction] > bindsPerEviction {
			o.served[Eviction] = 0
			return Eviction, true
		}
		if slow > Eviction && slow < numClasses && o.served[Status] > o.bindsPer(slow) {
			o.served[Status] = 0
			return slow, true
		}
		return Binding, true
	case o.waiting[Awaited] > 0:
		return Awaited, true
	}
	return slow, slow < numClasses
}

// slowAtOnce returns how many writes of the classes from Eviction on may run at once. It grows with the number that wait, but always leaves
// workers for bindings.
func (o *Outbox) slowAtOnce() int {
	more := o.waiting[Eviction] + (o.waiting[Status]+o.waiting[Event])/slowEach
	return max(min(1+more, o.pace.limit/4), 1)
}

// bindsPer returns the number of bindings after which a write of this slow class is sent. The class must have a waiting write.
func (o *Outbox) bindsPer(c Class) int {
	if time.Since(o.queues[c][0].since) >= lateAfter {
		return bindsPerLate
	}
	return bindsPerStatus
}

// pop removes and returns the first entry of a class that still waits.
func (o *Outbox) pop(c Class) *entry {
	for {
		e := o.queues[c][0]
		o.queues[c][0] = nil
		o.queues[c] = o.queues[c][1:]
		if e.queued && e.class == c {
			return e
		}
	}
}

// finish ends a write, and queues the write that was put meanwhile.
func (o *Outbox) finish(e *entry) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.under--
	if e.class >= Eviction {
		o.slow--
	}
	o.ready.Signal()
	if e.next == nil {
		delete(o.entries, e.key)
		return
	}
	do, c := e.next, e.nextClass
	e.next = nil
	o.push(e, c, do)
}
