package live

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/report"
)

// reasonBindRefused is the reason in a PodGroup's condition while a refused binding keeps the group incomplete.
const reasonBindRefused = "BindRefused"

// broken is the state of a group with a refused binding, until the group is whole again.
type broken struct {
	since    time.Time
	text     string
	released time.Time // when its bound members were last evicted; zero: never
}

// refused records that a member's binding was refused.
func (g *group) refused(t *model.Task, h *hold, now time.Time) {
	if g.broken == nil {
		g.broken = &broken{since: now}
	}
	g.broken.text = fmt.Sprintf("binding pod %s to node %s was refused %d time(s): %s", t.Name, h.node, h.failures, h.why)
}

// explained returns a status whose Unschedulable condition also reports the refused binding.
func (g *group) explained(st *model.JobStatus) *model.JobStatus {
	if st.Condition == nil || st.Condition.Type != string(v1beta1.PodGroupUnschedulableType) {
		return st
	}
	with, condition := *st, *st.Condition // copies, because the plan may be read again
	condition.Reason = reasonBindRefused
	condition.Message = report.Short(condition.Message + "; " + g.broken.text)
	with.Condition = &condition
	return &with
}

// gangs handles groups with a refused binding. A group that is whole again is forgotten. If a group never was whole and stays incomplete
// for longer than the gang timeout, its bound members are evicted. An incomplete gang is useless, and other jobs can use its resources. A
// group that was whole before keeps its members, because they would lose work.
func (l *loop) gangs(now time.Time) {
	for key, g := range l.broken {
		j := l.cluster.Jobs[key]
		if j == nil || g.broken == nil || l.intake.groups[key] != g { // the group is gone, or another group has its name
			delete(l.broken, key)
			continue
		}
		placed := j.Counts[model.Bound] + j.Counts[model.Running] + j.Counts[model.Succeeded]
		switch {
		case placed >= j.MinMember && l.noneHeld(j):
			g.broken = nil
			l.statuses.look(key)
			delete(l.broken, key)
		case placed >= j.MinMember || g.wasWhole || placed == 0 || j.Counts[model.Binding] > 0:
		case now.Sub(g.broken.since) >= l.gangTimeout && now.Sub(g.broken.released) >= l.gangTimeout:
			l.release(j, g, now)
		}
	}
}

// noneHeld reports whether no member of a job is in back-off.
func (l *loop) noneHeld(j *model.Job) bool {
	for _, t := range j.Tasks {
		if h := l.intake.holds[t.Key]; h != nil && h.uid == t.UID {
			return false
		}
	}
	return true
}

// release evicts the bound members of a group.
func (l *loop) release(j *model.Job, g *group, now time.Time) {
	g.broken.released = now
	l.events.Eventf(g.object, corev1.EventTypeWarning, eventGangReleased,
		"not whole for %s; the members that are bound are evicted, so that others can use their place: %s", l.gangTimeout, g.broken.text)
	l.log.Info("a gang that cannot become whole is released", "podgroup", j.Key, "why", g.broken.text)
	for _, t := range j.Tasks {
		if t.Status == model.Bound || t.Status == model.Running {
			l.binder.evict(&eviction{victim: t.Object, Evict: model.Evict{
				Task: t.Key, UID: t.UID, Job: j.Key, Queue: j.QueueName, Node: t.NodeName,
				Reason: model.Reason{Table: "builtin", Rule: "gang", Text: "its group " + j.Name + " cannot become whole"},
			}})
		}
	}
}
