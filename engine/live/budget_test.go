package live

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	batchv1alpha1 "github.com/celsius-scheduler/celsius/crds/batch/v1alpha1"
	"github.com/celsius-scheduler/celsius/engine/explain"
	"github.com/celsius-scheduler/celsius/engine/whatif"
)

// spreading gives a pod so many terms of spread and anti-affinity, each about other labels.
func spreading(spec *corev1.PodSpec, of string, terms int) {
	spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{}}
	for i := range terms {
		about := &metav1.LabelSelector{MatchLabels: map[string]string{fmt.Sprintf("experiment-%s-%d", of, i): "ablation"}}
		if i%2 == 0 {
			spec.TopologySpreadConstraints = append(spec.TopologySpreadConstraints, corev1.TopologySpreadConstraint{
				MaxSkew: 1, TopologyKey: corev1.LabelHostname, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: about,
			})
			continue
		}
		spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution = append(
			spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution,
			corev1.PodAffinityTerm{TopologyKey: corev1.LabelHostname, LabelSelector: about})
	}
}

// A question holds the loop for at most 100 ms, whatever it is about: here what-if with 2,000 pods of 100 roles with 60 terms each in a
// cluster of 2,000 nodes, which took minutes, and with 20,000 pods. It is answered by an error, and the next decisions are what they are
// without a question.
func TestQuestionsAreBrokenOff(t *testing.T) { //nolint:gocyclo // one story
	worlds := [2]*rig{newRig(t), newRig(t)}
	for _, r := range worlds {
		r.looking = newLooking()
		for i := range 2000 {
			r.server.put(testNode(fmt.Sprintf("gpu-%04d", i), "16"))
		}
		r.server.put(testQueue("default"))
		for i := range 200 {
			name := fmt.Sprintf("train-%d", i)
			r.server.put(testGroup(name, 1), testPod(name+"-0", name, "2"))
		}
		r.server.deliver(-1)
		r.once(time.Now())
		for r.work() {
		}
		r.server.deliver(-1)
		r.once(time.Now())
	}
	asked := worlds[0]
	hostile := func(roles, replicas, terms int) *whatif.Change {
		job := &batchv1alpha1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "hyperparameter-search"}}
		job.Spec.Queue, job.Spec.MinAvailable = "default", 1
		for i := range roles {
			task := batchv1alpha1.TaskSpec{Name: fmt.Sprintf("worker-%d", i), Replicas: int32(replicas)}
			task.Template.Spec.Containers = []corev1.Container{{Name: "main", Image: "example.org/train", Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")},
			}}}
			if spreading(&task.Template.Spec, fmt.Sprint(i), terms); terms == 0 {
				task.Template.Spec.Affinity = nil
			}
			job.Spec.Tasks = append(job.Spec.Tasks, task)
		}
		return &whatif.Change{Add: []metav1.Object{job}}
	}
	var asker whatif.Asker
	answered := false
	for range 5 { // the machine may do other work
		q := &look{func(x *explain.Cycle) {
			_, err := asker.Ask(whatif.Asked{Session: x.Session, Now: time.Now(), Learn: x.Learn}, hostile(1, 20, 0))
			answered = err == nil
		}, make(chan error, 1)}
		if asked.look(q); <-q.done == nil && answered {
			break
		}
	}
	if !answered {
		t.Error("a question about a job of 20 pods is not answered")
	}
	for name, change := range map[string]*whatif.Change{
		"2,000 pods with 60 terms each": hostile(100, 20, 60), "20,000 pods": hostile(1, 20_000, 0),
		"1,000 pods with 16 of 1,000 terms": hostile(60, 16, 16),
	} {
		q := &look{func(x *explain.Cycle) {
			if _, err := asker.Ask(whatif.Asked{Session: x.Session, Now: time.Now(), Learn: x.Learn}, change); err != nil {
				t.Logf("%s: %v", name, err)
			}
		}, make(chan error, 1)}
		began := time.Now()
		asked.look(q)
		took := time.Since(began)
		err := <-q.done
		t.Logf("%s: the loop was held for %s, and the answer is %v", name, took, err)
		if took > 20*lookMost { // by the clock, on a machine that does other work; it was minutes
			t.Errorf("%s: the loop was held for %s", name, took)
		}
		if err != nil && !strings.Contains(err.Error(), "ask about less") {
			t.Errorf("%s: %v", name, err)
		}
		if err := asked.cluster.Check(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	var plans [2]string
	for i, r := range worlds {
		name := "after"
		r.server.put(testGroup(name, 2), testPod(name+"-0", name, "2"), testPod(name+"-1", name, "2"))
		r.server.deliver(-1)
		r.once(time.Now())
		text, err := json.Marshal(r.plan.Binds)
		if err != nil || len(r.plan.Binds) != 2 {
			t.Fatalf("%v, binds %s", err, text)
		}
		plans[i] = string(text)
	}
	if plans[0] != plans[1] {
		t.Errorf("after questions it is decided otherwise:\n%s\n%s", plans[0], plans[1])
	}
}
