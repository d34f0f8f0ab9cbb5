package quota

import (
	"math"
	"math/bits"
	"testing"

	"pgregory.net/rapid"
)

// TestFlow compares Flow with the smallest cut: some takers get what they lack, and all others at most what their stocks have.
func TestFlow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		takers := rapid.IntRange(0, 5).Draw(t, "takers")
		lacks := make([]float64, takers)
		for i := range lacks {
			lacks[i] = float64(rapid.IntRange(0, 16).Draw(t, "lacks"))
		}
		stocks := map[uint64]float64{}
		for range rapid.IntRange(0, 8).Draw(t, "stocks") {
			stocks[rapid.Uint64Range(1, 1<<max(takers, 1)-1).Draw(t, "takers of it")] += float64(rapid.IntRange(0, 16).Draw(t, "amount"))
		}
		want := math.Inf(1)
		for cut := range uint64(1) << takers {
			sum := 0.0
			for i, amount := range lacks {
				if cut&(1<<i) == 0 {
					sum += amount
				}
			}
			for of, amount := range stocks {
				if bits.OnesCount64(of&cut) > 0 {
					sum += amount
				}
			}
			want = min(want, sum)
		}
		if got := Flow(lacks, stocks); got != want {
			t.Fatalf("%v from %v: %v, want %v", lacks, stocks, got, want)
		}
	})
}

// TestFlowOfManyTakers gives each of 64 takers a stock of its own, and another that all of them share.
func TestFlowOfManyTakers(t *testing.T) {
	lacks, stocks := make([]float64, MostTakers), map[uint64]float64{math.MaxUint64: 100}
	for i := range lacks {
		lacks[i] = 8
		stocks[1<<i] = 2
	}
	if got, want := Flow(lacks, stocks), 64*2.0+100; got != want {
		t.Errorf("%v, want %v", got, want)
	}
}
