package bench

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/celsius-scheduler/celsius/engine/live"
)

const (
	// settle is the idle time before the measurement. By then a cycle has found that there is nothing to do.
	settle = 20 * time.Second
	// idleSeconds is the maximum CPU time in seconds per minute for all parts together.
	idleSeconds = 0.05
)

// idleBench is an idle cluster.
type idleBench struct{ *bench }

// measure measures what the parts use while pods run and nothing changes.
func (b idleBench) measure(ctx context.Context) error {
	if err := b.makeLeaseNamespace(ctx); err != nil {
		return err
	}
	scheduler, controllers, err := b.startBoth(ctx)
	if err != nil {
		return err
	}
	defer scheduler.stop()
	defer controllers.stop()
	l, err := b.newLoad(ctx, gangs, schedulerName)
	if err != nil {
		return err
	}
	w, err := b.watchPods(ctx, l.namespace, "", func(*corev1.Pod) {})
	if err != nil {
		return err
	}
	defer w.stop()
	if err := b.fill(ctx, l, b.pods); err != nil {
		return err
	}
	if err := w.await(ctx, running, b.pods); err != nil {
		return err
	}
	if _, err := b.drained(ctx); err != nil {
		return err
	}
	b.cluster.EndKubelets()
	b.say("%d pods run on %d nodes, in gangs of %d; nothing happens for %s, and then for %s", b.pods, b.nodes, b.gang, settle, b.idle)
	if err := pause(ctx, settle); err != nil {
		return err
	}
	return b.measureParts(ctx, scheduler, controllers)
}

// makeLeaseNamespace creates the namespace of the parts' Leases.
func (b idleBench) makeLeaseNamespace(ctx context.Context) error {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: live.DefaultNamespace}}
	_, err := b.kube.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("namespace %s: %w", namespace.Name, err)
	}
	return nil
}

// measureParts measures from now on.
func (b idleBench) measureParts(ctx context.Context, parts ...*program) error {
	before := make([]requests, len(parts))
	for i, p := range parts {
		var err error
		if before[i], err = p.requests(ctx); err != nil {
			return err
		}
	}
	for _, p := range parts {
		b.profilePart(ctx, p, "idle", b.idle)
	}
	began, err := take(parts...)
	if err != nil {
		return err
	}
	if err := pause(ctx, b.idle); err != nil {
		return err
	}
	end, err := take(parts...)
	if err != nil {
		return err
	}
	took, used, served := end.since(began)
	var t table
	t.add("a minute of nothing", "CPU s", "calls", "of them leases")
	all, calls := 0.0, 0.0
	lists := map[string]requests{}
	for i, p := range parts {
		now, err := p.requests(ctx)
		if err != nil {
			return err
		}
		made, leases := withoutLeases(now.since(before[i]))
		lists[p.name] = made
		cpu := used.of[i].Minutes() / took.Minutes() * 60
		t.add(p.name, fmt.Sprintf("%.3f", cpu), fmt.Sprintf("%.1f", (made.sum()+leases)/took.Minutes()),
			fmt.Sprintf("%.1f", leases/took.Minutes()))
		all, calls = all+cpu, calls+made.sum()
	}
	t.add("the rest: API server, etcd, Kubernetes' controllers", fmt.Sprintf("%.3f", used.rest.Minutes()/took.Minutes()*60),
		fmt.Sprintf("%.1f", (served.sum()-calls)/took.Minutes()), "not counted")
	b.say("\n%s", t)
	for _, p := range parts {
		b.list("calls of the "+p.name+" in all, without leases and watches: ", lists[p.name].all())
	}
	b.list("the API server answered in all: ", served.all())
	verdicts, missed := tableOfTargets([]target{
		{what: "calls a minute of both parts, without leases and watches", ours: calls / took.Minutes(), most: true},
		{what: "CPU s a minute of both parts", ours: all, wanted: idleSeconds, most: true},
	})
	b.say("\n%s", verdicts)
	b.say("idle: %.3f s of CPU and %.1f calls a minute without leases, %d of 2 targets missed", all, calls/took.Minutes(), missed)
	if b.atMost >= 0 && calls > b.atMost {
		return fmt.Errorf("%.0f calls while nothing happened are more than %.4g", calls, b.atMost)
	}
	return nil
}

// withoutLeases separates requests for Leases from the others.
func withoutLeases(r requests) (others requests, leases float64) {
	others = requests{}
	for kind, n := range r {
		if resourceOf(kind) == "leases" {
			leases += n
		} else {
			others[kind] = n
		}
	}
	return others, leases
}

// pause waits.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("while nothing happened: %w", context.Cause(ctx))
	}
}
