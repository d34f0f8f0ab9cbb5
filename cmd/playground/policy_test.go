package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestReadPolicyOfJSON checks that a file of --policy is read as JSON if it is JSON.
func TestReadPolicyOfJSON(t *testing.T) {
	t.Parallel()
	const policy = `{"kind": "SchedulingPolicy", "metadata": {"name": "p", "annotations": {"a": "\ud83d\ude00"}}}`
	for _, c := range []struct{ text, want string }{ // want is a part of the error
		{policy, ""},
		{strings.ReplaceAll(policy, ", ", "\n\t,\n\t"), ""},
		{"[" + policy + "]", "the file holds no SchedulingPolicy with a name"},
		{strings.TrimSuffix(policy, "}"), ": line 1, column 93: is not JSON: the closing } is missing"},
	} {
		file := filepath.Join(t.TempDir(), "policy.json")
		if err := os.WriteFile(file, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := readPolicy(file)
		if c.want == "" && (err != nil || got.name != "p") || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: got %q, %v; want %q", c.text, got.name, err, c.want)
		}
	}
}
