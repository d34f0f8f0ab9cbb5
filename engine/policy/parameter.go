package policy

import (
	"github.com/celsius-scheduler/celsius/engine/policy/kinds"
	"github.com/celsius-scheduler/celsius/rules"
	"github.com/celsius-scheduler/celsius/rules/eval"
	"github.com/celsius-scheduler/celsius/rules/source"
)

// Parameter is a key of a verb's steps.
type Parameter struct {
	Name string
	Doc  string
	Kind kinds.Kind
}

// Parameters that several verbs have.
const (
	KeyWhen = "when"
	KeyJobs = "jobs"
)

func whenParameter() Parameter {
	return Parameter{KeyWhen, "Whether the step is taken at all.", kinds.Condition{Default: "true"}}
}

func jobsParameter() Parameter {
	return Parameter{KeyJobs, "The jobs that it is about.", kinds.Condition{Roots: []string{"job"}, Default: "true"}}
}

// blocksQueueParameter declares the parameter that states whether a job that waits after its turn blocks the jobs behind it.
func blocksQueueParameter(waits string) Parameter {
	return Parameter{
		KeyBlocksQueue, "Whether a job blocks its queue if " + waits + ". The step then leaves all jobs that come after it in the queue, " +
			"with the reason `builtin/fifo`. An error is false.", kinds.Condition{Roots: []string{"job"}, Default: "false"},
	}
}

// stepReader reads the parameters of a step.
type stepReader struct{ *TableScope }

func (r stepReader) Compile(text source.Text, roots []string, want rules.Kind) *eval.Expr {
	return r.compile(text, roots, want)
}

func (r stepReader) Declared(text string, roots []string, want rules.Kind) *eval.Expr {
	return r.declared(text, roots, want)
}

func (r stepReader) Word(v source.Value, otherwise string, among []string) string {
	return r.word(v, otherwise, among)
}

func (r stepReader) Issues() *source.Issues { return &r.issues }
