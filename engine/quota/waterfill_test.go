package quota_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/quota"
)

// gpu is the first dimension after those that every cluster has.
const gpu = model.Pods + 1

// amounts returns amounts of CPU, memory, pods and GPUs. A negative value means that the dimension is absent.
func amounts(values ...float64) model.Resources {
	var r model.Resources
	for i, v := range values {
		if v >= 0 {
			r.Set(i, v)
		}
	}
	return r
}

func TestWaterFill(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		total  model.Resources
		claims []quota.Claim
		want   []model.Resources
	}{
		{"nobody", amounts(10), nil, []model.Resources{}},
		{
			"by weight", amounts(9000, 900),
			[]quota.Claim{{Weight: 1, Demand: amounts(9000, 900)}, {Weight: 2, Demand: amounts(9000, 900)}},
			[]model.Resources{amounts(3000, 300), amounts(6000, 600)},
		},
		{
			"what one does not ask for goes to the others by weight", amounts(9000, 900),
			[]quota.Claim{{Weight: 1, Demand: amounts(600, 900)}, {Weight: 1, Demand: amounts(9000, 900)}, {Weight: 1, Demand: amounts(9000, 900)}},
			[]model.Resources{amounts(600, 300), amounts(4200, 300), amounts(4200, 300)},
		},
		{
			"demand is less than there is", amounts(9000, 900),
			[]quota.Claim{{Weight: 1, Demand: amounts(1000)}, {Weight: 5, Demand: amounts(2000, 5)}},
			[]model.Resources{amounts(1000, 0), amounts(2000, 5)},
		},
		{
			"a ceiling without memory limits no memory", amounts(8000, 800),
			[]quota.Claim{{Weight: 1, Ceiling: amounts(1000), Demand: amounts(8000, 800)}, {Weight: 1, Demand: amounts(8000, 800)}},
			[]model.Resources{amounts(1000, 400), amounts(7000, 400)},
		},
		{
			"a demand without memory asks for none", amounts(8000, 800),
			[]quota.Claim{{Weight: 1, Demand: amounts(8000)}, {Weight: 1, Demand: amounts(8000, 800)}},
			[]model.Resources{amounts(4000, 0), amounts(4000, 800)},
		},
		{
			"a floor is kept where nothing is asked for, and beyond the ceiling", amounts(8000),
			[]quota.Claim{{Weight: 1, Floor: amounts(1000)}, {Weight: 1, Floor: amounts(2000), Ceiling: amounts(500), Demand: amounts(500)}},
			[]model.Resources{amounts(1000), amounts(2000)},
		},
		{
			// As in Volcano: the floor of one claim is not taken from the part of the other.
			"floors can promise more than there is", amounts(1000),
			[]quota.Claim{{Weight: 1, Floor: amounts(500), Demand: amounts(1000)}, {Weight: 9, Demand: amounts(1000)}},
			[]model.Resources{amounts(500), amounts(900)},
		},
		{
			"what the cluster lacks nobody deserves", amounts(1000, 1000, 10),
			[]quota.Claim{{Weight: 1, Demand: amounts(500, 500, 5, 2000)}},
			[]model.Resources{amounts(500, 500, 5, 0)},
		},
		{
			"pods are not shared out further when all else is", amounts(1000, 0, 9000),
			[]quota.Claim{{Weight: 1, Demand: amounts(1000, 0, 2000)}, {Weight: 2, Demand: amounts(1000, 0, 9000)}},
			[]model.Resources{amounts(1000.0/3, 0, 2000), amounts(2000.0/3, 0, 6000)},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			before := fmt.Sprint(test.total, test.claims)
			got := quota.WaterFill(test.total, test.claims)
			if diff := cmp.Diff(test.want, got, cmpopts.EquateNaNs(), cmpopts.EquateApprox(1e-12, 0)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if after := fmt.Sprint(test.total, test.claims); after != before {
				t.Errorf("it changed its arguments:\n%s\n%s", before, after)
			}
		})
	}
}

// filling is one random case. Absent dimensions are drawn too.
type filling struct {
	total  model.Resources
	claims []quota.Claim
}

// drawAmounts draws up to most units of each dimension. The units have realistic sizes: a cluster's memory is near 2^45 bytes.
func drawAmounts(t *rapid.T, label string, most, absent int) model.Resources {
	var r model.Resources
	for i, unit := range []float64{250, 1 << 28, 1000, 1000} {
		if v := rapid.IntRange(-absent, most).Draw(t, fmt.Sprintf("%s[%d]", label, i)); v >= 0 {
			r.Set(i, float64(v)*unit)
		}
	}
	return r
}

func drawFilling(t *rapid.T, floors int) filling {
	f := filling{total: drawAmounts(t, "total", 400, 1)}
	for i := range rapid.IntRange(1, 6).Draw(t, "claims") {
		label := func(what string) string { return fmt.Sprintf("%s of %d", what, i) }
		c := quota.Claim{
			Weight:  rapid.SampledFrom([]float64{1, 1, 2, 3, 7, 1000, 0.5}).Draw(t, label("weight")),
			Ceiling: drawAmounts(t, label("ceiling"), 300, 200),
			Demand:  drawAmounts(t, label("demand"), 300, 20),
		}
		if floors > 0 {
			c.Floor = drawAmounts(t, label("floor"), floors, floors)
		}
		f.claims = append(f.claims, c)
	}
	return f
}

// atMost returns the most that a claim can get: its ceiling or its demand, whichever is less, but at least its floor.
func atMost(c quota.Claim, dim int) float64 {
	limit := c.Demand.Get(dim)
	if c.Ceiling.Has(dim) {
		limit = min(limit, c.Ceiling[dim])
	}
	return max(limit, c.Floor.Get(dim))
}

// near returns how far two ways of adding up may differ. In each dimension the last Slack of each claim is not shared out any more. Large
// sums also lose their last bits.
func near(f filling, dim int) float64 {
	return model.Slack*float64(len(f.claims)+1) + 1e-9*f.total.Get(dim)
}

// TestWaterFillKeepsFloorsAndLimits checks that a claim deserves at least its floor and at most all that it can get.
func TestWaterFillKeepsFloorsAndLimits(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		f := drawFilling(t, 100)
		for n, got := range quota.WaterFill(f.total, f.claims) {
			for dim := range gpu + 1 {
				if v, floor, limit := got.Get(dim), f.claims[n].Floor.Get(dim), atMost(f.claims[n], dim); v < floor || v > limit {
					t.Fatalf("claim %d gets %g of dimension %d, has a floor of %g and can get %g", n, v, dim, floor, limit)
				}
			}
		}
	})
}

// TestWaterFillSharesAllThereIs checks claims without floors. They get no more than there is. They get all of it as long as one claim can
// get more.
func TestWaterFillSharesAllThereIs(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		f := drawFilling(t, 0)
		got := quota.WaterFill(f.total, f.claims)
		for dim := range gpu + 1 {
			sum, wanted := 0.0, 0.0
			for n := range got {
				sum += got[n].Get(dim)
				wanted += atMost(f.claims[n], dim)
			}
			if sum > f.total.Get(dim)+near(f, dim) {
				t.Fatalf("%g of dimension %d are shared out, there are %g", sum, dim, f.total.Get(dim))
			}
			if want := min(wanted, f.total.Get(dim)); dim != model.Pods && sum < want-near(f, dim) {
				t.Fatalf("%g of dimension %d are shared out, could be %g", sum, dim, want)
			}
		}
	})
}

// TestWaterFillReachesLimits checks that all claims get their limits, to the last bit, where there is enough of everything. Requests are
// compared exactly. A request must not fail because eleven elevenths of a float are not the whole.
func TestWaterFillReachesLimits(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		f := drawFilling(t, 0)
		for dim := range gpu + 1 {
			sum := 0.0
			for _, c := range f.claims {
				sum += atMost(c, dim)
			}
			f.total.Set(dim, sum)
		}
		for n, got := range quota.WaterFill(f.total, f.claims) {
			for _, dim := range []int{model.CPU, model.Memory, gpu} {
				if want := atMost(f.claims[n], dim); got.Get(dim) != want {
					t.Fatalf("claim %d gets %v of dimension %d, there is room for %v", n, got.Get(dim), dim, want)
				}
			}
		}
	})
}

// level pours an amount into vessels of limited size, which rise in step with their weights. It finds the water level by bisection, and
// shares no code with the rounds of WaterFill.
func level(amount float64, room, weights []float64) []float64 {
	fill := func(height float64) (in []float64, sum float64) {
		for i := range room {
			v := min(height*weights[i], room[i])
			in, sum = append(in, v), sum+v
		}
		return in, sum
	}
	low, high := 0.0, 1e18
	for range 200 {
		mid := low + (high-low)/2
		if _, sum := fill(mid); sum <= amount {
			low = mid
		} else {
			high = mid
		}
	}
	in, _ := fill(low)
	return in
}

// reference is the closed form of the rounds. In the first round each claim gets its weighted part of the whole, cut and raised. The rest
// then rises by weight in all claims that can take more, until it is gone.
func reference(f filling, dim int) []float64 {
	var weights, first, room []float64
	sum, remains := 0.0, f.total.Get(dim)
	for _, c := range f.claims {
		sum += c.Weight
	}
	for _, c := range f.claims {
		v := max(min(f.total.Get(dim)*c.Weight/sum, atMost(c, dim)), c.Floor.Get(dim))
		weights, first, room = append(weights, c.Weight), append(first, v), append(room, atMost(c, dim)-v)
		remains -= v
	}
	for i, v := range level(max(remains, 0), room, weights) {
		first[i] += v
	}
	return first
}

func TestWaterFillIsTheWaterLevel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		f := drawFilling(t, rapid.SampledFrom([]int{0, 30}).Draw(t, "floors"))
		got := quota.WaterFill(f.total, f.claims)
		for dim := range gpu + 1 {
			for n, want := range reference(f, dim) {
				v := got[n].Get(dim)
				// When all other dimensions are used up, pods are not shared out further.
				if v > want+near(f, dim) || dim != model.Pods && v < want-near(f, dim) {
					t.Fatalf("claim %d gets %g of dimension %d, should get %g", n, v, dim, want)
				}
			}
		}
	})
}

// TestWaterFillHasNoFavourites checks that the order of claims changes only the last bits. (For pods the order may decide about one round
// more or less.)
func TestWaterFillHasNoFavourites(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		f := drawFilling(t, 30)
		order := rapid.Permutation(indices(len(f.claims))).Draw(t, "order")
		shuffled := make([]quota.Claim, len(order))
		for to, from := range order {
			shuffled[to] = f.claims[from]
		}
		got, again := quota.WaterFill(f.total, f.claims), quota.WaterFill(f.total, shuffled)
		for to, from := range order {
			for _, dim := range []int{model.CPU, model.Memory, gpu} {
				if a, b := got[from].Get(dim), again[to].Get(dim); math.Abs(a-b) > near(f, dim) {
					t.Fatalf("claim %d gets %g of dimension %d, as number %d %g", from, a, dim, to, b)
				}
			}
		}
	})
}

func indices(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

// TestSharesAreWholeAmounts draws weights and whole amounts for which the exact share of each claim is a whole number. Shares must equal
// these numbers, because rules compare them with requests without a slack.
func TestSharesAreWholeAmounts(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		unit := rapid.SampledFrom([]float64{1, 100, 1000, 1 << 30}).Draw(t, "unit")
		weights := rapid.SliceOfN(rapid.IntRange(1, 13), 2, 5).Draw(t, "weights")
		met := float64(rapid.IntRange(0, 5).Draw(t, "met")) // a claim that gets all that it requests: its rest is shared in a further round
		times := float64(rapid.IntRange(6, 40).Draw(t, "times"))
		claims, total := []quota.Claim{{Weight: 1, Demand: model.Resources{met * unit}}}, met*unit
		for _, weight := range weights {
			claims = append(claims, quota.Claim{Weight: float64(weight), Demand: model.Resources{1 << 50}})
			total += float64(weight) * times * unit
		}
		for i, r := range quota.WaterFill(model.Resources{total}, claims)[1:] {
			if want := float64(weights[i]) * times * unit; r[0] != want {
				t.Fatalf("weight %d: %v, want %v", weights[i], r[0], want)
			}
		}
	})
}
