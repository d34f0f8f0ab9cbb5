package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Job plugins beside a real API server: pods find each other, and what is made for a job goes with its pods.

// variable is what a pod's first container is told by a variable; "": it has none.
func variable(pod *corev1.Pod, name string) string {
	for _, e := range pod.Spec.Containers[0].Env {
		if e.Name == name {
			return e.Value
		}
	}
	return ""
}

// besideJobs lists what plugins made in the world's namespace, as KIND/NAME, but for what every namespace has.
func (w *world) besideJobs() []string {
	w.t.Helper()
	all := strings.Fields(w.Kubectl("get", "configmaps,secrets,services,networkpolicies", "-o", "name"))
	return slices.DeleteFunc(all, func(name string) bool { return name == "configmap/kube-root-ca.crt" })
}

// differs says whether a field of an object is there and another than before.
func (w *world) differs(object, path, before string) error {
	r := w.TryKubectl("", "get", object, "-o", "jsonpath={"+path+"}")
	if r.Code != 0 || r.Out == "" || r.Out == before {
		return fmt.Errorf("it is not: %s", r.Err)
	}
	return nil
}

// empty says whether an object has nothing in a field.
func (w *world) empty(object, path string) error {
	if got := w.field(object, path); got != "" {
		return fmt.Errorf("it is %s", got)
	}
	return nil
}

const mpiJob = `
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: mpi}
spec:
  schedulerName: ${scheduler}
  queue: ${queue.a}
  minAvailable: 3
  plugins: {mpi: []}
  tasks:
  - name: master
    replicas: 1
    policies: [{event: TaskCompleted, action: CompleteJob}]
    template:
      metadata: {annotations: {celsius.dev/sim: '{run: 3s}'}}
      spec:
        restartPolicy: Never
        containers: [{name: main, image: main, resources: {requests: {cpu: "1", memory: 1Gi}}}]
  - name: worker
    replicas: 2
    template:
      metadata: {annotations: {celsius.dev/sim: '{run: 1h}'}}
      spec:
        restartPolicy: Never
        containers: [{name: main, image: main, resources: {requests: {cpu: "1", memory: 1Gi}}}]
`

// TestE2EPlugins has a job of MPI its whole way: hosts, keys and variables are there with its pods, follow it when it is scaled, and go
// with them.
func TestE2EPlugins(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.StartScheduler()
	w.StartControllers()
	w.queue("a", 1)
	w.Apply(mpiJob)

	// 1. Plugins that mpi needs come with it. Without room the job waits, and nothing is made for it yet.
	if got, want := w.field("vcjob/mpi", ".spec.plugins"), `{"mpi":[],"ssh":[],"svc":[]}`; got != want {
		t.Errorf("the plugins are %s, want %s", got, want)
	}
	w.Kubectl("wait", "vcjob/mpi", "--for=jsonpath={.status.state.reason}")
	if got := w.besideJobs(); len(got) > 0 {
		t.Errorf("a job that was not let in has %v", got)
	}

	// 2. Let in, it has all that its pods read, then its pods, which are told who the others are.
	w.Nodes(2, "cpu=8,memory=16Gi")
	w.phase("mpi", "Running")
	want := []string{"configmap/mpi-svc", "secret/mpi-ssh", "service/mpi", "networkpolicy.networking.k8s.io/mpi"}
	if got := w.besideJobs(); !slices.Equal(got, want) {
		t.Errorf("the job has %v, want %v", got, want)
	}
	var master corev1.Pod
	if err := w.Get("mpi-master-0", &master); err != nil {
		t.Fatal(err)
	}
	if got, want := variable(&master, "MPI_HOST"), "mpi-worker-0.mpi,mpi-worker-1.mpi"; got != want {
		t.Errorf("MPI_HOST is %q, want %q", got, want)
	}
	if master.Spec.Hostname != "mpi-master-0" || master.Spec.Subdomain != "mpi" {
		t.Errorf("the master is %s.%s", master.Spec.Hostname, master.Spec.Subdomain)
	}
	for object, path := range map[string]string{"secret/mpi-ssh": ".data.id_rsa", "configmap/mpi-svc": ".data.VC_WORKER_HOSTS"} {
		if w.field(object, path) == "" {
			t.Errorf("%s has no %s", object, path)
		}
	}
	if got := w.field("service/mpi", ".spec.clusterIP"); got != "None" {
		t.Errorf("the Service has the address %s", got)
	}

	// 3. With the master the job ends, and what was made for it goes with its pods.
	w.phase("mpi", "Completed")
	w.Kubectl("wait", "secret/mpi-ssh", "service/mpi", "configmap/mpi-svc", "networkpolicy/mpi", "--for=delete")
	w.Wait("the ledger is empty", func() error { return w.empty("vcjob/mpi", ".status.controlledResources") })
}

// TestE2EPluginsScaled has a job grow: its ConfigMap names the new pods, and its keys stay.
func TestE2EPluginsScaled(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.StartScheduler()
	w.StartControllers()
	w.queue("a", 1)
	w.Nodes(2, "cpu=8,memory=16Gi")
	w.Apply(strings.Replace(mpiJob, "{run: 3s}", "{run: 1h}", 1))
	w.phase("mpi", "Running")
	keys := w.field("secret/mpi-ssh", ".data.id_rsa")
	w.Kubectl("patch", "vcjob/mpi", "--type=json", "-p", `[{"op": "replace", "path": "/spec/tasks/1/replicas", "value": 4}]`)
	w.Kubectl("wait", "configmap/mpi-svc", "--for=jsonpath={.data.VC_WORKER_NUM}=4")
	w.Kubectl("wait", "pod/mpi-worker-3", "--for=create")
	if w.field("secret/mpi-ssh", ".data.id_rsa") != keys {
		t.Error("the keys are others than before")
	}
	w.command("RestartJob", "Job", "mpi")
	w.Wait("the job that was restarted has keys of its own", func() error {
		return w.differs("secret/mpi-ssh", ".data.id_rsa", keys)
	})
	w.phase("mpi", "Running")
}

// TestE2EPluginsForeign leaves a Service alone that is somebody else's, and the job says so.
func TestE2EPluginsForeign(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.StartScheduler()
	w.StartControllers()
	w.queue("a", 1)
	w.Nodes(1, "cpu=8,memory=16Gi")
	w.Apply("{apiVersion: v1, kind: Service, metadata: {name: work}, spec: {ports: [{port: 80}]}}")
	w.Apply(jobLike("work", "  tasks:", "  plugins: {svc: []}\n  tasks:"))
	w.Kubectl("wait", "vcjob/work", "--for=jsonpath={.status.state.reason}=PluginError")
	if got := w.field("vcjob/work", ".status.state.message"); !strings.Contains(got, "the Service work belongs to another owner") {
		t.Errorf("it says %q", got)
	}
	if got := w.field("service/work", ".spec.ports[0].port"); got != "80" {
		t.Errorf("their Service has port %s", got)
	}
	w.Kubectl("delete", "service/work")
	w.phase("work", "Running")
}

// TestE2EDependsOn has three tasks in a row: each comes once the one before is ready or done, and says until then for whom it waits.
func TestE2EDependsOn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.StartScheduler()
	w.StartControllers()
	w.queue("a", 1)
	w.Nodes(1, "cpu=2,memory=16Gi") // room for two of the three
	w.Apply(`
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: chain}
spec:
  schedulerName: ${scheduler}
  queue: ${queue.a}
  tasks:
  - name: load
    replicas: 1
    template:
      metadata: {annotations: {celsius.dev/sim: '{run: 10s, readyAfter: 4s}'}}
      spec: &spec
        restartPolicy: Never
        containers: [{name: main, image: main, resources: {requests: {cpu: "1", memory: 1Gi}}}]
  - name: serve
    replicas: 1
    dependsOn: {name: [load]}
    template:
      metadata: {annotations: {celsius.dev/sim: '{run: 6s}'}}
      spec: *spec
  - name: work
    replicas: 1
    dependsOn: {name: [serve, load]}
    template:
      metadata: {annotations: {celsius.dev/sim: '{run: 3s}'}}
      spec: *spec
`)
	w.Kubectl("wait", "vcjob/chain", "--for=jsonpath={.status.state.reason}=TasksWait")
	const why = "task work waits for task serve, of which 0 of 1 pods are ready"
	if got := w.field("vcjob/chain", ".status.state.message"); !strings.Contains(got, why) {
		t.Errorf("it says %q", got)
	}
	w.phase("chain", "Completed")
	made := map[string]string{}
	for _, pod := range w.Pods("volcano.sh/job-name=chain") {
		made[pod.Name] = pod.CreationTimestamp.Format(time.TimeOnly)
	}
	if made["chain-load-0"] > made["chain-serve-0"] || made["chain-serve-0"] > made["chain-work-0"] || len(made) != 3 {
		t.Errorf("the pods were made at %v", made)
	}
}

// TestE2EClaims has a claim made for a job, which outlives a restart, is mounted by its pods, and goes with the job.
func TestE2EClaims(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.StartScheduler()
	w.StartControllers()
	w.queue("a", 1)
	w.localClass("")
	nodes := w.Nodes(1, "cpu=8,memory=16Gi")
	w.volume("v", nodes[0])
	w.Apply(jobLike("work", "  tasks:", `  volumes:
  - mountPath: /data
    volumeClaim: {storageClassName: "${world}-local", accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
  tasks:`))
	w.phase("work", "Running")
	claim := w.field("vcjob/work", ".spec.volumes[0].volumeClaimName")
	const claimOf = ".spec.volumes[?(@.persistentVolumeClaim)].persistentVolumeClaim.claimName"
	if got := w.field("pod/work-main-0", claimOf); got != claim || claim == "" {
		t.Errorf("the pod mounts %q, and the job names %q", got, claim)
	}
	uid := w.field("pvc/"+claim, ".metadata.uid")
	w.command("RestartJob", "Job", "work")
	w.Kubectl("wait", "vcjob/work", "--for=jsonpath={.status.retryCount}=1")
	w.phase("work", "Running")
	if got := w.field("pvc/"+claim, ".metadata.uid"); got != uid {
		t.Errorf("the claim is another one after the restart: %s, %s", got, uid)
	}
	w.Kubectl("delete", "vcjob/work")
	w.Kubectl("wait", "pvc/"+claim, "--for=delete")
}

// TestE2EClaimRefused tells in the job's status why a claim cannot be made.
func TestE2EClaimRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.StartScheduler()
	w.StartControllers()
	w.queue("a", 1)
	w.Apply(jobLike("work", "  tasks:", "  volumes: [{mountPath: /data, volumeClaim: {accessModes: [ReadWriteOnce]}}]\n  tasks:"))
	w.Kubectl("wait", "vcjob/work", "--for=jsonpath={.status.state.reason}=PVCError")
	got := w.field("vcjob/work", ".status.state.message")
	if !strings.Contains(got, "spec.volumes[0].volumeClaim") || !strings.Contains(got, "resources") {
		t.Errorf("it says %q", got)
	}
}
