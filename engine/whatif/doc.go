// Package whatif says what the next cycle would decide if something were otherwise: with a job more, with one less, with more nodes, by
// another policy. It is decided by the same code as any cycle, on the same cluster, which is afterwards what it was.
//
//	change.go   what is otherwise, and how that gets into the cluster: what a cluster's controllers make of a Job among it
//	ask.go      the two cycles, as things are and as they would be, and the answer
//	differ.go   in what two plans differ, by job
package whatif
