package openb

import "math/rand"

// tune is the demand for GPUs in a run, as a multiple of the existing GPUs.
const (
	tuneNumerator   = 13
	tuneDenominator = 10
)

// replay is the run of a trace with a seed.
type replay struct {
	// pods in order of arrival. A copy has the name of its original with a number, so that names are unique.
	pods []Pod
	// rank of each of Trace.Nodes, in the same order. The lowest rank wins a tie.
	rank []int
}

// replay draws a run from its seed. The order of the draws, and the discarded draws, are those of the published experiments (docs/openb.md,
// The draws of a run). Another order would give another run.
func (t *Trace) replay(seed int64) replay {
	random := rand.New(rand.NewSource(seed)) //nolint:gosec // the published stream, which must be reproduced, not a secret
	random.Int()
	pods := append([]Pod(nil), t.Pods...)
	random.Shuffle(len(pods), func(i, j int) { pods[i], pods[j] = pods[j], pods[i] })
	pods = t.fill(pods, random)
	for range 10 {
		random.Float64()
	}
	return replay{pods: pods, rank: random.Perm(len(t.Nodes))}
}

// fill adds copies of random pods, or removes random pods, until the run requests tune times the cluster's devices.
func (t *Trace) fill(pods []Pod, random *rand.Rand) []Pod {
	target := t.devices * tuneNumerator / tuneDenominator
	total := int64(0)
	for _, p := range pods {
		total += p.Demand()
	}
	if total > target {
		for total > target {
			i := random.Intn(len(pods))
			total -= pods[i].Demand()
			pods = append(pods[:i], pods[i+1:]...)
		}
		return pods
	}
	copies := map[string]int{}
	for {
		p := t.Pods[random.Intn(len(t.Pods))]
		// One device, and not the whole request, decides whether the pod is too much, as in the published runs.
		if total+p.GPUMilli > target {
			return pods
		}
		total += p.Demand()
		copies[p.Name]++
		p.Name = copyName(p.Name, copies[p.Name])
		pods = append(pods, p)
	}
}
