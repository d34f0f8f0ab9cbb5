package main

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"
)

const toggle = `apiVersion: rules.celsius.dev/v1alpha1
kind: StateMachine
machine: queue
initial: Open
perpetual: true
actions: {OpenQueue: {command: true}, CloseQueue: {command: true}, SyncQueue: {internal: true}}
effects: {sync: {}, close: {}}
phases:
  Open: {actions: {CloseQueue: {do: close, to: Closed}, "*": {do: sync}}}
  Closed: {actions: {OpenQueue: {do: sync, to: Open}, "*": {do: sync}}}
policies: {otherwise: SyncQueue}
`

func TestStateMachine(t *testing.T) {
	t.Parallel()
	right := files(t, map[string]string{"mine.yaml": toggle})
	wrong := files(t, map[string]string{"mine.yaml": strings.Replace(toggle, "to: Closed", "to: Close", 1), "more.yaml": "kind: ["})
	for _, c := range []struct {
		name     string
		args     []string
		code     int
		out, err string // what the two streams must contain
	}{
		{"what ships", []string{"check", "job", "queue"}, exitOK, `statemachines/queue.yaml: state machine "queue" is right: 4 phases`, ""},
		{"a file", []string{"check", filepath.Join(right, "mine.yaml")}, exitOK, `state machine "queue" is right: 2 phases`, ""},
		{"standard input", []string{"check", "-"}, exitOK, `-: state machine "queue" is right`, ""},
		{"a folder", []string{"check", right}, exitOK, filepath.Join(right, "mine.yaml") + `: state machine "queue" is right`, ""},
		{
			"a mistake",
			[]string{"check", filepath.Join(wrong, "mine.yaml")},
			exitMistakes,
			`mine.yaml:9:48: phases.Open.actions.CloseQueue.to: there is no phase "Close"; did you mean "Closed"?`, "1 mistake(s)",
		},
		{"all mistakes of a folder", []string{"check", wrong}, exitMistakes, filepath.Join(wrong, "more.yaml") + ":1:", "2 mistake(s)"},
		{"a file that is not there", []string{"check", "jobs"}, exitMistakes, "jobs: no such file", "1 mistake(s)"},
		{"no file", []string{"check"}, exitUsage, "", "name at least one file"},
		{"a picture", []string{"render", "queue"}, exitOK, "    Open --> Closed: CloseQueue if empty, parent-closed\n", ""},
		{"a picture of a file", []string{"render", right, "--format", "dot"}, exitOK, `"Open" -> "Closed" [label="CloseQueue"];`, ""},
		{"a picture of what is wrong", []string{"render", filepath.Join(wrong, "mine.yaml")}, exitMistakes, "", `there is no phase "Close"`},
		{"a format", []string{"render", "job", "--format", "png"}, exitUsage, "", "write mermaid or dot"},
		{"a command", []string{"chek", "job"}, exitUsage, "", "did you mean check?"},
	} {
		var out, errs bytes.Buffer
		code := run(append([]string{"statemachine"}, c.args...), strings.NewReader(toggle), &out, &errs)
		if code != c.code || !strings.Contains(out.String(), c.out) || !strings.Contains(errs.String(), c.err) {
			t.Errorf("%s: code %d, want %d\nstdout, want %q:\n%s\nstderr, want %q:\n%s", c.name, code, c.code, c.out, out.String(),
				c.err, errs.String())
		}
	}
}
