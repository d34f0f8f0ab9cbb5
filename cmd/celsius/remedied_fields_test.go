package main

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/yaml"
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

// starts matches the report of a job that starts: a pod is bound, or pods are evicted for it.
var starts = regexp.MustCompile(`bound to \w+ in|promised \w+ in`)

// edit changes the file as a remedy states, and runs the line again. The line must succeed, and must not print the message. Each value of
// a field in the words of the remedy, and each code of a page, must be in the changed file or in the line, word for word.
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
	after, ok := b.run(r.line)
	if !ok || strings.Contains(after, r.words) {
		b.t.Errorf("%s\n%s: the remedy %q fails:\n%s", text, r.line, words, after)
	}
	if strings.Contains(r.line, " --explain train ") && !starts.MatchString(after) {
		b.t.Errorf("%s\n%s: after the remedy %q the job does not start:\n%s", text, r.line, words, after)
	}
}

// verbs are the imperatives by which messages and pages tell a reader what to change.
const verbs = "write|add|give|keep|choose|remove|read|leave|use|move|name|compare|join|take|set|put|raise|lower|correct|request|list|" +
	"say|make|avoid|mark|drop|have|start|install|bind|replace|change"

// changesField matches a message, or a part of one, that tells the reader to change a field.
var changesField = regexp.MustCompile("(?:^|[;,.] )(?:" + verbs + ") [^%:]|(?:^|[;,.] )(?:" + verbs + ") .*[^w]$")

// executed are the folders of the programs whose remedies TestRemedies executes.
var executed = []string{"engine/sim/manifest/", "rules/", "engine/policy/", "engine/volcano/", "engine/explain/", "engine/report/"}

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

// checkFields checks that one of the lines that state a remedy contains each message that tells the reader to change a field, unless a
// list names the message.
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

// fieldsElsewhere returns the messages that TestRemedies does not print and that tell the reader to change a field. The value is the file
// and the test that carry the remedy out. If no test does, the value is a dash and the reason.
func fieldsElsewhere() map[string]string {
	const reference = "- a description in the reference"
	return map[string]string{
		"list of %v":    reference,
		"list of words": reference,
		"read folder %s: no *.yaml, *.yml or *.json file in it": "- a report of a failure, not a remedy",
		"write fewer of them":        "- the input has more than 100,000 values",
		"write the object again: %v": "- the object is one that the API server stores and that is not JSON",
		"Nobody goes who would take the room back: who would, pending again and with the winner running, have the winner evicted from that " +
			"node by any step of the policy. The turn is tried without them, up to 32 times. And nobody goes for another job of a job for " +
			"which others go, until it has their room.": reference,
	}
}

// pageVerbs are the imperatives with which a page tells the reader what to change.
var pageVerbs = regexp.MustCompile(`(?i)^(?:set|write|add|raise|lower|remove|give|use|put|bind|install|change|delete|leave|say|name|` +
	`apply|replace|move|run|keep|pass|start|label|annotate|grant|restart|call|mark|compare|choose|take|list|enable|disable) `)

// instructions returns the sentences, the parts of sentences and the cells of a page that begin with an imperative. Blocks of code are
// left out, and a separator within `code` separates nothing.
func instructions(text string) (out []string) {
	text = regexp.MustCompile("(?s)```.*?```").ReplaceAllString(text, "\n\n")
	blocks := regexp.MustCompile(`\n\s*\n|\n[-*|#] ?|\n\d+\. `).Split(text, -1)
	for _, block := range blocks {
		block = strings.Join(strings.Fields(block), " ")
		isCode, from := false, 0
		for i := 0; i <= len(block); i++ {
			if i < len(block) && block[i] == '`' {
				isCode = !isCode
			}
			ends := i == len(block) || !isCode && (i > 0 && block[i] == ' ' && strings.ContainsRune(".;:!?|", rune(block[i-1])) ||
				strings.HasPrefix(block[i:], " | ") || strings.HasPrefix(block[i:], ", or ") || strings.HasPrefix(block[i:], ", and "))
			if !ends {
				continue
			}
			part := strings.TrimSpace(block[from:i])
			for _, and := range []string{", or ", ", and "} {
				part = strings.TrimPrefix(part, strings.TrimSpace(and)+" ")
			}
			if part = strings.Trim(part, "|-* "); pageVerbs.MatchString(part) {
				out = append(out, part)
			}
			from = i
		}
	}
	return out
}

// pages returns the pages that tell users what to do, by name. Generated pages and decisions are left out. TestPending reads the page of
// pending jobs.
func pages(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	files, err := filepath.Glob("../../docs/*.md")
	if err != nil || len(files) == 0 {
		t.Fatal("no pages: ", err)
	}
	for _, file := range append(files, "../../README.md", "../../samples/README.md") {
		if text := read(t, file); !strings.Contains(text, "Do not edit.") {
			out[strings.TrimPrefix(filepath.ToSlash(file), "../../")] = text
		}
	}
	return out
}

// TestRemediesOfPages checks that a remedy of testdata/fields.txtar or a test that pagesElsewhere names carries out each instruction of
// the pages, and that the pages contain the words of these remedies. TestRemedies carries the remedies out.
func TestRemediesOfPages(t *testing.T) {
	texts, here := pages(t), filepath.Dir(testdata(t))
	known := map[string]string{}
	for file, text := range texts {
		for _, part := range instructions(text) {
			known[part] = file
		}
	}
	quoted := []string{}
	for line := range strings.Lines(read(t, "testdata/fields.txtar")) {
		page, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "page ")
		if !ok {
			continue
		}
		file, words, _ := strings.Cut(page, ": ")
		if !strings.Contains(strings.Join(strings.Fields(texts[file]), " "), words) {
			t.Errorf("%s does not contain %q", file, words)
		}
		quoted = append(quoted, words)
	}
	elsewhere := pagesElsewhere(t)
	for _, part := range slices.Sorted(maps.Keys(known)) {
		isQuoted := slices.ContainsFunc(quoted, func(words string) bool {
			return strings.Contains(words, part) || strings.Contains(part, words)
		})
		if !isQuoted && elsewhere[part] == "" {
			t.Errorf("%s: no test carries out %q", known[part], part)
		}
	}
	checkElsewhere(t, here, elsewhere, known)
}

// pagesElsewhere reads testdata/pages.txt: the instructions of pages that no remedy of testdata/fields.txtar carries out. The value is the
// file and the test that carry the instruction out. If no test does, the value is a dash and the reason.
func pagesElsewhere(t *testing.T) map[string]string {
	t.Helper()
	out, where := map[string]string{}, ""
	for line := range strings.Lines(read(t, "testdata/pages.txt")) {
		line = strings.TrimSuffix(line, "\n")
		if next, ok := strings.CutPrefix(line, "$ "); ok {
			where = next
		} else if where != "" && line != "" {
			out[line] = where
		}
	}
	return out
}

// TestSchedulerNameOfAllParts adds --scheduler-name=celsius to the arguments of the three Deployments, as docs/getting-started.md states.
// Then each part serves the name celsius alone.
func TestSchedulerNameOfAllParts(t *testing.T) {
	for _, part := range []string{"scheduler", "controllers", "webhook"} {
		d := &appsv1.Deployment{}
		if err := yaml.UnmarshalStrict([]byte(read(t, "../../deploy/"+part+"/deployment.yaml")), d); err != nil {
			t.Fatal(err)
		}
		c := &d.Spec.Template.Spec.Containers[0]
		args := append(slices.Clone(c.Args), "--scheduler-name=celsius")
		command, rest, err := newRootCommand().Find(args)
		if err != nil || command.Name() != part {
			t.Errorf("%s: the Deployment runs %s: %v", part, command.Name(), err)
			continue
		}
		if err := command.ParseFlags(rest); err != nil {
			t.Errorf("%s: %v", part, err)
		}
		if got := command.Flags().Lookup("scheduler-name").Value.String(); got != "[celsius]" {
			t.Errorf("%s serves the names %s", part, got)
		}
	}
}
