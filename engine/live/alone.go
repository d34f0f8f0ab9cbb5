package live

import (
	"context"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
	"github.com/celsius-scheduler/celsius/engine/live/outbox"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/statemachines/objects"
)

// assumed is the PodGroup of a bare pod (a pod without a controller and without a PodGroup) before the PodGroup exists.
type assumed struct {
	object   *v1beta1.PodGroup // its PodGroup in the model; nil: none
	pod      *corev1.Pod       // the bare pod; the model may have left it out because it cannot be read
	inherits bool              // the PodGroup is in the queue of its namespace
	wrong    []error           // the fields of the pod that cannot be honored
	reached  string            // the phase when the PodGroup was created; "": it no longer counts
}

// alone reports whether a pod is bare: it is ours, it waits, it names no PodGroup, and no controller owns it. All fields of its future
// PodGroup are known, so the pod does not wait until the PodGroup exists.
func alone(names []string, o *corev1.Pod) bool {
	return o.Spec.NodeName == "" && o.DeletionTimestamp == nil && slices.Contains(names, o.Spec.SchedulerName) && model.GroupOf(o) == "" &&
		metav1.GetControllerOfNoCopy(o) == nil
}

// named returns a pod as the model stores it. A bare pod gets the name of its future PodGroup; then assumed is true.
func (in *intake) named(o *corev1.Pod) (_ *corev1.Pod, assumed bool) {
	if !alone(in.names, o) {
		return o, false
	}
	with := *o
	with.Annotations = maps.Clone(o.Annotations)
	metav1.SetMetaDataAnnotation(&with.ObjectMeta, v1beta1.KubeGroupNameAnnotationKey, objects.BareGroupName(o))
	return &with, true
}

// assume adds the PodGroup of a bare pod to the model until the controllers have created it. The PodGroup is derived from the pod.
func (in *intake) assume(out []model.Delta, o *corev1.Pod) []model.Delta {
	name := model.GroupOf(o)
	g := in.groups[model.Key(o.Namespace, name)]
	if g.object != nil || g.assumed.object != nil {
		return out
	}
	is, wrong := objects.BareGroup(o, name, nil)
	is.CreationTimestamp = o.CreationTimestamp
	g.assumed = assumed{object: is, pod: o, inherits: is.Spec.Queue == "", wrong: wrong}
	return append(out, in.supposed(g))
}

// supposed returns the delta of an assumed PodGroup. If the PodGroup names no queue, it gets the queue of its namespace.
func (in *intake) supposed(g *group) model.Delta {
	if g.assumed.inherits {
		with := *g.assumed.object
		with.Spec.Queue = objects.QueueName(in.queues[with.Namespace])
		g.assumed.object = &with
	}
	return model.Delta{Op: model.Upsert, Object: g.assumed.object}
}

// namespace records the queue that PodGroups without a queue get in a namespace.
func (in *intake) namespace(out []model.Delta, op model.Op, o *corev1.Namespace) []model.Delta {
	was, is := in.queues[o.Name], o.Annotations[v1beta1.QueueNameAnnotationKey]
	if op == model.Delete {
		is = ""
	}
	if is == was {
		return out
	}
	in.queues[o.Name] = is
	if is == "" {
		delete(in.queues, o.Name)
	}
	for _, key := range slices.Sorted(maps.Keys(in.groups)) {
		if as := in.groups[key].assumed; as.object != nil && as.inherits && as.object.Namespace == o.Name {
			out = append(out, in.supposed(in.groups[key]))
		}
	}
	return out
}

// leave deletes an assumed PodGroup from the model when its pod is gone.
func (g *group) leave(out []model.Delta) []model.Delta {
	o := g.assumed.object
	if o == nil || g.members.count() > 0 {
		return out
	}
	g.assumed = assumed{}
	return append(out, model.Delta{Op: model.Delete, Object: o})
}

// found replaces an assumed PodGroup by the real one. The real PodGroup keeps the phase of the assumed one if both request the same. A
// different PodGroup with this name (for example in another queue) waits as any other PodGroup.
func (in *intake) found(g *group, o *v1beta1.PodGroup) {
	was := g.assumed.object
	if was == nil {
		return
	}
	g.uid, g.served, g.assumed = o.UID, true, assumed{}
	a, b := &was.Spec, &o.Spec
	waits := o.Status.Phase == "" || o.Status.Phase == v1beta1.PodGroupPending
	if waits && a.Queue == b.Queue && a.MinMember == b.MinMember && equality.Semantic.DeepEqual(a.MinResources, b.MinResources) {
		g.assumed.reached = in.phase(model.Key(o.Namespace, o.Name))
	}
}

// make creates the PodGroup of a bare pod with its first status, in one call instead of two.
func (s *statuses) make(g *group, j *model.Job, want *groupStatus) {
	is := g.assumed.object.DeepCopy()
	is.CreationTimestamp = metav1.Time{}
	is.Status = want.status()
	key, pod, wrong := j.Key, g.assumed.pod, g.assumed.wrong
	s.outbox.Put(outbox.Status, groupWrite(key), guarded(s.feed, pod, func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(ctx, writeTimeout)
		defer cancel()
		out := &groupOutcome{key: key, want: want}
		if out.err = s.server.MakeGroup(ctx, is); out.err == nil {
			out.object, out.uid = is, is.UID
			for _, err := range wrong {
				s.events.Event(pod, corev1.EventTypeWarning, eventPodGroupError, err.Error())
			}
			if c := want.condition(string(v1beta1.PodGroupUnschedulableType)); c != nil && c.Status == corev1.ConditionTrue {
				s.events.Event(is, corev1.EventTypeWarning, eventUnschedulable, c.Message)
			}
		}
		s.feed.add(change{object: out}, false)
	}, func() { s.feed.add(change{object: &groupOutcome{key: key, want: want, err: errInternal}}, false) }))
}
