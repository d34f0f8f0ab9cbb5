package live

import (
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
	"github.com/celsius-scheduler/celsius/engine/policy"
)

// karpenterAdds reports whether Karpenter adds a node for a pod. It does if the scheduler failed to place the pod, and the pod has neither
// a node nor a nominated node.
func karpenterAdds(p *corev1.Pod) bool {
	return conditionOf(p, corev1.PodScheduled).Reason == corev1.PodReasonUnschedulable && p.Spec.NodeName == "" &&
		p.Status.NominatedNodeName == ""
}

// clusterAutoscalerAdds reports whether cluster-autoscaler lists a pod as unschedulable.
func clusterAutoscalerAdds(p *corev1.Pod) bool {
	c := conditionOf(p, corev1.PodScheduled)
	return p.Spec.NodeName == "" && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable
}

// policyWith returns a policy with these tables and a tier of the test.
func policyWith(t *testing.T, pipeline, tables, own string) *policy.Policy {
	t.Helper()
	return policyFrom(t, fmt.Sprintf(`
apiVersion: scheduling.celsius.dev/v1alpha1
kind: SchedulingPolicy
metadata: {name: default}
spec:
  pipeline: [%s]
  tiers:
  - name: first
    tables: [%s]
%s
`, pipeline, tables, own))
}

func cpuQueue(capability string) *v1beta1.Queue {
	q := testQueue("default")
	if capability != "" {
		q.Spec.Capability = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(capability)}
	}
	return q
}

func onlyOn(p *corev1.Pod, label string) *corev1.Pod {
	p.Spec.NodeSelector = map[string]string{label: "true"}
	return p
}

func gatedPod(p *corev1.Pod) *corev1.Pod {
	p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "example.com/data-staged"}}
	p.Status.Conditions = []corev1.PodCondition{{
		Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonSchedulingGated,
	}}
	return p
}

// Autoscalers add a node for a pod if and only if another node would help it.
func TestAutoscalersActOnlyWhereANodeHelps(t *testing.T) {
	defaults := "{name: priority}, {name: gang}, {name: conformance}, {name: overcommit}, {name: drf}, " +
		"{name: predicates}, {name: proportion}, {name: nodeorder}"
	capacity := "{name: priority}, {name: gang}, {name: predicates}, {name: capacity}"
	const all = "enqueue, allocate, backfill"
	big := func(g *v1beta1.PodGroup, cpu string) *v1beta1.PodGroup {
		g.Spec.MinResources = &corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}
		return g
	}
	in := func(g *v1beta1.PodGroup, queue string) *v1beta1.PodGroup { g.Spec.Queue = queue; return g }
	prior := func(g *v1beta1.PodGroup) *v1beta1.PodGroup { g.Spec.PriorityClassName = "high"; return g }
	closed := testQueue("default")
	closed.Status.State = v1beta1.QueueStateClosed
	used := func(cpu string) []metav1.Object { // a node of 8 CPUs; running pods use this number of them
		p := testPod("running", "running", cpu)
		p.Spec.NodeName, p.Status.Phase = "n1", corev1.PodRunning
		return []metav1.Object{testNode("n1", "8"), testGroup("running", 1), p}
	}
	for _, c := range []struct {
		name, pipeline, tables, own string
		objects                     []metav1.Object
		want                        map[string]string
	}{
		{
			"the nodes are full", all, defaults, "",
			append(used("8"), testQueue("default"), testGroup("g", 1), testPod("a", "g", "2")),
			map[string]string{"a": "Unschedulable"},
		},
		{
			"the nodes are full, by capacity", all, capacity, "",
			append(used("8"), testQueue("default"), testGroup("g", 1), testPod("a", "g", "2")),
			map[string]string{"a": "Unschedulable"},
		},
		{
			"the cluster is smaller than a queue's capability", all, defaults, "",
			append(used("8"), cpuQueue("64"), testGroup("g", 1), testPod("a", "g", "2")),
			map[string]string{"a": "Unschedulable"},
		},
		{
			"the cluster is smaller than a queue's capability, by capacity", all, capacity, "",
			append(used("8"), cpuQueue("64"), testGroup("g", 1), testPod("a", "g", "2")),
			map[string]string{"a": "Unschedulable"},
		},
		{
			"overcommit does not admit the job", all, defaults, "",
			append(used("8"), testQueue("default"), big(testGroup("g", 1), "16"), testPod("a", "g", "16")),
			map[string]string{"a": "Unschedulable"},
		},
		{
			"a gang of which one pod fits", all, "{name: gang}, {name: predicates}", "",
			append(used("6"), testQueue("default"), testGroup("g", 3), testPod("a", "g", "2"), testPod("b", "g", "2"), testPod("c", "g", "2")),
			map[string]string{"a": "Unschedulable", "b": "Unschedulable", "c": "Unschedulable"},
		},
		{
			"a pod that waits for an eviction", "enqueue, allocate, preempt", "{name: priority}, {name: gang}, {name: predicates}", "",
			append(used("8"), &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "high"}, Value: 10}, testQueue("default"),
				prior(testGroup("g", 1)), testPod("a", "g", "2")),
			map[string]string{"a": "Unschedulable"},
		},
		{
			"a queue at its capability", all, defaults, "",
			append(used("4"), cpuQueue("4"), testGroup("g", 1), testPod("a", "g", "2")),
			map[string]string{"a": "QueueLimited"},
		},
		{
			"a queue at its capability, by capacity", all, capacity, "",
			append(used("4"), cpuQueue("4"), testGroup("g", 1), testPod("a", "g", "2")),
			map[string]string{"a": "QueueLimited"},
		},
		{
			"a queue does not admit the job", all, defaults, "",
			append(used("1"), cpuQueue("4"), big(testGroup("g", 1), "6"), testPod("a", "g", "6")),
			map[string]string{"a": "NotAdmitted"},
		},
		{
			"a queue does not admit the job, by capacity", all, capacity, "",
			append(used("1"), cpuQueue("4"), big(testGroup("g", 1), "6"), testPod("a", "g", "6")),
			map[string]string{"a": "NotAdmitted"},
		},
		{
			"a gang that its queue stops halfway", all, capacity, "",
			append(used("2"), cpuQueue("5"), testGroup("g", 3), testPod("a", "g", "2"), testPod("b", "g", "2"), testPod("c", "g", "2")),
			map[string]string{"a": "QueueLimited", "b": "QueueLimited", "c": "QueueLimited"},
		},
		{
			"a closed queue", all, "{name: gang}, {name: predicates}, {name: proportion}", "",
			append(used("1"), closed,
				testGroup("g", 1), testPod("a", "g", "2")),
			map[string]string{"a": "QueueLimited"},
		},
		{
			"a missing queue", all, defaults, "",
			append(used("1"), testQueue("default"), in(testGroup("g", 1), "nowhere"), testPod("a", "g", "2")),
			map[string]string{"a": "QueueUnusable"},
		},
		{
			"a gang in creation", all, defaults, "",
			append(used("1"), testQueue("default"), testGroup("g", 3), testPod("a", "g", "2"), testPod("b", "g", "2")),
			map[string]string{"a": "NotEnoughTasks", "b": "NotEnoughTasks"},
		},
		{
			"a gang of which one pod has a gate", all, "{name: gang}, {name: predicates}", "",
			append(used("1"), testQueue("default"), testGroup("g", 2), testPod("a", "g", "2"), gatedPod(testPod("b", "g", "2"))),
			map[string]string{"a": "GangIncomplete", "b": "SchedulingGated"},
		},
		{
			"a row of a policy that reads no node", all, "{name: gang}, {name: predicates}",
			`  - name: house
    tables:
    - name: house
      inline: {predicates: [{name: at-night, expression: "task.priority >= 1000", message: "batch pods run at night"}]}`,
			append(used("1"), testQueue("default"), testGroup("g", 1), testPod("a", "g", "2")),
			map[string]string{"a": "PolicyDenied"},
		},
		{
			"a row of a policy that reads no node, with a reason", all, "{name: gang}, {name: predicates}",
			`  - name: house
    tables:
    - name: house
      inline: {predicates: [{name: at-night, expression: "task.priority >= 1000", reason: OutsideHours, message: "by day"}]}`,
			append(used("1"), testQueue("default"), testGroup("g", 1), testPod("a", "g", "2")),
			map[string]string{"a": "OutsideHours"},
		},
		{
			"a row of a policy that reads the node", all, "{name: gang}, {name: predicates}",
			`  - name: house
    tables:
    - name: house
      inline: {predicates: [{name: quiet, expression: "'quiet' in node.labels", message: "node(s) are not quiet"}]}`,
			append(used("1"), testQueue("default"), testGroup("g", 1), testPod("a", "g", "2")),
			map[string]string{"a": "Unschedulable"},
		},
		{
			"a limit of jobs by a row of a policy", all, "{name: gang}, {name: predicates}",
			`  - name: house
    tables:
    - name: house
      inline: {allocatable: [{name: few, expression: "queue.allocated['pods'] < 1.0", message: "one pod at a time"}]}`,
			append(used("1"), testQueue("default"), testGroup("g", 1), testPod("a", "g", "2")),
			map[string]string{"a": "QueueLimited"},
		},
		{
			"no action places pods", "enqueue", "{name: gang}, {name: predicates}", "",
			append(used("1"), testQueue("default"), testGroup("g", 1), testPod("a", "g", "2")),
			map[string]string{"a": "NotTried"},
		},
		{
			"later pods of a job whose first pod fits nowhere", all, "{name: gang}, {name: predicates}", "",
			append(used("1"), testQueue("default"), testGroup("g", 1), onlyOn(testPod("a", "g", "2"), "gpu"), onlyOn(testPod("b", "g", "2"), "gpu")),
			map[string]string{"a": "Unschedulable", "b": "Unschedulable"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := policyWith(t, c.pipeline, c.tables, c.own)
			synctest.Test(t, func(t *testing.T) {
				r := newRigOf(newFakeServer(t), p)
				for _, o := range c.objects {
					r.server.put(o)
				}
				r.settle(8)
				got, want := map[string]string{}, map[string]string{}
				for name, reason := range c.want {
					pod := r.server.pods["default/"+name]
					helped := reason == corev1.PodReasonUnschedulable
					got[name] = fmt.Sprint(conditionOf(pod, corev1.PodScheduled).Reason, " ", clusterAutoscalerAdds(pod), " ",
						karpenterAdds(pod) || helped && pod.Status.NominatedNodeName != "")
					want[name] = fmt.Sprint(reason, " ", helped, " ", helped)
				}
				if diff := cmp.Diff(want, got); diff != "" {
					for name := range c.want {
						t.Log(name, saidOf(r.server.pods["default/"+name]).text)
					}
					t.Errorf("reason, cluster-autoscaler, Karpenter (-want +got):\n%s", diff)
				}
			})
		})
	}
}
