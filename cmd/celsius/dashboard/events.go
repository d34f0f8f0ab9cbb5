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
	// eventsHold is how long events that were read are reused. Listing them can take an API server seconds, because it has no index for them.
	eventsHold = 30 * time.Second
	// eventsWithin is how long a story waits for its first events. If they take longer, a later answer contains them.
	eventsWithin = 2 * time.Second
	// mostReads is the number of jobs whose events are read at the same time.
	mostReads = 4
)

// events caches the events of the jobs that users have open, so that they are read once for all users. It is safe for concurrent use.
type events struct {
	cluster cluster
	slots   chan struct{} // one slot for each running read

	mu   sync.Mutex
	jobs map[string]*jobEvents
}

// jobEvents are the events of one job.
type jobEvents struct {
	reading bool
	ended   time.Time     // end of the last read
	first   chan struct{} // closed after the first read
	entries []entry
	lacks   []string
}

func newEvents(c cluster) *events {
	return &events{cluster: c, slots: make(chan struct{}, mostReads), jobs: map[string]*jobEvents{}}
}

// of returns the events of a job whose main name is asks[0], and what could not be read. If the known events are too old, it starts to read
// them again. It waits only if it knows no events yet.
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
		go e.read(context.WithoutCancel(ctx), j, namespace, asks) // other callers wait for it, too
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

// read reads the events of a job, and removes those of jobs that no user has open.
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

// told reads the events of some objects.
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
