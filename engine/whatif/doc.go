// Package whatif computes what the next cycle would decide after a hypothetical change: with one job more or less, with more nodes, or by
// another policy. It uses the code of any cycle, on the same cluster, and restores the cluster afterwards.
//
//	change.go   the change, and how it is applied to the cluster, with what the controllers create for a Job
//	ask.go      the two cycles, without and with the change, and the answer
//	differ.go   the differences between two plans, by job
package whatif
