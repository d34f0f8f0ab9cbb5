// Package numa computes which CPUs of a node a pod will have: what a Numatopology states about the node, which CPUs the pods on the node
// leave free, and which of these the kubelet would choose.
//
//	Read      object -> Node, with what is wrong in it
//	Free      who is on the node -> CPUs that nobody has
//	Choose    free CPUs, how many each container wants -> CPUs, on how many NUMA nodes, and whether the policy admits that
//	Decision  CPUs that were chosen -> annotation
package numa
