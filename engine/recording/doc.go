// Package recording records the inputs of cycles, and replays the cycles.
//
//	live: deltas, policy, now, plan --Recorder--> files --Read--> lines --Player--> the same plans, or where they differ
//
// A cycle depends only on a cluster, a policy and a time. The cluster depends only on deltas and earlier cycles. So a recording contains
// the deltas in their order, the policies, and for each cycle its time and its decisions: the bindings and evictions, and a sum of the
// whole plan.
//
// A recording has a maximum size. Each of its files begins with a checkpoint: the present objects, and the decisions that they do not show
// yet (own.go). The oldest files are removed. A separate goroutine encodes the data; the scheduler only queues it.
//
// The sum of a plan leaves out its time, and two values that depend on caches and affect no decision: how often a row that failed was
// evaluated, and which rows with a pause were evaluated.
package recording
