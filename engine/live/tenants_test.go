package live

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/celsius-scheduler/celsius/engine/policy"
)

// tenantPolicy returns a policy by which jobs of higher priority displace others. more contains more fields of its spec.
func tenantPolicy(t *testing.T, more string) *policy.Policy {
	t.Helper()
	return policyFrom(t, `
apiVersion: scheduling.celsius.dev/v1alpha1
kind: SchedulingPolicy
metadata: {name: default}
spec:
  pipeline: [enqueue, allocate, make-room]
`+more+`
  actions:
  - name: make-room
    steps:
    - {verb: displace, jobs: job.starving}
  tiers:
  - name: first
    tables: [{name: priority}, {name: gang}, {name: predicates}]
`)
}

// written returns the texts in events, conditions and annotations on objects of a namespace.
func (f *fakeServer) written(namespace string) (out []string) {
	for i, event := range f.events {
		if _, key, _ := strings.Cut(event, " "); strings.HasPrefix(key, namespace+"/") {
			out = append(out, event+": "+f.messages[i])
		}
	}
	for key, p := range f.pods {
		if p.Namespace != namespace {
			continue
		}
		for _, c := range p.Status.Conditions {
			out = append(out, fmt.Sprint("pod ", key, ": ", c.Message))
		}
		for _, text := range p.Annotations {
			out = append(out, fmt.Sprint("pod ", key, ": ", text))
		}
	}
	for key, g := range f.groups {
		if g.Namespace != namespace {
			continue
		}
		for _, c := range g.Status.Conditions {
			out = append(out, fmt.Sprint("group ", key, ": ", c.Message))
		}
		for _, text := range g.Annotations {
			out = append(out, fmt.Sprint("group ", key, ": ", text))
		}
	}
	return out
}

// Texts on the objects of one tenant name no object of another tenant, unless the policy allows it. The outcome of an eviction between them
// does not matter.
func TestMessagesNameNoOtherTenant(t *testing.T) {
	for _, c := range []struct {
		name, more string
		refused    bool
		named      bool
	}{
		{"evicted", "", false, false},
		{"refused", "", true, false},
		{"own namespace only", "  messages: OwnNamespace", false, false},
		{"the policy allows it", "  messages: AllNamespaces", false, true},
		{"refused, and the policy allows it", "  messages: AllNamespaces", true, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := tenantPolicy(t, c.more)
			synctest.Test(t, func(t *testing.T) {
				r := newRigOf(newFakeServer(t), p)
				f := r.server
				f.put(&schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "high"}, Value: 10}, testQueue("default"), testNode("n1", "2"))
				low, batch := runningOn(testPod("genome-assembly-0", "genome-assembly", "2"), "n1"), testGroup("genome-assembly", 0)
				low.Namespace, batch.Namespace = "biology", "biology"
				high, urgent := testPod("merger-model-0", "merger-model", "2"), testGroup("merger-model", 1)
				high.Namespace, urgent.Namespace, urgent.Spec.PriorityClassName = "finance", "finance", "high"
				if c.refused {
					f.onEnd = func(string, string) error { return budget() }
				}
				f.put(batch, low, urgent, high)
				r.settle(5)
				if conditionOf(f.pods["finance/merger-model-0"], corev1.PodScheduled).Message == "" {
					t.Fatal("the pod of higher priority has no condition")
				}
				found := false
				for on, others := range map[string][]string{"biology": {"finance", "merger"}, "finance": {"biology", "genome"}} {
					for _, text := range f.written(on) {
						_, message, _ := strings.Cut(text, ": ")
						for _, word := range others {
							if strings.Contains(message, word) {
								found = true
								if !c.named {
									t.Errorf("an object of %s tells of another tenant: %s", on, text)
								}
							}
						}
					}
				}
				if c.named && !found {
					t.Error("no message names the other pod, though the policy allows it")
				}
				if events := strings.Join(f.events, "\n"); !c.refused && !strings.Contains(events, "Pod biology/genome-assembly-0 Evict") ||
					c.refused && !strings.Contains(events, "Pod finance/merger-model-0 EvictRefused") {
					t.Errorf("events %s", events)
				}
			})
		})
	}
}
