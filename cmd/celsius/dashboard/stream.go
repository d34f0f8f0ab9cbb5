package dashboard

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// drawEvery is the minimum time between two pictures.
	drawEvery = time.Second
	// mostStreams is the maximum number of pages that are served at the same time.
	mostStreams = 64
	// streamFor is the maximum duration of one stream. After it, the permission of the user is checked again.
	streamFor = 5 * time.Minute
	// quietFor is how long nothing is sent. Then a comment is sent to show that the connection works.
	quietFor = 15 * time.Second
	// writeWithin is how long a page may take to read a message.
	writeWithin = 30 * time.Second
)

// pictures draws pictures once for all pages.
type pictures struct {
	state *state
	about overview
	now   func() time.Time

	streams atomic.Int32
	wanted  chan struct{} // a page without a picture has connected

	mu      sync.Mutex
	newest  *picture
	changed chan struct{} // closed when the next picture is ready
}

func newPictures(s *state, about overview) *pictures {
	return &pictures{
		state: s, about: about, now: time.Now, wanted: make(chan struct{}, 1), newest: &picture{}, changed: make(chan struct{}),
	}
}

// run draws pictures while pages are connected, until ctx ends. Otherwise it only adds samples to the history.
func (p *pictures) run(ctx context.Context) {
	tick := time.NewTicker(drawEvery)
	defer tick.Stop()
	idle := time.Duration(0)
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.wanted:
			p.draw()
		case <-tick.C:
			if idle += drawEvery; p.streams.Load() > 0 || idle >= sampleEvery {
				idle = 0
				p.draw()
			}
		}
	}
}

func (p *pictures) draw() {
	before, _ := p.latest()
	next := p.state.draw(before, p.about, p.now())
	if next == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.newest = next
	close(p.changed)
	p.changed = make(chan struct{})
}

// latest returns the newest picture, and a channel that is closed when there is a newer one.
func (p *pictures) latest() (*picture, <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.newest, p.changed
}

// sent is what a page has received.
type sent struct {
	picture uint64
	heat    *heat
}

// append writes as events what a page has not received of a picture.
func (s *sent) append(out []byte, now *picture) ([]byte, error) {
	for _, part := range now.parts {
		if part.since > s.picture {
			out = appendEvent(out, part.name, part.data)
		}
	}
	s.picture = now.number
	if now.heat == nil {
		return out, nil
	}
	if e, any := now.heat.after(s.heat); any {
		data, err := visibleJSON(e)
		if err != nil {
			return nil, fmt.Errorf("write the nodes: %w", err)
		}
		out = appendEvent(out, "nodes", data)
	}
	s.heat = now.heat
	return out, nil
}

// appendEvent writes a server-sent event. JSON has no line breaks.
func appendEvent(out []byte, name string, data []byte) []byte {
	out = append(append(append(out, "event: "...), name...), "\ndata: "...)
	return append(append(out, data...), "\n\n"...)
}

// ServeHTTP sends a page everything that it shows, and then the changes.
func (p *pictures) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if p.streams.Add(1) > mostStreams {
		p.streams.Add(-1)
		http.Error(w, fmt.Sprintf("%d pages look already; close one", mostStreams), http.StatusServiceUnavailable)
		return
	}
	defer p.streams.Add(-1)
	select {
	case p.wanted <- struct{}{}:
	default:
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no") // a proxy forwards each event immediately
	ctx, cancel := context.WithTimeout(r.Context(), streamFor)
	defer cancel()
	control := http.NewResponseController(w)
	var has sent
	quiet := time.NewTicker(quietFor)
	defer quiet.Stop()
	var text []byte
	for {
		now, changed := p.latest()
		var err error
		if text, err = has.append(text, now); err != nil {
			return
		}
		if len(text) > 0 {
			_ = control.SetWriteDeadline(time.Now().Add(writeWithin))
			if _, err := w.Write(text); err != nil || control.Flush() != nil {
				return
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-changed:
			text = text[:0]
		case <-quiet.C:
			text = append(text[:0], ": still there\n\n"...)
		}
	}
}
