package live

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "github.com/celsius-scheduler/celsius/crds/batch/v1alpha1"
	"github.com/celsius-scheduler/celsius/crds/informers"
	nodeinfov1alpha1 "github.com/celsius-scheduler/celsius/crds/nodeinfo/v1alpha1"
	"github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
	"github.com/celsius-scheduler/celsius/engine/live/scrape"
	"github.com/celsius-scheduler/celsius/engine/live/strip"
	"github.com/celsius-scheduler/celsius/engine/model"
)

// newCache returns a cache of the objects that the scheduler reads, without the fields that it does not read. The function tell is called
// for each object that cannot be decoded. The function failed, if set, is called for lists and watches that fail. Only the leader uses this
// cache, so all its objects were listed after the lease was acquired.
func (s *scheduler) newCache(transform toolscache.TransformFunc, tell func(o client.Object, why string),
	failed toolscache.WatchErrorHandlerWithContext,
) (cache.Cache, error) {
	selector, err := labels.Parse(s.o.NodeSelector)
	if err != nil {
		return nil, fmt.Errorf("node selector %q: %w", s.o.NodeSelector, err)
	}
	cfg := rest.CopyConfig(s.cfg)
	cfg.Wrap(upToDate)
	lists, err := rest.HTTPClientFor(cfg)
	if err != nil {
		return nil, fmt.Errorf("make a cache of the cluster: %w", err)
	}
	o := cache.Options{
		Scheme: s.scheme, HTTPClient: lists, Mapper: s.manager.GetRESTMapper(),
		DefaultTransform: transform, DefaultWatchErrorHandler: failed,
		ByObject: map[client.Object]cache.ByObject{
			&corev1.Node{}: {Label: selector},
		},
	}
	watches, err := informers.New(cfg, o, s.log, s.metrics.registry)
	if err != nil {
		return nil, fmt.Errorf("watch the cluster: %w", err)
	}
	watches.Tell(tell)
	c, err := watches.Cache(o)
	if err != nil {
		return nil, fmt.Errorf("make a cache of the cluster: %w", err)
	}
	return c, nil
}

// newStripper returns a stripper that removes the fields that the scheduler does not read.
func newStripper() *strip.Stripper {
	return strip.New(strip.Own{Manager: FieldManager, Annotation: WhyAnnotation})
}

// upToDate makes lists return everything that was written before the request. Informers begin with the cached data of the API server, which
// may be older than the last binding of the previous leader. If the server can stream its lists, they are up to date in any case.
func upToDate(next http.RoundTripper) http.RoundTripper {
	return scrape.Before{Next: next, Look: func(r *http.Request) *http.Request {
		if q := r.URL.Query(); q.Get("resourceVersion") == "0" && !q.Has("watch") {
			q.Del("resourceVersion")
			q.Del("resourceVersionMatch")
			r = r.Clone(r.Context())
			r.URL.RawQuery = q.Encode()
		}
		return r
	}}
}

// watched returns the types that the scheduler watches.
func watched() []client.Object {
	return []client.Object{
		&corev1.Node{}, &corev1.Namespace{}, &corev1.ResourceQuota{}, &policyv1.PodDisruptionBudget{}, &schedulingv1.PriorityClass{},
		&v1beta1.Queue{},
		&batchv1alpha1.Job{}, &v1beta1.PodGroup{}, &corev1.Pod{},
		&nodeinfov1alpha1.Numatopology{},
		&corev1.PersistentVolume{}, &corev1.PersistentVolumeClaim{},
		&storagev1.StorageClass{}, &storagev1.CSINode{}, &storagev1.CSIDriver{}, &storagev1.CSIStorageCapacity{}, &storagev1.VolumeAttachment{},
	}
}

// optional reports whether a cluster may lack a type. Then no object of this type exists.
func optional(kind client.Object) bool {
	switch kind.(type) {
	case *storagev1.CSINode, *storagev1.CSIDriver, *storagev1.CSIStorageCapacity, *storagev1.VolumeAttachment, *nodeinfov1alpha1.Numatopology:
		return true
	}
	return false
}

// watchAll adds every change to the feed. synced waits until the feed has all objects that existed at the start.
func watchAll(ctx context.Context, c cache.Cache, names []string, f *feed) (synced func(context.Context) bool, err error) {
	var all []toolscache.InformerSynced
	for _, kind := range watched() {
		informer, err := c.GetInformer(ctx, kind)
		if meta.IsNoMatchError(err) && optional(kind) {
			continue
		}
		if err != nil {
			if meta.IsNoMatchError(err) {
				return nil, fmt.Errorf("watch %T: %w; are Celsius' CustomResourceDefinitions applied?", kind, err)
			}
			return nil, fmt.Errorf("watch %T: %w", kind, err)
		}
		handle, err := informer.AddEventHandler(handler(names, f))
		if err != nil {
			return nil, fmt.Errorf("watch %T: %w", kind, err)
		}
		all = append(all, handle.HasSynced)
	}
	return func(ctx context.Context) bool { return toolscache.WaitForCacheSync(ctx.Done(), all...) }, nil
}

// handler returns a handler that adds the changes of an informer to the feed. The objects belong to the cache and must not be changed.
func handler(names []string, f *feed) toolscache.ResourceEventHandler {
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc: func(o any) {
			pod, ok := o.(*corev1.Pod)
			f.add(change{op: model.Upsert, object: o, whole: ok && alone(names, pod)}, !ok || canBePlaced(names, pod))
		},
		UpdateFunc: func(old, o any) {
			switch matters(names, old, o) {
			case notAtAll:
			case lazily:
				f.add(change{op: model.Upsert, object: o}, false)
			case urgently:
				f.add(change{op: model.Upsert, object: o}, true)
			}
		},
		DeleteFunc: func(o any) {
			if tomb, ok := o.(toolscache.DeletedFinalStateUnknown); ok {
				o = tomb.Obj
			}
			f.add(change{op: model.Delete, object: o}, true)
		},
	}
}

// canBePlaced reports whether a new pod can be decided on. Such a pod is ours and not bound, and its group is known or it is bare.
func canBePlaced(names []string, o *corev1.Pod) bool {
	return o.Spec.NodeName == "" && slices.Contains(names, o.Spec.SchedulerName) && (model.GroupOf(o) != "" || alone(names, o))
}

// urgency is how soon a change can affect a decision.
type urgency uint8

const (
	notAtAll urgency = iota
	lazily
	urgently
)

// matters compares two versions of an object.
func matters(names []string, old, o any) urgency {
	switch o := o.(type) {
	case *corev1.Pod:
		return podMatters(names, old.(*corev1.Pod), o)
	case *corev1.Node:
		return nodeMatters(old.(*corev1.Node), o)
	case *v1beta1.PodGroup:
		was := old.(*v1beta1.PodGroup)
		switch {
		case was.ResourceVersion == o.ResourceVersion:
			return notAtAll
		case sameMeta(was, o) && equality.Semantic.DeepEqual(was.Spec, o.Spec):
			return lazily // only the status changed, most likely by our own write
		}
	case *v1beta1.Queue:
		return queueMatters(old.(*v1beta1.Queue), o)
	case *batchv1alpha1.Job:
		if equality.Semantic.DeepEqual(old.(*batchv1alpha1.Job).Spec, o.Spec) { // the stripper left only the relevant fields
			return notAtAll
		}
	case *corev1.ResourceQuota:
		return quotaMatters(old.(*corev1.ResourceQuota), o)
	case *policyv1.PodDisruptionBudget:
		return budgetMatters(old.(*policyv1.PodDisruptionBudget), o)
	case *corev1.Namespace:
		if sameMeta(old.(*corev1.Namespace), o) {
			return notAtAll
		}
	case *storagev1.VolumeAttachment, *storagev1.CSIStorageCapacity, *storagev1.CSINode, *corev1.PersistentVolume,
		*corev1.PersistentVolumeClaim, *nodeinfov1alpha1.Numatopology:
		return storageMatters(old, o)
	}
	return urgently
}

// storageMatters ignores the frequent reports of drivers and controllers about volumes, and of exporters about CPUs.
func storageMatters(old, o any) urgency {
	same := false
	switch o := o.(type) {
	case *nodeinfov1alpha1.Numatopology:
		same = equality.Semantic.DeepEqual(old.(*nodeinfov1alpha1.Numatopology).Spec, o.Spec)
	case *storagev1.VolumeAttachment:
		same = equality.Semantic.DeepEqual(old.(*storagev1.VolumeAttachment).Spec, o.Spec)
	case *storagev1.CSINode:
		same = equality.Semantic.DeepEqual(old.(*storagev1.CSINode).Spec, o.Spec) && sameMeta(old.(*storagev1.CSINode), o)
	case *storagev1.CSIStorageCapacity:
		was := old.(*storagev1.CSIStorageCapacity)
		same = equality.Semantic.DeepEqual(was.Capacity, o.Capacity) && equality.Semantic.DeepEqual(was.MaximumVolumeSize, o.MaximumVolumeSize)
	case *corev1.PersistentVolume:
		same = old.(*corev1.PersistentVolume).ResourceVersion == o.ResourceVersion
	case *corev1.PersistentVolumeClaim:
		same = old.(*corev1.PersistentVolumeClaim).ResourceVersion == o.ResourceVersion
	}
	if same {
		return notAtAll
	}
	return urgently
}

// quotaMatters returns urgently if a quota has other limits or less usage, because a job may then be admitted.
func quotaMatters(old, o *corev1.ResourceQuota) urgency {
	switch {
	case old.ResourceVersion == o.ResourceVersion:
		return notAtAll
	case !equality.Semantic.DeepEqual(old.Status.Hard, o.Status.Hard):
		return urgently
	}
	for name, before := range old.Status.Used {
		if now := o.Status.Used[name]; now.Cmp(before) < 0 {
			return urgently
		}
	}
	return lazily
}

// budgetMatters returns urgently if a budget selects other pods or allows more disruptions, because victims may then free resources.
func budgetMatters(old, o *policyv1.PodDisruptionBudget) urgency {
	switch {
	case old.ResourceVersion == o.ResourceVersion:
		return notAtAll
	case old.Generation == o.Generation && o.Status.DisruptionsAllowed <= old.Status.DisruptionsAllowed:
		return lazily
	}
	return urgently
}

func queueMatters(old, o *v1beta1.Queue) urgency {
	switch {
	case old.ResourceVersion == o.ResourceVersion:
		return notAtAll
	case old.Generation == o.Generation && sameMeta(old, o) && old.Status.State == o.Status.State:
		return lazily // most likely only counts changed
	}
	return urgently
}

func sameMeta(a, b metav1.Object) bool {
	return a.GetUID() == b.GetUID() && maps.Equal(a.GetLabels(), b.GetLabels()) && maps.Equal(a.GetAnnotations(), b.GetAnnotations())
}

// podMatters returns urgently if a pod frees its resources, or if one of our waiting pods was changed.
func podMatters(names []string, old, o *corev1.Pod) urgency {
	finished := func(p *corev1.Pod) bool {
		return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
	}
	switch {
	case old.ResourceVersion == o.ResourceVersion:
		return notAtAll
	case old.UID != o.UID, finished(old) != finished(o), (old.DeletionTimestamp == nil) != (o.DeletionTimestamp == nil):
		return urgently
	case o.Spec.NodeName != "":
		return lazily
	case !slices.Contains(names, o.Spec.SchedulerName), old.Generation == o.Generation && sameMeta(old, o) &&
		len(old.Spec.SchedulingGates) == len(o.Spec.SchedulingGates):
		return lazily
	}
	return urgently
}

// nodeMatters ignores the frequent reports of kubelets.
func nodeMatters(old, o *corev1.Node) urgency {
	if sameMeta(old, o) && standing(model.Upsert, old) == standing(model.Upsert, o) &&
		equality.Semantic.DeepEqual(old.Spec, o.Spec) && equality.Semantic.DeepEqual(old.Status.Allocatable, o.Status.Allocatable) &&
		equality.Semantic.DeepEqual(old.Status.Capacity, o.Status.Capacity) && equality.Semantic.DeepEqual(old.Status.Images, o.Status.Images) {
		return notAtAll
	}
	return urgently
}
