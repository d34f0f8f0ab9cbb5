package verdict

import (
	"github.com/celsius-scheduler/celsius/engine/follow"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/slab"
)

// What stands in a verdict beside 0 (the node can be chosen where the task fits) and the numbers of rules.
const (
	notOffered = -1 // no node in this row, or not ready
	noDevices  = -2
)

// fit says how a task's request meets a node.
type fit uint8

const (
	noFit     fit = iota
	fitsNow       // within idle
	fitsLater     // within what will be idle when all that is releasing is gone
)

// Class is the tasks that agree on everything that the active rows read, with what is known of each node for them. It has three doors:
// catchUp brings what it knows up to date, Choose finds the best node, Rejections says why others are none.
type Class struct {
	v    *Verdicts
	Task *model.Task
	key  string
	used uint64 // cycle
	turn uint64 // when it was used last
	// oneTask says that it is but what one task with volumes sees of its class.
	oneTask bool

	Cursor  follow.Cursor[int32] // in the log of nodes
	epoch   string
	Cells   []cell             // by row of the node table
	fitting [fitsLater + 1]int // how many cells fit, now and later
	// touched is memory for a list of rows.
	touched []int32

	domains    domains
	Rows       classRows
	Chooser    chooser
	rejections rejections
}

// cell is what a class knows of a node: what is read and written together when the node changed.
type cell struct {
	Version uint64  // of the node when it was looked at last
	object  uint64  // of its object, plus 1
	base    float64 // sum of the scores without normalisation
	Verdict int16   // 0 is fit, else the rule that rejected, or notOffered, noDevices
	statics int16   // verdict of the rows that read of the node nothing but its object
	plain   int16   // of all rows that do not read who is in the node's topology domains
	Fits    fit
	scored  bool // static scores are computed
}

// in says that the node is in the group of those that fit now, or later.
func (x *cell) in(group fit) bool { return x.Verdict == 0 && x.Fits == group }

func newClass(v *Verdicts) *Class {
	c := &Class{v: v}
	c.Chooser.c, c.rejections.c, c.Rows.c = c, c, c
	return c
}

// catchUp brings the class up to date with the nodes that changed, and with those in whose topology domains something did.
func (c *Class) catchUp() {
	n := c.v.nodes
	epoch := c.v.epoch()
	entries, ok := c.Cursor.Read(&n.Log)
	if !ok || epoch != c.epoch || len(c.Cells) != len(n.Rows) || len(n.Rows) == 0 || c.v.Plan.volatile || c.otherTopology() {
		c.computeAll()
		return
	}
	touched := c.touched[:0]
	for _, row := range entries {
		if x := &c.Cells[row]; x.Version != n.Version[row] {
			x.Version = n.Version[row]
			touched = append(touched, row)
		}
	}
	c.touched = touched
	c.Update(OfObject, touched)
	if c.domains.context != nil {
		c.lookAround()
		c.Update(ofDomains, c.domains.around)
		c.scoreGroup(touched)
	}
}

// computeAll computes all cells, in the nodes' order: which node is named first where a row errs must not depend
// on the order in which the nodes came.
//
// It also notes the epoch, because classes share the results of rows by it.
func (c *Class) computeAll() {
	rows := len(c.v.nodes.Rows)
	c.epoch = c.v.epoch()
	c.fitting = [fitsLater + 1]int{}
	c.Cursor.Skip(&c.v.nodes.Log)
	c.rejections.forget()
	c.Chooser.tournament.made = false
	c.Cells = slab.Resized(c.Cells, rows)
	for row := range rows {
		c.Cells[row].Verdict = notOffered
	}
	c.meet()
	c.Rows.begin()
	c.Update(OfObject, c.v.nodes.ByOrder())
	c.domains.sizes = c.domains.sizes[:0]
	c.scoreGroup(nil)
}

// count counts a node in, or out, among those that a task can be placed on.
func (c *Class) count(row int32, by int) {
	x := &c.Cells[row]
	if x.Verdict != 0 || x.Fits == noFit {
		return
	}
	c.fitting[x.Fits] += by
	if c.domains.group != nil {
		c.domains.group.Add(row, uint8(x.Fits), int32(by))
	}
}

// Want is the group that a node is chosen from: those that fit now, or, where there are none, later.
func (c *Class) Want() fit {
	if c.fitting[fitsNow] > 0 {
		return fitsNow
	}
	return fitsLater
}
