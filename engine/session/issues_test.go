package session

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/rules/source"
)

// TestIssues compiles the files of testdata/issues and compares the messages for the author with their last part, want. A part is a whole
// policy; if it does not begin with apiVersion, it is the body of a table. "crlf" in its name gives it the line ends of Windows. UPDATE=1
// writes want again. Only commit such changes if you understand their cause, and if the messages are good for a reader.
func TestIssues(t *testing.T) {
	files, err := filepath.Glob("testdata/issues/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no files: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			a, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			want := ""
			if last := len(a.Files) - 1; a.Files[last].Name == "want" {
				want, a.Files = string(a.Files[last].Data), a.Files[:last]
			}
			var got strings.Builder
			for _, f := range a.Files {
				got.WriteString(issuesOf(t, f))
			}
			if os.Getenv("UPDATE") == "1" {
				a.Files = append(a.Files, txtar.File{Name: "want", Data: []byte(got.String())})
				if err := os.WriteFile(file, txtar.Format(a), 0o600); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(want, got.String()); diff != "" {
				t.Errorf("%s (-want +got):\n%s", file, diff)
			}
		})
	}
}

// issuesOf returns the issues of one part as text, and fails the test for an issue outside of it.
func issuesOf(t *testing.T, f txtar.File) string {
	t.Helper()
	data := f.Data
	if !bytes.HasPrefix(data, []byte("apiVersion")) {
		data = []byte(policyText(string(data)))
	}
	if strings.Contains(f.Name, "crlf") {
		data = bytes.ReplaceAll(data, []byte("\n"), []byte("\r\n"))
	}
	docs, issues := source.Parse(f.Name, data)
	compiled := false
	for _, doc := range docs {
		p, found := policy.Load(doc)
		issues = append(issues, found...)
		compiled = compiled || p != nil
	}
	insideFile(t, issues, f.Name, data)
	var b strings.Builder
	for _, i := range issues {
		b.WriteString(i.Render())
	}
	if len(issues) == 0 {
		b.WriteString(f.Name + ": nothing is wrong\n")
	}
	return b.String() + "\n"
}
