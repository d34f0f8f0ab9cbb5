package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/celsius-scheduler/celsius/cmd/celsius/cluster"
	"github.com/celsius-scheduler/celsius/rules/source"
)

// The exit codes of every command.
const (
	exitOK       = 0
	exitMistakes = 1 // the input has mistakes, or the work failed
	exitUsage    = 2 // the command line is wrong
	exitSkipped  = 3 // the input to work on is missing
	exitDiffers  = 4 // the output of a scenario differs from the expected one
)

func main() {
	os.Exit(called(os.Args[0], os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// run is the whole program: it takes arguments and streams, and returns the exit code.
func run(args []string, in io.Reader, out, errs io.Writer) int {
	errs = &messages{errs}
	return exitCode(with(newRootCommand(), args, in, out, errs).Execute(), errs)
}

// messages writes warnings and errors. It escapes the character that begins a command to the terminal, because messages contain names of
// users' objects.
type messages struct{ to io.Writer }

// Write implements io.Writer.
func (m *messages) Write(text []byte) (int, error) {
	if _, err := m.to.Write(bytes.ReplaceAll(text, []byte{'\x1b'}, []byte(`\x1b`))); err != nil {
		return 0, fmt.Errorf("write a message: %w", err)
	}
	return len(text), nil
}

// with sets the arguments and streams of a command.
func with(root *cobra.Command, args []string, in io.Reader, out, errs io.Writer) *cobra.Command {
	root.SetArgs(args)
	root.SetIn(in)
	root.SetOut(out)
	root.SetErr(errs)
	return root
}

// called runs the program according to the name of the executable: as itself, as kubectl's plugin, or as one of Volcano's programs.
func called(name string, args []string, in io.Reader, out, errs io.Writer) int {
	name = strings.TrimSuffix(filepath.Base(name), ".exe")
	switch name {
	case "kubectl-celsius":
		root := newRootCommand()
		root.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl celsius"}
		return exitCode(with(root, args, in, out, errs).Execute(), errs)
	case "kubectl_complete-celsius": // kubectl runs this for the completions of the plugin
		return run(append([]string{cobra.ShellCompRequestCmd}, args...), in, out, errs)
	}
	if volcanos := cluster.New(name, cluster.Options{}); volcanos != nil {
		return cluster.Execute(with(volcanos, args, in, out, errs))
	}
	return run(args, in, out, errs)
}

// exitError ends the program with an exit code. A nil error was already printed.
type exitError struct {
	code int
	err  error
}

func (e exitError) Error() string {
	if e.err == nil {
		return ""
	}
	return e.err.Error()
}

func (e exitError) Unwrap() error { return e.err }

// exitCode prints an error and returns the exit code of the program.
func exitCode(err error, errs io.Writer) int {
	if err == nil {
		return exitOK
	}
	var coded exitError
	if !errors.As(err, &coded) {
		coded = exitError{exitMistakes, err}
	}
	var issues source.Issues
	switch {
	case coded.err == nil:
	case errors.As(coded.err, &issues):
		say(errs, "%s\n", issues.Error())
	default:
		say(errs, "celsius: %s\n", strings.TrimSpace(coded.err.Error()))
	}
	return coded.code
}

// say writes to a stream. It ignores errors, because there is no other stream to report them.
func say(w io.Writer, format string, args ...any) { _, _ = fmt.Fprintf(w, format, args...) }

// sayIssues prints issues, if there are any.
func sayIssues(w io.Writer, issues source.Issues) {
	if len(issues) > 0 {
		say(w, "%s\n", issues.Error())
	}
}

func usageError(format string, args ...any) error {
	return exitError{exitUsage, fmt.Errorf(format, args...)}
}

// helpColumns is the width of help texts.
const helpColumns = cluster.HelpColumns

func newRootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "celsius",
		Short: "A batch scheduler for Kubernetes in which policy is data",
		Long: `Celsius is a batch scheduler for Kubernetes in which policy is data: every
order, filter, score and rule of admission is a row of a table that you can
read, change and try before it runs.`,
		Version:       version(),
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          unknownCommand,
		RunE:          func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	root.SetFlagErrorFunc(flagError)
	cluster.NarrowHelp(root)
	root.SetVersionTemplate("celsius {{.Version}}\n")
	root.AddCommand(newSimulateCommand(), newReplayCommand(), newShadowCommand(), newSchedulerCommand(), newControllersCommand(),
		newWebhookCommand(), newTryCommand(), newPolicyCommand(), newStateMachineCommand(), newJobPluginCommand(), newAdmissionCommand(),
		newLSPCommand(),
		newSchemaCommand(), newDocsCommand())
	for _, c := range cluster.Commands(cluster.Options{}) {
		if c.RunE == nil {
			c.Args, c.RunE = unknownCommand, root.RunE
		}
		root.AddCommand(c)
	}
	return root
}

// flagError rejects invalid flags. For an unknown flag it suggests the most similar one.
func flagError(c *cobra.Command, err error) error {
	if none, ok := errors.AsType[*pflag.NotExistError](err); ok {
		var names []string
		c.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
		if near := source.Nearest(none.GetSpecifiedName(), names); near != "" {
			return usageError("%w; did you mean --%s?", err, near)
		}
	}
	return usageError("%w; see %s --help", err, c.CommandPath())
}

// unknownCommand rejects arguments of a command that has only subcommands.
func unknownCommand(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var names []string
	for _, sub := range c.Commands() {
		names = append(names, sub.Name())
	}
	if near := source.Nearest(args[0], names); near != "" {
		return usageError("there is no command %s %s; did you mean %s?", c.CommandPath(), args[0], near)
	}
	return usageError("there is no command %s %s; see %s --help", c.CommandPath(), args[0], c.CommandPath())
}

// version returns the version in the build information.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" {
		return "(devel)"
	}
	return info.Main.Version
}
