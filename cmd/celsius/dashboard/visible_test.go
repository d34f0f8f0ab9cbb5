package dashboard

import "testing"

// TestAnswersEscapeControlCharacters checks that control characters, and characters that change the text direction, are made visible.
func TestAnswersEscapeControlCharacters(t *testing.T) {
	got, err := visibleJSON(map[string]string{"name": "ml\u202egpj\x1b"})
	if want := `{"name":"ml\\u202egpj\\x1b"}`; err != nil || string(got) != want {
		t.Errorf("%s, %v, want %s", got, err, want)
	}
}
