// Package stored records which objects of a world were read from a cluster. The scheduler in a cluster reports an object that it cannot
// read and decides without it. A world does the same, so that an object with mistakes does not hide the decisions for all other objects. If
// a user wrote the object for the simulation, the world refuses it instead.
package stored

import (
	"cmp"
	"errors"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	batchv1alpha1 "github.com/celsius-scheduler/celsius/crds/batch/v1alpha1"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/sim/manifest"
	"github.com/celsius-scheduler/celsius/rules/source"
	"github.com/celsius-scheduler/celsius/statemachines/objects"
)

// Objects are the objects of a world that were read from a cluster.
type Objects struct {
	ids map[manifest.ID]bool
	// Unread contains the mistakes of the objects that were applied last.
	Unread []*model.ObjectError
	// Refused contains the Jobs for which the controllers create nothing, each with the reason.
	Refused map[manifest.ID]string
}

// New returns an empty set of objects.
func New() *Objects { return &Objects{ids: map[manifest.ID]bool{}, Refused: map[manifest.ID]string{}} }

// Comes records whether a new object was read from a cluster.
func (s *Objects) Comes(i manifest.Item) {
	if i.Stored {
		s.ids[i.ID()] = true
		return
	}
	delete(s.ids, i.ID())
}

// ReadRefusal records that the API server refused the pods of a Job, if the status of a Job of the cluster states it. The world does not
// contain everything that can refuse a pod, such as Pod Security and ServiceAccounts. The status is the only evidence.
func (s *Objects) ReadRefusal(j *batchv1alpha1.Job) {
	id := manifest.IDOf(j)
	state := j.Status.State
	refused := state.Reason == objects.FailedCreate || state.Reason == objects.RefusedTooOften
	if refused && s.ids[id] {
		s.Refused[id] = cmp.Or(state.Message, state.Reason)
		return
	}
	delete(s.Refused, id)
}

// Has reports whether an object was read from a cluster, or is the pod or PodGroup of an object that was.
func (s *Objects) Has(o metav1.Object) bool {
	if s.ids[manifest.IDOf(o)] {
		return true
	}
	owner := metav1.GetControllerOfNoCopy(o)
	return owner != nil && s.ids[manifest.ID{Kind: owner.Kind, Namespace: o.GetNamespace(), Name: owner.Name}]
}

// Sort stores the mistakes in objects of a cluster in Unread, and returns the others.
func (s *Objects) Sort(all []error) (errs []error) {
	s.Unread = nil
	for _, err := range all {
		wrong, ok := errors.AsType[*model.ObjectError](err)
		if o, isObject := objectOf(wrong, ok); isObject && s.Has(o) {
			s.Unread = append(s.Unread, wrong)
			continue
		}
		errs = append(errs, err)
	}
	return errs
}

func objectOf(wrong *model.ObjectError, ok bool) (metav1.Object, bool) {
	if !ok {
		return nil, false
	}
	o, isObject := wrong.Object.(metav1.Object)
	return o, isObject
}

// Warnings returns the mistakes in Unread, at the places of the objects.
func (s *Objects) Warnings(values map[any]source.Value) source.Issues {
	var out source.Issues
	for _, wrong := range s.Unread {
		place, _ := manifest.Blame(values[wrong.Object], wrong.Field)
		i := place.Issuef("", "%s %s %s", wrong.Kind, wrong.Name, leftOutText(wrong))
		i.Severity = source.Warning
		if !slices.ContainsFunc(out, func(old source.Issue) bool { return old == i }) {
			out = append(out, i)
		}
	}
	return out
}

// leftOutText states how the scheduler treats an object with this mistake: it leaves out the object, or only the field.
func leftOutText(wrong *model.ObjectError) string {
	what := "is left out"
	switch o := wrong.Object.(type) {
	case *corev1.Pod:
		if o.Spec.NodeName != "" {
			what = "counts on its node and in its queue without this field"
		}
	case *corev1.Node, *batchv1alpha1.Job:
		what = "is used without this field"
	}
	return what + ": " + wrong.Problem()
}
