package policy

import (
	"slices"

	"github.com/celsius-scheduler/celsius/rules"
	"github.com/celsius-scheduler/celsius/rules/eval"
)

// columns is the plan of what the active predicate and score rows read.
type columns struct {
	predicates, scores []*rowPlan
	// class lists what a class is: the task, job and queue fields that active rows read.
	class []rules.Read
	epochReads
	// volatile says that some row reads other objects through a node's tasks: nothing can be kept.
	volatile bool
	// single says that every task is a class of its own, as a predicate tells it from all others, so that nothing is stored.
	single bool
	// own says that some score does so: it is asked for each task anew, on the nodes that it is chosen from.
	own    bool
	moving bool // class fields move within a cycle
	// peers says that some row reads who is in a node's topology domains, matched that what the row says depends on the
	// terms of other pods, images that it depends on which nodes have an image, late that a score reads which nodes are
	// chosen from.
	peers, matched, images, late bool
	// telling says that some predicate's message tells of more than its row reads: what a class said is not said again.
	telling bool
	// ofVolumes says that some predicate reads volumes, holdVolumes that what they say to a task holds for a while.
	ofVolumes, holdVolumes bool
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

// rowPlan is one row with what its value depends on.
type rowPlan struct {
	*Rule
	dependency
	own bool // it is asked of each task anew
	// byClass says that the guard reads nothing but what a class is made of: it is asked once a class.
	byClass bool
	byEpoch bool // the cluster, or time, or what of nodes is settled once a cycle, is read
	// when and expression are the row's, as they are asked of many nodes.
	when, expression query
}

func planOf(policy *Policy) *columns {
	cs := &columns{}
	all := &rules.Reads{}
	for _, r := range policy.Predicates() {
		p := cs.plan(r, all)
		cs.predicates, cs.single = append(cs.predicates, p), cs.single || p.own
		cs.volatile = cs.volatile || p.candidates // which nodes are chosen from depends on it
		cs.telling = cs.telling || tellsMore(r.Message, r.Reads)
		cs.ofVolumes = cs.ofVolumes || p.volumes
	}
	cs.holdVolumes = heldByTask(cs.predicates)
	for _, r := range policy.Rules(Scores) {
		if r.Weight != 0 {
			p := cs.plan(r, all)
			cs.scores, cs.own, cs.late = append(cs.scores, p), cs.own || p.own, cs.late || p.candidates
		}
	}
	for _, read := range all.All {
		if !ofMembers(read) {
			cs.depend(read)
		}
	}
	return cs
}

// depend notes what one read of the active rows makes columns depend on: the class, or figures of the cluster.
func (cs *columns) depend(read rules.Read) {
	d := dependencyOf(&rules.Reads{All: []rules.Read{read}})
	cs.class = append(cs.class, d.class...)
	cs.matched, cs.images, cs.moving = cs.matched || d.terms, cs.images || d.images, cs.moving || d.moving
	if d.cluster && !read.Through {
		cs.globals = append(cs.globals, read)
	}
}

// plan finds what a row depends on, and adds what columns depend on by it to all.
func (cs *columns) plan(r *Rule, all *rules.Reads) *rowPlan {
	p := &rowPlan{Rule: r, dependency: r.rests, when: queryOf(r.When), expression: queryOf(r.Expression)}
	p.own, p.byEpoch = p.identity || p.volumes && r.Site.Name == Scores, p.cluster || p.clock
	if p.own && r.Site.Name == Scores {
		if !p.peers {
			return p // in no column
		}
		p.own, cs.single = false, true
	}
	all.Add(r.Reads)
	p.byClass = r.When != nil && r.When.Reads.Only("task", "job", "queue", "action", "pipeline")
	for _, read := range r.Reads.All {
		if ofNodes(read) {
			cs.computed(p, read, all)
		}
	}
	cs.volatile, cs.peers = cs.volatile || p.beyond, cs.peers || p.peers
	cs.follow(r.When)
	cs.follow(r.Expression)
	cs.nowMoves = cs.nowMoves || movesUnseen(r.Reads)
	return p
}

// computed notes what an attribute of a node reads besides the node, of which the node's version does not tell.
func (cs *columns) computed(p *rowPlan, read rules.Read, all *rules.Reads) {
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
func (cs *columns) follow(e *eval.Expr) {
	if e != nil {
		cs.nowParts = append(cs.nowParts, e.NowParts...)
		cs.nowMoves = cs.nowMoves || e.NowMoves
	}
}

// tellsMore says that a message reads more than its row does, the node's own figures, and nothing that is new each moment.
func tellsMore(m *Message, of *rules.Reads) bool {
	if m == nil {
		return false
	}
	known := of.Strings()
	for _, p := range m.parts {
		if p.expr == nil {
			continue
		}
		for _, read := range p.expr.Reads.All {
			ofNode := read.Root == "node" && !beyondNode(read)
			if ofClock(read) || !ofNode && !slices.Contains(known, read.String()) {
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

// query is an expression about nodes, and how it can be spread.
type query struct {
	*eval.Expr
	apart bool // what it reads of two nodes is theirs alone, and the rest is but read
	cost  int  // a node, in nanoseconds; 0: it is not worth it
}

// queryOf gives the query of an expression; that of nil has none.
func queryOf(e *eval.Expr) query {
	if e == nil {
		return query{}
	}
	return query{e, !e.Reads.Counted && !slices.ContainsFunc(e.Reads.All, isShared), costOf(e)} // a meter has one owner
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
