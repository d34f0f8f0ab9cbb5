package dashboard

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	batchv1alpha1 "github.com/celsius-scheduler/celsius/crds/batch/v1alpha1"
	schedulingv1beta1 "github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
	"github.com/celsius-scheduler/celsius/engine/live/questions"
)

// noon is the time at which the tests run.
func noon() time.Time { return time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC) }

func list(text string) corev1.ResourceList {
	out := corev1.ResourceList{}
	for part := range strings.SplitSeq(text, ",") {
		if name, amount, ok := strings.Cut(part, "="); ok {
			out[corev1.ResourceName(name)] = resource.MustParse(amount)
		}
	}
	return out
}

func named1(namespace, name string, ago time.Duration) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: namespace, Name: name, UID: types.UID(namespace + "." + name), CreationTimestamp: metav1.NewTime(noon().Add(-ago)),
	}
}

func aNode(name, offers string) *corev1.Node {
	return &corev1.Node{ObjectMeta: named1("", name, 100*time.Hour), Status: corev1.NodeStatus{
		Allocatable: list(offers), Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
	}}
}

func aQueue(name, parent, deserved, allocated string) *schedulingv1beta1.Queue {
	q := &schedulingv1beta1.Queue{ObjectMeta: named1("", name, 100*time.Hour)}
	q.Spec.Parent, q.Spec.Weight, q.Spec.Deserved = parent, 1, list(deserved)
	q.Status.State, q.Status.Allocated = schedulingv1beta1.QueueStateOpen, list(allocated)
	return q
}

func aGroup(namespace, name, queue string, phase schedulingv1beta1.PodGroupPhase, why string,
	ago time.Duration,
) *schedulingv1beta1.PodGroup {
	g := &schedulingv1beta1.PodGroup{ObjectMeta: named1(namespace, name+"-0f3a", ago)}
	g.OwnerReferences = []metav1.OwnerReference{{APIVersion: batchv1alpha1.GroupVersion.String(), Kind: "Job", Name: name}}
	g.Spec.MinMember, g.Spec.Queue, g.Status.Phase = 2, queue, phase
	if why != "" {
		g.Status.Conditions = []schedulingv1beta1.PodGroupCondition{{
			Type: schedulingv1beta1.PodGroupUnschedulableType, Status: corev1.ConditionTrue, Message: why,
			LastTransitionTime: metav1.NewTime(noon().Add(-ago + time.Minute)),
		}}
	}
	return g
}

func aPod(name, job, node, asks string, phase corev1.PodPhase, ago time.Duration) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: named1("team", name, ago)}
	p.Annotations = map[string]string{
		schedulingv1beta1.KubeGroupNameAnnotationKey: job + "-0f3a", batchv1alpha1.JobNameKey: job, batchv1alpha1.TaskSpecKey: "worker",
	}
	p.Spec.NodeName = node
	p.Spec.Containers = []corev1.Container{{Name: "main", Resources: corev1.ResourceRequirements{Requests: list(asks)}}}
	p.Status.Phase = phase
	scheduled := corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionTrue}
	scheduled.LastTransitionTime = metav1.NewTime(noon().Add(-ago / 2))
	if node == "" {
		scheduled.Status, scheduled.Message = corev1.ConditionFalse, "0/4 nodes are available: 4 Insufficient cpu."
	} else {
		started := metav1.NewTime(noon().Add(-ago / 3))
		p.Status.StartTime = &started
	}
	p.Status.Conditions = []corev1.PodCondition{scheduled}
	return p
}

func aJob(namespace, name, queue string, phase batchv1alpha1.JobPhase, ago time.Duration) *batchv1alpha1.Job {
	j := &batchv1alpha1.Job{ObjectMeta: named1(namespace, name, ago)}
	j.Spec.Queue, j.Spec.MinAvailable, j.Status.State.Phase = queue, 2, phase
	at := metav1.NewTime(noon().Add(-ago / 2))
	j.Status.Conditions = []batchv1alpha1.JobCondition{
		{Status: batchv1alpha1.Pending, LastTransitionTime: &j.CreationTimestamp}, {Status: phase, LastTransitionTime: &at},
	}
	return j
}

// aPolicy returns a policy with a row of its own.
func aPolicy(t testing.TB) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	text, err := yaml.YAMLToJSON([]byte(`
apiVersion: scheduling.celsius.dev/v1alpha1
kind: SchedulingPolicy
metadata: {name: default, generation: 3, creationTimestamp: "2026-03-01T12:00:00Z"}
spec:
  pipeline: [enqueue, allocate]
  tiers:
  - name: first
    tables:
    - {name: gang}
    - name: house
      inline:
        predicates:
        - {name: no-night, expression: "task.request['cpu'] <= 64.0", message: "too much for a night"}
    - {name: predicates}
    - {name: proportion}
    - {name: nodeorder}
status:
  conditions:
  - {type: Active, status: "True", reason: Serving, message: serving default@3, lastTransitionTime: "2026-03-01T12:00:00Z"}
  schedulers:
  - name: celsius
    generation: 3
    ruleErrors:
    - {site: predicates, table: house, rule: no-night, count: 7, lastObject: team/train-1, lastError: no such key,
       lastTime: "2026-03-01T12:00:00Z"}
`))
	if err != nil {
		t.Fatal(err)
	}
	if err := u.UnmarshalJSON(text); err != nil {
		t.Fatal(err)
	}
	return u
}

// aPage is a metrics page of the scheduler.
const aPage = `# TYPE celsius_queue_deserved gauge
celsius_queue_deserved{queue="research",resource="cpu"} 24
celsius_queue_deserved{queue="research",resource="nvidia.com/gpu"} 6
celsius_queue_deserved{queue="batch",resource="cpu"} 40
# TYPE celsius_policy_generation gauge
celsius_policy_generation{policy="default"} 3
# TYPE celsius_evaluations_total counter
celsius_evaluations_total{rule="no-night",site="predicates",table="house"} 1200
# TYPE celsius_rule_errors_total counter
celsius_rule_errors_total{rule="no-night",site="predicates",table="house"} 9
# TYPE celsius_waiting_jobs gauge
celsius_waiting_jobs{queue="research",rule="no-night",table="house"} 2
celsius_waiting_jobs{queue="batch",rule="no-night",table="house"} 1
# TYPE celsius_evictions_total counter
celsius_evictions_total{action="reclaim",result="evicted",row="no-night",table="house"} 4
celsius_evictions_total{action="reclaim",result="refused",row="no-night",table="house"} 5
`

// hostile would be HTML and a script if the page did not show it as text.
const hostile = `</script><script>window.harmed = 1</script><img src=x onerror="window.harmed = 1"> <b>&"'</b>`

// fill adds objects to a state in the same way as informers.
func fill(t testing.TB, s *state, objects ...any) {
	t.Helper()
	for _, o := range objects {
		stripped, err := s.strip(o)
		if err != nil {
			t.Fatal(err)
		}
		again, err := s.strip(stripped)
		if err != nil || again != stripped {
			t.Fatalf("%T is stripped twice: %v", o, err)
		}
		s.put(stripped)
	}
}

// aCluster returns a small cluster. The nodes gpu-1, cpu-1 and cpu-2 have room, and one node is not ready. Some jobs run, some wait, and
// some have ended.
func aCluster(t testing.TB) *state {
	t.Helper()
	s := newState()
	broken := aNode("cpu-3", "cpu=16,memory=64Gi,pods=110")
	broken.Status.Conditions[0].Status, broken.Status.Conditions[0].Message = corev1.ConditionFalse, "kubelet stopped "+hostile
	cordoned := aNode("cpu-2", "cpu=16,memory=64Gi,pods=110")
	cordoned.Spec.Unschedulable = true
	cordoned.Spec.Taints = []corev1.Taint{{Key: "team", Value: "a", Effect: corev1.TaintEffectNoSchedule}}
	failed := aPod("etl-1", "etl", "cpu-1", "cpu=2", corev1.PodFailed, time.Hour)
	failed.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", State: corev1.ContainerState{
		Terminated: &corev1.ContainerStateTerminated{ExitCode: 137, Reason: "OOMKilled", FinishedAt: metav1.NewTime(noon().Add(-time.Minute))},
	}}}
	fill(t, s,
		aNode("cpu-1", "cpu=16,memory=64Gi,pods=110"), cordoned, broken, aNode("gpu-1", "cpu=32,memory=256Gi,pods=110,nvidia.com/gpu=8"),
		aQueue("root", "", "", "cpu=30"), aQueue("research", "", "cpu=20", "cpu=28,nvidia.com/gpu=8"), aQueue("vision", "research", "", "cpu=8"),
		aQueue("batch", "", "", "cpu=2"),
		aGroup("team", "train", "research", schedulingv1beta1.PodGroupRunning, "", 2*time.Hour),
		aGroup("team", "sweep", "research", schedulingv1beta1.PodGroupInqueue,
			"2/2 tasks in gang unschedulable: 0/4 nodes are available: 4 Insufficient cpu. "+hostile, time.Hour),
		aGroup("other", "big", "batch", schedulingv1beta1.PodGroupPending, "", 30*time.Minute),
		aGroup("team", "etl", "batch", schedulingv1beta1.PodGroupCompleted, "", time.Hour),
		aJob("team", "train", "research", batchv1alpha1.Running, 2*time.Hour),
		aJob("team", "sweep", "research", batchv1alpha1.Pending, time.Hour),
		aJob("team", "etl", "batch", batchv1alpha1.Failed, time.Hour),
		aPod("train-0", "train", "gpu-1", "cpu=12,nvidia.com/gpu=4", corev1.PodRunning, 2*time.Hour),
		aPod("train-1", "train", "gpu-1", "cpu=16,nvidia.com/gpu=4", corev1.PodRunning, 2*time.Hour),
		aPod("sweep-0", "sweep", "", "cpu=40", corev1.PodPending, time.Hour),
		aPod("sweep-1", "sweep", "", "cpu=40", corev1.PodPending, time.Hour),
		aPod("etl-0", "etl", "cpu-1", "cpu=2", corev1.PodRunning, time.Hour), failed,
		aPolicy(t),
	)
	f, err := read([]byte(aPage), &figures{}, noon())
	if err != nil {
		t.Fatal(err)
	}
	s.figures = f
	return s
}

// asked gives the answers of an API server.
type asked struct {
	events map[string][]corev1.Event // by namespace/name
	raw    map[string]string         // by path
}

func (a asked) Events(_ context.Context, namespace, name string) ([]corev1.Event, error) {
	if a.events == nil {
		return nil, apierrors.NewForbidden(schema.GroupResource{Resource: "events"}, "", fmt.Errorf("no"))
	}
	return a.events[namespace+"/"+name], nil
}

func (a asked) Raw(_ context.Context, path, _ string) ([]byte, error) {
	if text, ok := a.raw[path]; ok {
		return []byte(text), nil
	}
	return nil, apierrors.NewNotFound(schema.GroupResource{Group: questions.Group}, path)
}

// many returns a cluster with many nodes and many pods. Most pods run. The pods belong to jobs of ten pods each, and some jobs wait.
func many(t testing.TB, nodes, pods int) *state {
	t.Helper()
	s := newState()
	fill(t, s, aQueue("root", "", "", "cpu=640000"))
	for _, parent := range []string{"production", "research", "scavenger"} {
		fill(t, s, aQueue(parent, "", "cpu=4000", "cpu=3100,nvidia.com/gpu=640"))
	}
	for q := range 40 {
		fill(t, s, manyQueue(q, 300+q*37%900))
	}
	for n := range nodes {
		node := aNode(fmt.Sprintf("worker-%05d.eu-central-1.compute.internal", n), "cpu=64,memory=256Gi,pods=110,nvidia.com/gpu=8")
		if n%611 == 610 {
			node.Status.Conditions[0].Status = corev1.ConditionFalse
		}
		fill(t, s, node)
	}
	for j := range pods / 10 {
		phase, why := schedulingv1beta1.PodGroupRunning, ""
		if j%5 == 4 {
			phase = schedulingv1beta1.PodGroupInqueue
			why = []string{
				fmt.Sprintf("10/10 tasks in gang unschedulable: %d/%d nodes are available: %d Insufficient nvidia.com/gpu.", j%7, nodes, nodes-j%7),
				"queue scavenger is overused: it holds more than it deserves", fmt.Sprintf("quota of namespace team is used up: cpu %d of 4000", j),
			}[j%3]
		}
		fill(t, s, aGroup("team", fmt.Sprintf("job-%d", j), fmt.Sprintf("queue-%02d", j%40), phase, why, time.Duration(j)*time.Second))
		for p := range 10 {
			fill(t, s, manyPod(j, p, nodes, why == ""))
		}
	}
	fill(t, s, aPolicy(t))
	f, err := read([]byte(aPage), &figures{}, noon())
	if err != nil {
		t.Fatal(err)
	}
	s.figures = f
	return s
}

// manyQueue returns one of the queues of many.
func manyQueue(q, holds int) *schedulingv1beta1.Queue {
	parent := []string{"production", "research", "scavenger"}[q%3]
	return aQueue(fmt.Sprintf("queue-%02d", q), parent, "cpu=700", fmt.Sprintf("cpu=%d,nvidia.com/gpu=%d", holds, holds/9))
}

// manyPod returns one of the pods of many. Some nodes have more pods than others.
func manyPod(j, p, nodes int, placed bool) *corev1.Pod {
	node, phase := "", corev1.PodPending
	if placed {
		at := (j*10 + p) * 7 % max(nodes, 1)
		if j%3 == 0 {
			at = at / 4 * 3
		}
		node, phase = fmt.Sprintf("worker-%05d.eu-central-1.compute.internal", at), corev1.PodRunning
	}
	asks := []string{"cpu=4,memory=8Gi,nvidia.com/gpu=1", "cpu=16,memory=64Gi", "cpu=8,memory=16Gi,nvidia.com/gpu=2"}[j%3]
	return aPod(fmt.Sprintf("job-%d-worker-%d", j, p), fmt.Sprintf("job-%d", j), node, asks, phase, time.Hour)
}
