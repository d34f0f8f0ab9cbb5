package digest

import (
	"math"
	"testing"

	"github.com/celsius-scheduler/celsius/engine/model"
)

func plan() *model.Plan {
	why := model.Reason{Site: "scores", Table: "nodeorder", Rule: "least-requested", Text: "score 466, next gpu-2 with 464"}
	b := model.Bind{Task: "team-a/train-0", Job: "team-a/train", Queue: "research", Node: "gpu-1", GPUs: []int{0, 1}, Score: 466, Reason: why}
	return &model.Plan{
		Policy:    "default",
		Admits:    []model.Admit{{Job: "team-a/train", Queue: "research", Reason: why}},
		Binds:     []model.Bind{b},
		Evicts:    []model.Evict{{Task: "team-b/etl-0", Node: "gpu-2", For: "team-a/train-1", Reason: why, Needed: why}},
		Pipelines: []model.Bind{b}, Holds: []model.Bind{b},
		Jobs:     []*model.JobStatus{{Job: "team-a/train", Phase: model.PhaseRunning}},
		Waits:    []model.Wait{{Job: "team-a/train", Reason: why}},
		Warnings: []string{"a warning"},
	}
}

func digestOf(t *testing.T, p *model.Plan) *Sum {
	t.Helper()
	s, err := New(p)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestTextsAreNoDecisions checks that a text changes only the digest of texts, and that a decision changes both digests.
func TestTextsAreNoDecisions(t *testing.T) {
	for name, change := range map[string]struct {
		decision bool
		of       func(p *model.Plan)
	}{
		"the text of an admission":  {false, func(p *model.Plan) { p.Admits[0].Reason.Text = "other" }},
		"the text of a binding":     {false, func(p *model.Plan) { p.Binds[0].Reason.Text = "other" }},
		"the text of a promise":     {false, func(p *model.Plan) { p.Pipelines[0].Reason.Text = "other" }},
		"the text of a hold":        {false, func(p *model.Plan) { p.Holds[0].Reason.Text = "other" }},
		"the text of an eviction":   {false, func(p *model.Plan) { p.Evicts[0].Reason.Text = "other" }},
		"why an eviction is needed": {false, func(p *model.Plan) { p.Evicts[0].Needed.Text = "other" }},
		"a wait":                    {false, func(p *model.Plan) { p.Waits = nil }},
		"a warning":                 {false, func(p *model.Plan) { p.Warnings = nil }},
		"the row of an admission":   {true, func(p *model.Plan) { p.Admits[0].Reason.Rule = "other" }},
		"an admission":              {true, func(p *model.Plan) { p.Admits = nil }},
		"a node":                    {true, func(p *model.Plan) { p.Binds[0].Node = "gpu-2" }},
		"a device":                  {true, func(p *model.Plan) { p.Binds[0].GPUs = []int{0, 2} }},
		"a score":                   {true, func(p *model.Plan) { p.Binds[0].Score++ }},
		"the row of a binding":      {true, func(p *model.Plan) { p.Binds[0].Reason.Table = "binpack" }},
		"a promise":                 {true, func(p *model.Plan) { p.Pipelines = nil }},
		"a hold":                    {true, func(p *model.Plan) { p.Holds = nil }},
		"a victim":                  {true, func(p *model.Plan) { p.Evicts[0].Task = "team-b/etl-1" }},
		"the row that needs it":     {true, func(p *model.Plan) { p.Evicts[0].Needed.Rule = "fit" }},
		"a phase":                   {true, func(p *model.Plan) { p.Jobs[0].Phase = model.PhaseInqueue }},
	} {
		p := plan()
		before := digestOf(t, p)
		change.of(p)
		after := digestOf(t, p)
		if got := after.Decisions() != before.Decisions(); got != change.decision {
			t.Errorf("%s: the digest of decisions changes: %v", name, got)
		}
		if after.Texts() == before.Texts() {
			t.Errorf("%s: the digest of texts stays", name)
		}
	}
}

// TestPlansStay checks that a digest does not change its plan, and that a number that JSON cannot express is an error.
func TestPlansStay(t *testing.T) {
	p := plan()
	before := digestOf(t, p).Texts()
	if digestOf(t, p).Texts() != before || p.Binds[0].Reason.Text == "" || p.Evicts[0].Needed.Text == "" {
		t.Error("the plan changed")
	}
	p.Binds[0].Score = math.Inf(1)
	if _, err := New(p); err == nil {
		t.Error("no error for a score that is infinite")
	}
}
