package live

import (
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"

	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/engine/proof"
)

const (
	// doubtsTold is the maximum number of violations of one plan that are logged and reported by events. Metrics count all.
	doubtsTold = 10
	// noteRest is how long no plan is checked after the preparation for a check took longer than a check may.
	noteRest = time.Minute
)

// Results of the check of a plan with evictions.
const (
	checkedWhole = "whole"
	checkedPart  = "part" // the time was not sufficient for all of it
	checkedNot   = "not"  // there was no time for any of it
)

// verifier checks evictions after they were decided and before they are sent. It does not use the code that finds victims. It works on the
// loop's model and restores it, so the loop waits. It waits for at most a fixed time per cycle, and until the running question is answered.
type verifier struct {
	most    time.Duration // 0: nothing is checked
	clock   func() time.Time
	metrics *metrics
	events  *recorder
	log     logr.Logger

	policy *policy.Policy // the policy of run
	run    proof.Run
	left   time.Duration // the part of most that remains after the preparation before the cycle
	until  time.Time     // when the loop stops waiting
	rests  time.Time     // until when no plan is checked
}

func newVerifier(most time.Duration, m *metrics, said *recorder, log logr.Logger) *verifier {
	return &verifier{most: most, clock: time.Now, metrics: m, events: said, log: log}
}

// begin records, before a cycle, what cannot be seen after it. It returns nil if this policy cannot evict a pod, or if checks are off.
func (v *verifier) begin(c *model.Cluster, p *policy.Policy, now time.Time) *proof.Cycle {
	if v.most == 0 || paused(p) || !evicts(p) {
		return nil
	}
	if v.policy != p {
		v.policy, v.run = p, proof.Run{Enough: func() bool { return !v.clock().Before(v.until) }}
	}
	began := v.clock()
	resting := began.Before(v.rests)
	v.until = began.Add(v.most)
	if resting {
		v.until = began
	}
	cycle := v.run.Begin(c, p, now)
	ended := v.clock()
	v.left = v.most - ended.Sub(began)
	if cycle.Cut() && !resting {
		v.rests = ended.Add(noteRest)
	}
	return cycle
}

// evicts reports whether a policy can evict a pod.
func evicts(p *policy.Policy) bool {
	return slices.ContainsFunc(p.Actions, func(a *policy.Action) bool {
		return slices.ContainsFunc(a.Steps, func(s *policy.Step) bool { return s.Verb.Name == policy.Displace || s.Verb.Name == policy.Evict })
	})
}

// check checks the plan of the cycle on the cluster as the cycle left it, and reports violations.
func (v *verifier) check(x *proof.Cycle, c *model.Cluster, plan *model.Plan, stamp string) {
	if x == nil || plan.Same || len(plan.Evicts) == 0 {
		return
	}
	result := checkedNot
	var wrong []proof.Violation
	if !x.Cut() && v.left > 0 {
		began := v.clock()
		v.until = began.Add(v.left)
		wrong = x.Check(plan)
		v.metrics.checks.took.Observe((v.clock().Sub(began) + v.most - v.left).Seconds())
		result = checkedWhole
		if x.Cut() {
			result = checkedPart
		}
	}
	v.metrics.checks.plans.WithLabelValues(result).Inc()
	for i, w := range wrong {
		v.metrics.checks.wrong.WithLabelValues(string(w.Kind)).Inc()
		if i < doubtsTold {
			v.tell(w, c, stamp)
		}
	}
	if more := len(wrong) - doubtsTold; more > 0 {
		v.log.Info("more of the same plan does not hold", "count", more, "policy", stamp)
	}
}

// mayName reports whether a message on an object of a namespace may name the pods of a violation.
func (v *verifier) mayName(namespace string, w proof.Violation) bool {
	return !slices.ContainsFunc([]string{w.Victim, w.Task}, func(key string) bool {
		other, _, _ := strings.Cut(key, "/")
		return key != "" && !v.policy.MayName(namespace, other)
	})
}

// tell reports a violation by an event on the victim, or, if none is named, on the pod for which the eviction frees resources.
func (v *verifier) tell(w proof.Violation, c *model.Cluster, stamp string) {
	v.log.Info("an eviction does not hold when it is checked", "kind", w.Kind, "pod", w.Victim, "for", w.Task, "policy", stamp,
		"found", w.String())
	for _, key := range []string{w.Victim, w.Task} {
		if t := c.Tasks[key]; t != nil && t.Object != nil {
			found := w.String()
			if !v.mayName(t.Namespace, w) {
				found = string(w.Kind) // the rest names pods of other namespaces
			}
			v.events.Eventf(t.Object, corev1.EventTypeWarning, eventEvictInDoubt, "a check of what was decided found %s (policy %s)", found, stamp)
			return
		}
	}
}
