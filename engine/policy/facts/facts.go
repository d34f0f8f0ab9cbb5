// Package facts describes what is known about each row of a policy before it is evaluated. This is its type, its cost, its reads, and how
// long its value is valid.
package facts

import (
	"math"
	"slices"
	"strings"

	"github.com/celsius-scheduler/celsius/engine/language"
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/rules"
	"github.com/celsius-scheduler/celsius/rules/eval"
)

// Fact contains what the compiler knows about one row.
type Fact struct {
	Site, Table, Name string
	Type              string
	// Cost is CEL's static estimate of the maximum cost of one evaluation. Bounded is false if there is no estimate.
	Cost    uint64
	Bounded bool
	// Metered means that an evaluation has a budget, because the estimate is not small.
	Metered bool
	Reads   []string
	// Cache describes how long a value is valid.
	Cache string
	// Interpreted is the reason why cel-go evaluates the row or a part of it; "": it is compiled.
	Interpreted string
	// Columns means that the row is computed for many nodes at once. ByRow is its first part that is nevertheless computed node by node; "":
	// none.
	Columns bool
	ByRow   string
}

// Compiled describes how the row is evaluated: by column for many nodes at once, compiled, or interpreted, and why.
func (f Fact) Compiled() string {
	switch {
	case f.Interpreted != "":
		return "interpreted: " + f.Interpreted
	case f.Columns && f.ByRow == "":
		return "columns"
	case f.Columns:
		return "compiled, node by node: " + f.ByRow
	}
	return "compiled"
}

// Of returns the facts of every row and attribute of a policy, in the order of the sites.
func Of(p *policy.Policy) []Fact {
	var out []Fact
	for _, x := range p.Attributes() {
		out = append(out, ofAttribute(x))
	}
	for _, site := range policy.Sites() {
		for _, r := range p.Rules(site.Name) {
			out = append(out, ofRule(r))
		}
	}
	return out
}

func ofRule(r *policy.Rule) Fact {
	cost := r.Expression.Cost.Max
	if r.When != nil {
		cost = saturate(cost, r.When.Cost.Max)
	}
	return Fact{
		Site: r.Site.Name, Table: r.Table, Name: r.Name, Type: r.Expression.Type.String(), Cost: cost, Bounded: cost < math.MaxUint64,
		Metered: metered(r.Asked()...),
		Reads:   plainReads(r.Reads), Cache: heldFor(r), Interpreted: interpreted(r.When, r.Expression),
		Columns: r.Site.Name == policy.Predicates || r.Site.Name == policy.Scores, ByRow: byRow(r.When, r.Expression),
	}
}

// byRow returns the first part of several expressions without a column form.
func byRow(list ...*eval.Expr) string {
	for _, e := range list {
		if e != nil && e.ByRow != "" {
			return e.ByRow
		}
	}
	return ""
}

// interpreted returns the first reason in several expressions why cel-go evaluates them.
func interpreted(list ...*eval.Expr) string {
	for _, e := range list {
		if e != nil && e.Interpreted != "" {
			return e.Interpreted
		}
	}
	return ""
}

// metered reports whether any of several expressions has a budget.
func metered(list ...*eval.Expr) bool {
	return slices.ContainsFunc(list, func(e *eval.Expr) bool { return e != nil && e.Metered })
}

func ofAttribute(x *policy.Attribute) Fact {
	f := Fact{
		Site: "attributes", Table: x.Table, Name: x.On + "." + x.Name, Type: x.Type.String(), Bounded: true,
		Cache: "until what it reads changes",
	}
	reads := &rules.Reads{}
	all := append([]*eval.Expr{x.When, x.Expr}, policy.ArgumentsOf(x.Args)...)
	f.Interpreted, f.Metered = interpreted(all...), metered(all...)
	for _, e := range all {
		if e != nil {
			f.Cost = saturate(f.Cost, e.Cost.Max)
			reads.Add(e.Reads)
		}
	}
	f.Reads = plainReads(reads)
	switch {
	case x.Settle == "cycle":
		f.Cache = "computed once a cycle"
	case x.Settle == "start":
		f.Cache = "computed once a run"
	case x.Account != nil && x.Account.Function.Held != "":
		f.Cache = x.Account.Function.Held
	}
	return f
}

func saturate(a, b uint64) uint64 {
	if a > math.MaxUint64-b {
		return math.MaxUint64
	}
	return a + b
}

// plainReads returns the reads without those that only occur inside computed fields.
func plainReads(reads *rules.Reads) []string {
	var out []string
	for _, r := range reads.All {
		if !r.Through {
			out = append(out, r.String())
		}
	}
	return out
}

// heldFor is cacheable, except for rows that are evaluated for each task with volumes separately.
func heldFor(r *policy.Rule) string {
	if r.Site.Name == policy.Predicates && r.Rests.Volumes {
		return "never for a task with volumes; else per class and node, until the node changes"
	}
	return cacheable(r)
}

// cacheable describes how long a row's value is valid, based on its reads (docs/rule-language.md, What a row reads).
func cacheable(r *policy.Rule) string {
	m := movesOf(r.Reads)
	parts := []string{}
	switch {
	case r.Site.Name == policy.Scores && r.Rests.Identity:
		return "never: it reads what tells every task from every other"
	case m.beyondNode || m.cluster > rules.ByCycle:
		return "never: it reads what any step changes"
	case m.nodes:
		parts = append(parts, "per class and node, until "+m.ofNode())
	case r.Site.Name == policy.Predicates || r.Site.Name == policy.Scores || r.Site.Name == policy.TaskFeasible:
		parts = append(parts, "per class")
	case len(r.Reads.All) == 0:
		parts = append(parts, "for ever")
	default:
		parts = append(parts, "per "+strings.Join(owners(r.Reads), ", ")+", until what it reads changes")
	}
	if m.nodes && m.other > rules.ByCycle {
		parts = append(parts, "a class holds for a moment only, as it reads what moves within a cycle")
	}
	if time := timeUnit(r); time != "" {
		parts = append(parts, time)
	}
	return strings.Join(parts, "; ")
}

// readMoves contains how often the reads of a row change, by their place.
type readMoves struct {
	nodes, beyondNode    bool
	node, cluster, other rules.Changes
	around               string // what it reads in addition to the node itself, and classes track
}

func movesOf(reads *rules.Reads) readMoves {
	var m readMoves
	for _, read := range reads.All {
		switch read.Root {
		case "node", "gpu":
			m.nodes = true
			if m.around = around(m.around, read); around("", read) == "" {
				m.node = max(m.node, read.Changes)
			}
			m.beyondNode = m.beyondNode || policy.BeyondNode(read)
		case "cluster":
			m.cluster = max(m.cluster, read.Changes)
		case "now":
		default:
			m.other = max(m.other, read.Changes)
		}
	}
	return m
}

// ofNode describes until when a value for a node is valid.
func (m *readMoves) ofNode() string {
	switch dynamic := m.node > rules.ByObject; {
	case dynamic && m.around != "":
		return "the node, or " + m.around + ", changes"
	case dynamic:
		return "the node changes in any way"
	case m.around != "":
		return "the node's object, or " + m.around + ", changes"
	}
	return "the node's object changes"
}

// around describes the widest read of a row outside of the node itself.
func around(known string, read rules.Read) string {
	const images, peers, group = "how many nodes have an image", "who is in its topology domains",
		"who is in its topology domains and which nodes are chosen from"
	switch {
	case policy.AnyOf(read, language.FromCandidates) || known == group:
		return group
	case policy.AnyOf(read, language.FromPeers) || known == peers:
		return peers
	case policy.AnyOf(read, language.FromImageNodes):
		return images
	}
	return known
}

func owners(reads *rules.Reads) []string {
	var out []string
	for _, root := range reads.Roots() {
		if root != "now" {
			out = append(out, root)
		}
	}
	if out == nil {
		out = []string{"cycle"}
	}
	return out
}

// timeUnit describes how a row changes with time; "": it does not.
func timeUnit(r *policy.Rule) string {
	exprs := slices.DeleteFunc([]*eval.Expr{r.When, r.Expression}, func(e *eval.Expr) bool { return e == nil })
	var parts []string
	for _, e := range exprs {
		if e.NowMoves {
			return "once a cycle, as it mixes now with other things"
		}
		for _, p := range e.NowParts {
			if p.Part == "now" {
				return "once a cycle, as it mixes now with other things"
			}
			parts = append(parts, p.Part)
		}
	}
	if parts == nil {
		return ""
	}
	return "until " + strings.Join(parts, " or ") + " changes"
}
