package main

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestDeployment checks the control plane: a Deployment gets its pods, a binding starts them, and deleted objects are garbage-collected.
func TestDeployment(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	node := w.Nodes(1, "cpu=4,memory=8Gi")[0]
	w.Apply(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {schedulerName: nobody, containers: [{name: main, image: web}]}
`)
	w.Wait("three pods", func() error {
		if n := len(w.Pods("app=web")); n != 3 {
			return fmt.Errorf("there are %d", n)
		}
		return nil
	})
	for _, pod := range w.Pods("app=web") {
		bind(w, pod.Name, node)
	}
	w.Kubectl("wait", "deployment/web", "--for=condition=Available")
	if out := w.Kubectl("get", "pods"); strings.Count(out, "Running") != 3 {
		t.Errorf("not all pods are Running:\n%s", out)
	}
	w.Kubectl("delete", "deployment", "web")
	w.Wait("pods are collected", func() error {
		if n := len(w.Pods("")); n != 0 {
			return fmt.Errorf("%d are left", n)
		}
		return nil
	})
}

// bind binds a pod, as a scheduler does.
func bind(w *world, pod, node string) {
	w.t.Helper()
	binding := &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Name: pod},
		Target:     corev1.ObjectReference{Kind: "Node", Name: node},
	}
	if err := w.Kube.CoreV1().Pods(w.Namespace).Bind(w.Context, binding, metav1.CreateOptions{}); err != nil {
		w.t.Fatal(err)
	}
}

// TestCRDs checks that our kinds are served, with their short names and their schemas.
func TestCRDs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, name := range []string{"vcjob", "q", "pg", "spol", "commands.bus.volcano.sh"} {
		w.Kubectl("get", name)
	}
	if out := w.Kubectl("explain", "spol.spec.mode"); !strings.Contains(out, "Paused") {
		t.Errorf("kubectl explain does not tell the modes:\n%s", out)
	}
}
