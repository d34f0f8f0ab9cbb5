package oracle_test

import (
	"fmt"
	"math/rand/v2"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/celsius-scheduler/celsius/engine/model"
)

// maker creates random objects. Each world stresses some rules, so that their verdicts are sometimes yes and sometimes no. The other rules
// mostly pass.
type maker struct {
	*rand.Rand
	stressed map[string]bool
	nodes    int
	pods     int
}

func pick[T any](m *maker, values ...T) T { return values[m.IntN(len(values))] }

// chance is true with a probability of 1/oneIn.
func (m *maker) chance(oneIn int) bool { return m.IntN(oneIn) == 0 }

func (m *maker) namespaces() []*corev1.Namespace {
	var out []*corev1.Namespace
	for _, name := range []string{"a", "b", "c"} {
		n := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelMetadataName: name}}}
		if team := pick(m, "", "red", "blue"); team != "" {
			n.Labels["team"] = team
		}
		out = append(out, n)
	}
	return out
}

func amounts(cpu, memory int) corev1.ResourceList {
	return corev1.ResourceList{
		corev1.ResourceCPU:    *resource.NewMilliQuantity(int64(cpu), resource.DecimalSI),
		corev1.ResourceMemory: *resource.NewQuantity(int64(memory)<<20, resource.BinarySI),
	}
}

func (m *maker) node(i int) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("n%02d", i), Labels: map[string]string{}}}
	n.Status.Allocatable = amounts(pick(m, 4000, 8000), pick(m, 8000, 16000))
	n.Status.Allocatable[corev1.ResourcePods] = *resource.NewQuantity(int64(pick(m, 110, 110, 6)), resource.DecimalSI)
	n.Status.Capacity = n.Status.Allocatable
	if !m.chance(12) {
		n.Labels["zone"] = pick(m, "z1", "z2", "z3", "z4")
	}
	if !m.chance(12) {
		n.Labels[corev1.LabelHostname] = n.Name
	}
	n.Labels["rack"] = fmt.Sprint("r", i/3)
	n.Labels["disk"] = pick(m, "ssd", "hdd")
	n.Labels["size"] = fmt.Sprint(m.IntN(4))
	oneIn := 8
	if m.stressed["taints"] {
		oneIn = 3
	}
	for _, key := range []string{"k1", "k2", "k3", "k4"} {
		if m.chance(oneIn) {
			n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{
				Key: key, Value: pick(m, "v", "w"),
				Effect: pick(m, corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute, corev1.TaintEffectPreferNoSchedule,
					corev1.TaintEffectPreferNoSchedule),
			})
		}
	}
	n.Spec.Unschedulable = m.stressed["cordoned"] && !m.chance(3)
	for _, image := range []string{"app:v1", "base:latest", "tool:latest", "side:v2"} {
		if m.chance(3) {
			// An image has the same size everywhere, because its name identifies its content.
			size := map[string]int64{"app:v1": 900 << 20, "base:latest": 120 << 20, "tool:latest": 4 << 30, "side:v2": 10 << 20}[image]
			n.Status.Images = append(n.Status.Images, corev1.ContainerImage{Names: []string{image}, SizeBytes: size})
		}
	}
	return n
}

func (m *maker) selector() *metav1.LabelSelector {
	in := func(op metav1.LabelSelectorOperator, key string, values ...string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: key, Operator: op, Values: values}}}
	}
	switch m.IntN(12) {
	case 0:
		return &metav1.LabelSelector{}
	case 1:
		return nil
	case 2:
		return in(metav1.LabelSelectorOpIn, "app", "x", "y")
	case 3:
		return in(metav1.LabelSelectorOpNotIn, "app", "x", "z")
	case 4:
		return in(metav1.LabelSelectorOpExists, "tier")
	case 5:
		return in(metav1.LabelSelectorOpDoesNotExist, "tier")
	}
	return &metav1.LabelSelector{MatchLabels: map[string]string{"app": pick(m, "x", "y", "z")}}
}

func (m *maker) term() corev1.PodAffinityTerm {
	t := corev1.PodAffinityTerm{TopologyKey: pick(m, "zone", "zone", corev1.LabelHostname, "rack", "none"), LabelSelector: m.selector()}
	if t.TopologyKey == "none" && !m.chance(4) {
		t.TopologyKey = "zone"
	}
	if m.chance(6) {
		t.Namespaces = pick(m, []string{"a"}, []string{"b", "c"})
	}
	// No selector here matches a namespace without labels. v1.36 of the plugin loses the namespaces that it resolved for the terms of the
	// incoming pod, and applies such a term to all namespaces.
	if m.chance(6) {
		t.NamespaceSelector = pick(m, &metav1.LabelSelector{}, &metav1.LabelSelector{MatchLabels: map[string]string{"team": "red"}},
			&metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{
				Key: "team", Operator: metav1.LabelSelectorOpIn,
				Values: []string{"red", "blue"},
			}}})
	}
	if m.chance(6) {
		t.MatchLabelKeys = []string{pick(m, "release", "none")}
	}
	if m.chance(6) && t.MatchLabelKeys == nil {
		t.MismatchLabelKeys = []string{"release"}
	}
	return t
}

func (m *maker) terms(most int) []corev1.PodAffinityTerm {
	var out []corev1.PodAffinityTerm
	for range m.IntN(most + 1) {
		out = append(out, m.term())
	}
	return out
}

func (m *maker) weighted() []corev1.WeightedPodAffinityTerm {
	var out []corev1.WeightedPodAffinityTerm
	for _, t := range m.terms(2) {
		out = append(out, corev1.WeightedPodAffinityTerm{Weight: int32(1 + m.IntN(100)), PodAffinityTerm: t})
	}
	return out
}

func (m *maker) constraint() corev1.TopologySpreadConstraint {
	t := corev1.TopologySpreadConstraint{
		MaxSkew: int32(pick(m, 1, 1, 2, 3)), TopologyKey: pick(m, "zone", "zone", corev1.LabelHostname, "rack"),
		WhenUnsatisfiable: pick(m, corev1.DoNotSchedule, corev1.ScheduleAnyway), LabelSelector: m.selector(),
	}
	if t.WhenUnsatisfiable == corev1.DoNotSchedule && m.chance(4) {
		t.MinDomains = new(int32(1 + m.IntN(6)))
	}
	if m.chance(4) {
		t.MatchLabelKeys = []string{"release"}
	}
	policies := []*corev1.NodeInclusionPolicy{nil, nil, new(corev1.NodeInclusionPolicyHonor), new(corev1.NodeInclusionPolicyIgnore)}
	t.NodeAffinityPolicy, t.NodeTaintsPolicy = pick(m, policies...), pick(m, policies...)
	return t
}

// pod creates a pod that uses what the world stresses, and some other features.
func (m *maker) pod() *corev1.Pod {
	m.pods++
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Name: fmt.Sprint("p", m.pods), Namespace: pick(m, "a", "a", "b", "c"), UID: types.UID(fmt.Sprint("uid", m.pods)),
		Labels: map[string]string{"app": pick(m, "x", "y", "z")}, Annotations: map[string]string{},
	}}
	p.Annotations[model.GroupAnnotation] = "g"
	p.Spec.SchedulerName = "celsius"
	if m.chance(2) {
		p.Labels["tier"] = "gold"
	}
	if !m.chance(4) {
		p.Labels["release"] = pick(m, "one", "two")
	}
	for range 1 + m.IntN(2) {
		ctr := corev1.Container{
			Name: "c", Image: pick(m, "app:v1", "base", "tool", "none"),
			Resources: corev1.ResourceRequirements{Requests: amounts(1+m.IntN(300), 1+m.IntN(300))},
		}
		if m.stressed["resources"] {
			ctr.Resources.Requests = amounts(1+m.IntN(3000), 1+m.IntN(5000))
		}
		p.Spec.Containers = append(p.Spec.Containers, ctr)
	}
	if m.chance(4) {
		p.Spec.InitContainers = []corev1.Container{{Name: "i", Image: "side:v2", Resources: corev1.ResourceRequirements{Requests: amounts(1, 1)}}}
	}
	if m.stressed["ports"] {
		for range 1 + m.IntN(2) {
			p.Spec.Containers[0].Ports = append(p.Spec.Containers[0].Ports,
				corev1.ContainerPort{
					HostPort: int32(80 + m.IntN(6)), Protocol: pick(m, corev1.ProtocolTCP, corev1.ProtocolTCP, corev1.ProtocolUDP),
					HostIP: pick(m, "", "", "10.0.0.1", "10.0.0.2"),
				})
		}
	}
	m.affine(p)
	for range m.IntN(3) {
		p.Spec.Tolerations = append(p.Spec.Tolerations, pick(m,
			corev1.Toleration{Key: "k1", Operator: corev1.TolerationOpExists},
			corev1.Toleration{Key: "k2", Operator: corev1.TolerationOpEqual, Value: "v"},
			corev1.Toleration{Key: "k1", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectPreferNoSchedule},
			corev1.Toleration{Key: corev1.TaintNodeUnschedulable, Operator: corev1.TolerationOpExists}))
	}
	return p
}

// another returns a pod with the same spec.
func (m *maker) another(of *corev1.Pod) *corev1.Pod {
	m.pods++
	p := of.DeepCopy()
	p.Name, p.UID = fmt.Sprint("p", m.pods), types.UID(fmt.Sprint("uid", m.pods))
	return p
}

// affine adds node affinity and pod affinity terms to a pod.
func (m *maker) affine(p *corev1.Pod) {
	a := &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{}, PodAffinity: &corev1.PodAffinity{}, PodAntiAffinity: &corev1.PodAntiAffinity{}}
	p.Spec.Affinity = a
	disk := corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{
		Key: "disk", Operator: corev1.NodeSelectorOpIn,
		Values: []string{pick(m, "ssd", "hdd")},
	}}}
	size := corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{
		Key: "size", Operator: corev1.NodeSelectorOpGt,
		Values: []string{fmt.Sprint(m.IntN(3))},
	}}}
	name := corev1.NodeSelectorTerm{MatchFields: []corev1.NodeSelectorRequirement{{
		Key: "metadata.name", Operator: corev1.NodeSelectorOpNotIn,
		Values: []string{"n01"},
	}}}
	if m.stressed["nodeAffinity"] && !m.chance(3) || m.chance(6) {
		a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution = &corev1.NodeSelector{NodeSelectorTerms: pick(m,
			[]corev1.NodeSelectorTerm{disk}, []corev1.NodeSelectorTerm{disk, size}, []corev1.NodeSelectorTerm{name},
			[]corev1.NodeSelectorTerm{size})}
	}
	if m.stressed["nodeAffinity"] && m.chance(2) {
		p.Spec.NodeSelector = map[string]string{"disk": pick(m, "ssd", "hdd")}
	}
	for range m.IntN(3) {
		a.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution = append(a.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution,
			corev1.PreferredSchedulingTerm{Weight: int32(1 + m.IntN(100)), Preference: pick(m, disk, size, name)})
	}
	if m.stressed["affinity"] {
		a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution = m.terms(pick(m, 0, 1, 2))
		a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution = m.terms(pick(m, 0, 0, 1))
	}
	if m.stressed["affinity"] || m.chance(3) {
		a.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution = m.weighted()
		a.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution = m.weighted()
	}
	most := 0
	if m.stressed["spread"] {
		most = 4
	} else if m.chance(3) {
		most = 1
	}
	for range m.IntN(most + 1) {
		p.Spec.TopologySpreadConstraints = append(p.Spec.TopologySpreadConstraints, m.constraint())
	}
}
