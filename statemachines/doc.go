// Package statemachines holds the lifecycles of Jobs, Queues, CronJobs and JobFlows as data.
//
//	*.yaml --Load--> Machine (verified: every mistake at its line and column)
//	                                 |
//	change of a pod, PodGroup, Job --+-- Events --> events --+
//	Command ---------------------------------------------+-- Action --> action, perhaps after a while
//	                                 |
//	phase + action + Facts ----------+-- Step --> effect (sync, kill, restartPods), what to retain
//	        (the controller brings the effect about, and counts again)
//	phase + action + new Facts ------+-- Next --> phase, counters
//	phase + Facts -------------------+-- Timers --> when to look again, though nothing happens
//
// A Machine says what to do and what follows; it does nothing itself, reads no clock and keeps no state of any
// job, so it is safe to share. Guards are expressions of the rule language over declared objects (Objects lists
// them), so a misspelt field is a mistake of the file, found before anything runs.
//
// A row of `next` with `after` holds once the phase has lasted that long; a row of `events` with `after` gives an
// event that is due once its cause has lasted that long (Holds says whether it still does). The transitions are
// run by looplab/fsm, which is not seen outside of this package.
package statemachines
