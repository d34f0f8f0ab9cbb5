package openb

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	_ "github.com/celsius-scheduler/celsius/engine/seeds"
)

// mixable returns a trace with pods of all types.
func mixable() *Trace {
	t := &Trace{Workload: "w"}
	for i := range 1000 {
		p := Pod{Name: fmt.Sprintf("p-%03d", i), CPUMilli: int64(i)}
		if i%10 > 0 {
			p.GPUs, p.GPUMilli = 1, wholeDevice
		}
		switch {
		case i%10 > 0 && i%10 < 5:
			p.GPUMilli = int64(100 * (i % 7))
			p.GPUMilli = max(p.GPUMilli, 50)
		case i%10 == 9:
			p.GPUs = int64(2 + 6*(i/10%2))
		}
		if p.GPUs > 0 && i%4 == 1 {
			p.Models = "T4"
		}
		t.Pods = append(t.Pods, p)
	}
	return t
}

// A list has the requested parts, except for rounding by some pods, and its pods are those of the trace.
func TestMixed(t *testing.T) {
	trace := mixable()
	known := map[Pod]bool{}
	for _, p := range trace.Pods {
		p.Name = ""
		known[p] = true
	}
	rapid.Check(t, func(t *rapid.T) {
		m := Mix{}
		for _, p := range parts() {
			if rapid.Bool().Draw(t, p.name) {
				m[p.name] = float64(rapid.IntRange(0, 45).Draw(t, p.name+" percent"))
			}
		}
		got, err := trace.Mixed(m)
		if err != nil {
			t.Fatal(err)
		}
		if len(got.Pods) != len(trace.Pods) {
			t.Errorf("%d pods, want %d", len(got.Pods), len(trace.Pods))
		}
		names := map[string]bool{}
		for _, p := range got.Pods {
			if names[p.Name] {
				t.Errorf("two are named %s", p.Name)
			}
			names[p.Name] = true
			if p.Name = ""; !known[p] {
				t.Errorf("%+v is none of the trace's", p)
			}
		}
		for _, p := range parts() {
			want, asked := m[p.name]
			if is := percentOf(p, got.Pods); asked && math.Abs(is-want) > 2.5 {
				t.Errorf("mix %s: %s is %.2f %%, want %g", m, p.name, is, want)
			}
		}
	})
}

func percentOf(p part, pods []Pod) float64 {
	in, all := 0.0, 0.0
	for _, pod := range pods {
		all += p.counts(pod)
		if p.has(pod) {
			in += p.counts(pod)
		}
	}
	return 100 * in / all
}

// An empty mix returns the original list. A mix that is impossible with these pods is refused.
func TestMixedAsItWas(t *testing.T) {
	trace := mixable()
	same, err := trace.Mixed(Mix{})
	if err != nil || len(same.Pods) != len(trace.Pods) {
		t.Fatal(err)
	}
	seen := map[int64]int{}
	for _, p := range same.Pods {
		if seen[p.CPUMilli]++; seen[p.CPUMilli] > 1 {
			t.Errorf("the pod with %d thousandths of a core is there twice", p.CPUMilli)
		}
	}
	trace.Pods = trace.Pods[1:2]
	if _, err := trace.Mixed(Mix{"multi": 20}); err == nil ||
		!strings.Contains(err.Error(), "workload w, mix multi=20: its pods cannot be 20 % multi") {
		t.Errorf("%v", err)
	}
}

func TestParseMix(t *testing.T) {
	for text, want := range map[string]string{"multi=50": "multi=50", "share=60, cpu=25": "cpu=25,share=60", "models=12.5": "models=12.5"} {
		if m, err := ParseMix(text); err != nil || m.String() != want {
			t.Errorf("%s: %v, %v", text, m, err)
		}
	}
	for _, text := range []string{
		"", "multi", "multi=", "multi=101", "multi=-1", "multi=NaN", "multi=2,multi=3", "gpus=4", "cpu=100",
		"share=60,multi=50",
	} {
		if m, err := ParseMix(text); err == nil {
			t.Errorf("%q was read as %v", text, m)
		}
	}
}
