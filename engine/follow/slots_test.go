package follow

import (
	"testing"

	"pgregory.net/rapid"

	_ "github.com/celsius-scheduler/celsius/engine/seeds"
)

// TestSlots checks slots while objects come, change and go. Each object has its own slot. There are at most as many slots as there were
// objects at one time. Objects that left since slots were last settled count too. The value kept for an object never belongs to another
// object, or to its earlier version.
func TestSlots(t *testing.T) {
	t.Parallel()
	type object struct{ slot, version int32 }
	rapid.Check(t, func(t *rapid.T) {
		var s Slots
		var there []*object
		var known BySlot[*object] // as they were at that time
		most, left := 0, 0
		known.Follow(&s)
		pick := func() int { return rapid.IntRange(0, len(there)-1).Draw(t, "which") }
		t.Repeat(map[string]func(*rapid.T){
			"come": func(*rapid.T) {
				there = append(there, &object{slot: s.Take()})
				most = max(most, len(there)+left)
			},
			"change": func(*rapid.T) {
				if len(there) > 0 {
					x := there[pick()]
					x.version++
					s.Change(x.slot)
				}
			},
			"go": func(*rapid.T) {
				if len(there) > 0 {
					i := pick()
					s.Leave(there[i].slot)
					there = append(there[:i], there[i+1:]...)
					left++
				}
			},
			"settle": func(*rapid.T) {
				s.Settle()
				left = 0
			},
			"look": func(t *rapid.T) {
				known.Follow(&s)
				for _, x := range there {
					if was := known.Get(x.slot); was != nil && *was != *x {
						t.Fatalf("%v is kept of %v", *was, *x)
					}
					now := *x
					known.Set(x.slot, &now)
				}
			},
			"": func(t *rapid.T) {
				var used []int32
				for _, x := range there {
					used = append(used, x.slot)
				}
				if err := s.Check(used); err != nil {
					t.Fatal(err)
				}
				if s.Len() > most {
					t.Fatalf("there are %d slots, and were %d objects at most", s.Len(), most)
				}
			},
		})
	})
}

// TestSlotsAreChecked checks that the check reports wrong slots.
func TestSlotsAreChecked(t *testing.T) {
	t.Parallel()
	var s Slots
	for range 3 {
		s.Take()
	}
	s.Leave(1)
	for _, test := range []struct {
		used []int32
		ok   bool
	}{
		{[]int32{0, 2}, true},
		{[]int32{0}, false},
		{[]int32{0, 1}, false},
		{[]int32{0, 0}, false},
		{[]int32{0, 1, 2}, false},
		{[]int32{0, 3}, false},
	} {
		if err := s.Check(test.used); (err == nil) != test.ok {
			t.Errorf("with %v in use: %v", test.used, err)
		}
	}
	var known BySlot[int]
	if got := known.Get(1000); got != 0 {
		t.Errorf("%d is in a slot that nobody had", got)
	}
}
