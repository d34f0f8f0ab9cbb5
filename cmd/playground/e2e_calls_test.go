package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	batchv1alpha1 "github.com/celsius-scheduler/celsius/crds/batch/v1alpha1"
	schedulingv1beta1 "github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
)

// These tests count writes instead of measuring time. On a slow machine the same work takes longer, and counts of pods may be written once
// more for each second.

// writes returns the number of writes of an object, including its creation: those that changed its phase, and the others. The others happen
// at most once a second, so their number is compared with the duration.
func (s *witness) writes(kind, name string) (phases, others int, took time.Duration) {
	last := "none"
	versions := s.Versions(kind, name)
	for _, v := range versions {
		phase := ""
		switch o := v.beside.(type) {
		case *batchv1alpha1.Job:
			phase = string(o.Status.State.Phase)
		case *schedulingv1beta1.PodGroup:
			phase = string(o.Status.Phase)
		}
		switch {
		case v.deleted:
		case phase != last:
			phases++
		default:
			others++
		}
		last = phase
	}
	return phases, others, versions[len(versions)-1].at.Sub(versions[0].at)
}

// boundAtOnce fails if a pod was written between its creation and its binding, less than five seconds later. After five seconds the pod
// gets a condition with the reason why it waits.
func (s *witness) boundAtOnce(pods int) {
	s.w.t.Helper()
	made, before := map[string]time.Time{}, map[string]int{}
	for _, v := range s.inOrder() {
		if v.pod == nil || v.deleted || v.pod.Spec.NodeName != "" {
			continue
		}
		if made[v.pod.Name].IsZero() {
			made[v.pod.Name] = v.at
		}
		if v.at.Sub(made[v.pod.Name]) < 4*time.Second {
			before[v.pod.Name]++
		}
	}
	if len(before) != pods {
		s.w.t.Errorf("%d pods were seen before they had a node, want %d", len(before), pods)
	}
	for name, n := range before {
		if n > 1 {
			s.w.t.Errorf("pod %s was written %d time(s) before it was bound", name, n-1)
		}
	}
}

// TestE2ECallsOfAJob counts the writes for a Job of 20 pods, without those of kubelets: two calls for each pod, and 10 for the Job.
func TestE2ECallsOfAJob(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.StartScheduler()
	w.StartControllers()
	w.queue("a", 1)
	s := w.Witness()
	w.Nodes(4, "cpu=8,memory=32Gi")
	s.Beside(&batchv1alpha1.JobList{}, &schedulingv1beta1.PodGroupList{})
	w.Apply(jobLike("work", "replicas: 2", "replicas: 20", "run: 1h", "run: 1s", "queue: ${queue.a}",
		"queue: ${queue.a}\n  minAvailable: 20\n  ttlSecondsAfterFinished: 0"))
	w.Wait("the job is collected", func() error { return w.gone("work", &batchv1alpha1.Job{}) })
	s.boundAtOnce(20)
	groups := s.Names("PodGroup")
	if len(groups) != 1 {
		t.Fatalf("PodGroups %v, want one", groups)
	}
	job, ofJob, took := s.writes("Job", "work")
	pg, ofGroup, _ := s.writes("PodGroup", groups[0])
	// Subtract the Job's creation, which its author requests, and add its deletion. The counts of the queue are written once for all its jobs.
	if calls := job - 1 + pg + 1; calls > 8 {
		t.Errorf("%d calls for phases of a Job and its PodGroup, and its deletion", calls)
	}
	// Other writes are: what the Job controls, that it is being deleted, and once a second its counts.
	if seconds := int(took.Seconds()); ofJob > 2+seconds || ofGroup > 1+seconds {
		t.Errorf("%d writes of a Job and %d of its PodGroup changed no phase, in %s", ofJob, ofGroup, took)
	}
}

// TestE2ECallsOfAPod counts the writes for pods without a controller. The binding of each pod also names its PodGroup. Each PodGroup is
// created in its final state when its pod runs.
func TestE2ECallsOfAPod(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.StartScheduler()
	w.StartControllers()
	w.queue("a", 1)
	s := w.Witness()
	w.Nodes(2, "cpu=8,memory=32Gi")
	s.Beside(&schedulingv1beta1.PodGroupList{})
	for _, name := range []string{"a", "b", "c"} {
		w.Apply(strings.NewReplacer("NAME", name).Replace(`
apiVersion: v1
kind: Pod
metadata: {name: NAME, annotations: {celsius.dev/sim: '{run: 1h}', scheduling.volcano.sh/queue-name: '${queue.a}'}}
spec:
  schedulerName: ${scheduler}
  containers:
  - {name: main, image: main, resources: {requests: {cpu: "1", memory: 1Gi}}}
`))
	}
	w.Wait("their PodGroups run", func() error {
		list := &schedulingv1beta1.PodGroupList{}
		if err := w.list(list); err != nil {
			return err
		}
		running := 0
		for i := range list.Items {
			running += int(list.Items[i].Status.Running)
		}
		if running != 3 {
			return fmt.Errorf("%d PodGroups count %d running pods", len(list.Items), running)
		}
		return nil
	})
	s.boundAtOnce(3)
	for _, name := range s.Names("PodGroup") {
		first, ok := s.Versions("PodGroup", name)[0].beside.(*schedulingv1beta1.PodGroup)
		if !ok || first.Status.Phase == schedulingv1beta1.PodGroupPending {
			t.Errorf("%s was made as one that waits", name)
		}
		phases, others, took := s.writes("PodGroup", name)
		if phases > 2 || others > 1+int(took.Seconds()) {
			t.Errorf("%s: %d writes changed its phase, and %d others, in %s", name, phases, others, took)
		}
	}
	for _, p := range w.Pods("") {
		if p.Annotations[schedulingv1beta1.KubeGroupNameAnnotationKey] == "" || p.Status.Phase != corev1.PodRunning {
			t.Errorf("pod %s is %s, and names PodGroup %q", p.Name, p.Status.Phase, p.Annotations[schedulingv1beta1.KubeGroupNameAnnotationKey])
		}
	}
}
