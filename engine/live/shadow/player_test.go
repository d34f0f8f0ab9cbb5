package shadow

import (
	"cmp"
	"slices"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/celsius-scheduler/celsius/crds/policy/v1alpha1"
	"github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
	"github.com/celsius-scheduler/celsius/engine"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
)

// waits returns a waiting pod.
func waits() *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: "p", UID: "p", Annotations: map[string]string{model.GroupAnnotation: "g"},
	}}
	pod.Spec.SchedulerName, pod.Status.Phase = "celsius", corev1.PodPending
	return pod
}

// world returns a cluster with this pod.
func world(t *testing.T) *model.Cluster {
	t.Helper()
	c := model.NewCluster(model.Options{SchedulerNames: []string{"celsius"}})
	group := &v1beta1.PodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "g", UID: "g"}}
	group.Spec.Queue, group.Spec.MinMember, group.Status.Phase = "default", 1, v1beta1.PodGroupInqueue
	queue := &v1beta1.Queue{ObjectMeta: metav1.ObjectMeta{Name: "default", UID: "q"}}
	queue.Spec.Weight = 1
	for _, o := range []any{queue, group, waits()} {
		if errs := c.Apply(model.Delta{Op: model.Upsert, Object: o}); errs != nil {
			t.Fatal(errs)
		}
	}
	return c
}

// TestBounded checks that a shadow rests in proportion to its time, and longer after each exceeded time limit.
func TestBounded(t *testing.T) {
	p, issues := policy.Default()
	if issues.Err() != nil {
		t.Fatal(issues.Err())
	}
	c := world(t)
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	start, step := now, time.Duration(0) // the time between two readings of the clock
	var told v1alpha1.ShadowStatus
	of := *p
	x := &Player{
		Policies: func() []*policy.Policy { return []*policy.Policy{&of} },
		Tell:     func(_ *policy.Policy, found *v1alpha1.ShadowStatus) { told = *found },
		Meter:    NewMeter(prometheus.NewRegistry()), Log: logr.Discard(),
		Clock: func() time.Time { now = now.Add(step); return now },
	}
	var d engine.Decider
	tries := func(seconds int) (out []time.Duration) {
		for begin := now; now.Sub(begin) < time.Duration(seconds)*time.Second; {
			before := x.decided()
			x.Before(c, p, now)
			if x.decided() != before {
				out = append(out, now.Sub(start).Round(time.Second))
			}
			x.After(c, d.Decide(c, p, now))
			now = now.Add(100 * time.Millisecond)
		}
		return out
	}
	step = 20 * time.Millisecond // a cycle takes several times as long
	if got := len(tries(100)); got < 10 || got > 50 {
		t.Errorf("it decided %d times in 100 s", got)
	}
	checkShare(t, x.runs[0], start, now)
	if x := told.Cycles; x.Skipped == 0 || x.BrokenOff != 0 || x.Mean.Duration == 0 || x.Longest.Duration < x.Mean.Duration {
		t.Errorf("told %+v", told)
	}

	step, start = 600*time.Millisecond, now // more than a cycle may take
	x.runs[0].rests = time.Time{}
	at := tries(2000)
	if len(at) < 5 || len(at) > 10 || told.Cycles.BrokenOff < 5 {
		t.Fatalf("it was broken off at %v, and %+v is told", at, told)
	}
	if rests := slices.IsSortedFunc(pauses(at), cmp.Compare[time.Duration]); !rests {
		t.Errorf("it was broken off at %v, and did not rest longer each time", at)
	}
	if err := c.Check(); err != nil {
		t.Error(err)
	}
}

// checkShare checks that a run uses no more than its share of the time.
func checkShare(t *testing.T, r *run, from, now time.Time) {
	t.Helper()
	if r.rests.After(now) { // the rest after the last cycle is not over
		now = r.rests
	}
	if share := r.took.Seconds() / now.Sub(from).Seconds(); share > 1./(1+restShare) {
		t.Errorf("it took %.3f of the time", share)
	}
}

// pauses returns the times between moments.
func pauses(at []time.Duration) (out []time.Duration) {
	for i := 1; i < len(at); i++ {
		out = append(out, at[i]-at[i-1])
	}
	return out
}

// decided returns the total time of decisions.
func (x *Player) decided() (n time.Duration) {
	for _, r := range x.runs {
		n += r.took
	}
	return n
}
