package beside

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/celsius-scheduler/celsius/engine/model"
)

// TestWitness derives the decisions of another scheduler from versions of pods.
func TestWitness(t *testing.T) {
	t.Parallel()
	evicted := corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionFalse, Reason: "Evict", Message: "because of reclaim"}
	preempted := corev1.PodCondition{
		Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: corev1.PodReasonPreemptionByScheduler, Message: "preempted",
	}
	tainted := corev1.PodCondition{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: "DeletionByTaintManager"}
	unready := corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionFalse, Reason: "ContainersNotReady"}
	pod := func(change ...func(*corev1.Pod)) Change {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "p", UID: types.UID("1")}}
		p.Spec.SchedulerName = "volcano"
		for _, c := range change {
			c(p)
		}
		return Change{Op: model.Upsert, Object: p}
	}
	on := func(p *corev1.Pod) { p.Spec.NodeName = "n" }
	leaving := func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{} }
	ended := func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }
	of := func(p *corev1.Pod) { p.Spec.SchedulerName = "another" }
	with := func(c corev1.PodCondition) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Status.Conditions = append(p.Status.Conditions, c) }
	}
	gone := func(c Change) Change {
		c.Op = model.Delete
		return c
	}
	for name, c := range map[string]struct {
		changes []Change
		want    []string
		missed  int
	}{
		"bound":                 {[]Change{pod(), pod(on), pod(on)}, []string{"bind n"}, 0},
		"another's":             {[]Change{pod(of), pod(of, on)}, nil, 0},
		"bound when seen first": {[]Change{pod(on), pod(on)}, nil, 1},
		"gone before it was":    {[]Change{pod(), gone(pod())}, nil, 0},
		"evicted": {
			[]Change{
				pod(), pod(on), pod(on, with(evicted)), pod(on, with(evicted), leaving), gone(pod(on, with(evicted))),
			},
			[]string{"bind n", "evict n because of reclaim"},
			0,
		},
		"evicted without a grace": {[]Change{pod(), pod(on), gone(pod(on, with(preempted)))}, []string{"bind n", "evict n preempted"}, 0},
		"deleted":                 {[]Change{pod(), pod(on), pod(on, leaving, with(unready)), gone(pod(on))}, []string{"bind n"}, 0},
		"sent off by a taint":     {[]Change{pod(), pod(on), pod(on, leaving, with(tainted))}, []string{"bind n"}, 0},
		"ended":                   {[]Change{pod(), pod(on), pod(on, ended, with(evicted), leaving)}, []string{"bind n"}, 0},
	} {
		w := newWitness("volcano")
		w.began = true
		var got []string
		for i := range c.changes {
			if d := w.see(&c.changes[i]); d != nil {
				text := d.verb + " " + d.node
				if d.says != "" {
					text += " " + d.says
				}
				got = append(got, text)
			}
		}
		if diff := cmp.Diff(c.want, got); diff != "" || w.missed != c.missed {
			t.Errorf("%s: %d missed, deeds (-want +got):\n%s", name, w.missed, diff)
		}
	}
}

// TestKeepMarks checks that a transform keeps the marks of evictions, also when it runs twice.
func TestKeepMarks(t *testing.T) {
	t.Parallel()
	strip := KeepMarks(func(o any) (any, error) {
		o.(*corev1.Pod).Status.Conditions = nil
		return o, nil
	})
	p := &corev1.Pod{}
	p.Status.Conditions = []corev1.PodCondition{
		{Type: corev1.PodReady, Status: corev1.ConditionFalse, Reason: "Evict"}, {Type: corev1.PodInitialized, Status: corev1.ConditionTrue},
	}
	for range 2 {
		if _, err := strip(p); err != nil || len(p.Status.Conditions) != 1 || p.Status.Conditions[0].Reason != "Evict" {
			t.Errorf("%v, %+v", err, p.Status.Conditions)
		}
	}
}

// TestGrace compares decisions of the other scheduler at several times with those of the policy.
func TestGrace(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC)
	w := &wish{about: about{Bind, "1"}}
	w.choose("n1", 1, start, 3*time.Second)
	w.choose("n2", 2, start.Add(2*time.Second), 3*time.Second)
	for _, c := range []struct {
		node        string
		cycle       int
		after       time.Duration
		same, fresh bool
	}{
		{"n1", 2, 3 * time.Second, true, true},   // decided recently
		{"n1", 2, 4 * time.Second, false, true},  // too long ago
		{"n2", 2, 9 * time.Second, true, true},   // still decided
		{"n2", 3, 5 * time.Second, true, true},   // no longer, but recently
		{"n2", 3, 6 * time.Second, false, false}, // it waits
		{"n3", 2, 2 * time.Second, false, true},
	} {
		same, fresh := w.did(&deed{about: w.about, node: c.node}, c.cycle, start.Add(c.after), 3*time.Second)
		if same != c.same || fresh != c.fresh {
			t.Errorf("%+v: same %v, fresh %v", c, same, fresh)
		}
	}
	if !w.since.Equal(start) {
		t.Errorf("it is decided since %s", w.since)
	}
	w.choose("n2", 4, start.Add(8*time.Second), 3*time.Second)
	if !w.since.Equal(start.Add(8*time.Second)) || len(w.choices) != 1 {
		t.Errorf("after a break it is decided since %s, %d choices", w.since, len(w.choices))
	}
}
