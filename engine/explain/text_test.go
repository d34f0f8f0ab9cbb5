package explain_test

import (
	"strings"
	"testing"

	"github.com/celsius-scheduler/celsius/engine/explain"
)

// A name that a user wrote reaches the terminal without its control characters, and the columns stay aligned.
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
