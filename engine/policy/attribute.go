package policy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/rules"
)

// attribute is a compiled computed field.
type attribute struct {
	table, name, on string
	settle          string
	slot            int // in the memo of its owner's view, or in the session for the cluster
	typ             *cel.Type
	when, expr      *rules.Expr
	function        string
	args            map[string]*rules.Expr
	over            string // of sum: task, job or queue
	changes         rules.Changes
	// byAction says that the action is read, which changes within a cycle.
	byAction bool
	// byTime says that the time is read.
	byTime bool
	// reach is how far from the owner lies what is read, of what moves with steps; trees are those along which it does.
	reach reach
	trees []*quotaTree
	// inTree gives the value for a queue, where a quotaTree computes it.
	inTree func(s *Session, q *model.Queue) ref.Val
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
	x := &attribute{table: s.entry.name, name: a.Name, on: a.On, settle: a.Settle, function: a.Function}
	roots := []string{a.On}
	if a.On == "cluster" || a.On == "namespace" {
		roots = nil // CEL keeps the word namespace for itself
	}
	if a.When.Value != "" {
		x.when = s.compile(a.When, roots, rules.Bool())
	}
	reads := s.compute(x, a, roots)
	if x.typ == nil {
		s.failed[typeName+"."+a.Name] = true
		return
	}
	s.publish(x, a, a.Description, reads)
}

// publish gives an attribute its place, and lets rows read it; nil: its name is taken.
func (s *tableScope) publish(x *attribute, a *rules.Attribute, doc string, reads *rules.Reads) *rules.Member {
	if s.clashes(x, a) {
		return nil
	}
	typeName := objectName(x.on)
	x.slot = s.p.slots[typeName]
	s.p.slots[typeName]++
	s.settleReads(x, reads)
	s.p.attributes = append(s.p.attributes, x)
	return s.declare(x, a.Private, doc, typeName, reads)
}

// compute compiles the expression, or the function's arguments, and gives what is read.
func (s *tableScope) compute(x *attribute, a *rules.Attribute, roots []string) *rules.Reads {
	reads := &rules.Reads{}
	if x.when != nil {
		reads.Add(x.when.Reads)
	}
	switch a.Function {
	case "":
		if x.expr = s.compile(a.Expression, roots, rules.Anything(), x.when); x.expr != nil {
			x.typ = x.expr.Type
			reads.Add(x.expr.Reads)
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

func (s *tableScope) sum(x *attribute, a *rules.Attribute, reads *rules.Reads) {
	over := a.Args["over"]
	if !over.Written() {
		return // reported where it is missing
	}
	x.over = over.Value
	allowed := map[string][]string{"cluster": {"job", "queue", "task"}, "namespace": {"job", "task"}, "queue": {"job", "task"}, "job": {"task"}}[a.On]
	if !slices.Contains(allowed, x.over) {
		hint := "a sum is on the cluster, a namespace, a queue or a job"
		if allowed != nil {
			hint = suggest(x.over, allowed)
		}
		s.report(over.Issue(0, len(x.over), fmt.Sprintf("a sum on %s cannot go over %q", a.On, x.over), hint))
		return
	}
	s.sumArgs(x, a)
	x.memberOwn, x.kept = true, true
	for _, name := range sortedKeys(x.args) {
		e := x.args[name]
		if e == nil {
			return
		}
		for _, r := range e.Reads.All {
			x.kept = x.kept && s.p.lasting(r, x.over)
			x.memberOwn = x.memberOwn && (r.Changes <= rules.ByCycle || s.p.reach(r, x.over) == within || r.Root == x.over && ofItsNode(r))
		}
		members(reads, e.Reads, x.over, a.On)
	}
	if x.typ = x.args["of"].Type; x.args["by"] != nil {
		x.typ = cel.MapType(cel.StringType, x.typ)
	}
}

// sumArgs compiles what is asked of each member; an expression with a mistake is nil.
func (s *tableScope) sumArgs(x *attribute, a *rules.Attribute) {
	x.args = map[string]*rules.Expr{"of": s.compile(a.Args["of"], []string{x.over}, summable())}
	for name, want := range map[string]rules.Kind{"when": rules.Bool(), "by": rules.String()} {
		if text := a.Args[name]; text.Value != "" {
			x.args[name] = s.compile(text, []string{x.over}, want)
		}
	}
}

// ofItsNode says that a read is of what a task's node has from its object: where the task is moves with the task.
func ofItsNode(r rules.Read) bool {
	return r.Root == "task" && len(r.Steps) == 2 && r.Steps[0].Member.Name == "node" && r.Steps[1].Member.Changes <= rules.ByObject
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
			list := &rules.Member{Name: member + "s", Changes: rules.ByObject}
			r.Root, r.Steps = owner, append([]rules.Step{{Member: list, Each: true}}, r.Steps...)
		}
		reads.Add(&rules.Reads{All: []rules.Read{r}})
	}
}

// typicalTasks compiles the argument. What is counted is the cluster's workload, or its tasks.
func (s *tableScope) typicalTasks(x *attribute, a *rules.Attribute, reads *rules.Reads) {
	if a.On != "cluster" {
		s.report(a.At.Issuef("write on: cluster", "typicalTasks is on the cluster, not on %s", a.On))
		return
	}
	cover := s.compile(a.Args["cover"], nil, rules.Number())
	if cover == nil {
		return
	}
	x.args = map[string]*rules.Expr{"cover": cover}
	reads.Add(cover.Reads)
	tasks := rules.Read{Root: "cluster", Steps: []rules.Step{{Member: s.objects["Cluster"].Find("workload")}}, Changes: rules.ByObject}
	reads.Add(&rules.Reads{All: []rules.Read{tasks}})
	node := s.objects["Node"]
	sizes := &rules.Reads{}
	for _, name := range []string{"allocatable", "gpus", "gpuModel"} {
		sizes.All = append(sizes.All, rules.Read{Root: "node", Steps: []rules.Step{{Member: node.Find(name)}}, Changes: rules.ByObject})
	}
	members(reads, sizes, "node", "cluster")
	if x.settle == "" {
		x.settle = "cycle"
	}
	x.typ = typicalType()
}

// clashes says whether another attribute, or a field, has the name already.
func (s *tableScope) clashes(x *attribute, a *rules.Attribute) bool {
	key := x.on + "." + x.name
	if other, ok := s.owners[key]; ok {
		if other != s.entry.name { // a name that stands twice in one table is reported as such
			s.clashing(other, a, key)
		}
		return true
	}
	if m := s.objects[objectName(x.on)].Find(x.name); m != nil {
		s.report(a.At.Issuef("choose another name", "%s.%s is a field already", x.on, x.name))
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
func (s *tableScope) settleReads(x *attribute, reads *rules.Reads) {
	for i := range reads.All {
		r := &reads.All[i]
		if x.settle == "cycle" || x.settle == "start" {
			r.Changes = min(r.Changes, rules.ByCycle)
		}
		if r.Changes > rules.ByCycle {
			x.reach = max(x.reach, s.p.reach(*r, x.on))
			x.trees = s.p.treesOf(x.trees, *r)
		}
	}
	x.changes, x.byAction, x.byTime = reads.Changes(), readsAction(reads), readsNow(reads)
}

func readsAction(reads *rules.Reads) bool { return slices.Contains(reads.Roots(), "action") }

// reach is how far from an object something lies.
type reach uint8

const (
	within    reach = iota // the object itself, and what it is touched with
	alongTree              // the queues above a queue, and what they sum up
	beyondIt
)

// touchedWith says that an object is touched with each of these members of it, so that what they have is its own.
func touchedWith(owner string, m *rules.Member) bool {
	return m.Get == nil && (owner == "queue" && m.Name == "jobs" || (owner == "queue" || owner == "job") && m.Name == "tasks")
}

// reach of a read, seen from an object of its kind.
func (p *Policy) reach(r rules.Read, owner string) reach {
	if r.Root != owner {
		return beyondIt
	}
	far := within
	for _, step := range r.Steps[:max(0, len(r.Steps)-1)] {
		m := step.Member
		switch t := p.trees[m]; {
		case t != nil && t.flat, m.Name == "roles", m.Name == "spec", touchedWith(owner, m):
		case t != nil:
			far = alongTree
		default:
			return beyondIt
		}
	}
	return far
}

// lasting says that a read, seen from an object of its kind, is of what that object is touched with, in whatever cycle: not of what settles
// once a cycle, nor of what moves with other objects.
func (p *Policy) lasting(r rules.Read, owner string) bool {
	if p.reach(r, owner) != within || len(r.Steps) == 0 || r.Steps[len(r.Steps)-1].Member.Related {
		return false
	}
	return !slices.ContainsFunc(r.Steps, func(step rules.Step) bool {
		x := p.computed[step.Member]
		return x != nil && (x.settle == "cycle" || x.settle == "start")
	})
}

// quiet says that a read is not of what an accounting function computes, which may tell of an error without being one.
func (p *Policy) quiet(r rules.Read) bool {
	return !slices.ContainsFunc(r.Steps, func(step rules.Step) bool {
		x := p.computed[step.Member]
		return x != nil && x.function != ""
	})
}

// treesOf adds the trees that a read goes along.
func (p *Policy) treesOf(trees []*quotaTree, r rules.Read) []*quotaTree {
	for _, step := range r.Steps {
		if t := p.trees[step.Member]; t != nil && !t.flat && !slices.Contains(trees, t) {
			trees = append(trees, t)
		}
	}
	return trees
}

func (s *tableScope) declare(x *attribute, private bool, doc, typeName string, reads *rules.Reads) *rules.Member {
	own := x.on
	m := &rules.Member{Name: x.name, Type: x.typ, Doc: doc, Changes: x.changes, Cost: costAnew(x.byTime, x.expr), Reads: reads, Own: own, Get: func(o any) ref.Val { return readAttribute(x, o) }}
	if x.expr != nil && x.function == "" {
		m.Size = x.expr.Size
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
func readAttribute(x *attribute, o any) ref.Val {
	switch v := o.(type) {
	case *queueView:
		return v.s.attribute(x, v, &v.memo[x.slot], v.of.Version)
	case *jobView:
		return v.s.attribute(x, v, &v.memo[x.slot], v.of.Version)
	case *taskView:
		return v.s.attribute(x, v, &v.memo[x.slot], v.of.Job.Version)
	case *nodeView:
		return v.s.attribute(x, v, &v.memo[x.slot], v.s.c.Nodes.Version[v.of.Row])
	case *clusterView:
		return v.s.attribute(x, v, &v.memo[x.slot], v.s.c.Clock)
	case *namespaceView:
		return v.s.attribute(x, v, &v.memo[x.slot], v.s.c.Clock)
	}
	return types.NewErr("no field %q: the object is null", x.name)
}
