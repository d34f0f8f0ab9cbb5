package openb

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Mix is the wanted composition of a list of pods, in percent by the name of a part. Other parts follow from it.
type Mix map[string]float64

// part is a subset of the pods, as a fraction of everything that counts.
type part struct {
	name   string
	counts func(Pod) float64
	has    func(Pod) bool
}

func parts() []part {
	pods := func(Pod) float64 { return 1 }
	withGPUs := func(p Pod) float64 { return float64(min(p.GPUs, 1)) }
	asked := func(p Pod) float64 { return float64(p.Demand()) }
	return []part{
		{"cpu", pods, func(p Pod) bool { return p.GPUs == 0 }},
		{"share", asked, func(p Pod) bool { return p.GPUs == 1 && p.GPUMilli < wholeDevice }},
		{"multi", asked, func(p Pod) bool { return p.GPUs > 1 }},
		{"models", withGPUs, func(p Pod) bool { return p.Models != "" }},
	}
}

// ParseMix parses a mix such as "multi=50" or "cpu=25,share=60". Part cpu is the percentage of pods that request no GPU. Part share is the
// percentage of all requested GPUs that pods with a part of a GPU request. Part multi is the same for pods with several GPUs. Part models
// is the percentage of pods with GPUs that are restricted to models.
func ParseMix(text string) (Mix, error) {
	var names []string
	for _, p := range parts() {
		names = append(names, p.name)
	}
	m := Mix{}
	for one := range strings.SplitSeq(text, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(one), "=")
		percent, err := strconv.ParseFloat(value, 64)
		if _, twice := m[name]; err != nil || !(percent >= 0 && percent <= 100) || twice || !slices.Contains(names, name) {
			return nil, fmt.Errorf("%q in %q: write PART=PERCENT, from 0 to 100 and each part once, with a part of %v", one, text, names)
		}
		m[name] = percent
	}
	if m["cpu"] == 100 || m["share"]+m["multi"] > 100 {
		return nil, fmt.Errorf("%q: some pods must ask for GPUs, and share and multi together for at most 100 %% of them", text)
	}
	return m, nil
}

// String returns the mix in the form that ParseMix parses.
func (m Mix) String() string {
	var out []string
	for _, p := range parts() {
		if percent, ok := m[p.name]; ok {
			out = append(out, p.name+"="+strconv.FormatFloat(percent, 'g', -1, 64))
		}
	}
	return strings.Join(out, ",")
}

// rounds is how often the parts are adjusted one after the other. Each adjustment disturbs the other parts less and less.
const rounds = 100

// Mixed returns the trace with another list of the same length and of the same pods. Pods that belong to the same parts occur equally
// often, or differ by one. Nothing is random. It fails if no pod belongs to a requested part, or if all do.
func (t *Trace) Mixed(m Mix) (*Trace, error) {
	weights := make([]float64, len(t.Pods))
	for i := range weights {
		weights[i] = 1
	}
	for range rounds {
		for _, p := range parts() {
			percent, asked := m[p.name]
			if asked && !p.rake(t.Pods, weights, percent/100) {
				return nil, fmt.Errorf("workload %s, mix %s: its pods cannot be %g %% %s", t.Workload, m, percent, p.name)
			}
		}
	}
	out := *t
	out.Workload, out.Pods = t.Workload+" "+m.String(), nil
	sum, before := 0.0, 0.0
	for _, w := range weights {
		sum += w
	}
	for _, i := range byKind(t.Pods) {
		after := before + weights[i]/sum*float64(len(t.Pods))
		for range int(math.Round(after)) - int(math.Round(before)) {
			p := t.Pods[i]
			p.Name = fmt.Sprintf("pod-%06d", len(out.Pods))
			out.Pods = append(out.Pods, p)
		}
		before = after
	}
	return &out, nil
}

// rake scales the weights of the pods of a part, and of the others, to the wanted proportion. It returns false if one of the two groups is
// empty but must not be.
func (p part) rake(pods []Pod, weights []float64, want float64) bool {
	in, all := 0.0, 0.0
	for i := range pods {
		counted := weights[i] * p.counts(pods[i])
		all += counted
		if p.has(pods[i]) {
			in += counted
		}
	}
	if in == 0 && want > 0 || in == all && want < 1 {
		return false
	}
	for i := range pods {
		switch {
		case p.counts(pods[i]) == 0: // such pods are not counted
		case p.has(pods[i]):
			weights[i] *= want * all / max(in, math.SmallestNonzeroFloat64)
		default:
			weights[i] *= (1 - want) * all / max(all-in, math.SmallestNonzeroFloat64)
		}
	}
	return true
}

// byKind returns the indices of the pods, grouped by the parts that they belong to.
func byKind(pods []Pod) []int {
	kind := func(p Pod) (k int) {
		for i, of := range parts() {
			if of.has(p) {
				k |= 1 << i
			}
		}
		return k
	}
	out := make([]int, len(pods))
	for i := range out {
		out[i] = i
	}
	slices.SortStableFunc(out, func(a, b int) int { return kind(pods[a]) - kind(pods[b]) })
	return out
}
