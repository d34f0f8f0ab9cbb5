package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/engine/policy/kinds"
	"github.com/celsius-scheduler/celsius/rules/layout"
	"github.com/celsius-scheduler/celsius/rules/source"
)

const policyFmtHelp = `Fmt writes files of SchedulingPolicies in one form, whoever wrote them: indents
of two, quotes only where they are needed, lists not indented, mappings on one
line where their author has them so and they fit. Expressions have the same
spaces, and one that is too long for its line is broken before && and ||, ? and
:, in a text that reads as one line. Comments, blank lines and the order of
keys stay, and the compiled policy is the same; where a file cannot be written
so, it is left alone and told of.

Without -w or --check the files are printed, - is standard input.

Exit codes:
  0  done; with --check, no file differs
  1  a file differs (--check), cannot be read or written, or is no YAML
  2  the command line is wrong`

func newPolicyFmtCommand() *cobra.Command {
	var write, check bool
	c := &cobra.Command{
		Use:     "fmt FILE...",
		Short:   "Write policies in one form, with their comments",
		Long:    policyFmtHelp,
		Example: "  celsius policy fmt -w policy.yaml\n  celsius policy fmt --check policies/*.yaml",
		Args:    atLeastOneFile,
		RunE: func(c *cobra.Command, files []string) error {
			if write && (check || slices.Contains(files, "-")) {
				return usageError("-w is for files, and without --check")
			}
			return formatFiles(c.OutOrStdout(), c.InOrStdin(), files, write, check)
		},
	}
	c.Flags().BoolVarP(&write, "write", "w", false, "write the files instead of printing them")
	c.Flags().BoolVar(&check, "check", false, "name the files that would be written otherwise, and end with exit code 1 if there are any")
	return c
}

// formatFiles formats several files. A file that cannot be formatted does not stop the others.
func formatFiles(out io.Writer, in io.Reader, files []string, write, check bool) error {
	var wrong source.Issues
	differ := 0
	for _, file := range files {
		data, err := fileOrInput(file, in)
		var text []byte
		if err == nil {
			if _, issues := source.Parse(file, data); issues.Err() != nil {
				wrong = append(wrong, issues.Errors()...)
				continue
			}
			text, err = layout.Format(data, expressionKeys())
		}
		switch same := bytes.Equal(data, text); {
		case err != nil:
		case check && !same:
			differ++
			say(out, "%s\n", file)
		case write && !same:
			err = os.WriteFile(file, text, 0o644)
		case !write && !check:
			_, err = out.Write(text)
		}
		if err != nil {
			wrong = append(wrong, source.Issue{File: file, Message: err.Error()})
		}
	}
	switch {
	case len(wrong) > 0:
		return exitError{exitMistakes, wrong}
	case differ > 0:
		return exitError{exitMistakes, fmt.Errorf("%d of %d files differ; celsius policy fmt -w writes them", differ, len(files))}
	}
	return nil
}

// expressionKeys returns which keys of a policy contain expressions.
func expressionKeys() layout.Keys {
	k := layout.Keys{Expressions: []string{"expression", "by", "when"}}
	for _, fn := range policy.Shape().Functions {
		k.Of = append(k.Of, fn.Name)
	}
	for _, v := range policy.Verbs() {
		for _, p := range v.Parameters {
			if _, ok := p.Kind.(kinds.Condition); ok {
				k.Expressions = append(k.Expressions, p.Name)
			}
		}
	}
	return k
}
