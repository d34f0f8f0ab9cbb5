package model

import (
	"fmt"
	"iter"
	"math"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	batchv1alpha1 "github.com/celsius-scheduler/celsius/crds/batch/v1alpha1"
	"github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
)

// jobSpec contains the fields of a batch Job from which its expected pods follow.
type jobSpec struct {
	uid   types.UID
	phase batchv1alpha1.JobPhase
	roles []wantedRole
}

// wantedRole contains the pods that a Job should have in one role.
type wantedRole struct {
	Wanted
	replicas int64
}

// Wanted describes a pod that a job should have and that does not exist yet.
type Wanted struct {
	Role    string // "" if the job does not state roles
	Request Resources
	Spec    *corev1.PodSpec // spec of its template or of the pod; nil if it is not known
}

// MakesPods reports whether the controller creates missing pods of a Job in this phase, now or after other pods are gone.
func MakesPods(phase batchv1alpha1.JobPhase) bool {
	return phase == "" || phase == batchv1alpha1.Pending || phase == batchv1alpha1.Running || phase == batchv1alpha1.Restarting
}

// IsSuspended reports whether a Job in this phase is suspended and can be resumed.
func IsSuspended(phase batchv1alpha1.JobPhase) bool {
	return phase == batchv1alpha1.Aborting || phase == batchv1alpha1.Aborted
}

// readJobSpec reads the pods that a Job should have: none if its controller no longer creates pods.
func readJobSpec(d *Dims, o *batchv1alpha1.Job, m *mistakes) *jobSpec {
	s := &jobSpec{uid: o.UID, phase: o.Status.State.Phase}
	if !MakesPods(o.Status.State.Phase) {
		return s
	}
	for i := range o.Spec.Tasks {
		task := &o.Spec.Tasks[i]
		var one Task
		errs := len(m.errs)
		m.under = fmt.Sprintf("spec.tasks[%d].template.", i)
		pod := &corev1.Pod{Spec: task.Template.Spec}
		readRequests(d, &one, pod, m)
		if one.Annotations, one.Object = task.Template.Annotations, pod; asksForDevices(one.Annotations) {
			readTaskGPUs(d, &one, m)
		}
		if len(m.errs) == errs {
			s.roles = append(s.roles, wantedRole{Wanted{task.Name, one.Request, &task.Template.Spec}, int64(task.Replicas)})
		}
	}
	m.under = ""
	return s
}

// ownerJob returns the key of the batch Job that controls a PodGroup, and the UID of that Job; "" for none.
func ownerJob(o *v1beta1.PodGroup) (key string, uid types.UID) {
	owner := metav1.GetControllerOfNoCopy(o)
	if owner == nil || owner.Kind != "Job" || owner.APIVersion != batchv1alpha1.GroupVersion.String() {
		return "", ""
	}
	return Key(o.Namespace, owner.Name), owner.UID
}

// nameOf returns the name that users know. A PodGroup that was created for a Job, a pod or a controller has the owner's name and a UID as
// its name. The UID tells users nothing, so nameOf returns the name of the owner.
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

// PhasesOfJobs returns the keys and phases of the batch Jobs, in the order of the keys.
func (c *Cluster) PhasesOfJobs() iter.Seq2[string, batchv1alpha1.JobPhase] {
	return func(yield func(string, batchv1alpha1.JobPhase) bool) {
		for _, key := range sortedKeys(c.books.specs) {
			if !yield(key, c.books.specs[key].phase) {
				return
			}
		}
	}
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
		return // the delete event of a Job that was already replaced by a Job of the same name is outdated
	}
	delete(c.books.specs, key)
	c.reckonOwned(key)
}

// reckonOwned updates the expected pods of the jobs of a batch Job at the end of the Apply.
func (c *Cluster) reckonOwned(key string) {
	for _, j := range c.books.owned.list(key) {
		c.untidy(j)
	}
}

// reckon computes again what is expected of a job.
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

// letIn reports whether a job was admitted to its queue, so that its pods may be created.
func (j *Job) letIn() bool { return j.Phase != PhasePending }

// Missing iterates over the pods that a job should have and that do not exist yet: the request of each, and the number of equal pods. A
// batch Job states them by role. For another PodGroup they are computed from its minResources, as equal pods, until it has run.
func (c *Cluster) Missing(j *Job) iter.Seq2[Wanted, int64] {
	return func(yield func(Wanted, int64) bool) {
		if j.Orphan {
			return
		}
		if s := c.books.specs[j.owner]; s != nil && (s.uid == "" || j.ownerUID == "" || s.uid == j.ownerUID) {
			s.missing(j, yield)
			return
		}
		least := max(j.MinMember, 1)
		missing := least - j.TaskCount()
		if missing <= 0 || !j.HasMinResources || j.Phase != PhasePending && j.Phase != PhaseInqueue {
			return
		}
		each := j.MinResources.Clone()
		for i := range each {
			each[i] /= float64(least) // NaN stays NaN
		}
		if !each.Has(Pods) {
			each.Set(Pods, c.Dims.Unit(Pods))
		}
		yield(Wanted{Request: each}, missing)
	}
}

// missing iterates over the roles that lack pods.
func (s *jobSpec) missing(j *Job, yield func(Wanted, int64) bool) {
	for _, r := range s.roles {
		missing := r.replicas
		if i, ok := j.findRole(r.Role); ok {
			missing -= j.Roles[i].TaskCount()
		}
		if missing > 0 && !yield(r.Wanted, missing) {
			return
		}
	}
}

// mostExpected is the maximum that is expected of one job in a dimension. It is more than any cluster has. It is small enough that sums are
// exact, so nothing remains of it after it is subtracted.
const mostExpected = 1 << 50

// expectedOf returns the sum of the requests of all pods that a job should have and that do not exist yet.
func (c *Cluster) expectedOf(j *Job) Resources {
	var sum Resources
	for each, count := range c.Missing(j) {
		for i, v := range each.Request {
			if v == v {
				sum.Set(i, min(sum.Get(i)+math.Ceil(v*float64(count)), mostExpected))
			}
		}
	}
	return sum
}
