package quota

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/celsius-scheduler/celsius/engine/model"
)

// TestFill compares the expected fill of nodes with values computed by hand.
func TestFill(t *testing.T) {
	half, whole, two := shape(4000, 1, 500, 1), shape(4000, 1, 1000, 1), shape(8000, 2, 1000, 1)
	for _, test := range []struct {
		name     string
		workload []model.Shape
		room     Room
		want     float64
	}{
		{"too small for anything", []model.Shape{half}, Room{CPU: 9000, GPUs: []int64{499}}, 0},
		{"one fits: 500 / (1 + 1/4)", []model.Shape{half}, Room{CPU: 9000, GPUs: []int64{500}}, 400},
		{"one after the other: (500 + 400) / (1 + 1/4)", []model.Shape{half}, Room{CPU: 9000, GPUs: []int64{1000}}, 720},
		{"what is left over is worth nothing", []model.Shape{half}, Room{CPU: 9000, GPUs: []int64{999}}, 400},
		{"devices add up", []model.Shape{half}, Room{CPU: 9000, GPUs: []int64{0, 499, 500, 500}}, 800},
		{
			"rare ones come less often: 0.25 500 / (0.25 + 1/4)",
			[]model.Shape{half, shape(1, 1, 1000, 3)},
			Room{CPU: 9000, GPUs: []int64{500}},
			250,
		},
		{"CPU for one of two: 0.5 1600", []model.Shape{whole}, Room{CPU: 7999, GPUs: []int64{1000, 1000}}, 800},
		{"CPU for none", []model.Shape{whole}, Room{CPU: 3999, GPUs: []int64{1000, 1000}}, 0},
		{"more is used than there is", []model.Shape{whole}, Room{CPU: -1, GPUs: []int64{1000}}, 0},
		{"two devices at once: 2 2000 / (2 + 1/4)", []model.Shape{two}, Room{CPU: 8000, GPUs: []int64{1000, 1000}}, 2 * 2000 / 2.25},
		{
			"CPU for one pair of two: half of twice as much",
			[]model.Shape{two},
			Room{CPU: 8000, GPUs: []int64{1000, 1000, 1000, 1000}},
			2 * 2000 / 2.25,
		},
		{"no room for a pair", []model.Shape{two}, Room{CPU: 8000, GPUs: []int64{1000}}, 0},
		{"the model will not do", []model.Shape{shape(1, 1, 500, 1, "T4")}, Room{CPU: 8000, GPUs: []int64{1000}, Model: "A100"}, 0},
		{
			"the model will do for one of two, for which 44 devices will instead of 24",
			[]model.Shape{shape(1, 1, 500, 1, "T4"), half},
			Room{CPU: 8000, GPUs: []int64{500}, Model: "A100"},
			400 * 24. / (24 + 44),
		},
		{
			"one of two fits, for which 44 devices will instead of 24",
			[]model.Shape{half, shape(1, 8, 1000, 1)},
			Room{CPU: 8000, GPUs: []int64{500}},
			400 * 24. / (24 + 44) / 1.2,
		},
		{
			"one of two fits, and the other fits on no node",
			[]model.Shape{half, shape(1, 9, 1000, 1)},
			Room{CPU: 8000, GPUs: []int64{500}},
			500 * 0.5 / 0.75,
		},
		{"needs no CPU", []model.Shape{shape(0, 1, 500, 1)}, Room{GPUs: []int64{500}}, 400},
		{"none asks for devices", []model.Shape{shape(1, 0, 0, 1)}, Room{CPU: 8000, GPUs: []int64{1000}}, 0},
	} {
		if got := NewFill(NewTypical(test.workload, 1, machines()), 4).Of(test.room); math.Abs(got-test.want) > 1e-9 {
			t.Errorf("%s: %v, want %v", test.name, got, test.want)
		}
	}
}

// TestFillIsTheMeanOfStreams compares the expected fill of one device with random streams: the mean of 40,000 draws, within five standard
// errors.
func TestFillIsTheMeanOfStreams(t *testing.T) {
	workload := []model.Shape{shape(0, 1, 1000, 5), shape(0, 1, 470, 3), shape(0, 1, 320, 2), shape(0, 1, 160, 1)}
	f := NewFill(NewTypical(workload, 1, machines()), 20)
	random := rand.New(rand.NewPCG(1, 2))
	draw := func() int64 {
		at := random.Int64N(11)
		for _, s := range workload {
			if at -= s.Tasks; at < 0 {
				return s.GPUMilli
			}
		}
		return 0
	}
	const draws = 40_000
	for _, h := range []int64{1000, 790, 530, 350, 190, 100} {
		sum, squares := 0.0, 0.0
		for range draws {
			left := h
			// A task is 20 times as likely as the end of the stream.
			for random.IntN(21) > 0 {
				if m := draw(); m <= left {
					left -= m
				}
			}
			filled := float64(h - left)
			sum, squares = sum+filled, squares+filled*filled
		}
		mean := sum / draws
		deviation := 5 * math.Sqrt((squares/draws-mean*mean)/draws)
		if got := f.Of(Room{GPUs: []int64{h}}); math.Abs(got-mean) > deviation {
			t.Errorf("%d are free: %.2f, want %.2f, give or take %.2f", h, got, mean, deviation)
		}
	}
}

// TestFillBounds checks on any node that the expected fill is at most what is free. More CPU or a longer stream does not reduce it.
func TestFillBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		typical := NewTypical(rapid.SliceOfN(rapid.Custom(drawShape), 1, 80).Draw(t, "workload"), 1, machines())
		room := Room{CPU: float64(rapid.IntRange(-1, 30).Draw(t, "cpu")) * 500, Model: rapid.SampledFrom([]string{"A", "D"}).Draw(t, "model")}
		room.GPUs = rapid.SliceOfN(rapid.Int64Range(0, 1000), 0, 20).Draw(t, "gpus")
		slices.Sort(room.GPUs)
		free := 0.0
		for _, g := range room.GPUs {
			free += float64(g)
		}
		got := NewFill(typical, 50).Of(room)
		if got < 0 || got > free {
			t.Fatalf("%v of %v are to be expected", got, free)
		}
		if longer := NewFill(typical, 60).Of(room); longer < got-1e-9 {
			t.Fatalf("%v with 60 tasks to come, %v with 50", longer, got)
		}
		room.CPU += 700
		if more := NewFill(typical, 50).Of(room); more < got-1e-9 {
			t.Fatalf("%v with more CPU, %v with less", more, got)
		}
	})
}
