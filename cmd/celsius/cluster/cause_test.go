package cluster

import (
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "github.com/celsius-scheduler/celsius/crds/batch/v1alpha1"
	schedulingv1beta1 "github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
)

// TestCauses checks that `job view` and `explain job` show the first cause. The causes are:
//
//   - a scheduler name that nothing serves
//   - controllers or a scheduler that do not run
//   - the last message of the controllers
func TestCauses(t *testing.T) {
	job := func(scheduler string, phase batchv1alpha1.JobPhase, message string, age time.Duration) *batchv1alpha1.Job {
		j := &batchv1alpha1.Job{ObjectMeta: metav1.ObjectMeta{
			Name: "bert-large", Namespace: "nlp", UID: "u-bert", CreationTimestamp: metav1.NewTime(now().Add(-age)),
		}}
		j.Spec.SchedulerName = scheduler
		j.Status.State.Phase, j.Status.State.Message = phase, message
		if message != "" {
			j.Status.State.Reason = "Unschedulable"
		}
		return j
	}
	lease := func(name, holder string, age time.Duration) client.Object {
		renewed, seconds := metav1.NewMicroTime(now().Add(-age)), int32(15)
		return &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: partsNamespace},
			Spec:       coordinationv1.LeaseSpec{HolderIdentity: &holder, RenewTime: &renewed, LeaseDurationSeconds: &seconds},
		}
	}
	fresh, old := 3*time.Second, 5*time.Minute
	for name, c := range map[string]struct {
		job    *batchv1alpha1.Job
		leases []client.Object
		want   string
	}{
		"misspelt scheduler": {
			job("celsiu", "", "", time.Minute), nil, `its spec.schedulerName is "celsiu": did you mean celsius?`,
		},
		"misspelt scheduler, just now": {
			job("volcanoo", "", "", time.Second), nil, `its spec.schedulerName is "volcanoo": did you mean volcano?`,
		},
		"another scheduler": {job("kueue-runner", "", "", time.Minute), nil, `its spec.schedulerName is "kueue-runner"; Celsius serves`},
		"created just now":  {job("celsius", "", "", time.Second), nil, ""},
		"controllers died": {
			job("celsius", "", "", time.Minute),
			[]client.Object{lease(controllersLease, "celsius-controllers-7f_1", old)},
			"no controllers run: Lease celsius-system/celsius-controllers was last renewed 5m ago, by celsius-controllers-7f_1",
		},
		"scheduler died": {
			job("volcano", batchv1alpha1.Pending, "0/4 nodes are available", time.Hour),
			[]client.Object{lease(controllersLease, "c", fresh), lease(schedulerLease, "celsius-scheduler-0_a", old)},
			"no scheduler runs: Lease celsius-system/celsius-scheduler was last renewed 5m ago, by celsius-scheduler-0_a; before that: " +
				"Unschedulable: 0/4 nodes are available",
		},
		"scheduler released its lease": {
			job("volcano", batchv1alpha1.Pending, "", time.Hour),
			[]client.Object{lease(schedulerLease, "", fresh)},
			"no scheduler runs: nothing holds Lease celsius-system/celsius-scheduler",
		},
		"controllers and scheduler run without the Leases that earlier processes released": {
			func() *batchv1alpha1.Job {
				j := job("volcano", batchv1alpha1.Pending, "0/4 nodes are available", time.Hour)
				j.Status.State.LastTransitionTime = metav1.NewTime(now().Add(-time.Minute))
				return j
			}(),
			[]client.Object{
				lease(controllersLease, "", old), lease(schedulerLease, "", old),
				&schedulingv1beta1.PodGroup{
					ObjectMeta: metav1.ObjectMeta{Name: "bert-large-u-bert", Namespace: "nlp"},
					Status: schedulingv1beta1.PodGroupStatus{Conditions: []schedulingv1beta1.PodGroupCondition{{
						Type: "Unschedulable", Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(now().Add(-time.Minute)),
					}}},
				},
			},
			" Unschedulable: 0/4 nodes are available",
		},
		"controllers wrote until they died": {
			func() *batchv1alpha1.Job {
				j := job("volcano", batchv1alpha1.Pending, "0/4 nodes are available", time.Hour)
				j.Status.State.LastTransitionTime = metav1.NewTime(now().Add(-old + 5*time.Second))
				return j
			}(),
			[]client.Object{lease(controllersLease, "c", old)},
			"no controllers run: Lease celsius-system/celsius-controllers was last renewed 5m ago",
		},
		"both run": {
			job("volcano", batchv1alpha1.Pending, "0/4 nodes are available", time.Hour),
			[]client.Object{lease(controllersLease, "c", fresh), lease(schedulerLease, "s", fresh)},
			"Unschedulable: 0/4 nodes are available",
		},
		"aborted by a policy": { // its message begins with the event, which is also the reason
			func() *batchv1alpha1.Job {
				j := job("volcano", batchv1alpha1.Aborted, "PodPending of pod bert-large-w-0: spec.policies[0] requests AbortJob", time.Hour)
				j.Status.State.Reason = "PodPending"
				return j
			}(), nil, " PodPending of pod bert-large-w-0: spec.policies[0] requests AbortJob",
		},
		"a running job": {
			job("volcano", batchv1alpha1.Running, "", time.Hour), []client.Object{lease(schedulerLease, "s", old)}, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			for _, o := range append(c.leases, c.job) {
				if err := w.client.Create(t.Context(), o); err != nil {
					t.Fatal(err)
				}
			}
			got := w.run("celsius job view bert-large -n nlp")
			first, _, _ := strings.Cut(got, "\n")
			if c.want == "" {
				if strings.HasPrefix(first, "Cause") {
					t.Errorf("a cause is shown: %s", first)
				}
				return
			}
			if !strings.HasPrefix(first, "Cause:") || !strings.Contains(first, c.want) || strings.Contains(first, "PodPending: PodPending") {
				t.Errorf("job view begins with %q, want the cause %q", first, c.want)
			}
			if strings.Contains(first, "Lease") != strings.Contains(c.want, "Lease") {
				t.Errorf("job view begins with %q, want only the cause %q", first, c.want)
			}
			if got := w.run("celsius explain job bert-large -n nlp -o json"); !strings.Contains(got, `"cause": "`) {
				t.Errorf("explain -o json has no cause:\n%s", got)
			}
			if got := w.run("celsius explain job bert-large -n nlp"); !strings.Contains(strings.SplitN(got, "\n\n", 2)[0], c.want) {
				t.Errorf("explain does not begin with the cause:\n%s", got)
			}
		})
	}
}

// TestNearLimits checks that `job view` shows the limits that the job is close to, and no others.
func TestNearLimits(t *testing.T) {
	w := newWorld(t)
	job := &batchv1alpha1.Job{ObjectMeta: metav1.ObjectMeta{Name: "bert-large", Namespace: "nlp"}}
	job.Spec.SchedulerName = "celsius"
	job.Status.State.Phase = batchv1alpha1.Running
	job.Status.LimitConditions = []batchv1alpha1.JobLimitCondition{
		{Type: batchv1alpha1.RetryLimitNear, Status: metav1.ConditionTrue, Message: "the job was restarted 2 times; at 3 restarts"},
		{Type: batchv1alpha1.TimeoutNear, Status: metav1.ConditionFalse, Message: "the limit is no longer near"},
	}
	if err := w.client.Create(t.Context(), job); err != nil {
		t.Fatal(err)
	}
	got := w.run("celsius job view bert-large -n nlp")
	if !strings.Contains(got, "RetryLimitNear:   the job was restarted 2 times; at 3 restarts\n") || strings.Contains(got, "TimeoutNear") {
		t.Errorf("job view:\n%s", got)
	}
}
