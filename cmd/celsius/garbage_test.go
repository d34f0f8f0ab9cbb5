package main

import "testing"

func TestGarbagePercent(t *testing.T) {
	for _, c := range []struct {
		live uint64
		want int
	}{
		{0, mostGarbage},
		{10 << 20, mostGarbage},
		{64 << 20, 200},
		{128 << 20, 100},
		{256 << 20, 50},
		{4 << 30, leastGarbage},
	} {
		if got := garbagePercentOf(c.live); got != c.want {
			t.Errorf("%d MiB in use: %d, want %d", c.live>>20, got, c.want)
		}
	}
}
