package dashboard

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

const (
	// eventsHold is for how long what events said is told: listing them may take an API server seconds, as it has no index of them.
	eventsHold = 30 * time.Second
	// eventsWithin is how long a story waits for its first events. They come with a later answer if they take longer.
	eventsWithin = 2 * time.Second
	// mostReads is of how many jobs the events are read at once.
	mostReads = 4
)

// events are what is read of the jobs that somebody has open: once for all who look. It is for any goroutine.
type events struct {
	cluster cluster
	slots   chan struct{} // a place for each read that goes on

	mu   sync.Mutex
	jobs map[string]*jobEvents
}

// jobEvents are those of one job.
type jobEvents struct {
	reading bool
	ended   time.Time     // of the last read
	first   chan struct{} // closed by the first read
	entries []entry
	lacks   []string
}

func newEvents(c cluster) *events {
	return &events{cluster: c, slots: make(chan struct{}, mostReads), jobs: map[string]*jobEvents{}}
}

// of gives what events say of a job, whose first name is asks[0], and what could not be read. It begins to read them where what is known is
// too old, and waits for that only where nothing is.
func (e *events) of(ctx context.Context, namespace string, asks []string) (entries []entry, lacks []string) {
	key := namespace + "/" + asks[0]
	e.mu.Lock()
	j := e.jobs[key]
	if j == nil {
		j = &jobEvents{first: make(chan struct{}), lacks: []string{"its events are being read"}}
		e.jobs[key] = j
	}
	if !j.reading && time.Since(j.ended) >= eventsHold {
		j.reading = true
		go e.read(context.WithoutCancel(ctx), j, namespace, asks) // others wait for it, too
	}
	e.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, eventsWithin)
	defer cancel()
	select {
	case <-j.first:
	case <-ctx.Done():
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return j.entries, j.lacks
}

// read reads the events of a job, and forgets those of jobs that nobody has open any more.
func (e *events) read(ctx context.Context, j *jobEvents, namespace string, asks []string) {
	e.slots <- struct{}{}
	entries, lacks := told(ctx, e.cluster, namespace, asks)
	<-e.slots
	e.mu.Lock()
	defer e.mu.Unlock()
	if j.ended.IsZero() {
		close(j.first)
	}
	j.reading, j.ended, j.entries, j.lacks = false, time.Now(), entries, lacks
	maps.DeleteFunc(e.jobs, func(_ string, o *jobEvents) bool { return !o.reading && time.Since(o.ended) > 2*eventsHold })
}

// told asks for the events about some objects.
func told(ctx context.Context, c cluster, namespace string, asks []string) (out []entry, lacks []string) {
	seen := map[string]bool{}
	for _, name := range asks {
		ctx, cancel := context.WithTimeout(ctx, askWithin)
		list, err := c.Events(ctx, namespace, name)
		cancel()
		if err != nil {
			why := "the events of " + name + " could not be read: " + err.Error()
			if apierrors.IsForbidden(err) {
				why = "events are not shown: you may not list events in namespace " + namespace
			}
			return out, []string{why}
		}
		for i := range list {
			x := &list[i]
			id := cmp.Or(string(x.UID), x.Name)
			if !seen[id] {
				seen[id] = true
				out = append(out, entryOf(x))
			}
		}
	}
	return out, nil
}

func entryOf(e *corev1.Event) entry {
	at := e.LastTimestamp.Time
	if e.Series != nil {
		at = e.Series.LastObservedTime.Time
	}
	for _, other := range []time.Time{e.EventTime.Time, e.FirstTimestamp.Time, e.CreationTimestamp.Time} {
		if at.IsZero() {
			at = other
		}
	}
	what := fmt.Sprintf("event %s of %s %s", e.Reason, e.InvolvedObject.Kind, e.InvolvedObject.Name)
	if n := max(e.Count, seriesCount(e)); n > 1 {
		what += fmt.Sprintf(", %d times", n)
	}
	return entry{at, what, short(e.Message), e.Type == corev1.EventTypeWarning}
}

func seriesCount(e *corev1.Event) int32 {
	if e.Series == nil {
		return 0
	}
	return e.Series.Count
}
