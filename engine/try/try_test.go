package try

import (
	"strings"
	"testing"
	"time"
)

const world = `apiVersion: sim.celsius.dev/v1alpha1
kind: World
nodes: [{name: n1, cpu: 4}]
jobs: [{name: j, cpu: 1, run: 1h}]
`

func policyNamed(name string) string {
	return `apiVersion: scheduling.celsius.dev/v1alpha1
kind: SchedulingPolicy
metadata: {name: ` + name + `}
spec:
  pipeline: [enqueue, allocate]
  tiers: [{name: only, tables: [{name: gang}]}]
`
}

// TestAsk checks right and wrong questions. For each wrong one it checks where the mistake is reported.
func TestAsk(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC)
	scenario := "# R.\nload w\ncycle\ncmp out\n-- out --\nnothing\n-- w --\n" + world
	for name, c := range map[string]struct {
		q     Question
		plan  string // a part of the plan; "": there is no plan
		wrong string // a part of the error, of the first issue, or of the difference
		in    string // the file of the first issue, with its line
		line  int
	}{
		"the default policy":    {q: Question{World: world}, plan: "policy default (built in)"},
		"a policy":              {q: Question{World: world, Policy: policyNamed("mine")}, plan: "policy mine (from policy.yaml)"},
		"a policy in the world": {q: Question{World: world + "---\n" + policyNamed("mine")}, plan: "policy mine (from world.yaml)"},
		"by the clock":          {q: Question{World: world, Until: "idle"}, plan: "3 cycles in 1h"},
		"two policies": {
			q: Question{World: world + "---\n" + policyNamed("a"), Policy: policyNamed("b")}, wrong: "2 policies, b, a; leave one",
		},
		"a mistake in a policy": {
			q: Question{World: world, Policy: policyNamed("a") + "  pipelin: []\n"}, wrong: "policy.yaml:7:3: ", in: "policy", line: 7,
		},
		"a mistake in a world":    {q: Question{World: world + "job: []\n"}, wrong: "world.yaml:5:1: ", in: "world", line: 5},
		"a scenario that differs": {q: Question{World: scenario}, plan: "bind", wrong: "- nothing"},
		"a mistake in a scenario": {q: Question{World: scenario + "job: []\n"}, wrong: "scenario.txtar:12:1: ", in: "world", line: 12},
		"a verb that is none":     {q: Question{World: "# R.\nlod w\n-- w --\n"}, wrong: "scenario.txtar:2: "},
		"a time that is none":     {q: Question{World: world, Now: "noon"}, wrong: "write it as 2026-01-31T12:00:00Z"},
		"an end that is none":     {q: Question{World: world, Until: "later"}, wrong: "until later is neither a duration"},
		"too many cycles":         {q: Question{World: world, Cycles: 10_001}, wrong: "are not between 1 and 10000"},
		"an empty world":          {q: Question{}, plan: "policy default"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := Ask(c.q, now)
			if c.plan == "" && a.Plan != "" || !strings.Contains(a.Plan, c.plan) {
				t.Errorf("the plan is %q, want %q", a.Plan, c.plan)
			}
			wrong := a.Error + a.Differs
			if len(a.Issues) > 0 {
				wrong += a.Issues[0].Text
				if a.Issues[0].In != c.in || a.Issues[0].Line != c.line {
					t.Errorf("the place is %s %d, want %s %d", a.Issues[0].In, a.Issues[0].Line, c.in, c.line)
				}
			}
			if c.wrong == "" && wrong != "" || !strings.Contains(wrong, c.wrong) {
				t.Errorf("told is %q, want %q", wrong, c.wrong)
			}
		})
	}
}

// FuzzAsk searches for texts that end the program instead of being refused.
func FuzzAsk(f *testing.F) {
	f.Add(policyNamed("a"), world)
	f.Add("", "# R.\nload w\ncycle\n-- w --\n"+world)
	f.Fuzz(func(t *testing.T, policy, world string) {
		a := Ask(Question{Policy: policy, World: world}, time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC))
		if a.Plan == "" && a.Error == "" && len(a.Issues) == 0 && !a.Scenario {
			t.Error("neither a plan nor a mistake")
		}
	})
}
