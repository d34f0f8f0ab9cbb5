package policy

import (
	"slices"

	"github.com/celsius-scheduler/celsius/engine/model"
)

// verdicts are the classes of tasks that are in use, with all that they share, and what brings them up to date.
type verdicts struct {
	s     *Session
	plan  *columns
	nodes *model.Nodes

	byKey   map[string]*Class
	spare   []*Class    // of the past; their memory is used again
	entries int         // the most that all of them have
	turn    uint64      // of the last class that was used
	scratch *Class      // where nothing can be kept
	ofTask  *Class      // a class as the last task with volumes saw it
	volumes *volumeMemo // of that task; nil: nothing is remembered
	// opinions and values are the results of the rows of predicates and of scores; left says that classes may have left some.
	opinions resultStore[Opinion]
	values   resultStore[float64]
	left     bool

	alike    alike
	pipeline pipeline
	ordered  ordered
	totals   []float64 // of the last choice
}

// ordered is memory for rows in the nodes' order.
type ordered struct {
	keys []uint64
	rows []int32
}

// mostEntries is how many entries, one a node each, all classes have together: some 100 bytes each.
const mostEntries = 1 << 23

func (v *verdicts) init(s *Session) {
	*v = verdicts{s: s, plan: &s.columns, nodes: &s.c.Nodes, byKey: map[string]*Class{}, entries: mostEntries}
	v.opinions.by, v.values.by = map[string]*rowResults[Opinion]{}, map[string]*rowResults[float64]{}
	v.alike.nodes, v.pipeline.stages = v.nodes, stages()
	v.ofTask = newClass(v)
	v.ofTask.oneTask = true
}

// Class gives the class of a task, brought up to date, as the task sees it. It is valid until the next call.
func (s *Session) Class(t *model.Task) *Class {
	c := s.verdicts.of(t)
	if t.HasVolumes && s.columns.ofVolumes {
		return c.withVolumes(t)
	}
	return c
}

func (v *verdicts) of(t *model.Task) *Class {
	if v.plan.single || v.s.NoCache {
		if v.scratch == nil || v.s.NoCache {
			v.scratch = newClass(v)
		}
		v.scratch.task, v.scratch.used = t, v.s.cycle
		v.scratch.computeAll()
		return v.scratch
	}
	key := v.s.classKey(t)
	c := v.byKey[key]
	if c == nil {
		c = v.vacant()
		c.key, v.byKey[key] = key, c
	}
	v.turn++
	c.task, c.used, c.turn = t, v.s.cycle, v.turn
	c.catchUp()
	return c
}

// vacant is a class for a new kind of tasks: a new one, or one of the past, or where there are as many as may be, the one that was
// not used for the longest time.
func (v *verdicts) vacant() *Class {
	if len(v.byKey) < 1+v.entries/(len(v.nodes.Rows)+1) {
		last := len(v.spare) - 1
		if last < 0 {
			return newClass(v)
		}
		c := v.spare[last]
		v.spare = v.spare[:last]
		c.cells = c.cells[:0] // so that all is computed anew
		return c
	}
	var oldest *Class
	for _, c := range v.byKey {
		if oldest == nil || c.turn < oldest.turn {
			oldest = c
		}
	}
	delete(v.byKey, oldest.key)
	oldest.cells = oldest.cells[:0]
	return oldest
}

// begin starts a cycle: classes that were not used in the last ones are let go.
func (v *verdicts) begin() {
	for key, c := range v.byKey {
		if c.used+2 < v.s.cycle {
			delete(v.byKey, key)
			v.left = true
			if len(v.spare) < mostSpare {
				v.spare = append(v.spare, c)
			}
		}
	}
	if v.left {
		v.left = false
		v.forget()
	}
}

// forget drops the results of rows for classes that are no more, or that read another epoch since.
func (v *verdicts) forget() {
	for _, c := range v.byKey {
		c.rows.hold()
	}
	if v.scratch != nil {
		v.scratch.rows.hold()
	}
	v.opinions.forget()
	v.values.forget()
}

// joined notes that a class has other results than before. Where many are of the past they are forgotten.
func (v *verdicts) joined() {
	v.left = true
	if rows := len(v.plan.predicates) + len(v.plan.scores); len(v.opinions.by)+len(v.values.by) > 2*(len(v.byKey)+1)*rows {
		v.forget()
	}
}

// versionsOf are by row: a row's answer for a node holds as long as its version does.
func (v *verdicts) versionsOf(r *rowPlan) []uint64 {
	if r.static {
		return v.nodes.Object
	}
	return v.nodes.Version
}

// inOrder lists rows in the nodes' order. It holds until the next call.
func (v *verdicts) inOrder(rows []int32) []int32 {
	x := &v.ordered
	x.keys, x.rows = x.keys[:0], append(x.rows[:0], rows...)
	if len(rows) < 2 {
		return x.rows
	}
	for _, row := range rows {
		x.keys = append(x.keys, uint64(v.nodes.Order[row])<<32|uint64(row))
	}
	slices.Sort(x.keys)
	for i, key := range x.keys {
		x.rows[i] = int32(uint32(key))
	}
	return x.rows
}
