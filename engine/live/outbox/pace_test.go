package outbox

import (
	"testing"
	"time"
)

// apiServer handles a number of requests at once, each in the same time. Other requests wait.
type apiServer struct {
	width int
	takes time.Duration
}

// serve sends bindings for a minute without a pause. It returns the number of bindings, and the lowest and highest limit in the second
// half.
func (s apiServer) serve(p *pace, now *time.Time) (bound, low, high int) {
	type request struct{ sent, answer time.Time }
	var under []request
	free := make([]time.Time, s.width) // when each of its processors is free
	begin, end := *now, now.Add(time.Minute)
	for now.Before(end) {
		for len(under) < p.limit {
			first := 0
			for i := range free {
				if free[i].Before(free[first]) {
					first = i
				}
			}
			if free[first].Before(*now) {
				free[first] = *now
			}
			free[first] = free[first].Add(s.takes)
			under = append(under, request{*now, free[first]})
		}
		r := under[0]
		under, *now = under[1:], r.answer
		p.answered(r.sent, r.answer, true)
		bound++
		if p.resume == 0 && now.Sub(begin) > time.Minute/2 {
			high = max(high, p.limit)
			if low == 0 || p.limit < low {
				low = p.limit
			}
		}
	}
	return bound, low, high
}

func TestPace(t *testing.T) {
	const may = 200
	for _, c := range []struct {
		name      string
		server    apiServer
		low, high int
	}{
		{"two processors: a dozen times as long as by itself", apiServer{2, time.Millisecond}, 32, 50},
		{"eight", apiServer{8, time.Millisecond}, 70, 100},
		{"as many as there may be: its answers take long, and wait for nothing", apiServer{may, 20 * time.Millisecond}, may, may},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, now := newPace(may), time.Unix(0, 0)
			bound, low, high := c.server.serve(&p, &now)
			if low < c.low || high > c.high {
				t.Errorf("between %d and %d under way, want %d to %d", low, high, c.low, c.high)
			}
			most := int(time.Minute/c.server.takes) * c.server.width
			if bound < most*9/10 {
				t.Errorf("%d bound of %d that could be", bound, most)
			}
		})
	}
}

// A server that loses most of its processors gets fewer requests. A server that does not respond gets the fewest, and as many as before
// when it is back.
func TestPaceGivesWay(t *testing.T) {
	p, now := newPace(64), time.Unix(0, 0)
	_, before, _ := apiServer{8, time.Millisecond}.serve(&p, &now)
	if _, _, less := (apiServer{2, time.Millisecond}).serve(&p, &now); less >= before {
		t.Errorf("%d under way at a quarter of the server, %d before", less, before)
	}
	for range 30 {
		sent := now.Add(time.Millisecond)
		now = now.Add(time.Second)
		p.unanswered(sent, now)
	}
	if p.limit != fewest {
		t.Errorf("%d under way though nothing is answered", p.limit)
	}
	if _, again, _ := (apiServer{8, time.Millisecond}).serve(&p, &now); again < before*9/10 {
		t.Errorf("%d under way when it is back, %d before", again, before)
	}
	small := newPace(2)
	apiServer{8, time.Millisecond}.serve(&small, &now)
	small.unanswered(now.Add(time.Millisecond), now.Add(time.Second))
	if small.limit > 2 || small.limit < 1 {
		t.Errorf("%d under way of 2 that there may be", small.limit)
	}
}
