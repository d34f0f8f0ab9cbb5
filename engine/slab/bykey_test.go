package slab

import (
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestByKey changes a map, and compares the list with the sorted contents of the map.
func TestByKey(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		of, list := map[string]int{}, ByKey[int]{}
		var last, copied []int
		for range rapid.IntRange(1, 20).Draw(t, "lists") {
			for range rapid.IntRange(0, 30).Draw(t, "changes") {
				key := rapid.StringMatching("[a-d]{1,3}").Draw(t, "key")
				if rapid.Bool().Draw(t, "goes") {
					delete(of, key)
				} else {
					of[key] = rapid.Int().Draw(t, "value")
				}
				list.Changed(key)
			}
			got := list.List(of)
			var want []int
			for _, key := range slices.Sorted(maps.Keys(of)) {
				want = append(want, of[key])
			}
			if !slices.Equal(got, want) {
				t.Fatalf("got %v, want %v", got, want)
			}
			if !slices.Equal(last, copied) {
				t.Fatalf("the list before is %v now, and was %v", last, copied)
			}
			last, copied = got, slices.Clone(got)
		}
	})
}
