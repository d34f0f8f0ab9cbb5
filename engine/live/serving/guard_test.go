package serving

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/celsius-scheduler/celsius/engine/model"
)

// guarded returns rightSpec with rollback conditions.
func guarded(rollback string) string {
	return strings.Replace(rightSpec, `"pipeline"`, `"rollback":`+rollback+`,"pipeline"`, 1)
}

// erred returns a plan in which a row failed this number of times.
func erred(count int) *model.Plan {
	return &model.Plan{Errors: []model.RuleError{
		{Site: "scores", Table: "house", Rule: "bad", Count: count, Object: "pod default/a", Text: "division by zero"},
	}}
}

// TestRollbackOfErrors checks that a policy with more errors than it tolerates is rolled back, also after a restart. A new generation is
// tried.
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
		p.Observe(p.Current(), &model.Plan{}, time.Now())
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

// look waits until the serving policy was checked for a rollback.
func look() {
	time.Sleep(guardLook)
	synctest.Wait()
}

// TestRollbackByMetric checks that a policy is rolled back while a metric is out of the policy's bounds.
func TestRollbackByMetric(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newPolicyWorld(t)
		waiting := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "waiting"}, []string{"queue"})
		took := prometheus.NewHistogram(prometheus.HistogramOpts{Name: "took"})
		w.metrics.MustRegister(waiting, took)
		p, stop := w.start("default", "celsius")
		defer stop()
		p.Observe(p.Current(), &model.Plan{}, time.Now())
		w.put("default", rightSpec)
		waiting.WithLabelValues("a").Set(100)
		waiting.WithLabelValues("b").Set(8)
		took.Observe(4)
		look := func(what, want string) {
			t.Helper()
			look()
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
	})
}

// TestRollbackWithoutSeries checks that a metric without series is within all bounds. A metric that can never have a series is reported
// once.
func TestRollbackWithoutSeries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newPolicyWorld(t)
		waiting := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "waiting"}, []string{"queue"})
		errs := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "errors"}, []string{"of"})
		w.metrics.MustRegister(waiting, errs, prometheus.NewHistogram(prometheus.HistogramOpts{Name: "took"}))
		p, stop := w.start("default", "celsius")
		defer stop()
		p.Observe(p.Current(), &model.Plan{}, time.Now())
		w.put("default", rightSpec)
		w.put("default", guarded(`{"metrics":[{"name":"waiting","labels":{"queue":"lib"},"below":5},{"name":"errors","above":3,"rise":true}]}`))
		waiting.WithLabelValues("lab").Set(7)
		for range 5 {
			look()
		}
		w.check("no such series", serving(p), "default@2 Active")
		errs.WithLabelValues("x").Add(4)
		look()
		w.check("one that came later has risen from 0", serving(p), "default@1 Active")
		waiting.WithLabelValues("lib").Set(4)
		for metric, says := range map[string]string{
			`{"name":"waitin","above":3}`: `this scheduler has no metric waitin; did you mean "waiting"? (known: ` +
				"errors, took, waiting)",
			`{"name":"waiting_sum","above":3}`:                      `this scheduler has no metric waiting_sum; known: errors, took, waiting`,
			`{"name":"took","below":3}`:                             `metric took has no value of its own; write took_count or took_sum`,
			`{"name":"took_count","above":3,"labels":{"of":"a"}}`:   `metric took_count has no labels; leave out labels`,
			`{"name":"took_count","above":3}`:                       "", // the remedies of the two above
			`{"name":"took_sum","above":3}`:                         "",
			`{"name":"waiting","below":5,"labels":{"queu":"lib"}}`:  `metric waiting has no label "queu"; did you mean "queue"? (known: queue)`,
			`{"name":"waiting","below":3,"labels":{"queue":"lib"}}`: "",
		} {
			w.put("default", guarded(`{"metrics":[`+metric+`]}`))
			for range 3 {
				look()
			}
			w.check(metric, strings.Contains(w.status("default"), "Active=True"), true)
			want := []string{}
			if says != "" {
				want = []string{"Warning PolicyRollbackInvalid default: spec.rollback.metrics: " + says}
			}
			w.check(metric, slices.DeleteFunc(w.take(), func(s string) bool { return !strings.Contains(s, "RollbackInvalid") }), want)
		}
	})
}

// TestRollbackBeginsWithCycles checks that a starting scheduler without measurements rolls back nothing, and that no increase counts from
// then.
func TestRollbackBeginsWithCycles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newServedWorld(t, rightSpec, guarded(`{"metrics":[{"name":"nodes","below":5},{"name":"bound","above":100,"rise":true}]}`))
		nodes, bound := prometheus.NewGauge(prometheus.GaugeOpts{Name: "nodes"}), prometheus.NewGauge(prometheus.GaugeOpts{Name: "bound"})
		w.metrics.MustRegister(nodes, bound)
		p, stop := w.start("default", "celsius")
		defer stop()
		for range 10 {
			look()
			w.settle()
		}
		w.check("before the first cycle", serving(p), "default@2 Active")
		nodes.Set(9)
		bound.Set(500)
		p.Observe(p.Current(), &model.Plan{}, time.Now())
		synctest.Wait()
		look()
		w.check("after it", serving(p), "default@2 Active")
		bound.Set(601)
		look()
		w.check("risen since", serving(p), "default@1 Active")
	})
}

// TestRollbackEnds checks that the replacement of a rolled back policy is not guarded. A policy that has passed is not checked again, also
// after a restart.
func TestRollbackEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newPolicyWorld(t)
		waiting := prometheus.NewGauge(prometheus.GaugeOpts{Name: "waiting"})
		w.metrics.MustRegister(waiting)
		p, stop := w.start("default", "celsius")
		p.Observe(p.Current(), &model.Plan{}, time.Now())
		const says = `{"within":"1m","rowErrors":0,"metrics":[{"name":"waiting","above":10}]}`
		for range 3 {
			w.put("default", guarded(says))
		}
		waiting.Set(11)
		for range 5 {
			look()
		}
		w.check("the last of three", serving(p), "default@2 Active")
		p.Observe(p.Current(), erred(1), time.Now())
		look()
		w.check("errors of what serves in its place", serving(p), "default@2 Active")

		waiting.Set(1)
		w.put("default", guarded(says))
		for range 13 {
			look()
		}
		w.check("annotation", p.kept.of(p.serving).Annotations[annotationPassed], "1m0s")
		if p.nextLook() == nil {
			t.Error("it is on trial yet")
		}
		waiting.Set(11)
		for range 2 {
			look()
			w.check("passed", serving(p), "default@4 Active")
			stop()
			p, stop = w.start("default", "celsius")
			p.Observe(p.Current(), erred(1), time.Now())
		}
		w.put("default", guarded(says))
		w.check("another generation", serving(p), "default@4 Active")
		stop()
	})
}
