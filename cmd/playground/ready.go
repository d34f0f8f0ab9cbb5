package main

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	policyv1alpha1 "github.com/celsius-scheduler/celsius/crds/policy/v1alpha1"
	"github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
	"github.com/celsius-scheduler/celsius/engine/live"
)

// awaitProduct waits until a user finds all at work: the queues root and default are open, the scheduler has said of the policy whether it
// serves, and a pod is decided on from its creation to a node, or to the reason for which there is none.
func (c *controlPlane) awaitProduct(ctx context.Context, policy policyChoice) error {
	client, err := dynamic.NewForConfig(c.config)
	if err != nil {
		return fmt.Errorf("client: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, startWithin)
	defer cancel()
	for _, name := range []string{v1beta1.RootQueue, v1beta1.DefaultQueue} {
		err := c.await(ctx, "queue "+name, func(ctx context.Context, _ kubernetes.Interface) error { return queueIsOpen(ctx, client, name) })
		if err != nil {
			return err
		}
	}
	if policy.name == "" {
		policy.name = live.DefaultPolicy
	}
	decides := true
	err = c.await(ctx, "SchedulingPolicy "+policy.name, func(ctx context.Context, _ kubernetes.Interface) (err error) {
		decides, err = policyIsTold(ctx, client, policy.name)
		return err
	})
	if err != nil || !decides {
		return err
	}
	return c.tryPod(ctx)
}

func read(ctx context.Context, client dynamic.Interface, of schema.GroupVersionResource, name string, into any) error {
	found, err := client.Resource(of).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("%s %s: %w", of.Resource, name, err)
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(found.Object, into); err != nil {
		return fmt.Errorf("%s %s: %w", of.Resource, name, err)
	}
	return nil
}

// queueIsOpen is nil when the controllers have opened a queue that is there; one that its owner
// closed, in data that is used again, will do.
func queueIsOpen(ctx context.Context, client dynamic.Interface, name string) error {
	q := &v1beta1.Queue{}
	if err := read(ctx, client, v1beta1.GroupVersion.WithResource("queues"), name, q); err != nil {
		return err
	}
	if q.Status.State == "" {
		return errors.New("it has no state yet")
	}
	return nil
}

// policyIsTold is nil when the scheduler has said of a policy, as it is now, whether it serves;
// decides is whether one serves that binds pods. Without a policy the embedded one serves.
func policyIsTold(ctx context.Context, client dynamic.Interface, name string) (decides bool, err error) {
	p := &policyv1alpha1.SchedulingPolicy{}
	err = read(ctx, client, policyv1alpha1.GroupVersion.WithResource("schedulingpolicies"), name, p)
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	active := meta.FindStatusCondition(p.Status.Conditions, policyv1alpha1.ConditionActive)
	if active == nil || active.ObservedGeneration != p.Generation {
		return false, errors.New("no scheduler has said yet whether it serves")
	}
	return p.Spec.Mode != policyv1alpha1.ModePaused && active.Status == metav1.ConditionTrue, nil
}

// tryPod has a pod that asks for nothing go the whole way, and deletes it again. It is where its events are in nobody's way.
func (c *controlPlane) tryPod(ctx context.Context) error {
	kube, err := kubernetes.NewForConfig(c.config)
	if err != nil {
		return fmt.Errorf("client: %w", err)
	}
	pods := kube.CoreV1().Pods(metav1.NamespaceSystem)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{GenerateName: "is-all-at-work-", Namespace: metav1.NamespaceSystem}}
	pod.Spec.SchedulerName = "celsius"
	pod.Spec.Containers = []corev1.Container{{Name: "main", Image: "main"}}
	err = c.await(ctx, "a pod to try", func(ctx context.Context, _ kubernetes.Interface) error {
		made, err := pods.Create(ctx, pod, metav1.CreateOptions{})
		if err != nil {
			return fmt.Errorf("make a pod: %w", err) // the namespace may have no service account yet
		}
		pod = made
		return nil
	})
	if err != nil {
		return err
	}
	err = c.await(ctx, "a pod that was tried", func(ctx context.Context, _ kubernetes.Interface) error {
		now, err := pods.Get(ctx, pod.Name, metav1.GetOptions{})
		if err != nil {
			return fmt.Errorf("pod %s: %w", pod.Name, err)
		}
		for i := range now.Status.Conditions {
			if now.Status.Conditions[i].Type == corev1.PodScheduled {
				return nil
			}
		}
		return errors.New("nobody has decided on it yet")
	})
	at0 := metav1.DeleteOptions{GracePeriodSeconds: new(int64)}
	if gone := pods.Delete(ctx, pod.Name, at0); gone != nil && !apierrors.IsNotFound(gone) {
		err = errors.Join(err, fmt.Errorf("delete pod %s: %w", pod.Name, gone))
	}
	if err != nil {
		return err
	}
	client, err := dynamic.NewForConfig(c.config)
	if err != nil {
		return fmt.Errorf("client: %w", err)
	}
	// Its PodGroup goes with it, by the garbage collector.
	return c.await(ctx, "end of the pod that was tried", func(ctx context.Context, _ kubernetes.Interface) error {
		groups, err := client.Resource(v1beta1.GroupVersion.WithResource("podgroups")).Namespace(metav1.NamespaceSystem).List(ctx,
			metav1.ListOptions{})
		if err != nil {
			return fmt.Errorf("list PodGroups: %w", err)
		}
		for i := range groups.Items {
			for _, owner := range groups.Items[i].GetOwnerReferences() {
				if owner.UID == pod.UID {
					return fmt.Errorf("PodGroup %s is still there", groups.Items[i].GetName())
				}
			}
		}
		return nil
	})
}
