package policy

import (
	"math"

	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/rules"
)

// fewRows are so few that to compute their rows' columns is not worth while.
const fewRows = 4

// sweep is the memory in which a class computes many nodes at once, row of the policy by row: each predicate on those nodes that
// the ones before it left, then each score on those that are left. A node on which anything errs is given up, and computed
// alone when the others are done: so what a fault names, and the order of faults, are those of nodes computed one after the other.
type sweep struct {
	batch   rules.Batch
	bools   []bool
	numbers []float64
	totals  []float64
	arena   []int32
	stages  []stage
	others  []int32  // of missing
	given   []int32  // rows that were given up
	round   uint64   // of marks
	marks   []uint64 // by row of the node table: the round in which it was given up
}

// stage is one row of the policy, asked on some nodes, and where what it said is kept.
type stage struct {
	row      *rowPlan
	rows     []int32
	opinions *said[Opinion]
	values   *said[float64]
}

func (w *sweep) begin(rows int) {
	w.round++
	w.given, w.stages, w.arena = w.given[:0], w.stages[:0], w.arena[:0]
	for len(w.marks) < rows {
		w.marks = append(w.marks, 0)
	}
}

func (w *sweep) giveUp(rows []int32) {
	for _, row := range rows {
		if w.marks[row] != w.round {
			w.marks[row] = w.round
			w.given = append(w.given, row)
		}
	}
}

// only keeps the rows that keep holds of, and that are not given up, beside the others.
func (w *sweep) only(rows []int32, keep func(i int, row int32) bool) []int32 {
	from := len(w.arena)
	for i, row := range rows {
		if w.marks[row] != w.round && keep(i, row) {
			w.arena = append(w.arena, row)
		}
	}
	return w.arena[from:len(w.arena):len(w.arena)]
}

// refreshRows is refresh of several rows, which are in the nodes' order. Without caches each is computed alone, so that one way is
// held to the other.
func (c *Class) refreshRows(rows []int32) {
	if len(rows) == 0 {
		return
	}
	f := c.s.frame().OfTask(c.task)
	defer c.s.done()
	if len(rows) < fewRows || c.near.context != nil || c.s.NoCache {
		c.refreshEach(f, rows)
		return
	}
	n, w := &c.s.c.Nodes, &c.s.sweep
	w.begin(len(n.Rows))
	live := w.only(rows, func(_ int, row int32) bool {
		c.contest.move(row)
		c.count(row, -1)
		c.at[row].version = n.Version[row]
		node := n.Rows[row]
		if node != nil && node.Ready {
			return true
		}
		if c.at[row].object != n.Object[row]+1 {
			c.at[row].object, c.at[row].scored = n.Object[row]+1, false
		}
		c.at[row].verdict, c.at[row].statics, c.at[row].fits = notOffered, notOffered, noFit
		return false
	})
	c.sweepPredicates(f, live)
	left := w.only(live, func(_ int, row int32) bool {
		c.at[row].fits = c.fit(row)
		c.at[row].verdict = c.withDevices(row, c.at[row].plain)
		return c.at[row].verdict == 0 && c.at[row].fits != noFit
	})
	c.sweepScores(f, left)
	for _, row := range live {
		if w.marks[row] != w.round {
			c.at[row].object = n.Object[row] + 1
			c.count(row, 1)
		}
	}
	c.takeBack(f)
}

// refreshEach brings the entries of some nodes up to date one by one.
func (c *Class) refreshEach(f *Frame, rows []int32) {
	for _, row := range rows {
		f.node = nil
		c.refresh(f, row)
	}
}

// takeBack counts the evaluations, but forgets those on nodes that were given up, and computes these one by one.
func (c *Class) takeBack(f *Frame) {
	w := &c.s.sweep
	for i := range w.stages {
		st := &w.stages[i]
		c.s.evaluated[st.row.Number] += uint64(len(st.rows))
		if len(w.given) == 0 {
			continue
		}
		for _, row := range st.rows {
			if w.marks[row] == w.round {
				c.s.evaluated[st.row.Number]--
				st.forget(&c.s.alike, row)
			}
		}
	}
	if len(w.given) == 0 {
		return
	}
	c.s.columns.inOrder(&c.s.c.Nodes, w.given)
	for _, row := range w.given {
		c.at[row].verdict = notOffered // its old verdict is not counted any more
	}
	c.refreshEach(f, w.given)
}

func (st *stage) forget(a *alike, row int32) {
	if st.opinions != nil {
		st.opinions.unlearn(a, st.row, row)
	}
	if st.values != nil {
		st.values.unlearn(a, st.row, row)
	}
}

// missing gives the nodes, of some, of which it is not known what a row says: those to ask it of, and those that are like one of
// them, which hold until the next question.
func missing[T Opinion | float64](c *Class, r *rowPlan, kept *said[T], rows []int32) (first, others []int32) {
	w, a, versions := &c.s.sweep, &c.s.alike, c.s.versionsOf(r)
	w.others = w.others[:0]
	if r.amounts {
		a.begin()
	}
	from := len(w.arena)
	for _, row := range rows {
		switch at := versions[row] + 1; {
		case w.marks[row] == w.round || kept.at[row] == at || kept.recall(a, r, row, at):
		case r.amounts && !a.pioneer(row):
			w.others = append(w.others, row)
		default:
			w.arena = append(w.arena, row)
		}
	}
	return w.arena[from:len(w.arena):len(w.arena)], w.others
}

// inherit takes what a row said of nodes for those that are like them. Where it erred, it is asked of each.
func inherit[T Opinion | float64](c *Class, r *rowPlan, kept *said[T], others []int32) {
	versions := c.s.versionsOf(r)
	for i, row := range others {
		if !kept.recall(&c.s.alike, r, row, versions[row]+1) {
			c.s.sweep.giveUp(others[i : i+1])
		}
	}
}

func (c *Class) fresh(row int32) bool { return c.at[row].object != c.s.c.Nodes.Object[row]+1 }

// sweepPredicates asks the rows of the object where that changed, then the others of the nodes that passed.
func (c *Class) sweepPredicates(f *Frame, live []int32) {
	w := &c.s.sweep
	fresh := w.only(live, func(_ int, row int32) bool { return c.fresh(row) })
	for _, row := range fresh {
		c.at[row].statics, c.at[row].scored = 0, false
	}
	c.sift(f, ofObject, fresh)
	passed := w.only(live, func(_ int, row int32) bool {
		c.at[row].plain = c.at[row].statics
		return c.at[row].plain == 0
	})
	c.sift(f, ofNode, passed)
}

// sift writes the first predicate of a layer that says no of each node.
func (c *Class) sift(f *Frame, of layer, rows []int32) {
	w := &c.s.sweep
	for k, r := range c.s.columns.predicates {
		if len(rows) == 0 {
			return
		}
		if c.layers[k] != of || r.volumes && c.task.HasVolumes || c.guard(k, r, f) == stays {
			continue
		}
		if c.siftBy(f, k, rows) || len(w.given) > 0 {
			rows = w.only(rows, func(_ int, row int32) bool { return *c.at[row].of(of) == 0 })
		}
	}
}

// siftBy asks one predicate, and says whether it says no of any node.
func (c *Class) siftBy(f *Frame, k int, rows []int32) (rejects bool) {
	w, r, kept := &c.s.sweep, c.s.columns.predicates[k], c.opinions[k]
	no := func(row int32) { *c.at[row].of(c.layers[k]), rejects = int16(r.Number), true }
	unknown, others := rows, []int32(nil)
	if kept != nil {
		unknown, others = missing(c, r, kept, rows)
	}
	asked := c.askedOf(f, stage{row: r, rows: unknown, opinions: kept}, c.guards[k])
	w.bools = model.Resized(w.bools, len(asked))
	w.giveUp(c.s.holdsEach(&r.expression, f, asked, w.bools))
	versions := c.s.versionsOf(r)
	for i, row := range asked {
		if w.marks[row] == w.round {
			continue
		}
		x := Yes
		if !w.bools[i] {
			x = No
			no(row)
		}
		if kept != nil {
			kept.learn(&c.s.alike, r, row, x, versions[row]+1)
		}
	}
	if kept == nil {
		return rejects
	}
	inherit(c, r, kept, others)
	for _, row := range rows {
		if w.marks[row] != w.round && kept.what[row] == No {
			no(row)
		}
	}
	return rejects
}

// askedOf gives the nodes of a stage on which a row's guard holds. All of them count as asked.
func (c *Class) askedOf(f *Frame, st stage, known guard) []int32 {
	w, r := &c.s.sweep, st.row
	if len(st.rows) == 0 {
		return nil
	}
	w.stages = append(w.stages, st)
	if known == holds || r.When == nil {
		return st.rows
	}
	w.bools = model.Resized(w.bools, len(st.rows))
	w.giveUp(c.s.holdsEach(&r.when, f, st.rows, w.bools))
	return w.only(st.rows, func(i int, row int32) bool {
		if !w.bools[i] && st.opinions != nil {
			st.opinions.learn(&c.s.alike, r, row, Abstain, c.s.versionFor(r, row))
		}
		return w.bools[i]
	})
}

// sweepScores computes the rows of scores on the nodes that a task can be chosen from.
func (c *Class) sweepScores(f *Frame, rows []int32) {
	w, predicates := &c.s.sweep, len(c.s.columns.predicates)
	for k, r := range c.s.columns.scores {
		if r.own || c.guards[predicates+k] == stays {
			continue
		}
		wanted := rows
		if c.layers[predicates+k] == ofObject {
			wanted = w.only(rows, func(_ int, row int32) bool { return !c.at[row].scored })
		}
		c.sweepScore(f, k, wanted)
		if !r.Normalises() {
			continue
		}
		for _, row := range wanted {
			if w.marks[row] != w.round {
				c.note(k, c.raw[k][row])
			}
		}
	}
	added := c.toAsk(f).added
	for _, row := range rows {
		if w.marks[row] != w.round {
			c.at[row].scored = true
			c.addUp(row, added)
		}
	}
}

// sweepScore evaluates one row of scores where it is not known.
func (c *Class) sweepScore(f *Frame, k int, rows []int32) {
	w, r, kept := &c.s.sweep, c.s.columns.scores[k], c.values[k]
	others := []int32(nil)
	if kept != nil {
		rows, others = missing(c, r, kept, rows)
	}
	if len(rows) == 0 {
		return
	}
	known := c.guard(len(c.s.columns.predicates)+k, r, f)
	for _, row := range rows {
		c.raw[k][row] = math.NaN()
	}
	if known != stays {
		asked := c.askedOf(f, stage{row: r, rows: rows, values: kept}, known)
		w.numbers = model.Resized(w.numbers, len(asked))
		w.giveUp(c.s.numberEach(&r.expression, f, asked, w.numbers))
		for i, row := range asked {
			x := w.numbers[i]
			if x-x != 0 { // neither NaN nor infinite is a score
				w.giveUp(asked[i : i+1])
			}
			c.raw[k][row] = x
		}
	}
	if kept == nil {
		return
	}
	versions := c.s.versionsOf(r)
	for _, row := range rows {
		if w.marks[row] != w.round {
			kept.learn(&c.s.alike, r, row, c.raw[k][row], versions[row]+1)
		}
	}
	inherit(c, r, kept, others)
}

// withDevices is the verdict on a node that the predicates gave v, by its devices.
func (c *Class) withDevices(row int32, v int16) int16 {
	if v == 0 && c.task.GPUCount > 0 && c.at[row].fits != noFit {
		switch later := c.at[row].fits == fitsLater; {
		case c.s.devicesFit(c.task, row, later):
		case !later && c.s.c.Nodes.Moves(row) && c.s.devicesFit(c.task, row, true):
			c.at[row].fits = fitsLater
		default:
			return noDevices
		}
	}
	return v
}
