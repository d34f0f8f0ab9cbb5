// Package report words what a cycle decided: the reasons of what waits and of what was placed, conditions, phases and statuses. Each is a
// function of what was found; nothing is decided here, so that engine/action, which decides fast, and engine/reference, which decides
// plainly, can say it in the same words.
//
//	reasons.go  why a job or a task was left, where no row of a table says so
//	nodes.go    why no node takes a task, and why one was preferred to another
//	waits.go    of each job and task the last reason that it was left for
//	status.go   what jobs and queues are told at the end of a cycle
//	written.go  a plan as text, to be compared
package report
