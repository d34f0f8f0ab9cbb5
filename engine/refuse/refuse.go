// Package refuse decides whether the API server admits the pods that a world or a question creates. It uses Kubernetes' own code of the
// admission plugins LimitRanger and ResourceQuota.
package refuse

import corev1 "k8s.io/api/core/v1"

// Namespace contains what restricts the pods of a namespace. It owns the objects: it adds defaults to the LimitRanges, and each admitted
// pod increases Used in the status of a quota.
type Namespace struct {
	Ranges []*corev1.LimitRange
	Quotas []*corev1.ResourceQuota
}
