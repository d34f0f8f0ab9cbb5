package policy

import (
	"fmt"
	"time"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/volume"
	"github.com/celsius-scheduler/celsius/rules"
)

// Session is a Policy beside a Cluster: it answers every site's question, and remembers what stays true.
// It has one owner, like the cluster.
type Session struct {
	c *model.Cluster
	p *Policy
	// NoCache makes every question be answered afresh. The answers are the same.
	NoCache bool
	// Split says when several processors evaluate one row. The answers are the same.
	Split Split
	// Kept is a slot for what engine/action remembers between cycles.
	Kept any

	cycle       uint64
	now         types.Timestamp
	nowRoot     any // see nowValue
	action      ref.Val
	actions     uint64 // how many SetAction has told of
	usedAtStart model.Resources
	cluster     *clusterView
	typ         viewTypes
	frames      []*Frame
	depth       int
	sums        map[*attribute]*sumState
	fills       map[*attribute]*fillState
	trees       map[*quotaTree]*treeState
	shares      map[*attribute]*shareState
	planted     uint64 // trees of shares
	starts      map[started]ref.Val
	namespaces  map[string]*namespaceView
	faults      map[any]*model.RuleError
	faultOrder  []*model.RuleError
	erring      uint64 // errors so far
	columns     columns
	evaluated   []uint64 // by the rule's number
	volumes     *volume.Volumes
	peers       peers
	rest        rest
	noStrings   ref.Val // the map without entries
	noWords     ref.Val // the list without strings
	keyText     []byte  // scratch
	keyRoom     model.Slab[key]
	memoRoom    model.Slab[memo]
	slots       struct{ task, job int } // memos of each
	lot         []taskView              // views that are still to be used, for tasks of lotOf
	lotOf       *model.Job
	dims        *dims
	// sizes are the domains that a class chooses from, while its scores that read them are computed.
	sizes []int32
	// dictionaries number what only the objects of nodes tell.
	dictionaries map[aspect]*dictionary
	sweep        sweep
	devices      deviceScratch
	alike        alike
	ofNodes      sizes
	desk         desk
	crew         crew
	meters       meters

	kept                         int // mostKept
	startsSwept, namespacesSwept swept
}

// stamp says since when a value holds: the cycle, a clock within it, and for what reads the action, how many have run.
type stamp struct{ cycle, clock, action uint64 }

// NewSession begins with nothing remembered.
func NewSession(c *model.Cluster, p *Policy) *Session {
	s := &Session{c: c, p: p, kept: mostKept, sums: map[*attribute]*sumState{}, fills: map[*attribute]*fillState{}, trees: map[*quotaTree]*treeState{}, shares: map[*attribute]*shareState{}, starts: map[started]ref.Val{}, namespaces: map[string]*namespaceView{}, faults: map[any]*model.RuleError{}, action: types.String(""), dictionaries: map[aspect]*dictionary{}}
	s.typ = viewTypes{task: taskType(), job: jobType(), role: roleType(), queue: queueType(), spec: queueSpecType(), node: nodeType(), taint: taintType(), gpu: gpuType(), cluster: clusterType()}
	s.cluster = &clusterView{view: view[model.Cluster]{of: c, s: s, typ: s.typ.cluster, memo: make([]memo, p.slots["Cluster"])}}
	s.desk.variables = make([]heldValue, len(p.variables))
	s.noStrings, s.noWords = stringMap(nil), stringList(nil)
	s.slots.task, s.slots.job = p.slots["Task"], p.slots["Job"]
	s.dims = &dims{Dims: c.Dims, crew: &s.crew}
	s.evaluated = make([]uint64, len(p.all)+1)
	s.meters = metersOf(p)
	s.peers.s, s.alike.nodes = s, &c.Nodes
	s.columns.init(s)
	s.initRest()
	return s
}

// Evaluated is how often a rule of the session's policy was evaluated since the session began. Keys of
// orders are not counted.
func (s *Session) Evaluated(r *Rule) uint64 { return s.evaluated[r.Number] }

// Policy that the session is of.
func (s *Session) Policy() *Policy { return s.p }

// Cluster that the session is beside.
func (s *Session) Cluster() *model.Cluster { return s.c }

// Begin starts a cycle: what settles once a cycle is computed from the state as it is now.
func (s *Session) Begin(now time.Time) {
	s.cycle++
	s.setNow(now)
	s.rest.begun, s.rest.now, s.rest.until = s.c.Content(), now, time.Time{}
	s.rest.values = string(s.timeParts())
	s.usedAtStart = s.c.Used.Clone()
	s.noFaults()
	s.meters.begin()
	s.action = types.String("")
	s.columns.begin()
	s.forget()
	if len(s.dictionaries) >= mostDictionaries {
		clear(s.dictionaries)
	}
	for _, x := range s.p.attributes {
		if x.settle == "cycle" || x.settle == "start" {
			s.settle(x)
		}
	}
}

// settle computes an attribute that does not move within a cycle for everything that has it.
func (s *Session) settle(x *attribute) {
	switch x.on {
	case "cluster":
		readAttribute(x, s.cluster)
	case "queue":
		if x.function == waterFillFunction && x.when == nil {
			s.fillUp(x) // for all of them at once
			return
		}
		for _, q := range s.c.QueuesByName() {
			readAttribute(x, s.queueView(q))
		}
	case "job":
		for _, j := range s.c.JobsByKey() {
			readAttribute(x, s.jobView(j))
		}
	case "task":
		for _, key := range sortedKeys(s.c.Tasks) {
			readAttribute(x, s.taskView(s.c.Tasks[key]))
		}
	case "namespace":
		for _, name := range s.namespaceNames() {
			readAttribute(x, s.namespaceView(name))
		}
	case "node":
		for row, n := range s.c.Nodes.Rows {
			if n != nil {
				readAttribute(x, s.nodeView(int32(row)))
			}
		}
	}
}

// SetAction says which action runs, for rows that ask.
func (s *Session) SetAction(name string) {
	if s.action != types.String(name) {
		s.action = types.String(name)
	}
	s.actions++
}

// stampOf is the present moment of the cycle for a value that reads the action, or does not.
func (s *Session) stampOf(byAction bool) stamp {
	at := stamp{cycle: s.cycle}
	if byAction {
		at.action = s.actions
	}
	return at
}

// Faults are the errors of rows in this cycle, in the order in which they came first.
func (s *Session) Faults() []model.RuleError {
	var out []model.RuleError
	for _, e := range s.faultOrder {
		out = append(out, *e)
	}
	return out
}

func (s *Session) noFaults() {
	clear(s.faults)
	s.faultOrder = nil
}

// fault counts an error of a row.
func (s *Session) fault(r *Rule, f *Frame, err ref.Val) {
	s.count(r, model.RuleError{Site: r.Site.Name, Table: r.Table, Rule: r.Name}, f, err)
}

// faultOf counts an error of an attribute.
func (s *Session) faultOf(x *attribute, f *Frame, err ref.Val) {
	s.count(x, model.RuleError{Site: "attributes", Table: x.table, Rule: x.name}, f, err)
}

func (s *Session) count(of any, first model.RuleError, f *Frame, err ref.Val) {
	s.erring++
	e, ok := s.faults[of]
	if !ok {
		first.Object, first.Text = f.subject(), fmt.Sprint(err)
		e = &first
		s.faults[of] = e
		s.faultOrder = append(s.faultOrder, e)
	}
	e.Count++
	if rules.Exceeded(err) {
		e.OverBudget++
	}
}

// Frame is what the roots stand for in one evaluation.
type Frame struct {
	s                                                              *Session
	desk                                                           *desk
	task, job, queue, node, gpu, victim, preemptor, request, scope ref.Val
}

// rootNames are the roots by their number, as Frame.Root knows them.
func rootNames() []string {
	return []string{"task", "job", "queue", "node", "gpu", "victim", "preemptor", "request", "scope", "params", "variables", "cluster", "now", "action", "pipeline"}
}

// Root implements rules.Roots.
func (f *Frame) Root(number int) any {
	var v ref.Val
	switch number {
	case 0:
		v = f.task
	case 1:
		v = f.job
	case 2:
		v = f.queue
	case 3:
		v = f.node
	case 4:
		v = f.gpu
	case 5:
		v = f.victim
	case 6:
		v = f.preemptor
	case 7:
		v = f.request
	case 8:
		v = f.scope
	case 9, 10:
		return f
	default:
		return f.globalRoot(number)
	}
	if v == nil {
		return nil
	}
	return v
}

func (f *Frame) globalRoot(number int) any {
	if f.s == nil {
		return nil
	}
	switch number {
	case 11:
		return f.s.cluster
	case 12:
		return f.s.nowValue()
	case 13:
		return f.s.action
	case 14:
		return f.s.p.pipeline
	}
	return nil
}

// ResolveName implements cel.Activation.
func (f *Frame) ResolveName(name string) (any, bool) {
	var v ref.Val
	switch name {
	case "task":
		v = f.task
	case "job":
		v = f.job
	case "queue":
		v = f.queue
	case "node":
		v = f.node
	case "params", "variables":
		return f, true
	case "gpu":
		v = f.gpu
	case "victim":
		v = f.victim
	case "preemptor":
		v = f.preemptor
	case "request":
		v = f.request
	case "scope":
		v = f.scope
	default:
		return f.global(name)
	}
	if v == nil {
		return nil, false
	}
	return v, true
}

func (f *Frame) global(name string) (any, bool) {
	if f.s == nil {
		return nil, false
	}
	switch name {
	case "cluster":
		return f.s.cluster, true
	case "now":
		return f.s.nowValue(), true
	case "action":
		return f.s.action, true
	case "pipeline":
		return f.s.p.pipeline, true
	}
	return nil, false
}

// Parent implements cel.Activation.
func (f *Frame) Parent() cel.Activation { return nil }

// subject names what the frame is about, for error reports.
func (f *Frame) subject() string {
	switch {
	case f.task != nil && f.node != nil:
		return f.task.(*taskView).of.Key + " on " + f.node.(*nodeView).of.Name
	case f.task != nil:
		return f.task.(*taskView).of.Key
	case f.job != nil:
		return f.job.(*jobView).of.Key
	}
	if q, ok := f.queue.(*queueView); ok {
		return q.of.Name
	}
	return ""
}

// frame lends a clean frame; give it back with done.
func (s *Session) frame() *Frame {
	if s.depth == len(s.frames) {
		s.frames = append(s.frames, &Frame{})
	}
	f := s.frames[s.depth]
	*f = Frame{s: s, desk: &s.desk}
	s.depth++
	return f
}

func (s *Session) done() { s.depth-- }

// ofTask fills a frame's task, job and queue.
func (f *Frame) ofTask(t *model.Task) *Frame {
	f.task = f.s.taskView(t)
	return f.ofJob(t.Job)
}

// ofJob fills a frame's job and queue.
func (f *Frame) ofJob(j *model.Job) *Frame {
	f.job, f.queue = f.s.jobView(j), f.s.queueView(j.Queue)
	return f
}

// variable computes a variable once for what it is on, until something changes.
func (f *Frame) variable(v *variable) ref.Val {
	if f.s == nil {
		return v.expr.Eval(f) // at compile time, for constants
	}
	held := &f.desk.variables[v.slot]
	at := f.s.stampOf(v.byAction)
	on := f.owner(v.on)
	if v.expr.Reads.Changes() > rules.ByCycle || on != nil {
		at.clock = f.s.c.Clock
	}
	if held.value != nil && !f.s.NoCache && (!v.byTime || !f.s.rest.asking) && held.stamp == at && held.on == on {
		return held.value
	}
	value := v.expr.Eval(f)
	f.s.watch(v.expr, f)
	*held = heldValue{memo{at, value}, on}
	return value
}

// heldValue is a variable's value with what it was computed for.
type heldValue struct {
	memo
	on any
}

func (f *Frame) owner(on string) any {
	switch on {
	case "task":
		return f.task
	case "job":
		return f.job
	case "queue":
		return f.queue
	case "node":
		return f.node
	case "victim":
		return f.victim
	}
	return nil
}

// attribute answers a computed field from its memo, or computes it.
func (s *Session) attribute(x *attribute, owner ref.Val, m *memo, version uint64) ref.Val {
	if x.settle == "start" {
		return s.atStart(x, owner, m)
	}
	at := s.stampOf(x.byAction)
	switch {
	case x.settle == "cycle":
		at.action = 0
	case x.changes <= rules.ByCycle:
	case x.reach == within:
		at.clock = version + 1
	case x.reach == alongTree:
		at.clock = version + s.treeVersion(x.trees, owner) + 1
	default:
		at.clock = s.c.Clock + 1
	}
	if m.value != nil && m.stamp == at && (!x.byTime || !s.rest.asking) && (x.settle == "cycle" || !s.NoCache) {
		return m.value
	}
	m.value = s.compute(x, owner)
	m.stamp = at
	return m.value
}

// started is what an attribute of settle start was computed for.
type started struct {
	of    *attribute
	owner string
}

// atStart is the value of the run's first cycle, or of the first in which its owner was there. What is over its budget holds for the cycle,
// and is computed again in the next.
func (s *Session) atStart(x *attribute, owner ref.Val, m *memo) ref.Val {
	key := started{of: x}
	if o, ok := owner.(interface{ name() string }); ok {
		key.owner = o.name()
	}
	if v, ok := s.starts[key]; ok {
		return v
	}
	at := s.stampOf(false)
	if m.value != nil && m.stamp == at {
		return m.value
	}
	v := s.compute(x, owner)
	if rules.Exceeded(v) {
		*m = memo{at, v}
		return v
	}
	s.starts[key] = v
	return v
}

func (s *Session) compute(x *attribute, owner ref.Val) ref.Val {
	f := s.frame()
	defer s.done()
	switch v := owner.(type) {
	case *queueView:
		f.queue = v
	case *jobView:
		f.job = v
	case *taskView:
		f.task = v
	case *nodeView:
		f.node = v
	}
	if x.when != nil {
		held := x.when.Eval(f)
		s.watch(x.when, f)
		if held != types.True {
			if types.IsError(held) {
				return held
			}
			return types.NewErr("%s has no value here: its guard is false", x.name)
		}
	}
	switch x.function {
	case quotaTreeFunction:
		if q, ok := owner.(*queueView); ok {
			return x.inTree(s, q.of)
		}
	case hdrfFunction:
		return s.shareTree(x)
	case "sum":
		return s.sum(x, owner)
	case waterFillFunction:
		return s.fill(x, owner)
	case "typicalTasks":
		return s.typicalOf(x, f)
	}
	v := x.expr.Eval(f)
	s.watch(x.expr, f)
	if a, ok := v.(*amounts); ok {
		return &amounts{a.r.Clone(), a.dims} // the cluster's own amounts move on
	}
	return v
}
