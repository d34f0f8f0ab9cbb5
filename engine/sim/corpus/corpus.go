// Package corpus finds test data outside of the repository: recorded cases and traces.
package corpus

import (
	"os"
	"path/filepath"
	"testing"
)

// Required is the name of an environment variable. If it is set, a test fails when it does not find its corpus.
const Required = "CORPUS_REQUIRED"

// Dir returns a folder below the path in the environment variable CORPUS, relative to the root of the repository; default "../shared". If
// the folder does not exist, the test is skipped with a message.
func Dir(t testing.TB, folder string) string {
	t.Helper()
	base := os.Getenv("CORPUS")
	if base == "" {
		base = "../shared"
	}
	if !filepath.IsAbs(base) {
		base = filepath.Join(root(t), base)
	}
	dir := filepath.Join(base, folder)
	if _, err := os.Stat(dir); err != nil {
		if os.Getenv(Required) != "" {
			t.Fatalf("no corpus at %s, and %s is set", dir, Required)
		}
		t.Skipf("SKIPPED: no corpus at %s", dir)
	}
	return dir
}

// root returns the root of the repository.
func root(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for ; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
	}
	t.Fatal("no go.mod above the working directory")
	return ""
}
