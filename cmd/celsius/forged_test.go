package main

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"
)

// forged is a world in which a tenant writes texts that contain whole lines of the output. The texts are in many places:
//
//   - the queue of a Job, of a PodGroup and of a pod
//   - the PodGroup of a pod
//   - a resource, a volume claim and a node selector
//   - the reason of a Job's condition
const forged = `apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: Node
  metadata: {name: n1, labels: {kubernetes.io/hostname: n1}}
  status: {allocatable: {cpu: 16, memory: 64Gi, pods: 110}, conditions: [{type: Ready, status: "True"}]}
- apiVersion: scheduling.volcano.sh/v1beta1
  kind: Queue
  metadata: {name: qa}
- apiVersion: batch.volcano.sh/v1alpha1
  kind: Job
  metadata: {name: j1, namespace: evil, uid: j1}
  spec:
    schedulerName: celsius
    queue: &forged "qa\nFORGED good/victim\tn1\rFORGED\u2028FORGED\u2029FORGED"
    minAvailable: 1
    tasks: [{name: t, replicas: 1, template: {spec: {containers: [{name: c, image: i, resources: {requests: {cpu: 1}}}]}}}]
- apiVersion: batch.volcano.sh/v1alpha1
  kind: Job
  metadata: {name: j2, namespace: evil, uid: j2}
  spec:
    schedulerName: celsius
    queue: qa
    minAvailable: 1
    tasks:
    - name: t
      replicas: 1
      template: {spec: {containers: [{name: c, image: i, resources: {requests: {cpu: 1, "x\nFORGED": 1}}}]}}
- apiVersion: batch.volcano.sh/v1alpha1
  kind: Job
  metadata: {name: j3, namespace: evil, uid: j3}
  spec:
    schedulerName: celsius
    queue: qa
    minAvailable: 1
    tasks:
    - name: t
      replicas: 1
      template:
        spec:
          nodeSelector: {zone: *forged}
          volumes: [{name: v, persistentVolumeClaim: {claimName: *forged}}]
          containers: [{name: c, image: i}]
  status: {state: {phase: Pending, reason: FailedCreate, message: *forged}}
- apiVersion: scheduling.volcano.sh/v1beta1
  kind: PodGroup
  metadata: {name: g1, namespace: evil, uid: g1}
  spec: {minMember: 1, queue: *forged}
- apiVersion: scheduling.volcano.sh/v1beta1
  kind: PodGroup
  metadata: {name: g2, namespace: evil, uid: g2}
  spec: {minMember: 1, queue: qa, minResources: {"x\nFORGED": 1}}
- apiVersion: v1
  kind: Pod
  metadata: {name: p1, namespace: evil, uid: p1, annotations: {scheduling.volcano.sh/queue-name: *forged}}
  spec: {schedulerName: celsius, containers: [{name: c, image: i}]}
- apiVersion: v1
  kind: Pod
  metadata: {name: p2, namespace: evil, uid: p2, annotations: {scheduling.k8s.io/group-name: *forged}}
  spec: {schedulerName: celsius, containers: [{name: c, image: i}]}
- apiVersion: v1
  kind: Pod
  metadata: {name: p3, namespace: evil, uid: p3, annotations: {scheduling.volcano.sh/queue-name: qa}}
  spec: {schedulerName: celsius, nodeSelector: {zone: *forged}, containers: [{name: c, image: i, resources: {requests: {"x\nFORGED": 1}}}]}
- apiVersion: v1
  kind: Pod
  metadata: {name: p4, namespace: evil, uid: p4, annotations: {scheduling.volcano.sh/queue-name: qa, celsius.dev/sim: *forged}}
  spec: {schedulerName: celsius, containers: [{name: c, image: i}]}
`

// TestForgedLines checks that no text of an object starts a line of the output. A reader would think that the scheduler wrote this line.
func TestForgedLines(t *testing.T) {
	t.Parallel()
	dir := files(t, map[string]string{"snapshot.yaml": forged, "more.yaml": forged})
	snapshot, more := filepath.Join(dir, "snapshot.yaml"), filepath.Join(dir, "more.yaml")
	for _, flags := range [][]string{
		{},
		{"-o", "wide"},
		{"--explain", "all"},
		{"--explain", "evil/j1"},
		{"--explain", "evil/j2"},
		{"--explain", "evil/j3"},
		{"--explain", "evil/p1"},
		{"--explain", "evil/p2"},
		{"--explain", "evil/p3"},
		{"--what-if", more},
		{"--until", "1h"},
	} {
		var out, errs bytes.Buffer
		code := run(append([]string{"simulate", snapshot}, flags...), nil, &out, &errs)
		text := out.String() + errs.String()
		if code != exitOK || !strings.Contains(text, "FORGED") {
			t.Errorf("%q: exit code %d, without the forged text: %s", flags, code, text)
		}
		if strings.ContainsAny(text, "\t\r\u2028\u2029") {
			t.Errorf("%q: control characters in %q", flags, text)
		}
		for line := range strings.Lines(text) {
			if strings.HasPrefix(strings.TrimSpace(line), "FORGED") {
				t.Errorf("%q: an object begins the line %q of\n%s", flags, line, text)
			}
		}
	}
}
