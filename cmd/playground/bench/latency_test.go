package bench

import (
	"testing"
	"time"
)

func TestReadStage(t *testing.T) {
	page := []byte(`# HELP celsius_pod_stage_seconds Time.
# TYPE celsius_pod_stage_seconds histogram
celsius_pod_stage_seconds_bucket{stage="bound",le="0.001"} 7
celsius_pod_stage_seconds_bucket{stage="gathered",le="0.001"} 40
celsius_pod_stage_seconds_bucket{stage="gathered",le="0.002"} 98
celsius_pod_stage_seconds_bucket{stage="gathered",le="0.004"} 100
celsius_pod_stage_seconds_bucket{stage="gathered",le="+Inf"} 100
celsius_pod_stage_seconds_sum{stage="gathered"} 0.12
celsius_pod_stage_seconds_count{stage="gathered"} 100
`)
	if got, want := readStage(page, "gathered").String(), "mean 1.2ms; half within 2ms, 90% within 2ms, 99% within 4ms"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got := readStage(page, "queued"); got.n != 0 || got.within(0.5) != 0 {
		t.Errorf("a stage that is not there: %v", got)
	}
}

func TestBetween(t *testing.T) {
	start := time.Unix(0, 0)
	from, to := map[string]time.Time{}, map[string]time.Time{}
	for i := range 101 {
		name := string(rune('a' + i))
		from[name], to[name] = start, start.Add(time.Duration(i)*time.Millisecond)
	}
	if got, want := between(from, to).String(), "p10 10ms, p50 50ms, p90 90ms, p99 99ms, at most 100ms"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got := between(nil, nil).at(0.5); got != 0 {
		t.Errorf("of no pods: %s", got)
	}
}
