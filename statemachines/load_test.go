package statemachines

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/celsius-scheduler/celsius/rules/source"
)

var update = flag.Bool("update", false, "rewrite the section want of testdata/mistakes/*.txtar; commit only what you understand")

func TestShippedMachines(t *testing.T) {
	for _, name := range Names() {
		m, issues := Default(name)
		if m == nil || len(issues) > 0 {
			t.Fatalf("%s:\n%s", name, issues.Error())
		}
		if !m.Shipped() {
			t.Errorf("%s does not say that it ships", name)
		}
	}
	if m, issues := Default("jobs"); m != nil || !strings.Contains(issues.Error(), `did you mean "job"?`) {
		t.Errorf("an unknown machine gives %v, %v", m, issues)
	}
}

// TestMistakes checks the message and the position of every mistake, with one file for each mistake.
func TestMistakes(t *testing.T) {
	files, err := filepath.Glob("testdata/mistakes/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no files: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			a, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if len(a.Files) != 2 || len(a.Comment) == 0 {
				t.Fatal("a comment, machine.yaml and want are wanted")
			}
			m, issues := LoadFile(a.Files[0].Name, a.Files[0].Data)
			var b strings.Builder
			for _, i := range issues {
				b.WriteString(i.Render())
			}
			if (m == nil) != (issues.Err() != nil) {
				t.Errorf("machine %v beside issues %v", m, issues)
			}
			if *update {
				a.Files[1].Data = []byte(b.String())
				if err := os.WriteFile(file, txtar.Format(a), 0o644); err != nil {
					t.Fatal(err)
				}
			} else if diff := cmp.Diff(string(a.Files[1].Data), b.String()); diff != "" {
				t.Errorf("- is the file, + is what is told; -update writes it\n%s", diff)
			}
		})
	}
}

// TestLoadFS checks that a folder's machines replace built-in ones of the same name, and that all its mistakes are reported at once.
func TestLoadFS(t *testing.T) {
	job, err := shipped.ReadFile("job.yaml")
	if err != nil {
		t.Fatal(err)
	}
	mine := strings.Replace(string(job), "description: A Job waits", "description: My Job waits", 1)
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	for _, c := range []struct {
		name string
		fs   fstest.MapFS
		want string // part of the issues; "" if there are none
	}{
		{"one of two", fstest.MapFS{"mine.yml": file(mine), "README.md": file("no machine")}, ""},
		{"none", fstest.MapFS{"README.md": file("no machine")}, "the folder of state machines holds none"},
		{"twice", fstest.MapFS{"a.yaml": file(mine), "b.yaml": file(mine)}, `b.yaml:6:10: machine: the machine "job" stands in a.yaml as well`},
		{"a mistake of form", fstest.MapFS{"a.yaml": file("machine: {")}, "a.yaml:"},
		{"a mistake", fstest.MapFS{"a.yaml": file(strings.Replace(mine, "initial: Pending", "initial: Pendig", 1))}, `did you mean "Pending"?`},
	} {
		got, issues := LoadFS(c.fs)
		if c.want != "" {
			if got != nil || !strings.Contains(issues.Error(), c.want) {
				t.Errorf("%s: machines %v, issues %v, want %q", c.name, got, issues, c.want)
			}
			continue
		}
		if len(issues) > 0 || len(got) != len(Names()) {
			t.Fatalf("%s: %d machines, issues %v", c.name, len(got), issues)
		}
		if !strings.HasPrefix(got["job"].Description, "My Job") || got["job"].Shipped() || !got["queue"].Shipped() {
			t.Errorf("%s: job is %q, shipped %v; queue shipped %v", c.name, got["job"].Description, got["job"].Shipped(), got["queue"].Shipped())
		}
	}
}

// FuzzLoad checks for any file that nothing panics, that every issue has a position inside the file, and that a loaded machine can be used.
func FuzzLoad(f *testing.F) {
	for _, name := range Names() {
		text, err := shipped.ReadFile(name + ".yaml")
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	files, err := filepath.Glob("testdata/mistakes/*.txtar")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		a, err := txtar.ParseFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(a.Files[0].Data)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		m, issues := LoadFile("f.yaml", text)
		placed(t, text, issues)
		if (m == nil) != (issues.Err() != nil) {
			t.Fatalf("machine %v beside issues %v", m, issues)
		}
		if m != nil {
			m.Mermaid()
			m.Dot()
			askAll(t, m)
		}
	})
}

// placed checks that every issue has a position inside the text.
func placed(t *testing.T, text []byte, issues source.Issues) {
	t.Helper()
	lines := strings.Split(strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(strings.TrimPrefix(string(text), "\ufeff")), "\n")
	for _, i := range issues {
		if strings.Contains(i.Message, "one state machine is wanted") {
			continue // it applies to the whole file
		}
		if i.Line < 1 || i.Line > len(lines) || i.Column < 1 || i.Width < 1 {
			t.Fatalf("an issue is outside of the file: %s", i.Render())
		}
		if line := lines[i.Line-1]; utf8.ValidString(line) && i.Column > utf8.RuneCountInString(line)+1 {
			t.Fatalf("an issue is outside of its line: %s", i.Render())
		}
	}
}

// askAll requests every action in every phase: only guards may return an error.
func askAll(t *testing.T, m *Machine) {
	t.Helper()
	facts := twoTasks(nil)
	facts.Queue = &Queue{}
	for _, phase := range m.Phases() {
		for _, a := range m.Actions() {
			s, err := m.Step(phase, a.Name, facts)
			if err == nil {
				_, err = m.Next(s, facts)
			}
			if row := (*RowError)(nil); err != nil && !errors.As(err, &row) {
				t.Fatalf("%s in %s: %v", a.Name, phase, err)
			}
		}
	}
}
