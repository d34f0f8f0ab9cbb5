package engine_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/pprof"
	"strings"
	"testing"
	"time"

	"github.com/celsius-scheduler/celsius/engine/model"
)

// ofReasons matches the functions in which a cycle computes reasons: all of package report, why no node takes a pod, the text of a row, the
// notes about waiting jobs and pods, and their list.
const ofReasons = `engine/report\.|verdict\.\(\*(Class\)\.Rejections|rejections\))|policy\.Answer\.Reason|` +
	`action\.\(\*Cycle\)\.(note|jobWait|taskWait|tried|untried|listWaits)|action\.\(\*(backlog|forgetful)\)\.waits`

// BenchmarkReasons measures the part of a cycle that computes reasons, in per cent of the CPU samples of a profile. In the first world no
// pod finds a node, and the first cycle is measured. In the next worlds a gang arrives and is placed while thousands of pods wait, all
// alike or all different. In the last worlds no pod waits. It needs some seconds per world: -benchtime 5s.
func BenchmarkReasons(b *testing.B) {
	p := defaultPolicy(b)
	for _, nodes := range []int{1000, 5000, 10000} {
		for _, w := range []workload{{nodes, 500, 20, "nofit"}, {nodes, 10000, 1, "nofit"}} {
			objects := w.objects()
			b.Run("first/"+w.String(), func(b *testing.B) {
				b.ReportMetric(profiled(b, func(cycle func(func())) {
					x := newScene(b, p, objects)
					cycle(x.cycle)
				}), "reasons-%")
			})
		}
		for _, w := range []waiters{{nodes, 3000, true}, {nodes, 3000, false}, {nodes, 0, true}} {
			b.Run("arrival/"+w.String(), func(b *testing.B) {
				x := newScene(b, p, w.objects())
				x.settle()
				v := &visit{x: x, pods: 10, milli: 1000}
				b.ResetTimer()
				b.ReportMetric(profiled(b, func(cycle func(func())) {
					x.apply(b, v.prepare(b))
					cycle(x.cycle)
				}), "reasons-%")
			})
		}
	}
}

// waiters is a cluster at work with waiting jobs of one pod, all alike or all different.
type waiters struct {
	nodes, waiting int
	alike          bool
}

func (w waiters) String() string {
	return fmt.Sprintf("nodes=%d/waiting=%d/alike=%t", w.nodes, w.waiting, w.alike)
}

func (w waiters) objects() []model.Delta {
	out := steady{nodes: w.nodes}.objects()
	for j := range w.waiting {
		milli := int64(25_000)
		if !w.alike {
			milli += int64(j)
		}
		out = append(out, gang(fmt.Sprintf("waiting-%05d", j), 1, milli, benchStart().Add(-time.Duration(w.waiting-j)*time.Second))...)
	}
	return out
}

// profiled returns which percentage of the samples in cycles are in functions that compute reasons. Garbage collection is in neither.
func profiled(b *testing.B, step func(cycle func(func()))) float64 {
	b.Helper()
	file := filepath.Join(b.ArtifactDir(), "cpu.out")
	out, err := os.Create(file)
	if err != nil {
		b.Fatal(err)
	}
	if err := pprof.StartCPUProfile(out); err != nil {
		b.Fatal(err)
	}
	cycle := func(f func()) {
		pprof.Do(context.Background(), pprof.Labels("part", "cycle"), func(context.Context) { f() })
	}
	for b.Loop() {
		step(cycle)
	}
	pprof.StopCPUProfile()
	if err := out.Close(); err != nil {
		b.Fatal(err)
	}
	all := sampled(b, file)
	if all == 0 {
		b.Skip("no sample: it takes longer, as with -benchtime 5s")
	}
	return 100 * float64(sampled(b, file, "-focus="+ofReasons)) / float64(all)
}

// sampled returns for how long a profile has samples in cycles.
func sampled(b *testing.B, file string, more ...string) time.Duration {
	b.Helper()
	args := append([]string{"tool", "pprof", "-top", "-tagfocus=part=cycle", "-nodecount=1", "-nodefraction=0", "-unit=us", "-cum"}, more...)
	text, err := exec.Command("go", append(args, file)...).CombinedOutput()
	if err != nil {
		if strings.Contains(string(text), "empty") {
			return 0
		}
		b.Fatalf("%v: %s", err, text)
	}
	of := regexp.MustCompile(`(?m)^\s*\S+\s+\S+\s+\S+\s+(\d+)us\s`).FindSubmatch(text)
	if of == nil {
		return 0
	}
	took, err := time.ParseDuration(string(of[1]) + "us")
	if err != nil {
		b.Fatal(err)
	}
	return took
}
