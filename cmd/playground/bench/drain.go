package bench

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// quiet is for how long nothing is written when all that comes of pods being bound has been: parts that gather what they
	// write do so for half a second at most.
	quiet = 3 * time.Second
	// lookEvery is how exactly the time of the last write is known.
	lookEvery = 5 * time.Millisecond
	// countAfter is how long nothing is written before requests are counted: a count takes some 20 ms of processor time, which would
	// slow what is measured.
	countAfter = 300 * time.Millisecond
	// drainWithin is how long after the last pod something may be written. Who writes for ever has no last write.
	drainWithin = 10 * time.Minute
)

// mark is where a run began, or what it has come to.
type mark struct {
	at    time.Time
	used  usage
	calls requests // that the API server has answered
}

// usage is processor time since the processes started.
type usage struct {
	rest time.Duration   // this process's: API server, etcd, Kubernetes' controllers, and what measures
	of   []time.Duration // of each program that is measured
}

// look marks what it has come to, with the processor time of some programs, and without calls.
func look(programs ...*program) mark {
	m := mark{at: time.Now(), used: usage{rest: processorTime(0)}}
	for _, p := range programs {
		m.used.of = append(m.used.of, processorTime(p.process.Process.Pid))
	}
	return m
}

// take is look, with calls.
func take(programs ...*program) (mark, error) {
	m := look(programs...)
	var err error
	m.calls, err = servedRequests()
	return m, err
}

func (m mark) since(before mark) (time.Duration, usage, requests) {
	used := usage{rest: m.used.rest - before.used.rest}
	for i, of := range m.used.of {
		used.of = append(used.of, of-before.used.of[i])
	}
	return m.at.Sub(before.at), used, m.calls.since(before.calls)
}

// drain follows how what is written comes to an end.
type drain struct {
	last    mark   // when the last write that counts had been answered
	moved   mark   // when the last write of any kind had been
	index   uint64 // of the data, then
	counted bool   // whether what was written by then has been counted
}

// see takes in where the data is now. It says whether requests are to be counted, and whether nothing more is to be expected.
func (d *drain) see(now mark, index uint64) (count, done bool) {
	if index != d.index {
		d.moved, d.index, d.counted = now, index, false
	}
	still := now.at.Sub(d.moved.at)
	return !d.counted && still >= countAfter, d.counted && now.at.Sub(d.last.at) >= quiet
}

// count takes in the calls that have been answered by now. Where none of them writes what comes of pods, it was somebody else who
// wrote: the API server renews a lease of its own.
func (d *drain) count(calls requests) {
	d.counted = true
	if calls.writes() > d.last.calls.writes() {
		d.last = d.moved
		d.last.calls = calls
	}
}

// drained waits until nothing more is written, and gives what it had come to when the last write had been answered.
func (b *bench) drained(ctx context.Context, programs ...*program) (mark, error) {
	index := b.cluster.Index()
	first, err := take(programs...)
	if err != nil {
		return first, err
	}
	d := drain{last: first, moved: first, index: index}
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return d.last, fmt.Errorf("the last write: %w", context.Cause(ctx))
		case <-tick.C:
		}
		now := look(programs...)
		count, done := d.see(now, b.cluster.Index())
		if count {
			calls, err := servedRequests()
			if err != nil {
				return now, err
			}
			d.count(calls)
		}
		switch {
		case done:
			return d.last, nil
		case now.at.Sub(first.at) > drainWithin:
			return now, fmt.Errorf("after the last pod something has been written for %s: %s", drainWithin,
				d.last.calls.since(first.calls).all())
		}
	}
}

// processorTime is what a process has used so far, 0 for this one. It is 0 of a process that has ended.
func processorTime(pid int) time.Duration {
	// Linux has a clock for every process: CPUCLOCK_SCHED, by the complement of its number. That of 0 is one's own.
	var used unix.Timespec
	if err := unix.ClockGettime(int32(^pid)<<3|2, &used); err != nil {
		return 0
	}
	return time.Duration(used.Nano())
}
