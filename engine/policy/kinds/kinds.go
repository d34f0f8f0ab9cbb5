// Package kinds defines the types of a verb's parameters: a condition, a word, a time, and others.
package kinds

import (
	"strings"
	"time"

	"github.com/google/cel-go/cel"

	"github.com/celsius-scheduler/celsius/rules"
	"github.com/celsius-scheduler/celsius/rules/eval"
	"github.com/celsius-scheduler/celsius/rules/source"
)

// Kind defines how the value of a parameter is written and read.
type Kind interface {
	// Written describes the allowed values for users.
	Written() string
	// Otherwise describes the default for users.
	Otherwise() string
	// Read returns the value. v may be missing.
	Read(r Reader, v source.Value) any
}

// Reader reads the keys of a step.
type Reader interface {
	// Compile compiles an expression of the author, Declared an expression of the verb's declaration. roots are values that the expression
	// may read in addition.
	Compile(text source.Text, roots []string, want rules.Kind) *eval.Expr
	Declared(text string, roots []string, want rules.Kind) *eval.Expr
	// Word returns one of several words, or otherwise if v is missing.
	Word(v source.Value, otherwise string, among []string) string
	// Issues returns the list to which mistakes are added.
	Issues() *source.Issues
}

// Condition is an expression that is true or false. Its value is an *eval.Expr; nil: it is always true.
type Condition struct {
	// Roots are what it may read, in addition to what every row sees. With a job or a task, it may also read its queue.
	Roots []string
	// Default is an expression.
	Default string
}

// Written implements Kind.
func (k Condition) Written() string {
	if len(k.Roots) == 0 {
		return "CEL: bool"
	}
	return "CEL over " + strings.Join(k.Roots, ", ") + ": bool"
}

// Otherwise implements Kind.
func (k Condition) Otherwise() string { return "`" + k.Default + "`" }

// Read implements Kind.
func (k Condition) Read(r Reader, v source.Value) any {
	want := rules.Exactly(cel.BoolType, "true or false")
	switch {
	case v.Exists():
		return r.Compile(v.Text(r.Issues()), k.Roots, want)
	case k.Default == "true":
		return (*eval.Expr)(nil)
	}
	return r.Declared(k.Default, k.Roots, want)
}

// Flag is true or false. Its value is a bool.
type Flag struct{ Default bool }

// Written implements Kind.
func (k Flag) Written() string { return "bool" }

// Otherwise implements Kind.
func (k Flag) Otherwise() string {
	if k.Default {
		return "true"
	}
	return "false"
}

// Read implements Kind.
func (k Flag) Read(r Reader, v source.Value) any {
	if !v.Exists() {
		return k.Default
	}
	return v.Bool(r.Issues())
}

// Word is one of several words. Its value is a string.
type Word struct {
	Of      []string
	Default string
}

// Written implements Kind.
func (k Word) Written() string {
	return listed(k.Of, "or")
}

// Otherwise implements Kind.
func (k Word) Otherwise() string { return k.Default }

// Read implements Kind.
func (k Word) Read(r Reader, v source.Value) any { return r.Word(v, k.Default, k.Of) }

// Words is any number of several words. Its value is a []string.
type Words struct{ Of []string }

// Written implements Kind.
func (k Words) Written() string { return "list of " + strings.Join(k.Of, ", ") }

// Otherwise implements Kind.
func (k Words) Otherwise() string { return "none" }

// Read implements Kind.
func (k Words) Read(r Reader, v source.Value) any {
	var out []string
	for _, item := range items(r, v) {
		out = append(out, r.Word(item, "", k.Of))
	}
	return out
}

// Period is a duration from 0 to Most. Its value is a time.Duration; the default is 0.
type Period struct{ Most time.Duration }

// Written implements Kind.
func (k Period) Written() string {
	return "duration, at most " + strings.TrimSuffix(k.Most.String(), "0s")
}

// Otherwise implements Kind.
func (k Period) Otherwise() string { return "0s, which switches it off" }

// Read implements Kind.
func (k Period) Read(r Reader, v source.Value) any {
	if !v.Exists() {
		return time.Duration(0)
	}
	d := v.Duration(r.Issues())
	if d < 0 || d > k.Most {
		*r.Issues() = append(*r.Issues(), v.Issuef("0s switches it off", "must be from 0s to %s", k.Most))
	}
	return d
}

// Count is a limit, as a number or an expression. Its value is an *eval.Expr; nil: no limit.
type Count struct{}

// Written implements Kind.
func (k Count) Written() string { return "a number, or CEL: int" }

// Otherwise implements Kind.
func (k Count) Otherwise() string { return "no limit" }

// Read implements Kind.
func (k Count) Read(r Reader, v source.Value) any {
	if !v.Exists() {
		return (*eval.Expr)(nil)
	}
	return r.Compile(v.Text(r.Issues()), nil, rules.Exactly(cel.IntType, "a whole number"))
}

// listed returns "a, b or c".
func listed(words []string, last string) string {
	n := len(words) - 1
	return strings.Join(words[:n], ", ") + " " + last + " " + words[n]
}

// items returns the items of a list that may be missing.
func items(r Reader, v source.Value) []source.Value {
	if !v.Exists() {
		return nil
	}
	return v.Items(r.Issues())
}
