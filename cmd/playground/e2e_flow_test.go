package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1alpha1 "github.com/celsius-scheduler/celsius/crds/batch/v1alpha1"
)

// JobFlows, used only through kubectl.

// jobTemplate returns a JobTemplate with one task of one pod, which is simulated as in sim.
func jobTemplate(name, sim string) string {
	return fmt.Sprintf(`
---
apiVersion: flow.volcano.sh/v1alpha1
kind: JobTemplate
metadata: {name: %s}
spec:
  schedulerName: ${scheduler}
  queue: ${queue.a}
  tasks:
  - name: main
    replicas: 1
    template:
      metadata: {annotations: {celsius.dev/sim: '%s'}}
      spec:
        restartPolicy: Never
        containers: [{name: main, image: main, resources: {requests: {cpu: 100m, memory: 1Gi}}}]
`, name, sim)
}

// jobFlow returns a JobFlow of these flows.
func jobFlow(name, retain, flows string) string {
	return fmt.Sprintf(`
apiVersion: flow.volcano.sh/v1alpha1
kind: JobFlow
metadata: {name: %s}
spec:
  jobRetainPolicy: %s
  flows: %s
`, name, retain, flows)
}

const diamondOfFlows = `
  - name: a
  - {name: b, dependsOn: {targets: [a]}}
  - {name: c, dependsOn: {targets: [a]}}
  - {name: d, dependsOn: {targets: [b, c]}}
  - {name: e, dependsOn: {targets: [d]}}
`

// allCompleted returns what kubectl shows for the states of five completed Jobs.
func allCompleted() string { return strings.TrimSpace(strings.Repeat("Completed ", 5)) }

// flowWorld returns a world with enough resources, and JobTemplates a to e whose pods run for two seconds.
func flowWorld(t *testing.T) *world {
	w := newWorld(t)
	w.StartScheduler()
	w.StartControllers()
	w.queue("a", 1)
	w.Nodes(1, "cpu=16,memory=64Gi")
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		w.Apply(jobTemplate(name, "{run: 2s}"))
	}
	return w
}

// flowPhase waits until a JobFlow is in a phase.
func (w *world) flowPhase(name, phase string) {
	w.t.Helper()
	w.Kubectl("wait", "jobflow/"+name, "--for=jsonpath={.status.state.phase}="+phase)
}

// madePhase waits until a Job of the controllers exists and is in a phase.
func (w *world) madePhase(job, phase string) {
	w.t.Helper()
	w.Kubectl("wait", "vcjob/"+job, "--for=create")
	w.phase(job, phase)
}

// jobsOf returns the names of the world's Jobs, sorted.
func (w *world) jobsOf() []string {
	w.t.Helper()
	return strings.Fields(w.Kubectl("get", "vcjob", "-o", "jsonpath={.items[*].metadata.name}"))
}

// jobsAre waits until the world has exactly these Jobs.
func (w *world) jobsAre(want ...string) {
	w.t.Helper()
	w.Wait("the Jobs are "+strings.Join(want, " "), func() error {
		if got := w.jobsOf(); !slices.Equal(got, want) {
			return fmt.Errorf("they are %v", got)
		}
		return nil
	})
}

// began checks that a Job was not created before others were Completed.
func (w *world) began(job string, after ...string) {
	w.t.Helper()
	at := func(name string) (made, ended time.Time) {
		var j batchv1alpha1.Job
		if err := w.Get(name, &j); err != nil {
			w.t.Fatal(err)
		}
		return j.CreationTimestamp.Time, j.Status.State.LastTransitionTime.Time
	}
	made, _ := at(job)
	for _, other := range after {
		if _, ended := at(other); made.Before(ended) {
			w.t.Errorf("%s was made at %s, and %s was Completed at %s", job, made, other, ended)
		}
	}
}

// TestE2EFlow runs a diamond of Jobs to its end. Each Job begins when its predecessors are Completed, the status lists them, JobTemplates
// list their Jobs, and the Jobs are deleted with the flow.
func TestE2EFlow(t *testing.T) {
	t.Parallel()
	w := flowWorld(t)
	w.Apply(jobFlow("flow", "retain", diamondOfFlows))
	w.flowPhase("flow", "Running")
	w.flowPhase("flow", "Succeed")
	w.began("flow-b", "flow-a")
	w.began("flow-c", "flow-a")
	w.began("flow-d", "flow-b", "flow-c")
	w.began("flow-e", "flow-d")
	for path, want := range map[string]string{
		".status.completedJobs[*]":                             "flow-a flow-b flow-c flow-d flow-e",
		".status.runningJobs":                                  "",
		".status.jobStatusList[*].state":                       allCompleted(),
		".status.conditions.flow-e.phase":                      "Completed",
		".status.jobStatusList[0].runningHistories[-1:].state": "Completed",
	} {
		if got := w.field("jobflow/flow", path); got != want {
			t.Errorf("%s of the flow is %q, want %q", path, got, want)
		}
	}
	if got := w.field("jobtemplate/a", ".status.jobDependsOnList[*]"); got != "flow-a" {
		t.Errorf("the JobTemplate a tells of %q", got)
	}
	for object, want := range map[string]string{
		".metadata.labels.volcano\\.sh/createdByJobFlow":          "${namespace}.flow",
		".metadata.annotations.volcano\\.sh/createdByJobTemplate": "${namespace}.b",
		".metadata.ownerReferences[0].kind":                       "JobFlow",
	} {
		if got := w.field("vcjob/flow-b", object); got != w.Expand(want) {
			t.Errorf("%s of flow-b is %q, want %q", object, got, w.Expand(want))
		}
	}
	if got := w.Kubectl("get", "jf", "flow"); !strings.Contains(got, "STATUS") || !strings.Contains(got, "Succeed") {
		t.Errorf("kubectl get shows\n%s", got)
	}
	w.Kubectl("delete", "jobflow/flow")
	w.jobsAre()
	w.Wait("the JobTemplate forgets its Job", func() error { return w.empty("jobtemplate/a", ".status.jobDependsOnList") })
}

// TestE2EFlowRetainsNone checks that Jobs are deleted when all are Completed, and that none is created again. A Job of another owner with
// the flow's label stays.
func TestE2EFlowRetainsNone(t *testing.T) {
	t.Parallel()
	w := flowWorld(t)
	w.Apply(jobLike("stranger", "{name: work}", "{name: stranger, labels: {volcano.sh/createdByJobFlow: ${namespace}.flow}}"))
	w.Apply(jobFlow("flow", "delete", diamondOfFlows))
	w.flowPhase("flow", "Succeed")
	w.jobsAre("stranger")
	if got := w.field("jobflow/flow", ".status.jobStatusList[*].state"); got != allCompleted() {
		t.Errorf("the flow has forgotten: %q", got)
	}
	w.Apply(jobTemplate("a", "{run: 3s}")) // an event that wakes the flow does not create a Job again
	w.Kubectl("label", "jobflow/flow", "seen=yes")
	w.Kubectl("wait", "vcjob/stranger", "--for=jsonpath={.status.state.phase}=Running")
	w.jobsAre("stranger")
}

// TestE2EFlowRefused checks that JobTemplates and patches of flows that cannot work are refused before they are stored, with helpful
// messages.
func TestE2EFlowRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.queue("a", 1)
	w.Apply(jobTemplate("a", "{run: 2s}"))
	w.Apply(jobTemplate("b", "{run: 2s}"))
	for _, c := range []struct{ what, text, want string }{
		{
			"a JobTemplate", strings.Replace(jobTemplate("c", ""), "${queue.a}", "root", 1),
			"spec.queue: the queue root only holds other queues; name one below it",
		},
		{"a target", jobFlow("f", "retain", "[{name: a}, {name: b, dependsOn: {targets: [aa]}}]"), "there is no flow aa; did you mean a?"},
		{
			"a cycle", jobFlow("f", "retain", "[{name: a, dependsOn: {targets: [b]}}, {name: b, dependsOn: {targets: [a]}}]"),
			"the flows wait for each other: a -> b -> a",
		},
		{
			"a patch", jobFlow("f", "retain", "[{name: a, patch: {jobSpec: {queue: root}}}]"),
			"spec.flows[0]: of its Job, spec.queue: the queue root only holds other queues",
		},
		{"a patch of nothing", jobFlow("f", "retain", "[{name: c, patch: {jobSpec: {maxRetry: 1}}}]"), "there is no JobTemplate c to patch"},
		{"a policy", jobFlow("f", "keep", "[{name: a}]"), `supported values: "retain", "delete"`},
		{
			"a probe",
			jobFlow("f", "retain", "[{name: a}, {name: b, dependsOn: {targets: [a], probe: {tcpSocketList: [{taskName: main, port: 0}]}}}]"),
			"write the port of the pods, from 1 to 65535",
		},
	} {
		if said := w.refused(c.text); !strings.Contains(said, c.want) {
			t.Errorf("%s: lacks %q:\n%s", c.what, c.want, said)
		}
	}
	said := w.TryKubectl(jobFlow("f", "retain", "[{name: a}, {name: a}, {name: c}]"), "create", "--dry-run=server", "-f", "-")
	for _, want := range []string{
		"Warning: spec.flows[1].name: a is the name of spec.flows[0] already", "there is no JobTemplate c in namespace",
	} {
		if said.Code != 0 || !strings.Contains(said.Err, want) {
			t.Errorf("a warning: lacks %q: %d %s", want, said.Code, said.Err)
		}
	}
}

// TestE2EFlowPatchAndProbe checks that a Job contains the patch of its flow. A probe lets another Job begin while this one runs. A Job is
// also created if its JobTemplate is created later.
func TestE2EFlowPatchAndProbe(t *testing.T) {
	t.Parallel()
	w := flowWorld(t)
	w.Apply(jobTemplate("long", "{run: 1h}"))
	w.Apply(jobFlow("flow", "retain", `
  - name: long
    patch: {jobSpec: {priorityClassName: "", tasks: [{name: main, replicas: 2, template: {metadata: {labels: {by: patch}}}}]}}
  - {name: a, dependsOn: {targets: [long], probe: {taskStatusList: [{taskName: main, phase: Running}]}}}
  - {name: b, dependsOn: {targets: [long]}}
  - {name: late, dependsOn: {targets: [a]}}
`))
	w.madePhase("flow-long", "Running")
	if got := w.field("vcjob/flow-long", ".spec.tasks[0].replicas"); got != "2" {
		t.Errorf("the Job has %s replicas, and the patch says 2", got)
	}
	if got := w.field("pod/flow-long-main-1", ".metadata.labels.by"); got != "patch" {
		t.Errorf("the pod has the label %q", got)
	}
	w.madePhase("flow-a", "Completed")
	w.Wait("the flow tells of the JobTemplate that is missing", func() error {
		return w.warned("JobFlow/flow", "there is no JobTemplate late")
	})
	w.Apply(jobTemplate("late", "{run: 1s}"))
	w.madePhase("flow-late", "Completed")
	w.jobsAre("flow-a", "flow-late", "flow-long")
}

// TestE2EFlowFails checks that a failed or terminated Job ends its flow, and that no other Job is created. An aborted Job delays the flow
// until it is resumed.
func TestE2EFlowFails(t *testing.T) {
	t.Parallel()
	w := flowWorld(t)
	w.Apply(jobTemplate("bad", "{run: 1s, exitCodes: {main: 1}}"))
	w.Apply(jobTemplate("long", "{run: 20s}"))
	w.Apply(jobFlow("fails", "delete",
		"[{name: bad}, {name: a, dependsOn: {targets: [bad]}}, {name: c}, {name: d, dependsOn: {targets: [c]}}]"))
	w.flowPhase("fails", "Failed")
	w.phase("fails-bad", "Failed")
	if got := w.field("jobflow/fails", ".status.failedJobs[*]"); got != "fails-bad" {
		t.Errorf("failed are %q", got)
	}
	w.phase("fails-c", "Completed") // its siblings continue

	w.Apply(jobFlow("held", "retain", "[{name: long}, {name: a, dependsOn: {targets: [long]}}]"))
	w.madePhase("held-long", "Running")
	w.command("AbortJob", "Job", "held-long")
	w.phase("held-long", "Aborted")
	w.Wait("the flow tells of the Job that was aborted", func() error {
		if got := w.field("jobflow/held", ".status.unKnowJobs[*]"); got != "held-long" {
			return errors.New("unKnowJobs are " + got)
		}
		return nil
	})
	if got := w.field("jobflow/held", ".status.state.phase"); got != "Running" {
		t.Errorf("the flow is %s while its Job is aborted", got)
	}
	w.command("ResumeJob", "Job", "held-long")
	w.phase("held-long", "Running")
	w.command("TerminateJob", "Job", "held-long")
	w.flowPhase("held", "Failed")
	for _, job := range w.jobsOf() {
		if slices.Contains([]string{"fails-a", "fails-d", "held-a"}, job) {
			t.Errorf("the Job %s was made though its flow had failed", job)
		}
	}
}
