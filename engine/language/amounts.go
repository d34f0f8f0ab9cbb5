package language

import (
	"fmt"
	"math"
	"reflect"
	"slices"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"github.com/celsius-scheduler/celsius/engine/model"
)

// Amounts is a Resources value.
type Amounts struct {
	Resources model.Resources
	Dims      *Dims // nil: empty, and of no session
}

// Dims contains the names of a session's resources, and memory for the sums that expressions compute.
type Dims struct {
	*model.Dims
	Shared *bool // while several goroutines evaluate at once, the memory is not used
	boxes  []Amounts
	floats []float64
}

// A session allocates memory for this number of sums and amounts at once. A caller that keeps one for long must copy it (see
// Session.compute), because it keeps the others in memory.
const (
	boxRoom   = 64
	floatRoom = 512
)

// room returns a new value with memory for n dimensions. It does not overlap other values in the same memory.
func (d *Dims) room(n int) *Amounts {
	if d == nil || *d.Shared {
		return &Amounts{make(model.Resources, n), d}
	}
	if len(d.boxes) == 0 {
		d.boxes = make([]Amounts, boxRoom)
	}
	box := &d.boxes[0]
	d.boxes = d.boxes[1:]
	switch {
	case n > floatRoom/8:
		box.Resources = make(model.Resources, n)
	case n > len(d.floats):
		d.floats = make([]float64, floatRoom)
		fallthrough
	default:
		box.Resources, d.floats = d.floats[:n:n], d.floats[n:]
	}
	box.Dims = d
	return box
}

// with returns the dimensions of a result, because empty resources may have none.
func (a *Amounts) with(b *Amounts) *Dims {
	if a.Dims == nil {
		return b.Dims
	}
	return a.Dims
}

// find returns the dimension of a name.
func (a *Amounts) find(name string) (int, bool) {
	if a.Dims == nil {
		return 0, false
	}
	return a.Dims.Find(name)
}

// Amounts returns Resources as a value.
func (w *World) Amounts(r model.Resources) ref.Val { return &Amounts{r, w.dims} }

// boxed returns Resources in a reused box. The amounts of an object change in place, so a caller that keeps the value must copy it. Without
// a box, it returns a new one.
func (w *World) boxed(r model.Resources, box *Amounts) ref.Val {
	if box == nil {
		return w.Amounts(r)
	}
	// an unchanged box is not written, because several goroutines may read it
	if box.Dims != w.dims || len(box.Resources) != len(r) || len(r) > 0 && &box.Resources[0] != &r[0] {
		box.Resources, box.Dims = r, w.dims
	}
	return box
}

// ConvertToNative implements ref.Val.
func (a *Amounts) ConvertToNative(reflect.Type) (any, error) {
	return nil, fmt.Errorf("resources have no other form")
}

// ConvertToType implements ref.Val. The text is for messages.
func (a *Amounts) ConvertToType(t ref.Type) ref.Val {
	switch t {
	case types.StringType:
		if a.Dims == nil {
			return types.String("nothing")
		}
		return types.String(a.text())
	case types.TypeType:
		return ResourcesType()
	}
	return types.NewErr("resources cannot become a %s", t.TypeName())
}

// text omits amounts that are 0 or unlimited.
func (a *Amounts) text() string {
	shown, endless := a.Resources.Clone(), false
	for i := range shown {
		endless = endless || math.IsInf(shown[i], 1)
		if shown[i] == 0 || math.IsInf(shown[i], 0) {
			shown[i] = model.Absent()
		}
	}
	if endless && !slices.ContainsFunc(shown, func(x float64) bool { return x == x }) {
		return "no limit"
	}
	return a.Dims.Text(shown)
}

// Equal implements ref.Val.
func (a *Amounts) Equal(other ref.Val) ref.Val {
	b, ok := other.(*Amounts)
	return types.Bool(ok && a.Resources.Equal(b.Resources))
}

// Type implements ref.Val.
func (a *Amounts) Type() ref.Type { return ResourcesType() }

// Value implements ref.Val.
func (a *Amounts) Value() any { return a }

// Add implements traits.Adder.
func (a *Amounts) Add(other ref.Val) ref.Val { return a.combined(other, model.Resources.AddTo) }

// Subtract implements traits.Subtractor.
func (a *Amounts) Subtract(other ref.Val) ref.Val { return a.combined(other, model.Resources.SubTo) }

func (a *Amounts) combined(other ref.Val, to func(a, b, out model.Resources)) ref.Val {
	b, ok := other.(*Amounts)
	if !ok {
		return types.MaybeNoSuchOverloadErr(other)
	}
	out := a.with(b).room(max(len(a.Resources), len(b.Resources)))
	to(a.Resources, b.Resources, out.Resources)
	return out
}

// Get implements traits.Indexer: r["nvidia.com/gpu"]. It returns 0 if the amount is absent.
func (a *Amounts) Get(name ref.Val) ref.Val {
	n, ok := name.(types.String)
	if !ok {
		return types.MaybeNoSuchOverloadErr(name)
	}
	return types.Double(a.get(string(n)))
}

// get returns an amount in the user's units: cores, bytes, pieces.
func (a *Amounts) get(name string) float64 {
	i, ok := a.find(name)
	if !ok {
		return 0
	}
	return a.Resources.Get(i) / a.Dims.Unit(i)
}

// milli returns an amount in thousandths of the user's units.
func (a *Amounts) milli(name string) int64 {
	i, ok := a.find(name)
	if !ok {
		return 0
	}
	return inMilli(a.Resources.Get(i), a.Dims.Unit(i))
}

// omit returns a without one of its dimensions.
func (a *Amounts) omit(name string) ref.Val {
	i, ok := a.find(name)
	if !ok || !a.Resources.Has(i) {
		return a
	}
	out := a.Dims.room(len(a.Resources))
	copy(out.Resources, a.Resources)
	out.Resources[i] = model.Absent()
	return out
}

// devices returns the amounts of extended resources.
func (a *Amounts) devices() ref.Val {
	if a.Dims == nil {
		return a
	}
	out := a.Dims.room(len(a.Resources))
	copy(out.Resources, a.Resources)
	for i, unit := range a.Dims.Devices() {
		if i < len(out.Resources) && unit == 0 {
			out.Resources[i] = model.Absent()
		}
	}
	return out
}

// names returns the names of the existing dimensions, in display order.
func (a *Amounts) names() []string {
	out := []string{}
	if a.Dims == nil {
		return out
	}
	for _, i := range a.Dims.Sorted() {
		if a.Resources.Has(i) {
			out = append(out, a.Dims.Name(i))
		}
	}
	return out
}

// Contains implements traits.Container: "x" in r.
func (a *Amounts) Contains(name ref.Val) ref.Val {
	n, ok := name.(types.String)
	if !ok {
		return types.MaybeNoSuchOverloadErr(name)
	}
	i, ok := a.find(string(n))
	return types.Bool(ok && a.Resources.Has(i))
}
