package model

import (
	"fmt"
	"math"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	batchv1alpha1 "github.com/celsius-scheduler/celsius/crds/batch/v1alpha1"
	"github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
)

// jobSpec is what a batch Job says of the pods that it is to have.
type jobSpec struct {
	uid   types.UID
	roles []wantedRole
}

// wantedRole is the pods that a Job is to have of one role.
type wantedRole struct {
	name     string
	replicas int64
	request  Resources // of each
}

// MakesPods says whether the controller of a Job in this phase makes the pods that it lacks, now or when others are gone.
func MakesPods(phase batchv1alpha1.JobPhase) bool {
	switch phase { //nolint:exhaustive // the others fall under the default
	case "", batchv1alpha1.Pending, batchv1alpha1.Running, batchv1alpha1.Restarting:
		return true
	}
	return false
}

// readJobSpec is what a Job is to have; nothing where its controller makes no pods any more.
func readJobSpec(d *Dims, o *batchv1alpha1.Job, m *mistakes) *jobSpec {
	s := &jobSpec{uid: o.UID}
	if !MakesPods(o.Status.State.Phase) {
		return s
	}
	for i := range o.Spec.Tasks {
		task := &o.Spec.Tasks[i]
		var one Task
		var wrong mistakes
		if readRequests(d, &one, &corev1.Pod{Spec: task.Template.Spec}, &wrong); len(wrong.errs) > 0 {
			m.add(fmt.Sprintf("spec.tasks[%d].template.spec", i), "requests an amount below 0")
			continue
		}
		s.roles = append(s.roles, wantedRole{name: task.Name, replicas: int64(task.Replicas), request: one.Request})
	}
	return s
}

// ownerJob is the key of the batch Job that controls a PodGroup, and its UID; "" for none.
func ownerJob(o *v1beta1.PodGroup) (key string, uid types.UID) {
	owner := metav1.GetControllerOfNoCopy(o)
	if owner == nil || owner.Kind != "Job" || owner.APIVersion != batchv1alpha1.GroupVersion.String() {
		return "", ""
	}
	return Key(o.Namespace, owner.Name), owner.UID
}

// nameOf is by what name people know a job: a PodGroup that was made for a Job, or for a pod or its controller, is named after
// that and a UID, which tells people nothing.
func nameOf(o *v1beta1.PodGroup) string {
	owner := metav1.GetControllerOfNoCopy(o)
	if owner == nil {
		return o.Name
	}
	switch o.Name {
	case owner.Name + "-" + string(owner.UID), batchv1alpha1.PodgroupNamePrefix + string(owner.UID):
		return owner.Name
	}
	return o.Name
}

func (c *Cluster) upsertJobSpec(o *batchv1alpha1.Job, m *mistakes) {
	s := readJobSpec(c.Dims, o, m)
	key := Key(o.Namespace, o.Name)
	c.books.specs[key] = s
	c.reckonOwned(key)
}

func (c *Cluster) removeJobSpec(o *batchv1alpha1.Job) {
	key := Key(o.Namespace, o.Name)
	if s := c.books.specs[key]; s == nil || o.UID != "" && s.uid != "" && o.UID != s.uid {
		return // the deletion of one that another of the same name has replaced is old news
	}
	delete(c.books.specs, key)
	c.reckonOwned(key)
}

// reckonOwned has the jobs of a batch Job looked at when the Apply ends.
func (c *Cluster) reckonOwned(key string) {
	for _, j := range c.books.owned.list(key) {
		c.untidy(j)
	}
}

// reckon brings what is expected of a job up to date.
func (c *Cluster) reckon(j *Job) {
	if c.Jobs[j.Key] != j {
		return
	}
	was, is := j.Expected, c.expectedOf(j)
	if was.Equal(is) {
		return
	}
	j.Expected = is
	j.Request.addSum(&j.rests.request, was, -1)
	j.Request.addSum(&j.rests.request, is, 1)
	if j.Queue != nil && j.letIn() {
		j.Queue.Request.addSum(&j.Queue.rests.request, was, -1)
		j.Queue.Request.addSum(&j.Queue.rests.request, is, 1)
	}
	c.touchJob(j)
}

// letIn says whether a job was let into its queue, so that its pods may come.
func (j *Job) letIn() bool { return j.Phase != PhasePending }

// expectedOf is what pods would ask for that a job is to have and that are not there yet. A batch Job tells by role; of another
// PodGroup it is known by its minResources, until it has run.
func (c *Cluster) expectedOf(j *Job) Resources {
	if j.Orphan {
		return nil
	}
	if s := c.books.specs[j.owner]; s != nil && (s.uid == "" || j.ownerUID == "" || s.uid == j.ownerUID) {
		return s.lacking(j)
	}
	if j.Phase != PhasePending && j.Phase != PhaseInqueue || !j.HasMinResources {
		return nil
	}
	least := max(j.MinMember, 1)
	missing := least - j.TaskCount()
	if missing <= 0 {
		return nil
	}
	out := j.MinResources.Clone()
	for i, v := range out {
		out[i] = min(math.Ceil(v/float64(least)*float64(missing)), mostExpected) // NaN stays NaN
	}
	if !out.Has(Pods) {
		out.Set(Pods, float64(missing)*c.Dims.Unit(Pods))
	}
	return out
}

// mostExpected is as much as is expected of one job in a dimension: more than any cluster has, and little enough that sums with it
// are exact, so that nothing is left of it when it is taken away.
const mostExpected = 1 << 50

// lacking sums up the pods that a job does not have yet.
func (s *jobSpec) lacking(j *Job) Resources {
	var sum Resources
	for _, r := range s.roles {
		missing := r.replicas
		if i, ok := j.findRole(r.name); ok {
			missing -= j.Roles[i].TaskCount()
		}
		if missing <= 0 {
			continue
		}
		for i, v := range r.request {
			if v == v {
				sum.Set(i, min(sum.Get(i)+v*float64(missing), mostExpected))
			}
		}
	}
	return sum
}
