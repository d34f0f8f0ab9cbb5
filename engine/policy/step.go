package policy

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/celsius-scheduler/celsius/rules"
	"github.com/celsius-scheduler/celsius/rules/eval"
	"github.com/celsius-scheduler/celsius/rules/source"
)

// Step is a verb with its parameters. A parameter that the verb does not have reads as its zero value.
type Step struct {
	Verb   *Verb
	number int          // the number of the step in its action, from 0
	values []any        // the values of the verb's parameters, in their order
	reads  []*eval.Expr // expressions that the verb itself reads
}

// Condition returns a parameter that is an expression; nil: it is always true.
func (s *Step) Condition(key string) *eval.Expr { return valueOf[*eval.Expr](s, key) }

// Moves reports whether the value of a condition can change while the step runs.
func (s *Step) Moves(key string) bool {
	e := s.Condition(key)
	return e != nil && slices.ContainsFunc(e.Reads.All, func(r rules.Read) bool { return r.Changes > rules.ByAdmit })
}

// Flag returns a parameter that is true or false.
func (s *Step) Flag(key string) bool { return valueOf[bool](s, key) }

// Word returns a parameter that is one of several words.
func (s *Step) Word(key string) string { return valueOf[string](s, key) }

// Period returns a parameter that is a duration.
func (s *Step) Period(key string) time.Duration { return valueOf[time.Duration](s, key) }

// Name returns the verb with what distinguishes the step from other steps of its action. Cached data of the step has this name.
func (s *Step) Name(action string) string {
	return action + "/" + s.Verb.Name + "/" + strconv.Itoa(s.number)
}

// Gate reports whether the step respects a gate.
func (s *Step) Gate(name string) bool {
	return slices.Contains(valueOf[[]string](s, KeyGates), name)
}

// Heeds reports whether the step evaluates a site. It skips a site that is a gate unless the step respects the gate.
func (s *Step) Heeds(site string) bool {
	if site == Allocatable && s.Gate(BeyondShare) {
		return true
	}
	return s.Gate(site) || !slices.Contains([]string{Overused, Allocatable, BeyondShare, Preemptive}, site)
}

func valueOf[T any](s *Step, key string) (value T) {
	for i := range s.Verb.Parameters {
		if s.Verb.Parameters[i].Name == key {
			value, _ = s.values[i].(T)
			break
		}
	}
	return value
}

// Conditions returns all expressions among the parameters.
func (s *Step) Conditions() []*eval.Expr {
	var out []*eval.Expr
	for _, v := range s.values {
		if e, ok := v.(*eval.Expr); ok && e != nil {
			out = append(out, e)
		}
	}
	return out
}

// step compiles a step by the declaration of its verb.
func (s *TableScope) step(v source.Value) *Step {
	verb := s.need(v, "verb")
	name := verb.String(&s.issues)
	of := verbNamed(s.verbs, name)
	switch known := verbNames(s.verbs); {
	case of != nil:
	case name != "":
		s.report(verb.Issuef(source.Suggest(name, known), "unknown verb %q", name))
	}
	if of == nil {
		return nil
	}
	keys := []string{"verb"}
	for _, p := range of.Parameters {
		keys = append(keys, p.Name)
	}
	v.Fields(keys, &s.issues)
	step := &Step{Verb: of}
	for _, p := range of.Parameters {
		step.values = append(step.values, p.Kind.Read(stepReader{s}, v.Get(p.Name)))
	}
	if of.Name == Displace {
		s.checkUnit(v, step)
	}
	for _, field := range of.Reads {
		root, _, _ := strings.Cut(field, ".")
		step.reads = append(step.reads, s.declared(field, []string{root}, rules.Anything()))
	}
	return step
}

// declared compiles an expression of a verb's declaration.
func (s *TableScope) declared(text string, roots []string, want rules.Kind) *eval.Expr {
	sc := s.scope(roots)
	if sc == nil {
		return nil
	}
	e, issues := eval.Compile(sc, source.NewText(text), want)
	for _, i := range issues {
		s.report(i)
	}
	return e
}

// Asks returns all expressions that a step evaluates for jobs and their tasks: its own and those of rows. The orders of queues and jobs are
// not included.
func (step *Step) Asks(p *Policy) []*eval.Expr {
	return step.AsksOf(p, func(string) bool { return true })
}

// AsksOf is Asks for some of the sites only.
func (step *Step) AsksOf(p *Policy, of func(site string) bool) []*eval.Expr {
	out := append(step.Conditions(), step.reads...)
	for _, site := range step.Verb.Sites {
		if site == QueueOrder || site == JobOrder || !of(site) {
			continue
		}
		for _, r := range p.rules[site] {
			out = append(out, r.Asked()...)
		}
	}
	for _, site := range []string{JobReady, JobStarving} {
		reads := func(e *eval.Expr) bool {
			return slices.ContainsFunc(e.Reads.All, func(read rules.Read) bool { return answering(read) == site })
		}
		if step.Verb.Asks(site) || !slices.ContainsFunc(out, reads) {
			continue
		}
		for _, r := range p.rules[site] {
			out = append(out, r.Asked()...)
		}
	}
	return out
}
