package slab

import (
	"maps"
	"slices"
)

// ByKey lists the values of a map in the order of its keys. The zero value is of use.
type ByKey[T any] struct {
	keys  []string
	all   []T
	other []string // keys that came or went since
}

// Changed notes that a key came or went, or has another value.
func (x *ByKey[T]) Changed(key string) { x.other = append(x.other, key) }

// List is the list for the map of which all changes were noted. It stays as it is when others are made.
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

// merge brings the list up to date without a look at what did not change.
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
