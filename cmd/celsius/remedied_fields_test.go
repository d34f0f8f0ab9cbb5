package main

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"
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
	if err := os.WriteFile(name, []byte(strings.Replace(string(data), "WITH", asLines(r.with), 1)), 0o600); err != nil {
		b.t.Fatal(err)
	}
}

// asLines returns the text of an entry, in which \n stands for a new line.
func asLines(text string) string { return strings.ReplaceAll(text, `\n`, "\n") }

// fileOf returns the first template that the line of a remedy names. The line names the file, or a folder that contains only this file.
func (b *bench) fileOf(r remedy) string {
	b.t.Helper()
	for name := range strings.FieldsSeq(r.line) {
		switch info, err := os.Stat(filepath.Join("templates", name)); {
		case err != nil:
		case !info.IsDir():
			return name
		default: // a folder with one template
			entries, err := os.ReadDir(filepath.Join("templates", name))
			if err != nil || len(entries) != 1 {
				b.t.Fatalf("%s has %d templates, want 1: %v", name, len(entries), err)
			}
			return filepath.Join(name, entries[0].Name())
		}
	}
	b.t.Fatalf("%s: no file of the line has the word WITH", r.line)
	return ""
}

// inField matches a field with its value, which a message or a page tells the reader to write, add, set, keep or use.
var inField = regexp.MustCompile("(?:write|add|set|keep|use) ([a-zA-Z]+: (?:[^ t,;`]|t[^h])[^ ,;`]*)|`([^`]+)`")

// starts matches the report of a job that starts: a pod is bound, or pods are evicted for it.
var starts = regexp.MustCompile(`bound to \w+(?: [cg]pu \d+)? in|promised \w+ in`)

// edit changes the file as a remedy states, and runs the line again. The line must succeed, and must not print the message. The words of
// the remedy contain values of fields, and a page contains code. All of these must be in the changed file or in the line, word for word.
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
		text = strings.Replace(text, from, asLines(to), 1)
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
	"say|make|avoid|mark|drop|have|start|install|bind|replace|change|create|count|ask|wait|shorten|call|look|open|delete|rename|apply"

// changesField matches a message, or a part of one, that tells the reader to change a field.
var changesField = regexp.MustCompile("(?:^|[;,.:] (?:or )?)(?:" + verbs + ") [^%:]|(?:^|[;,.:] (?:or )?)(?:" + verbs + ") .*[^w]$|" +
	"[.;] (?:Change|Correct|Write|Ask|Create|Add|Remove|Set|Use|Give) ")

// executed are the folders of the programs whose remedies TestRemedies executes.
var executed = []string{
	"engine/sim/manifest/", "rules/", "engine/policy/", "engine/volcano/", "engine/explain/", "engine/report/", "engine/live/",
	"statemachines/", "webhook/", "cmd/celsius/",
}

// noRemedy matches messages that look like remedies but are none:
//
//   - the context of an error: "read FILE: ..."
//   - the context of an error in the log of a controller: "list the jobs of a queue"
//   - a type in the reference: "list of names"
//   - a mistake: "name is missing"
//   - the names of fields that a report keeps
var noRemedy = regexp.MustCompile(`: %w$|^read [^;]*: |^make pod %s: |^list (?:of|the) |^write the condition of |^name is |` +
	`^name (?:\w+ ){2,}\w+$`)

// fieldMessages returns the messages that tell the reader to change a field, each with the file that contains it.
func fieldMessages(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, file := range texts(t) {
		slashed := strings.TrimPrefix(filepath.ToSlash(file), "../../")
		if !slices.ContainsFunc(executed, func(dir string) bool { return strings.HasPrefix(slashed, dir) }) {
			continue
		}
		var found []string
		switch {
		case strings.HasPrefix(slashed, "rules/admission/"): // TestRemediesOfRefusals of package webhook checks each row
		case filepath.Ext(file) == ".go":
			found = goMessages(t, file)
		case filepath.Ext(file) == ".yaml":
			found = yamlMessages(read(t, file))
		}
		for _, text := range found {
			if changesField.MatchString(text) && !noRemedy.MatchString(text) && !strings.Contains(text, "\n") {
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

// refusals returns the lines of the suites of admission that state a remedy of webhook/testdata/remedies.txt, and the words of the
// remedies. TestRemediesOfRefusals of package webhook carries them out.
func refusals(t *testing.T, here string) (lines, words []string) {
	t.Helper()
	folder := filepath.Join(here, "../../webhook/testdata")
	entry := regexp.MustCompile(`(?m)^(\w+) (\w+) \[[\w-]+\] (.+)$`)
	for _, m := range entry.FindAllStringSubmatch(read(t, filepath.Join(folder, "remedies.txt")), -1) {
		suite, err := txtar.ParseFile(filepath.Join(folder, m[1]+".txtar"))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range suite.Files {
			if f.Name == m[2]+".want" {
				lines, words = append(lines, linesWith(string(f.Data), m[3])...), append(words, m[3])
			}
		}
	}
	if len(lines) < 100 {
		t.Errorf("%d messages of admission state a remedy that is carried out, want at least 100", len(lines))
	}
	return lines, words
}

// alternatives returns the parts of the remedy that a message states. Each can be carried out alone.
func alternatives(text string) (out []string) {
	at := changesField.FindStringIndex(text)
	if at == nil {
		return nil
	}
	for _, part := range regexp.MustCompile(`, or |; `).Split(strings.TrimLeft(text[at[0]:], ";,.: "), -1) {
		out = append(out, strings.TrimPrefix(part, "or "))
	}
	return out
}

// checkFields checks each message that tells the reader to change a field. One of the lines that state a remedy must contain the message,
// and a test must carry out each alternative of the remedy. checkFields leaves out messages that fields.txt names, and messages that name
// commands or flags.
func checkFields(t *testing.T, here string, stated, words []string, known map[string]string) {
	t.Helper()
	elsewhere, commands := listed(t, filepath.Join(here, "testdata/fields.txt")), remediedElsewhere()
	lines, more := refusals(t, here)
	stated, words = append(stated, lines...), append(words, more...)
	for _, text := range slices.Sorted(maps.Keys(known)) {
		if elsewhere[text] != "" || commands[text] != "" {
			continue
		}
		if !slices.ContainsFunc(stated, printedAs(text).MatchString) {
			t.Errorf("%s: no test changes the field of %q", known[text], text)
			continue
		}
		for _, part := range alternatives(text) {
			isDone := slices.ContainsFunc(words, func(w string) bool {
				return printedAs(part).MatchString(w) || strings.Contains(part, strings.TrimPrefix(w, "or "))
			})
			if !isDone {
				t.Errorf("%s: no test carries out %q of %q", known[text], part, text)
			}
		}
	}
	checkElsewhere(t, here, elsewhere, known)
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

// TestRemediesOfPages checks that each instruction of the pages is carried out. This is done by a remedy of testdata/fields.txtar, or by a
// test that testdata/pages.txt names. The pages must contain the words of these remedies. TestRemedies carries the remedies out.
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
	elsewhere := listed(t, "testdata/pages.txt")
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

// listed reads testdata/fields.txt or testdata/pages.txt: the messages, or the instructions of pages, that no remedy of
// testdata/fields.txtar carries out. The value is the file and the test that carry the instruction out. If no test does, the value is a
// dash and the reason.
func listed(t *testing.T, file string) map[string]string {
	t.Helper()
	out, where := map[string]string{}, ""
	for line := range strings.Lines(read(t, file)) {
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
