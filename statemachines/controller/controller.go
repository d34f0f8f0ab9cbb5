package controller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	batchv1alpha1 "github.com/celsius-scheduler/celsius/crds/batch/v1alpha1"
	busv1alpha1 "github.com/celsius-scheduler/celsius/crds/bus/v1alpha1"
	flowv1alpha1 "github.com/celsius-scheduler/celsius/crds/flow/v1alpha1"
	"github.com/celsius-scheduler/celsius/crds/informers"
	schedulingv1beta1 "github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
	"github.com/celsius-scheduler/celsius/engine/live/lease"
	"github.com/celsius-scheduler/celsius/engine/live/scrape"
	"github.com/celsius-scheduler/celsius/statemachines"
	"github.com/celsius-scheduler/celsius/statemachines/controller/flows"
	"github.com/celsius-scheduler/celsius/statemachines/jobplugin"
	"github.com/celsius-scheduler/celsius/statemachines/objects"
)

// The defaults of Options.
const (
	DefaultNamespace = "celsius-system"
	DefaultLeaseName = "celsius-controllers"
	// DefaultSchedulerLeaseName is the name of the scheduler's Lease, the same as in package live.
	DefaultSchedulerLeaseName = "celsius-scheduler"
	DefaultWorkers            = 10
	DefaultMaxRequeue         = 15
	DefaultMaxPods            = 100_000
	DefaultMaxJobs            = 500
)

// fieldManager is the field manager of all writes of the controllers.
const fieldManager = "celsius-controllers"

// The limits of the back-off after a failed reconcile.
const (
	firstBackOff   = 5 * time.Millisecond
	longestBackOff = 2 * time.Minute
)

// Options configure the controllers. The zero value is valid.
type Options struct {
	// SchedulerNames are the schedulers whose jobs and pods the controllers manage; others are left alone. A job without a scheduler name gets
	// the first. Default: celsius, volcano.
	SchedulerNames []string
	// Namespace is the namespace of the Lease. Default: celsius-system.
	Namespace string
	// LeaseName is the Lease that the leader holds. Default: celsius-controllers.
	LeaseName string
	// SchedulerLeaseName is the Lease of the scheduler, in the same namespace. If no process holds it, the controllers report this on Jobs
	// and pods that wait. Default: celsius-scheduler.
	SchedulerLeaseName string
	// LeaseTimes are the durations of the Lease. Default: the defaults of package lease.
	LeaseTimes lease.Times
	// LeaderElect makes this instance wait until it holds the Lease. Default: it does not wait.
	LeaderElect bool
	// Workers is how many objects of each kind are reconciled at the same time. Default: 10.
	Workers int
	// MaxRequeue is how often in a row the API server may refuse an object of a job (for example a pod over quota) before the job is
	// terminated; -1: no limit. Default: 15.
	MaxRequeue int
	// MaxPods is how many pods one job may request. For a job that requests more, no pod is created; -1: no limit. Default: 100000.
	MaxPods int
	// MaxJobs is how many Jobs one JobFlow may list. For a JobFlow that lists more, no Job is created; -1: no limit. Default: 500.
	MaxJobs int
	// StateMachines are the lifecycles, by the name of their machine: job, queue, cronjob and jobflow. Built-in machines replace missing ones.
	StateMachines map[string]*statemachines.Machine
	// JobPlugins are the plugins that Jobs may have. Default: the built-in plugins.
	JobPlugins *jobplugin.Set
	// Now is the clock. Default: time.Now.
	Now func() time.Time
	scrape.Served
}

// withDefaults returns the options with defaults for missing values.
func (o Options) withDefaults() (Options, error) {
	if len(o.SchedulerNames) == 0 {
		o.SchedulerNames = []string{"celsius", "volcano"}
	}
	o.Namespace = cmp.Or(o.Namespace, DefaultNamespace)
	o.LeaseName = cmp.Or(o.LeaseName, DefaultLeaseName)
	o.SchedulerLeaseName = cmp.Or(o.SchedulerLeaseName, DefaultSchedulerLeaseName)
	if o.Workers <= 0 {
		o.Workers = DefaultWorkers
	}
	o.MaxRequeue = cmp.Or(o.MaxRequeue, DefaultMaxRequeue)
	o.MaxPods, o.MaxJobs = cmp.Or(o.MaxPods, DefaultMaxPods), cmp.Or(o.MaxJobs, DefaultMaxJobs)
	o.MetricsAddress, o.HealthAddress = cmp.Or(o.MetricsAddress, "0"), cmp.Or(o.HealthAddress, "0")
	o.PprofAddress = cmp.Or(o.PprofAddress, "0")
	if o.Now == nil {
		o.Now = time.Now
	}
	var err error
	if o.LeaseTimes, err = o.LeaseTimes.Complete(); err != nil {
		return o, fmt.Errorf("options of the controllers: %w", err)
	}
	if o.JobPlugins == nil {
		set, issues := jobplugin.Default()
		if set == nil {
			return o, fmt.Errorf("job plugins: %w", issues.Err())
		}
		o.JobPlugins = set
	}
	machines := map[string]*statemachines.Machine{}
	for _, name := range statemachines.Names() {
		machines[name] = o.StateMachines[name]
		if machines[name] != nil {
			continue
		}
		m, issues := statemachines.Default(name)
		if m == nil {
			return o, fmt.Errorf("the built-in state machine %s: %w", name, issues)
		}
		machines[name] = m
	}
	o.StateMachines = machines
	return o, nil
}

// Run manages Jobs, CronJobs, Queues, Commands, JobFlows, JobTemplates and the PodGroups of bare pods until the context ends.
func Run(ctx context.Context, cfg *rest.Config, o Options) error {
	o, err := o.withDefaults()
	if err != nil {
		return err
	}
	reg := prometheus.NewRegistry()
	counts := newMetrics(reg)
	counted := rest.CopyConfig(cfg)
	scrape.Count(counted, counts.requests)
	mgr, watches, err := newManager(counted, o, reg)
	if err != nil {
		return fmt.Errorf("start the controllers: %w", err)
	}
	if err := addControllers(ctx, mgr, watches, o, reg, counts); err != nil {
		return fmt.Errorf("start the controllers: %w", err)
	}
	if scrape.On(o.MetricsAddress) {
		server := &scrape.Server{Address: o.MetricsAddress, From: prometheus.Gatherers{reg, ctrlmetrics.Registry}, Log: mgr.GetLogger()}
		if o.MetricsSecure {
			server.Config = cfg
		}
		if err := mgr.Add(server); err != nil {
			return fmt.Errorf("serve metrics: %w", err)
		}
	}
	if err := mgr.Start(ctx); err != nil && ctx.Err() == nil {
		return fmt.Errorf("run the controllers: %w", err)
	}
	return nil
}

// newScheme returns a scheme with all kinds that the controllers read and write.
func newScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		corev1.AddToScheme, appsv1.AddToScheme, batchv1.AddToScheme, coordinationv1.AddToScheme, schedulingv1.AddToScheme,
		admissionv1.AddToScheme, batchv1alpha1.AddToScheme, busv1alpha1.AddToScheme, flowv1alpha1.AddToScheme, schedulingv1beta1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("build the scheme: %w", err)
		}
	}
	return scheme, nil
}

func newManager(cfg *rest.Config, o Options, reg prometheus.Registerer) (mgr manager.Manager, watches *informers.Informers, err error) {
	scheme, err := newScheme()
	if err != nil {
		return nil, nil, err
	}
	log := ctrl.Log.WithName("controllers")
	options := manager.Options{
		Scheme:                 scheme,
		Logger:                 log,
		Metrics:                metricsserver.Options{BindAddress: "0"}, // we serve our own: the manager's metrics are global to the process
		HealthProbeBindAddress: o.HealthAddress,
		PprofBindAddress:       o.PprofAddress,
		Controller: config.Controller{
			SkipNameValidation: new(true),
			// With the priority queue a worker may wait for ever when it ends, and the Lease is held for 30 s meanwhile:
			// kubernetes-sigs/controller-runtime#3538, which 0.24.1 has not fixed.
			UsePriorityQueue: new(false),
		},
		Cache: cache.Options{
			DefaultTransform: strip(o.SchedulerNames),
		},
		NewCache: func(cfg *rest.Config, co cache.Options) (cache.Cache, error) {
			if watches, err = informers.New(cfg, co, log, reg); err != nil {
				return nil, err
			}
			return watches.Cache(co)
		},
	}
	var turns *lease.Lease
	if o.LeaderElect {
		if turns, err = lease.New(cfg, o.Namespace, o.LeaseName, o.LeaseTimes); err != nil {
			return nil, nil, err
		}
		turns.Elect(&options)
		options.NewClient = fenced(turns.Fence())
	}
	mgr, err = manager.New(cfg, options)
	if err != nil {
		return nil, nil, err
	}
	synced := func(req *http.Request) error {
		if !mgr.GetCache().WaitForCacheSync(req.Context()) {
			return errors.New("the caches are not filled yet")
		}
		return nil
	}
	return mgr, watches, errors.Join(turns.Join(mgr), mgr.AddHealthzCheck("ping", healthz.Ping), mgr.AddReadyzCheck("caches", synced))
}

// fenced returns a constructor of clients that send no write after the Lease has expired. A write that was sent before may be delayed in
// the admission of other programs. That is harmless: the controllers may do everything twice or late.
func fenced(f *lease.Fence) client.NewClientFunc {
	return func(cfg *rest.Config, o client.Options) (client.Client, error) {
		cfg, http, err := f.Client(cfg, 0)
		if err != nil {
			return nil, err
		}
		o.HTTPClient = http
		return client.New(cfg, o)
	}
}

// strip removes from cached objects what the controllers do not read: the managed fields, and most of the spec and status of pods that
// belong to other schedulers and have no controller.
func strip(schedulerNames []string) func(any) (any, error) {
	return func(obj any) (any, error) {
		if o, ok := obj.(metav1.Object); ok {
			o.SetManagedFields(nil)
		}
		pod, ok := obj.(*corev1.Pod)
		if ok && !slices.Contains(schedulerNames, pod.Spec.SchedulerName) && metav1.GetControllerOfNoCopy(pod) == nil {
			pod.Spec = corev1.PodSpec{SchedulerName: pod.Spec.SchedulerName}
			pod.Status = corev1.PodStatus{Phase: pod.Status.Phase}
		}
		return obj, nil
	}
}

// parts contains what all controllers share.
type parts struct {
	client   client.Client             // reads from caches
	live     client.Reader             // reads from the API server
	leftOut  func(client.Object) error // why the cache omits an object that exists; nil: no such cause
	recorder events.EventRecorder
	memory   *memory
	metrics  *metrics
	options  Options
	now      func() time.Time
	// absent is the Lease of the scheduler if no process holds it, and nil otherwise.
	absent atomic.Pointer[lease.Vacancy]
}

// realNames is a Reader that reports NotFound for names that cannot exist in the API. Without it, the client returns another error at each
// try.
type realNames struct{ client.Reader }

// Get implements client.Reader.
func (r realNames) Get(ctx context.Context, key client.ObjectKey, into client.Object, opts ...client.GetOption) error {
	for _, name := range []string{key.Name, cmp.Or(key.Namespace, metav1.NamespaceDefault)} {
		if name == "" || len(content.IsPathSegmentName(name)) > 0 {
			return apierrors.NewNotFound(schema.GroupResource{Resource: fmt.Sprintf("%T", into)}, key.Name)
		}
	}
	return r.Reader.Get(ctx, key, into, opts...)
}

// serves reports whether a job belongs to our schedulers.
func (p *parts) serves(job *batchv1alpha1.Job) bool {
	return job.Spec.SchedulerName == "" || slices.Contains(p.options.SchedulerNames, job.Spec.SchedulerName)
}

// wake is a channel that requests reconciles of objects.
type wake chan event.GenericEvent

const wakeBuffer = 1024

func addControllers(ctx context.Context, mgr manager.Manager, watches *informers.Informers, o Options, reg prometheus.Registerer,
	counts *metrics,
) error {
	told, err := newRecorder(mgr, counts)
	if err != nil {
		return err
	}
	p := &parts{
		client:   pacedClient{mgr.GetClient(), newPace(o.Now, counts)},
		live:     realNames{mgr.GetAPIReader()},
		leftOut:  watches.LeftOut,
		recorder: told,
		memory:   newMemory(),
		metrics:  counts,
		options:  o,
		now:      o.Now,
	}
	reg.MustRegister(newJobsByPhase(mgr.GetClient(), p.serves))
	if err := addIndexes(ctx, mgr.GetFieldIndexer()); err != nil {
		return err
	}
	tell := manager.RunnableFunc(func(ctx context.Context) error { // only the leader runs it
		counts.leading.Set(1)
		context.AfterFunc(ctx, func() { counts.leading.Set(0) })
		watches.Tell(func(on client.Object, why string) {
			p.event(on, corev1.EventTypeWarning, "Invalid", "Decode", "%s", why)
		})
		return nil
	})
	wakeJob, wakeQueue := make(wake, wakeBuffer), make(wake, wakeBuffer)
	return errors.Join(
		mgr.Add(tell),
		mgr.Add(newSchedulerWatch(p, wakeJob)),
		addJobs(mgr, p, wakeJob),
		addCronJobs(mgr, p),
		addQueues(mgr, p, wakeQueue),
		addShares(mgr, p),
		addBarePods(mgr, p),
		addGroupEnds(mgr, p),
		addJobFlows(mgr, p),
		addJobTemplates(mgr, p),
		addCommands(mgr, p, wakeJob, wakeQueue),
	)
}

// The names of our indexes.
const (
	byOwner  = "celsius.owner"  // pods and Jobs, by the UID of their controller
	byQueue  = "celsius.queue"  // Jobs, by the name of their queue
	byGroup  = "celsius.group"  // pods, by the name of their PodGroup
	byParent = "celsius.parent" // Queues, by the name of their parent queue
	// byTemplate indexes Jobs by the JobTemplate in their label that they were created from.
	byTemplate = "celsius.template"
)

func addIndexes(ctx context.Context, indexer client.FieldIndexer) error {
	for _, x := range indexes() {
		if err := indexer.IndexField(ctx, x.kind, x.name, x.key); err != nil {
			return fmt.Errorf("index %T by %s: %w", x.kind, x.name, err)
		}
	}
	return nil
}

type index struct {
	kind client.Object
	name string
	key  client.IndexerFunc
}

func indexes() []index {
	controllerOf := func(o client.Object) []string {
		if owner := metav1.GetControllerOfNoCopy(o); owner != nil {
			return []string{string(owner.UID)}
		}
		return nil
	}
	return []index{
		{&corev1.Pod{}, byOwner, controllerOf},
		{&batchv1alpha1.Job{}, byOwner, controllerOf},
		{&batchv1alpha1.Job{}, byTemplate, func(o client.Object) []string {
			if template := o.GetLabels()[flowv1alpha1.CreatedByJobTemplate]; template != "" {
				return []string{template}
			}
			return nil
		}},
		{&corev1.Pod{}, byGroup, func(o client.Object) []string {
			if name := o.GetAnnotations()[schedulingv1beta1.KubeGroupNameAnnotationKey]; name != "" {
				return []string{name}
			}
			return nil
		}},
		{&batchv1alpha1.Job{}, byQueue, func(o client.Object) []string {
			return []string{objects.QueueName(o.(*batchv1alpha1.Job).Spec.Queue)}
		}},
		{&schedulingv1beta1.Queue{}, byParent, func(o client.Object) []string {
			return []string{o.(*schedulingv1beta1.Queue).Spec.Parent}
		}},
	}
}

// controllerOptions returns the options of one controller: parallel workers, one worker per object at a time, and a back-off after
// failures.
func (p *parts) controllerOptions() controller.Options {
	return controller.Options{
		MaxConcurrentReconciles: p.options.Workers,
		RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstBackOff, longestBackOff),
	}
}

// priorityOf returns a function that returns the value of a PriorityClass, or 0 if it does not exist.
func (p *parts) priorityOf(ctx context.Context) func(string) int32 {
	return func(class string) int32 {
		if class == "" {
			return 0
		}
		found := &schedulingv1.PriorityClass{}
		if err := p.client.Get(ctx, types.NamespacedName{Name: class}, found); err != nil {
			return 0
		}
		return found.Value
	}
}

// errGone states that an object was deleted while it was reconciled. The reconcile then ends without an error: nothing is left to do.
var errGone = errors.New("the object was deleted meanwhile")

// ofGone returns errGone if the API server refused a write because the object was deleted. Otherwise it returns the error of the write.
func ofGone(err error) error {
	if flows.IsGone(err) {
		return errGone
	}
	return err
}

// applyStatus applies fields of the status of an object with forced server-side apply, with manager as the field manager. If the object has
// a resource version, the write fails unless the stored object still has that version. It fails with errGone if the object was deleted.
// applyStatus returns the new resource version.
func (p *parts) applyStatus(ctx context.Context, of client.Object, manager client.FieldOwner, status map[string]any) (string, error) {
	kind, err := p.client.GroupVersionKindFor(of)
	if err != nil {
		return "", fmt.Errorf("write the status of %s: %w", client.ObjectKeyFromObject(of), err)
	}
	apply := &unstructured.Unstructured{Object: map[string]any{"status": status}}
	apply.SetGroupVersionKind(kind)
	apply.SetNamespace(of.GetNamespace())
	apply.SetName(of.GetName())
	apply.SetUID(of.GetUID())
	apply.SetResourceVersion(of.GetResourceVersion())
	if err := p.client.Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(apply), manager, client.ForceOwnership); err != nil {
		return "", fmt.Errorf("write the status of %s %s: %w", kind.Kind, client.ObjectKeyFromObject(of), ofGone(err))
	}
	return apply.GetResourceVersion(), nil
}

// event writes an event on an object. It shortens a note that is too long for the API.
func (p *parts) event(on runtime.Object, kind, reason, action, format string, args ...any) {
	const longest = 1000
	note := fmt.Sprintf(format, args...)
	if len(note) > longest {
		note = note[:longest] + "…"
	}
	p.recorder.Eventf(on, nil, kind, reason, action, "%s", note)
}

func logOf(ctx context.Context) logr.Logger { return ctrl.LoggerFrom(ctx) }
