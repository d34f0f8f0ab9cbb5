package model

import (
	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
)

// Tolerates reports whether a task tolerates a taint.
func (t *Task) Tolerates(taint *corev1.Taint) bool {
	for i := range t.Tolerations {
		if t.Tolerations[i].ToleratesTaint(logr.Discard(), taint, true) {
			return true
		}
	}
	return false
}

// FirstUntolerated returns the first taint of a node, with effect NoSchedule or NoExecute, that a task does not tolerate.
func (t *Task) FirstUntolerated(n *Node) (corev1.Taint, bool) {
	for i := range n.Taints {
		taint := &n.Taints[i]
		if taint.Effect != corev1.TaintEffectPreferNoSchedule && !t.Tolerates(taint) {
			return *taint, true
		}
	}
	return corev1.Taint{}, false
}

// NodeRequirements is a text that is the same for tasks that require the same labels of nodes and have the same tolerations.
func (t *Template) NodeRequirements() string { return t.NodeAffinityKey + "\n" + t.TolerationsKey }
