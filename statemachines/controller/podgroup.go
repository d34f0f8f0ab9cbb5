package controller

import (
	corev1 "k8s.io/api/core/v1"

	schedulingv1beta1 "github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
)

// unschedulable returns the condition that states why a PodGroup waits, or nil.
func unschedulable(group *schedulingv1beta1.PodGroup) *schedulingv1beta1.PodGroupCondition {
	if group == nil {
		return nil
	}
	for i := range group.Status.Conditions {
		c := &group.Status.Conditions[i]
		if c.Type == schedulingv1beta1.PodGroupUnschedulableType && c.Status == corev1.ConditionTrue {
			return c
		}
	}
	return nil
}
