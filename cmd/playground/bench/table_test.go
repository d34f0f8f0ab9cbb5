package bench

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

func TestTable(t *testing.T) {
	var x table
	x.add("pods", "s", "ratio")
	x.add("Celsius, gangs", 12.345, orNone(0))
	x.add("bare", 0.0, 1234.5)
	want := "pods               s  ratio\n" +
		"Celsius, gangs  12.3      -\n" +
		"bare               0   1234\n"
	if got := x.String(); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

func TestWrap(t *testing.T) {
	items := strings.TrimSuffix(strings.Repeat("post pods/binding 1.000, ", 12), ", ")
	got := wrap("  calls: ", items)
	lines := strings.Split(got, "\n")
	if len(lines) != 3 || !strings.HasPrefix(lines[1], "         post") {
		t.Errorf("got\n%s", got)
	}
	for _, line := range lines {
		if n := utf8.RuneCountInString(line); n > width {
			t.Errorf("%d columns: %s", n, line)
		}
	}
	if joined := strings.Join(strings.Fields(got), " "); joined != "calls: "+items {
		t.Errorf("not all is there: %s", joined)
	}
}

// runsOf returns one result for each given time. Each has 1000 pods.
func runsOf(drained ...time.Duration) (out []result) {
	for _, d := range drained {
		out = append(out, result{
			pods: 1000, bound: d / 2, drained: d, used: usage{d, []time.Duration{d / 10}}, calls: requests{"post events": 1000},
		})
	}
	return out
}

func TestResults(t *testing.T) {
	took := results{
		{celsius, gangs}:       runsOf(time.Second, 4*time.Second, 2*time.Second),
		{celsius, singles}:     runsOf(time.Second, time.Second, time.Second),
		{loop, gangs}:          runsOf(time.Second, 2*time.Second, time.Second),
		{loop, singles}:        runsOf(time.Second, time.Second, time.Second),
		{watcher, gangs}:       runsOf(time.Second, 4*time.Second, 2*time.Second),
		{watcher, singles}:     runsOf(time.Second, time.Second, time.Second),
		{KubeScheduler, plain}: runsOf(4*time.Second, 4*time.Second, 4*time.Second),
	}
	if got := took.ratio(entry{celsius, gangs}, entry{loop, gangs}, result.drainedRate); got != 0.5 {
		t.Errorf("median of 1, 0.5 and 0.5: %g", got)
	}
	if got := took.median(entry{celsius, gangs}, result.own); got != 0.2 {
		t.Errorf("median of 0.1, 0.4 and 0.2 ms: %g", got)
	}
	waited := []steadyResult{
		{celsius, waits{time.Second}, runsOf(time.Second)[0]}, {KubeScheduler, waits{time.Second}, runsOf(time.Second)[0]},
	}
	text, missed := tableOfTargets(append(steadyTargets(waited), backlogTargets(took)...))
	for line := range strings.Lines(text.String()) {
		if utf8.RuneCountInString(line) > width+1 {
			t.Errorf("too long: %s", line)
		}
	}
	for _, want := range []string{
		"pods/s drained, to kube-scheduler, gangs                             500          250   2.00     >= 3   MISSED",
		"pods/s drained, to kube-scheduler, singles                          1000          250   4.00     >= 3  reached",
		"p99 ms at a steady rate, to kube-scheduler                          1000         1000   1.00   <= 1.5  reached",
	} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("there is no\n%s\nin\n%s", want, text)
		}
	}
	if missed != 1 {
		t.Errorf("%d missed:\n%s", missed, text)
	}
	const want = "500 pods/s drained: bare loop 0.50, watch and bind 1.00, kube-scheduler 2.00; p50 1000 ms, p99 1000 ms; "
	if got := summary(took, waited); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got := summary(nil, nil); got != "" {
		t.Errorf("of nothing: %s", got)
	}
}
