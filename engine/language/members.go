package language

import (
	"math"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/rules"
)

// field declares one member of an object type: its origin, and how often it changes.
func field[T any](name string, t *cel.Type, origin rules.Origin, changes rules.Changes, doc string, get func(T) ref.Val) *rules.Member {
	return &rules.Member{Name: name, Type: t, Doc: doc, Origin: origin, Changes: changes, Get: func(o any) ref.Val {
		v, ok := o.(T)
		if !ok {
			return nullObject(name)
		}
		return get(v)
	}}
}

func nullObject(name string) ref.Val { return types.NewErr("no field %q: the object is null", name) }

// unboxed returns a getter that reads a member without a box.
func unboxed[T, X any](name string, get func(T) X) func(o any) (X, ref.Val) {
	return func(o any) (X, ref.Val) {
		v, ok := o.(T)
		if !ok {
			var none X
			return none, nullObject(name)
		}
		return get(v), nil
	}
}

// Members of plain types, which can be read with and without a box.

func stringField[T any](name string, origin rules.Origin, changes rules.Changes, doc string, get func(T) string) *rules.Member {
	m := field(name, cel.StringType, origin, changes, doc, func(v T) ref.Val { return types.String(get(v)) })
	m.String = unboxed(name, get)
	return m
}

// oneOf declares the possible values of a member, and adds them to its documentation.
func oneOf(m *rules.Member, all ...string) *rules.Member {
	m.Words, m.Doc = all, m.Doc+": "+strings.Join(all, ", ")
	return m
}

func intField[T any](name string, origin rules.Origin, changes rules.Changes, doc string, get func(T) int64) *rules.Member {
	m := field(name, cel.IntType, origin, changes, doc, func(v T) ref.Val { return types.Int(get(v)) })
	m.Int = unboxed(name, get)
	return m
}

func boolField[T any](name string, origin rules.Origin, changes rules.Changes, doc string, get func(T) bool) *rules.Member {
	m := field(name, cel.BoolType, origin, changes, doc, func(v T) ref.Val { return types.Bool(get(v)) })
	m.Bool = unboxed(name, get)
	return m
}

func doubleField[T any](name string, origin rules.Origin, changes rules.Changes, doc string, get func(T) float64) *rules.Member {
	m := field(name, cel.DoubleType, origin, changes, doc, func(v T) ref.Val { return types.Double(get(v)) })
	m.Double = unboxed(name, get)
	return m
}

// amountField declares Resources. One amount can be read without the others.
func amountField[T any](name string, origin rules.Origin, changes rules.Changes, doc string,
	get func(T) (r model.Resources, box *Amounts, w *World),
) *rules.Member {
	m := field(name, ResourcesType(), origin, changes, doc, func(v T) ref.Val {
		r, box, w := get(v)
		return w.boxed(r, box)
	})
	m.Part = func(by, part string) *rules.Member {
		return amountPart(m, by, part, func(of resourceName, v T) (float64, float64) {
			r, _, w := get(v)
			dim, ok := of.in(w.c.Dims)
			if !ok {
				return 0, 1
			}
			return r.Get(dim), w.c.Dims.Unit(dim)
		})
	}
	return m
}

// amountPart returns one amount of a Resources member as a member, read by get, an index or milli; nil for other functions. The function at
// returns the amount in internal units, and the number of these units in one of the user's units.
func amountPart[T any](m *rules.Member, by, part string, at func(of resourceName, v T) (x, unit float64)) *rules.Member {
	of := dimension(part)
	switch by {
	case "", "get":
		return doubleField(m.Name, m.Origin, m.Changes, m.Doc, func(v T) float64 {
			x, unit := at(of, v)
			return x / unit
		})
	case "milli":
		return intField(m.Name, m.Origin, m.Changes, m.Doc, func(v T) int64 { return inMilli(at(of, v)) })
	}
	return nil
}

// inMilli returns an amount in thousandths of the user's unit.
func inMilli(x, unit float64) int64 { return WholeOf(x * (1000 / unit)) }

// WholeOf truncates x toward zero. It clamps a value outside the range of int64 to the nearest int64.
func WholeOf(x float64) int64 {
	const beyond = 1 << 63
	switch {
	case x >= beyond:
		return math.MaxInt64
	case x < -beyond:
		return math.MinInt64
	}
	return int64(x)
}

// resourceName is a name that is looked up often. Names that every cluster has need no lookup.
type resourceName struct {
	name string
	dim  int // -1: it must be looked up
}

func dimension(name string) resourceName {
	switch name {
	case "cpu":
		return resourceName{name, model.CPU}
	case "memory":
		return resourceName{name, model.Memory}
	case "pods":
		return resourceName{name, model.Pods}
	}
	return resourceName{name, -1}
}

func (n resourceName) in(dims *model.Dims) (dim int, ok bool) {
	if n.dim >= 0 {
		return n.dim, true
	}
	return dims.Find(n.name)
}

// hidden declares a member that only functions read.
func hidden[T any](name string, origin rules.Origin, changes rules.Changes, doc string, get func(T) ref.Val) *rules.Member {
	m := field(name, cel.StringType, origin, changes, doc, get)
	m.Hidden = true
	return m
}

// bounded sets the maximum number of elements, for the cost estimate.
func bounded(m *rules.Member, most uint64) *rules.Member {
	m.Bound = most
	return m
}
