package source

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
)

// golden runs a test for each txtar file of a folder. give computes the section want of an archive. With UPDATE=1, the test writes the
// sections again. Only commit such changes if you understand them.
func golden(t *testing.T, folder string, give func(t *testing.T, a *txtar.Archive) string) {
	files, err := filepath.Glob(filepath.Join("testdata", folder, "*.txtar"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no files in testdata/%s: %v", folder, err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			a, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			want := ""
			if last := len(a.Files) - 1; last > 0 && a.Files[last].Name == "want" {
				want, a.Files = string(a.Files[last].Data), a.Files[:last]
			}
			got := give(t, a)
			if os.Getenv("UPDATE") == "1" {
				a.Files = append(a.Files, txtar.File{Name: "want", Data: []byte(got)})
				if err := os.WriteFile(file, txtar.Format(a), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", file, diff)
			}
		})
	}
}

// written returns the content of the first file of an archive. The comment of the archive says which line ends to use, and whether to add a
// byte order mark.
func written(a *txtar.Archive) []byte {
	data := a.Files[0].Data
	for line := range strings.Lines(string(a.Comment)) {
		how, ok := strings.CutPrefix(line, "bytes: ")
		if ok && strings.Contains(how, "crlf") {
			data = bytes.ReplaceAll(data, []byte("\n"), []byte("\r\n"))
		}
		if ok && strings.Contains(how, "bom") {
			data = append([]byte("\ufeff"), data...)
		}
	}
	return data
}

// TestPlacesInsideText puts an issue on each "idel" in the texts of a file.
func TestPlacesInsideText(t *testing.T) {
	golden(t, "positions", func(t *testing.T, a *txtar.Archive) string {
		docs, issues := Parse("policy.yaml", written(a))
		if len(issues) > 0 {
			t.Fatal(issues.Error())
		}
		var out Issues
		for _, d := range docs {
			texts(d.Root, func(text Text) {
				if scan(text.doc, text.node).spans == nil {
					t.Errorf("%s is not found again", text.Path())
				}
				for at := 0; ; {
					i := strings.Index(text.Value[at:], "idel")
					if i < 0 {
						return
					}
					at += i
					out = append(out, text.Issue(utf8.RuneCountInString(text.Value[:at]), 4, `no field "idel"`, `did you mean "idle"?`))
					at++
				}
			})
		}
		return strings.TrimSuffix(out.Error(), "\n") + "\n"
	})
}

// texts visits the texts below v in the order of the file.
func texts(v Value, visit func(Text)) {
	var issues Issues
	switch v.Kind() {
	case Null:
	case Scalar:
		visit(v.Text(&issues))
	case Map:
		for _, f := range v.Fields(nil, &issues) {
			texts(f.Value, visit)
		}
	case List:
		for _, item := range v.Items(&issues) {
			texts(item, visit)
		}
	}
}
