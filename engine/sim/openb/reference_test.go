package openb

import "slices"

// heuristic is a published scoring rule, written in Go to check the replay without the engine.
type heuristic func(p Pod, cpuFree, gpuFree int64) int64

// bestFit prefers the node with the least remaining resources.
func bestFit(p Pod, cpuFree, gpuFree int64) int64 {
	left := 0.5*float64(cpuFree-p.CPUMilli)/128000 + 0.5*float64(gpuFree-p.Demand())/8000
	return int64(100 * (1 - left))
}

// dotProd prefers the node whose free resources are least similar to the request.
func dotProd(p Pod, cpuFree, gpuFree int64) int64 {
	return int64(100 * (1 - 0.5*((float64(cpuFree)/128000)*(float64(p.CPUMilli)/128000)+(float64(gpuFree)/8000)*(float64(p.Demand())/8000))))
}

// byHand places the arrivals of a seed and returns whether each was placed.
func (t *Trace) byHand(seed int64, score heuristic) ([]Pod, []bool) {
	run := t.replay(seed)
	state := newLedger(t.Nodes)
	placed := make([]bool, len(run.pods))
	for i, p := range run.pods {
		best, bestScore := -1, int64(0)
		for n := range t.Nodes {
			if state.misfit(n, p, nil) != "" {
				continue
			}
			s := score(p, state.cpu[n], state.free(n))
			if best < 0 || s > bestScore || s == bestScore && run.rank[n] < run.rank[best] {
				best, bestScore = n, s
			}
		}
		if best >= 0 {
			state.take(best, p, tightest(state.gpus[best], p))
			placed[i] = true
		}
	}
	return run.pods, placed
}

// tightest chooses devices: the fullest one that fits for a share, otherwise the first idle ones.
func tightest(free []int64, p Pod) []int {
	var fit []int
	for d, f := range free {
		if f >= p.GPUMilli {
			fit = append(fit, d)
		}
	}
	if p.GPUMilli < wholeDevice {
		slices.SortStableFunc(fit, func(a, b int) int { return int(free[a] - free[b]) })
	}
	return fit[:p.GPUs]
}
