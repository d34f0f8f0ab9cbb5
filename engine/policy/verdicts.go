package policy

import (
	"slices"

	"github.com/google/cel-go/common/types/ref"

	"github.com/celsius-scheduler/celsius/engine/language"
	"github.com/celsius-scheduler/celsius/engine/model"
)

// asker evaluates rows of the policy, and counts evaluations and errors.
type asker interface {
	Frame() *language.Frame // lends one; it is given back with done
	Done()
	Guard(r *Rule, f *language.Frame) (has bool, err ref.Val)
	Opinion(r *Rule, f *language.Frame) language.Opinion
	Says(r *Rule, f *language.Frame) language.Opinion
	Score(r *Rule, f *language.Frame) float64
	Value(r *Rule, f *language.Frame) float64
	HoldsEach(q *query, f *language.Frame, rows []int32, out []bool) (failed []int32)
	NumberEach(q *query, f *language.Frame, rows []int32, out []float64) (failed []int32)
	AskedTogether(r *Rule, nodes int)
	Errors() uint64
	Text(r *Rule, f *language.Frame) string
}

// verdicts say on which nodes tasks can be placed, and which is best: by classes of tasks, with all that these share and what brings them
// up to date.
type verdicts struct {
	*language.World
	ask    asker
	policy *Policy
	plan   *columns
	c      *model.Cluster
	nodes  *model.Nodes

	classes classStore
	scratch *Class               // where nothing can be kept
	ofTask  *Class               // a class as the last task with volumes saw it
	volumes *language.VolumeMemo // of that task; nil: nothing is remembered
	results results

	alike    alike
	pipeline pipeline
	ordered  ordered
	totals   []float64 // of the last choice

	keyText   []byte // scratch
	epochText text
	devices   deviceScratch
	ofNodes   sizes
}

// text is one that is made again and again, with the room that it is written into.
type text struct {
	text string
	room []byte
}

// results are those of rows for all classes that are in use.
type results struct {
	opinions resultStore[language.Opinion]
	values   resultStore[float64]
	left     bool // classes may have left some
}

// ordered is memory for rows in the nodes' order.
type ordered struct {
	keys []uint64
	rows []int32
}

func (v *verdicts) init(w *language.World, p *Policy, ask asker) {
	c := w.Cluster()
	*v = verdicts{World: w, ask: ask, policy: p, plan: planOf(p), c: c, nodes: &c.Nodes}
	v.classes = classStore{byKey: map[string]*Class{}, entries: mostEntries}
	v.results.opinions.by, v.results.values.by = map[string]*rowResults[language.Opinion]{}, map[string]*rowResults[float64]{}
	v.alike.nodes, v.pipeline.stages, v.pipeline.few = v.nodes, stages(), fewRows
	v.ofTask = newClass(v)
	v.ofTask.oneTask = true
}

func (v *verdicts) of(t *model.Task) *Class {
	c := v.classOf(t)
	if t.HasVolumes && v.plan.ofVolumes {
		return c.withVolumes(t)
	}
	return c
}

func (v *verdicts) classOf(t *model.Task) *Class {
	if v.plan.single {
		if v.scratch == nil {
			v.scratch = newClass(v)
		}
		v.scratch.task = t
		v.scratch.computeAll()
		return v.scratch
	}
	c := v.classes.of(v, v.classKey(t))
	c.task = t
	c.catchUp()
	return c
}

// begin starts a cycle.
func (v *verdicts) begin(cycle uint64) {
	v.results.left = v.classes.begin(cycle) || v.results.left
	if v.results.left {
		v.results.left = false
		v.forget()
	}
}

// forget drops the results of rows for classes that are no more, or that read another epoch since.
func (v *verdicts) forget() {
	for _, c := range v.classes.byKey {
		c.rows.hold()
	}
	if v.scratch != nil {
		v.scratch.rows.hold()
	}
	v.results.opinions.forget()
	v.results.values.forget()
}

// joined notes that a class has other results than before. Where many are of the past they are forgotten.
func (v *verdicts) joined() {
	x := &v.results
	x.left = true
	if rows := len(v.plan.predicates) + len(v.plan.scores); len(x.opinions.by)+len(x.values.by) > 2*(len(v.classes.byKey)+1)*rows {
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
