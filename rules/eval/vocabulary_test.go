package eval

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"testing"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"

	"github.com/celsius-scheduler/celsius/rules"
)

// The tests of this package make their languages from this small vocabulary. Depots hold crates, and each crate belongs to an order. Every
// crate has its own measure.

// thing is an object of the vocabulary.
type thing struct {
	typ    *cel.Type
	fields map[string]ref.Val
}

func (x *thing) ConvertToNative(reflect.Type) (any, error) {
	return nil, fmt.Errorf("a %s has no other form", x.typ.TypeName())
}

func (x *thing) ConvertToType(t ref.Type) ref.Val {
	return types.NewErr("a %s cannot become a %s", x.typ.TypeName(), t.TypeName())
}

func (x *thing) Equal(other ref.Val) ref.Val { return types.Bool(other.Value() == any(x)) }
func (x *thing) Type() ref.Type              { return x.typ }
func (x *thing) Value() any                  { return x }

// measure is a value that is read by index, like amounts of resources.
type measure map[string]float64

func (m measure) ConvertToNative(reflect.Type) (any, error) { return nil, fmt.Errorf("no other form") }
func (m measure) ConvertToType(ref.Type) ref.Val            { return types.NewErr("no other type") }
func (m measure) Equal(other ref.Val) ref.Val               { return types.Bool(reflect.DeepEqual(other.Value(), m)) }
func (m measure) Type() ref.Type                            { return measureType() }
func (m measure) Value() any                                { return m }

func (m measure) Get(name ref.Val) ref.Val {
	s, ok := name.(types.String)
	if !ok {
		return types.MaybeNoSuchOverloadErr(name)
	}
	return types.Double(m[string(s)])
}

func depotType() *cel.Type   { return cel.ObjectType("Depot") }
func crateType() *cel.Type   { return cel.ObjectType("Crate") }
func orderType() *cel.Type   { return cel.ObjectType("Order") }
func measureType() *cel.Type { return cel.ObjectType("Measure", traits.IndexerType) }

func member(name string, t *cel.Type, changes rules.Changes) *rules.Member {
	return &rules.Member{Name: name, Type: t, Doc: "a " + name, Changes: changes, Get: func(o any) ref.Val {
		x, ok := o.(*thing)
		if !ok || x.fields[name] == nil {
			return types.NewErr("no field %q", name)
		}
		return x.fields[name]
	}}
}

func testVocabulary() rules.Vocabulary {
	text, num, labels := cel.StringType, cel.IntType, cel.MapType(cel.StringType, cel.StringType)
	crates := member("crates", cel.ListType(crateType()), rules.ByStep)
	crates.Bound = 512
	stamp := member("stamp", text, rules.ByObject)
	stamp.Hidden = true
	cpu := &rules.Member{Name: "weight", Type: cel.DoubleType, Doc: "in kilos", Get: func(o any) ref.Val {
		m, ok := o.(measure)
		if !ok {
			return types.NewErr("no measure")
		}
		return types.Double(m["weight"])
	}}
	answer := func(v ref.Val) func(...ref.Val) ref.Val { return func(...ref.Val) ref.Val { return v } }
	one := func(name string, o rules.Overload) *rules.Function {
		o.ID = "test_" + name
		return &rules.Function{Name: name, Doc: "tests " + name, Overloads: []rules.Overload{o}}
	}
	return rules.Vocabulary{
		Objects: []*rules.Object{
			{Name: "Depot", Type: depotType(), Members: []*rules.Member{
				member("name", text, rules.Static), member("labels", labels, rules.ByObject),
				member("places", num, rules.ByObject), member("free", num, rules.ByStep),
				member("load", cel.DoubleType, rules.ByStep),
				member("doors", cel.ListType(text), rules.ByObject), crates, member("limit", measureType(), rules.ByObject),
			}},
			{Name: "Crate", Type: crateType(), Members: []*rules.Member{
				member("name", text, rules.Static), member("size", num, rules.ByObject), member("limit", measureType(), rules.ByObject),
				member("since", cel.TimestampType, rules.ByObject),
				member("order", orderType(), rules.ByObject), member("depot", depotType(), rules.ByStep),
				member("labels", labels, rules.ByObject), stamp,
			}},
			{Name: "Order", Type: orderType(), Members: []*rules.Member{
				member("name", text, rules.Static), member("rank", num, rules.ByObject), member("done", num, rules.ByStep),
				member("crates", cel.ListType(crateType()), rules.ByObject), member("turn", cel.BoolType, rules.ByFold),
			}},
			{Name: "Measure", Type: measureType(), Leaf: true, Members: []*rules.Member{cpu}},
		},
		Functions: []*rules.Function{
			one("goesInto", rules.Overload{
				Member: true, Args: []*cel.Type{crateType(), depotType()}, Result: cel.BoolType,
				Reads: []string{"{0}.size", "{1}.free"}, Eval: answer(types.True),
			}),
			one("stampedFor", rules.Overload{
				Member: true, Args: []*cel.Type{crateType(), depotType()}, Result: cel.BoolType,
				Reads: []string{"{0}.stamp", "{1}.crates.stamp"}, Eval: answer(types.True),
			}),
			one("lot", rules.Overload{
				Args: []*cel.Type{text}, Result: cel.DoubleType, Reads: []string{"company.seed"},
				Eval: answer(types.Double(0.5)), Cost: 10,
			}),
			one("heavier", rules.Overload{
				Member: true, Args: []*cel.Type{measureType(), measureType()}, Result: cel.BoolType, Eval: answer(types.False),
			}),
			one("sorted", rules.Overload{
				Member: true, Args: []*cel.Type{depotType(), cel.ListType(text)}, Result: cel.ListType(text),
				Reads: []string{"{0}.labels"}, Eval: answer(types.NewStringList(types.DefaultTypeAdapter, nil)),
			}),
			{Name: operators.Index, Doc: "reads a measure", Overloads: []rules.Overload{
				{ID: "test_index", Args: []*cel.Type{measureType(), text}, Result: cel.DoubleType},
			}},
		},
	}
}

func testLanguage(t testing.TB) *rules.Language {
	t.Helper()
	l, err := rules.NewLanguage(testVocabulary())
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func companyType() *cel.Type { return cel.ObjectType("Company") }

// testScope returns a scope with one object of each type, an object that no vocabulary has, and plain roots.
func testScope(t testing.TB) *rules.Scope {
	t.Helper()
	company := &rules.Object{Name: "Company", Type: companyType(), Members: []*rules.Member{
		member("seed", cel.IntType, rules.Static),
		member("size", cel.IntType, rules.ByCycle),
	}}
	params := &rules.Object{Name: "Params", Type: cel.ObjectType("Params"), Members: []*rules.Member{
		{Name: "factor", Type: cel.DoubleType, Reads: &rules.Reads{}, Get: func(any) ref.Val { return types.Double(1.5) }},
	}}
	l := testLanguage(t)
	objects := l.Objects()
	order := *objects[slices.IndexFunc(objects, func(o *rules.Object) bool { return o.Name == "Order" })]
	share := &rules.Member{Name: "share", Type: cel.DoubleType, Changes: rules.ByStep, Own: "order", Get: func(any) ref.Val {
		return types.Double(0.25)
	}}
	share.Reads = &rules.Reads{All: []rules.Read{
		{Root: "company", Steps: []rules.Step{{Member: company.Find("size")}}, Changes: rules.ByCycle, Type: cel.IntType},
		{Root: "order", Steps: []rules.Step{{Member: order.Find("done")}}, Changes: rules.ByStep, Type: cel.IntType},
	}}
	heap := &rules.Member{Name: "heap", Type: cel.ListType(crateType()), Changes: rules.ByObject, Own: "order", Get: func(any) ref.Val {
		return types.NewRefValList(types.DefaultTypeAdapter, nil)
	}}
	heap.Reads = &rules.Reads{All: []rules.Read{
		{Root: "order", Steps: []rules.Step{{Member: order.Find("rank")}}, Changes: rules.ByObject, Type: cel.IntType},
	}}
	order.Members = append(append([]*rules.Member{}, order.Members...), share, heap)
	s, err := l.Scope(map[string]*cel.Type{
		"crate": crateType(), "depot": depotType(), "order": orderType(), "other": depotType(), "company": companyType(),
		"now": cel.TimestampType, "params": params.Type, "words": cel.ListType(cel.StringType),
		"i": cel.IntType, "j": cel.IntType, "u": cel.UintType, "d": cel.DoubleType, "e": cel.DoubleType, "b": cel.BoolType, "s": cel.StringType,
		"anything": cel.DynType,
	}, company, params, &order)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// testRoots returns values for the roots of testScope. The entries of more replace or extend them.
func testRoots(t testing.TB, more map[string]any) cel.Activation {
	t.Helper()
	labels := func(kv ...string) ref.Val {
		m := map[string]string{}
		for i := 0; i+1 < len(kv); i += 2 {
			m[kv[i]] = kv[i+1]
		}
		return types.NewStringStringMap(types.DefaultTypeAdapter, m)
	}
	order := &thing{orderType(), map[string]ref.Val{
		"name": types.String("o1"), "rank": types.Int(3), "done": types.Int(1),
		"turn": types.True,
	}}
	crate := &thing{crateType(), map[string]ref.Val{
		"name": types.String("c1"), "size": types.Int(2), "limit": measure{"weight": 4},
		"since": types.NullValue, "order": order, "labels": labels("kind", "glass"), "stamp": types.String("x"),
	}}
	crates := types.NewRefValList(types.DefaultTypeAdapter, []ref.Val{crate})
	order.fields["crates"] = crates
	depot := &thing{depotType(), map[string]ref.Val{
		"name": types.String("d1"), "labels": labels("zone", "east"), "places": types.Int(9), "free": types.Int(7), "load": types.Double(0.5),
		"doors": types.NewStringList(types.DefaultTypeAdapter, []string{"n", "s"}), "crates": crates,
		"limit": measure{"weight": 8, "gold/bars": 2},
	}}
	crate.fields["depot"] = depot
	company := &thing{companyType(), map[string]ref.Val{"seed": types.Int(7), "size": types.Int(100)}}
	roots := map[string]any{
		"crate": crate, "depot": depot, "order": order, "other": depot, "company": company, "now": types.Timestamp{}, "params": company,
		"words": types.NewStringList(types.DefaultTypeAdapter, []string{"a", "b"}),
		"i":     int64(1), "j": int64(2), "u": uint64(3), "d": 1.5, "e": -2.0, "b": true, "s": "text", "anything": "whatever",
	}
	maps.Copy(roots, more)
	a, err := cel.NewActivation(roots)
	if err != nil {
		t.Fatal(err)
	}
	return a
}
