package model

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Limits bound the sizes of what users can write into pods and PodGroups. The cost of a cycle and the memory of a cluster grow with these
// sizes, so one user could stop the scheduler for all. A field that is 0 stands for its default.
type Limits struct {
	// PodTerms is the number of terms of affinity, anti-affinity and topology spread of one pod. Default: 64.
	PodTerms int
	// JobTerms is the number of different terms that the pods of one PodGroup have together. Default: 1024.
	JobTerms int
	// NamespaceTerms is the number of different terms, of all pods of a namespace, that each pod of the namespace is compared with on
	// average. Default: 2048.
	NamespaceTerms int
	// Tolerations is the number of tolerations of one pod. Default: 256.
	Tolerations int
	// Expressions is the number of terms, labels, expressions and values of node affinity, pod affinity and topology spread of one pod, all
	// together. Default: 2048.
	Expressions int
	// HostPorts is the number of host ports of one pod. Default: 256.
	HostPorts int
	// Resources is the number of resource names of one pod, PodGroup or task of a Job. These objects may add names that no node offers,
	// until the cluster has 16 times as many names. Default: 64.
	Resources int
	// Metadata is the number of bytes of labels and annotations, without the annotation of kubectl apply. Default: 64 KiB.
	Metadata int
}

// DefaultLimits are the limits of a cluster whose options do not set others.
func DefaultLimits() Limits {
	return Limits{
		PodTerms: 64, JobTerms: 1024, NamespaceTerms: 2048, Tolerations: 256, Expressions: 2048, HostPorts: 256, Resources: 64,
		Metadata: 64 << 10,
	}
}

// Check reports a limit that is below 0.
func (l Limits) Check() error {
	for _, of := range []struct {
		name string
		n    int
	}{
		{"terms per pod", l.PodTerms},
		{"terms per job", l.JobTerms},
		{"terms per namespace", l.NamespaceTerms},
		{"tolerations", l.Tolerations},
		{"expressions", l.Expressions},
		{"host ports", l.HostPorts},
		{"resource names", l.Resources},
		{"bytes of metadata", l.Metadata},
	} {
		if of.n < 0 {
			return fmt.Errorf("the limit of %s is %d, but it must be at least 1, or 0 for the default", of.name, of.n)
		}
	}
	return nil
}

func (l Limits) complete() Limits {
	otherwise := DefaultLimits()
	for field, value := range map[*int]int{
		&l.PodTerms: otherwise.PodTerms, &l.JobTerms: otherwise.JobTerms, &l.Tolerations: otherwise.Tolerations, &l.Metadata: otherwise.Metadata,
		&l.Expressions: otherwise.Expressions, &l.HostPorts: otherwise.HostPorts, &l.Resources: otherwise.Resources,
		&l.NamespaceTerms: otherwise.NamespaceTerms,
	} {
		if *field == 0 {
			*field = value
		}
	}
	return l
}

// metadata reports labels and annotations that are too large. The annotation of kubectl apply repeats the object and is not counted.
func (l Limits) metadata(o metav1.Object, m *mistakes) {
	size := 0
	for _, of := range []map[string]string{o.GetLabels(), o.GetAnnotations()} {
		for key, value := range of {
			if key != corev1.LastAppliedConfigAnnotation {
				size += len(key) + len(value)
			}
		}
	}
	if size > l.Metadata {
		m.add("metadata", "labels and annotations have %d bytes; the limit is %d (the annotation %s is not counted)", size, l.Metadata,
			corev1.LastAppliedConfigAnnotation)
	}
}

// limited returns a pod without the parts that exceed a limit, and reports these parts. If no part does, it returns the pod itself.
func (l Limits) limited(o *corev1.Pod, m *mistakes) *corev1.Pod {
	l.metadata(o, m)
	terms, tolerations, expressions, ports := termCount(o), len(o.Spec.Tolerations), expressionCount(&o.Spec), hostPortCount(&o.Spec)
	if terms <= l.PodTerms && tolerations <= l.Tolerations && expressions <= l.Expressions && ports <= l.HostPorts {
		return o
	}
	with := *o
	if expressions > l.Expressions {
		m.add("spec", "has %d terms, labels, expressions and values of affinity and topology spread; the limit is %d", expressions,
			l.Expressions)
		with.Spec.Affinity, with.Spec.TopologySpreadConstraints = nil, nil
	}
	if ports > l.HostPorts {
		m.add("spec", "has %d host ports; the limit is %d", ports, l.HostPorts)
		with.Spec.Containers, with.Spec.InitContainers = withoutPorts(o.Spec.Containers), withoutPorts(o.Spec.InitContainers)
	}
	if terms > l.PodTerms {
		m.add("spec", "has %d terms of pod affinity, pod anti-affinity and topology spread; the limit is %d", terms, l.PodTerms)
		with = *withoutTerms(&with)
	}
	if tolerations > l.Tolerations {
		m.add("spec.tolerations", "has %d tolerations; the limit is %d", tolerations, l.Tolerations)
		with.Spec.Tolerations = nil
	}
	return &with
}

func termCount(o *corev1.Pod) int {
	n := len(o.Spec.TopologySpreadConstraints)
	if a := o.Spec.Affinity; a != nil && a.PodAffinity != nil {
		n += len(a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution) +
			len(a.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	if a := o.Spec.Affinity; a != nil && a.PodAntiAffinity != nil {
		n += len(a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution) +
			len(a.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	return n
}

// expressionCount counts the terms, labels, expressions and values of the affinity and topology spread of a pod.
func expressionCount(spec *corev1.PodSpec) (n int) {
	selector := func(s *metav1.LabelSelector) {
		if s == nil {
			return
		}
		n += len(s.MatchLabels)
		for i := range s.MatchExpressions {
			n += 1 + len(s.MatchExpressions[i].Values)
		}
	}
	podTerm := func(t *corev1.PodAffinityTerm) {
		n += 1 + len(t.Namespaces) + len(t.MatchLabelKeys) + len(t.MismatchLabelKeys)
		selector(t.LabelSelector)
		selector(t.NamespaceSelector)
	}
	podTerms := func(required []corev1.PodAffinityTerm, preferred []corev1.WeightedPodAffinityTerm) {
		for i := range required {
			podTerm(&required[i])
		}
		for i := range preferred {
			podTerm(&preferred[i].PodAffinityTerm)
		}
	}
	nodeTerm := func(t *corev1.NodeSelectorTerm) {
		n++
		for _, list := range [][]corev1.NodeSelectorRequirement{t.MatchExpressions, t.MatchFields} {
			for i := range list {
				n += 1 + len(list[i].Values)
			}
		}
	}
	for i := range spec.TopologySpreadConstraints {
		n += 1 + len(spec.TopologySpreadConstraints[i].MatchLabelKeys)
		selector(spec.TopologySpreadConstraints[i].LabelSelector)
	}
	a := spec.Affinity
	if a == nil {
		return n
	}
	if of := a.PodAffinity; of != nil {
		podTerms(of.RequiredDuringSchedulingIgnoredDuringExecution, of.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	if of := a.PodAntiAffinity; of != nil {
		podTerms(of.RequiredDuringSchedulingIgnoredDuringExecution, of.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	if of := a.NodeAffinity; of != nil {
		if required := of.RequiredDuringSchedulingIgnoredDuringExecution; required != nil {
			for i := range required.NodeSelectorTerms {
				nodeTerm(&required.NodeSelectorTerms[i])
			}
		}
		for i := range of.PreferredDuringSchedulingIgnoredDuringExecution {
			nodeTerm(&of.PreferredDuringSchedulingIgnoredDuringExecution[i].Preference)
		}
	}
	return n
}

func hostPortCount(spec *corev1.PodSpec) (n int) {
	for _, list := range [][]corev1.Container{spec.Containers, spec.InitContainers} {
		for i := range list {
			for j := range list[i].Ports {
				if list[i].Ports[j].HostPort != 0 {
					n++
				}
			}
		}
	}
	return n
}

func withoutPorts(containers []corev1.Container) []corev1.Container {
	out := slices.Clone(containers)
	for i := range out {
		out[i].Ports = nil
	}
	return out
}

// withoutTerms returns a copy of a pod without terms of pod affinity and topology spread.
func withoutTerms(o *corev1.Pod) *corev1.Pod {
	with := *o
	with.Spec.TopologySpreadConstraints = nil
	if o.Spec.Affinity != nil {
		with.Spec.Affinity = &corev1.Affinity{NodeAffinity: o.Spec.Affinity.NodeAffinity}
	}
	return &with
}

// termBooks count the different terms of the pods of each PodGroup, by the group's key.
type termBooks struct {
	of map[string]*termBook
	// shrunk are groups that lost terms and have pods that were left out.
	shrunk map[string]bool
	// held is true while a trial is open: pods that were left out stay left out until it ends.
	held bool
}

type termBook struct {
	sets map[string]int // PodTerms.Key -> pods
	each map[string]int // text of a term -> sets that have it
	left map[string]*corev1.Pod
}

func newTermBooks() termBooks {
	return termBooks{of: map[string]*termBook{}, shrunk: map[string]bool{}}
}

func (x *termBooks) book(group string) *termBook {
	b := x.of[group]
	if b == nil {
		b = &termBook{sets: map[string]int{}, each: map[string]int{}, left: map[string]*corev1.Pod{}}
		x.of[group] = b
	}
	return b
}

// with returns the number of different terms of a group after one more pod joins it. The pod replaces old, its older version, if any.
func (x *termBooks) with(group string, terms *PodTerms, old *Task) int {
	b := x.of[group]
	if b == nil {
		return len(uniqueTerms(terms))
	}
	if b.sets[terms.Key] > 0 {
		return len(b.each)
	}
	n := len(b.each)
	for _, one := range uniqueTerms(terms) {
		if b.each[one] == 0 {
			n++
		}
	}
	if old != nil && old.booked != nil && old.bookedIn == group && b.sets[old.booked.Key] == 1 {
		next := uniqueTerms(terms)
		for _, one := range uniqueTerms(old.booked) {
			if b.each[one] == 1 && !slices.Contains(next, one) {
				n--
			}
		}
	}
	return n
}

func (x *termBooks) add(t *Task) {
	if t.PodTerms == nil || t.group == "" {
		return
	}
	t.booked, t.bookedIn = t.PodTerms, t.group
	b := x.book(t.group)
	if b.sets[t.PodTerms.Key]++; b.sets[t.PodTerms.Key] == 1 {
		for _, one := range uniqueTerms(t.PodTerms) {
			b.each[one]++
		}
	}
}

func (x *termBooks) remove(t *Task) {
	if t.booked == nil {
		return
	}
	group, terms := t.bookedIn, t.booked
	t.booked, t.bookedIn = nil, ""
	b := x.of[group]
	if b.sets[terms.Key]--; b.sets[terms.Key] > 0 {
		return
	}
	delete(b.sets, terms.Key)
	for _, one := range uniqueTerms(terms) {
		if b.each[one]--; b.each[one] == 0 {
			delete(b.each, one)
		}
	}
	if len(b.left) > 0 {
		x.shrunk[group] = true
	}
	x.tidy(group)
}

func (x *termBooks) tidy(group string) {
	if b := x.of[group]; b != nil && len(b.sets)+len(b.left) == 0 {
		delete(x.of, group)
	}
}

// leave records that a pod was left out, or removes that record if o is nil.
func (x *termBooks) leave(group, pod string, o *corev1.Pod) {
	if group == "" {
		return
	}
	if o != nil {
		x.book(group).left[pod] = o
		return
	}
	if b := x.of[group]; b != nil {
		delete(b.left, pod)
		x.tidy(group)
	}
}

func uniqueTerms(p *PodTerms) []string {
	out := slices.Clone(p.each)
	slices.Sort(out)
	return slices.Compact(out)
}

// limitJobTerms reports a pod if its terms would exceed the limit of its PodGroup. It then removes the terms from the task.
func (c *Cluster) limitJobTerms(t, old *Task, m *mistakes) {
	books := &c.books.terms
	books.leave(t.group, t.Key, nil)
	if t.PodTerms == nil || t.group == "" {
		return
	}
	n := books.with(t.group, t.PodTerms, old)
	if n <= c.Limits.JobTerms {
		return
	}
	m.add("spec", "the pods of PodGroup %s would have %d different terms of pod affinity, pod anti-affinity and topology spread "+
		"with this pod; "+
		"the limit is %d", t.group, n, c.Limits.JobTerms)
	t.dropTerms()
	if !t.Status.onNode() {
		books.leave(t.group, t.Key, t.Object)
	}
}

// retryLeftOut tries pods again that were left out because of other pods of their PodGroup or namespace, after some of these pods changed.
func (c *Cluster) retryLeftOut() {
	books := &c.books.terms
	for len(books.shrunk) > 0 && !books.held {
		group := slices.Min(slices.Collect(maps.Keys(books.shrunk)))
		delete(books.shrunk, group)
		b := books.of[group]
		if b == nil {
			continue
		}
		for _, key := range sortedKeys(b.left) {
			c.upsertPod(b.left[key], false, &mistakes{}) // a pod that still exceeds the limit was reported when it was left out
		}
	}
	if !books.held {
		c.retryLeftOfNamespaces()
	}
}

func (c *Cluster) checkTerms() error {
	want := newTermBooks()
	for _, t := range c.TasksByKey() {
		if t.booked != nil {
			with := *t
			with.Template = &Template{PodTerms: t.booked}
			with.group = t.bookedIn
			want.add(&with)
		}
	}
	for group, b := range c.books.terms.of {
		if w := want.book(group); !maps.Equal(w.sets, b.sets) || !maps.Equal(w.each, b.each) {
			return fmt.Errorf("PodGroup %s: counts %d different terms, its pods have %d", group, len(b.each), len(w.each))
		}
	}
	return nil
}
