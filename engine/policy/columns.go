package policy

import (
	"math"
	"slices"

	"github.com/celsius-scheduler/celsius/engine/model"
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

// Class is the tasks that agree on everything that the active rows read, with its verdict columns,
// one entry a row of the node table.
type Class struct {
	s    *Session
	task *model.Task
	key  string
	used uint64 // cycle
	turn uint64 // when it was used last

	cursor  uint64
	epoch   string
	near    nearby
	contest contest
	at      []cell      // by row
	guards  []guard     // of the predicates, then of the scores, where they are asked once a class
	raw     [][]float64 // by score row: NaN where the row has no opinion; shared where values has it
	// opinions and values are what the rows said to the classes that are alike in what a row reads; nil: it is not shared.
	opinions []*said[Opinion]
	values   []*said[float64]
	layers   []layer // of the predicates, then of the scores
	asks     asks
	uniform  []bool    // by score row: every value so far is the same
	first    []float64 // that value
	valued   []bool    // by score row: there was a value
	now      int       // rows that fit now
	later    int

	rankings   []ranking // reused
	touched    []int32   // reused
	rejected   []model.NodeCount
	rejectedAt uint64 // of the log, plus 1
}

// cell is what a class knows of a node: what is read and written together when the node changed.
type cell struct {
	version uint64  // of the node when it was looked at last
	object  uint64  // of its object, plus 1
	base    float64 // sum of the scores without normalisation
	verdict int16   // 0 is fit, else the rule that rejected, or notOffered, noDevices
	statics int16   // verdict of the static rows
	plain   int16   // of all rows that do not read who is in the node's topology domains
	fits    fit
	scored  bool // static scores are computed
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
		c = cs.vacant(s)
		c.key, cs.classes[key] = key, c
	}
	cs.turn++
	c.task, c.used, c.turn = t, s.cycle, cs.turn
	c.catchUp()
	return c
}

// mostEntries is how many entries, one a node each, all classes have together: some 100 bytes each.
const mostEntries = 1 << 23

// vacant is a class for a new kind of tasks: a new one, or one of the past, or where there are as many as may be, the one that was
// not used for the longest time.
func (cs *columns) vacant(s *Session) *Class {
	if len(cs.classes) < 1+cs.entries/(len(s.c.Nodes.Rows)+1) {
		last := len(cs.spare) - 1
		if last < 0 {
			return &Class{s: s}
		}
		c := cs.spare[last]
		cs.spare = cs.spare[:last]
		c.at = c.at[:0] // so that all is computed anew
		return c
	}
	var oldest *Class
	for _, c := range cs.classes {
		if oldest == nil || c.turn < oldest.turn {
			oldest = c
		}
	}
	delete(cs.classes, oldest.key)
	oldest.at = oldest.at[:0]
	return oldest
}

func (c *Class) catchUp() {
	n := &c.s.c.Nodes
	epoch := c.s.epoch()
	entries, ok := n.Log.Since(c.cursor)
	if !ok || epoch != c.epoch || len(c.at) != len(n.Rows) || len(n.Rows) == 0 || c.s.columns.volatile || c.strangers() {
		c.epoch = epoch
		c.refreshAll()
		return
	}
	c.cursor = n.Log.Next()
	c.touched = c.touched[:0]
	plainly := c.near.context == nil
	for _, row := range entries {
		if x := &c.at[row]; x.version != n.Version[row] {
			x.version = n.Version[row]
			c.touched = append(c.touched, row)
			plainly = plainly && !c.fresh(row)
		}
	}
	if plainly && len(c.touched) >= fewRows {
		c.touch(c.touched)
		return
	}
	c.s.columns.inOrder(n, c.touched)
	c.refreshRows(c.touched)
	c.catchUpPeers()
	c.scoreLate(c.touched)
}

// inOrder sorts rows by the nodes' order.
func (cs *columns) inOrder(n *model.Nodes, rows []int32) {
	keys := cs.sorted[:0]
	for _, row := range rows {
		keys = append(keys, uint64(n.Order[row])<<32|uint64(row))
	}
	slices.Sort(keys)
	for i, key := range keys {
		rows[i] = int32(uint32(key))
	}
	cs.sorted = keys
}

// refreshAll computes all entries, in the nodes' order: which node is named first where a row errs must not depend
// on the order in which the nodes came.
func (c *Class) refreshAll() {
	rows, scores := len(c.s.c.Nodes.Rows), len(c.s.columns.scores)
	c.cursor, c.rejectedAt, c.contest.made = c.s.c.Nodes.Log.Next(), 0, false
	c.at = model.Resized(c.at, rows)
	c.uniform, c.first, c.valued, c.now, c.later = model.Resized(c.uniform, scores), model.Resized(c.first, scores), model.Resized(c.valued, scores), 0, 0
	for k := range c.uniform {
		c.uniform[k] = true
	}
	for row := range rows {
		c.at[row].verdict = notOffered
	}
	c.guards = model.Resized(c.guards, len(c.s.columns.predicates)+scores)
	c.meet()
	c.join()
	c.arrange()
	c.refreshRows(c.s.c.Nodes.ByOrder())
	c.near.sizes = c.near.sizes[:0]
	c.scoreLate(nil)
}

// arrange finds the layers of all rows.
func (c *Class) arrange() {
	c.layers, c.asks.made = c.layers[:0], false
	for _, r := range c.s.columns.predicates {
		c.layers = append(c.layers, min(c.layer(r), ofDomains))
	}
	for _, r := range c.s.columns.scores {
		c.layers = append(c.layers, c.layer(r))
	}
}

// refresh brings one node's entry up to date: static rows first, and only where the object changed.
func (c *Class) refresh(f *Frame, row int32) {
	n := &c.s.c.Nodes
	c.contest.move(row)
	c.count(row, -1)
	c.at[row].version = n.Version[row]
	fresh := c.at[row].object != n.Object[row]+1
	if fresh {
		c.at[row].object, c.at[row].scored = n.Object[row]+1, false
	}
	node := n.Rows[row]
	if node == nil || !node.Ready {
		c.at[row].verdict, c.at[row].statics, c.at[row].fits = notOffered, notOffered, noFit
		return
	}
	if fresh {
		c.at[row].statics = c.rejects(f, row, ofObject)
	}
	c.at[row].plain = c.at[row].statics
	if c.at[row].plain == 0 {
		c.at[row].plain = c.rejects(f, row, ofNode)
	}
	c.at[row].fits = c.fit(row)
	c.judge(f, row, false)
}

// judge ends what refresh has begun: the rows that read a node's domains, devices, and scores; again says that
// nothing but the domains changed.
func (c *Class) judge(f *Frame, row int32, again bool) {
	v := c.at[row].plain
	if v == 0 && c.near.context != nil {
		v = c.rejects(f, row, ofDomains)
	}
	v = c.withDevices(row, v)
	c.at[row].verdict = v
	c.count(row, 1)
	if v == 0 && c.at[row].fits != noFit {
		c.score(f, row, again)
	}
}

func (c *Class) count(row int32, by int) {
	if c.at[row].verdict != 0 {
		return
	}
	switch c.at[row].fits {
	case fitsNow:
		c.now += by
	case fitsLater:
		c.later += by
	case noFit:
		return
	}
	if c.near.group != nil {
		c.near.group.Add(row, uint8(c.at[row].fits), int32(by))
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
	case r.static && !r.volumes:
		return ofObject
	case c.near.context == nil || !r.peers && !r.volumes: // what reads volumes is asked last
		return ofNode
	case r.candidates && c.near.group != nil:
		return ofGroup
	}
	return ofDomains
}

// of is the verdict of a layer's rows, of those of the object or of all.
func (x *cell) of(l layer) *int16 {
	if l == ofObject {
		return &x.statics
	}
	return &x.plain
}

// rejects gives the first of the predicates of a layer that says no, 0 if none does.
func (c *Class) rejects(f *Frame, row int32, of layer) int16 {
	for k, r := range c.s.columns.predicates {
		if c.layers[k] != of || r.volumes && c.task.HasVolumes || c.guard(k, r, f) == stays {
			continue
		}
		if c.opinion(k, r, f, row) == No {
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
			if score := k - len(c.s.columns.predicates); score >= 0 {
				c.silence(score)
			}
		}
	}
	return c.guards[k]
}

// silence notes that a row of scores has no opinion on any node.
func (c *Class) silence(k int) {
	for row := range c.raw[k] {
		c.raw[k][row] = math.NaN()
	}
	c.first[k], c.valued[k] = math.NaN(), true
}

func (c *Class) score(f *Frame, row int32, again bool) {
	first := len(c.s.columns.predicates)
	for k, r := range c.s.columns.scores {
		switch of := c.layers[first+k]; {
		case r.own, c.guards[first+k] == stays:
		case of == ofGroup:
			c.raw[k][row] = math.NaN() // until it is known which nodes are chosen from
		case of == ofObject && c.at[row].scored, of == ofNode && again && c.near.scored[row] == c.at[row].version+1:
		default:
			c.value(f, k, row)
		}
	}
	if c.near.context != nil {
		c.near.scored[row] = c.at[row].version + 1
	}
	c.at[row].scored = true
	c.sum(row)
}

// sum adds up the rows without normalisation.
func (c *Class) sum(row int32) {
	base := 0.0
	for k, r := range c.s.columns.scores {
		if !r.Normalises() && !r.own {
			base += r.Weighted(c.raw[k][row])
		}
	}
	c.at[row].base = base
}
