package webhook

import (
	"fmt"
	"maps"
	"slices"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/celsius-scheduler/celsius/crds/decode"
	"github.com/celsius-scheduler/celsius/rules"
	"github.com/celsius-scheduler/celsius/rules/typed"
)

const rootQueue = "root"

// treeFunctions returns the functions for trees of queues and for resource amounts.
func treeFunctions(queue *typed.Schema) []*rules.Function {
	queues, amounts := cel.ListType(queue.Type()), cel.MapType(cel.StringType, cel.DynType)
	one := func(name, doc string, names []string, o rules.Overload) *rules.Function {
		o.ID, o.Cost = "admission_"+name, 1000
		return &rules.Function{Name: name, Doc: doc, Names: names, Overloads: []rules.Overload{o}}
	}
	return []*rules.Function{
		one("queuesAbove", "The queue of that name and those above it by spec.parent, nearest first, root left out; it ends where one is "+
			"missing, or stands above itself.", []string{"queues", "name"}, rules.Overload{
			Args: []*cel.Type{queues, cel.StringType}, Result: queues,
			Eval: func(args ...ref.Val) ref.Val { return newTree(args[0]).list(newTree(args[0]).above(textOf(args[1]))) },
		}),
		one("nearestAbove", "Of queuesAbove the first whose capability limits that resource, in a list.", []string{"queues", "name", "resource"},
			rules.Overload{
				Args: []*cel.Type{queues, cel.StringType, cel.StringType}, Result: queues,
				Eval: func(args ...ref.Val) ref.Val {
					t := newTree(args[0])
					at := slices.IndexFunc(t.above(textOf(args[1])), func(name string) bool { return t.limits(name, textOf(args[2])) })
					if at < 0 {
						return t.list(nil)
					}
					return t.list(t.above(textOf(args[1]))[at : at+1])
				},
			}),
		one("nearestBelow", "The queues below that of the name whose capability limits that resource, but those that are below another such.",
			[]string{"queues", "name", "resource"}, rules.Overload{
				Args: []*cel.Type{queues, cel.StringType, cel.StringType}, Result: queues,
				Eval: func(args ...ref.Val) ref.Val {
					t := newTree(args[0])
					return t.list(t.nearestBelow(textOf(args[1]), textOf(args[2])))
				},
			}),
		one("total", "Amounts added up by resource. What is no amount is left out.", nil, rules.Overload{
			Args: []*cel.Type{cel.ListType(amounts)}, Result: cel.MapType(cel.StringType, cel.StringType),
			Eval: func(args ...ref.Val) ref.Val { return totalOf(args[0]) },
		}),
		one("moreThan", "The resources of which the first has more than the second, sorted; what is missing there is 0, what is no amount is "+
			"left out.",
			nil, rules.Overload{
				Args: []*cel.Type{amounts, amounts}, Result: cel.ListType(cel.StringType),
				Eval: func(args ...ref.Val) ref.Val {
					a, b := amountsOf(args[0]), amountsOf(args[1])
					var out []string
					for _, name := range slices.Sorted(maps.Keys(a)) {
						if has := a[name]; has.Cmp(b[name]) > 0 {
							out = append(out, name)
						}
					}
					return typed.Strings(out)
				},
			}),
	}
}

func textOf(v ref.Val) string {
	text, _ := v.(types.String)
	return string(text)
}

// tree indexes the queues by name.
type tree struct {
	queues map[string]ref.Val
	fields map[string]map[string]any
}

func newTree(list ref.Val) *tree {
	t := &tree{map[string]ref.Val{}, map[string]map[string]any{}}
	all, ok := list.(traits.Lister)
	if !ok {
		return t
	}
	for it := all.Iterator(); it.HasNext() == types.True; {
		q := it.Next()
		plain, err := typed.Plain(q)
		fields, _ := plain.(map[string]any)
		if err != nil {
			continue
		}
		meta, _ := fields["metadata"].(map[string]any)
		if name, _ := meta["name"].(string); name != "" {
			t.queues[name], t.fields[name] = q, fields
		}
	}
	return t
}

func (t *tree) spec(name string) map[string]any {
	spec, _ := t.fields[name]["spec"].(map[string]any)
	return spec
}

func (t *tree) parent(name string) string {
	parent, _ := t.spec(name)["parent"].(string)
	return parent
}

// above returns the queue and its ancestors, nearest first.
func (t *tree) above(name string) (out []string) {
	for seen := map[string]bool{rootQueue: true, "": true}; !seen[name] && t.queues[name] != nil; name = t.parent(name) {
		seen[name] = true
		out = append(out, name)
	}
	return out
}

// limits reports whether a queue's capability sets an amount above 0 for a resource.
func (t *tree) limits(name, resource string) bool {
	capability, _ := t.spec(name)["capability"].(map[string]any)
	q, ok := amountOf(capability[resource])
	return ok && q.Sign() > 0
}

func (t *tree) nearestBelow(name, resource string) (out []string) {
	below := map[string][]string{}
	for _, child := range slices.Sorted(maps.Keys(t.queues)) {
		below[t.parent(child)] = append(below[t.parent(child)], child)
	}
	seen := map[string]bool{name: true}
	for todo := slices.Clone(below[name]); len(todo) > 0; todo = todo[1:] {
		switch at := todo[0]; {
		case seen[at]:
		case t.limits(at, resource):
			out = append(out, at)
			seen[at] = true
		default:
			seen[at] = true
			todo = append(todo, below[at]...)
		}
	}
	return out
}

func (t *tree) list(names []string) ref.Val {
	out := make([]ref.Val, len(names))
	for i, name := range names {
		out[i] = t.queues[name]
	}
	return types.NewRefValList(types.DefaultTypeAdapter, out)
}

// amountOf reads an amount in the forms of the API: a string or a number.
func amountOf(v any) (resource.Quantity, bool) {
	switch v.(type) {
	case string, int64, float64:
		q, err := decode.Quantity(fmt.Sprint(v))
		return q, err == nil
	}
	return resource.Quantity{}, false
}

func amountsOf(v ref.Val) map[string]resource.Quantity {
	plain, err := typed.Plain(v)
	fields, _ := plain.(map[string]any)
	if err != nil {
		return nil
	}
	out := map[string]resource.Quantity{}
	for name, value := range fields {
		if q, ok := amountOf(value); ok {
			out[name] = q
		}
	}
	return out
}

func totalOf(lists ref.Val) ref.Val {
	sum := map[string]resource.Quantity{}
	all, ok := lists.(traits.Lister)
	if !ok {
		return types.MaybeNoSuchOverloadErr(lists)
	}
	for it := all.Iterator(); it.HasNext() == types.True; {
		for name, q := range amountsOf(it.Next()) {
			total := sum[name]
			total.Add(q)
			sum[name] = total
		}
	}
	out := map[string]string{}
	for name, q := range sum {
		out[name] = q.String()
	}
	return types.NewStringStringMap(types.DefaultTypeAdapter, out)
}
