package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	batchv1alpha1 "github.com/celsius-scheduler/celsius/crds/batch/v1alpha1"
	schedulingv1beta1 "github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
)

// The example jobs of Volcano, by shape: testdata/examples. The test checks what their containers need: names, hosts, keys, variables,
// ports, volumes. The pods are held until that was checked. Then they are simulated, and the job ends as its policies define.

// example is a job of testdata/examples.
type example struct {
	job  string
	pods int // number of pods that are created at first
	// has maps OBJECT PATH to the expected value of the field; "*" is any value except none.
	has map[string]string
	// ends contains the lives of pods, by name or its beginning. Other pods keep running.
	ends map[string]string
	// phase is the final phase. after contains what is true of the job then, in the same form as has.
	phase, after string
}

// env returns the path of the value of a pod's variable.
func env(pod, name string) string {
	return fmt.Sprintf(`pod/%s .spec.containers[0].env[?(@.name=="%s")].value`, pod, name)
}

func examples() map[string]example {
	const port = ".spec.containers[0].ports[*].containerPort"
	const webHosts = "web-default-nginx-0.web\nweb-default-nginx-1.web\nweb-default-nginx-2.web"
	done := func(prefix string) map[string]string { return map[string]string{prefix: "{run: 1s}"} }
	return map[string]example{
		"job.yaml": {"web", 3, map[string]string{
			env("web-default-nginx-0", "VC_TASK_INDEX"):                                                "0",
			env("web-default-nginx-2", "VK_TASK_INDEX"):                                                "2",
			`pod/web-default-nginx-1 .spec.containers[0].volumeMounts[?(@.name=="web-ssh")].mountPath`: "/home/user/.ssh",
			`pod/web-default-nginx-1 .spec.containers[0].volumeMounts[?(@.name=="web-svc")].mountPath`: "/etc/volcano",
			`cm/web-svc .data.default_nginx\.host`:                                                     webHosts,
			"cm/web-svc .data.VC_DEFAULT_NGINX_NUM":                                                    "3",
			"secret/web-ssh .data.authorized_keys":                                                     "*",
			"service/web .spec.clusterIP":                                                              "None",
			"networkpolicy/web .spec.policyTypes[0]":                                                   "Ingress",
			"vcjob/web .spec.maxRetry":                                                                 "5",
			"pod/web-default-nginx-0 .spec.hostname":                                                   "web-default-nginx-0",
			"pod/web-default-nginx-0 .spec.subdomain":                                                  "web",
		}, done("web"), "Completed", ""},
		"mpi.yaml": {"hello-mpi", 3, map[string]string{
			`cm/hello-mpi-svc .data.mpiworker\.host`: "hello-mpi-mpiworker-0.hello-mpi\nhello-mpi-mpiworker-1.hello-mpi",
			"secret/hello-mpi-ssh .data.id_rsa":      "*",
			"pod/hello-mpi-mpimaster-0 " + port:      "22",
			`pod/hello-mpi-mpimaster-0 .spec.containers[0].volumeMounts[?(@.name=="hello-mpi-ssh")].mountPath`: "/root/.ssh",
			`pod/hello-mpi-mpimaster-0 .spec.containers[0].workingDir`:                                         "/home",
		}, done("hello-mpi-mpimaster"), "Completed", ".status.succeeded 1"},
		"horovod.yaml": {"hello-horovod", 4, map[string]string{
			`cm/hello-horovod-svc .data.worker\.host`:                             "*",
			"cm/hello-horovod-svc .data.VC_WORKER_NUM":                            "3",
			"pod/hello-horovod-worker-2 .spec.imagePullSecrets[0].name":           "default-secret",
			"pod/hello-horovod-worker-2 .spec.containers[0].resources.limits.cpu": "1",
			`vcjob/hello-horovod .metadata.labels.volcano\.sh/job-type`:           "Horovod",
		}, done("hello-horovod-master"), "Completed", ".status.succeeded 1"},
		"tensorflow-mnist.yaml": {"dist-mnist", 3, map[string]string{
			env("dist-mnist-worker-1", "VK_TASK_INDEX"): "1",
			`cm/dist-mnist-svc .data.ps\.host`:          "dist-mnist-ps-0.dist-mnist",
			`cm/dist-mnist-svc .data.worker\.host`:      "dist-mnist-worker-0.dist-mnist\ndist-mnist-worker-1.dist-mnist",
			"pod/dist-mnist-ps-0 " + port:               "2222",
		}, done("dist-mnist-worker"), "Completed", ".status.succeeded 2"},
		"tensorflow-benchmark.yaml": {"tf-benchmark", 3, map[string]string{
			`cm/tf-benchmark-svc .data.ps\.host`:                       "tf-benchmark-ps-0.tf-benchmark",
			"pod/tf-benchmark-worker-0 .spec.containers[0].workingDir": "/opt/benchmarks",
			"pod/tf-benchmark-worker-0 .spec.imagePullSecrets[0].name": "default-secret",
		}, done("tf-benchmark-worker"), "Completed", ".status.succeeded 2"},
		"tensorflow-plugin.yaml": {"tf-plugin", 3, map[string]string{
			env("tf-plugin-worker-1", "TF_CONFIG"): `{"cluster":{"ps":["tf-plugin-ps-0.tf-plugin:5000"],` +
				`"worker":["tf-plugin-worker-0.tf-plugin:5000","tf-plugin-worker-1.tf-plugin:5000"]},"task":{"index":1,"type":"worker"}}`,
			"service/tf-plugin .spec.clusterIP": "None",
		}, done("tf-plugin-worker"), "Completed", ".status.succeeded 2"},
		"pytorch.yaml": {"ddp", 3, map[string]string{
			env("ddp-master-0", "RANK"):        "0",
			env("ddp-worker-1", "RANK"):        "2",
			env("ddp-worker-1", "WORLD_SIZE"):  "3",
			env("ddp-worker-0", "MASTER_ADDR"): "ddp-master-0.ddp",
			env("ddp-worker-0", "MASTER_PORT"): "23456",
			"pod/ddp-master-0 " + port:         "23456",
		}, done("ddp-master"), "Completed", ".status.succeeded 1"},
		"ray.yaml": {"hello-ray", 3, map[string]string{
			"pod/hello-ray-head-0 " + port:                          "6379 8265 10001",
			"pod/hello-ray-worker-1 .spec.containers[0].command[2]": "ray start --block --address=hello-ray-head-0.hello-ray:6379",
			"service/hello-ray-head-svc .spec.ports[*].port":        "6379 8265 10001",
		}, nil, "Running", ".status.running 3"},
		"mindspore-cpu.yaml": {"lenet", 8, map[string]string{
			env("lenet-pod-7", "VC_TASK_INDEX"): "7",
			"cm/lenet-svc .data.VC_POD_NUM":     "8",
		}, done("lenet"), "Completed", ".status.succeeded 8"},
		"mindspore-gpu.yaml": {"mindspore-gpu", 3, map[string]string{
			"pod/mindspore-gpu-mpiworker-1 .spec.containers[0].resources.requests.nvidia\\.com/gpu": "1",
			`cm/mindspore-gpu-svc .data.mpiworker\.host`:                                            "*",
		}, done("mindspore-gpu"), "Completed", ".status.succeeded 3"},
		"mxnet.yaml": {"mxnet", 5, map[string]string{ // a pod fails, so all are created again, and are held again
			"pod/mxnet-scheduler-0 .spec.hostname":    "mxnet-scheduler-0",
			"pod/mxnet-scheduler-0 .spec.subdomain":   "mxnet",
			env("mxnet-worker-0", "DMLC_PS_ROOT_URI"): "mxnet-scheduler-0.mxnet",
		}, map[string]string{"mxnet-worker-1": "{run: 1s, exitCodes: {mxnet: 1}}"}, "Pending", ".status.retryCount 1"},
		"paddlepaddle.yaml": {"ctr", 4, map[string]string{
			`pod/ctr-trainer-1 .spec.containers[0].env[?(@.name=="POD_IP")].valueFrom.fieldRef.fieldPath`: "status.podIP",
			"pod/ctr-trainer-1 .spec.volumes[0].hostPath.path":                                            "/home/work/",
			"pod/ctr-trainer-1 .metadata.labels.paddle-job":                                               "ctr",
			"pod/ctr-pserver-0 .spec.containers[0].resources.requests.ephemeral-storage":                  "1Gi",
		}, done("ctr-trainer"), "Completed", ".status.succeeded 2"},
		"dependency.yaml": {"after-workers", 10, map[string]string{
			`cm/after-workers-svc .data.mpimaster\.host`: "after-workers-mpimaster-0.after-workers",
			"secret/after-workers-ssh .data.config":      "*",
		}, nil, "Completed", ".status.succeeded 1"},
		"hierarchy.yaml": {"eng-prod", 6, map[string]string{
			"pod/eng-prod-default-nginx-5 .metadata.annotations.volcano\\.sh/queue-name": "${queue.eng-prod}",
		}, done("eng-prod"), "Completed", ".status.succeeded 6"},
	}
}

// TestE2EExamples applies each example unchanged, except for the scheduler's name.
func TestE2EExamples(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.StartScheduler()
	w.StartControllers()
	w.Nodes(2, "cpu=32,memory=256Gi,ephemeral-storage=500Gi")
	w.Nodes(1, "cpu=8,memory=64Gi,nvidia.com/gpu=2")
	files, err := filepath.Glob("testdata/examples/*.yaml")
	all := examples()
	if err != nil || len(files) != len(all) {
		t.Fatalf("%d files, %d examples: %v", len(files), len(all), err)
	}
	for _, file := range files {
		name := filepath.Base(file)
		t.Run(strings.TrimSuffix(name, ".yaml"), func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			w := w.In(t)
			w.Apply(withOwnNames(string(text)))
			e := all[name]
			w.allBound(&e)
			for where, want := range e.has {
				object, path, _ := strings.Cut(where, " ")
				if got := w.field(object, path); got != w.Expand(want) && (want != "*" || got == "") {
					t.Errorf("%s is %q, want %q", where, got, want)
				}
			}
			w.play(&e)
			w.phase(e.job, e.phase)
			if e.phase == "Completed" {
				w.Wait("nothing of it runs", func() error {
					for _, p := range w.Pods(ofJob(e.job).LabelSelector) {
						if p.Status.Phase != corev1.PodSucceeded {
							return fmt.Errorf("%s is %s", p.Name, p.Status.Phase)
						}
					}
					return nil
				})
			}
			if path, want, found := strings.Cut(e.after, " "); found {
				w.Kubectl("wait", "vcjob/"+e.job, "--for=jsonpath={"+path+"}="+want)
			}
		})
	}
}

// ofJob selects the pods of a job.
func ofJob(job string) metav1.ListOptions {
	return metav1.ListOptions{LabelSelector: batchv1alpha1.JobNameKey + "=" + job}
}

// allBound waits until all pods that are created at first have a node, and checks their group.
func (w *world) allBound(e *example) {
	w.t.Helper()
	w.Wait("all pods of "+e.job+" are bound", func() error {
		pods, err := w.Kube.CoreV1().Pods(w.Namespace).List(w.Context, ofJob(e.job))
		if err != nil {
			return err
		}
		for i := range pods.Items {
			if pods.Items[i].Spec.NodeName == "" {
				return fmt.Errorf("%s: %s", pods.Items[i].Name, waitsFor(&pods.Items[i]))
			}
		}
		if n := len(pods.Items); n != e.pods {
			return fmt.Errorf("there are %d pods, want %d", n, e.pods)
		}
		return nil
	})
	job, group := &batchv1alpha1.Job{}, &schedulingv1beta1.PodGroup{}
	if err := w.Get(e.job, job); err != nil {
		w.t.Fatal(err)
	}
	if err := w.Get(e.job+"-"+string(job.UID), group); err != nil {
		w.t.Fatal(err)
	}
	if group.Spec.Queue != job.Spec.Queue || e.job != "after-workers" && group.Spec.MinMember != job.Spec.MinAvailable {
		w.t.Errorf("the group asks for %d in queue %s, the job for %d in %s", group.Spec.MinMember, group.Spec.Queue, job.Spec.MinAvailable,
			job.Spec.Queue)
	}
}

// play releases the pods of an example.
func (w *world) play(e *example) {
	w.t.Helper()
	var names []string
	for _, p := range w.Pods(ofJob(e.job).LabelSelector) {
		names = append(names, p.Name)
	}
	slices.Sort(names)
	for _, name := range names {
		life := "{run: 1h}"
		for prefix, says := range e.ends {
			if strings.HasPrefix(name, prefix) {
				life = says
			}
		}
		w.TryKubectl("", "annotate", "--overwrite", "pod", name, "celsius.dev/sim="+life) // the job may have ended by now
	}
}
