//go:build !js

package refuse

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/util/errors"
	quota "k8s.io/apiserver/pkg/quota/v1"
	api "k8s.io/kubernetes/pkg/apis/core"
	apiv1 "k8s.io/kubernetes/pkg/apis/core/v1"
	"k8s.io/kubernetes/pkg/quota/v1/evaluator/core"
	"k8s.io/kubernetes/plugin/pkg/admission/limitranger"
	"k8s.io/utils/clock"
)

// IsApplied reports whether this program contains the code of the admission plugins.
const IsApplied = true

// Admit adds the defaults of the LimitRanges to a pod. It returns the answer of the API server if it refuses the pod. An admitted pod
// counts in the quotas.
func (n *Namespace) Admit(p *corev1.Pod) error {
	if err := n.limit(p); err != nil {
		return err
	}
	pods := evaluator()
	var counts []*corev1.ResourceQuota
	for _, q := range n.Quotas {
		if applies, err := pods.Matches(q, p); err != nil || !applies {
			continue
		}
		if err := pods.Constraints(pods.MatchingResources(quota.ResourceNames(q.Status.Hard)), p); err != nil {
			return fmt.Errorf("failed quota: %s: %w", q.Name, err)
		}
		counts = append(counts, q)
	}
	usage, err := pods.Usage(p)
	if err != nil {
		return fmt.Errorf("usage of the pod: %w", err)
	}
	for _, q := range counts {
		if err := exceeded(q, usage); err != nil {
			return err
		}
	}
	for _, q := range counts {
		q.Status.Used = quota.Add(q.Status.Used, quota.Mask(usage, quota.ResourceNames(q.Status.Hard)))
	}
	return nil
}

// limit applies the LimitRanges to a pod.
func (n *Namespace) limit(p *corev1.Pod) error {
	if len(n.Ranges) == 0 {
		return nil
	}
	internal := &api.Pod{}
	if err := apiv1.Convert_v1_Pod_To_core_Pod(p.DeepCopy(), internal, nil); err != nil {
		return fmt.Errorf("read the pod: %w", err)
	}
	for _, r := range n.Ranges {
		for i := range r.Spec.Limits {
			apiv1.SetDefaults_LimitRangeItem(&r.Spec.Limits[i])
		}
		if err := limitranger.PodMutateLimitFunc(r, internal); err != nil {
			return fmt.Errorf("defaults of LimitRange %s: %w", r.Name, err)
		}
	}
	for _, r := range n.Ranges {
		if err := limitranger.PodValidateLimitFunc(r, internal); err != nil {
			return sorted(err)
		}
	}
	var limited corev1.Pod
	if err := apiv1.Convert_core_Pod_To_v1_Pod(internal, &limited, nil); err != nil {
		return fmt.Errorf("read the pod: %w", err)
	}
	for i := range p.Spec.Containers {
		p.Spec.Containers[i].Resources = limited.Spec.Containers[i].Resources
	}
	for i := range p.Spec.InitContainers {
		p.Spec.InitContainers[i].Resources = limited.Spec.InitContainers[i].Resources
	}
	return nil
}

// sorted sorts several errors, because the library returns them in random order.
func sorted(err error) error {
	many, ok := err.(apierrors.Aggregate) //nolint:errorlint // the library returns it unwrapped
	if !ok {
		return err
	}
	all := many.Errors()
	slices.SortFunc(all, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return apierrors.NewAggregate(all)
}

// exceeded returns the answer of the API server if a quota has too little left.
func exceeded(q *corev1.ResourceQuota, usage corev1.ResourceList) error {
	requested := quota.Mask(usage, quota.ResourceNames(q.Status.Hard))
	after := quota.Mask(quota.Add(q.Status.Used, requested), quota.ResourceNames(requested))
	fits, over := quota.LessThanOrEqual(after, q.Status.Hard)
	if fits {
		return nil
	}
	return fmt.Errorf("exceeded quota: %s, requested: %s, used: %s, limited: %s", q.Name, text(requested, over), text(q.Status.Used, over),
		text(q.Status.Hard, over))
}

// text writes amounts as the API server does.
func text(amounts corev1.ResourceList, names []corev1.ResourceName) string {
	var parts []string
	for name, amount := range quota.Mask(amounts, names) {
		parts = append(parts, string(name)+"="+amount.String())
	}
	slices.Sort(parts)
	return strings.Join(parts, ",")
}

// Applies reports whether a quota counts a pod. A quota with scopes counts only the pods that match all of them.
func Applies(q *corev1.ResourceQuota, p *corev1.Pod) bool {
	if len(q.Spec.Scopes) == 0 && q.Spec.ScopeSelector == nil {
		return true
	}
	applies, err := evaluator().Matches(q, p)
	return err == nil && applies
}

// Release subtracts a pod that is removed from a quota that counts it.
func Release(q *corev1.ResourceQuota, p *corev1.Pod) {
	if !Applies(q, p) {
		return
	}
	if usage, err := evaluator().Usage(p); err == nil {
		used := quota.SubtractWithNonNegativeResult(q.Status.Used, quota.Mask(usage, quota.ResourceNames(q.Status.Used)))
		q.Status.Used = quota.Mask(used, quota.ResourceNames(q.Status.Used))
	}
}

// evaluator needs no list of pods and no clock for pods that are not being deleted.
func evaluator() quota.Evaluator { return core.NewPodEvaluator(nil, clock.RealClock{}) }
