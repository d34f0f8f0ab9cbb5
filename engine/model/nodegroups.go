package model

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/celsius-scheduler/celsius/crds/decode"
	"github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
)

// NodeGroups contains a queue's spec.affinity: groups of nodes, each list in the order of the object.
type NodeGroups struct {
	Required, Preferred, AntiRequired, AntiPreferred []string
}

// readNodeGroups returns nil if a queue has no affinity.
func readNodeGroups(a *v1beta1.Affinity) *NodeGroups {
	if a == nil {
		return nil
	}
	g := &NodeGroups{}
	if to := a.NodeGroupAffinity; to != nil {
		g.Required, g.Preferred = to.RequiredDuringSchedulingIgnoredDuringExecution, to.PreferredDuringSchedulingIgnoredDuringExecution
	}
	if from := a.NodeGroupAntiAffinity; from != nil {
		g.AntiRequired, g.AntiPreferred = from.RequiredDuringSchedulingIgnoredDuringExecution,
			from.PreferredDuringSchedulingIgnoredDuringExecution
	}
	return g
}

// readNodeGroupLimits reads a queue's limits by node group, {"group": {"cpu": "3"}}, from its annotation. A mistake in it does not make the
// Queue object invalid, because the queue would then be left out. The readers of the limits report the mistake.
func readNodeGroupLimits(d *Dims, annotations map[string]string) (map[string]Resources, error) {
	text := annotations[NodeGroupLimitsAnnotation]
	if text == "" {
		return nil, nil
	}
	var lists map[string]corev1.ResourceList
	if err := decode.JSON([]byte(text), &lists); err != nil {
		return nil, fmt.Errorf("annotation %s must be JSON such as {\"group\": {\"cpu\": \"3\"}}: %w", NodeGroupLimitsAnnotation, err)
	}
	limits := make(map[string]Resources, len(lists))
	for _, group := range sortedKeys(lists) {
		limits[group] = d.Offers(lists[group])
	}
	return limits, nil
}

// parentOf returns the parent of q. It is root if q names none; nil for root itself, and if the parent does not exist.
func (c *Cluster) parentOf(q *Queue) *Queue {
	switch {
	case q.Name == v1beta1.RootQueue:
		return nil
	case q.Parent == "":
		return c.Queues[v1beta1.RootQueue]
	}
	return c.Queues[q.Parent]
}

// NodeGroupsInherited returns the node groups of the queue, or of its nearest ancestor that has some; nil if none has. Queues whose parents
// form a circle have those of the first queue that has some.
func (c *Cluster) NodeGroupsInherited(q *Queue) *NodeGroups {
	for range len(c.Queues) + 1 {
		if q == nil || q.NodeGroups != nil {
			break
		}
		q = c.parentOf(q)
	}
	if q == nil {
		return nil
	}
	return q.NodeGroups
}
