// Package sim simulates a cluster that is described by files, with its own clock.
//
//	files, folders, stdin --manifest.Load--> Objects --World.Submit--> deltas --> model.Cluster
//	                                                                                       |
//	report, explanation <--Report-- Plan <------------- engine.Decide(cluster, policy, now) +
//	                                  |                                                    ^
//	                                  +--World.Cycle: the plan's decisions become objects--+
//
// The input is what a Kubernetes API server would return: Nodes, Pods, PodGroups, Queues, PriorityClasses, Namespaces, Volcano Jobs (which
// stand for their PodGroup and pods) and SchedulingPolicies. It can also be the short format of kind World. Package manifest reads it. This
// package adds defaults as a cluster would, and reports references to objects that do not exist.
//
// A World does the work of the cluster around the scheduler: it binds, starts, finishes and removes pods, and writes statuses back. Its
// objects are the source of truth: the model of the cluster only changes through deltas of objects.
//
// A scenario is a txtar archive: a script of a dozen verbs over a World, the files that it loads, and its expected output. It runs no other
// program.
package sim
