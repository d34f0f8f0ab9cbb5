package beside

import (
	"slices"

	"github.com/celsius-scheduler/celsius/engine/explain"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/session"
)

// against tells what the policy says to the node that the other took: which row refuses it, or how it scores beside the node that the
// policy chose, among all that have room.
func (x *Shadow) against(d *Difference, t *model.Task) {
	theirs, there := x.cluster.Nodes.Index[d.Other.Node]
	if !there {
		d.Refused = &model.Reason{Text: "no such node is seen"}
		return
	}
	s := x.looking(d)
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
