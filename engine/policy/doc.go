// Package policy is where rules and model meet: the closed list of decision sites, tables compiled into rules in the words of
// engine/language, and their answers about a cluster.
//
//	SchedulingPolicy, rules/tables/*.yaml                     model.Cluster
//	     | source.Parse                                              |
//	     v                                                          v
//	  loader: tiers, tables, switches, params              language.World: tasks, jobs, nodes ... as values,
//	     |                                                    with the fields and functions that rules see of them
//	     v                                                          |
//	  compiler: scopes by site, attributes, variables,              |
//	     | rows, actions; every mistake at its place                |
//	     v                                                          v
//	  Policy (immutable) ------------------------------------> Session, one per policy and cluster
//	                                                                |  ask.go      all, any, vote, first tier
//	  Facts, Show, Resolve, Convert                                 |  order.go    keys of queues, jobs, tasks; heaps
//	  (what people ask about a policy)                              |  verdicts.go classes of tasks: verdict and score by node,
//	                                                                |              brought up to date by one pipeline
//	                                                                |  accounts.go sums by delta, water filling
//	                                                                v
//	                                                     Answer, Choice, model.Reason --> engine/action
//
// No type of CEL leaves the package but in the declarations (Vocabulary, Roots, Sites) that the reference is written
// from. A Policy is safe to share; a Session is not, and belongs to its cluster's owner.
//
// What is remembered goes by what rules read (rules.Reads): an answer holds until something in its read-set has
// changed, which the logs and versions of the model tell.
//
// A rule that errs is counted (Session.Faults), and says what its onError says; it never stops a cycle.
package policy
