package sim

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/tools/txtar"

	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/engine/policy/join"
	"github.com/celsius-scheduler/celsius/engine/sim/manifest"
	"github.com/celsius-scheduler/celsius/engine/sim/textdiff"
	"github.com/celsius-scheduler/celsius/rules/source"
)

// ScenarioOptions configures a run of a scenario. The zero value runs it unchanged.
type ScenarioOptions struct {
	// Update replaces the sections that cmp names by the actual output, instead of comparing them.
	Update bool
	// World contains the initial options of the world. The verbs now and seed change them.
	World Options
	// Compile, if set, compiles the policies of the scenario instead of policy.Load.
	Compile func(*source.Document) (*policy.Policy, source.Issues)
	// Policies are additional policies that the scenario may name, by name.
	Policies map[string]*source.Document
	// Otherwise is the policy of a scenario that names none; "": default.
	Otherwise string
	// BeforeCycle and AfterCycle, if set, are called around each cycle. An error ends the scenario.
	BeforeCycle, AfterCycle func(*World) error
}

// ScenarioResult is the result of a scenario.
type ScenarioResult struct {
	// Archive is the scenario; with Update, the corrected one.
	Archive []byte
	// Diff is "" if the output was as expected.
	Diff string
	// Output is the whole output.
	Output string
	// Plans are the plans of the cycles, in order.
	Plans []*model.Plan
	// Unused are the sections that no verb named.
	Unused []string
	// Heading is the rule that the scenario demonstrates: the first lines of its comment.
	Heading string
}

// RunScenario runs a scenario. It is a txtar archive whose comment is a script with one verb per line and "#" before comments. Messages
// contain the name.
//
//	load SECTION...     take in objects
//	submit SECTION...   the same, later
//	policy NAME         use this policy: a section, one of the options, or "default", which is used if none is named
//	now TIME            set the clock, before anything else: 2026-01-31T12:00:00Z
//	seed N              the seed of ties, before anything else
//	cycle [N]           run cycles, one second apart, and print their decisions
//	until DURATION      run cycles by the clock, from event to event, and print those with news;
//	                    "idle": until nothing happens
//	advance DURATION    advance the clock
//	finish POD...       end the pods successfully; likewise fail, delete
//	cordon NODE...      mark nodes as unschedulable; drain deletes their pods as well
//	show WHAT           print queues, nodes, jobs, pods, timeline, volumes or asks
//	explain NAME        print what the last cycle decided about the jobs, pods, queues and nodes of a name, and why; "KIND/NAME": those of
//	                    a kind; "all": every job
//	ask SITE NAME...    print the answer of each row of a site: "ask predicates POD NODE", "ask jobOrder JOB OTHER",
//	                    "ask preemptable POD by POD", "ask evictable POD for JOB", "ask preemptive JOB cpu=2",
//	                    "ask victimOrder POD by POD"; without "by POD": an eviction without a preemptor
//	check SECTION       compile a policy, and print its mistakes
//	cmp SECTION         compare the output since the last cmp with this section
//
// Pods and nodes may be ranges: j-[0-3]. An error names the scenario and the line. Mistakes in loaded sections are source.Issues with their
// places in the archive.
func RunScenario(name string, data []byte, o ScenarioOptions) (ScenarioResult, error) {
	s := newScenario(name, data, o)
	err := s.run()
	r := ScenarioResult{Archive: data, Diff: s.diff.String(), Output: s.all.String(), Plans: s.plans, Heading: heading(s.archive.Comment)}
	if o.Update && err == nil {
		r.Archive = txtar.Format(s.archive)
	}
	for _, f := range s.archive.Files {
		if !s.used[f.Name] {
			r.Unused = append(r.Unused, f.Name)
		}
	}
	return r, err
}

// heading returns the first comment lines of a script, without "#".
func heading(script []byte) string {
	var out []string
	for line := range strings.Lines(string(script)) {
		text, ok := strings.CutPrefix(strings.TrimSpace(line), "#")
		if !ok {
			break
		}
		out = append(out, strings.TrimSpace(text))
	}
	return strings.Join(out, " ")
}

// scenario is one run of a scenario.
type scenario struct {
	ScenarioOptions
	name    string
	archive *txtar.Archive
	starts  map[string]int // the archive line on which a section's text starts
	used    map[string]bool
	world   *World  // nil until it is first used
	report  *Report // the report of the last cycle verb; nil before it
	out     strings.Builder
	all     strings.Builder
	diff    strings.Builder
	plans   []*model.Plan
	line    int
}

func newScenario(name string, data []byte, o ScenarioOptions) *scenario {
	s := &scenario{ScenarioOptions: o, name: name, archive: txtar.Parse(data), starts: map[string]int{}, used: map[string]bool{}}
	line := 1 + bytes.Count(s.archive.Comment, []byte("\n"))
	for _, f := range s.archive.Files {
		line++ // this skips the marker
		if _, twice := s.starts[f.Name]; !twice {
			s.starts[f.Name] = line
		}
		line += bytes.Count(f.Data, []byte("\n"))
	}
	return s
}

func (s *scenario) run() error {
	seen := map[string]bool{}
	for _, f := range s.archive.Files {
		if seen[f.Name] {
			return fmt.Errorf("%s: two sections are called %s", s.name, f.Name)
		}
		seen[f.Name] = true
	}
	for line := range strings.Lines(string(s.archive.Comment)) {
		s.line++
		line, _, _ = strings.Cut(line, "#")
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		if err := s.verb(words[0], words[1:]); err != nil {
			if issues := source.Issues(nil); errors.As(err, &issues) {
				return err // issues contain their own places
			}
			return fmt.Errorf("%s:%d: %s: %w", s.name, s.line, words[0], err)
		}
	}
	if s.out.Len() > 0 {
		return fmt.Errorf("%s:%d: what was printed last is not compared; end with cmp", s.name, s.line)
	}
	return nil
}

// verb runs one line.
func (s *scenario) verb(verb string, args []string) error {
	v, ok := s.verbs()[verb]
	if !ok {
		hint := ""
		if near := nearest(verb, sortedKeys(s.verbs())); near != "" {
			hint = "; did you mean " + near + "?"
		}
		return fmt.Errorf("there is no such verb%s", hint)
	}
	if len(args) < v.least || len(args) > v.most {
		return fmt.Errorf("write %s", v.usage)
	}
	return v.run(args)
}

// many is the maximum number of arguments of a verb that takes any number.
const many = 1 << 20

type scenarioVerb struct {
	least, most int
	usage       string
	run         func(args []string) error
}

func (s *scenario) verbs() map[string]scenarioVerb {
	return map[string]scenarioVerb{
		"load":    {1, many, "load SECTION...", s.load},
		"submit":  {1, many, "submit SECTION...", s.load},
		"policy":  {1, many, "policy NAME [OF-QUEUES...]", s.policy},
		"now":     {1, 1, "now TIME, as 2026-01-31T12:00:00Z", s.now},
		"seed":    {1, 1, "seed NUMBER", s.seed},
		"cycle":   {0, 1, "cycle, or cycle NUMBER", s.cycle},
		"until":   {1, 1, "until DURATION, as 90s, or until idle", s.until},
		"advance": {1, 1, "advance DURATION, as 90s", s.advance},
		"finish":  {1, many, "finish POD...", s.each((*World).Finish)},
		"fail":    {1, many, "fail POD...", s.each((*World).Fail)},
		"delete":  {1, many, "delete POD...", s.each((*World).Delete)},
		"cordon":  {1, many, "cordon NODE...", s.each((*World).Cordon)},
		"drain":   {1, many, "drain NODE...", s.each((*World).Drain)},
		"show":    {1, 1, "show queues, nodes, jobs, pods, timeline, volumes or asks", s.show},
		"explain": {1, 1, "explain POD, JOB or all", s.explain},
		"whatif":  {1, many, "whatif SECTION... delete=JOB nodes=COUNTxNODE policy=NAME, some of them", s.whatif},
		"ask":     {2, many, "ask SITE NAME...", s.ask},
		"check":   {1, 1, "check SECTION", s.check},
		"cmp":     {1, 1, "cmp SECTION", s.cmp},
	}
}

func (s *scenario) print(text string) {
	s.out.WriteString(text)
	s.all.WriteString(text)
}

// inWorld returns the world, and creates it at the first use.
func (s *scenario) inWorld() *World {
	if s.world == nil {
		s.world = NewWorld(s.World)
	}
	return s.world
}

// section returns a section.
func (s *scenario) section(name string) (*txtar.File, error) {
	for i := range s.archive.Files {
		if s.archive.Files[i].Name == name {
			s.used[name] = true
			return &s.archive.Files[i], nil
		}
	}
	hint := ""
	if near := nearest(name, sortedKeys(s.starts)); near != "" {
		hint = "; did you mean " + near + "?"
	}
	return nil, fmt.Errorf("there is no section %s%s", name, hint)
}

// source returns a section as a file whose line numbers are those of the archive.
func (s *scenario) source(name string) (manifest.Source, error) {
	f, err := s.section(name)
	if err != nil {
		return manifest.Source{}, err
	}
	return manifest.Source{Name: s.name, Data: append(bytes.Repeat([]byte("\n"), s.starts[name]-1), f.Data...)}, nil
}

func (s *scenario) load(names []string) error {
	var sources []manifest.Source
	for _, name := range names {
		source, err := s.source(name)
		if err != nil {
			return err
		}
		sources = append(sources, source)
	}
	policies, issues := s.inWorld().Load(sources...)
	if err := issues.Err(); err != nil {
		return err
	}
	if len(policies) > 0 {
		return errors.New("a policy is loaded by the verb policy")
	}
	return nil
}

func (s *scenario) policy(args []string) error {
	var all []*policy.Policy
	for _, name := range args {
		compiled, err := s.compile(name)
		if err != nil {
			return err
		}
		all = append(all, compiled)
	}
	joined, issues := join.Policies(all[0], all[1:]...)
	if joined == nil {
		return issues.Err()
	}
	s.inWorld().Policy = joined
	return nil
}

func (s *scenario) compile(name string) (*policy.Policy, error) {
	doc, issues := s.document(name)
	if doc == nil {
		return nil, issues.Err()
	}
	load := policy.Load
	if s.Compile != nil {
		load = s.Compile
	}
	compiled, more := load(doc)
	return compiled, append(issues, more...).Err()
}

// document returns the policy in a section, in the options, or the default one.
func (s *scenario) document(name string) (*source.Document, source.Issues) {
	if doc := s.Policies[name]; doc != nil && s.starts[name] == 0 {
		return doc, nil
	}
	if name == "default" && s.starts[name] == 0 {
		return policy.Embedded(name)
	}
	section, err := s.source(name)
	if err != nil {
		text := err.Error()
		if s.Policies != nil {
			text += ", and no policy of that name"
		}
		return nil, source.Issues{{File: s.name, Line: s.line, Column: 1, Message: text}}
	}
	return policyOf(section)
}

// policyOf reads a source with exactly one SchedulingPolicy; nil with issues otherwise.
func policyOf(section manifest.Source) (*source.Document, source.Issues) {
	docs, issues := source.Parse(section.Name, section.Data)
	if issues.Err() != nil {
		return nil, issues
	}
	if len(docs) == 1 {
		if name, version := manifest.HeadOf(docs[0].Root); name == manifest.PolicyKind && version == manifest.PolicyVersion {
			return docs[0], issues
		}
	}
	return nil, append(issues, source.Issue{
		File: section.Name, Message: "must hold one " + manifest.PolicyKind,
		Hint: "write apiVersion: " + manifest.PolicyVersion + ", kind: " + manifest.PolicyKind,
	})
}

func (s *scenario) now(args []string) error {
	t, err := time.Parse(time.RFC3339, args[0])
	if err != nil {
		return fmt.Errorf("%q is no time; write it as 2026-01-31T12:00:00Z", args[0])
	}
	return s.before(func() { s.World.Now = t })
}

func (s *scenario) seed(args []string) error {
	n, err := strconv.ParseInt(args[0], 10, 64)
	if err != nil {
		return fmt.Errorf("%q is no whole number", args[0])
	}
	return s.before(func() { s.World.Seed = n })
}

// before changes the initial options of the world. It fails if the world exists already.
func (s *scenario) before(set func()) error {
	if s.world != nil {
		return errors.New("comes before load and policy")
	}
	set()
	return nil
}

func (s *scenario) cycle(args []string) error {
	n := 1
	if len(args) > 0 {
		var err error
		if n, err = strconv.Atoi(args[0]); err != nil || n < 1 || n > 100 {
			return fmt.Errorf("%q is no number from 1 to 100", args[0])
		}
	}
	if err := s.inPolicy(); err != nil {
		return err
	}
	for i := range n {
		if i > 0 {
			if err := s.world.Advance(cycleLength); err != nil {
				return err
			}
		}
		if err := s.oneCycle(); err != nil {
			return err
		}
	}
	return nil
}

// inPolicy sets the world's policy to the default one if none was named.
func (s *scenario) inPolicy() error {
	if s.inWorld().Policy != nil {
		return nil
	}
	return s.policy([]string{cmp.Or(s.Otherwise, "default")})
}

func (s *scenario) oneCycle() error {
	report, err := s.decide()
	if err != nil {
		return err
	}
	s.print(compact(folded(report.cycles[0].lines)) + complaints(report.Plans[0]))
	if len(report.cycles[0].lines) == 0 {
		s.print("nothing to decide\n")
	}
	return nil
}

// decide runs one cycle.
func (s *scenario) decide() (*Report, error) {
	if s.BeforeCycle != nil {
		if err := s.BeforeCycle(s.world); err != nil {
			return nil, err
		}
	}
	report, err := s.world.Run(1)
	if err != nil {
		return nil, err
	}
	s.plans = append(s.plans, report.Plans...)
	s.report = report
	if s.AfterCycle != nil {
		err = s.AfterCycle(s.world)
	}
	return report, err
}

func (s *scenario) advance(args []string) error {
	d, err := time.ParseDuration(args[0])
	if err != nil {
		return fmt.Errorf("%q is no duration; write it as 90s or 1h30m", args[0])
	}
	return s.inWorld().Advance(d)
}

// each calls one of the world's methods for every name.
func (s *scenario) each(do func(*World, string) error) func([]string) error {
	return func(args []string) error {
		for _, arg := range args {
			names, err := manifest.ExpandName(arg)
			if err != nil {
				return err
			}
			for _, name := range names {
				if err := do(s.inWorld(), name); err != nil {
					return err
				}
			}
		}
		return nil
	}
}

func (s *scenario) explain(args []string) error {
	if s.report == nil {
		return errors.New("nothing was decided yet")
	}
	text, err := s.report.Explain(args[0])
	s.print(text)
	return err
}

// check compiles a policy, and prints the mistakes as the author of the section would see them.
func (s *scenario) check(args []string) error {
	f, err := s.section(args[0])
	if err != nil {
		return err
	}
	doc, issues := policyOf(manifest.Source{Name: f.Name, Data: f.Data})
	if doc != nil {
		_, more := policy.Load(doc)
		issues = append(issues, more...)
	}
	issues.Sort()
	if len(issues) == 0 {
		s.print("ok\n")
		return nil
	}
	s.print(issues.Error() + "\n")
	return nil
}

func (s *scenario) cmp(args []string) error {
	f, err := s.section(args[0])
	if err != nil {
		return err
	}
	got := tidy(s.out.String())
	s.out.Reset()
	if s.Update {
		f.Data = []byte(got)
		return nil
	}
	if want := tidy(string(f.Data)); got != want {
		fmt.Fprintf(&s.diff, "%s:%d: cmp %s: - is expected, + was printed\n%s", s.name, s.line, f.Name, textdiff.Lines(want, got))
	}
	return nil
}

// tidy removes white space at the ends of lines, and empty lines at the end.
func tidy(text string) string {
	var lines []string
	for line := range strings.Lines(text) {
		lines = append(lines, strings.TrimRight(line, " \t\r\n"))
	}
	for len(lines) > 0 && lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	if len(lines) == 0 {
		return ""
	}
	return strings.Join(slices.Clip(lines), "\n") + "\n"
}
