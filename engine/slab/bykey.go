package slab

import (
	"maps"
	"slices"
)

// ByKey lists the values of a map in the order of its keys. The zero value is ready.
type ByKey[T any] struct {
	keys  []string
	all   []T
	other []string // keys that were added or removed since
}

// Changed records that a key was added or removed, or has another value.
func (x *ByKey[T]) Changed(key string) { x.other = append(x.other, key) }

// List returns the values of the map. All changes of the map must have been recorded. The list does not change when a later call creates a
// new one.
func (x *ByKey[T]) List(of map[string]T) []T {
	if len(x.other) > len(of)/8 {
		x.keys = slices.Sorted(maps.Keys(of))
		x.all = make([]T, len(x.keys))
		for i, key := range x.keys {
			x.all[i] = of[key]
		}
	} else if len(x.other) > 0 {
		x.merge(of)
	}
	x.other = x.other[:0]
	return x.all
}

// merge updates the list without reading unchanged keys.
func (x *ByKey[T]) merge(of map[string]T) {
	slices.Sort(x.other)
	keys, all := make([]string, 0, len(of)), make([]T, 0, len(of))
	from := 0
	for _, key := range slices.Compact(x.other) {
		at, there := slices.BinarySearch(x.keys[from:], key)
		keys, all = append(keys, x.keys[from:from+at]...), append(all, x.all[from:from+at]...)
		if from += at; there {
			from++
		}
		if value, is := of[key]; is {
			keys, all = append(keys, key), append(all, value)
		}
	}
	x.keys, x.all = append(keys, x.keys[from:]...), append(all, x.all[from:]...)
}
