package main

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"
)

// runningPods returns a cluster with one node that is full of a tenant's pods. Each pod has these annotations.
func runningPods(annotations string) string {
	var out strings.Builder
	out.WriteString(`apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: Node
  metadata: {name: n1, uid: n1}
  status: {allocatable: {cpu: 2, memory: 64Gi, pods: 110}, conditions: [{type: Ready, status: "True"}]}
- apiVersion: batch.volcano.sh/v1alpha1
  kind: Job
  metadata: {name: victim, namespace: good, uid: victim}
  spec:
    schedulerName: celsius
    minAvailable: 1
    tasks: [{name: t, replicas: 1, template: {spec: {containers: [{name: c, image: i, resources: {requests: {cpu: 1}}}]}}}]
`)
	for _, name := range []string{"x0", "x1"} {
		out.WriteString(`- apiVersion: v1
  kind: Pod
  metadata:
    {name: ` + name + `, namespace: evil, uid: ` + name + `, creationTimestamp: "2026-01-05T11:00:00Z", annotations: {` + annotations + `}}
  spec: {schedulerName: celsius, nodeName: n1, containers: [{name: c, image: i, resources: {requests: {cpu: 1}}}]}
  status: {phase: Running, startTime: "2026-01-05T11:00:00Z", conditions: [{type: PodScheduled, status: "True"}]}
`)
	}
	return out.String()
}

// TestSimAnnotationsOfACluster checks that a tenant cannot free resources of a cluster in a simulation of it.
func TestSimAnnotationsOfACluster(t *testing.T) {
	t.Parallel()
	dir := files(t, map[string]string{"snapshot.yaml": runningPods(`celsius.dev/sim: "{run: 1s}"`)})
	for _, test := range []struct {
		flags  []string
		has    []string
		hasNot []string
	}{
		{nil, []string{
			"warning: the annotation celsius.dev/sim of 2 objects has no effect: it was read from a cluster; " +
				"celsius simulate --obey-sim-annotations applies it", "it lacks cpu 0.6",
		}, nil},
		{[]string{"--cycles", "9"}, []string{"it lacks cpu 0.6"}, []string{"bind "}},
		{[]string{"--obey-sim-annotations"}, []string{"it lacks cpu 0.6"}, []string{"warning", "bind "}},
		{[]string{"--obey-sim-annotations", "--cycles", "9"}, []string{"bind      good/victim-t-0  n1"}, []string{"warning"}},
		{
			[]string{"--obey-sim-annotations", "--until", "idle"},
			[]string{"evil/x0      default  1     -1h        -1h      1s        0s"},
			[]string{"2562047h"},
		},
	} {
		var out, errs bytes.Buffer
		args := append([]string{"simulate", "--now", "2026-01-05T12:00:00Z", filepath.Join(dir, "snapshot.yaml")}, test.flags...)
		code := run(args, nil, &out, &errs)
		text := out.String() + errs.String()
		for _, want := range test.has {
			if code != exitOK || !strings.Contains(text, want) {
				t.Errorf("%q: exit code %d, and no %q in\n%s", test.flags, code, want, text)
			}
		}
		for _, unwanted := range test.hasNot {
			if strings.Contains(text, unwanted) {
				t.Errorf("%q: %q in\n%s", test.flags, unwanted, text)
			}
		}
	}
}

// TestRunningPodsOfNoQueue checks the warning about running pods whose PodGroup or queue does not exist.
func TestRunningPodsOfNoQueue(t *testing.T) {
	t.Parallel()
	for annotation, want := range map[string]string{
		"scheduling.k8s.io/group-name: gone": `Pod evil/x0 is of PodGroup "gone", which is not there: it uses resources of its node, ` +
			`and of no queue`,
		"scheduling.volcano.sh/queue-name: gone": `Pod evil/x0 is in queue "gone", which is not there: it uses resources of its node, ` +
			`and of no queue`,
	} {
		dir := files(t, map[string]string{"snapshot.yaml": runningPods(annotation)})
		var out, errs bytes.Buffer
		run([]string{"simulate", filepath.Join(dir, "snapshot.yaml")}, nil, &out, &errs)
		if text := errs.String(); !strings.Contains(text, want) || strings.Contains(text, "not placed") {
			t.Errorf("%s: no %q in\n%s", annotation, want, text)
		}
	}
}
