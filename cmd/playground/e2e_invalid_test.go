package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestE2EInvalidJobs has kubectl create each job of testdata/invalid. Each is refused, with the words that the comments at its
// head name: "# says: WORDS".
func TestE2EInvalidJobs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	closed := w.queue("closed", 1)
	w.Kubectl("patch", "queue", closed, "--subresource=status", "--type=merge", "-p", `{"status":{"state":"Closed"}}`)
	files, err := filepath.Glob("testdata/invalid/*.yaml")
	if err != nil || len(files) < 20 {
		t.Fatalf("%d invalid jobs: %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			job := strings.NewReplacer("CLOSED", closed, "schedulerName: celsius", "schedulerName: ${scheduler}").Replace(string(text))
			said := w.In(t).refused(job)
			words := wantedWords(job)
			if len(words) == 0 {
				t.Errorf("%s names no words at its head: # says: WORDS", file)
			}
			for _, want := range words {
				if !strings.Contains(said, want) {
					t.Errorf("lacks %q:\n%s", want, said)
				}
			}
		})
	}
}

// wantedWords reads the comments "# says: WORDS".
func wantedWords(text string) []string {
	var out []string
	for line := range strings.Lines(text) {
		if words, ok := strings.CutPrefix(line, "# says: "); ok {
			out = append(out, strings.TrimSpace(words))
		}
	}
	return out
}
