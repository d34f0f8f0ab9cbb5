package verdict

import (
	"slices"

	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/engine/report"
	"github.com/celsius-scheduler/celsius/rules"
	"github.com/celsius-scheduler/celsius/rules/eval"
)

// Plan contains what the active predicate and score rows read.
type Plan struct {
	predicates, Scores []*Row
	classReads
	epochReads
	// volatile: some row reads other objects through a node's tasks, so that nothing can be cached.
	volatile bool
	// single: every task is a class of its own, because a predicate distinguishes all tasks. Nothing is cached.
	single bool
	// own: some score distinguishes all tasks. It is evaluated for each task again, on the nodes to choose from.
	own    bool
	moving bool // class fields change within a cycle
	// Peers: some row reads the tasks in a node's topology domains. Matched: such a row depends on the terms of other pods. Images: a row
	// depends on which nodes have an image. late: a score reads which nodes are in the group to choose from.
	Peers, Matched, Images, late bool
	// telling: some predicate's message reads more than its row, so that messages of a class cannot be reused.
	telling bool
	// ofVolumes: some predicate reads volumes. holdVolumes: the result for a task stays valid for a while.
	ofVolumes, holdVolumes bool

	sizes sizeRules
}

// sizeRules contains the rules of a policy that determine which nodes pods can share, and which nodes pods may use: see report.Sizes.
type sizeRules struct {
	apart   report.Apart
	permits report.Permits
}

// classReads contains the reads that distinguish classes.
type classReads struct {
	// Class lists the task, job and queue fields that active rows read.
	Class []rules.Read
	// lasting: a task stays in its class while neither the task nor its job changes.
	lasting bool
}

// epochReads contains what rows read that is the same for all classes and nodes.
type epochReads struct {
	// globals are reads of the cluster; nowParts are the parts that change with time.
	globals  []rules.Read
	nowParts []*eval.Expr
	nowMoves bool
	// byCycle: some row reads a value of a node that settles once per cycle.
	byCycle bool
}

// Row is one row and what its value depends on.
type Row struct {
	*policy.Rule
	policy.Dependency
	own bool // the row is evaluated again for each task
	// byClass: the guard reads only fields of the class, so it is evaluated once per class.
	byClass bool
	byEpoch bool // it reads the cluster, or time, or a value of nodes that settles once per cycle
	// Guard and Query are the row's expressions for an evaluation over many nodes.
	Guard, Query Query
}

func planOf(of *policy.Policy) *Plan {
	cs := &Plan{sizes: sizeRules{apart: report.ApartBy(of.Filters), permits: report.PermitsBy(of.Filters)}}
	all := &rules.Reads{}
	for _, r := range of.Predicates() {
		p := cs.plan(r, all)
		cs.predicates, cs.single = append(cs.predicates, p), cs.single || p.own
		cs.volatile = cs.volatile || p.Candidates // the result depends on the group to choose from
		cs.telling = cs.telling || tellsMore(r.Message, r.Reads)
		cs.ofVolumes = cs.ofVolumes || p.Volumes
	}
	cs.holdVolumes = heldByTask(cs.predicates)
	cs.ofDevices(of, all)
	for _, r := range of.Rules(policy.Scores) {
		if r.Weight != 0 {
			p := cs.plan(r, all)
			cs.Scores, cs.own, cs.late = append(cs.Scores, p), cs.own || p.own, cs.late || p.Candidates
		}
	}
	for _, read := range all.All {
		if !policy.OfMembers(read) {
			cs.depend(read)
		}
	}
	cs.lasting = lastingClass(cs.Class)
	return cs
}

// ofDevices records what rows about devices depend on.
func (cs *Plan) ofDevices(of *policy.Policy, all *rules.Reads) {
	for _, r := range of.Rules(policy.DevicePredicates) {
		p := cs.plan(r, all)
		cs.single, cs.volatile = cs.single || p.own || p.Volumes, cs.volatile || p.Candidates || p.Peers
		cs.telling = cs.telling || tellsMore(r.Message, r.Reads)
	}
}

// depend records what columns depend on because of one read of the active rows: the class, or values of the cluster.
func (cs *Plan) depend(read rules.Read) {
	d := policy.DependencyOf(&rules.Reads{All: []rules.Read{read}})
	cs.Class = append(cs.Class, d.Class...)
	cs.Matched, cs.Images, cs.moving = cs.Matched || d.Terms, cs.Images || d.Images, cs.moving || d.Moving
	if d.Cluster && !read.Through {
		cs.globals = append(cs.globals, read)
	}
}

// plan determines what a row depends on, and adds to all what columns depend on because of it.
func (cs *Plan) plan(r *policy.Rule, all *rules.Reads) *Row {
	p := &Row{Rule: r, Dependency: r.Rests, Guard: QueryOf(r.When), Query: QueryOf(r.Expression)}
	p.own, p.byEpoch = p.Identity || p.Volumes && r.Site.Name == policy.Scores, p.Cluster || p.Clock
	if p.own && r.Site.Name == policy.Scores {
		if !p.Peers {
			return p // the row has no column
		}
		p.own, cs.single = false, true
	}
	all.Add(r.Reads)
	p.byClass = r.When != nil && r.When.Reads.Only("task", "job", "queue", "action", "pipeline")
	for _, read := range r.Reads.All {
		if policy.OfNodes(read) {
			cs.computed(p, read, all)
		}
	}
	cs.volatile, cs.Peers = cs.volatile || p.Beyond, cs.Peers || p.Peers
	cs.follow(r.When)
	cs.follow(r.Expression)
	cs.nowMoves = cs.nowMoves || policy.MovesUnseen(r.Reads)
	return p
}

// computed records what an attribute of a node reads in addition to the node, because the node's version does not cover it.
func (cs *Plan) computed(p *Row, read rules.Read, all *rules.Reads) {
	for _, step := range read.Steps {
		m := step.Member
		if m.Reads == nil {
			continue
		}
		if m.Changes == rules.ByCycle {
			cs.byCycle, p.byEpoch = true, true
			continue
		}
		for _, x := range m.Reads.All {
			if x.Root == "cluster" {
				x.Through = false
				all.Add(&rules.Reads{All: []rules.Read{x}})
			}
		}
	}
}

// follow records how an expression changes with time. e may be nil.
func (cs *Plan) follow(e *eval.Expr) {
	if e != nil {
		cs.nowParts = append(cs.nowParts, e.NowParts...)
		cs.nowMoves = cs.nowMoves || e.NowMoves
	}
}

// tellsMore reports whether a message reads more than its row and the node's own values, or anything that changes with time.
func tellsMore(m *policy.Message, of *rules.Reads) bool {
	if m == nil {
		return false
	}
	known := of.Strings()
	for _, e := range m.Expressions() {
		for _, read := range e.Reads.All {
			ofNode := policy.OfNodes(read) && !policy.BeyondNode(read)
			if policy.OfClock(read) || !ofNode && !slices.Contains(known, read.String()) {
				return true
			}
		}
	}
	return false
}

// Estimated cost of a row of a policy per node, in nanoseconds.
const (
	interpretedCost = 300
	byRowCost       = 60
	loopCost        = 300 // of a loop over short lists
	manyUnits       = 100 // in units of CEL; a column of less is as fast as memory, and each further unit takes half a nanosecond
)

// Query is an expression over nodes, and how it can be split.
type Query struct {
	*eval.Expr
	Apart   bool // what it reads of two nodes is separate, and the rest is only read
	PerNode int  // nanoseconds per node; 0: a split is not worthwhile
}

// QueryOf returns the query of an expression; that of nil has no expression.
func QueryOf(e *eval.Expr) Query {
	if e == nil {
		return Query{}
	}
	return Query{e, !e.Reads.Counted && !slices.ContainsFunc(e.Reads.All, policy.IsShared), costOf(e)} // a meter has one owner
}

// costOf returns a rough estimate, because the length of lists is unknown.
func costOf(e *eval.Expr) int {
	const loops = 10 // the factor between CEL's bounds if there is a loop
	switch units := int(min(e.Cost.Min, rules.CostLimit)); {
	case e.Interpreted != "":
		return interpretedCost
	case e.ByRow != "" && e.Cost.Max > loops*(e.Cost.Min+1):
		return loopCost
	case e.ByRow != "":
		return byRowCost + units
	case units >= manyUnits:
		return units / 2
	}
	return 0
}

// TellTasksApart reports whether the result of rows for one task implies nothing for another.
func (cs *Plan) TellTasksApart() bool {
	return cs.single || cs.own || cs.volatile || cs.moving || cs.telling
}
