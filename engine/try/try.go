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

// Names of the texts in messages.
const (
	PolicyFile   = "policy.yaml"
	WorldFile    = "world.yaml"
	ScenarioFile = "scenario.txtar"
)

// Limits for one question, so that a typing error in a number does not block a browser for minutes.
const (
	mostCycles  = 10_000
	mostObjects = 20_000
)

// Question is the question of the page.
type Question struct {
	// Policy is a text with a SchedulingPolicy. Without one, the policy of World decides, or the default policy.
	Policy string `json:"policy"`
	// World is the input of celsius simulate: manifests, the short format, or a scenario.
	World string `json:"world"`
	// Cycles is the number of cycles to run, one second apart; 0: one. With Until it is the maximum.
	Cycles int `json:"cycles"`
	// Until runs a clock: for a duration such as 8h, until a time, or "idle", until nothing more happens.
	Until string `json:"until"`
	// Now is the time of the first cycle, as 2026-01-31T12:00:00Z; "": the time of the clock.
	Now string `json:"now"`
}

// Answer is the output of celsius simulate.
type Answer struct {
	// Plan contains the decisions; for a scenario, its output. "": there were mistakes.
	Plan string `json:"plan"`
	// Reasons states what happened to each job in the last cycle, and why. "": a scenario asks its own questions.
	Reasons string `json:"reasons"`
	// Differs lists the lines in which the output differs from that of a scenario; "": none.
	Differs string `json:"differs"`
	// Scenario states that the world was a scenario.
	Scenario bool `json:"scenario"`
	// Issues are mistakes and warnings, in the order of their positions.
	Issues []Issue `json:"issues"`
	// Error states why there is no plan, if the reason has no position in a text.
	Error string `json:"error"`
}

// Issue is a mistake or a warning.
type Issue struct {
	// Text is the line that celsius policy check prints.
	Text string `json:"text"`
	// In is "policy" or "world"; Line and Column count from 1. "" and 0 if there is no position.
	In      string `json:"in"`
	Line    int    `json:"line"`
	Column  int    `json:"column"`
	Warning bool   `json:"warning"`
}

// Ask answers a question. now is the time of the clock.
func Ask(q Question, now time.Time) (a Answer) {
	a.Issues = []Issue{} // the page needs a list, and the JSON of a nil list is null
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

// load creates the world, with the policy that celsius simulate would choose from its files.
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

// tell writes what a run decided.
func (a *Answer) tell(report *sim.Report) {
	var err error
	a.Plan += report.Text(false)
	if a.Reasons, err = report.Explain("all"); err != nil {
		a.Reasons = err.Error()
	}
}

// playScenario runs a scenario, which may name the policies of the other text. If it names none, a single policy there decides.
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

// note adds issues, each with the name of its text.
func (a *Answer) note(issues source.Issues) {
	in := map[string]string{PolicyFile: "policy", WorldFile: "world", ScenarioFile: "world"}
	for _, i := range issues {
		a.Issues = append(a.Issues, Issue{
			Text: i.Error(), In: in[i.File], Line: i.Line, Column: i.Column, Warning: i.Severity == source.Warning,
		})
	}
}
