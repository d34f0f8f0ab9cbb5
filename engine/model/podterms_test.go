package model

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// about returns a term over zones that applies to pods with the label app=x.
func about(edits ...func(*corev1.PodAffinityTerm)) corev1.PodAffinityTerm {
	t := corev1.PodAffinityTerm{TopologyKey: "zone", LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "x"}}}
	for _, edit := range edits {
		edit(&t)
	}
	return t
}

func near(terms ...corev1.PodAffinityTerm) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: terms}}
	}
}

func spread(edits ...func(*corev1.TopologySpreadConstraint)) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		t := corev1.TopologySpreadConstraint{
			MaxSkew: 1, TopologyKey: "zone", WhenUnsatisfiable: corev1.DoNotSchedule,
			LabelSelector: &metav1.LabelSelector{},
		}
		for _, edit := range edits {
			edit(&t)
		}
		p.Spec.TopologySpreadConstraints = append(p.Spec.TopologySpreadConstraints, t)
	}
}

func TestWhoATermSpeaksOf(t *testing.T) {
	team := func(name string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchLabels: map[string]string{"team": name}}
	}
	others := map[string]map[string]string{
		"a/x": {"app": "x", "hash": "1"}, "b/x": {"app": "x"}, "c/x": {"app": "x"}, "a/y": {"app": "y"}, "a/x2": {"app": "x", "hash": "2"},
	}
	for name, tt := range map[string]struct {
		edit func(*corev1.PodAffinityTerm)
		want string
	}{
		"its own namespace, if it says nothing": {func(*corev1.PodAffinityTerm) {}, "a/x a/x2"},
		"the namespaces that it lists":          {func(p *corev1.PodAffinityTerm) { p.Namespaces = []string{"c", "b"} }, "b/x c/x"},
		"those with labels":                     {func(p *corev1.PodAffinityTerm) { p.NamespaceSelector = team("red") }, "b/x"},
		"those listed and those with labels": {func(p *corev1.PodAffinityTerm) {
			p.NamespaceSelector, p.Namespaces = team("red"), []string{"c"}
		}, "b/x c/x"},
		"all": {func(p *corev1.PodAffinityTerm) { p.NamespaceSelector = &metav1.LabelSelector{} }, "a/x a/x2 b/x c/x"},
		"by name, though it has no object": {func(p *corev1.PodAffinityTerm) {
			p.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: "a"}}
		}, "a/x a/x2"},
		"everybody":                     {func(p *corev1.PodAffinityTerm) { p.LabelSelector = &metav1.LabelSelector{} }, "a/x a/x2 a/y"},
		"nobody":                        {func(p *corev1.PodAffinityTerm) { p.LabelSelector = nil }, ""},
		"the same in one of its labels": {func(p *corev1.PodAffinityTerm) { p.MatchLabelKeys = []string{"hash", "none"} }, "a/x"},
		"others in one of its labels":   {func(p *corev1.PodAffinityTerm) { p.MismatchLabelKeys = []string{"hash"} }, "a/x2"},
		"nobody, whatever the keys":     {func(p *corev1.PodAffinityTerm) { p.LabelSelector, p.MatchLabelKeys = nil, []string{"hash"} }, ""},
		"the same, if it is written out": {func(p *corev1.PodAffinityTerm) {
			p.MatchLabelKeys, p.LabelSelector.MatchLabels["hash"] = []string{"hash"}, "1"
		}, "a/x"},
	} {
		t.Run(name, func(t *testing.T) {
			c := cluster(t, pod("p", "", near(about(tt.edit)), func(p *corev1.Pod) { p.Labels = map[string]string{"hash": "1"} }))
			for _, n := range []string{"b", "c"} {
				o := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
					Name:   n,
					Labels: map[string]string{"team": map[string]string{"b": "red", "c": "blue"}[n]},
				}}
				if errs := c.Apply(Delta{Object: o}); errs != nil {
					t.Fatal(errs)
				}
			}
			who := &c.Tasks["a/p"].PodTerms.RequiredAffinity[0].Who
			var got []string
			for _, other := range sortedKeys(others) {
				namespace, _, _ := strings.Cut(other, "/")
				if who.HasNamespace(namespace, c.NamespaceLabels(namespace)) && who.HasLabels(others[other]) {
					got = append(got, other)
				}
			}
			if diff := cmp.Diff(tt.want, strings.Join(got, " ")); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// TestKeysOfTerms checks that pods whose terms differ in a relevant way have different keys.
func TestKeysOfTerms(t *testing.T) {
	terms := map[string]func(*corev1.Pod){
		"none": func(*corev1.Pod) {},
		"empty": func(p *corev1.Pod) {
			p.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{}, PodAntiAffinity: &corev1.PodAntiAffinity{}}
		},
		"near":           near(about()),
		"near hosts":     near(about(func(p *corev1.PodAffinityTerm) { p.TopologyKey = "host" })),
		"near everybody": near(about(func(p *corev1.PodAffinityTerm) { p.LabelSelector = &metav1.LabelSelector{} })),
		"near nobody":    near(about(func(p *corev1.PodAffinityTerm) { p.LabelSelector = nil })),
		"near in b":      near(about(func(p *corev1.PodAffinityTerm) { p.Namespaces = []string{"b"} })),
		"apart": func(p *corev1.Pod) {
			p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{about()},
			}}
		},
		"drawn": func(p *corev1.Pod) {
			p.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{
				PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{Weight: 1, PodAffinityTerm: about()}},
			}}
		},
		"drawn more": func(p *corev1.Pod) {
			p.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{
				PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{Weight: 2, PodAffinityTerm: about()}},
			}}
		},
		"repelled": func(p *corev1.Pod) {
			p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
				PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{Weight: 1, PodAffinityTerm: about()}},
			}}
		},
		"spread":            spread(),
		"spread anyway":     spread(func(s *corev1.TopologySpreadConstraint) { s.WhenUnsatisfiable = corev1.ScheduleAnyway }),
		"spread by 2":       spread(func(s *corev1.TopologySpreadConstraint) { s.MaxSkew = 2 }),
		"spread over 3":     spread(func(s *corev1.TopologySpreadConstraint) { s.MinDomains = new(int32(3)) }),
		"spread over all":   spread(func(s *corev1.TopologySpreadConstraint) { s.NodeAffinityPolicy = new(corev1.NodeInclusionPolicyIgnore) }),
		"spread off taints": spread(func(s *corev1.TopologySpreadConstraint) { s.NodeTaintsPolicy = new(corev1.NodeInclusionPolicyHonor) }),
		"spread twice":      func(p *corev1.Pod) { spread()(p); spread()(p) },
	}
	keys := map[string]string{}
	for _, name := range sortedKeys(terms) {
		task := cluster(t, pod("p", "", terms[name])).Tasks["a/p"]
		if has := name != "none" && name != "empty"; has != task.HasAffinity || has != (task.PodTerms != nil) {
			t.Errorf("%s: has terms: %t, %v", name, task.HasAffinity, task.PodTerms)
		}
		if task.PodTerms == nil {
			continue
		}
		if other := keys[task.PodTerms.Key]; other != "" {
			t.Errorf("%s and %s have one key", name, other)
		}
		keys[task.PodTerms.Key] = name
	}
	defaults := spread()
	explicit := spread(func(s *corev1.TopologySpreadConstraint) {
		s.MinDomains, s.NodeAffinityPolicy, s.NodeTaintsPolicy = new(int32(1)), new(corev1.NodeInclusionPolicyHonor),
			new(corev1.NodeInclusionPolicyIgnore)
	})
	a, b := cluster(t, pod("p", "", defaults)).Tasks["a/p"], cluster(t, pod("p", "", explicit)).Tasks["a/p"]
	if a.PodTerms.Key != b.PodTerms.Key {
		t.Errorf("defaults are not what they are when written out:\n%s\n%s", a.PodTerms.Key, b.PodTerms.Key)
	}
}

// TestMistakesInTerms checks that a mistake in a term is reported at its field.
func TestMistakesInTerms(t *testing.T) {
	bad := func(p *corev1.PodAffinityTerm) {
		p.LabelSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: "Near"}}}
	}
	for _, tt := range []struct {
		edit func(*corev1.Pod)
		want string
	}{
		{
			near(about(), about(func(p *corev1.PodAffinityTerm) { p.TopologyKey = "" })),
			"spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[1].topologyKey: is missing",
		},
		{near(about(bad)), "spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].labelSelector: \"Near\" is not a " +
			"valid label selector operator"},
		{spread(func(s *corev1.TopologySpreadConstraint) { s.MaxSkew = 0 }), "spec.topologySpreadConstraints[0].maxSkew: 0 is below 1"},
		{
			spread(func(s *corev1.TopologySpreadConstraint) { s.WhenUnsatisfiable = "Never" }),
			"spec.topologySpreadConstraints[0].whenUnsatisfiable: \"Never\" is neither DoNotSchedule nor ScheduleAnyway",
		},
		{spread(func(s *corev1.TopologySpreadConstraint) { s.TopologyKey = "" }), "spec.topologySpreadConstraints[0].topologyKey: is missing"},
	} {
		c := NewCluster(Options{})
		errs := c.Apply(upserts(pod("p", "", tt.edit))...)
		if len(errs) != 1 || !strings.Contains(errs[0].Error(), tt.want) {
			t.Errorf("got %v, want %s", errs, tt.want)
		}
		if c.Tasks["a/p"] != nil {
			t.Errorf("%s: the pod would be placed", tt.want)
		}
	}
}
