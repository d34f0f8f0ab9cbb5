package live

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	"github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
	"github.com/celsius-scheduler/celsius/engine/explain"
	"github.com/celsius-scheduler/celsius/engine/live/asks"
	"github.com/celsius-scheduler/celsius/engine/live/outbox"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/engine/volume"
)

// fakeServer is the part of an API server that the loop uses, in memory. Changes are added to a history. deliver passes them to the feed
// step by step, so that the loop can lag behind.
type fakeServer struct {
	t interface {
		Helper()
		Fatalf(format string, args ...any)
	}
	feed     *feed
	version  int
	pods     map[string]*corev1.Pod
	nodes    map[string]*corev1.Node
	groups   map[string]*v1beta1.PodGroup
	queues   map[string]*v1beta1.Queue
	volumes  map[string]*corev1.PersistentVolume
	claims   map[string]*corev1.PersistentVolumeClaim
	history  []change
	events   []string // "Pod default/a Scheduled"
	messages []string // the messages of events
	bindings []string // "default/a n1" for each accepted binding
	writes   []string // "group default/g Running", "pod default/a", "queue default", "bind default/a n1", "evict default/a"
	// onBind may answer a binding instead of the server: with an error before or after it is carried out.
	onBind func(b *corev1.Binding) (before, after error)
	onGet  func(name string) error
	onEnd  func(how, key string) error // may refuse an eviction or a deletion
}

func newFakeServer(t testing.TB) *fakeServer {
	return &fakeServer{
		t: t, feed: newFeed(), pods: map[string]*corev1.Pod{}, nodes: map[string]*corev1.Node{},
		groups: map[string]*v1beta1.PodGroup{}, queues: map[string]*v1beta1.Queue{},
		volumes: map[string]*corev1.PersistentVolume{}, claims: map[string]*corev1.PersistentVolumeClaim{},
	}
}

func (f *fakeServer) stamp(o metav1.Object) {
	f.version++
	o.SetResourceVersion(strconv.Itoa(f.version))
	if o.GetUID() == "" {
		o.SetUID(types.UID(fmt.Sprintf("uid-%d", f.version)))
	}
	if at := o.GetCreationTimestamp(); at.IsZero() {
		o.SetCreationTimestamp(metav1.NewTime(time.Now().Truncate(time.Second)))
	}
}

// put creates or replaces an object.
func (f *fakeServer) put(objects ...metav1.Object) {
	for _, o := range objects {
		f.stamp(o)
		key := model.Key(o.GetNamespace(), o.GetName())
		switch o := o.(type) {
		case *corev1.Pod:
			f.pods[key] = o
		case *corev1.Node:
			f.nodes[o.Name] = o
		case *v1beta1.PodGroup:
			f.groups[key] = o
		case *v1beta1.Queue:
			f.queues[o.Name] = o
		case *corev1.PersistentVolume:
			f.volumes[o.Name] = o
		case *corev1.PersistentVolumeClaim:
			f.claims[key] = o
		}
		f.history = append(f.history, change{op: model.Upsert, object: o})
	}
}

// drop deletes an object.
func (f *fakeServer) drop(o metav1.Object) {
	key := model.Key(o.GetNamespace(), o.GetName())
	switch o := o.(type) {
	case *corev1.Pod:
		delete(f.pods, key)
		for _, g := range f.groups {
			if owner := metav1.GetControllerOfNoCopy(g); owner != nil && owner.UID == o.UID {
				defer f.drop(g) // as the garbage collector does
			}
		}
	case *corev1.Node:
		delete(f.nodes, o.Name)
	case *v1beta1.PodGroup:
		delete(f.groups, key)
	case *corev1.PersistentVolume:
		delete(f.volumes, o.Name)
	case *corev1.PersistentVolumeClaim:
		delete(f.claims, key)
	}
	f.history = append(f.history, change{op: model.Delete, object: o})
}

// deliver passes the next n changes to the feed; all if n is below 0.
func (f *fakeServer) deliver(n int) {
	if n < 0 || n > len(f.history) {
		n = len(f.history)
	}
	for _, c := range f.history[:n] {
		f.feed.add(c, true)
	}
	f.history = f.history[n:]
}

var (
	podResource   = corev1.Resource("pods")
	errNoAnswer   = errors.New("read tcp: connection reset by peer")
	errUnderneath = errors.New("refused by the test")
)

// Bind implements pods as the API server does.
func (f *fakeServer) Bind(_ context.Context, b *corev1.Binding) error {
	var after error
	if f.onBind != nil {
		var before error
		if before, after = f.onBind(b); before != nil {
			return before
		}
	}
	if err := f.bind(b); err != nil {
		return err
	}
	return after
}

func (f *fakeServer) bind(b *corev1.Binding) error {
	key := model.Key(b.Namespace, b.Name)
	f.writes = append(f.writes, "bind "+key+" "+b.Target.Name)
	p := f.pods[key]
	switch {
	case p == nil:
		return apierrors.NewNotFound(podResource, b.Name)
	case p.UID != b.UID:
		return apierrors.NewConflict(podResource, b.Name, errors.New("precondition failed: UID"))
	case p.DeletionTimestamp != nil, p.Spec.NodeName != "", len(p.Spec.SchedulingGates) > 0:
		return apierrors.NewConflict(podResource, b.Name, errors.New("it is bound, being deleted or gated"))
	}
	p = p.DeepCopy()
	p.Spec.NodeName = b.Target.Name
	p.Status.Conditions = append(slices.DeleteFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodScheduled
	}), corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionTrue})
	for k, v := range b.Annotations {
		metav1.SetMetaDataAnnotation(&p.ObjectMeta, k, v)
	}
	f.put(p)
	f.bindings = append(f.bindings, key+" "+b.Target.Name)
	return nil
}

// Get implements pods.
func (f *fakeServer) Get(_ context.Context, namespace, name string) (*corev1.Pod, error) {
	if f.onGet != nil {
		if err := f.onGet(name); err != nil {
			return nil, err
		}
	}
	if p := f.pods[model.Key(namespace, name)]; p != nil {
		return p, nil
	}
	return nil, apierrors.NewNotFound(podResource, name)
}

// Evict implements pods.
func (f *fakeServer) Evict(_ context.Context, namespace, name string, uid types.UID) error {
	return f.end("evict", namespace, name, uid)
}

// Delete implements pods.
func (f *fakeServer) Delete(_ context.Context, namespace, name string, uid types.UID) error {
	return f.end("delete", namespace, name, uid)
}

// end deletes a pod: at once, or with a grace period when the test drops it.
func (f *fakeServer) end(how, namespace, name string, uid types.UID) error {
	key := model.Key(namespace, name)
	if f.onEnd != nil {
		if err := f.onEnd(how, key); err != nil {
			return err
		}
	}
	p := f.pods[key]
	switch {
	case p == nil:
		return apierrors.NewNotFound(podResource, name)
	case p.UID != uid:
		return apierrors.NewConflict(podResource, name, errors.New("precondition failed: UID"))
	}
	f.writes = append(f.writes, how+" "+key)
	if p.Spec.TerminationGracePeriodSeconds == nil {
		f.drop(p)
		return nil
	}
	f.as(key, func(p *corev1.Pod) {
		now := metav1.NewTime(time.Now().Truncate(time.Second))
		p.DeletionTimestamp = &now
		if how == "evict" { // as the API server does
			p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{
				Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: "EvictionByEvictionAPI", Message: "Eviction API: evicting",
			})
		}
	})
	return nil
}

// PatchStatus implements pods.
func (f *fakeServer) PatchStatus(_ context.Context, namespace, name string, patch []byte) error {
	key := model.Key(namespace, name)
	p := f.pods[key]
	if p == nil {
		return apierrors.NewNotFound(podResource, name)
	}
	var meta applyBody
	if err := json.Unmarshal(patch, &meta); err != nil {
		f.t.Fatalf("patch of %s: %v", key, err)
	}
	if version := meta.Metadata.ResourceVersion; meta.Metadata.UID != p.UID || version != "" && version != p.ResourceVersion {
		return apierrors.NewConflict(podResource, name, errors.New("it has changed"))
	}
	old, err := json.Marshal(p)
	if err != nil {
		f.t.Fatalf("%v", err)
	}
	merged, err := strategicpatch.StrategicMergePatch(old, patch, &corev1.Pod{})
	if err != nil {
		f.t.Fatalf("patch of %s: %v", key, err)
	}
	next := &corev1.Pod{}
	if err := json.Unmarshal(merged, next); err != nil {
		f.t.Fatalf("%v", err)
	}
	f.writes = append(f.writes, "pod "+key)
	f.put(next)
	return nil
}

// MakeGroup implements statusWriter.
func (f *fakeServer) MakeGroup(_ context.Context, g *v1beta1.PodGroup) error {
	key := model.Key(g.Namespace, g.Name)
	if f.groups[key] != nil {
		return apierrors.NewAlreadyExists(v1beta1.Resource("podgroups"), g.Name)
	}
	stored := g.DeepCopy()
	f.put(stored)
	stored.DeepCopyInto(g)
	f.writes = append(f.writes, "made group "+key+" "+string(g.Status.Phase))
	return nil
}

// ApplyGroup implements statusWriter.
func (f *fakeServer) ApplyGroup(_ context.Context, namespace, name string, apply []byte) (*v1beta1.PodGroup, error) {
	key := model.Key(namespace, name)
	next := &v1beta1.PodGroup{}
	if err := json.Unmarshal(apply, next); err != nil {
		f.t.Fatalf("apply of %s: %v", key, err)
	}
	g := f.groups[key]
	if g == nil || g.UID != next.UID {
		return nil, apierrors.NewConflict(v1beta1.Resource("podgroups"), name, errors.New("UID"))
	}
	g = g.DeepCopy()
	g.Status = next.Status
	f.put(g)
	f.writes = append(f.writes, "group "+key+" "+string(g.Status.Phase))
	return g, nil
}

// ApplyQueue implements statusWriter.
func (f *fakeServer) ApplyQueue(_ context.Context, name string, apply []byte) error {
	next := &v1beta1.Queue{}
	if err := json.Unmarshal(apply, next); err != nil {
		f.t.Fatalf("apply of %s: %v", name, err)
	}
	q := f.queues[name].DeepCopy()
	q.Status.Allocated = next.Status.Allocated
	f.writes = append(f.writes, "queue "+name)
	f.put(q)
	return nil
}

// CreateWithEventNamespaceWithContext implements events.Server.
func (f *fakeServer) CreateWithEventNamespaceWithContext(_ context.Context, e *corev1.Event) (*corev1.Event, error) {
	f.events = append(f.events, fmt.Sprintf("%s %s %s", e.InvolvedObject.Kind, model.Key(e.InvolvedObject.Namespace, e.InvolvedObject.Name),
		e.Reason))
	f.messages = append(f.messages, e.Message)
	return e, nil
}

// PatchWithEventNamespaceWithContext implements events.Server.
func (f *fakeServer) PatchWithEventNamespaceWithContext(_ context.Context, e *corev1.Event, _ []byte) (*corev1.Event, error) {
	return e, nil
}

// rig is a loop with a fake server. The test runs the cycles and the writes itself, one by one.
type rig struct {
	*loop
	server *fakeServer
	ctx    context.Context
}

func newRig(t *testing.T) *rig {
	t.Helper()
	f := newFakeServer(t)
	p, issues := policy.Default()
	if issues.Err() != nil {
		t.Fatal(issues.Err())
	}
	return newRigOf(f, p)
}

func newRigOf(f *fakeServer, p *policy.Policy) *rig {
	log := logr.Discard()
	out, m, nodes := outbox.New(8), newMetrics(), &nodeBook{}
	said := newRecorder(newScheme(), f, out, m, log)
	names := []string{"celsius", "volcano"}
	cluster := model.NewCluster(model.Options{Volumes: volume.New, SchedulerNames: names})
	l := &loop{
		period: time.Second, window: 20 * time.Millisecond, gangTimeout: time.Minute, policy: func() *policy.Policy { return p },
		cluster: cluster,
		parts: parts{
			feed: f.feed, outbox: out, intake: newIntake(names, nodes, phaseIn(cluster)),
			statuses: &statuses{
				server: f, pods: f, outbox: out, feed: f.feed, events: said, log: log, waits: map[string]*waiting{},
				queues: map[string]*queueState{}, open: map[string]bool{},
			},
			binder: &binder{
				pods: f, storage: f, volumeTimeout: time.Minute, nodes: nodes, outbox: out, feed: f.feed, metrics: m, log: log,
				scheduled: scheduledEvents(said, m, BindingsOfPods), sentAway: evictedEvents(said),
			},
			asks: newAsks(asks.Options{}, f.feed, m, log), events: said, verifier: newVerifier(0, m, said, log), metrics: m, log: log,
		},
		volumes: volume.New, recoveries: newRecoveries(),
		broken: map[string]*group{}, evicts: newEvictor(), told: told{faults: map[string]time.Time{}},
	}
	return &rig{l, f, context.Background()}
}

// tick runs one cycle on the delivered changes.
func (r *rig) tick() {
	r.once(time.Now())
	if err := r.cluster.Check(); err != nil {
		r.server.t.Fatalf("%v", err)
	}
	r.checkTold()
}

// checkTold checks that the skipped groups have the status that a comparison of all groups would find.
func (r *rig) checkTold() {
	for _, st := range r.statuses.told {
		g := r.intake.groups[st.Job]
		if r.statuses.open[st.Job] || g == nil || g.object == nil || r.cluster.Jobs[st.Job] == nil {
			continue
		}
		base := &g.seen
		if g.want != nil {
			base = g.want
		}
		if g.broken != nil || base.compare(st) != same {
			r.server.t.Fatalf("group %s is not looked at again, and has %+v, not %+v", st.Job, *base, *st)
		}
	}
}

// work runs the next write; false: there is none.
func (r *rig) work() bool {
	if _, ok := r.peek(); !ok {
		return false
	}
	return r.outbox.Step(r.ctx)
}

func (r *rig) peek() (outbox.Class, bool) {
	for c, n := range r.outbox.Depths() {
		if n > 0 {
			return outbox.Class(c), true
		}
	}
	return 0, false
}

// ask asks a question, and takes the snapshots for it, as the loop does. It returns the longest time for which the question held the loop.
func (r *rig) ask(ctx context.Context, do func(*explain.Cycle)) (held time.Duration, err error) {
	done := make(chan error, 1)
	go func() { done <- r.Look(ctx, do) }()
	for {
		select {
		case q := <-r.looks:
			began := time.Now()
			r.look(q)
			held = max(held, time.Since(began))
		case err := <-done:
			return held, err
		}
	}
}

// settle runs cycles and writes until nothing was written for this number of seconds.
func (r *rig) settle(seconds int) {
	r.server.t.Helper()
	for quiet := time.Duration(0); quiet < time.Duration(seconds)*time.Second; {
		r.server.deliver(-1)
		writes := len(r.server.writes)
		r.tick()
		for r.work() {
		}
		step := 100 * time.Millisecond
		if quiet >= 2*time.Second {
			step = time.Second
		}
		if quiet += step; len(r.server.writes) > writes {
			quiet = 0
		}
		time.Sleep(step) // the clock of the bubble
	}
}

func testNode(name, cpu string) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name}}}
	n.Status.Allocatable = corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse("64Gi"),
		corev1.ResourcePods: resource.MustParse("110"),
	}
	n.Status.Capacity = n.Status.Allocatable
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	return n
}

func testPod(name, group, cpu string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Annotations: map[string]string{}}}
	if group != "" {
		p.Annotations[model.GroupAnnotation] = group
	}
	p.Spec.SchedulerName = "celsius"
	p.Spec.Containers = []corev1.Container{{Name: "c", Image: "i", Resources: corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)},
	}}}
	p.Status.Phase = corev1.PodPending
	return p
}

func testGroup(name string, minMember int32) *v1beta1.PodGroup {
	g := &v1beta1.PodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	g.Spec.MinMember, g.Spec.Queue, g.Status.Phase = minMember, "default", v1beta1.PodGroupPending
	return g
}

func testQueue(name string) *v1beta1.Queue {
	q := &v1beta1.Queue{ObjectMeta: metav1.ObjectMeta{Name: name}}
	q.Spec.Weight, q.Status.State = 1, v1beta1.QueueStateOpen
	return q
}

// as changes a pod as a kubelet or a user would.
func (f *fakeServer) as(key string, change func(*corev1.Pod)) {
	p := f.pods[key].DeepCopy()
	change(p)
	f.put(p)
}
