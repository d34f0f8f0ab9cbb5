// Package report writes texts for the decisions of a cycle: reasons of waits and placements, conditions, phases and statuses. Each text is
// a function of the facts that the caller found, and this package decides nothing. engine/action and engine/reference use the same texts.
//
//	reasons.go  why a job or a task was not placed, if no row of a table states it
//	nodes.go    why no node accepts a task, and why one node was preferred to another
//	waits.go    the last reason of each job and task that waits
//	status.go   the statuses of jobs and queues at the end of a cycle
//	written.go  a plan as text, for comparisons
package report
