package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/celsius-scheduler/celsius/rules/source"
	"github.com/celsius-scheduler/celsius/webhook"
)

func newAdmissionCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "admission",
		Short: "Check a cluster's own rules of admission",
		Args:  unknownCommand,
		RunE:  func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newAdmissionCheckCommand())
	return c
}

func newAdmissionCheckCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "check FILE|FOLDER...",
		Short: "Compile rules of admission and print every mistake at its place",
		Long: `Check compiles rules of admission and prints all mistakes, each at its line and
column. A folder is read as --admission-rules of celsius webhook reads it; - is
standard input. The exit code is 0 if there are no mistakes, else 1.`,
		Example: "  celsius admission check quota.yaml\n  celsius admission check /etc/celsius/admission",
		Args:    atLeastOneFile,
		RunE: func(c *cobra.Command, args []string) error {
			return checkAdmission(c.OutOrStdout(), c.InOrStdin(), args)
		},
	}
}

func checkAdmission(out io.Writer, in io.Reader, args []string) error {
	var issues source.Issues
	var lines []string
	for _, arg := range args {
		tables, found := readAs(arg, in, webhook.LoadFS, webhook.LoadFile)
		issues = append(issues, found...)
		for _, t := range tables {
			lines = append(lines, fmt.Sprintf("%s: rules of admission %q of %ss are right; rows: %d", arg, t.Name, t.Kind, t.Rows()))
		}
	}
	return tellChecked(out, issues, lines)
}
