package verdict

import (
	"slices"

	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/engine/report"
	"github.com/celsius-scheduler/celsius/rules"
	"github.com/celsius-scheduler/celsius/rules/eval"
)

// Plan is the plan of what the active predicate and score rows read.
type Plan struct {
	predicates, Scores []*Row
	classReads
	epochReads
	// volatile says that some row reads other objects through a node's tasks: nothing can be kept.
	volatile bool
	// single says that every task is a class of its own, as a predicate tells it from all others, so that nothing is stored.
	single bool
	// own says that some score does so: it is asked for each task anew, on the nodes that it is chosen from.
	own    bool
	moving bool // class fields move within a cycle
	// Peers says that some row reads who is in a node's topology domains, matched that what the row says depends on the
	// terms of other pods, images that it depends on which nodes have an image, late that a score reads which nodes are
	// chosen from.
	Peers, Matched, Images, late bool
	// telling says that some predicate's message tells of more than its row reads: what a class said is not said again.
	telling bool
	// ofVolumes says that some predicate reads volumes, holdVolumes that what they say to a task holds for a while.
	ofVolumes, holdVolumes bool

	sizes sizeRules
}

// sizeRules are the rules of a policy that tell which nodes pods can share, and which are permitted to them: see report.Sizes.
type sizeRules struct {
	apart   report.Apart
	permits report.Permits
}

// classReads are what tells classes apart.
type classReads struct {
	// Class lists what a class is: the task, job and queue fields that active rows read.
	Class []rules.Read
	// lasting says that a task stays in its class while neither it nor its job changes.
	lasting bool
}

// epochReads are what the rows read that is the same for all classes and nodes.
type epochReads struct {
	// globals are reads of the cluster; nowParts are the parts that move with time.
	globals  []rules.Read
	nowParts []*eval.Expr
	nowMoves bool
	// byCycle says that some row reads of a node what is settled once a cycle.
	byCycle bool
}

// Row is one row with what its value depends on.
type Row struct {
	*policy.Rule
	policy.Dependency
	own bool // it is asked of each task anew
	// byClass says that the guard reads nothing but what a class is made of: it is asked once a class.
	byClass bool
	byEpoch bool // the cluster, or time, or what of nodes is settled once a cycle, is read
	// Guard and expression are the row's, as they are asked of many nodes.
	Guard, Query Query
}

func planOf(of *policy.Policy) *Plan {
	cs := &Plan{sizes: sizeRules{apart: report.ApartBy(of.Filters), permits: report.PermitsBy(of.Filters)}}
	all := &rules.Reads{}
	for _, r := range of.Predicates() {
		p := cs.plan(r, all)
		cs.predicates, cs.single = append(cs.predicates, p), cs.single || p.own
		cs.volatile = cs.volatile || p.Candidates // which nodes are chosen from depends on it
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

// ofDevices notes what rows about devices depend on.
func (cs *Plan) ofDevices(of *policy.Policy, all *rules.Reads) {
	for _, r := range of.Rules(policy.DevicePredicates) {
		p := cs.plan(r, all)
		cs.single, cs.volatile = cs.single || p.own || p.Volumes, cs.volatile || p.Candidates || p.Peers
		cs.telling = cs.telling || tellsMore(r.Message, r.Reads)
	}
}

// depend notes what one read of the active rows makes columns depend on: the class, or figures of the cluster.
func (cs *Plan) depend(read rules.Read) {
	d := policy.DependencyOf(&rules.Reads{All: []rules.Read{read}})
	cs.Class = append(cs.Class, d.Class...)
	cs.Matched, cs.Images, cs.moving = cs.Matched || d.Terms, cs.Images || d.Images, cs.moving || d.Moving
	if d.Cluster && !read.Through {
		cs.globals = append(cs.globals, read)
	}
}

// plan finds what a row depends on, and adds what columns depend on by it to all.
func (cs *Plan) plan(r *policy.Rule, all *rules.Reads) *Row {
	p := &Row{Rule: r, Dependency: r.Rests, Guard: QueryOf(r.When), Query: QueryOf(r.Expression)}
	p.own, p.byEpoch = p.Identity || p.Volumes && r.Site.Name == policy.Scores, p.Cluster || p.Clock
	if p.own && r.Site.Name == policy.Scores {
		if !p.Peers {
			return p // in no column
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

// computed notes what an attribute of a node reads besides the node, of which the node's version does not tell.
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

// follow notes how an expression moves with time; nil does not.
func (cs *Plan) follow(e *eval.Expr) {
	if e != nil {
		cs.nowParts = append(cs.nowParts, e.NowParts...)
		cs.nowMoves = cs.nowMoves || e.NowMoves
	}
}

// tellsMore says that a message reads more than its row does, the node's own figures, and nothing that is new each moment.
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

// What a row of a policy costs a node, in nanoseconds.
const (
	interpretedCost = 300
	byRowCost       = 60
	loopCost        = 300 // of one whose lists are short
	manyUnits       = 100 // of CEL's; what has less by column is as fast as memory, and what has more takes half a nanosecond for each
)

// Query is an expression about nodes, and how it can be spread.
type Query struct {
	*eval.Expr
	Apart   bool // what it reads of two nodes is theirs alone, and the rest is but read
	PerNode int  // a node, in nanoseconds; 0: it is not worth it
}

// QueryOf gives the query of an expression; that of nil has none.
func QueryOf(e *eval.Expr) Query {
	if e == nil {
		return Query{}
	}
	return Query{e, !e.Reads.Counted && !slices.ContainsFunc(e.Reads.All, policy.IsShared), costOf(e)} // a meter has one owner
}

// costOf is a rough estimate: of how long lists are nothing is known.
func costOf(e *eval.Expr) int {
	const loops = 10 // CEL's bounds are that far apart where there is a loop
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

// TellTasksApart says that what rows say of one task says nothing of another.
func (cs *Plan) TellTasksApart() bool {
	return cs.single || cs.own || cs.volatile || cs.moving || cs.telling
}
