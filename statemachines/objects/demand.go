package objects

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	batchv1alpha1 "github.com/celsius-scheduler/celsius/crds/batch/v1alpha1"
)

// Demand is what a job needs of a ResourceQuota that refuses one of its pods. The zero value stands for an unknown job.
type Demand struct {
	// Pods are the pods of the job that exist. Pods that have ended do not count.
	Pods []*corev1.Pod
	// Min is how many pods of Roles must run at the same time. It is 0 if that is not known.
	Min int64
	// Roles are all pods that the job will have.
	Roles []Role
}

// Role is a number of equal pods.
type Role struct {
	Count int64
	Spec  *corev1.PodSpec
}

// JobDemand returns the demand of a Job with these pods. Pods of a Job whose tasks depend on others do not all run at the same time.
func JobDemand(job *batchv1alpha1.Job, pods []*corev1.Pod) Demand {
	d := Demand{Pods: pods}
	ended := int64(0)
	for _, p := range pods {
		if isEnded(p) {
			ended++
		}
	}
	for i := range job.Spec.Tasks {
		task := &job.Spec.Tasks[i]
		if task.DependsOn != nil {
			return Demand{Pods: pods}
		}
		spec := task.Template.Spec
		if spec.PriorityClassName == "" {
			spec.PriorityClassName = job.Spec.PriorityClassName
		}
		d.Roles = append(d.Roles, Role{int64(task.Replicas), &spec})
	}
	d.Min = max(0, int64(job.Spec.MinAvailable)-ended)
	return d
}

// GroupDemand returns the demand of a job with a PodGroup. minMember of its pods must run at the same time. pods exist, and missing do not.
func GroupDemand(minMember int32, pods, missing []*corev1.Pod) Demand {
	d := Demand{Pods: pods, Min: int64(minMember)}
	for _, p := range pods {
		if isEnded(p) {
			d.Min--
		} else {
			d.Roles = append(d.Roles, Role{1, &p.Spec})
		}
	}
	for _, p := range missing {
		d.Roles = append(d.Roles, Role{1, &p.Spec})
	}
	d.Min = max(0, d.Min)
	return d
}

func isEnded(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
}

// exceededQuota matches the answer of the API server if a ResourceQuota has too little left for a pod.
var exceededQuota = regexp.MustCompile(`exceeded quota: ([^,]+), requested: (\S+), used: (\S+), limited: (\S+)`)

// quotaText states that a ResourceQuota is too small for the job even if no other pod uses it, or that the job's own pods use it up. It
// returns "" if pods of others use up the quota, because the job can start once these end. It also returns "" for answers without a quota.
func (d *Demand) quotaText(pod *corev1.Pod, answer string) string {
	groups := exceededQuota.FindStringSubmatch(answer)
	if groups == nil {
		return ""
	}
	quota, requested, limited := groups[1], amountsOf(groups[2]), amountsOf(groups[4])
	for _, name := range sortedNames(limited) {
		limit := limited[name]
		sum := d.gang(pod, name)
		if sum.Cmp(limit) <= 0 {
			continue
		}
		who, remedy := fmt.Sprintf("the %d pods that must start together request", d.Min), "request less, lower minAvailable"
		if d.Min == 1 {
			who, remedy = "each pod requests at least", "request less"
		}
		return fmt.Sprintf("ResourceQuota %s of the namespace allows less than the job alone needs (%s %s=%s, limited: %s=%s); %s, or raise "+
			"the quota", quota, who, name, sum.String(), name, limit.String(), remedy)
	}
	for _, name := range sortedNames(limited) {
		limit, sum := limited[name], requested[name].DeepCopy()
		for _, p := range d.Pods {
			if !isEnded(p) && isAlike(&p.Spec, &pod.Spec) {
				sum.Add(podUsage(p.Spec)[corev1.ResourceName(name)])
			}
		}
		if alone := requested[name]; sum.Cmp(limit) > 0 && alone.Cmp(limit) <= 0 {
			return fmt.Sprintf("ResourceQuota %s of the namespace is exhausted by the job's own pods (requested: %s, used: %s, limited: %s); "+
				"wait until pods of the job end, request less, or raise the quota", quota, groups[2], groups[3], groups[4])
		}
		if alone := requested[name]; alone.Cmp(limit) > 0 {
			return fmt.Sprintf("ResourceQuota %s of the namespace allows less than the pod alone needs (requested: %s, limited: %s); request less, "+
				"or raise the quota", quota, groups[2], groups[4])
		}
	}
	return ""
}

// gang returns how much of one resource the gang of the job uses at least. It counts only pods that a quota counts if it counts the given
// pod.
func (d *Demand) gang(pod *corev1.Pod, name string) (sum resource.Quantity) {
	type amount struct {
		each  resource.Quantity
		count int64
	}
	var amounts []amount
	for _, role := range d.Roles {
		each := resource.Quantity{}
		if isAlike(role.Spec, &pod.Spec) {
			each = podUsage(*role.Spec)[corev1.ResourceName(name)]
		}
		amounts = append(amounts, amount{each, role.Count})
	}
	slices.SortStableFunc(amounts, func(a, b amount) int { return a.each.Cmp(b.each) })
	left := d.Min
	for _, a := range amounts {
		n := min(left, a.count)
		left -= n
		a.each.Mul(n)
		sum.Add(a.each)
	}
	return sum
}

// isAlike reports whether a quota with scopes that counts one pod counts the other one as well.
func isAlike(a, b *corev1.PodSpec) bool {
	return a.PriorityClassName == b.PriorityClassName && (a.ActiveDeadlineSeconds == nil) == (b.ActiveDeadlineSeconds == nil) &&
		(a.Affinity == nil) == (b.Affinity == nil) && isBestEffort(a) == isBestEffort(b)
}

// isBestEffort reports whether no container of a pod requests or limits anything.
func isBestEffort(spec *corev1.PodSpec) bool {
	for _, list := range [][]corev1.Container{spec.Containers, spec.InitContainers} {
		for i := range list {
			if len(list[i].Resources.Requests)+len(list[i].Resources.Limits) > 0 {
				return false
			}
		}
	}
	return true
}

// amountsOf reads amounts as the API server writes them: "pods=1,requests.cpu=3". It leaves out what is no amount.
func amountsOf(text string) map[string]resource.Quantity {
	out := map[string]resource.Quantity{}
	for part := range strings.SplitSeq(text, ",") {
		name, value, _ := strings.Cut(part, "=")
		if amount, err := resource.ParseQuantity(value); err == nil {
			out[name] = amount
		}
	}
	return out
}

func sortedNames(amounts map[string]resource.Quantity) []string {
	return slices.Sorted(maps.Keys(amounts))
}
