// Package action contains the verbs from which every pipeline is built.
//
//	policy.Step --Run--> evaluates the Session's sites, moves tasks in a model.Txn --> model.Plan (admits, binds, evictions, holds, waits)
//
// admit admits jobs. place walks queues, jobs and tasks in order, and places tasks on nodes. displace evicts tasks for others, and evict
// evicts the tasks that rows name. The policy's rows and the step's parameters determine what a verb decides. This package knows no table
// and no action by name.
//
//	walk.go      queues, jobs, turns, tasks: the work of a cycle
//	memory.go    what a cycle remembers about jobs, behind an interface: backlog saves work, with a stepBacklog for each step;
//	             forgetful remembers nothing, and gives the same plans
//	verbs.go     the verbs with their functions; policy.Verbs declares them
//	verbs.go     the verbs with their runs; the language has their declarations (policy.Verbs)
package action
