package sim

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/sim/manifest"
	"github.com/celsius-scheduler/celsius/statemachines/objects"
)

// agenda contains the future events of a world.
type agenda struct {
	leaving    map[manifest.ID]time.Time // pods that are being deleted, and when they end
	due        map[manifest.ID]time.Time // pods, and when their next event is
	later      []manifest.Item           // objects that are created later, ordered by time
	unadmitted map[manifest.ID]bool      // pods that name a node that does not exist, or whose kubelet would not admit them
}

// strike removes the future events of an object.
func (a *agenda) strike(id manifest.ID) {
	delete(a.leaving, id)
	delete(a.due, id)
	delete(a.unadmitted, id)
}

// holdBack stores items that are created after that moment, and returns the others.
func (a *agenda) holdBack(items []manifest.Item, from time.Time) []manifest.Item {
	var now []manifest.Item
	for _, i := range items {
		if i.Comes.After(from) {
			a.later = append(a.later, i)
			continue
		}
		now = append(now, i)
	}
	slices.SortStableFunc(a.later, func(x, y manifest.Item) int {
		return cmp.Or(x.Comes.Compare(y.Comes), manifest.CompareIDs(x.ID(), y.ID()))
	})
	return now
}

// arrive submits the items whose time has come. An error is a defect of the world itself, because the items were checked when they were
// read.
func (w *World) arrive() error {
	n := 0
	for n < len(w.later) && !w.later[n].Comes.After(w.now) {
		n++
	}
	items := w.later[:n]
	w.later = slices.Clone(w.later[n:])
	if n == 0 {
		return nil
	}
	return w.take(w.restricted(items)).Err()
}

// schedule records the next event of a pod. The pod starts as soon as time passes after its binding, ends after its run time, and
// disappears when its grace period is over.
func (w *World) schedule(p *corev1.Pod) {
	id := manifest.IDOf(p)
	delete(w.due, id)
	delete(w.unadmitted, id)
	gone, leaves := w.leaving[id]
	switch {
	case leaves:
		w.due[id] = gone
	case p.Spec.NodeName == "":
	case p.Status.Phase == corev1.PodPending:
		if w.lifeOf(p).Waiting == "" && objects.StuckContainer([]*corev1.Pod{p}) == "" {
			w.due[id] = w.now
		}
	case p.Status.Phase == corev1.PodRunning && p.Status.StartTime != nil:
		if life := w.lifeOf(p); life.Run != nil {
			w.due[id] = latest(p.Status.StartTime.Add(*life.Run), w.began.Add(cycleLength)) // the first cycle finds it on its node
		}
	}
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// lifeOf returns the life of a pod. It ignores the annotation of a pod that was read from a cluster, because every user of the cluster can
// write it. The user can ask to apply it.
func (w *World) lifeOf(p *corev1.Pod) manifest.Life {
	if !w.obeySim && w.ofCluster.Has(p) {
		return manifest.Life{}
	}
	return manifest.LifeOf(p)
}

// kubelet applies the due events of pods: starts, ends and removals. Its cost is proportional to the number of these pods, and of pods that
// wait for admission by a kubelet.
func (w *World) kubelet() error {
	for id := range w.unadmitted {
		w.schedule(w.objects[id].(*corev1.Pod))
	}
	for {
		var ids []manifest.ID
		for id, due := range w.due {
			if !due.After(w.now) {
				ids = append(ids, id)
			}
		}
		if len(ids) == 0 {
			return nil
		}
		slices.SortFunc(ids, manifest.CompareIDs)
		var changed []metav1.Object
		for _, id := range ids {
			if _, leaves := w.leaving[id]; leaves {
				if again := w.gone(id); again != nil {
					changed = append(changed, again)
				}
				continue
			}
			p := w.objects[id].(*corev1.Pod)
			if t := w.cluster.Tasks[model.Key(p.Namespace, p.Name)]; t != nil && (t.Unadmitted || t.Node == model.NoNode) {
				delete(w.due, id)
				w.unadmitted[id] = true
				continue
			}
			changed = append(changed, w.next(p))
		}
		if err := w.put(changed...); err != nil {
			return err
		}
	}
}

// gone removes a deleted pod. It returns the pod that replaces it at once; nil: none.
func (w *World) gone(id manifest.ID) *corev1.Pod {
	again := w.anew(id, metav1.NewTime(w.now))
	group, alone := w.groupAlone(w.objects[id].(*corev1.Pod))
	w.remove(id)
	if alone {
		w.remove(group)
	}
	if again == nil {
		return nil
	}
	now, restricted := w.restricted([]manifest.Item{{Kind: "Pod", Object: again, OfJob: true}})
	for _, i := range restricted {
		w.withheld[id] = i
	}
	if len(now) == 0 {
		return nil
	}
	w.written[id] = again
	return again
}

// next returns a pod after its due event. A bound pod starts at the time of its binding, because the kubelet takes no time here.
func (w *World) next(p *corev1.Pod) *corev1.Pod {
	p = p.DeepCopy()
	if p.Status.Phase == corev1.PodPending {
		at := w.now
		if bound := scheduledAt(p); bound != nil && bound.Before(at) {
			at = *bound
		}
		manifest.Start(p, at)
		return p
	}
	life := w.lifeOf(p)
	p.Status.Phase = life.EndPhase()
	p.Status.ContainerStatuses = nil
	at := metav1.NewTime(w.due[manifest.IDOf(p)])
	for i := range p.Spec.Containers {
		name := p.Spec.Containers[i].Name
		p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, corev1.ContainerStatus{
			Name: name, RestartCount: int32(life.Restarts),
			State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: int32(life.ExitCodes[name]), FinishedAt: at}},
		})
	}
	return p
}

// scheduledAt returns when a pod was bound; nil: its status does not contain it.
func scheduledAt(p *corev1.Pod) *time.Time {
	for i := range p.Status.Conditions {
		if c := &p.Status.Conditions[i]; c.Type == corev1.PodScheduled && c.Status == corev1.ConditionTrue && !c.LastTransitionTime.IsZero() {
			return &c.LastTransitionTime.Time
		}
	}
	return nil
}

// nextEvent returns the time of the next event: a pod starts, ends or disappears, or an object is created. The result ok is false if there
// is none.
func (a *agenda) nextEvent() (at time.Time, ok bool) {
	for _, due := range a.due {
		if !ok || due.Before(at) {
			at, ok = due, true
		}
	}
	if len(a.later) > 0 && (!ok || a.later[0].Comes.Before(at)) {
		at, ok = a.later[0].Comes, true
	}
	return at, ok
}
