package model

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Every user who may create pods may set spec.nodeName, even to a node that does not exist, is not ready, or is full. Such a pod claims a
// node, but perhaps no kubelet ever admits it. This file decides in which sums the pod counts.

// unproven reports whether a pod names a node without proof that a scheduler or a kubelet placed it there. The API server resets the status
// of a new pod, so the pod's creator cannot forge the proof. A binding writes the condition PodScheduled, and the kubelet writes all of the
// status. A pod that this process bound needs no proof.
func unproven(t *Task) bool {
	s := &t.Object.Status
	if t.Object.Spec.NodeName == "" || t.ours || s.StartTime != nil || s.Phase != corev1.PodPending && s.Phase != "" {
		return false
	}
	return !slices.ContainsFunc(s.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodScheduled && c.Status == corev1.ConditionTrue
	})
}

// bindsTo reports whether this process decided to bind a task to a node.
func (t *Task) bindsTo(node string) bool {
	return t.NodeName == node && (t.ours || t.Status.onNode() && t.Object.Spec.NodeName == "")
}

// usesCluster reports whether a task on a node counts in the resources that the cluster uses.
func (t *Task) usesCluster() bool { return t.Status != Pipelined && !t.Unadmitted }

// countClaim adds a task to the claimants and to the number of unadmitted pods of its row, or removes it if sign is negative.
func (c *Cluster) countClaim(t *Task, sign int64) {
	switch {
	case !t.claims:
		return
	case sign > 0 && t.Status.onNode():
		c.books.claimants[t] = true
		c.books.claimRows[t.Node] = true
	default:
		delete(c.books.claimants, t)
	}
	if !t.Unadmitted || t.Node == NoNode {
		return
	}
	if c.books.unadmitted[t.Node] += int32(sign); c.books.unadmitted[t.Node] == 0 {
		delete(c.books.unadmitted, t.Node)
	}
}

// judgeClaims decides for each claimant of a node that changed whether the kubelet would admit it: the node is ready, and the pod fits next
// to all pods with proof and next to the admitted claimants that were created earlier.
func (c *Cluster) judgeClaims() {
	for _, row := range slices.Sorted(maps.Keys(c.books.claimRows)) {
		claimants := c.claimantsOf(row)
		if len(claimants) == 0 {
			continue
		}
		free := c.freeForClaims(row)
		for _, t := range claimants {
			admitted := free != nil && fitsWithin(t.Request, free)
			if admitted {
				free.AddIn(t.Request, -1)
			}
			c.setUnadmitted(t, !admitted)
		}
	}
	clear(c.books.claimRows)
}

// claimantsOf returns the claimants of a row, oldest first; of NoNode those whose node does not exist.
func (c *Cluster) claimantsOf(row int32) (out []*Task) {
	if row == NoNode {
		for t := range c.books.claimants {
			if t.Node == NoNode {
				out = append(out, t)
			}
		}
	} else {
		for _, t := range c.Nodes.Tasks[row] {
			if c.books.claimants[t] {
				out = append(out, t)
			}
		}
	}
	slices.SortFunc(out, func(a, b *Task) int { return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), strings.Compare(a.Key, b.Key)) })
	return out
}

// freeForClaims returns the resources of a node that pods with proof do not use; nil: the node does not exist or is not ready.
func (c *Cluster) freeForClaims(row int32) Resources {
	if row == NoNode || !c.Nodes.Rows[row].Ready {
		return nil
	}
	free := c.Nodes.AllocatableOf(row)
	for _, t := range c.Nodes.Tasks[row] {
		if t.Status != Pipelined && !t.claims {
			free.AddIn(t.Request, -1)
		}
	}
	return free
}

// fitsWithin reports whether a request fits, as the kubelet checks it: a request of 0 fits even on an overcommitted node.
func fitsWithin(r, free Resources) bool {
	for dim := range r {
		if r.Get(dim) > 0 && r[dim] > free.Get(dim)+Slack {
			return false
		}
	}
	return true
}

func (c *Cluster) setUnadmitted(t *Task, is bool) {
	if t.Unadmitted == is {
		return
	}
	c.account(t, -1)
	switch t.Unadmitted = is; {
	case is && t.Status == Bound:
		t.Status = Unknown
	case !is && t.Status == Unknown:
		t.Status = Bound
	}
	c.account(t, 1)
	c.Slots.Tasks.Change(t.Slot)
	c.touchTask(t, t.Node)
}

// usedOn returns the resources that pods use on a node, by dimension, and the rounding errors of these sums, without unadmitted pods.
func (c *Cluster) usedOn(row int32) func(dim int) (sum, rest float64) {
	if c.books.unadmitted[row] == 0 {
		return func(dim int) (float64, float64) { return c.Nodes.Used[dim][row], c.Nodes.rest(used, dim, row) }
	}
	var sum, rest Resources
	for _, t := range c.Nodes.Tasks[row] {
		if t.usesCluster() {
			sum.addSum(&rest, t.Request, 1)
		}
	}
	return func(dim int) (float64, float64) { return sum.Get(dim), rest.Get(dim) }
}

// list removes from a pod's request the extended resources that its node does not list, as the kubelet does at admission. The kubelet runs
// a pod that names its node and requests 1000 devices, even if the node has no such device.
func (c *Cluster) list(t *Task) {
	if t.asked != nil {
		t.Request, t.asked = t.asked, nil
	}
	if t.Node == NoNode {
		return
	}
	for dim := Pods + 1; dim < len(t.Request); dim++ {
		if !t.Request.Has(dim) || grants(&c.Nodes, t, dim) || !extended(c.Dims.Name(dim)) {
			continue
		}
		if t.asked == nil {
			t.asked, t.Request = t.Request, t.Request.Clone()
		}
		t.Request[dim] = Absent()
	}
}

// withheld returns the resources that a task on a node requests and no kubelet grants; nil: none. Like the request of a gated pod, they
// count as requested in the queue, but reserve nothing.
func (t *Task) withheld() Resources {
	switch {
	case t.Unadmitted && t.Status == Unknown:
		if t.asked != nil {
			return t.asked
		}
		return t.Request
	case t.asked != nil && t.Status.taken():
		out := t.asked.Clone()
		for dim := range out {
			if t.Request.Has(dim) {
				out[dim] = Absent()
			}
		}
		return out
	}
	return nil
}

// grants reports whether the node of a task has a resource to grant to it. A node that offers devices without a device plugin grants none
// to containers that request them. It cannot have granted more of them by annotations than it has, unless our record says so.
func grants(n *Nodes, t *Task, dim int) bool {
	if !lists(n, dim, t.Node) {
		return false
	}
	switch n.dims.Name(dim) {
	case GPUResource:
		if t.RequestsGPUs {
			return !n.Rows[t.Node].unlistedGPUs
		}
	case GPUMemoryResource:
	default:
		return true
	}
	return t.decided() || t.Request[dim] <= n.Allocatable[dim][t.Node]
}

// lists reports whether a node lists a resource, even if its amount is 0.
func lists(n *Nodes, dim int, row int32) bool {
	return dim < len(n.Allocatable) && n.Allocatable[dim][row] == n.Allocatable[dim][row]
}

// extended reports whether Kubernetes treats a resource as an extended resource.
func extended(name string) bool {
	return strings.Contains(name, "/") && !strings.Contains(name, corev1.ResourceDefaultNamespacePrefix)
}

// listAgain calls list for tasks after their node began to list other resources, or was removed.
func (c *Cluster) listAgain(tasks []*Task) {
	for _, t := range tasks {
		was := t.Request
		now := *t
		if c.list(&now); now.Request.Equal(was) {
			continue
		}
		c.account(t, -1)
		t.Request, t.asked = now.Request, now.asked
		c.account(t, 1)
		c.Slots.Tasks.Change(t.Slot)
		c.touchTask(t, t.Node)
	}
}

// checkClaims checks the list of claimants and the number of unadmitted pods by row.
func checkClaims(c *Cluster) error {
	claimants, unadmitted := map[*Task]bool{}, map[int32]int32{}
	for _, t := range c.Tasks {
		if t.claims && t.Status.onNode() {
			claimants[t] = true
		}
		switch {
		case t.Unadmitted && (!t.claims || t.Status != Unknown && t.Status != Releasing):
			return fmt.Errorf("task %s: is unadmitted, and %s", t.Key, t.Status)
		case t.Unadmitted && t.Node != NoNode:
			unadmitted[t.Node]++
		}
	}
	if !maps.Equal(claimants, c.books.claimants) || !maps.Equal(unadmitted, c.books.unadmitted) {
		return fmt.Errorf("%d tasks claim their nodes, %d are listed; unadmitted are %v, counted %v", len(claimants), len(c.books.claimants),
			unadmitted, c.books.unadmitted)
	}
	return nil
}
