package live

import (
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
	"github.com/celsius-scheduler/celsius/engine/explain"
)

// whole contains the objects of a small world: a gang with a waiting pod, a gang with a running pod, and a bare pod. A JSON patch changes
// any of their fields.
type whole struct {
	Node                 *corev1.Node
	Queue, Other         *v1beta1.Queue
	Group, Running       *v1beta1.PodGroup
	Waits, Runs, Alone   *corev1.Pod
	PriorityClass        *schedulingv1.PriorityClass
	Claim                *corev1.PersistentVolumeClaim
	Volume               *corev1.PersistentVolume
	ResourceQuota        *corev1.ResourceQuota
	NamespaceAnnotations map[string]string
}

func newWhole() *whole {
	w := &whole{
		Node: testNode("gpu-2", "8"), Queue: testQueue("default"), Other: testQueue("research"),
		Group: testGroup("bert", 1), Running: testGroup("resnet", 1),
		Waits: claiming(testPod("bert-0", "bert", "1")), Runs: runningOn(testPod("resnet-0", "resnet", "2"), "gpu-2"),
		Alone:         testPod("alone", "", "1"),
		PriorityClass: &schedulingv1.PriorityClass{Value: 10}, Claim: testClaim("data", "local"), Volume: testVolume("v1", "gpu-2"),
		ResourceQuota: &corev1.ResourceQuota{},
	}
	w.PriorityClass.Name = "high"
	w.ResourceQuota.Namespace, w.ResourceQuota.Name = "default", "team"
	return w
}

// objects returns all objects of a world, with the names by which they refer to each other.
func (w *whole) objects() []metav1.Object {
	names := newWhole()
	var out []metav1.Object
	namespace := &corev1.Namespace{}
	namespace.Name, namespace.Annotations = "default", w.NamespaceAnnotations
	for _, x := range []struct{ is, was metav1.Object }{
		{namespace, namespace},
		{w.Node, names.Node},
		{w.Queue, names.Queue},
		{w.Other, names.Other},
		{w.PriorityClass, names.PriorityClass},
		{w.Claim, names.Claim},
		{w.Volume, names.Volume},
		{w.ResourceQuota, names.ResourceQuota},
		{w.Group, names.Group},
		{w.Running, names.Running},
		{w.Runs, names.Runs},
		{w.Waits, names.Waits},
		{w.Alone, names.Alone},
	} {
		x.is.SetName(x.was.GetName()) // a patch must not change the identity of an object
		x.is.SetNamespace(x.was.GetNamespace())
		x.is.SetUID("")
		x.is.SetResourceVersion("")
		out = append(out, x.is)
	}
	return out
}

// FuzzObjects sends whole objects through the intake, two cycles, their writes and explanations of all objects. No place recovers a panic.
func FuzzObjects(f *testing.F) {
	for _, seed := range []string{
		`{}`,
		`{"Alone": {"metadata": {"annotations": {"celsius.dev/gpu-count": "x", "scheduling.volcano.sh/group-min-member": "x"}}}}`,
		`{"Waits": {"metadata": {"annotations": {"volcano.sh/vgpu-ids-new": "0,1:", "volcano.sh/numa-topology-policy": "single-numa-node",
			"scheduling.celsius.dev/decided": "{}", "volcano.sh/preemptable": "maybe"}, "labels": {"volcano.sh/task-spec": "worker"}}}}`,
		`{"Waits": {"spec": {"tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists"}], "priorityClassName": "high",
			"containers": [{"name": "main", "resources": {"requests": {"cpu": "-1", "nvidia.com/gpu": "1e30", "volcano.sh/vgpu-number": "2",
			"volcano.sh/vgpu-memory-percentage": "150"}}}], "overhead": {"cpu": "1"}}}}`,
		`{"Waits": {"spec": {"topologySpreadConstraints": [{"maxSkew": 0, "topologyKey": "kubernetes.io/hostname",
			"whenUnsatisfiable": "DoNotSchedule",
			"labelSelector": {"matchExpressions": [{"key": "a", "operator": "Near"}]}, "matchLabelKeys": ["x"], "minDomains": -1}]}}}`,
		`{"Waits": {"spec": {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": ""}]},
			"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name",
			"operator": "Gt", "values": ["x"]}]}, {}]}}}}}}`,
		`{"Node": {"status": {"allocatable": {"cpu": "0", "nvidia.com/gpu": "-3"}, "capacity": null},
			"metadata": {"annotations": {"volcano.sh/node-vgpu-register": "a,b,c:", "volcano.sh/oversubscription": "true"}}}}`,
		`{"Group": {"spec": {"minMember": -1, "minTaskMember": {"worker": -2}, "minResources": {"cpu": "9e18"}, "queue": "nowhere",
			"networkTopology": {"mode": "hard", "highestTierAllowed": -1}}, "status": {"phase": "Gone", "conditions": [{}]}}}`,
		`{"Queue": {"spec": {"weight": -1, "parent": "default", "capability": {"cpu": "1n"}, "guarantee": {"resource": {"cpu": "1e9"}},
			"deserved": {"memory": "-1"}, "affinity": {"nodeGroupAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [""]}}}}}`,
		`{"Running": {"metadata": {"ownerReferences": [{"kind": "Job", "name": "", "controller": true}], "creationTimestamp": null}},
			"Runs": {"status": {"phase": "Unknown", "containerStatuses": [{"resources": {"requests": {"cpu": "7"}}}]},
			"spec": {"nodeName": "gone"}}}`,
		`{"Claim": {"spec": {"accessModes": [], "volumeName": "v1", "storageClassName": null}}, "Volume": {"spec": {"nodeAffinity": null}}}`,
		`{"NamespaceAnnotations": {"scheduling.volcano.sh/queue-name": "research"}, "ResourceQuota": {"status": {"hard": {"pods": "0"}}}}`,
	} {
		f.Add([]byte(seed))
	}
	p := preempting(f, "")
	f.Fuzz(func(t *testing.T, patch []byte) {
		w := newWhole()
		if len(patch) > 1<<14 || json.Unmarshal(patch, w) != nil || w.lacks() {
			t.Skip()
		}
		synctest.Test(t, func(t *testing.T) {
			r := newRigOf(newFakeServer(t), p)
			r.log = funcr.New(func(_, args string) { t.Log(args) }, funcr.Options{})
			r.looking, r.verifier.most = newLooking(), time.Second
			r.server.put(w.objects()...)
			for range 2 {
				r.server.deliver(-1)
				r.once(time.Now())
				for r.work() {
				}
				time.Sleep(time.Second)
			}
			r.explainAll(t)
			for place, n := range r.panicked(t) {
				if n != "0" {
					t.Errorf("%s: %s", place, n)
				}
			}
			if err := r.cluster.Check(); err != nil {
				t.Error(err)
			}
		})
	})
}

// lacks reports whether a patch has removed an object.
func (w *whole) lacks() bool {
	return w.Node == nil || w.Queue == nil || w.Other == nil || w.Group == nil || w.Running == nil || w.Waits == nil || w.Runs == nil ||
		w.Alone == nil || w.PriorityClass == nil || w.Claim == nil || w.Volume == nil || w.ResourceQuota == nil
}

// explainAll asks about every object, and compares the answers from the copy of the model with the answers from the model.
func (r *rig) explainAll(t *testing.T) {
	t.Helper()
	if r.plan == nil {
		return
	}
	all := func(x *explain.Cycle) map[string]string {
		out := map[string]string{}
		about := func(kind, namespace, name string) {
			key := kind + " " + namespace + "/" + name
			if told, err := x.Object(kind, namespace, name); err != nil {
				out[key] = err.Error()
			} else {
				out[key] = told.Text
			}
		}
		c := x.Session.Cluster()
		for _, task := range c.TasksByKey() {
			about(explain.Pod, task.Namespace, task.Name)
		}
		for _, j := range c.JobsByKey() {
			about(explain.Job, j.Namespace, j.Name)
		}
		for name := range c.Queues {
			about(explain.Queue, "", name)
		}
		for name := range c.Nodes.Index {
			about(explain.Node, "", name)
		}
		return out
	}
	var got map[string]string
	if _, err := r.ask(t.Context(), func(x *explain.Cycle) {
		if err := x.Session.Cluster().Check(); err != nil {
			t.Errorf("the copy of the model: %v", err)
		}
		got = all(x)
	}); err != nil {
		t.Error(err)
	}
	x := explain.New(r.decider.Session(), r.plan)
	x.Past = &r.past
	if diff := cmp.Diff(all(x), got); diff != "" {
		t.Errorf("answers of the model and of its copy (-model +copy):\n%s", diff)
	}
}

// panicked returns the counters of recovered panics.
func (r *rig) panicked(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	for name, value := range series(t, r.metrics.registry) {
		if len(name) > len("celsius_panics_total") && name[:len("celsius_panics_total")] == "celsius_panics_total" {
			out[name] = value
		}
	}
	return out
}
