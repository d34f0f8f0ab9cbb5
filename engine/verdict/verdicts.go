package verdict

import (
	"slices"

	"github.com/google/cel-go/common/types/ref"

	"github.com/celsius-scheduler/celsius/engine/language"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
)

// Asker evaluates rows of the policy, and counts evaluations and errors.
type Asker interface {
	Frame() *language.Frame // lends a frame; return it with Done
	Done()
	Guard(r *policy.Rule, f *language.Frame) (has bool, err ref.Val)
	Opinion(r *policy.Rule, f *language.Frame) language.Opinion
	Says(r *policy.Rule, f *language.Frame) language.Opinion
	Score(r *policy.Rule, f *language.Frame) float64
	Value(r *policy.Rule, f *language.Frame) float64
	HoldsEach(q *Query, f *language.Frame, rows []int32, out []bool) (failed []int32)
	NumberEach(q *Query, f *language.Frame, rows []int32, out []float64) (failed []int32)
	AskedTogether(r *policy.Rule, nodes int)
	Errors() uint64
	Text(r *policy.Rule, f *language.Frame) string
}

// Verdicts determines on which nodes tasks can be placed, and which node is best. It contains the classes of tasks, their shared data, and
// what updates them.
type Verdicts struct {
	*language.World
	ask    Asker
	policy *policy.Policy
	Plan   *Plan
	c      *model.Cluster
	nodes  *model.Nodes

	Classes classStore
	scratch *Class               // used if nothing can be cached
	ofTask  *Class               // the class of the last task with volumes, as that task saw it
	volumes *language.VolumeMemo // of that task; nil: nothing is cached
	Results results

	Alike    Alike
	Pipeline pipeline
	ofNodes  sizes
	reused
}

// reused is memory that is used again and again.
type reused struct {
	ordered   ordered
	totals    []float64 // the totals of the last choice
	keyText   []byte
	epochText text
	devices   deviceScratch
	changed   changedRows
}

// text is a text that is computed again and again, and its buffer.
type text struct {
	text string
	room []byte
}

// results contains the results of rows for all classes in use.
type results struct {
	Opinions resultStore[language.Opinion]
	Values   resultStore[float64]
	left     bool // some results may no longer belong to a class
}

// ordered is memory for rows in the nodes' order.
type ordered struct {
	keys []uint64
	rows []int32
}

// New returns Verdicts without classes.
func New(w *language.World, p *policy.Policy, ask Asker) *Verdicts {
	c := w.Cluster()
	v := &Verdicts{World: w, ask: ask, policy: p, Plan: planOf(p), c: c, nodes: &c.Nodes}
	v.Classes = classStore{ByKey: map[string]*Class{}, Entries: mostEntries}
	v.Results.Opinions.By, v.Results.Values.By = map[string]*rowResults[language.Opinion]{}, map[string]*rowResults[float64]{}
	v.Alike.Nodes, v.Pipeline.stages, v.Pipeline.Few = v.nodes, stages(), fewRows
	v.ofTask = newClass(v)
	v.ofTask.oneTask = true
	return v
}

// Of returns the updated class of a task, as the task sees it. It is valid until the next call.
func (v *Verdicts) Of(t *model.Task) *Class {
	c := v.classOf(t)
	if t.HasVolumes && v.Plan.ofVolumes {
		return c.withVolumes(t)
	}
	return c
}

func (v *Verdicts) classOf(t *model.Task) *Class {
	if v.Plan.single {
		if v.scratch == nil {
			v.scratch = newClass(v)
		}
		v.scratch.Task = t
		v.scratch.computeAll()
		return v.scratch
	}
	c := v.Classes.of(v, v.ClassKey(t))
	c.Task = t
	c.catchUp()
	return c
}

// Begin starts a cycle.
func (v *Verdicts) Begin(cycle uint64) {
	v.Results.left = v.Classes.begin(cycle) || v.Results.left
	if v.Results.left {
		v.Results.left = false
		v.forget()
	}
}

// forget drops the results of rows for classes that no longer exist, or that read another epoch since.
func (v *Verdicts) forget() {
	for _, c := range v.Classes.ByKey {
		c.Rows.hold()
	}
	if v.scratch != nil {
		v.scratch.Rows.hold()
	}
	v.Results.Opinions.forget()
	v.Results.Values.forget()
}

// joined records that a class has new results. If many results are unused, it drops them.
func (v *Verdicts) joined() {
	x := &v.Results
	x.left = true
	if rows := len(v.Plan.predicates) + len(v.Plan.Scores); len(x.Opinions.By)+len(x.Values.By) > 2*(len(v.Classes.ByKey)+1)*rows {
		v.forget()
	}
}

// versionsOf returns versions by row: a row's result for a node is valid while the version is the same.
func (v *Verdicts) versionsOf(r *Row) []uint64 {
	if r.Static {
		return v.nodes.Object
	}
	return v.nodes.Version
}

// InOrder sorts rows in the nodes' order. The result is valid until the next call.
func (v *Verdicts) InOrder(rows []int32) []int32 {
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
