package dashboard

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	batchv1alpha1 "github.com/celsius-scheduler/celsius/crds/batch/v1alpha1"
	"github.com/celsius-scheduler/celsius/crds/informers"
	policyv1alpha1 "github.com/celsius-scheduler/celsius/crds/policy/v1alpha1"
	schedulingv1beta1 "github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
	"github.com/celsius-scheduler/celsius/engine/live/questions"
)

const (
	// figuresEvery is how often the scheduler's metrics are read while pages are connected.
	figuresEvery = 5 * time.Second
	// againAfter is the time until the next check for a missing kind.
	againAfter = 30 * time.Second
)

// followed is a watched kind.
type followed struct {
	kind       string
	object     client.Object
	namespaced bool
}

func followedKinds() []followed {
	policies := &unstructured.Unstructured{}
	policies.SetGroupVersionKind(policyv1alpha1.GroupVersion.WithKind("SchedulingPolicy"))
	return []followed{
		{kindNodes, &corev1.Node{}, false},
		{kindPods, &corev1.Pod{}, true},
		{kindGroups, &schedulingv1beta1.PodGroup{}, true},
		{kindJobs, &batchv1alpha1.Job{}, true},
		{kindQueues, &schedulingv1beta1.Queue{}, false},
		{kindPolicies, policies, false},
	}
}

// watcher watches a cluster for a state, each kind separately. Thus a kind that may not be listed does not affect the others.
type watcher struct {
	*state
	config    *rest.Config
	namespace string // "": all
	log       logr.Logger
	http      *http.Client
	mapper    meta.RESTMapper
	scheme    *runtime.Scheme
}

func newWatcher(s *state, cfg *rest.Config, namespace string, log logr.Logger) (*watcher, error) {
	w := &watcher{state: s, config: cfg, namespace: namespace, log: log, scheme: runtime.NewScheme()}
	err := errors.Join(clientscheme.AddToScheme(w.scheme), batchv1alpha1.AddToScheme(w.scheme), schedulingv1beta1.AddToScheme(w.scheme))
	if err != nil {
		return nil, fmt.Errorf("know the kinds: %w", err)
	}
	if w.http, err = rest.HTTPClientFor(cfg); err != nil {
		return nil, fmt.Errorf("make an HTTP client: %w", err)
	}
	if w.mapper, err = apiutil.NewDynamicRESTMapper(cfg, w.http); err != nil {
		return nil, fmt.Errorf("learn the resources of the API server: %w", err)
	}
	return w, nil
}

// follow keeps the objects of a kind in the state until ctx ends.
func (w *watcher) follow(ctx context.Context, k followed) {
	w.lack(k.kind, "it is being read", time.Now())
	for ctx.Err() == nil {
		if err := w.watch(ctx, k); err != nil {
			w.lack(k.kind, w.lacks(k, err), time.Now())
		}
		select {
		case <-ctx.Done():
		case <-time.After(againAfter):
		}
	}
}

// watch watches a kind until ctx ends. It returns an error if the watch cannot start.
func (w *watcher) watch(ctx context.Context, k followed) error {
	o := cache.Options{
		Scheme: w.scheme, HTTPClient: w.http, Mapper: w.mapper, DefaultTransform: w.strip,
		DefaultWatchErrorHandler: func(_ context.Context, _ *toolscache.Reflector, err error) {
			if why := w.lacks(k, err); why != "" {
				w.lack(k.kind, why, time.Now())
			}
		},
	}
	if w.namespace != "" && k.namespaced {
		o.DefaultNamespaces = map[string]cache.Config{w.namespace: {}}
	}
	watches, err := informers.New(w.config, o, w.log, prometheus.NewRegistry())
	if err != nil {
		return err
	}
	c, err := watches.Cache(o)
	if err != nil {
		return err
	}
	informer, err := c.GetInformer(ctx, k.object, cache.BlockUntilSynced(false))
	if err != nil {
		return err
	}
	handle, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc: w.put, UpdateFunc: func(_, o any) { w.put(o) }, DeleteFunc: w.drop,
	})
	if err != nil {
		return err
	}
	go func() {
		if toolscache.WaitForCacheSync(ctx.Done(), handle.HasSynced) {
			w.lack(k.kind, "", time.Now())
		}
	}()
	return c.Start(ctx)
}

// lacks returns why a kind is not shown, with a remedy. It returns "" for temporary errors.
func (w *watcher) lacks(k followed, err error) string {
	where := "in all namespaces"
	switch {
	case !k.namespaced:
		where = "in the cluster"
	case w.namespace != "":
		where = "in namespace " + w.namespace
	}
	switch {
	case apierrors.IsForbidden(err):
		hint := ""
		if k.namespaced && w.namespace == "" {
			hint = ", or start with -n NAMESPACE to see one in which you may"
		}
		return fmt.Sprintf("you may not list and watch %s %s: ask for a role that lets you%s", k.kind, where, hint)
	case meta.IsNoMatchError(err) || apierrors.IsNotFound(err):
		return fmt.Sprintf("the cluster knows no %s: are Celsius' CustomResourceDefinitions applied?", k.kind)
	case apierrors.IsResourceExpired(err) || apierrors.IsGone(err), errors.Is(err, context.Canceled):
		return "" // it is listed again
	}
	return "they cannot be read: " + err.Error()
}

// apiClient reads single objects from the API server.
type apiClient struct{ kube kubernetes.Interface }

// Events implements cluster.
func (c apiClient) Events(ctx context.Context, namespace, name string) ([]corev1.Event, error) {
	list, err := c.kube.CoreV1().Events(namespace).List(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("involvedObject.name", name).String(), Limit: mostEvents,
	})
	if err != nil {
		return nil, err //nolint:wrapcheck // who asked looks at it
	}
	return list.Items, nil
}

// Raw implements cluster.
func (c apiClient) Raw(ctx context.Context, path, accept string) ([]byte, error) {
	result := c.kube.CoreV1().RESTClient().Get().AbsPath(path).SetHeader("Accept", accept).Do(ctx)
	if err := result.Error(); err != nil { // it contains the server's message, which the error of Raw does not
		return nil, err //nolint:wrapcheck // who asked looks at it
	}
	return result.Raw()
}

// count reads the scheduler's metrics repeatedly until ctx ends. It reads less often while no page is connected.
func (s *state) count(ctx context.Context, c cluster, looks func() bool) {
	for rounds := 0; ; rounds++ {
		if looks() || rounds%3 == 0 {
			s.countOnce(ctx, c)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(figuresEvery):
		}
	}
}

func (s *state) countOnce(ctx context.Context, c cluster) {
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	s.mu.Lock()
	before := s.figures
	s.mu.Unlock()
	now := time.Now()
	next := before
	page, err := c.Raw(ctx, questions.MetricsPath, "text/plain")
	if err == nil {
		next, err = read(page, before, now)
	}
	why := ""
	if err != nil {
		why = lacksFigures(err)
		if next = before; now.Sub(before.at) > gapHolds {
			next = &figures{}
		}
	}
	s.lack(kindFigures, why, now)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.figures, s.changed = next, true
}

// lacksFigures returns why the figures of the scheduler are missing.
func lacksFigures(err error) string {
	const without = "; without it, what queues are due is what their spec says, and rows of policies have no counts"
	switch {
	case apierrors.IsForbidden(err):
		return "you may not get " + kindFigures + ": ask for ClusterRole celsius-explain-cluster" + without
	case apierrors.IsNotFound(err):
		return "no scheduler of this cluster tells what it counts: start it with --explain-address, as that of deploy is" + without
	case apierrors.IsServiceUnavailable(err):
		return "the scheduler does not answer just now" + without
	}
	return "the scheduler does not tell what it counts: " + err.Error() + without
}
