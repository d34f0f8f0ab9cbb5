package quota

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/celsius-scheduler/celsius/engine/model"
)

// TestPartsOfDevicesAreWhole checks that parts of devices are whole numbers. Together they are all devices that are wanted: no device stays
// idle while two queues wait for it.
func TestPartsOfDevicesAreWhole(t *testing.T) {
	t.Parallel()
	const gpu = 1000 // inner units of one device
	type queue struct{ weight, floor, demand float64 }
	for _, c := range []struct {
		name   string
		total  float64
		queues []queue
		want   []float64
	}{
		{"an odd device goes to the first", 3, []queue{{1, 0, 2}, {1, 0, 2}}, []float64{2, 1}},
		{"the largest remainder comes first", 8, []queue{{1, 0, 8}, {2, 0, 8}, {4, 0, 8}}, []float64{1, 2, 5}},
		{
			"seven queues and three devices", 3,
			[]queue{{1, 0, 1}, {1, 0, 1}, {1, 0, 1}, {1, 0, 1}, {1, 0, 1}, {1, 0, 1}, {1, 0, 1}},
			[]float64{1, 1, 1, 0, 0, 0, 0},
		},
		{"no more than is wanted", 10, []queue{{1, 0, 1}, {1, 0, 20}, {1, 0, 20}}, []float64{1, 5, 4}},
		{"a guarantee is kept", 5, []queue{{1, 0, 5}, {1, 3, 5}}, []float64{2, 3}},
		{"whole parts stay", 8, []queue{{3, 0, 8}, {1, 0, 8}}, []float64{6, 2}},
		{"parts of devices are shared where they are requested", 1, []queue{{1, 0, .5}, {1, 0, 1}}, []float64{.5, .5}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			amount := func(v float64) model.Resources {
				return model.Resources{model.Absent(), model.Absent(), model.Absent(), v * gpu}
			}
			var claims []Claim
			for _, q := range c.queues {
				claims = append(claims, Claim{Weight: q.weight, Floor: amount(q.floor), Demand: amount(q.demand)})
			}
			var got []float64
			for _, r := range WholeFill(amount(c.total), claims, []float64{0, 0, 0, gpu}) {
				got = append(got, r[3]/gpu)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
