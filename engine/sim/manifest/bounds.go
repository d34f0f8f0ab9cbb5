package manifest

import (
	"cmp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	batchv1alpha1 "github.com/celsius-scheduler/celsius/crds/batch/v1alpha1"
	"github.com/celsius-scheduler/celsius/engine/model"
)

// boundPods leaves out the largest Jobs, so that the other Jobs together create at most as many pods as can be simulated. Small Jobs stay.
// A user can submit a few huge Jobs to a cluster, and they must not hide the decisions for the Jobs of other users.
func (l *loader) boundPods() {
	existing := l.podsOfJobs()
	type creator struct {
		item int
		pods int64
	}
	var jobs []creator
	total := int64(0)
	for n, i := range l.out.Items {
		if j, ok := i.Object.(*batchv1alpha1.Job); ok && model.MakesPods(j.Status.State.Phase) {
			pods := max(replicas(j)-existing[i.ID()], 0)
			jobs, total = append(jobs, creator{n, pods}), total+pods
		}
	}
	if total <= int64(l.limit) {
		return
	}
	slices.SortStableFunc(jobs, func(a, b creator) int { return cmp.Compare(a.pods, b.pods) })
	taken, refused := int64(0), map[int]bool{}
	for _, j := range jobs {
		if taken+j.pods <= int64(l.limit) {
			taken += j.pods
			continue
		}
		refused[j.item] = true
		l.tooManyPods(l.out.Items[j.item], j.pods, total)
	}
	var kept []Item
	for n, i := range l.out.Items {
		if !refused[n] {
			kept = append(kept, i)
		}
	}
	l.out.Items = kept
}

// tooManyPods reports a Job that is left out because all Jobs together create too many pods.
func (l *loader) tooManyPods(i Item, pods, total int64) {
	before := len(l.issues)
	l.report(At(i.Value, "spec", "tasks").Issuef("simulate fewer Jobs at once, or lower their replicas",
		"%s: creates %d pods, and all Jobs together create %d pods: more than can be simulated, %d", i.ID(), pods, total, l.limit))
	if i.Stored {
		l.forgive(before, i.ID(), false)
	}
}

// podsOfJobs counts the pods among the objects by the Job that created them.
func (l *loader) podsOfJobs() map[ID]int64 {
	out := map[ID]int64{}
	for _, i := range l.out.Items {
		if i.Kind != "Pod" {
			continue
		}
		if owner := metav1.GetControllerOfNoCopy(i.Object); owner != nil && owner.Kind == "Job" {
			out[ID{owner.Kind, i.Object.GetNamespace(), owner.Name}]++
		}
	}
	return out
}

// tooLarge reports whether a Job alone creates more pods than can be simulated.
func (l *loader) tooLarge(object metav1.Object) bool {
	j, ok := object.(*batchv1alpha1.Job)
	return ok && replicas(j) > int64(l.limit)
}

// replicas returns the total number of pods of a Job's tasks.
func replicas(j *batchv1alpha1.Job) (total int64) {
	for i := range j.Spec.Tasks {
		total += int64(max(j.Spec.Tasks[i].Replicas, 0))
	}
	return total
}
