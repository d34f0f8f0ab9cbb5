package policy

import (
	"iter"
	"slices"
)

// Sets goes through the sets of numbers below n: smaller sets first, and sets of one size in the order of their numbers. A set that contains
// all numbers of a set for which the last yield returned true is left out. At most MostSets sets are formed.
func Sets(n int, yield func(set []int) (done, without bool)) {
	var closed [][]int
	for set := range sets(n) {
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

func sets(n int) iter.Seq[[]int] {
	return func(yield func([]int) bool) {
		formed := 0
		for size := 1; size <= n; size++ {
			set := make([]int, size)
			for i := range set {
				set[i] = i
			}
			for more := true; more; more = advance(set, n) {
				if formed++; formed > MostSets || !yield(set) {
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
