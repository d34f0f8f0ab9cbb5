package docs

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// block is a part of a page between fences: its words after the fence, and its text.
type block struct{ words, text string }

func blocksOf(t *testing.T, page string) []block {
	t.Helper()
	data, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	var out []block
	for _, m := range regexp.MustCompile("(?ms)^```(\\S[^\n]*)\n(.*?)^```$").FindAllStringSubmatch(string(data), -1) {
		out = append(out, block{m[1], m[2]})
	}
	return out
}

// changed is a text after a change: lines that begin with a blank or a minus are what is there, those with a blank or a plus what is to be.
func changed(t *testing.T, file, text, change string) string {
	t.Helper()
	var was, is strings.Builder
	for line := range strings.Lines(change) {
		sign, rest := line[0], line[1:]
		if sign != '+' {
			was.WriteString(rest)
		}
		if sign != '-' {
			is.WriteString(rest)
		}
	}
	if n := strings.Count(text, was.String()); n != 1 {
		t.Fatalf("extending.md changes %s where it has, once:\n%s\nit has that %d times", file, was.String(), n)
	}
	return strings.Replace(text, was.String(), is.String(), 1)
}

// extended is the sources with the changes of the page.
type extended struct {
	root, dir string // of the sources, and of what stands for some of them and is beside them
	overlay   string // the file that tells the go command
}

func (x *extended) write(t *testing.T, name, text string) (path string) {
	t.Helper()
	path = filepath.Join(x.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// change makes the changes of a page's blocks: files that are new, changes of those that are there, and files of the reader's own.
func (x *extended) change(t *testing.T, blocks []block) {
	t.Helper()
	replace := map[string]string{}
	for _, b := range blocks {
		words := strings.Fields(b.words)
		switch name := words[len(words)-1]; {
		case len(words) == 3 && words[1] == "new":
			if _, err := os.Stat(filepath.Join(x.root, name)); err == nil {
				t.Fatalf("%s is there already", name)
			}
			replace[filepath.Join(x.root, name)] = x.write(t, name, b.text)
		case len(words) == 2 && words[0] == "diff":
			text, err := os.ReadFile(filepath.Join(x.root, name))
			if err != nil {
				t.Fatal(err)
			}
			replace[filepath.Join(x.root, name)] = x.write(t, name, changed(t, name, string(text), b.text))
		case len(words) == 2 && words[0] == "yaml":
			x.write(t, name, b.text)
		}
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	x.overlay = x.write(t, "overlay.json", string(overlay))
}

// output is what a command prints.
func output(t *testing.T, in, name string, args ...string) string {
	t.Helper()
	c := exec.CommandContext(t.Context(), name, args...)
	c.Dir = in
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

// TestExtending makes the changes that extending.md takes its reader through to a copy of the sources, builds what comes of it, and runs
// the commands of the page: they print what it says. UPDATE=1 writes down what they print.
func TestExtending(t *testing.T) {
	t.Parallel()
	const page = "extending.md"
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	x, blocks := extended{root: root, dir: t.TempDir()}, blocksOf(t, page)
	x.change(t, blocks)
	core := []string{
		"./engine/language", "./engine/policy", "./engine/session", "./engine/action", "./engine/reference",
		"./engine/reference/values",
	}
	output(t, root, "go", append([]string{"vet", "-overlay", x.overlay}, core...)...)
	const tests = "TestEachVerbIsRun|TestEveryAccountingFunctionIsDefined|TestUndeclared"
	output(t, root, "go", append([]string{"test", "-overlay", x.overlay, "-run", tests}, core...)...)
	celsius := filepath.Join(x.dir, "celsius")
	output(t, root, "go", "build", "-overlay", x.overlay, "-o", celsius, "./cmd/celsius")
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	printed := string(text)
	for _, b := range blocks {
		if b.words == "console" {
			command, _, _ := strings.Cut(b.text, "\n")
			is := output(t, x.dir, celsius, strings.Fields(strings.TrimPrefix(command, "$ celsius "))...)
			printed = strings.Replace(printed, b.text, command+"\n"+is, 1)
		}
	}
	if os.Getenv("UPDATE") == "1" {
		if err := os.WriteFile(page, []byte(printed), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(string(text), printed); diff != "" {
		t.Errorf("(-extending.md +printed):\n%s", diff)
	}
}
