package policy

import "github.com/celsius-scheduler/celsius/engine/policy/kinds"

// Admit is the verb that lets jobs in.
const Admit = "admit"

// KeyVote is a parameter of admit.
const KeyVote = "vote"

func admitVerb() Verb {
	return Verb{
		Name:  Admit,
		Doc:   "Walks queues and jobs in order and lets jobs in: PodGroup Pending to Inqueue.",
		Alone: true,
		Itself: []string{
			"A job whose phase is not Pending is in already, and is passed over.",
			"A job without minResources reserves nothing: it is let in without a vote.",
			"A job that is refused is not tried again in the step, whatever comes after it.",
		},
		Parameters: []Parameter{
			whenParameter(), jobsParameter(),
			{KeyVote, "Whether jobEnqueueable is asked, which is about what a job reserves.", kinds.Flag{Default: true}},
			blocksQueueParameter("it is refused"),
		},
		Sites: []string{QueueOrder, JobOrder, JobEnqueueable},
		Reads: []string{"job.hasMinResources"},
	}
}
