// Package controller obeys the state machines: it cares for Jobs, CronJobs, Queues, Commands, JobFlows,
// JobTemplates and the PodGroups of bare pods.
//
//	Job, its pods, its PodGroup --observe--> world --decide--> action (or a Command's)
//	                                           |                 |
//	                                           |     Machine.Step: what to do
//	                                           |                 |
//	                     pods, PodGroup <-- sync, kill, restartPods
//	                                           |
//	     Machine.Next: phase, counters --write--> Job status (once, and only if it is new)
//
//	PodGroups --count--> Queue status          Command --delete, then ask--> Job or Queue
//	JobFlow, JobTemplates, Jobs that are Completed --package flows--> Jobs that may begin
//	CronJob, the time --Events, Step--> Jobs
//	pod without a PodGroup --> PodGroup podgroup-<uid>, named on the pod
//
// No lifecycle decision stands here: which action follows upon what, what it does and where it leads are
// rows of the machines. Here are the effects, and the care that each can be broken off anywhere: all that is
// needed to go on is read back from the API. Decision 11 says how.
//
// Who writes what: status of Jobs; spec, metadata and the phase Pending of PodGroups; state and counts of
// Queues. All under the field manager celsius-controllers.
package controller
