package sim

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	batchv1alpha1 "github.com/celsius-scheduler/celsius/crds/batch/v1alpha1"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/engine/sim/manifest"
)

const evictedJob = `
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: j}
spec:
  minAvailable: 1
  maxRetry: 2
  policies: [%s]
  tasks:
  - name: a
    replicas: 4
    partitionPolicy: {totalPartitions: 2, partitionSize: 2}
    template: {spec: {containers: [{name: c, image: i}]}}
  - name: b
    replicas: 1
    template: {spec: {containers: [{name: c, image: i}]}}
---
apiVersion: sim.celsius.dev/v1alpha1
kind: World
nodes: [{name: n1}]
`

// TestEvictedJob checks the effect of a Job's policies when one of its pods is evicted.
func TestEvictedJob(t *testing.T) {
	t.Parallel()
	all := "a-0 a-1 a-2 a-3 b-0"
	for _, test := range []struct{ policies, leave, there, phase string }{
		{"", "a-1", all, ""},
		{"{event: PodFailed, action: RestartJob}", "a-1", all, ""},
		{"{event: PodEvicted, action: RestartJob, timeout: 1h}", "a-1", all, ""},
		{"{event: PodEvicted, action: RestartPod}", "a-1", all, "Pending"},
		{"{event: PodEvicted, action: RestartPartition}", "a-0 a-1", all, "Pending"},
		{"{event: PodEvicted, action: RestartTask}", "a-0 a-1 a-2 a-3", all, "Pending"},
		{"{event: PodEvicted, action: RestartJob}", all, all, "Pending"},
		{`{event: "*", action: RestartJob}`, all, all, "Pending"},
		{"{events: [PodFailed, PodEvicted], action: AbortJob}", all, "", "Aborted"},
		{"{event: PodEvicted, action: CompleteJob}", all, "", "Completed"},
		{"{event: PodEvicted, action: TerminateJob}", all, "", "Terminated"},
	} {
		w := newTestWorld(t, fmt.Sprintf(evictedJob, test.policies))
		cycleByDefault(t, w)
		cycleByDefault(t, w) // now they run
		evict(t, w, "default/j-a-1")
		var leave []string
		for id := range w.leaving {
			leave = append(leave, strings.TrimPrefix(id.Name, "j-"))
		}
		if diff := cmp.Diff(strings.Fields(test.leave), leave, sortedStrings); diff != "" {
			t.Errorf("%s: who goes (-want +got)\n%s", test.policies, diff)
		}
		if err := w.Advance(manifest.GracePeriod); err != nil {
			t.Fatal(err)
		}
		cycleByDefault(t, w)
		cycleByDefault(t, w)
		check(t, w)
		var there []string
		for _, id := range w.sorted("Pod") {
			there = append(there, strings.TrimPrefix(id.Name, "j-"))
		}
		if diff := cmp.Diff(strings.Fields(test.there), there, sortedStrings); diff != "" {
			t.Errorf("%s: who is there then (-want +got)\n%s", test.policies, diff)
		}
		if got := string(theJob(w).Status.State.Phase); got != test.phase {
			t.Errorf("%s: the Job is %q, want %q", test.policies, got, test.phase)
		}
	}
}

// TestStatesOfOtherPhasesAreForgotten shows that a Job loses the message of its status when its phase changes. If the Job terminates its
// pods, the message stays until they are gone.
func TestStatesOfOtherPhasesAreForgotten(t *testing.T) {
	t.Parallel()
	w := newTestWorld(t, fmt.Sprintf(evictedJob, "{event: PodEvicted, action: AbortJob}"))
	cycleByDefault(t, w)
	cycleByDefault(t, w) // now they run
	state := func(phase batchv1alpha1.JobPhase, message string) {
		t.Helper()
		j := theJob(w).DeepCopy()
		j.Status.State = batchv1alpha1.JobState{Phase: phase, Message: message}
		if err := w.put(j); err != nil {
			t.Fatal(err)
		}
	}
	state(batchv1alpha1.Running, "2 pods wait for an image")
	evict(t, w, "default/j-a-1")
	if got := theJob(w).Status.State; got.Phase != batchv1alpha1.Aborting || got.Message != "" {
		t.Errorf("the state is %+v", got)
	}
	state(batchv1alpha1.Aborting, "a policy asks for AbortJob")
	if err := w.Advance(manifest.GracePeriod); err != nil {
		t.Fatal(err)
	}
	cycleByDefault(t, w)
	if got := theJob(w).Status.State; got.Phase != batchv1alpha1.Aborted || got.Message != "a policy asks for AbortJob" {
		t.Errorf("the state is %+v", got)
	}
}

// TestEvictedTooOften checks that a Job that restarts after evictions ends after the maximum number of restarts.
func TestEvictedTooOften(t *testing.T) {
	t.Parallel()
	w := newTestWorld(t, fmt.Sprintf(evictedJob, "{event: PodEvicted, action: RestartJob}"))
	for _, want := range []string{"Pending", "Failed"} {
		cycleByDefault(t, w)
		cycleByDefault(t, w)
		evict(t, w, "default/j-a-1")
		if err := w.Advance(manifest.GracePeriod); err != nil {
			t.Fatal(err)
		}
		cycleByDefault(t, w)
		if got := string(theJob(w).Status.State.Phase); got != want {
			t.Errorf("the Job is %s, want %s", got, want)
		}
	}
	cycleByDefault(t, w)
	if pods := w.sorted("Pod"); len(pods) > 0 {
		t.Errorf("pods of a Job that has failed: %v", pods)
	}
	if run := w.history.timeline(w.cluster).Jobs; len(run) != 1 || run[0].Job != "default/j" || run[0].Evicted != 2 || run[0].Pods != 5 {
		t.Errorf("the timeline has %+v", run)
	}
}

// TestEvictedOfTheShortFormat checks that evicted pods of jobs are created again as they were written. Bare pods and deleted pods are not.
func TestEvictedOfTheShortFormat(t *testing.T) {
	t.Parallel()
	w := newTestWorld(t, `
apiVersion: sim.celsius.dev/v1alpha1
kind: World
nodes: [{name: n1, cpu: 4, gpus: 1}]
jobs:
- {name: j, cpu: 1, node: n1}
- {name: k, cpu: 1, gpuMilli: 500, run: 1h}
- {name: deleted, cpu: 1, node: n1}
pods: [{name: bare, cpu: 1, node: n1}]
`)
	cycleByDefault(t, w)
	cycleByDefault(t, w)
	if w.cluster.Tasks["default/k-0"].Status != model.Running {
		t.Fatal("the pod does not run")
	}
	evict(t, w, "default/j-0")
	evict(t, w, "default/k-0")
	evict(t, w, "default/bare")
	if err := w.Delete("default/deleted-0"); err != nil {
		t.Fatal(err)
	}
	for range 2 { // a second eviction of such a pod has the same result
		if err := w.Advance(manifest.GracePeriod); err != nil {
			t.Fatal(err)
		}
		check(t, w)
		if got := fmt.Sprint(w.sorted("Pod")); got != "[Pod default/j-0 Pod default/k-0]" {
			t.Errorf("there are %s", got)
		}
		for _, key := range []string{"default/j-0", "default/k-0"} {
			p, err := w.pod(key)
			if err != nil {
				t.Fatal(err)
			}
			if w.cluster.Tasks[key].Status != model.Pending || p.Annotations[model.GPUsAnnotation]+p.Annotations[model.RecordAnnotation] != "" ||
				!p.CreationTimestamp.Time.Equal(w.now) {
				t.Errorf("it comes again as %v", p)
			}
		}
		cycleByDefault(t, w)
		if w.cluster.Tasks["default/k-0"].Status != model.Bound {
			t.Fatal("it is not bound again")
		}
		evict(t, w, "default/j-0")
		evict(t, w, "default/k-0")
	}
	if _, there := w.cluster.Jobs["default/podgroup-bare"]; there {
		t.Error("the PodGroup of a bare pod outlives it")
	}
}

var sortedStrings = cmp.Transformer("sorted", func(in []string) map[string]bool {
	out := map[string]bool{}
	for _, s := range in {
		out[s] = true
	}
	return out
})

func theJob(w *World) *batchv1alpha1.Job {
	return w.objects[manifest.ID{Kind: "Job", Namespace: "default", Name: "j"}].(*batchv1alpha1.Job)
}

// evict carries out a plan that evicts a pod.
func evict(t *testing.T, w *World, pod string) {
	t.Helper()
	if err := w.obey(&model.Plan{Evicts: []model.Evict{{Task: pod, For: "default/other"}}}); err != nil {
		t.Fatal(err)
	}
	if w.cluster.Tasks[pod].Status != model.Releasing {
		t.Fatalf("%s is %s", pod, w.cluster.Tasks[pod].Status)
	}
}

func cycleByDefault(t *testing.T, w *World) {
	t.Helper()
	if w.Policy == nil {
		doc, issues := policy.Embedded("default")
		if issues.Err() != nil {
			t.Fatal(issues)
		}
		if w.Policy, issues = policy.Load(doc); issues.Err() != nil {
			t.Fatal(issues)
		}
	}
	if err := w.Advance(time.Second); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Cycle(); err != nil {
		t.Fatal(err)
	}
}
