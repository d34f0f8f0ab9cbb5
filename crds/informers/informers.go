package informers

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	runtimeserializer "k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	batchv1alpha1 "github.com/celsius-scheduler/celsius/crds/batch/v1alpha1"
	busv1alpha1 "github.com/celsius-scheduler/celsius/crds/bus/v1alpha1"
	nodeinfov1alpha1 "github.com/celsius-scheduler/celsius/crds/nodeinfo/v1alpha1"
	policyv1alpha1 "github.com/celsius-scheduler/celsius/crds/policy/v1alpha1"
	schedulingv1beta1 "github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
)

// listSuffix makes the kind of a list of a kind.
const listSuffix = "List"

// Informers makes caches, and knows which objects are left out of them.
type Informers struct {
	config     *rest.Config
	httpClient *http.Client
	scheme     *runtime.Scheme
	mapper     meta.RESTMapper
	serializer serializer
	left       *leftOut

	mu      sync.Mutex
	clients map[schema.GroupVersion]rest.Interface
}

// New prepares caches that have the options' scheme, HTTP client and mapper; what of these is missing is made, as cache.New does.
// What is left out is logged, and counted in a gauge of the registry.
func New(cfg *rest.Config, o cache.Options, log logr.Logger, registry prometheus.Registerer) (*Informers, error) {
	left, err := newLeftOut(log, registry)
	if err != nil {
		return nil, err
	}
	i := &Informers{
		config: cfg, httpClient: o.HTTPClient, scheme: o.Scheme, mapper: o.Mapper, left: left, clients: map[schema.GroupVersion]rest.Interface{},
		serializer: serializer{
			runtimeserializer.WithoutConversionCodecFactory{CodecFactory: runtimeserializer.NewCodecFactory(o.Scheme)},
			o.Scheme, left.add,
		},
	}
	if i.httpClient == nil {
		if i.httpClient, err = rest.HTTPClientFor(cfg); err != nil {
			return nil, fmt.Errorf("make an HTTP client: %w", err)
		}
	}
	if i.mapper == nil {
		if i.mapper, err = apiutil.NewDynamicRESTMapper(cfg, i.httpClient); err != nil {
			return nil, fmt.Errorf("learn the resources of the API server: %w", err)
		}
	}
	return i, nil
}

// Cache is a cache of these options. Selectors by object hold for Kubernetes' kinds only. There may be one default namespace.
func (i *Informers) Cache(o cache.Options) (cache.Cache, error) {
	o.HTTPClient, o.Mapper = i.httpClient, i.mapper
	namespace := metav1.NamespaceAll
	if len(o.DefaultNamespaces) > 1 {
		return nil, fmt.Errorf("watch in %d namespaces: give one, or none for all", len(o.DefaultNamespaces))
	}
	for name := range o.DefaultNamespaces {
		namespace = name
	}
	o.NewInformer = func(lw toolscache.ListerWatcher, kind runtime.Object, resync time.Duration,
		indexers toolscache.Indexers,
	) toolscache.SharedIndexInformer {
		if gvk, err := apiutil.GVKForObject(kind, i.scheme); err == nil && ours(gvk, kind) {
			lw = i.listWatch(gvk, namespace)
		}
		return toolscache.NewSharedIndexInformer(lw, kind, resync, indexers)
	}
	return cache.New(i.config, o) //nolint:wrapcheck // it is cache.New
}

// List reads all objects of a list's kind from the API server, but those that cannot be decoded.
func (i *Informers) List(ctx context.Context, into client.ObjectList) error {
	gvk, err := apiutil.GVKForObject(into, i.scheme)
	if err != nil {
		return fmt.Errorf("list %T: %w", into, err)
	}
	req, err := i.request(gvk.GroupVersion().WithKind(strings.TrimSuffix(gvk.Kind, listSuffix)), metav1.NamespaceAll, &metav1.ListOptions{})
	if err != nil {
		return err
	}
	return req.Do(ctx).Into(into) //nolint:wrapcheck // the caller says what was asked
}

// LeftOut is why an object is left out, as far as it was seen; nil: it is not.
func (i *Informers) LeftOut(o client.Object) error {
	if gvk, err := apiutil.GVKForObject(o, i.scheme); err == nil {
		return i.left.why(gvk.Kind, client.ObjectKeyFromObject(o))
	}
	return nil // who watches it does not do so here
}

// Tell has tell called for each object that is left out now, and for each version of one that is from now on.
func (i *Informers) Tell(tell func(o client.Object, why string)) { i.left.tellTo(tell) }

// ours says whether a kind is one whose Go type decides what can be decoded. Kubernetes' own kinds are stored by their types.
func ours(gvk schema.GroupVersionKind, kind runtime.Object) bool {
	switch kind.(type) {
	case runtime.Unstructured, *metav1.PartialObjectMetadata:
		return false
	}
	return slices.Contains([]schema.GroupVersion{
		batchv1alpha1.GroupVersion, busv1alpha1.GroupVersion, nodeinfov1alpha1.GroupVersion, policyv1alpha1.GroupVersion,
		schedulingv1beta1.GroupVersion,
	}, gvk.GroupVersion())
}

// client reaches one group.
func (i *Informers) client(gv schema.GroupVersion) (rest.Interface, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if c := i.clients[gv]; c != nil {
		return c, nil
	}
	cfg := rest.CopyConfig(i.config)
	cfg.GroupVersion, cfg.APIPath = &gv, "/apis"
	if cfg.UserAgent == "" {
		cfg.UserAgent = rest.DefaultKubernetesUserAgent()
	}
	cfg.ContentType, cfg.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON
	cfg.NegotiatedSerializer = i.serializer
	c, err := rest.RESTClientForConfigAndClient(cfg, i.httpClient)
	if err != nil {
		return nil, fmt.Errorf("make a client for %s: %w", gv, err)
	}
	i.clients[gv] = c
	return c, nil
}

// request is for the objects of a kind in a namespace, "": in all.
func (i *Informers) request(gvk schema.GroupVersionKind, namespace string, o *metav1.ListOptions) (*rest.Request, error) {
	c, err := i.client(gvk.GroupVersion())
	if err != nil {
		return nil, err
	}
	mapping, err := i.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return nil, fmt.Errorf("find the resource of %s: %w", gvk.Kind, err)
	}
	return c.Get().NamespaceIfScoped(namespace, namespace != "" && mapping.Scope.Name() == meta.RESTScopeNameNamespace).
		Resource(mapping.Resource.Resource).VersionedParams(o, runtime.NewParameterCodec(i.scheme)), nil
}

// listWatch is what an informer of one kind asks the API server by.
func (i *Informers) listWatch(gvk schema.GroupVersionKind, namespace string) *toolscache.ListWatch {
	return &toolscache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			list, err := i.scheme.New(gvk.GroupVersion().WithKind(gvk.Kind + listSuffix))
			if err != nil {
				return nil, fmt.Errorf("list %s: %w", gvk.Kind, err)
			}
			req, err := i.request(gvk, namespace, &o)
			if err != nil {
				return nil, err
			}
			if o.Continue == "" {
				i.left.begin(gvk.Kind)
			}
			if err := req.Do(ctx).Into(list); err != nil {
				return nil, err //nolint:wrapcheck // the reflector looks at it
			}
			if m, err := meta.ListAccessor(list); err == nil && m.GetContinue() == "" {
				i.left.end(gvk.Kind)
			}
			return list, nil
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.Watch, o.AllowWatchBookmarks = true, true
			req, err := i.request(gvk, namespace, &o)
			if err != nil {
				return nil, err
			}
			if o.SendInitialEvents != nil && *o.SendInitialEvents {
				i.left.begin(gvk.Kind)
			}
			w, err := req.Watch(ctx)
			if err != nil {
				return nil, err //nolint:wrapcheck // the reflector looks at it
			}
			return watch.Filter(w, func(e watch.Event) (watch.Event, bool) { return i.left.pass(gvk.Kind, e), true }), nil
		},
	}
}
