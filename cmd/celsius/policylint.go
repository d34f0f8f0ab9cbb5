package main

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/celsius-scheduler/celsius/engine/explain"
	"github.com/celsius-scheduler/celsius/engine/policy/lint"
	"github.com/celsius-scheduler/celsius/rules/source"
)

const policyLintHelp = `Lint finds what is legal in the SchedulingPolicies of the files (- is standard
input) and hardly meant, each at its place with what would be right:

  - rows that say the same of everything, or nothing: constants, weights of 0
  - rows that are never asked: a when that is always false, a section that only
    or without switches off; actions that the pipeline does not name
  - rows that say what an earlier one says
  - conditions that never hold together, or one of which always holds; rows
    that must both hold and never do
  - what is compared with itself, or stands twice in a condition
  - params, variables and attributes that nothing reads

What policy check warns of (labels that may be missing, divisions by what may
be 0, evictions that go back and forth) it leaves to that. It tells only of
what the file holds, not of shipped tables that it names.

Exit codes:
  0  nothing was found, or --error is not given
  1  a policy has mistakes; with --error, something was found
  2  the command line is wrong`

func newPolicyLintCommand() *cobra.Command {
	var output string
	var strict bool
	c := &cobra.Command{
		Use:     "lint FILE...",
		Short:   "Find rows that decide nothing, and those that contradict others",
		Long:    policyLintHelp,
		Example: "  celsius policy lint policy.yaml\n  celsius policy lint --error -o json policies/*.yaml",
		Args:    atLeastOneFile,
		RunE: func(c *cobra.Command, files []string) error {
			if output != "text" && output != "json" {
				return usageError("--output must be text or json")
			}
			found, err := lintFiles(c.InOrStdin(), files)
			if err != nil {
				return err
			}
			if err := writeFindings(c.OutOrStdout(), found, output); err != nil {
				return err
			}
			if strict && len(found) > 0 {
				return exitError{exitMistakes, fmt.Errorf("%s", explain.Count(len(found), "finding"))}
			}
			return nil
		},
	}
	c.Flags().StringVarP(&output, "output", "o", "text", "text or json")
	c.Flags().BoolVar(&strict, "error", false, "end with exit code 1 where something is found")
	return c
}

// lintFiles returns the findings for the policies of some files.
func lintFiles(in io.Reader, files []string) (found source.Issues, err error) {
	defer fewCollections()()
	var mistakes source.Issues
	for _, file := range files {
		docs, issues := readPolicies(file, in)
		mistakes = append(mistakes, issues.Errors()...)
		for _, d := range docs {
			more, wrong := lint.Policy(d)
			found, mistakes = append(found, more...), append(mistakes, wrong...)
		}
	}
	if len(mistakes) > 0 {
		return nil, exitError{exitMistakes, mistakes}
	}
	return found, nil
}

// finding is one finding in the form of JSON.
type finding struct {
	File    string `json:"file"`
	Line    int    `json:"line"`
	Column  int    `json:"column"`
	Path    string `json:"path"`
	Message string `json:"message"`
	Hint    string `json:"hint"`
}

func writeFindings(out io.Writer, found source.Issues, format string) error {
	if format == "text" {
		sayIssues(out, found)
		return nil
	}
	list := []finding{}
	for _, i := range found {
		list = append(list, finding{i.File, i.Line, i.Column, i.Path, i.Message, i.Hint})
	}
	data, err := json.MarshalIndent(list, "", "  ")
	if err != nil {
		return fmt.Errorf("write the findings: %w", err)
	}
	say(out, "%s\n", data)
	return nil
}
