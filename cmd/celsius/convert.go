package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/engine/policy/lint"
	"github.com/celsius-scheduler/celsius/engine/volcano"
	"github.com/celsius-scheduler/celsius/rules/source"
)

const convertHelp = `Convert reads a Volcano scheduler's configuration, or a ConfigMap that holds it
under a key that ends in .conf, from a file or (-) standard input, and prints
the SchedulingPolicy that does what it does: a table for each plugin, without
the sections that its flags switch off, with params from its arguments.

Standard error says what was dropped and what follows, each with its line. What
Volcano ignores in silence is refused: unknown keys, actions, plugins and
arguments.

--flags says what a flag means that is not written: "default", on, as Volcano
reads its ConfigMap; "explicit", off, as Volcano's own tests write it.

Exit codes:
  0  converted
  1  the configuration has mistakes, or its plugins exclude each other
  2  the command line is wrong`

func newPolicyConvertCommand() *cobra.Command {
	var name, flags string
	c := &cobra.Command{
		Use:   "convert FILE",
		Short: "Make a Volcano configuration a SchedulingPolicy",
		Long:  convertHelp,
		Example: "  celsius policy convert volcano-scheduler.conf > policy.yaml\n  kubectl get configmap -n volcano-system " +
			"volcano-scheduler-configmap -o yaml |\n    celsius policy convert --name default -",
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			options := volcano.Options{Name: name}
			switch flags {
			case "default":
			case "explicit":
				options.Flags = volcano.FlagsExplicit
			default:
				return usageError("--flags is default or explicit, found %q", flags)
			}
			return convertPolicy(c, args[0], options)
		},
	}
	c.Flags().StringVar(&name, "name", "volcano", "name of the policy; a scheduler serves the one that its --policy names")
	c.Flags().StringVar(&flags, "flags", "default", "what a flag means that is not written: default (on) or explicit (off)")
	return c
}

func convertPolicy(c *cobra.Command, file string, options volcano.Options) error {
	converted, _, err := convertedPolicy(c, file, options)
	if err != nil {
		return err
	}
	_, err = c.OutOrStdout().Write(converted.Policy)
	return err
}

// convertedPolicy converts a configuration and loads the resulting policy. It prints dropped parts and mistakes on standard error.
func convertedPolicy(c *cobra.Command, file string, options volcano.Options) (*volcano.Conversion, *policy.Policy, error) {
	data, err := fileOrInput(file, c.InOrStdin())
	if err != nil {
		return nil, nil, err
	}
	conf, issues := volcano.Parse(file, data)
	if issues.Err() != nil && !conf.At.Exists() {
		return nil, nil, refuse(c.ErrOrStderr(), issues)
	}
	converted, err := volcano.Convert(conf, options)
	sayNotes(c.ErrOrStderr(), converted.Notes)
	var unknown source.Issues
	if err != nil && !errors.As(err, &unknown) {
		return nil, nil, err
	}
	if issues = append(issues, unknown...); issues.Err() != nil { // show mistakes of form and of names together
		issues.Sort()
		return nil, nil, refuse(c.ErrOrStderr(), issues)
	}
	docs, issues := source.Parse("the policy", converted.Policy)
	var p *policy.Policy
	if len(issues) == 0 {
		p, issues = policy.Load(docs[0])
	}
	if len(issues.Errors()) > 0 {
		say(c.ErrOrStderr(), "the plugins of the configuration do not go together:\n")
		return nil, nil, refuse(c.ErrOrStderr(), issues.Errors())
	}
	if len(docs) > 0 {
		sayIssues(c.ErrOrStderr(), lint.Evictions(docs[0], p))
	}
	return converted, p, nil
}

// sayNotes prints what the conversion did with each part of a configuration, one line each.
func sayNotes(errs io.Writer, notes []volcano.Note) {
	var issues source.Issues
	for _, n := range notes {
		issues = append(issues, n.Issue)
	}
	if len(issues) > 0 {
		say(errs, "%s\n", issues.Shown(source.Issue.Error))
	}
}

// refuse prints the mistakes, each with its line, and returns an error with their number.
func refuse(errs io.Writer, issues source.Issues) error {
	sayIssues(errs, issues)
	return exitError{exitMistakes, fmt.Errorf("%d mistake(s)", len(issues.Errors()))}
}

// fileOrInput reads a file. "-" is standard input.
func fileOrInput(file string, in io.Reader) ([]byte, error) {
	if file == "-" {
		return io.ReadAll(in)
	}
	return os.ReadFile(file)
}
