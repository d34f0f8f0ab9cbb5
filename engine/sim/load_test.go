package sim

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	schedulingv1beta1 "github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
	"github.com/celsius-scheduler/celsius/engine/explain"
	"github.com/celsius-scheduler/celsius/engine/sim/manifest"
	"github.com/celsius-scheduler/celsius/engine/volume"
	"github.com/celsius-scheduler/celsius/statemachines/objects"
)

// TestIssues loads the files of each archive into one world, one after the other, and compares all issues with the section "want". The line
// ends of a file *.crlf are changed.
func TestIssues(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/issues/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no archives: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			t.Parallel()
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			last := len(archive.Files) - 1
			if archive.Files[last].Name != "want" {
				t.Fatal("the last section must be want")
			}
			w, got := NewWorld(Options{Volumes: volume.New}), ""
			for _, f := range archive.Files[:last] {
				data := f.Data
				if strings.HasSuffix(f.Name, ".crlf") {
					data = bytes.ReplaceAll(data, []byte("\n"), []byte("\r\n"))
				}
				_, issues := w.Load(manifest.Source{Name: f.Name, Data: data})
				for _, i := range issues {
					got += i.Render()
				}
				check(t, w)
			}
			if updating() {
				archive.Files[last].Data = []byte(got)
				if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(string(archive.Files[last].Data), got); diff != "" {
				t.Errorf("behaviour changed: explain it in the commit, or -update (-want +got)\n%s", diff)
			}
		})
	}
}

func TestKubectlOutputIsTaken(t *testing.T) {
	t.Parallel()
	sources, err := manifest.Read(nil, "testdata/kubectl")
	if err != nil {
		t.Fatal(err)
	}
	w := NewWorld(Options{Volumes: volume.New})
	_, issues := w.Load(sources...)
	if len(issues) > 0 {
		t.Fatal(issues)
	}
	check(t, w)
	c := w.Cluster()
	got := map[string]string{}
	for key, task := range c.Tasks {
		got[key] = task.Status.String() + " of " + task.Job.Key
	}
	want := map[string]string{
		"default/train-worker-0":     "Running of default/train-7d0f5ba6-3c1f-4b7e-9a34-6f1f0a1c7b11",
		"default/train-worker-1":     "Pending of default/train-7d0f5ba6-3c1f-4b7e-9a34-6f1f0a1c7b11",
		"kube-system/coredns-5d-x2k": "Running of ~kube-system/coredns-5d-x2k",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("tasks (-want +got)\n%s", diff)
	}
	if got := explain.TitlesOf(w.cluster).Of("default/train-7d0f5ba6-3c1f-4b7e-9a34-6f1f0a1c7b11"); got != "default/train" {
		t.Errorf("the job goes by %s, want default/train", got)
	}
}

// quantities makes resource lists comparable.
func quantities(list corev1.ResourceList) map[string]string {
	out := map[string]string{}
	for name, q := range list {
		out[string(name)] = q.String()
	}
	return out
}

func TestJobStandsForItsPodGroupAndPods(t *testing.T) {
	t.Parallel()
	w := newTestWorld(t, `
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: urgent}
value: 1000
---
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata:
  name: train
  namespace: ml
  labels: {team: vision}
  annotations: {volcano.sh/preemptable: "true", note: kept}
spec:
  schedulerName: volcano
  queue: research
  minAvailable: 2
  tasks:
  - name: worker
    replicas: 2
    minAvailable: 1
    template:
      spec:
        containers: [{name: c, resources: {requests: {cpu: 2, memory: 1Gi}}}]
  - name: master
    replicas: 1
    template:
      metadata: {labels: {role: head}}
      spec:
        priorityClassName: urgent
        containers: [{name: c, resources: {limits: {cpu: 500m}}}]
`)
	g, ok := w.objects[manifest.ID{Kind: "PodGroup", Namespace: "ml", Name: "train-train"}].(*schedulingv1beta1.PodGroup)
	if !ok {
		t.Fatal("there is no PodGroup ml/train-train")
	}
	job := w.Cluster().Jobs["ml/train-train"]
	if n, asks := len(job.Tasks), w.Cluster().Dims.Text(job.Request); n != 0 || asks != "cpu 4.5, memory 2Gi, pods 3" {
		t.Errorf("before it is let in the job has %d pods and asks for %s", n, asks)
	}
	letIn := g.DeepCopy()
	letIn.Status.Phase = schedulingv1beta1.PodGroupInqueue
	if err := w.put(letIn); err != nil {
		t.Fatal(err)
	}
	if made, err := w.controllers(); !made || err != nil {
		t.Fatalf("pods were made: %v, %v", made, err)
	}
	if got := w.Cluster().Dims.Text(job.Expected); got != "nothing" {
		t.Errorf("%s is expected though all pods are there", got)
	}
	worker, master := w.objects[manifest.ID{Kind: "Pod", Namespace: "ml", Name: "train-worker-1"}].(*corev1.Pod),
		w.objects[manifest.ID{Kind: "Pod", Namespace: "ml", Name: "train-master-0"}].(*corev1.Pod)
	got := map[string]any{
		"minMember": g.Spec.MinMember, "queue": g.Spec.Queue, "phase": g.Status.Phase, "minTaskMember": g.Spec.MinTaskMember,
		"note": g.Annotations["note"], "team": g.Labels["team"],
		"minResources":       quantities(*g.Spec.MinResources),
		"worker annotations": worker.Annotations, "worker scheduler": worker.Spec.SchedulerName,
		"master priority": *master.Spec.Priority, "master role": master.Labels["role"], "master job": master.Labels["volcano.sh/job-name"],
		"title": explain.TitlesOf(w.cluster).Of("ml/train-train"),
	}
	want := map[string]any{
		"minMember": int32(2), "queue": "research", "phase": schedulingv1beta1.PodGroupPending, "minTaskMember": map[string]int32{
			"worker": 1, "master": 1,
		},
		"note": "kept", "team": "vision",
		// The master, whose class is higher, and one worker: limits replace missing requests.
		"minResources": map[string]string{
			"cpu": "2500m", "memory": "1Gi", "pods": "2",
			"requests.cpu": "2500m", "requests.memory": "1Gi", "limits.cpu": "500m", "count/pods": "2", // in the names of quotas
		},
		"worker annotations": map[string]string{
			"scheduling.k8s.io/group-name": "train-train", "volcano.sh/task-spec": "worker", "volcano.sh/task-index": "1",
			"volcano.sh/job-name": "train", "volcano.sh/queue-name": "research", "volcano.sh/template-uid": "train-worker",
			"volcano.sh/preemptable": "true", "volcano.sh/job-version": "0", "volcano.sh/job-retry-count": "0",
		},
		"worker scheduler": "volcano",
		"master priority":  int32(1000), "master role": "head", "master job": "train",
		"title": "ml/train",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("what the Job stands for (-want +got)\n%s", diff)
	}
}

func TestJobBesideItsPodGroupMakesWhatIsMissing(t *testing.T) {
	t.Parallel()
	const job = `
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: j, uid: u1}
spec:
  tasks:
  - {name: w, replicas: 2, template: {spec: {containers: [{name: c}]}}}
`
	const group = `
---
apiVersion: scheduling.volcano.sh/v1beta1
kind: PodGroup
metadata: {name: j-u1}
spec: {minMember: 1}
status: {phase: Running}
---
apiVersion: v1
kind: Pod
metadata: {name: j-w-0, annotations: {scheduling.k8s.io/group-name: j-u1}}
spec: {schedulerName: volcano, containers: [{name: c}]}
`
	w := newTestWorld(t, job+group)
	if _, err := w.controllers(); err != nil {
		t.Fatal(err)
	}
	if n := len(w.Cluster().Jobs["default/j-u1"].Tasks); n != 2 {
		t.Errorf("the job has %d pods, want 2", n)
	}
	if least := w.Cluster().Jobs["default/j-u1"].MinMember; least != 1 {
		t.Errorf("minMember is %d: the PodGroup that is there counts", least)
	}
	w = newTestWorld(t, strings.Replace(job, "spec:", "status: {state: {phase: Completed}}\nspec:", 1))
	if n := len(w.Cluster().Tasks); n != 0 {
		t.Errorf("a Job that is over makes %d pods", n)
	}
}

func TestBarePodGetsAPodGroup(t *testing.T) {
	t.Parallel()
	w := newTestWorld(t, `
apiVersion: v1
kind: Namespace
metadata: {name: ml, annotations: {scheduling.volcano.sh/queue-name: research}}
---
apiVersion: v1
kind: Pod
metadata: {name: alone, namespace: ml}
spec: {schedulerName: celsius, containers: [{name: c, resources: {requests: {cpu: 1}}}]}
---
apiVersion: v1
kind: Pod
metadata:
  name: rs-1
  uid: p1
  annotations: {scheduling.volcano.sh/queue-name: q1, scheduling.volcano.sh/group-min-member: "2"}
  ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: rs, uid: r1, controller: true}]
spec: {schedulerName: volcano, containers: [{name: c}]}
---
apiVersion: v1
kind: Pod
metadata:
  name: rs-2
  uid: p2
  ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: rs, uid: r1, controller: true}]
spec: {schedulerName: volcano, containers: [{name: c}]}
`)
	jobs := w.Cluster().Jobs
	alone, shared := jobs["ml/podgroup-alone"], jobs["default/podgroup-r1"]
	if alone == nil || shared == nil {
		t.Fatalf("jobs are %v", sortedKeys(jobs))
	}
	if alone.QueueName != "research" || alone.MinMember != 1 {
		t.Errorf("queue %s, minMember %d", alone.QueueName, alone.MinMember)
	}
	if got := w.Cluster().Dims.Text(alone.MinResources); got != "cpu 1, pods 1" {
		t.Errorf("minResources %s", got)
	}
	if shared.QueueName != "q1" || shared.MinMember != 2 || len(shared.Tasks) != 2 {
		t.Errorf("queue %s, minMember %d, %d pods", shared.QueueName, shared.MinMember, len(shared.Tasks))
	}
	if a, b := explain.TitlesOf(w.cluster).Of(alone.Key), explain.TitlesOf(w.cluster).Of(shared.Key); a != "ml/alone" || b != "default/rs" {
		t.Errorf("the jobs go by %s and %s", a, b)
	}
}

func TestShortWorld(t *testing.T) {
	t.Parallel()
	w := newTestWorld(t, `
apiVersion: sim.celsius.dev/v1alpha1
kind: World
nodes:
- {name: "n[09-10]"}
- {name: g, gpus: 4, gpuModel: A100, gpuMemory: 40Gi, taints: ["gpu=yes:NoSchedule"], ready: false, extended: {example.com/x: 3}}
queues:
- {name: q, weight: 3, capability: {cpu: 8}, reclaimable: false, state: Closed}
priorityClasses: {high: 7}
jobs:
- {name: one, replicas: 3, min: 2, cpu: 500m, priority: high, queue: q, created: 5m, autoMinResources: true}
- name: two
  tasks:
  - {name: ps, cpu: 1, node: n09, ports: [80]}
  - {replicas: 2, min: 1, gpuMilli: 250, gpuModels: [A100, T4], tolerations: ["gpu=yes:NoSchedule", "*"], priority: high, gated: true}
pods:
- {name: web, scheduler: other, node: n10, memory: 1Gi}
- {name: going, node: n10, status: Releasing}
`)
	c := w.Cluster()
	job := func(name string) string {
		j := c.Jobs["default/"+name]
		return fmt.Sprintf("min %d, roles %v, priority %d, age %s, %s, reserves %s",
			j.MinMember, j.RoleMin, j.Priority, w.Now().Sub(j.CreatedAt), j.Phase, c.Dims.Text(shown(j.MinResources)))
	}
	pod := func(name string) string {
		p := c.Tasks["default/"+name]
		return fmt.Sprintf("%s, role %q %d, foreign %v, gated %v, priority %d, ports %d, gpus %dx%d %v",
			p.Status, p.Role, p.Index, p.Foreign, p.Gated, p.Priority, len(p.HostPorts), p.GPUCount, p.GPUMilli, p.GPUModels)
	}
	row := c.Nodes.Index["g"]
	got := map[string]string{
		"one":         job("one"),
		"two":         job("two"),
		"two-task1-1": pod("two-task1-1"),
		"two-ps-0":    pod("two-ps-0"),
		"web":         pod("web"),
		"going":       pod("going"),
		"nodes":       strings.Join(sortedKeys(c.Nodes.Index), " "),
		"g": fmt.Sprintf("ready %v, %s, %d devices of %s with %d bytes", c.Nodes.Rows[row].Ready, c.Dims.Text(c.Nodes.AllocatableOf(row)),
			len(c.Nodes.GPUs[row]), c.Nodes.Rows[row].GPUModel, c.Nodes.GPUs[row][0].Memory),
		"queues": strings.Join(sortedKeys(c.Queues), " "),
		"q":      fmt.Sprintf("weight %d, open %v, reclaimable %v", c.Queues["q"].Weight, c.Queues["q"].Open, c.Queues["q"].Reclaimable),
	}
	want := map[string]string{
		"one":         "min 2, roles map[], priority 7, age 5m0s, Pending, reserves cpu 1, pods 2",
		"two":         "min 2, roles map[ps:1 task1:1], priority 0, age 0s, Running, reserves nothing",
		"two-task1-1": `Pending, role "task1" 1, foreign false, gated true, priority 7, ports 0, gpus 1x250 [A100 T4]`,
		"two-ps-0":    `Running, role "ps" 0, foreign false, gated false, priority 0, ports 1, gpus 0x0 []`,
		"web":         `Running, role "" -1, foreign true, gated false, priority 0, ports 0, gpus 0x0 []`,
		"going":       `Releasing, role "" -1, foreign false, gated false, priority 0, ports 0, gpus 0x0 []`,
		"nodes":       "g n09 n10",
		"g": "ready false, cpu 8, memory 32Gi, pods 110, celsius.dev/gpu-memory 160Gi, example.com/x 3, nvidia.com/gpu 4, " +
			"4 devices of A100 with 42949672960 bytes",
		"queues": "default q root",
		"q":      "weight 3, open false, reclaimable false",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the world (-want +got)\n%s", diff)
	}
}

func TestLimitsStandForRequests(t *testing.T) {
	t.Parallel()
	p := &corev1.Pod{}
	p.Spec.HostNetwork = true
	p.Spec.Containers = []corev1.Container{{
		Ports: []corev1.ContainerPort{{ContainerPort: 80}},
		Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{"cpu": resource.MustParse("1")},
			Limits:   corev1.ResourceList{"cpu": resource.MustParse("2"), "memory": resource.MustParse("1Gi")},
		},
	}}
	objects.PodDefaults(p)
	if diff := cmp.Diff(map[string]string{"cpu": "1", "memory": "1Gi"}, quantities(p.Spec.Containers[0].Resources.Requests)); diff != "" {
		t.Errorf("requests (-want +got)\n%s", diff)
	}
	if port := p.Spec.Containers[0].Ports[0]; port.HostPort != 80 || port.Protocol != corev1.ProtocolTCP {
		t.Errorf("port %+v", port)
	}
}

func TestLivesAreChecked(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"jobs: [{name: j, run: -1s}]":                                              "must not be negative",
		"jobs: [{name: j, exitCode: 1}]":                                           "has no effect without run",
		"jobs: [{name: j, run: 1s, exitCode: 256}]":                                "must be between 0 and 255",
		"jobs: [{name: j, comes: -1s}]":                                            "must not be negative",
		"jobs: [{name: j, comes: 1s, created: 1s}]":                                "leave one of them out",
		"pods: [{name: p, comes: soon}]":                                           "comes",
		"pods: [{name: p, run: 5}]":                                                "run",
		"pods: [{name: p, annotations: {celsius.dev/sim: '{rum: 1s}'}}]":           "did you mean run?",
		"jobs: [{name: j, tasks: [{annotations: {celsius.dev/sim: '{run: 1}'}}]}]": "run: 1 is no duration",
	} {
		data := []byte("apiVersion: sim.celsius.dev/v1alpha1\nkind: World\n" + text + "\n")
		_, issues := manifest.Load(manifest.Options{}, manifest.Source{Name: "w", Data: data})
		if issues.Err() == nil || !strings.Contains(issues.Error(), want) {
			t.Errorf("%s: issues %v, want %q", text, issues, want)
		}
	}
	const pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: p, annotations: {celsius.dev/sim: '{rum: 1s}'}}\nspec: {containers: [{name: " +
		"c}]}\n"
	_, issues := manifest.Load(manifest.Options{}, manifest.Source{Name: "p", Data: []byte(pod)})
	if issues.Err() == nil || !strings.Contains(issues.Error(), "p:3:") || !strings.Contains(issues.Error(), "did you mean run?") {
		t.Errorf("issues %v", issues)
	}
}
