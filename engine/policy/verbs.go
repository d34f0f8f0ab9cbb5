package policy

import "github.com/celsius-scheduler/celsius/rules"

// Verb is what a step of an action may do: the closed list of them is Verbs().
type Verb struct {
	Name string
	Doc  string
	Keys []rules.Key
}

// The verbs of this version.
const (
	Admit = "admit"
	Place = "place"
)

// Verbs lists every verb with its parameters (policy-schema S15).
func Verbs() []Verb {
	when := rules.Key{Name: "when", Value: "CEL: bool", Doc: "Whether the step is taken at all; default true."}
	jobs := rules.Key{Name: "jobs", Value: "CEL over job: bool", Doc: "The jobs that it is about; default all."}
	return []Verb{
		{Admit, "Walks queues and jobs in order and lets jobs in: PodGroup Pending to Inqueue.", []rules.Key{
			when, jobs,
			{Name: "vote", Value: "bool", Doc: "Whether jobEnqueueable is asked, which is about what a job reserves: a job without minResources is let in unasked; default true."},
		}},
		{Place, "Walks queues, jobs and tasks in order and puts tasks on nodes: on what is idle, else it promises them what is being released.", []rules.Key{
			when, jobs,
			{Name: "tasks", Value: "CEL over task: bool", Doc: "The tasks that it is about; default those that are Pending and not gated."},
			{Name: "gates", Value: "list of overused, allocatable, preemptive", Doc: "Which sites may stop it: `overused` drops the queue for the whole step, `allocatable` skips the task, `preemptive` drops the job; default none."},
			{Name: "commit", Value: "job or task", Doc: "What is kept or undone together; default job: a job's placements are kept where jobReady holds, else held until the cycle ends where jobPipelined does, else undone."},
			{Name: "turn", Value: "untilReady, untilFed, oneTask or all", Doc: "How long one job keeps the floor before the orders of queues and jobs are read again: until jobReady holds, until jobStarving does not, for one task, or for all; default untilReady."},
			{Name: "onNoNode", Value: "CEL over job: bool", Doc: "Where a task found no node: whether to go on with the job's other tasks. `role.failed` says which roles have failed in this turn; tasks of those are passed over; default false."},
			{Name: "awaitPods", Value: "duration", Doc: "For how long after a job was let in places are kept for its pods while some of them are still to be made (`job.expected`), as those of a Job are made only then: " +
				"for those without which it cannot start if there is room for all of them, and for as many of the others as there is room for. Who comes after it in the order is placed only where there is room for both, " +
				"on the nodes and by the gate `allocatable`. A minute at most; default 0s: nothing is kept."},
		}},
	}
}

// The words that a step's keys take.
func commitWords() []string { return []string{"job", "task"} }
func turnWords() []string   { return []string{"untilReady", "untilFed", "oneTask", "all"} }
func gateWords() []string   { return []string{Overused, Allocatable, Preemptive} }

// LaterActions are Volcano's actions that are known by name, but not in this version.
func LaterActions() []string {
	return []string{"preempt", "reclaim", "shuffle", "gangpreempt", "gangreclaim"}
}

// LaterVerbs are the verbs of the design that are not in this version.
func LaterVerbs() []string { return []string{"displace", "evict"} }

// stepKeys are the names of each verb's parameters.
func stepKeys() map[string][]string {
	out := map[string][]string{}
	for _, v := range Verbs() {
		for _, k := range v.Keys {
			out[v.Name] = append(out[v.Name], k.Name)
		}
	}
	return out
}
