package engine_test

import (
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/celsius-scheduler/celsius/engine"
	"github.com/celsius-scheduler/celsius/engine/digest"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/engine/session"
	"github.com/celsius-scheduler/celsius/engine/volume"
	"github.com/celsius-scheduler/celsius/rules/source"
)

// scene is a cluster with a policy that decides it. Its time moves on by one second per cycle.
type scene struct {
	d    *engine.Decider
	now  time.Time
	plan *model.Plan // of the last cycle
}

func newScene(tb testing.TB, p *policy.Policy, deltas []model.Delta) *scene {
	tb.Helper()
	c := model.NewCluster(model.Options{Volumes: volume.New})
	if errs := c.Apply(deltas...); len(errs) > 0 {
		tb.Fatal(errs[0])
	}
	x := &scene{now: benchStart()}
	x.begin(c, p)
	return x
}

// begin starts a session that remembers nothing.
func (x *scene) begin(c *model.Cluster, p *policy.Policy) {
	x.d = engine.NewDecider(session.New(c, p), nil)
}

func (x *scene) cycle() {
	x.plan = x.d.Cycle(x.now)
	x.now = x.now.Add(time.Second)
}

func (x *scene) apply(tb testing.TB, deltas []model.Delta) {
	tb.Helper()
	if errs := x.d.Session().Cluster().Apply(deltas...); len(errs) > 0 {
		tb.Fatal(errs[0])
	}
}

// evaluations returns how many rows were evaluated so far: predicate and score rows, and all other rows except keys of orders.
func (x *scene) evaluations() uint64 {
	n := uint64(0)
	for _, site := range policy.Sites() {
		for _, r := range x.d.Session().Policy().Rules(site.Name) {
			n += x.d.Session().Evaluated(r)
		}
	}
	return n
}

func defaultPolicy(tb testing.TB) *policy.Policy {
	tb.Helper()
	p, issues := policy.Default()
	if issues.Err() != nil {
		tb.Fatal(issues)
	}
	return p
}

// housePolicy returns the sample policy whose rows read the time.
func housePolicy(tb testing.TB) *policy.Policy {
	tb.Helper()
	const file = "../samples/policies/house-rules.yaml"
	data, err := os.ReadFile(file)
	if err != nil {
		tb.Fatal(err)
	}
	docs, issues := source.Parse(file, data)
	if issues.Err() != nil {
		tb.Fatal(issues)
	}
	p, issues := policy.Load(docs[0])
	if issues.Err() != nil {
		tb.Fatal(issues)
	}
	return p
}

// steadyPolicies returns the policies for measurements of a cluster at work.
func steadyPolicies(tb testing.TB) []*policy.Policy {
	tb.Helper()
	return []*policy.Policy{defaultPolicy(tb), housePolicy(tb)}
}

// meter sums up what the measured parts of a benchmark use.
type meter struct {
	used        time.Duration
	evaluations uint64
	plan        digests // of the first plan
	binds       int     // of the last
	evictions   int     // of the last
}

// cpu returns the CPU time that this process has used.
func cpu(tb testing.TB) time.Duration {
	tb.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		tb.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// report writes the metrics: process CPU, evaluations of rows without keys of orders, binds, and two digests of the plan. One digest covers
// its decisions, the other covers all of it. Equal digests show that two runs did the same work. The names of the metrics never change, so
// that runs can be compared.
func (m *meter) report(b *testing.B) {
	b.Helper()
	n := float64(b.N)
	b.ReportMetric(m.used.Seconds()*1e3/n, "cpu-ms/op")
	b.ReportMetric(float64(m.evaluations)/n, "evaluations")
	b.ReportMetric(float64(m.binds), "binds")
	b.ReportMetric(float64(m.plan.decisions), "decisions")
	b.ReportMetric(float64(m.plan.texts), "texts")
	b.ReportAllocs()
}

// cold measures one cycle from a cold state.
func cold(b *testing.B, p *policy.Policy, deltas []model.Delta) *meter {
	b.Helper()
	m := &meter{}
	for b.Loop() {
		b.StopTimer()
		x := newScene(b, p, deltas)
		b.StartTimer()
		start := cpu(b)
		x.begin(x.d.Session().Cluster(), p)
		x.cycle()
		m.used += cpu(b) - start
		b.StopTimer()
		m.evaluations += x.evaluations()
		m.binds, m.plan, m.evictions = len(x.plan.Binds), digestsOf(b, x.plan), len(x.plan.Evicts)
		b.StartTimer()
	}
	m.report(b)
	return m
}

// decide measures one cycle of a workload from a cold state under the default policy.
func (w workload) decide(b *testing.B) {
	m := cold(b, defaultPolicy(b), w.objects())
	b.ReportMetric(float64(b.N*w.jobs*w.pods)/m.used.Seconds(), "pods/cpu-s")
}

// BenchmarkDecide measures one cycle from a cold state.
func BenchmarkDecide(b *testing.B) {
	for _, w := range workloads() {
		b.Run(w.String(), w.decide)
	}
}

// BenchmarkDecideScale does what BenchmarkDecide does, with a hundred thousand pods. In one workload they have 50 shapes. In the other they
// have 500 shapes, and the queues of their jobs take turns after each pod.
func BenchmarkDecideScale(b *testing.B) {
	for _, w := range []workload{{10000, 5000, 20, "shapes"}, {10000, 5000, 20, "interleaved"}} {
		b.Run(w.String(), w.decide)
	}
}

// BenchmarkDecideIdle measures a cycle of a cluster at work in which only the time has changed.
func BenchmarkDecideIdle(b *testing.B) {
	for _, w := range steadies() {
		for _, p := range steadyPolicies(b) {
			b.Run(w.String()+"/policy="+p.Name, func(b *testing.B) {
				x := newScene(b, p, w.objects())
				x.settle()
				m := &meter{plan: digestsOf(b, x.plan)}
				before := x.evaluations()
				b.ResetTimer()
				start := cpu(b)
				for b.Loop() {
					x.cycle()
				}
				m.used = cpu(b) - start
				m.evaluations, m.binds = x.evaluations()-before, len(x.plan.Binds)
				m.report(b)
			})
		}
	}
}

// settle runs cycles until nothing changes any more. The first cycle admits jobs, and the second cycle sees that.
func (x *scene) settle() {
	for range 3 {
		x.cycle()
	}
}

// BenchmarkDecideArrival measures the arrival of a gang of ten in a cluster at work: the deltas and one cycle. The pods of the gang are
// like earlier pods, or of a shape never seen.
func BenchmarkDecideArrival(b *testing.B) {
	for _, w := range steadies() {
		for _, p := range steadyPolicies(b) {
			b.Run(w.String()+"/policy="+p.Name, func(b *testing.B) {
				x := newScene(b, p, w.objects())
				x.settle()
				for _, shape := range []string{"known", "new"} {
					b.Run("shape="+shape, func(b *testing.B) {
						v := &visit{x: x, pods: 10, milli: 1000}
						if shape == "new" {
							v.step = 1
						}
						v.measure(b)
					})
				}
			})
		}
	}
}

// visit lets one gang after another come and go.
type visit struct {
	x     *scene
	pods  int
	milli int64                    // the request of the next gang's pods
	step  int64                    // the increase of the request from gang to gang
	into  func(gang []model.Delta) // puts the gang into a queue; nil: the default queue
	here  []model.Delta
}

// prepare removes the present gang, and makes the next one.
func (v *visit) prepare(tb testing.TB) (next []model.Delta) {
	if len(v.here) > 0 {
		v.x.apply(tb, gone(v.here))
		v.x.cycle()
	}
	v.milli += v.step
	v.here = gang("arrival", v.pods, v.milli, benchStart())
	if v.into != nil {
		v.into(v.here)
	}
	return v.here
}

// arrive takes in a gang and places it.
func (v *visit) arrive(tb testing.TB, next []model.Delta) {
	v.x.apply(tb, next)
	v.x.cycle()
}

func (v *visit) measure(b *testing.B) {
	m := &meter{}
	v.arrive(b, v.prepare(b))
	m.plan = digestsOf(b, &model.Plan{Binds: v.x.plan.Binds}) // the reasons of waiting pods may change with time
	b.ResetTimer()
	for b.Loop() {
		b.StopTimer()
		next := v.prepare(b)
		before := v.x.evaluations()
		b.StartTimer()
		start := cpu(b)
		v.arrive(b, next)
		m.used += cpu(b) - start
		m.evaluations += v.x.evaluations() - before
		if got := len(v.x.plan.Binds); got != v.pods {
			b.Fatalf("%d pods of the gang are bound", got)
		}
	}
	m.binds = len(v.x.plan.Binds)
	m.report(b)
	b.StopTimer()
	v.prepare(b)
	v.here = nil
}

// digests holds the two digests of a plan, shortened so that a metric of a benchmark can express them.
type digests struct{ decisions, texts uint32 }

func digestsOf(tb testing.TB, plan *model.Plan) digests {
	tb.Helper()
	s, err := digest.New(plan)
	if err != nil {
		tb.Fatal(err)
	}
	short := func(sum uint64) uint32 { return uint32(sum) ^ uint32(sum>>32) }
	return digests{short(s.Decisions()), short(s.Texts())}
}
