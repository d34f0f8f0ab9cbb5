package verdict

import (
	"slices"

	"github.com/google/cel-go/common/types/ref"

	"github.com/celsius-scheduler/celsius/engine/language"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
)

// deviceScratch is memory for the devices of one node, for reuse.
type deviceScratch struct {
	later []model.GPU
	fit   []device
}

// device is a device that a task fits on, by its index on the node.
type device struct {
	index int
	score float64
}

// gpus lists the devices of a node: now, or after all releasing tasks are gone and all promised tasks are placed. The list is valid until
// the next call.
func (v *Verdicts) gpus(row int32, later bool) []model.GPU {
	if !later || !v.c.Nodes.Moves(row) {
		return v.c.Nodes.GPUs[row]
	}
	v.devices.later = model.GPUsLater(&v.c.Nodes, row, v.devices.later[:0])
	return v.devices.later
}

// deviceRows returns the rows that determine which devices a task may have.
func (v *Verdicts) deviceRows() []*policy.Rule { return v.policy.Rules(policy.DevicePredicates) }

func (v *Verdicts) devicesFit(t *model.Task, row int32, later bool) bool {
	count := int64(0)
	gpus := v.gpus(row, later)
	if len(v.deviceRows()) == 0 {
		for i := range gpus {
			if gpus[i].Takes(t) {
				count++
			}
		}
		return count >= t.GPUCount
	}
	f := v.ask.Frame().OfTask(t)
	defer v.ask.Done()
	node := v.NodeView(row)
	f.Node = node
	for i := range gpus {
		if gpus[i].Takes(t) && v.refusing(f, node, &gpus[i], later) == nil {
			count++
		}
	}
	return count >= t.GPUCount
}

// refusing returns the first row of devicePredicates that rejects a device, and points the frame to that device; nil: none does.
func (v *Verdicts) refusing(f *language.Frame, node *language.NodeView, g *model.GPU, later bool) *policy.Rule {
	if len(v.deviceRows()) == 0 {
		return nil
	}
	f.GPU = node.DeviceView(g, later)
	for _, r := range v.deviceRows() {
		if v.ask.Opinion(r, f) == language.No {
			return r
		}
	}
	return nil
}

// rowOfDevices returns the row of devicePredicates that leaves a task too few devices of a node that had enough. The frame is for the first
// device that the row rejects. nil: there is no such row.
func (v *Verdicts) rowOfDevices(t *model.Task, row int32, f *language.Frame) *policy.Rule {
	node := v.NodeView(row)
	f.Node = node
	var left []ref.Val
	gpus := v.gpus(row, true)
	for i := range gpus {
		if gpus[i].Takes(t) {
			left = append(left, node.DeviceView(&gpus[i], true))
		}
	}
	for _, r := range v.deviceRows() {
		if int64(len(left)) < t.GPUCount {
			return nil
		}
		var first ref.Val
		left = slices.DeleteFunc(left, func(gpu ref.Val) bool {
			f.GPU = gpu
			no := v.ask.Opinion(r, f) == language.No
			if no && first == nil {
				first = gpu
			}
			return no
		})
		if f.GPU = first; int64(len(left)) < t.GPUCount {
			return r
		}
	}
	return nil
}

// onDevices returns the verdict on a node that meets all other requirements of a task. It also returns whether the devices of the node
// suffice now, or only after pods that are terminating have released theirs.
func (v *Verdicts) onDevices(t *model.Task, row int32, fits fit) (verdict int16, with fit) {
	switch later := fits == fitsLater; {
	case v.devicesFit(t, row, later):
		return 0, fits
	case !later && v.c.Nodes.Moves(row) && v.devicesFit(t, row, true):
		return 0, fitsLater
	}
	return noDevices, fits
}

// Devices chooses the devices of a node for a task, by index in ascending order. It chooses those with the largest sums of deviceScores
// among the devices that are free enough; a tie goes to the lowest index. With later, it assumes that all releasing tasks are gone. If no
// row has an opinion, a part of a device comes from the fullest device that has it. Whole devices are then the first ones.
func (v *Verdicts) Devices(t *model.Task, row int32, later bool) []int {
	if t.GPUCount == 0 {
		return nil
	}
	fit := v.devices.fit[:0]
	f := v.ask.Frame().OfTask(t)
	defer v.ask.Done()
	node := v.NodeView(row)
	f.Node = node
	gpus := v.gpus(row, later)
	for i := range gpus {
		if g := &gpus[i]; g.Takes(t) && v.refusing(f, node, g, later) == nil {
			f.GPU = node.DeviceView(g, later)
			fit = append(fit, device{g.Index, v.deviceScore(t, g, f)})
		}
	}
	v.devices.fit = fit
	slices.SortStableFunc(fit, func(a, b device) int {
		switch {
		case a.score > b.score:
			return -1
		case a.score < b.score:
			return 1
		}
		return a.index - b.index
	})
	out := slices.Grow([]int(nil), min(len(fit), int(t.GPUCount)))
	for _, d := range fit[:min(len(fit), int(t.GPUCount))] {
		out = append(out, d.index)
	}
	slices.Sort(out)
	return out
}

// deviceScore returns the sum of the rows' scores for a device.
func (v *Verdicts) deviceScore(t *model.Task, g *model.GPU, f *language.Frame) float64 {
	sum, asked := 0.0, false
	for _, rule := range v.policy.Rules(policy.DeviceScores) {
		if v := v.ask.Score(rule, f); v == v {
			sum, asked = sum+v*rule.Weight, true
		}
	}
	if !asked && t.GPUMilli < model.WholeGPU {
		return -float64(g.Free)
	}
	return sum
}
