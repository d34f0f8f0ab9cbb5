package sim

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	resourcehelper "k8s.io/component-helpers/resource"

	"github.com/celsius-scheduler/celsius/engine/podspec"
	"github.com/celsius-scheduler/celsius/engine/sim/manifest"
)

// completeQuota has a quota limit what it is to limit, as the quota controller says in its status.
func (c *completion) completeQuota(i manifest.Item, q *corev1.ResourceQuota) {
	if q.Status.Hard == nil {
		q.Status.Hard = q.Spec.Hard.DeepCopy()
	}
	if len(q.Spec.Scopes) > 0 || q.Spec.ScopeSelector != nil {
		c.warn(manifest.Deepest(i.Value, "spec").Issuef("", "%s has scopes, which are not heeded: it limits every job of its namespace", i.ID()))
	}
}

// noteCounted remembers which of the new quotas do not say what is used, and which of the new budgets have no status: the world counts
// for them.
func (w *World) noteCounted(in []metav1.Object) {
	for _, o := range in {
		switch o := o.(type) {
		case *corev1.ResourceQuota:
			w.counted[manifest.IDOf(o)] = o.Status.Used == nil
		case *policyv1.PodDisruptionBudget:
			w.counted[manifest.IDOf(o)] = equality.Semantic.DeepEqual(o.Status, policyv1.PodDisruptionBudgetStatus{})
		}
	}
}

// countQuotas plays the quota controller. A pod counts from when its job is let in, which is when a Job's controller would
// make it, or from when it has a node, until it has finished.
func (w *World) countQuotas() error {
	var changed []metav1.Object
	for _, id := range w.sorted("ResourceQuota") {
		if !w.counted[id] {
			continue
		}
		q := w.objects[id].(*corev1.ResourceQuota).DeepCopy()
		q.Status.Used = corev1.ResourceList{}
		for name := range q.Status.Hard {
			q.Status.Used[name] = w.usedOf(q.Namespace, string(name))
		}
		if !equality.Semantic.DeepEqual(q, w.objects[id]) {
			changed = append(changed, q)
		}
	}
	return w.put(changed...)
}

// quotaAmount is what a pod counts for under one name of a quota.
func quotaAmount(p *corev1.Pod, name string) resource.Quantity {
	if name == "pods" || name == "count/pods" {
		return *resource.NewQuantity(1, resource.DecimalSI)
	}
	if limit, ok := strings.CutPrefix(name, "limits."); ok {
		return resourcehelper.PodLimits(p, resourcehelper.PodResourcesOptions{})[corev1.ResourceName(limit)]
	}
	request := strings.TrimPrefix(name, "requests.")
	return podspec.Requests(p)[corev1.ResourceName(request)]
}
