package verdict

import (
	"math"

	"github.com/celsius-scheduler/celsius/engine/language"
	"github.com/celsius-scheduler/celsius/rules/eval"
)

// layer is what of a node an answer depends on, and so what it is asked anew for.
type layer uint8

// Layers, from what moves rarely to what moves often.
const (
	OfObject      layer = iota // the node's object
	ofNode                     // the node
	ofDomains                  // who is in the node's topology domains
	ofTaskVolumes              // the volumes of one task
	ofGroup                    // which nodes are chosen from
	layers        = iota
)

// stage is a step of the pipeline: it is taken where something changed that lies at its layer or below. It gives the nodes that go on.
type stage struct {
	at  layer
	run func(p *pipeline, rows []int32) (left []int32)
}

// stages are all that nodes go through to have a verdict and a score, in this order. The scores of the group come last, when it is known
// which nodes that is: see scoreGroup.
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

// fewRows are so few that to compute their rows' columns is not worth while.
const fewRows = 4

// pipeline brings some nodes of a class up to date. Many nodes go through it together, so that each row of the policy is asked of all that
// the rows before it left. A node on which anything errs is dropped, and goes through it alone when the others are done: so what a
// fault names, and the order of faults, are those of nodes computed one after the other. So do nodes of which there are few.
type pipeline struct {
	c       *Class
	f       *language.Frame
	changed layer // from where on the nodes are asked
	alone   bool  // one node is taken through
	stages  []stage
	Few     int // so few rows are asked one by one: to compute their columns is not worth while

	selection
	questions []question // that were asked of nodes together
	Batch     eval.Batch
	bools     []bool
	numbers   []float64
	others    []int32 // of missing
}

// Update takes nodes through the stages that something of them changed for.
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

// each takes nodes through one by one.
func (p *pipeline) each(rows []int32) {
	p.alone = true
	for i := range rows {
		p.f.Node = nil
		p.run(rows[i : i+1])
	}
}

// together takes many nodes through at once, and those that were dropped one by one.
func (p *pipeline) together(rows []int32) {
	p.alone, p.questions = false, p.questions[:0]
	p.run(rows)
	p.tally()
	if dropped := p.dropped; len(dropped) > 0 {
		for _, row := range dropped {
			p.c.Cells[row].Verdict = notOffered // its old verdict is not counted any more
		}
		p.each(p.c.v.InOrder(dropped))
	}
}

// run takes nodes through all stages.
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

// enter takes nodes out of the counts, and gives those of which anything is to be asked: they have no verdict against them yet.
func (p *pipeline) enter(rows []int32) []int32 {
	c, n := p.c, p.c.v.nodes
	return p.only(rows, func(row int32) bool {
		x := &c.Cells[row]
		switch p.changed {
		case ofTaskVolumes:
			return x.Verdict == 0 || x.Verdict == noDevices // what the class counted is not the task's; rows come before devices
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

// leave counts the nodes in again.
func (p *pipeline) leave(rows []int32) {
	c, n := p.c, p.c.v.nodes
	for _, row := range rows {
		if !p.isDropped(row) {
			c.Cells[row].object = n.Object[row] + 1
			c.count(row, 1)
		}
	}
}

// askOfObject asks what reads nothing of a node but its object, where that is another.
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

// askOfNode asks what reads the node as it is now.
func (p *pipeline) askOfNode(rows []int32) []int32 {
	left := p.ask(ofNode, rows)
	for _, row := range rows {
		p.c.Cells[row].plain = p.c.Cells[row].Verdict
	}
	return left
}

// askOfDomains asks what reads who is in a node's topology domains.
func (p *pipeline) askOfDomains(rows []int32) []int32 { return p.ask(ofDomains, rows) }

// room finds whether a node has what the task asks for, and devices for it. Only such nodes are scored.
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
	case !n.FitsFuture(c.Task.Request, row): // what is promised to others is theirs, though it is idle still
		return noFit
	case now:
		return fitsNow
	}
	return fitsLater
}

// askOfVolumes asks what reads a task's volumes; its answers are no part of a class.
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

// ask writes the first predicate of a layer that says no of each node, and gives the nodes of which none does.
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

// passed are the nodes that nothing is against yet.
func (p *pipeline) passed(rows []int32) []int32 {
	cells := p.c.Cells
	return p.only(rows, func(row int32) bool { return cells[row].Verdict == 0 })
}

// score asks the scores that do not depend on the group, where what they read changed, and adds up those without normalisation.
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
				state.Raw[k][row] = math.NaN() // until it is known which nodes are chosen from
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
