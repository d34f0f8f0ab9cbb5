package source

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
)

// TestIssuesOfParse parses each section of a file separately.
func TestIssuesOfParse(t *testing.T) {
	golden(t, "issues", func(_ *testing.T, a *txtar.Archive) string {
		var out strings.Builder
		for _, f := range a.Files {
			docs, issues := Parse(f.Name, f.Data)
			fmt.Fprintf(&out, "%s\ndocuments read: %d\n\n", issues.Error(), len(docs))
		}
		return out.String()
	})
}

func TestFileThatIsNotUTF8(t *testing.T) {
	docs, issues := Parse("f.yaml", []byte("a: 1\nb: \"\xe4\"\n"))
	if len(docs) != 0 || len(issues) != 1 || issues[0].Line != 2 || issues[0].Column != 5 {
		t.Errorf("got %d documents and %v", len(docs), issues)
	}
}

func TestDeepNestingIsRefused(t *testing.T) {
	for name, data := range map[string]string{
		"written": strings.Repeat("[", 200) + strings.Repeat("]", 200),
		"aliases": "- &a " + strings.Repeat("[", 60) + strings.Repeat("]", 60) + "\n- " + strings.Repeat("[", 60) + "*a" +
			strings.Repeat("]", 60),
		"parser": strings.Repeat("[", 20_000),
	} {
		docs, issues := Parse("f.yaml", []byte(data))
		if len(docs) != 0 || len(issues) != 1 {
			t.Errorf("%s: got %d documents and %d issues, want one issue", name, len(docs), len(issues))
		}
	}
	docs, issues := Parse("f.yaml", []byte(strings.Repeat("[", 99)+strings.Repeat("]", 99)))
	if len(docs) != 1 || len(issues) != 0 {
		t.Errorf("99 lists: %v", issues)
	}
}

func TestAliasesMayRepeatWithinBounds(t *testing.T) {
	docs, issues := Parse("f.yaml", []byte("a: &a {x: [1, 2]}\nb: [*a, *a]\n"))
	if len(issues) > 0 {
		t.Fatal(issues)
	}
	x := map[string]any{"x": []any{int64(1), int64(2)}}
	if diff := cmp.Diff(map[string]any{"a": x, "b": []any{x, x}}, docs[0].Root.Any()); diff != "" {
		t.Error(diff)
	}
}

func TestDocumentsAreCounted(t *testing.T) {
	docs, issues := Parse("f.yaml", []byte("# none\n---\n---\na: 1\n---\nb: [\n---\nnull\n---\nc: 1\n"))
	if len(issues) != 1 || len(docs) != 2 || docs[0].Index != 0 || docs[1].Index != 2 {
		t.Errorf("got %d documents, %v", len(docs), issues)
	}
	if line, col := docs[1].Root.Pos(); line != 10 || col != 1 {
		t.Errorf("the last document is at %d:%d", line, col)
	}
}

// TestManyMistakesOnOneLine checks that the work for a mistake does not depend on the length of its line. A JSON file is often one line.
func TestManyMistakesOnOneLine(t *testing.T) {
	t.Parallel()
	s, _ := newSource("a.json", []byte("\n"+strings.Repeat("x", 1000)+"\r\n"+strings.Repeat("x", 1000)))
	for offset, want := range map[int]int{0: 0, 1: 1001, 500: 1001, 1001: 1001, 1002: 1002, 1003: 2003, 2003: 2003} {
		if got := s.lineEnd(offset); got != want {
			t.Errorf("lineEnd(%d) = %d, want %d", offset, got, want)
		}
	}
	// If the code searched for the end of the line, this loop would take more time than a test may take.
	s, _ = newSource("a.json", []byte(strings.Repeat("x", 10_000_000)))
	for offset := range 400_000 {
		_ = s.issue(offset, 1, "", "")
	}
}
