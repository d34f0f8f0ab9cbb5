package live

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	metricsv1beta1 "k8s.io/metrics/pkg/apis/metrics/v1beta1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	batchv1alpha1 "github.com/celsius-scheduler/celsius/crds/batch/v1alpha1"
	nodeinfov1alpha1 "github.com/celsius-scheduler/celsius/crds/nodeinfo/v1alpha1"
	policyv1alpha1 "github.com/celsius-scheduler/celsius/crds/policy/v1alpha1"
	"github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
	"github.com/celsius-scheduler/celsius/engine/extender"
	"github.com/celsius-scheduler/celsius/engine/live/asks"
	"github.com/celsius-scheduler/celsius/engine/live/lease"
	"github.com/celsius-scheduler/celsius/engine/live/outbox"
	"github.com/celsius-scheduler/celsius/engine/live/questions"
	"github.com/celsius-scheduler/celsius/engine/live/recovery"
	"github.com/celsius-scheduler/celsius/engine/live/scrape"
	"github.com/celsius-scheduler/celsius/engine/live/serving"
	"github.com/celsius-scheduler/celsius/engine/live/shadow"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/recording"
	"github.com/celsius-scheduler/celsius/engine/volume"
)

// Default rate limits of a config that sets none. The API server should be the bottleneck, not the client.
const (
	defaultQPS   = 2000
	defaultBurst = 4000
)

// Run schedules until ctx ends; then it returns nil. With LeaderElect it waits for the lease first, and losing the lease is an error. When
// Run returns, none of its goroutines runs.
func Run(ctx context.Context, cfg *rest.Config, o Options) error {
	o, err := o.complete()
	if err != nil {
		return fmt.Errorf("options of the scheduler: %w", err)
	}
	s, err := newScheduler(ctrl.LoggerFrom(ctx).WithName("scheduler"), cfg, o)
	if err != nil {
		return err
	}
	if o.LeaderElect {
		s.ensureNamespace(ctx)
	}
	err = s.manager.Start(ctx)
	s.begun.Wait() // after a lost lease, the manager does not wait for the leader's work
	if err != nil {
		return fmt.Errorf("scheduler: %w", err)
	}
	return nil
}

// scheduler is one instance. It contains what exists before and while it leads.
type scheduler struct {
	o       Options
	cfg     *rest.Config // for clients that only read
	scheme  *runtime.Scheme
	manager manager.Manager
	lease   *lease.Lease  // nil: it does not take turns
	writes  writes        // for requests that only the leader may send
	client  client.Client // reads from the API server without a cache, and sends writes through writes
	ending  client.Client // writes also after the lease has ended
	metrics *metrics
	log     logr.Logger
	begun   sync.WaitGroup

	mu   sync.Mutex
	loop *loop // nil: this scheduler does not lead
}

func newScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientscheme.AddToScheme, metricsv1beta1.AddToScheme, batchv1alpha1.AddToScheme, nodeinfov1alpha1.AddToScheme,
		policyv1alpha1.AddToScheme, v1beta1.AddToScheme,
	} {
		utilruntime.Must(add(scheme))
	}
	return scheme
}

func newScheduler(log logr.Logger, cfg *rest.Config, o Options) (*scheduler, error) {
	cfg = rest.CopyConfig(cfg)
	if cfg.QPS == 0 && cfg.RateLimiter == nil {
		cfg.QPS, cfg.Burst = defaultQPS, defaultBurst
	}
	s := &scheduler{o: o, cfg: cfg, scheme: newScheme(), metrics: newMetrics(), log: log}
	scrape.Count(cfg, s.metrics.requests)
	options := ctrl.Options{
		Scheme: s.scheme, Logger: log,
		HealthProbeBindAddress: orOff(o.HealthAddress), PprofBindAddress: orOff(o.PprofAddress),
		Metrics: metricsserver.Options{BindAddress: "0"}, // otherwise it would serve a registry that the whole process shares
	}
	var err error
	if o.LeaderElect {
		if s.lease, err = lease.New(cfg, o.Namespace, o.LeaseName, o.LeaseTimes); err != nil {
			return nil, fmt.Errorf("scheduler: %w", err)
		}
		s.lease.Elect(&options)
	}
	if s.manager, err = ctrl.NewManager(cfg, options); err != nil {
		return nil, fmt.Errorf("scheduler: %w", err)
	}
	if s.writes, err = newWrites(cfg, s.lease); err != nil {
		return nil, fmt.Errorf("scheduler: %w", err)
	}
	s.client, err = client.New(s.writes.cfg, client.Options{Scheme: s.scheme, HTTPClient: s.writes.client, Mapper: s.manager.GetRESTMapper()})
	if err == nil {
		s.ending, err = client.New(cfg, client.Options{Scheme: s.scheme, Mapper: s.manager.GetRESTMapper()})
	}
	if err != nil {
		return nil, fmt.Errorf("scheduler: make a client: %w", err)
	}
	checks := []error{
		s.lease.Join(s.manager),
		s.manager.AddHealthzCheck("ping", healthz.Ping),
		s.manager.AddHealthzCheck("cycles", s.alive),
		s.manager.AddReadyzCheck("scheduler", s.ready),
		s.manager.Add(leading{s}),
	}
	if scrape.On(o.MetricsAddress) {
		served := &scrape.Server{Address: o.MetricsAddress, From: s.metrics.registry, Log: log}
		if o.MetricsSecure {
			served.Config = cfg
		}
		checks = append(checks, s.manager.Add(served))
	}
	return s, errors.Join(checks...)
}

func orOff(address string) string {
	if address == "" {
		return "0"
	}
	return address
}

// ready fails while this scheduler leads and has not run a first cycle. A standby is ready.
func (s *scheduler) ready(*http.Request) error {
	select {
	case <-s.manager.Elected():
	default:
		return nil // this scheduler is a standby
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.loop == nil || !s.loop.cycled.Load() {
		return errors.New("leading, but there was no cycle yet")
	}
	return nil
}

// ensureNamespace creates the namespace of the lease if it does not exist. If this fails, the election reports why.
func (s *scheduler) ensureNamespace(ctx context.Context) {
	err := s.client.Get(ctx, client.ObjectKey{Name: s.o.Namespace}, &corev1.Namespace{})
	if apierrors.IsNotFound(err) {
		err = s.client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.o.Namespace}}, client.FieldOwner(FieldManager))
	}
	if err != nil && !apierrors.IsAlreadyExists(err) {
		s.log.Info("the namespace of the lease is not there, or cannot be read", "namespace", s.o.Namespace, "error", err.Error())
	}
}

// leading is the runnable that the manager starts on the holder of the lease.
type leading struct{ s *scheduler }

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (leading) NeedLeaderElection() bool { return true }

// Start leads until ctx ends.
func (l leading) Start(ctx context.Context) error {
	l.s.begun.Add(1)
	defer l.s.begun.Done()
	return l.s.lead(ctx)
}

// lead lists all objects, loads the policy, and schedules until ctx ends. Everything that it starts has ended when it returns.
func (s *scheduler) lead(ctx context.Context) error {
	ctx, stop := context.WithCancelCause(ctx)
	var all sync.WaitGroup
	defer all.Wait()
	defer stop(nil)
	started := time.Now()

	pods, err := newCorePods(s.writes)
	if err != nil {
		return err
	}
	out, in := outbox.New(s.o.BindWorkers), newFeed()
	said := newRecorder(s.scheme, pods.client.Events(""), out, s.metrics, s.log)
	l := s.newLoop(pods, out, in, said)
	all.Go(func() { out.Run(ctx) })
	all.Go(func() { l.asks.Run(ctx) })

	objects, err := s.newCache(newStripper().Strip, func(o client.Object, why string) {
		said.Event(o, corev1.EventTypeWarning, eventInvalid, why)
	}, nil)
	if err != nil {
		return err
	}
	synced, err := watchAll(ctx, objects, s.o.SchedulerNames, in)
	if err != nil {
		return ended(ctx, err)
	}
	all.Go(func() {
		if err := objects.Start(ctx); err != nil {
			stop(fmt.Errorf("watch the cluster: %w", err))
		}
	})
	p := serving.New(serving.Options{
		Instead: s.metrics.servedInstead, Metrics: s.metrics.registry,
		Name: s.o.Policy, Scheduler: s.o.SchedulerNames[0], Namespace: s.o.Namespace,
		Cache: objects, Reader: s.client, Client: s.client, Events: said, Wake: in.nudge, Log: s.log,
	})
	all.Go(func() {
		if err := p.Run(ctx); err != nil {
			stop(err)
		}
	})
	all.Go(func() { s.ensureQueues(ctx) })
	all.Go(func() { s.warnOfVolcano(ctx) })
	if !synced(ctx) {
		return ended(ctx, nil)
	}
	all.Go(func() { s.newControllersWatch(objects, said).run(ctx) })
	select {
	case <-ctx.Done():
		return ended(ctx, nil)
	case <-p.Ready():
	}
	l.policy, l.observe = p.Current, p.Observe
	l.shadow = &shadow.Player{Policies: p.Shadows, Tell: p.Shadowed, Meter: s.metrics.shadows, Log: s.log, Clock: time.Now}
	if every := s.o.NodeMetricsInterval; every > 0 {
		measured, err := s.newMeasures(in, func() bool { return readsMeasures(append(p.Shadows(), p.Current())) })
		if err != nil {
			return err
		}
		all.Go(func() { measured.Run(ctx, every) })
	}
	s.watched(ctx, l, &all)
	s.mu.Lock()
	s.loop = l
	s.mu.Unlock()
	s.log.Info("scheduling", "names", s.o.SchedulerNames, "policy", s.o.Policy, "after", time.Since(started).Round(time.Millisecond).String())
	s.metrics.leading.Set(1)
	defer s.metrics.leading.Set(0)
	l.run(ctx)
	return ended(ctx, nil)
}

// watched starts the recording of the loop's inputs and the server for questions, if they are enabled. They run until ctx ends.
func (s *scheduler) watched(ctx context.Context, l *loop, all *sync.WaitGroup) {
	if o := s.o.Recording; o.Folder != "" {
		l.record = recording.New(o, s.o.SchedulerNames, s.log)
		all.Go(func() { l.record.Run(ctx) })
	}
	if s.o.Explain.On() {
		l.looking = newLooking()
		taken := &questions.Server{
			Options: s.o.Explain, Namespace: s.o.Namespace, Config: s.cfg, Client: s.client, Ending: s.ending, Ask: l.Look, Log: s.log,
			Metrics: promhttp.HandlerFor(s.metrics.registry, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError}),
		}
		all.Go(func() { taken.Run(ctx) })
	}
}

// ended returns why the work ended, or nil if it was told to end.
func ended(ctx context.Context, err error) error {
	switch cause := context.Cause(ctx); {
	case cause == nil:
		return err
	case errors.Is(cause, context.Canceled):
		return nil
	default:
		return cause
	}
}

func (s *scheduler) newLoop(p corePods, out *outbox.Outbox, in *feed, said *recorder) *loop {
	nodes := &nodeBook{}
	out.Failed = func(p *recovery.Panic) { in.add(change{object: &workerPanic{nil, p}}, true) }
	b := &binder{
		pods: p, storage: coreStorage{p.client}, volumeTimeout: s.o.VolumeTimeout, nodes: nodes, outbox: out, feed: in,
		metrics: s.metrics, log: s.log,
	}
	b.scheduled, b.sentAway = scheduledEvents(said, s.metrics, s.o.BindingEvents), evictedEvents(said)
	cluster := model.NewCluster(model.Options{SchedulerNames: s.o.SchedulerNames, Volumes: volume.New, Limits: s.o.Limits})
	return &loop{
		period: s.o.Period, window: s.o.Window, gangTimeout: s.o.GangTimeout,
		cluster: cluster,
		parts: parts{
			feed: in, outbox: out, intake: newIntake(s.o.SchedulerNames, nodes, phaseIn(cluster)),
			statuses: &statuses{
				server: applied{s.client}, pods: p, outbox: out, feed: in, events: said, log: s.log,
				bindingEvents: s.o.BindingEvents, waits: map[string]*waiting{}, queues: map[string]*queueState{}, open: map[string]bool{},
			},
			binder: b, asks: newAsks(s.o.Extenders, in, s.metrics, s.log), events: said,
			verifier: newVerifier(s.o.VerifyEvictions, s.metrics, said, s.log),
			metrics:  s.metrics, log: s.log,
		},
		volumes: volume.New, recoveries: newRecoveries(),
		broken: map[string]*group{}, evicts: newEvictor(), told: told{faults: map[string]time.Time{}},
	}
}

// newAsks returns an asker for extenders. Each new answer of an extender starts a cycle.
func newAsks(o asks.Options, in *feed, m *metrics, log logr.Logger) *asks.Asker {
	return asks.New(o, func(op model.Op, a *extender.Answer) { in.add(change{op: op, object: a}, op == model.Upsert) }, m.extenders, log)
}

// queuesEvery is the interval at which the leader checks that the queues root and default exist.
const queuesEvery = 10 * time.Second

// ensureQueues creates the queues root and default when they are missing, until ctx ends. A deletion of the CRD deletes them, too.
func (s *scheduler) ensureQueues(ctx context.Context) {
	yes, no := true, false
	wanted := []*v1beta1.Queue{
		{ObjectMeta: metav1.ObjectMeta{Name: v1beta1.RootQueue}, Spec: v1beta1.QueueSpec{Weight: 1, Reclaimable: &no}},
		{ObjectMeta: metav1.ObjectMeta{Name: v1beta1.DefaultQueue}, Spec: v1beta1.QueueSpec{Weight: 1, Reclaimable: &yes}},
	}
	for ctx.Err() == nil {
		next := queuesEvery
		for _, q := range wanted {
			if err := s.ensureQueue(ctx, q); err != nil && ctx.Err() == nil {
				next = time.Second
				s.log.Info("a queue that must exist could not be created; it is tried again", "queue", q.Name, "after", next.String(),
					"error", err.Error())
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(next):
		}
	}
}

// ensureQueue creates a queue if it does not exist.
func (s *scheduler) ensureQueue(ctx context.Context, q *v1beta1.Queue) error {
	there := &metav1.PartialObjectMetadata{} // only the metadata: the stored queue may not be decodable
	there.SetGroupVersionKind(v1beta1.GroupVersion.WithKind("Queue"))
	err := s.client.Get(ctx, client.ObjectKeyFromObject(q), there)
	if apierrors.IsNotFound(err) {
		err = s.client.Create(ctx, q.DeepCopy(), client.FieldOwner(FieldManager))
	}
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// warnOfVolcano logs a warning if Volcano's own scheduler seems to run while this scheduler serves the name volcano. Both would place the
// same pods.
func (s *scheduler) warnOfVolcano(ctx context.Context) {
	if !slices.Contains(s.o.SchedulerNames, volcanoName) {
		return
	}
	for _, name := range []string{volcanoName, "vc-scheduler"} {
		found := &coordinationv1.Lease{}
		if err := s.client.Get(ctx, client.ObjectKey{Namespace: "volcano-system", Name: name}, found); err != nil {
			continue // most clusters have no such lease, and some do not let us read it
		}
		if lease.VacancyOf(found, time.Now()) == nil {
			s.log.Info("WARNING: Volcano's scheduler is alive, and this one serves the name volcano too; both would place the same pods. "+
				"Stop it, or start this one with --scheduler-name celsius alone", "lease", "volcano-system/"+name, "holder", *found.Spec.HolderIdentity)
		}
	}
}
