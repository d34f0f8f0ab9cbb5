package main

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestE2ESamples applies every sample that a cluster accepts, in one cluster, and follows it to its end.
func TestE2ESamples(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.StartScheduler()
	w.StartControllers()
	w.Nodes(2, "cpu=16,memory=64Gi")
	w.Nodes(2, "cpu=32,memory=256Gi,nvidia.com/gpu=4")
	w.Apply(sample(t, "queues/queues.yaml"))

	ends := map[string]func(*world){
		"jobs/train.yaml":               job("train", "Completed"),
		"jobs/sweep.yaml":               job("sweep", "Completed"),
		"jobs/notebook.yaml":            pods("Running", "notebook"),
		"lifecycles/launcher.yaml":      job("launcher", "Completed"),
		"lifecycles/min-success.yaml":   job("min-success", "Completed"),
		"lifecycles/some-may-fail.yaml": job("some-may-fail", "Completed"),
		"lifecycles/retry.yaml":         job("retry", "Failed"),
		"lifecycles/exit-codes.yaml":    job("exit-codes", "Aborted"),
		"lifecycles/ttl.yaml":           func(w *world) { w.Kubectl("wait", "vcjob/ttl", "--for=delete") },
		"workloads/cron-job.yaml": func(w *world) { // the next full minute may be one minute away
			w.Kubectl("wait", "cronvcjob/digest", "--for=jsonpath={.status.lastSuccessfulTime}", "--timeout=90s")
			w.Kubectl("delete", "cronvcjob/digest")
			w.Kubectl("wait", "vcjob", "-l", "app=digest", "--for=delete", "--timeout=30s")
		},
		"workloads/job-flow.yaml": func(w *world) {
			w.flowPhase("nightly", "Succeed")
			if got := w.field("vcjob/nightly-train", ".spec.tasks[0].replicas"); got != "3" {
				w.t.Errorf("train has %s replicas", got)
			}
			w.Kubectl("delete", "jobflow/nightly")
			w.Kubectl("wait", "vcjob/nightly-report", "--for=delete")
		},
		"training/pytorch.yaml":    job("pytorch", "Completed"),
		"training/tensorflow.yaml": job("tensorflow", "Completed"),
		"training/mpi.yaml":        job("mpi", "Completed"),
		"training/ray.yaml": func(w *world) {
			w.phase("ray", "Running")
			w.Kubectl("delete", "vcjob/ray")
		},
		"workloads/deployment.yaml":     func(w *world) { w.Kubectl("rollout", "status", "deployment/inference") },
		"workloads/kubernetes-job.yaml": func(w *world) { w.Kubectl("wait", "job.batch/shuffle", "--for=condition=Complete") },
		"workloads/pod-group.yaml":      pods("Succeeded", "pair-client", "pair-server"),
	}
	maps.Copy(ends, endsOfOperators())
	for _, folder := range []string{"jobs", "lifecycles", "operators", "training", "workloads"} {
		files, err := filepath.Glob(filepath.Join("../../samples", folder, "*.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if name := folder + "/" + filepath.Base(file); ends[name] == nil {
				t.Errorf("samples/%s has no end that this test watches", name)
			}
		}
	}
	t.Run("ends", func(t *testing.T) {
		for name, end := range ends {
			w.Apply(sample(t, name))
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				end(w.In(t))
			})
		}
	})

	// Commands.
	w.Kubectl("delete", "vcjob/train", "vcjob/sweep")
	for _, step := range []struct{ apply, command, object, path, end string }{
		{"jobs/train.yaml", "terminate", "vcjob/train", ".status.state.phase", "Terminated"},
		{"jobs/sweep.yaml", "abort", "vcjob/sweep", ".status.state.phase", "Aborted"},
		{"", "resume", "vcjob/exit-codes", ".status.retryCount", "1"},
		{"", "close-queue", "queue/" + w.Queue("batch"), ".status.state", "Closing"},
		{"", "open-queue", "queue/" + w.Queue("batch"), ".status.state", "Open"},
	} {
		if step.apply != "" {
			w.Apply(sample(t, step.apply))
		}
		w.Apply(strings.Replace(sample(t, "commands/"+step.command+".yaml"), `uid: ""`, "uid: "+w.field(step.object, ".metadata.uid"), 1))
		w.Kubectl("wait", step.object, "--for=jsonpath={"+step.path+"}="+step.end)
	}
	w.phase("exit-codes", "Aborted") // it ran again, and failed again in the same way
	w.Kubectl("delete", "vcjob/sweep")
	w.Apply(sample(t, "jobs/sweep.yaml"))
	w.Apply(sample(t, "commands/complete.yaml"))
	w.phase("sweep", "Completed")
}

// TestE2ESamplePolicies checks that the API server accepts every policy below samples.
func TestE2ESamplePolicies(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	files, err := filepath.Glob("../../samples/policies/*.yaml")
	more, moreErr := filepath.Glob("../../samples/policies/*/*.yaml")
	if err != nil || moreErr != nil || len(files)+len(more) < 4 {
		t.Fatalf("policies %v %v: %v %v", files, more, err, moreErr)
	}
	for _, file := range slices.Concat(files, more, []string{"../../samples/quickstart/policy.yaml"}) {
		w.Kubectl("create", "--dry-run=server", "-f", file)
	}
}

// endsOfOperators returns the ends of the objects of operators. Objects that run until their deletion are deleted, to free resources.
func endsOfOperators() map[string]func(*world) {
	runs := func(names ...string) func(*world) {
		return func(w *world) {
			pods("Running", names...)(w)
			w.Kubectl(slices.Concat([]string{"delete", "pod"}, names)...)
		}
	}
	both := func(first, second func(*world)) func(*world) { return func(w *world) { first(w); second(w) } }
	return map[string]func(*world){
		"operators/kuberay.yaml":           pods("Succeeded", "sample-head", "sample-small-worker-0", "sample-submitter"),
		"operators/trainer.yaml":           pods("Succeeded", "finetune-node-0-0", "finetune-node-0-1"),
		"operators/training-operator.yaml": pods("Succeeded", "mnist-master-0", "mnist-worker-0", "mnist-worker-1"),
		"operators/mpi-operator.yaml":      both(pods("Succeeded", "pi-launcher"), runs("pi-worker-0", "pi-worker-1")),
		"operators/spark-operator.yaml":    pods("Succeeded", "spark-pi-driver", "spark-pi-exec-1", "spark-pi-exec-2"),
		"operators/spark-submit.yaml":      pods("Succeeded", "word-count-driver", "word-count-exec-1"),
		"operators/leaderworkerset.yaml":   runs("inference-0", "inference-0-1", "inference-0-2"),
		"operators/grove.yaml":             runs("serving-0-prefill-0", "serving-0-decode-0", "serving-0-decode-1"),
		"operators/flink.yaml": both(pods("Succeeded", "clicks-job-submitter"),
			runs("clicks-jobmanager-0", "clicks-taskmanager-0", "orders-taskmanager-1-1")),
	}
}

// job waits for the final phase of a job.
func job(name, phase string) func(*world) {
	return func(w *world) { w.phase(name, phase) }
}

// pods waits until all pods are in a phase.
func pods(phase string, names ...string) func(*world) {
	return func(w *world) {
		for _, name := range names {
			w.Kubectl("wait", "pod/"+name, "--for=jsonpath={.status.phase}="+phase)
		}
	}
}

// ownNames are words in samples that each test replaces by its own names.
var ownNames = []struct {
	pattern *regexp.Regexp
	as      string
}{
	{regexp.MustCompile(`schedulerName: (celsius|volcano)\b`), "schedulerName: $${scheduler}"},
	{regexp.MustCompile(`\bexample-(\w+)`), "$${queue.$1}"},
	{regexp.MustCompile(`(queue: |queue-name: |kind: Queue, name: |kind: Queue\nmetadata: \{name: )(research|batch)\b`), "$1$${queue.$2}"},
}

// sample reads a file below samples, with the scheduler and the queues of a world.
func sample(t testing.TB, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../../samples", name))
	if err != nil {
		t.Fatal(err)
	}
	return withOwnNames(string(text))
}

func withOwnNames(text string) string {
	for _, own := range ownNames {
		text = own.pattern.ReplaceAllString(text, own.as)
	}
	return text
}
