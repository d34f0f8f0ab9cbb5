package sim

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	schedulingv1beta1 "github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
	"github.com/celsius-scheduler/celsius/engine"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/engine/sim/manifest"
	"github.com/celsius-scheduler/celsius/engine/sim/stored"
	"github.com/celsius-scheduler/celsius/rules/source"
)

// Options configures a world. The zero value is usable.
type Options struct {
	// Now is the start of the clock; zero: 2026-01-05T12:00:00Z, a Monday.
	Now time.Time
	// Seed permutes nodes with equal scores, and is the seed of hash01; 0: order by name.
	Seed int64
	// SchedulerNames are the spec.schedulerName values of our pods; none: celsius, volcano.
	SchedulerNames []string
	// Shuffle, if not 0, is the seed of the order in which objects are added to the cluster. No decision may depend on this order.
	Shuffle int64
	// Decide computes plans; nil: an engine.Decider does.
	Decide engine.DecideFunc
	// Volumes is the volume library, such as engine/volume; nil: none, and pods with volumes are not placed.
	Volumes model.VolumeLibrary
	// MaxObjects is manifest.Options.MaxObjects for Load.
	MaxObjects int
	// ObeySimAnnotations applies the annotation celsius.dev/sim of objects that were read from a cluster. Every user of a cluster can write
	// it, and so could hide resources that are in use.
	ObeySimAnnotations bool
}

// World is a simulated cluster of objects, with a clock. It does the work of everything around a scheduler. It is not safe for concurrent
// use.
type World struct {
	// Policy decides. It may be replaced between cycles.
	Policy *policy.Policy

	decider    decider
	began, now time.Time
	schedulers []string
	maxObjects int
	obeySim    bool       // apply the lives in annotations of pods from a cluster
	shuffle    *rand.Rand // nil: objects are added by name
	cluster    *model.Cluster
	store
	agenda
	plugins jobPlugins
	history history
	counted map[manifest.ID]bool // budgets whose status the world computes
	afresh
	turned bool // the last cycle left PodGroups in another phase, which the next one reads
}

// decider computes the plans of a world.
type decider struct {
	engine.Decider
	other engine.DecideFunc // replaces the Decider; nil: none
}

func (d *decider) decide(c *model.Cluster, p *policy.Policy, now time.Time) *model.Plan {
	if d.other != nil {
		return d.other(c, p, now)
	}
	return d.Decide(c, p, now)
}

// NewWorld returns an empty world.
func NewWorld(o Options) *World {
	w := &World{
		decider:    decider{other: o.Decide},
		now:        o.Now,
		schedulers: manifest.OurSchedulers(o.SchedulerNames),
		maxObjects: o.MaxObjects,
		obeySim:    o.ObeySimAnnotations,
		cluster: model.NewCluster(model.Options{
			Seed: o.Seed, SchedulerNames: manifest.OurSchedulers(o.SchedulerNames), Volumes: o.Volumes,
		}),
		store: store{
			objects: map[manifest.ID]metav1.Object{}, ofCluster: stored.New(), unexplained: map[manifest.ID]corev1.ResourceList{},
			restricting: map[manifest.ID]bool{},
		},
		agenda:  agenda{leaving: map[manifest.ID]time.Time{}, due: map[manifest.ID]time.Time{}, unadmitted: map[manifest.ID]bool{}},
		history: history{of: map[manifest.ID]*span{}},
		counted: map[manifest.ID]bool{},
		afresh:  newAfresh(),
	}
	if w.now.IsZero() {
		w.now = time.Date(2026, 1, 5, 12, 0, 0, 0, time.UTC)
	}
	w.began = w.now
	if o.Shuffle != 0 {
		w.shuffle = rand.New(rand.NewPCG(uint64(o.Shuffle), 0))
	}
	return w
}

// Now returns the time of the world's clock.
func (w *World) Now() time.Time { return w.now }

// Cluster returns the model that decisions are based on. The world owns it.
func (w *World) Cluster() *model.Cluster { return w.cluster }

// Load reads sources and submits their objects. If any source has a mistake, no object is added. It returns the policies in the sources,
// and does not use them.
func (w *World) Load(sources ...manifest.Source) ([]manifest.Uncompiled, source.Issues) {
	objects, issues := manifest.Load(manifest.Options{Now: w.now, SchedulerNames: w.schedulers, MaxObjects: w.maxObjects}, sources...)
	if issues.Err() != nil {
		return nil, issues
	}
	issues = append(issues, w.Submit(objects)...)
	issues.Sort()
	return objects.Policies, issues
}

// Submit adds objects as `kubectl apply` does: an object replaces the existing one, and keeps its status if the new one has none. If any
// object has a mistake, none is added. The world owns the objects afterwards, and may change them.
func (w *World) Submit(o *manifest.Objects) source.Issues {
	before := w.plugins
	issues := w.plugins.add(o.JobPlugins)
	if issues.Err() == nil {
		issues = append(issues, w.submit(o.Items)...)
	}
	if issues.Err() != nil {
		w.plugins = before
	}
	return issues
}

func (w *World) submit(in []manifest.Item) source.Issues {
	for _, i := range in {
		w.ofCluster.Comes(i)
	}
	c := newCompletion(w, in)
	items, issues := c.run()
	now, restricted := w.restricted(w.holdBack(items, w.now))
	if issues = append(issues, w.unreadable(append(c.samples, restricted...))...); issues.Err() != nil {
		return issues
	}
	return append(issues, w.take(now, restricted)...)
}

// unreadable returns the model's errors for objects that are created later.
func (w *World) unreadable(samples []manifest.Item) source.Issues {
	if len(samples) == 0 {
		return nil
	}
	values := map[any]source.Value{}
	var deltas []model.Delta
	for _, i := range samples {
		values[i.Object] = i.Value
		deltas = append(deltas, model.Delta{Op: model.Upsert, Object: i.Object})
	}
	c := model.NewCluster(model.Options{SchedulerNames: w.schedulers})
	issues := w.refused(errors.Join(w.ofCluster.Sort(c.Apply(deltas...))...), values)
	return append(issues, w.ofCluster.Warnings(values)...)
}

// take adds completed items to the cluster. If the model refuses one, all are removed again. The controllers create restricted later, after
// admission.
func (w *World) take(items, restricted []manifest.Item) source.Issues {
	values := make(map[any]source.Value, len(items))
	before := map[manifest.ID]metav1.Object{}
	var in []metav1.Object
	for _, i := range items {
		old, there := w.objects[i.ID()]
		if there {
			keepStatus(old, i.Object)
			before[i.ID()] = old
		}
		values[i.Object] = i.Value
		in = append(in, i.Object)
	}
	issues := w.refused(w.put(in...), values)
	issues = append(issues, w.ofCluster.Warnings(values)...)
	if issues.Err() == nil {
		w.noteLeaving(in)
		w.noteCounted(in)
		w.noteMade(items)
		for _, i := range restricted {
			w.withheld[i.ID()] = i
		}
		return append(issues, w.refused(errors.Join(w.countQuotas(), w.countBudgets()), nil)...)
	}
	for _, i := range items {
		if _, there := before[i.ID()]; !there {
			w.remove(i.ID())
		}
	}
	back := slices.Collect(maps.Values(before)) // the order does not matter, because put sorts them
	return append(issues, w.refused(w.put(back...), nil)...)
}

// refused converts the model's errors to issues at the places of their objects.
func (w *World) refused(err error, values map[any]source.Value) source.Issues {
	var out source.Issues
	for _, e := range flatten(err) {
		var wrong *model.ObjectError
		if !errors.As(e, &wrong) {
			out = append(out, source.Issue{Message: e.Error()})
			continue
		}
		place, whole := manifest.Blame(values[wrong.Object], wrong.Field)
		if whole && wrong.Field != "" {
			out = append(out, place.Issuef("", "%s", wrong.Text))
			continue
		}
		out = append(out, place.Issuef("", "%s", wrong.Error()))
	}
	return out
}

func flatten(err error) []error {
	if err == nil {
		return nil
	}
	if many, ok := err.(interface{ Unwrap() []error }); ok {
		return many.Unwrap()
	}
	return []error{err}
}

// noteLeaving records which submitted pods were being deleted. They disappear at their deletion time, or at the next moment if it has
// passed.
func (w *World) noteLeaving(in []metav1.Object) {
	for _, o := range in {
		if p, ok := o.(*corev1.Pod); ok && p.DeletionTimestamp != nil {
			due := p.DeletionTimestamp.Time
			if !due.After(w.now) {
				due = w.now.Add(1)
			}
			w.leaving[manifest.IDOf(p)] = due
			w.schedule(p)
		}
	}
}

// keepStatus copies the status of a replaced object to the new one, if that has none.
func keepStatus(old, o metav1.Object) {
	switch o := o.(type) {
	case *schedulingv1beta1.PodGroup:
		if old, ok := old.(*schedulingv1beta1.PodGroup); ok && o.Status.Phase == schedulingv1beta1.PodGroupPending &&
			len(o.Status.Conditions) == 0 {
			o.Status = *old.Status.DeepCopy()
		}
	case *schedulingv1beta1.Queue:
		if old, ok := old.(*schedulingv1beta1.Queue); ok {
			state := o.Status.State
			o.Status = *old.Status.DeepCopy()
			o.Status.State = state
		}
	case *corev1.Pod:
		if old, ok := old.(*corev1.Pod); ok && o.Spec.NodeName == "" {
			o.Spec.NodeName, o.Status = old.Spec.NodeName, *old.Status.DeepCopy()
		}
	}
	o.SetCreationTimestamp(old.GetCreationTimestamp())
}

// put adds or replaces objects, in the world and as deltas in the model. All changes use it. An object in the world must not be changed,
// only replaced.
func (w *World) put(objects ...metav1.Object) error {
	slices.SortStableFunc(objects, func(a, b metav1.Object) int { return manifest.CompareIDs(manifest.IDOf(a), manifest.IDOf(b)) })
	if w.shuffle != nil {
		w.shuffle.Shuffle(len(objects), func(i, j int) { objects[i], objects[j] = objects[j], objects[i] })
	}
	deltas := make([]model.Delta, 0, len(objects))
	for _, o := range objects {
		w.objects[manifest.IDOf(o)] = o
		if restricts(manifest.IDOf(o)) {
			w.restricting[manifest.IDOf(o)] = true
		}
		if _, admission := o.(*corev1.LimitRange); !admission { // it restricts the creation of pods, and the scheduler does not read it
			deltas = append(deltas, model.Delta{Op: model.Upsert, Object: o})
		}
	}
	for _, o := range objects {
		if p, isPod := o.(*corev1.Pod); isPod {
			w.schedule(p)
			w.remember(p)
		}
	}
	err := errors.Join(w.ofCluster.Sort(w.cluster.Apply(deltas...))...)
	for _, o := range objects {
		if p, isPod := o.(*corev1.Pod); isPod {
			w.history.measured(p, w.cluster)
		}
	}
	return err
}

// remove removes an object. All removals use it.
func (w *World) remove(id manifest.ID) {
	o, ok := w.objects[id]
	if !ok {
		return
	}
	delete(w.objects, id)
	delete(w.restricting, id)
	w.strike(id)
	w.history.forget(id, w.now)
	delete(w.counted, id)
	delete(w.unexplained, id)
	delete(w.unmade, id)
	delete(w.written, id)
	delete(w.refusals, id)
	if id.Kind == "PodGroup" {
		maps.DeleteFunc(w.withheld, func(_ manifest.ID, i manifest.Item) bool { return groupID(i.Object.(*corev1.Pod)) == id })
	}
	if id.Kind != "LimitRange" {
		w.cluster.Apply(model.Delta{Op: model.Delete, Object: o})
	}
}

// Cycle starts bound pods, decides, and carries out the plan. If it admits Jobs, their controllers create the pods at once, and the
// scheduler decides on these at the same moment; the plan contains both. It returns an error if the cluster refuses objects that the world
// created, which is a defect.
func (w *World) Cycle() (*model.Plan, error) {
	if w.Policy == nil {
		return nil, errors.New("the world has no policy")
	}
	if err := w.kubelet(); err != nil {
		return nil, err
	}
	if err := w.countQuotas(); err != nil {
		return nil, err
	}
	if err := w.countBudgets(); err != nil {
		return nil, err
	}
	if _, err := w.controllers(); err != nil {
		return nil, err
	}
	w.turned = false
	var all *model.Plan
	for {
		plan := w.decider.decide(w.cluster, w.Policy, w.now)
		if err := w.obey(plan); err != nil {
			return nil, fmt.Errorf("carry out the plan: %w", err)
		}
		all = plan.After(all)
		if made, err := w.controllers(); err != nil || !made {
			return all, err
		}
	}
}

// obey applies a plan to the objects.
func (w *World) obey(plan *model.Plan) error {
	var changed []metav1.Object
	for _, b := range plan.Binds {
		p, err := w.pod(b.Task)
		if err != nil {
			return err
		}
		p = p.DeepCopy()
		p.Spec.NodeName = b.Node
		if t := w.cluster.Tasks[b.Task]; t != nil {
			for key, text := range model.BindAnnotations(&w.cluster.Nodes, t, &b, w.now) {
				metav1.SetMetaDataAnnotation(&p.ObjectMeta, key, text)
			}
		}
		if err := model.AsBound(p); err != nil {
			return err
		}
		volumes, err := w.bindVolumes(&b)
		if err != nil {
			return err
		}
		if err := w.put(volumes...); err != nil { // at once, because other pods of this plan may use the same claims
			return err
		}
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{
			Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(w.now),
		})
		changed = append(changed, p)
	}
	groups := w.groupStatuses(plan)
	changed = append(changed, groups...)
	if err := w.put(changed...); err != nil {
		return err
	}
	for i := range plan.Evicts {
		if err := w.evict(&plan.Evicts[i]); err != nil {
			return err
		}
	}
	return w.put(w.queueStatuses(plan)...)
}

// groupStatuses returns the PodGroups whose status a plan changes.
func (w *World) groupStatuses(plan *model.Plan) []metav1.Object {
	changed := map[string]*schedulingv1beta1.PodGroup{}
	group := func(job string) *schedulingv1beta1.PodGroup {
		if g := changed[job]; g != nil {
			return g
		}
		namespace, name, _ := strings.Cut(job, "/")
		g, ok := w.objects[manifest.ID{Kind: "PodGroup", Namespace: namespace, Name: name}].(*schedulingv1beta1.PodGroup)
		if !ok {
			return nil // the PodGroup of this job does not exist
		}
		changed[job] = g.DeepCopy()
		return changed[job]
	}
	for _, a := range plan.Admits {
		if g := group(a.Job); g != nil {
			g.Status.Phase = schedulingv1beta1.PodGroupInqueue
		}
	}
	for _, s := range plan.Jobs {
		if g := group(s.Job); g != nil {
			w.writeStatus(g, s)
		}
	}
	var out []metav1.Object
	for _, job := range sortedKeys(changed) {
		if g := changed[job]; !equality.Semantic.DeepEqual(g, w.objects[manifest.IDOf(g)]) {
			out = append(out, g)
			w.turned = w.turned || g.Status.Phase != w.objects[manifest.IDOf(g)].(*schedulingv1beta1.PodGroup).Status.Phase
		}
	}
	return out
}

func (w *World) writeStatus(g *schedulingv1beta1.PodGroup, s *model.JobStatus) {
	g.Status.Phase = schedulingv1beta1.PodGroupPhase(s.Phase)
	g.Status.Running, g.Status.Succeeded, g.Status.Failed = int32(s.Running), int32(s.Succeeded), int32(s.Failed)
	if s.Condition == nil {
		return
	}
	c := schedulingv1beta1.PodGroupCondition{
		Type: schedulingv1beta1.PodGroupConditionType(s.Condition.Type), Status: corev1.ConditionStatus(s.Condition.Status),
		Reason: s.Condition.Reason, Message: s.Condition.Message, LastTransitionTime: metav1.NewTime(w.now),
	}
	i := slices.IndexFunc(g.Status.Conditions, func(old schedulingv1beta1.PodGroupCondition) bool { return old.Type == c.Type })
	if i < 0 {
		g.Status.Conditions = append(g.Status.Conditions, c)
		return
	}
	if old := g.Status.Conditions[i]; old.Status == c.Status && old.Reason == c.Reason && old.Message == c.Message {
		return
	}
	g.Status.Conditions[i] = c
}

// queueStatuses returns the queues whose status changed. Their usage comes from the plan. Their PodGroups are counted, as the queue
// controller does.
func (w *World) queueStatuses(plan *model.Plan) []metav1.Object {
	allocated := map[string]corev1.ResourceList{}
	for _, s := range plan.Queues {
		amounts := corev1.ResourceList{}
		for name, text := range s.Allocated {
			if q, err := resource.ParseQuantity(text); err == nil {
				amounts[corev1.ResourceName(name)] = q
			}
		}
		allocated[s.Queue] = amounts
	}
	counts := w.countGroups()
	var out []metav1.Object
	for _, id := range w.sorted("Queue") {
		old := w.objects[id].(*schedulingv1beta1.Queue)
		q := old.DeepCopy()
		if amounts, ok := allocated[q.Name]; ok {
			q.Status.Allocated = amounts
		}
		n := counts[q.Name]
		q.Status.Pending, q.Status.Inqueue, q.Status.Running = n["Pending"], n["Inqueue"], n["Running"]
		q.Status.Unknown, q.Status.Completed = n["Unknown"], n["Completed"]
		if !equality.Semantic.DeepEqual(old, q) {
			out = append(out, q)
		}
	}
	return out
}
