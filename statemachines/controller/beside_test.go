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
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	batchv1alpha1 "github.com/celsius-scheduler/celsius/crds/batch/v1alpha1"
	schedulingv1beta1 "github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
	"github.com/celsius-scheduler/celsius/statemachines/jobplugin"
)

// pluginStage returns a stage with a job that has these plugins.
func pluginStage(t *testing.T, plugins map[string][]string) *stage {
	t.Helper()
	job := parseJob(t, fmt.Sprintf(train, ""))
	job.Spec.Plugins = plugins
	return newStage(t, Options{}, openQueue(), job)
}

// secret returns the Secret of the plugin ssh, and configMap the ConfigMap of svc.
func (s *stage) secret() *corev1.Secret {
	s.t.Helper()
	out := &corev1.Secret{}
	if err := s.api.Get(s.t.Context(), types.NamespacedName{Namespace: namespace, Name: "train-ssh"}, out); err != nil {
		s.t.Fatal(err)
	}
	return out
}

func (s *stage) configMap() *corev1.ConfigMap {
	s.t.Helper()
	out := &corev1.ConfigMap{}
	if err := s.api.Get(s.t.Context(), types.NamespacedName{Namespace: namespace, Name: "train-svc"}, out); err != nil {
		s.t.Fatal(err)
	}
	return out
}

// TestBeside checks that plugins create their objects after the job is admitted, and that its pods use them.
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
		master := corev1.EnvVar{Name: "MASTER_ADDR", Value: "train-ps-0.train"}
		if !slices.Contains(pod.Spec.Containers[0].Env, master) {
			t.Errorf("%s has no MASTER_ADDR: %v", pod.Name, pod.Spec.Containers[0].Env)
		}
	}
	calls := s.calls
	s.settle()
	if s.calls != calls {
		t.Errorf("%d calls though nothing happened", s.calls-calls)
	}
}

// TestBesideChanges checks that the objects of plugins are updated when a job is scaled. The Secret is created once and never updated. It
// is deleted with the pods, and created again with them.
func TestBesideChanges(t *testing.T) {
	s := pluginStage(t, map[string][]string{"ssh": nil, "svc": nil})
	runs(s)
	all, before := s.beside(), s.secret()
	scaleWorker(s, 3)
	s.settle()
	if after := s.secret(); string(before.Data["id_rsa"]) != string(after.Data["id_rsa"]) || len(after.Data["id_rsa"]) == 0 {
		t.Error("the keys are others after the job was scaled")
	}
	if got := s.configMap().Data["VC_WORKER_NUM"]; got != "3" {
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
	if got := s.secret(); string(got.Data["id_rsa"]) == string(before.Data["id_rsa"]) {
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

// TestBesideDied ends a controller after it created the Secret. The next controller, which may not read the Secret, continues with it.
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

// TestBesideEndsUnwritten ends a controller while it creates objects of plugins. The job ends before the next controller reconciles it. No
// object without an entry in the status may remain.
func TestBesideEndsUnwritten(t *testing.T) {
	let := func() *stage {
		s := pluginStage(t, map[string][]string{"svc": nil})
		s.settle()
		s.letIn(schedulingv1beta1.PodGroupInqueue)
		return s
	}
	calm := let()
	before := calm.calls
	calm.settle()
	left := 0
	for call := before + 1; call <= calm.calls; call++ {
		s := let()
		s.trouble = trouble{call: call, after: true, dies: true}
		s.round()
		left += len(s.beside())
		s.commandJob("TerminateJob")
		s.release()
		s.settle()
		if phase, got := s.job().Status.State.Phase, s.beside(); phase != batchv1alpha1.Terminated || len(got) > 0 {
			t.Errorf("call %d: the job is %s, and beside it are %v", call, phase, got)
		}
	}
	if left < 6 {
		t.Errorf("only %d objects were there when controllers died", left)
	}
}

// TestBesideForeign checks that an object of another owner with the same name stays unchanged and is reported. No pod is created without
// the objects that it needs.
func TestBesideForeign(t *testing.T) {
	s := pluginStage(t, map[string][]string{"svc": nil})
	theirs := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "train", Namespace: namespace}}
	theirs.Spec.ClusterIP = "10.0.0.7"
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
	if err := s.api.Get(t.Context(), client.ObjectKeyFromObject(theirs), found); err != nil || found.Spec.ClusterIP != "10.0.0.7" {
		t.Errorf("their Service is %+v, %v", found.Spec, err)
	}
}

// TestBesideUnknown checks the message of a job that did not pass admission and has invalid plugins.
func TestBesideUnknown(t *testing.T) {
	s := pluginStage(t, map[string][]string{"pytorsh": nil, "svc": {"--no"}})
	s.settle()
	state := s.job().Status.State
	nearest, argument := strings.Contains(state.Message, "did you mean pytorch?"), strings.Contains(state.Message, `"--no"`)
	if state.Reason != "PluginError" || !nearest || !argument {
		t.Errorf("the job says %q: %q", state.Reason, state.Message)
	}
	if len(s.groups()) > 0 || !s.told("train Warning PluginError") {
		t.Errorf("it has a PodGroup, or nobody was told: %v", s.lines)
	}
}

// TestBesideTaken has a Secret of another owner with the required name, as after the deletion of a job of that name. The job waits and
// checks again. No controller may treat the Secret as the job's own.
func TestBesideTaken(t *testing.T) {
	s := pluginStage(t, map[string][]string{"ssh": nil})
	theirs := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "train-ssh", Namespace: namespace}}
	s.add(theirs)
	s.settle()
	s.letIn(schedulingv1beta1.PodGroupInqueue)
	for range 3 {
		s.round()
		s.newController()
	}
	state := s.job().Status.State
	want := "job plugin ssh: the Secret train-ssh is there already, and it cannot be seen whether it is the job's; delete it, or call " +
		"the job something else"
	if state.Reason != "PluginError" || state.Message != want || len(s.pods()) > 0 {
		t.Errorf("the job has %d pods and says %q: %q", len(s.pods()), state.Reason, state.Message)
	}
	result, err := s.reconcilers["job"].Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(s.job())})
	if err != nil || result.RequeueAfter != lookAgain {
		t.Errorf("it is looked at again after %v, %v", result.RequeueAfter, err)
	}
	if err := s.api.Delete(t.Context(), theirs); err != nil {
		t.Fatal(err)
	}
	s.settle()
	if got := s.job().Status.ControlledResources[madeKey+"v1.Secret.train-ssh"]; !strings.HasPrefix(got, "uid-") || len(s.pods()) != 3 {
		t.Errorf("the job has %d pods and the Secret %q", len(s.pods()), got)
	}
}

// TestBesideNotTried lets another object fail before the Secret is tried. An existing Secret must not count as the job's own because of
// that.
func TestBesideNotTried(t *testing.T) {
	plugins, _, issues := jobplugin.LoadFile("a.yaml", []byte(`apiVersion: rules.celsius.dev/v1alpha1
kind: JobPlugin
metadata: {name: a}
description: makes something before ssh does
objects:
- name: map
  object: {apiVersion: v1, kind: ConfigMap, metadata: {name: "{{job.metadata.name}}-a"}, data: {a: b}}
`))
	if len(issues) > 0 {
		t.Fatal(issues)
	}
	job := parseJob(t, fmt.Sprintf(train, ""))
	job.Spec.Plugins = map[string][]string{"a": nil, "ssh": nil}
	s := newStage(t, Options{JobPlugins: plugins}, openQueue(), job)
	first := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "train-a", Namespace: namespace}}
	s.add(first)
	s.add(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "train-ssh", Namespace: namespace}})
	s.settle()
	s.letIn(schedulingv1beta1.PodGroupInqueue)
	s.round()
	if state := s.job().Status.State; !strings.Contains(state.Message, "the ConfigMap train-a belongs to another owner") {
		t.Errorf("the job says %q: %q", state.Reason, state.Message)
	}
	if err := s.api.Delete(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	s.round()
	if state := s.job().Status.State; !strings.Contains(state.Message, "the Secret train-ssh is there already") || len(s.pods()) > 0 {
		t.Errorf("the job has %d pods and says %q: %q", len(s.pods()), state.Reason, state.Message)
	}
}

// TestBesideAnswerLost loses the answer to the creation of the Secret. The next try finds the Secret, and a restarted job uses it again.
func TestBesideAnswerLost(t *testing.T) {
	calm := pluginStage(t, map[string][]string{"ssh": nil})
	runs(calm)
	for call := 1; call <= calm.calls; call++ {
		s := pluginStage(t, map[string][]string{"ssh": nil})
		s.trouble = trouble{call: call, after: true}
		runs(s)
		s.commandJob("RestartJob")
		again(s)
		if phase := s.job().Status.State.Phase; phase != batchv1alpha1.Running || len(s.secret().Data["id_rsa"]) == 0 {
			t.Errorf("call %d: the restarted job is %s: %s", call, phase, s.job().Status.State.Message)
		}
	}
}

// TestBesideOfVolcano checks that objects that Volcano created for a running job stay unchanged, and are used when the job restarts. The
// Secret belongs to the job, although it may not be read.
func TestBesideOfVolcano(t *testing.T) {
	s := pluginStage(t, map[string][]string{"ssh": nil, "svc": nil})
	runs(s)
	job := s.job()
	job.Status.ControlledResources = map[string]string{"plugin-ssh": "ssh", "plugin-svc": "svc"}
	if err := s.api.Status().Update(t.Context(), job); err != nil {
		t.Fatal(err)
	}
	s.newController()
	calls, keys := s.calls, string(s.secret().Data["id_rsa"])
	s.settle()
	if s.calls != calls {
		t.Errorf("%d calls though nothing happened", s.calls-calls)
	}
	s.commandJob("RestartJob")
	again(s)
	if phase := s.job().Status.State.Phase; phase != batchv1alpha1.Running || string(s.secret().Data["id_rsa"]) != keys {
		t.Errorf("the restarted job is %s: %s", phase, s.job().Status.State.Message)
	}
	if got := s.job().Status.ControlledResources[pluginsKey]; !strings.HasPrefix(got, "0/") {
		t.Errorf("what is beside it is of %q", got)
	}
}

// TestBesideOfOtherPlugins checks that the objects of a running job are updated if the controllers start with other plugins.
func TestBesideOfOtherPlugins(t *testing.T) {
	s := pluginStage(t, map[string][]string{"svc": nil})
	runs(s)
	job := s.job()
	job.Status.ControlledResources[pluginsKey] = "0/00000000"
	if err := s.api.Status().Update(t.Context(), job); err != nil {
		t.Fatal(err)
	}
	hosts := s.configMap()
	hosts.Data = map[string]string{"old": ""}
	if err := s.api.Update(t.Context(), hosts); err != nil {
		t.Fatal(err)
	}
	s.newController()
	s.settle()
	if data := s.configMap().Data; data["VC_WORKER_NUM"] != "2" || len(data) < 4 {
		t.Errorf("the ConfigMap has %v", data)
	}
	if _, old := s.configMap().Data["old"]; old {
		t.Error("the ConfigMap keeps what no plugin says")
	}
}

// TestRowFails lets a row of a plugin fail for a job. The job waits, and is not retried repeatedly.
func TestRowFails(t *testing.T) {
	own, _, issues := jobplugin.LoadFile("own.yaml", []byte(`apiVersion: rules.celsius.dev/v1alpha1
kind: JobPlugin
metadata: {name: own}
description: fails
pods:
- {name: number, in: [containers], env: [{name: N, value: "{{job.spec.tasks[7].name}}"}]}
objects:
- name: map
  object: {apiVersion: v1, kind: ConfigMap, metadata: {name: "{{job.metadata.name}}-own"}, data: {a: "{{job.metadata.labels['no-such']}}"}}
`))
	if len(issues) > 0 {
		t.Fatal(issues)
	}
	job := parseJob(t, fmt.Sprintf(train, ""))
	job.Spec.Plugins = map[string][]string{"own": nil}
	s := newStage(t, Options{JobPlugins: own}, openQueue(), job)
	s.settle()
	s.letIn(schedulingv1beta1.PodGroupInqueue)
	s.settle()
	state := s.job().Status.State
	if state.Reason != "PluginError" || !strings.Contains(state.Message, "job plugin own, ") || len(s.pods()) > 0 {
		t.Errorf("the job has %d pods and says %q: %q", len(s.pods()), state.Reason, state.Message)
	}
	calls := s.calls
	for range 3 {
		result, err := s.reconcilers["job"].Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(s.job())})
		if err != nil || result.RequeueAfter != 0 || s.calls != calls {
			t.Errorf("it is tried again: %v, %v, %d calls", result.RequeueAfter, err, s.calls-calls)
		}
	}
}
