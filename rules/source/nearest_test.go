package source

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestNearest(t *testing.T) {
	for _, c := range []struct {
		word  string
		among []string
		want  string
	}{
		{"idel", []string{"idle", "ideal"}, "idle"}, // a swap of two letters costs less than an insertion
		{"IDLE", []string{"idl", "idle"}, "idle"},
		{"expresion", []string{"expression", "exclusion"}, "expression"},
		{"weigth", []string{"weight", "height"}, "weight"},
		{"predicate", []string{"predicates", "preemptable"}, "predicates"},
		{"cpu", []string{"gpu", "memory"}, "gpu"},
		{"b", []string{"a"}, ""}, // no letter stays the same
		{"by", []string{"on"}, ""},
		{"foo", []string{"bar", "baz"}, ""},
		{"lable", []string{"labels", "label", "table"}, "label"},
		{"ab", []string{"ac", "aa", "a"}, "aa"},
		{"ab", []string{"ac", "abc"}, "ac"},
		{"größe", []string{"grösse", "größen"}, "größen"},
		{"", []string{"a", ""}, ""},
		{"x", nil, ""},
		// A word with the opposite meaning is never proposed.
		{"disableJobOrder", []string{"enableJobOrder"}, ""},
		{"disableJobOrdr", []string{"enableJobOrder", "disableJobOrder"}, "disableJobOrder"},
		{"enabledJobOrder", []string{"enableJobOrder"}, "enableJobOrder"},
		{"schedulable", []string{"unschedulable"}, ""},
		{"unschedulble", []string{"unschedulable"}, "unschedulable"},
		{"maxMember", []string{"minMember"}, ""},
		{"minMembr", []string{"minMember", "maxMember"}, "minMember"},
		{"antirequired", []string{"required", "antiRequired"}, "antiRequired"},
		{"antirequird", []string{"required"}, ""},
	} {
		if got := Nearest(c.word, c.among); got != c.want {
			t.Errorf("Nearest(%q, %q) = %q, want %q", c.word, c.among, got, c.want)
		}
	}
}

func TestEdits(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{
		{"", "", 0},
		{"abc", "", 3},
		{"", "abc", 3},
		{"abc", "abc", 0},
		{"abc", "acb", 1},
		{"abcd", "badc", 2},
		{"kitten", "sitting", 3},
		{"日本", "本日", 1},
		{"ca", "abc", 3}, // no letters are inserted between two swapped letters
	} {
		var d distances
		for most := range 9 {
			got := d.edits([]rune(c.a), []rune(c.b), most)
			if c.want <= most && got != c.want || c.want > most && got <= most {
				t.Errorf("edits(%q, %q, %d) = %d, want %d", c.a, c.b, most, got, c.want)
			}
		}
	}
}

// TestNearestOfManyLongNames looks for many wrong names among many names that differ in only a few letters. Without limits, this takes
// about 40 s.
func TestNearestOfManyLongNames(t *testing.T) {
	const most = 10 * time.Second
	var names []string
	for i := range 300 {
		names = append(names, fmt.Sprintf("n%06d-%s", i, strings.Repeat("a", 87)))
	}
	start := time.Now()
	for i := range names {
		wrong := fmt.Sprintf("m%06d-%s", i+300, strings.Repeat("a", 87))
		if Nearest(wrong, names) == "" {
			t.Fatalf("nothing is near %s", wrong)
		}
	}
	if took := time.Since(start); took > most {
		t.Errorf("%s, want at most %s", took, most)
	}
}
