package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"gopkg.in/yaml.v3"
)

// TestCommandsInTextsExist parses each command of Celsius that a document, an alert or a message names. The command must exist, must have
// these flags, and must accept this number of arguments.
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

// texts returns the files whose texts can name commands.
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

// commandsIn returns the commands that a file names. From documents and help texts, it returns complete commands. From messages, it returns
// the words of the command.
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
		if !strings.Contains(line, "\"") && !strings.Contains(line, "`") && strings.HasPrefix(line, "  celsius ") { // an example in a help text
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

// parses returns why a line is not a valid command, or "" if it is valid.
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

// namesRemedy matches the commands and flags that a message names. A flag at the start of a message is the one with the mistake, not a
// remedy.
var namesRemedy = regexp.MustCompile("(?:^|[\\s'\"`(,])(?:celsius (?:job|queue|pod|policy|explain|what-if|top|dashboard|snapshot|" +
	"support-bundle|statemachine|jobplugin|admission|simulate|replay|scheduler|controllers|webhook) ?|" +
	"kubectl [a-z]|make web)|[\\s'\"`(,]--[a-z]")

// remedyMessages returns the messages of the programs that name a command or a flag, each with the file that contains it. Help texts,
// descriptions of flags and reference pages are not messages.
func remedyMessages(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, file := range texts(t) {
		slashed, found := filepath.ToSlash(file), []string(nil)
		switch {
		case strings.HasPrefix(slashed, "../../docs/"), strings.Contains(slashed, "/playground/"), strings.Contains(slashed, "/generate/"),
			strings.HasPrefix(slashed, "../../deploy/"):
		case filepath.Ext(file) == ".go":
			found = goMessages(t, file)
		case filepath.Ext(file) == ".yaml":
			found = yamlMessages(read(t, file))
		}
		for _, text := range found {
			if namesRemedy.MatchString(text) && !strings.Contains(strings.TrimSuffix(text, "\n"), "\n") {
				out[text] = strings.TrimPrefix(slashed, "../../")
			}
		}
	}
	return out
}

// goMessages returns the string literals of a Go file, except help texts, descriptions of flags and metrics, and patterns. It joins the
// parts of a concatenation.
func goMessages(t *testing.T, file string) (out []string) {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.KeyValueExpr:
			key, _ := n.Key.(*ast.Ident)
			return key == nil || !slices.Contains([]string{"Long", "Short", "Example", "Use", "Doc", "Description"}, key.Name)
		case *ast.AssignStmt:
			field, _ := n.Lhs[0].(*ast.SelectorExpr)
			return field == nil || field.Sel.Name != "Description"
		case *ast.CallExpr:
			called, _ := n.Fun.(*ast.SelectorExpr)
			described := []string{"MustCompile", "register", "counter", "counters", "gauge", "gaugesBy", "histogram", "histograms"}
			return called == nil || !strings.HasSuffix(called.Sel.Name, "Var") && !strings.HasSuffix(called.Sel.Name, "VarP") &&
				!slices.Contains(described, called.Sel.Name)
		case *ast.BinaryExpr:
			if text, ok := joined(n); ok {
				out = append(out, text)
				return false
			}
		case *ast.BasicLit:
			if text, ok := joined(n); ok {
				out = append(out, text)
			}
		}
		return true
	})
	return out
}

// joined returns the text of a string literal or of a concatenation. In a concatenation, %v stands for an operand that is not a literal.
func joined(e ast.Expr) (text string, ok bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		if e.Kind != token.STRING {
			return "", false
		}
		text, err := strconv.Unquote(e.Value)
		return text, err == nil
	case *ast.BinaryExpr:
		x, isX := joined(e.X)
		y, isY := joined(e.Y)
		if !isX {
			x = "%v"
		}
		if !isY {
			y = "%v"
		}
		return x + y, e.Op == token.ADD && (isX || isY)
	}
	return "", false
}

// yamlMessages returns the value of each key "message" in YAML documents.
func yamlMessages(text string) (out []string) {
	var walk func(n *yaml.Node)
	walk = func(n *yaml.Node) {
		for i, sub := range n.Content {
			if n.Kind == yaml.MappingNode && i%2 == 1 && sub.Kind == yaml.ScalarNode && n.Content[i-1].Value == "message" {
				out = append(out, sub.Value)
			}
			walk(sub)
		}
	}
	for decoder := yaml.NewDecoder(strings.NewReader(text)); ; {
		var n yaml.Node
		if decoder.Decode(&n) != nil {
			return out
		}
		walk(&n)
	}
}

// printedAs returns a pattern that matches the output of a format.
func printedAs(format string) *regexp.Regexp {
	verb := regexp.MustCompile(`%(?:\[\d+\])?[-+# 0-9.]*[a-zA-Z]|\{\{.*?\}\}`)
	var pattern strings.Builder
	for i, part := range verb.Split(strings.ReplaceAll(format, "%%", "%"), -1) {
		if i > 0 {
			pattern.WriteString("(?s:.*?)")
		}
		pattern.WriteString(regexp.QuoteMeta(part))
	}
	return regexp.MustCompile(pattern.String())
}
