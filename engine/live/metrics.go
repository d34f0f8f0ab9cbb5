package live

import (
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/celsius-scheduler/celsius/crds/informers"
	"github.com/celsius-scheduler/celsius/engine/live/events"
	"github.com/celsius-scheduler/celsius/engine/live/outbox"
	"github.com/celsius-scheduler/celsius/engine/live/recovery"
	"github.com/celsius-scheduler/celsius/engine/live/scrape"
	"github.com/celsius-scheduler/celsius/engine/live/shadow"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/engine/session"
)

// metrics contains the metrics of one scheduler. They have their own registry, because several schedulers may run in one process.
type metrics struct {
	registry *prometheus.Registry

	cycles        prometheus.Counter
	cycleDuration prometheus.Histogram
	decisions     *prometheus.CounterVec
	rows
	instead        *prometheus.GaugeVec
	unreadable     prometheus.Counter
	panics         *prometheus.CounterVec
	binds          *prometheus.CounterVec
	actionDuration *prometheus.HistogramVec
	bindDuration   *prometheus.HistogramVec
	stages         stages
	bindWait       prometheus.Histogram
	gangWait       prometheus.Histogram
	evictions      *prometheus.CounterVec
	checks         checks
	extenders      extenders
	shadows        *shadow.Meter
	pendingPods    prometheus.Gauge
	podGroups      *prometheus.GaugeVec
	writesWaiting  *prometheus.GaugeVec
	eventsDropped  *prometheus.CounterVec
	writesAtOnce   prometheus.Gauge
	requests       *prometheus.CounterVec
	queues         map[string]*prometheus.GaugeVec // allocated, capability, deserved, pending
	queueShare     *prometheus.GaugeVec
	waiting        waitingJobs
	leading        prometheus.Gauge
	policy         *prometheus.GaugeVec
	known          map[string]bool // queues that have series

	session   *session.Session // the session whose evaluations were counted last
	evaluated map[*policy.Rule]uint64
}

// rows contains metrics about the rows of the policy.
type rows struct {
	evaluations *prometheus.CounterVec
	ruleErrors  *prometheus.CounterVec
	overBudget  *prometheus.CounterVec
}

// waitingJobs contains metrics about jobs that have not started.
type waitingJobs struct {
	stale  bool // the plan changed since the jobs were last counted
	count  *prometheus.GaugeVec
	oldest *prometheus.GaugeVec
}

// stages observe the time that each stage takes between the first sight of a pod and its binding.
type stages struct{ gathered, decided, queued, bound prometheus.Observer }

// checks contains metrics about checks of decided evictions.
type checks struct {
	plans, wrong *prometheus.CounterVec // by result; by kind
	took         prometheus.Histogram
}

// extenders contains metrics about requests to extenders, and about the age of their answers.
type extenders struct {
	asked  *prometheus.CounterVec
	took   *prometheus.HistogramVec
	age    *prometheus.HistogramVec
	noRoom *prometheus.CounterVec
}

// Asked implements asks.Meter.
func (x extenders) Asked(server, form, outcome string, took time.Duration) {
	x.asked.WithLabelValues(server, form, outcome).Inc()
	x.took.WithLabelValues(server, form).Observe(took.Seconds())
}

// Replaced implements asks.Meter.
func (x extenders) Replaced(server, form string, age time.Duration) {
	x.age.WithLabelValues(server, form).Observe(max(age.Seconds(), 0))
}

// NoRoom implements asks.Meter.
func (x extenders) NoRoom(server, form string) { x.noRoom.WithLabelValues(server, form).Inc() }

func newExtenders(in registry) extenders {
	return extenders{
		asked: in.counters("celsius_extender_requests_total", "Requests to extenders, by server, form of the question (predicate, prioritize, "+
			"jobEnqueueable, jobReady, queueOverused) and outcome: answered, wrong (another status than 200, or what cannot be read), late (not "+
			"within the timeout), unreached (no connection, or it broke).", "extender", "form", "outcome"),
		took: in.histograms("celsius_extender_request_duration_seconds",
			"Time that a request to an extender took, however it ended, by server and form of the question, in seconds.",
			prometheus.ExponentialBuckets(0.001, 2, 17), "extender", "form"),
		age: in.histograms("celsius_extender_answer_age_seconds", "How old an answer of an extender was when another took its place, by server "+
			"and form of the question, in seconds: more than refreshAfter where it is asked too much, or answers slowly; who it is about waits "+
			"from staleAfter on.", prometheus.ExponentialBuckets(0.25, 2, 12), "extender", "form"),
		noRoom: in.counters("celsius_extender_questions_postponed_total", "Questions that were left to a later cycle, as too many waited for "+
			"the server, by server and form of the question.", "extender", "form"),
	}
}

func newStages(by *prometheus.HistogramVec) stages {
	return stages{by.WithLabelValues("gathered"), by.WithLabelValues("decided"), by.WithLabelValues("queued"), by.WithLabelValues("bound")}
}

// newMetrics returns the metrics of one scheduler and of its process.
func newMetrics() *metrics {
	m := &metrics{registry: prometheus.NewRegistry(), known: map[string]bool{}}
	m.register(registry{m.registry})
	m.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// Metrics registers all metrics of a scheduler without a scheduler, except those of its process.
func Metrics(into prometheus.Registerer) error {
	(&metrics{}).register(registry{into})
	return informers.Metrics(into)
}

// registry registers the metrics that it creates.
type registry struct{ prometheus.Registerer }

func (m *metrics) register(in registry) {
	m.cycles = in.counter("celsius_cycles_total", "Scheduling cycles.")
	m.cycleDuration = in.histogram("celsius_cycle_duration_seconds", "Time that deciding took in a cycle, in seconds.",
		prometheus.ExponentialBuckets(0.0005, 2, 16))
	m.decisions = in.counters("celsius_decisions_total",
		"Decisions by kind (admit, bind, evict, pipeline, hold) and the action that made them. Pipelines and holds are made anew each cycle.",
		"kind", "action")
	m.evaluations = in.counters("celsius_evaluations_total",
		"Evaluations by row of the policy; what is remembered is not evaluated. Keys of orders are not counted.", "site", "table", "rule")
	m.ruleErrors = in.counters("celsius_rule_errors_total", "Evaluations that erred, by row of the policy.", "site", "table", "rule")
	m.overBudget = in.counters("celsius_rule_over_budget_total",
		"Evaluations that erred because they exceeded the row's budget, or because its steps of the cycle were used up, by row of the policy.",
		"site", "table", "rule")
	m.instead = in.gaugesBy("celsius_policy_served_instead",
		"1 where another policy than the stored one is served, by the reason of the stored one's condition Active.", "reason")
	m.unreadable = in.counter("celsius_unreadable_objects_total", "Objects, or fields of them, that could not be read.")
	m.panics = recovery.NewCounter(in, recovery.Intake, recovery.Cycle, recovery.Look, recovery.Verifier, recovery.Status, recovery.Worker)
	m.binds = in.counters("celsius_binds_total", "Tries to bind a pod, by result: bound, refused, gone (the pod is not there, or bound "+
		"elsewhere), unknown (tried again), unsent (the lease had not been renewed in time; tried again).", "result")
	m.actionDuration = in.histograms("celsius_action_duration_seconds",
		"Time that an action of the pipeline took in a cycle, by action, in seconds.", prometheus.ExponentialBuckets(0.0001, 2, 18), "action")
	m.bindDuration = in.histograms("celsius_bind_duration_seconds",
		"Time that a try to bind a pod took at the API server, by result, in seconds.", prometheus.ExponentialBuckets(0.0005, 2, 16), "result")
	m.stages = newStages(in.histograms("celsius_pod_stage_seconds", "Time that pods spend in each stage of their way to a node, in seconds: "+
		"gathered (from when the scheduler sees a pod that can be decided on to the start of the cycle that takes it in), "+
		"decided (from the start of the cycle that places it until its binding stands in line), queued (until a worker sends it, after its "+
		"volumes where it has some), bound (until it is known to be bound).",
		prometheus.ExponentialBuckets(0.0005, 2, 18), "stage"))
	m.bindWait = in.histogram("celsius_pod_wait_seconds",
		"Time from a pod's creation to its binding, in seconds. Creations are known to the second.", prometheus.ExponentialBuckets(0.005, 2, 20))
	m.gangWait = in.histogram("celsius_gang_wait_seconds",
		"Time from a PodGroup's creation until its minMember pods were bound, in seconds. Creations are known to the second.",
		prometheus.ExponentialBuckets(0.01, 2, 20))
	m.evictions = in.counters("celsius_evictions_total", "Tries to evict a pod, by the action that decided it, the first row that lets the "+
		"pod go, and result: evicted, refused (it stays, say by a disruption budget), gone (it was on its way out already), unknown (tried "+
		"again), unsent (the lease had not been renewed in time; tried again). Without an action, of gangs that are given up.",
		"action", "table", "row", "result")
	m.checks = checks{
		plans: in.counters("celsius_eviction_checks_total", "Plans that evict, by what became of their check: whole, part (there was no time "+
			"for the rest), not (there was no time for any of it).", "result"),
		wrong: in.counters("celsius_eviction_violations_total", "What does not hold of evictions by a check after they were decided, by kind.",
			"kind"),
		took: in.histogram("celsius_eviction_check_duration_seconds",
			"Time for which the check of a plan that evicts held up its cycle, in seconds.", prometheus.ExponentialBuckets(0.0005, 2, 16)),
	}
	m.extenders = newExtenders(in)
	m.shadows = shadow.NewMeter(in)
	m.pendingPods = in.gauge("celsius_pending_pods", "Pods of this scheduler that wait for a node.")
	m.podGroups = in.gaugesBy("celsius_podgroups", "PodGroups of this scheduler, by queue and phase.", "queue", "phase")
	m.writesWaiting = in.gaugesBy("celsius_writes_waiting", "Writes to the API server that wait for a worker, by class.", "class")
	m.writesAtOnce = in.gauge("celsius_writes_at_once",
		"How many writes to the API server may be under way at once now: fewer while it answers slowly.")
	m.eventsDropped = in.counters(events.Dropped, events.DroppedHelp, "why")
	m.requests = in.counters(scrape.Requests, scrape.RequestsHelp, "verb", "resource")
	m.queues = map[string]*prometheus.GaugeVec{}
	for name, help := range map[string]string{
		"allocated": "What a queue's pods hold", "capability": "What a queue may hold at most, where it says so",
		"deserved": "What a queue is due by the policy, where that says",
		"pending":  "What a queue's pods that wait ask for",
	} {
		m.queues[name] = in.gaugesBy("celsius_queue_"+name, help+", by resource: cores, bytes, else numbers.", "queue", "resource")
	}
	m.queueShare = in.gaugesBy("celsius_queue_share",
		"Dominant share of what a queue is due that it holds, where the policy says what that is: over 1 it holds more.", "queue")
	m.waiting = waitingJobs{
		count: in.gaugesBy("celsius_waiting_jobs", "Jobs that have not started, by queue and by the row for which they wait: that of the first "+
			"of their pods that has one of its own, and of those that refuse nodes the one that refuses most.", "queue", "table", "rule"),
		oldest: in.gaugesBy("celsius_waiting_job_oldest_timestamp_seconds",
			"When the oldest job of a queue was made that has not started, in seconds since 1970.", "queue"),
	}
	m.policy = in.gaugesBy("celsius_policy_generation", "The generation of the policy that is obeyed, by its name.", "policy")
	m.leading = scrape.NewLeading(in, "scheduler")
}

// dropped counts an event that is not written.
func (m *metrics) dropped(why string) { m.eventsDropped.WithLabelValues(why).Inc() }

func (in registry) counter(name, help string) prometheus.Counter {
	return promauto.With(in).NewCounter(prometheus.CounterOpts{Name: name, Help: help})
}

func (in registry) counters(name, help string, labels ...string) *prometheus.CounterVec {
	return promauto.With(in).NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
}

func (in registry) gauge(name, help string) prometheus.Gauge {
	return promauto.With(in).NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
}

func (in registry) gaugesBy(name, help string, labels ...string) *prometheus.GaugeVec {
	return promauto.With(in).NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels)
}

func (in registry) histogram(name, help string, buckets []float64) prometheus.Histogram {
	return promauto.With(in).NewHistogram(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets})
}

func (in registry) histograms(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	return promauto.With(in).NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels)
}

// bind counts one try. Any goroutine may call it.
func (m *metrics) bind(r result, took time.Duration) {
	m.binds.WithLabelValues(string(r)).Inc()
	m.bindDuration.WithLabelValues(string(r)).Observe(took.Seconds())
}

// evict counts one try. Any goroutine may call it.
func (m *metrics) evict(e *eviction, r result) {
	m.evictions.WithLabelValues(e.Action, e.Reason.Table, e.Reason.Rule, string(r)).Inc()
}

// cycle counts the decisions of a cycle.
func (m *metrics) cycle(took time.Duration, plan *model.Plan) {
	m.cycles.Inc()
	m.cycleDuration.Observe(took.Seconds())
	if n := len(plan.Admits); n > 0 {
		m.decisions.WithLabelValues("admit", "").Add(float64(n))
	}
	for kind, binds := range map[string][]model.Bind{"bind": plan.Binds, "pipeline": plan.Pipelines, "hold": plan.Holds} {
		for i := range binds {
			m.decisions.WithLabelValues(kind, binds[i].Action).Inc()
		}
	}
	for i := range plan.Evicts {
		m.decisions.WithLabelValues("evict", plan.Evicts[i].Action).Inc()
	}
	for i := range plan.Errors {
		e := &plan.Errors[i]
		m.ruleErrors.WithLabelValues(e.Site, e.Table, e.Rule).Add(float64(e.Count))
		if e.OverBudget > 0 {
			m.overBudget.WithLabelValues(e.Site, e.Table, e.Rule).Add(float64(e.OverBudget))
		}
	}
}

// servedInstead records why another policy than the stored one is served; "": the stored one is served.
func (m *metrics) servedInstead(reason string) {
	m.instead.Reset()
	if reason != "" {
		m.instead.WithLabelValues(reason).Set(1)
	}
}

// gauges updates the gauges that are read from the model. Only the loop may call it.
func (m *metrics) gauges(l *loop) {
	session := l.decider.Session()
	if session != nil {
		if session != m.session {
			m.session, m.evaluated = session, map[*policy.Rule]uint64{}
			m.policy.Reset()
			m.policy.WithLabelValues(session.Policy().Name).Set(float64(session.Policy().Generation))
		}
		for _, site := range policy.Sites() {
			for _, r := range session.Policy().Rules(site.Name) {
				n := session.Evaluated(r)
				m.evaluations.WithLabelValues(site.Name, r.Table, r.Name).Add(float64(n - m.evaluated[r]))
				m.evaluated[r] = n
			}
		}
	}
	m.pendingPods.Set(float64(len(l.statuses.waits)))
	for c, n := range l.outbox.Depths() {
		m.writesWaiting.WithLabelValues(outbox.Class(c).String()).Set(float64(n))
	}
	m.writesAtOnce.Set(float64(l.outbox.AtOnce()))
	m.forgetQueues(l.cluster)
	for name, q := range l.cluster.Queues {
		m.known[name] = true
		for _, phase := range []string{model.PhasePending, model.PhaseInqueue, model.PhaseRunning, model.PhaseUnknown, model.PhaseCompleted} {
			m.podGroups.WithLabelValues(name, phase).Set(float64(q.Phases[phase]))
		}
		m.amounts("allocated", l.cluster, name, q.Allocated)
		m.amounts("capability", l.cluster, name, q.Capability)
		m.amounts("pending", l.cluster, name, q.Request.Sub(q.Allocated))
		if session == nil {
			continue
		}
		if deserved, ok := session.QueueAmounts(q, "deserved"); ok {
			m.amounts("deserved", l.cluster, name, deserved)
			m.queueShare.WithLabelValues(name).Set(q.Allocated.Share(deserved))
		}
	}
}

// waits updates the metrics of waiting jobs if the plan changed. Only the loop may call it.
func (m *waitingJobs) waits(c *model.Cluster, plan *model.Plan) {
	if !m.stale {
		return
	}
	m.stale = false
	m.count.Reset()
	m.oldest.Reset()
	counts, oldest := map[waitsFor]int{}, map[string]time.Time{}
	for rest := plan.Waits; len(rest) > 0; {
		n := 1
		for n < len(rest) && rest[n].Job == rest[0].Job {
			n++
		}
		of, j := rest[:n], c.Jobs[rest[0].Job]
		rest = rest[n:]
		if j == nil || j.Phase != model.PhasePending && j.Phase != model.PhaseInqueue {
			continue
		}
		counts[whyOf(of)]++
		if first, ok := oldest[of[0].Queue]; !ok || j.CreatedAt.Before(first) {
			oldest[of[0].Queue] = j.CreatedAt
		}
	}
	for of, n := range counts {
		m.count.WithLabelValues(of.queue, of.table, of.rule).Set(float64(n))
	}
	for queue, first := range oldest {
		m.oldest.WithLabelValues(queue).Set(float64(first.Unix()))
	}
}

// waitsFor is a queue, and a row for which jobs in this queue wait.
type waitsFor struct{ queue, table, rule string }

// whyOf returns the queue and the row for which a job waits. It uses the first wait that names a task. If rows refuse nodes, it returns the
// row that refuses most nodes.
func whyOf(waits []model.Wait) waitsFor {
	i := max(slices.IndexFunc(waits, func(w model.Wait) bool { return w.Task != "" }), 0)
	w := &waits[i]
	if len(w.Nodes) == 0 {
		return waitsFor{w.Queue, w.Reason.Table, w.Reason.Rule}
	}
	most := slices.MaxFunc(w.Nodes, func(a, b model.NodeCount) int { return a.Count - b.Count })
	return waitsFor{w.Queue, most.Table, most.Rule}
}

// forgetQueues drops the series of queues that no longer exist.
func (m *metrics) forgetQueues(c *model.Cluster) {
	for name := range m.known {
		if c.Queues[name] != nil {
			continue
		}
		delete(m.known, name)
		gone := prometheus.Labels{"queue": name}
		m.podGroups.DeletePartialMatch(gone)
		m.queueShare.DeletePartialMatch(gone)
		for _, g := range m.queues {
			g.DeletePartialMatch(gone)
		}
	}
}

func (m *metrics) amounts(kind string, c *model.Cluster, queue string, r model.Resources) {
	for i, v := range r {
		if r.Has(i) {
			m.queues[kind].WithLabelValues(queue, c.Dims.Name(i)).Set(v / c.Dims.Unit(i))
		}
	}
}
