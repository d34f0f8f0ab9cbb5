package quota

import (
	"math"
	"slices"

	"github.com/celsius-scheduler/celsius/engine/model"
)

// Fill estimates how much of a node's devices a stream of typical tasks will fill before it ends. It never changes.
type Fill struct {
	of      *Typical
	hole    [model.WholeGPU + 1]float64 // by the free thousandths of a device
	weights []float64                   // of the shapes, for the usable part
}

// NewFill returns a Fill for a stream of horizon tasks on average: after each task, it ends with probability 1/horizon.
//
// A device with h free thousandths is given to the next task that fits, again and again. Let w(m) be the part of the stream that requests m
// thousandths of a device. The expected filled amount is
//
//	v(h) = sum over m <= h of w(m) (m + v(h-m)) / (sum over m <= h of w(m) + 1/horizon)
//
// So a hole has little value if only rare tasks fit into it, or if no task fits into it well. A task that requests several devices counts
// as that many tasks.
//
// The usable part weights a shape by its part of the stream divided by its reach. For a task that can run anywhere, a device is one of
// many. For a task that needs a rare model, or a node with many devices, it is one of few. A shape that can run nowhere does not count.
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

// Of returns the expected filled thousandths of devices: the sum over the devices separately, times the part that is usable. The usable
// part has enough CPU, and enough devices for tasks that request several. It is the mean over the shapes, weighted as in NewFill, of the
// part of its places on the devices for which the CPU suffices. It is 0 for a shape that may not use the model, or that requests more
// devices than have enough free. Shapes that fit on no single device, or that request none, do not count. The cost is one step for each
// requested amount and device, and for each shape.
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

// placesOn returns how many tasks that request need of one device fit on devices, which are in ascending order of their free amount.
func placesOn(free []int64, need int64) (count int64) {
	last, each := int64(-1), int64(0)
	for _, h := range slices.Backward(free) {
		if h < need {
			break
		}
		if h != last { // most devices are free, or have the same free amount as others
			last, each = h, h/need
		}
		count += each
	}
	return count
}

// usable returns the usable part: see Of. places contains, by need, the number of places on the devices.
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
