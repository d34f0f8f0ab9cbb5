package bench

import (
	"context"
	"errors"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/celsius-scheduler/celsius/engine/live"
)

// bareWorkers is the number of parallel bindings of the bare loop and of the other floors. On two processors, 8 cost a fifth more per
// binding and 16 a tenth more; 64 and 128 cost the same.
const bareWorkers = 32

// bare binds a backlog in this process without reading anything. It is the first floor.
func (b *bench) bare(ctx context.Context, l *load) error {
	return eachOf(bareWorkers, len(l.pods), func(i int) error {
		return b.bind(ctx, l.namespace, l.pods[i], l.uids[l.pods[i]], i)
	})
}

// bind binds a pod to node number i modulo the number of nodes.
func (b *bench) bind(ctx context.Context, namespace, pod string, uid types.UID, i int) error {
	return b.kube.CoreV1().Pods(namespace).Bind(ctx, bindingOf(namespace, pod, uid, b.cluster.Nodes[i%len(b.cluster.Nodes)]), asScheduler())
}

// bindingOf returns a Binding in the form that the scheduler requests.
func bindingOf(namespace, pod string, uid types.UID, node string) *corev1.Binding {
	return &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: pod, UID: uid,
			Annotations: map[string]string{live.PolicyAnnotation: "default@0"},
		},
		Target: corev1.ObjectReference{Kind: "Node", Name: node},
	}
}

func asScheduler() metav1.CreateOptions { return metav1.CreateOptions{FieldManager: live.FieldManager} }

// bareBinding replaces the scheduler: it binds pods one by one when they arrive.
type bareBinding struct {
	bench *bench
	load  *load

	all  sync.WaitGroup
	next int

	mu   sync.Mutex
	errs []error
}

// start binds a pod in the background. Only one goroutine may call it.
func (x *bareBinding) start(ctx context.Context, p *corev1.Pod) {
	i := x.next
	x.next++
	x.all.Go(func() {
		if err := x.bench.bind(ctx, x.load.namespace, p.Name, p.UID, i); err != nil {
			x.mu.Lock()
			defer x.mu.Unlock()
			x.errs = append(x.errs, fmt.Errorf("bind: %w", err))
		}
	})
}

// wait returns when all bindings have ended.
func (x *bareBinding) wait() error {
	x.all.Wait()
	return errors.Join(x.errs...)
}
