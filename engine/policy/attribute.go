package policy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"github.com/celsius-scheduler/celsius/rules"
)

// Attribute is a compiled computed field.
type Attribute struct {
	Table, Name, On string
	Settle          string
	slot            int // in the memo of its owner's view, or in the session for the cluster
	Type            *cel.Type
	When, Expr      *rules.Expr
	Function        string
	Args            map[string]*rules.Expr
	Over            string // of sum: task, job or queue
	changes         rules.Changes
	// byAction says that the action is read, which changes within a cycle.
	byAction bool
	// byTime says that the time is read.
	byTime bool
	// reach is how far from the owner lies what is read, of what moves with steps; trees are those along which it does.
	reach reach
	trees []*QuotaTree
	// Tree is the quotaTree that the field is a part of; nil: it is of none.
	Tree *QuotaTree
	part func(at *TreePlaces, i int) ref.Val
	// memberOwn says the same of a sum's members.
	memberOwn bool
	// kept says that a sum's members read nothing but what is theirs, so that its value is kept from cycle to cycle.
	kept bool
	// claims says what the claims of a waterFill rest on.
	claims *claimReads
}

// objectName is the type behind an owner's word.
func objectName(on string) string {
	return map[string]string{"cluster": "Cluster", "queue": "Queue", "job": "Job", "task": "Task", "node": "Node", "namespace": "Namespace"}[on]
}

// attribute compiles one, and makes it visible: to its own table if private, else to the later ones as well.
func (s *tableScope) attribute(a *rules.Attribute) {
	typeName := objectName(a.On)
	if typeName == "" {
		if slices.Contains(s.shape.Owners, a.On) {
			s.report(a.At.Issuef("attributes can be on cluster, namespace, queue, job, task or node", "an attribute cannot be on %s", a.On))
		}
		return
	}
	if a.Function == quotaTreeFunction {
		s.quotaTree(a)
		return
	}
	x := &Attribute{Table: s.entry.name, Name: a.Name, On: a.On, Settle: a.Settle, Function: a.Function}
	roots := []string{a.On}
	if a.On == "cluster" || a.On == "namespace" {
		roots = nil // CEL keeps the word namespace for itself
	}
	if a.When.Value != "" {
		x.When = s.compile(a.When, roots, rules.Bool())
	}
	reads := s.compute(x, a, roots)
	if x.Type == nil {
		s.failed[typeName+"."+a.Name] = true
		return
	}
	s.publish(x, a, a.Description, reads)
}

// publish gives an attribute its place, and lets rows read it; nil: its name is taken.
func (s *tableScope) publish(x *Attribute, a *rules.Attribute, doc string, reads *rules.Reads) *rules.Member {
	if s.clashes(x, a) {
		return nil
	}
	typeName := objectName(x.On)
	x.slot = s.p.slots[typeName]
	s.p.slots[typeName]++
	s.settleReads(x, reads)
	s.p.attributes = append(s.p.attributes, x)
	return s.declare(x, a.Private, doc, typeName, reads)
}

// compute compiles the expression, or the function's arguments, and gives what is read.
func (s *tableScope) compute(x *Attribute, a *rules.Attribute, roots []string) *rules.Reads {
	reads := &rules.Reads{}
	if x.When != nil {
		reads.Add(x.When.Reads)
	}
	switch a.Function {
	case "":
		if x.Expr = s.compile(a.Expression, roots, rules.Anything(), x.When); x.Expr != nil {
			x.Type = x.Expr.Type
			reads.Add(x.Expr.Reads)
		}
	case "sum":
		s.sum(x, a, reads)
	case waterFillFunction:
		s.waterFill(x, a, reads)
	case hdrfFunction:
		s.hdrf(x, a, reads)
	case "typicalTasks":
		s.typicalTasks(x, a, reads)
	}
	return reads
}

func (s *tableScope) sum(x *Attribute, a *rules.Attribute, reads *rules.Reads) {
	over := a.Args["over"]
	if !over.Written() {
		return // reported where it is missing
	}
	x.Over = over.Value
	allowed := map[string][]string{"cluster": {"job", "queue", "task"}, "namespace": {"job", "task"}, "queue": {"job", "task"}, "job": {"task"}}[a.On]
	if !slices.Contains(allowed, x.Over) {
		hint := "a sum is on the cluster, a namespace, a queue or a job"
		if allowed != nil {
			hint = rules.Suggest(x.Over, allowed)
		}
		s.report(over.Issue(0, len(x.Over), fmt.Sprintf("a sum on %s cannot go over %q", a.On, x.Over), hint))
		return
	}
	s.sumArgs(x, a)
	x.memberOwn, x.kept = true, true
	for _, name := range sortedKeys(x.Args) {
		e := x.Args[name]
		if e == nil {
			return
		}
		for _, r := range e.Reads.All {
			x.kept = x.kept && s.p.lasting(r, x.Over)
			x.memberOwn = x.memberOwn && (r.Changes <= rules.ByCycle || s.p.reach(r, x.Over) == within || r.Root == x.Over && ofItsNode(r))
		}
		members(reads, e.Reads, x.Over, a.On)
	}
	if x.Type = x.Args["of"].Type; x.Args["by"] != nil {
		x.Type = cel.MapType(cel.StringType, x.Type)
	}
}

// sumArgs compiles what is asked of each member; an expression with a mistake is nil.
func (s *tableScope) sumArgs(x *Attribute, a *rules.Attribute) {
	x.Args = map[string]*rules.Expr{"of": s.compile(a.Args["of"], []string{x.Over}, summable())}
	for name, want := range map[string]rules.Kind{"when": rules.Bool(), "by": rules.String()} {
		if text := a.Args[name]; text.Value != "" {
			x.Args[name] = s.compile(text, []string{x.Over}, want)
		}
	}
}

func summable() rules.Kind {
	return rules.Kind{Name: "Resources or a number", Accepts: func(t *cel.Type) bool {
		return t.IsExactType(resourcesType()) || t.Kind() == types.IntKind || t.Kind() == types.DoubleKind
	}}
}

// members turns what is read of each member into what is read through its owner.
func members(reads, of *rules.Reads, member, owner string) {
	for _, r := range of.All {
		if r.Root == member {
			list := &rules.Member{Name: member + "s", Origin: memberOrigin(owner), Changes: rules.ByObject}
			r.Root, r.Steps = owner, append([]rules.Step{{Member: list, Each: true}}, r.Steps...)
		}
		reads.Add(&rules.Reads{All: []rules.Read{r}})
	}
}

// typicalTasks compiles the argument. What is counted is the cluster's workload, or its tasks.
func (s *tableScope) typicalTasks(x *Attribute, a *rules.Attribute, reads *rules.Reads) {
	if a.On != "cluster" {
		s.report(a.At.Issuef("write on: cluster", "typicalTasks is on the cluster, not on %s", a.On))
		return
	}
	cover := s.compile(a.Args["cover"], nil, rules.Number())
	if cover == nil {
		return
	}
	x.Args = map[string]*rules.Expr{"cover": cover}
	reads.Add(cover.Reads)
	tasks := rules.Read{Root: "cluster", Steps: []rules.Step{{Member: s.objects["Cluster"].Find("workload")}}, Changes: rules.ByObject}
	reads.Add(&rules.Reads{All: []rules.Read{tasks}})
	node := s.objects["Node"]
	sizes := &rules.Reads{}
	for _, name := range []string{"allocatable", "gpus", "gpuModel"} {
		sizes.All = append(sizes.All, rules.Read{Root: "node", Steps: []rules.Step{{Member: node.Find(name)}}, Changes: rules.ByObject})
	}
	members(reads, sizes, "node", "cluster")
	if x.Settle == "" {
		x.Settle = "cycle"
	}
	x.Type = typicalType()
}

// clashes says whether another attribute, or a field, has the name already.
func (s *tableScope) clashes(x *Attribute, a *rules.Attribute) bool {
	key := x.On + "." + x.Name
	if other, ok := s.owners[key]; ok {
		if other != s.entry.name { // a name that stands twice in one table is reported as such
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

// TwoOwners is the hint of the issue that two tables of one policy compute the same field.
const TwoOwners = "keep one of the two tables"

// sameFields is the fields that a table computes although another one does so already.
type sameFields struct {
	with string
	at   rules.Value // of the first
	keys []string
}

func (s *tableScope) clashing(other string, a *rules.Attribute, key string) {
	i := slices.IndexFunc(s.clashed, func(c *sameFields) bool { return c.with == other })
	if i < 0 {
		i = len(s.clashed)
		s.clashed = append(s.clashed, &sameFields{with: other, at: a.At})
	}
	s.clashed[i].keys = append(s.clashed[i].keys, key)
}

// reportClashes reports, once for each other table, what both compute.
func (s *tableScope) reportClashes() {
	for _, c := range s.clashed {
		s.report(c.at.Issuef(TwoOwners, "both tables %q and %q compute %s", c.with, s.entry.name, strings.Join(c.keys, ", ")))
	}
}

// settleReads says how often the attribute changes: one that settles once a cycle does not move with steps.
func (s *tableScope) settleReads(x *Attribute, reads *rules.Reads) {
	for i := range reads.All {
		r := &reads.All[i]
		if x.Settle == "cycle" || x.Settle == "start" {
			r.Changes = min(r.Changes, rules.ByCycle)
		}
		if r.Changes > rules.ByCycle {
			x.reach = max(x.reach, s.p.reach(*r, x.On))
			x.trees = s.p.treesOf(x.trees, *r)
		}
	}
	x.changes, x.byAction, x.byTime = reads.Changes(), readsAction(reads), readsNow(reads)
}

func readsAction(reads *rules.Reads) bool { return slices.Contains(reads.Roots(), "action") }

// quiet says that a read is not of what an accounting function computes, which may tell of an error without being one.
func (p *Policy) quiet(r rules.Read) bool {
	return !slices.ContainsFunc(r.Steps, func(step rules.Step) bool {
		x := p.computed[step.Member]
		return x != nil && x.Function != ""
	})
}

// treesOf adds the trees that a read goes along.
func (p *Policy) treesOf(trees []*QuotaTree, r rules.Read) []*QuotaTree {
	for _, step := range r.Steps {
		if t := p.trees[step.Member]; t != nil && !t.flat && !slices.Contains(trees, t) {
			trees = append(trees, t)
		}
	}
	return trees
}

func (s *tableScope) declare(x *Attribute, private bool, doc, typeName string, reads *rules.Reads) *rules.Member {
	own := x.On
	m := &rules.Member{Name: x.Name, Type: x.Type, Doc: doc, Changes: x.changes, Cost: costAnew(x.byTime, x.Expr), Reads: reads, Own: own, Get: func(o any) ref.Val { return readAttribute(x, o) }}
	if x.Expr != nil && x.Function == "" {
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

// readAttribute answers a read of a computed field.
func readAttribute(x *Attribute, o any) ref.Val {
	switch v := o.(type) {
	case *queueView:
		return v.w.values.Attribute(x, v)
	case *jobView:
		return v.w.values.Attribute(x, v)
	case *taskView:
		return v.w.values.Attribute(x, v)
	case *nodeView:
		return v.w.values.Attribute(x, v)
	case *clusterView:
		return v.w.values.Attribute(x, v)
	case *namespaceView:
		return v.w.values.Attribute(x, v)
	}
	return types.NewErr("no field %q: the object is null", x.Name)
}
