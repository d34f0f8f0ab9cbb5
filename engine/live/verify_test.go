package live

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/celsius-scheduler/celsius/engine/policy"
)

// doubtful returns a policy that permits an eviction because other pods exist, and then evicts these pods as well.
func doubtful(t *testing.T) *policy.Policy {
	t.Helper()
	return policyFrom(t, `
apiVersion: scheduling.celsius.dev/v1alpha1
kind: SchedulingPolicy
metadata: {name: default}
spec:
  pipeline: [enqueue, allocate, preempt]
  tiers:
  - name: first
    tables:
    - {name: priority}
    - {name: gang}
    - {name: predicates}
    - {name: proportion, only: [queueOrder]}
    - {name: own, inline: {preemptable: [{name: not-the-last, veto: true, expression: victim.index != 2 || victim.job.runningTasks > 2}]}}
`)
}

// doubt runs a test in which a doubtful policy evicts two pods of low.
func doubt(t *testing.T, most time.Duration, test func(t *testing.T, r *rig)) {
	t.Helper()
	p := doubtful(t)
	synctest.Test(t, func(t *testing.T) {
		r := recorded(t, newRigOf(newFakeServer(t), p))
		r.verifier.most = most
		f := r.server
		low := testGroup("low", 1)
		f.put(&schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "high"}, Value: 10}, testQueue("default"), testNode("n1", "3"), low)
		for i := range 3 {
			f.put(runningOn(testPod(fmt.Sprint("low-", i), "low", "1"), "n1"))
		}
		for _, name := range []string{"first", "second"} {
			g := testGroup(name, 1)
			g.Spec.PriorityClassName = "high"
			f.put(g, testPod(name+"-0", name, "1"))
		}
		test(t, r)
	})
}

// checksOf returns the metrics of checks: plans that were checked whole, in part and not at all, and violations at the end of a cycle.
func (r *rig) checksOf() string {
	out := ""
	for _, result := range []string{checkedWhole, checkedPart, checkedNot} {
		out += fmt.Sprint(result, " ", testutil.ToFloat64(r.metrics.checks.plans.WithLabelValues(result)), ", ")
	}
	return out + fmt.Sprint("wrong ", testutil.ToFloat64(r.metrics.checks.wrong.WithLabelValues("atEnd")))
}

// A violation of an eviction is counted, logged and reported on the victim. The decisions and writes are the same without a check.
func TestEvictionsAreChecked(t *testing.T) {
	const found = "atEnd: pod default/low-2 goes for default/first-0, but the rows of preemptable do not let it any more " +
		"at the end of the action"
	writes := map[time.Duration][]string{}
	for _, most := range []time.Duration{0, time.Second} {
		doubt(t, most, func(t *testing.T, r *rig) {
			var logged []string
			r.verifier.log = funcr.New(func(_, args string) { logged = append(logged, args) }, funcr.Options{})
			r.settle(5)
			for _, key := range []string{"low-1", "low-2"} {
				r.server.drop(r.server.pods["default/"+key])
			}
			r.settle(3)
			writes[most] = r.server.writes
			want, told := "whole 0, part 0, not 0, wrong 0", 0
			if most > 0 {
				want, told = "whole 1, part 0, not 0, wrong 1", 1
			}
			if diff := cmp.Diff(want, r.checksOf()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			message := r.server.told("Pod default/low-2 EvictInDoubt")
			if strings.Contains(message, found) != (told > 0) || len(logged) != told || told > 0 && !strings.Contains(logged[0], found) {
				t.Errorf("with %s a cycle the event says %q, the log %q", most, message, logged)
			}
		})
	}
	if diff := cmp.Diff(writes[0], writes[time.Second]); diff != "" || !slices.Contains(writes[0], "evict default/low-2") {
		t.Errorf("a check changes what is written (-without +with):\n%s", diff)
	}
}

// A check ends when its time is over, and an incomplete check is counted. If the preparation before a cycle takes too long, nothing is
// checked for a while.
func TestChecksEnd(t *testing.T) {
	for _, c := range []struct {
		name        string
		note, check int // number of readings of the clock after which it is too late; 0: never
		want        string
	}{
		{"in time", 0, 0, "whole 1, part 0, not 0, wrong 1"},
		{"the check takes long", 0, 2, "whole 0, part 1, not 0, wrong 0"},
		{"the note takes all the time", 1, 0, "whole 0, part 0, not 1, wrong 0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			doubt(t, time.Second, func(t *testing.T, r *rig) {
				v := r.verifier
				looks, late := 0, 0
				v.clock = func() time.Time {
					if looks++; late > 0 && looks > late {
						return time.Now().Add(time.Hour)
					}
					return time.Now()
				}
				r.server.deliver(-1)
				r.takeIn(time.Now())
				looks, late = 0, c.note
				x := v.begin(r.cluster, r.policy(), time.Now())
				plan := r.decider.Decide(r.cluster, r.policy(), time.Now())
				looks, late = 0, c.check
				v.check(x, r.cluster, plan, "p")
				if got := r.checksOf(); got != c.want {
					t.Errorf("%s, want %s", got, c.want)
				}
			})
		})
	}
}

// If even the preparation at the start of a cycle takes too long, it is not tried again for a while.
func TestChecksRest(t *testing.T) {
	doubt(t, time.Second, func(t *testing.T, r *rig) {
		v, p := r.verifier, *r.policy()
		looks, slow := 0, time.Duration(0)
		v.clock = func() time.Time {
			looks++
			time.Sleep(slow) // the clock of the bubble
			return time.Now()
		}
		r.server.deliver(-1)
		r.takeIn(time.Now())
		for _, c := range []struct {
			after, slow time.Duration
			cut         bool
		}{{0, 2 * time.Second, true}, {0, 0, true}, {noteRest / 2, 0, true}, {noteRest / 2, 0, false}} {
			time.Sleep(c.after)
			slow = c.slow
			if x := v.begin(r.cluster, &p, time.Now()); x == nil || x.Cut() != c.cut {
				t.Errorf("after %s and with %s a look: cut %v", c.after, c.slow, x.Cut())
			}
		}
		looks = 0
		p.Mode = "Paused"
		if v.begin(r.cluster, &p, time.Now()) != nil {
			t.Error("something is noted for a policy that is paused")
		}
		p.Mode, p.Actions = "Active", nil
		if v.begin(r.cluster, &p, time.Now()) != nil || looks > 0 {
			t.Error("something is noted for a policy by which nobody is evicted")
		}
	})
}
