// Package action has the verbs that every pipeline is made of.
//
//	policy.Step --Run--> asks the Session's sites, moves tasks in a model.Txn --> model.Plan (admits, binds, holds, waits)
//
// admit lets jobs in; place walks queues, jobs and tasks in order and puts tasks on nodes. What a verb
// decides by is in the policy's rows and in the step's parameters; nothing here knows a table or an action by name.
//
//	walk.go      queues, jobs, turns, tasks: what a cycle does
//	memory.go    what it remembers of jobs, behind an interface: backlog is the memory that saves work, with a stepBacklog for each step,
//	             and forgetful the one that remembers nothing, which gives the same plans
//	verbs.go     the verbs with their runs; the language has their declarations (policy.Verbs)
package action
