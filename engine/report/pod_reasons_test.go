package report_test

import (
	"testing"

	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/report"
)

// TestReasonsOfPodsBelongToTheirJob checks that all pods of a gang have the reason Unschedulable if one of them waits for a node, whatever
// other jobs wait for.
func TestReasonsOfPodsBelongToTheirJob(t *testing.T) {
	t.Parallel()
	gang := func(name string) *model.Job {
		j := &model.Job{Key: "ml/" + name, Name: name, Namespace: "ml", MinMember: 3}
		j.Counts[model.Pending] = 3
		return j
	}
	waits := func(j *model.Job, why model.Reason) []model.Wait {
		return []model.Wait{
			{Job: j.Key, Reason: model.Reason{Site: "jobReady", Table: "gang", Rule: "all-or-nothing"}},
			{Job: j.Key, Task: j.Key + "-w-2", Reason: why},
			{Job: j.Key, Task: j.Key + "-w-1", Reason: model.Reason{Table: "builtin", Rule: "role"}},
		}
	}
	full, large := gang("resnet-sweep"), gang("llama-finetune")
	ofFull := waits(full, model.Reason{Site: "allocatable", Table: "capacity", Rule: "within-capability"})
	ofLarge := waits(large, model.Reason{Site: "predicates", Table: "builtin", Rule: "fit"})
	for _, order := range [][2][]model.Wait{{ofFull, ofLarge}, {ofLarge, ofFull}} {
		plan := &model.Plan{Waits: append(append([]model.Wait{}, order[0]...), order[1]...)}
		reasons := report.NewPodReasons(plan)
		for _, w := range plan.Waits {
			j, want := full, "QueueLimited"
			if w.Job == large.Key {
				j, want = large, report.ReasonUnschedulable
			}
			if got := reasons.Of(j, &w); got != want {
				t.Errorf("after %s, %s of %s: %s, want %s", plan.Waits[0].Job, w.Task, w.Job, got, want)
			}
		}
	}
}
