package model

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
)

// PodTerms is what a pod asks of the pods near it, parsed: inter-pod affinity and anti-affinity, and topology
// spread. The keys that a term takes from the pod's own labels (matchLabelKeys, mismatchLabelKeys) are part of its
// selector already.
type PodTerms struct {
	// Key is a canonical text: pods with equal keys ask the same.
	Key string

	RequiredAffinity, RequiredAntiAffinity   []PodTerm
	PreferredAffinity, PreferredAntiAffinity []PodTerm

	// Spread has the constraints of both modes, in the order of the pod's object.
	Spread []SpreadTerm

	each     []string       // the text of each term: parts of Key
	compared []comparedTerm // the terms, each once
}

// comparedTerm is a term by its text, with the selector of the pods that it is compared with.
type comparedTerm struct {
	text string
	who  *PodSelector
}

// HasAffinity says whether there is a term of inter-pod affinity or anti-affinity.
func (p *PodTerms) HasAffinity() bool {
	return len(p.RequiredAffinity)+len(p.RequiredAntiAffinity)+len(p.PreferredAffinity)+len(p.PreferredAntiAffinity) > 0
}

// PodTerm is one term of affinity or anti-affinity.
type PodTerm struct {
	Who         PodSelector
	TopologyKey string
	Weight      int64 // of a preferred term; 0 of a required one
}

// SpreadTerm is one constraint of topology spread.
type SpreadTerm struct {
	Who         PodSelector
	TopologyKey string
	// Required is DoNotSchedule; else ScheduleAnyway.
	Required   bool
	MaxSkew    int64
	MinDomains int64 // 1 where the constraint does not say
	// HonorAffinity and HonorTaints say whether nodes that the pod's node affinity, or a taint, excludes
	// are left out of the count.
	HonorAffinity, HonorTaints bool
}

// PodSelector says which pods a term speaks of.
type PodSelector struct {
	// Key is a canonical text: selectors with equal keys select the same pods.
	Key string
	// Namespaces are the names that the term lists, or the pod's own where it says nothing of namespaces.
	Namespaces []string
	// ByLabels selects further namespaces by their labels; nil where the term does not.
	ByLabels labels.Selector
	// Labels selects pods by theirs; nil selects none.
	Labels labels.Selector
}

// HasNamespace says whether pods of a namespace with those labels are spoken of.
func (p *PodSelector) HasNamespace(name string, its map[string]string) bool {
	return slices.Contains(p.Namespaces, name) || p.ByLabels != nil && p.ByLabels.Matches(labels.Set(its))
}

// HasLabels says whether pods with those labels are spoken of.
func (p *PodSelector) HasLabels(pod map[string]string) bool {
	return p.Labels != nil && p.Labels.Matches(labels.Set(pod))
}

// NamespaceLabels are the labels of a namespace. One without an object has the one label that the API server gives
// to each: its name.
func (c *Cluster) NamespaceLabels(name string) map[string]string {
	named := map[string]string{corev1.LabelMetadataName: name}
	n := c.Namespaces[name]
	if n == nil {
		return named
	}
	if _, ok := n.Labels[corev1.LabelMetadataName]; ok {
		return n.Labels
	}
	maps.Copy(named, n.Labels)
	return named
}

// readPodTerms parses what a pod asks of the pods near it; nil if nothing.
func readPodTerms(o *corev1.Pod, m *mistakes) *PodTerms {
	r := &termReader{pod: o, mistakes: m}
	p := &PodTerms{}
	if a := o.Spec.Affinity; a != nil && a.PodAffinity != nil {
		const field = "spec.affinity.podAffinity."
		p.RequiredAffinity = r.required(field, a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution)
		p.PreferredAffinity = r.preferred(field, a.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	if a := o.Spec.Affinity; a != nil && a.PodAntiAffinity != nil {
		const field = "spec.affinity.podAntiAffinity."
		p.RequiredAntiAffinity = r.required(field, a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution)
		p.PreferredAntiAffinity = r.preferred(field, a.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	for i := range o.Spec.TopologySpreadConstraints {
		p.Spread = r.spread(p.Spread, "spec.topologySpreadConstraints["+strconv.Itoa(i)+"]", &o.Spec.TopologySpreadConstraints[i])
	}
	if !p.HasAffinity() && len(p.Spread) == 0 {
		return nil
	}
	p.Key, p.each = p.key()
	p.compared = p.termsOnce()
	return p
}

// termReader reads the terms of one pod.
type termReader struct {
	*mistakes
	pod *corev1.Pod
}

func (r *termReader) required(field string, terms []corev1.PodAffinityTerm) []PodTerm {
	var out []PodTerm
	for i := range terms {
		at := field + "requiredDuringSchedulingIgnoredDuringExecution[" + strconv.Itoa(i) + "]"
		out = append(out, r.term(at, &terms[i], 0))
	}
	return out
}

func (r *termReader) preferred(field string, terms []corev1.WeightedPodAffinityTerm) []PodTerm {
	var out []PodTerm
	for i := range terms {
		at := field + "preferredDuringSchedulingIgnoredDuringExecution[" + strconv.Itoa(i) + "].podAffinityTerm"
		out = append(out, r.term(at, &terms[i].PodAffinityTerm, int64(terms[i].Weight)))
	}
	return out
}

func (r *termReader) term(field string, t *corev1.PodAffinityTerm, weight int64) PodTerm {
	if t.TopologyKey == "" {
		r.add(field+".topologyKey", "is missing; it names the node label whose value pods share")
	}
	who := PodSelector{Namespaces: slices.Clone(t.Namespaces), Labels: r.selector(field+".labelSelector", t.LabelSelector)}
	if len(t.Namespaces) == 0 && t.NamespaceSelector == nil {
		who.Namespaces = []string{r.pod.Namespace}
	}
	slices.Sort(who.Namespaces)
	who.Namespaces = slices.Compact(who.Namespaces)
	who.ByLabels = r.selector(field+".namespaceSelector", t.NamespaceSelector)
	who.Labels = r.own(field+".matchLabelKeys", who.Labels, t.MatchLabelKeys, selection.In)
	who.Labels = r.own(field+".mismatchLabelKeys", who.Labels, t.MismatchLabelKeys, selection.NotIn)
	who.Key = who.key()
	return PodTerm{Who: who, TopologyKey: t.TopologyKey, Weight: weight}
}

func (r *termReader) spread(out []SpreadTerm, field string, t *corev1.TopologySpreadConstraint) []SpreadTerm {
	required := t.WhenUnsatisfiable == corev1.DoNotSchedule
	if !required && t.WhenUnsatisfiable != corev1.ScheduleAnyway {
		r.add(field+".whenUnsatisfiable", "%q is neither DoNotSchedule nor ScheduleAnyway", t.WhenUnsatisfiable)
		return out
	}
	if t.TopologyKey == "" {
		r.add(field+".topologyKey", "is missing; it names the node label over whose values pods are spread")
	}
	if t.MaxSkew < 1 {
		r.add(field+".maxSkew", "%d is below 1", t.MaxSkew)
	}
	who := PodSelector{Namespaces: []string{r.pod.Namespace}, Labels: r.selector(field+".labelSelector", t.LabelSelector)}
	who.Labels = r.own(field+".matchLabelKeys", who.Labels, t.MatchLabelKeys, selection.In)
	who.Key = who.key()
	term := SpreadTerm{Who: who, TopologyKey: t.TopologyKey, Required: required, MaxSkew: int64(t.MaxSkew), MinDomains: 1, HonorAffinity: true}
	if t.MinDomains != nil {
		term.MinDomains = int64(*t.MinDomains)
	}
	if t.NodeAffinityPolicy != nil {
		term.HonorAffinity = *t.NodeAffinityPolicy == corev1.NodeInclusionPolicyHonor
	}
	if t.NodeTaintsPolicy != nil {
		term.HonorTaints = *t.NodeTaintsPolicy == corev1.NodeInclusionPolicyHonor
	}
	return append(out, term)
}

// selector is nil where the object has none, which selects nothing.
func (r *termReader) selector(field string, s *metav1.LabelSelector) labels.Selector {
	if s == nil {
		return nil
	}
	out, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		r.add(field, "%v", err)
		return nil
	}
	return out
}

// own adds what a selector takes from the pod's own labels, as the API server does when a pod is created (KEP-3633,
// KEP-3243). Where that was done the same requirement stands twice, which selects the same pods.
func (r *termReader) own(field string, s labels.Selector, keys []string, how selection.Operator) labels.Selector {
	if s == nil {
		return nil
	}
	for _, key := range keys {
		value, ok := r.pod.Labels[key]
		if !ok {
			continue
		}
		req, err := labels.NewRequirement(key, how, []string{value})
		if err != nil {
			r.add(field, "%v", err)
			continue
		}
		s = s.Add(*req)
	}
	return s
}

// key tells nil, which selects nothing, from the empty selector, which selects everything: both are written "".
func (p *PodSelector) key() string {
	text := func(s labels.Selector) string {
		if s == nil {
			return "-"
		}
		return "(" + s.String() + ")"
	}
	return strings.Join(p.Namespaces, ",") + text(p.ByLabels) + text(p.Labels)
}

// termsOnce returns the different terms.
func (p *PodTerms) termsOnce() (out []comparedTerm) {
	var all []*PodSelector // of the terms, in the order of each
	for _, terms := range [][]PodTerm{p.RequiredAffinity, p.RequiredAntiAffinity, p.PreferredAffinity, p.PreferredAntiAffinity} {
		for i := range terms {
			all = append(all, &terms[i].Who)
		}
	}
	for i := range p.Spread {
		all = append(all, &p.Spread[i].Who)
	}
	seen := map[string]bool{}
	for i, text := range p.each {
		if !seen[text] {
			seen[text] = true
			out = append(out, comparedTerm{text, all[i]})
		}
	}
	return out
}

// key is a canonical text of all terms, and its parts: one text a term.
func (p *PodTerms) key() (all string, each []string) {
	var b strings.Builder
	var ends []int
	write := func(parts ...string) {
		for _, part := range parts {
			b.WriteString(part)
			b.WriteByte('\n')
		}
		ends = append(ends, b.Len())
	}
	for kind, terms := range [][]PodTerm{p.RequiredAffinity, p.RequiredAntiAffinity, p.PreferredAffinity, p.PreferredAntiAffinity} {
		for i := range terms {
			write(strconv.Itoa(kind), terms[i].Who.Key, terms[i].TopologyKey, strconv.FormatInt(terms[i].Weight, 10))
		}
	}
	for i := range p.Spread {
		t := &p.Spread[i]
		write("spread", t.Who.Key, t.TopologyKey, strconv.FormatInt(t.MaxSkew, 10), strconv.FormatInt(t.MinDomains, 10),
			strconv.FormatBool(t.Required), strconv.FormatBool(t.HonorAffinity), strconv.FormatBool(t.HonorTaints))
	}
	all, begin := b.String(), 0
	for _, end := range ends {
		each = append(each, all[begin:end])
		begin = end
	}
	return all, each
}

// Narrowest returns a label, with its value, that each selected pod has. If there are several, it returns the one that the fewest other
// selectors name. ok is false if the selector names none. By this label, callers find the selectors that may select a pod.
func (p *PodSelector) Narrowest(selectors func(Label) int) (of Label, ok bool) {
	if p.Labels == nil {
		return Label{}, false
	}
	requirements, _ := p.Labels.Requirements()
	fewest := 0
	for _, r := range requirements {
		single := r.Operator() == selection.Equals || r.Operator() == selection.DoubleEquals || r.Operator() == selection.In
		if !single || r.Values().Len() != 1 {
			continue
		}
		next := Label{r.Key(), r.Values().UnsortedList()[0]}
		if n := selectors(next); !ok || n < fewest {
			of, fewest, ok = next, n, true
		}
	}
	return of, ok
}
