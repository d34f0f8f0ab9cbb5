package language

import (
	"fmt"
	"slices"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"

	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/quota"
	"github.com/celsius-scheduler/celsius/engine/slab"
	"github.com/celsius-scheduler/celsius/rules"
)

// fragmentFunctions returns the functions about the remaining devices of a node.
func fragmentFunctions() []*rules.Function {
	reads := []string{"{0}.request", "{0}.gpuCount", "{0}.gpuMilli", "{1}.idle", "{1}.gpus.free", "{1}.gpuModel"}
	onNode, onDevice := slices.Concat(reads, []string{"{2}"}), slices.Concat(reads, []string{"{2}.free", "{2}.index", "{3}"})
	t, n, g, d := TaskType(), NodeType(), GPUType(), cel.DoubleType
	return []*rules.Function{
		{
			Name: "fragGain",
			Doc: "How good the node, or that one device of it, is for the task by fragmentation: 100 times the logistic function of how many " +
				"devices' worth of fragments placing it there removes, cut to a whole number; about 50 where it changes nothing. Fragments are what " +
				"is free of a node's devices and of no use to a typical task, on the average over these: all, where a task needs none, lacks CPU or " +
				"devices, or may not use the model; else what is free on devices that have less than it asks for. Without a device: for a part of " +
				"one the best of all devices, else those with the least left that suffice. 0 where too little is free (FGD; Weng et al., USENIX ATC " +
				"2023).",
			Overloads: []rules.Overload{
				{
					ID: "fragGain_node", Args: []*cel.Type{t, n, TypicalType()}, Result: d, Cost: 200, Eval: guarded(fragGain), Reads: onNode,
					Native: always(gainForms((*typical).byFragments)),
				},
				{ID: "fragGain_gpu", Args: []*cel.Type{t, n, g, TypicalType()}, Result: d, Cost: 200, Eval: guarded(fragGain), Reads: onDevice},
			},
		},
		{
			Name: "fillGain",
			Doc: "By how many thousandths of a device placing the task on the node, or on that one device of it, changes what later tasks can " +
				"be expected to fill there: below 0 as a rule, and the further, the more later tasks lose by it. Later tasks are a stream of the " +
				"typical ones that goes on for `horizon` tasks on the average, the last argument. Each device takes what comes first and fits, " +
				"again and again; what all of them would be filled with so counts by the part of it for which the node has CPU, and room for tasks " +
				"that ask for several devices, on the average over the typical tasks, where one counts the more the fewer devices the nodes have " +
				"that it could run on. Without a device: as for `fragGain`. -1e9 where too little is free.",
			Overloads: []rules.Overload{
				{
					ID: "fillGain_node", Args: []*cel.Type{t, n, TypicalType(), cel.IntType}, Result: d, Cost: 200, Eval: guarded(fillGain), Reads: onNode,
					Native: fillForms,
				},
				{
					ID: "fillGain_gpu", Args: []*cel.Type{t, n, g, TypicalType(), cel.IntType}, Result: d, Cost: 200, Eval: guarded(fillGain),
					Reads: onDevice,
				},
			},
		},
	}
}

// deviceOf returns the device in the arguments of a gain; nil if there are only as many arguments as without one.
func deviceOf(args []ref.Val, without int) ref.Val {
	if len(args) == without {
		return nil
	}
	return args[2]
}

func fragGain(args ...ref.Val) ref.Val {
	of, ok := args[len(args)-1].(*typical)
	if !ok {
		return wrongArgument(args[len(args)-1])
	}
	return gain(args[0], args[1], deviceOf(args, 3), of.byFragments())
}

func fillGain(args ...ref.Val) ref.Val {
	of, okT := args[len(args)-2].(*typical)
	horizon, okH := args[len(args)-1].(types.Int)
	if !okT || !okH {
		return wrongArgument(args[len(args)-1])
	}
	if horizon < 1 {
		return types.NewErr("a horizon must be at least 1 task, is %d", horizon)
	}
	return gain(args[0], args[1], deviceOf(args, 4), of.byFill(horizon))
}

// measure values the free resources of a node.
type measure struct {
	// of returns the value of free resources, and gain the gain of a change of this value. least is the gain if the task does not fit.
	of    func(quota.Room) float64
	gain  func(before, after float64) float64
	least float64
}

// byFragments measures useless fragments.
func (t *typical) byFragments() *measure { return t.fragments }

// byFill measures the resources that later tasks are expected to fill.
func (t *typical) byFill(horizon types.Int) *measure {
	m, known := t.fills.Load(horizon)
	if !known {
		m, _ = t.fills.LoadOrStore(horizon, &measure{
			of:   quota.NewFill(t.of, float64(horizon)).Of,
			gain: func(before, after float64) float64 { return after - before }, least: -1e9,
		})
	}
	return m.(*measure)
}

// gainForms returns the native forms of a gain on a node.
func gainForms(measured func(*typical) *measure) *rules.Native {
	return &rules.Native{
		Double: func(task, node, of ref.Val) (float64, bool) {
			t, okT := task.(*TaskView)
			n, okN := node.(*NodeView)
			by, okB := of.(*typical)
			if !okT || !okN || !okB {
				return 0, false
			}
			return n.gain(t.Of, measured(by)), true
		},
		Doubles: func(r rules.Rows, args []rules.Source, rows []int32, out []float64) bool {
			t, okT := args[0].Value.(*TaskView)
			of, okB := args[2].Value.(*typical)
			if !okT || !args[1].Row || !okB {
				return false
			}
			w, by := worldOf(r), measured(of)
			for i, row := range rows {
				out[i] = w.NodeView(row).gain(t.Of, by)
			}
			return true
		},
	}
}

// fillForms returns the native forms of fillGain for a constant horizon.
func fillForms(constants []ref.Val) *rules.Native {
	horizon, ok := constants[3].(types.Int)
	if !ok || horizon < 1 {
		return nil
	}
	return gainForms(func(t *typical) *measure { return t.byFill(horizon) })
}

// gain returns the gain of placing a task on a device, or on the node if no device is given.
func gain(task, node, gpu ref.Val, by *measure) ref.Val {
	t, okT := task.(*TaskView)
	n, okN := node.(*NodeView)
	g, okG := gpu.(*GPUView)
	if !okT || !okN || gpu != nil && !okG {
		return wrongArgument(task)
	}
	if !okG {
		return types.Double(n.gain(t.Of, by))
	}
	d := n.devices()
	d.measured(by)
	return types.Double(d.gainOn(d.after(t.Of), g.Of.Free, t.Of.GPUMilli, by))
}

// gain returns the gain of placing a task on the node. A task for a part of a device uses the best device. Any other task uses the smallest
// free devices that suffice.
func (n *NodeView) gain(t *model.Task, by *measure) float64 {
	d := n.devices()
	d.measured(by)
	after := d.after(t)
	want, count := t.GPUMilli, t.GPUCount
	if count == 1 && want < model.WholeGPU {
		best := by.least
		for i, free := range d.room.GPUs {
			if free >= want && (i == 0 || free != d.room.GPUs[i-1]) {
				best = max(best, d.gainOn(after, free, want, by))
			}
		}
		return best
	}
	left, ok := quota.Take(d.left, d.room.GPUs, count, want)
	d.left = left
	if !ok {
		return by.least
	}
	after.GPUs = left
	return by.gain(d.worth, by.of(after))
}

// freeDevices contains the free resources of a node, and their value by the last measure.
type freeDevices struct {
	version uint64 // the version of the node, plus 1
	room    quota.Room
	by      *measure
	worth   float64
	left    []int64 // a buffer that is reused
}

// after returns the free resources without the task's request for resources other than devices.
func (d *freeDevices) after(t *model.Task) quota.Room {
	return quota.Room{CPU: d.room.CPU - t.Request.Get(model.CPU), Model: d.room.Model}
}

// gainOn returns the gain of taking milli from a device with this amount free.
func (d *freeDevices) gainOn(after quota.Room, free, milli int64, by *measure) float64 {
	at, found := slices.BinarySearch(d.room.GPUs, free)
	if !found || free < milli {
		return by.least
	}
	d.left = append(d.left[:0], d.room.GPUs...)
	d.left[at] -= milli
	slices.Sort(d.left)
	after.GPUs = d.left
	return by.gain(d.worth, by.of(after))
}

// measured computes the value of the free resources if the measure changed.
func (d *freeDevices) measured(by *measure) {
	if d.by != by {
		d.by, d.worth = by, by.of(d.room)
	}
}

// devices returns the free resources of the node. It computes them again only after the node changed.
func (n *NodeView) devices() *freeDevices {
	d, row, nodes := &n.free, n.Of.Row, &n.World.c.Nodes
	if at := nodes.Version[row] + 1; d.version != at {
		d.version, d.by = at, nil
		d.room = quota.Room{CPU: nodes.Idle(model.CPU, row), GPUs: d.room.GPUs[:0], Model: n.Of.GPUModel}
		for i := range nodes.GPUs[row] {
			d.room.GPUs = append(d.room.GPUs, nodes.GPUs[row][i].Free)
		}
		slices.Sort(d.room.GPUs)
	}
	return d
}

// hashFunction returns the function for reproducible random numbers.
func hashFunction() *rules.Function {
	f := &rules.Function{
		Name: "hash01", Root: "cluster",
		Doc: "A number from 0 to below 1 that depends on the strings, in their order, and on the seed of the run, and on nothing else; for " +
			"other strings it is another one, evenly spread.",
		Overloads: []rules.Overload{{
			ID: "hash01_list", Args: []*cel.Type{ClusterType(), cel.ListType(cel.StringType)}, Result: cel.DoubleType, Reads: []string{"{0}.seed"},
			Eval: guarded(hashOfList),
		}},
	}
	for n := 1; n <= 4; n++ {
		args := append([]*cel.Type{ClusterType()}, slices.Repeat([]*cel.Type{cel.StringType}, n)...)
		f.Overloads = append(f.Overloads, rules.Overload{
			ID: fmt.Sprintf("hash01_%d", n), Args: args, Result: cel.DoubleType,
			Reads: []string{"{0}.seed"}, Eval: HashOf, Spread: true,
		})
	}
	f.Overloads[2].Native = always(&rules.Native{Double: hashOfTwo, Doubles: hashColumn}) // for two strings
	return f
}

// hashOfTwo is HashOf for two strings.
func hashOfTwo(cluster, a, b ref.Val) (float64, bool) {
	c, okC := cluster.(*ClusterView)
	x, okX := a.(types.String)
	y, okY := b.(types.String)
	if !okC || !okX || !okY {
		return 0, false
	}
	return portion(hashed(hashed(seeded(c), string(x)), string(y))), true
}

func hashOfList(args ...ref.Val) ref.Val {
	l, ok := args[1].(traits.Lister)
	if !ok {
		return wrongArgument(args[1])
	}
	n, _ := l.Size().(types.Int)
	all := []ref.Val{args[0]}
	for i := range n {
		all = append(all, l.Get(i))
	}
	return HashOf(all...)
}

// HashOf hashes the seed of the cluster, which is its first argument, and the strings that follow.
func HashOf(args ...ref.Val) ref.Val {
	c, ok := args[0].(*ClusterView)
	if !ok {
		return wrongArgument(args[0])
	}
	h := seeded(c)
	for _, v := range args[1:] {
		s, ok := v.(types.String)
		if !ok {
			return wrongArgument(v)
		}
		h = hashed(h, string(s))
	}
	return types.Double(portion(h))
}

// hashColumn is HashOf for one string that is the same for all rows and one string of each row. It hashes the first string once.
func hashColumn(t rules.Rows, args []rules.Source, rows []int32, out []float64) bool {
	c, okC := args[0].Value.(*ClusterView)
	first, okF := args[1].Value.(types.String)
	if !okC || !okF || args[2].Member == nil || args[2].Member.Strings == nil {
		return false
	}
	d := workspaceOf(t)
	d.names = slab.Resized(d.names, len(rows))
	args[2].Member.Strings(t, rows, d.names)
	from := hashed(seeded(c), string(first))
	for i, second := range d.names {
		out[i] = portion(hashed(from, second))
	}
	return true
}

// seeded returns a hash of the run's seed alone.
func seeded(c *ClusterView) uint64 { return uint64(c.Of.Seed)*fnvPrime ^ fnvOffset }

// hashed adds a string to a hash.
func hashed(h uint64, s string) uint64 {
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * fnvPrime
	}
	return (h ^ endOfString) * fnvPrime
}

// portion converts a hash to a number from 0 to below 1.
func portion(h uint64) float64 { return float64(mixed(h)>>11) / (1 << 53) }

// FNV-1a, 64 bits. endOfString marks the end of a string and is not a byte, so that ["ab"] differs from ["a", "b"].
const (
	fnvOffset   = 14695981039346656037
	fnvPrime    = 1099511628211
	endOfString = 0x100
)

// mixed spreads a hash over all 64 bits, because the last characters hardly change the high bits of FNV (Stafford's variant 13 of
// splitmix64's finisher).
func mixed(h uint64) uint64 {
	h ^= h >> 30
	h *= 0xbf58476d1ce4e5b9
	h ^= h >> 27
	h *= 0x94d049bb133111eb
	return h ^ h>>31
}
