package live

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/celsius-scheduler/celsius/engine/live/outbox"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/report"
)

// waiting is what was last reported about a waiting pod.
type waiting struct {
	uid     string
	cycle   uint64 // the last cycle in which the pod waited
	said    saying
	cause   cause     // the cause that said describes, if said has a text
	told    bool      // an event was written, or the report of an earlier scheduler is still true
	differs time.Time // since when another report is wanted; zero: none is
	written time.Time
}

// saying is the reason why a pod waits, as its status contains it.
type saying struct {
	reason, text, node string
}

// cause is the reason why a pod waits, as a plan contains it. It is converted to text only if it changed.
type cause struct {
	reason string // the reason of the condition
	node   string // the node that is promised to the pod; "": none
	before string // text before the text of the plan
	why    model.Reason
	nodes  []model.NodeCount
	fared  model.Fared
	inVain []model.InVain
}

// same reports whether two causes result in the same report. A different node that was found and rolled back is not news, because this node
// changes in many cycles.
func (c *cause) same(o *cause) bool {
	return c.reason == o.reason && c.node == o.node && c.before == o.before && c.why == o.why && slices.Equal(c.nodes, o.nodes) &&
		slices.EqualFunc(c.inVain, o.inVain, model.InVain.Equal) && c.fared.Untried == o.fared.Untried &&
		(c.fared.Node == "") == (o.fared.Node == "")
}

// of reports whether both causes come from the same row.
func (c *cause) of(o *cause) bool {
	return c.reason == o.reason && c.why.Site == o.why.Site && c.why.Table == o.why.Table && c.why.Rule == o.why.Rule
}

func (c *cause) saying() saying {
	text := c.before + (&model.Wait{Reason: c.why, Nodes: c.nodes, Fared: c.fared, InVain: c.inVain}).String()
	return saying{c.reason, report.Short(text), c.node}
}

// wait writes the reason why a pod waits to its status, if the time for it has come. g is the pod's group; nil: none. Each pod of a group
// has the reason in its status, but only one gets an event if all wait for the same reason.
func (s *statuses) wait(t *model.Task, g *group, cycle uint64, c *cause, now time.Time) {
	w := s.waits[t.Key]
	if w == nil || w.uid != t.UID {
		w = &waiting{uid: t.UID, said: saidOf(t.Object)}
		s.waits[t.Key] = w
	}
	w.cycle = cycle
	if w.said.text != "" && w.cause.same(c) {
		w.differs = time.Time{}
		return
	}
	say := c.saying()
	if w.said == say {
		w.cause, w.told, w.differs = *c, true, time.Time{}
		return
	}
	if w.differs.IsZero() {
		w.differs = now
	}
	news := !w.told || !w.cause.of(c)
	switch {
	case now.Sub(w.differs) < settleTime:
		s.notBefore(w.differs.Add(settleTime))
		return
	case !news && w.said.node == say.node && now.Sub(w.written) < textEvery:
		s.notBefore(w.written.Add(textEvery))
		return
	}
	shared := *c
	shared.fared = model.Fared{}
	if news && g.news(shared.saying()) {
		s.events.Event(t.Object, corev1.EventTypeWarning, eventFailedScheduling, say.text)
	}
	first := w.said.reason == ""
	w.said, w.cause, w.told, w.differs, w.written = say, *c, true, time.Time{}, now
	s.writePod(t, say, first, now)
}

// stillMade keeps a pod's status unchanged until the given time, because its group is still being created.
func (s *statuses) stillMade(t *model.Task, cycle uint64, until time.Time) {
	s.notBefore(until)
	if w := s.waits[t.Key]; w != nil && w.uid == t.UID {
		w.cycle = cycle
	}
}

// news reports whether a group has had no event with this text, and records the text. Without a group (nil) it returns true.
func (g *group) news(say saying) bool {
	if g == nil {
		return true
	}
	was := g.told
	g.told = say
	return was != say
}

// saidOf reads the report that a pod's status already contains from before a restart.
func saidOf(p *corev1.Pod) saying {
	say := saying{node: p.Status.NominatedNodeName}
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason != corev1.PodReasonSchedulingGated {
			say.reason, say.text = c.Reason, c.Message
		}
	}
	return say
}

// podCondition is a condition in a strategic merge patch: a missing field keeps its value.
type podCondition struct {
	Type               corev1.PodConditionType `json:"type"`
	Status             corev1.ConditionStatus  `json:"status"`
	Reason             string                  `json:"reason"`
	Message            string                  `json:"message"`
	LastTransitionTime *metav1.Time            `json:"lastTransitionTime,omitempty"`
}

type podBody struct {
	Conditions        []podCondition `json:"conditions"`
	NominatedNodeName *string        `json:"nominatedNodeName"` // null removes it
}

// writePod puts the patch of a pod's status into the outbox. The patch applies only to the pod version that the decision used. So it never
// reports a pod as waiting that was bound meanwhile.
func (s *statuses) writePod(t *model.Task, say saying, first bool, now time.Time) {
	c := podCondition{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: say.reason, Message: say.text}
	if first {
		at := metav1.NewTime(now)
		c.LastTransitionTime = &at
	}
	body := podBody{Conditions: []podCondition{c}}
	if say.node != "" {
		body.NominatedNodeName = &say.node
	}
	namespace, name, uid, version := t.Namespace, t.Name, t.UID, t.Object.ResourceVersion
	s.outbox.Put(outbox.Status, podKey(t.Key), guarded(s.feed, t.Object, func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(ctx, writeTimeout)
		defer cancel()
		err := s.pods.PatchStatus(ctx, namespace, name, encode(applyBody{
			Metadata: applyMeta{UID: types.UID(uid), ResourceVersion: version}, Status: body,
		}))
		if err != nil && !apierrors.IsNotFound(err) {
			s.feed.add(change{object: &podOutcome{model.Key(namespace, name), uid, err}}, false)
		}
	}, nil))
}

func podKey(task string) string { return "pod/" + task }

// podOutcome reports that a pod's status could not be written.
type podOutcome struct {
	key, uid string
	err      error
}

func (s *statuses) podNotWritten(out *podOutcome) {
	if w := s.waits[out.key]; w != nil && w.uid == out.uid {
		w.said.text, s.stale = "", true // so that the next comparison finds a difference and writes again
	}
	if !apierrors.IsConflict(out.err) {
		s.log.V(1).Info("a pod's status could not be written; it is tried again", "pod", out.key, "error", out.err.Error())
	}
}

// forgetWaits drops pods that no longer wait.
func (s *statuses) forgetWaits(cycle uint64) {
	for key, w := range s.waits {
		if w.cycle != cycle {
			s.outbox.Cancel(podKey(key))
			delete(s.waits, key)
		}
	}
}

// nominated returns the node on which evicted pods free resources for a pod, or "". The pod's status names the node, for later decisions.
func (l *loop) nominated(b *model.Bind) string {
	if t := l.cluster.Tasks[b.Task]; t != nil {
		return t.NominatedNode
	}
	return ""
}

// waitsOf writes the condition of every pod that a plan leaves waiting.
func (l *loop) waitsOf(plan *model.Plan, now time.Time) {
	reasons := report.NewPodReasons(plan)
	for i := range plan.Pipelines {
		b := &plan.Pipelines[i]
		if j := l.cluster.Jobs[b.Job]; j != nil {
			before := "waits for resources that are being released on node " + b.Node + ": "
			l.waitOf(b.Task, cause{reason: reasons.Promised(j, b), node: l.nominated(b), before: before, why: b.Reason}, now)
		}
	}
	for i := range plan.Holds {
		b := &plan.Holds[i]
		if j := l.cluster.Jobs[b.Job]; j != nil {
			before := "a place on node " + b.Node + " is kept while its group waits for the rest: "
			l.waitOf(b.Task, cause{reason: reasons.Held(j), node: l.nominated(b), before: before, why: b.Reason}, now)
		}
	}
	for i := range plan.Waits {
		w := &plan.Waits[i]
		if j := l.cluster.Jobs[w.Job]; w.Task != "" && j != nil {
			l.waitOf(w.Task, cause{reason: reasons.Of(j, w), why: w.Reason, nodes: w.Nodes, inVain: w.InVain}, now)
		}
	}
	for i := range plan.Waits {
		w := &plan.Waits[i]
		j := l.cluster.Jobs[w.Job]
		if w.Task != "" || j == nil {
			continue
		}
		reason := reasons.Of(j, w)
		for t, fared := range w.Tasks(j) {
			if s := l.statuses.waits[t.Key]; s == nil || s.cycle != l.cycle || s.uid != t.UID {
				l.waitOf(t.Key, cause{reason: reason, why: w.Reason, nodes: w.Nodes, fared: fared, inVain: w.InVain}, now)
			}
		}
	}
	l.statuses.forgetWaits(l.cycle)
}

// waitOf records why one task waits. A task in back-off after a refused binding has a reason of its own. A task with gates of its user has
// its reason from the API server.
func (l *loop) waitOf(key string, c cause, now time.Time) {
	t := l.cluster.Tasks[key]
	if t == nil || t.Foreign || t.Status != model.Pending {
		return
	}
	l.cluster.Handle(t)
	if h := l.intake.holds[key]; h != nil && h.uid == t.UID && h.held {
		c = cause{reason: report.ReasonSchedulerError, why: model.Reason{Table: "builtin", Rule: "back-off", Text: h.text()}}
	} else if t.Gated {
		return
	}
	g := l.intake.groups[t.Job.Key]
	if g != nil {
		if until := g.making(t.Job, now); !until.IsZero() {
			l.statuses.stillMade(t, l.cycle, until)
			return
		}
	}
	l.statuses.wait(t, g, l.cycle, &c, now)
}

// text returns why a pod is in back-off.
func (h *hold) text() string {
	return fmt.Sprintf("its binding to node %s was refused: %s", h.node, h.why)
}
