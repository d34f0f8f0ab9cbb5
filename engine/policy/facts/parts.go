package facts

import (
	"slices"
	"strconv"

	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/rules/eval"
)

// Part is a row, or another part of a policy with expressions. It contains at least one expression that an author wrote. The part counts as
// evaluated as often as its most evaluated expression.
type Part struct {
	Site, Table, Name string // Site may be attributes, variables or actions; the Table of a step is its action
	Expressions       []*eval.Expr
}

// Parts returns the variables, attributes, rows, and steps of the pipeline's actions.
func Parts(p *policy.Policy) []Part {
	var out []Part
	add := func(site, table, name string, list ...*eval.Expr) {
		list = slices.DeleteFunc(list, func(e *eval.Expr) bool { return e == nil || !e.Text.Written() })
		if len(list) > 0 {
			out = append(out, Part{site, table, name, list})
		}
	}
	for _, v := range p.Variables {
		add("variables", v.Table, v.Name, v.Expr)
	}
	accounts := map[*policy.Account]bool{}
	for _, x := range p.Attributes() {
		if x.Account == nil || !accounts[x.Account] { // only the first of several fields of an account
			add("attributes", x.Table, x.On+"."+x.Name, append([]*eval.Expr{x.When, x.Expr}, policy.ArgumentsOf(x.Args)...)...)
		}
		accounts[x.Account] = true
	}
	for _, r := range p.All {
		add(r.Site.Name, r.Table, r.Name, r.When, r.Expression)
	}
	actions := map[*policy.Action]bool{}
	for _, a := range p.Actions {
		for i, step := range a.Steps {
			if !actions[a] {
				add("actions", a.Name, strconv.Itoa(i+1)+"-"+step.Verb.Name, step.Conditions()...)
			}
		}
		actions[a] = true
	}
	return out
}
