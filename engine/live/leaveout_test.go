package live

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"

	"github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
	"github.com/celsius-scheduler/celsius/engine/explain"
	"github.com/celsius-scheduler/celsius/engine/live/recovery"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/volume"
)

// wrongPod is the pod at which tests panic until it has the annotation "corrected".
const wrongPod = "bert-large-finetune-0"

func isWrong(object any) bool {
	var pod *corev1.Pod
	switch o := object.(type) {
	case *corev1.Pod:
		pod = o
	case *model.Task:
		pod = o.Object
	case *model.Job:
		return slices.ContainsFunc(o.Tasks, func(t *model.Task) bool { return isWrong(t) })
	}
	return pod != nil && pod.Name == wrongPod && pod.Annotations["corrected"] == ""
}

// failingVolumes panic when the wrong pod already has a place: the model is half changed then.
type failingVolumes struct{ model.Volumes }

// Bindings implements model.Volumes.
func (v failingVolumes) Bindings(t *model.Task, row int32) ([]model.VolumeBind, error) {
	if isWrong(t) {
		panic("test panics in the volume library")
	}
	return v.Volumes.Bindings(t, row)
}

// A panic at one object leaves that object out, names it once, and stops no other object. After a correction the object is scheduled.
//
// The wrong pod needs an eviction on n2, so that each place handles it. 20 other jobs fit on n1.
func TestPanicsLeaveOneObjectOut(t *testing.T) {
	at := func(place recovery.Place) func(r *rig) {
		return func(r *rig) {
			r.cluster.OnTurn = func(object any) {
				if r.place == place && isWrong(object) {
					panic(fmt.Sprintf("test panics in %s", place))
				}
			}
		}
	}
	for _, c := range []panicking{
		{"intake", recovery.Intake, at(recovery.Intake)},
		{"cycle", recovery.Cycle, at(recovery.Cycle)},
		{"cycle that is half way", recovery.Cycle, func(r *rig) {
			r.volumes = func(c *model.Cluster) (model.Volumes, error) {
				v, err := volume.New(c)
				return failingVolumes{v}, err
			}
			r.rebuild()
		}},
		{"verifier", recovery.Verifier, at(recovery.Verifier)},
		{"status", recovery.Status, at(recovery.Status)},
		{"worker", recovery.Worker, func(*rig) {}},
		{"look", recovery.Look, at(recovery.Look)},
	} {
		t.Run(c.name, c.leavesOut)
	}
}

// panicking describes a place at which the wrong pod panics.
type panicking struct {
	name   string
	place  recovery.Place
	inject func(r *rig)
}

// leavesOut checks the claim of TestPanicsLeaveOneObjectOut at one place.
func (c panicking) leavesOut(t *testing.T) {
	t.Helper()
	p := preempting(t, "")
	synctest.Test(t, func(t *testing.T) {
		r := recorded(t, newRigOf(newFakeServer(t), p))
		f := r.server
		r.verifier.most, r.looking = time.Second, newLooking()
		began, last := time.Now(), time.Duration(0)
		f.onBind = func(b *corev1.Binding) (before, after error) {
			if c.place == recovery.Worker && isWrong(f.pods["default/"+b.Name]) {
				panic("test panics in a worker")
			}
			if b.Name != wrongPod {
				last = time.Since(began)
			}
			return nil, nil
		}
		c.inject(r)
		g := testGroup("bert-large-finetune", 1)
		g.Spec.PriorityClassName = "high"
		wrong := testPod(wrongPod, "bert-large-finetune", "1")
		wrong.Spec.NodeSelector = map[string]string{corev1.LabelHostname: "n2"}
		if c.name == "cycle that is half way" {
			f.put(testClass("local", "kubernetes.io/no-provisioner"), testVolume("v2", "n2"), testClaim("data", "local"))
			claiming(wrong)
		}
		low := runningOn(testPod("low-0", "low", "1"), "n2")
		low.Spec.TerminationGracePeriodSeconds = nil
		f.put(&schedulingv1.PriorityClass{ObjectMeta: testNode("high", "1").ObjectMeta, Value: 10}, testNode("n1", "64"), testNode("n2", "1"),
			testQueue("default"), testGroup("low", 0), low, g, wrong)
		for i := range 20 {
			name := fmt.Sprintf("resnet50-sweep-%d", i)
			f.put(testGroup(name, 1), testPod(name+"-0", name, "500m"))
		}
		r.settle(5)
		for i := range 20 {
			if b := fmt.Sprintf("default/resnet50-sweep-%d-0 n1", i); !slices.Contains(f.bindings, b) {
				t.Errorf("no binding %s", b)
			}
		}
		if last > 5*time.Second {
			t.Errorf("the last of the other jobs was bound after %s", last)
		}
		c.names(t, r)
		if t.Failed() {
			t.Logf("events %v\nmessages %v", f.events, f.messages)
		}
		f.as("default/"+wrongPod, func(p *corev1.Pod) { p.Annotations["corrected"] = "true" })
		r.settle(5)
		f.bindVolumes()
		r.settle(5)
		if !slices.Contains(f.bindings, "default/"+wrongPod+" n2") {
			t.Errorf("the corrected pod is not bound: %v", f.events)
		}
	})
}

// names checks that one event, or the answer to a question, names the wrong pod, and that the panic is counted.
func (c panicking) names(t *testing.T, r *rig) {
	t.Helper()
	f := r.server
	named := slices.DeleteFunc(slices.Clone(f.events), func(e string) bool {
		return !strings.HasSuffix(e, " "+eventLeftOut) || !strings.Contains(e, "default/bert-large-finetune")
	})
	if c.place == recovery.Look {
		_, err := r.ask(t.Context(), func(x *explain.Cycle) { _, _ = x.Object(explain.Pod, "default", wrongPod) })
		if err == nil || !strings.Contains(err.Error(), "panic in look at Pod default/"+wrongPod) {
			t.Errorf("the answer is %v", err)
		}
	} else if slices.Contains(f.bindings, "default/"+wrongPod+" n2") || len(named) != 1 {
		t.Errorf("bindings %v, events %v: the pod must wait, and one event must name it", f.bindings, named)
	}
	if got := series(t, r.metrics.registry)[`celsius_panics_total{place="`+string(c.place)+`"}`]; got == "0" || got == "" {
		t.Errorf("the panics in %s are %q", c.place, got)
	}
}

// A pod on a node that is left out counts on its node and in its queue.
func TestALeftOutPodCounts(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		f := r.server
		r.cluster.OnTurn = func(object any) {
			if o, ok := object.(*corev1.Pod); ok && isWrong(o) && len(o.Labels) > 0 {
				panic("test panics at a label")
			}
		}
		g := testGroup("bert-large-finetune", 1)
		g.Status.Phase = v1beta1.PodGroupRunning
		wrong := testPod(wrongPod, "bert-large-finetune", "3")
		wrong.Spec.NodeName, wrong.Status.Phase, wrong.Labels = "n1", corev1.PodRunning, map[string]string{"app": "bert"}
		f.put(testNode("n1", "4"), testQueue("default"), g, wrong)
		f.put(testGroup("g", 1), testPod("a", "g", "2"), testGroup("h", 1), testPod("b", "h", "1"))
		r.settle(5)
		if !slices.Equal(f.bindings, []string{"default/b n1"}) {
			t.Errorf("bindings are %v", f.bindings)
		}
		if got := f.queues["default"].Status.Allocated.Cpu().String(); got != "4" {
			t.Errorf("the queue holds %s cores", got)
		}
	})
}

// The answer to a question that panics in a trial is an error. The model does not change, and the next question gets another copy of it.
func TestAQuestionPanics(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		f := r.server
		r.looking = newLooking()
		f.put(testNode("n1", "4"), testQueue("default"), testGroup("g", 1), testPod("a", "g", "1"))
		r.settle(3)
		_, err := r.ask(t.Context(), func(x *explain.Cycle) { model.Try(x.Session.Cluster()); panic("test panics in a question") })
		if err == nil || !strings.Contains(err.Error(), "panic in look") {
			t.Errorf("the answer is %v", err)
		}
		_, err = r.ask(t.Context(), func(x *explain.Cycle) { model.Try(x.Session.Cluster()).End() })
		if err != nil {
			t.Errorf("the next answer is %v", err)
		}
		f.put(testGroup("h", 1), testPod("b", "h", "1"))
		r.settle(3)
		if !slices.Contains(f.bindings, "default/b n1") {
			t.Errorf("bindings are %v", f.bindings)
		}
	})
}
