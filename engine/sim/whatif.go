package sim

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	batchv1alpha1 "github.com/celsius-scheduler/celsius/crds/batch/v1alpha1"
	schedulingv1beta1 "github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
	"github.com/celsius-scheduler/celsius/engine/session"
	"github.com/celsius-scheduler/celsius/engine/sim/manifest"
	"github.com/celsius-scheduler/celsius/engine/whatif"
)

// WhatIf returns what the next cycle would decide after a change. It does not change the world.
func WhatIf(w *World, change *whatif.Change) (*whatif.Answer, error) {
	if w.Policy == nil {
		return nil, errors.New("the world has no policy")
	}
	s := w.decider.Session()
	if s == nil || s.Policy() != w.Policy {
		s = session.New(w.cluster, w.Policy)
	}
	return new(whatif.Asker).Ask(whatif.Asked{Session: s, Now: w.now}, change)
}

// Arriving reads sources as a change that adds their objects.
func Arriving(w *World, sources ...manifest.Source) (*whatif.Change, error) {
	objects, issues := manifest.Load(manifest.Options{Now: w.now, SchedulerNames: w.schedulers, MaxObjects: w.maxObjects}, sources...)
	if issues.Err() != nil {
		return nil, issues
	}
	if len(objects.Policies)+len(objects.JobPlugins) > 0 {
		return nil, errors.New("what would come has policies or job plugins in it; a policy is said apart")
	}
	change := &whatif.Change{LimitRanges: []*corev1.LimitRange{}}
	for _, id := range w.sorted("LimitRange") {
		change.LimitRanges = append(change.LimitRanges, w.objects[id].(*corev1.LimitRange))
	}
	for _, i := range objects.Items {
		change.Add = append(change.Add, i.Object)
		if namesake(w, i.Object) && !slices.Contains(change.Delete, objectKey(i.Object)) {
			change.Delete = append(change.Delete, objectKey(i.Object))
		}
	}
	return change, nil
}

// namesake reports whether an arriving Job, or an arriving job of the short format, replaces a job of the other form. A job of the short
// format is a PodGroup without a controller. Both forms have the same name for users.
func namesake(w *World, o metav1.Object) bool {
	id := manifest.IDOf(o)
	switch o.(type) {
	case *batchv1alpha1.Job:
		id.Kind = "PodGroup"
		g := w.objects[id]
		return g != nil && metav1.GetControllerOfNoCopy(g) == nil
	case *schedulingv1beta1.PodGroup:
		id.Kind = "Job"
		return w.objects[id] != nil && metav1.GetControllerOfNoCopy(o) == nil
	default:
		return false
	}
}

// WhatIf returns, as text, what would be decided after the last cycle if the objects in the sources were added.
func (r *Report) WhatIf(sources ...manifest.Source) (string, error) {
	change, err := Arriving(r.world, sources...)
	if err != nil {
		return "", err
	}
	answer, err := WhatIf(r.world, change)
	if err != nil {
		return "", err
	}
	return answer.Text, nil
}

// whatif prints what would be decided after a change.
func (s *scenario) whatif(args []string) error {
	var sources []manifest.Source
	var rest whatif.Change
	for _, arg := range args {
		word, value, said := strings.Cut(arg, "=")
		switch {
		case !said:
			source, err := s.source(arg)
			if err != nil {
				return err
			}
			sources = append(sources, source)
		case word == "delete":
			rest.Delete = append(rest.Delete, inNamespace(value))
		case word == "nodes":
			count, like, _ := strings.Cut(value, "x")
			n, err := strconv.Atoi(count)
			if err != nil {
				return fmt.Errorf("%s: write nodes=COUNTxNODE, as nodes=4xn1", arg)
			}
			rest.Copies = append(rest.Copies, whatif.Copies{Count: n, Like: like})
		case word == "policy":
			p, err := s.compile(value)
			if err != nil {
				return err
			}
			rest.Policy = p
		default:
			return fmt.Errorf("%s: write delete=JOB, nodes=COUNTxNODE or policy=NAME", arg)
		}
	}
	change, err := Arriving(s.inWorld(), sources...)
	if err != nil {
		return err
	}
	change.Delete, change.Copies, change.Policy = union(rest.Delete, change.Delete), rest.Copies, rest.Policy
	answer, err := WhatIf(s.world, change)
	if err != nil {
		return err
	}
	s.print(answer.Text)
	return nil
}

// union returns a, followed by the elements that only b contains.
func union(a, b []string) []string {
	return slices.Concat(a, slices.DeleteFunc(slices.Clone(b), func(x string) bool { return slices.Contains(a, x) }))
}

// inNamespace returns a name as namespace/name. The default namespace is default.
func inNamespace(name string) string {
	if strings.Contains(name, "/") {
		return name
	}
	return "default/" + name
}
