package policy

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/google/cel-go/common/types/ref"

	"github.com/celsius-scheduler/celsius/engine/language"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy/parts"
	"github.com/celsius-scheduler/celsius/engine/policy/rollback"
	"github.com/celsius-scheduler/celsius/rules"
	"github.com/celsius-scheduler/celsius/rules/eval"
	"github.com/celsius-scheduler/celsius/rules/source"
)

// Policy is a compiled SchedulingPolicy. It is immutable and safe to share. A Session evaluates it on a cluster.
type Policy struct {
	Name       string
	Generation int64
	Mode       string // Active, Paused or Shadow
	Tiers      []string
	Pipeline   []string
	// Actions are the definitions of the pipeline's actions, in order.
	Actions []*Action

	rules      map[string][]*Rule // by site, in tier order
	All        []*Rule
	attributes []*Attribute
	Accounts   []*Account
	Variables  []*Variable
	Trees      map[*rules.Member]*QuotaTree // by the members that lead along them
	computed   map[*rules.Member]*Attribute // by the members that read them
	Layout     language.Layout
	readsWaits bool
	parts      []string // the policies that are joined to this one for their own queues
	written    source.Value
}

// Object returns the SchedulingPolicy that the policy was compiled from, in JSON.
func (p *Policy) Object() ([]byte, error) { return json.Marshal(p.written.Any()) }

// Rollback returns the policy's own conditions for its rollback; nil: it has none.
func (p *Policy) Rollback() *rollback.Conditions {
	return rollback.Read(p.written.Get("spec").Get("rollback"), new(source.Issues))
}

// Fallback returns what is in force after the policy was found faulty or was rolled back. It is KeepPredicates, Stop, or "" if the policy
// does not state it.
func (p *Policy) Fallback() string {
	text, _ := p.written.Get("spec").Get("fallback").Any().(string)
	return text
}

// allNamespaces is the value of spec.messages that lets a message name objects of other namespaces than its own.
const allNamespaces = "AllNamespaces"

// MayName reports whether a message on an object of one namespace may name an object of another one.
func (p *Policy) MayName(on, other string) bool {
	return on == other || p.written.Get("spec").Get("messages").Any() == any(allNamespaces)
}

// Values computes the fields that a policy adds to the language. An error is a *types.Err.
type Values interface {
	language.Values
	// Attribute returns a computed field of the object of a view.
	Attribute(x *Attribute, of ref.Val) ref.Val
	// Variable returns a variable of a table for the objects in a frame.
	Variable(v *Variable, f *language.Frame) ref.Val
}

// NewWorld returns a view of a cluster with the fields of a policy.
func NewWorld(c *model.Cluster, p *Policy, values Values) *language.World {
	return language.NewWorld(c, p.Layout, values)
}

// Rules returns the rows of one site, in tier order.
func (p *Policy) Rules(site string) []*Rule { return p.rules[site] }

// beyondShare returns the key in the map of rules for the rows of a site that do not protect the share of a queue.
func beyondShare(site string) string { return site + " beyond the share" }

// RulesIn returns the rows of a site that a step asks; nil: all. A step that lets jobs exceed the share of their queue asks only those that
// do not protect the share.
func (p *Policy) RulesIn(step *Step, site string) []*Rule {
	if step != nil && step.Gate(BeyondShare) && (site == Allocatable || site == Overused || site == Bindable) {
		return p.rules[beyondShare(site)]
	}
	return p.rules[site]
}

// LacksRoom reports whether evictions could change a refusal by a row or by the scheduler itself. Examples are a node with too few free
// resources, or a queue that has used its share.
func (p *Policy) LacksRoom(why model.Reason) bool {
	if why.Table == "builtin" {
		return why.Rule == "fit" || why.Rule == "devices" || why.Rule == "await-pods"
	}
	r := p.Row(why)
	switch {
	case r == nil:
		return false
	case r.Site.Name == Predicates:
		return r.Rests.node && !r.Rests.Static
	case r.Site.Name == JobEnqueueable:
		return r.Rests.Moving || r.Rests.Cluster
	}
	return r.Site.Name == DevicePredicates || r.Site.Name == BeyondShare || r.Site.Name == Bindable || r.Share
}

// RefusesShare reports whether a reason comes from a row that protects the shares of queues.
func (p *Policy) RefusesShare(why model.Reason) bool {
	r := p.Row(why)
	return r != nil && r.Share
}

// Attributes returns the computed fields, in tier order.
func (p *Policy) Attributes() []*Attribute { return p.attributes }

// Computed returns the computed field for a member of the language; nil: it is not one.
func (p *Policy) Computed(m *rules.Member) *Attribute { return p.computed[m] }

// PlacingAfter returns the steps of a pipeline that come after a step and place tasks.
func (p *Policy) PlacingAfter(step *Step) (out []*Step) {
	after := false
	for _, a := range p.Actions {
		for _, s := range a.Steps {
			if after && s.Verb.Name == Place {
				out = append(out, s)
			}
			after = after || s == step
		}
	}
	return out
}

// Displacing returns the steps of a pipeline that displace.
func (p *Policy) Displacing() (out []*Step) {
	for _, a := range p.Actions {
		for _, s := range a.Steps {
			if s.Verb.Name == Displace {
				out = append(out, s)
			}
		}
	}
	return out
}

// Row returns the row that a reason names; nil: none.
func (p *Policy) Row(why model.Reason) *Rule {
	for _, r := range p.All {
		if r.Table == why.Table && r.Name == why.Rule && (r.Site.Name == why.Site || why.Site == Predicates && r.Site.Name == DevicePredicates) {
			return r
		}
	}
	return nil
}

// ReadsOpen reports whether a row depends on whether the queue is open. It returns false for nil.
func (r *Rule) ReadsOpen() bool {
	return r != nil && slices.ContainsFunc(r.Reads.All, func(read rules.Read) bool { return read.String() == "queue.open" })
}

// RuleCount returns the number of rows.
func (p *Policy) RuleCount() int { return len(p.All) }

// Rule is a compiled row.
type Rule struct {
	Site   *Site
	Table  string
	Name   string
	Reason string
	Tier   int
	// Number is the number of the rule in its policy, from 1. Verdict columns contain it.
	Number int

	When       *eval.Expr // nil: always
	Expression *eval.Expr
	Message    *Message // nil: none
	Scaling
	Veto       bool
	Every      time.Duration // its rest time after an evaluation
	Curable    bool
	Share      bool // a step that lets jobs exceed the share of their queue does not ask the row
	Descending bool
	OnError    string
	Reading
}

// How values of a row of victimCost are combined.
const (
	FoldSum = rules.FoldSum
	ThenMax = rules.ThenMax
)

// Scaling is applied to the value of a row of scores. Fold combines the values of a row of victimCost.
type Scaling struct {
	Weight    float64
	Normalize string
	RoundMode string
	RoundStep float64
	Fold      string
}

// Reading lists the values that the guard and the expression of a row read (Reads), and the dependency that follows from them (Rests).
type Reading struct {
	Reads *rules.Reads
	Rests Dependency
}

// Names returns the rule's table and name; "" for nil.
func (r *Rule) Names() (table, name string) {
	if r == nil {
		return "", ""
	}
	return r.Table, r.Name
}

// reason returns a reason that names the rule, with a text.
func (r *Rule) reason(text string) model.Reason {
	return model.Reason{Site: r.Site.Name, Table: r.Table, Rule: r.Name, Reason: r.Reason, Text: text}
}

// ReasonDenied is the reason of a row of predicates that refuses every node alike, if the row has no reason of its own.
const ReasonDenied = "PolicyDenied"

// Everywhere returns the reason of a row of predicates whose refusal applies to every node, also to nodes that are added later. It returns
// "" if another node could help.
func (r *Rule) Everywhere() string {
	if r.Site.Name != Predicates || r.Rests.node || r.Rests.Cluster || r.Rests.Beyond || r.Rests.Volumes {
		return ""
	}
	return cmp.Or(r.Reason, ReasonDenied)
}

// Filters reports whether the policy refuses each node for which a function of the pod and the node is false. The fields in implied are
// true for each pod of the caller's question; the guard of the row may read them. The result is false for a row with any other guard,
// because such a row may permit later what it refuses now. A joined policy filters if each of its parts does.
func (p *Policy) Filters(function string, implied ...string) bool {
	by := map[string]bool{} // part
	for _, r := range p.Rules(Predicates) {
		if part, _, _ := parts.Of(r.Table); !by[part] && r.filters(function, implied) {
			by[part] = true
		}
	}
	return by[""] && !slices.ContainsFunc(p.parts, func(part string) bool { return !by[part] })
}

func (r *Rule) filters(function string, implied []string) bool {
	name, paths, ok := r.Expression.Call()
	if !ok || name != function || !slices.Equal(paths, []string{"task", "node"}) {
		return false
	}
	if r.When == nil {
		return true
	}
	// A parameter in the guard is true, because a row with a guard that is always false is not compiled.
	paths, ok = r.When.Conjuncts(parts.ServedBy, parts.JudgedBy)
	return ok && !slices.ContainsFunc(paths, func(path string) bool {
		return !strings.HasPrefix(path, "params.") && !slices.Contains(implied, path)
	})
}

// Message is a text with {{CEL}} parts.
type Message struct {
	parts []part
	// OfNode means that the text depends on the node, so each node needs its own text.
	OfNode bool
}

type part struct {
	text string
	expr *eval.Expr
}

// Variable is a compiled variable.
type Variable struct {
	Name  string
	Table string
	On    string
	Slot  int
	Expr  *eval.Expr
	// ByAction means that it reads the action, which changes within a cycle.
	ByAction bool
	// ByTime means that it reads the time.
	ByTime bool
}

// Action is a compiled action: a list of steps.
type Action struct {
	Name  string
	Steps []*Step
}

// Asked returns the expressions of a row.
func (r *Rule) Asked() []*eval.Expr {
	out := []*eval.Expr{r.When, r.Expression}
	if r.Message != nil {
		out = append(out, r.Message.Expressions()...)
	}
	return slices.DeleteFunc(out, func(e *eval.Expr) bool { return e == nil })
}

// Predicates returns the rows of predicates in the order of their evaluation for a node. Rows come first that read only the node object.
// Then come the others, then rows that read which pods are in the node's topology domains, then rows that read volumes. Each group is in
// tier order.
func (p *Policy) Predicates() []*Rule {
	kind := func(r *Rule) int {
		switch d := &r.Rests; {
		case d.Volumes:
			return 3
		case d.Peers:
			return 2
		case !d.Static:
			return 1
		}
		return 0
	}
	out := slices.Clone(p.Rules(Predicates))
	slices.SortStableFunc(out, func(a, b *Rule) int { return kind(a) - kind(b) })
	return out
}
