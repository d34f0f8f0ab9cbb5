package main

import (
	"context"
	"fmt"
	"strings"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/celsius-scheduler/celsius/crds/policy/v1alpha1"
)

// byPriority places what is most urgent first.
const byPriority = `
apiVersion: scheduling.celsius.dev/v1alpha1
kind: SchedulingPolicy
metadata: {name: "%s"}
spec:
  mode: Active
  pipeline: [enqueue, allocate, backfill]
  tiers:
  - name: first
    tables: [{name: priority}, {name: gang}, {name: predicates}]
`

// TestAStoppedLeaderBindsNothingBesideTheNext stops a leader that has hundreds of decisions left to send, few a second. Meanwhile more urgent pods
// come, and the next leader fills the nodes with them. When the first goes on, nothing of what it had decided may reach the API server.
func TestAStoppedLeaderBindsNothingBesideTheNext(t *testing.T) { //nolint:gocyclo // one case after the other
	w := newWorld(t)
	witness := w.Witness()
	w.Nodes(4, "cpu=10,pods=1000") // room for 400 pods
	w.Apply(queueA)
	urgent := w.Name + "-urgent"
	classes := w.Kube.SchedulingV1().PriorityClasses()
	if _, err := classes.Create(w.Context, &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: urgent}, Value: 1000}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	w.forgetLater(func(ctx context.Context) error { return classes.Delete(ctx, urgent, metav1.DeleteOptions{}) })
	second := w.Policy + "-second"
	w.Apply(fmt.Sprintf(byPriority, w.Policy) + "---" + fmt.Sprintf(byPriority, second))
	w.forgetLater(func(ctx context.Context) error {
		return w.Client.Delete(ctx, &policyv1alpha1.SchedulingPolicy{ObjectMeta: metav1.ObjectMeta{Name: second}})
	})
	// Each serves a policy of its own, so that a pod says who bound it.
	replica := func(policy string, more ...string) *process {
		return w.Process("scheduler", append(more, "--policy", policy, "--scheduler-name", "${scheduler}", "--node-selector", w.NodeSelector,
			"--namespace", "${namespace}", "--lease-name", "${world}", "--metrics-address", "0", "--health-address", "0",
			"--leader-elect-lease-duration", "12s", "--leader-elect-renew-deadline", "8s", "--leader-elect-retry-period", "1s")...)
	}
	boundBy := func(policy string) int {
		return witness.Count(func(p *corev1.Pod) bool {
			name, _ := stampOf(p)
			return p.Spec.NodeName != "" && name == policy
		})
	}
	come := func(name string, gangs int, change ...func(*corev1.Pod)) {
		t.Helper()
		for i := range gangs {
			if err := w.gang(fmt.Sprintf("%s-%d", name, i), 10, change...); err != nil {
				t.Fatal(err)
			}
		}
	}

	come("patient", 45) // before the first leader, which decides on all that there is room for at once
	stopped := replica(w.Policy, "--kube-api-qps", "15", "--kube-api-burst", "15")
	w.Wait("the first leader has bound some pods", func() error {
		if n := boundBy(w.Policy); n < 60 {
			return fmt.Errorf("%d", n)
		}
		return nil
	})
	next := replica(second)
	stopped.Signal(syscall.SIGSTOP)
	come("urgent", 15, func(p *corev1.Pod) { p.Spec.PriorityClassName = urgent })
	w.Wait("the nodes are full", func() error {
		if n := witness.Bindings(); n < 400 {
			return fmt.Errorf("%d pods are bound, %d of them by the next leader", n, boundBy(second))
		}
		return nil
	})
	first := boundBy(w.Policy)
	stopped.Signal(syscall.SIGCONT)
	<-stopped.Exited() // it finds that the lease is another's
	if !strings.Contains(stopped.Log(), "lost") {
		t.Error("it ended, and not because it lost the lease")
	}

	w.Nodes(2, "cpu=10,pods=1000") // room for the rest
	witness.AllBound(600)
	h := witness.Report()
	h.Check(w)
	var last, begins uint64
	for _, l := range h.pods {
		switch by, _ := stampOf(l.pod); by {
		case w.Policy:
			last = max(last, l.boundIn)
		case second:
			if begins == 0 || l.boundIn < begins {
				begins = l.boundIn
			}
		default:
			t.Errorf("pod %s was bound by %q", l.pod.Name, by)
		}
	}
	if last >= begins {
		t.Errorf("the first leader bound a pod in version %d of the store; the next had begun in version %d", last, begins)
	}
	if n := boundBy(w.Policy); n != first || n > 300 {
		t.Errorf("the first leader had bound %d pods when it was stopped, and %d in the end; it should have had hundreds left to bind", first, n)
	}
	t.Logf("%d pods by the first leader, %d by the next", first, boundBy(second))
	if code := next.Stop(); code != 0 {
		t.Errorf("the next leader ended with exit code %d", code)
	}
}
