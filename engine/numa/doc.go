// Package numa says which CPUs of a node a pod will have: what a Numatopology tells of the node, which CPUs are free beside those who are
// there, and which of these the kubelet would choose.
//
//	Read      object -> Node, with what is wrong in it
//	Free      who is on the node -> CPUs that nobody has
//	Choose    free CPUs, how many each container wants -> CPUs, on how many NUMA nodes, and whether the policy admits that
//	Decision  CPUs that were chosen -> annotation
package numa
