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

// costsFile holds the costs of the workloads when it was last written.
const costsFile = "testdata/costs.txt"

// heapSlack is the part by which allocations and bytes may differ. The noises are absolute numbers that may differ in any case. Maps and
// pools do not allocate equally in each run.
const (
	heapSlack       = 0.01
	allocationNoise = 20
	byteNoise       = 16 << 10
)

// cost is the cost of one cycle. It contains no time, so it is the same on every machine.
type cost struct {
	evaluations uint64
	allocations uint64
	bytes       uint64
	binds       int
	plan        digests
}

// costed returns the workloads of the benchmarks at a tenth of their size, by name. Each function prepares a world, and returns what to
// measure.
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
	for _, s := range []takingShape{{100, 40, pods}, {100, 40, lower}, {100, 40, tooFew}, {100, 10, anyOne}} {
		out["take/"+s.String()] = func() (*scene, func()) { return s.cold(t, takingPolicy(t, takePods)) }
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

// measureCost runs a workload once, on one processor. The garbage collector is off, because it allocates too.
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
	return cost{
		x.evaluations() - evaluated, after.Mallocs - before.Mallocs, after.TotalAlloc - before.TotalAlloc,
		len(x.plan.Binds), digestsOf(t, x.plan),
	}
}

// TestCosts runs small versions of the benchmarks' workloads, and compares them with testdata/costs.txt. Evaluations of rows, bindings and
// digests must be equal. Allocations and bytes may differ by one percent.
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
			is.allocations, is.bytes = was.allocations, was.bytes // pools drop their contents at random
		}
		for _, complaint := range compareCosts(was, is) {
			t.Errorf("%s: %s", name, complaint)
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

// raced reports whether the race detector is on.
func raced() bool {
	info, _ := debug.ReadBuildInfo()
	return info != nil && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}

// compareCosts returns the differences.
func compareCosts(was, now cost) []string {
	var out []string
	if now.evaluations != was.evaluations {
		out = append(out, fmt.Sprintf("%d evaluations of rows, were %d%s", now.evaluations, was.evaluations,
			growth(was.evaluations, now.evaluations)))
	}
	if differs(was.allocations, now.allocations, allocationNoise) {
		out = append(out, fmt.Sprintf("%d allocations, were %d%s", now.allocations, was.allocations, growth(was.allocations, now.allocations)))
	}
	if differs(was.bytes, now.bytes, byteNoise) {
		out = append(out, fmt.Sprintf("%d bytes, were %d%s", now.bytes, was.bytes, growth(was.bytes, now.bytes)))
	}
	if now.binds != was.binds || now.plan.decisions != was.plan.decisions {
		out = append(out, fmt.Sprintf("other decisions: %d binds, digest %08x, were %d, %08x", now.binds, now.plan.decisions, was.binds,
			was.plan.decisions))
	}
	if now.plan.texts != was.plan.texts && now.plan.decisions == was.plan.decisions {
		out = append(out, fmt.Sprintf("other texts: digest %08x, was %08x", now.plan.texts, was.plan.texts))
	}
	return out
}

// differs reports whether amounts of the heap differ by more than they do from run to run.
func differs(was, now, noise uint64) bool {
	return max(was, now)-min(was, now) > max(uint64(heapSlack*float64(was)), noise)
}

func growth(was, now uint64) string {
	if was == 0 {
		return ""
	}
	return fmt.Sprintf(" (%+.1f %%)", 100*(float64(now)/float64(was)-1))
}

const costsHead = `# What one cycle of the benchmarks' workloads costs, at a tenth of their size, and digests of its plan.
# go test ./engine -run '^TestCosts$' -update writes this file.
# evaluations allocations bytes binds decisions texts workload
`

func writeCosts(costs map[string]cost) string {
	var b strings.Builder
	b.WriteString(costsHead)
	for _, name := range slices.Sorted(maps.Keys(costs)) {
		c := costs[name]
		fmt.Fprintf(&b, "%8d %8d %9d %5d %08x %08x %s\n", c.evaluations, c.allocations, c.bytes, c.binds, c.plan.decisions, c.plan.texts, name)
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
		if _, err := fmt.Sscanf(line, "%d %d %d %d %x %x %s", &c.evaluations, &c.allocations, &c.bytes, &c.binds, &c.plan.decisions,
			&c.plan.texts, &name); err != nil {
			return nil, fmt.Errorf("%s: line %q: %w", costsFile, line, err)
		}
		out[name] = c
	}
	return out, nil
}

// TestCompareCosts checks which differences the comparison reports.
func TestCompareCosts(t *testing.T) {
	was := cost{100, 10_000, 1_000_000 << 10, 3, digests{7, 8}}
	for _, test := range []struct {
		name   string
		change func(c *cost)
		want   string
	}{
		{"the same", func(*cost) {}, ""},
		{"within one percent", func(c *cost) { c.allocations, c.bytes = 10_100, 990_000<<10 }, ""},
		{"one evaluation more", func(c *cost) { c.evaluations++ }, "101 evaluations of rows, were 100 (+1.0 %)"},
		{"one evaluation fewer", func(c *cost) { c.evaluations-- }, "99 evaluations of rows, were 100 (-1.0 %)"},
		{"one percent and one", func(c *cost) { c.allocations = 10_101 }, "10101 allocations, were 10000 (+1.0 %)"},
		{"fewer bytes", func(c *cost) { c.bytes = 980_000 << 10 }, "1003520000 bytes, were 1024000000 (-2.0 %)"},
		{"other decisions", func(c *cost) { c.plan = digests{9, 9} }, "other decisions: 3 binds, digest 00000009, were 3, 00000007"},
		{"a binding more", func(c *cost) { c.binds++ }, "other decisions: 4 binds, digest 00000007, were 3, 00000007"},
		{"other texts", func(c *cost) { c.plan.texts++ }, "other texts: digest 00000009, was 00000008"},
	} {
		now := was
		test.change(&now)
		if got := strings.Join(compareCosts(was, now), "; "); got != test.want {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
	if got := compareCosts(cost{}, cost{allocations: allocationNoise, evaluations: 1}); !slices.Equal(got,
		[]string{"1 evaluations of rows, were 0"}) {
		t.Errorf("from nothing: %q", got)
	}
}
