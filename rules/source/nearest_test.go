package source

import "testing"

func TestNearest(t *testing.T) {
	for _, c := range []struct {
		word  string
		among []string
		want  string
	}{
		{"idel", []string{"idle", "ideal"}, "idle"}, // a swap goes before an insertion
		{"IDLE", []string{"idl", "idle"}, "idle"},
		{"expresion", []string{"expression", "exclusion"}, "expression"},
		{"weigth", []string{"weight", "height"}, "weight"},
		{"predicate", []string{"predicates", "preemptable"}, "predicates"},
		{"cpu", []string{"gpu", "memory"}, "gpu"},
		{"b", []string{"a"}, ""}, // no letter is left
		{"by", []string{"on"}, ""},
		{"foo", []string{"bar", "baz"}, ""},
		{"lable", []string{"labels", "label", "table"}, "label"},
		{"ab", []string{"ac", "aa", "a"}, "aa"},
		{"ab", []string{"ac", "abc"}, "ac"},
		{"größe", []string{"grösse", "größen"}, "größen"},
		{"", []string{"a", ""}, ""},
		{"x", nil, ""},
		// What means the opposite is not meant.
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
		{"ca", "abc", 3}, // no part is edited twice
	} {
		if got := edits([]rune(c.a), []rune(c.b)); got != c.want {
			t.Errorf("edits(%q, %q) = %d, want %d", c.a, c.b, got, c.want)
		}
	}
}
