package engine_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/volume"
)

// limitShape describes how users fill the limits of the model: which pods share a PodGroup, and which pods their terms select.
type limitShape struct {
	name    string
	job     int // pods per PodGroup; 0: all pods are in one
	sets    int // different sets of terms in one PodGroup; 0: each pod has its own
	selects string
	labels  bool // the metadata is labels, not an annotation
}

// Values of limitShape.selects: the pods that the terms of a pod select.
const (
	selectOwn  = "own"  // the pod itself
	selectMost = "most" // all pods of the namespace except one
	selectFew  = "few"  // 1 of 50 pods of the namespace
	selectNone = "none" // no pod
)

func limitShapes() []limitShape {
	return []limitShape{
		{"jobs of 16, terms select the pod", 16, 0, selectOwn, false},
		{"one job, terms select most pods", 0, 16, selectMost, false},
		{"one job, terms select the pod's set", 0, 16, selectFew, true},
		{"jobs of 16, all terms that a namespace may have select most pods", 16, 32, selectMost, false},
		{"jobs of 1, terms select most pods", 1, 0, selectMost, false},
		{"jobs of 1, terms select few pods", 1, 0, selectFew, true},
		{"jobs of 1, terms select no pods", 1, 0, selectNone, true},
	}
}

// objects returns 1,000 nodes, and pods that each have as many terms, tolerations and bytes of metadata as a pod may have.
func (x limitShape) objects(pods int) []model.Delta {
	var out []model.Delta
	add := func(o any) { out = append(out, model.Delta{Object: o}) }
	add(&v1beta1.Queue{ObjectMeta: metav1.ObjectMeta{Name: "default"}, Spec: v1beta1.QueueSpec{Weight: 1}})
	for i := range 1000 {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("gpu-node-%04d", i)}}
		n.Labels = map[string]string{corev1.LabelHostname: n.Name, corev1.LabelTopologyZone: fmt.Sprint("zone-", i%5)}
		n.Status.Allocatable = corev1.ResourceList{
			"cpu": resource.MustParse("16"), "memory": resource.MustParse("64Gi"), "pods": resource.MustParse("110"),
		}
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
		add(n)
	}
	for i := range pods {
		job := x.job
		if job == 0 {
			job = pods
		}
		group := fmt.Sprint("training-", i/job)
		if i%job == 0 {
			add(&v1beta1.PodGroup{
				ObjectMeta: metav1.ObjectMeta{Name: group, Namespace: "team-a"}, Spec: v1beta1.PodGroupSpec{MinMember: 1, Queue: "default"},
				Status: v1beta1.PodGroupStatus{Phase: v1beta1.PodGroupInqueue},
			})
		}
		add(x.pod(i, fmt.Sprint(group, "-", i%job), group))
	}
	return out
}

func (x limitShape) pod(i int, name, group string) *corev1.Pod {
	limits := model.DefaultLimits()
	set := i
	if x.sets > 0 {
		set = i % x.sets
	}
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Name: name, Namespace: "team-a", UID: types.UID(fmt.Sprint(i)),
		Labels:      map[string]string{"pod": fmt.Sprint("p", i), "set": fmt.Sprint("s", set), "part": fmt.Sprint(i % 50)},
		Annotations: map[string]string{model.GroupAnnotation: group},
	}}
	if x.labels {
		for k := range (limits.Metadata - 300) / 110 {
			p.Labels[fmt.Sprintf("experiment-%048d", k)] = fmt.Sprintf("value-%04d-%039d", k, i)
		}
	} else {
		p.Annotations["example.com/notes"] = strings.Repeat("x", limits.Metadata-300)
	}
	p.Spec.SchedulerName = "celsius"
	p.Spec.Containers = []corev1.Container{{Name: "c", Image: "img", Resources: corev1.ResourceRequirements{
		Requests: corev1.ResourceList{"cpu": resource.MustParse("1"), "memory": resource.MustParse("1Gi")},
	}}}
	for k := range limits.Tolerations {
		p.Spec.Tolerations = append(p.Spec.Tolerations, corev1.Toleration{
			Key: fmt.Sprintf("pool-%d-%d", i, k), Operator: corev1.TolerationOpExists,
		})
	}
	x.terms(p, i, set, limits.PodTerms)
	return p
}

// terms adds terms of each kind to a pod. The scheduler can still place the pod.
func (x limitShape) terms(p *corev1.Pod, i, set, terms int) {
	affinity, anti := &corev1.PodAffinity{}, &corev1.PodAntiAffinity{}
	p.Spec.Affinity = &corev1.Affinity{PodAffinity: affinity, PodAntiAffinity: anti}
	keys := []string{corev1.LabelHostname, corev1.LabelTopologyZone}
	modes := []corev1.UnsatisfiableConstraintAction{corev1.DoNotSchedule, corev1.ScheduleAnyway}
	for k := range terms {
		about := metav1.LabelSelectorRequirement{Key: "pod", Operator: metav1.LabelSelectorOpIn, Values: []string{fmt.Sprint("p", i)}}
		switch x.selects {
		case selectMost:
			about.Operator, about.Values = metav1.LabelSelectorOpNotIn, []string{fmt.Sprint("p", set*7)}
		case selectFew:
			about.Key, about.Values = "part", []string{fmt.Sprint((set + k) % 50)}
		case selectNone:
			about.Values = []string{"none"}
		}
		selector := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			about, {Key: "without", Operator: metav1.LabelSelectorOpNotIn, Values: []string{fmt.Sprint("s", set, "-", k)}},
		}}
		term := corev1.PodAffinityTerm{TopologyKey: keys[k/2%2], LabelSelector: selector}
		switch k % 8 {
		case 3: // a term that selects placed pods would exclude other pods from most nodes
			if x.selects != selectOwn && x.selects != selectNone {
				none := *selector.DeepCopy()
				none.MatchExpressions[0] = metav1.LabelSelectorRequirement{Key: "pod", Operator: metav1.LabelSelectorOpIn, Values: []string{"none"}}
				term.LabelSelector = &none
			}
			anti.RequiredDuringSchedulingIgnoredDuringExecution = append(anti.RequiredDuringSchedulingIgnoredDuringExecution, term)
		case 5:
			anti.PreferredDuringSchedulingIgnoredDuringExecution = append(anti.PreferredDuringSchedulingIgnoredDuringExecution,
				corev1.WeightedPodAffinityTerm{Weight: 10, PodAffinityTerm: term})
		case 7:
			affinity.PreferredDuringSchedulingIgnoredDuringExecution = append(affinity.PreferredDuringSchedulingIgnoredDuringExecution,
				corev1.WeightedPodAffinityTerm{Weight: 5, PodAffinityTerm: term})
		default:
			p.Spec.TopologySpreadConstraints = append(p.Spec.TopologySpreadConstraints, corev1.TopologySpreadConstraint{
				MaxSkew: 1, TopologyKey: term.TopologyKey, WhenUnsatisfiable: modes[k%2], LabelSelector: selector,
			})
		}
	}
}

// atLimits contains the cost of pods at the limits: the memory after the first cycle, the peak memory, and the CPU time of the cycle.
type atLimits struct {
	memory, peak uint64
	cycle        time.Duration
	bound        int
	left         int // pods that were left out because of a limit
}

func (x limitShape) measure(tb testing.TB, pods int) (out atLimits) {
	tb.Helper()
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	runtime.GC()
	before, deltas := heap(), x.objects(pods)
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			case <-time.After(20 * time.Millisecond):
				out.peak = max(out.peak, heap()-before)
			}
		}
	}()
	c := model.NewCluster(model.Options{Volumes: volume.New})
	out.left = len(c.Apply(deltas...))
	w := &scene{now: benchStart()}
	w.begin(c, defaultPolicy(tb))
	began := cpu(tb)
	w.cycle()
	out.cycle = cpu(tb) - began
	close(stop)
	<-stopped
	out.bound = len(w.plan.Binds)
	runtime.GC()
	out.memory = heap() - before
	runtime.KeepAlive(w)
	return out
}

// BenchmarkLimits measures 1,000 and 2,000 pods at the limits, in each shape.
func BenchmarkLimits(b *testing.B) {
	for _, x := range limitShapes() {
		b.Run(x.name, func(b *testing.B) {
			for b.Loop() {
				less, more := x.measure(b, 1000), x.measure(b, 2000)
				b.ReportMetric(float64(less.bound), "bound")
				b.ReportMetric(float64(less.left), "left-out")
				b.ReportMetric(float64(less.memory>>20), "MiB")
				b.ReportMetric(float64(less.peak>>20), "peak-MiB")
				b.ReportMetric(less.cycle.Seconds(), "cpu-s")
				b.ReportMetric(float64(more.memory)/float64(less.memory), "memory-ratio")
				b.ReportMetric(more.cycle.Seconds()/less.cycle.Seconds(), "cpu-ratio")
			}
		})
	}
}

// TestPodsAtTheLimits checks that the cost of pods at the limits grows in proportion to their number. It repeats a measurement that another
// process disturbed.
func TestPodsAtTheLimits(t *testing.T) {
	const most = 2.2
	for attempt := 1; ; attempt++ {
		x := limitShapes()[0]
		a, b := x.measure(t, 500), x.measure(t, 1000)
		less, lessTime, memory, cycle := a.memory, a.cycle, b.memory, b.cycle
		t.Logf("500 pods: %d MiB, %s; 1000 pods: %d MiB, %s", less>>20, lessTime, memory>>20, cycle)
		if memory > 1<<30 {
			t.Fatalf("1000 pods at the limits take %d MiB", memory>>20)
		}
		space, time := float64(memory)/float64(less), float64(cycle)/float64(lessTime)
		if space <= most && time <= most && cycle.Seconds() <= 5 {
			return
		}
		if attempt == 3 {
			t.Fatalf("a cycle takes %s; twice as many pods take %.2f times the memory and %.2f times the time", cycle, space, time)
		}
	}
}

// TestManySmallJobsAtTheLimits makes many PodGroups of one pod, each within its limits, whose terms select most pods of the namespace.
// Without a limit for the namespace this shape took more than 4 GiB and 8 minutes. The pods above that limit are left out, each with a
// reason.
func TestManySmallJobsAtTheLimits(t *testing.T) {
	x := limitShape{job: 1, selects: selectMost}
	const pods = 1000
	got := x.measure(t, pods)
	t.Logf("%d pods are bound and %d left out; %d MiB, %s", got.bound, got.left, got.memory>>20, got.cycle)
	const wide = 64 * 7 / 8 // terms of a pod that do not name a label
	within := model.DefaultLimits().NamespaceTerms / wide
	if got.bound != within || got.left != pods-within {
		t.Errorf("%d pods are bound and %d left out; should be %d and the rest", got.bound, got.left, within)
	}
	if got.memory > 1<<30 {
		t.Errorf("%d pods take %d MiB", pods, got.memory>>20)
	}
}
