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

// awaitProduct waits until all parts work. The queues root and default are open, and the scheduler has stated whether it serves the policy.
// A test pod has also been handled, up to its node or to the reason why it has none.
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

// queueIsOpen returns nil when the controllers have set the state of a queue. A queue that its owner closed, in reused data, is also
// accepted.
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

// policyIsTold returns nil when the scheduler has stated for the present generation of a policy whether it serves. decides reports whether
// a policy that binds pods is served. Without a policy, the embedded one is served.
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

// tryPod creates a pod without requests, waits for its result, and deletes it. The pod is in a namespace in which its events disturb no
// user.
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
			return fmt.Errorf("make a pod: %w", err) // the namespace may not have a service account yet
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
	// The garbage collector deletes its PodGroup.
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
