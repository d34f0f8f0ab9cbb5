package source

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestToJSON(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text string
		want []string // the number and the JSON of each document
		err  string   // a part of the error message
	}{
		"an emoji as two escapes": {`{"a": "\ud83d\ude00"}`, []string{`1 {"a": "\ud83d\ude00"}`}, ""},
		"tabs":                    {"{\n\t\"a\":\t[\n\t\t1\n\t]\n}\n", []string{"1 {\n\t\"a\":\t[\n\t\t1\n\t]\n}"}, ""},
		"a list":                  {`[{"a": 1}, 2]`, []string{`1 [{"a": 1}, 2]`}, ""},
		"a long key":              {`{"` + strings.Repeat("k", 2000) + `": 1}`, []string{`1 {"` + strings.Repeat("k", 2000) + `": 1}`}, ""},
		"several of JSON":         {`{"a": 1} {"a": 2}`, []string{`1 {"a": 1}`, `2 {"a": 2}`}, ""},
		"YAML of kubectl":         {"on: yes\nmode: 0644\nb: &x 1\nc: *x\n", []string{`1 {"b":1,"c":1,"mode":420,"true":true}`}, ""},
		"flow mappings of YAML":   {"{run: 30s, a: [b,]}", []string{`1 {"a":["b"],"run":"30s"}`}, ""},
		"both, and an empty one": {
			"---\n# none\n---\na: 1\n---\n{\"b\": 2}\n--- # c\nc: 3\n",
			[]string{`2 {"a":1}`, `3 {"b": 2}`, `4 {"c":3}`},
			"",
		},
		"a directive":             {"a: 1\n...\n%YAML 1.1\n---\nb: 2\n", []string{`1 {"a":1}`}, ""},
		"nothing":                 {"\n# none\n", nil, ""},
		"a duplicate key of JSON": {"a: 1\n---\n{\"b\": 1,\n\"b\": 2}", nil, `document 2: line 4, column 1: duplicate key "b", first on line 3`},
		"a duplicate key of YAML": {"b: 1\nb: 2", nil, `document 1: yaml: unmarshal errors:`},
		"a mistake in YAML":       {"a: 1\n---\nb: [\n", nil, "document 2: yaml: "},
		"a mistake in JSON": {
			"a: 1\n---\n{\"a\": \"\\ud83d\\ude00\",\n \"b\" 2}", nil,
			`document 2: line 4, column 6: is not JSON: a colon is missing behind the key`,
		},
		"a character of no YAML":   {"a: \x01", nil, "line 1, column 4: the control character U+0001"},
		"the same in text of JSON": {"{\"a\": \"\x7f\"}", []string{"1 {\"a\": \"\x7f\"}"}, ""},
	} {
		docs, err := ToJSON([]byte(c.text))
		var got []string
		for _, d := range docs {
			got = append(got, fmt.Sprintf("%d %s", d.Number, d.JSON))
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if fmt.Sprint(err) != "<nil>" && c.err == "" || !strings.Contains(fmt.Sprint(err), c.err) {
			t.Errorf("%s: got %v, want %q", name, err, c.err)
		}
	}
}
