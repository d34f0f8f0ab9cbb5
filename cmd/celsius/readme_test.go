package main

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/engine/sim/manifest"
)

// consoleBlock matches a terminal block in a document: commands after "$ ", and their output.
var consoleBlock = regexp.MustCompile("(?s)```console\n(.*?)```")

// policyTool matches a policy command that works on files of the repository.
var policyTool = regexp.MustCompile(`^celsius policy \w+ .*samples/`)

// comparedDocuments returns the documents whose commands run without a cluster.
func comparedDocuments() []string {
	return []string{
		"README.md", "docs/concepts.md", "docs/simulate.md", "docs/compatibility.md", "docs/literature.md",
		"docs/writing-policies.md", "docs/recording.md",
	}
}

// TestDocumentsShowWhatIsPrinted runs the commands in documents and compares their output. A line of three dots stands for any omitted
// lines.
func TestDocumentsShowWhatIsPrinted(t *testing.T) {
	t.Chdir("../..")
	shown := 0
	for _, file := range comparedDocuments() {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, block := range consoleBlock.FindAllStringSubmatch(string(text), -1) {
			for _, command := range strings.Split(block[1], "$ ")[1:] {
				line, want, _ := strings.Cut(command, "\n")
				if file == "docs/writing-policies.md" && !policyTool.MatchString(line) {
					continue // it needs a cluster or a file of the page; end-to-end tests run it
				}
				shown++
				compareShown(t, file, line, want)
			}
		}
	}
	if shown == 0 {
		t.Error("no document shows a command: the block is no longer found")
	}
}

func compareShown(t *testing.T, file, line, want string) {
	t.Helper()
	args, ok := strings.CutPrefix(strings.TrimPrefix(line, "go run ./cmd/"), "celsius ")
	if !ok {
		t.Errorf("%s shows %q, which cannot be checked", file, line)
		return
	}
	var out, errs strings.Builder
	run(strings.Fields(args), strings.NewReader(""), &out, &errs)
	got := out.String() + errs.String()
	if !prints(strings.SplitAfter(want, "\n"), strings.SplitAfter(got, "\n")) {
		t.Errorf("%s: %s (- is shown, + is printed)\n%s", file, line, cmp.Diff(want, got))
	}
}

// prints reports whether the printed lines are the shown lines.
func prints(want, got []string) bool {
	if len(want) == 0 {
		return len(got) == 0
	}
	if want[0] == "...\n" {
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
		{"a\nb\n", "a\nb\n", true},
		{"a\n", "a\nb\n", false},
		{"a\n...\n", "a\nb\nc\n", true},
		{"...\nb\n...\n", "a\nb\nc\n", true},
		{"...\nb\n...\n", "a\nc\n", false},
		{"", "", true},
	} {
		if same := prints(strings.SplitAfter(c.want, "\n"), strings.SplitAfter(c.got, "\n")); same != c.same {
			t.Errorf("prints(%q, %q) = %v", c.want, c.got, same)
		}
	}
}

// yamlBlock matches a complete object in a document.
var yamlBlock = regexp.MustCompile("(?s)```yaml\n(apiVersion: .*?)```")

// TestObjectsInDocumentsAreRight loads the objects in documents, and compiles their policies.
func TestObjectsInDocumentsAreRight(t *testing.T) {
	files, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	shown := 0
	for _, file := range append(files, "../../README.md") {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, block := range yamlBlock.FindAllStringSubmatch(string(text), -1) {
			shown++
			objects, issues := manifest.Load(manifest.Options{}, manifest.Source{Name: file, Data: []byte(block[1])})
			for _, p := range objects.Policies {
				_, found := policy.Load(p.Doc)
				issues = append(issues, found...)
			}
			if len(issues) > 0 {
				t.Errorf("an object in a document has mistakes:\n%s", issues.Error())
			}
		}
	}
	if shown < 2 {
		t.Errorf("%d objects were found in the documents", shown)
	}
}

// TestSimulateIsDocumented checks that docs/simulate.md contains the flags of the command and the fields of the short format.
func TestSimulateIsDocumented(t *testing.T) {
	data, err := os.ReadFile("../../docs/simulate.md")
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	for _, m := range regexp.MustCompile(`(?:-(\w), )?--([\w-]+)`).FindAllStringSubmatch(newSimulateCommand().Flags().FlagUsages(), -1) {
		if !strings.Contains(text, "--"+m[2]) && (m[1] == "" || !strings.Contains(text, "`-"+m[1]+" ")) {
			t.Errorf("docs/simulate.md does not tell of the flag --%s", m[2])
		}
	}
	fields := map[string]reflect.Type{}
	shortFields(reflect.TypeFor[manifest.ShortWorld](), fields)
	for name, in := range fields {
		if name != "apiVersion" && name != "kind" && !strings.Contains(text, "`"+name+"`") {
			t.Errorf("docs/simulate.md does not tell of the field %s of %s", name, in.Name())
		}
	}
	if len(fields) < 40 {
		t.Errorf("only %d fields of the short format were found", len(fields))
	}
}

// shortFields adds the fields of the short format to out, by their YAML name. It visits a type and the types inside it.
func shortFields(in reflect.Type, out map[string]reflect.Type) {
	for in.Kind() == reflect.Slice || in.Kind() == reflect.Pointer {
		in = in.Elem()
	}
	if in.Kind() != reflect.Struct || in.PkgPath() != reflect.TypeFor[manifest.ShortWorld]().PkgPath() {
		return
	}
	for f := range in.Fields() {
		if name := f.Tag.Get("json"); name != "" {
			out[name] = in
		}
		shortFields(f.Type, out)
	}
}
