package controller

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "github.com/celsius-scheduler/celsius/crds/batch/v1alpha1"
	flowv1alpha1 "github.com/celsius-scheduler/celsius/crds/flow/v1alpha1"
	"github.com/celsius-scheduler/celsius/statemachines/controller/flows"
)

// template returns a JobTemplate with one task of one pod. Its Jobs belong to another scheduler, so that the test sets their phases.
func template(name string) *flowv1alpha1.JobTemplate {
	return &flowv1alpha1.JobTemplate{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: batchv1alpha1.JobSpec{SchedulerName: "other", Tasks: []batchv1alpha1.TaskSpec{{
			Name: "main", Replicas: 1,
			Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "a"}}}},
		}}},
	}
}

func flowOf(t *testing.T, spec string) *flowv1alpha1.JobFlow {
	t.Helper()
	flow := &flowv1alpha1.JobFlow{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "f"}}
	if err := yaml.UnmarshalStrict([]byte(spec), &flow.Spec); err != nil {
		t.Fatal(err)
	}
	return flow
}

const diamond = `
flows:
- name: a
- {name: b, dependsOn: {targets: [a]}}
- {name: c, dependsOn: {targets: [a]}}
- {name: d, dependsOn: {targets: [b, c]}}
- {name: e, dependsOn: {targets: [d]}}
`

func diamondStage(t *testing.T, spec string) *stage {
	t.Helper()
	objects := []client.Object{flowOf(t, spec)}
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		objects = append(objects, template(name))
	}
	return newStage(t, Options{}, objects...)
}

func (s *stage) flows() *flows.Flows {
	s.t.Helper()
	r, ok := s.reconcilers["jobflow"].(*flows.Flows)
	if !ok {
		s.t.Fatal("no controller of flows")
	}
	return r
}

func (s *stage) flow() *flowv1alpha1.JobFlow {
	s.t.Helper()
	flow := &flowv1alpha1.JobFlow{}
	if err := s.api.Get(s.t.Context(), types.NamespacedName{Namespace: namespace, Name: "f"}, flow); err != nil {
		s.t.Fatal(err)
	}
	return flow
}

// goes sets the phase of Jobs.
func (s *stage) goes(phase batchv1alpha1.JobPhase, names ...string) {
	s.t.Helper()
	for _, name := range names {
		job := s.jobNamed(name)
		job.Status.State.Phase = phase
		if err := s.api.Status().Update(s.t.Context(), job); err != nil {
			s.t.Fatal(err)
		}
	}
	s.settle()
}

func (s *stage) jobNamed(name string) *batchv1alpha1.Job {
	s.t.Helper()
	job := &batchv1alpha1.Job{}
	if err := s.api.Get(s.t.Context(), types.NamespacedName{Namespace: namespace, Name: name}, job); err != nil {
		s.t.Fatal(err)
	}
	return job
}

// jobsAre checks the phase of the flow and the names of the existing Jobs.
func (s *stage) jobsAre(phase flowv1alpha1.Phase, want string) {
	s.t.Helper()
	var got []string
	for _, name := range s.names("job") {
		got = append(got, name.Name)
	}
	if diff := cmp.Diff(fmt.Sprint(phase, " ", want), fmt.Sprint(s.flow().Status.State.Phase, " ", strings.Join(got, " "))); diff != "" {
		s.t.Errorf("phase and Jobs (-want +got):\n%s\n%s", diff, strings.Join(s.lines, "\n"))
	}
}

// TestJobFlow runs a diamond to its end, and checks the Jobs and the status in each step.
func TestJobFlow(t *testing.T) {
	s := diamondStage(t, diamond)
	s.settle()
	s.jobsAre("Pending", "f-a")
	job := s.jobNamed("f-a")
	marks := map[string]string{"volcano.sh/createdByJobTemplate": "team.a", "volcano.sh/createdByJobFlow": "team.f"}
	if diff := cmp.Diff([]map[string]string{marks, marks}, []map[string]string{job.Labels, job.Annotations}); diff != "" {
		t.Errorf("labels and annotations (-want +got):\n%s", diff)
	}
	if !metav1.IsControlledBy(job, s.flow()) || !s.told("f Normal Created: created job f-a from jobtemplate a") {
		t.Errorf("owners %v, events %q", job.OwnerReferences, s.lines)
	}
	s.goes("Pending", "f-a")
	s.goes("Running", "f-a")
	s.jobsAre("Running", "f-a")
	s.goes("Completed", "f-a")
	s.jobsAre("Running", "f-a f-b f-c")
	s.goes("Completed", "f-c")
	s.jobsAre("Running", "f-a f-b f-c")
	s.goes("Completing", "f-b")
	st := s.flow().Status
	if diff := cmp.Diff([][]string{{"f-a", "f-c"}, nil, nil}, [][]string{st.CompletedJobs, st.RunningJobs, st.UnKnowJobs}); diff != "" {
		t.Errorf("lists (-want +got):\n%s", diff)
	}
	var phases []batchv1alpha1.JobPhase
	for _, h := range st.JobStatusList[0].RunningHistories {
		phases = append(phases, h.State)
	}
	if diff := cmp.Diff([]batchv1alpha1.JobPhase{"Pending", "Running", "Completed"}, phases); diff != "" {
		t.Errorf("history of f-a (-want +got):\n%s", diff)
	}
	s.goes("Completed", "f-b")
	s.goes("Completed", "f-d")
	s.goes("Completed", "f-e")
	s.jobsAre("Succeed", "f-a f-b f-c f-d f-e")
	for name, n := range s.made {
		if n != 1 {
			t.Errorf("%s was made %d times", name, n)
		}
	}
}

// TestJobFlowInTrouble lets every write of a flow fail once. No Job is created twice, and the result is the same.
func TestJobFlowInTrouble(t *testing.T) {
	run := func(s *stage) {
		s.settle()
		for _, name := range []string{"f-a", "f-b", "f-c", "f-d", "f-e"} {
			s.goes("Running", name)
			s.goes("Completed", name)
		}
	}
	calm := diamondStage(t, diamond)
	run(calm)
	for call := 1; call <= calm.calls; call++ {
		for _, tr := range []trouble{{call, true, true}, {call, false, true}, {call, call%2 == 0, false}} {
			s := diamondStage(t, diamond)
			s.trouble = tr
			run(s)
			s.jobsAre("Succeed", "f-a f-b f-c f-d f-e")
			for name, n := range s.made {
				if n != 1 {
					t.Errorf("%+v: %s was made %d times", tr, name, n)
				}
			}
		}
	}
}

// TestJobFlowRetainsNone checks that with the policy delete all Jobs are deleted when all are Completed, and none is created again.
func TestJobFlowRetainsNone(t *testing.T) {
	s := diamondStage(t, "jobRetainPolicy: delete\n"+diamond)
	foreign := &batchv1alpha1.Job{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: "stranger", Labels: map[string]string{flowv1alpha1.CreatedByJobFlow: "team.f"},
	}, Spec: batchv1alpha1.JobSpec{SchedulerName: "other"}}
	s.add(foreign)
	s.settle()
	for _, name := range []string{"f-a", "f-b", "f-c", "f-d", "f-e"} {
		s.goes("Completed", name)
	}
	s.jobsAre("Succeed", "stranger")
	if got := s.flow().Status.CompletedJobs; len(got) != 5 {
		t.Errorf("the status has forgotten: completed %v", got)
	}
}

// TestJobFlowFails checks that a failed Job ends the flow, and that its siblings continue.
func TestJobFlowFails(t *testing.T) {
	for _, phase := range []batchv1alpha1.JobPhase{"Failed", "Terminated"} {
		s := diamondStage(t, diamond)
		s.settle()
		s.goes("Completed", "f-a")
		s.goes(phase, "f-b")
		s.goes("Completed", "f-c")
		s.jobsAre("Failed", "f-a f-b f-c")
		if n := testutil.ToFloat64(s.parts.metrics.flows.WithLabelValues(namespace, "Failed")); n != 1 {
			t.Errorf("counted are %v flows that failed", n)
		}
	}
	s := diamondStage(t, diamond)
	s.settle()
	s.goes("Aborted", "f-a")
	s.jobsAre("Pending", "f-a")
	if got := s.flow().Status.UnKnowJobs; !slices.Equal(got, []string{"f-a"}) {
		t.Errorf("unKnowJobs %v", got)
	}
}

// TestJobFlowGone checks that a completed Job counts forever and is not created again, even if it is deleted before the status lists it.
func TestJobFlowGone(t *testing.T) {
	s := diamondStage(t, diamond)
	s.settle()
	s.goes("Completed", "f-a")
	gone := s.jobNamed("f-b")
	gone.Status.State.Phase = "Completed"
	for _, name := range []string{"f-a", "f-b"} {
		if err := s.api.Delete(t.Context(), s.jobNamed(name)); err != nil {
			t.Fatal(err)
		}
	}
	s.flows().JobGone(gone)
	s.goes("Completed", "f-c")
	s.goes("Completed", "f-d")
	s.goes("Completed", "f-e")
	s.jobsAre("Succeed", "f-c f-d f-e")
}

// TestJobFlowHindered checks that a missing template, and a Job of another owner, are reported and do not affect other Jobs.
func TestJobFlowHindered(t *testing.T) {
	s := newStage(t, Options{}, flowOf(t, "flows: [{name: a}, {name: b}, {name: c}, {name: d, dependsOn: {targets: [b]}}]"),
		template("b"), template("c"), template("d"),
		&batchv1alpha1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "f-b"}, Spec: batchv1alpha1.JobSpec{SchedulerName: "other"}})
	s.settle()
	s.goes("Completed", "f-b")
	s.jobsAre("Pending", "f-b f-c")
	for _, text := range []string{
		"f Warning JobTemplateMissing: flows[0].name: there is no JobTemplate a in namespace team; make it, and its Job is made then",
		"f Warning ForeignJob: there is a Job f-b that this JobFlow did not make, and it is not taken for its own; delete or rename that Job",
	} {
		if !s.told(text) {
			t.Errorf("no event %q in %q", text, s.lines)
		}
	}
	if got := s.flow().Status.UnKnowJobs; !slices.Equal(got, []string{"f-b", "f-c"}) {
		t.Errorf("unKnowJobs %v", got)
	}
	s.add(template("a"))
	if woken, err := s.flows().Naming(t.Context(), template("a")); err != nil || len(woken) != 1 || woken[0].Name != "f" {
		t.Errorf("the template wakes %v, %v", woken, err)
	}
	s.settle()
	s.jobsAre("Pending", "f-a f-b f-c")
}

// TestJobFlowOfOthers checks that a JobFlow whose Jobs belong to another scheduler is ignored, also because of its patches. For a JobFlow
// with Jobs of both no Job is created.
func TestJobFlowOfOthers(t *testing.T) {
	theirs, ours := template("a"), template("b")
	theirs.Spec.SchedulerName = "theirs"
	for _, c := range []struct {
		flows, jobs string
		told        bool
	}{
		{"[{name: a}]", "", false},
		{"[{name: b, patch: {jobSpec: {schedulerName: theirs}}}]", "", false},
		{"[{name: a, patch: {jobSpec: {schedulerName: other}}}, {name: b}]", "f-a f-b", false},
		{"[{name: a}, {name: b}]", "", true},
	} {
		s := newStage(t, Options{}, theirs.DeepCopy(), ours.DeepCopy(), flowOf(t, "flows: "+c.flows))
		s.settle()
		phase := flowv1alpha1.Phase("")
		if c.jobs != "" {
			phase = flowv1alpha1.Pending
		}
		s.jobsAre(phase, c.jobs)
		if s.told("ForeignScheduler: some of its Jobs are of the scheduler theirs") != c.told {
			t.Errorf("%s: events %q", c.flows, s.lines)
		}
	}
}

// TestJobFlowEmpty checks that a flow without Jobs succeeds.
func TestJobFlowEmpty(t *testing.T) {
	s := newStage(t, Options{}, flowOf(t, "flows: []"))
	s.settle()
	s.jobsAre("Succeed", "")
}

// TestJobFlowPatch checks that a Job contains its flow's patch on top of its template.
func TestJobFlowPatch(t *testing.T) {
	s := newStage(t, Options{}, template("a"),
		flowOf(t, "flows: [{name: a, patch: {jobSpec: {queue: research, tasks: [{name: main, replicas: 3}]}}}]"))
	s.settle()
	job := s.jobNamed("f-a").Spec
	if job.Queue != "research" || job.SchedulerName != "other" || len(job.Tasks) != 1 || job.Tasks[0].Replicas != 3 ||
		job.Tasks[0].Template.Spec.Containers[0].Image != "a" {
		t.Errorf("spec %+v", job)
	}
}

// TestJobFlowOutOfBounds checks that no Job is created for a JobFlow above the limit, and that this is reported. A dependency that can
// never be fulfilled is also reported, if the JobFlow passed admission with it.
func TestJobFlowOutOfBounds(t *testing.T) {
	s := newStage(t, Options{MaxJobs: 2}, template("a"), flowOf(t, "flows: [{name: a}, {name: b}, {name: c}]"))
	s.settle()
	s.jobsAre("Pending", "")
	if !s.told("f Warning OutOfBounds: spec.flows: are 3, and a JobFlow may have 2 here") {
		t.Errorf("events %q", s.lines)
	}
	s = newStage(t, Options{}, template("a"), template("b"), flowOf(t, "flows: [{name: a}, {name: b, dependsOn: {targets: [a, c]}}]"))
	s.settle()
	s.goes("Completed", "f-a")
	s.jobsAre("Running", "f-a")
	if !s.told("f Warning NeverBegins: flows[1].dependsOn.targets[1]: there is no flow c, so flow b never begins") {
		t.Errorf("events %q", s.lines)
	}
}

// TestJobFlowIsLarge: a JobFlow that was stored past admission may have as many flows as an object can hold. With four times the flows, a
// reconcile takes less than nine times as long. If it compared each flow with all others, it would take sixteen times as long.
func TestJobFlowIsLarge(t *testing.T) {
	look := func(n int) time.Duration {
		var spec strings.Builder
		spec.WriteString("flows:\n- {name: n0}\n")
		for i := 1; i < n; i++ {
			fmt.Fprintf(&spec, "- {name: n%d, dependsOn: {targets: [n%d]}}\n", i, i-1)
		}
		flow := flowOf(t, spec.String())
		for i := range n / 2 {
			done := flowv1alpha1.JobStatus{Name: fmt.Sprintf("f-n%d", i), State: "Completed"}
			flow.Status.JobStatusList = append(flow.Status.JobStatusList, done)
		}
		s := newStage(t, Options{MaxJobs: -1}, flow, template(fmt.Sprintf("n%d", n/2)))
		begin := time.Now()
		s.round()
		took := time.Since(begin)
		s.jobsAre("Running", fmt.Sprintf("f-n%d", n/2))
		return took
	}
	const tries = 3 // another program may use the processor during one of them
	ratio := 0.0
	for range tries {
		few, many := look(5_000), look(20_000)
		if ratio = float64(many) / float64(few); ratio < 9 {
			return
		}
	}
	t.Errorf("four times the flows took %.1f times as long", ratio)
}

// TestJobTemplateStatus checks that a template lists the Jobs that were created from it, without deleted ones.
func TestJobTemplateStatus(t *testing.T) {
	s := newStage(t, Options{}, template("a.b"), flowOf(t, "flows: [{name: a.b}]"))
	is := func(want ...string) {
		t.Helper()
		s.settle()
		got := &flowv1alpha1.JobTemplate{}
		if err := s.api.Get(t.Context(), types.NamespacedName{Namespace: namespace, Name: "a.b"}, got); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got.Status.JobDependsOnList, want) {
			t.Errorf("jobs %v, want %v", got.Status.JobDependsOnList, want)
		}
	}
	is("f-a.b")
	job := s.jobNamed("f-a.b")
	if got := flows.TemplateOf(job); len(got) != 1 || got[0].Name != "a.b" {
		t.Errorf("the job wakes %v", got)
	}
	s.goes("Completed", "f-a.b")
	if err := s.api.Delete(t.Context(), job); err != nil {
		t.Fatal(err)
	}
	is()
}
