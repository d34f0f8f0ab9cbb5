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

// leftOutName is the scheduler, in the model, of a pod that counts on its node alone. No scheduler can have this name.
const leftOutName = "/left-out"

// mostUnnamed is how many panics of one cycle may name no object: a rebuilt model alone may be enough, but it is not rebuilt for ever.
const mostUnnamed = 2

// mostRecoveries is how many panics one cycle recovers before the loop waits for the next period.
const mostRecoveries = 32

// leftOut is an object at which the scheduler panicked. The scheduler leaves it out until it changes.
type leftOut struct {
	print string
	// times is how often the scheduler panicked at the object as it is. Each time the model has less of it: see stands.
	times int
}

// recoveries are what the loop knows of panics that it recovered.
type recoveries struct {
	// mirror has each object as the loop took it in last. A model that may be half changed is rebuilt from it.
	mirror map[recovery.Object]any
	out    map[recovery.Object]*leftOut
	sent   map[string]*order // bindings that the pods do not show yet, by task
	// unnamed counts the panics of this cycle after which no object was left out.
	unnamed int
	half    bool           // the last rebuild failed: no cycle is made
	place   recovery.Place // of the guard that runs
}

func newRecoveries() recoveries {
	return recoveries{mirror: map[recovery.Object]any{}, out: map[recovery.Object]*leftOut{}, sent: map[string]*order{}}
}

// guard runs a part of the loop's work. After a panic it leaves out the object that was handled, rebuilds the model and returns false.
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

// root is the stored object that is left out for what was handled: the PodGroup of a job, or the pod where the PodGroup does not exist.
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

// idOf is the name of an object with its kind; zero for nil and for what is no object.
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

// groupID is the PodGroup of a pod.
func groupID(o *corev1.Pod) recovery.Object {
	return recovery.Object{Kind: "PodGroup", Namespace: o.Namespace, Name: model.GroupOf(o)}
}

// sees mirrors a change, and returns the changes to take in: that of the object, and those of objects that are left out no more.
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

// arrives forgets that a pod was sent to a node, once the pod itself shows its node or is gone.
func (l *loop) arrives(pod *corev1.Pod, op model.Op) {
	key := model.Key(pod.Namespace, pod.Name)
	if o := l.sent[key]; o != nil && (op == model.Delete || pod.Spec.NodeName != "" || string(pod.UID) != o.UID) {
		delete(l.sent, key)
	}
}

// stand appends a change in the form that the intake may take in: see stands.
func (l *loop) stand(all []change, c change) []change {
	if c, ok := l.stands(c); ok {
		return append(all, c)
	}
	return all
}

// members appends the pods of a PodGroup that is left out no more.
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

// stands returns a change as the intake takes it in. Of an object that is left out, the model has only what counts: the amounts of a pod
// that is on a node, the queue of a PodGroup, the capacity of a node. A pod that is on no node is not in the model; false: it was not
// before.
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

// nodeOf is the node on which a pod counts: its own, or that of a binding that was sent.
func (l *loop) nodeOf(o *corev1.Pod) string {
	if o.Spec.NodeName != "" {
		return o.Spec.NodeName
	}
	if sent := l.sent[model.Key(o.Namespace, o.Name)]; sent != nil && sent.UID == string(o.UID) {
		return sent.Node
	}
	return ""
}

// plainPod is a pod with nothing but what it takes of its node and of its queue. After a second panic it has no devices, after a third one
// it counts on its node alone, as the pod of another scheduler does.
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

// plainGroup is a PodGroup whose pods that are on nodes count in its queue.
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

// rebuild makes the model and the intake again from the objects as they were taken in last, and from the bindings and evictions that were
// sent. Objects at which that panics are left out. After too many panics the model is half, and the next cycle begins with another rebuild.
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
	l.statuses.told, l.statuses.stale = nil, true // what a plan reports may have been reported in part
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

// remembered is what is known of a group that its object and its pods do not show.
func (g *group) remembered() *group {
	return &group{
		uid: g.uid, assumed: assumed{reached: g.assumed.reached}, seen: g.seen, version: g.version, want: g.want, differs: g.differs,
		written: g.written, retry: g.retry, wasWhole: g.wasWhole, broken: g.broken, groupSaid: g.groupSaid,
		members: members{asked: g.members.asked},
	}
}

// resume has the model assume again what was decided and sent, and the objects do not show.
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

// workerFailed takes in a panic of a worker. The worker changed nothing in the model.
func (l *loop) workerFailed(o *workerPanic) {
	l.recovered(o.p, o.on)
	l.rebuild()
}

// guarded is a write that a worker does for an object: a panic in it is left to the loop.
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
