// Package controller runs the state machines. It manages Jobs, CronJobs, Queues, Commands, JobFlows, JobTemplates and the PodGroups of bare
// pods.
//
//	Job, its pods, its PodGroup --observe--> world --decide--> action (or a Command's)
//	                                           |                 |
//	                                           |     Machine.Step: what to do
//	                                           |                 |
//	                     pods, PodGroup <-- sync, kill, restartPods
//	                                           |
//	     Machine.Next: phase, counters --write--> Job status (once, and only if it changed)
//
//	PodGroups --count--> Queue status          Command --delete, then execute--> Job or Queue
//	JobFlow, JobTemplates, completed Jobs --package flows--> Jobs that may begin
//	CronJob, the time --Events, Step--> Jobs
//	pod without a PodGroup --> PodGroup podgroup-<uid>, named on the pod
//
// This package makes no lifecycle decisions. Rows of the machines define which action follows an event, what it does and which phase
// follows. This package implements the effects. Each effect can be interrupted at any point, because everything that is needed to continue
// is read back from the API. See decision 11.
//
// The controllers write the status of Jobs, the state and counts of Queues, and the spec, metadata and phase Pending of PodGroups. The
// field manager is always celsius-controllers.
package controller
