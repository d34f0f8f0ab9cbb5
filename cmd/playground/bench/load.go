package bench

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	schedulingv1beta1 "github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
)

// schedulerName is the scheduler name in pods, except the pods of peers.
const schedulerName = "celsius"

// loadWorkers is the number of parallel requests that create or remove a load.
const loadWorkers = 16

// loadShape states how pods are grouped.
type loadShape string

const (
	gangs   loadShape = "gangs"   // several pods for each PodGroup, which exists before them
	singles loadShape = "singles" // pods without a PodGroup: the scheduler creates one for each
	plain   loadShape = "plain"   // pods of another scheduler, without PodGroups
)

// load contains the pods of one run, in their own namespace.
type load struct {
	namespace string
	shape     loadShape
	scheduler string // the scheduler name in the pods
	pods      []string
	uids      map[string]types.UID
}

// newLoad creates a namespace without pods.
func (b *bench) newLoad(ctx context.Context, s loadShape, scheduler string) (*load, error) {
	b.runs++
	l := &load{namespace: fmt.Sprintf("bench-%d", b.runs), shape: s, scheduler: scheduler, uids: map[string]types.UID{}}
	_, err := b.kube.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: l.namespace}},
		metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("namespace %s: %w", l.namespace, err)
	}
	return l, poll(ctx, "service account of "+l.namespace, func() error {
		_, err := b.kube.CoreV1().ServiceAccounts(l.namespace).Get(ctx, "default", metav1.GetOptions{})
		return err
	})
}

// backlog creates pods, and waits until all exist.
func (b *bench) backlog(ctx context.Context, s loadShape, scheduler string) (*load, error) {
	l, err := b.newLoad(ctx, s, scheduler)
	if err != nil {
		return nil, err
	}
	if err := b.fill(ctx, l, b.pods); err != nil {
		return nil, err
	}
	return l, b.awaitPods(ctx, l)
}

// fill creates the given number of pods.
func (b *bench) fill(ctx context.Context, l *load, pods int) error {
	group := func(i int) string { return fmt.Sprintf("gang-%d", i/b.gang) }
	if l.shape == gangs {
		err := each((pods+b.gang-1)/b.gang, func(i int) error {
			gang := gangOf(l.namespace, group(i*b.gang), min(b.gang, pods-i*b.gang))
			return insist(ctx, apierrors.IsAlreadyExists, func() error { return b.groups.Create(ctx, gang.DeepCopy()) })
		})
		if err != nil {
			return fmt.Errorf("PodGroups: %w", err)
		}
	}
	err := each(pods, func(i int) error {
		pod := benchPod(fmt.Sprintf("pod-%d", i), l.scheduler)
		if l.shape == gangs {
			pod.Annotations = map[string]string{schedulingv1beta1.KubeGroupNameAnnotationKey: group(i)}
		}
		return insist(ctx, apierrors.IsAlreadyExists, func() error {
			_, err := b.kube.CoreV1().Pods(l.namespace).Create(ctx, pod, metav1.CreateOptions{})
			return err
		})
	})
	if err != nil {
		return fmt.Errorf("pods: %w", err)
	}
	return nil
}

// awaitPods waits until every pod exists.
func (b *bench) awaitPods(ctx context.Context, l *load) error {
	return poll(ctx, "the pods", func() error {
		list, err := b.kube.CoreV1().Pods(l.namespace).List(ctx, metav1.ListOptions{ResourceVersion: "0"})
		if err != nil {
			return err
		}
		l.pods = l.pods[:0]
		for i := range list.Items {
			pod := &list.Items[i]
			l.pods = append(l.pods, pod.Name)
			l.uids[pod.Name] = pod.UID
		}
		if len(l.pods) < b.pods {
			return fmt.Errorf("%d of %d pods are there", len(l.pods), b.pods)
		}
		return nil
	})
}

// benchPod returns a pod as it is used in all measurements.
func benchPod(name, scheduler string) *corev1.Pod {
	requests := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("128Mi")}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PodSpec{
			SchedulerName: scheduler,
			Containers:    []corev1.Container{{Name: "main", Image: "main", Resources: corev1.ResourceRequirements{Requests: requests}}},
		},
	}
}

// gangOf returns the PodGroup for the given number of pods.
func gangOf(namespace, name string, pods int) *schedulingv1beta1.PodGroup {
	return &schedulingv1beta1.PodGroup{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: schedulingv1beta1.PodGroupSpec{
			MinMember: int32(pods),
			MinResources: &corev1.ResourceList{
				corev1.ResourceCPU:    *resource.NewMilliQuantity(int64(pods)*100, resource.DecimalSI),
				corev1.ResourceMemory: *resource.NewQuantity(int64(pods)*128<<20, resource.BinarySI),
			},
		},
		Status: schedulingv1beta1.PodGroupStatus{Phase: schedulingv1beta1.PodGroupPending},
	}
}

// clear removes a load with everything that resulted from it, so that the next run starts in the same state.
func (b *bench) clear(ctx context.Context, l *load) error {
	at0 := metav1.DeleteOptions{GracePeriodSeconds: new(int64)}
	err := each(len(l.pods), func(i int) error {
		return insist(ctx, apierrors.IsNotFound, func() error { return b.kube.CoreV1().Pods(l.namespace).Delete(ctx, l.pods[i], at0) })
	})
	if err != nil {
		return fmt.Errorf("delete pods: %w", err)
	}
	err = insist(ctx, apierrors.IsNotFound, func() error {
		return b.kube.CoreV1().Namespaces().Delete(ctx, l.namespace, metav1.DeleteOptions{})
	})
	if err != nil {
		return fmt.Errorf("delete namespace %s: %w", l.namespace, err)
	}
	return poll(ctx, "end of namespace "+l.namespace, func() error {
		_, err := b.kube.CoreV1().Namespaces().Get(ctx, l.namespace, metav1.GetOptions{})
		switch {
		case err == nil:
			return errors.New("it is still there")
		case apierrors.IsNotFound(err):
			return nil
		}
		return err
	})
}

// each calls do for 0 to n-1, several at a time, and returns the first error of each worker.
func each(n int, do func(int) error) error {
	return eachOf(loadWorkers, n, do)
}

func eachOf(workers, n int, do func(int) error) error {
	next := make(chan int)
	errs := make([]error, workers)
	var all sync.WaitGroup
	for w := range workers {
		all.Go(func() {
			for i := range next {
				if errs[w] == nil {
					errs[w] = do(i)
				}
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	all.Wait()
	return errors.Join(errs...)
}

// insist sends a request up to five times, because on a machine with other users the API server sometimes answers late. If done returns
// true for an error, nothing is left to do.
func insist(ctx context.Context, done func(error) bool, request func() error) error {
	var err error
	for range 5 {
		if err = request(); err == nil || done(err) || ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return err
}

// pollAtMost is the maximum time of each wait of a run.
const pollAtMost = 30 * time.Minute

// poll calls ask until it returns no error.
func poll(ctx context.Context, what string, ask func() error) error {
	ctx, cancel := context.WithTimeout(ctx, pollAtMost)
	defer cancel()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		err := ask()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", what, err)
		case <-tick.C:
		}
	}
}
