package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/celsius-scheduler/celsius/rules/source"
	"github.com/celsius-scheduler/celsius/statemachines/jobplugin"
)

func newJobPluginCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "jobplugin",
		Short: "Check the plugins that Jobs may have",
		Args:  unknownCommand,
		RunE:  func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newJobPluginCheckCommand())
	return c
}

func newJobPluginCheckCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "check FILE|FOLDER...",
		Short: "Compile job plugins and print every mistake at its place",
		Long: `Check compiles job plugins and prints all mistakes, each at its line and column.
A folder is read as --job-plugins of celsius controllers reads it; - is standard
input. The exit code is 0 if there are no mistakes, else 1.`,
		Example: "  celsius jobplugin check jax.yaml\n  celsius jobplugin check /etc/celsius/plugins",
		Args:    atLeastOneFile,
		RunE: func(c *cobra.Command, args []string) error {
			return checkJobPlugins(c.OutOrStdout(), c.InOrStdin(), args)
		},
	}
}

func checkJobPlugins(out io.Writer, in io.Reader, args []string) error {
	var issues source.Issues
	var lines []string
	for _, arg := range args {
		set, own, found := readJobPlugins(arg, in)
		issues = append(issues, found...)
		for _, name := range own {
			p := set.Plugin(name)
			lines = append(lines, fmt.Sprintf("%s: job plugin %q is right: %d parameters, %d rows for pods, %d objects", arg, p.Name, len(p.Params()),
				len(p.PodRows()), len(p.ObjectRows())))
		}
	}
	return tellChecked(out, issues, lines)
}

// readJobPlugins gives the plugins of a file or folder beside those that ship, and the names of its own.
func readJobPlugins(arg string, in io.Reader) (set *jobplugin.Set, own []string, issues source.Issues) {
	fail := func(err error) (*jobplugin.Set, []string, source.Issues) {
		return nil, nil, source.Issues{{File: arg, Message: err.Error()}}
	}
	if arg == "-" {
		data, err := io.ReadAll(in)
		if err != nil {
			return fail(err)
		}
		return jobplugin.LoadFile("-", data)
	}
	info, err := os.Stat(arg)
	switch {
	case err != nil:
		return fail(err)
	case info.IsDir():
		set, own, issues = jobplugin.LoadFS(os.DirFS(arg))
		for i := range issues {
			issues[i].File = filepath.Join(arg, issues[i].File)
		}
		return set, own, issues
	}
	data, err := os.ReadFile(arg)
	if err != nil {
		return fail(err)
	}
	return jobplugin.LoadFile(arg, data)
}

// jobPluginsFlag is the folder of a cluster's own plugins.
type jobPluginsFlag struct{ dir string }

func (f *jobPluginsFlag) register(flags *pflag.FlagSet, more string) {
	flags.StringVar(&f.dir, "job-plugins", "", "folder of job plugins (YAML) beside, or in the place of, those that are built in"+more)
}

// load reads the folder, and refuses it with all its mistakes; nil: there is none.
func (f *jobPluginsFlag) load() (*jobplugin.Set, error) {
	if f.dir == "" {
		return nil, nil //nolint:nilnil // then those that ship are used
	}
	switch info, err := os.Stat(f.dir); {
	case errors.Is(err, os.ErrNotExist):
		return nil, usageError("--job-plugins: there is no folder %s", f.dir)
	case err != nil:
		return nil, usageError("--job-plugins: %w", err)
	case !info.IsDir():
		return nil, usageError("--job-plugins: %s is not a folder", f.dir)
	}
	set, _, issues := jobplugin.LoadFS(os.DirFS(f.dir))
	if issues.Err() != nil {
		return nil, fmt.Errorf("--job-plugins %s: %w", strings.TrimSuffix(f.dir, "/"), issues)
	}
	return set, nil
}
