package quota

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/celsius-scheduler/celsius/engine/model"
)

func shape(cpu float64, count, milli, tasks int64, models ...string) model.Shape {
	return model.Shape{CPU: cpu, GPUCount: count, GPUMilli: milli, Tasks: tasks, GPUModels: models}
}

// machines returns 10 nodes with two devices each, 3 nodes with eight of a rarer model, and 5 nodes without devices.
func machines() []Machine {
	return []Machine{
		{CPU: 8000, Devices: 2, Model: "A100", Nodes: 10},
		{CPU: 64000, Devices: 8, Model: "T4", Nodes: 3},
		{CPU: 96000, Nodes: 5},
	}
}

// TestReach checks on which nodes a task could run: those with enough CPU, enough devices, and an allowed model.
func TestReach(t *testing.T) {
	for _, test := range []struct {
		shape model.Shape
		want  int
	}{
		{shape(8000, 1, 500, 1), 44},
		{shape(8000, 2, 1000, 1), 44},
		{shape(8001, 1, 500, 1), 24},
		{shape(1, 3, 1000, 1), 24},
		{shape(1, 1, 1000, 1, "A100", "P100"), 20},
		{shape(1, 1, 1000, 1, "P100"), 0},
		{shape(1, 9, 1000, 1), 0},
		{shape(70000, 1, 1000, 1), 0},
	} {
		if got := reach(test.shape, machines()); got != test.want {
			t.Errorf("%+v: %d, want %d", test.shape, got, test.want)
		}
	}
}

// TestNewTypical checks that the most frequent shapes are taken until they cover enough. Equal shapes are joined first. Among equally
// frequent shapes the larger one goes first.
func TestNewTypical(t *testing.T) {
	workload := []model.Shape{
		shape(1000, 0, 0, 1), shape(2000, 1, 500, 2), shape(4000, 1, 1000, 4), shape(1000, 0, 0, 1), shape(2000, 1, 500, 1, "T4"),
		shape(2000, 2, 500, 1), shape(3000, 0, 0, 1),
	}
	for _, test := range []struct {
		cover float64
		want  string
	}{
		{1, "4x(4000,1x1000, on 44) 2x(2000,1x500, on 44) 2x(1000,0x0,) 1x(3000,0x0,) 1x(2000,2x500, on 44) 1x(2000,1x500,T4 on 24)"},
		{0.9, "4x(4000,1x1000, on 44) 2x(2000,1x500, on 44) 2x(1000,0x0,) 1x(3000,0x0,) 1x(2000,2x500, on 44)"}, // 10 of 11
		{0.5, "4x(4000,1x1000, on 44) 2x(2000,1x500, on 44)"},
		{0.01, "4x(4000,1x1000, on 44)"},
	} {
		typical := NewTypical(workload, test.cover, machines())
		if got := strings.TrimSpace(typical.String()); got != test.want {
			t.Errorf("cover %v:\ngot  %s\nwant %s", test.cover, got, test.want)
		}
		sum := 0.0
		for _, s := range typical.shapes {
			sum += s.weight
		}
		if math.Abs(sum-1) > 1e-12 {
			t.Errorf("cover %v: the weights sum up to %v", test.cover, sum)
		}
	}
	if got := NewTypical(nil, 1, machines()).Fragments(Room{GPUs: []int64{500}}); got != 0 {
		t.Errorf("where nothing is typical there are %v fragments", got)
	}
}

// TestKeyTellsWeightsApart checks two workloads that differ in the number of tasks that are not typical. The weights of the typical shapes
// then differ only in their last bits.
func TestKeyTellsWeightsApart(t *testing.T) {
	t.Parallel()
	of := func(rare int64) *Typical {
		return NewTypical([]model.Shape{
			{CPU: 4000, GPUCount: 1, GPUMilli: 1000, Tasks: 19},
			{CPU: 2000, GPUCount: 1, GPUMilli: 300, Tasks: 10},
			{CPU: 1000, Tasks: rare},
		}, 0.8, []Machine{{CPU: 64000, Devices: 4}})
	}
	few, more := of(1), of(2)
	if few.String() != more.String() {
		t.Errorf("the typical shapes are %s and %s, want the same", few, more)
	}
	if few.Key() == more.Key() {
		t.Errorf("both have the key %s, want different ones, because the weights are rounded differently", few.Key())
	}
}

// TestFragments computes the fragments of one node for one shape after the other. The node has 8 cores, and devices with 300, 500 and 1000
// thousandths free.
func TestFragments(t *testing.T) {
	room := Room{CPU: 8000, GPUs: []int64{300, 500, 1000}, Model: "T4"}
	for _, test := range []struct {
		name  string
		shape model.Shape
		want  float64
	}{
		{"of use on every device", shape(8000, 1, 300, 1), 0},
		{"a device has too little", shape(8000, 1, 400, 1), 300},
		{"two have too little", shape(8000, 1, 1000, 1), 800},
		{"too few devices", shape(8000, 2, 1000, 1), 1800},
		{"several parts", shape(8000, 2, 400, 1), 300},
		{"lacks CPU", shape(8001, 1, 300, 1), 1800},
		{"lacks both", shape(8001, 2, 1000, 1), 1800},
		{"needs no device", shape(1, 0, 0, 1), 1800},
		{"needs none and lacks CPU", shape(9000, 0, 0, 1), 1800},
		{"the model is allowed", shape(8000, 1, 400, 1, "A100", "T4"), 300},
		{"the model is not allowed", shape(8000, 1, 300, 1, "A100"), 1800},
	} {
		if got := NewTypical([]model.Shape{test.shape}, 1, machines()).Fragments(room); got != test.want {
			t.Errorf("%s: %v, want %v", test.name, got, test.want)
		}
	}
	both := NewTypical([]model.Shape{shape(8000, 1, 400, 3), shape(9000, 1, 1, 1)}, 1, machines())
	if got, want := both.Fragments(room), 0.75*300+0.25*1800; math.Abs(got-want) > 1e-9 {
		t.Errorf("the mean over two shapes: %v, want %v", got, want)
	}
}

// useless returns what is free on a node and useless to one shape, by the definition.
func useless(r Room, s model.Shape) int64 {
	all, few, enough := int64(0), int64(0), int64(0)
	for _, free := range r.GPUs {
		all += free
		if free < s.GPUMilli {
			few += free
		} else {
			enough++
		}
	}
	if s.GPUCount == 0 || s.CPU > r.CPU || enough < s.GPUCount || len(s.GPUModels) > 0 && !slices.Contains(s.GPUModels, r.Model) {
		return all
	}
	return few
}

func drawShape(t *rapid.T) model.Shape {
	s := shape(float64(rapid.IntRange(0, 9).Draw(t, "cpu"))*1000, rapid.Int64Range(0, 3).Draw(t, "count"), 0,
		rapid.Int64Range(1, 9).Draw(t, "tasks"))
	if s.GPUCount > 0 {
		s.GPUMilli = rapid.Int64Range(1, 10).Draw(t, "tenths") * 100
		s.GPUModels = rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"A", "B", "C"}), 0, 2, rapid.ID).Draw(t, "models")
	}
	return s
}

// TestFragmentsAreTheMean checks on any node and for any workload that the fragments are the mean over the shapes. The mean is of what is
// useless to each shape.
func TestFragmentsAreTheMean(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		workload := rapid.SliceOfN(rapid.Custom(drawShape), 1, 80).Draw(t, "workload")
		room := Room{
			CPU:   float64(rapid.IntRange(0, 9).Draw(t, "cpu")) * 1000,
			Model: rapid.SampledFrom([]string{"A", "B", "C", "D"}).Draw(t, "model"),
		}
		room.GPUs = rapid.SliceOfN(rapid.Int64Range(0, 1000), 0, 20).Draw(t, "gpus")
		slices.Sort(room.GPUs)
		sum, tasks := 0.0, 0.0
		for _, s := range workload {
			sum += float64(s.Tasks * useless(room, s))
			tasks += float64(s.Tasks)
		}
		if got, want := NewTypical(workload, 1, machines()).Fragments(room), sum/tasks; math.Abs(got-want) > 1e-6 {
			t.Fatalf("%v fragments, want %v", got, want)
		}
	})
}

func TestTake(t *testing.T) {
	for _, test := range []struct {
		name         string
		free         []int64
		count, milli int64
		want         []int64
		ok           bool
	}{
		{"nothing", []int64{100, 200}, 0, 0, []int64{100, 200}, true},
		{"those with the least left that suffice", []int64{100, 400, 500, 1000}, 2, 300, []int64{100, 100, 200, 1000}, true},
		{"whole ones", []int64{500, 1000, 1000}, 2, 1000, []int64{0, 0, 500}, true},
		{"too few", []int64{500, 1000}, 2, 1000, []int64{0, 500}, false},
		{"no devices", nil, 1, 1, nil, false},
	} {
		got, ok := Take(nil, test.free, test.count, test.milli)
		if diff := cmp.Diff(test.want, got); diff != "" || ok != test.ok {
			t.Errorf("%s: %v (-want +got)\n%s", test.name, ok, diff)
		}
	}
}

// TestGain checks that the gain is 50 of 100 where nothing changes. It grows as more fragments go, and never leaves its bounds.
func TestGain(t *testing.T) {
	for _, test := range [][3]float64{
		{500, 500, 50},
		{1500, 500, 73},
		{500, 1500, 26},
		{520, 480, 50},
		{541, 500, 51},
		{500, 541, 48},
		{1e6, 0, 100},
		{0, 1e6, 0},
	} {
		if got := Gain(test[0], test[1]); got != test[2] {
			t.Errorf("from %v to %v: %v, want %v", test[0], test[1], got, test[2])
		}
	}
}
