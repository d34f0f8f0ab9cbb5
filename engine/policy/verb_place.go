package policy

import (
	"time"

	"github.com/celsius-scheduler/celsius/engine/policy/kinds"
)

// Place is the verb that places tasks on nodes.
const Place = "place"

// Parameters of place.
const (
	KeyTasks     = "tasks"
	KeyGates     = "gates"
	KeyCommit    = "commit"
	KeyTurn      = "turn"
	KeyOnNoNode  = "onNoNode"
	KeyAwaitPods = "awaitPods"
	// KeyBlocksQueue is a parameter of admit, place and displace.
	KeyBlocksQueue = "blocksQueue"
)

func placeVerb() Verb {
	return Verb{
		Name: Place,
		Doc: "Walks queues, jobs and tasks in order and puts tasks on nodes: on what is idle, else it promises them what is being " +
			"released.",
		Alone: true,
		Itself: []string{
			"Of a job only tasks are placed that are Pending, or Pipelined by an earlier step, whatever `tasks` says. A job without " +
				"such a task is passed over.",
			"`jobValid` is asked before a job's first turn, and a job for which it does not hold is left with that reason. " +
				"`taskFeasible` is asked of a task before any node is looked at.",
			"Fits now comes before fits later: where some node that the predicates permit has room now, only such nodes are scored, " +
				"and the task is allocated. Only where none has are the nodes scored that will have room " +
				"once what is being released is gone: then the task is pipelined, which promises it the place until the cycle ends, " +
				"and the next cycle decides anew.",
			"A task that an earlier step promised a node gives it up before it is tried again, so that it counts nowhere while it is asked " +
				"about, and has it again if no other is found.",
			"A task for which no node was found fails its role for the rest of the turn: other tasks of that role, if it has a name, " +
				"are not tried and say so (`builtin/role`), as they ask for the same. " +
				"A task that the gate `allocatable` refuses fails nobody.",
			"A job whose turn is over by `turn` while it has tasks left comes back for another, if what it placed was kept. A job " +
				"whose placements were held or undone is not tried again by this step.",
			"A turn that is undone is rolled back as a whole: what was placed in it, volumes and devices included, is free again for " +
				"whoever comes next.",
		},
		Parameters: []Parameter{
			whenParameter(), jobsParameter(),
			{KeyTasks, "The tasks that it is about.", kinds.Condition{Roots: []string{"task"}, Default: "task.status == 'Pending' && !task.gated"}},
			{
				KeyGates, "Which sites may stop it: `overused` drops the queue for the whole step, `allocatable` skips the task, " +
					"`preemptive` drops the job. `beyondShare` is `allocatable` without the rows that protect the shares of queues; the step " +
					"then takes only jobs that a row of `beyondShare` names, and a policy without such rows leaves the step out.",
				kinds.Words{Of: []string{Overused, Allocatable, BeyondShare, Preemptive}},
			},
			{
				KeyCommit, "What is kept or undone together: by `job`, a job's placements are kept where jobReady holds, else held " +
					"until the cycle ends where jobPipelined does, else undone; by `task`, each is kept at once.",
				kinds.Word{Of: []string{"job", "task"}, Default: "job"},
			},
			{
				KeyTurn, "How long one job keeps the floor before the orders of queues and jobs are read again: until jobReady holds, " +
					"until jobStarving does not, for one task, or for all.",
				kinds.Word{Of: []string{"untilReady", "untilFed", "oneTask", "all"}, Default: "untilReady"},
			},
			{KeyOnNoNode, "Where a task found no node: whether to go on with the job's other tasks. `role.failed` says which roles " +
				"have failed in this turn.", kinds.Condition{Roots: []string{"job"}, Default: "false"}},
			{
				KeyAwaitPods, "For how long after a job was let in places are kept for its pods while some of them are still to be " +
					"made (`job.expected`), as those of a Job are made only then: " +
					"for those without which it cannot start if there is room for all of them, and for as many of the others as there " +
					"is room for. Who comes after it in the order is placed only where there is room for both, " +
					"on the nodes and by the gate `allocatable`. A job that was admitted 30 s ago also gets places that are kept for jobs " +
					"of other namespaces.", kinds.Period{Most: time.Minute},
			},
			blocksQueueParameter("its turn is over, it had tasks to place, and jobReady does not hold"),
		},
		Sites: []string{
			QueueOrder, JobOrder, TaskOrder, Overused, Allocatable, BeyondShare, Bindable, Preemptive, JobValid, JobReady, JobPipelined, JobStarving,
			TaskFeasible, Predicates, Scores, DevicePredicates, DeviceScores,
		},
	}
}
