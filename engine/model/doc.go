// Package model contains the state on which decisions are made: nodes, queues, jobs, tasks, and what each of them uses.
//
//	Kubernetes objects                        engine/action
//	 (files, informers)                      decides tentatively
//	        |                                      |
//	  Delta -> Cluster.Apply              Txn.Allocate, Pipeline,
//	        |  read*: objects to            Bind, Evict, Admit ...
//	        |  our own structs                     |   ^ Rollback: the same
//	        |                                      |   | function, backwards
//	  +-- move: out of the sums of the old spot, into those of the new spot
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
//	  caches of engine/verdict and engine/session catch up, each with a cursor of its own
//
// A Cluster has one owner and no locks. Every package may read its exported fields, but only this package writes them. Slices and maps that
// a caller reads from it are valid until the next change, and the caller must not alter them.
//
// The status of a task determines in which sums its resources count:
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
// A pod that its owner deleted with a long grace period (see lingers) is Unknown, so that no task is promised its resources.
//
// Idle is allocatable - used and may be below 0. Future idle is idle + releasing - pipelined. Tasks that count as used hold their devices
// (GPU). The sums of the cluster do not contain unadmitted tasks (Task.Unadmitted).
//
// The state is a function of the newest version of each object and of the decisions that the objects do not show yet. It does not depend on
// the order in which the objects came. Amounts are whole numbers of inner units (see Dims). So sums are exact, and undoing a step restores
// the same bits.
package model
