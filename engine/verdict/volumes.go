package verdict

import (
	"slices"

	"github.com/celsius-scheduler/celsius/engine/language"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/rules"
)

// heldByTask reports whether results of predicates on volumes stay valid while the task, the node and storage do not change.
func heldByTask(rows []*Row) bool {
	return !slices.ContainsFunc(rows, func(r *Row) bool {
		return r.Volumes && (!r.Reads.Only("task", "node") || slices.ContainsFunc(r.Reads.All, func(read rules.Read) bool {
			return !policy.OfVolumes(read) && (policy.BeyondNode(read) || read.Root == "task" && read.Changes > rules.ByObject)
		}))
	})
}

// volumeMemo returns the memo of a task, empty if the old one is not valid any more; nil if nothing can be cached.
func (v *Verdicts) volumeMemo(t *model.Task, rows int) *language.VolumeMemo {
	if !v.Plan.holdVolumes {
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

// withVolumes returns a class as one task with volumes sees it: it evaluates the rows that read volumes for the nodes that the class
// accepts. If storage changed since the last call for the task, it costs one evaluation per such node. Otherwise it costs one per changed
// node.
func (c *Class) withVolumes(t *model.Task) *Class {
	x := c.v.ofTask
	x.Task, x.epoch, x.touched = t, c.epoch, c.touched
	x.Cells, x.fitting = append(x.Cells[:0], c.Cells...), [fitsLater + 1]int{}
	x.rejections.at = 0
	x.domains = domains{context: c.domains.context}
	x.Rows = c.Rows
	x.Rows.c = x
	if c.domains.group != nil {
		x.domains.group = c.domains.context.NewGroup()
		x.Rows.ownGroupScores(len(x.Cells))
	}
	c.v.volumes = c.v.volumeMemo(t, len(x.Cells))
	x.Update(ofTaskVolumes, c.v.nodes.ByOrder())
	x.scoreGroup(nil)
	return x
}

// ownGroupScores copies the scores that depend on the group: volumes leave a task fewer nodes to choose from than its class has.
func (x *classRows) ownGroupScores(rows int) {
	x.Raw, x.values, x.ranges = slices.Clone(x.Raw), slices.Clone(x.values), slices.Clone(x.ranges)
	for k, of := range x.scoreLayers {
		if of == ofGroup {
			x.Raw[k], x.values[k], x.ranges[k] = make([]float64, rows), nil, oneValue{same: true}
		}
	}
}

// rejectedByVolumes returns the first of the predicates on volumes that rejects a node for a task, 0 if none does.
func (v *Verdicts) rejectedByVolumes(f *language.Frame, row int32) int16 {
	memo, version := v.volumes, v.nodes.Version[row]+1
	if memo != nil && memo.Version[row] == version {
		return memo.Verdict[row]
	}
	f.Point(row)
	verdict := int16(0)
	for _, r := range v.Plan.predicates {
		if r.Volumes && v.ask.Opinion(r.Rule, f) == language.No {
			verdict = int16(r.Number)
			break
		}
	}
	if memo != nil {
		memo.Verdict[row], memo.Version[row] = verdict, version
	}
	return verdict
}
