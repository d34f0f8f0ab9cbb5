package engine_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
	"github.com/celsius-scheduler/celsius/engine"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/volume"
)

// elastic is a job of pods of one core each. The least number of them must start together.
type elastic struct{ least, pods, bound int }

// TestTurnsOfElasticGangs checks that elastic gangs take turns. Minimums come before extras. No job has two extras more than a job that
// still wants some. A gang that did not start had no room for its minimum next to those of the others.
func TestTurnsOfElasticGangs(t *testing.T) {
	t.Parallel()
	fair := compile(t, "fair", policyOf("mode: Active", "name: gang", "name: drf", "name: predicates")).policies[0]
	rapid.Check(t, func(t *rapid.T) {
		jobs := make([]elastic, rapid.IntRange(1, 5).Draw(t, "jobs"))
		room := rapid.IntRange(1, 20).Draw(t, "room")
		c := model.NewCluster(model.Options{Volumes: volume.New})
		add := func(o any) {
			for _, err := range c.Apply(model.Delta{Object: o}) {
				t.Fatal(err)
			}
		}
		allocatable := list(fmt.Sprintf("cpu=%d memory=8Gi pods=99", room))
		add(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}, Status: corev1.NodeStatus{Allocatable: allocatable, Capacity: allocatable}})
		add(&v1beta1.Queue{ObjectMeta: metav1.ObjectMeta{Name: "q"}, Spec: v1beta1.QueueSpec{Weight: 1}})
		for i := range jobs {
			j := &jobs[i]
			j.least = rapid.IntRange(1, 5).Draw(t, "least")
			j.pods = j.least + rapid.IntRange(0, 5).Draw(t, "extras")
			name := fmt.Sprint("g", i)
			add(&v1beta1.PodGroup{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "a"}, Spec: v1beta1.PodGroupSpec{
				Queue: "q", MinMember: int32(j.least),
			}})
			for k := range j.pods {
				p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
					Name: fmt.Sprintf("%s-%d", name, k), Namespace: "a",
					Annotations: map[string]string{model.GroupAnnotation: name},
				}}
				p.Spec = corev1.PodSpec{SchedulerName: "celsius", Containers: []corev1.Container{
					{Resources: corev1.ResourceRequirements{Requests: list("cpu=1")}},
				}}
				add(p)
			}
		}
		for _, b := range engine.Decide(c, fair, at(100).Time).Binds {
			var i int
			if _, err := fmt.Sscanf(b.Job, "a/g%d", &i); err != nil {
				t.Fatal(err)
			}
			jobs[i].bound++
		}
		judgeTurns(t, jobs, room)
	})
}

func judgeTurns(t *rapid.T, jobs []elastic, room int) {
	t.Helper()
	minimums, bound := 0, 0
	for _, j := range jobs {
		bound += j.bound
		if j.bound > 0 {
			minimums += j.least
		}
	}
	for _, j := range jobs {
		switch {
		case j.bound > 0 && j.bound < j.least:
			t.Fatalf("%v: one started in part, in %d cores", jobs, room)
		case j.bound == 0 && minimums+j.least <= room:
			t.Fatalf("%v: one did not start, though there was room for its minimum in %d cores", jobs, room)
		case j.bound > 0 && j.bound < j.pods && bound < room:
			t.Fatalf("%v: one waits, though %d of %d cores are free", jobs, room-bound, room)
		}
		for _, other := range jobs {
			if j.bound > 0 && j.bound < j.pods && other.bound > max(other.least, j.bound+1) {
				t.Fatalf("%v: one has extras that were another's turn, in %d cores", jobs, room)
			}
		}
	}
}
