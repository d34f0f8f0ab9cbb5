package model

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// deletedWith returns an edit: the owner of the pod deleted it with a grace period.
func deletedWith(grace time.Duration) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		seconds := int64(grace / time.Second)
		p.DeletionTimestamp, p.DeletionGracePeriodSeconds = &metav1.Time{Time: time.Unix(1_800_000_000, 0)}, &seconds
	}
}

// TestLongGracePeriods checks that a pod that its owner deleted with a long grace period stays in use on its node until it is gone. Its
// resources are promised to no task, and it is no victim. An evicted pod is being released, whatever its grace period.
func TestLongGracePeriods(t *testing.T) {
	notAnyMore := func(p *corev1.Pod) { marked(p); p.Status.Conditions[0].Status = corev1.ConditionFalse }
	byAPI := func(p *corev1.Pod) { marked(p); p.Status.Conditions[0].Reason = "EvictionByEvictionAPI" }
	year := 365 * 24 * time.Hour
	for _, tt := range []struct {
		name      string
		options   []func(*corev1.Pod)
		status    Status
		releasing float64
	}{
		{"no deletion", nil, Running, 0},
		{"the default grace period", []func(*corev1.Pod){deletedWith(30 * time.Second)}, Releasing, 2},
		{"five minutes", []func(*corev1.Pod){deletedWith(5 * time.Minute)}, Releasing, 2},
		{"more than five minutes", []func(*corev1.Pod){deletedWith(5*time.Minute + time.Second)}, Unknown, 0},
		{"a year", []func(*corev1.Pod){deletedWith(year)}, Unknown, 0},
		{"a year, evicted", []func(*corev1.Pod){deletedWith(year), marked}, Releasing, 2},
		{"a year, evicted through the Eviction API", []func(*corev1.Pod){deletedWith(year), byAPI}, Releasing, 2},
		{"a year, an eviction that was refused", []func(*corev1.Pod){deletedWith(year), notAnyMore}, Unknown, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := cluster(t, queue("q"), group("g", "q"), node("n1", "cpu=4 nvidia.com/gpu=4 pods=9"),
				pod("train-0", "cpu=1 nvidia.com/gpu=2", append([]func(*corev1.Pod){on("n1")}, tt.options...)...))
			task, gpu := c.Tasks["a/train-0"], c.Dims.Intern(GPUResource)
			row := c.Nodes.Index["n1"]
			releasing := c.Nodes.ReleasingOf(row).Get(gpu) / c.Dims.Unit(gpu)
			used := c.Nodes.UsedOf(row).Get(gpu) / c.Dims.Unit(gpu)
			if task.Status != tt.status || releasing != tt.releasing || used != 2 {
				t.Errorf("the task is %s, %v devices of its node are being released and %v used; want %s, %v and 2", task.Status, releasing, used,
					tt.status, tt.releasing)
			}
			if task.MayGo() != (tt.status == Running) {
				t.Errorf("MayGo is %t", task.MayGo())
			}
		})
	}
}

// TestEvictedPodsStayReleasing checks that an evicted pod stays Releasing when its deletion shows: the scheduler marks it before the
// eviction.
func TestEvictedPodsStayReleasing(t *testing.T) {
	c := cluster(t, node("n1", "cpu=4 pods=9"), pod("train-0", "cpu=1", on("n1")))
	x := c.Begin()
	x.Evict(c.Tasks["a/train-0"])
	x.Commit()
	for version, edits := range [][]func(*corev1.Pod){{on("n1"), marked}, {on("n1"), marked, deletedWith(time.Hour)}} {
		c.Apply(Delta{Object: pod("train-0", "cpu=1", edits...)})
		if got := c.Tasks["a/train-0"].Status; got != Releasing {
			t.Fatalf("version %d: the task is %s, want Releasing", version, got)
		}
	}
}

// marked adds the condition of a pod that a scheduler evicts.
func marked(p *corev1.Pod) {
	p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{
		Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: corev1.PodReasonPreemptionByScheduler,
	})
}
