package engine_test

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
)

var updateCosts = flag.Bool("update", false, "write what testdata/costs.txt holds anew")

// costsFile holds what the workloads cost when it was written last.
const costsFile = "testdata/costs.txt"

// allocationSlack is by what part allocations may grow, and allocationNoise how many more there may be in any case: maps and
// pools do not allocate alike in each run.
const (
	allocationSlack = 0.10
	allocationNoise = 20
)

// cost of one cycle. None of it is a time, so it is the same on every machine.
type cost struct {
	evaluations uint64
	allocations uint64
	binds       int
	plan        uint32
}

// costed are the benchmarks' workloads at a tenth of their size, by name: each makes ready, and gives what to measure.
func costed(t *testing.T) map[string]func() (x *scene, run func()) {
	t.Helper()
	out := map[string]func() (*scene, func()){}
	for _, w := range []workload{
		{1000, 1000, 1, "constrained"},
		{1000, 50, 20, "constrained"},
		{1000, 2, 500, "constrained"},
		{1000, 1, 1000, "constrained"},
		{1000, 50, 20, "same"},
		{1000, 50, 20, "shapes"},
		{1000, 50, 20, "nofit"},
		{1000, 100, 20, "interleaved"},
	} {
		out["decide/"+w.String()] = func() (*scene, func()) {
			x := newScene(t, defaultPolicy(t), w.objects())
			return x, func() {
				x.begin(x.d.Session().Cluster(), x.d.Session().Policy())
				x.cycle()
			}
		}
	}
	for _, w := range []steady{{nodes: 1000}, {1000, 1000, 1}, {1000, 50, 20}} {
		for _, p := range steadyPolicies(t) {
			name := w.String() + "/policy=" + p.Name
			out["idle/"+name] = func() (*scene, func()) {
				x := newScene(t, p, w.objects())
				x.settle()
				return x, x.cycle
			}
			for shape, step := range map[string]int64{"known": 0, "new": 1} {
				out["arrival/"+name+"/shape="+shape] = func() (*scene, func()) {
					x := newScene(t, p, w.objects())
					x.settle()
					v := &visit{x: x, pods: 10, milli: 1000, step: step}
					v.arrive(t, v.prepare(t))
					next := v.prepare(t)
					return x, func() { v.arrive(t, next) }
				}
			}
		}
	}
	return out
}

// measureCost runs a workload once, on one processor, and without the collector, which allocates too.
func measureCost(t *testing.T, ready func() (*scene, func())) cost {
	t.Helper()
	x, run := ready()
	evaluated := x.evaluations()
	runtime.GC()
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	run()
	runtime.ReadMemStats(&after)
	return cost{x.evaluations() - evaluated, after.Mallocs - before.Mallocs, len(x.plan.Binds), planHash(t, x.plan)}
}

// TestCosts runs the benchmarks' workloads in small, and fails where one evaluates more rows than it did when
// testdata/costs.txt was written, allocates more often by a tenth, or decides otherwise.
func TestCosts(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	known, err := readCosts()
	if err != nil && !*updateCosts {
		t.Fatal(err)
	}
	cases := costed(t)
	now := map[string]cost{}
	for _, name := range slices.Sorted(maps.Keys(cases)) {
		now[name] = measureCost(t, cases[name])
	}
	if *updateCosts {
		if err := os.WriteFile(costsFile, []byte(writeCosts(now)), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	for _, name := range slices.Sorted(maps.Keys(now)) {
		was, ok := known[name]
		if !ok {
			t.Errorf("%s: not in %s", name, costsFile)
			continue
		}
		is := now[name]
		if raced() {
			is.allocations = 0 // pools drop at random what they hold
		}
		for _, complaint := range compareCosts(was, is) {
			t.Errorf("%s: %s", name, complaint)
		}
		if now[name].evaluations < was.evaluations || now[name].allocations < was.allocations*9/10 {
			t.Logf("%s: cheaper than it was, %+v after %+v", name, now[name], was)
		}
	}
	for name := range known {
		if _, ok := now[name]; !ok {
			t.Errorf("%s: in %s, and measured no more", name, costsFile)
		}
	}
	if t.Failed() {
		t.Logf("where that is meant: go test ./engine -run '^TestCosts$' -update, and say in the commit why it costs more")
	}
}

// raced says whether the race detector is on.
func raced() bool {
	info, _ := debug.ReadBuildInfo()
	return info != nil && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}

// compareCosts says what is worse now than it was.
func compareCosts(was, now cost) []string {
	var out []string
	if now.evaluations > was.evaluations {
		out = append(out, fmt.Sprintf("%d evaluations of rows, were %d%s", now.evaluations, was.evaluations,
			growth(was.evaluations, now.evaluations)))
	}
	if limit := was.allocations + max(uint64(allocationSlack*float64(was.allocations)), allocationNoise); now.allocations > limit {
		out = append(out, fmt.Sprintf("%d allocations, were %d%s", now.allocations, was.allocations, growth(was.allocations, now.allocations)))
	}
	if now.binds != was.binds || now.plan != was.plan {
		out = append(out, fmt.Sprintf("another plan: %d binds, hash %08x, were %d, %08x", now.binds, now.plan, was.binds, was.plan))
	}
	return out
}

func growth(was, now uint64) string {
	if was == 0 {
		return ""
	}
	return fmt.Sprintf(" (+%.1f %%)", 100*(float64(now)/float64(was)-1))
}

const costsHead = `# What one cycle of the benchmarks' workloads costs, at a tenth of their size: TestCosts fails where it grows.
# go test ./engine -run '^TestCosts$' -update writes this anew.
# evaluations allocations binds plan workload
`

func writeCosts(costs map[string]cost) string {
	var b strings.Builder
	b.WriteString(costsHead)
	for _, name := range slices.Sorted(maps.Keys(costs)) {
		c := costs[name]
		fmt.Fprintf(&b, "%8d %8d %5d %08x %s\n", c.evaluations, c.allocations, c.binds, c.plan, name)
	}
	return b.String()
}

func readCosts() (map[string]cost, error) {
	data, err := os.ReadFile(costsFile)
	if err != nil {
		return nil, err
	}
	out := map[string]cost{}
	for line := range strings.Lines(string(data)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		var c cost
		var name string
		if _, err := fmt.Sscanf(line, "%d %d %d %x %s", &c.evaluations, &c.allocations, &c.binds, &c.plan, &name); err != nil {
			return nil, fmt.Errorf("%s: line %q: %w", costsFile, line, err)
		}
		out[name] = c
	}
	return out, nil
}

// TestCompareCosts shows what the check takes for worse.
func TestCompareCosts(t *testing.T) {
	was := cost{evaluations: 100, allocations: 1000, binds: 3, plan: 7}
	for _, test := range []struct {
		name string
		now  cost
		want string
	}{
		{"the same", was, ""},
		{"less", cost{50, 10, 3, 7}, ""},
		{"within the slack", cost{100, 1100, 3, 7}, ""},
		{"one row more", cost{101, 1000, 3, 7}, "101 evaluations of rows, were 100 (+1.0 %)"},
		{"a tenth and one", cost{100, 1101, 3, 7}, "1101 allocations, were 1000 (+10.1 %)"},
		{"another plan", cost{100, 1000, 3, 8}, "another plan: 3 binds, hash 00000008, were 3, 00000007"},
	} {
		if got := strings.Join(compareCosts(was, test.now), "; "); got != test.want {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
	if got := compareCosts(cost{}, cost{allocations: allocationNoise, evaluations: 1}); !slices.Equal(got,
		[]string{"1 evaluations of rows, were 0"}) {
		t.Errorf("from nothing: %q", got)
	}
}
