package dashboard

import "time"

// The limits of the history: one hour, and the number of queues and resources that a user looks at.
const (
	sampleEvery  = 5 * time.Second
	mostSamples  = 720
	mostHistory  = 200 // queues
	mostRemember = 8   // resources of each queue
)

// history contains the allocated and deserved amounts of queues during the last hour.
type history struct {
	times  []time.Time
	queues map[string]*past
}

// past is the history of one queue: a value for each time and resource, the newest last. It may begin later than the history.
type past struct{ allocated, deserved [mostRemember][]float32 }

func newHistory() *history { return &history{queues: map[string]*past{}} }

// due reports whether it is time for the next sample.
func (h *history) due(now time.Time) bool {
	return len(h.times) == 0 || now.Sub(h.times[len(h.times)-1]) >= sampleEvery
}

// add stores a sample. It removes queues that no longer exist and samples that are older than an hour.
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

// last returns the newest values.
func last[T any](all []T, most int) []T { return all[max(len(all)-most, 0):] }
