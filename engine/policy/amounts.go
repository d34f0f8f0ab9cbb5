package policy

import (
	"fmt"
	"math"
	"reflect"
	"slices"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"github.com/celsius-scheduler/celsius/engine/model"
)

// amounts is a Resources value.
type amounts struct {
	r    model.Resources
	dims *dims // nil: of no session, and empty
}

// dims is a session's names of resources, with room for the sums that expressions make of them.
type dims struct {
	*model.Dims
	shared *bool // while several evaluate at once, none of the room is taken
	boxes  []amounts
	floats []float64
}

// A session makes room for so many sums and amounts at once. Who keeps one for long copies it (see Session.compute), for the others
// are kept with it.
const (
	boxRoom   = 64
	floatRoom = 512
)

// room is a new value, with room for the amounts of n dimensions. What the session makes of the same room lies elsewhere.
func (d *dims) room(n int) *amounts {
	if d == nil || *d.shared {
		return &amounts{make(model.Resources, n), d}
	}
	if len(d.boxes) == 0 {
		d.boxes = make([]amounts, boxRoom)
	}
	box := &d.boxes[0]
	d.boxes = d.boxes[1:]
	switch {
	case n > floatRoom/8:
		box.r = make(model.Resources, n)
	case n > len(d.floats):
		d.floats = make([]float64, floatRoom)
		fallthrough
	default:
		box.r, d.floats = d.floats[:n:n], d.floats[n:]
	}
	box.dims = d
	return box
}

// with is the dimensions of a result: empty resources have none of their own.
func (a *amounts) with(b *amounts) *dims {
	if a.dims == nil {
		return b.dims
	}
	return a.dims
}

// find gives the dimension of a name.
func (a *amounts) find(name string) (int, bool) {
	if a.dims == nil {
		return 0, false
	}
	return a.dims.Find(name)
}

// Amounts shows Resources as a value.
func (w *World) Amounts(r model.Resources) ref.Val { return &amounts{r, w.dims} }

// boxed shows Resources in a box that is used again: what an object has moves on in place, and whoever keeps it copies it. Without
// a box it is a new one.
func (w *World) boxed(r model.Resources, box *amounts) ref.Val {
	if box == nil {
		return w.Amounts(r)
	}
	if box.dims != w.dims || len(box.r) != len(r) || len(r) > 0 && &box.r[0] != &r[0] { // what shows it already may be read by several at once
		box.r, box.dims = r, w.dims
	}
	return box
}

// ConvertToNative implements ref.Val.
func (a *amounts) ConvertToNative(reflect.Type) (any, error) {
	return nil, fmt.Errorf("resources have no other form")
}

// ConvertToType implements ref.Val: the text is for messages.
func (a *amounts) ConvertToType(t ref.Type) ref.Val {
	switch t {
	case types.StringType:
		if a.dims == nil {
			return types.String("nothing")
		}
		return types.String(a.text())
	case types.TypeType:
		return resourcesType()
	}
	return types.NewErr("resources cannot become a %s", t.TypeName())
}

// text leaves out what is 0, and what has no limit.
func (a *amounts) text() string {
	shown, endless := a.r.Clone(), false
	for i := range shown {
		endless = endless || math.IsInf(shown[i], 1)
		if shown[i] == 0 || math.IsInf(shown[i], 0) {
			shown[i] = model.Absent()
		}
	}
	if endless && !slices.ContainsFunc(shown, func(x float64) bool { return x == x }) {
		return "no limit"
	}
	return a.dims.Text(shown)
}

// Equal implements ref.Val.
func (a *amounts) Equal(other ref.Val) ref.Val {
	b, ok := other.(*amounts)
	return types.Bool(ok && a.r.Equal(b.r))
}

// Type implements ref.Val.
func (a *amounts) Type() ref.Type { return resourcesType() }

// Value implements ref.Val.
func (a *amounts) Value() any { return a }

// Add implements traits.Adder.
func (a *amounts) Add(other ref.Val) ref.Val { return a.combined(other, model.Resources.AddTo) }

// Subtract implements traits.Subtractor.
func (a *amounts) Subtract(other ref.Val) ref.Val { return a.combined(other, model.Resources.SubTo) }

func (a *amounts) combined(other ref.Val, to func(a, b, out model.Resources)) ref.Val {
	b, ok := other.(*amounts)
	if !ok {
		return types.MaybeNoSuchOverloadErr(other)
	}
	out := a.with(b).room(max(len(a.r), len(b.r)))
	to(a.r, b.r, out.r)
	return out
}

// Get implements traits.Indexer: r["nvidia.com/gpu"], 0 if absent.
func (a *amounts) Get(name ref.Val) ref.Val {
	n, ok := name.(types.String)
	if !ok {
		return types.MaybeNoSuchOverloadErr(name)
	}
	return types.Double(a.get(string(n)))
}

// get is an amount as people write it: cores, bytes, pieces.
func (a *amounts) get(name string) float64 {
	i, ok := a.find(name)
	if !ok {
		return 0
	}
	return a.r.Get(i) / a.dims.Unit(i)
}

// milli is an amount in thousandths of what people write.
func (a *amounts) milli(name string) int64 {
	i, ok := a.find(name)
	if !ok {
		return 0
	}
	return inMilli(a.r.Get(i), a.dims.Unit(i))
}

// omit is a without one of its dimensions.
func (a *amounts) omit(name string) ref.Val {
	i, ok := a.find(name)
	if !ok || !a.r.Has(i) {
		return a
	}
	out := a.dims.room(len(a.r))
	copy(out.r, a.r)
	out.r[i] = model.Absent()
	return out
}

// names of the dimensions that are there, in the order in which people are shown them.
func (a *amounts) names() []string {
	out := []string{}
	if a.dims == nil {
		return out
	}
	for _, i := range a.dims.Sorted() {
		if a.r.Has(i) {
			out = append(out, a.dims.Name(i))
		}
	}
	return out
}

// Contains implements traits.Container: "x" in r.
func (a *amounts) Contains(name ref.Val) ref.Val {
	n, ok := name.(types.String)
	if !ok {
		return types.MaybeNoSuchOverloadErr(name)
	}
	i, ok := a.find(string(n))
	return types.Bool(ok && a.r.Has(i))
}
