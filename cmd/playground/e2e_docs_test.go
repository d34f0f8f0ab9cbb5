package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// shellBlock matches a shell block in a document. In a console block commands follow "$ ", and their output follows them. A line of three
// dots stands for any omitted lines. A sh block contains only commands.
var shellBlock = regexp.MustCompile("(?ms)^```(console|sh)\n(.*?)^```")

// notRun lists commands of documents that a test cannot or need not run, by their beginning, with the cause.
var notRun = map[string]string{
	"git clone":         "the code is there already",
	"make up":           "the test starts the playground itself",
	"make test":         "it would run this test",
	"make conformance":  "its corpus is no part of the repository",
	"make openb":        "its corpus is no part of the repository",
	"export KUBECONFIG": "the test sets it",
	"docker build":      "there may be no Docker",
	"docker push":       "there may be no Docker",
}

// shown is one command of a document, with its output in the document.
type shown struct {
	file          string
	line          int
	command, want string
	compared      bool
}

// shownIn lists the commands of a document in their order.
func shownIn(t *testing.T, file string) []shown {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../..", file))
	if err != nil {
		t.Fatal(err)
	}
	var out []shown
	for _, m := range shellBlock.FindAllSubmatchIndex(text, -1) {
		body, line := string(text[m[4]:m[5]]), 1+strings.Count(string(text[:m[4]]), "\n")
		if string(text[m[2]:m[3]]) == "sh" {
			out = append(out, shown{file: file, line: line, command: body})
			continue
		}
		for _, part := range strings.Split("\n"+body, "\n$ ")[1:] {
			command, want, _ := strings.Cut(strings.TrimSuffix(part, "\n")+"\n", "\n")
			for strings.HasSuffix(command, "\\") { // it continues on the next line
				var more string
				more, want, _ = strings.Cut(want, "\n")
				command += "\n" + more
			}
			out = append(out, shown{file: file, line: line, command: command, want: want, compared: want != ""})
			line += 1 + strings.Count(part, "\n")
		}
	}
	if len(out) == 0 {
		t.Errorf("%s shows no command: the block is no longer found", file)
	}
	return out
}

// varying matches what differs between two runs of a command: ages, times, UIDs, versions of objects.
var varying = []struct {
	pattern *regexp.Regexp
	as      string
}{
	{regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`), "UID"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`), "TIME"},
	{regexp.MustCompile(`(^| )<?\b(\d+d)?(\d+h)?(\d+m)?(\d+s)?\b( |$)`), " AGE "},
	{regexp.MustCompile(`https://127\.0\.0\.1:\d+`), "SERVER"},
	{regexp.MustCompile(`[ \t]+`), " "},
}

// normalised converts output into a form that is equal for two runs.
func normalised(text string) []string {
	var out []string
	for line := range strings.Lines(text) {
		for _, v := range varying {
			line = v.pattern.ReplaceAllString(strings.TrimSpace(line), v.as)
		}
		out = append(out, strings.TrimSpace(line))
	}
	return out
}

// prints reports whether the output equals the shown output. Three dots stand for any lines.
func prints(want, got []string) bool {
	if len(want) == 0 {
		return len(got) == 0
	}
	if want[0] == "..." {
		return prints(want[1:], got) || len(got) > 0 && prints(want, got[1:])
	}
	return len(got) > 0 && want[0] == got[0] && prints(want[1:], got[1:])
}

func TestPrints(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		want, got string
		same      bool
	}{
		{"a 12s\nb", "a  1m3s\nb", true},
		{"train-1  Running", "train-1 Pending", false},
		{"a\n...", "a\nb\nc", true},
		{"a\n...\nc", "a\nb\nd", false},
		{"a\n...\nc\n", "a\nc\n", true},
		{"a", "a\nb", false},
		{"1 job 5m", "2 job 5m", false},
		{"train-0a1b2c3d-0000-1111-2222-333344445555", "train-9a1b2c3d-0000-1111-2222-333344445555", true},
	} {
		if same := prints(normalised(c.want), normalised(c.got)); same != c.same {
			t.Errorf("prints(%q, %q) = %v", c.want, c.got, same)
		}
	}
}

// desk is a folder in which commands of documents run as in the repository, with the programs that they name.
type desk struct {
	dir string
	env []string
}

// newDesk creates the folder. Files that the commands write stay in it. Files of the repository that they read are linked.
func newDesk(t *testing.T, kubeconfig, celsius string) *desk {
	t.Helper()
	d := &desk{dir: t.TempDir()}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"samples", "deploy", "crds", "docs"} {
		if err := os.Symlink(filepath.Join(root, name), filepath.Join(d.dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir()
	playground := fmt.Sprintf("exec env %s=1 %q", runAsProgram, self)
	inIt := playground + ` kubectl --kubeconfig "$KUBECONFIG" "$@"`
	for name, script := range map[string]string{
		"celsius": fmt.Sprintf("exec %q \"$@\"", celsius),
		"kubectl": inIt,
		"go": `case "$1 $2" in
"run ./cmd/celsius") shift 2; exec celsius "$@" ;;
"run ./cmd/playground") shift 3; ` + inIt + ` ;;
esac
echo "a document runs go $*, which the test does not know" >&2; exit 1`,
	} {
		if err := os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	d.env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "KUBECONFIG="+kubeconfig, "HOME="+d.dir)
	return d
}

// run runs one command, and reports differences from the document.
func (d *desk) run(t *testing.T, s shown) {
	t.Helper()
	command := exec.CommandContext(t.Context(), "bash", "-e", "-o", "pipefail", "-c", s.command)
	command.Dir, command.Env = d.dir, d.env
	out, err := command.CombinedOutput()
	if !s.compared {
		if err != nil {
			t.Fatalf("%s:%d: %s\n%v\n%s", s.file, s.line, s.command, err, out)
		}
		return
	}
	if want, got := normalised(s.want), normalised(string(out)); !prints(want, got) {
		t.Fatalf("%s:%d: %s (- is shown, + is printed)\n%s", s.file, s.line, s.command, cmp.Diff(want, got))
	}
}

// TestE2EDocuments runs every command of the documents below, in their order, and compares the output with the document. Each document has
// its own playground, started as make up does.
func TestE2EDocuments(t *testing.T) {
	for _, file := range []string{"README.md", "samples/README.md", "docs/getting-started.md", "docs/writing-policies.md"} {
		t.Run(strings.ReplaceAll(file, "/", "-"), func(t *testing.T) {
			commands := shownIn(t, file)
			d := newDesk(t, startPlayground(t, playgroundArgs(commands)...).kubeconfig, celsiusBinary(t))
			for _, s := range commands {
				if why := whyNotRun(t, s); why != "" {
					t.Logf("%s:%d: not run, %s: %s", s.file, s.line, why, strings.TrimSpace(s.command))
					continue
				}
				d.run(t, s)
			}
		})
	}
}

// whyNotRun returns why a command is not run, or "". A block in which only some lines are run must be split into two blocks.
func whyNotRun(t *testing.T, s shown) string {
	t.Helper()
	why, lines := "", strings.Split(strings.TrimSpace(s.command), "\n")
	for i, line := range lines {
		reason := ""
		for begin, r := range notRun {
			if strings.HasPrefix(line, begin) {
				reason = r
			}
		}
		if i > 0 && (reason == "") != (why == "") {
			t.Fatalf("%s:%d: a block has commands that the test runs and others that it does not; make it two", s.file, s.line)
		}
		why = reason
	}
	return why
}

// makeUp matches how a document starts the playground.
var makeUp = regexp.MustCompile(`(?m)^make up(?: ARGS="(.*)")?$`)

// playgroundArgs returns the arguments that the document gives to the playground.
func playgroundArgs(commands []shown) []string {
	for _, s := range commands {
		if m := makeUp.FindStringSubmatch(s.command); m != nil {
			return shellWords(m[1])
		}
	}
	return nil
}

// shellWords splits at spaces that are not in single quotes.
func shellWords(text string) []string {
	var out []string
	for i, part := range strings.Split(text, "'") {
		if i%2 == 1 {
			out = append(out, part)
			continue
		}
		out = append(out, strings.Fields(part)...)
	}
	return out
}
