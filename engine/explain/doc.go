// Package explain says of one object what a cycle decided of it, why, and what would help. simulate and the scheduler in a cluster answer
// by it, in the same words; nothing is decided here, and nothing changed.
//
//	explain.go    a cycle that was made, and what it is asked about
//	job.go        jobs and pods
//	queue.go      queues and nodes
//	leftout.go    objects that the scheduler cannot read
//	decisions.go  a plan by what it is about
//	reason.go     why something waits: the rows that refuse, with the values that they read, and on which nodes
//	help.go       what would help it
//	past.go       what earlier cycles decided of pods
//	titles.go     what people call jobs
//	text.go       tables, ranges of names, and other forms of words
package explain
