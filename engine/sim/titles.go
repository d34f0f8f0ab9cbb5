package sim

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	batchv1alpha1 "github.com/celsius-scheduler/celsius/crds/batch/v1alpha1"
	"github.com/celsius-scheduler/celsius/engine/model"
)

// titles are what people call jobs: a PodGroup goes by the name of the Job, or of
// the pod, that it was made for, because its own name holds a uid.
type titles map[string]string

func (t titles) of(job string) string {
	if title, ok := t[job]; ok {
		return title
	}
	return strings.TrimPrefix(job, "~") // an orphan goes by its pod
}

// madeFor says whether a PodGroup's name is that of its owner and a uid.
func madeFor(group string, owner *metav1.OwnerReference) bool {
	return strings.HasPrefix(group, owner.Name+"-") || strings.HasPrefix(group, batchv1alpha1.PodgroupNamePrefix)
}

// titles of the world's jobs. Two jobs that would go by one title keep their names.
func (w *World) titles() titles {
	out, users := titles{}, map[string]int{}
	for key, job := range w.cluster.Jobs {
		o, ok := job.Object.(metav1.Object)
		if !ok || job.Object == nil {
			continue
		}
		owner := metav1.GetControllerOf(o)
		title := key
		if owner != nil && madeFor(job.Name, owner) {
			title = model.Key(job.Namespace, owner.Name)
		}
		out[key] = title
		users[title]++
	}
	for key, title := range out {
		if users[title] > 1 {
			out[key] = key
		}
	}
	return out
}
