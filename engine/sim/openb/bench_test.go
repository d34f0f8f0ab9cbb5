package openb

import (
	"encoding/json"
	"hash/fnv"
	"syscall"
	"testing"
	"time"

	"github.com/celsius-scheduler/celsius/engine"
	"github.com/celsius-scheduler/celsius/engine/model"
)

// BenchmarkRun replays the default workload once with each sample policy. It reports the CPU time of the process and a hash of the plan
// with all its reasons. Compare only runs with the same hash: they did the same work.
func BenchmarkRun(b *testing.B) {
	trace, err := Load(traceDir(b), "default")
	if err != nil {
		b.Fatal(err)
	}
	for _, h := range samples(b) {
		b.Run("policy="+h.Name, func(b *testing.B) {
			b.ReportAllocs()
			var plan *model.Plan
			o := trace.opening(42)
			var used time.Duration
			for b.Loop() {
				begun := processTime(b)
				c, err := o.cluster()
				if err != nil {
					b.Fatal(err)
				}
				plan = engine.Decide(c, h.Policy, o.end())
				used += processTime(b) - begun
			}
			hash := fnv.New32a()
			if err := json.NewEncoder(hash).Encode(plan); err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(float64(used.Milliseconds())/float64(b.N), "cpu-ms/op")
			b.ReportMetric(float64(hash.Sum32()), "plan-hash")
		})
	}
}

// processTime returns the CPU time that the process has used.
func processTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
