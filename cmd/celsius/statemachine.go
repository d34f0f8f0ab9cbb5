package main

import (
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/celsius-scheduler/celsius/rules/source"
	"github.com/celsius-scheduler/celsius/statemachines"
)

func newStateMachineCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "statemachine",
		Short: "Check and draw lifecycles of Jobs, Queues, CronJobs and flows",
		Args:  unknownCommand,
		RunE:  func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newStateMachineCheckCommand(), newStateMachineRenderCommand())
	return c
}

func newStateMachineCheckCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "check FILE|FOLDER...",
		Short: "Verify state machines and print mistakes at their places",
		Long: `Check verifies state machines and prints the mistakes, each at its line and
column. A folder is read as --state-machines of celsius controllers reads it.
job and queue are the machines that ship; - is standard input. The exit code is
0 if there are no mistakes, else 1.`,
		Example: "  celsius statemachine check job.yaml\n  celsius statemachine check /etc/celsius/machines",
		Args:    atLeastOneFile,
		RunE: func(c *cobra.Command, args []string) error {
			return checkMachines(c.OutOrStdout(), c.InOrStdin(), args)
		},
	}
}

func checkMachines(out io.Writer, in io.Reader, args []string) error {
	var issues source.Issues
	var lines []string
	for _, arg := range args {
		machines, found := readMachines(arg, in)
		issues = append(issues, found...)
		for _, m := range machines {
			lines = append(lines, fmt.Sprintf("%s: state machine %q is right: %d phases, %d event rows", m.File, m.Name, len(m.Phases()),
				len(m.EventTexts())))
		}
	}
	return tellChecked(out, issues, lines)
}

// readMachines returns the machines of a file or folder, or a built-in one by its name. Of a folder it returns only the folder's machines.
func readMachines(arg string, in io.Reader) ([]*statemachines.Machine, source.Issues) {
	one := func(m *statemachines.Machine, issues source.Issues) ([]*statemachines.Machine, source.Issues) {
		if m == nil {
			return nil, issues
		}
		return []*statemachines.Machine{m}, issues
	}
	if _, err := os.Stat(arg); err != nil && slices.Contains(statemachines.Names(), arg) {
		return one(statemachines.Default(arg))
	}
	folder := func(fsys fs.FS) (out []*statemachines.Machine, issues source.Issues) {
		all, issues := statemachines.LoadFS(fsys)
		for _, name := range slices.Sorted(maps.Keys(all)) {
			if m := all[name]; !m.Shipped() {
				m.File = filepath.Join(arg, m.File)
				out = append(out, m)
			}
		}
		return out, issues
	}
	return readAs(arg, in, folder, func(name string, data []byte) ([]*statemachines.Machine, source.Issues) {
		return one(statemachines.LoadFile(name, data))
	})
}

func newStateMachineRenderCommand() *cobra.Command {
	format := "mermaid"
	c := &cobra.Command{
		Use:   "render job|queue|cronjob|jobflow|FILE",
		Short: "Draw a state machine, for Mermaid or Graphviz",
		Example: `  celsius statemachine render job
  celsius statemachine render job --format dot | dot -Tsvg > job.svg`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return renderMachine(c.OutOrStdout(), c.InOrStdin(), args[0], format)
		},
	}
	c.Flags().StringVar(&format, "format", format, "mermaid or dot")
	return c
}

func renderMachine(out io.Writer, in io.Reader, arg, format string) error {
	draw := map[string]func(*statemachines.Machine) string{
		"mermaid": (*statemachines.Machine).Mermaid,
		"dot":     (*statemachines.Machine).Dot,
	}[format]
	if draw == nil {
		return usageError("there is no format %q; write mermaid or dot", format)
	}
	machines, issues := readMachines(arg, in)
	if issues.Err() != nil {
		return exitError{exitMistakes, issues}
	}
	if len(machines) != 1 {
		return usageError("%s holds %d state machines; name the file of one, job or queue", arg, len(machines))
	}
	say(out, "%s", draw(machines[0]))
	return nil
}
