// Package corpus finds what lies beside the repository and is no part of it, for tests: recorded cases and traces.
package corpus

import (
	"os"
	"path/filepath"
	"testing"
)

// Required names the variable that says, where it is set, that the corpora are there: then a test fails that does not find its own.
const Required = "CORPUS_REQUIRED"

// Dir is a folder of the corpora: below CORPUS, a path as from the repository's root; "../shared" where that is not set. Where there is no
// such folder the test is skipped, and says so.
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

// root is the repository's.
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
