package explain_test

import (
	"strings"
	"testing"

	"github.com/celsius-scheduler/celsius/engine/explain"
)

// TestColumnsEscapeControlCharacters checks that the terminal gets a user's name without its control characters. The columns stay aligned.
func TestColumnsEscapeControlCharacters(t *testing.T) {
	t.Parallel()
	got := explain.Columns("", [][]string{{"QUEUE", "JOBS"}, {"\x1b[2Jresearch", "3"}, {"ml\u202egpj", "12"}, {"größe", "1"}})
	want := "QUEUE            JOBS\n\\x1b[2Jresearch  3\nml\\u202egpj      12\ngröße            1\n"
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if strings.ContainsAny(got, "\x1b\u202e") {
		t.Error("a control character is left")
	}
}

// TestColumnsCutLongCells prints a long cell above many short ones. The long cell is cut, and the other rows do not become as long.
func TestColumnsCutLongCells(t *testing.T) {
	t.Parallel()
	rows := [][]string{{strings.Repeat("x", 100_000), strings.Repeat("word ", 20_000), strings.Repeat("y", 100_000)}}
	for range 1000 {
		rows = append(rows, []string{"a", "b", "c"})
	}
	got := explain.Columns("", rows)
	if most := 1_000_000; len(got) > most {
		t.Errorf("%d bytes, want at most %d", len(got), most)
	}
	if first, _, _ := strings.Cut(got, "\n"); len(first) > 5000 || strings.Count(first, "…") != 3 {
		t.Errorf("the first row is %s", first)
	}
}

// TestColumnsKeepRowsOnOneLine checks that a cell stays on one line, whatever a user writes in it.
func TestColumnsKeepRowsOnOneLine(t *testing.T) {
	t.Parallel()
	got := explain.Columns("", [][]string{{"QUEUE", "JOBS"}, {"a\nbind  other", "3\t4\r5\u20286"}})
	if want := "QUEUE           JOBS\na\\nbind  other  3\\t4\\r5\\u20286\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
