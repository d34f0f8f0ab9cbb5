package source

import (
	"strings"
	"testing"
	"unicode/utf8"

	"gopkg.in/yaml.v3"
)

// excerpt reports whether an issue contains the part of a line around its place. For a short line, this is the whole line.
func excerpt(line string, i Issue) bool {
	runes, part := []rune(line), []rune(i.Source)
	end := i.Skipped + len(part)
	return end <= len(runes) && string(runes[i.Skipped:end]) == i.Source && (i.Skipped == 0 || i.Skipped < i.Column-windowBefore) &&
		(end == len(runes) || end > i.Column-1+windowAfter)
}

func FuzzParse(f *testing.F) {
	for _, seed := range append(jsonSeeds(), []string{
		"", "a: 1\n", "---\n---\na: [1, {b: 'c''d'}]\n", "a: \"\\u65e5\\\n  b\"\n", "a: |+2\n   x\n\n\nb: >-\n x\n y\n", "a: &x [*x]\n",
		"\ufeffa: é # 日本\r\nb: p\r\n  q\r\n", "{\"a\": [1, 2.5, null, true]}", "a: {b: 1\nc: \"x\n---\nd: 1\nd: 2\n<<: *q\n", "? [a]\n: b\n",
		"%YAML 1.1\n--- !!str x\n...\n",
		"a: x\u0085 y\u2028 z\n", "a: \"x\u0085 y\u2028\n z\"\n", "!foo &a b: !!int x\n1: 2\n",
	}...) {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		docs, issues := Parse("f.yaml", data)
		lines := strings.Split(strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(strings.TrimPrefix(string(data), "\ufeff")), "\n")
		inside := func(what string, i Issue) {
			if i.Line < 1 || i.Line > len(lines) || i.Column < 1 || i.Width < 1 {
				t.Fatalf("%s is outside of the file: %s", what, i.Render())
			}
			if line := lines[i.Line-1]; utf8.ValidString(line) && !excerpt(line, i) || i.Column+i.Width-2 > utf8.RuneCountInString(line) {
				t.Fatalf("%s is outside of line %q: %s", what, line, i.Render())
			}
		}
		for _, d := range docs {
			if !d.Root.Exists() {
				t.Fatal("a document without a root")
			}
			walk(d.Root, &issues, func(text Text) {
				if s := scan(text.doc, text.node); s.spans == nil {
					t.Fatalf("the scalar %q is not found again", text.Value)
				}
				for k := range utf8.RuneCountInString(text.Value) + 1 {
					inside("a character", text.Issue(k, 1, "m", "h"))
				}
			})
			d.Root.Any()
		}
		for _, i := range issues {
			inside("an issue", i)
		}
	})
}

// walk visits all texts below v, and asks each value for every type. A text with several aliases is visited only once.
func walk(v Value, issues *Issues, visit func(Text)) {
	for _, f := range v.Fields([]string{"known"}, issues) {
		_ = f.Key.String(issues)
	}
	v.Strings(issues)
	v.Int(issues)
	v.Float(issues)
	v.Bool(issues)
	v.Duration(issues)
	if text := v.Text(issues); text.node != nil {
		visit(text)
	}
	if v.at.Kind == yaml.AliasNode {
		return
	}
	for _, f := range v.Fields(nil, issues) {
		walk(f.Key, issues, visit)
		walk(f.Value, issues, visit)
	}
	for _, item := range v.Items(issues) {
		walk(item, issues, visit)
	}
}
