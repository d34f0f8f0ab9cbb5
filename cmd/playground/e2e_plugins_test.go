package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiwatch "k8s.io/apimachinery/pkg/watch"
)

// Job plugins with a real API server: pods find each other, and the objects of a job are deleted with its pods.

// variable returns a variable of a pod's first container, or "".
func variable(pod *corev1.Pod, name string) string {
	for _, e := range pod.Spec.Containers[0].Env {
		if e.Name == name {
			return e.Value
		}
	}
	return ""
}

// besideJobs lists the objects that plugins created in the world's namespace, as KIND/NAME.
func (w *world) besideJobs() []string {
	w.t.Helper()
	all := strings.Fields(w.Kubectl("get", "configmaps,secrets,services,networkpolicies", "-o", "name"))
	return slices.DeleteFunc(all, func(name string) bool { return name == "configmap/kube-root-ca.crt" })
}

// differs returns nil if a field of an object exists and differs from before.
func (w *world) differs(object, path, before string) error {
	r := w.TryKubectl("", "get", object, "-o", "jsonpath={"+path+"}")
	if r.Code != 0 || r.Out == "" || r.Out == before {
		return fmt.Errorf("it is not: %s", r.Err)
	}
	return nil
}

// empty returns nil if a field of an object is empty.
func (w *world) empty(object, path string) error {
	if got := w.field(object, path); got != "" {
		return fmt.Errorf("it is %s", got)
	}
	return nil
}

// equipped checks that a pod of the job mpi has the keys, and the hosts as files and as variables. The objects must contain them, too.
func (w *world) equipped(pod *corev1.Pod) {
	w.t.Helper()
	secret, hosts := &corev1.Secret{}, &corev1.ConfigMap{}
	if err := errors.Join(w.Get("mpi-ssh", secret), w.Get("mpi-svc", hosts)); err != nil {
		w.t.Fatal(err)
	}
	at, got := map[string]string{}, map[string]string{}
	for _, m := range pod.Spec.Containers[0].VolumeMounts {
		at[m.Name] = m.MountPath
	}
	for _, v := range pod.Spec.Volumes {
		switch {
		case v.Secret != nil:
			got["secret/"+v.Secret.SecretName] = at[v.Name]
			for _, item := range v.Secret.Items {
				if len(secret.Data[item.Key]) == 0 {
					w.t.Errorf("%s mounts the key %s of its Secret, which is not there", pod.Name, item.Key)
				}
			}
		case v.ConfigMap != nil:
			got["configmap/"+v.ConfigMap.Name] = at[v.Name]
		}
	}
	for _, e := range pod.Spec.Containers[0].Env {
		if ref := e.ValueFrom; ref != nil && ref.ConfigMapKeyRef != nil {
			got[e.Name] = hosts.Data[ref.ConfigMapKeyRef.Key]
		}
	}
	want := map[string]string{
		"secret/mpi-ssh": "/root/.ssh", "configmap/mpi-svc": "/etc/volcano",
		"VC_MASTER_HOSTS": "mpi-master-0.mpi", "VC_MASTER_NUM": "1", "VC_WORKER_HOSTS": "mpi-worker-0.mpi,mpi-worker-1.mpi", "VC_WORKER_NUM": "2",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		w.t.Errorf("%s (-want +got):\n%s", pod.Name, diff)
	}
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

// TestE2EPlugins runs an MPI job to its end. Hosts, keys and variables exist with its pods, follow a change of their number, and are
// deleted with them.
func TestE2EPlugins(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.StartScheduler()
	w.StartControllers()
	w.queue("a", 1)
	w.Apply(mpiJob)

	// 1. The plugins that mpi needs are added. Without free resources the job waits, and no object is created for it yet.
	if got, want := w.field("vcjob/mpi", ".spec.plugins"), `{"mpi":[],"ssh":[],"svc":[]}`; got != want {
		t.Errorf("the plugins are %s, want %s", got, want)
	}
	w.Kubectl("wait", "vcjob/mpi", "--for=jsonpath={.status.state.reason}")
	if got := w.besideJobs(); len(got) > 0 {
		t.Errorf("a job that was not let in has %v", got)
	}

	// 2. After its admission, all objects that its pods read are created, and then its pods, which know the other pods.
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

	// 3. The job ends with its master, and its objects are deleted with its pods.
	w.phase("mpi", "Completed")
	w.Kubectl("wait", "secret/mpi-ssh", "service/mpi", "configmap/mpi-svc", "networkpolicy/mpi", "--for=delete")
	w.Wait("the ledger is empty", func() error { return w.empty("vcjob/mpi", ".status.controlledResources") })
}

// TestE2EPluginsScaled adds pods to a job. They have everything that they read: the ConfigMap names the new pods, and the keys stay.
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
	for _, pod := range w.Pods("volcano.sh/job-name=mpi") {
		w.equipped(&pod)
	}
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

// TestE2EPluginsForeign leaves a Service of another owner unchanged, and the job reports it.
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

// TestE2EDependsOn has three tasks in a row. Each starts when the previous one is ready or complete, and until then names the task that it
// waits for.
func TestE2EDependsOn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.StartScheduler()
	w.StartControllers()
	w.queue("a", 1)
	w.Nodes(1, "cpu=2,memory=16Gi") // enough for two of the three
	came := w.madeWhenReady("volcano.sh/job-name=chain")
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
	want := map[string]string{"chain-load-0": "", "chain-serve-0": "chain-load-0", "chain-work-0": "chain-load-0 chain-serve-0"}
	if diff := cmp.Diff(want, came()); diff != "" {
		t.Errorf("pods, and which were ready before them (-want +got):\n%s", diff)
	}
}

// madeWhenReady watches pods from now on. The returned function ends the watch. It returns for each pod which others had been ready when it
// was created.
func (w *world) madeWhenReady(selector string) func() map[string]string {
	w.t.Helper()
	watch, err := w.Kube.CoreV1().Pods(w.Namespace).Watch(w.Context, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		w.t.Fatal(err)
	}
	done, ready, came := make(chan struct{}), map[string]bool{}, map[string]string{}
	go func() {
		defer close(done)
		for event := range watch.ResultChan() {
			pod, ok := event.Object.(*corev1.Pod)
			if !ok {
				continue
			}
			if event.Type == apiwatch.Added {
				came[pod.Name] = strings.Join(slices.Sorted(maps.Keys(ready)), " ")
			}
			if slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
				return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
			}) {
				ready[pod.Name] = true
			}
		}
	}()
	return func() map[string]string {
		watch.Stop()
		<-done
		return came
	}
}

// TestE2EClaims checks a claim that is created for a job: it outlives a restart, its pods mount it, and it is deleted with the job.
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
    volumeClaim: {storageClassName: "${world}-local", accessModes: [ReadWriteOnce], resources: {requests: {storage: 1024Mi}}}
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

// TestE2EClaimReused checks a user's own claim. It outlives the job that mounts it, and a second job mounts it on the node of its volume.
// Until it exists, the first job waits, and names it.
func TestE2EClaimReused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.StartScheduler()
	w.StartControllers()
	w.queue("a", 1)
	w.localClass("")
	nodes := w.Nodes(3, "cpu=8,memory=16Gi")
	w.volume("v", nodes[1])
	mounting := func(name string) string {
		return jobLike(name, "  tasks:", "  volumes: [{mountPath: /data, volumeClaimName: data}]\n  tasks:", "replicas: 2", "replicas: 1")
	}
	w.Apply(mounting("first"))
	w.Kubectl("wait", "vcjob/first", "--for=jsonpath={.status.state.reason}=ClaimNotFound")
	const why = "spec.volumes[0].volumeClaimName: there is no PersistentVolumeClaim data"
	if got := w.field("vcjob/first", ".status.state.message"); !strings.Contains(got, why) {
		t.Errorf("it says %q", got)
	}
	w.claim("data")
	w.phase("first", "Running")
	uid := w.field("pvc/data", ".metadata.uid")
	w.Kubectl("delete", "vcjob/first")
	w.Kubectl("wait", "pod/first-main-0", "--for=delete")

	w.Apply(mounting("second"))
	w.phase("second", "Running")
	for object, want := range map[string][2]string{
		"pvc/data":          {".metadata.uid", uid},
		"vcjob/second":      {".spec.volumes[0].volumeClaimName", "data"},
		"pod/second-main-0": {".spec.nodeName", nodes[1]},
	} {
		if got := w.field(object, want[0]); got != want[1] {
			t.Errorf("%s of %s is %q, want %q", want[0], object, got, want[1])
		}
	}
}

// TestE2EClaimRefused checks that the job's status states why a claim cannot be created.
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
