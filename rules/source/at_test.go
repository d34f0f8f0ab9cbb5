package source

import (
	"strings"
	"testing"
)

// TestAt finds the value at a cursor. The cursor is written as ¦.
func TestAt(t *testing.T) {
	for _, c := range []struct {
		text, path string
		key        bool
		before     string // the part of the scalar's text before the cursor
	}{
		{"a: b¦c", "a", false, "b"},
		{"a: bc¦", "a", false, "bc"},
		{"a¦: bc", "a", true, "a"},
		{"¦a: bc", "a", true, ""},
		{"a: bc ¦# d", "", false, ""},
		{"# d¦\na: b", "", false, ""},
		{"x: [1, {k: \"ä\\tb¦c\"}]", "x[1].k", false, "ä\tb"},
		{"x: |\n  one\n  t¦wo\ny: 1", "x", false, "one\nt"},
		{"x: >-\n  one\n  t¦wo\n", "x", false, "one t"},
		{"x: 'it''s¦'", "x", false, "it's"},
		{"a:\nb: c¦", "b", false, "c"},
		{"a: &x v\nb: *x¦", "", false, ""},
		{"- a\n- name: b¦", "[1].name", false, "b"},
	} {
		before, after, _ := strings.Cut(c.text, "¦")
		docs, issues := Parse("f", []byte(before+after))
		if issues != nil {
			t.Fatal(issues.Error())
		}
		line := strings.Count(before, "\n") + 1
		column := len([]rune(before[strings.LastIndex(before, "\n")+1:])) + 1
		spot, ok := docs[0].At(line, column)
		if !ok {
			if c.path != "" {
				t.Errorf("%q: nothing is found", c.text)
			}
			continue
		}
		got := string([]rune(spot.Text().Value)[:spot.Offset])
		if spot.Value.Path() != c.path || spot.Key != c.key || got != c.before {
			t.Errorf("%q: %q, key %v, %q before the cursor; want %q, %v, %q", c.text, spot.Value.Path(), spot.Key, got, c.path, c.key, c.before)
		}
	}
}
