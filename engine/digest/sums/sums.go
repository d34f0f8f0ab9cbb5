// Package sums compares digests of plans with those that a file in testdata states.
package sums

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/celsius-scheduler/celsius/engine/digest"
)

// Check fails a test for each name whose digest is not the one in the file. With update, it writes the file instead.
func Check(t testing.TB, file string, update bool, got map[string]*digest.Sum) {
	t.Helper()
	if update {
		if err := os.WriteFile(file, []byte(written(got)), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{}
	for line := range strings.Lines(string(data)) {
		if name, sum, ok := strings.Cut(strings.TrimSpace(line), ": "); ok && !strings.HasPrefix(line, "#") {
			want[name] = sum
		}
	}
	for _, name := range slices.Sorted(maps.Keys(got)) {
		if is := got[name].String(); is != want[name] {
			t.Errorf("%s: %s, in %s: %s", name, is, file, want[name])
		}
		delete(want, name)
	}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		t.Errorf("%s: in %s, but no plan was decided", name, file)
	}
	if t.Failed() {
		t.Logf("if this is intended: -update, and state in the commit which decisions change")
	}
}

func written(sums map[string]*digest.Sum) string {
	b := strings.Builder{}
	b.WriteString("# Digests of plans: of what they decide, and with all texts. The test that reads this file writes it with -update.\n")
	for _, name := range slices.Sorted(maps.Keys(sums)) {
		fmt.Fprintf(&b, "%s: %s\n", name, sums[name])
	}
	return b.String()
}
