package language

import (
	"fmt"
	"slices"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/rules"
)

// Functions returns every function of the language that CEL and Kubernetes' libraries do not have.
func Functions() []*rules.Function {
	all := slices.Concat(resourceFunctions(), nodeFunctions(), strategyFunctions(), fragmentFunctions(), shareTreeFunctions(),
		bucketFunctions(), numaFunctions(), answerFunctions(), nodeClassFunctions(), generalFunctions(), timeFunctions())
	for _, f := range all {
		f.Overloads = takingInts(f.Overloads)
	}
	return all
}

// takingInts adds overloads that accept ints in place of doubles, and of maps of doubles. The functions compute with every number.
func takingInts(overloads []rules.Overload) []rules.Overload {
	out := overloads
	for _, o := range overloads {
		for _, args := range intForms(o.Args)[1:] {
			o := o
			o.ID, o.Args, o.Ints = fmt.Sprintf("%s_int%d", overloads[0].ID, len(out)), args, true
			out = append(out, o)
		}
	}
	return out
}

// intForms returns the argument lists with ints in place of some or all doubles. The first list is the given one.
func intForms(args []*cel.Type) [][]*cel.Type {
	out := [][]*cel.Type{{}}
	for _, arg := range args {
		forms := []*cel.Type{arg}
		switch numbers := cel.MapType(cel.StringType, cel.DoubleType); {
		case arg.IsExactType(cel.DoubleType):
			forms = append(forms, cel.IntType)
		case arg.IsExactType(numbers):
			forms = append(forms, cel.MapType(cel.StringType, cel.IntType))
		}
		var longer [][]*cel.Type
		for _, form := range forms {
			for _, before := range out {
				longer = append(longer, append(slices.Clone(before), form))
			}
		}
		out = longer
	}
	return out
}

// called sets the argument names for the documentation.
func called(f *rules.Function, names ...string) *rules.Function {
	f.Names = names
	return f
}

// Method returns a member function with one overload. reads names what it reads of each argument, or is rules.Arguments: the arguments
// themselves.
func Method(name, doc string, args []*cel.Type, result *cel.Type, eval func(args ...ref.Val) ref.Val, reads ...string) *rules.Function {
	o := rules.Overload{ID: "celsius_" + name, Member: true, Args: args, Result: result, Eval: guarded(eval), Reads: reads}
	return &rules.Function{Name: name, Doc: doc, Overloads: []rules.Overload{o}}
}

// guarded returns an error if an argument is null or an error, so that functions only get objects.
func guarded(eval func(args ...ref.Val) ref.Val) func(args ...ref.Val) ref.Val {
	return func(args ...ref.Val) ref.Val {
		for _, a := range args {
			if a == types.NullValue {
				return types.NewErr("an argument is null")
			}
			if types.IsError(a) {
				return a
			}
		}
		return eval(args...)
	}
}

// wrongArgument returns the error for a value that the type checker could not check, for example a dyn.
func wrongArgument(v ref.Val) ref.Val { return types.MaybeNoSuchOverloadErr(v) }

// pair returns a function of two Resources.
func pair(name, doc string, result *cel.Type, f func(a, b *Amounts) ref.Val) *rules.Function {
	r := ResourcesType()
	fn := Method(name, doc, []*cel.Type{r, r}, result, func(args ...ref.Val) ref.Val {
		a, okA := args[0].(*Amounts)
		b, okB := args[1].(*Amounts)
		if !okA || !okB {
			return wrongArgument(args[1])
		}
		return f(a, b)
	})
	fn.Overloads[0].ID, fn.Overloads[0].Reads = "resources_"+name, []string{rules.Arguments}
	return ofPair(fn, f)
}

// ofPair adds a form of a two-argument function that needs no argument list. The general form handles values of other types.
func ofPair[A, B ref.Val](fn *rules.Function, f func(a A, b B) ref.Val) *rules.Function {
	o := &fn.Overloads[0]
	general := o.Eval
	o.Two = func(a, b ref.Val) ref.Val {
		x, okX := a.(A)
		y, okY := b.(B)
		if !okX || !okY {
			return general(a, b)
		}
		return f(x, y)
	}
	return fn
}

// test returns a predicate on two Resources. column is its form for many rows; nil: none.
func test(name, doc string, f func(a, b model.Resources) bool,
	column func(rules.Rows, []rules.Source, []int32, []bool) bool,
) *rules.Function {
	fn := pair(name, doc, cel.BoolType, func(a, b *Amounts) ref.Val { return types.Bool(f(a.Resources, b.Resources)) })
	return natively(fn, always(&rules.Native{Bool: ofTwo(func(a, b *Amounts) bool { return f(a.Resources, b.Resources) }), Bools: column}))
}

// triple returns a predicate on three Resources. The last one selects the dimensions that count.
func triple(name, doc string, f func(a, b, dims model.Resources) bool,
	column func(rules.Rows, []rules.Source, []int32, []bool) bool,
) *rules.Function {
	r := ResourcesType()
	fn := Method(name, doc, []*cel.Type{r, r, r}, cel.BoolType, func(args ...ref.Val) ref.Val {
		a, okA := args[0].(*Amounts)
		b, okB := args[1].(*Amounts)
		dims, okD := args[2].(*Amounts)
		if !okA || !okB || !okD {
			return wrongArgument(args[0])
		}
		return types.Bool(f(a.Resources, b.Resources, dims.Resources))
	})
	fn.Overloads[0].ID, fn.Overloads[0].Reads = "resources_"+name, []string{rules.Arguments}
	fn.Names = []string{"b", "dims"}
	return natively(fn, always(&rules.Native{Bools: column, Bool: func(a, b, c ref.Val) (bool, bool) {
		x, okX := a.(*Amounts)
		y, okY := b.(*Amounts)
		dims, okD := c.(*Amounts)
		return okX && okY && okD && f(x.Resources, y.Resources, dims.Resources), okX && okY && okD
	}}))
}

// single returns a function of one Resources.
func single(name, doc string, result *cel.Type, f func(a *Amounts) ref.Val) *rules.Function {
	fn := Method(name, doc, []*cel.Type{ResourcesType()}, result, func(args ...ref.Val) ref.Val {
		a, ok := args[0].(*Amounts)
		if !ok {
			return wrongArgument(args[0])
		}
		return f(a)
	})
	fn.Overloads[0].ID, fn.Overloads[0].Reads = "resources_"+name, []string{rules.Arguments}
	return fn
}

func resourceFunctions() []*rules.Function {
	r, boolean := ResourcesType(), cel.BoolType
	give := func(a *Amounts, out model.Resources) ref.Val { return &Amounts{out, a.Dims} }
	both := func(a, b *Amounts, out model.Resources) ref.Val { return &Amounts{out, a.with(b)} }
	return []*rules.Function{
		test("fits", "a <= b in every dimension of a, with a slack of 0.1 of its inner unit; missing in b is 0; a requested 0 still fails "+
			"against a negative b.", model.Resources.Fits, fitsColumn(NodeAmounts())),
		triple("within", "a <= b, strictly, in each dimension in which dims is above 0; missing in b is 0.", model.Resources.Within,
			withinColumn(NodeAmounts())),
		triple("withinAny", "a <= b in some dimension in which dims is above 0 and a and b are not both about 0.", model.Resources.WithinAny,
			nil),
		triple("exceedsAny", "a > b in some dimension in which dims is above 0 and that b limits.", model.Resources.ExceedsAny, nil),
		test("overlaps", "Some dimension other than pods is above 0 in both.", model.Resources.Overlaps, nil),
		pair("over", "max(a-b, 0) in each dimension of a.", r, func(a, b *Amounts) ref.Val { return give(a, a.Resources.Over(b.Resources)) }),
		pair("min", "The smaller amount in each dimension; missing counts as 0.", r,
			func(a, b *Amounts) ref.Val { return both(a, b, a.Resources.Min(b.Resources)) }),
		pair("cap", "The smaller amount in each dimension of a; missing in b is no limit.", r,
			func(a, b *Amounts) ref.Val { return give(a, a.Resources.Cap(b.Resources)) }),
		pair("max", "The larger amount in each dimension; missing counts as 0.", r,
			func(a, b *Amounts) ref.Val { return both(a, b, a.Resources.Max(b.Resources)) }),
		natively(pair("share", "The dominant share: the largest a/b over b's dimensions; where b is 0: 0 if a is 0, else 1 (DRF, NSDI 2011).",
			cel.DoubleType,
			func(a, b *Amounts) ref.Val { return types.Double(a.Resources.Share(b.Resources)) }),
			always(&rules.Native{Double: ofTwo(func(a, b *Amounts) float64 { return a.Resources.Share(b.Resources) })})),
		pair("only", "The dimensions of a that b has.", r, func(a, b *Amounts) ref.Val { return give(a, a.Resources.Only(b.Resources)) }),
		single("positive", "The dimensions that are above 0.", r, func(a *Amounts) ref.Val { return give(a, a.Resources.Positive()) }),
		single("devices", "The dimensions of extended resources, of which Kubernetes counts whole pieces.", r, (*Amounts).devices),
		named("omit", "All dimensions but that resource.", r, (*Amounts).omit),
		emptyFunction(),
		single("names", "The names of its dimensions: cpu, memory, pods, then the others by name.", cel.ListType(cel.StringType),
			func(a *Amounts) ref.Val { return StringList(a.names()) }),
		scaleFunction(),
		named("get", "The amount of that resource in cores, bytes or pieces; 0 if absent.", cel.DoubleType,
			func(a *Amounts, name string) ref.Val { return types.Double(a.get(name)) }),
		named("milli", "The amount of that resource in thousandths, as an int.", cel.IntType,
			func(a *Amounts, name string) ref.Val { return types.Int(a.milli(name)) }),
		{
			Name: operators.Add, Doc: "The sum over the union of their dimensions.",
			Overloads: []rules.Overload{{ID: "resources_add", Args: []*cel.Type{r, r}, Result: r}},
		},
		{
			Name: operators.Subtract, Doc: "The difference over the union of their dimensions; it may go negative.",
			Overloads: []rules.Overload{{ID: "resources_subtract", Args: []*cel.Type{r, r}, Result: r}},
		},
		{Name: operators.Index, Doc: "The amount of that resource; 0 if absent.", Overloads: []rules.Overload{
			{ID: "resources_index", Args: []*cel.Type{r, cel.StringType}, Result: cel.DoubleType},
		}},
		{Name: operators.In, Doc: "Says whether the resource is there.", Overloads: []rules.Overload{
			{ID: "resources_in", Args: []*cel.Type{cel.StringType, r}, Result: boolean},
		}},
	}
}

func scaleFunction() *rules.Function {
	scale := func(args ...ref.Val) ref.Val {
		a, ok := args[0].(*Amounts)
		x, isNumber := Number(args[1])
		if !ok || !isNumber {
			return wrongArgument(args[1])
		}
		return &Amounts{a.Resources.Scale(x), a.Dims}
	}
	r := ResourcesType()
	return &rules.Function{Name: "scale", Doc: "Every amount times x; amounts may become fractional.", Overloads: []rules.Overload{
		{
			ID: "resources_scale", Member: true, Args: []*cel.Type{r, cel.DoubleType}, Result: r, Reads: []string{rules.Arguments},
			Eval: guarded(scale),
		},
	}}
}

func named(name, doc string, result *cel.Type, f func(a *Amounts, name string) ref.Val) *rules.Function {
	fn := Method(name, doc, []*cel.Type{ResourcesType(), cel.StringType}, result, func(args ...ref.Val) ref.Val {
		a, ok := args[0].(*Amounts)
		n, isString := args[1].(types.String)
		if !ok || !isString {
			return wrongArgument(args[1])
		}
		return f(a, string(n))
	})
	fn.Overloads[0].ID, fn.Overloads[0].Reads = "resources_"+name, []string{rules.Arguments}
	return ofPair(fn, func(a *Amounts, name types.String) ref.Val { return f(a, string(name)) })
}

// taskNode returns a method of a task with a node as its argument.
func taskNode(name, doc string, result *cel.Type, f func(t *TaskView, n *NodeView) ref.Val, reads ...string) *rules.Function {
	return Method(name, doc, []*cel.Type{TaskType(), NodeType()}, result, func(args ...ref.Val) ref.Val {
		t, okT := args[0].(*TaskView)
		n, okN := args[1].(*NodeView)
		if !okT || !okN {
			return wrongArgument(args[0])
		}
		return f(t, n)
	}, reads...)
}

// taskNodeTest returns a predicate on a task and a node. column is its form for many rows; nil: none.
func taskNodeTest(name, doc string, f func(t *TaskView, n *NodeView) bool, column func(rules.Rows, []rules.Source, []int32, []bool) bool,
	reads ...string,
) *rules.Function {
	fn := taskNode(name, doc, cel.BoolType, func(t *TaskView, n *NodeView) ref.Val { return types.Bool(f(t, n)) }, reads...)
	return natively(fn, always(&rules.Native{Bools: column, Bool: ofTwo(f)}))
}

// nodeFunctions returns the functions of a pod and a node.
func nodeFunctions() []*rules.Function {
	return slices.Concat(ownNodeFunctions(), allocationFunctions(), nearFunctions(), imageFunctions())
}

// ownNodeFunctions returns the functions that read only the pod and the node itself.
func ownNodeFunctions() []*rules.Function {
	boolean, num := cel.BoolType, cel.IntType
	terms := []string{"{0}.nodeTerms", "{1}.name", "{1}.labels"}
	tolerated := []string{"{0}.tolerations", "{1}.taints"}
	return []*rules.Function{
		natively(taskNode("matchesNodeAffinity", "The node matches the pod's nodeSelector and its required node affinity.", boolean,
			matchesNodeAffinity, terms...),
			always(&rules.Native{Bools: matchesColumn})),
		taskNodeTest("toleratesAll", "The pod tolerates every taint of the node of effect NoSchedule or NoExecute.",
			func(t *TaskView, n *NodeView) bool {
				_, found := t.Of.FirstUntolerated(n.Of)
				return !found
			}, nil, tolerated...),
		taskNode("firstUntolerated", "The first taint that the pod does not tolerate, as {key: value}; \"\" if there is none.", cel.StringType,
			func(t *TaskView, n *NodeView) ref.Val {
				taint, found := t.Of.FirstUntolerated(n.Of)
				if !found {
					return types.String("")
				}
				return types.String("{" + taint.Key + ": " + taint.Value + "}")
			}, tolerated...),
		taskNode("intolerablePreferNoSchedule", "How many taints of effect PreferNoSchedule the pod does not tolerate.", num,
			func(t *TaskView, n *NodeView) ref.Val {
				return types.Int(intolerablePreferNoSchedule(t, n))
			}, tolerated...),
		Method("toleratesUnschedulable", "The pod tolerates the taint of a cordoned node.", []*cel.Type{TaskType()}, boolean,
			func(args ...ref.Val) ref.Val {
				t, ok := args[0].(*TaskView)
				if !ok {
					return wrongArgument(args[0])
				}
				return types.Bool(toleratesUnschedulable(t.Of))
			}, "{0}.tolerations"),
		taskNodeTest("portsFree", "None of the pod's host ports is taken on the node.", portsFree, portsColumn, "{0}.hostPorts",
			"{1}.tasks.hostPorts"),
		natively(taskNode("nodeAffinityScore", "Sum of the weights of the pod's preferred node affinity terms that the node matches.",
			cel.DoubleType, func(t *TaskView, n *NodeView) ref.Val {
				return types.Double(nodeAffinityScore(t.Of, n.Of))
			}, "{0}.preferredNodeTerms", "{1}.name", "{1}.labels"), always(&rules.Native{Doubles: preferenceColumn})),
		gpusWithFunction(),
		ofDevice("takes", "The device has what the task asks of one free: thousandths, memory, and a place among those who share it.",
			cel.BoolType, func(g *model.GPU, t *model.Task) ref.Val { return types.Bool(g.Takes(t)) }, "{0}.free", "{0}.taskCount", "{0}.sharers",
			"{0}.unlisted", "{1}.requestsGPUs"),
		ofDevice("memoryFor", "How much of the device's memory the task would take, in bytes: all of it with the whole device, unless it says "+
			"how much.", cel.IntType, func(g *model.GPU, t *model.Task) ref.Val { return types.Int(t.DeviceMemory(g)) }),
	}
}

// ofDevice returns a function of a device and a task.
func ofDevice(name, doc string, gives *cel.Type, of func(g *model.GPU, t *model.Task) ref.Val, reads ...string) *rules.Function {
	reads = append(reads, "{0}.capacity", "{0}.memory", "{0}.memoryFree", "{1}.gpuMilli", "{1}.gpuMemory", "{1}.gpuPercent")
	return Method(name, doc, []*cel.Type{GPUType(), TaskType()}, gives, func(args ...ref.Val) ref.Val {
		g, ok := args[0].(*GPUView)
		t, isTask := args[1].(*TaskView)
		if !ok || !isTask {
			return wrongArgument(args[1])
		}
		return of(g.Of, t.Of)
	}, reads...)
}

func gpusWithFunction() *rules.Function {
	of := func(n *NodeView, milli types.Int) int64 {
		return gpusWith(n.World.c.Nodes.GPUs[n.Of.Row], int64(milli))
	}
	fn := Method("gpusWith", "How many devices of the node have at least so many thousandths free.", []*cel.Type{NodeType(), cel.IntType},
		cel.IntType, func(args ...ref.Val) ref.Val {
			n, ok := args[0].(*NodeView)
			milli, isInt := args[1].(types.Int)
			if !ok || !isInt {
				return wrongArgument(args[1])
			}
			return types.Int(of(n, milli))
		}, "{0}.gpus.free")
	return natively(fn, always(&rules.Native{Int: ofTwo(of), Ints: func(t rules.Rows, args []rules.Source, rows []int32, out []int64) bool {
		milli, ok := args[1].Value.(types.Int)
		if !ok || !args[0].Row {
			return false
		}
		n := &worldOf(t).c.Nodes
		for i, row := range rows {
			out[i] = gpusWith(n.GPUs[row], int64(milli))
		}
		return true
	}}))
}

func gpusWith(gpus []model.GPU, milli int64) int64 {
	count := int64(0)
	for i := range gpus {
		if gpus[i].Free >= milli {
			count++
		}
	}
	return count
}

func generalFunctions() []*rules.Function {
	annotation := func(args ...ref.Val) ref.Val {
		t, ok := args[0].(*TaskView)
		key, isString := args[1].(types.String)
		if !ok || !isString {
			return wrongArgument(args[1])
		}
		if v, ok := t.Of.Annotations[string(key)]; ok {
			return types.OptionalOf(types.String(v))
		}
		if v, ok := t.Of.Labels[string(key)]; ok {
			return types.OptionalOf(types.String(v))
		}
		return types.OptionalNone
	}
	return []*rules.Function{
		hashFunction(),
		{Name: "resources", Doc: "Empty Resources.", Overloads: []rules.Overload{{
			ID: "resources_empty", Args: []*cel.Type{}, Result: ResourcesType(), Reads: []string{},
			Eval: func(...ref.Val) ref.Val { return &Amounts{} },
		}}},
		Method("annotation", "The annotation of that key, else the label, as an optional string.", []*cel.Type{TaskType(), cel.StringType},
			cel.OptionalType(cel.StringType), annotation, "{0}.annotations", "{0}.labels"),
	}
}
