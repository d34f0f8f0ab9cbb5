package session

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/verdict"
)

// catchUpEach updates a class for the touched nodes one by one.
func catchUpEach(s *Session, t *model.Task) {
	c, n := s.verdicts.Classes.ByKey[s.verdicts.ClassKey(t)], &s.c.Nodes
	var touched []int32
	entries, _ := c.Cursor.Read(&n.Log)
	for _, row := range entries {
		if c.Cells[row].Version != n.Version[row] {
			c.Cells[row].Version = n.Version[row]
			touched = append(touched, row)
		}
	}
	c.Task = t
	for _, row := range slices.Clone(s.verdicts.InOrder(touched)) {
		c.Update(verdict.OfObject, []int32{row})
	}
}

// TestTouchedNodesAreAsEach checks that a class that catches up with many changed nodes at once has the same results as one node after the
// other: the same verdicts and scores, the faults in the same order, and as many evaluations.
func TestTouchedNodesAreAsEach(t *testing.T) {
	t.Parallel()
	p := loaded(t, policyText(erringTable))
	rapid.Check(t, func(t *rapid.T) {
		many, each := erringWorlds(t, p)
		const movable = 12
		for _, x := range []*side{many, each} {
			for i := range movable {
				if err := x.c.Apply(model.Delta{Object: aPod(fmt.Sprintf("m%02d", i), "cpu=100m memory=1Gi", inGroup("g"))}); err != nil {
					t.Fatal(err)
				}
			}
			x.s.Begin(noon())
			x.txn = x.c.Begin()
		}
		compareSeen(t, "at first", many, each)
		for round := range rapid.IntRange(1, 3).Draw(t, "rounds") {
			for range rapid.IntRange(1, 20).Draw(t, "moves") {
				row := int32(rapid.IntRange(0, 15).Draw(t, "row"))
				moved, ends := fmt.Sprintf("a/m%02d", rapid.IntRange(0, movable-1).Draw(t, "moved")), fmt.Sprintf("a/r%02d-0", row)
				later, evicts := rapid.Bool().Draw(t, "later"), rapid.Bool().Draw(t, "evicts")
				for _, x := range []*side{many, each} {
					if task := x.c.Tasks[ends]; evicts && task != nil && task.Status == model.Running {
						x.txn.Evict(task)
						continue
					}
					switch task := x.c.Tasks[moved]; {
					case task.Status != model.Pending:
						x.txn.Unplace(task)
					case later:
						x.txn.Pipeline(task, row, nil)
					default:
						x.txn.Allocate(task, row, nil)
					}
				}
			}
			for _, task := range each.c.TasksByKey() {
				if task.Status == model.Pending {
					catchUpEach(each.s, task)
				}
			}
			compareSeen(t, fmt.Sprint("in round ", round), many, each)
		}
	})
}
