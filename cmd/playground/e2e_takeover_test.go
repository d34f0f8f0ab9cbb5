package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "github.com/celsius-scheduler/celsius/crds/batch/v1alpha1"
	schedulingv1beta1 "github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
	"github.com/celsius-scheduler/celsius/engine/live"
	"github.com/celsius-scheduler/celsius/statemachines/controller"
)

// leave creates the objects of the YAML as another system left them, with their statuses. ${uid.NAME} is the UID of an earlier Job or pod
// with that name, ${node.N} a node. A pod that owns a PodGroup gets its name. The statuses are written when all objects exist. KWOK writes
// the statuses of pods.
func (w *world) leave(yaml string, nodes []string) {
	w.t.Helper()
	known := map[string]string{}
	for i, node := range nodes {
		known[fmt.Sprintf("${node.%d}", i)] = node
	}
	var statuses []*unstructured.Unstructured
	for text := range strings.SplitSeq(yaml, "\n---\n") {
		text = placeholder.ReplaceAllStringFunc(w.Expand(text), func(found string) string {
			if value, ok := known[found]; ok {
				return value
			}
			w.t.Fatalf("nobody is called %s yet", found)
			return ""
		})
		object := &unstructured.Unstructured{}
		if err := utilyaml.Unmarshal([]byte(text), object); err != nil {
			w.t.Fatalf("%v in\n%s", err, text)
		}
		mapping, err := w.Client.RESTMapper().RESTMapping(object.GroupVersionKind().GroupKind(), object.GroupVersionKind().Version)
		if err != nil {
			w.t.Fatal(err)
		}
		if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
			object.SetNamespace(w.Namespace)
		}
		status := object.Object["status"]
		if err := w.Client.Create(w.Context, object); err != nil {
			w.t.Fatalf("%s %s: %v", object.GetKind(), object.GetName(), err)
		}
		if object.GetKind() != "PodGroup" {
			known["${uid."+object.GetName()+"}"] = string(object.GetUID())
		} else if owner := metav1.GetControllerOf(object); owner.Kind == "Pod" {
			w.Kubectl("annotate", "pod", owner.Name, schedulingv1beta1.KubeGroupNameAnnotationKey+"="+object.GetName())
		}
		if status != nil {
			object.Object["status"] = status
			statuses = append(statuses, object)
		}
	}
	for _, object := range statuses {
		wanted := object.Object["status"]
		w.Wait("status of "+object.GetName(), func() error { // another client may have written the object meanwhile
			if err := w.Get(object.GetName(), object); err != nil {
				return err
			}
			object.Object["status"] = wanted
			if object.GetKind() == "PodGroup" { // it has no status subresource
				return w.Client.Update(w.Context, object, client.FieldOwner("vc-scheduler"))
			}
			return w.Client.Status().Update(w.Context, object)
		})
	}
}

// limitsNear checks which limits a job reports after the takeover.
func (w *world) limitsNear(name string, want ...string) {
	w.t.Helper()
	job := &batchv1alpha1.Job{}
	if err := w.Get(name, job); err != nil {
		w.t.Fatal(err)
	}
	var got []string
	for _, c := range job.Status.LimitConditions {
		if c.Status == metav1.ConditionTrue {
			got = append(got, c.Type)
		}
	}
	if !slices.Equal(got, want) {
		w.t.Errorf("job %s announces the limits %q, want %q", name, got, want)
	}
}

// taken returns what is compared of a cluster before and after the takeover: a text for each object with one of these names, or whose name
// begins with one of them and a hyphen. It omits the times and cycles of writes, and the specs of PodGroups, which newer versions of
// Volcano fill more completely. It omits the conditions of limits because Volcano has none; limitsNear checks them.
func (w *world) taken(names []string) map[string]string {
	w.t.Helper()
	out := map[string]string{}
	add := func(kind, name string, of any) {
		var text bytes.Buffer
		encoder := json.NewEncoder(&text)
		encoder.SetIndent("", "  ")
		if err := encoder.Encode(of); err != nil {
			w.t.Fatal(err)
		}
		out[kind+" "+name] = text.String()
	}
	jobs, groups := &batchv1alpha1.JobList{}, &schedulingv1beta1.PodGroupList{}
	if err := errors.Join(w.list(jobs), w.list(groups)); err != nil {
		w.t.Fatal(err)
	}
	for _, j := range jobs.Items {
		j.Status.LimitConditions = nil
		add("Job", j.Name, []any{j.UID, j.DeletionTimestamp, j.Spec, j.Status})
	}
	for _, g := range groups.Items {
		for i := range g.Status.Conditions {
			g.Status.Conditions[i].TransitionID, g.Status.Conditions[i].LastTransitionTime = "", metav1.Time{}
		}
		slices.SortFunc(g.Status.Conditions, func(a, b schedulingv1beta1.PodGroupCondition) int {
			return strings.Compare(string(a.Type), string(b.Type))
		})
		add("PodGroup", g.Name, []any{g.UID, g.DeletionTimestamp, g.OwnerReferences, g.Spec.MinMember, g.Spec.Queue, g.Status})
	}
	for _, p := range w.Pods("") {
		add("Pod", p.Name, []any{
			p.UID, p.ResourceVersion, p.DeletionTimestamp, p.Annotations, p.Labels, p.OwnerReferences,
			p.Spec.NodeName, p.Status,
		})
	}
	for object := range out {
		_, name, _ := strings.Cut(object, " ")
		if !slices.ContainsFunc(names, func(n string) bool { return name == n || strings.HasPrefix(name, n+"-") }) {
			delete(out, object)
		}
	}
	return out
}

// leftByVolcano returns the content of testdata/takeover.
func leftByVolcano(t *testing.T) string {
	t.Helper()
	files, err := filepath.Glob("testdata/takeover/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("testdata/takeover: %d files, %v", len(files), err)
	}
	var left []string
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		left = append(left, strings.TrimSpace(string(text)))
	}
	return strings.Join(left, "\n---\n")
}

// TestTakenOverFromVolcano serves the name volcano, so it is not parallel: no other test may serve the name at the same time.
func TestTakenOverFromVolcano(t *testing.T) {
	w := newWorld(t)
	nodes := w.Nodes(3, "cpu=6")
	w.leave(leftByVolcano(t), nodes)
	w.Wait("KWOK has seen all pods", func() error {
		for _, p := range w.Pods("") {
			if p.Spec.NodeName != "" && p.Status.Phase == corev1.PodPending || strings.HasPrefix(p.Name, "ended-") &&
				p.Status.Phase != corev1.PodSucceeded {
				return fmt.Errorf("pod %s is %s", p.Name, p.Status.Phase)
			}
		}
		return nil
	})
	// Waiting objects continue; everything else must stay unchanged.
	still := []string{"train", "legacy", "retried", "retired", "ended", "stopped", "solo", "podgroup"}
	before := w.taken(still)

	// Celsius starts. It works when a new job has completed its life, and the waiting job runs.
	volcano := []string{"volcano"}
	w.StartScheduler(func(o *live.Options) { o.SchedulerNames = volcano })
	w.StartControllers(func(o *controller.Options) { o.SchedulerNames = volcano })
	w.Apply(`
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: new}
spec:
  schedulerName: volcano
  queue: ${queue.research}
  tasks:` + task("worker", 1, "{run: 3s}"))
	phaseIs := func(name string, phase batchv1alpha1.JobPhase) func() error {
		return func() error {
			job := &batchv1alpha1.Job{}
			if err := w.Get(name, job); err != nil {
				return err
			}
			if job.Status.State.Phase != phase {
				return fmt.Errorf("it is %s (%s: %s)", job.Status.State.Phase, job.Status.State.Reason, job.Status.State.Message)
			}
			return nil
		}
	}
	w.Wait("the new job is completed", phaseIs("new", batchv1alpha1.Completed))
	w.Wait("the job that waited runs", phaseIs("waiting", batchv1alpha1.Running))

	if diff := cmp.Diff(before, w.taken(still)); diff != "" {
		t.Errorf("what was there is not as it was left (-before +after):\n%s", diff)
	}
	w.limitsNear("retried", "RetryLimitNear", "TaskRetryLimitNear")
	w.limitsNear("train")
	w.checkEvents(still)
	w.checkWaiting()
	w.checkQueues(map[string][2]string{ // the job that waited uses 4 CPUs now
		"research": {"Open, running 5", "cpu 11500m, memory 11776Mi"},
		"retired":  {"Closing, running 1", "cpu 1, memory 1Gi"},
	})

	w.endTaken()
	for name, retries := range map[string]int32{"train": 0, "legacy": 0, "retried": 2, "retired": 0, "waiting": 0} {
		w.Wait("job "+name+" is completed", phaseIs(name, batchv1alpha1.Completed))
		w.checkRetries(name, retries)
	}
	w.Wait("the queue that was closing is closed", w.retiredIsClosed)
}

// endTaken ends all running pods, except the one without an owner.
func (w *world) endTaken() {
	w.t.Helper()
	for _, p := range w.Pods("") {
		if p.Status.Phase == corev1.PodRunning && p.Name != "solo" {
			end := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, simAnnotation+"-end-at", time.Now().Format(time.RFC3339Nano))
			if _, err := w.Kube.CoreV1().Pods(w.Namespace).Patch(w.Context, p.Name, types.MergePatchType, []byte(end),
				metav1.PatchOptions{}); err != nil {
				w.t.Fatal(err)
			}
		}
	}
}

func (w *world) checkRetries(name string, want int32) {
	w.t.Helper()
	job := &batchv1alpha1.Job{}
	if err := w.Get(name, job); err != nil {
		w.t.Fatal(err)
	}
	if job.Status.RetryCount != want {
		w.t.Errorf("job %s has been retried %d times at its end; want %d", name, job.Status.RetryCount, want)
	}
}

func (w *world) retiredIsClosed() error {
	q := &schedulingv1beta1.Queue{}
	if err := w.Get(w.Queue("retired"), q); err != nil {
		return err
	}
	if q.Status.State != schedulingv1beta1.QueueStateClosed {
		return fmt.Errorf("it is %s, with %d PodGroups running", q.Status.State, q.Status.Running)
	}
	return nil
}

// checkEvents fails the test for each event about the objects.
func (w *world) checkEvents(names []string) {
	w.t.Helper()
	events, err := w.Kube.CoreV1().Events(w.Namespace).List(w.Context, metav1.ListOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	for _, e := range events.Items {
		o := e.InvolvedObject
		if slices.ContainsFunc(names, func(n string) bool { return o.Name == n || strings.HasPrefix(o.Name, n+"-") }) {
			w.t.Errorf("event about %s %s, which nothing happened to: %s %s: %s", o.Kind, o.Name, e.Type, e.Reason, e.Message)
		}
	}
}

// checkWaiting checks the job that waited: its pods are those that Volcano created.
func (w *world) checkWaiting() {
	w.t.Helper()
	job, groups := &batchv1alpha1.Job{}, &schedulingv1beta1.PodGroupList{}
	if err := errors.Join(w.Get("waiting", job), w.list(groups)); err != nil {
		w.t.Fatal(err)
	}
	if job.Status.Version != 0 || job.Status.RetryCount != 0 || job.Status.Running != 2 {
		w.t.Errorf("job waiting has version %d, %d retries, %d pods that run; want 0, 0, 2", job.Status.Version, job.Status.RetryCount,
			job.Status.Running)
	}
	for _, p := range w.Pods("volcano.sh/job-name=waiting") {
		// Volcano writes no retry count into pods; Celsius does.
		if ours, is := p.Annotations[batchv1alpha1.JobRetryCountKey]; is {
			w.t.Errorf("pod %s was made anew: it has a retry count, %q", p.Name, ours)
		}
	}
	for _, g := range groups.Items {
		if strings.HasPrefix(g.Name, "waiting") && g.Name != "waiting-"+string(job.UID) {
			w.t.Errorf("job waiting has another PodGroup, %s", g.Name)
		}
	}
}

// checkQueues waits until the queues of the world have these states, counts and allocations.
func (w *world) checkQueues(want map[string][2]string) {
	w.t.Helper()
	for name, wanted := range want {
		w.Wait("queue "+name+" is right", func() error {
			q := &schedulingv1beta1.Queue{}
			if err := w.Get(w.Queue(name), q); err != nil {
				return err
			}
			s := q.Status
			has := [2]string{fmt.Sprintf("%s, running %d", s.State, s.Running), fmt.Sprintf("cpu %s, memory %s", s.Allocated.Cpu(),
				s.Allocated.Memory())}
			if has != wanted || s.Pending+s.Inqueue+s.Unknown != 0 {
				return fmt.Errorf("%v, %d pending, %d inqueue, %d unknown; want %v and none", has, s.Pending, s.Inqueue, s.Unknown, wanted)
			}
			return nil
		})
	}
}
