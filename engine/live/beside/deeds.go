package beside

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
	"github.com/celsius-scheduler/celsius/engine/model"
)

// Verbs of decisions.
const (
	Admit = "admit" // a job is admitted to its queue
	Bind  = "bind"  // a pod is bound to a node
	Evict = "evict" // a pod is evicted for another pod, or because of a rule
)

// about identifies the subject of a decision: a job by its key, a pod by its UID.
type about struct{ verb, id string }

// deed is a decision that the other scheduler carried out.
type deed struct {
	about
	key  string // the key of the pod, or of the job's PodGroup
	node string // the node that the pod was bound to or evicted from
	says string // the reason in the other scheduler's words; "": none
}

// witness detects the other scheduler's decisions in the changes of objects. It ignores the state from before it began.
type witness struct {
	of    string // spec.schedulerName of the other scheduler's pods
	began bool
	pods  map[string]seen   // pods of the other scheduler, by UID
	out   map[string]bool   // keys of the jobs that were not admitted
	lets  bool              // admitted jobs exist: the other scheduler or a previous one admits jobs
	said  map[string]string // by key: why a job is not scheduled, from its PodGroup
	// missed is the number of pods that were already bound when they were first seen. No decision can be compared for them.
	missed int
}

// seen is the last seen state of a pod.
type seen struct {
	waits *corev1.Pod // the waiting pod; nil: the pod has a node
	going bool
}

func newWitness(of string) *witness {
	return &witness{of: of, pods: map[string]seen{}, out: map[string]bool{}, said: map[string]string{}}
}

// see takes in a change, and returns the decision of the other scheduler that it shows; nil: none.
func (w *witness) see(c *Change) *deed {
	switch o := c.Object.(type) {
	case *corev1.Pod:
		if o.Spec.SchedulerName == w.of {
			return w.pod(c.Op, o)
		}
	case *v1beta1.PodGroup:
		return w.group(c.Op, o)
	}
	return nil
}

func (w *witness) pod(op model.Op, o *corev1.Pod) *deed {
	uid, key := string(o.UID), model.Key(o.Namespace, o.Name)
	was, known := w.pods[uid]
	is := seen{going: op == model.Delete || o.DeletionTimestamp != nil}
	if o.Spec.NodeName == "" {
		is.waits = o
	}
	w.pods[uid] = is
	if op == model.Delete {
		delete(w.pods, uid)
	}
	switch {
	case !w.began || is.waits != nil:
	case !known:
		w.missed++
	case was.waits != nil:
		return &deed{about: about{Bind, uid}, key: key, node: o.Spec.NodeName}
	case is.going && !was.going && o.Status.Phase != corev1.PodSucceeded && o.Status.Phase != corev1.PodFailed:
		if mark := slices.IndexFunc(o.Status.Conditions, isMark); mark >= 0 {
			return &deed{about: about{Evict, uid}, key: key, node: o.Spec.NodeName, says: o.Status.Conditions[mark].Message}
		}
	}
	return nil
}

func (w *witness) group(op model.Op, o *v1beta1.PodGroup) *deed {
	key := model.Key(o.Namespace, o.Name)
	out := op != model.Delete && (o.Status.Phase == "" || o.Status.Phase == v1beta1.PodGroupPending)
	was := w.out[key]
	delete(w.out, key)
	delete(w.said, key)
	if op == model.Delete {
		return nil
	}
	for i := range o.Status.Conditions {
		if c := &o.Status.Conditions[i]; c.Type == v1beta1.PodGroupUnschedulableType && c.Status == corev1.ConditionTrue {
			w.said[key] = c.Message
		}
	}
	if out {
		w.out[key] = true
	}
	w.lets = w.lets || !out
	if was && !out && w.began {
		return &deed{about: about{Admit, key}, key: key}
	}
	return nil
}

// silence returns why a pod or a job waits, in the other scheduler's words, or "".
func (w *witness) silence(what about, job string) string {
	if what.verb == Bind {
		if pod := w.pods[what.id].waits; pod != nil {
			for i := range pod.Status.Conditions {
				if c := &pod.Status.Conditions[i]; c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Message != "" {
					return c.Message
				}
			}
		}
	}
	return w.said[job]
}

// isMark reports whether a condition shows that a pod is being evicted. Volcano, which then deletes the pod, kube-scheduler and the
// Eviction API set such conditions.
func isMark(c corev1.PodCondition) bool {
	if c.Type == corev1.PodReady {
		return c.Status == corev1.ConditionFalse && c.Reason == "Evict"
	}
	return c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue &&
		(c.Reason == corev1.PodReasonPreemptionByScheduler || c.Reason == "EvictionByEvictionAPI")
}

// KeepMarks wraps strip, a transform of an informer that removes conditions of pods. The returned transform keeps the conditions that mark
// a pod as evicted (see isMark).
func KeepMarks(strip func(any) (any, error)) func(any) (any, error) {
	return func(o any) (any, error) {
		pod, ok := o.(*corev1.Pod)
		if !ok {
			return strip(o)
		}
		var marks []corev1.PodCondition
		for _, c := range pod.Status.Conditions {
			if isMark(c) && c.Type != corev1.DisruptionTarget { // strip keeps these
				marks = append(marks, c)
			}
		}
		out, err := strip(o)
		pod.Status.Conditions = append(pod.Status.Conditions, marks...)
		return out, err
	}
}
