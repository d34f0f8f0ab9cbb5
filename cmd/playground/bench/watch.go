package bench

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	schedulingv1beta1 "github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
)

// bindWatch sees pods being bound.
type bindWatch struct {
	pods     corev1client.PodInterface
	selector string // of fields: which pods it sees
	onGroup  func(*corev1.Pod)
	stop     context.CancelFunc

	mu      sync.Mutex
	grouped map[string]time.Time // when each was seen to name its PodGroup
	bound   map[string]time.Time
	last    time.Time     // when the newest of them was seen
	ended   chan struct{} // closed when nothing more is seen
	err     error         // why
}

// watch begins to watch. A pod comes into sight when it is bound.
func (b *bench) watch(ctx context.Context, namespace string) (*bindWatch, error) {
	return b.watchPods(ctx, namespace, "spec.nodeName!=", func(*corev1.Pod) {})
}

// watchPods watches the pods of a selector, "" for all. onGroup is called, one call after another, for each that is not bound and
// names its PodGroup, once.
func (b *bench) watchPods(ctx context.Context, namespace, selector string, onGroup func(*corev1.Pod)) (*bindWatch, error) {
	ctx, stop := context.WithCancel(ctx)
	w := &bindWatch{
		pods: b.kube.CoreV1().Pods(namespace), selector: selector, onGroup: onGroup, stop: stop,
		grouped: map[string]time.Time{}, bound: map[string]time.Time{}, ended: make(chan struct{}),
	}
	watching, err := w.begin(ctx)
	if err != nil {
		stop()
		return nil, err
	}
	go func() {
		defer close(w.ended)
		for err == nil && ctx.Err() == nil {
			w.see(watching)
			// The API server closes watches, of those that are slow for one: then what was missed is listed.
			watching, err = w.begin(ctx)
		}
		w.err = err
	}()
	return w, nil
}

// begin takes in what is bound already, and watches from there.
func (w *bindWatch) begin(ctx context.Context) (watch.Interface, error) {
	options := metav1.ListOptions{FieldSelector: w.selector}
	list, err := w.pods.List(ctx, options)
	if err != nil {
		return nil, fmt.Errorf("watch pods: %w", err)
	}
	for i := range list.Items {
		w.add(&list.Items[i])
	}
	options.ResourceVersion = list.ResourceVersion
	watching, err := w.pods.Watch(ctx, options)
	if err != nil {
		return nil, fmt.Errorf("watch pods: %w", err)
	}
	return watching, nil
}

func (w *bindWatch) see(watching watch.Interface) {
	defer watching.Stop()
	for event := range watching.ResultChan() {
		if pod, ok := event.Object.(*corev1.Pod); ok && (event.Type == watch.Added || event.Type == watch.Modified) {
			w.add(pod)
		}
	}
}

// add notes that a pod names its PodGroup, or is bound, where that is news.
func (w *bindWatch) add(pod *corev1.Pod) {
	now := time.Now()
	w.mu.Lock()
	_, known := w.grouped[pod.Name]
	news := !known && pod.Annotations[schedulingv1beta1.KubeGroupNameAnnotationKey] != ""
	if news {
		w.grouped[pod.Name] = now
	}
	if _, known := w.bound[pod.Name]; !known && pod.Spec.NodeName != "" {
		w.last = now
		w.bound[pod.Name] = now
	}
	w.mu.Unlock()
	if news && pod.Spec.NodeName == "" {
		w.onGroup(pod)
	}
}

// await waits until so many pods are bound.
func (w *bindWatch) await(ctx context.Context, pods int) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case <-w.ended:
			cancel(w.err) // there is nothing to wait for
		case <-ctx.Done():
		}
	}()
	err := poll(ctx, "bindings", func() error {
		w.mu.Lock()
		defer w.mu.Unlock()
		if len(w.bound) >= pods {
			return nil
		}
		return fmt.Errorf("%d of %d pods are bound", len(w.bound), pods)
	})
	if err != nil {
		return errors.Join(err, context.Cause(ctx))
	}
	return nil
}
