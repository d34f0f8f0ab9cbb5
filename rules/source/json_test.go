package source

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gopkg.in/yaml.v3"
)

// jsonSeeds are texts of JSON that a YAML parser refuses or reads otherwise.
func jsonSeeds() []string {
	return []string{
		`{"a": "\ud83d\ude80", "\ud83d\ude80": "x"}`,
		`{"a": "\/\b\f\n\r\t\"\\", "b": "\u0000\u001f\u007F\u0085\ufeff\uffff"}`,
		`{"a": "\ud83d", "b": "\ude80", "c": "\ud83dx", "d": "\ud83d\u0041", "e": "\ude80\ud83d", "f": "\ud83d\ud83d\ude80"}`,
		"{\"a\": \"\u007f\u0080\u0085\u009f\ufeff\uffff\u2028 \u2029 \u00a0\"}",
		"\ufeff{\"a\": 1}", "{\r\n\t\"a\"\r\n\t:\r\n\t[1,\r\n\t2]\r\n}\r\n", "{\r\"a\": \"b\"\r}\r",
		"{\"a\": \"x\u2028---\u2028y\u0085--- z\", \"b\": [\"\u2028\"]}",
		`{"` + strings.Repeat("k", 2000) + `": 1}`,
		`{"a": [0, -0, 1.5, -1e3, 1E+2, 1e-2, 9223372036854775807, 9223372036854775808, 123456789012345678901234567890]}`,
		`{"a": [true, false, null, "true", "null", "1", "", "<<"], "<<": {}, "": 1, "null": 2, "1": {}}`,
		"[[], {}, [[]], [{}]]", " \t\n[ \t]\n ", `{"a":1}{"b":2}` + "\n[3]\n", "# made by kubectl\n{\"a\": 1}\n",
		strings.Repeat("[", 99) + strings.Repeat("]", 99), "--- {\"a\": \"\\ud83d\\ude80\"}\n---\n{\"b\": 1}\n",
	}
}

// plainJSON reads JSON with the standard library.
func plainJSON(data []byte) (out []any, err error) {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	in := json.NewDecoder(bytes.NewReader(data))
	in.UseNumber()
	for {
		var value any
		if err := in.Decode(&value); errors.Is(err, io.EOF) {
			return out, nil
		} else if err != nil {
			return nil, err //nolint:wrapcheck // of a test
		}
		switch value.(type) {
		case map[string]any, []any:
			out = append(out, numbers(value))
		default:
			return nil, errors.New("neither an object nor a list")
		}
	}
}

// numbers converts the numbers of a value as Value.Any does.
func numbers(value any) any {
	switch x := value.(type) {
	case map[string]any:
		for key, field := range x {
			x[key] = numbers(field)
		}
	case []any:
		for i := range x {
			x[i] = numbers(x[i])
		}
	case json.Number:
		if n, err := x.Int64(); err == nil {
			return n
		}
		if f, err := x.Float64(); err == nil {
			return f
		}
		return x.String() // it is too large
	}
	return value
}

// sameAsPlain fails if Parse does not read JSON as the standard library does.
func sameAsPlain(t *testing.T, data []byte, want []any) {
	t.Helper()
	docs, issues := Parse("f.json", data)
	for _, i := range issues {
		if strings.HasPrefix(i.Message, "duplicate key") || i.Message == tooDeep() {
			return
		}
	}
	var got []any
	for _, d := range docs {
		got = append(got, d.Root.Any())
	}
	if !reflect.DeepEqual(want, got) || len(issues) > 0 { // cmp takes exponential time for nested lists
		t.Fatalf("%q: %s\n-encoding/json +Parse\n-%#v\n+%#v", data, issues.Error(), want, got)
	}
}

// TestJSONIsReadAsJSON reads JSON that no YAML parser reads in the same way.
func TestJSONIsReadAsJSON(t *testing.T) {
	t.Parallel()
	for _, text := range jsonSeeds() {
		plain := strings.NewReplacer("---\n{", "\n{", "--- {", "    {", "# made by kubectl", "").Replace(text)
		want, err := plainJSON([]byte(plain))
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		sameAsPlain(t, []byte(text), want)
	}
}

// TestPlacesInJSON finds the places of characters that are written as escapes.
func TestPlacesInJSON(t *testing.T) {
	t.Parallel()
	docs, issues := Parse("f.json", []byte("{\"a\": \"\u2028\",\r\n \"b\": \"x\\ud83d\\ude80\\/\u0085\\ud83dy\"}\n---\n{\"c\": \"\\ud83dz\"}"))
	if len(docs) != 2 {
		t.Fatal(issues)
	}
	var got []string
	for _, v := range []Value{docs[0].Root.Get("b"), docs[1].Root.Get("c")} {
		text := v.Text(&issues)
		for k := range []rune(text.Value) {
			i := text.Issue(k, 1, "", "")
			got = append(got, fmt.Sprintf("%d:%d+%d", i.Line, i.Column, i.Width))
		}
	}
	want := []string{"2:8+1", "2:9+12", "2:21+2", "2:23+1", "2:24+6", "2:30+1", "4:8+6", "4:14+1"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestDirectivesBelongToTheirDocument reads JSON behind a directive of YAML.
func TestDirectivesBelongToTheirDocument(t *testing.T) {
	t.Parallel()
	docs, issues := Parse("f", []byte("%YAML 1.1\n---\n{\"a\": 1}\n---\n{\"b\": \"\\/\"}\n"))
	if len(docs) != 2 || len(issues) > 0 {
		t.Errorf("%d documents, %v", len(docs), issues)
	}
}

// TestInvalidTextInJSON reports characters that are not UTF-8, and characters around JSON that YAML does not allow.
func TestInvalidTextInJSON(t *testing.T) {
	t.Parallel()
	for text, column := range map[string]int{
		"{\"a\": \"\u0080\xff\"}": 9, "{\"a\": 1}\n---\nb: \u0080": 4, "---\na: \u0080\n---\n{\"b\": \"\xff\"}": 4,
		"{\"a\": \"\ufeff\"}\n---\n{\"b\": \"\xff\"}": 8,
	} {
		docs, issues := Parse("f", []byte(text))
		if len(docs) > 0 || len(issues) != 1 || issues[0].Column != column {
			t.Errorf("%q: %d documents, %v", text, len(docs), issues)
		}
	}
}

// TestDeepJSON reads JSON that is nested a million deep. Parse refuses it, and ParseShallow leaves out the value.
func TestDeepJSON(t *testing.T) {
	t.Parallel()
	const depth = 1_000_000
	for name, text := range map[string]string{
		"lists":   strings.Repeat("[", depth) + strings.Repeat("]", depth),
		"objects": strings.Repeat(`{"a":`, depth) + `"\ud83d\ude80"` + strings.Repeat("}", depth),
	} {
		data := []byte(`{"deep": ` + text + `, "other": "\ud83d\ude80"}`)
		if docs, issues := Parse("f", data); len(docs) > 0 || len(issues) != 1 || issues[0].Message != tooDeep() {
			t.Errorf("%s: %d documents, %v", name, len(docs), issues)
		}
		docs, issues := ParseShallow("f", data)
		if len(docs) != 1 || len(issues) > 0 || docs[0].Root.Get("other").Any() != "🚀" {
			t.Errorf("%s: %d documents, %v", name, len(docs), issues)
			continue
		}
		for field, want := range map[string]bool{"deep": true, "other": false, "none": false} {
			if i, found := docs[0].Root.Get(field).TooDeep(); found != want || found && i.Line != 1 {
				t.Errorf("%s: the field %s is too deep: %v, %v", name, field, found, i)
			}
		}
		for _, open := range []string{"", `"`} {
			cut := `{"deep": ` + text[:len(text)/2] + open
			if docs, issues := Parse("f", []byte(cut)); len(docs) > 0 || len(issues) != 1 {
				t.Errorf("%s: cut off before %q: %d documents, %v", name, open, len(docs), issues)
			}
		}
	}
}

// TestShallow leaves out values of YAML and aliases that are nested too deep, and no others.
func TestShallow(t *testing.T) {
	t.Parallel()
	list := func(n int, inside string) string { return strings.Repeat("[", n) + inside + strings.Repeat("]", n) }
	for name, c := range map[string]struct {
		text string
		deep bool
	}{
		"just enough":            {"a: " + list(98, "1"), false},
		"an empty list":          {"a: " + list(99, ""), false},
		"one more":               {"a: " + list(99, "x"), true},
		"JSON, just enough":      {`{"a": ` + list(98, "1") + "}", false},
		"JSON, an empty list":    {`{"a": ` + list(99, "") + "}", false},
		"JSON, one more":         {`{"a": ` + list(99, "1") + "}", true},
		"JSON, two more":         {`{"a": ` + list(100, "1") + "}", true},
		"JSON, a key":            {`{"a": ` + list(98, `{"k": 1}`) + "}", true},
		"an alias":               {"b: &b " + list(60, "") + "\na: " + list(60, "*b"), true},
		"the target of an alias": {"b: &b " + list(120, "") + "\na: *b", true},
		"a key":                  {"a: " + list(98, "{k: 1}"), true},
	} {
		docs, issues := ParseShallow("f", []byte(c.text))
		if len(docs) != 1 || len(issues) > 0 {
			t.Errorf("%s: %d documents, %v", name, len(docs), issues)
			continue
		}
		if i, found := docs[0].Root.Get("a").TooDeep(); found != c.deep {
			t.Errorf("%s: too deep: %v, %v", name, found, i)
		}
		if strict, _ := Parse("f", []byte(c.text)); len(strict) == 0 != c.deep {
			t.Errorf("%s: Parse gives %d documents", name, len(strict))
		}
	}
}

// TestLargeJSON reads large files, most of them in one line. The time must grow with the size of the file only: a second each at most.
func TestLargeJSON(t *testing.T) {
	t.Parallel()
	const size = 3_000_000
	for name, data := range map[string]string{
		"brackets":          strings.Repeat("[", size),
		"one string":        `{"a": "` + strings.Repeat(`\ud83d`, size/len(`\ud83d`)),
		"marks of YAML":     strings.Repeat("---\n{\n", size/len("---\n{\n")/5),
		"marks in a string": strings.Repeat("---\n[\"\u2028--- ", size/len("---\n[\"\u2028--- ")/5),
	} {
		docs, issues := Parse("f", []byte(data))
		if len(issues) == 0 {
			t.Errorf("%s: %d documents, no issue", name, len(docs))
		}
	}
}

// FuzzJSON reads JSON with the standard library and as part of a file of YAML documents.
func FuzzJSON(f *testing.F) {
	for _, seed := range jsonSeeds() {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		want, err := plainJSON(data)
		if s, notUTF8 := newSource("", data); err == nil && len(want) > 0 && notUTF8 < 0 {
			sameAsPlain(t, data, want)
		} else if err != nil && len(s.runes) > 0 { // text that is not JSON must not be read as JSON
			if parts, _ := s.jsonParts(); len(parts) == 1 && parts[0].start == 0 && parts[0].end == len(s.runes) &&
				!bytes.Contains(data, []byte("#")) && !bytes.HasPrefix(bytes.TrimPrefix(data, []byte("\ufeff")), []byte("---")) &&
				notUTF8 < 0 && !tooDeepForGo(parts[0].values) {
				t.Fatalf("%q is read as JSON: %v", data, err)
			}
		}
	})
}

// tooDeepForGo reports whether encoding/json may refuse values because of their depth.
func tooDeepForGo(values []*yaml.Node) bool {
	deepest := 0
	var down func(n *yaml.Node, depth int)
	down = func(n *yaml.Node, depth int) {
		deepest = max(deepest, depth)
		for _, c := range n.Content {
			down(c, depth+1)
		}
	}
	for _, n := range values {
		down(n, 0)
	}
	return deepest >= maxDepth
}
