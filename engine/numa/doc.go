// Package numa computes which CPUs of a node a pod will have: what a Numatopology states about the node, which CPUs the pods on the node
// leave free, and which of these the kubelet would choose.
//
//	Read      object -> Node, with its mistakes
//	Free      pods on the node -> CPUs that no pod has
//	Choose    free CPUs, number per container -> CPUs, on how many NUMA nodes, and whether the policy admits that
//	Decision  chosen CPUs -> annotation
package numa
