package manifest

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metricsv1beta1 "k8s.io/metrics/pkg/apis/metrics/v1beta1"

	batchv1alpha1 "github.com/celsius-scheduler/celsius/crds/batch/v1alpha1"
	nodeinfov1alpha1 "github.com/celsius-scheduler/celsius/crds/nodeinfo/v1alpha1"
	schedulingv1beta1 "github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
	"github.com/celsius-scheduler/celsius/engine/extender"
)

// kind is one type of object in a world.
type kind struct {
	apiVersion string
	name       string
	namespaced bool
	empty      func() metav1.Object
}

// Kinds that are not objects of the cluster, and their versions.
const (
	worldKind    = "World"
	WorldVersion = "sim.celsius.dev/v1alpha1"

	PolicyKind    = "SchedulingPolicy"
	PolicyVersion = "scheduling.celsius.dev/v1alpha1"

	jobPluginKind    = "JobPlugin"
	jobPluginVersion = "rules.celsius.dev/v1alpha1"

	groupVersion = "scheduling.volcano.sh/v1beta1"
)

// kinds returns the types that the loader decodes, in the order in which messages list them.
func kinds() []kind {
	return append([]kind{
		{"v1", "Node", false, func() metav1.Object { return &corev1.Node{} }},
		{"v1", "Pod", true, func() metav1.Object { return &corev1.Pod{} }},
		{"v1", "Namespace", false, func() metav1.Object { return &corev1.Namespace{} }},
		{"v1", "ResourceQuota", true, func() metav1.Object { return &corev1.ResourceQuota{} }},
		{"v1", "LimitRange", true, func() metav1.Object { return &corev1.LimitRange{} }},
		{"policy/v1", "PodDisruptionBudget", true, func() metav1.Object { return &policyv1.PodDisruptionBudget{} }},
		{"metrics.k8s.io/v1beta1", "NodeMetrics", false, func() metav1.Object { return &metricsv1beta1.NodeMetrics{} }},
		{"nodeinfo.volcano.sh/v1alpha1", "Numatopology", false, func() metav1.Object { return &nodeinfov1alpha1.Numatopology{} }},
		{extender.Version, extender.Kind, false, func() metav1.Object { return &extender.Answer{} }},
		{"scheduling.k8s.io/v1", "PriorityClass", false, func() metav1.Object { return &schedulingv1.PriorityClass{} }},
		{groupVersion, "PodGroup", true, func() metav1.Object { return &schedulingv1beta1.PodGroup{} }},
		{groupVersion, "Queue", false, func() metav1.Object { return &schedulingv1beta1.Queue{} }},
		{"batch.volcano.sh/v1alpha1", "Job", true, func() metav1.Object { return &batchv1alpha1.Job{} }},
	}, storageKinds()...)
}

// findKind returns the type with this name. right reports whether the version matches, too.
func findKind(apiVersion, name string) (k kind, known, right bool) {
	all := kinds()
	i := slices.IndexFunc(all, func(k kind) bool { return k.name == name })
	if i < 0 {
		return kind{}, false, false
	}
	return all[i], true, all[i].apiVersion == apiVersion
}

// kindNames returns every kind that a file may contain, for messages.
func kindNames() []string {
	var out []string
	for _, k := range kinds() {
		out = append(out, k.name)
	}
	return append(out, PolicyKind, jobPluginKind, worldKind, "List")
}

// listed reports whether a kind is a list, and returns the kind of its items; "" for the mixed List of kubectl.
func listed(kindName string) (item string, ok bool) {
	item, ok = strings.CutSuffix(kindName, "List")
	return item, ok
}
