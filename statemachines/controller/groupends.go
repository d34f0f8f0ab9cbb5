package controller

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	batchv1alpha1 "github.com/celsius-scheduler/celsius/crds/batch/v1alpha1"
	schedulingv1beta1 "github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
	"github.com/celsius-scheduler/celsius/statemachines/objects"
)

// groupEnds deletes a PodGroup that barePods created when its work is over: all its pods have ended or are being deleted, and its owner
// wants no more pods. Otherwise the scheduler would admit the PodGroup again, and it would reserve resources of its queue for pods that
// are never created. A PodGroup that is Completed reserves nothing, and stays until its owner is deleted.
//
//	owner                                wants no more pods if
//	ReplicaSet, StatefulSet              spec.replicas is 0
//	Job (batch/v1)                       it has completed or failed, is suspended, or its parallelism is 0
//	any other kind                       no pod came for unknownOwnerFor
//
// If the owner creates pods again, barePods creates the PodGroup again. A PodGroup that was deleted while its owner has pods is created
// again after missingFor.
type groupEnds struct {
	*parts
	bare *barePods

	mu    sync.Mutex
	known map[types.NamespacedName]*emptyGroup
}

// emptyGroup is what groupEnds remembers of a PodGroup that has no unfinished pods or does not exist.
type emptyGroup struct {
	ours  bool      // it had pods of our schedulers
	since time.Time // when it was first seen empty or missing; zero: never
}

const (
	// finishedFor is how long the scheduler has to write the phase Completed of a PodGroup whose pods have ended.
	finishedFor = 10 * time.Second
	// missingFor is how long a PodGroup may be missing while its owner has pods: the garbage collector may be deleting both.
	missingFor = 5 * time.Second
	// unknownOwnerFor is how long a PodGroup may be without pods if the controllers cannot read whether its owner wants pods.
	unknownOwnerFor = 5 * time.Minute
	// volcanoScheduler is the scheduler of a PodGroup if no pod names another scheduler.
	volcanoScheduler = "volcano"
	// longestOwnerPoll is the longest time between two reads of an owner that wants pods but has none.
	longestOwnerPoll = 5 * time.Minute
)

func newGroupEnds(p *parts) *groupEnds {
	return &groupEnds{parts: p, bare: &barePods{p}, known: map[types.NamespacedName]*emptyGroup{}}
}

func addGroupEnds(mgr manager.Manager, p *parts) error {
	g := newGroupEnds(p)
	bare := func(o client.Object) bool { return strings.HasPrefix(o.GetName(), batchv1alpha1.PodgroupNamePrefix) }
	return ctrl.NewControllerManagedBy(mgr).Named("podgroup-end").
		For(&schedulingv1beta1.PodGroup{},
			builder.WithPredicates(predicate.NewPredicateFuncs(bare), predicate.Funcs{UpdateFunc: groupPhaseChanged})).
		Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(g.groupOfPod),
			builder.WithPredicates(predicate.Funcs{CreateFunc: never, UpdateFunc: podEnded})).
		WithOptions(p.controllerOptions()).
		Complete(p.recovering(&schedulingv1beta1.PodGroup{}, g))
}

// groupPhaseChanged reports whether an update changes the phase of a PodGroup. Other updates start no reconcile.
func groupPhaseChanged(e event.UpdateEvent) bool {
	was, ok := e.ObjectOld.(*schedulingv1beta1.PodGroup)
	is, ok2 := e.ObjectNew.(*schedulingv1beta1.PodGroup)
	return !ok || !ok2 || was.Status.Phase != is.Status.Phase
}

// podEnded reports whether an update ends a pod or begins its deletion. Other updates start no reconcile.
func podEnded(e event.UpdateEvent) bool {
	was, ok := e.ObjectOld.(*corev1.Pod)
	is, ok2 := e.ObjectNew.(*corev1.Pod)
	return !ok || !ok2 || over(is) && !over(was)
}

// over reports whether a pod has ended or is being deleted.
func over(pod *corev1.Pod) bool { return finished(pod) || deleting(pod) }

// groupOfPod returns the PodGroup that barePods created for a pod and the other pods of its owner.
func (g *groupEnds) groupOfPod(_ context.Context, obj client.Object) []reconcile.Request {
	pod, ok := obj.(*corev1.Pod)
	if !ok || !slices.Contains(g.options.SchedulerNames, pod.Spec.SchedulerName) || !inBareGroup(pod) {
		return nil
	}
	key := types.NamespacedName{Namespace: pod.Namespace, Name: objects.BareGroupName(pod)}
	g.remember(key).ours = true
	return []reconcile.Request{{NamespacedName: key}}
}

// inBareGroup reports whether a pod is in the PodGroup of its owner, or will be.
func inBareGroup(pod *corev1.Pod) bool {
	named := objects.GroupOf(pod)
	return metav1.GetControllerOfNoCopy(pod) != nil && (named == "" || named == objects.BareGroupName(pod))
}

// remember returns the record of a PodGroup, and creates a missing one. A caller that is not the worker of this PodGroup may only set
// ours.
func (g *groupEnds) remember(key types.NamespacedName) *emptyGroup {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.known[key] == nil {
		g.known[key] = &emptyGroup{}
	}
	return g.known[key]
}

func (g *groupEnds) forget(key types.NamespacedName) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.known, key)
}

// Reconcile deletes a PodGroup whose work is over, or creates a missing one again.
func (g *groupEnds) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	uid, prefixed := strings.CutPrefix(req.Name, batchv1alpha1.PodgroupNamePrefix)
	if !prefixed {
		return reconcile.Result{}, nil
	}
	pods, err := g.podsOf(ctx, req.Namespace, uid)
	if err != nil {
		return reconcile.Result{}, err
	}
	group := &schedulingv1beta1.PodGroup{}
	switch err := g.client.Get(ctx, req.NamespacedName, group); {
	case apierrors.IsNotFound(err):
		return g.missing(ctx, req.NamespacedName, pods)
	case err != nil:
		return reconcile.Result{}, fmt.Errorf("read PodGroup %s: %w", req, err)
	}
	if group.Status.Phase == schedulingv1beta1.PodGroupCompleted || group.DeletionTimestamp != nil || slices.ContainsFunc(pods, alive) ||
		!isBare(group) || !g.isOurs(req.NamespacedName, pods) {
		g.forget(req.NamespacedName)
		return reconcile.Result{}, nil
	}
	if wait, err := g.mayBeNeeded(ctx, group, pods); wait > 0 || err != nil {
		return reconcile.Result{RequeueAfter: wait}, err
	}
	g.forget(req.NamespacedName)
	if err := g.client.Delete(ctx, group, client.Preconditions{UID: &group.UID}); client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, fmt.Errorf("delete PodGroup %s: %w", req, err)
	}
	return reconcile.Result{}, nil
}

// alive reports whether a pod has neither ended nor is being deleted.
func alive(pod *corev1.Pod) bool { return !over(pod) }

// isBare reports whether barePods created a PodGroup for the pods of an owner. The PodGroup of a pod without an owner is deleted with the
// pod.
func isBare(group *schedulingv1beta1.PodGroup) bool {
	owner := metav1.GetControllerOfNoCopy(group)
	return owner != nil && owner.Kind != "Pod" && group.Name == batchv1alpha1.PodgroupNamePrefix+string(owner.UID)
}

// mayBeNeeded returns how long to keep a PodGroup until the next check: its owner may create more pods, or its phase may become
// Completed. It returns 0 if the PodGroup is not needed. If the owner does not exist, the garbage collector deletes the PodGroup.
func (g *groupEnds) mayBeNeeded(ctx context.Context, group *schedulingv1beta1.PodGroup, pods []*corev1.Pod) (time.Duration, error) {
	empty := g.emptyFor(client.ObjectKeyFromObject(group))
	if early := finishedFor - empty; early > 0 && slices.ContainsFunc(pods, finished) {
		return early, nil
	}
	wants, err := g.demandOf(ctx, group.Namespace, metav1.GetControllerOfNoCopy(group))
	switch {
	case err != nil:
		return 0, err
	case wants == wantsPods, wants == ownerGone:
		return min(max(empty, finishedFor), longestOwnerPoll), nil
	case wants == unknownDemand:
		return max(0, unknownOwnerFor-empty), nil
	}
	return 0, nil
}

// podsOf lists the pods that an owner controls and that are in the PodGroup that barePods creates for them.
func (g *groupEnds) podsOf(ctx context.Context, namespace, uid string) ([]*corev1.Pod, error) {
	list := &corev1.PodList{}
	err := g.client.List(ctx, list, client.InNamespace(namespace), client.MatchingFields{byOwner: uid}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, fmt.Errorf("list the pods of owner %s: %w", uid, err)
	}
	var out []*corev1.Pod
	for i := range list.Items {
		if inBareGroup(&list.Items[i]) {
			out = append(out, &list.Items[i])
		}
	}
	return out, nil
}

// isOurs reports whether a PodGroup belongs to our schedulers. Its pods name their scheduler. If it has no pods, the pods that this
// process has seen count. If this process has seen none, the PodGroup belongs to the scheduler volcano, as the scheduler assumes too.
func (g *groupEnds) isOurs(key types.NamespacedName, pods []*corev1.Pod) bool {
	if len(pods) > 0 {
		return slices.ContainsFunc(pods, func(pod *corev1.Pod) bool { return slices.Contains(g.options.SchedulerNames, pod.Spec.SchedulerName) })
	}
	return g.remember(key).ours || slices.Contains(g.options.SchedulerNames, volcanoScheduler)
}

// emptyFor returns for how long a PodGroup has been without unfinished pods, or missing, as far as this process has seen.
func (g *groupEnds) emptyFor(key types.NamespacedName) time.Duration {
	known := g.remember(key)
	if known.since.IsZero() {
		known.since = g.now()
	}
	return g.now().Sub(known.since)
}

// missing creates a PodGroup again if its owner has unfinished pods. A user may have deleted the PodGroup, or groupEnds deleted it while
// the owner created the first of these pods.
func (g *groupEnds) missing(ctx context.Context, key types.NamespacedName, pods []*corev1.Pod) (reconcile.Result, error) {
	i := slices.IndexFunc(pods, g.bare.ours)
	if i < 0 {
		g.forget(key)
		return reconcile.Result{}, nil
	}
	if early := missingFor - g.emptyFor(key); early > 0 {
		return reconcile.Result{RequeueAfter: early}, nil
	}
	g.forget(key)
	return reconcile.Result{}, g.bare.ensure(ctx, pods[i], key.Name)
}

// demand states whether an owner wants pods.
type demand uint8

const (
	unknownDemand demand = iota
	ownerGone
	wantsPods
	wantsNone
)

// demandOf reads from the API server whether an owner wants pods.
func (g *groupEnds) demandOf(ctx context.Context, namespace string, owner *metav1.OwnerReference) (demand, error) {
	kind, ok := ownerKind(owner)
	if !ok {
		return unknownDemand, nil
	}
	var found client.Object
	var wanted func() bool
	switch kind.Kind {
	case "ReplicaSet":
		set := &appsv1.ReplicaSet{}
		found, wanted = set, func() bool { return set.Spec.Replicas == nil || *set.Spec.Replicas > 0 }
	case "StatefulSet":
		set := &appsv1.StatefulSet{}
		found, wanted = set, func() bool { return set.Spec.Replicas == nil || *set.Spec.Replicas > 0 }
	case "Job":
		job := &batchv1.Job{}
		found, wanted = job, func() bool { return wantsPodsOf(job) }
	default:
		return unknownDemand, nil
	}
	err := g.live.Get(ctx, types.NamespacedName{Namespace: namespace, Name: owner.Name}, found)
	switch {
	case apierrors.IsNotFound(err) || err == nil && found.GetUID() != owner.UID:
		return ownerGone, nil
	case apierrors.IsForbidden(err):
		return unknownDemand, nil
	case err != nil:
		return unknownDemand, fmt.Errorf("read %s %s/%s: %w", owner.Kind, namespace, owner.Name, err)
	case wanted():
		return wantsPods, nil
	}
	return wantsNone, nil
}

// wantsPodsOf reports whether a batch/v1 Job still wants pods.
func wantsPodsOf(job *batchv1.Job) bool {
	if job.Spec.Suspend != nil && *job.Spec.Suspend || job.Spec.Parallelism != nil && *job.Spec.Parallelism == 0 {
		return false
	}
	return !slices.ContainsFunc(job.Status.Conditions, func(c batchv1.JobCondition) bool {
		ends := []batchv1.JobConditionType{batchv1.JobComplete, batchv1.JobFailed, batchv1.JobFailureTarget, batchv1.JobSuccessCriteriaMet}
		return c.Status == corev1.ConditionTrue && slices.Contains(ends, c.Type)
	})
}
