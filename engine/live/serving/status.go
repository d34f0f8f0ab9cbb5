package serving

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/celsius-scheduler/celsius/crds/policy/v1alpha1"
	"github.com/celsius-scheduler/celsius/rules/source"
)

// fieldManager is the field manager of the status fields that all schedulers share. The field manager of a scheduler's own entry in
// status.schedulers is this name, a slash and the scheduler's name.
const fieldManager = "celsius-scheduler"

// Reasons of the conditions of a policy, in addition to v1alpha1.ReasonNotSelected.
const (
	reasonCompiled    = "Compiled"
	reasonNotCompiled = "DoesNotCompile"
	reasonServing     = "Serving"
	reasonPaused      = "Paused"
	reasonFaulty      = "RowFaulty"
	reasonShadow      = "Shadow"
	reasonTakenBack   = "RolledBack"
)

// Maximum numbers of errors of a broken policy in a status and an event. "celsius policy check" shows all.
const (
	mostMistakes = 10
	mostWarnings = 50
	mostMessage  = 8000 // characters; a condition's message may have 32,768
	mostEvent    = 1000 // an event's note may have 1,024
)

// report is the status that this scheduler last wanted to write for a policy. The cache may still contain an older one.
type report struct {
	status *v1alpha1.SchedulingPolicyStatus
	// activated and rejected are the generations that events have reported.
	activated, rejected int64
}

// reportOf returns the last report of a policy. The caller may change it.
func (p *Policies) reportOf(uid types.UID) *report {
	if p.reports[uid] == nil {
		p.reports[uid] = &report{}
	}
	return p.reports[uid]
}

// newObject returns the type for the informer: a policy as it is stored, with every field.
func newObject() *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("SchedulingPolicy"))
	return u
}

// policyRef returns the reference for an event about a policy.
func policyRef(name string, uid types.UID) *corev1.ObjectReference {
	return &corev1.ObjectReference{APIVersion: v1alpha1.GroupVersion.String(), Kind: "SchedulingPolicy", Name: name, UID: uid}
}

func notJSON(err error) source.Issue {
	return source.Issue{Path: "spec", Message: fmt.Sprintf("cannot be written as JSON: %v", err)}
}

// report writes the status of one policy if it differs from what it should be. Several schedulers with different names must not overwrite
// each other, so each field has one writer:
//
//   - its own entry of schedulers: each scheduler, in every policy
//   - the other fields of a policy that a scheduler serves: this scheduler. If two schedulers serve one policy, each writes its result
//     once, and does not react to the other
//   - the other fields of a policy that no scheduler serves: the first scheduler, unless the policy has changed meanwhile
func (p *Policies) report(ctx context.Context, u *unstructured.Unstructured, c *candidate) error {
	var have v1alpha1.SchedulingPolicyStatus
	if status, ok := u.Object["status"].(map[string]any); ok {
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(status, &have); err != nil {
			have = v1alpha1.SchedulingPolicyStatus{} // a client wrote an invalid status, so all of it is written again
		}
	}
	var own []v1alpha1.SchedulerStatus
	if serving := p.servingOf(u); serving != nil {
		erred, fresh := p.erring.rows(serving)
		own = append(own, v1alpha1.SchedulerStatus{
			Name: p.o.Scheduler, Generation: serving.generation,
			RuleErrors: erred[:min(len(erred), mostRows)],
		})
		p.tellErred(u, fresh)
	}
	var had, others []v1alpha1.SchedulerStatus
	for _, s := range have.Schedulers {
		if s.Name == p.o.Scheduler {
			had = append(had, s)
		} else {
			others = append(others, s)
		}
	}
	err := p.reportShared(ctx, u, c, &have, own, others)
	found, hadFound := p.shadows.of(c, p.o.Scheduler), shadowOf(have.Shadows, p.o.Scheduler)
	if !equality.Semantic.DeepEqual(own, had) || !equality.Semantic.DeepEqual(found, hadFound) {
		err = errors.Join(err, p.reportOwn(ctx, u, own, found))
	}
	return err
}

// reportOwn writes which generation of the policy this scheduler serves and its failed rows, or its results as a shadow.
func (p *Policies) reportOwn(ctx context.Context, u *unstructured.Unstructured, want []v1alpha1.SchedulerStatus,
	found []v1alpha1.ShadowStatus,
) error {
	status := &v1alpha1.SchedulingPolicyStatus{Schedulers: want, Shadows: found}
	err := p.apply(ctx, u, status, fieldManager+"/"+p.o.Scheduler, false)
	serving := p.servingOf(u)
	if before := p.reportOf(u.GetUID()); err == nil && serving != nil && serving.generation == u.GetGeneration() &&
		before.activated != u.GetGeneration() {
		before.activated = u.GetGeneration()
		how := ""
		switch {
		case serving.ofQueues && serving != p.serving:
			how = fmt.Sprintf(" in the queues that it names, alongside %s", p.serving)
		case modeOf(u) == v1alpha1.ModePaused:
			how = "; it is paused: nothing is bound or evicted"
		}
		p.o.Events.Eventf(u, corev1.EventTypeNormal, eventActivated, "scheduler %s serves %s (%d rules)%s", p.o.Scheduler, serving,
			serving.policy.RuleCount(), how)
	}
	return err
}

// reportShared writes the fields that do not depend on the scheduler. own and others are the entries of schedulers.
func (p *Policies) reportShared(ctx context.Context, u *unstructured.Unstructured, c *candidate, have *v1alpha1.SchedulingPolicyStatus, own,
	others []v1alpha1.SchedulerStatus,
) error {
	selected := u.GetName() == p.o.Name
	if !selected && !p.isPart(c) && len(others) > 0 {
		return nil // other schedulers write these fields
	}
	want := p.statusOf(c, selected, have.Conditions, erringCondition(slices.Concat(own, others), c.generation))
	before := p.reportOf(u.GetUID())
	if sameStatus(&want, have) {
		before.status = &want
		return nil
	}
	if (len(others) > 0 || !selected) && before.status != nil && sameStatus(&want, before.status) && answers(have, &want) {
		return nil // it was written once; another client wrote the current value
	}
	if err := p.apply(ctx, u, &want, fieldManager, !selected); err != nil {
		return err
	}
	before.status = &want
	if c.policy == nil && before.rejected != c.generation && (have.ObservedGeneration != c.generation ||
		!meta.IsStatusConditionFalse(have.Conditions, v1alpha1.ConditionCompiled)) {
		before.rejected = c.generation
		p.o.Events.Eventf(u, corev1.EventTypeWarning, eventRejected, "%s",
			cut(meta.FindStatusCondition(want.Conditions, v1alpha1.ConditionActive).Message, mostEvent))
	}
	return nil
}

// statusOf returns the status of a policy. Conditions keep their transition time from have. erring is nil if no row failed.
func (p *Policies) statusOf(c *candidate, selected bool, have []metav1.Condition,
	erring *metav1.Condition,
) v1alpha1.SchedulingPolicyStatus {
	want := v1alpha1.SchedulingPolicyStatus{ObservedGeneration: c.generation}
	for _, old := range have {
		if old.Type == v1alpha1.ConditionCompiled || old.Type == v1alpha1.ConditionActive || old.Type == v1alpha1.ConditionErring &&
			erring != nil {
			want.Conditions = append(want.Conditions, old)
		}
	}
	set := func(condition metav1.Condition) {
		condition.ObservedGeneration = c.generation
		condition.LastTransitionTime = metav1.NewTime(p.o.Now())
		condition.Message = cut(condition.Message, mostMessage)
		meta.SetStatusCondition(&want.Conditions, condition)
	}
	set(compiledCondition(c))
	set(p.activeCondition(c, selected))
	if erring != nil {
		set(*erring)
	}
	warnings := c.issues.Warnings()
	want.WarningCount = int32(min(len(warnings), 1<<30)) //nolint:gosec // bounded on the left
	if c.policy != nil {
		want.RuleCount = int32(min(c.policy.RuleCount(), 1<<30)) //nolint:gosec // bounded on the left
	}
	if len(warnings) > 0 {
		want.TypeChecking = &v1alpha1.TypeChecking{}
	}
	for _, w := range warnings[:min(len(warnings), mostWarnings)] {
		want.TypeChecking.ExpressionWarnings = append(want.TypeChecking.ExpressionWarnings, v1alpha1.ExpressionWarning{
			FieldRef: w.Path, Warning: w.Placed(),
		})
	}
	return want
}

func compiledCondition(c *candidate) metav1.Condition {
	if c.policy == nil {
		return metav1.Condition{
			Type: v1alpha1.ConditionCompiled, Status: metav1.ConditionFalse, Reason: reasonNotCompiled,
			Message: mistakes(c.issues.Errors()),
		}
	}
	message := count(c.policy.RuleCount(), "rule")
	if n := len(c.issues.Warnings()); n > 0 {
		message += ", " + count(n, "warning")
	}
	return metav1.Condition{Type: v1alpha1.ConditionCompiled, Status: metav1.ConditionTrue, Reason: reasonCompiled, Message: message}
}

func (p *Policies) activeCondition(c *candidate, selected bool) metav1.Condition {
	active := metav1.Condition{Type: v1alpha1.ConditionActive, Status: metav1.ConditionFalse}
	switch {
	case c.mode == v1alpha1.ModeShadow && c.policy != nil:
		active.Reason, active.Message = p.shadowSays(c, selected)
	case p.isPart(c):
		active.Status, active.Reason, active.Message = partSays(p, c)
	case !selected:
		active.Reason = v1alpha1.ReasonNotSelected
		active.Message = fmt.Sprintf("scheduler %s serves policy %q, which its flag --policy names", p.o.Scheduler, p.o.Name)
	case !c.fit():
		active.Reason = notServed(c)
		active.Message = fallbackMessage(choice{serving: p.serving, policy: p.Current(), skipped: p.skipped}, c)
	case c.mode == v1alpha1.ModePaused:
		active.Reason = reasonPaused
		active.Message = fmt.Sprintf("serving %s, paused: nothing is bound or evicted until spec.mode is Active", c)
	default:
		active.Status, active.Reason = metav1.ConditionTrue, reasonServing
		active.Message = fmt.Sprintf("serving %s", c)
	}
	return active
}

// notServed returns the reason why a selected policy does not serve, or "" if it serves or does not exist.
func notServed(c *candidate) string {
	switch {
	case c == nil || c.fit():
		return ""
	case c.policy == nil:
		return reasonNotCompiled
	case c.mode == v1alpha1.ModeShadow:
		return reasonShadow
	case c.faulty != "":
		return reasonFaulty
	}
	return reasonTakenBack
}

// fallbackMessage returns which policy serves in place of one that does not compile, is faulty, or was rolled back.
func fallbackMessage(c choice, selected *candidate) string {
	what := c.serving.String()
	if in := selected.inForce(true); in != "" {
		what += in
	} else if c.policy.Mode == string(v1alpha1.ModePaused) {
		what += ", paused"
	}
	if selected.policy != nil && selected.mode == v1alpha1.ModeShadow {
		return fmt.Sprintf("serving %s, because generation %d is a shadow, which is never obeyed", what, selected.generation)
	}
	if selected.policy != nil && selected.faulty == "" {
		return fmt.Sprintf("serving %s, because generation %d was rolled back: %s; change the policy to have it tried again", what,
			selected.generation, selected.takenBack)
	}
	if selected.policy != nil {
		return fmt.Sprintf("serving %s, because generation %d is faulty: %s; change the policy to have it tried again", what,
			selected.generation, selected.faulty)
	}
	message := fmt.Sprintf("serving %s, because generation %d does not compile: %s", what, selected.generation,
		mistakes(selected.issues.Errors()))
	if len(c.skipped) > 0 {
		message = fmt.Sprintf("serving %s, because generation %d does not compile, and nor does %s, which served before, under this version of "+
			"celsius: %s",
			what, selected.generation, c.skipped[0], mistakes(selected.issues.Errors()))
	}
	return message
}

// mistakes lists issues in one line.
func mistakes(issues source.Issues) string {
	if len(issues) == 1 {
		return mistake(issues[0])
	}
	var b strings.Builder
	b.WriteString(count(len(issues), "mistake"))
	for n, i := range issues[:min(len(issues), mostMistakes)] {
		sep := ", "
		if n == 0 {
			sep = ": "
		}
		fmt.Fprintf(&b, "%s(%d) %s", sep, n+1, mistake(i))
	}
	if more := len(issues) - mostMistakes; more > 0 {
		fmt.Fprintf(&b, ", and %d more", more)
	}
	return b.String()
}

func mistake(i source.Issue) string {
	if i.Path == "" {
		return i.Placed()
	}
	return i.Path + ": " + i.Placed()
}

// count returns a number with its noun: "1 rule", "2 rules".
func count(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}

// cut shortens a text to a number of characters.
func cut(text string, most int) string {
	if r := []rune(text); len(r) > most {
		return string(r[:most-1]) + "…"
	}
	return text
}

// sameStatus reports whether two statuses are equal except for times and schedulers.
func sameStatus(a, b *v1alpha1.SchedulingPolicyStatus) bool {
	warnings := func(s *v1alpha1.SchedulingPolicyStatus) []v1alpha1.ExpressionWarning {
		if s.TypeChecking == nil {
			return nil
		}
		return s.TypeChecking.ExpressionWarnings
	}
	condition := func(s *v1alpha1.SchedulingPolicyStatus, kind string) metav1.Condition {
		var out metav1.Condition
		if c := meta.FindStatusCondition(s.Conditions, kind); c != nil {
			out = *c
		}
		out.LastTransitionTime = metav1.Time{}
		return out
	}
	return a.ObservedGeneration == b.ObservedGeneration && a.RuleCount == b.RuleCount && a.WarningCount == b.WarningCount &&
		slices.Equal(warnings(a), warnings(b)) &&
		condition(a, v1alpha1.ConditionCompiled) == condition(b, v1alpha1.ConditionCompiled) &&
		condition(a, v1alpha1.ConditionActive) == condition(b, v1alpha1.ConditionActive) &&
		condition(a, v1alpha1.ConditionErring) == condition(b, v1alpha1.ConditionErring)
}

// answers reports whether a status refers to the generation of want, and has the same reason for Active as want. Any client may have
// written it.
func answers(have, want *v1alpha1.SchedulingPolicyStatus) bool {
	active := meta.FindStatusCondition(have.Conditions, v1alpha1.ConditionActive)
	wanted := meta.FindStatusCondition(want.Conditions, v1alpha1.ConditionActive)
	return have.ObservedGeneration == want.ObservedGeneration && active != nil && active.ObservedGeneration == want.ObservedGeneration &&
		(active.Reason == wanted.Reason || wanted.Reason != v1alpha1.ReasonNotSelected)
}

// apply writes a part of the status by server-side apply. If guarded, it writes only if the object has not changed since it was read.
func (p *Policies) apply(ctx context.Context, u *unstructured.Unstructured, status *v1alpha1.SchedulingPolicyStatus, manager string,
	guarded bool,
) error {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(status)
	if err != nil {
		return fmt.Errorf("status of SchedulingPolicy %s: %w", u.GetName(), err)
	}
	to := newObject()
	to.SetName(u.GetName())
	to.SetUID(u.GetUID())
	if guarded {
		to.SetResourceVersion(u.GetResourceVersion())
	}
	if len(status.Conditions) > 0 { // 0 must be written too
		content["ruleCount"], content["warningCount"] = int64(status.RuleCount), int64(status.WarningCount)
	}
	to.Object["status"] = content
	err = p.o.Client.Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(to), client.FieldOwner(manager), client.ForceOwnership)
	switch {
	case apierrors.IsNotFound(err), apierrors.IsConflict(err):
		return nil // it changed meanwhile: its event starts this again
	case err != nil:
		return fmt.Errorf("write status of SchedulingPolicy %s: %w", u.GetName(), err)
	}
	return nil
}
