package model

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
)

// Quota contains the status of a ResourceQuota. Its amounts have the names of the object: requests.cpu, pods, count/jobs.batch.
type Quota struct {
	Name      string
	Namespace string
	Hard      Resources
	Used      Resources
	Object    *corev1.ResourceQuota
}

// readQuota reads a ResourceQuota object. Until its status is written it limits nothing, as in the API server.
func readQuota(d *Dims, o *corev1.ResourceQuota, m *mistakes) *Quota {
	q := &Quota{Name: o.Name, Namespace: o.Namespace, Hard: d.Offers(o.Status.Hard), Used: d.Resources(o.Status.Used), Object: o}
	m.notNegative(d, "status.hard", q.Hard)
	m.notNegative(d, "status.used", q.Used)
	return q
}

func quotaName(q *Quota, name string) int { return strings.Compare(q.Name, name) }

// upsertQuota stores a quota in the list of its namespace, in name order.
func (c *Cluster) upsertQuota(o *corev1.ResourceQuota, m *mistakes) {
	q := readQuota(c.Dims, o, m)
	if len(m.errs) > 0 {
		c.removeQuota(o.Namespace, o.Name)
		return
	}
	list := c.Quotas[o.Namespace]
	i, known := slices.BinarySearchFunc(list, o.Name, quotaName)
	if known {
		list[i] = q
		return
	}
	c.Quotas[o.Namespace] = slices.Insert(list, i, q)
}

func (c *Cluster) removeQuota(namespace, name string) {
	list := c.Quotas[namespace]
	i, known := slices.BinarySearchFunc(list, name, quotaName)
	switch {
	case !known:
	case len(list) == 1:
		delete(c.Quotas, namespace)
	default:
		c.Quotas[namespace] = slices.Delete(list, i, i+1)
	}
}

// QuotaRequest returns a PodGroup's minResources by the names that ResourceQuotas use. In addition to cpu there may be requests.cpu and
// limits.cpu. It leaves out a name that nothing in the cluster has, not even a quota. It costs as much as reading the list.
func (c *Cluster) QuotaRequest(j *Job) Resources {
	group, ok := j.Object.(*v1beta1.PodGroup)
	if !ok || group.Spec.MinResources == nil {
		return nil
	}
	var out Resources
	for name, amount := range *group.Spec.MinResources {
		if i, known := c.Dims.Find(string(name)); known {
			out.Set(i, c.Dims.Amount(i, amount))
		}
	}
	return out
}

// checkQuotas checks that the list of each namespace is in name order, has no duplicates, and is not empty.
func (c *Cluster) checkQuotas() error {
	for _, namespace := range sortedKeys(c.Quotas) {
		list := c.Quotas[namespace]
		if len(list) == 0 {
			return fmt.Errorf("namespace %s: an empty list of quotas is kept", namespace)
		}
		for i, q := range list {
			if q.Namespace != namespace || i > 0 && list[i-1].Name >= q.Name {
				return fmt.Errorf("namespace %s: quota %s/%s is out of place", namespace, q.Namespace, q.Name)
			}
		}
	}
	return nil
}
