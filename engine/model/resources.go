package model

import (
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/celsius-scheduler/celsius/engine/cards"
)

// Dimensions that every cluster has, in this order.
const (
	CPU = iota
	Memory
	Pods
)

// Slack is by how much a request may exceed an amount and still fit, in inner units of a dimension (docs/volcano.md, Amounts).
const Slack = 0.1

// Dims maps resource names to dimensions. Names are added, but never removed. Each name makes every list of amounts of the cluster longer,
// so the number of names that users write is limited.
type Dims struct {
	names []string
	units []float64
	index map[string]int
	// perObject limits the number of names in one object of a user.
	perObject int
}

// namesOfUsers limits the number of all names, as a multiple of the limit of one object. Above it, no object of a user adds a name.
const namesOfUsers = 16

// NewDims returns Dims that contain cpu, memory and pods.
func NewDims() *Dims {
	d := &Dims{index: map[string]int{}, perObject: DefaultLimits().Resources}
	for _, n := range []string{"cpu", "memory", "pods"} {
		d.Intern(n)
	}
	return d
}

// Len returns the number of names.
func (d *Dims) Len() int { return len(d.names) }

// Name returns the name of a dimension.
func (d *Dims) Name(i int) string { return d.names[i] }

// Unit returns how many inner units are one unit of a quantity: 1000 for cpu (milli-cores) and for countable resources, 1 for bytes. The
// memory of a large cluster in milli-bytes would be more than a float64 represents exactly.
func (d *Dims) Unit(i int) float64 { return d.units[i] }

// Devices returns the unit of each dimension that Kubernetes counts in whole numbers, as it does for extended resources, and 0 for all
// others.
func (d *Dims) Devices() []float64 {
	out := make([]float64, d.Len())
	for i, name := range d.names {
		if i > Pods && strings.Contains(name, "/") && d.units[i] > 1 {
			out[i] = d.units[i]
		}
	}
	return out
}

// Find returns the dimension of a known name.
func (d *Dims) Find(name string) (int, bool) {
	i, ok := d.index[name]
	return i, ok
}

// Intern returns the dimension of a name, and adds the name if it is new.
func (d *Dims) Intern(name string) int {
	if i, ok := d.index[name]; ok {
		return i
	}
	i := len(d.names)
	unit := 1000.0
	if inBytes(name) {
		unit = 1
	}
	d.names, d.units, d.index[name] = append(d.names, name), append(d.units, unit), i
	return i
}

// Sorted lists all dimensions: cpu, memory, pods, then the others by name.
func (d *Dims) Sorted() []int {
	out := make([]int, len(d.names))
	for i := range out {
		out[i] = i
	}
	slices.SortFunc(out[Pods+1:], func(a, b int) int { return strings.Compare(d.names[a], d.names[b]) })
	return out
}

func inBytes(name string) bool {
	name = strings.TrimPrefix(strings.TrimPrefix(name, "requests."), "limits.")
	return name == "memory" || name == "ephemeral-storage" || name == "storage" || name == GPUMemoryResource ||
		strings.HasPrefix(name, "hugepages-") ||
		strings.HasSuffix(name, ".storageclass.storage.k8s.io/requests.storage")
}

// Resources is a partial map from resource to amount, indexed by Dims, in whole inner units. An amount that is NaN, or past the end, is
// absent. nil is empty.
type Resources []float64

// Absent marks a dimension that a Resources lacks.
func Absent() float64 { return math.NaN() }

// Has reports whether dimension i is present.
func (r Resources) Has(i int) bool { return i < len(r) && r[i] == r[i] }

// Get returns the amount in dimension i, in inner units; 0 if absent.
func (r Resources) Get(i int) float64 {
	if i < len(r) && r[i] == r[i] {
		return r[i]
	}
	return 0
}

// Set sets the amount in dimension i, in inner units. It extends r if necessary.
func (r *Resources) Set(i int, v float64) {
	for len(*r) <= i {
		*r = append(*r, Absent())
	}
	(*r)[i] = v
}

// Clone returns a copy of r.
func (r Resources) Clone() Resources { return slices.Clone(r) }

// Equal reports whether both have the same dimensions and amounts.
func (r Resources) Equal(b Resources) bool {
	for i := range max(len(r), len(b)) {
		if r.Has(i) != b.Has(i) || r.Get(i) != b.Get(i) {
			return false
		}
	}
	return true
}

// combine applies f in each dimension that a or b has. A missing amount counts as 0.
func combine(a, b Resources, f func(x, y float64) float64) Resources {
	out := make(Resources, max(len(a), len(b)))
	combineTo(a, b, out, f)
	return out
}

func combineTo(a, b, out Resources, f func(x, y float64) float64) {
	for i := range out {
		if a.Has(i) || b.Has(i) {
			out[i] = f(a.Get(i), b.Get(i))
		} else {
			out[i] = Absent()
		}
	}
}

// Add returns r + b over the union of their dimensions.
func (r Resources) Add(b Resources) Resources {
	return combine(r, b, func(x, y float64) float64 { return x + y })
}

// AddTo does what Add does, but writes to out, which must be as long as the longer of the two.
func (r Resources) AddTo(b, out Resources) {
	combineTo(r, b, out, func(x, y float64) float64 { return x + y })
}

// SubTo does what Sub does, but writes to out, which must be as long as the longer of the two.
func (r Resources) SubTo(b, out Resources) {
	combineTo(r, b, out, func(x, y float64) float64 { return x - y })
}

// Sub returns r - b over the union of their dimensions. It may be negative.
func (r Resources) Sub(b Resources) Resources {
	return combine(r, b, func(x, y float64) float64 { return x - y })
}

// AddIn adds sign times b to r in place. It extends r if necessary.
func (r *Resources) AddIn(b Resources, sign float64) {
	for i := range b {
		if b.Has(i) {
			r.Set(i, r.Get(i)+sign*b[i])
		}
	}
}

// Over returns max(r-b, 0) in each dimension of r.
func (r Resources) Over(b Resources) Resources {
	out := r.Clone()
	for i := range out {
		if r.Has(i) {
			out[i] = max(r[i]-b.Get(i), 0)
		}
	}
	return out
}

// Min returns the element-wise minimum over the union; missing counts as 0.
func (r Resources) Min(b Resources) Resources {
	return combine(r, b, func(x, y float64) float64 { return min(x, y) })
}

// Max returns the element-wise maximum over the union; missing counts as 0.
func (r Resources) Max(b Resources) Resources {
	return combine(r, b, func(x, y float64) float64 { return max(x, y) })
}

// Cap returns the element-wise minimum over the dimensions of r; missing in b is no limit.
func (r Resources) Cap(b Resources) Resources {
	out := r.Clone()
	for i := range out {
		if r.Has(i) && b.Has(i) {
			out[i] = min(r[i], b[i])
		}
	}
	return out
}

// Scale returns r with every amount multiplied by x. Amounts may become fractional.
func (r Resources) Scale(x float64) Resources {
	out := r.Clone()
	for i := range out {
		out[i] *= x
	}
	return out
}

// Fits reports whether r <= b + Slack in every dimension of r; missing in b is 0. A requested 0 still does not fit a negative b.
func (r Resources) Fits(b Resources) bool {
	for i := range r {
		if r.Has(i) && r[i] > b.Get(i)+Slack {
			return false
		}
	}
	return true
}

// Within reports whether r <= b, without Slack, in each dimension in which dims is above 0.
func (r Resources) Within(b, dims Resources) bool {
	for i := range dims {
		if dims[i] > 0 && r.Get(i) > b.Get(i) {
			return false
		}
	}
	return true
}

// WithinAny reports whether r <= b in some dimension in which dims is above 0 and r or b is at least Slack.
func (r Resources) WithinAny(b, dims Resources) bool {
	for i := range dims {
		if dims[i] > 0 && (r.Get(i) >= Slack || b.Get(i) >= Slack) && r.Get(i) <= b.Get(i) {
			return true
		}
	}
	return false
}

// ExceedsAny reports whether r > b in some dimension in which dims is above 0 and that b limits. b limits cpu and memory if it is above 0,
// and all other dimensions if they are present.
func (r Resources) ExceedsAny(b, dims Resources) bool {
	for i := range dims {
		limited := b.Has(i) && (i > Memory || b[i] > 0)
		if dims[i] > 0 && limited && r.Get(i) > b[i] {
			return true
		}
	}
	return false
}

// Overlaps reports whether some dimension other than pods is above 0 in both.
func (r Resources) Overlaps(b Resources) bool {
	for i := range r {
		if i != Pods && r.Get(i) > 0 && b.Get(i) > 0 {
			return true
		}
	}
	return false
}

// Share returns the dominant share: the largest r/b over b's dimensions. If b is 0, r/b counts as 0 if r is 0, otherwise as 1. (Ghodsi et
// al., Dominant Resource Fairness, NSDI 2011.)
func (r Resources) Share(b Resources) float64 {
	share := 0.0
	for i := range b {
		if !b.Has(i) {
			continue
		}
		s := 0.0
		switch {
		case b[i] != 0:
			s = r.Get(i) / b[i]
		case r.Get(i) != 0:
			s = 1
		}
		share = max(share, s)
	}
	return share
}

// IsEmpty reports whether all amounts except pods are below Slack.
func (r Resources) IsEmpty() bool {
	for i := range r {
		if i != Pods && r.Get(i) >= Slack {
			return false
		}
	}
	return true
}

// Only returns the dimensions of r that b has.
func (r Resources) Only(b Resources) Resources {
	out := r.Clone()
	for i := range out {
		if !b.Has(i) {
			out[i] = Absent()
		}
	}
	return out
}

// Positive returns the dimensions of r that are above 0.
func (r Resources) Positive() Resources {
	out := r.Clone()
	for i := range out {
		if !(r[i] > 0) {
			out[i] = Absent()
		}
	}
	return out
}

// Limit returns what a capability limits: cpu and memory that are not above 0 are no limit.
func (r Resources) Limit() Resources {
	out := r.Clone()
	for _, i := range []int{CPU, Memory} {
		if out.Has(i) && out[i] <= 0 {
			out[i] = Absent()
		}
	}
	return out
}

// Resources converts a Kubernetes list into amounts. It adds new names in a fixed order, so that the same input gives the same dimensions.
// Fractions of an inner unit round up. A relative request, a part of any device that the pod gets, is no amount. No node or queue has any
// of it, so it cannot be compared.
func (d *Dims) Resources(list corev1.ResourceList) Resources {
	if len(list) == 0 {
		return nil
	}
	d.internAll(list)
	out := make(Resources, 0, len(d.names))
	for name, q := range list {
		if name == cards.SharePercent {
			continue
		}
		i := d.index[string(name)]
		out.Set(i, d.Amount(i, q))
	}
	return out
}

// requested converts a list that a user wrote into amounts. It reports a list that exceeds a limit, and leaves out the list's new names.
func (d *Dims) requested(list corev1.ResourceList, field string, m *mistakes) Resources {
	added := 0
	for name := range list {
		if _, ok := d.index[string(name)]; !ok && name != cards.SharePercent {
			added++
		}
	}
	switch most := namesOfUsers * d.perObject; {
	case added > 0 && len(list) > d.perObject:
		m.add(field, "has %d resource names; the limit is %d", len(list), d.perObject)
	case added > 0 && d.Len()+added > most:
		m.add(field, "has %d resource names that no node offers, and there are %d different resource names already; the limit is %d", added,
			d.Len(), most)
	default:
		return d.Resources(list)
	}
	known := corev1.ResourceList{}
	for name, q := range list {
		if _, ok := d.index[string(name)]; ok {
			known[name] = q
		}
	}
	return d.Resources(known)
}

func (d *Dims) internAll(list corev1.ResourceList) {
	var unknown []string
	for name := range list {
		if _, ok := d.index[string(name)]; !ok && name != cards.SharePercent {
			unknown = append(unknown, string(name))
		}
	}
	slices.Sort(unknown)
	for _, name := range unknown {
		d.Intern(name)
	}
}
