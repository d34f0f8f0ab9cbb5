// Package beside compares the decisions of another scheduler with those of a policy, and changes nothing in the cluster.
//
//	changes of a cluster --+--> decisions of the other, as objects show them --+
//	                       |                                                   +--> Report: Counts, Book, Differences
//	                       +--> model.Cluster --Decide, undone--> Plan --------+
//
// The other scheduler decides on a state from before its bindings are seen, and this state is unknown. So each of its decisions is compared
// with all decisions of the policy within the last grace period. They agree if one of these is the same. It is also a difference if the
// policy decides something that the other scheduler does not do within the grace period. The same is true for a decision that the policy
// can no longer make because the other scheduler did something else first.
//
// Each cycle is decided on the cluster as the other scheduler left it, so that differences do not add up. A pod that the other scheduler
// placed on another node stays there for all later decisions.
package beside
