package subsets

import (
	"fmt"
	"strings"
	"testing"
)

func TestEach(t *testing.T) {
	var all []string
	Each(3, func(set []int) (done, without bool) {
		all = append(all, fmt.Sprint(set))
		return false, false
	})
	if got, want := strings.Join(all, " "), "[0] [1] [2] [0 1] [0 2] [1 2] [0 1 2]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	all = nil
	Each(4, func(set []int) (done, without bool) {
		all = append(all, fmt.Sprint(set))
		return fmt.Sprint(set) == "[2 3]", fmt.Sprint(set) == "[1]"
	})
	if got, want := strings.Join(all, " "), "[0] [1] [2] [3] [0 2] [0 3] [2 3]"; got != want {
		t.Errorf("without sets that contain 1, up to 2 and 3: got %s, want %s", got, want)
	}
	n := 0
	Each(40, func([]int) (done, without bool) { n++; return false, false })
	if n != Most {
		t.Errorf("%d sets of 40 numbers, want %d", n, Most)
	}
	Each(0, func([]int) (done, without bool) { t.Error("there is a set of no numbers"); return true, false })
}
