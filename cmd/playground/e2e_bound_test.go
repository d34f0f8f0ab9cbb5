package main

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/celsius-scheduler/celsius/engine/model"
)

// TestWhatABoundPodHoldsIsNotItsOwnersToSay checks that the owner of a pod with a device cannot free a part of it for another pod. Neither
// changed annotations nor a restart of the scheduler make this possible.
func TestWhatABoundPodHoldsIsNotItsOwnersToSay(t *testing.T) {
	w := newWorld(t)
	w.Kubectl("annotate", "node", w.Nodes(1, "cpu=8")[0], model.NodeGPUsAnnotation+"=1")
	w.Apply(queueA)
	scheduler := w.part("scheduler")
	w.sharing("whole", "1000")
	w.isBound("whole-0")
	w.checkGuardOf("whole-0")

	w.sharing("more", "900")
	w.isToldToWait("more-0")
	scheduler.Kill()
	w.part("scheduler")
	w.sharing("after", "900")
	w.sharing("plain", "")
	w.isBound("plain-0") // the new scheduler works
	w.isToldToWait("after-0")
	w.isToldToWait("more-0")

	w.Kubectl("delete", "pod", "whole-0")
	w.oneIsBound("more-0", "after-0")
}

// Running pods are charged to the queue in which they were bound. This also applies if their owner deletes the PodGroup or creates it again
// in another queue, and for the next leading scheduler.
func TestAGroupThatIsDeletedLeavesItsPodsInTheirQueue(t *testing.T) {
	w := newWorld(t)
	w.Nodes(1, "cpu=8")
	w.Apply(`
apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata: {name: "${queue.a}"}
spec: {weight: 1, capability: {cpu: 150m}}
---
apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata: {name: "${queue.b}"}
spec: {weight: 1}
`)
	inB := func(name string) {
		w.Apply(`{apiVersion: scheduling.volcano.sh/v1beta1, kind: PodGroup, metadata: {name: ` + name +
			`}, spec: {minMember: 1, queue: "${queue.b}"}}`)
	}
	scheduler := w.part("scheduler")
	w.sharing("first", "")
	w.isBound("first-0")

	w.Kubectl("patch", "podgroup", "first", "--type=merge", "-p", w.Expand(`{"spec":{"queue":"${queue.b}"}}`)) // as an administrator
	w.sharing("moved", "")
	w.isToldToWait("moved-0")
	w.Kubectl("delete", "podgroup", "first")
	w.sharing("second", "")
	w.isToldToWait("second-0")
	inB("first") // created again, in another queue
	w.sharing("third", "")
	w.isToldToWait("third-0")
	w.isToldToWait("second-0")

	scheduler.Kill()
	w.part("scheduler")
	w.sharing("fourth", "")
	w.isToldToWait("fourth-0") // by the new scheduler
	w.Kubectl("delete", "podgroup", "first")
	w.sharing("fifth", "")
	w.isToldToWait("fifth-0") // after the deletion
	w.isToldToWait("second-0")

	w.Kubectl("delete", "pod", "first-0")
	w.oneIsBound("moved-0", "second-0", "third-0", "fourth-0", "fifth-0")
}

// sharing creates a pod that requests the given thousandths of a device; "" means none.
func (w *world) sharing(name, milli string) {
	w.t.Helper()
	share := func(p *corev1.Pod) {
		if milli != "" {
			p.Annotations[model.GPUMilliAnnotation] = milli
		}
	}
	if err := w.gang(name, 1, share); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) isBound(name string) {
	w.t.Helper()
	pod := &corev1.Pod{}
	w.Wait("pod "+name+" is bound", func() error {
		if err := w.Get(name, pod); err != nil || pod.Spec.NodeName != "" {
			return err
		}
		return errors.New("it waits: " + waitsFor(pod))
	})
}

func (w *world) oneIsBound(names ...string) {
	w.t.Helper()
	w.Wait("one of those that wait is bound", func() error {
		for _, name := range names {
			pod := &corev1.Pod{}
			if err := w.Get(name, pod); err == nil && pod.Spec.NodeName != "" {
				return nil
			}
		}
		return errors.New("none is bound")
	})
}

func (w *world) isToldToWait(name string) {
	w.t.Helper()
	pod := &corev1.Pod{}
	w.Wait("pod "+name+" is told why it waits", func() error {
		if err := w.Get(name, pod); err != nil {
			return err
		}
		if why := waitsFor(pod); strings.HasPrefix(why, "Unschedulable: ") || strings.HasPrefix(why, "QueueLimited: ") {
			return nil
		}
		return fmt.Errorf("it is on node %q, with no reason", pod.Spec.NodeName)
	})
	if pod.Spec.NodeName != "" {
		w.t.Fatalf("pod %s is on node %s beside one that holds the device", name, pod.Spec.NodeName)
	}
}

// checkGuardOf tries to change the accounting of a bound pod.
func (w *world) checkGuardOf(pod string) {
	w.t.Helper()
	for _, try := range []struct{ says, verb, what string }{
		{"celsius.dev/gpu-milli is settled", "annotate", "celsius.dev/gpu-milli=100"},
		{"celsius.dev/gpu-milli is settled", "annotate", "celsius.dev/gpu-milli-"},
		{"celsius.dev/gpu-count is settled", "annotate", "celsius.dev/gpu-count=0"},
		{"only a binding writes the annotation celsius.dev/bound", "annotate", "celsius.dev/bound={}"},
		{"only a binding writes the annotation celsius.dev/bound", "annotate", "celsius.dev/bound-"},
		{"only a binding writes the annotation celsius.dev/gpus", "annotate", "celsius.dev/gpus=7"},
		{"only a binding writes the annotation celsius.dev/bound", "status", `{"metadata":{"annotations":{"celsius.dev/bound":null}}}`},
		{"", "annotate", "scheduling.k8s.io/group-name=elsewhere"}, // it changes nothing
	} {
		args := []string{"annotate", "--overwrite", "pod", pod, try.what}
		if try.verb == "status" {
			args = []string{"patch", "pod", pod, "--subresource=status", "--type=merge", "-p", try.what}
		}
		if r := w.TryKubectl("", args...); (r.Code == 0) != (try.says == "") || !strings.Contains(r.Err, try.says) {
			w.t.Errorf("kubectl %s: %s%s; want it refused with %q", strings.Join(args, " "), r.Out, r.Err, try.says)
		}
	}
	if said := w.refused(`
apiVersion: v1
kind: Pod
metadata: {name: forged, annotations: {celsius.dev/bound: "{}"}}
spec: {containers: [{name: main, image: main}]}
`); !strings.Contains(said, "leave it out") {
		w.t.Errorf("a new pod with a record is refused with %s", said)
	}
}
