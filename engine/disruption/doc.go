// Package disruption determines which PodDisruptionBudgets apply to a task, and how many more of its pods each budget allows to evict now.
// That is the number in its status, minus the evictions of this scheduler that the status does not show yet. It knows the cluster, but no
// policies.
package disruption
