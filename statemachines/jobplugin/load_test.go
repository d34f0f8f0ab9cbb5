package jobplugin_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	batchv1alpha1 "github.com/celsius-scheduler/celsius/crds/batch/v1alpha1"
	"github.com/celsius-scheduler/celsius/statemachines/jobplugin"
	"github.com/celsius-scheduler/celsius/statemachines/objects"
)

// TestSample runs the plugin of a user's own, which is YAML alone.
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

// TestMistakes shows that what is wrong with a plugin is told at its place, all at once.
func TestMistakes(t *testing.T) {
	const head = "apiVersion: rules.celsius.dev/v1alpha1\nkind: JobPlugin\nmetadata: {name: p}\ndescription: d\n"
	for _, c := range []struct{ name, text, want string }{
		{"another kind", "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\ndescription: d\n", `
p:1:13: apiVersion: apiVersion is "v1"; write rules.celsius.dev/v1alpha1
p:2:7: kind: kind is "Pod"; write JobPlugin`},
		{"unknown keys", head + "podz: []\npods: [{name: a, in: [containers], envs: []}]\n", `
p:5:1: podz: unknown field "podz"; did you mean "pods"?
p:6:8: pods[0]: the row adds nothing; add env, ports, mounts, volumes or the like
p:6:36: pods[0].envs: unknown field "envs"; did you mean "env"?`},
		{"a field of a pod that is none", head + "pods: [{name: a, in: [containers], env: [{nam: X, value: \"1\"}]}]\n", `
p:5:43: pods[0].env[0].nam: EnvVar has no field "nam"; did you mean "name"?`},
		{"a field of an object that is none", head + "objects: [{name: a, object: {apiVersion: v1, kind: Service, metadata: {name: a}, spec: {clusterIPP: None}}}]\n", `
p:5:89: objects[0].object.spec.clusterIPP: ServiceSpec has no field "clusterIPP"; did you mean "clusterIPs"?`},
		{"a kind that none may make", head + "objects: [{name: a, object: {apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: a}}}]\n", `
p:5:29: objects[0].object: a plugin makes no rbac.authorization.k8s.io/v1 ClusterRole; it may make networking.k8s.io/v1 NetworkPolicy, v1 ConfigMap, v1 Secret, v1 Service`},
		{"in another namespace", head + "objects: [{name: a, object: {apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: kube-system}}}]\n", `
p:5:83: objects[0].object.metadata.namespace: unknown field "namespace"; known here: annotations, labels, name`},
		{"a Secret that changes", head + "objects: [{name: a, object: {apiVersion: v1, kind: Secret, metadata: {name: a}}}]\n", `
p:5:11: objects[0]: the controllers read no Secret, so one is made once and stays as it is; add once: true, and put what changes into a ConfigMap`},
		{"a type that the field has not", head + "pods: [{name: a, in: [containers], ports: [{containerPort: \"{{task.name}}\"}], command: \"{{index}}\"}]\n", `
p:5:60: pods[0].ports[0].containerPort: the field is a number, and the expression gives string
p:5:88: pods[0].command: the field is a list, and the expression gives int`},
		{"an expression that is none", head + "variables: [{name: v, expression: job.spec.taskz}]\n", `
p:5:44: variables[0].expression: Job.spec has no field "taskz"; did you mean "tasks"?`},
		{"an expression that never ends", head + "pods: [{name: a, hostname: \"{{index\"}]\n", `
p:5:29: pods[0].hostname: {{ is never closed; write }} after the expression`},
		{"containers that are not named", head + "pods: [{name: a, env: [{name: X, value: x}]}]\n", `
p:5:18: pods[0].env: env is added to containers, and the row does not say to which; add in: [containers]`},
		{"parameters", head + `params:
- {name: a, flag: a, type: number, default: 1}
- {name: b, flag: b, type: int, default: 9, max: 8}
- {name: b, flag: c, type: bool, default: perhaps}
- {name: d, flag: d, type: string, default: x, pattern: "["}
`, `
p:6:28: params[0].type: there is no type "number" of a parameter; write string, int or bool
p:7:42: params[1].default: the default is "9"; write a whole number up to 8
p:8:10: params[2].name: duplicate name "b" (first on line 7); give it a name of its own
p:8:43: params[2].default: the default is "perhaps"; write true or false
p:9:57: params[3].pattern: it is no regular expression: error parsing regexp: missing closing ]: ` + "`[`"},
		{"needs what is not there", head + "needs: [svcs]\n", `
p:3:18: metadata.name: it needs the plugin "svcs", and there is none; did you mean "svc"? (known: env, hcclrank, mpi, p, pytorch, ray, ssh, svc, tensorflow)`},
		{"twice", head + "---\n" + head, `
p:8:18: metadata.name: there is a plugin "p" already, on line 3 of p; give it a name of its own`},
		{"nothing", "", `
p: holds no document; a JobPlugin is wanted`},
	} {
		t.Run(c.name, func(t *testing.T) {
			set, _, issues := jobplugin.LoadFile("p", []byte(c.text))
			got := ""
			for _, i := range issues {
				got += "\n" + strings.Split(i.Error(), "\n")[0]
			}
			if set != nil || got != c.want {
				t.Errorf("(-want +got):\n%s", cmp.Diff(c.want, got))
			}
		})
	}
}

// TestLargeJobs: the largest Jobs that admission takes have pods and objects by the plugins that ship.
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

// FuzzArguments: whatever a Job gives as arguments is read, or told, in a few lines.
func FuzzArguments(f *testing.F) {
	for _, args := range []string{"--ssh-port=1", "---x", "--=x", "-=x", "-", "--", "--ssh-port\n---x", "-- a", "--ssh-port", "--ssh-private-key=a\nb", "x\nx\nx\nx\nx\nx\nx\nx\nx\nx\nx\nx"} {
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

// BenchmarkPod is the pod of one task of a job of n pods with the plugins svc and pytorch.
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
