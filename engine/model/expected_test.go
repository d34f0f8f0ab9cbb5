package model

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	batchv1alpha1 "github.com/celsius-scheduler/celsius/crds/batch/v1alpha1"
	"github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
)

// batchJob returns the Job train in namespace a. tasks contains role, replicas and requests of each task.
func batchJob(phase batchv1alpha1.JobPhase, tasks ...any) *batchv1alpha1.Job {
	j := &batchv1alpha1.Job{ObjectMeta: metav1.ObjectMeta{Name: "train", Namespace: "a", UID: "u1"}}
	j.Status.State.Phase = phase
	for i := 0; i < len(tasks); i += 3 {
		t := batchv1alpha1.TaskSpec{Name: tasks[i].(string), Replicas: int32(tasks[i+1].(int))}
		t.Template.Spec.Containers = []corev1.Container{container(tasks[i+2].(string))}
		j.Spec.Tasks = append(j.Spec.Tasks, t)
	}
	return j
}

// ofJob makes the Job with the UID the owner of a PodGroup.
func ofJob(uid string) func(*v1beta1.PodGroup) {
	return func(g *v1beta1.PodGroup) {
		g.Name = "train-" + uid
		yes := true
		g.OwnerReferences = []metav1.OwnerReference{{
			APIVersion: batchv1alpha1.GroupVersion.String(), Kind: "Job", Name: "train",
			UID: types.UID(uid), Controller: &yes,
		}}
	}
}

// memberOf returns a pod of the Job, as its controller creates it.
func memberOf(role string, index int, requests string) *corev1.Pod {
	return pod(fmt.Sprintf("train-%s-%d", role, index), requests, annotated(GroupAnnotation, "train-u1", RoleAnnotation, role))
}

// TestExpectedOfAWrongRole checks that a role with an impossible request is reported by its path, and that the other roles still count.
func TestExpectedOfAWrongRole(t *testing.T) {
	c := cluster(t, queue("q"), group("g", "q", ofJob("u1")))
	errs := c.Apply(upserts(batchJob("", "ps", 1, "cpu=-1", "worker", 3, "cpu=2", "late", 1, "memory=-1"))...)
	want := []string{
		"Job a/train: spec.tasks[0].template.spec.containers[].resources.requests[cpu]: -1 is below 0",
		"Job a/train: spec.tasks[2].template.spec.containers[].resources.requests[memory]: -1 is below 0",
	}
	var got []string
	for _, err := range errs {
		got = append(got, err.Error())
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
	if expected := c.Jobs["a/train-u1"].Expected; expected.Get(CPU) != 6000 || expected.Get(Pods) != 3000 {
		t.Errorf("expected is %s", c.Dims.Text(expected))
	}
}

// TestExpected follows the request of a job from before its pods exist until the job has ended.
func TestExpected(t *testing.T) {
	job := func(phase batchv1alpha1.JobPhase) *batchv1alpha1.Job {
		return batchJob(phase, "ps", 1, "cpu=1", "worker", 3, "cpu=2")
	}
	c := cluster(t, queue("q"), group("g", "q", ofJob("u1")))
	j, q := c.Jobs["a/train-u1"], c.Queues["q"]
	for _, step := range []struct {
		what                       string
		do                         func()
		request, expected, inQueue string
	}{
		{"its PodGroup comes before it", func() {}, "cpu=0 memory=0", "", "cpu=0 memory=0"},
		{"it comes", func() { apply(t, c, upserts(job(""))...) }, "cpu=7000 memory=0 pods=4000", "cpu=7000 memory=0 pods=4000", "cpu=0 memory=0"},
		{
			"it is let in", func() { x := c.Begin(); x.Admit(j, time.Unix(1, 0)); x.Commit() }, "cpu=7000 memory=0 pods=4000",
			"cpu=7000 memory=0 pods=4000", "cpu=7000 memory=0 pods=4000",
		},
		{
			"some pods come", func() { apply(t, c, upserts(memberOf("worker", 0, "cpu=2"), memberOf("ps", 0, "cpu=1"))...) },
			"cpu=7000 memory=0 pods=4000", "cpu=4000 memory=0 pods=2000", "cpu=7000 memory=0 pods=4000",
		},
		{
			"all pods are there", func() { apply(t, c, upserts(memberOf("worker", 1, "cpu=2"), memberOf("worker", 2, "cpu=2"))...) },
			"cpu=7000 memory=0 pods=4000", "", "cpu=7000 memory=0 pods=4000",
		},
		{
			"it is scaled up", func() { apply(t, c, upserts(batchJob("Running", "ps", 1, "cpu=1", "worker", 4, "cpu=2"))...) },
			"cpu=9000 memory=0 pods=5000", "cpu=2000 memory=0 pods=1000", "cpu=9000 memory=0 pods=5000",
		},
		{
			"one of another UID is deleted", func() { o := job(""); o.UID = "u0"; apply(t, c, Delta{Delete, o}) }, "cpu=9000 memory=0 pods=5000",
			"cpu=2000 memory=0 pods=1000", "cpu=9000 memory=0 pods=5000",
		},
		{
			"a pod is gone", func() { apply(t, c, Delta{Delete, memberOf("ps", 0, "cpu=1")}) }, "cpu=9000 memory=0 pods=5000",
			"cpu=3000 memory=0 pods=2000", "cpu=9000 memory=0 pods=5000",
		},
		{"it ends", func() { apply(t, c, upserts(job("Completing"))...) }, "cpu=6000 memory=0 pods=3000", "", "cpu=6000 memory=0 pods=3000"},
		{"a gigantic one", func() { apply(t, c, upserts(batchJob("", "worker", 1<<31-1, "cpu=1000000"))...) }, "", "", ""},
		{"it is gone", func() { apply(t, c, Delta{Delete, job("")}) }, "cpu=6000 memory=0 pods=3000", "", "cpu=6000 memory=0 pods=3000"},
	} {
		step.do()
		check(t, c)
		if step.request == "" {
			continue
		}
		got := [3]string{words(c.Dims, j.Request), words(c.Dims, j.Expected), words(c.Dims, q.Request)}
		if want := [3]string{step.request, step.expected, step.inQueue}; got != want {
			t.Errorf("%s: asks for, expects, and in its queue: %q, want %q", step.what, got, want)
		}
	}
	if j.Name != "train" || j.Title != "a/train" {
		t.Errorf("it goes by %s and %s", j.Name, j.Title)
	}
}

// TestExpectedOfPodGroup checks a PodGroup without a Job: its minResources state the requests of its expected pods.
func TestExpectedOfPodGroup(t *testing.T) {
	some := func(phase v1beta1.PodGroupPhase) *v1beta1.PodGroup {
		return group("g", "q", func(g *v1beta1.PodGroup) {
			resources := list("cpu=6")
			g.Spec.MinMember, g.Spec.MinResources, g.Status.Phase = 3, &resources, phase
		})
	}
	c := cluster(t, queue("q"), some("Pending"))
	j := c.Jobs["a/g"]
	for _, step := range []struct {
		do   Delta
		want string
	}{
		{Delta{Upsert, some("Inqueue")}, "cpu=6000 pods=3000"},
		{Delta{Upsert, pod("p0", "cpu=2")}, "cpu=4000 pods=2000"},
		{Delta{Upsert, some("Running")}, ""},
		{Delta{Upsert, some("Inqueue")}, "cpu=4000 pods=2000"},
		{Delta{Delete, pod("p0", "cpu=2")}, "cpu=6000 pods=3000"},
	} {
		apply(t, c, step.do)
		check(t, c)
		if got := words(c.Dims, j.Expected); got != step.want {
			t.Errorf("after %v: %q, want %q", step.do.Object.(metav1.Object).GetName(), got, step.want)
		}
	}
}

// TestExpectedInAnyOrder checks that the expected amounts are correct (Check) in any order of events, and that an undone step changes
// nothing.
func TestExpectedInAnyOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := NewCluster(Options{})
		job := func() *batchv1alpha1.Job {
			phase := rapid.SampledFrom([]batchv1alpha1.JobPhase{"", "Pending", "Running", "Restarting", "Aborted"}).Draw(t, "phase")
			return batchJob(phase, "ps", rapid.IntRange(0, 2).Draw(t, "ps"), "cpu=1", "worker", rapid.IntRange(0, 4).Draw(t, "workers"),
				"cpu=2 memory=1Gi")
		}
		op := func() Op { return rapid.SampledFrom([]Op{Upsert, Upsert, Delete}).Draw(t, "op") }
		t.Repeat(map[string]func(*rapid.T){
			"":    func(t *rapid.T) { failOn(t, c.Check()) },
			"job": func(*rapid.T) { c.Apply(Delta{op(), job()}) },
			"group": func(t *rapid.T) {
				g := group("g", "q", ofJob(rapid.SampledFrom([]string{"u1", "u2"}).Draw(t, "uid")))
				g.Status.Phase = rapid.SampledFrom([]v1beta1.PodGroupPhase{"Pending", "Inqueue", "Running"}).Draw(t, "phase of the group")
				c.Apply(Delta{op(), g})
			},
			"queue": func(*rapid.T) { c.Apply(Delta{op(), queue("q")}) },
			"pod": func(t *rapid.T) {
				c.Apply(Delta{op(), memberOf(rapid.SampledFrom([]string{"ps", "worker"}).Draw(t, "role"), rapid.IntRange(0, 3).Draw(t, "index"),
					"cpu=2")})
			},
			"admit": func(t *rapid.T) {
				x := c.Begin()
				for _, j := range c.JobsByKey() {
					if j.Phase == PhasePending && !j.Orphan {
						x.Admit(j, time.Unix(1, 0))
					}
				}
				failOn(t, c.Check())
				if rapid.Bool().Draw(t, "undone") {
					x.Rollback(0)
				}
				x.Commit()
				c.CloseCycle()
			},
		})
	})
}

func failOn(t *rapid.T, err error) {
	if err != nil {
		t.Fatal(err)
	}
}

// TestExpectedWhereAPodChangesItsRole checks that a pod that changes its role is missing in its old role, and not in its new role.
func TestExpectedWhereAPodChangesItsRole(t *testing.T) {
	c := cluster(t, queue("q"), batchJob("", "ps", 1, "cpu=4", "worker", 1, "cpu=2"), group("g", "q", ofJob("u1")),
		memberOf("worker", 0, "cpu=2"))
	other := memberOf("worker", 0, "cpu=2")
	other.Annotations[RoleAnnotation] = "ps"
	for _, test := range []struct {
		change []Delta
		want   float64
	}{{nil, 4000}, {upserts(other), 2000}, {upserts(memberOf("worker", 0, "cpu=2")), 4000}} {
		c.Apply(test.change...)
		if got := c.Jobs["a/train-u1"].Expected.Get(CPU); got != test.want {
			t.Errorf("expected is cpu %g, want %g", got, test.want)
		}
		if err := c.Check(); err != nil {
			t.Error(err)
		}
	}
}
