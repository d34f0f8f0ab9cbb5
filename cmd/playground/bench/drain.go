package bench

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// quiet is the time without writes after which all consequences of bindings are written. Parts that collect their writes delay them by at
	// most half a second.
	quiet = 3 * time.Second
	// lookEvery is the precision of the time of the last write.
	lookEvery = 5 * time.Millisecond
	// countAfter is the time without writes before requests are counted. A count takes about 20 ms of CPU time, which would slow down the
	// measured programs.
	countAfter = 300 * time.Millisecond
	// drainWithin is the maximum time of writes after the last pod. Without it, a program that never stops writing would block the run.
	drainWithin = 10 * time.Minute
)

// mark is the state of a run at a point in time.
type mark struct {
	at    time.Time
	used  usage
	calls requests // the calls that the API server has answered
}

// usage is CPU time since the processes started.
type usage struct {
	rest time.Duration   // of this process: API server, etcd, Kubernetes' controllers, and the benchmark
	of   []time.Duration // of each measured program
}

// look returns the present state, with the CPU time of some programs, and without calls.
func look(programs ...*program) mark {
	m := mark{at: time.Now(), used: usage{rest: processorTime(0)}}
	for _, p := range programs {
		m.used.of = append(m.used.of, processorTime(p.process.Process.Pid))
	}
	return m
}

// take returns the same as look, with calls.
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

// drain detects the end of the writes.
type drain struct {
	last    mark   // when the last write that counts was answered
	moved   mark   // when the last write of any kind was answered
	index   uint64 // index of the data at that time
	counted bool   // whether the writes until then were counted
}

// see records the present index of the data. It returns whether requests must be counted now, and whether no more writes are expected.
func (d *drain) see(now mark, index uint64) (count, done bool) {
	if index != d.index {
		d.moved, d.index, d.counted = now, index, false
	}
	still := now.at.Sub(d.moved.at)
	return !d.counted && still >= countAfter, d.counted && now.at.Sub(d.last.at) >= quiet
}

// count records the answered calls. If none of them writes consequences of pods, another client wrote: for example, the API server renews
// its own lease.
func (d *drain) count(calls requests) {
	d.counted = true
	if calls.writes() > d.last.calls.writes() {
		d.last = d.moved
		d.last.calls = calls
	}
}

// drained waits until no more writes happen, and returns the state when the last write was answered.
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

// processorTime returns the CPU time of a process; 0 selects this process. It is 0 for a process that has ended.
func processorTime(pid int) time.Duration {
	// Linux has a clock for every process: CPUCLOCK_SCHED, selected by the complement of its number. 0 selects the calling process.
	var used unix.Timespec
	if err := unix.ClockGettime(int32(^pid)<<3|2, &used); err != nil {
		return 0
	}
	return time.Duration(used.Nano())
}
