package language

import (
	"encoding/json"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"

	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/rules"
)

// mostAllocatedName is Kubernetes' name of the strategy that fills nodes. Every other name means LeastAllocated.
const mostAllocatedName = "MostAllocated"

// strategyFunctions returns the functions with a separate strategy for each resource.
func strategyFunctions() []*rules.Function {
	str := cel.StringType
	numbers, words := cel.MapType(str, cel.DoubleType), cel.MapType(str, str)
	fit := Method("strategyFit", "Weighted mean, 0 to 1, over the requested resources that weights names. For one of strategy "+
		"MostAllocated it is what would be used, as a part of allocatable; for any other what would be left. "+
		"types has the strategy of each resource, and otherwise is that of the rest. A name that ends in * stands for all that begin like it, "+
		"where none is written out and no longer one fits; a * alone, or within, stands for nothing. "+
		"A resource that the node lacks counts as 0; one that would not fit makes the whole 0.",
		[]*cel.Type{NodeType(), TaskType(), words, numbers, str}, cel.DoubleType, func(args ...ref.Val) ref.Val {
			n, okN := args[0].(*NodeView)
			t, okT := args[1].(*TaskView)
			kinds, okK := args[2].(traits.Mapper)
			weights, okW := args[3].(traits.Mapper)
			if !okN || !okT || !okK || !okW {
				return wrongArgument(args[0])
			}
			return types.Double(strategyFit(&n.World.c.Nodes, n.Of.Row, strategiesOf(t.Of.Request, kinds, weights, args[4], n.World.c.Dims)))
		}, "{0}.allocatable", "{0}.used", "{1}.request")
	fit = called(natively(fit, always(&rules.Native{Doubles: strategyColumn})), "task", "types", "weights", "otherwise")
	parse := Method("jsonNumbers", "The JSON object of numbers that the text is; none where it is anything else.", []*cel.Type{str},
		cel.OptionalType(numbers), func(args ...ref.Val) ref.Val {
			s, ok := args[0].(types.String)
			if !ok {
				return wrongArgument(args[0])
			}
			var m map[string]float64
			if json.Unmarshal([]byte(s), &m) != nil || m == nil {
				return types.OptionalNone
			}
			out := make(map[ref.Val]ref.Val, len(m))
			for k, v := range m {
				out[types.String(k)] = types.Double(v)
			}
			return types.OptionalOf(types.NewRefValMap(types.DefaultTypeAdapter, out))
		}, rules.Arguments)
	return []*rules.Function{fit, parse}
}

// strategy describes how one requested resource is scored.
type strategy struct {
	dim           int
	asked, weight float64
	most          bool
}

// strategiesOf returns the strategies of all requested resources. It looks up both maps for each of them.
func strategiesOf(request model.Resources, kinds, weights traits.Mapper, otherwise ref.Val, dims *model.Dims) []strategy {
	var out []strategy
	for dim, asked := range request {
		if !(asked > 0) {
			continue
		}
		name := dims.Name(dim)
		weight, _ := Number(byPattern(weights, name))
		if !(weight > 0) {
			continue
		}
		kind := byPattern(kinds, name)
		if kind == nil {
			kind = otherwise
		}
		out = append(out, strategy{dim, asked, weight, kind == types.String(mostAllocatedName)})
	}
	return out
}

// strategyFit is a function instead of a row of its table, because it has a column form and uses internal units: see decision 35.
func strategyFit(nodes *model.Nodes, row int32, strategies []strategy) float64 {
	score, total := 0.0, 0.0
	for i := range strategies {
		x := &strategies[i]
		total += x.weight
		allocatable := nodes.Allocatable[x.dim][row]
		if !(allocatable > 0) {
			continue
		}
		used := nodes.Used[x.dim][row] + x.asked
		if used > allocatable {
			return 0
		}
		if x.most {
			score += x.weight * used / allocatable
		} else {
			score += x.weight * (allocatable - used) / allocatable
		}
	}
	if total == 0 {
		return 0
	}
	return score / total
}

// strategyColumn reads the maps once for all nodes.
func strategyColumn(r rules.Rows, args []rules.Source, rows []int32, out []float64) bool {
	t, okT := args[1].Value.(*TaskView)
	kinds, okK := args[2].Value.(traits.Mapper)
	weights, okW := args[3].Value.(traits.Mapper)
	if !args[0].Row || !okT || !okK || !okW || args[4].Value == nil {
		return false
	}
	c := worldOf(r).c
	strategies := strategiesOf(t.Of.Request, kinds, weights, args[4].Value, c.Dims)
	for i, row := range rows {
		out[i] = strategyFit(&c.Nodes, row, strategies)
	}
	return true
}

// byPattern finds a name in a map of names and patterns: the exact name, otherwise the longest matching pattern; nil if there is none.
func byPattern(m traits.Mapper, name string) ref.Val {
	if v, ok := m.Find(types.String(name)); ok {
		return v
	}
	var best ref.Val
	longest := 0
	for it := m.Iterator(); it.HasNext() == types.True; {
		key := it.Next()
		pattern, _ := key.(types.String)
		prefix, found := strings.CutSuffix(string(pattern), "*")
		if found && len(prefix) > longest && !strings.Contains(prefix, "*") && strings.HasPrefix(name, prefix) {
			best, longest = m.Get(key), len(prefix)
		}
	}
	return best
}
