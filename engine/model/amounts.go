package model

import (
	"iter"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Most is the largest amount that is read, in inner units: up to it, a float64 represents every whole number. A larger request becomes
// Most. A larger offer becomes Most - 1, so a request that is too large to count fits nowhere.
const Most = 1 << 53

// mostTold is the largest amount in output, in inner units. A sum may be larger than an int64.
const mostTold = 1 << 62

// AddExactly adds v to a sum. Beyond Most, a float64 does not represent every whole number, so rest stores the exact sum minus sum. If
// whole amounts are added and later subtracted in any order, nothing remains.
func AddExactly(sum, rest, v float64) (float64, float64) {
	rough := sum + v
	if rest == 0 && math.Abs(rough) < Most {
		return rough, 0
	}
	of := rough - sum
	rest += (sum - (rough - of)) + (v - of) // the rounding error (Knuth, TAOCP 4.2.2)
	near := rough + rest
	return near, rest - (near - rough)
}

// AddExactly adds v to r in a dimension that r has, and stores in rest the exact sum minus r. An empty rest is nil.
func (r *Resources) AddExactly(rest *Resources, i int, v float64) {
	sum, lacks := AddExactly(r.Get(i), rest.Get(i), v)
	r.Set(i, sum)
	if lacks == 0 && *rest == nil {
		return
	}
	rest.Set(i, lacks)
	if !slices.ContainsFunc(*rest, func(x float64) bool { return x == x && x != 0 }) {
		*rest = nil
	}
}

// Amount returns a quantity in the inner units of dimension i, at most Most. Fractions of an inner unit round up.
func (d *Dims) Amount(i int, q resource.Quantity) float64 {
	return float64(amountOf(q, d.units[i] == 1))
}

// Bytes returns a quantity as a whole number of bytes, at most Most.
func Bytes(q resource.Quantity) int64 { return amountOf(q, true) }

func amountOf(q resource.Quantity, whole bool) int64 {
	switch size := math.Abs(q.AsApproximateFloat64()); {
	case size >= 2*Most, !whole && size >= 2*Most/1000: // such an amount may not fit into an int64
		return Most * int64(q.Sign())
	case whole:
		return max(min(q.Value(), Most), -Most)
	}
	return max(min(q.MilliValue(), Most), -Most)
}

// beyond reports whether a quantity is far larger than an amount can be. Its cost does not grow with the quantity. Comparing and adding
// would first write out all digits, for example those of 1e10000000.
func beyond(q resource.Quantity) bool { return math.Abs(q.AsApproximateFloat64()) >= 2*Most }

// Tame replaces larger amounts by Most in each of the lists. Call it before any calculation: a user may write quantities so large that a
// single sum takes all memory. It changes such a list in place.
func Tame(lists ...corev1.ResourceList) {
	for _, list := range lists {
		for name, q := range list {
			if beyond(q) {
				list[name] = *resource.NewQuantity(Most*int64(q.Sign()), resource.DecimalSI)
			}
		}
	}
}

// TamePod applies Tame to the requests and limits of a pod's spec.
func TamePod(spec *corev1.PodSpec) {
	for list := range amountsOf(spec) {
		Tame(list)
	}
}

// amountsOf iterates over the lists of amounts in a pod's spec.
func amountsOf(spec *corev1.PodSpec) iter.Seq[corev1.ResourceList] {
	return func(yield func(corev1.ResourceList) bool) {
		for _, ctrs := range [...][]corev1.Container{spec.InitContainers, spec.Containers} {
			for i := range ctrs {
				if r := &ctrs[i].Resources; !yield(r.Requests) || !yield(r.Limits) {
					return
				}
			}
		}
		if r := spec.Resources; yield(spec.Overhead) && r != nil && yield(r.Requests) {
			yield(r.Limits)
		}
	}
}

// tame returns the pod, or a copy of it in which amounts can be added up.
func tame(o *corev1.Pod) *corev1.Pod {
	for list := range amountsOf(&o.Spec) {
		for _, q := range list {
			if beyond(q) {
				o = o.DeepCopy()
				TamePod(&o.Spec)
				return o
			}
		}
	}
	return o
}

// Offers converts a list of offered resources into amounts, as Resources does, but each amount is below Most.
func (d *Dims) Offers(list corev1.ResourceList) Resources {
	r := d.Resources(list)
	for i := range r {
		if r[i] >= Most {
			r[i] = Most - 1
		}
	}
	return r
}

// Quantity returns an amount of dimension i as a Kubernetes quantity, rounded to whole inner units.
func (d *Dims) Quantity(i int, v float64) *resource.Quantity {
	v = max(min(v, mostTold), -mostTold)
	switch {
	case d.units[i] == 1:
		return resource.NewQuantity(int64(math.Round(v)), resource.BinarySI)
	case math.Mod(v, 1000) == 0:
		return resource.NewQuantity(int64(v/1000), resource.DecimalSI)
	}
	return resource.NewMilliQuantity(int64(math.Round(v)), resource.DecimalSI)
}
