package main

import (
	"errors"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"github.com/celsius-scheduler/celsius/engine/sim/conformance"
)

const conformanceHelp = `Conformance replays cases that were recorded from Volcano and compares what is
decided here with what was observed there. DIR holds cases/*.json,
derived/*.jsonl with derived/profiles.json, and tables/scores.jsonl.

Configurations are converted as celsius policy convert does. A case is skipped
where that loses something which matters to it; an action that evicts matters
only where one evicted, or could have, and is left out elsewhere.

It prints how many cases of each package and plugin pass, why others are
skipped, every case that fails with both outcomes, and the differences that are
meant, each with the place that calls the recorded outcome a defect. Effective
cases are those in which something is bound, evicted, refused or scored.

Exit codes:
  0  no case failed
  1  a case failed, too many differ deliberately, or a file has mistakes
  2  the command line is wrong
  3  skipped: there are no cases at DIR`

func newConformanceCommand() *cobra.Command {
	var id string
	var verbose bool
	c := &cobra.Command{
		Use:   "conformance DIR",
		Short: "Replay cases recorded from Volcano",
		Long:  conformanceHelp,
		Example: "  celsius simulate conformance DIR\n  celsius simulate conformance DIR --case \\\n" +
			"    derived.default.scheduler_actions_allocate.TestAllocate.000",
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usageError("%s takes one folder, found %d arguments", c.CommandPath(), len(args))
			}
			return runConformance(c, args[0], id, verbose)
		},
	}
	c.Flags().StringVar(&id, "case", "", "replay this case only, and show both sides, with what was recorded on the way")
	c.Flags().BoolVar(&verbose, "verbose", false, "print a line for every case")
	return c
}

func runConformance(c *cobra.Command, dir, id string, verbose bool) error {
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return skipped(c.OutOrStdout(), dir)
	}
	cases, err := conformance.Load(dir)
	if err != nil {
		return err
	}
	runner, err := conformance.NewRunner()
	if err != nil {
		return err
	}
	if id != "" {
		result, err := runner.Explain(c.OutOrStdout(), cases, id)
		if err != nil {
			return err
		}
		if result.Failed() {
			return exitError{exitMistakes, nil}
		}
		return nil
	}
	report := runner.Run(cases)
	if err := report.Write(c.OutOrStdout(), verbose); err != nil {
		return err
	}
	if !report.OK() {
		return exitError{exitMistakes, nil}
	}
	return nil
}
