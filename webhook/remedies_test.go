package webhook

import (
	"cmp"
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
	// queues change the queues of the cluster as the words state, in the same form.
	queues []string
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
		case "queues":
			last.queues = append(last.queues, rest)
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

// verbs are the imperatives by which messages tell the reader what to change.
const verbs = `write|add|give|keep|choose|remove|read|leave|use|move|name|take|set|put|raise|lower|correct|make|install|change|ask|` +
	`shorten|call|wait|look|open|close|create|delete|guarantee`

// statesRemedy matches a message that tells the reader what to change. between separates alternatives.
var (
	statesRemedy = regexp.MustCompile(`[;,.] (?:or )?(?:` + verbs + `) `)
	between      = regexp.MustCompile(`, or |; `)
)

// alternatives returns the parts of the remedy that a line states. Each can be carried out alone.
func alternatives(line string) (out []string) {
	at := statesRemedy.FindStringIndex(line)
	if at == nil {
		return nil
	}
	remedy, _, _ := strings.Cut(strings.TrimSuffix(line[at[0]+2:], "\n"), "   [")
	for _, part := range between.Split(remedy, -1) {
		out = append(out, strings.TrimPrefix(part, "or "))
	}
	return out
}

// TestRemediesOfRefusals changes each object, or the queues of the cluster, as the message of its refusal states. Then the row must not
// report the object. The test fails if a part of a remedy that a message states is not carried out.
func TestRemediesOfRefusals(t *testing.T) {
	remedies := readRemedies(t)
	for _, s := range suites() {
		table, archive, _ := s.read(t)
		for _, r := range remedies {
			if r.suite == s.name {
				s.carryOut(t, table, archive, r)
			}
		}
		for _, f := range archive.Files {
			if strings.HasSuffix(f.Name, ".want") {
				checkCarriedOut(t, f, remedies)
			}
		}
	}
}

// carryOut changes a case as a remedy states. Then the row must not report the case.
func (s suite) carryOut(t *testing.T, table *Table, archive *txtar.Archive, r remedy) {
	t.Helper()
	want := fileOf(archive, r.name+".want")
	if want == nil || len(reported(string(want.Data), r)) == 0 {
		t.Errorf("%s.%s: no message of %s contains %q", r.suite, r.name, r.row, r.words)
		return
	}
	if r.elsewhere != "" {
		checkTestExists(t, r.elsewhere)
		return
	}
	changed := s.remedied(t, archive, r)
	if changed == nil {
		return
	}
	got := outcome(t, table, s.cases(t, changed)[r.name])
	all := remedy{row: r.row}
	if r.row == "-" || r.row == "plugins" { // a warning, or a row that reports several mistakes
		all.words = r.words
	}
	if left := reported(got, all); len(left) > 0 {
		t.Errorf("%s.%s: after the remedy %q the row still reports:\n%s", r.suite, r.name, r.words, strings.Join(left, ""))
	}
}

// checkCarriedOut checks that a remedy is carried out for each part of the remedies that the messages of a case state.
func checkCarriedOut(t *testing.T, f txtar.File, remedies []remedy) {
	t.Helper()
	ofRow := regexp.MustCompile(`\[([\w-]+)\]\n$`)
	for line := range strings.Lines(string(f.Data)) {
		row := "-"
		if m := ofRow.FindStringSubmatch(line); m != nil {
			row = m[1]
		} else if !strings.HasPrefix(line, "warn ") {
			continue
		}
		for _, part := range alternatives(line) {
			isDone := slices.ContainsFunc(remedies, func(r remedy) bool {
				return r.row == row && (strings.Contains(r.words, part) || strings.Contains(part, strings.TrimPrefix(r.words, "or ")))
			})
			if !isDone {
				t.Errorf("%s: nothing carries out %q of %s", f.Name, part, line)
			}
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

// remedied returns the files of one case, with the edits of a remedy, and the queues of the cluster. It returns nil if an edit does not
// apply.
func (s suite) remedied(t *testing.T, archive *txtar.Archive, r remedy) *txtar.Archive {
	t.Helper()
	out, deleted := &txtar.Archive{}, ""
	if fileOf(archive, r.name+".deleted") != nil {
		deleted = r.name + ".deleted"
	}
	for _, f := range archive.Files {
		if !strings.HasPrefix(f.Name, r.name+".") || r.isNew && f.Name == r.name+".old" {
			continue
		}
		text, ok := string(f.Data), true
		if f.Name == cmp.Or(deleted, r.name+"."+s.name) {
			text, ok = edited(t, r, text, r.edits)
		}
		if !ok {
			return nil
		}
		out.Files = append(out.Files, txtar.File{Name: f.Name, Data: []byte(text)})
	}
	queues, ok := edited(t, r, theQueues, r.queues)
	if !ok {
		return nil
	}
	out.Files = append(out.Files, txtar.File{Name: r.name + ".queues", Data: []byte(queues)})
	return out
}

// edited returns a text with edits of a remedy. It reports an edit that does not apply.
func edited(t *testing.T, r remedy, text string, edits []string) (string, bool) {
	t.Helper()
	for _, e := range edits {
		from, to, isPair := strings.Cut(e, " => ")
		if !isPair {
			from, to = strings.TrimSuffix(e, " =>"), ""
		}
		if strings.Count(text, from) != 1 {
			t.Errorf("%s.%s: %q is in the case %d times, want once:\n%s", r.suite, r.name, from, strings.Count(text, from), text)
			return "", false
		}
		text = strings.Replace(text, from, strings.ReplaceAll(to, `\n`, "\n"), 1)
	}
	return text, true
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
