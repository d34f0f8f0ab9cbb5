package main

import (
	"bufio"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// readUntil returns the lines up to the first line that contains a text.
func readUntil(t *testing.T, lines *bufio.Scanner, text string) string {
	t.Helper()
	var got strings.Builder
	for lines.Scan() {
		got.WriteString(lines.Text() + "\n")
		if strings.Contains(lines.Text(), text) {
			return got.String()
		}
	}
	t.Fatalf("no line holds %q:\n%s", text, &got)
	return ""
}

// TestWatch changes a file while a simulation runs with --watch. The simulation must print changed decisions. It must report a mistake and
// continue. It must see a new file in a folder, and write the page again.
func TestWatch(t *testing.T) {
	t.Parallel()
	dir := files(t, map[string]string{"world.yaml": world})
	page := filepath.Join(t.TempDir(), "page.html")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	read, write := io.Pipe()
	root := newRootCommand()
	root.SetArgs([]string{"simulate", "--watch", "-o", "html", "--to", page, dir})
	root.SetOut(write)
	root.SetErr(write)
	done := make(chan error, 1)
	go func() {
		err := root.ExecuteContext(ctx)
		_ = write.Close() // so that nobody waits for a line that never comes
		done <- err
	}()
	lines := bufio.NewScanner(read)
	put := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	onPage := func(text string) {
		t.Helper()
		if data, err := os.ReadFile(page); err != nil || !strings.Contains(string(data), text) {
			t.Errorf("the page lacks %q: %v", text, err)
		}
	}
	readUntil(t, lines, "watching "+dir)
	onPage("default/waits-0")

	put("world.yaml", strings.Replace(world, "cpu: 64", "cpu: 2", 1))
	got := readUntil(t, lines, " waiting, before ")
	for _, want := range []string{"world.yaml changed", "default/waits-0  wait", "  n1", "0 pods of 0 jobs waiting, before 1 of 1"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	put("world.yaml", strings.Replace(world, "cpu: 64", "cpu: lots", 1))
	readUntil(t, lines, "must be a quantity")
	put("world.yaml", strings.Replace(world, "cpu: 64", "cpu: 2", 1))
	readUntil(t, lines, "nothing is decided otherwise")
	put("more.yaml", "apiVersion: sim.celsius.dev/v1alpha1\nkind: World\njobs: [{name: more, cpu: 1}]\n")
	if got := readUntil(t, lines, " waiting, before "); !strings.Contains(got, "default/more-0  -") {
		t.Errorf("the new file is not seen:\n%s", got)
	}
	onPage("default/more-0")
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
