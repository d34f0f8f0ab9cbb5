// Package sim is a world made of files, with a clock of its own.
//
//	files, folders, stdin --manifest.Load--> Objects --World.Submit--> deltas --> model.Cluster
//	                                                                                       |
//	report, explanation <--Report-- Plan <------------- engine.Decide(cluster, policy, now) +
//	                                  |                                                    ^
//	                                  +--World.Cycle: what the plan says becomes objects---+
//
// What goes in is what a Kubernetes API server would give: Nodes, Pods, PodGroups,
// Queues, PriorityClasses, Namespaces, Volcano Jobs (which stand for their PodGroup
// and pods) and SchedulingPolicies, or the short format of kind World. Package manifest
// reads it; here it is completed, as a cluster would, and asked for names that lead nowhere.
//
// A World plays the part of the cluster around the scheduler: it binds, starts,
// finishes and removes pods, and writes statuses back. Objects are the truth: a
// world's cluster is only ever changed by deltas of them.
//
// A scenario is a txtar archive: a script of a dozen verbs over a World, the files
// that it loads, and what it must print. It runs no other program.
package sim
