// Package topology counts, by topology domain, the placed tasks that pods' terms of affinity and spread speak of, and answers what these
// terms ask about a node. It knows the cluster, and nothing of policies: a Context is what the answers for a task rest on besides the task
// and the node, and its tallies tell when they change.
package topology
