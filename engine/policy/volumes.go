package policy

import (
	"slices"

	"github.com/celsius-scheduler/celsius/engine/language"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/rules"
)

// heldByTask says that what the predicates on volumes say to a task holds while neither it, nor the node, nor anything of storage changes.
func heldByTask(rows []*rowPlan) bool {
	return !slices.ContainsFunc(rows, func(r *rowPlan) bool {
		return r.volumes && (!r.Reads.Only("task", "node") || slices.ContainsFunc(r.Reads.All, func(read rules.Read) bool {
			return !ofVolumes(read) && (beyondNode(read) || read.Root == "task" && read.Changes > rules.ByObject)
		}))
	})
}

// volumeMemo is the memo of a task, empty where it does not hold any more; nil where nothing can be remembered.
func (v *verdicts) volumeMemo(t *model.Task, rows int) *language.VolumeMemo {
	if !v.plan.holdVolumes {
		return nil
	}
	x := v.TaskView(t)
	m, now := x.Volumes, v.c.Storage.Version
	if m == nil || m.Pod != t.Object || m.Status != t.Status || m.Storage != now || len(m.Verdict) != rows {
		m = &language.VolumeMemo{
			Pod: t.Object, Status: t.Status, Storage: now, Verdict: make([]int16, rows), Version: make([]uint64, rows),
		}
		x.Volumes = m
	}
	return m
}

// withVolumes is a class as one task with volumes sees it: what the class lets through is asked of
// the rows that read volumes. It costs as many evaluations of them as there are such nodes, when something of storage
// has changed since the task was asked about; else as many as nodes that have changed.
func (c *Class) withVolumes(t *model.Task) *Class {
	x := c.v.ofTask
	x.task, x.epoch, x.touched = t, c.epoch, c.touched
	x.cells, x.fitting = append(x.cells[:0], c.cells...), [fitsLater + 1]int{}
	x.rejections.at = 0
	x.domains = domains{context: c.domains.context}
	x.rows = c.rows
	x.rows.c = x
	if c.domains.group != nil {
		x.domains.group = c.domains.context.NewGroup()
		x.rows.ownGroupScores(len(x.cells))
	}
	c.v.volumes = c.v.volumeMemo(t, len(x.cells))
	x.update(ofTaskVolumes, c.v.nodes.ByOrder())
	x.scoreGroup(nil)
	return x
}

// ownGroupScores makes the scores of the group its own: volumes leave a task fewer nodes to choose from than its class has.
func (x *classRows) ownGroupScores(rows int) {
	x.raw, x.values, x.ranges = slices.Clone(x.raw), slices.Clone(x.values), slices.Clone(x.ranges)
	for k, of := range x.scoreLayers {
		if of == ofGroup {
			x.raw[k], x.values[k], x.ranges[k] = make([]float64, rows), nil, oneValue{same: true}
		}
	}
}

// rejectedByVolumes gives the first of the predicates on volumes that says no to a task on a node, 0 if none does.
func (v *verdicts) rejectedByVolumes(f *language.Frame, row int32) int16 {
	memo, version := v.volumes, v.nodes.Version[row]+1
	if memo != nil && memo.Version[row] == version {
		return memo.Verdict[row]
	}
	f.Point(row)
	verdict := int16(0)
	for _, r := range v.plan.predicates {
		if r.volumes && v.ask.Opinion(r.Rule, f) == language.No {
			verdict = int16(r.Number)
			break
		}
	}
	if memo != nil {
		memo.Verdict[row], memo.Version[row] = verdict, version
	}
	return verdict
}
