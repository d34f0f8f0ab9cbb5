// Package action has the verbs that every pipeline is made of.
//
//	policy.Step --Run--> asks the Session's sites, moves tasks in a model.Txn --> model.Plan (admits, binds, holds, waits)
//
// admit lets jobs in; place walks queues, jobs and tasks in order and puts tasks on nodes. What a verb
// decides by is in the policy's rows and in the step's parameters; nothing here knows a table or an action by name.
package action
