package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestAuthoringSnippets checks the page about editors. Every command and every file that the page names must exist.
func TestAuthoringSnippets(t *testing.T) {
	data, err := os.ReadFile("../../docs/authoring.md")
	if err != nil {
		t.Fatal(err)
	}
	page := string(data)
	for _, command := range commandsOf(t, page) {
		found, rest, err := newRootCommand().Find(command[1:])
		if command[0] != "celsius" || err != nil || len(rest) > 0 || found.Name() != command[len(command)-1] {
			t.Errorf("%v is no command: %v, %v", command, rest, err)
		}
	}
	folder := t.TempDir()
	var out, errs strings.Builder
	if code := run([]string{"schema", "--to", folder}, nil, &out, &errs); code != exitOK {
		t.Fatalf("exit code %d: %s", code, &errs)
	}
	names := regexp.MustCompile(`schemas/(\w+\.json)`).FindAllStringSubmatch(page, -1)
	for _, m := range names {
		if _, err := os.Stat(filepath.Join(folder, m[1])); err != nil {
			t.Errorf("the page names a schema: %v", err)
		}
	}
	if len(names) == 0 {
		t.Error("the page names no schema")
	}
}

// commandsOf returns the commands that a page tells editors to start, and the commands that its text names.
func commandsOf(t *testing.T, page string) [][]string {
	t.Helper()
	var commands [][]string
	for _, m := range regexp.MustCompile("(?s)```json\n(.*?)```").FindAllStringSubmatch(page, -1) {
		var settings map[string]any
		if err := json.Unmarshal([]byte(m[1]), &settings); err != nil {
			t.Errorf("settings of VS Code: %v", err)
		}
		if command, ok := settings["glspc.server.command"].(string); ok {
			commands = append(commands, []string{command, fmt.Sprint(settings["glspc.server.commandArguments"].([]any)...)})
		}
	}
	for _, pattern := range []string{`cmd = \{ '(\w+)', '(\w+)' \}`, `command = "(\w+)"\nargs = \["(\w+)"\]`} {
		for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(page, -1) {
			commands = append(commands, m[1:])
		}
	}
	if len(commands) != 3 {
		t.Errorf("commands of the three editors: %v", commands)
	}
	for _, m := range regexp.MustCompile("`celsius ([a-z]+)( [a-z]+)?|\ncelsius ([a-z]+)").FindAllStringSubmatch(page, -1) {
		commands = append(commands, slices.Concat([]string{"celsius"}, strings.Fields(strings.Join(m[1:], ""))))
	}
	return commands
}

// TestLSPCommand starts the server in the same way as an editor.
func TestLSPCommand(t *testing.T) {
	said := ""
	for _, m := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}`, `{"jsonrpc":"2.0","id":2,"method":"shutdown"}`,
		`{"jsonrpc":"2.0","method":"exit"}`,
	} {
		said += fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(m), m)
	}
	var out, errs strings.Builder
	code := run([]string{"lsp"}, strings.NewReader(said), &out, &errs)
	if code != exitOK || !strings.Contains(out.String(), `"completionProvider"`) || errs.Len() > 0 {
		t.Errorf("exit code %d\n%s\n%s", code, &out, &errs)
	}
}

// TestSchemaCommand prints one schema, lists the kinds, and checks the message about an unknown kind.
func TestSchemaCommand(t *testing.T) {
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"schema"}, exitOK, "SchedulingPolicy\tscheduling.celsius.dev/v1alpha1\n"},
		{[]string{"schema", "Queue"}, exitOK, `"title": "Queue"`},
		{[]string{"schema", "all"}, exitOK, `"$ref": "queue.json"`},
		{[]string{"schema", "Queu"}, exitUsage, `did you mean "Queue"?`},
	} {
		var out, errs strings.Builder
		if code := run(c.args, nil, &out, &errs); code != c.code || !strings.Contains(out.String()+errs.String(), c.want) {
			t.Errorf("%v: exit code %d\n%.300s%s", c.args, code, &out, &errs)
		}
	}
}
