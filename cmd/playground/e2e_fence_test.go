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

// byPriority is a policy that places the most urgent pods first.
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

// TestAStoppedLeaderBindsNothingBesideTheNext stops a leader that still has to send hundreds of decisions at a low rate. Meanwhile more
// urgent pods arrive, and the next leader fills all nodes with them. When the first leader continues, none of its decisions may reach the
// API server, because no free resources are left.
func TestAStoppedLeaderBindsNothingBesideTheNext(t *testing.T) {
	w := newWorld(t)
	r := newRelay(w)
	r.come("patient", 45) // before the first leader, which decides at once on all 400 pods that fit
	stopped := r.replica(w.Policy, "--kube-api-qps", "15", "--kube-api-burst", "15")
	w.Wait("the first leader has bound some pods", func() error {
		if n := r.boundBy(w.Policy); n < 60 {
			return fmt.Errorf("%d", n)
		}
		return nil
	})
	next := r.replica(r.second)
	stopped.Signal(syscall.SIGSTOP)
	r.come("urgent", 40, func(p *corev1.Pod) { p.Spec.PriorityClassName = r.urgent })
	w.Wait("the nodes are full", func() error {
		if n := r.witness.Bindings(); n < 400 {
			return fmt.Errorf("%d pods are bound, %d of them by the next leader", n, r.boundBy(r.second))
		}
		return nil
	})
	first := r.boundBy(w.Policy)
	stopped.Signal(syscall.SIGCONT)
	<-stopped.Exited() // it finds that another replica holds the lease
	if !strings.Contains(stopped.Log(), "lost") {
		t.Error("it ended, and not because it lost the lease")
	}
	if n := r.boundBy(w.Policy); n != first || n > 300 {
		t.Errorf("the first leader had bound %d pods when it was stopped, and %d in the end; it should have had hundreds left to bind", first, n)
	}
	w.Nodes(5, "cpu=10,pods=1000") // capacity for the rest
	r.witness.AllBound(850)
	h := r.witness.Report()
	h.Check(w)
	r.checkTurns(h)
	t.Logf("%d pods by the first leader, %d by the next", first, r.boundBy(r.second))
	if code := next.Stop(); code != 0 {
		t.Errorf("the next leader ended with exit code %d", code)
	}
}

// relay is a world in which several leaders follow each other. Each serves its own policy, so that a pod shows which leader bound it.
type relay struct {
	*world
	witness        *witness
	urgent, second string // the names of a PriorityClass and of the policy of the second leader
}

// newRelay creates four nodes for 100 pods each.
func newRelay(w *world) *relay {
	w.t.Helper()
	r := &relay{world: w, witness: w.Witness(), urgent: w.Name + "-urgent", second: w.Policy + "-second"}
	w.Nodes(4, "cpu=10,pods=1000")
	w.Apply(queueA)
	classes := w.Kube.SchedulingV1().PriorityClasses()
	if _, err := classes.Create(w.Context, &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: r.urgent}, Value: 1000},
		metav1.CreateOptions{}); err != nil {
		w.t.Fatal(err)
	}
	w.forgetLater(func(ctx context.Context) error { return classes.Delete(ctx, r.urgent, metav1.DeleteOptions{}) })
	w.Apply(fmt.Sprintf(byPriority, w.Policy) + "---" + fmt.Sprintf(byPriority, r.second))
	w.forgetLater(func(ctx context.Context) error {
		return w.Client.Delete(ctx, &policyv1alpha1.SchedulingPolicy{ObjectMeta: metav1.ObjectMeta{Name: r.second}})
	})
	return r
}

// replica starts a scheduler that waits for its turn, or begins.
func (r *relay) replica(policy string, more ...string) *process {
	r.t.Helper()
	return r.Process("scheduler", append(more, "--policy", policy, "--scheduler-name", "${scheduler}", "--node-selector", r.NodeSelector,
		"--namespace", "${namespace}", "--lease-name", "${world}", "--metrics-address", "0", "--health-address", "0",
		"--leader-elect-lease-duration", "12s", "--leader-elect-renew-deadline", "8s", "--leader-elect-retry-period", "1s")...)
}

// come creates gangs of ten pods.
func (r *relay) come(name string, gangs int, change ...func(*corev1.Pod)) {
	r.t.Helper()
	for i := range gangs {
		if err := r.gang(fmt.Sprintf("%s-%d", name, i), 10, change...); err != nil {
			r.t.Fatal(err)
		}
	}
}

func (r *relay) boundBy(policy string) int {
	return r.witness.Count(func(p *corev1.Pod) bool {
		name, _ := stampOf(p)
		return p.Spec.NodeName != "" && name == policy
	})
}

// checkTurns checks that the first leader's last binding came before the next leader's first.
func (r *relay) checkTurns(h *history) {
	r.t.Helper()
	var last, begins uint64
	for _, l := range h.pods {
		switch by, _ := stampOf(l.pod); by {
		case r.Policy:
			last = max(last, l.boundIn)
		case r.second:
			if begins == 0 || l.boundIn < begins {
				begins = l.boundIn
			}
		default:
			r.t.Errorf("pod %s was bound by %q", l.pod.Name, by)
		}
	}
	if last >= begins {
		r.t.Errorf("the first leader bound a pod in version %d of the store; the next had begun in version %d", last, begins)
	}
}
