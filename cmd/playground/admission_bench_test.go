package main

import (
	"fmt"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "github.com/celsius-scheduler/celsius/crds/batch/v1alpha1"
)

// BenchmarkAdmission lets 32 clients create 500 Jobs that need the defaults of the webhooks. It uses a scheduler that the webhooks serve,
// and one whose Jobs the API server does not send to them. Nothing else runs; the webhooks are in the same process.
func BenchmarkAdmission(b *testing.B) {
	const jobs, clients = 500, 32
	w := newWorld(b)
	queue := w.queue("a", 1)
	round := 0
	for _, scheduler := range []struct{ name, is string }{{"none", "nobody"}, {"webhooks", w.SchedulerName}} {
		b.Run(scheduler.name, func(b *testing.B) {
			for b.Loop() {
				round++
				next := make(chan int, jobs)
				for i := range jobs {
					next <- i
				}
				close(next)
				var wg sync.WaitGroup
				for range clients {
					wg.Go(func() {
						for i := range next {
							job := plainJob(w.Namespace, fmt.Sprintf("job-%d-%d", round, i), scheduler.is, queue)
							if err := w.Client.Create(w.Context, job); err != nil {
								b.Error(err)
							}
						}
					})
				}
				wg.Wait()
				b.StopTimer()
				if err := w.Client.DeleteAllOf(w.Context, &batchv1alpha1.Job{}, client.InNamespace(w.Namespace)); err != nil {
					b.Error(err)
				}
				b.StartTimer()
			}
			b.ReportMetric(float64(jobs*b.N)/b.Elapsed().Seconds(), "jobs/s")
		})
	}
}

// plainJob returns a Job with only the required fields.
func plainJob(namespace, name, scheduler, queue string) *batchv1alpha1.Job {
	job := &batchv1alpha1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	job.Spec.SchedulerName, job.Spec.Queue = scheduler, queue
	task := batchv1alpha1.TaskSpec{Name: "main", Replicas: 20}
	task.Template.Spec.Containers = []corev1.Container{{
		Name: "main", Image: "main", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("1"), corev1.ResourceMemory: resource.MustParse("1Gi"),
		}},
	}}
	job.Spec.Tasks = []batchv1alpha1.TaskSpec{task}
	return job
}
