package policy

import (
	"cmp"
	"math"
	"slices"

	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/rules"
)

// What stands in a verdict column beside 0 (fit) and the numbers of rules.
const (
	notOffered = -1 // no node in this row, or not ready
	noDevices  = -2
)

// Fit says how a task's request meets a node.
type fit uint8

const (
	noFit     fit = iota
	fitsNow       // within idle
	fitsLater     // within what will be idle when all that is releasing is gone
)

// columns is the plan of what the active predicate and score rows read, and the classes in use.
type columns struct {
	predicates, scores []*rowPlan
	// class lists what a class is: the task, job and queue fields that active rows read.
	class []rules.Read
	// globals are reads of the cluster; nowParts are the parts that move with time.
	globals  []rules.Read
	nowParts []*rules.Expr
	nowMoves bool
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
	classes map[string]*Class
	scratch *Class
	// ofVolumes says that some predicate reads volumes; ofTask is a class as the last task with volumes saw it.
	ofVolumes bool
	// holdVolumes says that what they say to a task holds for a while.
	holdVolumes bool
	ofTask      Class
}

// rowPlan is one row with what its value depends on.
type rowPlan struct {
	*Rule
	static bool // of the node, only its object is read
	own    bool // tells every task from every other
	// byClass says that the guard reads nothing but what a class is made of: it is asked once a class.
	byClass bool
	volumes bool // reads the task's volumes: asked of tasks that have any each for itself
	peers   bool // who is in the node's topology domains is read
	late    bool // so is which nodes are chosen from
}

func (cs *columns) init(s *Session) {
	cs.classes = map[string]*Class{}
	all := &rules.Reads{}
	for _, r := range s.p.rules[Predicates] {
		p := cs.plan(r, all)
		cs.predicates, cs.single = append(cs.predicates, p), cs.single || p.own
		cs.volatile = cs.volatile || p.late // which nodes are chosen from depends on it
		cs.telling = cs.telling || !r.Message.within(r.Reads)
		cs.ofVolumes = cs.ofVolumes || readsVolumes(r.Reads)
	}
	cs.holdVolumes = heldByTask(cs.predicates)
	for _, r := range s.p.rules[Scores] {
		if r.Weight != 0 {
			p := cs.plan(r, all)
			cs.scores, cs.own, cs.late = append(cs.scores, p), cs.own || p.own, cs.late || p.late
		}
	}
	for _, read := range all.All {
		if !ofMembers(read) {
			cs.depend(read)
		}
	}
}

// depend notes what one read of the active rows makes columns depend on: the class, or figures of the cluster.
func (cs *columns) depend(read rules.Read) {
	switch read.Root {
	case "task", "job", "queue":
		if !read.Through && !ofVolumes(read) {
			cs.class = append(cs.class, read)
			cs.matched = cs.matched || reaches(read, "matchedBy") || reaches(read, "hasPeerTerms")
			cs.images = cs.images || reaches(read, "images") || reaches(read, "hasImages")
			cs.moving = cs.moving || read.Changes > rules.ByCycle
		}
	case "action", "pipeline":
		cs.class = append(cs.class, read)
	case "cluster":
		if !read.Through {
			cs.globals = append(cs.globals, read)
		}
	}
}

// identifies says that a read tells every task from every other.
func identifies(read rules.Read) bool {
	return read.Root == "task" && len(read.Steps) == 1 && (read.Steps[0].Member.Name == "name" || read.Steps[0].Member.Name == "uid")
}

// plan finds what a row depends on, and adds what columns depend on by it to all.
func (cs *columns) plan(r *Rule, all *rules.Reads) *rowPlan {
	p := &rowPlan{Rule: r, static: true, own: slices.ContainsFunc(r.Reads.All, identifies), volumes: readsVolumes(r.Reads)}
	p.own = p.own || p.volumes && r.Site.Name == Scores
	if p.own && r.Site.Name == Scores {
		if !slices.ContainsFunc(r.Reads.All, reachesAround) {
			return p // in no column
		}
		p.own, cs.single = false, true
	}
	all.Add(r.Reads)
	p.byClass = r.When != nil && r.When.Reads.Only("task", "job", "queue", "action", "pipeline")
	for _, read := range r.Reads.All {
		if ofNodes(read) {
			p.static = p.static && read.Changes <= rules.ByObject
			p.peers, p.late = p.peers || reachesAround(read), p.late || reaches(read, "group")
			cs.volatile = cs.volatile || beyond(read)
		}
	}
	cs.peers = cs.peers || p.peers
	cs.follow(r.When)
	cs.follow(r.Expression)
	return p
}

// follow notes how an expression moves with time; nil does not.
func (cs *columns) follow(e *rules.Expr) {
	if e != nil {
		cs.nowParts = append(cs.nowParts, e.NowParts...)
		cs.nowMoves = cs.nowMoves || e.NowMoves
	}
}

// ofNodes says that a read is of the node.
func ofNodes(read rules.Read) bool { return read.Root == "node" || read.Root == "gpu" }

// reaches says that a read ends at a member of that name.
func reaches(r rules.Read, member string) bool {
	return len(r.Steps) > 0 && r.Steps[len(r.Steps)-1].Member.Name == member
}

// reachesAround says that a read goes to what lies around a node.
func reachesAround(r rules.Read) bool {
	return reaches(r, "peers") || reaches(r, "imageNodes") || reaches(r, "group")
}

// ofMembers says that a read is what an accounting function reads of its members: no path of a row leads there, and
// the attribute that the function computes is read as well.
func ofMembers(r rules.Read) bool {
	return slices.ContainsFunc(r.Steps, func(step rules.Step) bool { return step.Member.Get == nil })
}

// beyond says that a read goes through a node's tasks to what their jobs, queues or nodes have and may change:
// the node itself does not tell of that.
func beyond(r rules.Read) bool {
	for i, step := range r.Steps {
		if n := step.Member.Name; n == "job" || n == "queue" || n == "node" {
			last := r.Steps[len(r.Steps)-1].Member
			return i == len(r.Steps)-1 || last.Changes > rules.Static
		}
	}
	return false
}

func (cs *columns) begin() {
	for key, c := range cs.classes {
		if c.used+2 < c.s.cycle {
			delete(cs.classes, key)
		}
	}
}

// within says that a message reads no more than its row does, the node's own figures, and nothing that is new each moment.
func (m *message) within(of *rules.Reads) bool {
	if m == nil {
		return true
	}
	known := of.Strings()
	for _, p := range m.parts {
		if p.expr == nil {
			continue
		}
		for _, read := range p.expr.Reads.All {
			ofNode := read.Root == "node" && !beyond(read)
			if read.Root == "now" || !ofNode && !slices.Contains(known, read.String()) {
				return false
			}
		}
	}
	return true
}

// Class is the tasks that agree on everything that the active rows read, with its verdict columns,
// one entry a row of the node table.
type Class struct {
	s    *Session
	task *model.Task
	used uint64 // cycle

	cursor  uint64
	epoch   string
	near    nearby
	contest contest
	verdict []int16 // 0 is fit, else the rule that rejected, or notOffered, noDevices
	fits    []fit
	statics []int16 // verdict of the static rows
	plain   []int16 // of all rows that do not read who is in the node's topology domains
	object  []uint64
	version []uint64
	scored  []bool      // static scores are computed
	guards  []guard     // of the predicates, then of the scores, where they are asked once a class
	raw     [][]float64 // by score row: NaN where the row has no opinion
	base    []float64   // sum of the rows without normalisation
	uniform []bool      // by score row: every value so far is the same
	first   []float64   // that value
	valued  []bool      // by score row: there was a value
	now     int         // rows that fit now
	later   int

	rankings   []ranking // reused
	touched    []int32   // reused
	rejected   []model.NodeCount
	rejectedAt uint64 // of the log, plus 1
}

// Class gives the class of a task, its columns brought up to date, as the task sees it. It is valid until the next call.
func (s *Session) Class(t *model.Task) *Class {
	c := s.class(t)
	if t.HasVolumes && s.columns.ofVolumes {
		return s.withVolumes(c, t)
	}
	return c
}

func (s *Session) class(t *model.Task) *Class {
	cs := &s.columns
	if cs.single || s.NoCache {
		if cs.scratch == nil || s.NoCache {
			cs.scratch = &Class{s: s}
		}
		cs.scratch.task, cs.scratch.used = t, s.cycle
		cs.scratch.refreshAll()
		return cs.scratch
	}
	key := s.classKey(t)
	c := cs.classes[key]
	if c == nil {
		c = &Class{s: s, task: t}
		cs.classes[key] = c
	}
	c.task, c.used = t, s.cycle
	c.catchUp()
	return c
}

func (c *Class) catchUp() {
	n := &c.s.c.Nodes
	epoch := c.s.epoch()
	entries, ok := n.Log.Since(c.cursor)
	if !ok || epoch != c.epoch || len(c.verdict) != len(n.Rows) || c.s.columns.volatile || c.strangers() {
		c.epoch = epoch
		c.refreshAll()
		return
	}
	c.cursor = n.Log.Next()
	c.touched = c.touched[:0]
	for _, row := range entries {
		if c.version[row] != n.Version[row] {
			c.version[row] = n.Version[row]
			c.touched = append(c.touched, row)
		}
	}
	slices.SortFunc(c.touched, func(a, b int32) int { return cmp.Compare(n.Order[a], n.Order[b]) })
	for _, row := range c.touched {
		c.refresh(row)
	}
	c.catchUpPeers()
	c.scoreLate(c.touched)
}

// refreshAll computes all entries, in the nodes' order: which node is named first where a row errs must not depend
// on the order in which the nodes came.
func (c *Class) refreshAll() {
	rows, scores := len(c.s.c.Nodes.Rows), len(c.s.columns.scores)
	c.cursor, c.rejectedAt, c.contest.made = c.s.c.Nodes.Log.Next(), 0, false
	c.verdict, c.fits, c.statics, c.plain = resized(c.verdict, rows), resized(c.fits, rows), resized(c.statics, rows), resized(c.plain, rows)
	c.object, c.version, c.scored, c.base = resized(c.object, rows), resized(c.version, rows), resized(c.scored, rows), resized(c.base, rows)
	c.raw = resized(c.raw, scores)
	c.uniform, c.first, c.valued, c.now, c.later = resized(c.uniform, scores), resized(c.first, scores), resized(c.valued, scores), 0, 0
	for k := range c.raw {
		c.raw[k] = resized(c.raw[k], rows)
		c.uniform[k] = true
	}
	for row := range rows {
		c.verdict[row] = notOffered
	}
	c.guards = resized(c.guards, len(c.s.columns.predicates)+scores)
	c.meet()
	for _, row := range c.s.c.Nodes.ByOrder() {
		c.refresh(row)
	}
	c.near.sizes = c.near.sizes[:0]
	c.scoreLate(nil)
}

// resized is a zeroed slice of that length, the old one where it is large enough.
func resized[T any](old []T, n int) []T {
	if cap(old) >= n {
		old = old[:n]
		clear(old)
		return old
	}
	return make([]T, n)
}

// refresh brings one node's entry up to date: static rows first, and only where the object changed.
func (c *Class) refresh(row int32) {
	n := &c.s.c.Nodes
	c.contest.move(row)
	c.count(row, -1)
	c.version[row] = n.Version[row]
	fresh := c.object[row] != n.Object[row]+1
	if fresh {
		c.object[row], c.scored[row] = n.Object[row]+1, false
	}
	node := n.Rows[row]
	if node == nil || !node.Ready {
		c.verdict[row], c.fits[row] = notOffered, noFit
		return
	}
	f := c.s.frame().ofTask(c.task)
	defer c.s.done()
	f.node = c.s.nodeView(row)
	if fresh {
		c.statics[row] = c.rejects(f, ofObject)
	}
	c.plain[row] = c.statics[row]
	if c.plain[row] == 0 {
		c.plain[row] = c.rejects(f, ofNode)
	}
	c.fits[row] = c.fit(row)
	c.judge(f, row, false)
}

// judge ends what refresh has begun: the rows that read a node's domains, devices, and scores; again says that
// nothing but the domains changed.
func (c *Class) judge(f *Frame, row int32, again bool) {
	v := c.plain[row]
	if v == 0 && c.near.company != nil {
		v = c.rejects(f, ofDomains)
	}
	if v == 0 && c.task.GPUCount > 0 && c.fits[row] != noFit {
		switch later := c.fits[row] == fitsLater; {
		case c.s.devicesFit(c.task, row, later):
		case !later && c.s.devicesFit(c.task, row, true):
			c.fits[row] = fitsLater
		default:
			v = noDevices
		}
	}
	c.verdict[row] = v
	c.count(row, 1)
	if v == 0 && c.fits[row] != noFit {
		c.score(f, row, again)
	}
}

func (c *Class) count(row int32, by int) {
	if c.verdict[row] != 0 {
		return
	}
	switch c.fits[row] {
	case fitsNow:
		c.now += by
	case fitsLater:
		c.later += by
	case noFit:
		return
	}
	if c.near.group != nil {
		c.near.group.add(row, c.fits[row], int32(by))
	}
}

func (c *Class) fit(row int32) fit {
	n := &c.s.c.Nodes
	switch {
	case n.FitsIdle(c.task.InitRequest, row):
		return fitsNow
	case n.FitsFuture(c.task.InitRequest, row):
		return fitsLater
	}
	return noFit
}

// layer is what of a node a row depends on, and so what it is computed anew for.
type layer uint8

const (
	ofObject  layer = iota // the node's object
	ofNode                 // the node
	ofDomains              // who is in the node's topology domains
	ofGroup                // and which nodes are chosen from
)

// layer of a row for this class: where nobody has terms that concern it, what is in a node's domains is nothing to it.
func (c *Class) layer(r *rowPlan) layer {
	switch {
	case r.static:
		return ofObject
	case c.near.company == nil || !r.peers:
		return ofNode
	case r.late && c.near.group != nil:
		return ofGroup
	}
	return ofDomains
}

// rejects gives the first of the predicates of a layer that says no, 0 if none does.
func (c *Class) rejects(f *Frame, of layer) int16 {
	for k, r := range c.s.columns.predicates {
		if min(c.layer(r), ofDomains) != of || r.volumes && c.task.HasVolumes || c.guard(k, r, f) == stays {
			continue
		}
		if c.opinion(k, r, f) == No {
			return int16(r.Number)
		}
	}
	return 0
}

// guard is what is known of a row's guard for a class.
type guard uint8

const (
	unknown guard = iota
	holds
	stays // the row has no opinion on any node
	varies
)

// guard asks a row's guard once, where it says the same for all nodes. One that errs is asked for each, as the error names it.
func (c *Class) guard(k int, r *rowPlan, f *Frame) guard {
	if c.guards[k] != unknown {
		return c.guards[k]
	}
	c.guards[k] = varies
	if r.byClass {
		switch has, err := c.s.guard(r.Rule, f); {
		case err != nil:
		case has:
			c.guards[k] = holds
		default:
			c.guards[k] = stays
		}
	}
	return c.guards[k]
}

func (c *Class) opinion(k int, r *rowPlan, f *Frame) Opinion {
	if c.guards[k] == holds {
		return c.s.says(r.Rule, f)
	}
	return c.s.opinion(r.Rule, f)
}

func (c *Class) score(f *Frame, row int32, again bool) {
	for k, r := range c.s.columns.scores {
		switch of := c.layer(r); {
		case r.own:
		case of == ofGroup:
			c.raw[k][row] = math.NaN() // until it is known which nodes are chosen from
		case of == ofObject && c.scored[row], of == ofNode && again && c.near.scored[row] == c.version[row]+1:
		default:
			c.value(f, k, row)
		}
	}
	if c.near.company != nil {
		c.near.scored[row] = c.version[row] + 1
	}
	c.scored[row] = true
	c.sum(row)
}

// value evaluates one score row on one node.
func (c *Class) value(f *Frame, k int, row int32) {
	raw, r := math.NaN(), c.s.columns.scores[k]
	switch c.guard(len(c.s.columns.predicates)+k, r, f) {
	case stays:
	case holds:
		raw = c.s.value(r.Rule, f)
	default:
		raw = c.s.score(r.Rule, f)
	}
	c.raw[k][row] = raw
	if !c.valued[k] {
		c.first[k], c.valued[k] = raw, true
	}
	c.uniform[k] = c.uniform[k] && (raw == c.first[k] || raw != raw && c.first[k] != c.first[k])
}

// sum adds up the rows without normalisation.
func (c *Class) sum(row int32) {
	base := 0.0
	for k, r := range c.s.columns.scores {
		if !r.normalises() && !r.own {
			base += r.weighted(c.raw[k][row])
		}
	}
	c.base[row] = base
}
