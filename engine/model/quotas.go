package model

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
)

// Quota is what a ResourceQuota's status says. Its amounts have the names as they are written there: requests.cpu, pods,
// count/jobs.batch.
type Quota struct {
	Name      string
	Namespace string
	Hard      Resources
	Used      Resources
	Object    *corev1.ResourceQuota
}

// readQuota is what a ResourceQuota object says. Until its status is written it limits nothing, as for the API server.
func readQuota(d *Dims, o *corev1.ResourceQuota, m *mistakes) *Quota {
	q := &Quota{Name: o.Name, Namespace: o.Namespace, Hard: d.Offers(o.Status.Hard), Used: d.Resources(o.Status.Used), Object: o}
	m.notNegative(d, "status.hard", q.Hard)
	m.notNegative(d, "status.used", q.Used)
	return q
}

func quotaName(q *Quota, name string) int { return strings.Compare(q.Name, name) }

// upsertQuota files a quota under its namespace, in name order.
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

// QuotaRequest is a PodGroup's minResources by the names that ResourceQuotas use, as they are written: beside cpu there may be
// requests.cpu and limits.cpu. A name that nothing in the cluster has, no quota either, is left out. It costs as much
// as reading the list.
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

// checkQuotas: each namespace's list is in name order, without doubles, and none is empty.
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
