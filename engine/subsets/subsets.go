// Package subsets iterates over the subsets of a small set, smaller subsets first.
package subsets

import (
	"iter"
	"slices"
)

// Most is the maximum number of subsets for one task or gang. Few is the maximum if this is done for each of many tasks.
const (
	Most = 256
	Few  = 32
)

// Each calls yield with subsets of the numbers below n that are not empty: smaller ones first, and those of one size in the order of their
// numbers. It stops when yield returns done. After without, it leaves out all subsets that contain the present one. It forms at most *left
// subsets, and subtracts their number from *left.
func Each(n int, left *int, yield func(subset []int) (done, without bool)) {
	var closed [][]int
	for set := range all(n, left) {
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

func all(n int, left *int) iter.Seq[[]int] {
	return func(yield func([]int) bool) {
		for size := 1; size <= n; size++ {
			set := make([]int, size)
			for i := range set {
				set[i] = i
			}
			for more := true; more; more = advance(set, n) {
				if *left <= 0 {
					return
				}
				if *left--; !yield(set) {
					return
				}
			}
		}
	}
}

// advance changes a set into the next one of its size, or returns false after the last.
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
