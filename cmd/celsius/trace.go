package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/celsius-scheduler/celsius/engine/sim/openb"
)

const traceHelp = `Openb replays the Alibaba GPU cluster trace of 2023 (1213 nodes, 6212 GPUs)
under scheduling policies: pods arrive in an order that the seed draws, each is
placed or dropped for good, until 130 % of the GPUs have been asked for. It
prints how much of the GPUs is allocated when 100 and 130 % have arrived.

A policy that carries the annotation celsius.dev/published, such as 05-BestFit,
is compared with the curves that were published under that name
(expected-allocation.csv in DIR): seed by seed and percent by percent, or as
the annotation celsius.dev/compared says: "mean" compares the mean over the
seeds, "ahead" wants more to be allocated than was, from 80 % on.

With --mix the pods of a workload come in other parts: "cpu" of all pods ask for
no GPU, "share" and "multi" of all GPUs that are asked for are asked for by pods
with a part of one and with several, "models" of the pods with GPUs are bound to
models. Nothing was published of such lists; on them a policy that makes the
published runs, such as fgd.yaml, stands for these if --policy names it too.

Exit codes:
  0  the runs were made; with --verify, they compare as they must
  1  a file has mistakes, a run failed, or with --verify runs differ
  2  the command line is wrong
  3  skipped: the trace is not at DIR`

const traceExamples = `  celsius simulate trace openb --trace DIR --verify
  celsius simulate trace openb --trace DIR --policy mine.yaml \
    --workload default --seeds 1-3 --each --svg mine.svg
  celsius simulate trace openb --trace DIR --policy mine.yaml \
    --policy fgd.yaml --workload default --mix multi=50 --mix cpu=25`

// verifiedPolicies returns the policies that are replayed without --policy. Paths are relative to the working directory.
func verifiedPolicies() []string {
	var out []string
	for _, name := range []string{"random", "dotprod", "gpuclustering", "gpupacking", "bestfit", "fgd", "celsius"} {
		out = append(out, filepath.Join("samples", "policies", "openb", name+".yaml"))
	}
	return out
}

func newTraceCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "trace",
		Short: "Replay recorded clusters under a policy",
		Args:  unknownCommand,
		RunE:  func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newOpenbCommand())
	return c
}

// openbRun contains the flags of simulate trace openb.
type openbRun struct {
	dir       string
	policies  []string
	workloads []string
	mixes     []string
	seeds     string
	csv, svg  string
	each      bool
	verify    bool
}

func newOpenbCommand() *cobra.Command {
	var r openbRun
	c := &cobra.Command{
		Use:     "openb --trace DIR",
		Short:   "Replay the openb GPU trace and compare with its published results",
		Long:    traceHelp,
		Example: traceExamples,
		Args:    noArguments,
		RunE:    r.run,
	}
	f := c.Flags()
	f.StringVar(&r.dir, "trace", "", "the folder with the trace's CSV files")
	f.StringSliceVar(&r.policies, "policy", nil,
		"a file with one SchedulingPolicy; may be repeated (default those below samples/policies/openb)")
	f.StringSliceVar(&r.workloads, "workload", nil, "a pod list, such as default or cpu100; may be repeated (default all that DIR has)")
	f.StringArrayVar(&r.mixes, "mix", nil, "replay another list of the workload's pods, of which so many percent are of a part, such as "+
		"multi=50 or cpu=25,share=60; may be repeated")
	f.StringVar(&r.seeds, "seeds", "42-51", "the runs' seeds: numbers and ranges, with commas")
	f.StringVar(&r.csv, "csv", "", "write the curves to this file, in the layout of the published ones")
	f.StringVar(&r.svg, "svg", "", "draw the mean curves, the published ones dotted, into this file")
	f.BoolVar(&r.each, "each", false, "print a line for each run before the means")
	f.BoolVar(&r.verify, "verify", false, "fail unless the runs compare with the published ones as they must")
	return c
}

func noArguments(c *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usageError("%s takes no arguments, found %q", c.CommandPath(), args[0])
	}
	return nil
}

func (r *openbRun) run(c *cobra.Command, _ []string) error {
	if r.dir == "" {
		return usageError("which trace? name its folder with --trace DIR")
	}
	seeds, err := parseSeeds(r.seeds)
	if err != nil {
		return err
	}
	mixes, err := parseMixes(r.mixes)
	if err != nil {
		return err
	}
	if _, err := os.Stat(r.dir); errors.Is(err, fs.ErrNotExist) {
		return skipped(c.OutOrStdout(), r.dir)
	}
	policies, err := r.heuristics()
	if err != nil {
		return err
	}
	traces, err := r.traces(mixes)
	if err != nil {
		return err
	}
	published, err := openb.LoadPublished(r.dir)
	if err != nil {
		return err
	}
	// Runs leave much garbage. Enough memory is available for it.
	defer debug.SetGCPercent(debug.SetGCPercent(garbagePercent))
	results, err := openb.RunAll(traces, policies, seeds)
	if err != nil {
		return err
	}
	published.Stand(results)
	summaries, err := openb.Summarise(results, published)
	if err != nil {
		return err
	}
	if err := r.write(results, summaries); err != nil {
		return err
	}
	if err := openb.WriteTable(c.OutOrStdout(), summaries, published, r.each); err != nil {
		return err
	}
	if !r.verify {
		return nil
	}
	line, ok := openb.Verdict(summaries)
	if _, err := fmt.Fprintln(c.OutOrStdout(), line); err != nil {
		return err
	}
	if !ok {
		return exitError{exitMistakes, nil}
	}
	return nil
}

func parseMixes(texts []string) ([]openb.Mix, error) {
	var out []openb.Mix
	for _, text := range texts {
		mix, err := openb.ParseMix(text)
		if err != nil {
			return nil, usageError("--mix %v", err)
		}
		out = append(out, mix)
	}
	return out, nil
}

// traces reads the cluster with each workload, or with each mix of each workload.
func (r *openbRun) traces(mixes []openb.Mix) ([]*openb.Trace, error) {
	names := r.workloads
	if len(names) == 0 {
		var err error
		if names, err = openb.Workloads(r.dir); err != nil {
			return nil, err
		}
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("%s holds no pod list", r.dir)
	}
	if len(names)*max(1, len(mixes)) > 1 && r.svg != "" {
		return nil, usageError("--svg draws one list of pods: name it with --workload, such as %s, and at most one --mix", names[0])
	}
	var out []*openb.Trace
	for _, name := range names {
		t, err := openb.Load(r.dir, name)
		if err != nil {
			return nil, err
		}
		if len(mixes) == 0 {
			out = append(out, t)
		}
		for _, mix := range mixes {
			mixed, err := t.Mixed(mix)
			if err != nil {
				return nil, err
			}
			out = append(out, mixed)
		}
	}
	return out, nil
}

// heuristics reads the policies, and rejects a policy that --verify cannot compare.
func (r *openbRun) heuristics() ([]*openb.Heuristic, error) {
	files := r.policies
	if len(files) == 0 {
		files = verifiedPolicies()
	}
	var out []*openb.Heuristic
	var failures []error
	for _, file := range files {
		data, err := os.ReadFile(file)
		if errors.Is(err, fs.ErrNotExist) && len(r.policies) == 0 {
			return nil, usageError("without --policy, %s is wanted, and it is not there: run this in a checkout, or name a policy", file)
		}
		if err != nil {
			failures = append(failures, err)
			continue
		}
		h, err := openb.NewHeuristic(file, data)
		if err == nil && r.verify && h.Published == "" {
			err = fmt.Errorf("%s: --verify wants the annotation %s on policy %s, such as 05-BestFit", file, openb.PublishedAnnotation, h.Name)
		}
		out, failures = append(out, h), append(failures, err)
	}
	return out, errors.Join(failures...)
}

// write writes the requested files.
func (r *openbRun) write(results []*openb.Result, summaries []*openb.Summary) error {
	for _, f := range []struct {
		path  string
		write func(io.Writer) error
	}{
		{r.csv, func(w io.Writer) error { return openb.WriteCSV(w, results) }},
		{r.svg, func(w io.Writer) error { return openb.WriteSVG(w, summaries) }},
	} {
		if f.path == "" {
			continue
		}
		out, err := os.Create(f.path)
		if err != nil {
			return err
		}
		if err := errors.Join(f.write(out), out.Close()); err != nil {
			return fmt.Errorf("write %s: %w", f.path, err)
		}
	}
	return nil
}

// garbagePercent is the amount of garbage relative to live memory before a collection, in percent.
const garbagePercent = 400

// mostSeeds limits a mistyped range.
const mostSeeds = 1000

// parseSeeds parses numbers and ranges: "42-51", "1,5,7-9".
func parseSeeds(text string) ([]int64, error) {
	var out []int64
	for part := range strings.SplitSeq(text, ",") {
		first, last, isRange := strings.Cut(strings.TrimSpace(part), "-")
		if !isRange {
			last = first
		}
		from, err := strconv.ParseInt(first, 10, 32)
		to, err2 := strconv.ParseInt(last, 10, 32)
		if err != nil || err2 != nil || from > to || int64(len(out))+to-from >= mostSeeds {
			return nil, usageError("--seeds %s: write numbers and ranges with commas between them, such as 42-51, at most %d of them",
				text, mostSeeds)
		}
		for seed := from; seed <= to; seed++ {
			out = append(out, seed)
		}
	}
	return out, nil
}

// skipped reports that the input of a command is missing. This is never treated as success.
func skipped(out io.Writer, path string) error {
	_, err := fmt.Fprintf(out, "SKIPPED: no corpus at %s\n", path)
	return exitError{exitSkipped, err}
}
