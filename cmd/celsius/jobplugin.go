package main

import (
	"fmt"
	"io"
	"io/fs"

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
		Short: "Compile job plugins and print mistakes at their places",
		Long: `Check compiles job plugins and prints the mistakes, each at its line and column.
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
		found, wrong := readAs(arg, in, jobPluginsIn, func(name string, data []byte) (foundPlugins, source.Issues) {
			set, own, issues := jobplugin.LoadFile(name, data)
			return foundPlugins{set, own}, issues
		})
		issues = append(issues, wrong...)
		for _, name := range found.own {
			p := found.set.Plugin(name)
			lines = append(lines, fmt.Sprintf("%s: job plugin %q is right: %d parameters, %d rows for pods, %d objects", arg, p.Name,
				len(p.Params()), len(p.PodRows()), len(p.ObjectRows())))
		}
	}
	return tellChecked(out, issues, lines)
}

// foundPlugins are the plugins of a file or folder together with the built-in plugins. own lists the names of the former.
type foundPlugins struct {
	set *jobplugin.Set
	own []string
}

func jobPluginsIn(folder fs.FS) (foundPlugins, source.Issues) {
	set, own, issues := jobplugin.LoadFS(folder)
	return foundPlugins{set, own}, issues
}

// jobPluginsFlag is the flag for the folder of a cluster's own plugins.
type jobPluginsFlag struct{ folderFlag }

func (f *jobPluginsFlag) register(flags *pflag.FlagSet, more string) {
	f.folderFlag.register(flags, "job-plugins", "folder of job plugins (YAML) in addition to the built-in ones, or in place of them"+more)
}

// load reads the folder. An error lists all its mistakes. The result is nil if there is no folder; then the built-in plugins are used.
func (f *jobPluginsFlag) load() (*jobplugin.Set, error) {
	found, err := loadFolder(f.folderFlag, jobPluginsIn)
	return found.set, err
}
