package live

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
	"github.com/celsius-scheduler/celsius/engine/live/lease"
	"github.com/celsius-scheduler/celsius/engine/live/outbox"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/report"
	"github.com/celsius-scheduler/celsius/rules/source"
)

const (
	// sparedFirst is the time for which a pod is protected after its first refused eviction. It doubles with each refusal, up to sparedMost.
	sparedFirst = 10 * time.Second
	sparedMost  = 5 * time.Minute
)

// evicted is the result of an eviction that succeeded. The other results are those of bindings: refused (the pod stays), gone (the pod no
// longer exists or is already terminating), unknown and unsent.
const evicted result = "evicted"

// recalled is the result of an eviction that is not tried again because it is no longer needed.
const recalled result = "recalled"

// eviction is one decided eviction.
type eviction struct {
	model.Evict
	policy    string // NAME@GENERATION
	namespace string
	name      string
	victim    *corev1.Pod
	group     *v1beta1.PodGroup // the victim's PodGroup; nil: none
	winner    *corev1.Pod       // the pod for which the victim is evicted; nil: none
	named     bool              // messages on the victim and on the winner may name the other pod
	marked    bool              // the pod's condition announces the eviction
	tries     int               // tries with an unknown outcome
	answered  int               // those of the tries that the API server answered
	recalled  atomic.Bool       // it must not be tried again
}

// text returns the reason of the eviction for the pod's event and condition.
func (e *eviction) text() string {
	if e.Action == "" {
		return source.Line("Pod is evicted, because " + e.Reason.Text)
	}
	return source.Line(fmt.Sprintf("Pod is evicted, because of %s: it %s (policy %s)", e.Action, e.because(), e.policy))
}

// because returns the reason of the eviction for the victim's owner.
func (e *eviction) because() string {
	if e.For == "" || e.named {
		return e.Reason.Text
	}
	return report.MakesRoom("a pod of another namespace", e.Rows)
}

// leaver returns the name of the victim for the winner's owner.
func (e *eviction) leaver() string {
	if e.named {
		return "pod " + e.Task
	}
	return "a pod of another namespace"
}

// evictOutcome is the outcome of an eviction.
type evictOutcome struct {
	eviction *eviction
	result   result
	err      error
}

// evictKey returns the key of an eviction's first try in the outbox.
func evictKey(task, uid string) string { return "evict/" + task + "/" + uid }

// evict passes an eviction to a worker.
func (b *binder) evict(e *eviction) {
	e.namespace, e.name, _ = strings.Cut(e.Task, "/")
	b.outbox.Put(outbox.Eviction, evictKey(e.Task, e.UID), func(ctx context.Context) { b.tryEvict(ctx, e) })
}

// tryEvict runs one attempt at an eviction. An eviction ends as evicted, refused or gone; until then it is tried again. Another try does no
// harm, because it names one pod by its UID. A recalled eviction is not tried again. If a try reached the pod after all, the pod's events
// report it.
func (b *binder) tryEvict(ctx context.Context, e *eviction) {
	guarded(b.feed, e.victim, func(ctx context.Context) { b.evictOnce(ctx, e) }, func() {
		b.feed.add(change{object: &evictOutcome{e, refused, errInternal}}, true)
	})(ctx)
}

func (b *binder) evictOnce(ctx context.Context, e *eviction) {
	if e.recalled.Load() {
		b.stays(ctx, e, "Pod is not evicted, because no pod needs its resources any more")
		b.feed.add(change{object: &evictOutcome{e, recalled, nil}}, true)
		return
	}
	result, err := b.sendAway(ctx, e)
	b.metrics.evict(e, result)
	switch result {
	case unknown, unsent:
		if ctx.Err() != nil {
			return // shutdown: the next leader sees whether the pod is terminating, and decides again
		}
		wait := min(unknownFirst<<min(e.tries, 10), unknownMost)
		if result == unknown {
			e.tries++
		}
		b.log.V(1).Info("it is not known that a pod is evicted; it is tried again", "pod", e.Task, "result", result, "after", wait,
			"error", err.Error())
		b.outbox.Later(wait, outbox.Eviction, "re"+evictKey(e.Task, e.UID), func(ctx context.Context) { b.tryEvict(ctx, e) })
		return
	case evicted:
		b.log.Info("evicted", "pod", e.Task, "for", e.For, "action", e.Action, "via", e.Via, "policy", e.policy, "rows", e.Rows)
		b.sentAway(e)
	case refused, gone:
		b.log.V(1).Info("not evicted", "pod", e.Task, "result", result, "error", errText(err))
	case bound, recalled: // no outcomes of an eviction that was sent
	}
	b.feed.add(change{object: &evictOutcome{e, result, err}}, result == refused)
}

// sendAway asks the API server to evict or to delete a pod. Before a deletion, it writes the reason to the pod, for users who see the pod
// end. After an eviction, it adds its reason to the condition of the API server, which would overwrite an earlier condition. So a pod that
// stays has no such condition, unless it was to be deleted.
func (b *binder) sendAway(ctx context.Context, e *eviction) (result, error) {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	var err error
	if e.Via == model.ViaDelete {
		if err = b.mark(ctx, e, corev1.ConditionTrue, e.text()); err == nil {
			err = b.pods.Delete(ctx, e.namespace, e.name, types.UID(e.UID))
		}
	} else if err = b.pods.Evict(ctx, e.namespace, e.name, types.UID(e.UID)); err == nil {
		if err := b.mark(ctx, e, corev1.ConditionTrue, e.text()); err != nil {
			b.log.V(1).Info("the condition of an evicted pod lacks the preemptor", "pod", e.Task, "error", err.Error())
		}
	}
	result := b.judge(ctx, e, err)
	if result == refused {
		b.stays(ctx, e, "Pod stays, as its eviction was refused")
	}
	return result, err
}

// stays writes to a pod that its eviction was refused, if an earlier condition announced the eviction.
func (b *binder) stays(ctx context.Context, e *eviction, text string) {
	if !e.marked {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	if err := b.mark(ctx, e, corev1.ConditionFalse, text); err != nil {
		b.log.V(1).Info("a pod that stays says still that it goes", "pod", e.Task, "error", err.Error())
	}
}

// mark writes to a pod whether it is evicted. A pod that was deleted, or that has another UID, is skipped without an error.
func (b *binder) mark(ctx context.Context, e *eviction, goes corev1.ConditionStatus, text string) error {
	if goes == corev1.ConditionTrue && e.marked {
		return nil
	}
	at := metav1.Now()
	err := b.pods.PatchStatus(ctx, e.namespace, e.name, encode(applyBody{
		Metadata: applyMeta{UID: types.UID(e.UID)},
		Status: struct {
			Conditions []podCondition `json:"conditions"`
		}{[]podCondition{{
			Type: corev1.DisruptionTarget, Status: goes, Reason: corev1.PodReasonPreemptionByScheduler, Message: text, LastTransitionTime: &at,
		}}},
	}))
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsInvalid(err) && !apierrors.IsConflict(err) {
		return err
	}
	e.marked = err == nil && goes == corev1.ConditionTrue
	return nil
}

// judge returns the result of an attempt.
func (b *binder) judge(ctx context.Context, e *eviction, err error) result {
	var status apierrors.APIStatus
	switch {
	case err == nil:
		return evicted
	case errors.Is(err, lease.ErrLapsed):
		return unsent
	case apierrors.IsNotFound(err), apierrors.IsConflict(err) && b.leaves(ctx, e):
		return gone
	case refuses(err):
		return refused
	}
	if errors.As(err, &status) && !apierrors.IsTimeout(err) && !apierrors.IsServerTimeout(err) && !apierrors.IsTooManyRequests(err) {
		e.answered++
	}
	if e.answered >= answeredTries || e.tries >= unknownTries {
		return refused
	}
	return unknown
}

// leaves reports whether a pod is gone or terminating. A conflict alone does not show this: another pod may have its name, or the API
// server's own tries met other writers.
func (b *binder) leaves(ctx context.Context, e *eviction) bool {
	pod, err := b.pods.Get(ctx, e.namespace, e.name)
	return apierrors.IsNotFound(err) || err == nil && (string(pod.UID) != e.UID || pod.DeletionTimestamp != nil)
}

// refuses reports whether an error is a refusal that another try would not change soon.
func refuses(err error) bool {
	return apierrors.HasStatusCause(err, policyv1.DisruptionBudgetCause) || apierrors.IsForbidden(err) || apierrors.IsInvalid(err) ||
		apierrors.IsBadRequest(err) || apierrors.IsUnauthorized(err) || apierrors.IsMethodNotSupported(err)
}

// refusal returns the message of the API server, and the message of the disruption budget that caused the refusal.
func refusal(err error) string {
	cause, ok := apierrors.StatusCause(err, policyv1.DisruptionBudgetCause)
	if !ok || cause.Message == "" {
		return errText(err)
	}
	return strings.TrimSuffix(errText(err), ".") + ": " + cause.Message
}

// evictedEvents writes an event with the reason on the victim, on its PodGroup, and on the pod for which the victim is evicted.
func evictedEvents(said *recorder) func(*eviction) {
	return func(e *eviction) {
		said.Event(e.victim, corev1.EventTypeWarning, eventEvict, e.text())
		if e.Action == "" {
			return
		}
		if e.group != nil {
			said.Eventf(e.group, corev1.EventTypeNormal, eventEvict, "%s: pod %s %s (policy %s)", e.Action, e.name, e.because(), e.policy)
		}
		if e.winner != nil {
			said.Eventf(e.winner, corev1.EventTypeNormal, eventRoomMade, "%s is evicted from node %s for it, because of %s, by %s (policy %s)",
				e.leaver(), e.Node, e.Action, strings.Join(e.Rows, ", "), e.policy)
		}
	}
}

// evictor stores what the loop knows about evictions.
type evictor struct {
	leaving map[string]*eviction // by pod: evictions that a pod waits for, with an unknown outcome
	spared  map[string]*spared   // protected pods, by pod
}

func newEvictor() evictor { return evictor{map[string]*eviction{}, map[string]*spared{}} }

// spared is a pod with refused evictions.
type spared struct {
	uid      string
	refusals int
}

// spare returns until when a pod is protected after another of its evictions was refused.
func (v *evictor) spare(t *model.Task, now time.Time) time.Time {
	s := v.spared[t.Key]
	if s == nil || s.uid != t.UID {
		s = &spared{uid: t.UID}
		v.spared[t.Key] = s
	}
	until := now.Add(min(sparedFirst<<min(s.refusals, 20), sparedMost))
	s.refusals++
	return until
}

// forget drops pods that no longer exist.
func (v *evictor) forget(c *model.Cluster) {
	for key, s := range v.spared {
		if t := c.Tasks[key]; t == nil || t.UID != s.uid {
			delete(v.spared, key)
		}
	}
}

// sendEvicts puts the evictions into the outbox. If a victim's binding is still in the outbox, it cancels the binding instead.
func (l *loop) sendEvicts(plan *model.Plan) {
	l.recall(func(e *eviction) bool { return !l.waitsStill(e) })
	for i := range plan.Evicts {
		e := &eviction{Evict: plan.Evicts[i], policy: l.stamp}
		t := l.cluster.Tasks[e.Task]
		if t == nil || t.UID != e.UID {
			continue
		}
		if l.outbox.Cancel(orderKey(t.Key, t.UID)) {
			delete(l.sent, t.Key)
			l.deltas = append(l.deltas, model.Delta{Op: model.Forget, Object: t.Object})
			continue
		}
		e.victim = t.Object
		e.group, _ = t.Job.Object.(*v1beta1.PodGroup)
		e.named = true
		if w := l.cluster.Tasks[e.For]; w != nil {
			e.winner, e.named = w.Object, l.policy().MayName(t.Namespace, w.Namespace)
		}
		l.evicts.leaving[e.Task] = e
		l.binder.evict(e)
	}
	l.apply()
}

// waitsStill reports whether the pod for which another pod is evicted still exists and has no node.
func (l *loop) waitsStill(e *eviction) bool {
	w := l.cluster.Tasks[e.For]
	return e.winner == nil || w != nil && w.UID == string(e.winner.UID) && w.Waits()
}

// recall cancels evictions that were not sent yet. An eviction that may have been sent is left to end, and is not tried again.
func (l *loop) recall(which func(*eviction) bool) {
	for key, e := range l.evicts.leaving {
		if !which(e) {
			continue
		}
		if !l.outbox.Cancel(evictKey(e.Task, e.UID)) {
			e.recalled.Store(true)
			continue
		}
		delete(l.evicts.leaving, key)
		if t := l.cluster.Tasks[key]; t != nil && t.UID == e.UID && assumedGoing(t) {
			l.deltas = append(l.deltas, model.Delta{Op: model.Forget, Object: t.Object})
		}
	}
	l.apply()
}

// assumedGoing reports whether the model counts a task as Releasing before its pod shows a deletion.
func assumedGoing(t *model.Task) bool {
	return t.Status == model.Releasing && t.Object.DeletionTimestamp == nil
}

// evictEnded handles the outcome of an eviction. The events of an evicted pod report its end. If a pod stays, its eviction is undone in the
// model, and so are the evictions for the same job that were not sent. The next cycles free resources for the job again. The pod is
// protected for a while. If the release of a gang fails (for example because of a disruption budget), the next release tries again.
func (l *loop) evictEnded(o *evictOutcome, now time.Time) {
	e := o.eviction
	if l.evicts.leaving[e.Task] == e {
		delete(l.evicts.leaving, e.Task)
	}
	if t := l.cluster.Tasks[e.Task]; o.result == recalled && t != nil && t.UID == e.UID && assumedGoing(t) {
		l.deltas = append(l.deltas, model.Delta{Op: model.Forget, Object: t.Object})
	}
	if o.result != refused {
		return
	}
	why := refusal(o.err)
	l.log.Info("a pod could not be evicted", "pod", e.Task, "for", e.For, "action", e.Action, "policy", e.policy, "error", why)
	t := l.cluster.Tasks[e.Task]
	if t == nil || t.UID != e.UID {
		return
	}
	if e.Action == "" {
		l.events.Eventf(t.Object, corev1.EventTypeWarning, eventEvict, "could not be evicted: %s", why)
		return
	}
	if !assumedGoing(t) {
		return
	}
	l.evicts.forget(l.cluster)
	until := l.evicts.spare(t, now.Round(0))
	if w := l.cluster.Tasks[e.For]; w != nil && l.waitsStill(e) {
		if !e.named { // the API server's answer names the pod and budgets of its namespace
			why = "the API server refused it"
		}
		l.events.Eventf(w.Object, corev1.EventTypeWarning, eventEvictRefused, "%s on node %s could not be evicted for it, because of %s, "+
			"and is left alone for %s (policy %s): %s", e.leaver(), e.Node, e.Action, until.Sub(now.Round(0)), e.policy, why)
	}
	t.Spare(until)
	l.record.Spared(t.Key, until)
	l.deltas = append(l.deltas, model.Delta{Op: model.Forget, Object: t.Object})
	l.recall(func(other *eviction) bool { return e.ForJob != "" && other.ForJob == e.ForJob })
	l.releaseRoom(e.ForJob)
}

// releaseRoom gives up the resources that victims free for a job.
func (l *loop) releaseRoom(job string) {
	l.record.Released(job)
	if j := l.cluster.Jobs[job]; j != nil {
		for _, t := range j.Tasks {
			l.cluster.Nominate(t, "")
		}
	}
}
