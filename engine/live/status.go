package live

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
	"github.com/celsius-scheduler/celsius/engine/live/outbox"
	"github.com/celsius-scheduler/celsius/engine/model"
)

const (
	// settleTime is for how long a difference that nobody waits for must last before it is written: pods come one
	// after another, and what is said of the first is old when the last is there.
	settleTime = 400 * time.Millisecond
	// textEvery is the least time between two writes of one object that change words only.
	textEvery = 10 * time.Second
	// countsEvery is the least time between two writes of one object that change no phase: of what a group counts and why it waits, and of
	// what a queue holds.
	countsEvery = time.Second
	// startTime is for how long a difference of counts must last before it is written: the pods of a gang start one after another, too.
	startTime = 2 * time.Second
	// makingTime is for how long nothing is said of a group that lacks pods: after it was let in, and after each of its pods came.
	makingTime = 5 * time.Second
	// writeRetry is after what time a status that could not be written is tried again, and refusedRetry what is refused by admission.
	writeRetry   = 2 * time.Second
	refusedRetry = 30 * time.Second
	// compareEvery is the least time between two comparisons of all that is said with all that should be.
	compareEvery = 100 * time.Millisecond
)

// cycleName names a cycle, and the policy that it obeyed.
type cycleName struct {
	policy string // NAME@GENERATION
	number uint64
}

func (c cycleName) String() string { return fmt.Sprintf("%s/%d", c.policy, c.number) }

// groupStatus is the part of a PodGroup's status that is ours.
type groupStatus struct {
	phase                      string
	running, succeeded, failed int64
	conditions                 []v1beta1.PodGroupCondition // never changed in place
}

func (s *groupStatus) status() v1beta1.PodGroupStatus {
	return v1beta1.PodGroupStatus{
		Phase: v1beta1.PodGroupPhase(s.phase), Conditions: s.conditions,
		Running: int32(s.running), Succeeded: int32(s.succeeded), Failed: int32(s.failed),
	}
}

func readGroupStatus(g *v1beta1.PodGroup) groupStatus {
	return groupStatus{
		phase: string(g.Status.Phase), running: int64(g.Status.Running), succeeded: int64(g.Status.Succeeded), failed: int64(g.Status.Failed),
		conditions: g.Status.Conditions,
	}
}

// group is what the loop knows of a PodGroup, apart from the model.
type group struct {
	uid     types.UID
	object  *v1beta1.PodGroup // the newest seen; nil where pods name it and it is not there
	assumed assumed           // until it is there
	served  bool              // it is in the model, and is there

	members members

	seen    groupStatus  // last seen, or last written where that is newer
	version string       // the resource version that seen is of
	want    *groupStatus // what is on its way; nil: nothing
	differs time.Time    // since when something else than seen or want is wanted; zero: it is not
	written time.Time    // when the last write was asked for
	retry   time.Time    // not before

	wasWhole bool // at least minMember pods were bound once
	broken   *broken
	groupSaid
}

// members are the pods that name a group.
type members struct {
	own, foreign int       // ours, and other schedulers'
	asked        time.Time // when the group was let in, or the last of ours came: more may be on their way
}

// making is until when more pods of a group may be on their way of which it lacks some to start; zero: it lacks none.
func (g *group) making(j *model.Job, now time.Time) time.Time {
	if until := g.members.asked.Add(makingTime); j.TaskCount() < j.MinMember && now.Before(until) {
		return until
	}
	return time.Time{}
}

// groupSaid is what was said of a group, in its status and by events.
type groupSaid struct {
	cause    string   // the row that the condition last written is of
	told     saying   // the last event of why pods wait; "": none since the group's condition changed
	unheeded []string // what it asks for that no decision heeds
}

// phase is where the group stands, whether others can see that yet or not.
func (g *group) phase() string {
	switch {
	case g.want != nil:
		return g.want.phase
	case g.assumed.reached != "" && (g.seen.phase == "" || g.seen.phase == model.PhasePending):
		return g.assumed.reached
	}
	return g.seen.phase
}

// newest is what is said of the group, or will be.
func (g *group) newest() *groupStatus {
	if g.want != nil {
		return g.want
	}
	return &g.seen
}

// see takes in a version of the object. It is given back as the model is to have it: an older version
// than our own last word has our phase.
func (g *group) see(o *v1beta1.PodGroup) *v1beta1.PodGroup {
	if g.uid != o.UID {
		*g = group{uid: o.UID, members: g.members, served: g.served}
	}
	g.object = o
	stale := g.version != "" && olderThan(o.ResourceVersion, g.version)
	if !stale {
		g.seen, g.version = readGroupStatus(o), o.ResourceVersion
	}
	switch g.seen.phase {
	case model.PhaseRunning, model.PhaseUnknown, model.PhaseCompleted:
		g.wasWhole = true
	}
	if phase := g.phase(); phase != "" && phase != string(o.Status.Phase) {
		with := *o
		with.Status.Phase = v1beta1.PodGroupPhase(phase)
		return &with
	}
	return o
}

// olderThan compares resource versions of one object. Where they are no numbers nothing is older.
func olderThan(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && order < 0
}

// difference is what a status that is wanted would change.
type difference uint8

const (
	same difference = iota
	words
	counts
	condition
	phase
)

// compare says what st would change in a status.
func (s *groupStatus) compare(st *model.JobStatus) difference {
	if s.phase != st.Phase && (s.phase != "" || st.Phase != model.PhasePending) {
		return phase
	}
	d := same
	if s.running != st.Running || s.succeeded != st.Succeeded || s.failed != st.Failed {
		d = counts
	}
	if st.Condition == nil {
		if old := s.condition(string(v1beta1.PodGroupUnschedulableType)); old != nil && old.Status == corev1.ConditionTrue {
			return condition
		}
		return d
	}
	old := s.condition(st.Condition.Type)
	switch {
	case old == nil || string(old.Status) != st.Condition.Status || old.Reason != st.Condition.Reason:
		return condition
	case old.Message != st.Condition.Message:
		return max(d, words)
	}
	return d
}

func (s *groupStatus) condition(kind string) *v1beta1.PodGroupCondition {
	for i := range s.conditions {
		if string(s.conditions[i].Type) == kind {
			return &s.conditions[i]
		}
	}
	return nil
}

// with is s after st was written into it. Of Scheduled and Unschedulable only one is True; without a condition, as of a job that was let
// in and has no pods yet, Unschedulable is not.
func (s *groupStatus) with(st *model.JobStatus, cycle string, now time.Time) groupStatus {
	next := groupStatus{
		phase: st.Phase, running: st.Running, succeeded: st.Succeeded, failed: st.Failed,
		conditions: slices.Clone(s.conditions),
	}
	at := metav1.NewTime(now)
	if st.Condition == nil {
		if c := next.condition(string(v1beta1.PodGroupUnschedulableType)); c != nil && c.Status == corev1.ConditionTrue {
			c.Status, c.TransitionID, c.LastTransitionTime = corev1.ConditionFalse, cycle, at
		}
		return next
	}
	said := v1beta1.PodGroupCondition{
		Type: v1beta1.PodGroupConditionType(st.Condition.Type), Status: corev1.ConditionStatus(st.Condition.Status),
		Reason: st.Condition.Reason, Message: st.Condition.Message, TransitionID: cycle, LastTransitionTime: at,
	}
	found := false
	for i, c := range next.conditions {
		switch {
		case c.Type == said.Type:
			found = true
			if c.Status == said.Status {
				said.LastTransitionTime = c.LastTransitionTime
			}
			next.conditions[i] = said
		case c.Status == corev1.ConditionTrue && said.Status == corev1.ConditionTrue:
			c.Status, c.TransitionID, c.LastTransitionTime = corev1.ConditionFalse, cycle, at
			next.conditions[i] = c
		}
	}
	if !found {
		next.conditions = append(next.conditions, said)
	}
	return next
}

// quiet is st without a word on why the group waits but what was said before.
func (s *groupStatus) quiet(st *model.JobStatus) *model.JobStatus {
	with := *st
	with.Condition = nil
	if c := s.condition(string(v1beta1.PodGroupUnschedulableType)); c != nil && c.Status == corev1.ConditionTrue {
		with.Condition = &model.Condition{Type: string(c.Type), Status: string(c.Status), Reason: c.Reason, Message: c.Message}
	}
	return &with
}

// groupBody is the status of an apply. All of it is always there: what is left out could stay as another wrote it.
type groupBody struct {
	Phase      string                      `json:"phase"`
	Conditions []v1beta1.PodGroupCondition `json:"conditions"`
	Running    int64                       `json:"running"`
	Succeeded  int64                       `json:"succeeded"`
	Failed     int64                       `json:"failed"`
}

// groupOutcome is what became of a write of a PodGroup's status.
type groupOutcome struct {
	key    string
	uid    types.UID // "": it could not be made
	want   *groupStatus
	object *v1beta1.PodGroup // as it is now; nil: not written
	err    error
}

// statuses compares what should be written with what was, and puts the difference into the outbox.
// The loop owns it.
type statuses struct {
	server statusWriter
	pods   pods
	outbox *outbox.Outbox
	feed   *feed
	events *recorder
	log    logr.Logger
	waits  map[string]*waiting
	queues map[string]*queueState
	// bindingEvents is Options.BindingEvents.
	bindingEvents string

	told     []*model.JobStatus // what was compared last
	open     map[string]bool    // groups that are to be compared again though their status in the plan may be the same
	stale    bool               // something changed since all was compared
	again    time.Time          // when something that differs can be written, apart from that; zero: there is nothing
	compared time.Time          // when all was compared last
}

// due is when all is to be compared again, now or later; zero: not before something changes.
func (s *statuses) due(now time.Time) time.Time {
	at := s.again
	if s.stale {
		at = now
	}
	if earliest := s.compared.Add(compareEvery); !at.IsZero() && at.Before(earliest) {
		return earliest
	}
	return at
}

// look has a group compared again.
func (s *statuses) look(group string) {
	s.stale = true
	s.open[group] = true
}

// notBefore notes when something that differs can be written.
func (s *statuses) notBefore(at time.Time) {
	if s.again.IsZero() || at.Before(s.again) {
		s.again = at
	}
}

// group writes the status of a PodGroup, if it is time to.
func (s *statuses) group(g *group, j *model.Job, st *model.JobStatus, cycle cycleName, now time.Time) {
	base := g.newest()
	d := base.compare(st)
	if d == same {
		g.differs = time.Time{}
		return
	}
	s.open[j.Key] = true // until it is the same
	if until := g.making(j, now); !until.IsZero() {
		s.notBefore(until)
		if st = base.quiet(st); base.compare(st) < phase {
			return
		}
	}
	if now.Before(g.retry) {
		s.notBefore(g.retry)
		return
	}
	if g.differs.IsZero() {
		g.differs = now
	}
	// Whoever makes the pods of an admitted job waits for its phase.
	awaited := d == phase && st.Phase == model.PhaseInqueue && j.TaskCount() < max(j.MinMember, 1)
	if at := g.writeAt(d, st); !awaited && now.Before(at) {
		s.notBefore(at)
		return
	}
	if g.object == nil && !s.unmade(g, j.Key) {
		return
	}
	base = g.newest()
	next := base.with(st, cycle.String(), now)
	if g.cause = ""; st.Condition != nil {
		g.cause = st.Condition.Cause
	}
	if d >= condition {
		g.told = saying{}
		s.tellGroup(g, j, base, st, cycle.policy)
	}
	g.want, g.differs, g.written, g.assumed.reached = &next, time.Time{}, now, ""
	if awaited {
		g.members.asked = now
	}
	s.writeGroup(g, j, &next, awaited)
}

// unmade says whether the making of a PodGroup has not begun. Where it was to begin it is to begin anew, with what is to be said now.
func (s *statuses) unmade(g *group, key string) bool {
	if g.want != nil && !s.outbox.Cancel(groupWrite(key)) {
		return false
	}
	g.want = nil
	return true
}

// writeAt is when a difference is to be written that nobody waits for. Phases often follow each other within moments.
func (g *group) writeAt(d difference, st *model.JobStatus) time.Time {
	at := g.differs.Add(settleTime)
	later := func(t time.Time) {
		if t.After(at) {
			at = t
		}
	}
	if d == words && st.Condition.Cause == g.cause {
		later(g.written.Add(textEvery))
	}
	// Of a pod that is alone nobody waits for its PodGroup, and soon it counts as running.
	if d == counts || g.object == nil || g.assumed.reached != "" {
		later(g.differs.Add(startTime))
	}
	if d < phase {
		later(g.written.Add(countsEvery))
	}
	return at
}

// tellUnheeded records an event of each thing that a group asks for and no decision heeds, once.
func (s *statuses) tellUnheeded(g *group) {
	says := model.Unheeded(g.object)
	for _, text := range says {
		if !slices.Contains(g.unheeded, text) {
			s.events.Event(g.object, corev1.EventTypeWarning, eventNotYetHonoured, text)
		}
	}
	g.unheeded = says
}

// tellGroup records the events of a decision that changed. That a group of one pod runs is told by the annotations of the pod.
func (s *statuses) tellGroup(g *group, j *model.Job, base *groupStatus, st *model.JobStatus, policy string) {
	if st.Condition == nil || g.object == nil { // of one that is to be made it is told then
		return
	}
	old := base.condition(st.Condition.Type)
	news := old == nil || old.Status != corev1.ConditionTrue || old.Reason != st.Condition.Reason
	switch {
	case st.Condition.Type == string(v1beta1.PodGroupUnschedulableType) && news:
		s.events.Event(g.object, corev1.EventTypeWarning, eventUnschedulable, st.Condition.Message)
	case s.bindingEvents == BindingsOfNone, j.MinMember <= 1 && j.TaskCount() <= 1:
	case st.Condition.Type == string(v1beta1.PodGroupScheduled) && (news || base.phase != st.Phase) && st.Phase == model.PhaseRunning:
		s.events.Event(g.object, corev1.EventTypeNormal, eventScheduled, whereIs(j)+" by policy "+policy)
	}
}

// mostNodes is how many of its nodes the event of a gang names.
const mostNodes = 20

// whereIs says on which nodes the pods of a job are, and how many on each.
func whereIs(j *model.Job) string {
	on, pods := map[string]int{}, 0
	for _, t := range j.Tasks {
		if t.NodeName != "" && t.Job == j {
			on[t.NodeName]++
			pods++
		}
	}
	var words []string
	for i, node := range slices.Sorted(maps.Keys(on)) {
		if i == mostNodes {
			words = append(words, fmt.Sprintf("and %d more", len(on)-i))
			break
		}
		words = append(words, fmt.Sprintf("%s (%d)", node, on[node]))
	}
	return fmt.Sprintf("%d pod(s) on %d node(s): %s", pods, len(on), strings.Join(words, ", "))
}

// groupWrite is under what a write of a PodGroup stands in the outbox.
func groupWrite(key string) string { return "group/" + key }

func (s *statuses) writeGroup(g *group, j *model.Job, want *groupStatus, awaited bool) {
	if g.object == nil {
		s.make(g, j, want)
		return
	}
	key, namespace, name, uid, object := j.Key, g.object.Namespace, g.object.Name, g.uid, g.object
	c := outbox.Status
	if awaited {
		c = outbox.Awaited
	}
	s.outbox.Put(c, groupWrite(key), guarded(s.feed, object, func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(ctx, writeTimeout)
		defer cancel()
		body := groupBody{want.phase, want.conditions, want.running, want.succeeded, want.failed}
		if body.Conditions == nil {
			body.Conditions = []v1beta1.PodGroupCondition{}
		}
		o, err := s.server.ApplyGroup(ctx, namespace, name, encode(applyBody{
			v1beta1.GroupVersion.String(), "PodGroup", applyMeta{Namespace: namespace, Name: name, UID: uid}, body,
		}))
		out := &groupOutcome{key: key, uid: uid, want: want, err: err}
		if err == nil {
			out.object = o
		}
		s.feed.add(change{object: out}, false)
	}, func() {
		s.feed.add(change{object: &groupOutcome{key: key, uid: uid, want: want, err: errInternal}}, false)
	}))
}

// groupWritten takes in what became of a write.
func (s *statuses) groupWritten(g *group, out *groupOutcome, now time.Time) {
	if g == nil || g.want != out.want && g.uid != out.uid {
		return
	}
	s.look(out.key)
	if out.err == nil && (g.version == "" || !olderThan(out.object.ResourceVersion, g.version)) {
		g.seen, g.version = *out.want, out.object.ResourceVersion
	}
	if g.want == out.want {
		g.want = nil
	}
	if out.err != nil {
		g.retry = now.Add(writeRetry)
		if apierrors.IsForbidden(out.err) || apierrors.IsInvalid(out.err) {
			g.retry = now.Add(refusedRetry)
		}
		gone, made := apierrors.IsNotFound(out.err) || apierrors.IsConflict(out.err), apierrors.IsAlreadyExists(out.err)
		if !gone && !made {
			s.log.Info("a PodGroup's status could not be written; it is tried again", "podgroup", out.key, "error", out.err.Error())
		}
	}
}

// queueState is what was last said of a queue.
type queueState struct {
	object  *v1beta1.Queue
	last    map[string]string // what is, or was last, on its way
	written time.Time
	ours    bool // the field manager owns status.allocated
}

// queue writes what a queue holds, if it changed.
func (s *statuses) queue(q *model.Queue, st *model.QueueStatus, now time.Time) {
	state := s.queues[q.Name]
	if state == nil || state.object == nil || !state.ours && len(q.Jobs) == 0 {
		return
	}
	if maps.Equal(st.Allocated, state.last) {
		return
	}
	if now.Sub(state.written) < countsEvery {
		s.notBefore(state.written.Add(countsEvery))
		return
	}
	state.written = now
	amounts := maps.Clone(st.Allocated)
	if equalAmounts(state.object.Status.Allocated, amounts) {
		state.last = st.Allocated
		return
	}
	for name := range state.object.Status.Allocated {
		if _, ok := amounts[string(name)]; !ok {
			amounts[string(name)] = "0" // else what another wrote would stay
		}
	}
	state.last, state.ours = st.Allocated, true
	name, uid := q.Name, state.object.UID
	s.outbox.Put(outbox.Status, "queue/"+name, guarded(s.feed, state.object, func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(ctx, writeTimeout)
		defer cancel()
		err := s.server.ApplyQueue(ctx, name, encode(applyBody{
			v1beta1.GroupVersion.String(), "Queue", applyMeta{Name: name, UID: uid}, map[string]any{"allocated": amounts},
		}))
		if err != nil {
			s.feed.add(change{object: &queueOutcome{name, err}}, false)
		}
	}, nil))
}

// queueOutcome says that a queue's status could not be written.
type queueOutcome struct {
	name string
	err  error
}

func (s *statuses) queueNotWritten(out *queueOutcome) {
	if state := s.queues[out.name]; state != nil {
		state.last, s.stale = nil, true // so that it differs
	}
	if !apierrors.IsNotFound(out.err) && !apierrors.IsConflict(out.err) {
		s.log.Info("a queue's status could not be written; it is tried again", "queue", out.name, "error", out.err.Error())
	}
}

// seeQueue takes in a version of a queue, or that it is gone.
func (s *statuses) seeQueue(op model.Op, q *v1beta1.Queue) {
	s.stale = true
	if op == model.Delete {
		delete(s.queues, q.Name)
		return
	}
	state := s.queues[q.Name]
	if state == nil || state.object != nil && state.object.UID != q.UID {
		state = &queueState{}
		s.queues[q.Name] = state
	}
	state.object = q
	state.ours = state.ours || ownsAllocated(q)
}

// ownsAllocated says whether this scheduler's field manager owns status.allocated, or did before a restart.
func ownsAllocated(q *v1beta1.Queue) bool {
	for _, m := range q.ManagedFields {
		if m.Manager == FieldManager && m.Subresource == "status" {
			return true
		}
	}
	return false
}

// equalAmounts compares quantities by value; what is 0 may be left out.
func equalAmounts(have corev1.ResourceList, want map[string]string) bool {
	for name, text := range want {
		q, err := resource.ParseQuantity(text)
		if has, ok := have[corev1.ResourceName(name)]; err != nil || !ok && !q.IsZero() || has.Cmp(q) != 0 {
			return false
		}
	}
	for name, q := range have {
		if _, ok := want[string(name)]; !ok && !q.IsZero() {
			return false
		}
	}
	return true
}
