// Package explain states for one object what a cycle decided, why, and what would help. simulate and the scheduler in a cluster use it, and
// give the same texts. It decides and changes nothing.
//
//	explain.go    a completed cycle, and the questions about it
//	job.go        jobs and pods
//	queue.go      queues and nodes
//	leftout.go    objects that the scheduler cannot read
//	decisions.go  a plan by object
//	reason.go     why something waits: the rows that reject, the values that they read, and the nodes
//	help.go       what would help it
//	past.go       decisions of earlier cycles about pods
//	titles.go     the names of jobs that users know
//	text.go       tables, ranges of names, and other text formats
package explain
