package quota

import (
	"maps"
	"slices"
)

// MostTakers is the largest number of takers of Flow.
const MostTakers = 64

// Flow returns how much of what some takers lack can be covered by stocks, if each stock can be used by some of the takers only. stocks are
// keyed by these takers, a bit for each. The result is the maximum flow from the takers to the stocks (Edmonds and Karp, 1972).
func Flow(lacks []float64, stocks map[uint64]float64) (sum float64) {
	f := flow{lacks: slices.Clone(lacks), takers: slices.Sorted(maps.Keys(stocks))}
	for _, takers := range f.takers {
		f.left = append(f.left, stocks[takers])
	}
	f.used = make([][]float64, len(lacks))
	for i := range f.used {
		f.used[i] = make([]float64, len(f.takers))
	}
	f.fromTaker, f.fromStock = make([]int, len(f.takers)), make([]int, len(lacks))
	for {
		end := f.findPath()
		if end < 0 {
			return sum
		}
		sum += f.move(end)
	}
}

// flow is a flow that is not yet the largest.
type flow struct {
	lacks  []float64   // what each taker still lacks
	takers []uint64    // of each stock
	left   []float64   // in each stock
	used   [][]float64 // by taker and stock
	// The last path: the taker before each stock, and the stock before each taker.
	fromTaker, fromStock []int
}

// In fromTaker and fromStock: the path begins at a taker, or it does not reach it.
const pathBegins, notReached = -1, -2

// findPath finds a shortest path from a taker that lacks an amount to a stock with something left, and returns the stock. It returns -1 if
// there is none. On the path, a taker may take over what another taker uses of a stock.
func (f *flow) findPath() (end int) {
	for s := range f.fromTaker {
		f.fromTaker[s] = notReached
	}
	var queue []int // takers
	for i := range f.fromStock {
		if f.fromStock[i] = notReached; f.lacks[i] > 0 {
			f.fromStock[i] = pathBegins
			queue = append(queue, i)
		}
	}
	for len(queue) > 0 {
		i := queue[0]
		queue = queue[1:]
		for s := range f.fromTaker {
			if f.fromTaker[s] != notReached || f.takers[s]&(1<<i) == 0 {
				continue
			}
			if f.fromTaker[s] = i; f.left[s] > 0 {
				return s
			}
			for other := range f.used {
				if f.fromStock[other] == notReached && f.used[other][s] > 0 {
					f.fromStock[other] = s
					queue = append(queue, other)
				}
			}
		}
	}
	return -1
}

// move moves as much as possible along the last path, and returns how much.
func (f *flow) move(end int) (amount float64) {
	amount = f.left[end]
	first := f.fromTaker[end]
	for s := f.fromStock[first]; s != pathBegins; s = f.fromStock[first] {
		amount = min(amount, f.used[first][s])
		first = f.fromTaker[s]
	}
	amount = min(amount, f.lacks[first])
	f.left[end] -= amount
	f.lacks[first] -= amount
	for s := end; ; {
		i := f.fromTaker[s]
		f.used[i][s] += amount
		if s = f.fromStock[i]; s == pathBegins {
			return amount
		}
		f.used[i][s] -= amount
	}
}
