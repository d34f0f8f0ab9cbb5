package sim

import (
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/celsius-scheduler/celsius/engine/sim/manifest"
)

// countBudgets does the work of the disruption controller. A percentage refers to the existing pods, as for pods whose owner has no scale.
func (w *World) countBudgets() error {
	var changed []metav1.Object
	for _, id := range w.sorted("PodDisruptionBudget") {
		if !w.counted[id] {
			continue
		}
		b := w.objects[id].(*policyv1.PodDisruptionBudget).DeepCopy()
		b.Status = budgetStatus(b, w.objects)
		if !equality.Semantic.DeepEqual(b, w.objects[id]) {
			changed = append(changed, b)
		}
	}
	return w.put(changed...)
}

// budgetStatus returns the status of a budget for these objects.
func budgetStatus(b *policyv1.PodDisruptionBudget, all map[manifest.ID]metav1.Object) policyv1.PodDisruptionBudgetStatus {
	s := policyv1.PodDisruptionBudgetStatus{ObservedGeneration: b.Generation}
	selector, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
	if err != nil {
		return s // the world reports the error when it takes in the budget
	}
	for id, o := range all {
		p, ok := o.(*corev1.Pod)
		if !ok || id.Namespace != b.Namespace || !selector.Matches(labels.Set(p.Labels)) ||
			p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed {
			continue
		}
		s.ExpectedPods++
		if p.Status.Phase == corev1.PodRunning && p.DeletionTimestamp == nil {
			s.CurrentHealthy++
		}
	}
	share := func(of *intstr.IntOrString) int32 {
		n, err := intstr.GetScaledValueFromIntOrPercent(of, int(s.ExpectedPods), true)
		if err != nil {
			return 0
		}
		return int32(n)
	}
	switch {
	case b.Spec.MinAvailable != nil:
		s.DesiredHealthy = share(b.Spec.MinAvailable)
	case b.Spec.MaxUnavailable != nil:
		s.DesiredHealthy = max(s.ExpectedPods-share(b.Spec.MaxUnavailable), 0)
	}
	s.DisruptionsAllowed = max(s.CurrentHealthy-s.DesiredHealthy, 0)
	return s
}
