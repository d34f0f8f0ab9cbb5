// Package beside compares what another scheduler does with what a policy would have decided, and does nothing itself.
//
//	changes of a cluster --+--> decisions of the other, as objects show them --+
//	                       |                                                   +--> Report: Counts, Book, Differences
//	                       +--> model.Cluster --Decide, undone--> Plan --------+
//
// The other decides on a state a moment before its bindings are seen, and it cannot be known on which. So what it does is compared with
// all that the policy decided within the last grace: it is alike if it is one of these. What the policy decides, and the other does not
// do within the grace, is a difference, too; so is what it would have done if the other had not done something else first.
//
// Each cycle is decided on the cluster as the other made it, so that differences do not add up: a pod that the other put elsewhere is
// where the other put it for all that is decided next.
package beside
