package openb

import "math/rand"

// tune is how much is asked of the GPUs in a run, as a multiple of what they have.
const (
	tuneNumerator   = 13
	tuneDenominator = 10
)

// replay is what a seed makes of a trace.
type replay struct {
	// pods in order of arrival. A copy has its original's name and a number behind it, so that names are unique.
	pods []Pod
	// rank of each of Trace.Nodes, in their order; the lowest wins a tie.
	rank []int
}

// replay draws a run from its seed. The order of the draws, and those that are thrown away, are the
// published experiments' (docs/openb.md, The draws of a run); another order would be another run.
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

// fill adds copies of random pods, or removes random ones, until the run asks for tune times the cluster's devices.
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
		// One device, not all that it asks for, decides whether it is one too many: the published runs do so.
		if total+p.GPUMilli > target {
			return pods
		}
		total += p.Demand()
		copies[p.Name]++
		p.Name = copyName(p.Name, copies[p.Name])
		pods = append(pods, p)
	}
}
