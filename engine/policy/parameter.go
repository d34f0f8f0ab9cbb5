package policy

import (
	"strings"
	"time"

	"github.com/google/cel-go/cel"

	"github.com/celsius-scheduler/celsius/rules"
	"github.com/celsius-scheduler/celsius/rules/eval"
	"github.com/celsius-scheduler/celsius/rules/source"
)

// Parameter is a key of a verb's steps.
type Parameter struct {
	Name string
	Doc  string
	Kind ParameterKind
}

// The parameters that several verbs have.
const (
	KeyWhen = "when"
	KeyJobs = "jobs"
)

func whenParameter() Parameter {
	return Parameter{KeyWhen, "Whether the step is taken at all.", Condition{Default: "true"}}
}

func jobsParameter() Parameter {
	return Parameter{KeyJobs, "The jobs that it is about.", Condition{Roots: []string{"job"}, Default: "true"}}
}

// ParameterKind is how the value of a parameter is written, and how it is read.
type ParameterKind interface {
	// Written is what may stand there, for people.
	Written() string
	// Otherwise is what holds where nothing stands there, for people.
	Otherwise() string
	// read gives the value; v may be absent.
	read(s *TableScope, v source.Value) any
}

// Condition is an expression that is true or false: a *eval.Expr, nil where it is always true.
type Condition struct {
	// Roots are what it may read, besides what every row sees. With a job or a task its queue is known, too.
	Roots []string
	// Default is an expression.
	Default string
}

// Written implements ParameterKind.
func (k Condition) Written() string {
	if len(k.Roots) == 0 {
		return "CEL: bool"
	}
	return "CEL over " + strings.Join(k.Roots, ", ") + ": bool"
}

// Otherwise implements ParameterKind.
func (k Condition) Otherwise() string { return "`" + k.Default + "`" }

func (k Condition) read(s *TableScope, v source.Value) any {
	want := rules.Exactly(cel.BoolType, "true or false")
	switch {
	case v.Exists():
		return s.compile(v.Text(&s.issues), k.Roots, want)
	case k.Default == "true":
		return (*eval.Expr)(nil)
	}
	return s.declared(k.Default, k.Roots, want)
}

// Flag is true or false: a bool.
type Flag struct{ Default bool }

// Written implements ParameterKind.
func (k Flag) Written() string { return "bool" }

// Otherwise implements ParameterKind.
func (k Flag) Otherwise() string {
	if k.Default {
		return "true"
	}
	return "false"
}

func (k Flag) read(s *TableScope, v source.Value) any {
	if !v.Exists() {
		return k.Default
	}
	return v.Bool(&s.issues)
}

// Word is one of several words: a string.
type Word struct {
	Of      []string
	Default string
}

// Written implements ParameterKind.
func (k Word) Written() string {
	return listed(k.Of, "or")
}

// Otherwise implements ParameterKind.
func (k Word) Otherwise() string { return k.Default }

func (k Word) read(s *TableScope, v source.Value) any { return s.word(v, k.Default, k.Of) }

// Words is any number of some words: a []string.
type Words struct{ Of []string }

// Written implements ParameterKind.
func (k Words) Written() string { return "list of " + strings.Join(k.Of, ", ") }

// Otherwise implements ParameterKind.
func (k Words) Otherwise() string { return "none" }

func (k Words) read(s *TableScope, v source.Value) any {
	var out []string
	for _, item := range s.items(v) {
		out = append(out, s.word(item, "", k.Of))
	}
	return out
}

// Period is how long something lasts: a time.Duration from 0 to Most, by default 0.
type Period struct{ Most time.Duration }

// Written implements ParameterKind.
func (k Period) Written() string {
	return "duration, at most " + strings.TrimSuffix(k.Most.String(), "0s")
}

// Otherwise implements ParameterKind.
func (k Period) Otherwise() string { return "0s, which switches it off" }

func (k Period) read(s *TableScope, v source.Value) any {
	if !v.Exists() {
		return time.Duration(0)
	}
	d := v.Duration(&s.issues)
	if d < 0 || d > k.Most {
		s.report(v.Issuef("0s switches it off", "must be from 0s to %s", k.Most))
	}
	return d
}

// Count is a number of things, as a number or an expression: a *eval.Expr, nil where there is no limit.
type Count struct{}

// Written implements ParameterKind.
func (k Count) Written() string { return "a number, or CEL: int" }

// Otherwise implements ParameterKind.
func (k Count) Otherwise() string { return "no limit" }

func (k Count) read(s *TableScope, v source.Value) any {
	if !v.Exists() {
		return (*eval.Expr)(nil)
	}
	return s.compile(v.Text(&s.issues), nil, rules.Exactly(cel.IntType, "a whole number"))
}

// listed is "a, b or c".
func listed(words []string, last string) string {
	n := len(words) - 1
	return strings.Join(words[:n], ", ") + " " + last + " " + words[n]
}
