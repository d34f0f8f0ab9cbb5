package controller

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "github.com/celsius-scheduler/celsius/crds/batch/v1alpha1"
	"github.com/celsius-scheduler/celsius/crds/informers"
	"github.com/celsius-scheduler/celsius/engine/live/events"
	"github.com/celsius-scheduler/celsius/engine/live/recovery"
	"github.com/celsius-scheduler/celsius/engine/live/scrape"
)

// metrics are the metrics of the controllers. Each instance has its own.
type metrics struct {
	transitions *prometheus.CounterVec
	retries     prometheus.Counter
	actions     *prometheus.CounterVec
	pods        *prometheus.CounterVec
	commands    *prometheus.CounterVec
	collected   prometheus.Counter
	refusals    prometheus.Counter
	deferred    *prometheus.CounterVec
	flows       *prometheus.CounterVec
	requests    *prometheus.CounterVec
	events      *prometheus.CounterVec
	panics      *prometheus.CounterVec
	leading     prometheus.Gauge
}

// dropped counts an event that is not written.
func (m *metrics) dropped(why string) { m.events.WithLabelValues(why).Inc() }

// Metrics registers all metrics of the controllers without running controllers. The metrics of controller-runtime are not included.
func Metrics(into prometheus.Registerer) error {
	newMetrics(into)
	into.MustRegister(newJobsByPhase(oneJob{}, func(*batchv1alpha1.Job) bool { return true }))
	return informers.Metrics(into)
}

// oneJob returns a single empty Job, so that the metrics have a value.
type oneJob struct{ client.Reader }

// List implements client.Reader.
func (oneJob) List(_ context.Context, into client.ObjectList, _ ...client.ListOption) error {
	into.(*batchv1alpha1.JobList).Items = make([]batchv1alpha1.Job, 1)
	return nil
}

func newMetrics(reg prometheus.Registerer) *metrics {
	m := &metrics{
		transitions: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "celsius_job_transitions_total", Help: "Changes of a job's phase, by the phase that was entered.",
		}, []string{"to"}),
		retries: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "celsius_job_retries_total", Help: "Restarts of jobs, of single tasks and pods as well: what retryCount counts.",
		}),
		actions: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "celsius_job_actions_total", Help: "Actions taken on jobs other than SyncJob, by action and by the event that called for it.",
		}, []string{"action", "event"}),
		pods: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "celsius_job_pods_total",
			Help: "Pods of jobs that the controllers made or deleted, by operation: created, deleted, createFailed, deleteFailed.",
		}, []string{"operation"}),
		commands: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "celsius_commands_total", Help: "Commands taken, by the kind of their target and by action.",
		}, []string{"kind", "action"}),
		collected: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "celsius_jobs_collected_total", Help: "Finished jobs deleted because their ttlSecondsAfterFinished was over.",
		}),
		flows: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "celsius_jobflows_ended_total", Help: "JobFlows that came to their end, by namespace and by the phase that was entered.",
		}, []string{"namespace", "to"}),
		refusals: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "celsius_job_refusals_total", Help: "Reconciles of a job that ended because the API server refused an object of it.",
		}),
		deferred: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "celsius_status_writes_deferred_total",
			Help: "Status writes that were deferred because the same object was written too often, by kind.",
		}, []string{"kind"}),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: scrape.Requests, Help: scrape.RequestsHelp,
		}, []string{"verb", "resource"}),
		events:  prometheus.NewCounterVec(prometheus.CounterOpts{Name: events.Dropped, Help: events.DroppedHelp}, []string{"why"}),
		panics:  recovery.NewCounter(reg, recovery.Reconciler),
		leading: scrape.NewLeading(reg, "controllers"),
	}
	reg.MustRegister(m.transitions, m.retries, m.actions, m.pods, m.commands, m.collected, m.refusals,
		m.deferred, m.flows, m.requests, m.events)
	return m
}

// jobsByPhase counts the jobs in the cache at each scrape.
type jobsByPhase struct {
	reader client.Reader
	serves func(*batchv1alpha1.Job) bool
	desc   *prometheus.Desc
}

func newJobsByPhase(reader client.Reader, serves func(*batchv1alpha1.Job) bool) jobsByPhase {
	return jobsByPhase{reader, serves, prometheus.NewDesc("celsius_jobs", "Jobs of our scheduler names, by phase.", []string{"phase"}, nil)}
}

// Describe describes the one metric.
func (c jobsByPhase) Describe(ch chan<- *prometheus.Desc) { ch <- c.desc }

// Collect counts the jobs. It reports nothing while the cache is not filled.
func (c jobsByPhase) Collect(ch chan<- prometheus.Metric) {
	jobs := &batchv1alpha1.JobList{}
	if err := c.reader.List(context.Background(), jobs); err != nil {
		return
	}
	byPhase := map[batchv1alpha1.JobPhase]int{}
	for i := range jobs.Items {
		if c.serves(&jobs.Items[i]) {
			byPhase[jobPhase(&jobs.Items[i])]++
		}
	}
	for phase, n := range byPhase {
		ch <- prometheus.MustNewConstMetric(c.desc, prometheus.GaugeValue, float64(n), string(phase))
	}
}
