package subsets

import (
	"fmt"
	"strings"
	"testing"
)

func TestEach(t *testing.T) {
	var all []string
	left := Most
	Each(3, &left, func(set []int) (done, without bool) {
		all = append(all, fmt.Sprint(set))
		return false, false
	})
	if got, want := strings.Join(all, " "), "[0] [1] [2] [0 1] [0 2] [1 2] [0 1 2]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	all = nil
	Each(4, &left, func(set []int) (done, without bool) {
		all = append(all, fmt.Sprint(set))
		return fmt.Sprint(set) == "[2 3]", fmt.Sprint(set) == "[1]"
	})
	if got, want := strings.Join(all, " "), "[0] [1] [2] [3] [0 2] [0 3] [2 3]"; got != want {
		t.Errorf("without sets that contain 1, up to 2 and 3: got %s, want %s", got, want)
	}
	n := 0
	left = 100
	Each(40, &left, func([]int) (done, without bool) { n++; return false, false })
	if n != 100 || left != 0 {
		t.Errorf("%d subsets of 40 numbers, and %d are left, want 100 and 0", n, left)
	}
	left = Most
	Each(0, &left, func([]int) (done, without bool) { t.Error("there is a set of no numbers"); return true, false })
}
