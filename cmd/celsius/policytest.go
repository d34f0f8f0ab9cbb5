package main

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/celsius-scheduler/celsius/engine"
	"github.com/celsius-scheduler/celsius/engine/explain"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/engine/policy/coverage"
	"github.com/celsius-scheduler/celsius/engine/reference"
	"github.com/celsius-scheduler/celsius/engine/report"
	"github.com/celsius-scheduler/celsius/engine/sim"
	"github.com/celsius-scheduler/celsius/engine/sim/manifest"
	"github.com/celsius-scheduler/celsius/engine/sim/textdiff"
	"github.com/celsius-scheduler/celsius/engine/volume"
	"github.com/celsius-scheduler/celsius/rules/source"
)

const policyTestHelp = `Test runs scenarios (FILE.txtar, or all below a folder): scripts with the
objects that they load and what they expect to be decided, by a clock of their
own. A scenario brings its policy as a section, or names one of --policy by its
name; where it names none, the only one of --policy decides, else default.

A scenario fails where something else is printed than it expects, where it
cannot be run, and where a row errs and none of its lines expects that. Each
scenario is decided a second time by the definition, a plain implementation that
keeps nothing and reuses nothing; a difference fails the scenario.

Below the scenarios stands what of the policies' own rows was asked: each row,
and each condition of it (what && and || join, what stands before ?, a whole
that is true or false) both as true and as false. What never was is listed with
its place. Rows of shipped tables count with --shipped.

Exit codes:
  0  all scenarios passed, and --min-coverage is reached
  1  a scenario failed, or less was covered
  2  the command line is wrong, or a file cannot be read, or a policy of
     --policy has mistakes`

// policyTest contains the flags of policy test.
type policyTest struct {
	policies            []string
	coverageTo, junitTo string
	least               float64
	shipped, update     bool

	given     map[string]*source.Document
	otherwise string
	recorder  coverage.Recorder
	decide    engine.DecideFunc // replaces the reference implementation in tests; nil: the reference implementation
}

func newPolicyTestCommand() *cobra.Command {
	var t policyTest
	c := &cobra.Command{
		Use:   "test SCENARIO.txtar|DIR...",
		Short: "Run scenarios, and say which rows they never asked",
		Long:  policyTestHelp,
		Example: `  celsius policy test --policy policy.yaml tests/
  celsius policy test --policy policies/ --min-coverage 80 tests/`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usageError("name at least one scenario, or a folder of them; see %s --help", c.CommandPath())
			}
			return nil
		},
		RunE: t.run,
	}
	f := c.Flags()
	f.StringSliceVar(&t.policies, "policy", nil, "a file of SchedulingPolicies that scenarios may name, or a folder of such; may be repeated")
	f.StringVar(&t.coverageTo, "coverage", "", "write what was asked to this file, as JSON")
	f.Float64Var(&t.least, "min-coverage", 0, "fail where less than so many percent was covered")
	f.StringVar(&t.junitTo, "junit", "", "write the results to this file, as JUnit XML")
	f.BoolVar(&t.shipped, "shipped", false, "count the rows of shipped tables, too")
	f.BoolVar(&t.update, "update", false, "rewrite what scenarios expect to what they printed")
	return c
}

func (t *policyTest) run(c *cobra.Command, args []string) error {
	if t.least < 0 || t.least > 100 {
		return usageError("--min-coverage must be from 0 to 100")
	}
	files, err := scenariosIn(args)
	if err != nil {
		return err
	}
	if err := t.readPolicies(); err != nil {
		return err
	}
	var results []tested
	for _, file := range files {
		r, err := t.one(file)
		if err != nil {
			return err
		}
		results = append(results, r)
		say(c.OutOrStdout(), "%s", r.text())
	}
	failed := len(slices.DeleteFunc(slices.Clone(results), func(r tested) bool { return r.failure == "" }))
	say(c.OutOrStdout(), "\n%s: %d passed, %d failed\n", explain.Count(len(results), "scenario"), len(results)-failed, failed)
	report := t.recorder.Report(func(p coverage.Place) bool { return t.shipped || !strings.HasPrefix(p.File, policy.ShippedFolder) })
	say(c.OutOrStdout(), "\n%s", coverageText(report))
	if err := t.write(report, results); err != nil {
		return err
	}
	switch {
	case failed > 0:
		return exitError{exitMistakes, fmt.Errorf("%d of %s failed", failed, explain.Count(len(results), "scenario"))}
	case 100*float64(report.Seen) < t.least*float64(report.Of):
		return exitError{exitMistakes, fmt.Errorf("%.1f %% is covered, less than the %g %% of --min-coverage", report.Percent, t.least)}
	}
	return nil
}

// scenariosIn lists the scenario files among the arguments, and below the folders among them.
func scenariosIn(args []string) ([]string, error) {
	var out []string
	for _, arg := range args {
		before := len(out)
		err := filepath.WalkDir(arg, func(path string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() && filepath.Ext(path) == ".txtar" {
				out = append(out, path)
			}
			return err
		})
		switch {
		case err != nil:
			return nil, usageError("%w", err)
		case len(out) == before:
			return nil, usageError("there is no scenario, a file that ends with .txtar, in %s", arg)
		}
	}
	return out, nil
}

// readPolicies reads and compiles the policies of --policy.
func (t *policyTest) readPolicies() error {
	t.given = map[string]*source.Document{}
	sources, err := manifest.Read(nil, t.policies...)
	if err != nil {
		return usageError("--policy: %w", err)
	}
	objects, issues := manifest.Load(manifest.Options{}, sources...)
	for _, p := range objects.Policies {
		if other := t.given[p.Name]; other != nil {
			return usageError("--policy: two policies are called %s, in %s and in %s", p.Name, other.File, p.Doc.File)
		}
		t.given[p.Name], t.otherwise = p.Doc, p.Name
		_, more := t.recorder.Load(p.Doc)
		issues = append(issues, more...)
	}
	switch {
	case issues.Err() != nil:
		return exitError{exitUsage, issues.Errors()}
	case len(t.policies) > 0 && len(t.given) == 0:
		return usageError("--policy: there is no SchedulingPolicy in %s", strings.Join(t.policies, ", "))
	case len(t.given) > 1:
		t.otherwise = ""
	}
	return nil
}

// tested is the result of one scenario.
type tested struct {
	file, heading string
	failure       string // "": it passed
	took          time.Duration
}

// one runs a scenario in the same way as simulate. It runs the scenario again with the reference implementation, and records which rows
// that evaluates.
func (t *policyTest) one(file string) (tested, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return tested{}, usageError("%w", err)
	}
	start := time.Now()
	o := sim.ScenarioOptions{
		Update: t.update, Policies: t.given, Otherwise: t.otherwise, World: sim.Options{Volumes: volume.New},
	}
	r, err := sim.RunScenario(file, data, o)
	out := tested{file: file, heading: r.Heading, took: time.Since(start), failure: failureOf(r, err)}
	if t.update && out.failure == "" && string(r.Archive) != string(data) {
		if err := os.WriteFile(file, r.Archive, 0o644); err != nil {
			return tested{}, fmt.Errorf("update scenario: %w", err)
		}
	}
	o.Update, o.Compile, o.World.Decide = false, t.recorder.Load, t.definition()
	plain, err := sim.RunScenario(file, data, o)
	if out.failure == "" {
		if err != nil {
			out.failure = faultOfCelsius + err.Error()
			return out, nil //nolint:nilerr // it is the failure of the scenario
		}
		out.failure, err = differs(r.Plans, plain.Plans)
		return out, err
	}
	return out, nil
}

// faultOfCelsius begins the failure message of a scenario for which the scheduler and its reference implementation decide differently.
const faultOfCelsius = "the scheduler and its definition (a plain implementation) decide differently. " +
	"This is a fault of Celsius, not of the policy. " +
	"Report it with the scenario and the policy:\n"

// definition returns the reference implementation of a cycle, which evaluates each expression every time.
func (t *policyTest) definition() engine.DecideFunc {
	if t.decide != nil {
		return t.decide
	}
	return new(reference.Run).Decide
}

// differs states how the plans of the reference implementation differ from those of a passed run. It returns "" if they are the same. Plans
// are not compared if a row had too few steps left, because the two implementations count steps differently.
func differs(plans, plain []*model.Plan) (failure string, failed error) {
	for i := range max(len(plans), len(plain)) {
		if i >= len(plans) || i >= len(plain) {
			return fmt.Sprintf("%s%d cycles, but %d by the definition", faultOfCelsius, len(plans), len(plain)), nil
		}
		if report.OutOfSteps(plans[i]) || report.OutOfSteps(plain[i]) {
			return "", nil
		}
		was, err := report.Written(plain[i])
		if err != nil {
			return "", err //nolint:wrapcheck // it states what it wrote
		}
		is, err := report.Written(plans[i])
		if err != nil {
			return "", err //nolint:wrapcheck // it states what it wrote
		}
		if was != is {
			return fmt.Sprintf("%scycle %d: - is the definition, + was decided\n%s", faultOfCelsius, i+1, textdiff.Lines(was, is)), nil
		}
	}
	return "", nil
}

// failureOf returns why a scenario failed, or "" if it passed.
func failureOf(r sim.ScenarioResult, err error) string {
	var issues source.Issues
	switch {
	case errors.As(err, &issues):
		return issues.Error()
	case err != nil:
		return err.Error()
	case r.Diff != "":
		return r.Diff
	case len(r.Unused) > 0:
		return "no line of the script names " + strings.Join(r.Unused, ", ")
	}
	for _, p := range r.Plans {
		for i := range p.Errors {
			e := &p.Errors[i]
			if row := model.RowName(e.Table, e.Rule) + " (" + e.Site + ") erred"; !strings.Contains(r.Output, row) {
				return fmt.Sprintf("%s %s for %s: %s; no line expects it", row, explain.Count(e.Count, "time"), e.Object, e.Text)
			}
		}
	}
	return ""
}

// text returns the line of a scenario, and below it the failure.
func (r *tested) text() string {
	if r.failure == "" {
		return clipped("ok    "+r.file+"  "+r.heading, helpColumns) + "\n"
	}
	lines := strings.Split(strings.TrimRight(r.failure, "\n"), "\n")
	return "FAIL  " + r.file + "\n      " + strings.Join(lines, "\n      ") + "\n"
}

// clipped shortens a text. most is the largest number of characters.
func clipped(text string, most int) string {
	if runes := []rune(text); len(runes) > most {
		text = string(runes[:most-1]) + "…"
	}
	return strings.TrimRight(text, " ")
}

// coverageText describes which conditions of the rows were evaluated, and which were not.
func coverageText(r *coverage.Report) string {
	if len(r.Rows) == 0 {
		return "coverage: the policies have no rows of their own; --shipped counts those of shipped tables\n"
	}
	rows := [][]string{{"ROW", "ASKED", "SEEN"}}
	var never []string
	for i := range r.Rows {
		row := &r.Rows[i]
		seen, of := row.Points()
		rows = append(rows, []string{
			clipped(row.Site+" "+row.Table+"/"+row.Name, helpColumns-20), fmt.Sprint(row.Asked), fmt.Sprintf("%d of %d", seen, of),
		})
		never = append(never, neverOf(row)...)
	}
	out := fmt.Sprintf("coverage: %.1f %%, %d of %d\n\n%s", r.Percent, r.Seen, r.Of, explain.Columns("", rows))
	if len(never) > 0 {
		out += "\n" + strings.Join(never, "\n") + "\n"
	}
	return out
}

// neverOf lists the outcomes of a row that never occurred.
func neverOf(row *coverage.Row) []string {
	line := func(at coverage.Place, what, how string) string {
		if one := at.String() + ": " + what + " " + how; len([]rune(one)) <= helpColumns {
			return one
		}
		return at.String() + ":\n  " + clipped(what, helpColumns-len(how)-3) + " " + how
	}
	if row.Asked == 0 {
		return []string{line(row.Place, row.Site+" "+row.Table+"/"+row.Name, "was never asked")}
	}
	var out []string
	for _, c := range row.Conditions {
		switch {
		case c.True+c.False == 0:
			out = append(out, line(c.Place, c.Text, "was never asked"))
		case c.True == 0:
			out = append(out, line(c.Place, c.Text, "was never true"))
		case c.False == 0:
			out = append(out, line(c.Place, c.Text, "was never false"))
		}
	}
	return out
}

// write writes the requested files.
func (t *policyTest) write(report *coverage.Report, results []tested) error {
	if t.coverageTo != "" {
		data, err := json.MarshalIndent(report, "", "  ")
		if err != nil {
			return fmt.Errorf("write the coverage: %w", err)
		}
		if err := os.WriteFile(t.coverageTo, append(data, '\n'), 0o644); err != nil {
			return usageError("--coverage: %w", err)
		}
	}
	if t.junitTo == "" {
		return nil
	}
	data, err := junitOf(results)
	if err != nil {
		return fmt.Errorf("write the results: %w", err)
	}
	if err := os.WriteFile(t.junitTo, data, 0o644); err != nil {
		return usageError("--junit: %w", err)
	}
	return nil
}

// junit contains the part of JUnit XML that GitLab and Jenkins read.
type junit struct {
	XMLName xml.Name   `xml:"testsuites"`
	Suite   junitSuite `xml:"testsuite"`
}

type junitSuite struct {
	Name     string      `xml:"name,attr"`
	Tests    int         `xml:"tests,attr"`
	Failures int         `xml:"failures,attr"`
	Seconds  string      `xml:"time,attr"`
	Cases    []junitCase `xml:"testcase"`
}

type junitCase struct {
	Name    string        `xml:"name,attr"`
	Class   string        `xml:"classname,attr"`
	File    string        `xml:"file,attr"`
	Seconds string        `xml:"time,attr"`
	Failure *junitFailure `xml:"failure"`
}

type junitFailure struct {
	Message string `xml:"message,attr"`
	Text    string `xml:",chardata"`
}

// junitOf returns the results as JUnit XML. Each scenario is a test case, and its folder is the class.
func junitOf(results []tested) ([]byte, error) {
	seconds := func(d time.Duration) string { return fmt.Sprintf("%.3f", d.Seconds()) }
	suite, whole := junitSuite{Name: "celsius policy test", Tests: len(results)}, time.Duration(0)
	for _, r := range results {
		whole += r.took
		c := junitCase{
			Name: strings.TrimSuffix(filepath.Base(r.file), ".txtar"), Class: filepath.ToSlash(filepath.Dir(r.file)), File: r.file,
			Seconds: seconds(r.took),
		}
		if r.failure != "" {
			suite.Failures++
			first, _, _ := strings.Cut(r.failure, "\n")
			c.Failure = &junitFailure{Message: first, Text: r.failure}
		}
		suite.Cases = append(suite.Cases, c)
	}
	suite.Seconds = seconds(whole)
	data, err := xml.MarshalIndent(junit{Suite: suite}, "", "  ")
	return []byte(xml.Header + string(data) + "\n"), err
}
