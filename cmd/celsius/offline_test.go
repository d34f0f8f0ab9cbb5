package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestOffline runs the commands of a console file in testdata, from the top folder of the repository. It compares their output with the
// file.
func TestOffline(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	file := filepath.Join(testdata(t), "offline.console")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir("../..")
	var got strings.Builder
	for _, block := range strings.Split("\n"+string(text), "\n$ celsius ")[1:] {
		line, _, _ := strings.Cut(block, "\n")
		var out strings.Builder
		code := run(strings.Fields(line), strings.NewReader(""), &out, &out)
		fmt.Fprintf(&got, "$ celsius %s\n%s", line, &out)
		if code != exitOK {
			fmt.Fprintf(&got, "[exit code %d]\n", code)
		}
		got.WriteString("\n")
	}
	golden(t, file, got.String())
}
