package dashboard

import "time"

// What is kept of the past: an hour, of as many queues and resources as anybody looks at.
const (
	sampleEvery  = 5 * time.Second
	mostSamples  = 720
	mostHistory  = 200 // queues
	mostRemember = 8   // resources of each
)

// history is what queues held and were due at moments of the last hour.
type history struct {
	times  []time.Time
	queues map[string]*past
}

// past is that of one queue: a value a moment and resource, the newest last. It may begin later than the history.
type past struct{ allocated, deserved [mostRemember][]float32 }

func newHistory() *history { return &history{queues: map[string]*past{}} }

// due says whether it is time for another moment.
func (h *history) due(now time.Time) bool {
	return len(h.times) == 0 || now.Sub(h.times[len(h.times)-1]) >= sampleEvery
}

// add keeps a moment, and forgets queues that are gone and what is older than an hour.
func (h *history) add(now time.Time, queues []queueView) {
	h.times = last(append(h.times, now), mostSamples)
	there := make(map[string]bool, len(queues))
	for i := range queues {
		q := &queues[i]
		there[q.Name] = true
		p := h.queues[q.Name]
		if p == nil {
			if len(h.queues) >= mostHistory {
				continue
			}
			p = &past{}
			h.queues[q.Name] = p
		}
		for r := range min(len(q.Allocated), mostRemember) {
			p.allocated[r] = last(append(p.allocated[r], float32(q.Allocated[r])), mostSamples)
			p.deserved[r] = last(append(p.deserved[r], float32(q.Deserved[r])), mostSamples)
		}
	}
	for name := range h.queues {
		if !there[name] {
			delete(h.queues, name)
		}
	}
}

// last are the newest of some values.
func last[T any](all []T, most int) []T { return all[max(len(all)-most, 0):] }
