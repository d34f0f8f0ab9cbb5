package controller

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	batchv1alpha1 "github.com/celsius-scheduler/celsius/crds/batch/v1alpha1"
	schedulingv1beta1 "github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
	"github.com/celsius-scheduler/celsius/statemachines/objects"
)

// barePods creates a PodGroup for pods of our schedulers that have none.
type barePods struct{ *parts }

func addBarePods(mgr manager.Manager, p *parts) error {
	return ctrl.NewControllerManagedBy(mgr).Named("podgroup").For(&corev1.Pod{}).
		WithOptions(p.controllerOptions()).
		Complete(p.recovering(&corev1.Pod{}, &barePods{p}))
}

// The PodGroup of a pod without a controller contains only this pod. The scheduler schedules such a pod without a PodGroup. It writes the
// group's name with the binding, and creates the PodGroup with its first status. If the scheduler has not done so this long after the pod's
// creation, barePods creates the PodGroup.
const aloneFor = 30 * time.Second

// ours reports whether a pod belongs to our schedulers and may need a PodGroup.
func (b *barePods) ours(pod *corev1.Pod) bool {
	return slices.Contains(b.options.SchedulerNames, pod.Spec.SchedulerName) && !deleting(pod) && !finished(pod)
}

// Reconcile creates the PodGroup of a pod that names no PodGroup. It writes the name into the pod, unless the Binding of the pod wrote
// it.
func (b *barePods) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	pod := &corev1.Pod{}
	if err := b.client.Get(ctx, req.NamespacedName, pod); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	name, named := objects.BareGroupName(pod), objects.GroupOf(pod)
	alone := metav1.GetControllerOfNoCopy(pod) == nil
	if !b.ours(pod) || named != "" && (named != name || !alone && !changed(pod)) {
		return reconcile.Result{}, nil
	}
	if young := aloneFor - b.now().Sub(pod.CreationTimestamp.Time); alone && young > 0 {
		return reconcile.Result{RequeueAfter: young}, nil
	}
	if err := b.ensure(ctx, pod, name); err != nil || named != "" {
		return reconcile.Result{}, err
	}
	old := pod.DeepCopy()
	metav1.SetMetaDataAnnotation(&pod.ObjectMeta, schedulingv1beta1.KubeGroupNameAnnotationKey, name)
	err := b.client.Patch(ctx, pod, client.MergeFrom(old), client.FieldOwner(fieldManager))
	if client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, fmt.Errorf("tell pod %s its PodGroup: %w", req, err)
	}
	return reconcile.Result{}, nil
}

// changed reports whether the spec of a pod was updated after its creation: its requests may have been resized in place.
func changed(pod *corev1.Pod) bool { return pod.Generation > 1 }

// ensure creates the PodGroup of a pod if it does not exist. If it exists, its minResources follow the pod.
func (b *barePods) ensure(ctx context.Context, pod *corev1.Pod, name string) error {
	existing := &schedulingv1beta1.PodGroup{}
	err := b.client.Get(ctx, types.NamespacedName{Namespace: pod.Namespace, Name: name}, existing)
	if err == nil {
		return b.follow(ctx, pod, existing)
	}
	if !apierrors.IsNotFound(err) {
		return err //nolint:wrapcheck // only the cache was asked
	}
	inherited, err := b.ownerAnnotations(ctx, pod)
	if err != nil {
		return err
	}
	group, wrong := objects.BareGroup(pod, name, inherited)
	if group.Spec.Queue == "" {
		group.Spec.Queue = objects.QueueName(b.namespaceQueue(ctx, pod.Namespace))
	}
	err = b.client.Create(ctx, group, client.FieldOwner(fieldManager))
	switch {
	case apierrors.IsAlreadyExists(err):
	case err != nil:
		b.event(pod, corev1.EventTypeWarning, string(batchv1alpha1.PodGroupError), "CreatePodGroup",
			"PodGroup %s could not be made: %s", name, err)
		return fmt.Errorf("make PodGroup %s/%s: %w", pod.Namespace, name, err)
	default:
		for _, err := range wrong {
			b.event(pod, corev1.EventTypeWarning, string(batchv1alpha1.PodGroupError), "CreatePodGroup", "%s", err)
		}
	}
	return nil
}

// follow derives the minResources of a PodGroup again from a new pod of its owner, because the template of the owner may have changed. It
// does the same from the youngest pod if that pod was resized in place. A pod is new until it names its PodGroup. follow does not change a
// PodGroup that these controllers did not create for the owner.
func (b *barePods) follow(ctx context.Context, pod *corev1.Pod, group *schedulingv1beta1.PodGroup) error {
	maker := pod.UID
	if owner := metav1.GetControllerOfNoCopy(pod); owner != nil {
		maker = owner.UID
	}
	if !slices.ContainsFunc(group.OwnerReferences, func(o metav1.OwnerReference) bool { return o.UID == maker }) {
		return nil
	}
	known := objects.GroupOf(pod) != ""
	if known && !changed(pod) {
		return nil
	}
	inherited, err := b.ownerAnnotations(ctx, pod)
	if err != nil {
		return err
	}
	want, _ := objects.BareGroup(pod, group.Name, inherited)
	if apiequality.Semantic.DeepEqual(group.Spec.MinResources, want.Spec.MinResources) {
		return nil
	}
	if known {
		if youngest, err := b.youngest(ctx, group); err != nil || youngest != pod.UID {
			return err
		}
	}
	old := group
	group = group.DeepCopy()
	group.Spec.MinResources = want.Spec.MinResources
	err = b.client.Patch(ctx, group, client.MergeFrom(old), client.FieldOwner(fieldManager))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("bring minResources of PodGroup %s/%s in line with pod %s: %w", group.Namespace, group.Name, pod.Name, err)
	}
	return nil
}

// youngest returns the UID of the pod of a PodGroup that was created last, of those that have not ended. If several were created at the
// same time, the last name counts.
func (b *barePods) youngest(ctx context.Context, group *schedulingv1beta1.PodGroup) (types.UID, error) {
	pods := &corev1.PodList{}
	if err := b.client.List(ctx, pods, client.InNamespace(group.Namespace), client.MatchingFields{byGroup: group.Name},
		client.UnsafeDisableDeepCopy); err != nil {
		return "", fmt.Errorf("list the pods of PodGroup %s: %w", group.Name, err)
	}
	alive := slices.DeleteFunc(pods.Items, func(p corev1.Pod) bool { return finished(&p) || deleting(&p) })
	if len(alive) == 0 {
		return "", nil
	}
	return slices.MaxFunc(alive, func(a, b corev1.Pod) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	}).UID, nil
}

// namespaceQueue returns the queue that the annotation of a namespace names.
func (b *barePods) namespaceQueue(ctx context.Context, name string) string {
	namespace := &metav1.PartialObjectMetadata{}
	namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	if err := b.client.Get(ctx, types.NamespacedName{Name: name}, namespace); err != nil {
		return ""
	}
	return namespace.Annotations[schedulingv1beta1.QueueNameAnnotationKey]
}

// ownerKind returns the kind in an owner reference, if annotations of this kind are meant for a PodGroup. Only these kinds are read from
// the API server, because the pod's author writes the reference but the controllers' permissions apply.
func ownerKind(owner *metav1.OwnerReference) (schema.GroupVersionKind, bool) {
	named := schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind)
	for _, known := range []schema.GroupVersionKind{
		appsv1.SchemeGroupVersion.WithKind("ReplicaSet"), appsv1.SchemeGroupVersion.WithKind("StatefulSet"),
		appsv1.SchemeGroupVersion.WithKind("DaemonSet"),
		batchv1.SchemeGroupVersion.WithKind("Job"),
	} {
		if known.GroupKind() == named.GroupKind() {
			return known, true
		}
	}
	return schema.GroupVersionKind{}, false
}

// ownerAnnotations returns the annotations of a pod's controller that are meant for its PodGroup. It returns none if the controller is
// deleted, is another object of that name, or cannot be read with our permissions.
func (b *barePods) ownerAnnotations(ctx context.Context, pod *corev1.Pod) (map[string]string, error) {
	owner := metav1.GetControllerOfNoCopy(pod)
	if owner == nil {
		return nil, nil
	}
	kind, ok := ownerKind(owner)
	if !ok {
		return nil, nil
	}
	found := &metav1.PartialObjectMetadata{}
	found.SetGroupVersionKind(kind)
	err := b.live.Get(ctx, types.NamespacedName{Namespace: pod.Namespace, Name: owner.Name}, found)
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) || err == nil && found.UID != owner.UID {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read %s %s/%s: %w", owner.Kind, pod.Namespace, owner.Name, err)
	}
	inherited := map[string]string{}
	for key, value := range found.Annotations {
		if strings.HasPrefix(key, schedulingv1beta1.AnnotationPrefix) || strings.HasPrefix(key, schedulingv1beta1.GroupName+"/") {
			inherited[key] = value
		}
	}
	return inherited, nil
}
