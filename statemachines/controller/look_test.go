package controller

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	batchv1alpha1 "github.com/celsius-scheduler/celsius/crds/batch/v1alpha1"
	schedulingv1beta1 "github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
	"github.com/celsius-scheduler/celsius/statemachines/objects"
)

// BenchmarkLook measures the reconcile of a job with running pods if nothing has changed. The cache is in memory.
func BenchmarkLook(b *testing.B) {
	for _, n := range []int{20, 1000, 10_000} {
		b.Run(fmt.Sprint("pods=", n), func(b *testing.B) {
			job := runningJob(n)
			pods := runningPods(b, job)
			r := jobsFrom(b, job, pods)
			look := func() {
				if _, err := r.Reconcile(b.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(job)}); err != nil {
					b.Fatal(err)
				}
			}
			look() // it writes the status
			if job.Status.Running != int32(n) {
				b.Fatalf("%d pods run", job.Status.Running)
			}
			for b.Loop() {
				look()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/pod")
		})
	}
}

func runningJob(pods int) *batchv1alpha1.Job {
	job := &batchv1alpha1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "train", UID: "train-uid"}}
	job.Spec.Queue, job.Spec.SchedulerName, job.Spec.MinAvailable = "default", "volcano", int32(pods)
	job.Spec.Tasks = []batchv1alpha1.TaskSpec{{Name: "worker", Replicas: int32(pods)}}
	job.Status.State.Phase = batchv1alpha1.Running
	return job
}

// runningPods returns all pods of a job, in no order.
func runningPods(b *testing.B, job *batchv1alpha1.Job) []corev1.Pod {
	b.Helper()
	pods := make([]corev1.Pod, job.Spec.Tasks[0].Replicas)
	for i := range pods {
		pod, err := objects.Pod(job, objects.PodPlan{Task: &job.Spec.Tasks[0], Index: i, SchedulerName: "volcano", Group: "train"})
		if err != nil {
			b.Fatal(err)
		}
		pod.UID, pod.Status.Phase = types.UID(fmt.Sprintf("00000000-0000-0000-0000-%012d", i)), corev1.PodRunning
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", Ready: true}}
		pods[i] = *pod
	}
	rand.New(rand.NewPCG(1, 1)).Shuffle(len(pods), func(i, j int) { pods[i], pods[j] = pods[j], pods[i] })
	return pods
}

// jobsFrom returns a controller that sees one job and its pods, and sees its own writes of the job's status immediately.
func jobsFrom(b *testing.B, job *batchv1alpha1.Job, pods []corev1.Pod) *jobs {
	b.Helper()
	group := objects.PodGroup(job, nil, func(string) int32 { return 0 })
	group.Status.Phase = schedulingv1beta1.PodGroupRunning
	queue := openQueue()
	c := interceptor.NewClient(fake.NewClientBuilder().WithScheme(builtIn().scheme).WithObjects(group, queue).Build(), interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, into client.Object, opts ...client.GetOption) error {
			if out, ok := into.(*batchv1alpha1.Job); ok {
				job.DeepCopyInto(out)
				return nil
			}
			return c.Get(ctx, key, into, opts...)
		},
		List: func(_ context.Context, _ client.WithWatch, list client.ObjectList, _ ...client.ListOption) error {
			if out, ok := list.(*corev1.PodList); ok {
				out.Items = append([]corev1.Pod{}, pods...)
			}
			return nil
		},
		SubResourcePatch: func(_ context.Context, _ client.Client, _ string, o client.Object, _ client.Patch,
			_ ...client.SubResourcePatchOption,
		) error {
			if is, ok := o.(*batchv1alpha1.Job); ok {
				is.DeepCopyInto(job)
			}
			return nil
		},
	})
	o, err := Options{StateMachines: builtIn().machines}.withDefaults()
	if err != nil {
		b.Fatal(err)
	}
	r, err := newJobs(&parts{
		client: c, live: c, leftOut: func(client.Object) error { return nil }, options: o, now: time.Now, recorder: events.NewFakeRecorder(100),
		memory: newMemory(), metrics: newMetrics(prometheus.NewRegistry()),
	})
	if err != nil {
		b.Fatal(err)
	}
	return r
}
