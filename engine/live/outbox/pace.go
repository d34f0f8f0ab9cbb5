package outbox

import "time"

const (
	// fewest is how many writes may be under way in any case; an answer's time while no more are is what it takes by itself.
	fewest = 4
	// firstPace is how many may be before anything is known of the API server.
	firstPace = 16
	// patience is how many times as long as by itself an answer may take. Until then more writes at once are cheaper for the API
	// server, which commits together what comes together; beyond that they only stand in line there, and others behind them.
	patience = 12
	// probeEvery is the least time between two looks at what an answer takes by itself.
	probeEvery = 10 * time.Second
)

// pace is how many writes may be under way at once: as many as the API server takes without having them wait for long. It
// goes up by one while bindings wait for a worker, and down by a quarter when answers become slow: additive increase,
// multiplicative decrease, as TCP has it. Now and then it falls to the fewest for a few bindings, to learn what an answer takes by itself.
type pace struct {
	most   int
	limit  int
	alone  time.Duration // what an answer takes by itself; 0: not known
	resume int           // the limit after a look at that; 0: there is none under way
	looked time.Time

	// The window: bindings that were sent since it began.
	began   time.Time
	answers int
	sum     time.Duration
}

func newPace(most int) pace { return pace{most: most, limit: min(most, firstPace)} }

// answered takes in a binding that succeeded. more says that others wait for a worker.
func (p *pace) answered(sent, at time.Time, more bool) {
	if !sent.After(p.began) {
		return // it stood in line behind those of the window before
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

// unanswered takes in a binding of which nobody knows what became: the API server has more than it can do, or is not there.
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
