package jobplugin_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	batchv1alpha1 "github.com/celsius-scheduler/celsius/crds/batch/v1alpha1"
	"github.com/celsius-scheduler/celsius/statemachines/jobplugin"
	"github.com/celsius-scheduler/celsius/statemachines/objects"
)

// TestSample runs a user's own plugin, which consists of YAML only.
func TestSample(t *testing.T) {
	set, own, issues := jobplugin.LoadFS(os.DirFS("../../samples/jobplugins"))
	if set == nil || len(issues) > 0 {
		t.Fatal(issues.Error())
	}
	if diff := cmp.Diff([]string{"jax"}, own); diff != "" {
		t.Errorf("own plugins (-want +got):\n%s", diff)
	}
	data, err := os.ReadFile("../../samples/jobplugins/jobs/jax.yaml")
	if err != nil {
		t.Fatal(err)
	}
	job := &batchv1alpha1.Job{}
	if err := yaml.UnmarshalStrict(data, job); err != nil {
		t.Fatal(err)
	}
	for _, needed := range set.Needs("jax") {
		job.Spec.Plugins[needed] = nil // as admission does
	}
	run, err := set.For(job)
	if err != nil {
		t.Fatal(err)
	}
	pod, err := objects.Pod(job, objects.PodPlan{Task: &job.Spec.Tasks[0], Index: 3, Group: "g", Plugins: run})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, e := range pod.Spec.Containers[0].Env {
		if strings.HasPrefix(e.Name, "JAX_") {
			got[e.Name] = e.Value
		}
	}
	want := map[string]string{"JAX_COORDINATOR_ADDRESS": "jax-worker-0.jax:4321", "JAX_NUM_PROCESSES": "4", "JAX_PROCESS_ID": "3"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("variables (-want +got):\n%s", diff)
	}
	if pod.Spec.Hostname != "jax-worker-3" || pod.Spec.Subdomain != "jax" {
		t.Errorf("the pod is %s.%s", pod.Spec.Hostname, pod.Spec.Subdomain)
	}
	if diff := cmp.Diff([]corev1.ContainerPort{{Name: "jax-coordinator", ContainerPort: 4321}}, pod.Spec.Containers[0].Ports); diff != "" {
		t.Errorf("ports (-want +got):\n%s", diff)
	}
}

// TestMistakes checks that all mistakes of a plugin are reported at once, with their positions.
func TestMistakes(t *testing.T) {
	const head = "apiVersion: rules.celsius.dev/v1alpha1\nkind: JobPlugin\nmetadata: {name: p}\ndescription: d\n"
	archive, err := txtar.ParseFile("testdata/mistakes/mistakes.txtar")
	if err != nil || len(archive.Files)%2 != 0 {
		t.Fatalf("%d files, %v", len(archive.Files), err)
	}
	for i := 0; i < len(archive.Files); i += 2 {
		name, text, want := strings.TrimSuffix(archive.Files[i].Name, ".yaml"), string(archive.Files[i].Data), string(archive.Files[i+1].Data)
		t.Run(name, func(t *testing.T) {
			if !strings.HasPrefix(text, "apiVersion:") && !strings.HasPrefix(text, "#") {
				text = head + text
			}
			set, _, issues := jobplugin.LoadFile("p", []byte(text))
			got := ""
			for _, i := range issues {
				got += strings.Split(i.Error(), "\n")[0] + "\n"
			}
			if set != nil || got != want || archive.Files[i+1].Name != name+".want" {
				t.Errorf("(-want +got):\n%s", cmp.Diff(want, got))
			}
		})
	}
}

// TestLargeJobs checks that the built-in plugins work for the largest Jobs that admission accepts.
func TestLargeJobs(t *testing.T) {
	set, issues := jobplugin.Default()
	if set == nil {
		t.Fatal(issues.Error())
	}
	for _, c := range []struct {
		tasks, pods int
		plugins     []string
		refused     string
	}{
		{1, 10_000, []string{"svc", "ssh", "pytorch"}, ""},
		{1, 100_000, []string{"ssh"}, ""},
		{1000, 8, []string{"svc", "ssh", "env"}, ""},
		{2, 1500, []string{"tensorflow", "mpi"}, ""},
		{1, 100_000, []string{"svc"}, "1 MiB"},
		{1, 100_000, []string{"tensorflow"}, "128 KiB"},
		{2, 50_000, []string{"mpi"}, "128 KiB"},
	} {
		job := &batchv1alpha1.Job{}
		job.Name, job.Spec.Plugins = "train-resnet-50", map[string][]string{}
		for _, p := range c.plugins {
			job.Spec.Plugins[p] = nil
		}
		for i := range c.tasks {
			task := batchv1alpha1.TaskSpec{Name: []string{"worker", "master"}[min(i, 1)], Replicas: int32(c.pods)}
			if i > 1 {
				task.Name = fmt.Sprintf("task-%d", i)
			}
			task.Template.Spec.Containers = []corev1.Container{{Name: "c"}}
			job.Spec.Tasks = append(job.Spec.Tasks, task)
		}
		run, err := set.For(job)
		if c.refused != "" {
			if err == nil || !strings.Contains(err.Error(), c.refused) {
				t.Errorf("%v: %v", c, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%v: %v", c, err)
			continue
		}
		for i := range 3 {
			if _, err := objects.Pod(job, objects.PodPlan{Task: &job.Spec.Tasks[0], Index: i, Plugins: run}); err != nil {
				t.Errorf("%v: %v", c, err)
			}
		}
		all, err := run.Objects()
		if err != nil {
			t.Errorf("%v: %v", c, err)
		}
		for _, m := range all {
			if _, err := m.Render(); err != nil {
				t.Errorf("%v: %s: %v", c, m.Name, err)
			}
		}
	}
}

// TestRemediesOfLargeJobs changes Jobs with more pods than a plugin can serve as the message states: fewer pods, or shorter names.
func TestRemediesOfLargeJobs(t *testing.T) {
	set, issues := jobplugin.Default()
	if set == nil {
		t.Fatal(issues.Error())
	}
	for _, c := range []struct {
		plugin     string
		pods       int32
		fewer      int32
		namesTasks []string // arguments with which the plugin finds tasks with short names
	}{
		{"svc", 20_000, 10_000, nil},
		{"tensorflow", 4_000, 2_000, []string{"--worker=w"}},
		{"mpi", 4_000, 2_000, []string{"--worker=w"}},
	} {
		run := func(job, worker string, pods int32, args []string) error {
			j := &batchv1alpha1.Job{}
			j.Name, j.Spec.Plugins = job, map[string][]string{c.plugin: args}
			j.Spec.Tasks = []batchv1alpha1.TaskSpec{{Name: worker, Replicas: pods}, {Name: "master", Replicas: 1}}
			_, err := set.For(j)
			return err
		}
		const remedy = "; ask for fewer, or shorten the names of the job and its tasks"
		if err := run("train-resnet-50", "worker", c.pods, nil); err == nil || !strings.Contains(err.Error(), remedy) {
			t.Errorf("%s: %v, want a message with %q", c.plugin, err, remedy)
		}
		if err := run("train-resnet-50", "worker", c.fewer, nil); err != nil {
			t.Errorf("%s with fewer pods: %v", c.plugin, err)
		}
		if err := run("train", "w", c.pods, c.namesTasks); err != nil {
			t.Errorf("%s with shorter names: %v", c.plugin, err)
		}
	}
}

// FuzzArguments checks that arbitrary arguments of a Job are either read, or reported in a few lines.
func FuzzArguments(f *testing.F) {
	for _, args := range []string{
		"--ssh-port=1", "---x", "--=x", "-=x", "-", "--", "--ssh-port\n---x", "-- a", "--ssh-port", "--ssh-private-key=a\nb",
		strings.Repeat("y\n", 12),
	} {
		f.Add(args)
	}
	set, issues := jobplugin.Default()
	if set == nil {
		f.Fatal(issues.Error())
	}
	f.Fuzz(func(t *testing.T, args string) {
		for _, plugin := range []string{"ssh", "svc", "env"} {
			job := &batchv1alpha1.Job{Spec: batchv1alpha1.JobSpec{Plugins: map[string][]string{plugin: strings.Split(args, "\n")}}}
			if _, err := set.For(job); err != nil && len(err.Error()) > 10_000 {
				t.Errorf("%s: %d characters are told of %q", plugin, len(err.Error()), args)
			}
		}
	})
}

// BenchmarkPod measures the pod of one task of a job of n pods, with the plugins svc and pytorch.
func BenchmarkPod(b *testing.B) {
	set, issues := jobplugin.Default()
	if set == nil {
		b.Fatal(issues.Error())
	}
	for _, n := range []int32{10, 1000, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			job := &batchv1alpha1.Job{}
			job.Name, job.Spec.Plugins = "train", map[string][]string{"svc": nil, "pytorch": nil}
			job.Spec.Tasks = []batchv1alpha1.TaskSpec{{Name: "master", Replicas: 1}, {Name: "worker", Replicas: n}}
			for i := range job.Spec.Tasks {
				job.Spec.Tasks[i].Template.Spec.Containers = []corev1.Container{{Name: "c"}}
			}
			run, err := set.For(job)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if _, err := objects.Pod(job, objects.PodPlan{Task: &job.Spec.Tasks[1], Index: i % int(n), Plugins: run}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
