package objects

import (
	"cmp"
	"maps"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	batchv1alpha1 "github.com/celsius-scheduler/celsius/crds/batch/v1alpha1"
	schedulingv1beta1 "github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
)

// GroupName returns the name of a job's PodGroup. In older versions of Volcano it was the name of the job.
func GroupName(job *batchv1alpha1.Job) string { return job.Name + "-" + string(job.UID) }

// PodGroup returns a job's PodGroup, which waits for its admission to the queue. Tasks that depend on others do not belong to it until they
// have started.
func PodGroup(job *batchv1alpha1.Job, dependents Dependents, priorityOf func(class string) int32) *schedulingv1beta1.PodGroup {
	annotations := maps.Clone(job.Annotations)
	delete(annotations, corev1.LastAppliedConfigAnnotation)
	group := &schedulingv1beta1.PodGroup{
		ObjectMeta: metav1.ObjectMeta{
			Name:            GroupName(job),
			Namespace:       job.Namespace,
			Annotations:     annotations,
			Labels:          maps.Clone(job.Labels),
			OwnerReferences: []metav1.OwnerReference{jobOwner(job)},
		},
		Status: schedulingv1beta1.PodGroupStatus{Phase: schedulingv1beta1.PodGroupPending},
	}
	FillPodGroup(group, job, dependents, priorityOf)
	return group
}

// FillPodGroup updates a PodGroup's spec according to its job, and reports whether it differed.
func FillPodGroup(
	group *schedulingv1beta1.PodGroup, job *batchv1alpha1.Job, dependents Dependents, priorityOf func(class string) int32,
) bool {
	job = dependents.gang(job)
	resources := MinResources(job, priorityOf)
	want := group.Spec
	want.MinMember = job.Spec.MinAvailable
	want.PriorityClassName = job.Spec.PriorityClassName
	want.MinResources = &resources
	want.MinTaskMember = make(map[string]int32, len(job.Spec.Tasks))
	want.SubGroupPolicy = nil
	for i := range job.Spec.Tasks {
		task := &job.Spec.Tasks[i]
		want.MinTaskMember[task.Name] = TaskMinAvailable(task)
		if task.PartitionPolicy != nil {
			want.SubGroupPolicy = append(want.SubGroupPolicy, SubGroup(task))
		}
	}
	if group.Spec.Queue == "" {
		want.Queue = QueueName(job.Spec.Queue)
	}
	want.NetworkTopology = topology(job.Spec.NetworkTopology)
	if apiequality.Semantic.DeepEqual(group.Spec, want) {
		return false
	}
	group.Spec = want
	return true
}

// SubGroup returns a task's partitions in the form of a PodGroup.
func SubGroup(task *batchv1alpha1.TaskSpec) schedulingv1beta1.SubGroupPolicySpec {
	return schedulingv1beta1.SubGroupPolicySpec{
		Name:            task.Name,
		NetworkTopology: topology(task.PartitionPolicy.NetworkTopology),
		SubGroupSize:    new(task.PartitionPolicy.PartitionSize),
		MinSubGroups:    new(task.PartitionPolicy.MinPartitions),
		LabelSelector:   &metav1.LabelSelector{MatchLabels: map[string]string{batchv1alpha1.TaskSpecKey: task.Name}},
		MatchLabelKeys:  []string{batchv1alpha1.TaskPartitionID},
	}
}

func topology(of *batchv1alpha1.NetworkTopologySpec) *schedulingv1beta1.NetworkTopologySpec {
	if of == nil {
		return nil
	}
	return &schedulingv1beta1.NetworkTopologySpec{
		Mode:               schedulingv1beta1.NetworkTopologyMode(of.Mode),
		HighestTierAllowed: of.HighestTierAllowed,
		HighestTierName:    of.HighestTierName,
	}
}

// TaskMinAvailable returns how many pods of a task must be able to start. The default is all.
func TaskMinAvailable(task *batchv1alpha1.TaskSpec) int32 {
	if task.MinAvailable != nil {
		return *task.MinAvailable
	}
	return task.Replicas
}

// QueueName returns the given name, or the default queue if it is empty.
func QueueName(name string) string { return cmp.Or(name, schedulingv1beta1.DefaultQueue) }

// Admitted reports whether a PodGroup was admitted to its queue, so that its pods may be created.
func Admitted(group *schedulingv1beta1.PodGroup) bool {
	return group != nil && group.Status.Phase != "" && group.Status.Phase != schedulingv1beta1.PodGroupPending
}
