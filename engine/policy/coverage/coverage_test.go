package coverage

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/engine/reference"
	"github.com/celsius-scheduler/celsius/engine/volume"
	"github.com/celsius-scheduler/celsius/rules/source"
)

// ownPolicy has one part of each type.
const ownPolicy = `apiVersion: scheduling.celsius.dev/v1alpha1
kind: SchedulingPolicy
metadata: {name: own}
spec:
  pipeline: [mine, mine]
  actions:
  - {name: mine, steps: [{verb: place, when: "cluster.nodeCount > 0", jobs: job.priority > 5}]}
  tiers:
  - name: a
    tables:
    - name: own
      inline:
        variables: [{name: empty, expression: cluster.nodeCount == 0}]
        attributes: [{name: wanted, on: cluster, sum: {over: job, when: job.priority > 3, of: job.request}}]
        jobOrder: [{name: o, by: "variables.empty ? 1 : 2"}]
        queueOrder: [{name: p, by: queue.priority, when: queue.priority > 7}]
      when: cluster.taskCount > 1
    - {name: gang, when: cluster.taskCount > 2}
`

// The report contains the counts of each part. A part that is compiled again is listed once.
func TestReport(t *testing.T) {
	t.Parallel()
	parse := func() *source.Document {
		docs, issues := source.Parse("own.yaml", []byte(ownPolicy))
		if issues.Err() != nil {
			t.Fatal(issues)
		}
		return docs[0]
	}
	var r Recorder
	doc := parse()
	first, issues := r.Load(doc)
	if again, _ := r.Load(doc); issues.Err() != nil || again != first {
		t.Fatal("a document is compiled twice", issues)
	}
	if _, issues := r.Load(parse()); issues.Err() != nil {
		t.Fatal(issues)
	}
	c := model.NewCluster(model.Options{Volumes: volume.New})
	for range 2 {
		new(reference.Run).Decide(c, first, time.Unix(0, 0))
	}
	report := r.Report(func(p Place) bool { return !strings.HasPrefix(p.File, policy.ShippedFolder) })
	var lines []string
	for _, row := range report.Rows {
		lines = append(lines, fmt.Sprintf("%v %s %s/%s %d", row.Place, row.Site, row.Table, row.Name, row.Asked))
		for _, c := range row.Conditions {
			lines = append(lines, fmt.Sprintf("  %v %s %d %d", c.Place, c.Text, c.True, c.False))
		}
	}
	want := []string{
		"own.yaml:7:47 actions mine/1-place 4",
		"  own.yaml:7:47 cluster.nodeCount > 0 0 4",
		"  own.yaml:7:77 job.priority > 5 0 0",
		"own.yaml:13:47 variables own/empty 0",
		"  own.yaml:13:47 cluster.nodeCount == 0 0 0",
		"own.yaml:14:95 attributes own/cluster.wanted 0",
		"  own.yaml:14:73 job.priority > 3 0 0",
		"own.yaml:15:35 jobOrder own/o 0",
		"  own.yaml:17:13 cluster.taskCount > 1 0 0",
		"  own.yaml:15:35 variables.empty 0 0",
		"own.yaml:16:36 queueOrder own/p 0",
		"  own.yaml:17:13 cluster.taskCount > 1 0 0",
		"  own.yaml:16:58 queue.priority > 7 0 0",
	}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if report.Seen != 2 || report.Of != 21 || report.Percent != 9.5 {
		t.Errorf("%d of %d, %v %%", report.Seen, report.Of, report.Percent)
	}
	if all := r.Report(func(Place) bool { return true }); !slices.ContainsFunc(all.Rows, func(row Row) bool { return row.Table == "gang" }) {
		t.Error("no row of gang is told of")
	}
}
