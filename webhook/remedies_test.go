package webhook

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"
)

// remedy is an entry of testdata/remedies.txt.
type remedy struct {
	suite, name string
	// row is the row that refuses the object. It is "-" for a warning.
	row string
	// words are the part of the message that states the remedy.
	words string
	// edits change the case as the words state, each in the form "OLD => NEW". In NEW, \n stands for a new line.
	edits []string
	// isNew reports whether the remedy is a new object: the case is a request to create it instead of a request to change it.
	isNew bool
	// elsewhere is the file and the test that carry the remedy out, for a remedy that is no change of the object.
	elsewhere string
}

// readRemedies reads testdata/remedies.txt.
func readRemedies(t *testing.T) (out []remedy) {
	t.Helper()
	data, err := os.ReadFile("testdata/remedies.txt")
	if err != nil {
		t.Fatal(err)
	}
	_, entries, _ := strings.Cut(string(data), "\n\n")
	head := regexp.MustCompile(`^(\w+) (\w+) \[([\w-]+)\] (.+)$`)
	for line := range strings.Lines(entries) {
		line = strings.TrimSuffix(line, "\n")
		kind, rest, _ := strings.Cut(line, " ")
		if m := head.FindStringSubmatch(line); m != nil && kind != "edit" {
			out = append(out, remedy{suite: m[1], name: m[2], row: m[3], words: m[4]})
			continue
		}
		last := &out[len(out)-1]
		switch kind {
		case "edit":
			last.edits = append(last.edits, rest)
		case "new":
			last.isNew = true
		case "elsewhere":
			last.elsewhere = rest
		default:
			t.Fatalf("not a line of a remedy: %s", line)
		}
	}
	return out
}

// statesRemedy matches a message that tells the reader what to change.
var statesRemedy = regexp.MustCompile(`[;,.] (?:write|add|give|keep|choose|remove|read|leave|use|move|name|take|set|put|raise|lower|` +
	`correct|make|start|install|change|ask|shorten|call|wait) `)

// TestRemediesOfRefusals changes each object as the message of its refusal states. Then the row must not report the object. The test fails
// if no remedy is carried out for a row with a message that states one.
func TestRemediesOfRefusals(t *testing.T) {
	remedies, carriedOut := readRemedies(t), map[string]bool{}
	for _, s := range suites() {
		table, archive, _ := s.read(t)
		for _, r := range remedies {
			if r.suite != s.name {
				continue
			}
			carriedOut[r.row] = true
			want := fileOf(archive, r.name+".want")
			if want == nil || len(reported(string(want.Data), r)) == 0 {
				t.Errorf("%s.%s: no message of %s contains %q", r.suite, r.name, r.row, r.words)
				continue
			}
			if r.elsewhere != "" {
				checkTestExists(t, r.elsewhere)
				continue
			}
			changed := s.remedied(t, archive, r)
			if changed == nil {
				continue
			}
			got := outcome(t, table, s.cases(t, changed)[r.name])
			all := remedy{row: r.row}
			if r.row == "-" { // a warning
				all.words = r.words
			}
			if left := reported(got, all); len(left) > 0 {
				t.Errorf("%s.%s: after the remedy %q the row still reports:\n%s", r.suite, r.name, r.words, strings.Join(left, ""))
			}
		}
	}
	for _, s := range suites() {
		_, archive, _ := s.read(t)
		for _, f := range archive.Files {
			if strings.HasSuffix(f.Name, ".want") {
				checkCarriedOut(t, f, remedies, carriedOut)
			}
		}
	}
}

// checkCarriedOut checks that a remedy is carried out for each message of a case that states one: of the row, or of the warning.
func checkCarriedOut(t *testing.T, f txtar.File, remedies []remedy, rows map[string]bool) {
	t.Helper()
	row := regexp.MustCompile(`\[([\w-]+)\]\n$`)
	for line := range strings.Lines(string(f.Data)) {
		if !statesRemedy.MatchString(line) {
			continue
		}
		m := row.FindStringSubmatch(line)
		isDone := m != nil && rows[m[1]] || strings.HasPrefix(line, "warn ") && slices.ContainsFunc(remedies, func(r remedy) bool {
			return r.row == "-" && strings.Contains(line, r.words)
		})
		if !isDone && (m != nil || strings.HasPrefix(line, "warn ")) {
			t.Errorf("%s: no remedy is carried out of %s", f.Name, line)
		}
	}
}

// reported returns the lines of an outcome that a row reports, with the words of a remedy.
func reported(outcome string, r remedy) (out []string) {
	for line := range strings.Lines(outcome) {
		isOfRow := strings.HasSuffix(line, "["+r.row+"]\n") || r.row == "-" && strings.HasPrefix(line, "warn ")
		if isOfRow && strings.Contains(line, r.words) {
			out = append(out, line)
		}
	}
	return out
}

// remedied returns the files of one case, with the edits of a remedy. It returns nil if an edit does not apply.
func (s suite) remedied(t *testing.T, archive *txtar.Archive, r remedy) *txtar.Archive {
	t.Helper()
	out := &txtar.Archive{}
	for _, f := range archive.Files {
		if !strings.HasPrefix(f.Name, r.name+".") || r.isNew && f.Name == r.name+".old" {
			continue
		}
		text := string(f.Data)
		if f.Name == r.name+"."+s.name {
			for _, e := range r.edits {
				from, to, isPair := strings.Cut(e, " => ")
				if !isPair {
					from, to = strings.TrimSuffix(e, " =>"), ""
				}
				if strings.Count(text, from) != 1 {
					t.Errorf("%s.%s: %q is in the case %d times, want once:\n%s", r.suite, r.name, from, strings.Count(text, from), text)
					return nil
				}
				text = strings.Replace(text, from, strings.ReplaceAll(to, `\n`, "\n"), 1)
			}
		}
		out.Files = append(out.Files, txtar.File{Name: f.Name, Data: []byte(text)})
	}
	return out
}

// checkTestExists checks that a file has a test, given as "FILE TestName".
func checkTestExists(t *testing.T, where string) {
	t.Helper()
	file, test, _ := strings.Cut(where, " ")
	data, err := os.ReadFile(filepath.FromSlash(file))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(data), "\nfunc "+test+"(") {
		t.Errorf("%s has no %s", file, test)
	}
}
