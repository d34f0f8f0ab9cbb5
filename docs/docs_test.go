package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/engine/policy/kinds"
	"github.com/celsius-scheduler/celsius/rules"
)

// TestFilesAreCurrent holds the checked-in documents to what the code says.
func TestFilesAreCurrent(t *testing.T) {
	files, err := Files()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		have, err := os.ReadFile(f.Name)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(have), string(f.Data)); diff != "" {
			t.Errorf("docs/%s is not current: run make generate (- is the file, + is what the code says)\n%s", f.Name, diff)
		}
	}
}

func TestExamples(t *testing.T) {
	for _, example := range []string{houseRules, conditioned} {
		if issues := mistakes(example); len(issues) > 0 {
			t.Errorf("the example of a table has mistakes:\n%s", issues.Error())
		}
	}
	if issues := mistakes(misspelt); len(issues) != 1 || !strings.Contains(issues[0].Hint, `"idle"`) {
		t.Errorf("the example of a mistake should have one, with a hint at idle:\n%s", issues.Error())
	}
}

// TestEverythingIsTold holds declarations to having words for people.
func TestEverythingIsTold(t *testing.T) {
	told := func(kind, name, doc string) {
		t.Helper()
		if strings.TrimSpace(doc) == "" {
			t.Errorf("%s %s has no words for people", kind, name)
		}
	}
	roots := map[string]bool{}
	for _, r := range policy.Roots() {
		told("root", r.Name, r.Doc)
		roots[r.Name] = true
	}
	for _, l := range rules.Libraries() {
		told("library", l.Name, l.Doc)
		names, err := l.Names()
		if err != nil || len(names) == 0 {
			t.Errorf("library %s: names %v, error %v", l.Name, names, err)
		}
	}
	for _, v := range policy.Verbs() {
		told("verb", v.Name, v.Doc)
		for _, p := range v.Parameters {
			told("parameter", v.Name+" "+p.Name, p.Doc)
		}
		if len(v.Itself) == 0 {
			t.Errorf("verb %s does not say what it decides by itself", v.Name)
		}
	}
	for _, f := range policy.Shape().Functions {
		told("accounting function", f.Name, f.Doc)
		for _, a := range f.Args {
			told("argument", f.Name+" "+a.Name, a.Doc)
		}
	}
	for _, s := range policy.Sites() {
		told("section", s.Name, s.Doc)
		if got, want := len(rules.RowKeys(s.Section)), len(rules.RowKeys(rules.Section{}))+1+len(s.Keys); got != want {
			t.Errorf("section %s declares keys %v that rules.RowKeys does not know: %d of %d", s.Name, s.Keys, got, want)
		}
		for _, root := range s.Roots {
			if !roots[root] {
				t.Errorf("section %s sees %s, which policy.Roots does not have", s.Name, root)
			}
		}
	}
}

// A verb's page is written from its declaration, whatever verb it is.
func TestAVerbIsTold(t *testing.T) {
	r := &reference{}
	r.verb(policy.Verb{
		Name: "review", Doc: "Says why jobs are not valid.", Itself: []string{"A job without tasks is passed over."},
		Sites: []string{policy.JobOrder, policy.JobValid},
		Parameters: []policy.Parameter{
			{Name: "of", Doc: "The jobs that it is about.", Kind: kinds.Condition{Roots: []string{"job"}, Default: "true"}},
			{Name: "tone", Doc: "How it is said.", Kind: kinds.Word{Of: []string{"calm", "firm"}, Default: "calm"}},
		},
	})
	want := `
### review

Says why jobs are not valid.

| key | value | meaning |
| --- | --- | --- |
| ~of~ | CEL over job: bool | The jobs that it is about. Default: ~true~. |
| ~tone~ | calm or firm | How it is said. Default: calm. |

It asks the sections ~jobOrder~, ~jobValid~. What it decides by itself:

- A job without tasks is passed over.
`
	if diff := cmp.Diff(strings.ReplaceAll(want, "~", "`"), r.b.String()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

var (
	link   = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	title  = regexp.MustCompile(`(?m)^#+ (.+)$`)
	fences = regexp.MustCompile("(?s)```.*?```")
)

// TestLinks follows every link between the documents of the repository, to its file and its heading.
func TestLinks(t *testing.T) {
	for _, file := range documents(t) {
		text := read(t, file)
		for _, m := range link.FindAllStringSubmatch(fences.ReplaceAllString(text, ""), -1) {
			target, anchor, _ := strings.Cut(m[1], "#")
			if strings.Contains(target, "://") {
				continue
			}
			place := file
			if target != "" {
				place = filepath.Join(filepath.Dir(file), target)
			}
			if _, err := os.Stat(place); err != nil {
				t.Errorf("%s links to %s, which is not there", file, m[1])
				continue
			}
			if anchor != "" && !strings.Contains(anchors(read(t, place)), " "+anchor+" ") {
				t.Errorf("%s links to %s, which has no such heading", file, m[1])
			}
		}
	}
}

// TestNamedTestsAreThere holds the page about security to tests that there are.
func TestNamedTestsAreThere(t *testing.T) {
	there := map[string]bool{}
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, "_test.go") {
			for _, m := range testFunction.FindAllStringSubmatch(read(t, path), -1) {
				there[m[1]] = true
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	named := testName.FindAllString(read(t, "security.md"), -1)
	if len(named) == 0 {
		t.Error("the page about security names no test")
	}
	for _, name := range named {
		if !there[name] {
			t.Errorf("security.md names %s, which is not there", name)
		}
	}
}

var (
	testFunction = regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	testName     = regexp.MustCompile(`\bTest[A-Z]\w+`)
)

// documents lists all Markdown files, from this folder.
func documents(t *testing.T) []string {
	t.Helper()
	var out []string
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && path != ".." && strings.HasPrefix(d.Name(), ".") {
			return fs.SkipDir
		}
		if filepath.Ext(path) == ".md" {
			out = append(out, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func read(t *testing.T, file string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// anchors are the names of all headings as GitHub makes them, with a space around each.
func anchors(text string) string {
	out := " "
	for _, m := range title.FindAllStringSubmatch(fences.ReplaceAllString(text, ""), -1) {
		var b strings.Builder
		for _, c := range strings.ToLower(m[1]) {
			switch {
			case c == ' ':
				b.WriteByte('-')
			case c == '-' || c == '_' || c >= 'a' && c <= 'z' || c >= '0' && c <= '9':
				b.WriteRune(c)
			}
		}
		out += b.String() + " "
	}
	return out
}
