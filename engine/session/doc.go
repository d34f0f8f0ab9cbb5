// Package session runs a policy on a cluster. It evaluates the rows of each site, orders queues, jobs and tasks, and caches the values of
// computed fields. It also determines until when its answers stay valid if only time passes.
//
//	policy.Policy --+                          ask.go        sites: all, any, vote, first tier
//	                +--> Session, one of both: order.go      keys of queues, jobs and tasks, and the heaps that they order
//	model.Cluster --+                          evaluator.go  how a row is evaluated, on several processors if that is faster
//	                                           kinds.go      jobs with equal results, so that one refusal is enough for all of them
//	                                           verdict.Verdicts, policy.Accounts: by node, and by accounting function
//
// The caches follow what rules read (rules.Reads): an answer is valid until something in its read-set changes. A Session belongs to its
// cluster's owner, and is not safe for concurrent use. An error in a rule is counted (Session.Faults), and the rule then answers what its
// onError states. It never stops a cycle.
package session
