package compare

import "testing"

// TestEarliest checks that the moment of the earliest file counts, whichever file finds one first. Later files are no longer searched.
func TestEarliest(t *testing.T) {
	x := &earliest{at: 3}
	moments := []*Moment{{}, {}, {}}
	for _, c := range []struct {
		file   int
		wanted [3]bool // afterwards
		is     int
	}{{1, [3]bool{true, false, false}, 1}, {2, [3]bool{true, false, false}, 1}, {0, [3]bool{}, 0}, {1, [3]bool{}, 0}} {
		x.of(c.file).found(moments[c.file])
		for file, want := range c.wanted {
			if got := x.of(file).wanted(); got != want {
				t.Errorf("after file %d file %d is wanted: %v", c.file, file, got)
			}
		}
		if x.moment != moments[c.is] {
			t.Errorf("after file %d the moment is not that of file %d", c.file, c.is)
		}
	}
}
