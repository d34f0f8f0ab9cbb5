// Package devices says which devices of a node engine/reference gives to a task.
package devices

import (
	"cmp"
	"slices"

	"github.com/celsius-scheduler/celsius/engine/model"
)

// Room is a device of a node, by its place there, that has enough free for a task.
type Room struct {
	Place int
	milli int64 // free
}

// Rooms are the devices that have enough free: now, or when all that is being released is gone and what is promised is taken.
func Rooms(nodes *model.Nodes, t *model.Task, row int32, later bool) (out []Room) {
	gpus := nodes.GPUs[row]
	if later {
		gpus = model.GPUsLater(nodes, row, nil)
	}
	for i := range gpus {
		if gpus[i].Takes(t) {
			out = append(out, Room{i, gpus[i].Free})
		}
	}
	return out
}

// Choose takes those with the largest scores, of equals the first. Where score has no opinion, a part of a device comes from the fullest
// that has it.
func Choose(nodes *model.Nodes, t *model.Task, row int32, later bool, score func(place int) (sum float64, asked bool)) (out []int) {
	if t.GPUCount == 0 {
		return nil
	}
	rooms, scores := Rooms(nodes, t, row, later), map[int]float64{}
	for _, r := range rooms {
		sum, asked := score(r.Place)
		if !asked && t.GPUMilli < model.WholeGPU {
			sum = -float64(r.milli)
		}
		scores[r.Place] = sum
	}
	slices.SortStableFunc(rooms, func(a, b Room) int { return cmp.Compare(scores[b.Place], scores[a.Place]) })
	for _, r := range rooms[:min(len(rooms), int(t.GPUCount))] {
		out = append(out, nodes.GPUs[row][r.Place].Index)
	}
	slices.Sort(out)
	return out
}
