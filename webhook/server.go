package webhook

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/pprof"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/celsius-scheduler/celsius/crds/informers"
	schedulingv1beta1 "github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
	"github.com/celsius-scheduler/celsius/engine/live/recovery"
	"github.com/celsius-scheduler/celsius/engine/live/scrape"
	"github.com/celsius-scheduler/celsius/statemachines"
	"github.com/celsius-scheduler/celsius/statemachines/jobplugin"
)

// Options configure the admission server. The zero value is correct for a server in a cluster.
type Options struct {
	// SchedulerNames are the schedulers whose jobs are checked. The first is the default of a job without a scheduler name. Default: celsius,
	// volcano.
	SchedulerNames []string
	// Namespace contains the Service and the Secret of the certificates. Objects in it are not checked. Default: celsius-system.
	Namespace string
	// ServiceName is the Service through which the API server reaches this server. Default: celsius-webhook.
	ServiceName string
	// StateMachines are the lifecycles, by the name of their machine. The one of job defines which events and actions policies may name.
	// Built-in machines replace missing ones.
	StateMachines map[string]*statemachines.Machine
	// JobPlugins are the plugins that Jobs may have. Default: the built-in plugins.
	JobPlugins *jobplugin.Set
	// AdmissionRules are the cluster's own tables, in addition to the built-in ones: see LoadFS.
	AdmissionRules []*Table
	// Limits override limits of rules/admission/job.yaml and queue.yaml, by name.
	Limits map[string]int64
	// Address is the address to listen on; port 0 selects a free port. Default: ":8443".
	Address string
	// URLHost, if set, is the host (or host:port) at which the API server reaches this server, instead of the Service. Without a port it uses
	// the port of Address.
	URLHost string
	// CertDir contains tls.crt and tls.key. It also contains ca.crt if the API server does not trust the signer. Changed files are read again.
	// Default: the server creates certificates and stores them in the Secret celsius-webhook-certs.
	CertDir string
	// ClientCAFile contains the authorities that sign the API server's client certificate. The webhook refuses a client without such a
	// certificate. Default: no certificate is required, because the API server sends one only if its admission configuration names one.
	ClientCAFile string
	// ConfigurationName names the MutatingWebhookConfiguration and the ValidatingWebhookConfiguration. Default: celsius.
	ConfigurationName string
	// UnregisterOnExit removes the configurations at the end. Without it, requests are refused while no server runs.
	UnregisterOnExit bool
	scrape.Served
}

// FieldManager is the name with which admission writes objects.
const FieldManager = "celsius-webhook"

// checkEvery is how often certificates and configurations are checked, in addition to each change of the Secret. endWithin limits how long
// requests may run after the server ends.
const (
	checkEvery = time.Minute
	endWithin  = 5 * time.Second
)

func (o Options) withDefaults() Options {
	if len(o.SchedulerNames) == 0 {
		o.SchedulerNames = []string{"celsius", "volcano"}
	}
	o.Namespace = cmp.Or(o.Namespace, "celsius-system")
	o.ServiceName = cmp.Or(o.ServiceName, "celsius-webhook")
	o.Address = cmp.Or(o.Address, ":8443")
	o.ConfigurationName = cmp.Or(o.ConfigurationName, "celsius")
	return o
}

// Run serves admission until ctx ends. It listens, and then writes its CA into the webhook configurations. It returns nil after a regular
// end.
func Run(ctx context.Context, cfg *rest.Config, o Options) error {
	s, err := newServer(ctx, cfg, o.withDefaults())
	if err != nil {
		return fmt.Errorf("admission: %w", err)
	}
	if err := s.run(ctx); err != nil {
		return fmt.Errorf("admission: %w", err)
	}
	return nil
}

// server is one running admission server.
type server struct {
	options Options
	config  *rest.Config
	log     logr.Logger
	client  client.Client
	cache   cache.Cache
	// listNow lists the objects that can be decoded, directly from the API server.
	listNow   func(context.Context, client.ObjectList) error
	certs     certSource
	endpoints []*endpoint
	metrics   *metrics
	// port is the port that the server listens on; 0 before it listens.
	port int
	// serving is the present certificate.
	serving atomic.Pointer[tls.Certificate]
	// ready states that the API server is configured to call this server.
	ready atomic.Bool
}

func newServer(ctx context.Context, cfg *rest.Config, o Options) (*server, error) {
	scheme, err := knownKinds()
	if err != nil {
		return nil, err
	}
	s := &server{options: o, config: cfg, log: ctrl.LoggerFrom(ctx).WithName("webhook"), metrics: newMetrics()}
	if s.client, err = client.New(cfg, client.Options{Scheme: scheme}); err != nil {
		return nil, fmt.Errorf("reach the API server: %w", err)
	}
	watched := cache.Options{Scheme: scheme, ByObject: map[client.Object]cache.ByObject{
		&schedulingv1beta1.Queue{}: {},
		&corev1.Secret{}: {
			Namespaces: map[string]cache.Config{o.Namespace: {}},
			Field:      fields.OneTermEqualSelector("metadata.name", secretName),
		},
	}}
	watches, err := informers.New(cfg, watched, s.log, s.metrics.registry)
	if err != nil {
		return nil, fmt.Errorf("watch the API server: %w", err)
	}
	s.listNow = watches.List
	if s.cache, err = watches.Cache(watched); err != nil {
		return nil, fmt.Errorf("watch the API server: %w", err)
	}
	s.certs = newCertSource(o, s.client)
	in := s.cluster()
	if in.authorizer, err = authorizing(cfg); err != nil {
		return nil, err
	}
	s.endpoints, err = newEndpoints(o, in, s.metrics)
	return s, err
}

// knownKinds returns a scheme with the kinds that the server reads and writes.
func knownKinds() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, schedulingv1beta1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("know the kinds: %w", err)
		}
	}
	return scheme, nil
}

func (s *server) cluster() cluster {
	return cluster{queues: s.queues, queuesNow: s.queuesNow, annotations: s.annotations, find: s.find, jobTemplates: s.jobTemplatesOf}
}

// annotations returns the annotations of a namespace. It returns none if the namespace no longer exists.
func (s *server) annotations(ctx context.Context, namespace string) (map[string]string, error) {
	found := &corev1.Namespace{}
	if err := s.client.Get(ctx, client.ObjectKey{Name: namespace}, found); client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("find namespace %s: %w", namespace, err)
	}
	return found.Annotations, nil
}

// queues lists the queues in the cache.
func (s *server) queues(ctx context.Context) ([]schedulingv1beta1.Queue, error) {
	var list schedulingv1beta1.QueueList
	if err := s.cache.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list queues: %w", err)
	}
	return list.Items, nil
}

// queuesNow lists the queues directly from the API server.
func (s *server) queuesNow(ctx context.Context) ([]schedulingv1beta1.Queue, error) {
	var list schedulingv1beta1.QueueList
	if err := s.listNow(ctx, &list); err != nil {
		return nil, fmt.Errorf("list queues: %w", err)
	}
	return list.Items, nil
}

func (s *server) run(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	failed := make(chan error, 4)

	// 1. Listen, with a certificate.
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", s.options.Address)
	if err != nil {
		return fmt.Errorf("listen on %s: %w", s.options.Address, err)
	}
	defer func() { _ = listener.Close() }()
	s.port = listener.Addr().(*net.TCPAddr).Port
	bundle, err := s.loadCertificate(ctx)
	if err != nil {
		return err
	}
	config := &tls.Config{
		MinVersion:     tls.VersionTLS12,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return s.serving.Load(), nil },
		NextProtos:     []string{"h2", "http/1.1"},
	}
	if err := verifyClients(config, s.options.ClientCAFile); err != nil {
		return err
	}
	secure := tls.NewListener(listener, config)
	ended := s.serve(ctx, secure, s.handler(), failed)
	for _, plain := range []struct {
		address string
		handler http.Handler
	}{{s.options.HealthAddress, s.healthHandler()}, {s.options.PprofAddress, profiles()}} {
		if !scrape.On(plain.address) {
			continue
		}
		l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", plain.address)
		if err != nil {
			return fmt.Errorf("listen on %s: %w", plain.address, err)
		}
		s.serve(ctx, l, plain.handler, failed)
	}
	if address := s.options.MetricsAddress; scrape.On(address) {
		served := &scrape.Server{Address: address, From: s.metrics.registry, Log: s.log}
		if s.options.MetricsSecure {
			served.Config = s.config
		}
		go func() {
			if err := served.Start(ctx); err != nil {
				failed <- err
			}
		}()
	}

	// 2. Fill the cache of queues.
	changed, err := s.watch(ctx, failed)
	if err != nil {
		return err
	}

	// 3. Configure the API server to trust and call this server.
	if err := s.register(ctx, bundle); err != nil {
		return err
	}
	s.serves(true)
	s.log.Info("serving", "port", s.port, "configuration", s.options.ConfigurationName)

	err = s.keep(ctx, changed, failed)
	s.serves(false)
	if s.options.UnregisterOnExit {
		err = errors.Join(err, s.unregister(context.WithoutCancel(ctx)))
	}
	stop()
	<-ended
	return err
}

// serve handles requests on a listener until ctx ends. The returned channel closes when all requests are answered.
func (s *server) serve(ctx context.Context, l net.Listener, h http.Handler, failed chan<- error) <-chan struct{} {
	web := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute}
	ended := make(chan struct{})
	context.AfterFunc(ctx, func() {
		defer close(ended)
		within, cancel := context.WithTimeout(context.WithoutCancel(ctx), endWithin)
		defer cancel()
		_ = web.Shutdown(within)
	})
	go func() {
		if err := web.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			failed <- fmt.Errorf("serve on %s: %w", l.Addr(), err)
		}
	}()
	return ended
}

// watch starts the cache and waits until it is filled. The returned channel signals changes of the Secret.
func (s *server) watch(ctx context.Context, failed chan<- error) (<-chan struct{}, error) {
	changed := make(chan struct{}, 1)
	tell := func() {
		select {
		case changed <- struct{}{}:
		default:
		}
	}
	watched := []client.Object{&schedulingv1beta1.Queue{}}
	if s.certs.shared() {
		watched = append(watched, &corev1.Secret{})
	}
	go func() {
		if err := s.cache.Start(ctx); err != nil {
			failed <- fmt.Errorf("watch the API server: %w", err)
		}
	}()
	for _, object := range watched {
		informer, err := s.cache.GetInformer(ctx, object)
		if err != nil {
			return nil, fmt.Errorf("watch %T: %w", object, err)
		}
		if _, ok := object.(*corev1.Secret); !ok {
			continue
		}
		handler := toolscache.ResourceEventHandlerFuncs{
			UpdateFunc: func(any, any) { tell() },
			DeleteFunc: func(any) { tell() },
		}
		if _, err := informer.AddEventHandler(handler); err != nil {
			return nil, fmt.Errorf("watch %T: %w", object, err)
		}
	}
	if !s.cache.WaitForCacheSync(ctx) {
		return nil, fmt.Errorf("watch the API server: %w", context.Cause(ctx))
	}
	return changed, nil
}

// keep renews the certificate and the configurations until ctx ends.
func (s *server) keep(ctx context.Context, changed <-chan struct{}, failed <-chan error) error {
	ticker := time.NewTicker(checkEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-failed:
			return err
		case <-changed:
		case <-ticker.C:
		}
		if err := s.refresh(ctx); err != nil && ctx.Err() == nil {
			s.log.Error(err, "certificates or configurations could not be renewed; serving goes on as it was")
		}
	}
}

// refresh updates the CA and the configurations, and only then uses a new certificate. Thus the API server trusts the certificate before it
// sees it.
func (s *server) refresh(ctx context.Context) error {
	pair, bundle, err := s.certs.load(ctx, time.Now(), s.names())
	if err != nil {
		return err
	}
	if err := s.register(ctx, bundle); err != nil {
		return err
	}
	s.show(pair)
	return nil
}

func (s *server) loadCertificate(ctx context.Context) (bundle []byte, err error) {
	pair, bundle, err := s.certs.load(ctx, time.Now(), s.names())
	if err != nil {
		return nil, err
	}
	s.show(pair)
	return bundle, nil
}

// show uses a certificate for new connections.
func (s *server) show(pair *tls.Certificate) {
	s.serving.Store(pair)
	if pair.Leaf != nil {
		s.metrics.expires.Set(float64(pair.Leaf.NotAfter.Unix()))
	}
}

// serves records whether the API server is configured to call this server.
func (s *server) serves(yes bool) {
	s.ready.Store(yes)
	ready := 0.0
	if yes {
		ready = 1
	}
	s.metrics.ready.Set(ready)
}

// names returns the host names under which the API server may reach this server.
func (s *server) names() []string {
	o := s.options
	service := o.ServiceName + "." + o.Namespace
	names := []string{service + ".svc", service + ".svc.cluster.local", "localhost", "127.0.0.1"}
	if o.URLHost != "" {
		host := o.URLHost
		if h, _, err := net.SplitHostPort(host); err == nil {
			host = h
		}
		host = strings.Trim(host, "[]")
		if ip := net.ParseIP(host); ip != nil {
			host = ip.String()
		}
		names = append(names, host)
	}
	return names
}

// handler routes requests of the API server.
func (s *server) handler() http.Handler {
	mux, inTurn := http.NewServeMux(), make(turns, maxReviews)
	for _, e := range s.endpoints {
		mux.Handle(e.path, s.metrics.instrument(e.path, inTurn.serve(&admission.Webhook{Handler: s.recovering(limited(e.resource, e.handler))})))
	}
	return mux
}

// recovering refuses a request if its handler panics. The refusal names the object and the cause, and other requests continue.
func (s *server) recovering(h admission.Handler) admission.Handler {
	return admission.HandlerFunc(func(ctx context.Context, req admission.Request) (answer admission.Response) {
		p := recovery.Catch(recovery.Admission, func() { answer = h.Handle(ctx, req) })
		if p == nil {
			return answer
		}
		p.Object = recovery.Object{Kind: req.Kind.Kind, Namespace: req.Namespace, Name: req.Name}
		s.metrics.panics.WithLabelValues(string(recovery.Admission)).Inc()
		s.log.Error(nil, "a panic was recovered", "place", p.Place, "object", p.Object.String(), "operation", req.Operation, "cause", p.Cause,
			"stack", p.Stack)
		return admission.Errored(http.StatusInternalServerError, p)
	})
}

// profiles serves profiles of the process.
func profiles() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	return mux
}

func (s *server) healthHandler() http.Handler {
	mux := http.NewServeMux()
	ok := func(w http.ResponseWriter) { _, _ = w.Write([]byte("ok\n")) }
	mux.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) { ok(w) })
	mux.HandleFunc("/readyz", func(w http.ResponseWriter, _ *http.Request) {
		if !s.ready.Load() {
			http.Error(w, "the API server has not been told of this server yet, or no longer calls it", http.StatusServiceUnavailable)
			return
		}
		ok(w)
	})
	return mux
}

// metrics are the metrics of one server, in a registry of its own.
type metrics struct {
	registry *prometheus.Registry
	seconds  *prometheus.HistogramVec
	refused  *prometheus.CounterVec
	broken   *prometheus.CounterVec
	panics   *prometheus.CounterVec
	ready    prometheus.Gauge
	expires  prometheus.Gauge
}

func newMetrics() *metrics {
	m := &metrics{registry: prometheus.NewRegistry()}
	m.register(m.registry)
	return m
}

// Metrics registers all metrics of the webhook without a running webhook.
func Metrics(into prometheus.Registerer) error {
	(&metrics{}).register(into)
	return informers.Metrics(into)
}

func (m *metrics) register(into prometheus.Registerer) {
	m.seconds = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "celsius_admission_request_seconds", Help: "How long requests of the API server took to answer, by path, in seconds.",
		Buckets: prometheus.ExponentialBuckets(0.0005, 2, 14),
	}, []string{"path"})
	m.refused = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "celsius_admission_mistakes_total",
		Help: "Mistakes found in refused objects, by the kind of the object and by the row that found the mistake.",
	}, []string{"kind", "rule"})
	m.broken = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "celsius_admission_failures_total",
		Help: "Requests that were refused because a rule itself failed, which says nothing of the object, by kind. The log says why.",
	}, []string{"kind"})
	m.panics = recovery.NewCounter(into, recovery.Admission)
	m.ready = prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "celsius_admission_ready", Help: "1 while the API server has been told of this server, and calls it.",
	})
	m.expires = prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "celsius_admission_certificate_expiry_timestamp_seconds",
		Help: "Until when the certificate holds that is shown to the API server, in seconds since 1970.",
	})
	into.MustRegister(m.seconds, m.refused, m.broken, m.ready, m.expires)
}

func (m *metrics) instrument(path string, h http.Handler) http.Handler {
	return promhttp.InstrumentHandlerDuration(m.seconds.MustCurryWith(prometheus.Labels{"path": path}), h)
}
