package policy

import "github.com/celsius-scheduler/celsius/engine/policy/kinds"

// Admit is the verb that admits jobs.
const Admit = "admit"

// KeyVote is a parameter of admit.
const KeyVote = "vote"

func admitVerb() Verb {
	return Verb{
		Name:  Admit,
		Doc:   "Visits queues and jobs in order and admits jobs: PodGroup Pending to Inqueue.",
		Alone: true,
		Itself: []string{
			"A job whose phase is not Pending is already admitted, and is skipped.",
			"A job without minResources reserves no resources: it is admitted without a vote.",
			"A job that is refused is not tried again in the step, whatever comes after it.",
		},
		Parameters: []Parameter{
			whenParameter(), jobsParameter(),
			{KeyVote, "Whether the rows of jobEnqueueable are evaluated, which judge what a job reserves.", kinds.Flag{Default: true}},
			blocksQueueParameter("it is refused"),
		},
		Sites: []string{QueueOrder, JobOrder, JobEnqueueable},
		Reads: []string{"job.hasMinResources"},
	}
}
