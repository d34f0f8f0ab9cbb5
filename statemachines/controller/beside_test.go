package controller

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	batchv1alpha1 "github.com/celsius-scheduler/celsius/crds/batch/v1alpha1"
	schedulingv1beta1 "github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
)

// pluginStage has a job with these plugins.
func pluginStage(t *testing.T, plugins map[string][]string) *stage {
	t.Helper()
	job := parseJob(t, fmt.Sprintf(train, ""))
	job.Spec.Plugins = plugins
	return newStage(t, Options{}, openQueue(), job)
}

func (s *stage) secret(name string) *corev1.Secret {
	s.t.Helper()
	out := &corev1.Secret{}
	if err := s.api.Get(s.t.Context(), types.NamespacedName{Namespace: namespace, Name: name}, out); err != nil {
		s.t.Fatal(err)
	}
	return out
}

func (s *stage) configMap(name string) *corev1.ConfigMap {
	s.t.Helper()
	out := &corev1.ConfigMap{}
	if err := s.api.Get(s.t.Context(), types.NamespacedName{Namespace: namespace, Name: name}, out); err != nil {
		s.t.Fatal(err)
	}
	return out
}

// TestBeside follows what plugins make from the first pod to the end: made when the job is let in, brought in line when it is scaled, but for
// the Secret, which is made once; gone with the pods, and made anew with them.
func TestBeside(t *testing.T) {
	s := pluginStage(t, map[string][]string{"ssh": nil, "svc": nil, "pytorch": {"--master=ps"}})
	s.settle()
	if got := s.beside(); len(got) > 0 {
		t.Errorf("a job that was not let in has %v", got)
	}
	runs(s)
	all := []string{"NetworkPolicy train", "ConfigMap train-svc", "Secret train-ssh", "Service train"}
	if diff := cmp.Diff(all, s.beside()); diff != "" {
		t.Errorf("beside the job (-want +got):\n%s", diff)
	}
	ledger := withoutUIDs(s.job().Status.ControlledResources)
	for _, want := range []string{"plugin-ssh", "plugin-svc", "plugin-pytorch"} {
		if ledger[want] == "" {
			t.Errorf("controlledResources has no %s: %v", want, ledger)
		}
	}
	for _, pod := range s.pods() {
		if !slices.ContainsFunc(pod.Spec.Containers[0].Env, func(e corev1.EnvVar) bool { return e.Name == "MASTER_ADDR" && e.Value == "train-ps-0.train" }) {
			t.Errorf("%s has no MASTER_ADDR: %v", pod.Name, pod.Spec.Containers[0].Env)
		}
	}
	before, calls := s.secret("train-ssh"), s.calls
	s.settle()
	if s.calls != calls {
		t.Errorf("%d calls though nothing happened", s.calls-calls)
	}

	scale(s, 1, 3)
	s.settle()
	if after := s.secret("train-ssh"); string(before.Data["id_rsa"]) != string(after.Data["id_rsa"]) || len(after.Data["id_rsa"]) == 0 {
		t.Error("the keys are others after the job was scaled")
	}
	if got := s.configMap("train-svc").Data["VC_WORKER_NUM"]; got != "3" {
		t.Errorf("VC_WORKER_NUM is %s after the job was scaled to 3", got)
	}

	s.commandJob("RestartJob")
	if got := s.beside(); len(got) > 0 {
		t.Errorf("a killed job has %v", got)
	}
	again(s)
	if diff := cmp.Diff(all, s.beside()); diff != "" {
		t.Errorf("beside the job that was restarted (-want +got):\n%s", diff)
	}
	if got := s.secret("train-ssh"); string(got.Data["id_rsa"]) == string(before.Data["id_rsa"]) {
		t.Error("the restarted job has the keys of the one before")
	}
	s.play("train", corev1.PodSucceeded, 0)
	s.settle()
	if got, phase := s.beside(), s.job().Status.State.Phase; len(got) > 0 || phase != batchv1alpha1.Completed {
		t.Errorf("a job that is %s has %v", phase, got)
	}
	if got := s.job().Status.ControlledResources; len(got) > 0 {
		t.Errorf("a job that has ended owes %v", got)
	}
}

// TestBesideDied has a controller die once it made the Secret: the next one, which may not read it, goes on with it.
func TestBesideDied(t *testing.T) {
	calm := pluginStage(t, map[string][]string{"ssh": nil})
	runs(calm)
	for call := 1; call <= calm.calls; call++ {
		s := pluginStage(t, map[string][]string{"ssh": nil})
		s.trouble = trouble{call: call, after: true, dies: true}
		runs(s)
		if got := s.made["*unstructured.Unstructured train-ssh"]; got != 1 || len(s.pods()) != 3 {
			t.Errorf("call %d: the Secret was made %d times, %d pods", call, got, len(s.pods()))
		}
	}
}

// TestBesideForeign leaves an object of the name alone that is not the job's, and tells; no pod is made without what it needs.
func TestBesideForeign(t *testing.T) {
	s := pluginStage(t, map[string][]string{"svc": nil})
	theirs := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "train", Namespace: namespace}, Spec: corev1.ServiceSpec{ClusterIP: "10.0.0.7"}}
	s.add(theirs)
	s.settle()
	s.letIn(schedulingv1beta1.PodGroupInqueue)
	refusedOnce(s)
	state := s.job().Status.State
	want := "job plugin svc: the Service train belongs to another owner; delete it, or call the job something else"
	if state.Reason != "PluginError" || state.Message != want {
		t.Errorf("the job says %q: %q", state.Reason, state.Message)
	}
	if got := len(s.pods()); got > 0 {
		t.Errorf("%d pods were made", got)
	}
	if ledger := s.job().Status.ControlledResources; ledger[madeKey+"v1.ConfigMap.train-svc"] == "" || ledger[pluginsKey] != "" {
		t.Errorf("the ledger does not tell what was made: %v", ledger)
	}
	found := &corev1.Service{}
	if err := s.api.Get(t.Context(), types.NamespacedName{Namespace: namespace, Name: "train"}, found); err != nil || found.Spec.ClusterIP != "10.0.0.7" {
		t.Errorf("their Service is %+v, %v", found.Spec, err)
	}
}

// TestBesideUnknown tells of a job, come by no admission, whose plugins cannot work.
func TestBesideUnknown(t *testing.T) {
	s := pluginStage(t, map[string][]string{"pytorsh": nil, "svc": {"--no"}})
	s.settle()
	state := s.job().Status.State
	if state.Reason != "PluginError" || !strings.Contains(state.Message, "did you mean pytorch?") || !strings.Contains(state.Message, `"--no"`) {
		t.Errorf("the job says %q: %q", state.Reason, state.Message)
	}
	if len(s.groups()) > 0 || !s.told("train Warning PluginError") {
		t.Errorf("it has a PodGroup, or nobody was told: %v", s.lines)
	}
}
