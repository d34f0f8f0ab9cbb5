package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "github.com/celsius-scheduler/celsius/crds/batch/v1alpha1"
)

// witness records every version of every pod and node of a world from its creation on. The records are in the order in which the API server
// stored the versions. Rules that must always be true are checked afterwards, by replaying the recorded versions.
type witness struct {
	w     *world
	pods  *watchtools.RetryWatcher
	nodes *watchtools.RetryWatcher

	mu     sync.Mutex
	seen   []sighting
	newest map[string]*corev1.Pod // existing pods in their last seen version, by name
	bound  map[types.UID]bool     // every pod that ever existed: whether it has had a node
	beside map[string][]sighting  // every version of the kinds that were given to Beside, by KIND/NAME, in order
	more   []watch.Interface
	errors []error
	ended  sync.WaitGroup
	limit  corev1.ResourceList // the capability of the only queue of the world; nil: the queue has none
}

// sighting is one version of a pod, a node or another object.
type sighting struct {
	version uint64 // the revision of the store: comparable between kinds
	at      time.Time
	deleted bool
	pod     *corev1.Pod
	node    *corev1.Node
	beside  client.Object // an object of another kind
}

// Witness records from now on. Call it before the first pod and the first node exist.
func (w *world) Witness() *witness {
	w.t.Helper()
	s := &witness{w: w, newest: map[string]*corev1.Pod{}, bound: map[types.UID]bool{}, beside: map[string][]sighting{}}
	pods, nodes := w.Kube.CoreV1().Pods(w.Namespace), w.Kube.CoreV1().Nodes()
	podList, err := pods.List(w.Context, metav1.ListOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	nodeList, err := nodes.List(w.Context, metav1.ListOptions{LabelSelector: w.NodeSelector})
	if err != nil {
		w.t.Fatal(err)
	}
	if n := len(podList.Items) + len(nodeList.Items); n > 0 {
		w.t.Fatalf("the witness comes too late: %d pods and nodes are there already", n)
	}
	s.pods = s.follow(podList.ResourceVersion, func(o metav1.ListOptions) (watch.Interface, error) { return pods.Watch(w.Context, o) })
	s.nodes = s.follow(nodeList.ResourceVersion, func(o metav1.ListOptions) (watch.Interface, error) {
		o.LabelSelector = w.NodeSelector
		return nodes.Watch(w.Context, o)
	})
	w.t.Cleanup(s.stop)
	return s
}

// nameOf returns KIND/NAME of an object.
func nameOf(o client.Object) string { return reflect.TypeOf(o).Elem().Name() + "/" + o.GetName() }

// Limit sets the capability of the only queue of the world. Report then checks that bound pods never request more. A pod counts from its
// binding until it has finished or is deleted.
func (s *witness) Limit(capability corev1.ResourceList) { s.limit = capability }

// Beside makes the witness also record all objects of these kinds in the namespace.
func (s *witness) Beside(lists ...client.ObjectList) {
	s.w.t.Helper()
	for _, list := range lists {
		if err := s.w.list(list); err != nil {
			s.w.t.Fatal(err)
		}
		err := meta.EachListItem(list, func(o runtime.Object) error {
			s.see(watch.Event{Type: watch.Added, Object: o})
			return nil
		})
		if err != nil {
			s.w.t.Fatal(err)
		}
		s.more = append(s.more, s.follow(list.GetResourceVersion(), func(o metav1.ListOptions) (watch.Interface, error) {
			of, ok := list.DeepCopyObject().(client.ObjectList)
			if !ok {
				return nil, fmt.Errorf("%T is no list", list)
			}
			return s.w.Client.Watch(s.w.Context, of, client.InNamespace(s.w.Namespace), &client.ListOptions{Raw: &o})
		}))
	}
}

// Versions returns all recorded versions of an object, in order.
func (s *witness) Versions(kind, name string) []sighting {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.beside[kind+"/"+name])
}

// Newest returns the last version of a pod or another recorded object, by KIND/NAME. It returns nil if the object does not exist.
func (s *witness) Newest(name string) client.Object {
	s.mu.Lock()
	defer s.mu.Unlock()
	if pod, ok := s.newest[strings.TrimPrefix(name, "Pod/")]; ok && strings.HasPrefix(name, "Pod/") {
		return pod
	}
	if all := s.beside[name]; len(all) > 0 && !all[len(all)-1].deleted {
		return all[len(all)-1].beside
	}
	return nil
}

// There lists the existing pods and other recorded objects, as KIND/NAME.
func (s *witness) There() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []string
	for name := range s.newest {
		out = append(out, "Pod/"+name)
	}
	for name, all := range s.beside {
		if !all[len(all)-1].deleted {
			out = append(out, name)
		}
	}
	return out
}

// Jobs returns the existing Jobs in their last seen version.
func (s *witness) Jobs() (out []batchv1alpha1.Job) {
	for _, name := range s.There() {
		if job, ok := s.Newest(name).(*batchv1alpha1.Job); ok {
			out = append(out, *job)
		}
	}
	return out
}

// Names lists all objects of a kind that ever existed.
func (s *witness) Names(kind string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []string
	for key := range s.beside {
		if name, ok := strings.CutPrefix(key, kind+"/"); ok {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

func (s *witness) stop() {
	for _, watching := range append(s.more, s.pods, s.nodes) {
		watching.Stop()
	}
	s.ended.Wait()
}

func (s *witness) follow(from string, start func(metav1.ListOptions) (watch.Interface, error)) *watchtools.RetryWatcher {
	s.w.t.Helper()
	watcher, err := watchtools.NewRetryWatcherWithContext(s.w.Context, from, &cache.ListWatch{
		WatchFuncWithContext: func(_ context.Context, o metav1.ListOptions) (watch.Interface, error) { return start(o) },
	})
	if err != nil {
		s.w.t.Fatal(err)
	}
	s.ended.Go(func() {
		for e := range watcher.ResultChan() {
			s.see(e)
		}
	})
	return watcher
}

func (s *witness) see(e watch.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e.Type == watch.Error {
		s.errors = append(s.errors, apierrors.FromObject(e.Object))
		return
	}
	if e.Type == watch.Bookmark {
		return
	}
	object, ok := e.Object.(metav1.Object)
	if !ok {
		s.errors = append(s.errors, fmt.Errorf("watch of %T", e.Object))
		return
	}
	version, err := strconv.ParseUint(object.GetResourceVersion(), 10, 64)
	if err != nil {
		s.errors = append(s.errors, fmt.Errorf("resource version of %s: %w", object.GetName(), err))
		return
	}
	at := sighting{version: version, at: time.Now(), deleted: e.Type == watch.Deleted}
	switch o := e.Object.(type) {
	case *corev1.Pod:
		at.pod = o
		s.bound[o.UID] = s.bound[o.UID] || o.Spec.NodeName != ""
		if s.newest[o.Name] = o; at.deleted {
			delete(s.newest, o.Name)
		}
	case *corev1.Node:
		at.node = o
	case client.Object:
		at.beside = o
		key := nameOf(o)
		s.beside[key] = append(s.beside[key], at)
		return
	}
	s.seen = append(s.seen, at)
}

// Report waits until the witness has seen all present objects, and replays its history.
func (s *witness) Report() *history {
	s.w.t.Helper()
	s.w.Wait("the witness has seen all pods", func() error {
		pods, err := s.w.Kube.CoreV1().Pods(s.w.Namespace).List(s.w.Context, metav1.ListOptions{})
		if err != nil {
			return err
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		there := map[string]bool{}
		for i := range pods.Items {
			p := &pods.Items[i]
			there[p.Name] = true
			if seen := s.newest[p.Name]; seen == nil || seen.ResourceVersion != p.ResourceVersion {
				return fmt.Errorf("the last version of pod %s was not seen", p.Name)
			}
		}
		for name := range s.newest {
			if !there[name] {
				return fmt.Errorf("pod %s is gone, and was not seen to go", name)
			}
		}
		return nil
	})
	h := &history{
		pods: map[string]*podHistory{}, nodes: map[string]*nodeHistory{}, indexes: map[string]string{}, limit: s.limit,
		held: map[corev1.ResourceName]int64{}, most: map[corev1.ResourceName]int64{},
	}
	for _, at := range s.inOrder() {
		if at.pod != nil {
			h.pod(at)
		} else {
			h.node(at)
		}
	}
	return h
}

// inOrder returns the recorded versions of pods and nodes, in the order in which they were stored. The test fails if the witness missed
// something.
func (s *witness) inOrder() []sighting {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, err := range s.errors {
		s.w.t.Errorf("the witness: %v", err)
	}
	seen := slices.Clone(s.seen)
	slices.SortStableFunc(seen, func(a, b sighting) int { return cmp.Compare(a.version, b.version) })
	return seen
}

// history is the replay of what a witness recorded, with the violations.
type history struct {
	pods    map[string]*podHistory // by UID
	nodes   map[string]*nodeHistory
	indexes map[string]string // job/task/index -> UID of the pod that has it
	wrong   []string

	limit      corev1.ResourceList           // the same as witness.limit
	held, most map[corev1.ResourceName]int64 // what bound pods request, in thousandths: now, and the maximum so far
}

// podHistory is the history of one pod.
type podHistory struct {
	pod     *corev1.Pod // in its last seen version
	node    string
	bound   int       // how often it got a node
	boundAt time.Time // when that was seen
	boundIn uint64    // the version of the store in which it was bound
	deleted bool
}

// nodeHistory is the history of one node.
type nodeHistory struct {
	node    *corev1.Node
	pods    map[string]*corev1.Pod
	fullest map[corev1.ResourceName]float64 // the maximum fraction of its capacity that was requested at any time
	closed  time.Time                       // when it was seen deleted or cordoned; zero: it is open
	why     string
}

func (h *history) complain(format string, args ...any) {
	h.wrong = append(h.wrong, fmt.Sprintf(format, args...))
}

func (h *history) pod(at sighting) {
	p := at.pod
	uid := string(p.UID)
	l := h.pods[uid]
	if l == nil {
		l = &podHistory{}
		h.pods[uid] = l
	}
	l.pod, l.deleted = p, at.deleted
	h.index(at)
	switch node := p.Spec.NodeName; {
	case node == l.node:
	case l.node == "":
		l.node, l.boundAt, l.boundIn = node, at.at, at.version
		l.bound++
	default:
		h.complain("pod %s (%s) was on node %s, then on node %q", p.Name, uid, l.node, node)
	}
	if l.node == "" {
		return
	}
	n := h.nodes[l.node]
	if n == nil {
		h.complain("pod %s was bound to node %s, which nobody has seen", p.Name, l.node)
		return
	}
	if at.deleted || p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed {
		if n.pods[uid] != nil {
			h.hold(p, -1)
		}
		delete(n.pods, uid)
		return
	}
	if n.pods[uid] == nil {
		n.pods[uid] = p
		h.fits(n, p)
		h.hold(p, 1)
	}
}

// hold adds the requests of a pod to those of the queue (sign 1), or subtracts them (-1). It checks the capability after an addition.
func (h *history) hold(p *corev1.Pod, sign int64) {
	for i := range p.Spec.Containers {
		for name, q := range p.Spec.Containers[i].Resources.Requests {
			h.held[name] += sign * q.MilliValue()
		}
	}
	for _, name := range slices.Sorted(maps.Keys(h.limit)) {
		limit := h.limit[name]
		if h.most[name] = max(h.most[name], h.held[name]); sign > 0 && h.held[name] > limit.MilliValue() {
			h.complain("the queue may hold %s %s, and its pods hold %dm since pod %s came", limit.String(), name, h.held[name], p.Name)
		}
	}
}

// index records which pod has a position in a job. Two pods must not have the same position at the same time.
func (h *history) index(at sighting) {
	p := at.pod
	owner := metav1.GetControllerOf(p)
	if owner == nil || owner.Kind != "Job" {
		return
	}
	key := strings.Join([]string{string(owner.UID), p.Annotations[batchv1alpha1.TaskSpecKey], p.Annotations[batchv1alpha1.TaskIndex]}, "/")
	switch had := h.indexes[key]; {
	case at.deleted && had == string(p.UID):
		delete(h.indexes, key)
	case at.deleted:
	case had == "":
		h.indexes[key] = string(p.UID)
	case had != string(p.UID):
		h.complain("pods %s (%s) and %s have the same place %s in a job at the same time", h.pods[had].pod.Name, had, p.Name, key)
	}
}

// fits checks a node at the moment at which a pod was bound to it.
func (h *history) fits(n *nodeHistory, came *corev1.Pod) {
	asked := map[corev1.ResourceName]int64{corev1.ResourcePods: int64(len(n.pods)) * 1000}
	for _, p := range n.pods {
		for i := range p.Spec.Containers {
			for name, q := range p.Spec.Containers[i].Resources.Requests {
				asked[name] += q.MilliValue()
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(asked)) {
		has := n.node.Status.Allocatable[name]
		if n.fullest[name] = max(n.fullest[name], float64(asked[name])/float64(max(has.MilliValue(), 1))); asked[name] > has.MilliValue() {
			h.complain("node %s has %s %s, and its %d pods ask for %dm since pod %s came", n.node.Name, has.String(), name, len(n.pods),
				asked[name], came.Name)
		}
	}
}

func (h *history) node(at sighting) {
	n := h.nodes[at.node.Name]
	if n == nil {
		n = &nodeHistory{pods: map[string]*corev1.Pod{}, fullest: map[corev1.ResourceName]float64{}}
		h.nodes[at.node.Name] = n
	}
	n.node = at.node
	switch {
	case n.why != "":
	case at.deleted:
		n.closed, n.why = at.at, "deleted"
	case at.node.Spec.Unschedulable:
		n.closed, n.why = at.at, "cordoned"
	}
}

// boundLate lists the pods that were bound to a node after it was seen deleted or cordoned. Everything takes longer on a busy machine. So a
// pod counts only if its binding came more than grace later, and after more than the given number of other bindings. within is the number
// of the other late bindings.
func (h *history) boundLate(grace time.Duration, bindings int) (late []string, within int) {
	between := func(from, to time.Time) (n int) {
		for _, l := range h.pods {
			if l.boundAt.After(from) && l.boundAt.Before(to) {
				n++
			}
		}
		return n
	}
	for _, l := range h.pods {
		n := h.nodes[l.node]
		if n == nil || n.why == "" || !l.boundAt.After(n.closed) {
			continue
		}
		after, others := l.boundAt.Sub(n.closed), between(n.closed, l.boundAt)
		if after > grace && others > bindings {
			late = append(late, fmt.Sprintf("pod %s was bound to node %s %s, and %d other bindings, after that was %s", l.pod.Name, l.node, after,
				others, n.why))
		} else {
			within++
		}
	}
	slices.Sort(late)
	return late, within
}

// Check fails the test for each violation: a pod that was bound twice or moved, a node with more requests than capacity, two pods at one
// position of a job. Each existing pod that has not ended must be bound. Deleted pods need not have been bound.
func (h *history) Check(w *world) {
	w.t.Helper()
	const most = 20
	wrong := slices.Clone(h.wrong)
	for uid, l := range h.pods {
		switch {
		case l.bound > 1:
			wrong = append(wrong, fmt.Sprintf("pod %s (%s) was bound %d times", l.pod.Name, uid, l.bound))
		case l.bound == 0 && !l.deleted:
			wrong = append(wrong, fmt.Sprintf("pod %s (%s) is not bound: %s", l.pod.Name, uid, waitsFor(l.pod)))
		}
	}
	for _, text := range wrong[:min(len(wrong), most)] {
		w.t.Error(text)
	}
	if more := len(wrong) - most; more > 0 {
		w.t.Errorf("and %d more", more)
	}
}

// Of returns the recorded versions of a job's pods, one line each, in the order in which they were stored.
func (s *witness) Of(job types.UID) string {
	var b strings.Builder
	for _, at := range s.inOrder() {
		if at.pod == nil {
			continue
		}
		owner := metav1.GetControllerOf(at.pod)
		if owner == nil || owner.UID != job {
			continue
		}
		state := string(at.pod.Status.Phase)
		switch {
		case at.deleted:
			state += ", gone"
		case at.pod.DeletionTimestamp != nil:
			state += ", deleted"
		}
		fmt.Fprintf(&b, "\n%s %s (%.8s) of version %s on %q: %s", at.at.Format("15:04:05.000"), at.pod.Name, at.pod.UID,
			at.pod.Annotations[batchv1alpha1.JobVersion], at.pod.Spec.NodeName, state)
	}
	return b.String()
}

// bound returns how many pods were bound.
func (h *history) bound() int {
	n := 0
	for _, l := range h.pods {
		n += l.bound
	}
	return n
}

// fullest returns the maximum fraction of its capacity that was requested of any node at any time.
func (h *history) fullest(name corev1.ResourceName) float64 {
	most := 0.0
	for _, n := range h.nodes {
		most = max(most, n.fullest[name])
	}
	return most
}

// waitsFor returns the text of a pod about why it is not bound.
func waitsFor(p *corev1.Pod) string {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodScheduled {
			return fmt.Sprintf("%s: %s", c.Reason, c.Message)
		}
	}
	return "it has no condition PodScheduled"
}

// Count returns how many existing pods, in their last seen version, fulfill a condition.
func (s *witness) Count(fits func(*corev1.Pod) bool) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, p := range s.newest {
		if fits(p) {
			n++
		}
	}
	return n
}

// Bindings returns how many pods have been bound.
func (s *witness) Bindings() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, bound := range s.bound {
		if bound {
			n++
		}
	}
	return n
}

// Sightings returns how often a pod or node has changed.
func (s *witness) Sightings() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.seen)
}

// AllBound waits until n pods have existed, and each has been bound.
func (s *witness) AllBound(n int) {
	s.w.t.Helper()
	s.w.Wait(fmt.Sprintf("%d pods are bound", n), func() error {
		bound := s.Bindings()
		s.mu.Lock()
		defer s.mu.Unlock()
		if bound == n && len(s.bound) == n {
			return nil
		}
		why := ""
		for _, p := range s.newest {
			if p.Spec.NodeName == "" {
				why = "; " + p.Name + ": " + waitsFor(p)
			}
		}
		return fmt.Errorf("%d of %d are%s", bound, len(s.bound), why)
	})
}
