package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	_ "github.com/celsius-scheduler/celsius/engine/seeds"
)

func TestReadSimulationMistakes(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       []string // a part of each mistake
	}{
		{"nothing", "", nil},
		{"all", "{run: 30s, exitCodes: {main: 137, side: 0}, restarts: 3, readyAfter: 5s, terminate: 20s}", nil},
		{"JSON", `{"run": "30s"}`, nil},
		{"JSON with an emoji as two escapes", "{\n\t\"waiting\": \"\\ud83d\\ude00\"\n}", nil},
		{"a mistake in JSON", `{"waiting": "\ud83d\ude00" "restarts": 1}`, []string{"YAML map: line 1, column 28: is not JSON: a comma"}},
		{"a list of JSON", `[{"run": "30s"}]`, []string{"is no YAML map: cannot unmarshal array"}},
		{"waiting", "{waiting: ImagePullBackOff, restarts: 2, terminate: 1s}", nil},
		{"misspelt", "{exitcodes: {main: 1}}", []string{"there is no key exitcodes; did you mean exitCodes?; the keys are"}},
		{"no unit", "{run: 30}", []string{"run: 30 is no duration; write it as"}},
		{"below zero", "{readyAfter: -1s}", []string{"readyAfter: -1s is no duration"}},
		{"no map", "30s", []string{"is no YAML map"}},
		{"no YAML", "{run: [", []string{"is no YAML map"}},
		{"list of codes", "{run: 1s, exitCodes: [1]}", []string{"exitCodes: [1] is no map"}},
		{"other container", "{run: 1s, exitCodes: {mian: 1}}", []string{"the pod has no container mian; it has main, side"}},
		{"code too large", "{run: 1s, exitCodes: {main: 256}}", []string{"exitCodes: main: 256 is no whole number from 0 to 255"}},
		{"half a restart", "{restarts: 1.5}", []string{"restarts: 1.5 is no whole number"}},
		{"empty reason", "{waiting: ''}", []string{"waiting:  is no reason"}},
		{"codes without run", "{exitCodes: {main: 1}}", []string{"exitCodes has no effect without run"}},
		{"waiting and run", "{waiting: CrashLoopBackOff, run: 1s}", []string{"run has no effect together with waiting"}},
		{"two", "{run: x, restarts: z}", []string{"restarts: z is no whole number", "run: x is no duration"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := readSimulation(c.text, []string{"main", "side"})
			if len(got.mistakes) != len(c.want) {
				t.Fatalf("got %d mistakes, want %d: %q", len(got.mistakes), len(c.want), got.mistakes)
			}
			for i, want := range c.want {
				if !strings.Contains(got.mistakes[i], want) {
					t.Errorf("got %q, want %q in it", got.mistakes[i], want)
				}
			}
			if got.Waits() != (len(c.want) > 0 || got.Waiting != "") {
				t.Errorf("a wrong annotation holds the pod back, and only that or waiting does: got %v", got.Waits())
			}
		})
	}
}

// TestReadSimulationAnyText checks that every text is either read or refused.
func TestReadSimulationAnyText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(
			rapid.String(),
			rapid.StringMatching(`\{(run|waiting|exitCodes|restarts|readyAfter|terminate): [-a-z0-9.{}: \[\]]{0,12}\}`),
		).Draw(t, "text")
		s := readSimulation(text, rapid.SliceOfN(rapid.StringMatching(`[a-z]{1,4}`), 0, 3).Draw(t, "containers"))
		if len(s.mistakes) > 0 && s.WaitingReason() != invalidSim {
			t.Fatalf("mistakes %q, but the pod starts", s.mistakes)
		}
		if _, err := json.Marshal([]any{s.EndAt(), s.ReadyAt(), s.PodMessage(), s.TerminateIn()}); err != nil {
			t.Fatal(err)
		}
	})
}

// simulated creates and binds a pod of two containers whose life is sim.
func (w *world) simulated(name, node, sim string) {
	w.t.Helper()
	w.Apply(fmt.Sprintf(`
apiVersion: v1
kind: Pod
metadata:
  name: %s
  annotations: {celsius.dev/sim: %q}
spec:
  schedulerName: nobody
  containers: [{name: main, image: main}, {name: side, image: side}]
`, name, sim))
	bind(w, name, node)
}

// podLife is the compared part of a pod's status.
type podLife struct {
	Phase    corev1.PodPhase
	Ready    corev1.ConditionStatus
	Reason   string
	Restarts []int32
	Codes    []int32
	Waiting  []string
}

func lifeOf(pod *corev1.Pod) podLife {
	l := podLife{Phase: pod.Status.Phase, Reason: pod.Status.Reason}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			l.Ready = c.Status
		}
	}
	for _, c := range pod.Status.ContainerStatuses {
		l.Restarts = append(l.Restarts, c.RestartCount)
		if c.State.Terminated != nil {
			l.Codes = append(l.Codes, c.State.Terminated.ExitCode)
		}
		if c.State.Waiting != nil {
			l.Waiting = append(l.Waiting, c.State.Waiting.Reason)
		}
	}
	return l
}

// waitLife waits until the pod has this status.
func (w *world) waitLife(name string, want podLife) *corev1.Pod {
	w.t.Helper()
	pod := &corev1.Pod{}
	w.Wait("life of pod "+name, func() error {
		if err := w.Get(name, pod); err != nil {
			return err
		}
		if diff := cmp.Diff(want, lifeOf(pod)); diff != "" {
			return fmt.Errorf("(-want +got)\n%s", diff)
		}
		return nil
	})
	return pod
}

// TestStages tests every key of celsius.dev/sim with one pod.
func TestStages(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	node := w.Nodes(1, "cpu=4")[0]
	const yes, no = corev1.ConditionTrue, corev1.ConditionFalse
	for name, c := range map[string]struct {
		sim  string
		want podLife
	}{
		"default": {"", podLife{Phase: corev1.PodRunning, Ready: yes, Restarts: []int32{0, 0}}},
		"run":     {"{run: 200ms}", podLife{Phase: corev1.PodSucceeded, Ready: no, Restarts: []int32{0, 0}, Codes: []int32{0, 0}}},
		"codes": {"{run: 0s, exitCodes: {main: 137}}", podLife{
			Phase: corev1.PodFailed, Ready: no, Restarts: []int32{0, 0},
			Codes: []int32{137, 0},
		}},
		"restarts": {"{restarts: 3}", podLife{Phase: corev1.PodRunning, Ready: yes, Restarts: []int32{3, 3}}},
		"waiting": {"{waiting: ImagePullBackOff}", podLife{
			Phase: corev1.PodPending, Ready: no, Restarts: []int32{0, 0}, Waiting: []string{"ImagePullBackOff", "ImagePullBackOff"},
		}},
		"ready-then-end": {"{run: 300ms, readyAfter: 100ms}", podLife{
			Phase: corev1.PodSucceeded, Ready: no, Restarts: []int32{0, 0},
			Codes: []int32{0, 0},
		}},
		"ready-later": {"{readyAfter: 1h}", podLife{Phase: corev1.PodRunning, Ready: no, Restarts: []int32{0, 0}}},
		"ready-soon":  {"{readyAfter: 200ms}", podLife{Phase: corev1.PodRunning, Ready: yes, Restarts: []int32{0, 0}}},
		"ends-unready": {"{run: 200ms, readyAfter: 1h}", podLife{
			Phase: corev1.PodSucceeded, Ready: no, Restarts: []int32{0, 0},
			Codes: []int32{0, 0},
		}},
	} {
		w.simulated(name, node, c.sim)
		t.Run(name, func(t *testing.T) {
			pod := w.In(t).waitLife(name, c.want)
			if len(pod.Status.PodIP) == 0 || pod.Status.HostIP == "" || pod.Status.StartTime == nil {
				t.Errorf("status has no addresses or start time: %+v", pod.Status)
			}
		})
	}
}

// TestWrongSimulation checks that kubectl shows a mistake, and that the pod starts after its correction.
func TestWrongSimulation(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	node := w.Nodes(1, "cpu=4")[0]
	w.simulated("wrong", node, "{exitcode: {main: 1}}")
	w.waitLife("wrong", podLife{
		Phase: corev1.PodPending, Ready: corev1.ConditionFalse, Reason: invalidSim,
		Restarts: []int32{0, 0}, Waiting: []string{invalidSim, invalidSim},
	})
	if out := w.Kubectl("get", "pod", "wrong"); !strings.Contains(out, invalidSim) {
		t.Errorf("kubectl get does not tell of it:\n%s", out)
	}
	if out := w.Kubectl("describe", "pod", "wrong"); !strings.Contains(out, "there is no key exitcode; did you mean exitCodes?") {
		t.Errorf("kubectl describe does not tell what is wrong:\n%s", out)
	}
	w.Kubectl("annotate", "pod", "wrong", "--overwrite", simAnnotation+"={run: 0s, exitCodes: {main: 1}}")
	w.waitLife("wrong", podLife{Phase: corev1.PodFailed, Ready: corev1.ConditionFalse, Restarts: []int32{0, 0}, Codes: []int32{1, 0}})
}

// TestAPodThatFollowsAnother checks that the kubelet's pending actions for a pod do not affect a later pod with the same name.
func TestAPodThatFollowsAnother(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	node := w.Nodes(1, "cpu=4")[0]
	w.simulated("pod", node, "{waiting: ImagePullBackOff}")
	waits := podLife{
		Phase: corev1.PodPending, Ready: corev1.ConditionFalse,
		Restarts: []int32{0, 0}, Waiting: []string{"ImagePullBackOff", "ImagePullBackOff"},
	}
	pod := w.waitLife("pod", waits)
	pods := carefulClient{w.Kube}.CoreV1().Pods(w.Namespace)
	if err := pods.Delete(w.Context, "pod", metav1.DeleteOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("a pod that is not being deleted: %v; want that it is not found", err)
	}
	patch := func(uid types.UID) error {
		text := fmt.Sprintf(`{"metadata":{"uid":%q},"status":{"message":"by %s"}}`, uid, uid)
		_, err := pods.Patch(w.Context, "pod", types.StrategicMergePatchType, []byte(text), metav1.PatchOptions{}, "status")
		return err
	}
	if err := patch("another"); err == nil {
		t.Error("the status of a pod of another UID could be written")
	}
	if err := patch(pod.UID); err != nil {
		t.Errorf("the status of a pod of the same UID could not be written: %v", err)
	}
}

// TestTermination checks that a deleted or evicted pod disappears at the correct time: after terminate, and at the latest at the end of its
// grace period.
func TestTermination(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	node := w.Nodes(1, "cpu=4")[0]
	grace := func(seconds int64) metav1.DeleteOptions { return metav1.DeleteOptions{GracePeriodSeconds: &seconds} }
	pods := w.Kube.CoreV1().Pods(w.Namespace)
	for name, c := range map[string]struct {
		sim      string
		end      func(name string) error
		atLeast  time.Duration
		lessThan time.Duration
	}{
		"at-once": {"", func(name string) error { return pods.Delete(w.Context, name, grace(300)) }, 0, 200 * time.Second},
		"slowly": {
			"{terminate: 2s}", func(name string) error { return pods.Delete(w.Context, name, grace(300)) }, 2 * time.Second,
			200 * time.Second,
		},
		// Times in the API have whole seconds, so the grace period may end up to a second early.
		"killed": {
			"{terminate: 1h}", func(name string) error { return pods.Delete(w.Context, name, grace(3)) }, 2 * time.Second,
			300 * time.Second,
		},
		"evicted": {"{terminate: 1s}", func(name string) error {
			return pods.EvictV1(w.Context, &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: name}, DeleteOptions: new(grace(300))})
		}, time.Second, 200 * time.Second},
	} {
		w.simulated(name, node, c.sim)
		t.Run(name, func(t *testing.T) {
			w := w.In(t)
			w.waitLife(name, podLife{Phase: corev1.PodRunning, Ready: corev1.ConditionTrue, Restarts: []int32{0, 0}})
			begin := time.Now()
			if err := c.end(name); err != nil {
				t.Fatal(err)
			}
			w.Wait("pod is gone", func() error { return w.gone(name, &corev1.Pod{}) })
			if took := time.Since(begin); took < c.atLeast || took > c.lessThan {
				t.Errorf("gone after %s, want %s to %s", took, c.atLeast, c.lessThan)
			}
		})
	}
}

// TestDeletedWithFinalizer checks that a pod with a finalizer ends before it is deleted.
func TestDeletedWithFinalizer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	node := w.Nodes(1, "cpu=4")[0]
	w.simulated("held", node, "")
	pods := w.Kube.CoreV1().Pods(w.Namespace)
	patch := func(text string) {
		t.Helper()
		if _, err := pods.Patch(w.Context, "held", types.MergePatchType, []byte(text), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	patch(`{"metadata":{"finalizers":["example.com/held"]}}`)
	w.waitLife("held", podLife{Phase: corev1.PodRunning, Ready: corev1.ConditionTrue, Restarts: []int32{0, 0}})
	w.Kubectl("delete", "pod", "held", "--wait=false")
	w.waitLife("held", podLife{Phase: corev1.PodFailed, Ready: corev1.ConditionFalse, Restarts: []int32{0, 0}, Codes: []int32{143, 143}})
	patch(`{"metadata":{"finalizers":null}}`)
	w.Wait("pod is gone", func() error { return w.gone("held", &corev1.Pod{}) })
}
