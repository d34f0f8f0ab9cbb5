package conformance

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/celsius-scheduler/celsius/engine/model"
)

type nodes = map[string]string

// bound returns an outcome in which a job's pods p1 and p2 are bound.
func bound(n1, n2 string) *Outcome {
	return &Outcome{
		Binds: nodes{"ns/p1": n1, "ns/p2": n2}, Pipelined: nodes{}, Phases: nodes{"ns/pg": "Inqueue"},
		Tasks: map[string]map[string]nodes{"ns/pg": {"Binding": {"ns/p1": n1, "ns/p2": n2}}},
		Idle:  map[string]model.Resources{"n1": {model.CPU: 500, model.Memory: 1024, model.Pods: 9000}},
	}
}

// recorded returns a case in which p1 was bound to n1 and p2 to n2.
func recorded(change func(*Observed)) *Case {
	yes := true
	o := Observed{
		Binds: nodes{"ns/p1": "n1", "ns/p2": "n2"}, PodGroupPhases: nodes{"ns/pg": "Inqueue"}, Stable: &yes,
		Jobs:  map[string]Job{"ns/pg": {Tasks: map[string]map[string]string{"Binding": {"ns/p1": "n1", "ns/p2": "n2"}}, MinAvailable: 2}},
		Nodes: map[string]NodeUse{"n1": {Idle: "cpu 500.00, memory 1024.00, pods 9.00"}},
	}
	change(&o)
	return &Case{Observed: o}
}

func TestDifferences(t *testing.T) {
	keep := func(*Observed) {}
	unstable := func(same *Invariants) func(*Observed) {
		return func(o *Observed) {
			no := false
			o.Stable, o.Invariants = &no, same
		}
	}
	two, one := 2, 1
	for _, test := range []struct {
		name string
		c    *Case
		ours *Outcome
		want []string
	}{
		{"the same", recorded(keep), bound("n1", "n2"), nil},
		{
			"another node", recorded(keep), bound("n1", "n3"),
			[]string{"bind ns/p2: n3, Volcano n2", "status ns/p2: Binding on n3, Volcano Binding on n2"},
		},
		{"another node where best scores tie", recorded(func(o *Observed) { o.TiesPossible = true }), bound("n2", "n1"), nil},
		{
			"another node where it varies", recorded(unstable(&Invariants{BoundPods: []string{"ns/p1", "ns/p2"}, BindCount: &two})),
			bound("n3", "n3"), nil,
		},
		{
			"another spread, which did not vary", recorded(unstable(&Invariants{BindsPerNodeSorted: []int{1, 1}})), bound("n3", "n3"),
			[]string{"binds by node: [2], Volcano [1 1]"},
		},
		{
			"another set", recorded(unstable(&Invariants{BoundPods: []string{"ns/p1"}, BindCount: &one, PipelinedPods: []string{"ns/p2"}})),
			bound("n1", "n2"),
			[]string{"bind ns/p2: yes, Volcano -", "number of binds: 2, Volcano 1", "pipeline ns/p2: -, Volcano yes"},
		},
		{
			"the set counts even where best scores tie", recorded(func(o *Observed) {
				o.TiesPossible = true
				delete(o.Binds, "ns/p2")
			}), bound("n1", "n2"), []string{"bind ns/p2: yes, Volcano -"},
		},
		{"an eviction", recorded(func(o *Observed) { o.Evicts = []string{"ns/v"} }), bound("n1", "n2"), []string{"evict ns/v: -, Volcano yes"}},
		{
			"other pods go where it varies who does", recorded(func(o *Observed) {
				unstable(&Invariants{EvictCount: new(int)})(o)
				o.Jobs["ns/pg"] = Job{Tasks: map[string]map[string]string{"Binding": {"ns/p1": "n1"}, "Releasing": {"ns/p2": "n2"}}}
			}), bound("n1", "n2"), []string{"number of pods that are Binding: 2, Volcano 1", "number of pods that are Releasing: 0, Volcano 1"},
		},
		{
			"accounts", recorded(func(o *Observed) { o.Nodes["n1"] = NodeUse{Idle: "cpu 400.00, memory 1024.00, pods 8.00"} }), bound("n1", "n2"),
			[]string{"idle cpu on n1: 500.00, Volcano 400.00", "idle pods on n1: 9.00, Volcano 8.00"},
		},
		{
			"a phase", recorded(func(o *Observed) { o.PodGroupPhases["ns/pg"] = "Running" }), bound("n1", "n2"),
			[]string{"phase ns/pg: Inqueue, Volcano Running"},
		},
		{
			"a status", recorded(func(o *Observed) {
				o.Jobs["ns/pg"] = Job{Tasks: map[string]map[string]string{"Binding": {"ns/p1": "n1"}, "Pending": {"ns/p2": ""}}}
			}), bound("n1", "n2"), []string{"status ns/p2: Binding on n2, Volcano Pending"},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := test.c.differences(model.NewDims(), test.ours)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}
