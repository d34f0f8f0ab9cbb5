// Package disruption says which PodDisruptionBudgets are about a task, and how many more of its pods a budget lets go now: what its status
// allows, less those that this scheduler evicts and that the status does not show yet. It knows the cluster, and nothing of policies.
package disruption
