package verdict

import (
	"github.com/celsius-scheduler/celsius/engine/follow"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/slab"
)

// Values of a verdict other than 0 (the node can be chosen if the task fits) and the numbers of rules.
const (
	notOffered = -1 // the row has no node, or the node is not ready
	noDevices  = -2
)

// fit states how a task's request fits a node.
type fit uint8

const (
	noFit     fit = iota
	fitsNow       // fits the idle resources
	fitsLater     // fits the resources that are idle after all releasing tasks are gone
)

// Class contains the tasks that agree on everything that the active rows read, and the cached results for each node. catchUp updates the
// results, Choose finds the best node, and Rejections states why the other nodes are rejected.
type Class struct {
	v    *Verdicts
	Task *model.Task
	key  string
	used uint64 // cycle
	turn uint64 // when it was last used
	// oneTask states that this is the view of one task with volumes on its class.
	oneTask bool

	Cursor  follow.Cursor[int32] // in the log of nodes
	epoch   string
	Cells   []cell             // by row of the node table
	fitting [fitsLater + 1]int // number of cells that fit, now and later
	// touched is memory for a list of rows.
	touched []int32

	domains    domains
	Rows       classRows
	Chooser    chooser
	rejections rejections
}

// cell contains the cached results of a class for a node.
type cell struct {
	Version uint64  // the version of the node at its last evaluation
	object  uint64  // the version of the node's object, plus 1
	base    float64 // sum of the scores without normalisation
	Verdict int16   // 0 if fit applies, otherwise the rule that rejected, or notOffered, noDevices
	statics int16   // verdict of the rows that read only the object of the node
	plain   int16   // verdict of all rows that do not read the tasks in the node's topology domains
	Fits    fit
	scored  bool // static scores are computed
}

// in reports whether the node is in the group of those that fit now, or later.
func (x *cell) in(group fit) bool { return x.Verdict == 0 && x.Fits == group }

func newClass(v *Verdicts) *Class {
	c := &Class{v: v}
	c.Chooser.c, c.rejections.c, c.Rows.c = c, c, c
	return c
}

// catchUp updates the class for the nodes that changed, and for those whose topology domains changed.
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

// computeAll computes all cells, in the nodes' order: if a row fails, the node that is named first must not depend on the order in which
// the nodes came.
//
// It also records the epoch, because classes share the results of rows by it.
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

// count adds by to the number of nodes that fit, if the node does.
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

// Want returns the group to choose from: the nodes that fit now; if there are none, those that fit later.
func (c *Class) Want() fit {
	if c.fitting[fitsNow] > 0 {
		return fitsNow
	}
	return fitsLater
}
