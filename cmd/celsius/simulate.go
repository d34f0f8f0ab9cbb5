package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/celsius-scheduler/celsius/engine"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/engine/proof"
	"github.com/celsius-scheduler/celsius/engine/sim"
	"github.com/celsius-scheduler/celsius/engine/sim/choose"
	"github.com/celsius-scheduler/celsius/engine/sim/manifest"
	"github.com/celsius-scheduler/celsius/engine/volume"
	"github.com/celsius-scheduler/celsius/rules/source"
)

const simulateHelp = `Simulate shows what the scheduler would decide, and why, without a cluster.

FILES are YAML or JSON files, folders of them, or - for standard input. They
hold what kubectl prints (kubectl get
nodes,pods,vcjob,podgroups,queues,priorityclasses,pdb,spol -o yaml), manifests
as you would apply them (a Job of batch.volcano.sh stands for its PodGroup, and
for its pods once it was admitted), or the short format:

  apiVersion: sim.celsius.dev/v1alpha1
  kind: World
  nodes:
  - {name: "n[1-3]", cpu: 4, memory: 8Gi}
  jobs:
  - {name: train, replicas: 4, cpu: 2}

Known kinds are Node, Pod, PodGroup, Queue, PriorityClass, Namespace,
SchedulingPolicy, Job, JobPlugin, World, and lists of them. Pods of other
schedulers only use resources. The queues root and default are always there.

Cycles are a second apart. With --until a clock runs instead: it goes from event
to event, as pods end that say how long they run (run: 30s in the short format,
or the annotation celsius.dev/sim: '{run: 30s}' on a pod of a manifest) and jobs
come (comes: 1h). The annotation has no effect on objects that were read from a
cluster, unless --obey-sim-annotations is set.

A FILE.txtar is a scenario: a script with its files and what it must print. It
is run, and what differs is shown.

Exit codes:
  0  the simulation ran, even if pods wait
  1  the input has mistakes; the first 1,000 are printed. With --strict,
     warnings are mistakes, and so are rows that erred. With --verify, evictions
     are that do not hold; the report is printed all the same
  2  the command line is wrong
  3  skipped: what it should run on is not there
  4  a scenario printed something else than it expects`

const simulateExamples = `  celsius simulate cluster.yaml jobs/
  celsius simulate --until idle -o html --to page.html cluster.yaml
  celsius simulate --watch cluster.yaml policy.yaml
  celsius simulate --policy binpack.yaml --explain train-0 cluster.yaml
  celsius simulate --what-if job.yaml cluster.yaml
  kubectl get nodes,pods,vcjob,podgroups,queues,priorityclasses,pdb,spol -A \
    -o yaml | celsius simulate -
  celsius simulate samples/scenarios/*.txtar`

// asked contains the questions to answer after the last cycle, instead of a report.
type asked struct{ explain, whatIf string }

// simulation contains the flags of simulate.
type simulation struct {
	policy     string
	cycles     int
	until      string
	every      time.Duration
	now        string
	seed       int64
	schedulers []string
	output     string
	asked
	to       string
	watching bool
	strict   bool
	update   bool
	verify   bool
	obeySim  bool
	unproven []string // the violations that --verify found
	spool    *os.File // the text of the last run's cycles; nil: it is in memory
}

func newSimulateCommand() *cobra.Command {
	var s simulation
	c := &cobra.Command{
		Use:     "simulate FILES...",
		Short:   "Show what would be decided, and why, from files",
		Long:    simulateHelp,
		Example: simulateExamples,
		RunE:    s.run,
	}
	f := c.Flags()
	f.StringVar(&s.policy, "policy", "",
		"the SchedulingPolicy: a file, the name of one among FILES, or default; without it the one among FILES, else default")
	f.IntVar(&s.cycles, "cycles", 1, "how many cycles to run, one second apart; with --until, the most (default 10000)")
	f.StringVar(&s.until, "until", "",
		"run by the clock, from event to event, for a duration (8h), to a time, or until nothing happens any more (idle)")
	f.DurationVar(&s.every, "every", 0, "with --until, the most time between two cycles while something waits (default 1m where the policy "+
		"reads the time, else only events matter)")
	f.StringVar(&s.now, "now", "", "the time of the first cycle, as 2026-01-31T12:00:00Z (default the clock)")
	f.Int64Var(&s.seed, "seed", 0, "permute nodes that are equally good by this seed; 0 takes them by name")
	f.StringSliceVar(&s.schedulers, "scheduler-name", nil, "schedule pods of this scheduler name; may be repeated (default celsius,volcano)")
	f.StringVarP(&s.output, "output", "o", "table", "one of "+strings.Join(sim.Formats(), ", "))
	f.StringVar(&s.explain, "explain", "", "explain what was decided about the job, pod, queue or node NAME, or KIND/NAME "+
		"if several have the name; all: about every job")
	f.StringVar(&s.whatIf, "what-if", "", "a file: say what would be decided after the last cycle if what it holds came")
	f.StringVar(&s.to, "to", "", "write the report to this file instead of standard output")
	f.BoolVar(&s.watching, "watch", false, "simulate again whenever a file changes, and print the decisions that differ")
	f.BoolVar(&s.strict, "strict", false, "take warnings about the input, and rows of the policy that err, for mistakes")
	f.BoolVar(&s.verify, "verify", false, "check each eviction after it is decided: it frees the resources, it is necessary, and "+
		"the rows permit it")
	f.BoolVar(&s.obeySim, "obey-sim-annotations", false,
		"apply the annotation celsius.dev/sim of objects that were read from a cluster, too; "+
			"every user of the cluster can write it")
	f.BoolVar(&s.update, "update", false, "rewrite what scenarios expect to what they printed")
	c.AddCommand(newTraceCommand(), newConformanceCommand())
	return c
}

func (s *simulation) run(c *cobra.Command, args []string) error {
	switch {
	case len(args) == 0:
		return usageError("simulate what? name files, folders or -; see %s --help", c.CommandPath())
	case s.cycles < 1:
		return usageError("--cycles must be at least 1")
	case !slices.Contains(sim.Formats(), s.output):
		return usageError("--output must be one of %s", strings.Join(sim.Formats(), ", "))
	}
	scenarios := slices.DeleteFunc(slices.Clone(args), func(a string) bool { return filepath.Ext(a) != ".txtar" })
	if len(scenarios) > 0 && (s.watching || s.to != "" || s.until != "") {
		return usageError("--watch, --to and --until are not for scenarios: a scenario says itself what it does")
	}
	if len(scenarios) == len(args) {
		return s.scenarios(c, scenarios)
	}
	if len(scenarios) > 0 {
		return usageError("scenarios bring their own files: run %s apart", scenarios[0])
	}
	if s.update {
		return usageError("--update is for scenarios")
	}
	return s.simulate(c, args)
}

// simulate runs cycles over files and prints the report.
func (s *simulation) simulate(c *cobra.Command, args []string) error {
	defer s.dropSpool()
	now := time.Now().UTC() // the only place where the clock is read
	if s.now != "" {
		var err error
		if now, err = time.Parse(time.RFC3339, s.now); err != nil {
			return usageError("--now %s is no time; write it as 2026-01-31T12:00:00Z", s.now)
		}
	}
	if s.watching {
		switch {
		case s.verify:
			return usageError("--verify is not for --watch: it ends with what it found")
		case slices.Contains(args, "-"):
			return usageError("--watch is for files and folders, and standard input is neither")
		case s.output != "table" && s.output != "wide" && s.to == "":
			return usageError("--watch prints what changes; have the report as %s written to a file: add --to", s.output)
		}
		return s.watch(c, args, now)
	}
	report, chosen, err := s.once(c, args, now)
	if err != nil {
		return err
	}
	if err := s.print(c.OutOrStdout(), report, chosen); err != nil {
		return err
	}
	if erred := report.Erred(); s.strict && erred != "" {
		return exitError{exitMistakes, fmt.Errorf("rows of the policy erred:\n%s", erred)}
	}
	return s.proven()
}

// decide returns the function that decides, or nil for the default. With --verify it checks each plan, and records violations with the
// prefix where.
func (s *simulation) decide(where string) engine.DecideFunc {
	if !s.verify {
		return nil
	}
	return new(proof.Run).Checked(new(engine.Decider).Decide, func(plan *model.Plan, wrong []proof.Violation) {
		for _, v := range wrong {
			s.unproven = append(s.unproven, where+plan.Now.Format(time.RFC3339)+" "+v.String())
		}
	})
}

// world returns the options of the simulated world. Violations that --verify finds get the prefix where.
func (s *simulation) world(now time.Time, where string) sim.Options {
	return sim.Options{
		Now: now, Seed: s.seed, SchedulerNames: s.schedulers, Decide: s.decide(where), Volumes: volume.New,
		ObeySimAnnotations: s.obeySim,
	}
}

// proven returns an error if --verify found a violation.
func (s *simulation) proven() error {
	if len(s.unproven) == 0 {
		return nil
	}
	return exitError{exitMistakes, fmt.Errorf("evictions that do not hold:\n%s", strings.Join(s.unproven, "\n"))}
}

// once reads the files and runs the cycles.
func (s *simulation) once(c *cobra.Command, args []string, now time.Time) (*sim.Report, choose.Chosen, error) {
	sources, err := manifest.Read(c.InOrStdin(), args...)
	if err != nil {
		return nil, choose.Chosen{}, err
	}
	w := sim.NewWorld(s.world(now, ""))
	policies, issues := w.Load(sources...)
	if err := s.vet(c.ErrOrStderr(), issues); err != nil {
		return nil, choose.Chosen{}, err
	}
	chosen, issues, err := s.choose(policies)
	if err != nil {
		return nil, choose.Chosen{}, err
	}
	if err := s.vet(c.ErrOrStderr(), issues); err != nil {
		return nil, choose.Chosen{}, err
	}
	w.Policy = chosen.Policy
	o, err := s.span(c, now)
	if err != nil {
		return nil, choose.Chosen{}, err
	}
	if o.Recorder, err = s.recorder(); err != nil {
		return nil, choose.Chosen{}, err
	}
	report, err := w.RunFor(o)
	return report, chosen, err
}

// recorder returns what records the cycles of a run. The text of many cycles can be larger than the memory of the machine. So recorder
// stores it in a temporary file, if one can be created.
func (s *simulation) recorder() (sim.Recorder, error) {
	s.dropSpool()
	if s.explain != "" || s.whatIf != "" {
		return sim.Discard(), nil
	}
	if s.until != "" || s.cycles > 1 {
		if file, err := os.CreateTemp("", "celsius-simulate-"); err == nil {
			s.spool = file
			_ = os.Remove(file.Name())             // a program that is stopped leaves no file; systems that do not allow this remove the file later
			return sim.NewRecorder(s.output, file) //nolint:wrapcheck // it names the format
		}
	}
	return sim.NewRecorder(s.output, nil) //nolint:wrapcheck // it names the format
}

// dropSpool removes the temporary file of the last run.
func (s *simulation) dropSpool() {
	if s.spool != nil {
		_ = s.spool.Close()
		_ = os.Remove(s.spool.Name())
		s.spool = nil
	}
}

// span returns the length of the run that the flags request.
func (s *simulation) span(c *cobra.Command, now time.Time) (sim.RunOptions, error) {
	o := sim.RunOptions{Cycles: s.cycles, Every: s.every}
	if s.until != "" && !c.Flags().Changed("cycles") {
		o.Cycles = 0
	}
	switch {
	case s.every < 0:
		return o, usageError("--every must not be negative")
	case s.until == "" && s.every > 0:
		return o, usageError("--every is for a run by the clock: add --until")
	case s.until == "":
		return o, nil
	}
	if err := o.SetUntil(s.until, now); err != nil {
		return o, usageError("--until %w", err)
	}
	return o, nil
}

// vet prints warnings. It returns an error if there is a mistake or, with --strict, a warning.
func (s *simulation) vet(errs io.Writer, issues source.Issues) error {
	if issues.Err() != nil || s.strict && len(issues) > 0 {
		return exitError{exitMistakes, issues}
	}
	sayIssues(errs, issues)
	return nil
}

// print writes the report, or an explanation, to the requested output.
func (s *simulation) print(out io.Writer, report *sim.Report, chosen choose.Chosen) error {
	text, err := s.text(report, chosen)
	if err != nil {
		return err
	}
	if s.to == "" {
		return s.write(out, text, report)
	}
	file, err := os.OpenFile(s.to, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err == nil {
		err = errors.Join(s.write(file, text, report), file.Close())
	}
	if err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	return nil
}

// write writes a text, and the report unless the text is the answer to a question.
func (s *simulation) write(out io.Writer, text string, report *sim.Report) error {
	_, err := io.WriteString(out, text)
	if err == nil && s.explain == "" && s.whatIf == "" {
		err = report.WriteRecorded(out)
	}
	return err
}

// text returns the answer to a question, or the text before the report.
func (s *simulation) text(report *sim.Report, chosen choose.Chosen) (string, error) {
	switch {
	case s.explain != "":
		return report.Explain(s.explain)
	case s.whatIf != "":
		sources, err := manifest.Read(nil, s.whatIf)
		if err != nil {
			return "", err
		}
		return report.WhatIf(sources...)
	case s.output == "table" || s.output == "wide":
		return chosen.Text(), nil
	}
	return "", nil
}

// choose returns the policy that --policy names: one among the files by its name, the embedded default, or a file. Without the flag,
// choose.Policy chooses.
func (s *simulation) choose(policies []manifest.Uncompiled) (choose.Chosen, source.Issues, error) {
	named, issues, err := s.named(policies)
	if err != nil || issues.Err() != nil {
		return choose.Chosen{}, issues, err
	}
	chosen, more, err := choose.Policy(policies, named)
	if err != nil {
		return chosen, nil, usageError("%w; choose one with --policy", err)
	}
	return chosen, append(issues, more...), nil
}

// named returns the policy that --policy names, or nil without the flag.
func (s *simulation) named(policies []manifest.Uncompiled) (*manifest.Uncompiled, source.Issues, error) {
	i := slices.IndexFunc(policies, func(p manifest.Uncompiled) bool { return p.Name == s.policy })
	switch {
	case s.policy == "":
		return nil, nil, nil
	case i >= 0:
		return &policies[i], nil, nil
	case s.policy == "default":
		doc, issues := policy.Embedded(s.policy)
		return &manifest.Uncompiled{Name: s.policy, Doc: doc}, issues, nil
	}
	data, err := os.ReadFile(s.policy)
	if err != nil {
		return nil, nil, usageError("--policy %s is neither a policy among the files (%s), nor default, nor a file: %w",
			s.policy, strings.Join(append(names(policies), "there are no others"), ", "), err)
	}
	objects, issues := manifest.Load(manifest.Options{}, manifest.Source{Name: s.policy, Data: data})
	if issues.Err() == nil && len(objects.Policies) != 1 {
		return nil, nil, usageError("--policy %s must hold one SchedulingPolicy, found %d", s.policy, len(objects.Policies))
	}
	if issues.Err() != nil {
		return nil, issues, nil
	}
	return &objects.Policies[0], issues, nil
}

func names(policies []manifest.Uncompiled) []string {
	var out []string
	for _, p := range policies {
		out = append(out, p.Name)
	}
	return out
}

// scenarios runs several scenarios and prints the differences.
func (s *simulation) scenarios(c *cobra.Command, files []string) error {
	failed, differ := 0, 0
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("read scenario: %w", err)
		}
		o := sim.ScenarioOptions{Update: s.update, World: s.world(time.Time{}, file+" ")}
		r, err := sim.RunScenario(file, data, o)
		switch {
		case err != nil:
			failed++
			say(c.OutOrStdout(), "FAIL  %s\n", file)
			exitCode(err, c.ErrOrStderr())
			continue
		case r.Diff != "":
			differ++
			say(c.OutOrStdout(), "DIFF  %s\n%s", file, r.Diff)
			continue
		case s.update && string(r.Archive) != string(data):
			if err := os.WriteFile(file, r.Archive, 0o644); err != nil {
				return fmt.Errorf("update scenario: %w", err)
			}
		}
		say(c.OutOrStdout(), "ok    %s  %s\n", file, r.Heading)
	}
	switch {
	case failed > 0:
		return exitError{exitMistakes, fmt.Errorf("%d of %d scenarios could not be run", failed, len(files))}
	case differ > 0:
		return exitError{exitDiffers, fmt.Errorf("%d of %d scenarios differ", differ, len(files))}
	}
	return s.proven()
}
