package bench

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "github.com/celsius-scheduler/celsius/crds/batch/v1alpha1"
)

// benchJob returns a Job with one task, with the defaults of admission. Its pods run for the given time, and it is deleted after its end.
func benchJob(pods int, run time.Duration, plugins []string) *batchv1alpha1.Job {
	pod := benchPod("", schedulerName)
	job := &batchv1alpha1.Job{Spec: batchv1alpha1.JobSpec{
		SchedulerName: schedulerName, Queue: "default", MinAvailable: int32(pods), MaxRetry: 3, Plugins: map[string][]string{},
		Tasks: []batchv1alpha1.TaskSpec{{
			Name: "main", Replicas: int32(pods), MaxRetry: 3, Template: corev1.PodTemplateSpec{Spec: pod.Spec},
		}},
	}}
	job.Spec.Tasks[0].Template.Spec.RestartPolicy = corev1.RestartPolicyNever
	job.Spec.TTLSecondsAfterFinished = new(int32)
	job.Spec.Tasks[0].Template.Annotations = map[string]string{"celsius.dev/sim": fmt.Sprintf("{run: %s}", run)}
	for _, name := range plugins {
		job.Spec.Plugins[name] = []string{}
	}
	return job
}

// submit creates the given number of Jobs, several at a time.
func (b *bench) submit(ctx context.Context, namespace string, jobs int, like *batchv1alpha1.Job) error {
	err := each(jobs, func(i int) error {
		job := like.DeepCopy()
		job.ObjectMeta = metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("job-%d", i)}
		return insist(ctx, apierrors.IsAlreadyExists, func() error { return b.groups.Create(ctx, job.DeepCopy()) })
	})
	if err != nil {
		return fmt.Errorf("jobs: %w", err)
	}
	return nil
}

// goneWatch detects deleted Jobs.
type goneWatch struct {
	stop context.CancelFunc

	mu   sync.Mutex
	gone int
	last time.Time
	err  error
}

// watchJobs begins to watch a namespace that contains no Job yet.
func (b *bench) watchJobs(ctx context.Context, namespace string) (*goneWatch, error) {
	ctx, stop := context.WithCancel(ctx)
	w := &goneWatch{stop: stop}
	watching, err := b.groups.Watch(ctx, &batchv1alpha1.JobList{}, client.InNamespace(namespace))
	if err != nil {
		stop()
		return nil, fmt.Errorf("watch jobs: %w", err)
	}
	go func() {
		defer watching.Stop()
		for event := range watching.ResultChan() {
			w.see(event)
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		w.err = errors.New("the API server ended the watch of jobs")
	}()
	return w, nil
}

func (w *goneWatch) see(event watch.Event) {
	if event.Type != watch.Deleted {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.gone++
	w.last = time.Now()
}

// await waits until the given number of Jobs is deleted.
func (w *goneWatch) await(ctx context.Context, jobs int) error {
	return poll(ctx, "the end of jobs", func() error {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.gone >= jobs {
			return nil
		}
		return errors.Join(fmt.Errorf("%d of %d have gone", w.gone, jobs), w.err)
	})
}
