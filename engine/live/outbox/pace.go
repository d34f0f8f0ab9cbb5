package outbox

import "time"

const (
	// fewest is the minimum limit of concurrent writes. The response time at this limit counts as the response time without load.
	fewest = 4
	// firstPace is the limit before anything is known about the API server.
	firstPace = 16
	// patience is the tolerated response time, as a multiple of the response time without load. Up to this, more concurrent writes cost the
	// API server less per write, because it commits writes together. Beyond it, they only wait there and delay other requests.
	patience = 12
	// probeEvery is the minimum time between two measurements of the response time without load.
	probeEvery = 10 * time.Second
)

// pace is the limit of concurrent writes: as many as the API server handles without long waits. The limit grows by one while bindings wait
// for a worker, and shrinks by a quarter when responses become slow. TCP does the same: additive increase, multiplicative decrease. From
// time to time it falls to fewest for a few bindings, to measure the response time without load.
type pace struct {
	most   int
	limit  int
	alone  time.Duration // response time without load; 0: unknown
	resume int           // the limit to restore after a measurement; 0: none is running
	looked time.Time

	// The window: bindings that were sent after it began.
	began   time.Time
	answers int
	sum     time.Duration
}

func newPace(most int) pace { return pace{most: most, limit: min(most, firstPace)} }

// answered records a binding that succeeded. more means that other bindings wait for a worker.
func (p *pace) answered(sent, at time.Time, more bool) {
	if !sent.After(p.began) {
		return // it waited behind bindings of the previous window
	}
	p.answers++
	p.sum += at.Sub(sent)
	if p.answers < 2*p.limit {
		return
	}
	mean := p.sum / time.Duration(p.answers)
	switch {
	case p.resume > 0:
		p.alone, p.limit, p.resume = mean, p.resume, 0
	case more && (p.alone == 0 || at.Sub(p.looked) >= probeEvery):
		p.looked, p.resume, p.limit = at, p.limit, min(p.most, fewest)
	case p.alone > 0 && mean > patience*p.alone:
		p.slower()
	case more:
		p.limit = min(p.most, p.limit+1)
	}
	p.began, p.answers, p.sum = at, 0, 0
}

// unanswered records a binding with an unknown outcome: the API server is overloaded or not available.
func (p *pace) unanswered(sent, at time.Time) {
	if !sent.After(p.began) {
		return
	}
	if p.resume > 0 {
		p.limit, p.resume = p.resume, 0
	}
	p.slower()
	p.began, p.answers, p.sum = at, 0, 0
}

func (p *pace) slower() { p.limit = max(p.limit*3/4, min(p.most, fewest)) }
