package language

import (
	"math"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"

	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/rules"
)

// Usage that is assumed in least- and most-allocated for a pod that requests no CPU or memory, as in Kubernetes.
const (
	DefaultMilliCPU    = 100
	DefaultMemoryBytes = 200 * 1024 * 1024
)

// offer contains the inputs of a node score for one resource: the columns of the resource, and the task's request.
type offer struct {
	allocatable, used []float64
	unasked           []int32 // number of tasks that each count as byDefault in addition to used; nil: none
	byDefault         float64
	request, weight   float64
}

// offerOf returns the offer of a resource for a task, with weight 1.
func offerOf(n *model.Nodes, t *model.Task, dim int) offer {
	return offer{allocatable: n.Allocatable[dim], used: n.Used[dim], request: t.Request.Get(dim), weight: 1}
}

// counted returns the offer with the default usage of pods that request no CPU or memory, as Kubernetes' allocation scorers count it.
func (p offer) counted(n *model.Nodes, dim int) offer {
	switch dim {
	case model.CPU:
		p.byDefault = DefaultMilliCPU
	case model.Memory:
		p.byDefault = DefaultMemoryBytes
	default:
		return p
	}
	p.unasked = n.Unasked[dim]
	if p.request == 0 {
		p.request = p.byDefault
	}
	return p
}

// scorer computes a score of a node for a task from offers. The function offers appends those of the resources and weights that the
// policy's row names. The function score computes the score of one node.
type scorer struct {
	offers func(out []offer, n *model.Nodes, dims *model.Dims, t *model.Task, names []weighedName) []offer
	score  func(offers []offer, row int32) float64
}

// of returns the score of a row of the node table.
func (x *scorer) of(w *World, row int32, t *model.Task, names []weighedName) float64 {
	if w.Shared {
		return x.score(x.offers(nil, &w.c.Nodes, w.c.Dims, t, names), row)
	}
	w.offers = x.offers(w.offers[:0], &w.c.Nodes, w.c.Dims, t, names)
	return x.score(w.offers, row)
}

// forms returns the scorer's native forms for rows of the policy that name their resources as constants.
func (x *scorer) forms(names []weighedName) *rules.Native {
	return &rules.Native{
		Double: ofTwo(func(n *NodeView, t *TaskView) float64 { return x.of(n.World, n.Of.Row, t.Of, names) }),
		Doubles: func(r rules.Rows, args []rules.Source, rows []int32, out []float64) bool {
			t, ok := args[1].Value.(*TaskView)
			if !ok || !args[0].Row {
				return false
			}
			w, d := worldOf(r), workspaceOf(r)
			d.offers = x.offers(d.offers[:0], &w.c.Nodes, w.c.Dims, t.Of, names)
			for i, row := range rows {
				out[i] = x.score(d.offers, row)
			}
			return true
		},
	}
}

// function returns the scorer as a method of a node. Its arguments are a task and the resources and weights, which named reads from args.
func (x *scorer) function(name, doc string, more []*cel.Type, named func(args []ref.Val) ([]weighedName, bool)) *rules.Function {
	fn := Method(name, doc, append([]*cel.Type{NodeType(), TaskType()}, more...), cel.DoubleType, func(args ...ref.Val) ref.Val {
		n, okN := args[0].(*NodeView)
		t, okT := args[1].(*TaskView)
		names, okL := named(args)
		if !okN || !okT || !okL {
			return wrongArgument(args[0])
		}
		return types.Double(x.of(n.World, n.Of.Row, t.Of, names))
	}, "{0}.allocatable", "{0}.used", "{1}.request")
	return natively(fn, func(constants []ref.Val) *rules.Native {
		names, ok := named(constants)
		if !ok {
			return nil
		}
		return x.forms(names)
	})
}

// allocationFunctions returns the node scores that depend on allocated resources.
func allocationFunctions() []*rules.Function {
	listed := []*cel.Type{cel.ListType(cel.StringType)}
	least, most := percentages(false), percentages(true)
	balanced, binpack := &scorer{askedFor, balanced}, &scorer{weighed, binpack}
	return []*rules.Function{
		least.function("leastAllocated", "Mean over the named resources of what would be left, in whole percent of allocatable: Kubernetes' "+
			"LeastAllocated, 0 to 100.", listed, listedNames),
		most.function("mostAllocated", "Mean over the named resources of what would be used, in whole percent of allocatable: Kubernetes' "+
			"MostAllocated, 0 to 100.", listed, listedNames),
		balanced.function("balanced", "How the task changes the balance of the named resources' use, which is 100 less its standard deviation "+
			"in percent: Kubernetes' BalancedAllocation, 50 to 100, about 75 where nothing changes; 0 for a task that asks for none of them. A "+
			"resource other than cpu and memory counts for tasks that ask for it.", listed, listedNames),
		called(binpack.function("binpack", "Weighted mean over the requested resources of (used + request) / allocatable, 0 to 1: cpu and "+
			"memory with their weights, the named ones with theirs (1 if the map has none). "+
			"A resource that the node lacks counts as 0; one that would not fit makes the whole 0.",
			[]*cel.Type{cel.DoubleType, cel.DoubleType, cel.ListType(cel.StringType), cel.MapType(cel.StringType, cel.DoubleType)}, binpackWeights),
			"task", "cpuWeight", "memoryWeight", "resources", "weights"),
	}
}

// weighedName is a resource with its weight.
type weighedName struct {
	resourceName
	weight float64
}

// listedNames returns the resources of the third argument, all with weight 1; false: it is not a list of names.
func listedNames(args []ref.Val) (names []weighedName, ok bool) {
	listed, ok := resourceNames(args[2])
	for _, name := range listed {
		names = append(names, weighedName{name, 1})
	}
	return names, ok
}

// percentages returns a scorer with the mean over the named resources of what would be used, or otherwise left, in whole percent. It skips
// resources that the node lacks. Usage above allocatable, which default requests can cause, counts as 100%.
func percentages(most bool) *scorer {
	return &scorer{
		offers: func(out []offer, n *model.Nodes, dims *model.Dims, t *model.Task, names []weighedName) []offer {
			for _, name := range names {
				if dim, ok := name.in(dims); ok {
					out = append(out, offerOf(n, t, dim).counted(n, dim))
				}
			}
			return out
		},
		score: func(offers []offer, row int32) float64 {
			sum, count := 0.0, 0.0
			for i := range offers {
				p := &offers[i]
				allocatable := p.allocatable[row]
				if !(allocatable > 0) {
					continue
				}
				used := p.used[row]
				if p.unasked != nil {
					used += p.byDefault * float64(p.unasked[row])
				}
				used = min(used+p.request, allocatable)
				if !most {
					used = allocatable - used
				}
				count++
				sum += math.Trunc(used * 100 / allocatable)
			}
			if count == 0 {
				return 0
			}
			return math.Trunc(sum / count)
		},
	}
}

// askedFor appends the offers of the named resources for the balance. Resources that the task does not request only count if they are CPU
// or memory. It appends none if the task requests none of the resources.
func askedFor(out []offer, n *model.Nodes, dims *model.Dims, t *model.Task, names []weighedName) []offer {
	asks := false
	for _, name := range names {
		dim, ok := name.in(dims)
		if !ok {
			continue
		}
		p := offerOf(n, t, dim)
		asks = asks || p.request > 0
		if p.request != 0 || dim <= model.Memory {
			out = append(out, p)
		}
	}
	if !asks {
		return out[:0]
	}
	return out
}

// balanced returns Kubernetes 1.36's score for the balance with and without the task. It is about 75 if the balance does not change, and
// more if the task improves it. It is 0 for a task that requests none of the resources.
func balanced(offers []offer, row int32) float64 {
	if len(offers) == 0 {
		return 0
	}
	if len(offers) == 2 {
		p, q := &offers[0], &offers[1]
		if a, b := p.allocatable[row], q.allocatable[row]; a > 0 && b > 0 { // a fast path for most tasks and nodes, without a list
			without := math.Abs((min(p.used[row]/a, 1) - min(q.used[row]/b, 1)) / 2)
			with := math.Abs((min((p.used[row]+p.request)/a, 1) - min((q.used[row]+q.request)/b, 1)) / 2)
			return better(with, without)
		}
	}
	var with, without fractions
	for i := range offers {
		p := &offers[i]
		if allocatable := p.allocatable[row]; allocatable > 0 {
			without.add(p.used[row] / allocatable)
			with.add((p.used[row] + p.request) / allocatable)
		}
	}
	return better(with.deviation(), without.deviation())
}

// better returns the score for two deviations. Each counts as 100 minus the deviation, in whole percent.
func better(with, without float64) float64 {
	balance := math.Trunc((1-with)*100) - math.Trunc((1-without)*100)
	return 50 + math.Trunc((50+balance)/2)
}

// fractions contains the used fractions of up to eight resources. Further ones are ignored.
type fractions struct {
	parts [8]float64
	count int
}

func (f *fractions) add(part float64) {
	if f.count < len(f.parts) {
		f.parts[f.count] = min(part, 1)
		f.count++
	}
}

// deviation returns their standard deviation.
func (f *fractions) deviation() float64 {
	parts := f.parts[:f.count]
	switch {
	case len(parts) < 2:
		return 0
	case len(parts) == 2:
		return math.Abs((parts[0] - parts[1]) / 2)
	}
	mean, sum := 0.0, 0.0
	for _, p := range parts {
		mean += p / float64(len(parts))
	}
	for _, p := range parts {
		sum += (p - mean) * (p - mean)
	}
	return math.Sqrt(sum / float64(len(parts)))
}

// binpackWeights returns the weights in binpack's last four arguments; false: they have other types.
func binpackWeights(args []ref.Val) (weights []weighedName, ok bool) {
	cpu, okC := Number(args[2])
	memory, okM := Number(args[3])
	listed, okL := resourceNames(args[4])
	own, okO := args[5].(traits.Mapper)
	if !okC || !okM || !okL || !okO {
		return nil, false
	}
	weights = []weighedName{{dimension("cpu"), cpu}, {dimension("memory"), memory}}
	for _, name := range listed {
		weight := 1.0
		if v, found := own.Find(types.String(name.name)); found {
			weight, _ = Number(v)
		}
		weights = append(weights, weighedName{name, weight})
	}
	return weights, true
}

// weighed appends the offers of the requested resources, with their weights.
func weighed(out []offer, n *model.Nodes, dims *model.Dims, t *model.Task, names []weighedName) []offer {
	for _, name := range names {
		if dim, ok := name.in(dims); ok && t.Request.Get(dim) != 0 {
			p := offerOf(n, t, dim)
			p.weight = name.weight
			out = append(out, p)
		}
	}
	return out
}

// binpack returns the score of docs/volcano.md, Binpack, without the factor 100 and the table's weight. It is a function instead of a row
// of that table, because it has a column form and uses internal units: see decision 35.
func binpack(offers []offer, row int32) float64 {
	score, total := 0.0, 0.0
	for i := range offers {
		p := &offers[i]
		total += p.weight
		allocatable, used := p.allocatable[row], p.used[row]+p.request
		if !(allocatable > 0) {
			continue
		}
		if used > allocatable {
			return 0
		}
		score += p.weight * used / allocatable
	}
	if total == 0 {
		return 0
	}
	return score / total
}
