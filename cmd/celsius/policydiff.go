package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/celsius-scheduler/celsius/engine/compare"
	"github.com/celsius-scheduler/celsius/engine/explain"
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/engine/recording"
	"github.com/celsius-scheduler/celsius/engine/sim"
	"github.com/celsius-scheduler/celsius/engine/sim/manifest"
	"github.com/celsius-scheduler/celsius/engine/volume"
)

// asRecorded is the name of the old policy if each recorded cycle is compared with its recorded decision.
const asRecorded = "recorded"

// policyDiff compares the decisions of two policies.
type policyDiff struct {
	in        io.Reader
	out       io.Writer
	recording string
	cycles    int
	now       string
	output    string
	keep      string
	within    time.Duration
}

func newPolicyDiffCommand() *cobra.Command {
	var d policyDiff
	c := &cobra.Command{
		Use:                   "diff OLD NEW FILE... | OLD NEW --recording FOLDER",
		DisableFlagsInUseLine: true,
		Short:                 "Show which jobs another policy affects",
		Long: `Compare what two policies decide, of a world of files (a snapshot of a cluster,
for one), or of the cycles that a scheduler recorded: who is placed elsewhere,
starts later or sooner, or is evicted. OLD and NEW are files, or default; with
--recording OLD may be "recorded", which is what was decided.

In a world both decide for --cycles seconds, each in a world of its own. Of a
recording each cycle is decided by both from the state that was, so that what
the new one would have led to later is not seen: a job counts as started later
where it was started, and would not have been then.

The smallest world that is found in which both decide otherwise is printed as a
scenario, for celsius simulate, or written to the file that --keep names.`,
		Example: `  celsius snapshot | celsius policy diff old.yaml new.yaml -
  celsius policy diff recorded new.yaml --recording /var/lib/celsius/cycles`,
		Args: cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, args []string) error {
			d.in, d.out = c.InOrStdin(), c.OutOrStdout()
			return d.run(args)
		},
	}
	f := c.Flags()
	f.StringVar(&d.recording, "recording", "", "compare what is decided of the cycles that a scheduler recorded in this folder")
	f.IntVar(&d.cycles, "cycles", 60, "how many cycles both decide of a world, a second apart")
	f.StringVar(&d.now, "now", "", "the time of the first cycle of a world, as 2026-01-31T12:00:00Z; default: now")
	f.StringVarP(&d.output, "output", "o", "table", "table, or json")
	f.StringVar(&d.keep, "keep", "", "write the smallest world in which both decide otherwise to this file, as a scenario (.txtar)")
	f.DurationVar(&d.within, "within", 20*time.Second, "how long that is looked for; 0: not at all")
	return c
}

// check rejects invalid combinations of arguments.
func (d *policyDiff) check(args []string) error {
	switch {
	case len(args) < 2:
		return usageError("name two policies: celsius policy diff OLD NEW FILE...")
	case d.recording == "" && len(args) == 2:
		return usageError("decide of what? name files of a world (- is standard input), or give --recording FOLDER")
	case d.recording != "" && len(args) > 2:
		return usageError("with --recording there are no files: what is %s?", args[2])
	case d.recording == "" && args[0] == asRecorded:
		return usageError("%q is the old policy of a --recording", asRecorded)
	case d.output != "table" && d.output != "json":
		return usageError("--output must be table or json")
	case d.cycles < 1:
		return usageError("--cycles must be at least 1")
	}
	return nil
}

func (d *policyDiff) run(args []string) error {
	if err := d.check(args); err != nil {
		return err
	}
	var old *policy.Policy
	var err error
	if args[0] != asRecorded {
		if old, err = d.policy(args[0]); err != nil {
			return err
		}
	}
	other, err := d.policy(args[1])
	if err != nil {
		return err
	}
	var book *compare.Book
	var first *compare.Moment
	if d.recording != "" {
		book, first, err = d.recorded(old, other)
	} else {
		book, first, err = d.world(old, other, args[2:])
	}
	if err != nil {
		return err
	}
	return d.tell(book, first, args, other)
}

func (d *policyDiff) policy(file string) (*policy.Policy, error) {
	doc, err := onePolicy(file, d.in)
	if err != nil {
		return nil, err
	}
	p, issues := policy.Load(doc)
	if issues.Err() != nil {
		return nil, exitError{exitMistakes, issues}
	}
	return p, nil
}

func (d *policyDiff) recorded(old, other *policy.Policy) (*compare.Book, *compare.Moment, error) {
	files, err := recording.Files(d.recording)
	if err != nil {
		return nil, nil, err //nolint:wrapcheck // it names the folder
	}
	book, first, err := compare.Recordings(old, other, files...)
	if err == nil && book.Cycles == 0 {
		err = fmt.Errorf("there is no cycle in %s", d.recording)
	}
	return book, first, err //nolint:wrapcheck // it names the file
}

func (d *policyDiff) world(old, other *policy.Policy, files []string) (*compare.Book, *compare.Moment, error) {
	now := time.Now().UTC()
	if d.now != "" {
		var err error
		if now, err = time.Parse(time.RFC3339, d.now); err != nil {
			return nil, nil, usageError("--now %s is no time; write it as 2026-01-31T12:00:00Z", d.now)
		}
	}
	sources, err := manifest.Read(d.in, files...)
	if err != nil {
		return nil, nil, err //nolint:wrapcheck // it names the file
	}
	book, issues, err := compare.Worlds(old, other, sim.Options{Now: now, Volumes: volume.New}, sim.RunOptions{Cycles: d.cycles}, sources...)
	if issues.Err() != nil {
		return nil, nil, exitError{exitMistakes, issues}
	}
	if err != nil || book.Otherwise == 0 {
		return book, nil, err //nolint:wrapcheck // it says what failed
	}
	objects, _ := manifest.Load(manifest.Options{Now: now}, sources...)
	first := &compare.Moment{Now: now, Old: old}
	for _, i := range objects.Items {
		first.Objects = append(first.Objects, i.Object)
	}
	return book, first, nil
}

func (d *policyDiff) tell(book *compare.Book, first *compare.Moment, args []string, other *policy.Policy) error {
	if d.output == "json" {
		e := json.NewEncoder(d.out)
		e.SetIndent("", "  ")
		return e.Encode(map[string]any{ //nolint:wrapcheck // there is nothing to say of a pipe that was closed
			"cycles": book.Cycles, "otherwise": book.Otherwise, "first": book.First, "last": book.Last, "jobs": book.Differences(),
		})
	}
	say(d.out, "%s, %s to %s: in %d of them %s decides otherwise than %s\n", explain.Count(book.Cycles, "cycle"),
		book.First.UTC().Format(time.RFC3339), book.Last.UTC().Format(time.RFC3339), book.Otherwise, args[1], args[0])
	say(d.out, "%s", book.Text(func(key string) string { return strings.TrimPrefix(key, "~") }))
	if first == nil || d.within == 0 {
		return nil
	}
	end := time.Now().Add(d.within)
	text, err := compare.Counterexample(first, other, func() bool { return time.Now().Before(end) })
	switch {
	case err != nil:
		say(d.out, "no scenario of it: %v\n", err)
	case d.keep == "":
		say(d.out, "\n%s", text)
	default:
		if err := os.WriteFile(d.keep, text, 0o644); err != nil { //nolint:gosec // as any file of the user's own
			return fmt.Errorf("--keep: %w", err)
		}
		say(d.out, "the smallest world that was found in which they do is in %s\n", d.keep)
	}
	return nil
}
