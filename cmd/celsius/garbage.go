package main

import (
	"context"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	// garbageRoom is how much garbage a scheduler may hold before a collection, in bytes, within leastGarbage and mostGarbage. Most of its
	// allocations are short-lived, for example decoded objects of which only a part is kept.
	garbageRoom = 128 << 20
	// leastGarbage and mostGarbage limit the percentage of garbage relative to live memory, in the meaning of GOGC.
	leastGarbage, mostGarbage = 40, 400
	// garbageEvery is how often the live memory is checked.
	garbageEvery = 2 * time.Second
)

// garbagePercentOf returns the value of GOGC for a number of live bytes.
func garbagePercentOf(live uint64) int {
	return int(min(max(garbageRoom*100/max(live, 1), leastGarbage), mostGarbage))
}

// paceGarbage collects garbage when its amount reaches garbageRoom, until ctx ends. By default, Go collects when memory has doubled. Then a
// scheduler of a small cluster would spend a quarter of its time on garbage collection. A scheduler of a large cluster would hold much
// unused memory. Settings in the environment have priority.
func paceGarbage(ctx context.Context) {
	if os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	tick := time.NewTicker(garbageEvery)
	defer tick.Stop()
	for last := 0; ; {
		metrics.Read(live)
		if live[0].Value.Kind() == metrics.KindUint64 {
			if percent := garbagePercentOf(live[0].Value.Uint64()); percent != last {
				last = percent
				debug.SetGCPercent(percent)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}
