package serving

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/celsius-scheduler/celsius/engine/model"
)

// guarded is rightSpec with a rollback.
func guarded(rollback string) string {
	return strings.Replace(rightSpec, `"pipeline"`, `"rollback":`+rollback+`,"pipeline"`, 1)
}

// erred is a cycle in which a row erred so many times.
func erred(count int) *model.Plan {
	return &model.Plan{Errors: []model.RuleError{
		{Site: "scores", Table: "house", Rule: "bad", Count: count, Object: "pod default/a", Text: "division by zero"},
	}}
}

// TestRollbackOfErrors: a policy whose rows err more than it bears is taken back, and stays so after a start; another generation is tried.
func TestRollbackOfErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newPolicyWorld(t)
		p, stop := w.start("default", "celsius")
		w.put("default", rightSpec)
		w.put("default", guarded(`{"rowErrors":3}`))
		p.Observe(p.Current(), erred(3), time.Now())
		synctest.Wait()
		w.check("as many as it bears", serving(p), "default@2 Active")
		w.take()
		p.Observe(p.Current(), erred(1), time.Now())
		time.Sleep(guardLook)
		synctest.Wait()
		why := "serving default@1, because generation 2 was rolled back: its rows erred 4 times, and spec.rollback.rowErrors is 3 (house/bad " +
			"(scores) erred for pod default/a: division by zero); change the policy to have it tried again"
		w.check("one more", serving(p), "default@1 Active")
		w.check("event", w.take(), []string{"Warning PolicyFallback default: " + why})
		w.check("status", strings.Contains(w.status("default"), "Active=False RolledBack: "+why+"\n"), true)
		w.check("status", strings.Contains(w.status("default"), "celsius serves 1\n"), true)
		stop()
		p, stop = w.start("default", "celsius")
		defer func() { stop() }()
		w.check("after a start", serving(p), "default@1 Active")
		w.check("after a start", strings.Contains(w.status("default"), "Active=False RolledBack: "+why+"\n"), true)

		w.put("default", guarded(`{"rowErrors":5}`))
		w.check("changed", serving(p), "default@3 Active")
		w.put("default", guarded(`{"rowErrors":0,"within":"1m"}`))
		time.Sleep(2 * time.Minute)
		p.Observe(p.Current(), erred(9), time.Now())
		synctest.Wait()
		w.check("too late", serving(p), "default@4 Active")
		w.put("default", brokenSpec)
		w.check("what was taken back does not serve in place of another either", serving(p), "default@4 Active")
	})
}

// TestRollbackByMetric: a policy is taken back while a metric that it names is out of the bounds that it names.
func TestRollbackByMetric(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newPolicyWorld(t)
		waiting := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "waiting"}, []string{"queue"})
		took := prometheus.NewHistogram(prometheus.HistogramOpts{Name: "took"})
		w.metrics.MustRegister(waiting, took)
		p, stop := w.start("default", "celsius")
		defer stop()
		w.put("default", rightSpec)
		waiting.WithLabelValues("a").Set(100)
		waiting.WithLabelValues("b").Set(8)
		took.Observe(4)
		look := func(what, want string) {
			t.Helper()
			time.Sleep(guardLook)
			synctest.Wait()
			w.check(what, serving(p), want)
		}
		w.put("default", guarded(`{"metrics":[{"name":"waiting","labels":{"queue":"b"},"above":10,"for":"15s"}]}`))
		look("within bounds", "default@2 Active")
		waiting.WithLabelValues("b").Set(11)
		look("not for long", "default@2 Active")
		waiting.WithLabelValues("b").Set(1)
		look("within again", "default@2 Active")
		waiting.WithLabelValues("b").Set(12)
		for range 3 {
			look("not for long enough", "default@2 Active")
		}
		look("for long", "default@1 Active")
		w.check("said", strings.Contains(w.status("default"), `because generation 2 was rolled back: waiting{queue="b"} is 12, which is `+
			`above 10, for 15s; change the policy`), true)

		w.put("default", guarded(`{"metrics":[{"name":"took_sum","rise":true,"above":3.5}]}`))
		look("as before", "default@3 Active")
		took.Observe(3)
		look("not risen enough", "default@3 Active")
		took.Observe(1)
		look("risen", "default@1 Active")
		w.check("said", strings.Contains(w.status("default"), "took_sum has risen by 4, which is above 3.5; change"), true)

		w.put("default", guarded(`{"metrics":[{"name":"waiting","below":1000}]}`))
		look("below", "default@1 Active")
		w.take()
		w.put("default", guarded(`{"metrics":[{"name":"waitin","above":3}]}`))
		look("unknown", "default@5 Active")
		w.check("told", w.take()[0], `Warning PolicyRollbackInvalid default: spec.rollback.metrics: this scheduler has no metric waitin; did `+
			`you mean "waiting"? (known: took, waiting)`)
	})
}
