// Package reference says what Celsius decides, as plainly as it can be said. It is the definition: the engine's packages do the same
// fast, and are held to it byte for byte. What is new is written here first.
//
// Nothing is remembered from one question to the next, but for the values that settle once a cycle or at the start of a run; every
// expression is evaluated by cel-go, every order is a sort, every count a loop. What it has in common with the engine is the cluster
// and its accounting (engine/model), the arithmetic of quotas (engine/quota), the compiled policy (engine/policy), the fields and
// functions of the language (engine/language), the places kept for pods that are being made (engine/kept), and the words for what was
// decided (engine/report). Read it in this order:
//
//	decide.go    a cycle: the actions, their steps, queues and jobs in turns
//	place.go     one turn of a job: its tasks, what is kept, held or undone
//	displace.go  the same where others are evicted for its tasks
//	close.go     reasons and statuses at the end
//
// Below it, to be read where it matters:
//
//	reference/answers   what sites answer, how things are put in order, and the best node for a task, or why there is none
//	reference/eviction  who goes for a task, and from which node
//	reference/values    what expressions give: rows, computed fields, and what accounting functions add up
//	reference/devices   which devices of a node a task gets
package reference
