package model

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// peerBooks count, by namespace, the comparisons between terms and pods. A pod may have few terms, and its PodGroup may be small, but a
// namespace can have many PodGroups. If each of their terms selected all pods of the namespace, the cost would grow with the square of the
// number of pods.
type peerBooks struct {
	of map[string]*peerBook
	// changed are the namespaces with pods that were left out, if other pods of the namespace changed since then.
	changed map[string]bool
}

func newPeerBooks() peerBooks {
	return peerBooks{of: map[string]*peerBook{}, changed: map[string]bool{}}
}

// peerBook counts the unfinished pods of a namespace and their different terms. A term whose selector names a label with its value is
// compared with the pods that have this label. All other terms, and terms about pods in other namespaces, are compared with all pods.
type peerBook struct {
	pods      int
	terms     map[string]*peerTerm // by comparedTerm.text
	comparing map[Label]int        // number of terms by the label that they name; Label{}: compared with all pods
	// labels is the number of pods by label. pairs is the number of pairs of a term and a pod that are compared. Until there are more terms
	// than the limit, labels is nil and pairs is unknown.
	labels map[Label]int
	pairs  int
	left   map[string]leftPod
	again  []string // pods of left that will be tried again
}

// triedAtOnce limits the pods of a namespace that are tried again at one change of the cluster. Any number of pods can be left out.
const triedAtOnce = 256

// Label is a label of a pod with its value.
type Label struct{ Key, Value string }

type peerTerm struct {
	by   Label
	pods int // number of pods with this term
}

// leftPod is a pod that was left out because of the other pods of its namespace.
type leftPod struct {
	object *corev1.Pod
	terms  *PodTerms
}

func (x *peerBooks) book(namespace string) *peerBook {
	b := x.of[namespace]
	if b == nil {
		b = &peerBook{terms: map[string]*peerTerm{}, comparing: map[Label]int{}, left: map[string]leftPod{}}
		x.of[namespace] = b
	}
	return b
}

// bookTerms counts a task's terms, in its PodGroup and in its namespace.
func (c *Cluster) bookTerms(t *Task) {
	c.books.terms.add(t)
	if t.compared { // the older version is counted; it had the same labels and terms
		return
	}
	if t.Status != Succeeded && t.Status != Failed {
		t.compared = true
		c.books.peers.book(t.Namespace).add(t.Namespace, t.Labels, t.PodTerms)
		c.books.peers.note(t.Namespace)
	}
}

// unbookTerms undoes bookTerms before a task is removed, or replaced by a newer version. If the newer version is compared like the task,
// the count of the namespace stays.
func (c *Cluster) unbookTerms(t, next *Task) {
	c.books.terms.remove(t)
	if !t.compared {
		return
	}
	if next != nil && t.comparedLike(next) {
		next.compared = true
		return
	}
	t.compared = false
	b := c.books.peers.of[t.Namespace]
	b.remove(t.Labels, t.PodTerms)
	c.books.peers.note(t.Namespace)
	if b.labels != nil && 2*len(b.terms) <= c.Limits.NamespaceTerms {
		b.labels, b.pairs = nil, 0
	}
	c.books.peers.tidy(t.Namespace)
}

// comparedLike reports whether a counted task and a version of it have the same terms and labels, and both count.
func (t *Task) comparedLike(next *Task) bool {
	if !t.compared || next.Status == Succeeded || next.Status == Failed || (t.PodTerms == nil) != (next.PodTerms == nil) {
		return false
	}
	return (t.PodTerms == nil || t.PodTerms.Key == next.PodTerms.Key) && maps.Equal(t.Labels, next.Labels)
}

// note marks a namespace as changed, so that its pods that were left out are tried again.
func (x *peerBooks) note(namespace string) {
	if b := x.of[namespace]; b != nil && len(b.left) > 0 {
		x.changed[namespace] = true
	}
}

func (x *peerBooks) tidy(namespace string) {
	if b := x.of[namespace]; b != nil && b.pods+len(b.left) == 0 {
		delete(x.of, namespace)
	}
}

func (b *peerBook) add(namespace string, labels map[string]string, terms *PodTerms) {
	b.pods++
	b.pairs += b.comparing[Label{}]
	if b.labels != nil {
		for key, value := range labels {
			b.labels[Label{key, value}]++
			b.pairs += b.comparing[Label{key, value}]
		}
	}
	if terms == nil {
		return
	}
	for _, term := range terms.compared {
		x := b.terms[term.text]
		if x == nil {
			x = &peerTerm{}
			if slices.Equal(term.who.Namespaces, []string{namespace}) && term.who.ByLabels == nil {
				x.by, _ = term.who.Narrowest(func(of Label) int { return b.comparing[of] })
			}
			b.terms[term.text] = x
			b.comparing[x.by]++
			b.pairs += b.having(x.by)
		}
		x.pods++
	}
}

func (b *peerBook) remove(labels map[string]string, terms *PodTerms) {
	if terms != nil {
		for _, term := range terms.compared {
			x := b.terms[term.text]
			if x.pods--; x.pods > 0 {
				continue
			}
			delete(b.terms, term.text)
			b.pairs -= b.having(x.by)
			decrement(b.comparing, x.by)
		}
	}
	if b.labels != nil {
		for key, value := range labels {
			decrement(b.labels, Label{key, value})
			b.pairs -= b.comparing[Label{key, value}]
		}
	}
	b.pairs -= b.comparing[Label{}]
	b.pods--
}

func decrement(counts map[Label]int, of Label) {
	if counts[of]--; counts[of] == 0 {
		delete(counts, of)
	}
}

// having returns the number of pods that a term is compared with if it names this label.
func (b *peerBook) having(of Label) int {
	if of == (Label{}) {
		return b.pods
	}
	return b.labels[of]
}

// countLabels counts the labels of the namespace's pods, and computes pairs from them.
func (b *peerBook) countLabels(c *Cluster, namespace string) {
	b.labels = map[Label]int{}
	for _, t := range c.Tasks {
		if t.compared && t.Namespace == namespace {
			for key, value := range t.Labels {
				b.labels[Label{key, value}]++
			}
		}
	}
	b.pairs = 0
	for of, n := range b.comparing {
		b.pairs += n * b.having(of)
	}
}

// above returns the number of terms that a pod would be compared with on average if one more pod came. It reports whether that is above
// the limit and the new pod adds more comparisons than the limit. old is the version of the pod that is counted; nil: none.
func (b *peerBook) above(c *Cluster, namespace string, labels map[string]string, terms *PodTerms, old *Task) (average int, above bool) {
	limit, all := c.Limits.NamespaceTerms, len(b.terms)
	if terms != nil {
		all += len(terms.compared)
	}
	if all <= limit {
		return 0, false
	}
	if b.labels == nil {
		b.countLabels(c, namespace)
	}
	if old != nil && old.compared {
		b.remove(old.Labels, old.PodTerms)
		defer b.add(namespace, old.Labels, old.PodTerms)
	}
	before := b.pairs
	b.add(namespace, labels, terms)
	defer b.remove(labels, terms)
	average = b.pairs / b.pods
	return average, average > limit && b.pairs-before > limit
}

// limitComparisons reports a pod that would cause too many comparisons between the terms and the pods of its namespace. It then removes the
// terms from the task. An update that changes neither its labels nor its terms is never too much.
func (c *Cluster) limitComparisons(t, old *Task, m *mistakes) {
	books, onNode := &c.books.peers, t.Status.onNode() || old != nil && old.UID == t.UID && old.Status.onNode()
	books.leave(t.Namespace, t.Key)
	if t.Status == Succeeded || t.Status == Failed || len(m.errs) > 0 && !onNode || old != nil && old.comparedLike(t) {
		return
	}
	average, above := books.book(t.Namespace).above(c, t.Namespace, t.Labels, t.PodTerms, old)
	books.tidy(t.Namespace)
	if !above {
		return
	}
	m.add("spec", "the scheduler would have to compare each pod of namespace %s with %d different terms of pod affinity, pod anti-affinity "+
		"and topology spread of the pods there, on average; the limit is %d", t.Namespace, average, c.Limits.NamespaceTerms)
	if !onNode {
		books.book(t.Namespace).left[t.Key] = leftPod{t.Object, t.PodTerms}
	}
	if t.PodTerms != nil {
		t.dropTerms()
	}
}

// dropTerms removes the terms from a task, and from no other task that shares its template.
func (t *Task) dropTerms() {
	without := *t.Template
	without.PodTerms, without.HasAffinity, without.faulty = nil, false, true
	t.Template = &without
}

// leave removes the record that a pod was left out.
func (x *peerBooks) leave(namespace, pod string) {
	if b := x.of[namespace]; b != nil {
		delete(b.left, pod)
		x.tidy(namespace)
	}
}

// retryLeftOfNamespaces tries pods again that were left out because of other pods of their namespace, after pods left or more pods came.
// Pods without terms lower the average.
func (c *Cluster) retryLeftOfNamespaces() {
	for _, namespace := range sortedKeys(c.books.peers.changed) {
		b := c.books.peers.of[namespace]
		if b == nil {
			delete(c.books.peers.changed, namespace)
			continue
		}
		if len(b.again) == 0 {
			b.again = sortedKeys(b.left)
			delete(c.books.peers.changed, namespace)
		}
		keys := b.again[:min(triedAtOnce, len(b.again))]
		if b.again = b.again[len(keys):]; len(b.again) > 0 {
			c.books.peers.changed[namespace] = true
		}
		for _, key := range keys {
			of, left := b.left[key]
			if !left {
				continue
			}
			if _, above := b.above(c, namespace, of.object.Labels, of.terms, nil); !above {
				c.upsertPod(of.object, false, &mistakes{}) // if the pod is left out again, the reason was reported before
			}
		}
	}
}

func (c *Cluster) checkPeers() error {
	want := newPeerBooks()
	for namespace, b := range c.books.peers.of {
		if b.labels != nil {
			want.book(namespace).labels = map[Label]int{}
		}
	}
	for _, t := range c.Tasks {
		if t.compared {
			want.book(t.Namespace).add(t.Namespace, t.Labels, t.PodTerms)
		}
	}
	for namespace, b := range c.books.peers.of {
		w := want.book(namespace)
		if b.pods != w.pods || !slices.Equal(sortedKeys(b.terms), sortedKeys(w.terms)) {
			return fmt.Errorf("namespace %s: counts %d pods with %d terms; it has %d with %d", namespace, b.pods, len(b.terms), w.pods,
				len(w.terms))
		}
		comparing, pairs := map[Label]int{}, 0
		for key, x := range b.terms {
			if comparing[x.by]++; x.pods != w.terms[key].pods {
				return fmt.Errorf("namespace %s: counts %d pods with the term %q; it has %d", namespace, x.pods, key, w.terms[key].pods)
			}
			pairs += b.having(x.by)
		}
		if !maps.Equal(comparing, b.comparing) {
			return fmt.Errorf("namespace %s: counts the terms %v by label; they are %v", namespace, b.comparing, comparing)
		}
		if b.labels != nil && (!maps.Equal(b.labels, w.labels) || b.pairs != pairs) {
			return fmt.Errorf("namespace %s: counts %d pairs of a term and a pod; they are %d", namespace, b.pairs, pairs)
		}
	}
	return nil
}
