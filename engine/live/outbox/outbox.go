// Package outbox has writes to the API server done by workers, the urgent ones first: bindings; then statuses that somebody waits for
// before pods can be made; then evictions; then other statuses; then events. What is written about one object is one entry, in which the
// newest replaces what has not gone out yet, and never two writes of one object are under way at once. How many writes are under way
// follows what the API server takes: see pace.
package outbox

import (
	"context"
	"sync"
	"time"

	"github.com/celsius-scheduler/celsius/engine/live/recovery"
)

// Class is how much a write matters. Lower ones go first.
type Class uint8

// The classes.
const (
	Binding  Class = iota // bindings
	Awaited               // statuses that somebody waits for before pods can be made
	Eviction              // evictions, each with the word on its pod
	Status                // other statuses
	Event                 // events
	numClasses
)

// String is the class as metrics name it.
func (c Class) String() string { return [...]string{"bind", "waiter", "evict", "status", "event"}[c] }

// While bindings wait, one write of another class is let through after so many of them, so that nothing starves.
// A PodGroup's status costs the API server twice what a binding does, for it is of a custom resource, and what is said of an object
// while its first word waits becomes one write with it: statuses and events are let through rarely, but for those that have
// waited long. Evictions are few, and somebody waits for their room.
const (
	bindsPerWaiter   = 4
	bindsPerEviction = 10
	bindsPerStatus   = 200
	bindsPerLate     = 20
	lateAfter        = 30 * time.Second
)

// slowEach is for how many waiting statuses and events there is one more of them under way at once. Few go out one
// after another: a binding that is decided meanwhile shares the API server with one of them, not with a quarter of all workers.
const slowEach = 16

// maxEvents is how many events may wait; beyond it none is taken.
const maxEvents = 20000

// lastAnswers is how long what is under way at the end may take.
const lastAnswers = 2 * time.Second

// Outbox holds the writes that are to go out, in the order of their classes. What is written under one
// key is one entry: the newest replaces what has not gone out, and never two of a key are under way at once.
type Outbox struct {
	mu      sync.Mutex
	ready   *sync.Cond
	queues  [numClasses][]*entry
	entries map[string]*entry // queued or under way
	waiting [numClasses]int
	under   int // writes that are under way
	slow    int // of them those of the classes from Eviction on
	pace    pace
	// Failed receives a panic of a write; nil: the panic ends the process.
	Failed func(p *recovery.Panic)
	served [numClasses]int // bindings since the last of a class
	closed bool
}

// entry is one write.
type entry struct {
	key    string
	class  Class
	queued bool
	since  time.Time // it stands in line
	do     func(context.Context)
	// What came in while do was under way.
	next      func(context.Context)
	nextClass Class
}

// New has so many writes under way at once at most.
func New(workers int) *Outbox {
	o := &Outbox{entries: map[string]*entry{}, pace: newPace(workers)}
	o.ready = sync.NewCond(&o.mu)
	return o
}

// Put has do run by a worker. It must return when its context ends. It is not taken, and will not be run, if it is an event and too many
// wait already.
func (o *Outbox) Put(c Class, key string, do func(context.Context)) (taken bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return true // nobody counts any more
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
			o.push(e, c, do) // its old place in the line is passed over
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

// Later is Put after a time.
func (o *Outbox) Later(after time.Duration, c Class, key string, do func(context.Context)) {
	time.AfterFunc(after, func() { o.Put(c, key, do) })
}

// Cancel takes back what has not gone out. It says whether there was anything.
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

// Answered takes in that a binding succeeded that was sent then.
func (o *Outbox) Answered(sent time.Time) {
	o.adjust(func(at time.Time) { o.pace.answered(sent, at, o.waiting[Binding] > 0) })
}

// Unanswered takes in that nobody knows what became of a binding that was sent then.
func (o *Outbox) Unanswered(sent time.Time) {
	o.adjust(func(at time.Time) { o.pace.unanswered(sent, at) })
}

// adjust has the pace take something in, and lets workers go on where it admits more of them.
func (o *Outbox) adjust(learn func(at time.Time)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	was := o.pace.limit
	learn(time.Now())
	if o.pace.limit > was {
		o.ready.Broadcast()
	}
}

// AtOnce is how many writes may be under way now.
func (o *Outbox) AtOnce() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.pace.limit
}

// Depths is how many writes of each class wait.
func (o *Outbox) Depths() [numClasses]int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.waiting
}

// Run works until ctx ends, and returns when all workers have stopped. What is under way then has a moment for its answer: who leads next
// begins the sooner, the less is under way of which nobody knows.
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

// Step waits for the next write and does it; false: the outbox is closed.
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

// next is the class whose turn it is.
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

// slowAtOnce is how many writes of the classes from Eviction on may be under way: the more, the more of them wait, and never so many that a
// binding finds no worker.
func (o *Outbox) slowAtOnce() int {
	more := o.waiting[Eviction] + (o.waiting[Status]+o.waiting[Event])/slowEach
	return max(min(1+more, o.pace.limit/4), 1)
}

// bindsPer is after how many bindings a write of a slow class, of which there is one, is let through.
func (o *Outbox) bindsPer(c Class) int {
	if time.Since(o.queues[c][0].since) >= lateAfter {
		return bindsPerLate
	}
	return bindsPerStatus
}

// pop takes the first entry of a class that is still in line.
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

// finish lets what came in meanwhile stand in line.
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
