package verdict

import (
	"math"

	"github.com/celsius-scheduler/celsius/engine/language"
	"github.com/celsius-scheduler/celsius/rules/eval"
)

// layer states what part of a node an answer depends on. A change of that part requires a new evaluation.
type layer uint8

// Layers, from those that rarely change to those that often change.
const (
	OfObject      layer = iota // the node's object
	ofNode                     // the node
	ofDomains                  // the tasks in the node's topology domains
	ofTaskVolumes              // the volumes of one task
	ofGroup                    // the group to choose from
	layers        = iota
)

// stage is a step of the pipeline. It runs if something at its layer or a lower layer changed. It returns the nodes that continue.
type stage struct {
	at  layer
	run func(p *pipeline, rows []int32) (left []int32)
}

// stages returns the steps by which nodes get a verdict and a score, in their order. Scores that depend on the group come last, when the
// group is known: see scoreGroup.
func stages() []stage {
	return []stage{
		{OfObject, (*pipeline).askOfObject},
		{ofNode, (*pipeline).askOfNode},
		{ofDomains, (*pipeline).askOfDomains},
		{ofDomains, (*pipeline).room},
		{ofTaskVolumes, (*pipeline).askOfVolumes},
		{ofDomains, (*pipeline).score},
	}
}

// fewRows is the number of rows up to which columns are not worth computing.
const fewRows = 4

// pipeline updates the entries of some nodes of a class. Many nodes pass through it together, so that each row of the policy is evaluated
// for all nodes that the previous rows left. A node on which anything fails is dropped, and passes through alone after the others. So the
// subjects and the order of faults are the same as if the nodes were computed one after the other. A few nodes also pass one after the
// other.
type pipeline struct {
	c       *Class
	f       *language.Frame
	changed layer // the lowest layer that changed
	alone   bool  // a single node passes through
	stages  []stage
	Few     int // up to this number, rows are evaluated one by one, because columns are not worth computing

	selection
	questions []question // the questions that were evaluated for several nodes together
	Batch     eval.Batch
	bools     []bool
	numbers   []float64
	others    []int32 // of missing
}

// Update runs the stages that a change requires for some nodes.
func (c *Class) Update(changed layer, rows []int32) {
	if len(rows) == 0 {
		return
	}
	p := &c.v.Pipeline
	p.c, p.f, p.changed = c, c.v.ask.Frame().OfTask(c.Task), changed
	defer c.v.ask.Done()
	switch {
	case changed == ofTaskVolumes:
		p.each(rows)
	case len(rows) < p.Few:
		p.each(c.v.InOrder(rows))
	default:
		p.together(rows)
	}
}

// each runs the stages for one node after the other.
func (p *pipeline) each(rows []int32) {
	p.alone = true
	for i := range rows {
		p.f.Node = nil
		p.run(rows[i : i+1])
	}
}

// together runs the stages for many nodes at once, and then for the dropped nodes one by one.
func (p *pipeline) together(rows []int32) {
	p.alone, p.questions = false, p.questions[:0]
	p.run(rows)
	p.tally()
	if dropped := p.dropped; len(dropped) > 0 {
		for _, row := range dropped {
			p.c.Cells[row].Verdict = notOffered // its old verdict is already subtracted
		}
		p.each(p.c.v.InOrder(dropped))
	}
}

// run runs all stages for some nodes.
func (p *pipeline) run(rows []int32) {
	p.begin(len(p.c.Cells), len(rows)*len(p.c.v.Plan.predicates))
	live := p.enter(rows)
	left := live
	for i := range p.stages {
		if st := &p.stages[i]; st.at >= p.changed && len(left) > 0 {
			left = st.run(p, left)
		}
	}
	p.leave(live)
}

// enter subtracts nodes from the counts, and returns those that need an evaluation: no verdict rejects them yet.
func (p *pipeline) enter(rows []int32) []int32 {
	c, n := p.c, p.c.v.nodes
	return p.only(rows, func(row int32) bool {
		x := &c.Cells[row]
		switch p.changed {
		case ofTaskVolumes:
			return x.Verdict == 0 || x.Verdict == noDevices // the verdict of the class is not that of the task; rows come before devices
		case ofDomains:
			if x.plain != 0 {
				return false
			}
		default:
			if x.object == n.Object[row]+1 && x.statics != 0 {
				x.Version = n.Version[row]
				return false
			}
		}
		c.Chooser.moved(row)
		c.count(row, -1)
		x.Version = n.Version[row]
		if node := n.Rows[row]; node != nil && node.Ready {
			x.Verdict = 0
			return true
		}
		x.object, x.scored, x.Fits = n.Object[row]+1, false, noFit
		x.Verdict, x.statics, x.plain = notOffered, notOffered, notOffered
		return false
	})
}

// leave adds the nodes to the counts again.
func (p *pipeline) leave(rows []int32) {
	c, n := p.c, p.c.v.nodes
	for _, row := range rows {
		if !p.isDropped(row) {
			c.Cells[row].object = n.Object[row] + 1
			c.count(row, 1)
		}
	}
}

// askOfObject evaluates rows that read only the object of a node, if the object changed.
func (p *pipeline) askOfObject(rows []int32) []int32 {
	c, n := p.c, p.c.v.nodes
	fresh := p.only(rows, func(row int32) bool { return c.Cells[row].object != n.Object[row]+1 })
	if len(fresh) == 0 {
		return rows
	}
	for _, row := range fresh {
		c.Cells[row].scored = false
	}
	p.ask(OfObject, fresh)
	for _, row := range fresh {
		x := &c.Cells[row]
		x.statics, x.plain = x.Verdict, x.Verdict
	}
	return p.passed(rows)
}

// askOfNode evaluates rows that read the present state of the node.
func (p *pipeline) askOfNode(rows []int32) []int32 {
	left := p.ask(ofNode, rows)
	for _, row := range rows {
		p.c.Cells[row].plain = p.c.Cells[row].Verdict
	}
	return left
}

// askOfDomains evaluates rows that read the tasks in a node's topology domains.
func (p *pipeline) askOfDomains(rows []int32) []int32 { return p.ask(ofDomains, rows) }

// room determines whether a node has enough resources and devices for the task. Only such nodes get a score.
func (p *pipeline) room(rows []int32) []int32 {
	c := p.c
	return p.only(rows, func(row int32) bool {
		x := &c.Cells[row]
		x.Fits = c.fit(row)
		if c.Task.GPUCount > 0 && x.Fits != noFit {
			x.Verdict, x.Fits = c.v.onDevices(c.Task, row, x.Fits)
		}
		return x.Verdict == 0 && x.Fits != noFit
	})
}

func (c *Class) fit(row int32) fit {
	n := c.v.nodes
	switch now := n.FitsIdle(c.Task.Request, row); {
	case now && !n.Moves(row):
		return fitsNow
	case !n.FitsFuture(c.Task.Request, row): // resources that are promised to others are not available, although they are still idle
		return noFit
	case now:
		return fitsNow
	}
	return fitsLater
}

// askOfVolumes evaluates rows that read a task's volumes. Its results are not part of a class.
func (p *pipeline) askOfVolumes(rows []int32) []int32 {
	if !p.c.oneTask {
		return rows
	}
	for _, row := range rows {
		if no := p.c.v.rejectedByVolumes(p.f, row); no != 0 {
			p.c.Cells[row].Verdict = no
		}
	}
	return p.passed(rows)
}

// ask records the first predicate of a layer that rejects each node, and returns the nodes that none rejects.
func (p *pipeline) ask(of layer, rows []int32) []int32 {
	state := &p.c.Rows
	for _, k := range state.predicates[of] {
		if len(rows) == 0 {
			break
		}
		if state.guard(k, p.c.v.Plan.predicates[k], p.f) == stays {
			continue
		}
		if p.predicate(k, rows) || len(p.dropped) > 0 {
			rows = p.passed(rows)
		}
	}
	return rows
}

// passed returns the nodes that are not rejected yet.
func (p *pipeline) passed(rows []int32) []int32 {
	cells := p.c.Cells
	return p.only(rows, func(row int32) bool { return cells[row].Verdict == 0 })
}

// score evaluates the scores that do not depend on the group if their inputs changed, and adds up those without normalisation.
func (p *pipeline) score(rows []int32) []int32 {
	c := p.c
	state := &c.Rows
	asked := state.scores(p.f)
	unscored, moved := rows, rows
	if asked.fixed {
		unscored = p.only(rows, func(row int32) bool { return !c.Cells[row].scored })
	}
	at := c.domains.scored
	if p.changed == ofDomains {
		moved = p.only(rows, func(row int32) bool { return at[row] != c.Cells[row].Version+1 })
	}
	for _, k := range asked.all {
		switch state.scoreLayers[k] {
		case OfObject:
			p.scoreBy(k, unscored)
		case ofNode:
			p.scoreBy(k, moved)
		case ofGroup:
			for _, row := range rows {
				state.Raw[k][row] = math.NaN() // until the group to choose from is known
			}
		default:
			p.scoreBy(k, rows)
		}
	}
	for _, row := range rows {
		if p.isDropped(row) {
			continue
		}
		x := &c.Cells[row]
		x.scored, x.base = true, state.sum(row)
		if c.domains.context != nil {
			at[row] = x.Version + 1
		}
	}
	return rows
}
