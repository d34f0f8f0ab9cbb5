package sim

import (
	"fmt"
	"strings"
	"time"

	"github.com/celsius-scheduler/celsius/engine/explain"
)

// Changes returns how a report differs from the one before it: where and when pods were placed, and which pods and jobs wait for what. It
// returns "" if they do not differ.
func (r *Report) Changes(before *Report) string {
	old, now := before.outcomes(), r.outcomes()
	all := map[string]bool{}
	for what := range old {
		all[what] = true
	}
	for what := range now {
		all[what] = true
	}
	rows := [][]string{{"POD OR JOB", "BEFORE", "NOW"}}
	for _, what := range sortedKeys(all) {
		if old[what] != now[what] {
			rows = append(rows, []string{what, dash(old[what]), dash(now[what])})
		}
	}
	if len(rows) == 1 {
		return ""
	}
	a, b := before.Summary.Cluster, r.Summary.Cluster
	return explain.Columns("", rows) + fmt.Sprintf("\n%s of %s waiting, before %d of %d\n",
		explain.Count(b.Waiting, "pod"), explain.Count(b.WaitingJobs, "job"),
		a.Waiting, a.WaitingJobs)
}

// outcomes returns the outcome of every pod, and why jobs wait, by title.
func (r *Report) outcomes() map[string]string {
	out := map[string]string{}
	for _, d := range r.latestLines {
		if d.verb == "wait" || d.verb == "pipeline" || d.verb == "hold" {
			out[d.what] = strings.TrimSpace(d.verb + " " + d.node + " " + d.why)
		}
	}
	for _, run := range r.Timeline.Pods {
		switch {
		case run.Bound == nil:
			if out[run.Pod] == "" {
				out[run.Pod] = "wait"
			}
		case !r.timed:
			out[run.Pod] = run.Node + evictedFor(&run)
		default:
			out[run.Pod] = run.Node + " " + r.since(run.Bound) + " to " + r.since(run.Ended) + evictedFor(&run)
		}
	}
	return out
}

// evictedFor returns a text with the pod for which a pod was evicted; "": it was not evicted.
func evictedFor(run *PodRun) string {
	if run.Evicted == nil {
		return ""
	}
	return ", evicted for " + run.EvictedFor
}

// since returns the time since the start of the run.
func (r *Report) since(t *time.Time) string {
	if t == nil {
		return "the end"
	}
	return lasted(t.Sub(r.Timeline.From))
}
