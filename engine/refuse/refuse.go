// Package refuse decides whether the API server admits the pods that a world or a question creates. It uses Kubernetes' own code of the
// admission plugins LimitRanger and ResourceQuota.
package refuse

import corev1 "k8s.io/api/core/v1"

// Namespace is what restricts the pods of a namespace. It owns the objects: the LimitRanges get their defaults, and Used
// of the status of a quota grows with each pod that is admitted.
type Namespace struct {
	Ranges []*corev1.LimitRange
	Quotas []*corev1.ResourceQuota
}
