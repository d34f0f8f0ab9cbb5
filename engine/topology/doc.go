// Package topology counts, by topology domain, the placed tasks that the affinity and spread terms of pods select. It evaluates these terms
// for a node. It knows the cluster, but no policies. A Context contains what the answers for a task depend on in addition to the task and
// the node. Its tallies report when they change.
package topology
