package conformance

import (
	"fmt"
	"maps"
	"slices"

	"github.com/celsius-scheduler/celsius/engine"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/rules"
)

// Result is the result of one case.
type Result struct {
	Case *Case
	// Skip is why the case was not replayed; "": it was.
	Skip string
	// Assumed is what the replay assumes because the case does not contain it; "": nothing.
	Assumed string
	// Differences from the recording, one line each: the subject, our value, Volcano's value.
	Differences []string
	// Deliberate is the list entry with exactly these differences, or nil.
	Deliberate *Difference
}

// Failed reports whether the case was replayed and has differences that are not deliberate.
func (r *Result) Failed() bool {
	return r.Skip == "" && len(r.Differences) > 0 && r.Deliberate == nil
}

// Runner replays cases.
type Runner struct {
	// Rewrite, if set, receives the YAML of every case's policy and returns the YAML to compile.
	Rewrite func(policy []byte) ([]byte, error)
	// Decider computes plans; nil: engine.Decide.
	Decider engine.DecideFunc

	tables     map[string]*rules.Table
	actions    []string
	deliberate *Deliberate
	compiled   map[string]*policy.Policy // compiled policies by their text
	stubs      map[string]string         // tables that exist only in the recorded tests, by name
}

// NewRunner returns a Runner with the built-in tables and actions, and with the stub tables of this package.
func NewRunner() (*Runner, error) {
	tables, issues := policy.Shipped()
	if err := issues.Err(); err != nil {
		return nil, err
	}
	actions, issues := policy.ShippedActions()
	if err := issues.Err(); err != nil {
		return nil, err
	}
	r := &Runner{tables: tables, actions: actions, compiled: map[string]*policy.Policy{}}
	own, texts, err := stubs()
	if err != nil {
		return nil, err
	}
	maps.Copy(r.tables, own)
	r.stubs = texts
	r.deliberate, err = shippedDeliberate()
	return r, err
}

// Run replays all cases and applies the list of deliberate differences.
func (r *Runner) Run(cases []*Case) *Report {
	report := &Report{}
	for _, c := range cases {
		report.Results = append(report.Results, r.replay(c))
	}
	report.Stale = r.deliberate.settle(report.Results)
	return report
}

func (r *Runner) replay(c *Case) *Result {
	result := &Result{Case: c, Skip: r.whyNot(c)}
	if result.Skip != "" {
		return result
	}
	_, result.Assumed = c.clock()
	s, err := r.open(c)
	if err != nil {
		result.Differences = []string{err.Error()}
		return result
	}
	switch c.Mode {
	case "calls":
		result.Differences = s.calls()
		return result
	case scoresMode:
		result.Differences = s.scores()
		return result
	}
	plan := s.decide()
	for _, e := range plan.Errors {
		result.Differences = append(result.Differences,
			fmt.Sprintf("rule %s/%s erred %d times, first for %s: %s", e.Table, e.Rule, e.Count, e.Object, e.Text))
	}
	result.Differences = append(result.Differences, c.differences(s.state.Dims, c.outcome(s.state, plan))...)
	return result
}

// Decide replays a case and returns the plan; nil for a skipped case, or for a case that only asks.
func (r *Runner) Decide(c *Case) (*model.Plan, error) {
	if c.Mode != "actions" || r.whyNot(c) != "" {
		return nil, nil
	}
	s, err := r.open(c)
	if err != nil {
		return nil, err
	}
	return s.decide(), nil
}

// opened is a case with its cluster and its policy.
type opened struct {
	c      *Case
	state  *model.Cluster
	policy *policy.Policy
	by     engine.DecideFunc
}

func (s *opened) decide() *model.Plan {
	return s.by(s.state, s.policy, s.c.Origin.RecordedAt)
}

func (r *Runner) open(c *Case) (*opened, error) {
	p, err := r.policy(c)
	if err != nil {
		return nil, err
	}
	state, err := c.cluster()
	if err != nil {
		return nil, err
	}
	by := r.Decider
	if by == nil {
		by = engine.Decide
	}
	return &opened{c: c, state: state, policy: p, by: by}, nil
}

// find returns the case with an ID, or nil.
func find(cases []*Case, id string) *Case {
	i := slices.IndexFunc(cases, func(c *Case) bool { return c.ID == id })
	if i < 0 {
		return nil
	}
	return cases[i]
}
