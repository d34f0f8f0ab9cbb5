package serving

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/celsius-scheduler/celsius/crds/policy/v1alpha1"
	"github.com/celsius-scheduler/celsius/engine/policy"
	_ "github.com/celsius-scheduler/celsius/engine/seeds"
)

// good returns a candidate that compiles, and bad one that does not.
func good(generation int64, mode v1alpha1.Mode) *candidate {
	return &candidate{name: "default", uid: "u", generation: generation, mode: mode, policy: &policy.Policy{
		Name: "default", Generation: generation, Mode: string(mode),
	}}
}

func bad(generation int64, mode v1alpha1.Mode) *candidate {
	return &candidate{name: "default", uid: "u", generation: generation, mode: mode}
}

func TestChoose(t *testing.T) {
	const active, paused = v1alpha1.ModeActive, v1alpha1.ModePaused
	shipped := &candidate{name: "default", mode: active, policy: &policy.Policy{Name: "default", Mode: "Active"}}
	for _, c := range []struct {
		name    string
		object  *candidate
		before  []*candidate
		want    string // the serving policy and its mode
		skipped []string
	}{
		{"nothing was ever stored", nil, nil, "the embedded default Active", nil},
		{"it was deleted", nil, []*candidate{good(3, active)}, "the embedded default Active", nil},
		{"a paused one was deleted", nil, []*candidate{good(3, paused)}, "the embedded default Active", nil},
		{"the object compiles", good(4, active), []*candidate{good(3, active)}, "default@4 Active", nil},
		{"the object is paused", good(4, paused), []*candidate{good(3, active)}, "default@4 Paused", nil},
		{"the object is broken", bad(4, active), []*candidate{good(3, active), good(2, active)}, "default@3 Active", nil},
		{"the first object ever is broken", bad(1, active), nil, "the embedded default Active", nil},
		{"broken and paused", bad(4, paused), []*candidate{good(3, active)}, "default@3 Paused", nil},
		{"broken and paused, none before", bad(4, paused), nil, "the embedded default Paused", nil},
		{"broken and active again", bad(5, active), []*candidate{good(4, paused)}, "default@4 Active", nil},
		{"broken, its mode no mode", bad(5, ""), []*candidate{good(4, paused)}, "default@4 Paused", nil},
		{
			"one of before compiles no more", bad(5, active),
			[]*candidate{bad(4, active), good(3, active)},
			"default@3 Active",
			[]string{"default@4"},
		},
		{
			"none of before compiles any more", bad(5, active),
			[]*candidate{bad(4, active), bad(3, active)},
			"the embedded default Active",
			[]string{"default@4", "default@3"},
		},
		{"the default served before it", bad(1, active), []*candidate{shipped, good(9, active)}, "the embedded default Active", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := choose(c.object, slices.Values(c.before), shipped)
			if text := got.serving.String() + " " + got.policy.Mode; text != c.want {
				t.Errorf("serving %s, want %s", text, c.want)
			}
			var skipped []string
			for _, s := range got.skipped {
				skipped = append(skipped, s.String())
			}
			if diff := cmp.Diff(c.skipped, skipped); diff != "" {
				t.Errorf("skipped (-want +got):\n%s", diff)
			}
		})
	}
}

// TestChooseHolds checks four properties. A compiled policy always serves. An object that compiles always serves. Otherwise the newest
// policy in before that compiles serves. The mode is always that of the object, and no candidate changes.
func TestChooseHolds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		mode := rapid.SampledFrom([]v1alpha1.Mode{"", v1alpha1.ModeActive, v1alpha1.ModePaused})
		one := func(generation int64, label string) *candidate {
			m := mode.Draw(t, label+" mode")
			if rapid.Bool().Draw(t, label+" compiles") && m != "" {
				return good(generation, m)
			}
			return bad(generation, m)
		}
		var object *candidate
		if rapid.Bool().Draw(t, "stored") {
			object = one(100, "object")
		}
		var before []*candidate
		for n := range rapid.IntRange(0, 5).Draw(t, "before") {
			before = append(before, one(int64(50-n), "kept"))
		}
		shipped := &candidate{uid: types.UID(""), mode: v1alpha1.ModeActive, policy: &policy.Policy{Mode: "Active"}}
		checkChoice(t, object, before, shipped)
	})
}

func checkChoice(t *rapid.T, object *candidate, before []*candidate, shipped *candidate) {
	got := choose(object, slices.Values(before), shipped)
	if got.policy == nil || got.serving.policy == nil {
		t.Fatal("nothing serves")
	}
	if object != nil && object.mode != "" && got.policy.Mode != string(object.mode) {
		t.Errorf("mode %s, the object's is %s", got.policy.Mode, object.mode)
	}
	if object != nil && object.policy != nil && got.serving != object {
		t.Errorf("the object compiles, and %s serves", got.serving)
	}
	i := slices.Index(before, got.serving)
	if j := slices.IndexFunc(before, func(c *candidate) bool { return c.policy != nil }); object != nil && object.policy == nil && i != j {
		t.Errorf("number %d of before serves, %d is the first that compiles", i, j)
	}
	for _, c := range append(before, shipped) {
		if c.policy != nil && c.policy.Mode != string(c.mode) {
			t.Errorf("the mode of %s was changed", c)
		}
	}
}
