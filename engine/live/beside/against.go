package beside

import (
	"slices"

	"github.com/celsius-scheduler/celsius/engine/explain"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/session"
)

// against tells what the policy says to the node that the other took: which row refuses it, or how it scores beside the node that the
// policy chose, among all that have room. The cluster is afterwards as it was.
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
		return // it has no room by now: something else changed as well
	}
	scores := s.ScoreAmong(t, nodes)
	d.Other.Scores, d.Celsius.Scores = scores[a], scores[b]
}

// before goes through the pods of a pod's job that the plan places before it and that wait still, each with its place: its node was chosen
// beside them.
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

// looking is a session of its own in which the cluster is looked at as it stands, between the cycles.
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
