package controller

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	batchv1alpha1 "github.com/celsius-scheduler/celsius/crds/batch/v1alpha1"
	"github.com/celsius-scheduler/celsius/statemachines/controller/flows"
)

// TestJobFlowTaskStatus checks that with a probe a Job begins before its target is Completed: when the target's tasks have a pod in the
// required phase. For targets to which the probe does not apply, it waits until they are Completed.
func TestJobFlowTaskStatus(t *testing.T) {
	s := newStage(t, Options{}, template("a"), template("b"), template("c"), flowOf(t, `
flows:
- name: a
- {name: b, dependsOn: {targets: [a], probe: {taskStatusList: [{taskName: main, phase: Running}]}}}
- {name: c, dependsOn: {targets: [a], probe: {taskStatusList: [{taskName: other, phase: Running}]}}}
`))
	s.settle()
	s.goes("Running", "f-a")
	s.jobsAre("Running", "f-a")
	if !s.told("f Warning ProbeFails: flows[1] b waits: no pod of task main of job f-a is Running") {
		t.Errorf("events %q", s.lines)
	}
	job := s.jobNamed("f-a")
	job.Status.TaskStatusCount = map[string]batchv1alpha1.TaskState{"main": {Phase: map[corev1.PodPhase]int32{"Running": 1}}}
	if err := s.api.Status().Update(t.Context(), job); err != nil {
		t.Fatal(err)
	}
	s.settle()
	s.jobsAre("Running", "f-a f-b")
	s.goes("Completed", "f-a")
	s.jobsAre("Running", "f-a f-b f-c")
}

// TestJobFlowProbesNothingThatFailed checks that a probe never succeeds for a Job that ended in another phase than Completed.
func TestJobFlowProbesNothingThatFailed(t *testing.T) {
	s := newStage(t, Options{}, template("a"), template("b"), flowOf(t, `
flows:
- name: a
- {name: b, dependsOn: {targets: [a], probe: {taskStatusList: [{taskName: main, phase: Failed}]}}}
`))
	s.settle()
	job := s.jobNamed("f-a")
	job.Status.TaskStatusCount = map[string]batchv1alpha1.TaskState{"main": {Phase: map[corev1.PodPhase]int32{"Failed": 1}}}
	job.Status.State.Phase = batchv1alpha1.Aborted
	if err := s.api.Status().Update(t.Context(), job); err != nil {
		t.Fatal(err)
	}
	s.settle()
	s.jobsAre("Pending", "f-a")
}

// TestJobFlowReaches checks that ports and paths are probed at the addresses of the target's pods. Redirects to other hosts are not
// followed, and a pod with host network is not probed.
func TestJobFlowReaches(t *testing.T) {
	elsewhere := false
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/ready":
			if r.Header.Get("X-A") != "b" {
				w.WriteHeader(http.StatusTeapot)
			}
		case "/away":
			http.Redirect(w, r, "/elsewhere", http.StatusFound)
		case "/elsewhere":
			elsewhere = true
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	defer server.Close()
	for _, c := range []struct {
		name, probe string
		host        bool
		replicas    int32
		address     string
		want        string // the reported text; "" if the Job is created
	}{
		{name: "path", probe: "httpGetList: [{taskName: main, path: /ready, port: 80, httpHeader: {name: X-A, value: b}}]"},
		{name: "port", probe: "tcpSocketList: [{taskName: main, port: 80}]"},
		{name: "redirect", probe: "httpGetList: [{taskName: main, path: /away, port: 80}]"},
		{name: "no such path", probe: "httpGetList: [{taskName: main, path: /no, port: 80}]", want: "/no gives status 404; 200 to 399 is wanted"},
		{name: "path of another host", probe: "httpGetList: [{taskName: main, path: '@other/x', port: 80}]", want: "gives status 404"},
		{name: "not all pods are there", probe: "tcpSocketList: [{taskName: main, port: 80}]", replicas: 2, want: "there are 1 of 2 pods"},
		{name: "node", probe: "tcpSocketList: [{taskName: main, port: 80}]", host: true, want: "is on the network of its node"},
		{name: "metadata", probe: "tcpSocketList: [{taskName: main, port: 80}]", address: "169.254.169.254", want: "none of a pod"},
		{name: "loopback", probe: "tcpSocketList: [{taskName: main, port: 80}]", address: "127.0.0.1", want: "none of a pod"},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := template("a")
			a.Spec.Tasks[0].Replicas = max(1, c.replicas)
			s := newStage(t, Options{}, a, template("b"),
				flowOf(t, "flows: [{name: a}, {name: b, dependsOn: {targets: [a], probe: {"+c.probe+"}}}]"))
			s.settle()
			var asked string
			shared := s.ofFlows()
			shared.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
				asked = address
				return (&net.Dialer{}).DialContext(ctx, network, server.Listener.Addr().String())
			}
			s.reconcilers["jobflow"] = flows.New(shared)
			pod := &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{
					Namespace: namespace, Name: "f-a-main-0", Labels: map[string]string{batchv1alpha1.TaskSpecKey: "main"},
					OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(s.jobNamed("f-a"), batchv1alpha1.GroupVersion.WithKind("Job"))},
				},
				Spec:   corev1.PodSpec{HostNetwork: c.host},
				Status: corev1.PodStatus{Phase: corev1.PodRunning, PodIP: "10.1.2.3"},
			}
			if c.address != "" {
				pod.Status.PodIP = c.address
			}
			s.add(pod)
			s.goes("Running", "f-a")
			for range 200 {
				time.Sleep(10 * time.Millisecond)
				s.settle()
				if len(s.names("job")) == 2 || s.told("ProbeFails") {
					break
				}
			}
			if c.want != "" {
				s.jobsAre("Running", "f-a")
				if !s.told(c.want) {
					t.Errorf("no event %q in %q", c.want, s.lines)
				}
				return
			}
			s.jobsAre("Running", "f-a f-b")
			if !strings.HasPrefix(asked, "10.1.2.3:") || elsewhere {
				t.Errorf("asked %s, followed %v", asked, elsewhere)
			}
		})
	}
}
