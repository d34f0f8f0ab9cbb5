package sim

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/celsius-scheduler/celsius/engine/sim/manifest"
)

// Advance advances the clock, and applies the events that are due, such as the end of a deleted pod.
func (w *World) Advance(d time.Duration) error {
	if d < 0 {
		return fmt.Errorf("time does not go back: %s", d)
	}
	w.now = w.now.Add(d)
	if err := w.arrive(); err != nil {
		return err
	}
	return w.kubelet()
}

// Finish ends a pod successfully. It must have a node. pod is namespace/name, or the name of a pod in the namespace default. The same is
// true for the methods below.
func (w *World) Finish(pod string) error { return w.end(pod, corev1.PodSucceeded) }

// Fail ends a pod with a failure. It must have a node.
func (w *World) Fail(pod string) error { return w.end(pod, corev1.PodFailed) }

func (w *World) end(name string, phase corev1.PodPhase) error {
	p, err := w.pod(name)
	if err != nil {
		return err
	}
	if p.Spec.NodeName == "" || p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed {
		return fmt.Errorf("pod %s does not run, so it cannot end", objectKey(p))
	}
	p = p.DeepCopy()
	manifest.Start(p, w.now)
	p.Status.Phase = phase
	return w.put(p)
}

// Delete removes a pod. A running pod is Releasing for its grace period, by default 30 s. The pod is not created again.
func (w *World) Delete(pod string) error {
	p, err := w.pod(pod)
	if err != nil {
		return err
	}
	if p.Spec.NodeName == "" || p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed {
		w.remove(manifest.IDOf(p))
		return nil
	}
	if _, leaves := w.leaving[manifest.IDOf(p)]; leaves {
		return nil
	}
	wait := manifest.GracePeriod
	if s := p.Spec.TerminationGracePeriodSeconds; s != nil {
		wait = time.Duration(*s) * time.Second
	}
	grace := int64(wait / time.Second)
	if life := w.lifeOf(p); life.Terminate > 0 {
		wait = min(wait, life.Terminate)
	}
	p = p.DeepCopy()
	due := w.now.Add(wait)
	p.DeletionTimestamp, p.DeletionGracePeriodSeconds = &metav1.Time{Time: due}, &grace
	w.leaving[manifest.IDOf(p)] = due
	return w.put(p)
}

// Cordon marks a node as unschedulable.
func (w *World) Cordon(node string) error {
	n, err := w.node(node)
	if err != nil {
		return err
	}
	n = n.DeepCopy()
	n.Spec.Unschedulable = true
	return w.put(n)
}

// Drain cordons a node and deletes its pods.
func (w *World) Drain(node string) error {
	if err := w.Cordon(node); err != nil {
		return err
	}
	for _, id := range w.sorted("Pod") {
		if p := w.objects[id].(*corev1.Pod); p.Spec.NodeName == node {
			if err := w.Delete(objectKey(p)); err != nil {
				return err
			}
		}
	}
	return nil
}
