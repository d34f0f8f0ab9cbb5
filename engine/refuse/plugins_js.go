package refuse

import corev1 "k8s.io/api/core/v1"

// IsApplied is false in a browser: the code of the admission plugins would make the page a fifth larger.
const IsApplied = false

// Admit admits every pod.
func (n *Namespace) Admit(*corev1.Pod) error { return nil }

// Applies reports whether a quota counts a pod. Scopes are not read.
func Applies(q *corev1.ResourceQuota, _ *corev1.Pod) bool {
	return len(q.Spec.Scopes) == 0 && q.Spec.ScopeSelector == nil
}

// Release does nothing, because nothing is refused.
func Release(*corev1.ResourceQuota, *corev1.Pod) {}
