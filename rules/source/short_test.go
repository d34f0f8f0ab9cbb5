package source

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"
)

// TestShort checks that long words and long texts are cut in the middle. Every text that Kubernetes permits as a name stays complete.
func TestShort(t *testing.T) {
	name := strings.Repeat("é", longestShown)
	for _, text := range []string{"", "short", name, "a " + name + "\n\t" + name + " z"} {
		if got := Short(text); got != text {
			t.Errorf("Short(%q) = %q", text, got)
		}
	}
	long := "first " + strings.Repeat("é", 100_000) + "\tlast"
	want := "first " + strings.Repeat("é", 239) + "…" + strings.Repeat("é", 80) + "\tlast"
	if got := Short(long); got != want {
		t.Errorf("Short of a long word = %q, want %q", got, want)
	}
	text := "first " + strings.Repeat("word ", 100_000) + "last"
	got := Short(text)
	if n := utf8.RuneCountInString(got); n != longestText || !strings.HasPrefix(got, "first word") || !strings.HasSuffix(got, "word last") {
		t.Errorf("Short of a long text has %d characters: %q", n, got)
	}
	if got := ShortWords(text); got != text {
		t.Error("ShortWords cuts a text of short words")
	}
}

// TestLongValuesAreCut writes issues about values and keys of 100,000 characters. The message, the hint and the path are cut.
func TestLongValuesAreCut(t *testing.T) {
	long := strings.Repeat("x", 100_000)
	docs, issues := Parse("f", []byte(fmt.Sprintf("? %s\n: {inner: %s}\n", long, long)))
	if issues.Err() != nil {
		t.Fatal(issues)
	}
	v := docs[0].Root.Get(long).Get("inner")
	if !v.Exists() {
		t.Fatal("the value is not found")
	}
	made := v.Issuef("use "+long, "%s is wrong", long)
	if size := len(made.Message) + len(made.Hint) + len(made.Path); size > 4*longestShown {
		t.Errorf("an issue holds %d bytes", size)
	}
	for _, i := range []Issue{made, {Message: long, Hint: long}} {
		for _, text := range []string{i.Error(), i.Render(), i.Placed()} {
			if len(text) > 5*longestShown || !strings.Contains(text, "…") {
				t.Errorf("%d bytes: %s", len(text), text)
			}
		}
	}
}

// TestEscape checks that control characters become visible in a text, and in the strings of a JSON text. The JSON text stays valid.
func TestEscape(t *testing.T) {
	for text, want := range map[string]string{
		"größe\n":                              "größe\n",
		"ml\u202egpj":                          `ml\u202egpj`,
		"\x1b[2J\t\b\f\r\x7f\u0085":            `\x1b[2J\t\b\f\r\x7f\u0085`,
		`"a\b" </script> \u202e \\` + "\u2028": `"a\b" </script> \u202e \\` + "\u2028",
	} {
		if got := Escape(text); got != want {
			t.Errorf("Escape(%q) = %q, want %q", text, got, want)
		}
		in := map[string]any{text: []any{text, 1.5, nil}}
		data, err := json.Marshal(in)
		if err != nil {
			t.Fatal(err)
		}
		var got map[string]any
		if err := json.Unmarshal(EscapeJSON(data), &got); err != nil {
			t.Fatalf("%s: %v", EscapeJSON(data), err)
		}
		if wanted := map[string]any{want: []any{want, 1.5, nil}}; !reflect.DeepEqual(got, wanted) {
			t.Errorf("EscapeJSON(%s) holds %q, want %q", data, got, wanted)
		}
	}
	for _, text := range []string{``, `\`, `"\u`, `"\u00`, `"\uzzzz"`} {
		if got := EscapeJSON([]byte(text)); string(got) != text {
			t.Errorf("EscapeJSON(%s) = %s", text, got)
		}
	}
}
