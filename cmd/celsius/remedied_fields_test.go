package main

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// fill writes the text of with into the file that the line of a remedy reads.
func (b *bench) fill(r remedy) {
	b.t.Helper()
	if r.with == "" {
		return
	}
	name := b.fileOf(r)
	data, err := os.ReadFile(filepath.Join("templates", name))
	if err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(strings.Replace(string(data), "WITH", r.with, 1)), 0o600); err != nil {
		b.t.Fatal(err)
	}
}

// fileOf returns the first file that the line of a remedy names and that has a template.
func (b *bench) fileOf(r remedy) string {
	b.t.Helper()
	for name := range strings.FieldsSeq(r.line) {
		if _, err := os.Stat(filepath.Join("templates", name)); err == nil {
			return name
		}
	}
	b.t.Fatalf("%s: no file of the line has the word WITH", r.line)
	return ""
}

// inField matches a field with its value, which a message or a page tells the reader to write, add, set, keep or use.
var inField = regexp.MustCompile("(?:write|add|set|keep|use) ([a-zA-Z]+: (?:[^ t,;`]|t[^h])[^ ,;`]*)|`([^`]+)`")

// edit changes the file as a remedy states, and runs the line again. The line must succeed, and must not print the message. Each value of a
// field in the words of the remedy, and each code of a page, must be in the changed file or in the line, word for word.
func (b *bench) edit(r remedy) {
	b.t.Helper()
	name := b.fileOf(r)
	data, err := os.ReadFile(name)
	if err != nil {
		b.t.Fatal(err)
	}
	text := string(data)
	for _, e := range r.edits {
		from, to, ok := strings.Cut(e, " => ")
		if !ok {
			from, to = strings.TrimSuffix(e, " =>"), ""
		}
		if strings.Count(text, from) != 1 {
			b.t.Errorf("%s: %q is in the file %d times, want once:\n%s", r.with, from, strings.Count(text, from), text)
			return
		}
		text = strings.Replace(text, from, to, 1)
	}
	words := r.words
	if r.page != "" {
		_, words, _ = strings.Cut(r.page, ": ")
	}
	for _, m := range inField.FindAllStringSubmatch(words, -1) {
		code := strings.TrimRight(m[1]+m[2], ".")
		if !strings.Contains(text, code) && !strings.Contains(r.line, code) {
			b.t.Errorf("%s: the remedy states %q, but the file then is\n%s", words, code, text)
		}
	}
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		b.t.Fatal(err)
	}
	if after, ok := b.run(r.line); !ok || strings.Contains(after, r.words) {
		b.t.Errorf("%s\n%s: the remedy %q fails:\n%s", text, r.line, words, after)
	}
}

// verbs are the imperatives by which messages and pages tell a reader what to change.
const verbs = "write|add|give|keep|choose|remove|read|leave|use|move|name|compare|join|take|set|put|raise|lower|correct|request|list|say|make|" +
	"avoid|mark|drop|have|start|install|bind|replace|change"

// changesField matches a message, or a part of one, that tells the reader to change a field.
var changesField = regexp.MustCompile("(?:^|[;,.] )(?:" + verbs + ") [^%:]|(?:^|[;,.] )(?:" + verbs + ") .*[^w]$")

// executed are the folders of the programs whose remedies TestRemedies executes.
var executed = []string{"engine/policy/", "engine/volcano/", "engine/explain/", "engine/report/"}

// fieldMessages returns the messages that tell the reader to change a field, each with the file that contains it.
func fieldMessages(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, file := range texts(t) {
		slashed := strings.TrimPrefix(filepath.ToSlash(file), "../../")
		if filepath.Ext(file) != ".go" || !slices.ContainsFunc(executed, func(dir string) bool { return strings.HasPrefix(slashed, dir) }) {
			continue
		}
		for _, text := range goMessages(t, file) {
			if changesField.MatchString(text) && !strings.HasSuffix(text, ": %w") && !strings.Contains(text, "\n") {
				out[text] = slashed
			}
		}
	}
	return out
}

// linesWith returns the lines of a text that contain words.
func linesWith(text, words string) (out []string) {
	for line := range strings.Lines(text) {
		if strings.Contains(line, words) {
			out = append(out, line)
		}
	}
	return out
}

// checkFields checks that one of the lines that state a remedy contains each message that tells the reader to change a field, unless a list
// names the message.
func checkFields(t *testing.T, here string, stated []string, known map[string]string) {
	t.Helper()
	elsewhere := fieldsElsewhere()
	for _, text := range slices.Sorted(maps.Keys(known)) {
		if elsewhere[text] == "" && !slices.ContainsFunc(stated, printedAs(text).MatchString) {
			t.Errorf("%s: no test changes the field of %q", known[text], text)
		}
	}
	checkElsewhere(t, here, elsewhere, known)
}

// fieldsElsewhere returns the messages that TestRemedies does not print and that tell the reader to change a field. The value is the file and
// the test that carry the remedy out. If no test does, the value is a dash and the reason.
func fieldsElsewhere() map[string]string {
	const reference = "- a description in the reference"
	return map[string]string{
		"list of %v": reference,
		"Nobody goes who would take the room back: who would, pending again and with the winner running, have the winner evicted from that node " +
			"by any step of the policy. The turn is tried without them, up to 32 times. And nobody goes for another job of a job for which " +
			"others go, until it has their room.": reference,
	}
}
