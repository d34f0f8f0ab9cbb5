package main

import (
	"fmt"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// BenchmarkStages runs 5,000 pods on 1,000 nodes from their binding to their end. KWOK starts each pod, makes it ready and ends it, at two
// times in its annotation.
func BenchmarkStages(b *testing.B) {
	const nodes, pods, workers = 1000, 5000, 16
	for b.Loop() {
		b.StopTimer()
		w := newWorld(b)
		names := w.Nodes(nodes, "cpu=32")
		next := make(chan int)
		b.StartTimer()
		var wg sync.WaitGroup
		for range workers {
			wg.Go(func() {
				for i := range next {
					pod := &corev1.Pod{
						ObjectMeta: metav1.ObjectMeta{
							Name:        fmt.Sprintf("pod-%d", i),
							Annotations: map[string]string{simAnnotation: "{readyAfter: 1s, run: 2s, exitCodes: {main: 0}}"},
						},
						Spec: corev1.PodSpec{NodeName: names[i%nodes], Containers: []corev1.Container{{Name: "main", Image: "main"}}},
					}
					if _, err := w.Kube.CoreV1().Pods(w.Namespace).Create(w.Context, pod, metav1.CreateOptions{}); err != nil {
						b.Error(err)
					}
				}
			})
		}
		for i := range pods {
			next <- i
		}
		close(next)
		wg.Wait()
		succeeded := metav1.ListOptions{FieldSelector: "status.phase=Succeeded", ResourceVersion: "0"}
		w.Wait("all pods have ended", func() error {
			list, err := w.Kube.CoreV1().Pods(w.Namespace).List(w.Context, succeeded)
			if err == nil && len(list.Items) < pods {
				err = fmt.Errorf("%d of %d", len(list.Items), pods)
			}
			return err
		})
	}
	b.ReportMetric(float64(pods*b.N)/b.Elapsed().Seconds(), "pods/s")
}
