package sim

import (
	"fmt"
	"regexp"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/celsius-scheduler/celsius/engine"
	"github.com/celsius-scheduler/celsius/engine/action"
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/engine/session"
	"github.com/celsius-scheduler/celsius/engine/volume"
	"github.com/celsius-scheduler/celsius/rules/source"
)

// TestScenarioVariants runs every scenario in other ways that must make no difference. The output is equal byte by byte.
func TestScenarioVariants(t *testing.T) {
	t.Parallel()
	// Caching changes how often a row that fails is evaluated.
	times := regexp.MustCompile(`erred (once|\d+ times)`)
	same := func(text string) string { return text }
	variants := []struct {
		name    string
		options func() ScenarioOptions
		compare func(string) string
	}{
		{"objects shuffled", shuffled(1), same},
		{"objects shuffled otherwise", shuffled(2), same},
		{"nothing remembered", renewed, func(text string) string { return times.ReplaceAllString(text, "erred") }},
		{"no attempt remembered", forgetful, func(text string) string { return times.ReplaceAllString(text, "erred") }},
		{"the policy loaded again before each cycle", reloading, same},
		{"each row spread over three goroutines", spread, same},
	}
	for _, name := range scenarioFiles(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path, data := scenarioFile(t, name)
			plain, err := RunScenario(path, data, ScenarioOptions{World: withVolumes(), Compile: loadOnce})
			if err != nil {
				t.Fatal(err)
			}
			for _, v := range variants {
				o := v.options()
				o.AfterCycle = checked
				r, err := RunScenario(path, data, o)
				if err != nil {
					t.Fatalf("%s: %v", v.name, err)
				}
				if diff := cmp.Diff(v.compare(plain.Output), v.compare(r.Output)); diff != "" {
					t.Errorf("%s: it prints something else (-as it is +so)\n%s", v.name, diff)
				}
			}
		})
	}
}

// loaded contains the policies of scenarios, by their places. They never change, and compiling is most of a scenario's work.
var loaded sync.Map

type compiled struct {
	policy *policy.Policy
	issues source.Issues
}

// policyPlace names the place of a policy.
func policyPlace(doc *source.Document) string {
	line, _ := doc.Root.Pos()
	return fmt.Sprint(doc.File, ":", line)
}

// loadOnce is policy.Load, but compiles each policy of a scenario file once.
func loadOnce(doc *source.Document) (*policy.Policy, source.Issues) {
	if known, ok := loaded.Load(policyPlace(doc)); ok {
		return known.(compiled).policy, known.(compiled).issues
	}
	p, issues := policy.Load(doc)
	loaded.Store(policyPlace(doc), compiled{p, issues})
	return p, issues
}

func shuffled(seed int64) func() ScenarioOptions {
	return func() ScenarioOptions {
		return ScenarioOptions{Compile: loadOnce, World: Options{Volumes: volume.New, Shuffle: seed}}
	}
}

// renewed makes each cycle begin without cached data.
func renewed() ScenarioOptions {
	return ScenarioOptions{World: withVolumes(), Compile: loadOnce, BeforeCycle: func(w *World) error {
		w.decider.Decider = *engine.NewDecider(session.New(w.Cluster(), w.Policy), action.Forgetful())
		return nil
	}}
}

// forgetful makes every cycle try every job, with sessions that cache all other data.
func forgetful() ScenarioOptions {
	return ScenarioOptions{World: withVolumes(), Compile: loadOnce, BeforeCycle: func(w *World) error {
		if s := w.decider.Session(); s == nil || s.Policy() != w.Policy {
			w.decider.Decider = *engine.NewDecider(session.New(w.Cluster(), w.Policy), action.Forgetful())
		}
		return nil
	}}
}

// spread makes one session evaluate rows in several goroutines, as far as they support it.
func spread() ScenarioOptions {
	return ScenarioOptions{World: withVolumes(), Compile: loadOnce, BeforeCycle: func(w *World) error {
		if s := w.decider.Session(); s == nil || s.Policy() != w.Policy {
			s = session.New(w.Cluster(), w.Policy)
			s.Spread(session.Split{Cores: 3, From: 1})
			w.decider.Decider = *engine.NewDecider(s, nil)
		}
		return nil
	}}
}

// reloading compiles the policy again before each cycle, as an update without a change.
func reloading() ScenarioOptions {
	sources := map[*policy.Policy]*source.Document{}
	compile := func(doc *source.Document) (*policy.Policy, source.Issues) {
		p, issues := policy.Load(doc)
		sources[p] = doc
		return p, issues
	}
	return ScenarioOptions{World: withVolumes(), Compile: compile, BeforeCycle: func(w *World) error {
		doc := sources[w.Policy]
		if doc == nil { // several policies were joined
			data, err := w.Policy.Object()
			if err != nil {
				return err
			}
			p, issues := policy.LoadStored(data)
			w.Policy = p
			return issues.Err()
		}
		p, issues := compile(doc)
		w.Policy = p
		return issues.Err()
	}}
}
