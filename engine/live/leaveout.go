package live

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
	"github.com/celsius-scheduler/celsius/engine"
	"github.com/celsius-scheduler/celsius/engine/live/recovery"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
)

// leftOutName is the scheduler name, in the model, of a pod that only counts on its node. No real scheduler can have this name.
const leftOutName = "/left-out"

// mostUnnamed is the number of panics per cycle that may name no object. Rebuilding the model may help, but it is not repeated forever.
const mostUnnamed = 2

// mostRecoveries is the number of panics that one cycle recovers before the loop waits for the next period.
const mostRecoveries = 32

// leftOut is an object at which the scheduler panicked. The scheduler leaves it out until it changes.
type leftOut struct {
	print string
	// times is the number of panics at this version of the object. After each panic the model contains less of it: see stands.
	times int
}

// recoveries stores the state of the panics that the loop recovered.
type recoveries struct {
	// mirror contains the version of each object that the loop took in last. It is the source for rebuilding a model that may be half changed.
	mirror map[recovery.Object]any
	out    map[recovery.Object]*leftOut
	sent   map[string]*order // bindings that the pods do not show yet, by task
	// unnamed is the number of panics of this cycle after which no object was left out.
	unnamed int
	half    bool           // the last rebuild failed: no cycle runs
	place   recovery.Place // the part of the loop that guard runs
}

func newRecoveries() recoveries {
	return recoveries{mirror: map[recovery.Object]any{}, out: map[recovery.Object]*leftOut{}, sent: map[string]*order{}}
}

// guard runs a part of the loop. After a panic it leaves out the object that was handled, rebuilds the model and returns false.
func (l *loop) guard(at recovery.Place, do func()) bool {
	l.cluster.Turn, l.place = nil, at
	p := recovery.Catch(at, do)
	if p == nil {
		l.cluster.Turn = nil
		return true
	}
	l.recovered(p, l.cluster.Turn)
	l.rebuild()
	l.feed.nudge()
	return false
}

// recovered counts and reports a panic, and leaves the object out.
func (l *loop) recovered(p *recovery.Panic, turn any) {
	id := l.root(turn)
	p.Object = id
	if x, ok := turn.(*policy.Attribute); ok {
		p.Row = "attributes/" + x.Table + "/" + x.Name
	}
	l.metrics.panics.WithLabelValues(string(p.Place)).Inc()
	l.log.Error(nil, "a panic was recovered", "place", p.Place, "object", id.String(), "cause", p.Cause, "policy", l.stamp, "stack", p.Stack)
	o, ok := l.mirror[id]
	if !ok {
		l.unnamed++
		return
	}
	if x := l.out[id]; x != nil {
		x.times++
		return
	}
	l.out[id] = &leftOut{print: fingerprint(o), times: 1}
	if on, ok := o.(runtime.Object); ok {
		l.events.Eventf(on, corev1.EventTypeWarning, eventLeftOut,
			"the scheduler failed at this %s and leaves it out until it changes: panic in %s: %s", id.Kind, p.Place, p.Cause)
	}
}

// root returns the stored object to leave out after a panic: the PodGroup of a job, or the pod if the PodGroup does not exist.
func (l *loop) root(turn any) recovery.Object {
	switch o := turn.(type) {
	case *model.Job:
		if id := idOf(o.Object); l.mirror[id] != nil {
			return id
		}
		if g := l.intake.groups[o.Key]; g != nil && g.assumed.pod != nil {
			return idOf(g.assumed.pod)
		}
		if len(o.Tasks) > 0 {
			return idOf(o.Tasks[0].Object)
		}
		return recovery.Object{}
	case *model.Task:
		return idOf(o.Object)
	case *model.Queue:
		return idOf(o.Object)
	}
	id := idOf(turn)
	if pod, ok := turn.(*corev1.Pod); ok && l.mirror[id] == nil {
		return idOf(pod)
	}
	if o, ok := turn.(*v1beta1.PodGroup); ok && l.mirror[id] == nil {
		if g := l.intake.groups[model.Key(o.Namespace, o.Name)]; g != nil && g.assumed.pod != nil {
			return idOf(g.assumed.pod)
		}
	}
	return id
}

// idOf returns the kind and the name of an object. It returns zero for nil and for a value that is not an object.
func idOf(object any) recovery.Object {
	switch o := object.(type) {
	case *corev1.Pod:
		if o == nil {
			return recovery.Object{}
		}
		return recovery.Object{Kind: "Pod", Namespace: o.Namespace, Name: o.Name}
	case *v1beta1.PodGroup:
		if o == nil {
			return recovery.Object{}
		}
		return recovery.Object{Kind: "PodGroup", Namespace: o.Namespace, Name: o.Name}
	}
	kind, meta, ok := model.Identify(object)
	if !ok {
		return recovery.Object{}
	}
	return recovery.Object{Kind: kind, Namespace: meta.GetNamespace(), Name: meta.GetName()}
}

// fingerprint returns the part of an object that its owner writes. It omits a status that other writers change often.
func fingerprint(object any) string {
	text, err := json.Marshal(object)
	var fields map[string]any
	if err != nil || json.Unmarshal(text, &fields) != nil {
		return fmt.Sprintf("%p", object)
	}
	if meta, ok := fields["metadata"].(map[string]any); ok {
		for _, name := range []string{"resourceVersion", "managedFields", "generation"} {
			delete(meta, name)
		}
	}
	switch object.(type) {
	case *corev1.Pod, *v1beta1.PodGroup, *v1beta1.Queue:
		delete(fields, "status")
	}
	text, _ = json.Marshal(fields) //nolint:errchkjson // it was read from JSON
	return string(text)
}

// groupID returns the ID of the PodGroup that a pod names.
func groupID(o *corev1.Pod) recovery.Object {
	return recovery.Object{Kind: "PodGroup", Namespace: o.Namespace, Name: model.GroupOf(o)}
}

// sees stores a change in the mirror. It returns the changes to take in: this change, and those of objects that are no longer left out.
func (l *loop) sees(c change) []change {
	id := idOf(c.object)
	if id == (recovery.Object{}) {
		return []change{c}
	}
	was := l.mirror[id]
	if c.op == model.Delete {
		delete(l.mirror, id)
	} else {
		l.mirror[id] = c.object
	}
	pod, isPod := c.object.(*corev1.Pod)
	if isPod {
		l.arrives(pod, c.op)
	}
	if len(l.out) == 0 {
		return []change{c}
	}
	changed := c.op == model.Delete || was == nil
	if x := l.out[id]; x != nil && (changed || x.print != fingerprint(c.object)) {
		delete(l.out, id)
		return l.members(id, l.stand(nil, c))
	}
	if isPod {
		if group := groupID(pod); l.out[group] != nil && (changed || fingerprint(was) != fingerprint(pod)) {
			delete(l.out, group)
			if o := l.mirror[group]; o != nil {
				return l.members(group, l.stand([]change{{op: model.Upsert, object: o}}, c))
			}
			return l.members(group, l.stand(nil, c))
		}
	}
	return l.stand(nil, c)
}

// arrives forgets the sent binding of a pod once the pod shows its node or is gone.
func (l *loop) arrives(pod *corev1.Pod, op model.Op) {
	key := model.Key(pod.Namespace, pod.Name)
	if o := l.sent[key]; o != nil && (op == model.Delete || pod.Spec.NodeName != "" || string(pod.UID) != o.UID) {
		delete(l.sent, key)
	}
}

// stand appends a change in the form that stands returns, unless the model must not contain the object.
func (l *loop) stand(all []change, c change) []change {
	if c, ok := l.stands(c); ok {
		return append(all, c)
	}
	return all
}

// members appends the pods of a PodGroup that is no longer left out.
func (l *loop) members(group recovery.Object, all []change) []change {
	if group.Kind != "PodGroup" {
		return all
	}
	for id, o := range l.mirror {
		if pod, ok := o.(*corev1.Pod); ok && id.Namespace == group.Namespace && model.GroupOf(pod) == group.Name {
			all = l.stand(all, change{op: model.Upsert, object: pod})
		}
	}
	return all
}

// stands returns a change as the intake takes it in. For an object that is left out, the model contains only what other decisions need.
// This is the amounts of a pod on a node, the queue of a PodGroup, or the capacity of a node. A pod without a node is not in the model. ok
// is false if such a pod was not in the model before either.
func (l *loop) stands(c change) (as change, ok bool) {
	if c.op == model.Delete || len(l.out) == 0 {
		return c, true
	}
	x := l.out[idOf(c.object)]
	switch o := c.object.(type) {
	case *corev1.Pod:
		if x == nil {
			if x = l.out[groupID(o)]; x == nil {
				return c, true
			}
		}
		if node := l.nodeOf(o); node != "" {
			c.object = plainPod(o, node, x.times)
			return c, true
		}
		if key := model.Key(o.Namespace, o.Name); l.cluster.Tasks[key] == nil {
			return c, false
		}
	case *v1beta1.PodGroup:
		if x == nil {
			return c, true
		}
		if x.times < 2 {
			c.object = plainGroup(o)
			return c, true
		}
	case *corev1.Node:
		if x == nil {
			return c, true
		}
		if x.times < 2 {
			c.object = &corev1.Node{
				ObjectMeta: metav1.ObjectMeta{Name: o.Name, UID: o.UID, ResourceVersion: o.ResourceVersion},
				Spec:       corev1.NodeSpec{Unschedulable: true},
				Status:     corev1.NodeStatus{Allocatable: o.Status.Allocatable, Capacity: o.Status.Capacity, Conditions: o.Status.Conditions},
			}
			return c, true
		}
	default:
		if x == nil {
			return c, true
		}
	}
	c.op = model.Delete
	return c, true
}

// nodeOf returns the node on which a pod counts: its own node, or the node of a binding that was sent.
func (l *loop) nodeOf(o *corev1.Pod) string {
	if o.Spec.NodeName != "" {
		return o.Spec.NodeName
	}
	if sent := l.sent[model.Key(o.Namespace, o.Name)]; sent != nil && sent.UID == string(o.UID) {
		return sent.Node
	}
	return ""
}

// plainPod returns a pod that contains only its usage of its node and of its queue. After a second panic it has no devices. After a third
// panic it counts only on its node, as a pod of another scheduler does.
func plainPod(o *corev1.Pod, node string, times int) *corev1.Pod {
	plain := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: o.Namespace, Name: o.Name, UID: o.UID, ResourceVersion: o.ResourceVersion, CreationTimestamp: o.CreationTimestamp,
			DeletionTimestamp: o.DeletionTimestamp, OwnerReferences: o.OwnerReferences, Annotations: map[string]string{},
		},
		Spec: corev1.PodSpec{
			SchedulerName: o.Spec.SchedulerName, NodeName: node, Priority: o.Spec.Priority, Overhead: o.Spec.Overhead,
			Resources: o.Spec.Resources,
		},
		Status: corev1.PodStatus{Phase: o.Status.Phase, StartTime: o.Status.StartTime},
	}
	if times < 2 {
		plain.Annotations = maps.Clone(o.Annotations)
		plain.Status = o.Status
	} else if name := model.GroupOf(o); name != "" {
		plain.Annotations[model.GroupAnnotation] = name
	}
	if times > 2 {
		plain.Spec.SchedulerName = leftOutName
		delete(plain.Annotations, model.GroupAnnotation)
	}
	for _, list := range []struct {
		from []corev1.Container
		to   *[]corev1.Container
	}{{o.Spec.InitContainers, &plain.Spec.InitContainers}, {o.Spec.Containers, &plain.Spec.Containers}} {
		for i := range list.from {
			ctr := &list.from[i]
			*list.to = append(*list.to, corev1.Container{Name: ctr.Name, Resources: ctr.Resources, RestartPolicy: ctr.RestartPolicy})
		}
	}
	return plain
}

// plainGroup returns a PodGroup with only its queue and status, so that its pods on nodes count in the queue.
func plainGroup(o *v1beta1.PodGroup) *v1beta1.PodGroup {
	plain := &v1beta1.PodGroup{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: o.Namespace, Name: o.Name, UID: o.UID, ResourceVersion: o.ResourceVersion, CreationTimestamp: o.CreationTimestamp,
			OwnerReferences: o.OwnerReferences,
		},
	}
	plain.Spec.Queue, plain.Status = o.Spec.Queue, o.Status
	return plain
}

// isOut reports whether a job is left out, so that no status is written for it.
func (l *loop) isOut(group *v1beta1.PodGroup) bool {
	return len(l.out) > 0 && group != nil && l.out[idOf(group)] != nil
}

// rebuild creates the model and the intake again from the mirror, and from the bindings and evictions that were sent. It leaves out objects
// at which this panics. After too many panics the model is half built, and the next cycle begins with another rebuild.
func (l *loop) rebuild() {
	for range mostRecoveries {
		var turn any
		p := recovery.Catch(recovery.Intake, func() { l.rebuilt(&turn) })
		if l.half = p != nil; !l.half {
			return
		}
		if l.cluster.Turn != nil {
			turn = l.cluster.Turn
		}
		l.recovered(p, turn)
	}
}

func (l *loop) rebuilt(turn *any) {
	old, before := l.cluster, l.intake
	c := model.NewCluster(model.Options{SchedulerNames: before.names, Volumes: l.volumes, Limits: old.Limits})
	in := newIntake(before.names, before.nodes, phaseIn(c))
	in.holds = before.holds
	for key, g := range before.groups {
		in.groups[key] = g.remembered()
	}
	c.OnTurn, l.place = old.OnTurn, recovery.Intake
	l.cluster, l.intake, l.decider, l.deltas = c, in, engine.Decider{}, l.deltas[:0]
	l.verifier.policy, l.plan = nil, nil
	l.statuses.told, l.statuses.stale = nil, true // the statuses of a plan may have been written in part
	ids := slices.SortedFunc(maps.Keys(l.mirror), groupsBeforePods)
	now := time.Now()
	for _, id := range ids {
		*turn = l.mirror[id]
		if c, ok := l.stands(change{op: model.Upsert, object: l.mirror[id]}); ok && c.op == model.Upsert {
			l.deltas = in.object(l.deltas, c, now)
		}
	}
	*turn = nil
	l.record.Again()
	l.objects.Clear()
	l.apply()
	maps.DeleteFunc(in.groups, func(_ string, g *group) bool { return g.idle() })
	maps.DeleteFunc(l.broken, func(key string, _ *group) bool { return in.groups[key] == nil || in.groups[key].broken == nil })
	for key := range l.broken {
		l.broken[key] = in.groups[key]
	}
	l.resume(old)
}

// groupsBeforePods orders objects so that a PodGroup is known before its pods.
func groupsBeforePods(a, b recovery.Object) int {
	rank := func(o recovery.Object) int {
		switch o.Kind {
		case "Pod":
			return 2
		case "PodGroup":
			return 1
		}
		return 0
	}
	if d := rank(a) - rank(b); d != 0 {
		return d
	}
	return strings.Compare(a.String(), b.String())
}

// remembered returns the state of a group that its object and its pods do not show.
func (g *group) remembered() *group {
	return &group{
		uid: g.uid, assumed: assumed{reached: g.assumed.reached}, seen: g.seen, version: g.version, want: g.want, differs: g.differs,
		written: g.written, retry: g.retry, wasWhole: g.wasWhole, broken: g.broken, groupSaid: g.groupSaid,
		members: members{asked: g.members.asked},
	}
}

// resume restores in the model the decisions that were sent and that the objects do not show yet.
func (l *loop) resume(old *model.Cluster) {
	for key, o := range l.sent {
		if t := l.cluster.Tasks[key]; t != nil && t.UID == o.UID && t.Status == model.Pending {
			record := o.record
			model.Resume(l.cluster, t, model.Binding, &record, o.Volumes)
		}
	}
	txn := l.cluster.Begin()
	for key, e := range l.evicts.leaving {
		if t := l.cluster.Tasks[key]; t != nil && t.UID == e.UID && t.MayGo() {
			txn.Evict(t)
		}
	}
	txn.Commit()
	for key, was := range old.Tasks {
		if t := l.cluster.Tasks[key]; t != nil && t.UID == was.UID {
			t.Spare(was.Spared)
			if was.NominatedNode != "" && t.Waits() {
				l.cluster.Nominate(t, was.NominatedNode)
			}
		}
	}
	l.cluster.Past = old.Past
	l.cluster.CloseCycle()
}

// workerPanic is a panic in a worker of the outbox.
type workerPanic struct {
	on any
	p  *recovery.Panic
}

// workerFailed handles a panic of a worker. The worker changed nothing in the model.
func (l *loop) workerFailed(o *workerPanic) {
	l.recovered(o.p, o.on)
	l.rebuild()
}

// guarded returns a write for an object in a form that recovers a panic and reports it to the loop.
func guarded(f *feed, on any, do func(context.Context), failed func()) func(context.Context) {
	return func(ctx context.Context) {
		p := recovery.Catch(recovery.Worker, func() { do(ctx) })
		if p == nil {
			return
		}
		if failed != nil {
			failed()
		}
		f.add(change{object: &workerPanic{on, p}}, true)
	}
}
