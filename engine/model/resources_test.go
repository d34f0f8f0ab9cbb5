package model

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
)

// world returns Dims with cpu, memory, pods, and two more dimensions, 3 and 4.
func world() *Dims {
	d := NewDims()
	d.Intern("example.com/y")
	d.Intern("example.com/x")
	return d
}

func TestResourceAlgebra(t *testing.T) {
	none := Absent()
	a, b := Resources{1, none, none, 5, 0}, Resources{3, 2, none, 4}
	tests := []struct {
		name string
		got  Resources
		want Resources
	}{
		{"a + b", a.Add(b), Resources{4, 2, none, 9, 0}},
		{"a - b", a.Sub(b), Resources{-2, -2, none, 1, 0}},
		{"over", a.Over(b), Resources{0, none, none, 1, 0}},
		{"min: missing is 0", a.Min(b), Resources{1, 0, none, 4, 0}},
		{"max: missing is 0", a.Max(Resources{-1, -1}), Resources{1, 0, none, 5, 0}},
		{"cap: missing is no limit", a.Cap(b), Resources{1, none, none, 4, 0}},
		{"scale", a.Scale(0.5), Resources{0.5, none, none, 2.5, 0}},
		{"only", a.Only(b), Resources{1, none, none, 5}},
		{"positive", Resources{-1, 0, 3}.Positive(), Resources{none, none, 3}},
		{"nothing + nothing", Resources(nil).Add(nil), nil},
	}
	for _, tt := range tests {
		if !tt.got.Equal(tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, tt.got, tt.want)
		}
	}
	if a.Equal(b) || a.Equal(Resources{1, 0, none, 5, 0}) || !a.Equal(Resources{1, none, none, 5, 0, none}) {
		t.Error("equal is not: the same dimensions with the same amounts")
	}
	sum := a.Clone()
	sum.AddIn(b, -1)
	if !sum.Equal(a.Sub(b)) || a.Get(0) != 1 {
		t.Errorf("added in place: %v; the original is %v", sum, a)
	}
}

func TestResourceComparisons(t *testing.T) {
	none := Absent()
	tests := []struct {
		name string
		got  bool
		want bool
	}{
		{"fits within the slack", Resources{1.1}.Fits(Resources{1}), true},
		{"does not fit beyond it", Resources{1.2}.Fits(Resources{1}), false},
		{"0 does not fit below 0", Resources{0}.Fits(Resources{-1}), false},
		{"absent fits anything", Resources{none}.Fits(Resources{-1}), true},
		{"missing on the right is 0", Resources{none, none, none, 1}.Fits(nil), false},
		{"within is strict", Resources{1.05}.Within(Resources{1}, Resources{1}), false},
		{"within looks at what dims has", Resources{9, 1}.Within(Resources{1, 1}, Resources{0, 1}), true},
		{"within any: one is enough", Resources{9, 1}.WithinAny(Resources{1, 1}, Resources{1, 1}), true},
		{"within any: 0 of 0 says nothing", Resources{9, 0}.WithinAny(Resources{1, 0}, Resources{1, 1}), false},
		{"exceeds", Resources{2}.ExceedsAny(Resources{1}, Resources{1}), true},
		{"cpu 0 is no limit", Resources{2}.ExceedsAny(Resources{0}, Resources{1}), false},
		{"a scalar 0 is one", Resources{none, none, none, 2}.ExceedsAny(Resources{none, none, none, 0}, Resources{none, none, none, 1}), true},
		{"a missing scalar is none", Resources{none, none, none, 2}.ExceedsAny(nil, Resources{none, none, none, 1}), false},
		{"overlaps", Resources{1}.Overlaps(Resources{2}), true},
		{"pods are no overlap", Resources{0, 0, 1}.Overlaps(Resources{0, 0, 1}), false},
		{"pods alone are nothing", Resources{0.05, 0, 9}.IsEmpty(), true},
		{"a scalar is something", Resources{0, 0, 9, 1}.IsEmpty(), false},
	}
	for _, tt := range tests {
		if tt.got != tt.want {
			t.Errorf("%s: %t, want %t", tt.name, tt.got, tt.want)
		}
	}
}

func TestShare(t *testing.T) {
	total := Resources{4, 8, Absent(), 0}
	for want, r := range map[float64]Resources{0: nil, 0.5: {2, 1, 99}, 0.25: {1, 2}, 1: {1, 1, 0, 1}} {
		if got := r.Share(total); got != want {
			t.Errorf("the share of %v is %g, want %g", r, got, want)
		}
	}
}

func TestDimsText(t *testing.T) {
	d := world()
	r := d.Resources(list("cpu=1500m memory=4Gi pods=3 example.com/x=2 example.com/y=1 hugepages-2Mi=2Mi"))
	if got, want := d.Text(r), "cpu 1.5, memory 4Gi, pods 3, example.com/x 2, example.com/y 1, hugepages-2Mi 2Mi"; got != want {
		t.Errorf("text %q, want %q", got, want)
	}
	if got := d.Text(nil); got != "nothing" {
		t.Errorf("the text of nothing is %q", got)
	}
	if i, ok := d.Find("hugepages-2Mi"); !ok || d.Unit(i) != 1 || d.Unit(CPU) != 1000 {
		t.Error("huge pages are not counted in bytes, or cpu not in milli-cores")
	}
	for _, text := range []string{"1500m", "2", "7"} {
		if got := d.Quantity(CPU, d.Amount(CPU, resource.MustParse(text))).String(); got != text {
			t.Errorf("%s of cpu came back as %s", text, got)
		}
	}
}
