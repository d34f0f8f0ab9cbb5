package session

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/engine/verdict"
	"github.com/celsius-scheduler/celsius/engine/volume"
)

// tournamentRows score nodes so that ranges move, stay, and lose their extremes, and so that many nodes are equal.
const tournamentRows = `
predicates:
- {name: few, expression: node.taskCount < 6}
scores:
- {name: use, expression: "double(node.taskCount % 3)"}
- {name: rank, expression: "double(node.labels['rank'])", normalize: minMax, weight: 0.7}
- {name: one-zone, when: "node.labels['rank'] != '0'", expression: "double(node.labels['rank'])", normalize: inverseMax,
    round: {mode: trunc}}
- {name: crowd, when: "task.labels['kind'] == 'b'", expression: double(node.taskCount), normalize: max}
- {name: room, expression: "node.idle.cpu - 3.0", normalize: inverseSum, weight: 0.1}
`

// tournamentWorld is a world of few or many nodes, whose pods move at random.
type tournamentWorld struct {
	side
	tasks []*model.Task
	nodes int
}

func newTournamentWorld(t *rapid.T, p *policy.Policy) *tournamentWorld {
	w := &tournamentWorld{nodes: rapid.IntRange(1, 70).Draw(t, "nodes")}
	deltas := []model.Delta{{Object: aQueue("q")}, {Object: aGroup("g", "q")}}
	for i := range w.nodes {
		n := aNode(fmt.Sprintf("n%02d", i), "cpu=4 pods=9")
		n.Labels["rank"] = drawOf(t, "rank", "0", "0", "1", "1", "1", "2", "5")
		deltas = append(deltas, model.Delta{Object: n})
	}
	for i := range 40 {
		pod := aPod(fmt.Sprintf("p%02d", i), drawOf(t, "requests", "cpu=1", "cpu=1500m"))
		pod.Labels["kind"] = drawOf(t, "kind", "a", "b")
		deltas = append(deltas, model.Delta{Object: pod})
	}
	w.c = model.NewCluster(model.Options{Volumes: volume.New})
	for _, err := range w.c.Apply(deltas...) {
		t.Fatal(err)
	}
	w.s, w.txn, w.tasks = New(w.c, p), w.c.Begin(), w.c.TasksByKey()
	w.s.Begin(noon())
	return w
}

// Move places some tasks, and removes others.
func (w *tournamentWorld) Move(t *rapid.T) {
	for range rapid.IntRange(1, 8).Draw(t, "times") {
		task, row := rapid.SampledFrom(w.tasks).Draw(t, "task"), int32(rapid.IntRange(0, w.nodes-1).Draw(t, "row"))
		switch {
		case task.Status == model.Pending && w.c.Nodes.FitsIdle(task.Request, row):
			w.txn.Allocate(task, row, nil)
		case task.Status == model.Allocated:
			w.txn.Unplace(task)
		}
	}
}

// Evict frees resources that become available later.
func (w *tournamentWorld) Evict(t *rapid.T) {
	if task := rapid.SampledFrom(w.tasks).Draw(t, "task"); task.Status == model.Allocated {
		w.txn.Bind(task)
		w.txn.Evict(task)
	}
}

// Check evaluates some of the classes, so that the others have much to catch up with.
func (w *tournamentWorld) Check(t *rapid.T) {
	for _, task := range w.tasks[:rapid.IntRange(0, 4).Draw(t, "asked")] {
		class := w.s.Class(task)
		got, ok := class.Choose()
		if !ok {
			continue
		}
		kept := slices.Clone(class.Chooser.Rankings)
		var want verdict.Choice
		if want.Row, want.RunnerUp = class.Chooser.Scan(class.Want()); want.RunnerUp != model.NoNode {
			want.RunScore = class.Chooser.Total(int(want.RunnerUp), class.Chooser.Rankings)
		}
		want.Score = class.Chooser.Total(int(want.Row), class.Chooser.Rankings)
		copy(class.Chooser.Rankings, kept) // so that errors of a tournament are not corrected here
		if got.Row != want.Row || got.RunnerUp != want.RunnerUp || got.Score != want.Score || got.RunScore != want.RunScore {
			t.Fatalf("%s: the tournament gives %d with %v before %d with %v, the scan %d with %v before %d with %v",
				task.Key, got.Row, got.Score, got.RunnerUp, got.RunScore, want.Row, want.Score, want.RunnerUp, want.RunScore)
		}
	}
}

// TestTournamentsFindWhatScansFind checks that a tournament finds the same nodes as a scan of all nodes, after changes of any number of
// nodes.
func TestTournamentsFindWhatScansFind(t *testing.T) {
	t.Parallel()
	p := loaded(t, policyText(tournamentRows))
	rapid.Check(t, func(t *rapid.T) { t.Repeat(rapid.StateMachineActions(newTournamentWorld(t, p))) })
}
