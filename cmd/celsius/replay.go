package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/celsius-scheduler/celsius/engine/explain"
	"github.com/celsius-scheduler/celsius/engine/recording"
)

// replay repeats the decisions of cycles that a scheduler recorded.
type replay struct {
	out     io.Writer
	explain string
	cycle   uint64 // the cycle to explain; 0: the last

	cycles, binds, evicts int
	first, last           time.Time
	otherwise             int
	told                  bool // whether the requested explanation was printed
}

func newReplayCommand() *cobra.Command {
	var r replay
	c := &cobra.Command{
		Use:   "replay FOLDER|FILE...",
		Short: "Decide again what a scheduler decided and recorded, and compare",
		Long: `Decide again the cycles that a scheduler recorded (celsius scheduler
--record-cycles FOLDER), by the same code from the same objects, and compare
each plan with the one of then, byte for byte. The exit code is 1 where one
differs.

With --explain it is told of a pod, a job, a queue or a node what a cycle
decided of it, and why: the one that --cycle names, or the last.`,
		Example: `  celsius replay /var/lib/celsius/cycles
  celsius replay /var/lib/celsius/cycles --cycle 1042 --explain train`,
		Args: atLeastOneFile,
		RunE: func(c *cobra.Command, args []string) error {
			r.out = c.OutOrStdout()
			return r.run(args)
		},
	}
	c.Flags().StringVar(&r.explain, "explain", "", "explain what a cycle decided about the job, pod, queue or node NAME, or KIND/NAME "+
		"if several have the name; all: about every job")
	c.Flags().Uint64Var(&r.cycle, "cycle", 0, "the cycle to explain, by its number; 0: the last")
	return c
}

func (r *replay) run(paths []string) error {
	if r.cycle != 0 && r.explain == "" {
		return usageError("--cycle says which cycle to explain: give --explain NAME as well")
	}
	var files []string
	for _, path := range paths {
		found, err := recording.Files(path)
		if err != nil {
			return err //nolint:wrapcheck // it names the path
		}
		files = append(files, found...)
	}
	var last *recording.Moment
	p := &recording.Player{After: func(x *recording.Moment) error {
		last = x
		return r.after(x)
	}}
	for _, file := range files {
		if err := p.Play(file); err != nil && !errors.Is(err, recording.ErrStop) {
			return err //nolint:wrapcheck // it names the file and the line
		}
		if r.told {
			return nil
		}
	}
	switch {
	case last == nil:
		return fmt.Errorf("there is no cycle in %s", strings.Join(paths, ", "))
	case r.cycle != 0:
		return fmt.Errorf("cycle %d is not recorded: the last is %d", r.cycle, last.Recorded.Number)
	case r.explain != "":
		return r.tell(last)
	}
	return r.sum(len(files))
}

// after compares a repeated cycle with its recording.
func (r *replay) after(x *recording.Moment) error {
	at := x.Recorded.Now
	if r.cycles++; r.cycles == 1 {
		r.first = at
	}
	r.last = at
	r.binds += len(x.Recorded.Binds)
	r.evicts += len(x.Recorded.Evicts)
	if !x.Same() {
		if r.otherwise++; r.otherwise <= mostOtherwise {
			again, err := x.Again()
			if err != nil {
				return fmt.Errorf("cycle %d: %w", x.Recorded.Number, err)
			}
			say(r.out, "cycle %d (%s) is decided otherwise\n%s", x.Recorded.Number, at.UTC().Format(time.RFC3339Nano),
				otherwise(becomes(x.Recorded), becomes(again)))
		}
	}
	if r.cycle == 0 || x.Recorded.Number != r.cycle {
		return nil
	}
	if err := r.tell(x); err != nil {
		return err
	}
	return recording.ErrStop
}

// tell explains the decision of a cycle.
func (r *replay) tell(x *recording.Moment) error {
	text, err := explain.New(x.Session, x.Plan).Named(r.explain)
	if err != nil {
		return fmt.Errorf("in cycle %d: %w", x.Recorded.Number, err)
	}
	r.told = true
	say(r.out, "cycle %d, %s\n%s", x.Recorded.Number, x.Recorded.Now.UTC().Format(time.RFC3339Nano), text)
	return nil
}

// mostOtherwise is the maximum number of differing cycles that are shown, and of differing pods in each.
const mostOtherwise = 10

func (r *replay) sum(files int) error {
	say(r.out, "%s in %s, %s to %s: %s, %s\n", explain.Count(r.cycles, "cycle"), explain.Count(files, "file"),
		r.first.UTC().Format(time.RFC3339), r.last.UTC().Format(time.RFC3339), explain.Count(r.binds, "binding"),
		explain.Count(r.evicts, "eviction"))
	if r.otherwise == 0 {
		say(r.out, "each is decided as it was, byte for byte\n")
		return nil
	}
	say(r.out, "%d of them are decided otherwise than they were\n", r.otherwise)
	return exitError{exitMistakes, nil}
}

// otherwise describes how a repeated cycle differs: which pods, or that only their texts differ.
func otherwise(then, now map[string]string) string {
	all := maps.Clone(then)
	maps.Copy(all, now)
	rows := [][]string{{"", "THEN", "NOW"}}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if then[name] == now[name] {
			continue
		}
		if len(rows) > mostOtherwise {
			rows = append(rows, []string{"and more"})
			break
		}
		rows = append(rows, []string{name, orNothing(then[name]), orNothing(now[name])})
	}
	if len(rows) == 1 {
		return "  the same is decided; reasons, scores or statuses differ\n"
	}
	return explain.Columns("  ", rows)
}

func orNothing(text string) string {
	if text == "" {
		return "nothing"
	}
	return text
}

// becomes returns the decisions of a cycle for jobs and pods, in words.
func becomes(c *recording.Cycle) map[string]string {
	out := map[string]string{}
	for _, job := range c.Admits {
		out["job "+job] = "admitted"
	}
	for _, b := range c.Binds {
		out["pod "+b.Task] = "bound to " + b.Node
	}
	for _, e := range c.Evicts {
		out["pod "+e.Task] = "evicted from " + e.Node
	}
	return out
}
