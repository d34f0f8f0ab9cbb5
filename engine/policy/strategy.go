package policy

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

// mostAllocatedName is the strategy of filling nodes, as Kubernetes writes it; every other word stands for LeastAllocated.
const mostAllocatedName = "MostAllocated"

// strategyFunctions are those about a strategy of its own for each resource.
func strategyFunctions() []*rules.Function {
	str := cel.StringType
	numbers, words := cel.MapType(str, cel.DoubleType), cel.MapType(str, str)
	fit := method("strategyFit", "Weighted mean, 0 to 1, over the requested resources that weights names. For one of strategy MostAllocated it is what would be used, as a part of allocatable; for any other what would be left. "+
		"types has the strategy of each resource, and otherwise is that of the rest. A name that ends in * stands for all that begin like it, where none is written out and no longer one fits; a * alone, or within, stands for nothing. "+
		"A resource that the node lacks counts as 0; one that would not fit makes the whole 0.",
		[]*cel.Type{nodeType(), taskType(), words, numbers, str}, cel.DoubleType, func(args ...ref.Val) ref.Val {
			n, okN := args[0].(*nodeView)
			t, okT := args[1].(*taskView)
			kinds, okK := args[2].(traits.Mapper)
			weights, okW := args[3].(traits.Mapper)
			if !okN || !okT || !okK || !okW {
				return wrongArgument(args[0])
			}
			return types.Double(strategyFit(n, t.of.Request, kinds, weights, args[4]))
		}, "{0}.allocatable", "{0}.used", "{1}.request")
	parse := method("jsonNumbers", "The JSON object of numbers that the text is; none where it is anything else.", []*cel.Type{str}, cel.OptionalType(numbers), func(args ...ref.Val) ref.Val {
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
	})
	parse.Overloads[0].Reads = nil
	return []*rules.Function{fit, parse}
}

// strategyFit costs a look at both maps for each resource that is requested.
func strategyFit(n *nodeView, request model.Resources, kinds, weights traits.Mapper, otherwise ref.Val) float64 {
	score, total := 0.0, 0.0
	nodes := &n.s.c.Nodes
	for dim, asked := range request {
		if !(asked > 0) {
			continue
		}
		name := n.s.c.Dims.Name(dim)
		weight, _ := number(byPattern(weights, name))
		if !(weight > 0) {
			continue
		}
		total += weight
		allocatable := nodes.Allocatable[dim][n.of.Row]
		if !(allocatable > 0) {
			continue
		}
		used := nodes.Used[dim][n.of.Row] + asked
		if used > allocatable {
			return 0
		}
		kind := byPattern(kinds, name)
		if kind == nil {
			kind = otherwise
		}
		if kind == types.String(mostAllocatedName) {
			score += weight * used / allocatable
		} else {
			score += weight * (allocatable - used) / allocatable
		}
	}
	if total == 0 {
		return 0
	}
	return score / total
}

// byPattern finds a name in a map of names and patterns: as it is written, else the longest pattern; nil if there is none.
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
