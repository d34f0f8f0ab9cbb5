package openb

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Mix is what a list of pods is to be made of, in percent by the name of a part. What it does not name is left to follow.
type Mix map[string]float64

// part is some of the pods, as a part of all that is counted.
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

// ParseMix reads a mix such as "multi=50" or "cpu=25,share=60": cpu is the part of the pods that ask
// for no GPU; share and multi the part of all GPUs asked for that pods with a part of one and with
// several ask for; models the part of the pods with GPUs that are bound to models.
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

// String is as ParseMix reads it.
func (m Mix) String() string {
	var out []string
	for _, p := range parts() {
		if percent, ok := m[p.name]; ok {
			out = append(out, p.name+"="+strconv.FormatFloat(percent, 'g', -1, 64))
		}
	}
	return strings.Join(out, ",")
}

// rounds is how often the parts are brought to what is asked, one after the other; each disturbs the others less and less.
const rounds = 100

// Mixed is the trace with another list of pods, as long as its own and made of the same pods: of those that are alike in all parts each
// is there as often as the others, or once more. Nothing is drawn. It fails where no pod belongs to a part that is asked for, or all do.
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

// rake weighs the pods of a part, and the others, so that they are in the proportion that is asked
// for; false where one of the two is empty and must not be.
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
		case p.counts(pods[i]) == 0: // neither
		case p.has(pods[i]):
			weights[i] *= want * all / max(in, math.SmallestNonzeroFloat64)
		default:
			weights[i] *= (1 - want) * all / max(all-in, math.SmallestNonzeroFloat64)
		}
	}
	return true
}

// byKind is the pods' places, those that are alike in all parts together.
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
