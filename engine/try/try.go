package try

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"golang.org/x/tools/txtar"

	"github.com/celsius-scheduler/celsius/engine/sim"
	"github.com/celsius-scheduler/celsius/engine/sim/choose"
	"github.com/celsius-scheduler/celsius/engine/sim/manifest"
	"github.com/celsius-scheduler/celsius/rules/source"
)

// The names by which messages call the two texts.
const (
	PolicyFile   = "policy.yaml"
	WorldFile    = "world.yaml"
	ScenarioFile = "scenario.txtar"
)

// The most that a page asks for at once, so that a slip of a digit does not keep a browser busy for minutes.
const (
	mostCycles  = 10_000
	mostObjects = 20_000
)

// Question is what the page asks.
type Question struct {
	// Policy is text with a SchedulingPolicy; without one that of World decides, or the default one.
	Policy string `json:"policy"`
	// World is what celsius simulate takes: manifests, the short format, or a scenario.
	World string `json:"world"`
	// Cycles is how many cycles are run, a second apart; 0: one. With Until it is the most that are.
	Cycles int `json:"cycles"`
	// Until has a clock run: for a duration as 8h, to a time, or "idle", until nothing happens any more.
	Until string `json:"until"`
	// Now is the time of the first cycle, as 2026-01-31T12:00:00Z; "": that of the clock.
	Now string `json:"now"`
}

// Answer is what celsius simulate says.
type Answer struct {
	// Plan is what was decided; of a scenario what it prints. "": there were mistakes.
	Plan string `json:"plan"`
	// Reasons is why each job fared as it did in the last cycle. "": of a scenario, which asks itself.
	Reasons string `json:"reasons"`
	// Differs is what a scenario expects otherwise, line by line; "": nothing.
	Differs string `json:"differs"`
	// Scenario says that the world was one.
	Scenario bool `json:"scenario"`
	// Issues are mistakes and warnings, in the order of their places.
	Issues []Issue `json:"issues"`
	// Error is why there is no plan, where that has no place in a text.
	Error string `json:"error"`
}

// Issue is a mistake or a warning.
type Issue struct {
	// Text is the line that celsius policy check gives.
	Text string `json:"text"`
	// In is "policy" or "world"; Line and Column count from 1. "" and 0 where there is no place.
	In      string `json:"in"`
	Line    int    `json:"line"`
	Column  int    `json:"column"`
	Warning bool   `json:"warning"`
}

// Ask answers a question; now is what the clock shows.
func Ask(q Question, now time.Time) (a Answer) {
	a.Issues = []Issue{} // the page reads a list, and JSON has null for none
	a.Scenario = len(txtar.Parse([]byte(q.World)).Files) > 0
	err := a.answer(q, now)
	if err != nil {
		a.Plan = ""
	}
	var issues source.Issues
	switch {
	case errors.As(err, &issues):
		a.note(issues)
	case err != nil:
		a.Error = err.Error()
	}
	return a
}

func (a *Answer) answer(q Question, now time.Time) error {
	if q.Now != "" {
		t, err := time.Parse(time.RFC3339, q.Now)
		if err != nil {
			return fmt.Errorf("the first cycle at %s is no time; write it as 2026-01-31T12:00:00Z", q.Now)
		}
		now = t
	}
	now = now.UTC()
	if q.Cycles < 0 || q.Cycles > mostCycles {
		return fmt.Errorf("%d cycles are not between 1 and %d", q.Cycles, mostCycles)
	}
	if a.Scenario {
		return a.playScenario(q)
	}
	w, err := a.load(q, now)
	if err != nil {
		return err
	}
	o := sim.RunOptions{Cycles: q.Cycles}
	if q.Until != "" {
		if err := o.SetUntil(q.Until, now); err != nil {
			return fmt.Errorf("until %w", err)
		}
	}
	report, err := w.RunFor(o)
	if err != nil {
		return fmt.Errorf("simulate: %w", err)
	}
	a.tell(report)
	return nil
}

// load makes the world, with the policy that decides there, as celsius simulate chooses it among its files.
func (a *Answer) load(q Question, now time.Time) (*sim.World, error) {
	var sources []manifest.Source
	for _, s := range []manifest.Source{{Name: PolicyFile, Data: []byte(q.Policy)}, {Name: WorldFile, Data: []byte(q.World)}} {
		if strings.TrimSpace(string(s.Data)) != "" {
			sources = append(sources, s)
		}
	}
	w := sim.NewWorld(sim.Options{Now: now, MaxObjects: mostObjects})
	policies, issues := w.Load(sources...)
	if issues.Err() != nil {
		return nil, issues
	}
	a.note(issues)
	chosen, issues, err := choose.Policy(policies, nil)
	if err != nil {
		return nil, fmt.Errorf("%w; leave one", err)
	}
	if issues.Err() != nil {
		return nil, issues
	}
	a.note(issues)
	w.Policy, a.Plan = chosen.Policy, chosen.Text()
	return w, nil
}

// tell writes down what a run decided.
func (a *Answer) tell(report *sim.Report) {
	var err error
	a.Plan += report.Text(false)
	if a.Reasons, err = report.Explain("all"); err != nil {
		a.Reasons = err.Error()
	}
}

// playScenario runs a scenario, which may name the policies of the other text; one alone decides where it names none.
func (a *Answer) playScenario(q Question) error {
	o := sim.ScenarioOptions{World: sim.Options{MaxObjects: mostObjects}, Policies: map[string]*source.Document{}}
	if strings.TrimSpace(q.Policy) != "" {
		objects, issues := manifest.Load(manifest.Options{}, manifest.Source{Name: PolicyFile, Data: []byte(q.Policy)})
		if issues.Err() != nil {
			return issues
		}
		a.note(issues)
		for _, p := range objects.Policies {
			o.Policies[p.Name] = p.Doc
		}
		if len(objects.Policies) == 1 {
			o.Otherwise = objects.Policies[0].Name
		}
	}
	r, err := sim.RunScenario(ScenarioFile, []byte(q.World), o)
	if err != nil {
		return err
	}
	a.Plan, a.Differs = r.Output, r.Diff
	return nil
}

// note adds issues, each with the text that it is in.
func (a *Answer) note(issues source.Issues) {
	in := map[string]string{PolicyFile: "policy", WorldFile: "world", ScenarioFile: "world"}
	for _, i := range issues {
		a.Issues = append(a.Issues, Issue{
			Text: i.Error(), In: in[i.File], Line: i.Line, Column: i.Column, Warning: i.Severity == source.Warning,
		})
	}
}
