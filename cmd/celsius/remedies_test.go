package main

import (
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// TestCommandsInTextsExist parses each command of Celsius that a document, an alert or a message names, with the commands as they are: the
// command exists, it has the flags, and it takes as many arguments.
func TestCommandsInTextsExist(t *testing.T) {
	roots := programs()
	found := map[string]string{}
	for _, file := range texts(t) {
		for _, line := range commandsIn(file, read(t, file)) {
			found[line] = file
		}
	}
	for _, want := range []string{"celsius what-if --delete job/train -f train.yaml", "celsius what-if --add-nodes 1xn1"} {
		if found[want] == "" {
			t.Errorf("%q is not found: the test reads too little", want)
		}
	}
	if len(found) < 100 {
		t.Errorf("%d commands are found, want at least 100", len(found))
	}
	for line, file := range found {
		if wrong := parses(roots["celsius"], line); wrong != "" {
			t.Errorf("%s: %q: %s", file, line, wrong)
		}
	}
}

// texts are the files whose texts name commands.
func texts(t *testing.T) (files []string) {
	t.Helper()
	for _, root := range []string{"README.md", "docs", "deploy", "engine", "statemachines", "webhook", "rules", "crds", "cmd"} {
		err := filepath.WalkDir(filepath.Join("../..", root), func(path string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() {
				if e != nil && (e.Name() == "testdata" || e.Name() == "decisions") {
					return filepath.SkipDir
				}
				return err
			}
			if slices.Contains([]string{".md", ".go", ".yaml"}, filepath.Ext(path)) && !strings.HasSuffix(path, "_test.go") {
				files = append(files, path)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return files
}

var (
	inDocument = regexp.MustCompile("(?m)`(celsius [^`\n]+)`|^\\s*(?:\\$ )?(celsius [a-z][^\n]*)$")
	inMessage  = regexp.MustCompile("(celsius (?:job|queue|pod|policy|explain|what-if|top|dashboard|snapshot|support-bundle|statemachine|" +
		"jobplugin|admission|simulate|replay)(?: [a-z-]+)?)(?:[\"`'; ]|$)")
)

// commandsIn are the commands that a file names: whole ones of documents and help texts, the words of commands of messages.
func commandsIn(file, text string) (out []string) {
	if !strings.HasSuffix(file, ".go") {
		for _, m := range inDocument.FindAllStringSubmatch(text, -1) {
			line := m[1] + m[2]
			line, _, _ = strings.Cut(line, " # ")
			line, _, _ = strings.Cut(line, " | ")
			line, _, _ = strings.Cut(line, " > ")
			out = append(out, strings.TrimRight(strings.TrimSpace(line), "\\ "))
		}
		return out
	}
	for line := range strings.Lines(text) {
		if strings.HasPrefix(strings.TrimSpace(line), "//") {
			continue
		}
		if !strings.Contains(line, "\"") && !strings.Contains(line, "`") && strings.HasPrefix(line, "  celsius ") { // an example of a help text
			line, _, _ = strings.Cut(strings.TrimSpace(line), " | ")
			line, _, _ = strings.Cut(line, " > ")
			out = append(out, strings.TrimRight(line, "\\ "))
			continue
		}
		for _, m := range inMessage.FindAllStringSubmatch(line, -1) {
			out = append(out, m[1])
		}
	}
	return out
}

// parses returns why a line is no command; "": it is one.
func parses(root *cobra.Command, line string) string { //nolint:gocyclo // one case a kind of word
	words := strings.Fields(line)[1:]
	words = slices.DeleteFunc(words, func(w string) bool { return w == "..." || w == "…" })
	command, rest, err := root.Find(words)
	if err != nil || command == root {
		return "there is no such command"
	}
	if command.HasSubCommands() && !command.Runnable() && len(rest) > 0 && !strings.HasPrefix(rest[0], "-") {
		return "there is no such command"
	}
	command.InitDefaultHelpFlag()
	flags := pflag.NewFlagSet(line, pflag.ContinueOnError)
	flags.AddFlagSet(command.Flags())
	flags.AddFlagSet(command.InheritedFlags())
	for i := 0; i < len(rest); i++ {
		name, _, hasValue := strings.Cut(rest[i], "=")
		if name == "--" {
			break
		}
		var f *pflag.Flag
		switch {
		case strings.HasPrefix(name, "--"):
			f = flags.Lookup(name[2:])
		case strings.HasPrefix(name, "-") && len(name) > 1:
			f = flags.ShorthandLookup(name[1:2])
			hasValue = hasValue || len(name) > 2
		default:
			continue
		}
		if f == nil {
			return "there is no flag " + name
		}
		if !hasValue && f.NoOptDefVal == "" {
			i++ // the next word is its value
		}
	}
	return ""
}
