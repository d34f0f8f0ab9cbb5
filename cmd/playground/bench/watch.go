package bench

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
)

// step is a step in the life of a pod.
type step int

const (
	made step = iota
	bound
	running // or it ran and has ended
	gone
	steps // the number of steps
)

func (s step) String() string { return [steps]string{"made", "bound", "running", "gone"}[s] }

// podWatch watches the pods of a namespace.
type podWatch struct {
	pods     corev1client.PodInterface
	selector string // a field selector for the watched pods
	onNew    func(*corev1.Pod)
	stop     context.CancelFunc

	mu    sync.Mutex
	seen  [steps]map[string]time.Time // when each pod was first seen at each step
	last  [steps]time.Time            // the time of the newest of them
	waits []waitFor
	ended chan struct{} // closed when the watch ends
	err   error         // why it ended
}

// waitFor waits until a number of pods has reached a step.
type waitFor struct {
	step    step
	pods    int
	reached chan struct{}
}

// watch begins to watch. It sees a pod when it is bound.
func (b *bench) watch(ctx context.Context, namespace string) (*podWatch, error) {
	return b.watchPods(ctx, namespace, "spec.nodeName!=", func(*corev1.Pod) {})
}

// watchPods watches the pods of a selector; "" selects all. onNew is called for each pod that is not bound when it is first seen. Calls do
// not overlap.
func (b *bench) watchPods(ctx context.Context, namespace, selector string, onNew func(*corev1.Pod)) (*podWatch, error) {
	ctx, stop := context.WithCancel(ctx)
	w := newPodWatch()
	w.pods, w.selector, w.onNew, w.stop = b.kube.CoreV1().Pods(namespace), selector, onNew, stop
	watching, err := w.begin(ctx)
	if err != nil {
		stop()
		return nil, err
	}
	go func() {
		defer close(w.ended)
		for err == nil && ctx.Err() == nil {
			w.see(watching)
			// The API server closes watches, for example of slow clients. Then a list returns what was missed.
			watching, err = w.begin(ctx)
		}
		w.err = err
	}()
	return w, nil
}

func newPodWatch() *podWatch {
	w := &podWatch{onNew: func(*corev1.Pod) {}, ended: make(chan struct{})}
	for s := range w.seen {
		w.seen[s] = map[string]time.Time{}
	}
	return w
}

// begin lists the existing pods, and watches from there.
func (w *podWatch) begin(ctx context.Context) (watch.Interface, error) {
	options := metav1.ListOptions{FieldSelector: w.selector}
	list, err := w.pods.List(ctx, options)
	if err != nil {
		return nil, fmt.Errorf("watch pods: %w", err)
	}
	there := map[string]bool{}
	for i := range list.Items {
		there[list.Items[i].Name] = true
		w.add(&list.Items[i])
	}
	w.mu.Lock()
	for name := range w.seen[made] {
		if !there[name] {
			w.end(name)
		}
	}
	w.mu.Unlock()
	options.ResourceVersion = list.ResourceVersion
	watching, err := w.pods.Watch(ctx, options)
	if err != nil {
		return nil, fmt.Errorf("watch pods: %w", err)
	}
	return watching, nil
}

func (w *podWatch) see(watching watch.Interface) {
	defer watching.Stop()
	for event := range watching.ResultChan() {
		pod, ok := event.Object.(*corev1.Pod)
		if !ok || event.Type == watch.Bookmark || event.Type == watch.Error {
			continue
		}
		w.add(pod)
		if event.Type == watch.Deleted {
			w.mu.Lock()
			w.end(pod.Name)
			w.mu.Unlock()
		}
	}
}

// add records the step that a pod has reached.
func (w *podWatch) add(pod *corev1.Pod) {
	now := time.Now()
	w.mu.Lock()
	news := w.note(made, pod.Name, now)
	if pod.Spec.NodeName != "" {
		w.note(bound, pod.Name, now)
	}
	if phase := pod.Status.Phase; phase == corev1.PodRunning || phase == corev1.PodSucceeded || phase == corev1.PodFailed {
		w.note(running, pod.Name, now)
	}
	w.mu.Unlock()
	if news && pod.Spec.NodeName == "" {
		w.onNew(pod)
	}
}

// end records that a pod was deleted. Steps that were not seen were missed.
func (w *podWatch) end(name string) {
	now := time.Now()
	for _, s := range []step{bound, running, gone} {
		w.note(s, name, now)
	}
}

// note records a step, and reports whether it is new.
func (w *podWatch) note(s step, name string, now time.Time) bool {
	if _, known := w.seen[s][name]; known {
		return false
	}
	w.seen[s][name], w.last[s] = now, now
	for _, x := range w.waits {
		if x.step == s && len(w.seen[s]) == x.pods {
			close(x.reached)
		}
	}
	return true
}

// when returns the time at which each pod reached a step, and the last of these times.
func (w *podWatch) when(s step) (map[string]time.Time, time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return maps.Clone(w.seen[s]), w.last[s]
}

// await waits until a number of pods has reached a step. It returns immediately then, because the caller measures from that time.
func (w *podWatch) await(ctx context.Context, s step, pods int) error {
	x := waitFor{s, pods, make(chan struct{})}
	w.mu.Lock()
	if len(w.seen[s]) >= pods {
		close(x.reached)
	} else {
		w.waits = append(w.waits, x)
	}
	w.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, pollAtMost)
	defer cancel()
	select {
	case <-x.reached:
		return nil
	case <-w.ended:
		return errors.Join(w.missing(s, pods), w.err)
	case <-ctx.Done():
		return errors.Join(w.missing(s, pods), context.Cause(ctx))
	}
}

func (w *podWatch) missing(s step, pods int) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return fmt.Errorf("%d of %d pods are %s", len(w.seen[s]), pods, s)
}
