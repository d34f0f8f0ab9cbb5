package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	schedulingv1beta1 "github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
)

// Operators that create PodGroups and pods for Volcano. Each test creates the objects of a file in samples/operators in the order of the
// operator. The operators themselves do not run. A ConfigMap replaces the object that requests the work, and owns the others.

// operated contains the objects that an operator creates.
type operated struct {
	group *schedulingv1beta1.PodGroup
	pods  []*corev1.Pod // pods of the group, in the order of the sample; they run until they are told to end
	alone []*corev1.Pod // pods without a group
}

// operated reads a sample, with this world's names.
func (w *world) operated(name string) *operated {
	w.t.Helper()
	made := &operated{}
	for text := range strings.SplitSeq(w.Expand(sample(w.t, "operators/"+name+".yaml")), "\n---\n") {
		var err error
		if strings.Contains(text, "\nkind: PodGroup\n") {
			made.group = &schedulingv1beta1.PodGroup{}
			err = utilyaml.Unmarshal([]byte(text), made.group)
		} else {
			pod := &corev1.Pod{}
			err = utilyaml.Unmarshal([]byte(text), pod)
			pod.Annotations["celsius.dev/sim"] = "{run: 1h}"
			if pod.Annotations[schedulingv1beta1.KubeGroupNameAnnotationKey] == "" {
				made.alone = append(made.alone, pod)
			} else {
				made.pods = append(made.pods, pod)
			}
		}
		if err != nil {
			w.t.Fatalf("%s: %v in\n%s", name, err, text)
		}
	}
	return made
}

// rival returns the same objects under other names, and without a priority.
func (o *operated) rival() *operated {
	other := &operated{group: o.group.DeepCopy()}
	other.group.Name, other.group.Spec.PriorityClassName = "rival-"+o.group.Name, ""
	for _, p := range o.pods {
		p = p.DeepCopy()
		p.Name, p.Spec.PriorityClassName = "rival-"+p.Name, ""
		for _, key := range []string{schedulingv1beta1.KubeGroupNameAnnotationKey, schedulingv1beta1.VolcanoGroupNameAnnotationKey} {
			if p.Annotations[key] != "" {
				p.Annotations[key] = other.group.Name
			}
		}
		other.pods = append(other.pods, p)
	}
	return other
}

// pod returns the pod with a name.
func (o *operated) pod(name string) *corev1.Pod {
	return o.pods[slices.IndexFunc(o.pods, func(p *corev1.Pod) bool { return p.Name == name })]
}

// without removes the named pods from the first objects, and returns them.
func (o *operated) without(names ...string) (later []*corev1.Pod) {
	o.pods = slices.DeleteFunc(o.pods, func(p *corev1.Pod) bool {
		if !slices.Contains(names, p.Name) {
			return false
		}
		later = append(later, p)
		return true
	})
	return later
}

// asked creates the object that requests work from an operator.
func (w *world) asked(name string) *corev1.ConfigMap {
	w.t.Helper()
	o := &corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: metav1.ObjectMeta{Name: name}}
	w.create(nil, o)
	return o
}

// create creates objects with an owner, as operators do. A nil owner means none.
func (w *world) create(owner client.Object, objects ...client.Object) {
	w.t.Helper()
	for _, o := range objects {
		o.SetNamespace(w.Namespace)
		if owner != nil {
			kind, err := w.Client.GroupVersionKindFor(owner)
			if err != nil {
				w.t.Fatal(err)
			}
			o.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(owner, kind)})
		}
		if err := w.Client.Create(w.Context, o); err != nil {
			w.t.Fatal(err)
		}
	}
}

// asObjects converts pods for create and remove.
func asObjects(pods []*corev1.Pod) (out []client.Object) {
	for _, p := range pods {
		out = append(out, p)
	}
	return out
}

// remove deletes objects without waiting, as operators do.
func (w *world) remove(objects ...client.Object) {
	w.t.Helper()
	for _, o := range objects {
		if err := client.IgnoreNotFound(w.Client.Delete(w.Context, o)); err != nil {
			w.t.Fatal(err)
		}
	}
}

// goes waits until an object is deleted.
func (w *world) goes(o client.Object) {
	w.t.Helper()
	w.Wait(o.GetName()+" goes", func() error { return w.gone(o.GetName(), o.DeepCopyObject().(client.Object)) })
}

// groupRuns waits until a group is Running with the given number of running pods.
func (w *world) groupRuns(name string, pods int32) {
	w.t.Helper()
	w.Wait(fmt.Sprintf("group %s runs with %d", name, pods), func() error {
		g := &schedulingv1beta1.PodGroup{}
		if err := w.Get(name, g); err != nil || g.Status.Phase == schedulingv1beta1.PodGroupRunning && g.Status.Running == pods {
			return err
		}
		return fmt.Errorf("it is %s with %d: %v", g.Status.Phase, g.Status.Running, g.Status.Conditions)
	})
}

// groupWaits waits until a group in a phase states why it waits.
func (w *world) groupWaits(name string, phase schedulingv1beta1.PodGroupPhase, words string) {
	w.t.Helper()
	w.Wait("group "+name+" says "+words, func() error {
		g := &schedulingv1beta1.PodGroup{}
		if err := w.Get(name, g); err != nil {
			return err
		}
		if slices.ContainsFunc(g.Status.Conditions, func(c schedulingv1beta1.PodGroupCondition) bool {
			return c.Type == schedulingv1beta1.PodGroupUnschedulableType && c.Status == corev1.ConditionTrue && strings.Contains(c.Message, words)
		}) && g.Status.Phase == phase {
			return nil
		}
		return fmt.Errorf("it is %s: %v", g.Status.Phase, g.Status.Conditions)
	})
}

// noneBound checks after a while that none of the pods has a node.
func (w *world) noneBound(pods []*corev1.Pod) {
	w.t.Helper()
	time.Sleep(time.Second)
	for _, p := range pods {
		now := &corev1.Pod{}
		if err := w.Get(p.Name, now); err != nil || now.Spec.NodeName != "" {
			w.t.Errorf("%s is on %q, and is to wait: %v", p.Name, now.Spec.NodeName, err)
		}
	}
}

// countsIn waits until the given number of groups of a queue runs.
func (w *world) countsIn(queue string, running int32) {
	w.t.Helper()
	w.Wait(fmt.Sprintf("in queue %s run %d", queue, running), func() error {
		q := &schedulingv1beta1.Queue{}
		if err := w.Get(queue, q); err != nil || q.Status.Running == running {
			return err
		}
		return fmt.Errorf("in it run %d", q.Status.Running)
	})
}

// changeGroup changes a group's spec with an update of the whole object, as operators do.
func (w *world) changeGroup(name string, change func(*schedulingv1beta1.PodGroupSpec)) {
	w.t.Helper()
	w.Wait("group "+name+" is changed", func() error {
		g := &schedulingv1beta1.PodGroup{}
		if err := w.Get(name, g); err != nil {
			return err
		}
		change(&g.Spec)
		return w.Client.Update(w.Context, g)
	})
}

// gangOf is an operator whose pods start together.
type gangOf struct {
	sample string
	few    string   // CPU of the first nodes: the gang is admitted, but only a part of it fits
	more   string   // CPU of later nodes: with them one gang fits, whichever of its pods is placed first
	later  []string // pods that are created when the gang runs
	// next does what the operator does while the pods run; nil: nothing.
	next func(w *world, owner client.Object, made *operated, later []*corev1.Pod)
}

func gangsOfOperators() []gangOf {
	return []gangOf{
		{"kuberay", "1900m 900m 900m", "1100m 1100m", []string{"sample-submitter"}, rayJobEnds},
		{"trainer", "2900m 1900m", "2100m", nil, trainJobIsSuspended},
		{"training-operator", "1400m 900m", "1100m", []string{"mnist-worker-1"}, pyTorchJobEnds},
		{"mpi-operator", "1400m 600m 600m", "2", nil, nil},
		{"grove", "2900m 1400m", "2300m 2300m", nil, groveIsTold},
		{"flink", "1900m 400m", "1300m", nil, flinkIsScaled},
	}
}

// nodesWith creates nodes with the given amounts of CPU.
func (w *world) nodesWith(cpus string) {
	w.t.Helper()
	for cpu := range strings.FieldsSeq(cpus) {
		w.Nodes(1, "cpu="+cpu+",memory=8Gi")
	}
}

// TestE2EOperators checks that each operator's gang waits while only a part of it fits. It then starts as a whole, before an older gang
// without a priority. It is counted in its queue, and is deleted with its owner.
func TestE2EOperators(t *testing.T) {
	t.Parallel()
	for _, c := range gangsOfOperators() {
		t.Run(c.sample, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.Apply(sample(t, "queues/queues.yaml"))
			w.nodesWith(c.few)
			made := w.operated(c.sample)
			later := made.without(c.later...)
			rival := made.rival()
			owner, other := w.asked("asked"), w.asked("rival")
			w.create(other, append(asObjects(rival.pods), rival.group)...)
			w.create(owner, append(asObjects(made.pods), made.group)...)
			w.StartScheduler()
			w.StartControllers()

			least := made.group.Spec.MinMember
			w.groupWaits(made.group.Name, schedulingv1beta1.PodGroupInqueue, "tasks in gang unschedulable")
			w.noneBound(slices.Concat(made.pods, rival.pods))
			w.nodesWith(c.more)
			w.groupRuns(made.group.Name, least)
			w.countsIn(made.group.Spec.Queue, 1)
			w.noneBound(rival.pods)

			if c.next != nil {
				c.next(w, owner, made, later)
			}
			w.remove(owner)
			w.goes(made.group)
			w.groupRuns(rival.group.Name, least)
			w.countsIn(made.group.Spec.Queue, 1)
			w.remove(other)
			w.countsIn(made.group.Spec.Queue, 0)
		})
	}
}

// rayJobEnds lets the submitter join the running cluster. When the job ends, the workers are deleted, and the group requests only its head.
func rayJobEnds(w *world, owner client.Object, made *operated, later []*corev1.Pod) {
	w.create(owner, asObjects(later)...)
	w.groupRuns(made.group.Name, 4)
	w.changeGroup(made.group.Name, func(s *schedulingv1beta1.PodGroupSpec) {
		s.MinMember, s.MinResources = 1, &corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
	})
	w.remove(append(asObjects(later), made.pod("sample-small-worker-0"), made.pod("sample-small-worker-1"))...)
	w.groupRuns(made.group.Name, 1)
}

// trainJobIsSuspended deletes the group and the pods, so that another gang gets the resources. They are created again, and wait.
func trainJobIsSuspended(w *world, owner client.Object, made *operated, _ []*corev1.Pod) {
	w.remove(append(asObjects(made.pods), made.group)...)
	w.goes(made.group)
	w.groupRuns("rival-"+made.group.Name, 2)
	again := w.operated("trainer")
	w.create(owner, append(asObjects(again.pods), again.group)...)
	w.groupWaits(again.group.Name, schedulingv1beta1.PodGroupPending, "insufficient")
}

// pyTorchJobEnds checks that the worker beyond the minimum starts when resources are free. When the job ends, its group is deleted, and
// remaining pods keep running.
func pyTorchJobEnds(w *world, owner client.Object, made *operated, later []*corev1.Pod) {
	w.create(owner, asObjects(later)...)
	w.isToldToWait(later[0].Name)
	w.nodesWith("1")
	w.groupRuns(made.group.Name, 3)
	w.remove(made.group)
	w.goes(made.group)
	w.noneBound(made.rival().pods)
	pods(string(corev1.PodRunning), "mnist-master-0", "mnist-worker-0", "mnist-worker-1")(w)
}

// groveIsTold checks that ignored fields are reported to the creator of the group, and by an event.
func groveIsTold(w *world, _ client.Object, made *operated, _ []*corev1.Pod) {
	const field = "spec.subGroupPolicy: "
	w.Wait("an event says it", func() error {
		return w.warned("PodGroup/"+made.group.Name, field+"minMember of all pods start together")
	})
	text := strings.Replace(sample(w.t, "operators/grove.yaml"), "  name: serving-0 ", "  name: told ", 1)
	if r := w.TryKubectl(text, "create", "--dry-run=server", "-f", "-"); !strings.Contains(r.Err, field+"groups within the group") {
		w.t.Errorf("who makes the group is told %s", r.Err)
	}
}

// flinkIsScaled adds a TaskManager, which becomes part of the minimum.
func flinkIsScaled(w *world, owner client.Object, made *operated, _ []*corev1.Pod) {
	second := w.operated("flink").pod("clicks-taskmanager-0")
	second.Name = "clicks-taskmanager-1"
	w.changeGroup(made.group.Name, func(s *schedulingv1beta1.PodGroupSpec) { s.MinMember = 4 })
	w.create(owner, second)
	w.isToldToWait(second.Name)
	w.nodesWith("1")
	w.groupRuns(made.group.Name, 4)
	w.changeGroup(made.group.Name, func(s *schedulingv1beta1.PodGroupSpec) { s.MinMember = 3 })
	w.remove(second)
	w.groupRuns(made.group.Name, 3)
}

// TestE2EOperatorsGates checks that pods of Grove wait behind a scheduling gate, although they fit.
func TestE2EOperatorsGates(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.StartScheduler()
	w.Apply(sample(t, "queues/queues.yaml"))
	w.Nodes(1, "cpu=8,memory=16Gi")
	made, owner := w.operated("grove"), w.asked("asked")
	for _, p := range made.pods {
		p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "grove.io/podgang-pending-creation"}}
	}
	w.create(owner, append(asObjects(made.pods), made.group)...)
	w.noneBound(made.pods)
	for _, p := range made.pods {
		w.Kubectl("patch", "pod", p.Name, "--type=json", "-p", `[{"op":"remove","path":"/spec/schedulingGates"}]`)
	}
	w.groupRuns(made.group.Name, 3)
}

// TestE2EOperatorsLeader creates the leader of a LeaderWorkerSet before its group. The leader owns the group, which is deleted with it. If
// workers start after their leader, the leader waits until all fit.
func TestE2EOperatorsLeader(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.StartScheduler()
	w.StartControllers()
	w.Apply(sample(t, "queues/queues.yaml"))
	w.nodesWith("3400m 900m")
	made, leaders := w.operated("leaderworkerset"), w.asked("leaders")
	leader, workers := made.pods[0], made.pods[1:]
	w.create(leaders, leader)
	w.noneBound(made.pods[:1])
	w.create(leader, append(asObjects(workers), made.group)...)
	w.groupWaits(made.group.Name, schedulingv1beta1.PodGroupInqueue, "/3 tasks in gang unschedulable")
	w.noneBound(made.pods)
	w.nodesWith("1100m")
	w.groupRuns(made.group.Name, 3)
	w.countsIn(made.group.Spec.Queue, 1)
	w.remove(leader)
	for _, o := range append(asObjects(made.pods), made.group) {
		w.goes(o)
	}
	w.countsIn(made.group.Spec.Queue, 0)

	ready := w.operated("leaderworkerset")
	ready.group.Spec.MinMember = 1
	ready.group.Spec.MinResources = &corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("12")} // for more and larger workers
	w.create(leaders, ready.pods[0])
	w.create(ready.pods[0], ready.group)
	w.groupWaits(ready.group.Name, schedulingv1beta1.PodGroupPending, "tasks in gang unschedulable")
	w.noneBound(ready.pods[:1])
	w.nodesWith("8")
	w.groupRuns(ready.group.Name, 1)
	w.create(ready.pods[0], asObjects(ready.pods[1:])...)
	w.groupRuns(ready.group.Name, 3)
}

// TestE2EOperatorsSpark checks that drivers wait until they and their executors fit. Drivers start the executors. Executors join the group,
// and are deleted with their driver. The Spark operator deletes the group itself. The driver of spark-submit owns its group.
func TestE2EOperatorsSpark(t *testing.T) {
	t.Parallel()
	for name, few := range map[string]string{"spark-operator": "1500m", "spark-submit": "1200m"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.StartScheduler()
			w.StartControllers()
			w.Apply(sample(t, "queues/queues.yaml"))
			w.nodesWith(few)
			made, owner := w.operated(name), w.asked("asked")
			driver, executors := made.pods[0], made.pods[1:]
			if name == "spark-operator" {
				w.create(owner, made.group, driver)
			} else {
				w.create(owner, driver)
				w.create(driver, made.group)
			}
			w.groupWaits(made.group.Name, schedulingv1beta1.PodGroupPending, "tasks in gang unschedulable")
			w.noneBound(made.pods[:1])
			w.nodesWith("2")
			w.groupRuns(made.group.Name, 1)
			w.create(driver, asObjects(executors)...)
			w.groupRuns(made.group.Name, int32(len(made.pods)))
			w.countsIn(made.group.Spec.Queue, 1)
			w.remove(driver)
			if name == "spark-operator" {
				w.remove(made.group)
			}
			for _, o := range append(asObjects(made.pods), made.group) {
				w.goes(o)
			}
			w.countsIn(made.group.Spec.Queue, 0)
		})
	}
}

// TestE2EOperatorsFlink tests Flink's native mode, which has no groups. The JobManager of a Deployment creates TaskManagers that the
// Deployment owns. Therefore they have one group, in the queue that their template names.
func TestE2EOperatorsFlink(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.StartScheduler()
	w.StartControllers()
	w.Apply(sample(t, "queues/queues.yaml"))
	w.Nodes(1, "cpu=4,memory=16Gi")
	w.Apply(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: orders}
spec:
  selector: {matchLabels: {component: jobmanager}}
  template:
    metadata:
      labels: {app: orders, component: jobmanager, type: flink-native-kubernetes}
      annotations: {scheduling.volcano.sh/queue-name: "${queue.batch}", celsius.dev/sim: '{run: 1h}'}
    spec:
      schedulerName: ${scheduler}
      containers: [{name: flink-main-container, image: flink, resources: {requests: {cpu: "1", memory: 1Gi}}}]
`)
	w.Kubectl("rollout", "status", "deployment/orders")
	deployment := &appsv1.Deployment{}
	if err := w.Get("orders", deployment); err != nil {
		t.Fatal(err)
	}
	first := w.operated("flink").alone[0]
	second := first.DeepCopy()
	second.Name = "orders-taskmanager-1-2"
	w.create(deployment, first, second)
	group := "podgroup-" + string(deployment.UID)
	w.groupRuns(group, 2)
	g := &schedulingv1beta1.PodGroup{}
	if err := w.Get(group, g); err != nil || g.Spec.Queue != w.Queue("batch") || g.Spec.MinMember != 1 {
		t.Errorf("the group of the TaskManagers has minMember %d in queue %s: %v", g.Spec.MinMember, g.Spec.Queue, err)
	}
	w.countsIn(w.Queue("batch"), 2) // with the group of the JobManager
}

// TestE2EOperatorsUnchanged applies the unchanged samples, with the scheduler name volcano, to a playground that is started as a user
// starts it. The training operator creates no pod before its group is admitted.
func TestE2EOperatorsUnchanged(t *testing.T) {
	t.Parallel()
	p := playground{t, t.TempDir()}
	end := p.up("--data-dir", filepath.Join(p.home, "data"), "--kubeconfig", filepath.Join(p.home, "kubeconfig"),
		"--node-shape", "2x cpu=24,memory=64Gi")
	p.kubectl("apply", "-f", "../../samples/queues/queues.yaml")
	text, err := os.ReadFile("../../samples/operators/training-operator.yaml")
	if err != nil {
		t.Fatal(err)
	}
	group, _, _ := strings.Cut(string(text), "\n---\n")
	file := filepath.Join(p.home, "group.yaml")
	if err := os.WriteFile(file, []byte(group), 0o600); err != nil {
		t.Fatal(err)
	}
	p.kubectl("apply", "-f", file)
	p.kubectl("wait", "podgroup/mnist", "--for=jsonpath={.status.phase}=Inqueue", "--timeout=10m")
	p.kubectl("apply", "-f", "../../samples/operators")
	p.kubectl("wait", "pods", "--all", "--for=condition=PodScheduled", "--timeout=10m")
	for _, of := range []string{
		"serving-0 Running", "flink-clicks Running", "inference-0-dd6699c7c Running", "pi Running", "mnist Completed",
	} {
		name, phase, _ := strings.Cut(of, " ")
		p.kubectl("wait", "podgroup/"+name, "--for=jsonpath={.status.phase}="+phase, "--timeout=10m")
	}
	end(syscall.SIGTERM)
}
