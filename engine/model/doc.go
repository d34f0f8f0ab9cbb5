// Package model is the state that decisions are made on: nodes, queues, jobs, tasks, and what each of them uses.
//
//	Kubernetes objects                        engine/action
//	 (files, informers)                      decides tentatively
//	        |                                      |
//	  Delta -> Cluster.Apply              Txn.Allocate, Pipeline,
//	        |  read*: objects to            Bind, Evict, Admit ...
//	        |  our own structs                     |   ^ Rollback: the same
//	        |                                      |   | door, going back
//	  +-- move: out of the old spot's sums, into the new one's ----+
//	  |                                                            |
//	  |  Nodes     columns by resource, devices, tasks by row      |
//	  |  Jobs      counts by status and role, sums of requests     |
//	  |  Queues    phases of their jobs, sums of requests          |
//	  |  Total, Used                                               |
//	  +------------------------------------------------------------+
//	        |                                      |
//	  versions, Log (what was touched)      Plan (what was decided)
//	        |
//	        v
//	  caches of engine/verdict and engine/session catch up, each from its own cursor
//
// A Cluster has one owner and no locks. Its exported fields are read by everyone and written here only; slices and
// maps that are read from it are valid until the next change and must not be altered.
//
// What a task counts for follows from its status:
//
//	status                                 node                  job and queue
//	Pending                                -                     request
//	Pipelined                              pipelined             allocated, request
//	Allocated, Binding, Bound, Running     used                  allocated, request
//	Releasing                              used and releasing    -
//	Unknown                                used                  -
//	Unknown and unadmitted                 used                  request
//	Succeeded, Failed                      -                     -
//
// A pod that its owner deleted with a long grace period (see lingers) is Unknown, so that nothing is promised its resources.
//
// Idle is allocatable - used and may be below 0; future idle is idle + releasing - pipelined. Devices (GPU) are held
// by the tasks that are counted as used. The sums of the cluster do not contain unadmitted tasks (Task.Unadmitted).
//
// Everything is a function of the newest version of each object and of the decisions that the objects do not show
// yet, whatever the order in which the objects came. Amounts are whole numbers of inner units (see Dims), so sums
// are exact and undoing a step gives back the same bits.
package model
