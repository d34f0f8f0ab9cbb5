package policy

import (
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy/kinds"
	"github.com/celsius-scheduler/celsius/rules/source"
)

// Displace is the verb that frees resources by evicting pods.
const Displace = "displace"

// Parameters of displace that place does not have.
const (
	KeyScope      = "scope"
	KeyCandidates = "candidates"
	KeyVictims    = "victims"
	KeyNodes      = "nodes"
	KeyVia        = "via"
	KeyUnit       = "unit"
	KeyWhole      = "wholeBundles"
)

// Units in which displace frees resources and evicts.
const (
	UnitTask = "task"
	UnitGang = "gang"
)

// Scopes of displace.
const (
	ScopeQueue       = "queue"
	ScopeJob         = "job"
	ScopeOtherQueues = "otherQueues"
)

// Orders in which displace tries nodes.
const (
	ByScore = "byScore"
	ByOrder = "byOrder"
	ByCost  = "byCost"
)

// MostCosts is the number of nodes that are compared by cost. MostDetours is how often a turn is repeated if some of a job's tasks found no
// node; each repetition protects another victim. MostMates is the number of a job's turns that are checked together with its earlier turns.
// MostUnstable is how often a turn is repeated without victims that would take the resources back.
const (
	MostCosts    = 100
	MostDetours  = 8
	MostMates    = 8
	MostUnstable = 32
)

// Ways in which displace evicts.
const (
	ViaEvict  = "evict"
	ViaDelete = model.ViaDelete
)

// Via returns how the step evicts, as a plan contains it.
func (s *Step) Via() string {
	if via := s.Word(KeyVia); via != ViaEvict {
		return via
	}
	return ""
}

func displaceVerb() Verb {
	return Verb{
		Name: Displace,
		Doc: "Walks queues, jobs and tasks in order and promises tasks the room that others leave who are evicted for them, as the rows of a " +
			"section permit.",
		Itself: []string{
			"`jobs` is asked as the step begins, of things as they are. While the step lasts, what is being released counts as gone.",
			"Of a job only tasks are looked at that are Pending, whatever `tasks` says. `jobValid` is asked before a job's first turn, and " +
				"`taskFeasible` before any node is looked at.",
			"A node counts if it is ready and no row of predicates refuses it but those that are `curable`, which an eviction may cure.",
			"Room that is there, or is being released already, comes first: where some node has it, and every predicate and gate holds, the " +
				"task is promised that node and nobody goes.",
			"Who may go is asked for each node: of the pods there that the scope and `candidates` name, that run or are bound to it, and are " +
				"this scheduler's, each table goes through them in victim order with books of its own, which already lack those whom it has let " +
				"go. Rows with `veto` are asked before all others, their no is final, and their yes lets nobody go; then the first tier decides " +
				"that lets anybody go, and in it whom at least one table lets go and none keeps.",
			"Without a difference in the rows of `victimOrder` these go first: of other queues, those of the queue that comes last in queueOrder; " +
				"of other jobs, those of the job that comes last by the rows of jobOrder; then the tasks that come last in taskOrder.",
			"They are evicted one by one until the gates and the predicates hold and the node has the room, volumes and devices included. Then " +
				"whoever is not needed for it stays after all, the last first, until sparing any one of them would undo it; and those that remain " +
				"are put to the rows once more, all of whom must still let them go.",
			"If that makes too little room, or not all of those that are needed may go together, subsets of the candidates that the rows permit " +
				"alone are tried: smaller ones first, and those of one size in victim order, up to 256 for one task.",
			"A pod whose eviction the API server refused is left alone for a while: for 10 s, then for twice as long after each refusal, for 5 " +
				"minutes at most.",
			"What a turn has evicted and promised is kept where jobPipelined holds, else undone, or kept task by task, as `commit` says; before " +
				"it is kept, whoever is not needed for the promises of the whole turn stays, and at the end of each step whoever is not needed for " +
				"those of the cycle so far.",
			"A turn that is undone, as tasks found no room, is tried up to 8 times more: each time one of those stays who went, the last first, " +
				"if others of its job were not let go where they would have made room. So gangs spare whom nobody else can stand in for.",
			"Nobody goes who would take the room back: who would, pending again and with the winner running, have the winner evicted from that " +
				"node by any step of the policy. The turn is tried without them, up to 32 times. And nobody goes for another job of a job for which " +
				"others go, until it has their room.",
			"A job that is promised room in several turns of a step is looked at with all of it: if with that of a later one somebody would take " +
				"back what an earlier one made, nothing comes of the later one. The first 8 turns of a job are held against those before, those " +
				"after them are looked at by themselves.",
			"With `unit: gang` room is made for several of a job's tasks at once: as few, in their order, as jobPipelined holds with, and one at " +
				"least. If they have no room, units go. First come pods that their jobs can spare, one by one in victim order: while more are " +
				"ready than minMember, and than the least of their role where minMember covers the leasts of all roles; all, where fewer are " +
				"ready as it is. Then come jobs as a whole, in the same order; of those that no row tells apart the last that was made. All " +
				"pods that such a job runs must be candidates and be let go by the rows, and it must not have been promised room itself; else " +
				"none goes. With `byCost`, the least expensive units are evicted first: pods that their jobs can spare, then whole jobs. The rows of " +
				"`victimCost` compute the cost of each unit as if no other unit were evicted. Units of equal cost keep the order above.",
			"With `unit: gang` the first of these units are tried, then the first two, four and so on, and between the last that were too few and " +
				"the first that were enough the fewest are looked for by halves. Then units are spared, the last first, until none more can be: what " +
				"was promised on their nodes stays there, or moves to where there is room. Of a job that would go as a whole only those go who " +
				"are needed, if it can spare these instead of others, which is tried for up to 256 subsets of its pods. The rows of the " +
				"section are asked about all units in order, of which each goes as a whole or not at all, and again about those that remain.",
			"With `unit: gang`, `preemptive` is asked about all waiting tasks of the job together, then about each together with those that it " +
				"permitted, and about those that find room. Others are skipped. `preemptor` is the first task that is not skipped. The job comes " +
				"back only while `jobs` holds of it. Nodes are tried by score. Victims may be anywhere: the whole cluster is one domain.",
			"The room is only promised: the task is placed by a later cycle, once those who were evicted are gone. Until then it is the job's: " +
				"each cycle gives it that room before any queue has a turn, or a place elsewhere that is there now, as long as the job may " +
				"start with it.",
		},
		Parameters: []Parameter{
			whenParameter(), jobsParameter(),
			{KeyTasks, "The tasks that it is about.", kinds.Condition{Roots: []string{"task"}, Default: "task.status == 'Pending' && !task.gated"}},
			{KeyScope, "Whose tasks may go: those of other jobs of the queue, of the job itself, or of other queues.", kinds.Word{
				Of: []string{ScopeQueue, ScopeJob, ScopeOtherQueues}, Default: ScopeQueue,
			}},
			{KeyCandidates, "Who of them is put to the rows at all.", kinds.Condition{
				Roots: []string{"preemptor", "victim", "job"}, Default: "victim.status == 'Running' && victim.preemptable",
			}},
			{KeyVictims, "The section of rows that says who may go.", kinds.Word{
				Of: []string{Preemptable, Reclaimable, Evictable}, Default: Preemptable,
			}},
			{
				KeyNodes, "Which of the nodes is taken on which somebody would have to go: the first by score on which room can be made, the first " +
					"in the order of nodes, or, by cost, of the first 100 by score that on which it costs least by the rows of `victimCost` that they go.",
				kinds.Word{Of: []string{ByScore, ByOrder, ByCost}, Default: ByScore},
			},
			{
				KeyUnit, "Whether room is made for one task at a time, by evicting pods of one node, or for what a `gang` needs to start, by " +
					"evicting what other gangs can spare and gangs as a whole, on all nodes.",
				kinds.Word{Of: []string{UnitTask, UnitGang}, Default: UnitTask},
			},
			{KeyWhole, "Whether, with `unit: gang`, jobs may go as a whole that have no pods to spare, or not enough.", kinds.Flag{Default: true}},
			viaParameter(),
			{KeyGates, "Which sites may stop it: `overused` drops the queue for the whole step, `preemptive` skips the task, and `allocatable` is " +
				"asked again after each eviction, and must hold in the end.", kinds.Words{Of: []string{Overused, Allocatable, Preemptive}}},
			{
				KeyCommit, "What is kept or undone together: by `job`, a job's promises are kept where jobPipelined holds, else undone; by `task`, " +
					"each is kept at once.",
				kinds.Word{Of: []string{"job", "task"}, Default: "job"},
			},
			{
				KeyTurn, "How long one job keeps the floor before the orders of queues and jobs are read again: until jobReady holds, " +
					"until jobStarving does not, for one task, or for all.",
				kinds.Word{Of: []string{"untilReady", "untilFed", "oneTask", "all"}, Default: "untilFed"},
			},
			{KeyOnNoNode, "Where a task found no node: whether to go on with the job's other tasks. `role.failed` says which roles " +
				"have failed in this turn.", kinds.Condition{Roots: []string{"job"}, Default: "false"}},
			blocksQueueParameter("its turn is over, it had tasks to place, and neither jobReady nor jobPipelined holds"),
		},
		Sites: []string{
			QueueOrder, JobOrder, TaskOrder, Overused, Allocatable, Preemptive, JobValid, JobReady, JobPipelined, JobStarving, TaskFeasible,
			Predicates, Scores, DevicePredicates, DeviceScores, Preemptable, Reclaimable, Evictable, VictimOrder, VictimCost,
			BeyondDue,
		},
	}
}

// byCost reports whether nodes are compared by the cost of their victims.
func (s *Step) byCost() bool { return s.Word(KeyNodes) == ByCost }

// checkUnit reports keys that contradict the unit gang.
func (s *TableScope) checkUnit(v source.Value, step *Step) {
	gang := step.Word(KeyUnit) == UnitGang
	if whole := v.Get(KeyWhole); whole.Exists() && !gang {
		s.report(whole.Issuef("add unit: gang, or remove it", "%s is about gangs, and this step makes room for one task at a time", KeyWhole))
	}
	if gang && step.Word(KeyScope) == ScopeJob {
		s.report(v.Get(KeyScope).Issuef("use scope: queue or otherQueues", "a step with unit: gang makes room by other jobs alone"))
	}
	if gang && step.Word(KeyCommit) == "task" {
		s.report(v.Get(KeyCommit).Issuef("use commit: job, or leave it out", "a step with unit: gang promises a job's tasks together"))
	}
}

func viaParameter() Parameter {
	return Parameter{
		KeyVia, "How those go who are evicted: `evict` asks the API server to evict them, as far as PodDisruptionBudgets let it; `delete` " +
			"deletes them whatever budgets say.", kinds.Word{Of: []string{ViaEvict, ViaDelete}, Default: ViaEvict},
	}
}
