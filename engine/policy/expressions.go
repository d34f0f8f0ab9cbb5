package policy

import (
	"slices"

	"github.com/celsius-scheduler/celsius/engine/language"
	"github.com/celsius-scheduler/celsius/rules"
	"github.com/celsius-scheduler/celsius/rules/eval"
)

// ReadsTime reports whether anything in the policy reads the time: a row, a computed field, or an action's filter. Then decisions may
// change with time alone.
func (p *Policy) ReadsTime() bool {
	return slices.ContainsFunc(p.Expressions(), func(e *eval.Expr) bool { return e.Timely() || MovesUnseen(e.Reads) })
}

// ReadsMeasures reports whether anything in the policy reads the measured load of nodes.
func (p *Policy) ReadsMeasures() bool {
	return slices.ContainsFunc(p.Expressions(), func(e *eval.Expr) bool { return slices.ContainsFunc(e.Reads.All, ofMeasures) })
}

func ofMeasures(read rules.Read) bool { return AnyOf(read, language.FromMeasures) }

// ReadsWaits reports whether anything in the policy reads what the last cycle found about what the pods of a job wait for.
func (p *Policy) ReadsWaits() bool { return p.readsWaits }

func ofWaits(read rules.Read) bool { return AnyOf(read, language.FromWaits) }

// Expressions returns all expressions of the policy.
func (p *Policy) Expressions() []*eval.Expr {
	var out []*eval.Expr
	add := func(list ...*eval.Expr) {
		out = append(out, slices.DeleteFunc(list, func(e *eval.Expr) bool { return e == nil })...)
	}
	for _, r := range p.All {
		add(r.Asked()...)
	}
	for _, x := range p.attributes {
		add(x.When, x.Expr)
	}
	for _, v := range p.Variables {
		add(v.Expr)
	}
	for _, a := range p.Actions {
		for _, step := range a.Steps {
			add(step.Conditions()...)
		}
	}
	return append(out, p.Arguments()...)
}

// Arguments returns the argument expressions of all accounting functions.
func (p *Policy) Arguments() []*eval.Expr {
	var out []*eval.Expr
	for _, x := range p.Accounts {
		out = append(out, ArgumentsOf(x.Args)...)
	}
	return out
}

// ReadsNow reports whether the time is read.
func ReadsNow(reads *rules.Reads) bool { return slices.ContainsFunc(reads.All, OfClock) }

// MovesUnseen reports whether the time is read through a field other than now. Changes of such a read are not tracked.
func MovesUnseen(reads *rules.Reads) bool {
	return slices.ContainsFunc(reads.All, func(read rules.Read) bool { return read.Root != "now" && OfClock(read) })
}

// ArgumentsOf returns the arguments of an accounting function, ordered by name.
func ArgumentsOf(args map[string]*eval.Expr) []*eval.Expr {
	var out []*eval.Expr
	for _, name := range sortedKeys(args) {
		out = append(out, args[name])
	}
	return out
}
