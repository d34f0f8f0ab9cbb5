package engine_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	batchv1alpha1 "github.com/celsius-scheduler/celsius/crds/batch/v1alpha1"
	"github.com/celsius-scheduler/celsius/engine/whatif"
)

// BenchmarkWhatIf measures one question to the scheduler between two cycles. It asks about a gang of 20 that would start, a gang that would
// wait, a running job that would be gone, and new nodes. Ten pods run on each node, and 500 gangs of 20 wait. p99-ms is wall clock time.
func BenchmarkWhatIf(b *testing.B) {
	for _, nodes := range []int{1000, 5000, 10000} {
		w := steady{nodes, 500, 20}
		x := newScene(b, defaultPolicy(b), w.objects())
		x.cycle()
		x.cycle()
		for _, about := range []struct {
			name   string
			change func(i int) *whatif.Change
		}{
			{"starts", func(i int) *whatif.Change { return &whatif.Change{Add: []metav1.Object{askedJob(i, "1")}} }},
			{"waits", func(i int) *whatif.Change { return &whatif.Change{Add: []metav1.Object{askedJob(i, "25")}} }},
			{"delete", func(i int) *whatif.Change { return &whatif.Change{Delete: []string{x.runningJob(i)}} }},
			{"nodes", func(int) *whatif.Change {
				return &whatif.Change{Copies: []whatif.Copies{{Count: 4, Like: x.anyNode()}}}
			}},
		} {
			b.Run(fmt.Sprintf("nodes=%d/%s", nodes, about.name), func(b *testing.B) {
				b.ReportAllocs()
				var asker whatif.Asker
				asked := whatif.Asked{Session: x.d.Session(), Now: x.now}
				var took []time.Duration
				ask := func(i int) {
					if _, err := asker.Ask(asked, about.change(i)); err != nil {
						b.Fatal(err)
					}
				}
				ask(0) // the first question learns the state of the cluster
				for i := 0; b.Loop(); i++ {
					began := time.Now()
					ask(i)
					took = append(took, time.Since(began))
				}
				slices.Sort(took)
				b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
			})
		}
	}
}

// runningJob returns the key of a job whose pods run.
func (x *scene) runningJob(i int) string {
	jobs := x.d.Session().Cluster().JobsByKey()
	for ; ; i++ {
		if j := jobs[i%len(jobs)]; !j.Allocated.IsEmpty() {
			return j.Key
		}
	}
}

// askedJob makes a Job of 20 pods.
func askedJob(i int, cpu string) *batchv1alpha1.Job {
	amounts := corev1.ResourceList{"cpu": resource.MustParse(cpu), "memory": resource.MustParse("1Gi")}
	template := corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{
		Name: "c", Image: "example.org/asked", Resources: corev1.ResourceRequirements{Requests: amounts},
	}}}}
	return &batchv1alpha1.Job{
		ObjectMeta: metav1.ObjectMeta{Namespace: "asked", Name: fmt.Sprintf("asked-%d", i)},
		Spec:       batchv1alpha1.JobSpec{MinAvailable: 20, Tasks: []batchv1alpha1.TaskSpec{{Name: "w", Replicas: 20, Template: template}}},
	}
}
