package policy

import (
	"slices"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"github.com/celsius-scheduler/celsius/engine/language"
	"github.com/celsius-scheduler/celsius/rules"
	"github.com/celsius-scheduler/celsius/rules/eval"
	"github.com/celsius-scheduler/celsius/rules/source"
)

// Attribute is a compiled computed field.
type Attribute struct {
	Table, Name, On string
	Settle          string
	Slot            int // the index in the memo of its owner's view; for the cluster, in the session
	Type            *cel.Type
	When, Expr      *eval.Expr
	Function        string
	Args            map[string]*eval.Expr
	Over            string // what a sum adds up over: task, job, queue or node
	Pace
	// Account is the compiled accounting function of the attribute, which may have other fields too; nil: the attribute is an expression.
	Account *Account
	// Tree is the quotaTree that the field belongs to; nil: none.
	Tree *QuotaTree
	part func(at *TreePlaces, i int) ref.Val
	// Private states that only rows of its own table may read it.
	Private bool
}

// Pace describes when the value of a computed field may change, depending on what it reads.
type Pace struct {
	Changes rules.Changes
	// ByAction means that it reads the action, which changes within a cycle.
	ByAction bool
	// ByTime means that it reads the time.
	ByTime bool
	// Reach is how far from the owner the inputs lie that change with steps. Trees are the quotaTrees along which they lie.
	Reach Reach
	Trees []*QuotaTree
}

// objectName returns the type of an owner.
func objectName(on string) string {
	return map[string]string{
		"cluster": "Cluster", "queue": "Queue", "job": "Job", "task": "Task", "node": "Node", "namespace": "Namespace",
	}[on]
}

// attribute compiles an attribute and makes it visible: a private one to its own table, any other also to later tables.
func (s *TableScope) attribute(a *rules.Attribute) {
	typeName := objectName(a.On)
	if typeName == "" {
		if slices.Contains(s.shape.Owners, a.On) {
			s.report(a.At.Issuef("attributes can be on cluster, namespace, queue, job, task or node", "an attribute cannot be on %s", a.On))
		}
		return
	}
	if fn := s.accounting(a.Function); fn != nil {
		s.account(fn, a)
		return
	}
	x, reads := s.field(a, a.Name), &rules.Reads{}
	when, ok := s.guardOf(a)
	if x.When = when; when != nil {
		reads.Add(when.Reads)
	}
	if x.Expr = s.compile(a.Expression, rootsOf(a), rules.Anything(), when); x.Expr == nil || !ok {
		s.failed[typeName+"."+a.Name] = true
		return
	}
	x.Type = x.Expr.Type
	reads.Add(x.Expr.Reads)
	s.publish(x, a, a.Description, reads)
}

// rootsOf returns the roots for its owner that the expressions of an attribute see.
func rootsOf(a *rules.Attribute) []string {
	if a.On == "cluster" || a.On == "namespace" {
		return nil // CEL reserves the word namespace
	}
	return []string{a.On}
}

// guardOf compiles an attribute's guard; nil: it has none; false: there was a mistake.
func (s *TableScope) guardOf(a *rules.Attribute) (when *eval.Expr, ok bool) {
	if a.When.Value == "" {
		return nil, true
	}
	when = s.compile(a.When, rootsOf(a), rules.Bool())
	return when, when != nil
}

// field returns a computed field of an attribute, with the attribute's owner.
func (s *TableScope) field(a *rules.Attribute, name string) *Attribute {
	return &Attribute{Table: s.entry.name, Name: name, On: a.On, Settle: a.Settle, Function: a.Function, Private: a.Private}
}

// publish assigns a slot to an attribute and makes it readable for rows; nil: its name is already used.
func (s *TableScope) publish(x *Attribute, a *rules.Attribute, doc string, reads *rules.Reads) *rules.Member {
	if s.clashes(x, a) {
		return nil
	}
	typeName := objectName(x.On)
	memos := s.p.Layout.MemosOf(typeName)
	x.Slot = *memos
	*memos++
	s.settleReads(x, reads)
	s.p.attributes = append(s.p.attributes, x)
	return s.declare(x, a.Private, doc, typeName, reads)
}

// clashes reports whether another attribute or a field already has the name.
func (s *TableScope) clashes(x *Attribute, a *rules.Attribute) bool {
	key := x.On + "." + x.Name
	if other, ok := s.owners[key]; ok {
		if other != s.entry.name { // a name that occurs twice in one table is reported elsewhere
			s.clashing(other, a, key)
		}
		return true
	}
	if m := s.objects[objectName(x.On)].Find(x.Name); m != nil {
		s.report(a.At.Issuef("choose another name", "%s.%s is a field already", x.On, x.Name))
		return true
	}
	if !a.Private {
		s.owners[key] = s.entry.name
	}
	return false
}

// TwoOwners is the hint for two tables of one policy that compute the same field.
const TwoOwners = "keep one of the two tables"

// sameFields contains the fields of a table that another table already computes.
type sameFields struct {
	with string
	at   source.Value // the place of the first field
	keys []string
}

func (s *TableScope) clashing(other string, a *rules.Attribute, key string) {
	i := slices.IndexFunc(s.clashed, func(c *sameFields) bool { return c.with == other })
	if i < 0 {
		i = len(s.clashed)
		s.clashed = append(s.clashed, &sameFields{with: other, at: a.At})
	}
	s.clashed[i].keys = append(s.clashed[i].keys, key)
}

// reportClashes reports the fields that two tables compute, once for each other table.
func (s *TableScope) reportClashes() {
	for _, c := range s.clashed {
		s.report(c.at.Issuef(TwoOwners, "both tables %q and %q compute %s", c.with, s.entry.name, strings.Join(c.keys, ", ")))
	}
}

// settleReads sets how often the attribute changes. An attribute that settles once a cycle does not change with steps.
func (s *TableScope) settleReads(x *Attribute, reads *rules.Reads) {
	for i := range reads.All {
		r := &reads.All[i]
		if x.Settle == "cycle" || x.Settle == "start" {
			r.Changes = min(r.Changes, rules.ByCycle)
		}
		if r.Changes > rules.ByCycle {
			x.Reach = max(x.Reach, s.p.Reach(*r, x.On))
			x.Trees = s.p.TreesOf(x.Trees, *r)
		}
	}
	x.Changes, x.ByAction, x.ByTime = reads.Changes(), readsAction(reads), ReadsNow(reads)
}

func readsAction(reads *rules.Reads) bool { return slices.Contains(reads.Roots(), "action") }

// quiet reports whether a read is not a value of an accounting function. Such a value may report an error without being one.
func (p *Policy) quiet(r rules.Read) bool {
	return !slices.ContainsFunc(r.Steps, func(step rules.Step) bool {
		x := p.computed[step.Member]
		return x != nil && x.Account != nil
	})
}

// TreesOf adds the quotaTrees that a read follows.
func (p *Policy) TreesOf(trees []*QuotaTree, r rules.Read) []*QuotaTree {
	for _, step := range r.Steps {
		if t := p.Trees[step.Member]; t != nil && !t.Flat && !slices.Contains(trees, t) {
			trees = append(trees, t)
		}
	}
	return trees
}

func (s *TableScope) declare(x *Attribute, private bool, doc, typeName string, reads *rules.Reads) *rules.Member {
	own := x.On
	m := &rules.Member{
		Name: x.Name, Type: x.Type, Doc: doc, Changes: x.Changes, Cost: costAnew(x.ByTime, x.Expr), Reads: reads, Own: own,
		Tells: x.Account != nil && x.Account.Timed && (x.When == nil || !ReadsNow(x.When.Reads)),
		Get:   func(o any) ref.Val { return ReadAttribute(x, o) },
	}
	if x.Expr != nil {
		m.Size = x.Expr.Size
	}
	s.p.computed[m] = x
	extend := func(objects map[string]*rules.Object) {
		dup := *objects[typeName]
		dup.Members = append(slices.Clone(dup.Members), m)
		objects[typeName] = &dup
	}
	extend(s.objects)
	if !private {
		extend(s.compiler.objects)
	}
	clear(s.scopes)
	return m
}

// ReadAttribute returns the value of a computed field.
func ReadAttribute(x *Attribute, o any) ref.Val {
	switch v := o.(type) {
	case *language.QueueView:
		return v.World.Values.(Values).Attribute(x, v)
	case *language.JobView:
		return v.World.Values.(Values).Attribute(x, v)
	case *language.TaskView:
		return v.World.Values.(Values).Attribute(x, v)
	case *language.NodeView:
		return v.World.Values.(Values).Attribute(x, v)
	case *language.ClusterView:
		return v.World.Values.(Values).Attribute(x, v)
	case *language.NamespaceView:
		return v.World.Values.(Values).Attribute(x, v)
	}
	return types.NewErr("no field %q: the object is null", x.Name)
}
