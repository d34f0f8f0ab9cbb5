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
	// doubtsTold is how many of the things that do not hold of one plan are logged, and told of by events. All are counted.
	doubtsTold = 10
	// noteRest is for how long no plan is checked after what is noted before each took longer than a check may.
	noteRest = time.Minute
)

// What became of the check of a plan that evicts.
const (
	checkedWhole = "whole"
	checkedPart  = "part" // there was no time for the rest
	checkedNot   = "not"  // there was no time for any of it
)

// verifier has evictions checked after they were decided, and before they are sent, by what does not find them. It works on the loop's
// model, which is afterwards as it was, so the loop waits for it: for at most so long a cycle, and until the question at hand is answered.
type verifier struct {
	most    time.Duration // 0: nothing is checked
	clock   func() time.Time
	metrics *metrics
	events  *recorder
	log     logr.Logger

	policy *policy.Policy // of run
	run    proof.Run
	left   time.Duration // of most, once it is noted what is to be known before the cycle
	until  time.Time     // when the loop waits no longer
	rests  time.Time     // until when nothing is checked
}

func newVerifier(most time.Duration, m *metrics, said *recorder, log logr.Logger) *verifier {
	return &verifier{most: most, clock: time.Now, metrics: m, events: said, log: log}
}

// begin notes, before a cycle, what cannot be seen after it; nil: nobody can be evicted by this policy, or nothing is checked.
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

// evicts says whether somebody may be evicted by a policy.
func evicts(p *policy.Policy) bool {
	return slices.ContainsFunc(p.Actions, func(a *policy.Action) bool {
		return slices.ContainsFunc(a.Steps, func(s *policy.Step) bool { return s.Verb.Name == policy.Displace || s.Verb.Name == policy.Evict })
	})
}

// check checks the plan of the cycle, with the cluster as the cycle left it, and tells of what does not hold.
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
