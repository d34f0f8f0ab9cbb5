package main

import (
	"context"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	// garbageRoom is how much garbage a scheduler may hold before it collects, in bytes, where leastGarbage and mostGarbage let it: most
	// of what it allocates is gone at once, as objects that were decoded and are kept in part.
	garbageRoom = 128 << 20
	// leastGarbage and mostGarbage are percentages of what is in use, as GOGC.
	leastGarbage, mostGarbage = 40, 400
	// garbageEvery is how often it is looked at what is in use.
	garbageEvery = 2 * time.Second
)

// garbagePercentOf is the GOGC for so many bytes in use.
func garbagePercentOf(live uint64) int {
	return int(min(max(garbageRoom*100/max(live, 1), leastGarbage), mostGarbage))
}

// paceGarbage has garbage collected after as much of it as garbageRoom says, until ctx ends. At Go's own pace, which is when memory has
// doubled, a scheduler of a small cluster spends a quarter of its time collecting, and one of a large cluster
// holds much that it does not need. Where the environment says how garbage is to be collected, that holds.
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
