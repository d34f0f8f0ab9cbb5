package main

import (
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/celsius-scheduler/celsius/cmd/celsius/cluster"
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/engine/policy/facts"
	"github.com/celsius-scheduler/celsius/engine/policy/lint"
	policytext "github.com/celsius-scheduler/celsius/engine/policy/text"
	"github.com/celsius-scheduler/celsius/rules/source"
)

func newPolicyCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "policy",
		Short: "Check, test, lint, format, measure, show and convert policies",
		Args:  unknownCommand,
		RunE:  func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newPolicyCheckCommand(), newPolicyShowCommand(), newPolicyFactsCommand(), newPolicyConvertCommand(), newPolicyTestCommand(),
		newPolicyLintCommand(), newPolicyFmtCommand(), newPolicyBenchCommand(), newPolicyDiffCommand())
	c.AddCommand(cluster.PolicyCommands(cluster.Options{})...)
	return c
}

func newPolicyCheckCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "check FILE...",
		Short: "Compile policies and print mistakes at their places",
		Long: `Check compiles every SchedulingPolicy of the files (- is standard input; default
is the policy that ships) and prints the mistakes, each at its line and column.
The exit code is 0 if there are none, else 1.`,
		Example: "  celsius policy check policy.yaml",
		Args:    atLeastOneFile,
		RunE: func(c *cobra.Command, files []string) error {
			return checkPolicies(c.OutOrStdout(), c.InOrStdin(), files)
		},
	}
}

func atLeastOneFile(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return usageError("name at least one file; see %s --help", c.CommandPath())
	}
	return nil
}

// fewCollections makes garbage collections rare in a short command that compiles policies. With the default of GOGC they would cost more
// than a third of its CPU, because little memory is in use. It does not change a value of GOGC that the user sets.
func fewCollections() (restore func()) {
	if os.Getenv("GOGC") != "" {
		return func() {}
	}
	was := debug.SetGCPercent(400)
	return func() { debug.SetGCPercent(was) }
}

func checkPolicies(out io.Writer, in io.Reader, files []string) error {
	defer fewCollections()()
	var issues source.Issues
	var lines []string
	for _, file := range files {
		docs, found := readPolicies(file, in)
		issues = append(issues, found...)
		for _, d := range docs {
			p, found := policy.Load(d)
			issues = append(issues, found...)
			if p != nil {
				issues = append(issues, lint.Evictions(d, p)...)
				lines = append(lines, fmt.Sprintf("%s: policy %q is right: %d rows, pipeline %s", file, p.Name, p.RuleCount(),
					strings.Join(p.Pipeline, ", ")))
			}
		}
	}
	return tellChecked(out, issues, lines)
}

// tellChecked prints the issues that a check found. If none of them is a mistake, it also prints the lines about what is correct.
func tellChecked(out io.Writer, issues source.Issues, lines []string) error {
	sayIssues(out, issues)
	if n := len(issues.Errors()); n > 0 {
		return exitError{exitMistakes, fmt.Errorf("%d mistake(s)", n)}
	}
	for _, l := range lines {
		say(out, "%s\n", l)
	}
	return nil
}

// readPolicies reads the SchedulingPolicies of a file.
func readPolicies(file string, in io.Reader) ([]*source.Document, source.Issues) {
	if file == "default" {
		doc, issues := policy.Embedded("default")
		return []*source.Document{doc}, issues
	}
	data, err := fileOrInput(file, in)
	if err != nil {
		return nil, source.Issues{{File: file, Message: err.Error()}}
	}
	docs, issues := source.Parse(file, data)
	if len(docs) == 0 && len(issues) == 0 {
		issues = source.Issues{{File: file, Message: "there is no SchedulingPolicy in it"}}
	}
	return docs, issues
}

// onePolicy reads a file that contains exactly one policy.
func onePolicy(file string, in io.Reader) (*source.Document, error) {
	docs, issues := readPolicies(file, in)
	if err := issues.Err(); err != nil {
		return nil, exitError{exitMistakes, issues}
	}
	if len(docs) != 1 {
		return nil, usageError("%s holds %d documents; one is wanted", file, len(docs))
	}
	return docs[0], nil
}

func newPolicyShowCommand() *cobra.Command {
	var resolved bool
	c := &cobra.Command{
		Use:     "show FILE",
		Short:   "Print a policy; with --resolved, all that it names written out",
		Example: "  celsius policy show --resolved default",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			doc, err := onePolicy(args[0], c.InOrStdin())
			if err != nil {
				return err
			}
			write := policytext.Show
			if resolved {
				write = func(d *source.Document) ([]byte, source.Issues) { return policytext.Resolve(d, nil) }
			}
			text, issues := write(doc)
			if issues.Err() != nil {
				return exitError{exitMistakes, issues}
			}
			_, err = c.OutOrStdout().Write(text)
			return err
		},
	}
	c.Flags().BoolVar(&resolved, "resolved", false, "write the shipped tables and actions out in place")
	return c
}

func newPolicyFactsCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "facts FILE",
		Short: "Print what the compiler knows of each row: type, cost, reads",
		Args:  cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			doc, err := onePolicy(args[0], c.InOrStdin())
			if err != nil {
				return err
			}
			p, issues := policy.Load(doc)
			if issues.Err() != nil {
				return exitError{exitMistakes, issues}
			}
			return printFacts(c.OutOrStdout(), p)
		},
	}
}

func printFacts(out io.Writer, p *policy.Policy) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	say(w, "SITE\tROW\tTYPE\tCOST\tCOMPILED\tREADS\tHOLDS\n")
	for _, f := range facts.Of(p) {
		cost := fmt.Sprint(f.Cost)
		if !f.Bounded {
			cost = "unbounded"
		}
		if f.Metered {
			cost += ", in a budget"
		}
		reads := strings.Join(f.Reads, ", ")
		if reads == "" {
			reads = "-"
		}
		say(w, "%s\t%s/%s\t%s\t%s\t%s\t%s\t%s\n", f.Site, f.Table, f.Name, f.Type, cost, f.Compiled(), reads, f.Cache)
	}
	return w.Flush()
}
