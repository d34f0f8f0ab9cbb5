package beside

import (
	"slices"

	"github.com/celsius-scheduler/celsius/engine/explain"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/session"
)

// against records the policy's view of the node that the other scheduler chose. It is the row that refuses the node, or the node's scores
// compared with those of the policy's node. Scores are computed among all nodes with enough resources. It leaves the cluster unchanged.
func (x *Shadow) against(d *Difference, t *model.Task) {
	theirs, there := x.cluster.Nodes.Index[d.Other.Node]
	if !there {
		d.Refused = &model.Reason{Text: "no such node is seen"}
		return
	}
	s := x.looking(d)
	txn := x.cluster.Begin()
	defer txn.Rollback(0)
	x.before(t, func(mate *model.Task, row int32) { txn.Allocate(mate, row, s.Devices(mate, row, false)) })
	if why, refuses := explain.WhyNot(s, t, theirs); refuses {
		d.Refused = &why
		return
	}
	nodes := s.Class(t).Roomy()
	a, b := slices.Index(nodes, theirs), slices.Index(nodes, x.cluster.Nodes.Index[d.Celsius.Node])
	if a < 0 || b < 0 {
		return // the node no longer has the resources: something else changed as well
	}
	scores := s.ScoreAmong(t, nodes)
	d.Other.Scores, d.Celsius.Scores = scores[a], scores[b]
}

// before calls do for the pods of a pod's job that the plan places before it and that still wait. The policy chose the pod's node with
// these placements in effect.
func (x *Shadow) before(t *model.Task, do func(mate *model.Task, row int32)) {
	for i := range x.plan.Binds {
		b := &x.plan.Binds[i]
		if b.Task == t.Key {
			return
		}
		row, there := x.cluster.Nodes.Index[b.Node]
		mate := x.cluster.Tasks[b.Task]
		if b.Job == t.Job.Key && there && mate != nil && mate.Status == model.Pending && x.cluster.Nodes.FitsIdle(mate.Request, row) {
			do(mate, row)
		}
	}
}

// looking returns a separate session for examining the cluster between cycles.
func (x *Shadow) looking(d *Difference) *session.Session {
	switch {
	case x.look == nil:
		x.look = session.New(x.cluster, x.o.Policy)
	case x.look.Spent():
		x.look = x.look.Renewed()
	}
	session.BeganAs(x.look, x.decider.Session())
	x.look.Begin(d.At)
	return x.look
}
