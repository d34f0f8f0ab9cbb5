package flow_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/yaml"

	batchv1alpha1 "github.com/celsius-scheduler/celsius/crds/batch/v1alpha1"
	flowv1alpha1 "github.com/celsius-scheduler/celsius/crds/flow/v1alpha1"
	"github.com/celsius-scheduler/celsius/statemachines/flow"
)

func read[T any](t *testing.T, text string) *T {
	t.Helper()
	out := new(T)
	if err := yaml.UnmarshalStrict([]byte(text), out); err != nil {
		t.Fatal(err)
	}
	return out
}

const spec = `
schedulerName: other
policies: [{event: PodFailed, action: RestartJob}]
plugins: {svc: []}
tasks:
- name: main
  replicas: 1
  template: {spec: {containers: [{name: main, image: a, env: [{name: A, value: a}, {name: B, value: b}]}]}}
`

// TestPatched checks that a patch is merged by the names of tasks and containers, and that fields it omits stay.
func TestPatched(t *testing.T) {
	job, err := flow.Patched(read[batchv1alpha1.JobSpec](t, spec), read[batchv1alpha1.JobSpec](t, `
queue: research
policies: [{event: PodEvicted, action: AbortJob}]
plugins: {env: []}
tasks:
- name: main
  replicas: 3
  template: {spec: {nodeSelector: {zone: a}, containers: [{name: main, env: [{name: A, value: c}]}, {name: side, image: s}]}}
- {name: more, replicas: 1}
- {name: more, minAvailable: 1}
`))
	if err != nil {
		t.Fatal(err)
	}
	want := read[batchv1alpha1.JobSpec](t, `
schedulerName: other
queue: research
policies: [{event: PodEvicted, action: AbortJob}]
plugins: {svc: [], env: []}
tasks:
- name: main
  replicas: 3
  template:
    spec:
      nodeSelector: {zone: a}
      containers:
      - {name: main, image: a, env: [{name: A, value: c}, {name: B, value: b}]}
      - {name: side, image: s}
- {name: more, replicas: 1, minAvailable: 1}
`)
	byName := cmp.Transformer("byName", func(containers []corev1.Container) map[string]corev1.Container {
		out := map[string]corev1.Container{}
		for _, c := range containers {
			out[c.Name] = c
		}
		return out
	})
	if diff := cmp.Diff(want, job, byName); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestJob checks that the Job belongs to the flow, names its origin, and that the template stays unchanged.
func TestJob(t *testing.T) {
	of := &flowv1alpha1.JobFlow{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "f", UID: "1"}}
	template := &flowv1alpha1.JobTemplate{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "a.b"}, Spec: *read[batchv1alpha1.JobSpec](t, spec),
	}
	job, err := flow.Job(of, &flowv1alpha1.Flow{Name: "a.b", Patch: &flowv1alpha1.Patch{
		JobSpec: &batchv1alpha1.JobSpec{Tasks: []batchv1alpha1.TaskSpec{{Name: "main", Replicas: 7}}},
	}}, template)
	if err != nil {
		t.Fatal(err)
	}
	marks := map[string]string{"volcano.sh/createdByJobTemplate": "team.a.b", "volcano.sh/createdByJobFlow": "team.f"}
	if job.Name != "f-a.b" || job.Namespace != "team" || !metav1.IsControlledBy(job, of) || job.Spec.Tasks[0].Replicas != 7 ||
		!cmp.Equal(job.Labels, marks) || !cmp.Equal(job.Annotations, marks) {
		t.Errorf("%+v", job)
	}
	if diff := cmp.Diff(read[batchv1alpha1.JobSpec](t, spec), &template.Spec); diff != "" {
		t.Errorf("the template is changed (-was +is):\n%s", diff)
	}
}
