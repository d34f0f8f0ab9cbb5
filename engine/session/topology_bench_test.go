package session

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/celsius-scheduler/celsius/engine/model"
)

// inZones returns this many nodes in 20 zones, and waiting pods of one kind.
func inZones(b *testing.B, nodes, pods int, terms func(*corev1.Pod)) *model.Cluster {
	b.Helper()
	objects := []any{aQueue("q"), aGroup("g", "q")}
	for i := range nodes {
		objects = append(objects, aNode(fmt.Sprintf("n%04d", i), "cpu=16 memory=64Gi pods=110", func(n *corev1.Node) {
			n.Labels["zone"], n.Labels[corev1.LabelHostname] = fmt.Sprint("z", i%20), n.Name
		}))
	}
	for i := range pods {
		objects = append(objects, aPod(fmt.Sprint("p", i), "cpu=1 memory=1Gi", terms, func(p *corev1.Pod) { p.Labels["app"] = "x" }))
	}
	return aCluster(b, objects...)
}

// placeAll places every pod on the node that its class chooses, as a cycle does, and reports the cost per pod.
func placeAll(b *testing.B, terms func(*corev1.Pod)) {
	p := loaded(b, "apiVersion: scheduling.celsius.dev/v1alpha1\nkind: SchedulingPolicy\nmetadata: {name: tested}\nspec:\n  pipeline: "+
		"[allocate]\n  tiers:\n  - name: only\n    tables: [{name: predicates}, {name: nodeorder}]\n")
	const pods = 2000
	for _, nodes := range []int{1000, 5000} {
		b.Run(fmt.Sprintf("nodes=%d", nodes), func(b *testing.B) {
			c := inZones(b, nodes, pods, terms)
			tasks := c.TasksByKey()
			spent, placed := time.Duration(0), 0
			for b.Loop() {
				s := New(c, p)
				s.Begin(noon())
				x := c.Begin()
				began := time.Now()
				for _, t := range tasks {
					if ch, ok := s.Class(t).Choose(); ok {
						x.Allocate(t, ch.Row, nil)
						placed++
					}
				}
				spent += time.Since(began)
				x.Rollback(0)
			}
			if placed == 0 {
				b.Fatal("nothing was placed")
			}
			b.ReportMetric(float64(spent.Nanoseconds())/float64(placed), "ns/pod")
			b.ReportMetric(0, "ns/op")
		})
	}
}

func appX() *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{"app": "x"}}
}

// BenchmarkWithoutTerms is the baseline for the other benchmarks.
func BenchmarkWithoutTerms(b *testing.B) { placeAll(b, func(*corev1.Pod) {}) }

func BenchmarkAffinity(b *testing.B) {
	term := func(key string) []corev1.PodAffinityTerm {
		return []corev1.PodAffinityTerm{{TopologyKey: key, LabelSelector: appX()}}
	}
	b.Run("one a host", func(b *testing.B) {
		placeAll(b, func(p *corev1.Pod) {
			p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution: term(corev1.LabelHostname),
			}}
		})
	})
	b.Run("one zone", func(b *testing.B) {
		placeAll(b, func(p *corev1.Pod) {
			p.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: term("zone")}}
		})
	})
	b.Run("rather apart", func(b *testing.B) {
		placeAll(b, func(p *corev1.Pod) {
			p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
				PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{Weight: 10, PodAffinityTerm: term("zone")[0]}},
			}}
		})
	})
}

func BenchmarkSpread(b *testing.B) {
	spread := func(key string, mode corev1.UnsatisfiableConstraintAction) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
				MaxSkew: 1, TopologyKey: key, WhenUnsatisfiable: mode,
				LabelSelector: appX(),
			}}
		}
	}
	b.Run("zones", func(b *testing.B) { placeAll(b, spread("zone", corev1.DoNotSchedule)) })
	b.Run("hosts", func(b *testing.B) { placeAll(b, spread(corev1.LabelHostname, corev1.DoNotSchedule)) })
	b.Run("rather zones", func(b *testing.B) { placeAll(b, spread("zone", corev1.ScheduleAnyway)) })
	b.Run("rather hosts", func(b *testing.B) { placeAll(b, spread(corev1.LabelHostname, corev1.ScheduleAnyway)) })
}
