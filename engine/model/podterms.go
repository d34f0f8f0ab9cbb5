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

// PodTerms contains the parsed terms of a pod about other pods: inter-pod affinity, anti-affinity and topology spread. The selector of a
// term already contains the keys that the term takes from the pod's own labels (matchLabelKeys, mismatchLabelKeys).
type PodTerms struct {
	// Key is a canonical text: pods with equal keys have equal terms.
	Key string

	RequiredAffinity, RequiredAntiAffinity   []PodTerm
	PreferredAffinity, PreferredAntiAffinity []PodTerm

	// Spread contains the constraints of both modes, in the order of the pod's object.
	Spread []SpreadTerm

	each     []string       // the text of each term: parts of Key
	compared []comparedTerm // the different terms
}

// comparedTerm is a term: its text, and the selector of the pods with which it is compared.
type comparedTerm struct {
	text string
	who  *PodSelector
}

// HasAffinity reports whether there is a term of inter-pod affinity or anti-affinity.
func (p *PodTerms) HasAffinity() bool {
	return len(p.RequiredAffinity)+len(p.RequiredAntiAffinity)+len(p.PreferredAffinity)+len(p.PreferredAntiAffinity) > 0
}

// PodTerm is one term of affinity or anti-affinity.
type PodTerm struct {
	Who         PodSelector
	TopologyKey string
	Weight      int64 // of a preferred term; 0 for a required term
}

// SpreadTerm is one constraint of topology spread.
type SpreadTerm struct {
	Who         PodSelector
	TopologyKey string
	// Required is true for DoNotSchedule, false for ScheduleAnyway.
	Required   bool
	MaxSkew    int64
	MinDomains int64 // 1 if the constraint does not state it
	// HonorAffinity and HonorTaints state whether the count leaves out nodes that the pod's node affinity, or a taint, excludes.
	HonorAffinity, HonorTaints bool
}

// PodSelector selects the pods to which a term applies.
type PodSelector struct {
	// Key is a canonical text: selectors with equal keys select the same pods.
	Key string
	// Namespaces are the names that the term lists, or the pod's own namespace if the term states none.
	Namespaces []string
	// ByLabels selects more namespaces by their labels; nil if the term has no such selector.
	ByLabels labels.Selector
	// Labels selects pods by their labels; nil selects no pod.
	Labels labels.Selector
}

// HasNamespace reports whether a term applies to pods of a namespace with those labels.
func (p *PodSelector) HasNamespace(name string, its map[string]string) bool {
	return slices.Contains(p.Namespaces, name) || p.ByLabels != nil && p.ByLabels.Matches(labels.Set(its))
}

// HasLabels reports whether a term applies to pods with those labels.
func (p *PodSelector) HasLabels(pod map[string]string) bool {
	return p.Labels != nil && p.Labels.Matches(labels.Set(pod))
}

// NamespaceLabels returns the labels of a namespace. A namespace without an object has only the label that the API server sets on each: its
// name.
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

// readPodTerms parses the terms of a pod about other pods; nil if it has none.
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

// selector returns nil if the object has no selector; nil selects no pod.
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

// own adds the labels that a selector takes from the pod's own labels, as the API server does when a pod is created (KEP-3633, KEP-3243).
// If the API server did it already, the requirement is listed twice, which selects the same pods.
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

// key distinguishes nil, which selects no pod, from the empty selector, which selects every pod. The text of both is "".
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
	var all []*PodSelector // the selectors of the terms, in the order of each
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

// key returns a canonical text of all terms, and its parts: one text per term.
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
