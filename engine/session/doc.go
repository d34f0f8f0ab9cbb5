// Package session is a policy at work on a cluster: it answers each site's question, puts queues, jobs and tasks in order, keeps the values
// of computed fields, and tells until when nothing but time can change what it said.
//
//	policy.Policy --+                          ask.go        sites: all, any, vote, first tier
//	                +--> Session, one of both: order.go      keys of queues, jobs and tasks, and the heaps that hold to them
//	model.Cluster --+                          evaluator.go  how a row is evaluated, over several processors where that pays
//	                                           kinds.go      which jobs fare alike, so that one that was refused speaks for others
//	                                           verdict.Verdicts, policy.Accounts: by node, and by accounting function
//
// What is remembered goes by what rules read (rules.Reads): an answer holds until something in its read-set has changed. A Session is not
// safe to share, and belongs to its cluster's owner. A rule that errs is counted (Session.Faults), and says what its onError says; it never
// stops a cycle.
package session
