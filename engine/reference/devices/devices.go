// Package devices defines which devices of a node engine/reference gives to a task.
package devices

import (
	"cmp"
	"slices"

	"github.com/celsius-scheduler/celsius/engine/model"
)

// Rooms returns the devices of a node that are free enough for a task: now, or after all releasing tasks are gone and all promised tasks
// are placed.
func Rooms(nodes *model.Nodes, t *model.Task, row int32, later bool) (out []model.GPU) {
	gpus := nodes.GPUs[row]
	if later {
		gpus = model.GPUsLater(nodes, row, nil)
	}
	for i := range gpus {
		if gpus[i].Takes(t) {
			out = append(out, gpus[i])
		}
	}
	return out
}

// Choose returns the devices with the largest scores; of equal devices, the first. If score has no opinion, a part of a device comes from
// the fullest device that has it.
func Choose(t *model.Task, rooms []model.GPU, score func(gpu *model.GPU) (sum float64, asked bool)) (out []int) {
	scores := map[int]float64{}
	for i := range rooms {
		sum, asked := score(&rooms[i])
		if !asked && t.GPUMilli < model.WholeGPU {
			sum = -float64(rooms[i].Free)
		}
		scores[rooms[i].Index] = sum
	}
	slices.SortStableFunc(rooms, func(a, b model.GPU) int { return cmp.Compare(scores[b.Index], scores[a.Index]) })
	for _, gpu := range rooms[:min(len(rooms), int(t.GPUCount))] {
		out = append(out, gpu.Index)
	}
	slices.Sort(out)
	return out
}
