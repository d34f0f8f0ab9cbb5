package sim

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/engine/sim/manifest"
)

// reportOf returns a report on a handwritten plan that contains each type of line once.
func reportOf(t *testing.T) *Report {
	t.Helper()
	w := newTestWorld(t, `
apiVersion: sim.celsius.dev/v1alpha1
kind: World
nodes:
- {name: "n[1-3]", cpu: 4, memory: 8Gi, gpus: 1}
- {name: n4, ready: false}
queues: [{name: research}]
jobs:
- {name: train, replicas: 3, cpu: 2, queue: research, created: 90s}
- {name: big, replicas: 2, cpu: 64}
- {name: next, cpu: 4}
- {name: share, gpuMilli: 500, memory: 1Gi}
- {name: old, replicas: 2, cpu: 500m, node: n3}
pods:
- {name: web, scheduler: other, node: n3, cpu: 500m}
- {name: solo, cpu: 1}
`)
	fit := model.Reason{Site: "predicates", Table: "builtin", Rule: "fit", Text: "Insufficient cpu"}
	scores := []model.RowScore{{Table: "nodeorder", Rule: "least-requested", Score: 50}, {Table: "binpack", Rule: "cpu", Score: 12.3456}}
	bind := func(task, job, queue, node string) model.Bind {
		return model.Bind{
			Task: task, Job: job, Queue: queue, Node: node, Action: "allocate", Feasible: 3, Score: 62.3456,
			Scores: scores, RunnerUp: "n3", RunnerUpScore: 40, Reason: model.Reason{Site: "scores", Table: "nodeorder", Rule: "least-requested"},
		}
	}
	share := bind("default/share-0", "default/share", "default", "n2")
	share.GPUs, share.Feasible, share.Scores, share.RunnerUp = []int{0}, 1, nil, ""
	evict := func(task string) model.Evict {
		return model.Evict{
			Task: task, Job: "default/old", Queue: "default", Node: "n3", For: "default/next-0", ForJob: "default/next", ForQueue: "default",
			Action: "preempt", Reason: model.Reason{Site: "preemptable", Table: "priority", Rule: "strictly-lower"},
			Rows: []string{"priority/strictly-lower", "gang/keep-gang-whole", "conformance/not-critical"},
			Needed: model.Reason{
				Site: "predicates", Table: "builtin", Rule: "fit", Text: "spared, default/next-0 has no place here: Insufficient cpu",
			},
		}
	}
	plan := &model.Plan{
		Policy: "default", Generation: 2, Now: w.Now(),
		Admits: []model.Admit{{Job: "default/train", Queue: "research", Reason: model.Reason{Table: "overcommit", Rule: "nothing-asked"}}},
		Binds: []model.Bind{
			bind("default/train-0", "default/train", "research", "n1"),
			bind("default/train-1", "default/train", "research", "n1"),
			bind("default/train-2", "default/train", "research", "n2"),
			share,
		},
		Evicts:    []model.Evict{evict("default/old-1"), evict("default/old-0")},
		Pipelines: []model.Bind{bind("default/next-0", "default/next", "default", "n3")},
		Holds:     []model.Bind{bind("default/solo", "default/podgroup-solo", "default", "n3")},
		Waits: []model.Wait{
			{
				Job: "default/big", Queue: "default", Action: "allocate", Place: 2, Reason: fit,
				Nodes: []model.NodeCount{
					{Table: "builtin", Rule: "fit", Text: "Insufficient cpu", Count: 2},
					{Table: "predicates", Rule: "taints", Text: "untolerated taint gpu", Count: 1},
				},
			},
			{Job: "default/big", Task: "default/big-0", Queue: "default", Action: "allocate", Reason: fit, Nodes: []model.NodeCount{
				{Table: "builtin", Rule: "fit", Text: "Insufficient cpu", Count: 3},
			}},
			{Job: "default/big", Task: "default/big-1", Queue: "default", Action: "allocate", Reason: fit, Nodes: []model.NodeCount{
				{Table: "builtin", Rule: "fit", Text: "Insufficient cpu", Count: 3},
			}},
		},
		Jobs:     []*model.JobStatus{{Job: "default/train", Phase: "Running"}},
		Errors:   []model.RuleError{{Site: "scores", Table: "house", Rule: "odd", Count: 2, Object: "default/big-0", Text: "division by zero"}},
		Warnings: []string{"the policy is paused"},
	}
	if err := w.obey(plan); err != nil {
		t.Fatal(err)
	}
	check(t, w)
	p, issues := policy.Default()
	if issues.Err() != nil {
		t.Fatal(issues)
	}
	w.Policy = p
	r := &Report{APIVersion: manifest.WorldVersion, Kind: "Report", world: w}
	r.add(plan)
	r.finish(plan)
	return r
}

func TestReport(t *testing.T) {
	t.Parallel()
	r := reportOf(t)
	for _, format := range Formats() {
		if format == "html" {
			continue // its test runs it in a browser
		}
		text, err := r.Write(format)
		if err != nil {
			t.Fatal(err)
		}
		golden(t, "report/"+format+".golden", string(text))
	}
	golden(t, "report/compact.golden", compact(folded(r.cycles[0].lines))+complaints(r.Plans[0]))
	if _, err := r.Write("svg"); err == nil {
		t.Error("a format that is not there must be an error")
	}
}

func TestExplain(t *testing.T) {
	t.Parallel()
	r := reportOf(t)
	all, err := r.Explain("all")
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "report/explain-all.golden", all)
	var some string
	for _, name := range []string{"train-2", "default/big", "big-1", "solo", "web", "next-0", "old-1"} {
		text, err := r.Explain(name)
		if err != nil {
			t.Fatal(err)
		}
		some += "# " + name + "\n" + text
	}
	golden(t, "report/explain.golden", some)
	for name, want := range map[string]string{
		"trian": "there is no pod, job, queue or node trian; did you mean default/train?",
		"x/y/z": "there is no pod or job x/y/z",
	} {
		if _, err := r.Explain(name); err == nil || err.Error() != want {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}

func TestFolded(t *testing.T) {
	t.Parallel()
	line := func(what, node string) decision { return decision{verb: "bind", what: what, node: node} }
	gone := func(what string) decision { return decision{verb: "evict", what: what, evict: &model.Evict{}} }
	tests := []struct {
		name string
		in   []decision
		want []string
	}{
		{"numbers that go up", []decision{line("a-0", "n"), line("a-1", "n"), line("a-2", "n")}, []string{"a-[0-2]"}},
		{"another node", []decision{line("a-0", "n"), line("a-1", "m"), line("a-2", "m")}, []string{"a-0", "a-[1-2]"}},
		{"a gap, and back", []decision{line("a-0", "n"), line("a-2", "n"), line("a-1", "n")}, []string{"a-0", "a-2", "a-1"}},
		{"another job", []decision{line("a-0", "n"), line("b-1", "n")}, []string{"a-0", "b-1"}},
		{
			"no number of a pod",
			[]decision{line("a0", "n"), line("a1", "n"), line("b-00", "n"), line("b-01", "n")},
			[]string{"a0", "a1", "b-00", "b-01"},
		},
		{"down, of what is not evicted", []decision{line("a-1", "n"), line("a-0", "n")}, []string{"a-1", "a-0"}},
		{"down, of what is evicted", []decision{gone("a-2"), gone("a-1"), gone("a-0")}, []string{"a-[2-0]"}},
		{"up, of what is evicted", []decision{gone("a-1"), gone("a-2"), gone("a-1")}, []string{"a-[1-2]", "a-1"}},
		{"past nine", []decision{line("a-9", "n"), line("a-10", "n")}, []string{"a-[9-10]"}},
		{"nothing", nil, nil},
	}
	for _, test := range tests {
		var got []string
		for _, d := range folded(test.in) {
			got = append(got, d.what)
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s (-want +got)\n%s", test.name, diff)
		}
	}
}

func TestScoreForPeople(t *testing.T) {
	t.Parallel()
	for x, want := range map[float64]string{0: "0", 12.3456: "12.346", 100: "100", -0.00001: "0", 0.5: "0.5", -3: "-3"} {
		if got := model.Score(x); got != want {
			t.Errorf("model.Score(%v) = %s, want %s", x, got, want)
		}
	}
}
