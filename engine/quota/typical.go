package quota

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/celsius-scheduler/celsius/engine/model"
)

// Typical contains the most frequent shapes of a workload's tasks, each with its part of them. It never changes.
type Typical struct {
	shapes []typicalShape
	models []string // all models that some shape names
	needs  []int64  // requested thousandths of a device, of any shape, ascending
	text   string
	key    string // see Key
}

// typicalShape is one shape, in the form that Fragments needs.
type typicalShape struct {
	cpu    float64
	count  int
	need   int     // index in needs; -1 without devices
	weight float64 // the sum over all shapes is 1
	models []bool  // allowed models, by index in Typical.models; nil: any
	reach  int     // number of devices of the nodes on which it could run if they were empty
}

// NewTypical takes the most frequent shapes until they cover the part cover of all tasks, for example 0.95 for 95 %. It weights each by its
// part of the taken tasks. Equally frequent shapes are taken in this order: more CPU, then more of a device, then more devices, then the
// models that are last in the alphabet. (Weng et al., "Beware of Fragmentation", USENIX ATC 2023, section 4.1.) nodes are the nodes for the
// tasks, as if they were empty.
func NewTypical(workload []model.Shape, cover float64, nodes []Machine) *Typical {
	t := &Typical{}
	shapes, total := frequent(workload)
	taken := int64(0)
	for i, s := range shapes {
		if float64(taken) >= cover*float64(total) {
			shapes = shapes[:i]
			break
		}
		taken += s.Tasks
	}
	for _, s := range shapes {
		if s.GPUCount > 0 && s.GPUMilli > 0 && !slices.Contains(t.needs, s.GPUMilli) {
			t.needs = append(t.needs, s.GPUMilli)
		}
		for _, m := range s.GPUModels {
			if !slices.Contains(t.models, m) {
				t.models = append(t.models, m)
			}
		}
	}
	slices.Sort(t.needs)
	part := float64(taken) / float64(total)
	var text strings.Builder
	for _, s := range shapes {
		typical := t.shape(s, float64(s.Tasks)/float64(total)/part)
		fmt.Fprintf(&text, "%dx(%g,%dx%d,%s", s.Tasks, s.CPU, s.GPUCount, s.GPUMilli, modelsOf(s))
		if typical.need >= 0 {
			typical.reach = reach(s, nodes)
			fmt.Fprintf(&text, " on %d", typical.reach)
		}
		text.WriteString(") ")
		t.shapes = append(t.shapes, typical)
	}
	t.text = text.String()
	t.key = fmt.Sprintf("%d: %s", total, t.text)
	return t
}

func (t *Typical) shape(s model.Shape, weight float64) typicalShape {
	out := typicalShape{cpu: s.CPU, count: int(s.GPUCount), need: -1, weight: weight}
	if s.GPUCount == 0 {
		return out
	}
	out.need = slices.Index(t.needs, s.GPUMilli)
	if len(s.GPUModels) > 0 {
		out.models = make([]bool, len(t.models))
		for i, m := range t.models {
			out.models[i] = slices.Contains(s.GPUModels, m)
		}
	}
	return out
}

// Machine is a group of equal nodes, without any task.
type Machine struct {
	CPU     float64 // of one node, in inner units: thousandths of a core
	Devices int     // of one node
	Model   string  // of the devices
	Nodes   int     // number of nodes
}

// reach returns the number of devices of the machines on which a task that requests devices could run.
func reach(s model.Shape, nodes []Machine) (devices int) {
	for _, m := range nodes {
		if s.CPU <= m.CPU && s.GPUCount <= int64(m.Devices) && (len(s.GPUModels) == 0 || slices.Contains(s.GPUModels, m.Model)) {
			devices += m.Devices * m.Nodes
		}
	}
	return devices
}

// frequent merges equal shapes, most tasks first, and counts all tasks.
func frequent(workload []model.Shape) (shapes []model.Shape, total int64) {
	type key struct {
		cpu          float64
		count, milli int64
		models       string
	}
	at := map[key]int{}
	for _, s := range workload {
		k := key{s.CPU, s.GPUCount, s.GPUMilli, modelsOf(s)}
		i, known := at[k]
		if !known {
			i = len(shapes)
			at[k] = i
			shapes = append(shapes, s)
			shapes[i].Tasks = 0
		}
		shapes[i].Tasks += s.Tasks
		total += s.Tasks
	}
	slices.SortFunc(shapes, func(a, b model.Shape) int {
		return cmp.Or(cmp.Compare(b.Tasks, a.Tasks), cmp.Compare(b.CPU, a.CPU), cmp.Compare(b.GPUMilli, a.GPUMilli),
			cmp.Compare(b.GPUCount, a.GPUCount), strings.Compare(modelsOf(b), modelsOf(a)))
	})
	return shapes, total
}

func modelsOf(s model.Shape) string { return strings.Join(s.GPUModels, "|") }

// String lists the shapes.
func (t *Typical) String() string { return t.text }

// Key is equal for equal shapes with equal weights. It contains the number of all tasks, because the last bit of the weights depends on it.
func (t *Typical) Key() string { return t.key }

// Room contains the free resources of a node.
type Room struct {
	CPU   float64 // in inner units: thousandths of a core
	GPUs  []int64 // thousandths of each device, ascending
	Model string  // of the devices
}

// fewNeeds is the number of amounts that are counted without allocating memory.
const fewNeeds = 64

// Reasons why free devices are of no use to a shape. Each has its own sum, and the sums are added in this order. The last bit of the
// result, and later rounding, depend on the order.
const (
	lacksBoth = iota
	lacksGPU  // also what is free on devices that have too little, if the shape fits on others
	lacksCPU
	needsNone
	needsNoneLacksCPU
	wrongModel
	wastes
)

// Fragments returns the thousandths of free devices on a node that are of no use to a typical task, as a mean over these. All are of no use
// if the task requests no device, lacks CPU or devices, or may not use the model. Otherwise what is free on devices with less than the task
// requests is of no use. Memory is not considered. (Weng et al., section 4.2.) The cost is one step for each shape, device and requested
// amount.
func (t *Typical) Fragments(r Room) float64 {
	var all int64
	for _, free := range r.GPUs {
		all += free
	}
	var few [2 * fewNeeds]int64
	enough, below := few[:fewNeeds], few[fewNeeds:]
	if len(t.needs) > fewNeeds {
		enough, below = make([]int64, len(t.needs)), make([]int64, len(t.needs))
	}
	i, sum := 0, int64(0)
	for n, need := range t.needs {
		for i < len(r.GPUs) && r.GPUs[i] < need {
			sum += r.GPUs[i]
			i++
		}
		enough[n], below[n] = int64(len(r.GPUs)-i), sum
	}
	named := slices.Index(t.models, r.Model)
	var sums [wastes]float64
	for k := range t.shapes {
		s := &t.shapes[k]
		kind, waste := wasteOf(s, r.CPU, named, enough), all
		if kind == wastes {
			kind, waste = lacksGPU, below[s.need]
		}
		sums[kind] += s.weight * float64(waste)
	}
	out := 0.0
	for _, sum := range sums {
		out += sum
	}
	return out
}

// wasteOf returns the reason why all that is free is of no use to a shape, or wastes if it is of use.
func wasteOf(s *typicalShape, cpu float64, model int, enough []int64) int {
	lacks := s.cpu > cpu
	switch {
	case s.need < 0 && lacks:
		return needsNoneLacksCPU
	case s.need < 0:
		return needsNone
	case s.models != nil && (model < 0 || !s.models[model]):
		return wrongModel
	case enough[s.need] < int64(s.count) && lacks:
		return lacksBoth
	case enough[s.need] < int64(s.count):
		return lacksGPU
	case lacks:
		return lacksCPU
	}
	return wastes
}

// Take returns the free amounts of devices after count of them lose milli each, in ascending order. It takes the devices with the smallest
// sufficient amount. ok is false if there are too few. The result uses the memory of into.
func Take(into, free []int64, count, milli int64) (left []int64, ok bool) {
	into = append(into[:0], free...)
	for i := range into {
		if count == 0 {
			break
		}
		if into[i] >= milli {
			into[i] -= milli
			count--
		}
	}
	slices.Sort(into)
	return into, count == 0
}

// Gain rates a change from before to after, in fragments. It is 100 times the logistic function of the removed fragments, in devices,
// truncated to a whole number. 50, or 49 because of the last bit, means no change. (Weng et al., section 4.3 and their simulator.)
func Gain(before, after float64) float64 {
	return math.Trunc(1 / (1 + math.Exp(-(before-after)/model.WholeGPU)) * 100)
}
