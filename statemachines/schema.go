package statemachines

import (
	"github.com/celsius-scheduler/celsius/rules"
)

// Schema lists all keys in the file of a machine. The reader of the files and the generated reference use this list.
func Schema() []rules.Part {
	description := rules.Key{Name: "description", Value: "text", Doc: "What it is for."}
	name := rules.Key{Name: "name", Value: "text", Doc: "What it is called in pictures, events and errors; no other of the list has it."}
	after := rules.Key{Name: "after", Value: "duration"}
	timed := func(doc string) rules.Key { after.Doc = doc; return after }
	retain := rules.Key{
		Name: "retain", Value: "none, finished",
		Doc: "Which pods stay: none, or those that succeeded or failed. Where an effect ends pods, it must be said.",
	}
	count := rules.Key{Name: "count", Value: "list", Doc: "Counters to increase by one: retryCount."}
	set := rules.Key{Name: "set", Value: "keys", Doc: "What is written into the object: of a queue, parent and closedByParent."}
	return []rules.Part{
		{Name: "machine", Doc: "The file itself.", Keys: []rules.Key{
			{Name: "apiVersion", Value: fileVersion, Doc: "The version of this format."},
			{Name: "kind", Value: fileKind, Doc: "The kind of this file."},
			{Name: "machine", Value: "job, queue, cronjob, jobflow", Doc: "Whose lifecycle it is."},
			description,
			{Name: "initial", Value: "phase", Doc: "The phase of an object that has none yet."},
			{Name: "perpetual", Value: "true, false", Doc: "It needs no final phase. Otherwise one must be within reach of every phase."},
			{Name: "actions", Value: "action: keys", Doc: "What may be asked."},
			{Name: "effects", Value: "effect: keys", Doc: "Which of the controllers' effects are used."},
			{Name: "phases", Value: "phase: keys", Doc: "The phases. The API has no others than those that ship."},
			{Name: "events", Value: "list", Doc: "What changes of objects mean."},
			{Name: "policies", Value: "keys", Doc: "How a Job's own policies are read."},
		}},
		{Name: "action", Doc: "An entry of `actions`.", Keys: []rules.Key{
			description,
			{Name: "internal", Value: "true, false", Doc: "No policy may name it."},
			{Name: "command", Value: "true, false", Doc: "Only a Command may ask for it."},
			{Name: "of", Value: "pod, task, partition", Doc: "What it aims at; left out, the whole."},
		}},
		{Name: "effect", Doc: "An entry of `effects`.", Keys: []rules.Key{
			{Name: "retain", Value: "list", Doc: "Rows that overrule what the row of a phase retains: the first that holds."},
		}},
		{Name: "retain", Doc: "An entry of the `retain` of an effect.", Keys: []rules.Key{
			name,
			{Name: "when", Value: "CEL, true or false", Doc: "When it overrules; left out, always."},
			retain,
		}},
		{Name: "phase", Doc: "An entry of `phases`.", Keys: []rules.Key{
			description,
			{Name: "final", Value: "true, false", Doc: "Nothing leads out of it."},
			{Name: "entry", Value: "true, false", Doc: "Others write it, so no row needs to lead to it."},
			{Name: "actions", Value: "action: keys", Doc: "A row for each action; `*` answers for every other."},
		}},
		{Name: "row", Doc: "A row of a phase.", Keys: []rules.Key{
			{Name: "do", Value: "effect", Doc: "What is done at once."},
			retain,
			{Name: "to", Value: "phase", Doc: "Where it leads, always. Left out together with `next`, the phase stays."},
			count, set,
			{
				Name: "next", Value: "list",
				Doc: "Where it leads, once the effect is done: the first whose guard holds. If none does, the phase stays.",
			},
		}},
		{Name: "next", Doc: "An entry of `next`.", Keys: []rules.Key{
			name,
			{Name: "when", Value: "CEL, true or false", Doc: "The guard; left out, it holds."},
			timed("It holds only once the phase has lasted that long. At that time the plain action (`otherwise`) happens, so the row must belong " +
				"to it."),
			{Name: "to", Value: "phase", Doc: "Where it leads."},
			count, set,
			{Name: "reason", Value: "one word", Doc: "The reason in the object's state."},
			{Name: "message", Value: "text", Doc: "The message in the object's state."},
		}},
		{Name: "event", Doc: "An entry of `events`.", Keys: []rules.Key{
			name, description,
			{Name: "from", Value: "job, pod, podGroup, command; queue; schedule; jobFlow", Doc: "Of what a change is looked at."},
			{Name: "when", Value: "CEL, true or false", Doc: "Whether the change means the event; left out, it does."},
			{
				Name: "while", Value: "CEL, true or false",
				Doc: "How long the cause lasts, for the timeouts of policies and for `after`; left out, it is `when` where there is `after`, else it " +
					"lasts.",
			},
			timed("The event is given once its cause has lasted that long."),
			{
				Name: "since", Value: "CEL, a timestamp",
				Doc: "When the cause began, for `after` and the timeouts of policies; left out or missing, it is the change.",
			},
			{Name: "event", Value: "one word", Doc: "The event."},
			{Name: "exitCodes", Value: "CEL, a list of ints", Doc: "The exit codes that policies may answer."},
			{Name: "otherwise", Value: "action", Doc: "The action where no policy of the Job answers."},
		}},
		{Name: "policies", Doc: "How the policies of a Job are read.", Keys: []rules.Key{
			{Name: "any", Value: "one word", Doc: "The word that stands for any event."},
			{Name: "internal", Value: "list", Doc: "Events that no policy answers."},
			{Name: "needTimeout", Value: "list", Doc: "Events that only policies with a timeout answer."},
			{Name: "otherwise", Value: "action", Doc: "The default action, if no other action is specified."},
		}},
	}
}

// keysOf returns the names of the keys of one part of the schema.
func keysOf(part string) []string { return rules.KeysOf(Schema(), part) }
