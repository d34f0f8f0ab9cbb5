package bench

import (
	"os"
	"testing"
	"time"
)

// drainOf simulates writes at given milliseconds: ours count, others do not. It returns the millisecond of the last write that counts, and
// the millisecond at which the end is detected.
func drainOf(ours, others map[int]bool) (last, end int) {
	start := time.Unix(0, 0)
	d := drain{last: mark{at: start}, moved: mark{at: start}}
	index, writes := uint64(0), 0.0
	for ms := 5; ; ms += 5 {
		if ours[ms] {
			writes++
		}
		if ours[ms] || others[ms] {
			index++
		}
		count, done := d.see(mark{at: start.Add(time.Duration(ms) * time.Millisecond)}, index)
		if count {
			d.count(requests{"post events": writes, "update leases": 1000})
		}
		if done {
			return int(d.last.at.Sub(start).Milliseconds()), ms
		}
	}
}

func TestDrain(t *testing.T) {
	for name, c := range map[string]struct {
		ours, others map[int]bool
		last, end    int
	}{
		"nothing is written after the last pod": {nil, nil, 0, 3000},
		"one write":                             {map[int]bool{100: true}, nil, 100, 3100},
		"writes that follow each other":         {map[int]bool{100: true, 200: true, 1500: true, 3900: true}, nil, 3900, 6900},
		"a lease is renewed":                    {map[int]bool{100: true}, map[int]bool{2000: true}, 100, 3100},
		"a lease is renewed at the very end":    {map[int]bool{100: true}, map[int]bool{3000: true}, 100, 3305},
		"what comes too late":                   {map[int]bool{100: true, 4000: true}, nil, 100, 3100},
	} {
		if last, end := drainOf(c.ours, c.others); last != c.last || end != c.end {
			t.Errorf("%s: the last at %d ms, seen at %d; want %d, %d", name, last, end, c.last, c.end)
		}
	}
}

func TestProcessorTime(t *testing.T) {
	for start := time.Now(); time.Since(start) < 20*time.Millisecond; {
		continue // uses CPU time, so that there is something to measure
	}
	here, byNumber := processorTime(0), processorTime(os.Getpid())
	if here <= 0 || byNumber < here || byNumber-here > time.Second {
		t.Errorf("this process by 0 %s, by its number %s", here, byNumber)
	}
	if got := processorTime(1 << 28); got != 0 {
		t.Errorf("of no process: %s", got)
	}
}
