package engine_test

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	batchv1alpha1 "github.com/celsius-scheduler/celsius/crds/batch/v1alpha1"
	"github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
	"github.com/celsius-scheduler/celsius/engine/model"
)

// drawRichWorld is a world in which some pods say who is to be near them, queues may be below others, Jobs may have pods that are
// not made yet, and pods may have volumes.
func drawRichWorld(t *rapid.T) *world {
	w := drawWorld(t)
	if rapid.Bool().Draw(t, "plain") {
		return w
	}
	var more []metav1.Object
	for _, o := range w.objects {
		if g, ok := o.(*v1beta1.PodGroup); ok && seldomer(t, "of a Job", 4) {
			more = append(more, ownedByAJob(t, g))
		}
		enrich(t, o)
	}
	w.objects = append(more, w.objects...)
	for _, deltas := range w.changes {
		for _, d := range deltas {
			if d.Op == model.Upsert {
				enrich(t, d.Object.(metav1.Object))
			}
		}
	}
	if rapid.Bool().Draw(t, "volumes") {
		withVolumes(t, w)
	}
	return w
}

// seldomer is true once in n times.
func seldomer(t *rapid.T, label string, n int) bool { return rapid.IntRange(1, n).Draw(t, label) == n }

// ownedByAJob makes a group that of a Job, which has pods that are still to be made.
func ownedByAJob(t *rapid.T, g *v1beta1.PodGroup) *batchv1alpha1.Job {
	j := &batchv1alpha1.Job{ObjectMeta: metav1.ObjectMeta{Name: "job-" + g.Name, Namespace: g.Namespace, UID: types.UID("uid-job-" + g.Name)}}
	for _, role := range []string{"worker", "ps"} {
		task := batchv1alpha1.TaskSpec{Name: role, Replicas: int32(rapid.IntRange(0, 4).Draw(t, role))}
		task.Template.Spec.Containers = []corev1.Container{
			{Name: "main", Resources: corev1.ResourceRequirements{Requests: list(one(t, "requests of "+role, "cpu=1 memory=1Gi", "cpu=2"))}},
		}
		j.Spec.Tasks = append(j.Spec.Tasks, task)
	}
	g.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: batchv1alpha1.GroupVersion.String(), Kind: "Job", Name: j.Name, UID: j.UID,
		Controller: new(true),
	}}
	return j
}

func enrich(t *rapid.T, o metav1.Object) {
	switch o := o.(type) {
	case *corev1.Node:
		o.Labels[corev1.LabelHostname] = o.Name
	case *v1beta1.Queue:
		o.Spec.Parent = one(t, "parent", "", "", "", "q1", "q3", "nowhere")
		if o.Spec.Parent == o.Name {
			o.Spec.Parent = "root"
		}
		o.Spec.Deserved = list(one(t, "deserved", "", "cpu=1", "cpu=3 memory=2Gi"))
		o.Spec.Priority = int32(rapid.IntRange(0, 1).Draw(t, "priority"))
	case *v1beta1.PodGroup:
		o.Labels = map[string]string{"zone": one(t, "zone", "east", "west")}
	case *corev1.Pod:
		o.Labels = map[string]string{"app": one(t, "app", "a", "a", "b")}
		if seldomer(t, "terms", 3) {
			o.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{}, PodAntiAffinity: &corev1.PodAntiAffinity{}}
			enrichTerms(t, o)
		}
	}
}

func enrichTerms(t *rapid.T, p *corev1.Pod) {
	term := func() corev1.PodAffinityTerm {
		who := &metav1.LabelSelector{MatchLabels: map[string]string{"app": one(t, "who", "a", "b")}}
		return corev1.PodAffinityTerm{TopologyKey: one(t, "topology", "zone", corev1.LabelHostname), LabelSelector: who}
	}
	near, apart := p.Spec.Affinity.PodAffinity, p.Spec.Affinity.PodAntiAffinity
	switch term := term(); rapid.IntRange(0, 5).Draw(t, "term") {
	case 0:
		near.RequiredDuringSchedulingIgnoredDuringExecution = []corev1.PodAffinityTerm{term}
	case 1:
		apart.RequiredDuringSchedulingIgnoredDuringExecution = []corev1.PodAffinityTerm{term}
	case 2:
		near.PreferredDuringSchedulingIgnoredDuringExecution = []corev1.WeightedPodAffinityTerm{{Weight: 5, PodAffinityTerm: term}}
	case 3:
		apart.PreferredDuringSchedulingIgnoredDuringExecution = []corev1.WeightedPodAffinityTerm{{Weight: 5, PodAffinityTerm: term}}
	default:
		p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
			MaxSkew: 1, TopologyKey: term.TopologyKey, LabelSelector: term.LabelSelector,
			WhenUnsatisfiable: one(t, "unsatisfiable", corev1.DoNotSchedule, corev1.ScheduleAnyway),
		}}
	}
}
