package main

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"golang.org/x/tools/txtar"

	"github.com/celsius-scheduler/celsius/cmd/celsius/cluster"
)

// volcanosPrograms are the names of Volcano's programs. Under such a name, our program acts as that program.
var volcanosPrograms = []string{"vcctl", "vsub", "vjobs", "vqueues", "vcancel", "vsuspend", "vresume"}

// commands returns a command and all commands below it that the help lists.
func commands(c *cobra.Command) []*cobra.Command {
	out := []*cobra.Command{c}
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() && c.Name() != "completion" { // cobra writes the texts of completion
			out = append(out, commands(sub)...)
		}
	}
	return out
}

// TestHelp compares the help of every command with a file of testdata/help, one file for each program. No line may have more columns than
// the help allows.
func TestHelp(t *testing.T) {
	t.Setenv("KUBECONFIG", "")
	for _, name := range slices.Concat([]string{"celsius", "kubectl-celsius"}, volcanosPrograms) {
		t.Run(name, func(t *testing.T) {
			root := newRootCommand()
			if program := cluster.New(name, cluster.Options{}); program != nil {
				root = program
			}
			root.InitDefaultCompletionCmd()
			archive := &txtar.Archive{}
			for _, c := range commands(root) {
				args := slices.Concat(strings.Fields(c.CommandPath())[1:], []string{"--help"})
				var out, errs bytes.Buffer
				if code := called("/usr/bin/"+name, args, strings.NewReader(""), &out, &errs); code != exitOK || errs.Len() > 0 {
					t.Errorf("%s: exit code %d: %s", args, code, &errs)
				}
				title := strings.Join(append([]string{name}, args...), " ")
				for line := range strings.Lines(out.String()) {
					if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > cluster.HelpColumns {
						t.Errorf("%s: %d columns are more than %d: %s", title, n, cluster.HelpColumns, line)
					}
				}
				archive.Files = append(archive.Files, txtar.File{Name: title, Data: out.Bytes()})
			}
			if name != "kubectl-celsius" { // it has the commands of celsius, under another name
				golden(t, "testdata/help/"+name+".txtar", string(txtar.Format(archive)))
			}
		})
	}
}
