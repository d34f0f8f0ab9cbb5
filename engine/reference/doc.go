// Package reference defines what Celsius decides, in its simplest form. The engine's packages compute the same decisions faster, and tests
// compare both byte for byte. Write new behaviour here first.
//
// The package remembers nothing from one question to the next, except the values that settle once per cycle or at the start of a run.
// cel-go evaluates every expression, every order is a sort, and every count a loop. It shares these packages with the engine: the cluster
// and its accounting (engine/model), the arithmetic of quotas (engine/quota), the compiled policy (engine/policy), the fields and functions
// of the language (engine/language), the resources kept for pods that do not exist yet (engine/kept), and the texts for decisions
// (engine/report).
//
// Read it in this order:
//
//	decide.go    a cycle: the actions, their steps, queues and jobs in turns
//	place.go     one turn of a job: its tasks, and what is kept, held or undone
//	displace.go  the same, but other tasks are evicted for its tasks
//	close.go     reasons and statuses at the end
//
// Read the packages below it when you need them:
//
//	reference/answers   the answers of sites, the order of objects, and the best node for a task, or why there is none
//	reference/eviction  which tasks are evicted for a task, and on which node
//	reference/values    values of expressions: rows, computed fields, and accounting functions
//	reference/devices   which devices of a node a task gets
package reference
