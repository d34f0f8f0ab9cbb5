package sim

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/celsius-scheduler/celsius/engine/policy"
)

// TestUseOverTime checks the use of resources over time, of the cluster and of queues. The use of a freed resource falls to zero. The use
// of a resource that is used late begins with zero. Means cover the whole run.
func TestUseOverTime(t *testing.T) {
	t.Parallel()
	w := newTestWorld(t, `
apiVersion: sim.celsius.dev/v1alpha1
kind: World
nodes: [{name: n1, cpu: 16, memory: 64Gi, extended: {example.com/fpga: 8, example.com/nic: 4}}]
queues: [{name: research}]
jobs:
- {name: early, cpu: 1, queue: research, run: 1h, extended: {example.com/fpga: 8}}
- {name: late, cpu: 1, queue: research, run: 2h, comes: 5h, extended: {example.com/nic: 2}}
`)
	p, issues := policy.Default()
	if issues.Err() != nil {
		t.Fatal(issues)
	}
	w.Policy = p
	report, err := w.RunFor(RunOptions{Until: w.Now().Add(10 * time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{}
	for _, queue := range []string{"", "research"} {
		want[queue+"/example.com/fpga"] = "mean 0.8 of 10 %, peak 8 of 100 %: 0h 8/8, 1h 0/8"
		want[queue+"/example.com/nic"] = "mean 0.4 of 10 %, peak 2 of 50 %: 0h 0/4, 5h 2/4, 7h 0/4"
	}
	for i := range report.Timeline.Use {
		u := &report.Timeline.Use[i]
		key := u.Queue + "/" + u.Resource
		if want[key] == "" {
			continue
		}
		got := fmt.Sprintf("mean %s of %g %%, peak %s of %g %%", u.Mean, u.MeanPercent, u.Peak, u.PeakPercent)
		sign := ":"
		for _, p := range u.Points {
			got += fmt.Sprintf("%s %.0fh %g/%g", sign, p.At.Sub(report.Timeline.From).Hours(), p.Used, p.Total)
			sign = ","
		}
		if got != want[key] {
			t.Errorf("%s: %s, want %s", key, got, want[key])
		}
		delete(want, key)
	}
	if len(want) > 0 {
		t.Errorf("nothing is told of %v", want)
	}
	for _, line := range []string{"example.com/fpga  0     8     0%       10%   100%", "example.com/nic   0     4     0%       10%   50%"} {
		if text := report.Text(false); !strings.Contains(text, line) {
			t.Errorf("the report says\n%s\nwant the line %s", text, line)
		}
	}
}
