// Package statemachines defines the lifecycles of Jobs, Queues, CronJobs and JobFlows as data.
//
//	*.yaml --Load--> Machine (verified: every mistake at its line and column)
//	                                 |
//	change of a pod, PodGroup, Job --+-- Events --> events --+
//	Command ---------------------------------------------+-- Action --> action, perhaps after a delay
//	                                 |
//	phase + action + Facts ----------+-- Step --> effect (sync, kill, restartPods), what to retain
//	        (the controller performs the effect, and counts again)
//	phase + action + new Facts ------+-- Next --> phase, counters
//	phase + Facts -------------------+-- Timers --> when to check again without a further change
//
// A Machine returns what to do and which phase follows. It does nothing itself, reads no clock and stores no state of any job. Therefore it
// is safe to share. Guards are expressions of the rule language over declared objects, which Objects lists. A misspelled field is a mistake
// in the file, and is found before anything runs.
//
// A row of `next` with `after` applies once the phase has lasted that long. A row of `events` with `after` gives an event once its cause
// has lasted that long. Holds reports whether the cause still lasts. The library looplab/fsm runs the transitions. It is not visible
// outside this package.
package statemachines
