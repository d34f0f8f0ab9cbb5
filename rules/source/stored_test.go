package source

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWithin(t *testing.T) {
	doc, issues := ParseStored([]byte(`{"kind":"T","spec":{"long":"a +\n  bé.c + 😀d","word":"x","mis":"y","number":3}}`))
	if issues.Err() != nil {
		t.Fatal(issues)
	}
	text := func(path string, offset, width int) Issue {
		v, ok := doc.Find(path)
		if !ok {
			t.Fatalf("no %s", path)
		}
		return v.Text(&issues).Issue(offset, width, "wrong", "")
	}
	whole := func(path string) Issue {
		v, _ := doc.Find(path)
		return v.Issuef("", "wrong")
	}
	key := doc.Root.Get("spec").Fields(nil, &Issues{})[1].Key.Issuef("", "unknown")
	key.Path = "spec.mis"
	for _, c := range []struct {
		name string
		in   Issue
		want Issue
	}{
		{"first character", text("spec.word", 0, 1), Issue{Path: "spec.word", Line: 1, Column: 1, Width: 1, Message: "wrong", Source: "x"}},
		{"second line", text("spec.long", 6, 2), Issue{Path: "spec.long", Line: 2, Column: 3, Width: 2, Message: "wrong", Source: "  bé.c + 😀d"}},
		{"behind a wide character", text("spec.long", 14, 1), Issue{
			Path: "spec.long", Line: 2, Column: 11, Width: 1, Message: "wrong",
			Source: "  bé.c + 😀d",
		}},
		{"behind the end", text("spec.word", 1, 1), Issue{Path: "spec.word", Line: 1, Column: 2, Width: 1, Message: "wrong", Source: "x"}},
		{"whole value", whole("spec.word"), Issue{Path: "spec.word", Width: 3, Message: "wrong"}},
		{"number", whole("spec.number"), Issue{Path: "spec.number", Width: 1, Message: "wrong"}},
		{"key", key, Issue{Path: "spec.mis", Width: 5, Message: "unknown"}},
		{"not there", Issue{Path: "spec.other", Line: 1, Column: 1, Message: "missing"}, Issue{Path: "spec.other", Message: "missing"}},
	} {
		if diff := cmp.Diff(Issues{c.want}, doc.Within(Issues{c.in})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

func TestParseStored(t *testing.T) {
	for _, c := range []struct {
		name, data string
		want       any    // of a
		issue      string // "" for none
	}{
		{"object", `{"a":"b"}`, "b", ""},
		{"escapes of JSON", `{"a":"\/\u003c\t\u2028\ud83d\ude00"}`, "/<\t\u2028😀", ""},
		{"control characters in the clear", "{\"a\":\"\u007f\u0085\u009f\ufeff\"}", "\u007f\u0085\u009f\ufeff", ""},
		{"looks like another type", `{"a":"true"}`, "true", ""},
		{"cut off", `{"a":`, nil, "the object is not JSON: unexpected EOF"},
		{"two", `{"a":1} {}`, nil, "the object is not JSON: something stands behind it"},
		{"null", `null`, nil, "the object is empty; an object with apiVersion and kind is wanted"},
	} {
		doc, issues := ParseStored([]byte(c.data))
		var got any
		if doc != nil {
			got = doc.Root.Get("a").Any()
		}
		var said string
		if len(issues) > 0 {
			said = issues[0].Error()
		}
		if got != c.want || said != c.issue {
			t.Errorf("%s: %v, %q; want %v, %q", c.name, got, said, c.want, c.issue)
		}
	}
}
