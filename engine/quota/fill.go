package quota

import (
	"math"
	"slices"

	"github.com/celsius-scheduler/celsius/engine/model"
)

// Fill is what a stream of typical tasks can be expected to fill of a node's devices before it ends. It never changes.
type Fill struct {
	of      *Typical
	hole    [model.WholeGPU + 1]float64 // by the thousandths that are free on a device
	weights []float64                   // of the shapes, for the part that is usable
}

// NewFill is for a stream that goes on for horizon tasks, on the average: after each of them it ends with a chance of 1/horizon.
//
// A device of which h is free is given to whatever comes first and fits, again and again. With w(m) the part of the stream
// that asks for m of a device, what it can be expected to be filled with is
//
//	v(h) = sum over m <= h of w(m) (m + v(h-m)) / (sum over m <= h of w(m) + 1/horizon)
//
// so a hole is worth little that only rare tasks fit into, or that none fits into well. A task that asks for several
// devices counts as that many.
//
// In the part of it that is usable a shape counts by its part of the stream over its reach: of what could run anywhere a device is one
// of many that will do, and of what needs a rare model, or a node with many devices, one of few. A shape that could run nowhere does
// not count.
func NewFill(t *Typical, horizon float64) *Fill {
	f := &Fill{of: t, weights: make([]float64, len(t.shapes))}
	weights := make([]float64, len(t.needs))
	for i := range t.shapes {
		if s := &t.shapes[i]; s.need >= 0 && s.reach > 0 {
			weights[s.need] += s.weight * float64(s.count)
			f.weights[i] = s.weight / float64(s.reach)
		}
	}
	for h := range f.hole {
		filled, all := 0.0, 1/horizon
		for i, need := range t.needs {
			if need > int64(h) {
				break
			}
			filled += weights[i] * (float64(need) + f.hole[h-int(need)])
			all += weights[i]
		}
		f.hole[h] = filled / all
	}
	return f
}

// Of is the thousandths of devices that are to be expected: what the devices one by one can be filled with, times the part of it
// for which there is CPU and room for several at once. That part is the mean over the shapes, weighted as NewFill says, of how many of
// the places that the devices have for it the CPU suffices for; 0 for a shape that may not use the model, or that asks for more devices
// than have room. Shapes that no single device has room for, or that ask for none, do not count. It costs a step for each amount asked
// for and device, and each shape.
func (f *Fill) Of(r Room) float64 {
	first, _ := slices.BinarySearch(r.GPUs, 1)
	free := r.GPUs[first:]
	holes := 0.0
	for _, h := range free {
		holes += f.hole[min(h, model.WholeGPU)]
	}
	if holes == 0 {
		return 0
	}
	var few [fewNeeds]int64
	places := few[:]
	if len(f.of.needs) > fewNeeds {
		places = make([]int64, len(f.of.needs))
	}
	for i, need := range f.of.needs {
		places[i] = placesOn(free, need)
	}
	return holes * f.usable(r, places)
}

// placesOn is how many tasks that ask for so much of one device find room on devices, ascending by what is free.
func placesOn(free []int64, need int64) (count int64) {
	last, each := int64(-1), int64(0)
	for _, h := range slices.Backward(free) {
		if h < need {
			break
		}
		if h != last { // most devices have all free, or as much as others
			last, each = h, h/need
		}
		count += each
	}
	return count
}

// usable is the part for which there is CPU and room for several at once; places counts, by need, those on the devices.
func (f *Fill) usable(r Room, places []int64) float64 {
	named := slices.Index(f.of.models, r.Model)
	sum, weights := 0.0, 0.0
	for i := range f.of.shapes {
		s, weight := &f.of.shapes[i], f.weights[i]
		if s.need < 0 || s.reach == 0 {
			continue
		}
		n, count := places[s.need], int64(s.count)
		switch {
		case s.models != nil && (named < 0 || !s.models[named]):
		case n == 0 && count == 1:
			continue
		case n < count:
		case s.cpu <= 0:
			sum += weight
		default:
			if has := math.Floor(max(r.CPU, 0)/s.cpu) * float64(s.count); has < float64(n) {
				sum += weight * (has / float64(n))
			} else {
				sum += weight
			}
		}
		weights += weight
	}
	if weights == 0 {
		return 0
	}
	return sum / weights
}
