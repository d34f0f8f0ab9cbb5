// Package recording keeps what cycles were decided from, and decides them again.
//
//	live: deltas, policy, now, plan --Recorder--> files --Read--> lines --Player--> the same plans, or where they differ
//
// A cycle is decided from a cluster, a policy and a time, and from nothing else; and the cluster is what deltas and earlier cycles made of
// it. So a recording is the deltas in their order, the policies, and of each cycle its time and what it decided: the bindings and evictions
// themselves, and a sum of the whole plan.
//
// A recording is bounded. Each file of it begins with a checkpoint: the objects as they are, and what was decided and they cannot show yet
// (own.go). The oldest files go. What is written is encoded by a goroutine of its own; the scheduler only notes it.
//
// Of a plan the sum leaves out its time, and two things that depend on what is remembered from one cycle to the next, which decides
// nothing: how often a row that errs was asked, and which rows that rest were asked.
package recording
