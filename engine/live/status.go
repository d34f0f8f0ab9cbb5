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
	// settleTime is how long a difference must last before it is written, if no client waits for it. Pods come one after another, and the
	// status for the first pod is outdated when the last pod exists.
	settleTime = 400 * time.Millisecond
	// textEvery is the minimum time between two writes of one object that change only texts.
	textEvery = 10 * time.Second
	// countsEvery is the minimum time between two writes of one object that change no phase. Such writes change counts and wait reasons of a
	// group, or usage of a queue.
	countsEvery = time.Second
	// startTime is how long a difference of counts must last before it is written. The pods of a gang start one after another, too.
	startTime = 2 * time.Second
	// makingTime is how long the scheduler reports nothing about a group that lacks pods, after its admission and after each new pod.
	makingTime = 5 * time.Second
	// writeRetry is the wait before a failed status write is tried again. refusedRetry is the wait after a refusal by admission.
	writeRetry   = 2 * time.Second
	refusedRetry = 30 * time.Second
	// compareEvery is the minimum time between two comparisons of all statuses.
	compareEvery = 100 * time.Millisecond
)

// cycleName names a cycle and the policy that it obeyed.
type cycleName struct {
	policy string // NAME@GENERATION
	number uint64
}

func (c cycleName) String() string { return fmt.Sprintf("%s/%d", c.policy, c.number) }

// groupStatus is the part of a PodGroup's status that the scheduler owns.
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

// group stores what the loop knows about a PodGroup outside the model.
type group struct {
	uid     types.UID
	object  *v1beta1.PodGroup // the newest version seen; nil: pods name the group, but it does not exist
	assumed assumed           // used until the PodGroup exists
	served  bool              // it is in the model and it exists

	members members

	seen    groupStatus  // the status last seen, or last written if that is newer
	version string       // the resource version of seen
	want    *groupStatus // the status that is being written; nil: none
	differs time.Time    // since when the wanted status differs from seen and want; zero: it does not differ
	written time.Time    // when the last write was put into the outbox
	retry   time.Time    // the next write must not be earlier

	wasWhole bool // at least minMember pods were bound at some time
	broken   *broken
	groupSaid
}

// members are the pods that name a group.
type members struct {
	own, foreign int       // ours, and those of other schedulers
	asked        time.Time // when the group was admitted, or its last pod of ours came: more pods may follow
}

// making returns until when more pods of a group may arrive that it needs to start; zero: it needs none.
func (g *group) making(j *model.Job, now time.Time) time.Time {
	if until := g.members.asked.Add(makingTime); j.TaskCount() < j.MinMember && now.Before(until) {
		return until
	}
	return time.Time{}
}

// groupSaid stores what was reported about a group in its status and in events.
type groupSaid struct {
	cause    string   // the row that caused the last written condition
	told     saying   // the last event about waiting pods; "": none since the group's condition changed
	unheeded []string // requested fields that no decision honors
}

// phase returns the phase of the group, even if other clients cannot see it yet.
func (g *group) phase() string {
	switch {
	case g.want != nil:
		return g.want.phase
	case g.assumed.reached != "" && (g.seen.phase == "" || g.seen.phase == model.PhasePending):
		return g.assumed.reached
	}
	return g.seen.phase
}

// newest returns the status that is written or being written.
func (g *group) newest() *groupStatus {
	if g.want != nil {
		return g.want
	}
	return &g.seen
}

// see takes in a version of the object, and returns it as the model stores it. If it is older than our last write, it gets our phase.
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

// olderThan compares resource versions of one object. It returns false if they are not numbers.
func olderThan(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && order < 0
}

// difference is the most important part that a wanted status would change.
type difference uint8

const (
	same difference = iota
	words
	counts
	condition
	phase
)

// compare returns what st would change in a status.
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

// with returns s after st was written into it. At most one of Scheduled and Unschedulable is True. If st has no condition (for example an
// admitted job without pods), Unschedulable becomes False.
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

// quiet returns st with the wait reason that was written before, if any, instead of a new one.
func (s *groupStatus) quiet(st *model.JobStatus) *model.JobStatus {
	with := *st
	with.Condition = nil
	if c := s.condition(string(v1beta1.PodGroupUnschedulableType)); c != nil && c.Status == corev1.ConditionTrue {
		with.Condition = &model.Condition{Type: string(c.Type), Status: string(c.Status), Reason: c.Reason, Message: c.Message}
	}
	return &with
}

// groupBody is the status in an apply. It always contains all fields: a missing field could keep the value of another client.
type groupBody struct {
	Phase      string                      `json:"phase"`
	Conditions []v1beta1.PodGroupCondition `json:"conditions"`
	Running    int64                       `json:"running"`
	Succeeded  int64                       `json:"succeeded"`
	Failed     int64                       `json:"failed"`
}

// groupOutcome is the outcome of a write of a PodGroup's status.
type groupOutcome struct {
	key    string
	uid    types.UID // "": the PodGroup could not be created
	want   *groupStatus
	object *v1beta1.PodGroup // the current version; nil: not written
	err    error
}

// statuses compares the wanted statuses with the written ones, and puts the differences into the outbox. The loop owns it.
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

	told     []*model.JobStatus // the statuses that were compared last
	open     map[string]bool    // groups that must be compared again even if the plan has the same status for them
	stale    bool               // something changed since the last comparison
	again    time.Time          // when a known difference can be written; zero: none is known
	compared time.Time          // when all statuses were last compared
}

// due returns when all statuses must be compared again; zero: not before something changes.
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

// look requests another comparison of a group.
func (s *statuses) look(group string) {
	s.stale = true
	s.open[group] = true
}

// notBefore records when a known difference can be written.
func (s *statuses) notBefore(at time.Time) {
	if s.again.IsZero() || at.Before(s.again) {
		s.again = at
	}
}

// group writes the status of a PodGroup if the time for it has come.
func (s *statuses) group(g *group, j *model.Job, st *model.JobStatus, cycle cycleName, now time.Time) {
	base := g.newest()
	d := base.compare(st)
	if d == same {
		g.differs = time.Time{}
		return
	}
	s.open[j.Key] = true // stays set until the written status is the same
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
	// A controller waits for the phase of an admitted job before it creates the job's pods.
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

// unmade reports whether the creation of a PodGroup has not begun. If the creation is in the outbox, unmade cancels it, so that it begins
// again with the current status.
func (s *statuses) unmade(g *group, key string) bool {
	if g.want != nil && !s.outbox.Cancel(groupWrite(key)) {
		return false
	}
	g.want = nil
	return true
}

// writeAt returns when a difference is written for which no client waits. Phases often follow each other quickly.
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
	// No client waits for the PodGroup of a bare pod, and the pod soon counts as running.
	if d == counts || g.object == nil || g.assumed.reached != "" {
		later(g.differs.Add(startTime))
	}
	if d < phase {
		later(g.written.Add(countsEvery))
	}
	return at
}

// tellUnheeded records one event for each field of a group that no decision honors.
func (s *statuses) tellUnheeded(g *group) {
	says := model.Unheeded(g.object)
	for _, text := range says {
		if !slices.Contains(g.unheeded, text) {
			s.events.Event(g.object, corev1.EventTypeWarning, eventNotYetHonoured, text)
		}
	}
	g.unheeded = says
}

// tellGroup records the events for a changed decision. For a group of one pod that runs, the pod's annotations replace the event.
func (s *statuses) tellGroup(g *group, j *model.Job, base *groupStatus, st *model.JobStatus, policy string) {
	if st.Condition == nil || g.object == nil { // a PodGroup that must be created gets its event after the creation
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

// mostNodes is the maximum number of nodes in the event of a gang.
const mostNodes = 20

// whereIs returns a text with the nodes of a job's pods, and the number of pods on each node.
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

// groupWrite returns the key of a PodGroup's write in the outbox.
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

// groupWritten handles the outcome of a write.
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

// queueState is the last written state of a queue.
type queueState struct {
	object  *v1beta1.Queue
	last    map[string]string // the amounts that are being written, or were last written
	written time.Time
	ours    bool // the field manager owns status.allocated
}

// queue writes the allocated amounts of a queue if they changed.
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
			amounts[string(name)] = "0" // otherwise the value of another client would stay
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

// queueOutcome reports that a queue's status could not be written.
type queueOutcome struct {
	name string
	err  error
}

func (s *statuses) queueNotWritten(out *queueOutcome) {
	if state := s.queues[out.name]; state != nil {
		state.last, s.stale = nil, true // so that the next comparison finds a difference
	}
	if !apierrors.IsNotFound(out.err) && !apierrors.IsConflict(out.err) {
		s.log.Info("a queue's status could not be written; it is tried again", "queue", out.name, "error", out.err.Error())
	}
}

// seeQueue takes in a version or the deletion of a queue.
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

// ownsAllocated reports whether the scheduler's field manager owns status.allocated, possibly from before a restart.
func ownsAllocated(q *v1beta1.Queue) bool {
	for _, m := range q.ManagedFields {
		if m.Manager == FieldManager && m.Subresource == "status" {
			return true
		}
	}
	return false
}

// equalAmounts compares quantities by value. A missing amount is 0.
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
