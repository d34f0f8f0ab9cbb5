package policy

import (
	"testing"

	"github.com/celsius-scheduler/celsius/rules/source"
)

// TestSee calls See for an expression in a policy with many mistakes. It sees the correct parts before it, and compiles no other row.
func TestSee(t *testing.T) {
	docs, _ := source.Parse("p.yaml", []byte(`
apiVersion: scheduling.celsius.dev/v1alpha1
kind: SchedulingPolicy
metadata: {name: p}
spec:
  pipeline: [nowhere]
  tiers:
  - name: all
    tables:
    - {name: nothing}
    - {name: proportion}
    - name: own
      inline:
        attributes:
        - {on: job, name: right, expression: job.taskCount + 1}
        - {on: job, name: wrong, expression: job.taskCont + 1}
        scores:
        - {name: other, expression: node.idle.cpu}
        - {name: this, expression: "job.right + job."}
    - name: later
      inline: {attributes: [{on: job, name: late, expression: "1"}]}
`))
	d, err := NewDialect(Verbs(), Vocabulary(), AccountingFunctions())
	if err != nil {
		t.Fatal(err)
	}
	seen, p := d.See(docs[0], "spec.tiers[0].tables[2].inline.scores[1].expression")
	if len(seen) != 1 || seen[0].Text.Value != "job.right + job." {
		t.Fatalf("seen: %v", seen)
	}
	for field, want := range map[string]bool{
		"job.right": true, "job.wrong": false, "job.late": false, "queue.deserved": true, "victim.name": false,
	} {
		if got := seen[0].Scope.TypeOf(field) != nil; got != want {
			t.Errorf("%s is known: %v, want %v", field, got, want)
		}
	}
	if rows := p.Rules(Scores); len(rows) != 0 {
		t.Errorf("rows were compiled: %v", rows)
	}
	if _, p = d.See(docs[0], "spec.tiers[0].tables[2].inline.scores[0]"); len(p.All) != 1 || p.All[0].Name != "other" {
		t.Errorf("of all rows the one that is looked at is compiled, got %v", p.All)
	}
}
