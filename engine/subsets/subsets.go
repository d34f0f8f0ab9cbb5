// Package subsets goes through the subsets of a small set, smaller ones first.
package subsets

import (
	"iter"
	"slices"
)

// Most bounds how many subsets are formed.
const Most = 256

// Each calls yield with subsets of the numbers below n that are not empty: smaller ones first, and those of one size in the order of their
// numbers. It stops when yield returns done. After without, it leaves out all subsets that contain the present one.
func Each(n int, yield func(subset []int) (done, without bool)) {
	var closed [][]int
	for set := range all(n) {
		if slices.ContainsFunc(closed, func(part []int) bool { return containsAll(set, part) }) {
			continue
		}
		done, without := yield(set)
		if done {
			return
		}
		if without {
			closed = append(closed, slices.Clone(set))
		}
	}
}

func all(n int) iter.Seq[[]int] {
	return func(yield func([]int) bool) {
		formed := 0
		for size := 1; size <= n; size++ {
			set := make([]int, size)
			for i := range set {
				set[i] = i
			}
			for more := true; more; more = advance(set, n) {
				if formed++; formed > Most || !yield(set) {
					return
				}
			}
		}
	}
}

// advance makes a set the next one of its size, or returns false after the last.
func advance(set []int, n int) bool {
	i := len(set) - 1
	for i >= 0 && set[i] == n-len(set)+i {
		i--
	}
	if i < 0 {
		return false
	}
	set[i]++
	for k := i + 1; k < len(set); k++ {
		set[k] = set[k-1] + 1
	}
	return true
}

func containsAll(set, part []int) bool {
	return !slices.ContainsFunc(part, func(i int) bool { return !slices.Contains(set, i) })
}
