package sim

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	resourcehelper "k8s.io/component-helpers/resource"

	batchv1alpha1 "github.com/celsius-scheduler/celsius/crds/batch/v1alpha1"
	schedulingv1beta1 "github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/podspec"
	"github.com/celsius-scheduler/celsius/engine/refuse"
	"github.com/celsius-scheduler/celsius/engine/sim/manifest"
	"github.com/celsius-scheduler/celsius/statemachines/objects"
)

// completeRestriction completes a ResourceQuota. It warns if ResourceQuotas and LimitRanges are not applied to the pods of Jobs.
func (c *completion) completeRestriction(i manifest.Item) {
	if q, ok := i.Object.(*corev1.ResourceQuota); ok {
		c.completeQuota(i, q)
	}
	if !refuse.IsApplied {
		c.warn(i.Value.Issuef("", "%s is not applied to the pods that Jobs create, because this page lacks the code of the API server", i.ID()))
	}
}

// podSecurity is the label of a Namespace for which the API server may refuse pods.
const podSecurity = "pod-security.kubernetes.io/enforce"

// warnPodSecurity warns of the first new Job of a namespace that enforces a level of Pod Security. The pods are created without a check of
// the level.
func (c *completion) warnPodSecurity(i manifest.Item, namespace string) {
	n, ok := c.find("Namespace", "", namespace).(*corev1.Namespace)
	if !ok || n.Labels[podSecurity] == "" || n.Labels[podSecurity] == "privileged" || slices.Contains(c.secured, namespace) {
		return
	}
	c.secured = append(c.secured, namespace)
	c.warn(i.Value.Issuef("", "Namespace %s has the label %s: %s, and Pod Security is not checked here: the API server may refuse the pods "+
		"of %s and other Jobs", namespace, podSecurity, n.Labels[podSecurity], i.ID()))
}

// completeQuota sets the limits in a quota's status, as the quota controller does.
func (c *completion) completeQuota(i manifest.Item, q *corev1.ResourceQuota) {
	if q.Status.Hard == nil {
		q.Status.Hard = q.Spec.Hard.DeepCopy()
	}
	if len(q.Spec.Scopes) > 0 || q.Spec.ScopeSelector != nil {
		c.warn(manifest.Deepest(i.Value, "spec").Issuef("", "%s has scopes, which are not heeded: it limits every job of its namespace", i.ID()))
	}
}

// noteCounted records which new budgets have no status, so that the world computes it. If the status of a new quota states its usage, it
// records the part that the pods of the world do not explain.
func (w *World) noteCounted(in []metav1.Object) {
	for _, o := range in {
		switch o := o.(type) {
		case *corev1.ResourceQuota:
			unexplained := o.Status.Used.DeepCopy()
			for name, used := range w.usedOf(o) {
				if amount, stated := unexplained[name]; stated {
					amount.Sub(used)
					unexplained[name] = amount
				}
			}
			w.unexplained[manifest.IDOf(o)] = unexplained
		case *policyv1.PodDisruptionBudget:
			w.counted[manifest.IDOf(o)] = equality.Semantic.DeepEqual(o.Status, policyv1.PodDisruptionBudgetStatus{})
		}
	}
}

// countQuotas does the work of the quota controller. A pod counts from the admission of its job, when a Job's controller would create it,
// or from when it has a node. It counts until it has finished.
func (w *World) countQuotas() error {
	var changed []metav1.Object
	for _, id := range w.sorted("ResourceQuota") {
		q := w.withUsage(id)
		if !equality.Semantic.DeepEqual(q, w.objects[id]) {
			changed = append(changed, q)
		}
	}
	return w.put(changed...)
}

// withUsage returns a copy of a quota that states what is used now.
func (s *store) withUsage(id manifest.ID) *corev1.ResourceQuota {
	q := s.objects[id].(*corev1.ResourceQuota).DeepCopy()
	q.Status.Used = s.usedOf(q)
	for name, more := range s.unexplained[id] {
		amount := q.Status.Used[name]
		amount.Add(more)
		q.Status.Used[name] = amount
	}
	return q
}

// restrictions returns the LimitRanges and the ResourceQuotas of a namespace. The used amounts include the pods that exist now.
func (c *completion) restrictions(namespace string) *refuse.Namespace {
	if n := c.namespaces[namespace]; n != nil {
		return n
	}
	n, w := &refuse.Namespace{}, c.world
	for _, id := range w.sorted("LimitRange") {
		if id.Namespace == namespace {
			n.Ranges = append(n.Ranges, w.objects[id].(*corev1.LimitRange).DeepCopy())
		}
	}
	for _, id := range w.sorted("ResourceQuota") {
		if id.Namespace == namespace {
			n.Quotas = append(n.Quotas, w.withUsage(id))
		}
	}
	if c.namespaces == nil {
		c.namespaces = map[string]*refuse.Namespace{}
	}
	c.namespaces[namespace] = n
	return n
}

// restricted divides items into two lists. The second list contains the pods of short-format jobs that a LimitRange or a ResourceQuota of
// their namespace restricts. Like the pods of a Job, these pods are created when their job is admitted. The items of the first list exist
// now.
func (s *store) restricted(items []manifest.Item) (now, restricted []manifest.Item) {
	if !refuse.IsApplied {
		return items, nil
	}
	namespaces := map[string]bool{}
	for id := range s.restricting {
		namespaces[id.Namespace] = true
	}
	for _, i := range items {
		if restricts(i.ID()) {
			namespaces[i.ID().Namespace] = true
		}
	}
	for _, i := range items {
		p, isPod := i.Object.(*corev1.Pod)
		if isPod && i.OfJob && p.Spec.NodeName == "" && namespaces[p.Namespace] && s.objects[i.ID()] == nil {
			restricted = append(restricted, i)
		} else {
			now = append(now, i)
		}
	}
	return now, restricted
}

// restricts reports whether an object restricts which pods are created.
func restricts(id manifest.ID) bool { return id.Kind == "LimitRange" || id.Kind == "ResourceQuota" }

// shortFormat adds the withheld pods of short-format jobs whose job is admitted, unless a restriction refuses them.
func (c *completion) shortFormat() {
	for _, id := range slices.SortedFunc(maps.Keys(c.world.withheld), manifest.CompareIDs) {
		delete(c.world.refusals, groupID(c.world.withheld[id].Object.(*corev1.Pod)))
	}
	for _, id := range slices.SortedFunc(maps.Keys(c.world.withheld), manifest.CompareIDs) {
		i := c.world.withheld[id]
		p := i.Object.(*corev1.Pod).DeepCopy()
		group := groupID(p)
		if g, ok := c.world.objects[group].(*schedulingv1beta1.PodGroup); !ok || !objects.Admitted(g) {
			continue
		}
		if c.isRefused(p, group, func() objects.Demand { return c.groupDemand(group) }) {
			continue
		}
		p.CreationTimestamp = metav1.NewTime(c.world.now)
		i.Object = p
		delete(c.world.withheld, id)
		c.add(i)
	}
}

// isRefused reports whether the API server refuses a pod that a controller is about to create. It records the reason if the job has none
// yet. An admitted pod gets the defaults of the LimitRanges.
func (c *completion) isRefused(p *corev1.Pod, job manifest.ID, demand func() objects.Demand) bool {
	n := c.restrictions(p.Namespace)
	if len(n.Ranges)+len(n.Quotas) == 0 {
		return false
	}
	objects.PodDefaults(p)
	err := n.Admit(p)
	if err == nil {
		return false
	}
	if c.world.refusals[job] == "" {
		c.world.refusals[job] = objects.NewRefusals().Reported(p, demand(), err)
	}
	return true
}

// jobDemand returns what a Job needs of a quota.
func (c *completion) jobDemand(j *batchv1alpha1.Job) objects.Demand {
	var pods []*corev1.Pod
	for t := range j.Spec.Tasks {
		for n := range int(j.Spec.Tasks[t].Replicas) {
			if p, ok := c.find("Pod", j.Namespace, objects.PodName(j.Name, j.Spec.Tasks[t].Name, n)).(*corev1.Pod); ok {
				pods = append(pods, p)
			}
		}
	}
	return objects.JobDemand(j, pods)
}

// groupDemand returns what a job of the short format needs of a quota.
func (c *completion) groupDemand(group manifest.ID) objects.Demand {
	var pods, missing []*corev1.Pod
	if j := c.world.cluster.Jobs[model.Key(group.Namespace, group.Name)]; j != nil {
		for _, t := range j.Tasks {
			pods = append(pods, t.Object)
		}
	}
	for _, i := range c.items { // pods that were created just now
		if p, ok := i.Object.(*corev1.Pod); ok && groupID(p) == group {
			pods = append(pods, p)
		}
	}
	for _, i := range c.world.withheld {
		if p := i.Object.(*corev1.Pod); groupID(p) == group {
			missing = append(missing, p)
		}
	}
	minMember := int32(0)
	if g, ok := c.world.objects[group].(*schedulingv1beta1.PodGroup); ok {
		minMember = g.Spec.MinMember
	}
	return objects.GroupDemand(minMember, pods, missing)
}

// quotaAmount returns the amount that a pod counts under one name of a quota.
func quotaAmount(p *corev1.Pod, name string) resource.Quantity {
	if name == "pods" || name == "count/pods" {
		return *resource.NewQuantity(1, resource.DecimalSI)
	}
	if limit, ok := strings.CutPrefix(name, "limits."); ok {
		return resourcehelper.PodLimits(p, resourcehelper.PodResourcesOptions{})[corev1.ResourceName(limit)]
	}
	request := strings.TrimPrefix(name, "requests.")
	return podspec.Requests(p)[corev1.ResourceName(request)]
}
