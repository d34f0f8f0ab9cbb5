package controller

import (
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	schedulingv1beta1 "github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
)

// outage is a stage with a Job. The test writes the Lease of the scheduler.
type outage struct {
	*stage
	watch *schedulerWatch
	lease *coordinationv1.Lease
}

func newOutage(t *testing.T, lease bool) *outage {
	t.Helper()
	s := newStage(t, Options{}, openQueue())
	o := &outage{stage: s, watch: newSchedulerWatch(s.parts, make(wake, wakeBuffer))}
	if lease {
		o.lease = &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "celsius-system", Name: "celsius-scheduler"}}
		s.add(o.lease)
		o.renew()
	}
	job := trainJob(t, "")
	job.CreationTimestamp = metav1.NewTime(s.now)
	s.add(job)
	return o
}

func (o *outage) renew() {
	o.t.Helper()
	at, holder, seconds := metav1.NewMicroTime(o.now), "celsius-scheduler-7c9d_1", int32(15)
	o.lease.Spec = coordinationv1.LeaseSpec{HolderIdentity: &holder, RenewTime: &at, LeaseDurationSeconds: &seconds}
	if err := o.api.Update(o.t.Context(), o.lease); err != nil {
		o.t.Fatal(err)
	}
}

// pass advances the time, reads the Lease, and reconciles the Jobs that this wakes. It returns the state of the Job.
func (o *outage) pass(d time.Duration) string {
	o.t.Helper()
	o.now = o.now.Add(d)
	if err := o.watch.look(o.t.Context()); err != nil {
		o.t.Fatal(err)
	}
	for len(o.watch.wake) > 0 {
		<-o.watch.wake
	}
	o.settle()
	state := o.job().Status.State
	return state.Reason + ": " + state.Message
}

// TestNoScheduler follows a Job whose scheduler crashes before its pods are bound, and starts again.
func TestNoScheduler(t *testing.T) {
	o := newOutage(t, true)
	o.pass(0)
	o.letIn(schedulingv1beta1.PodGroupInqueue)
	const starting = "PodsNotRunning: waits until 3 of its pods run"
	for range 4 {
		o.renew()
		if got := o.pass(looksAtScheduler); got != starting {
			t.Fatalf("while a scheduler runs: %s", got)
		}
	}
	for _, pod := range o.pods() {
		if pod.Name == "train-ps-0" {
			pod.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "example.com/quota"}}
			if err := o.api.Update(t.Context(), pod); err != nil {
				t.Fatal(err)
			}
		}
	}
	why := "no scheduler runs: Lease celsius-system/celsius-scheduler was last renewed at " +
		o.lease.Spec.RenewTime.UTC().Format(time.RFC3339)
	o.pass(looksAtScheduler)
	for range 3 { // the text does not change, so the status is written once
		if got := o.pass(looksAtScheduler); got != "NoScheduler: "+why {
			t.Errorf("after the crash: %s", got)
		}
	}
	told := map[string]int{}
	for _, line := range o.lines {
		if strings.Contains(line, why) {
			told[strings.Fields(line)[0]]++
		}
	}
	for name, want := range map[string]bool{"train": true, "train-worker-0": true, "train-worker-1": true, "train-ps-0": false} {
		if (told[name] == 1) != want {
			t.Errorf("%d events on %s", told[name], name)
		}
	}
	o.renew()
	if got := o.pass(looksAtScheduler); got != starting {
		t.Errorf("after the return of the scheduler: %s", got)
	}
}

// TestNoSchedulerRan distinguishes a cluster without a scheduler from a cluster in which the scheduler runs without a Lease.
func TestNoSchedulerRan(t *testing.T) {
	for name, c := range map[string]struct {
		phase schedulingv1beta1.PodGroupPhase
		want  string
	}{
		"none": {schedulingv1beta1.PodGroupPending, "NoScheduler: no scheduler runs: Lease celsius-system/celsius-scheduler does not exist"},
		"one without a Lease": {
			schedulingv1beta1.PodGroupInqueue, "PodsNotRunning: waits until 3 of its pods run",
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOutage(t, false)
			o.pass(0)
			o.letIn(c.phase)
			got := ""
			for range 4 {
				got = o.pass(looksAtScheduler)
			}
			if got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}

// TestSchedulerRunsWithoutItsLease has a Lease that a scheduler released before the Job was created. A scheduler that runs without the
// Lease writes to the PodGroup. If no scheduler runs, the status of the Job reports this when the PodGroup is old enough.
func TestSchedulerRunsWithoutItsLease(t *testing.T) {
	for name, c := range map[string]struct {
		phase schedulingv1beta1.PodGroupPhase
		want  string
	}{
		"none": {schedulingv1beta1.PodGroupPending, "NoScheduler: no scheduler runs: nothing holds Lease celsius-system/celsius-scheduler"},
		"one":  {schedulingv1beta1.PodGroupInqueue, "PodsNotRunning: waits until 3 of its pods run"},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOutage(t, true)
			nobody, at := "", metav1.NewMicroTime(o.now.Add(-time.Hour))
			o.lease.Spec.HolderIdentity, o.lease.Spec.RenewTime = &nobody, &at
			if err := o.api.Update(t.Context(), o.lease); err != nil {
				t.Fatal(err)
			}
			if got := o.pass(0); strings.Contains(got, "NoScheduler") {
				t.Errorf("at once: %s", got)
			}
			o.letIn(c.phase)
			got := ""
			for range 4 {
				got = o.pass(looksAtScheduler)
			}
			if got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}
