package model

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	batchv1alpha1 "github.com/celsius-scheduler/celsius/crds/batch/v1alpha1"
)

// TestAnnotationsCountAsRequests checks that devices requested by annotations count in the pod's request, and in DeviceRequests equally.
func TestAnnotationsCountAsRequests(t *testing.T) {
	for _, tt := range []struct {
		name, requests string
		annotations    []string
		devices, bytes float64 // in addition to the requests of the containers
	}{
		{"nothing", "cpu=1", nil, 0, 0},
		{"whole devices", "cpu=1", []string{GPUCountAnnotation, "4"}, 4, 0},
		{"no device", "cpu=1", []string{GPUCountAnnotation, "0", GPUMilliAnnotation, "500"}, 0, 0},
		{"a share", "cpu=1", []string{GPUMilliAnnotation, "250"}, 0.25, 0},
		{"shares of two", "", []string{GPUMilliAnnotation, "300", GPUCountAnnotation, "2"}, 0.6, 0},
		{"memory alone", "", []string{GPUMemoryAnnotation, "4Gi", GPUCountAnnotation, "2"}, 0, 8 << 30},
		{"a share with memory", "cpu=1", []string{GPUMilliAnnotation, "500", GPUMemoryAnnotation, "4Gi"}, 0.5, 4 << 30},
		{"memory beyond all numbers", "cpu=1", []string{GPUMemoryAnnotation, "1e30", GPUCountAnnotation, "1024"}, 0, Most},
		{"devices that the containers request", "nvidia.com/gpu=2", []string{GPUCountAnnotation, "2"}, 0, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := pod("train-0", tt.requests, annotated(tt.annotations...))
			c := cluster(t, p)
			task := c.Tasks["a/train-0"]
			list := DeviceRequests(p, false)
			for name, want := range map[string]float64{GPUResource: tt.devices, GPUMemoryResource: tt.bytes} {
				dim := c.Dims.Intern(name)
				if got := (task.Request.Get(dim) - task.containers.Get(dim)) / c.Dims.Unit(dim); got != want {
					t.Errorf("the task requests %v %s, want %v", got, name, want)
				}
				if q := list[corev1.ResourceName(name)]; q.AsApproximateFloat64() != want {
					t.Errorf("DeviceRequests returns %s %s, want %v", q.String(), name, want)
				}
			}
			if foreign := DeviceRequests(p, true); foreign != nil {
				t.Errorf("a pod of another scheduler counts for %v", foreign)
			}
		})
	}
}

// TestATemplateHasNoDevices checks that pods of one template share the requests of their containers, but not the devices of their
// annotations.
func TestATemplateHasNoDevices(t *testing.T) {
	c := cluster(t, queue("q"), group("g", "q"), pod("half", "cpu=1", annotated(GPUMilliAnnotation, "500")), pod("none", "cpu=1"),
		pod("whole", "cpu=1", annotated(GPUCountAnnotation, "1")))
	dim, _ := c.Dims.Find(GPUResource)
	for name, want := range map[string]float64{"half": 500, "none": 0, "whole": 1000} {
		if got := c.Tasks["a/"+name].Request.Get(dim); got != want {
			t.Errorf("%s requests %v thousandths, want %v", name, got, want)
		}
	}
	if c.Tasks["a/half"].Template != c.Tasks["a/none"].Template {
		t.Error("the pods share no template")
	}
}

// TestBoundDevicesCountInTheQueue checks that the devices of a bound pod count in its queue and on its node as they were decided. Later
// annotations do not change that. The next scheduler reads the devices from the record. Without a record they count as whole devices.
func TestBoundDevicesCountInTheQueue(t *testing.T) {
	counts := func(c *Cluster, want float64, when string) {
		t.Helper()
		check(t, c)
		dim, _ := c.Dims.Find(GPUResource)
		n := c.Tasks["a/p"].Node
		for of, sum := range map[string]Resources{
			"its queue": c.Queues["q1"].Allocated, "its node": c.Nodes.UsedOf(n), "the cluster": c.Used,
		} {
			if got := sum.Get(dim); got != want {
				t.Errorf("%s %s counts %v thousandths, want %v", when, of, got, want)
			}
		}
	}
	c := shared()
	waits := pod("p", "cpu=1", annotated(GPUMilliAnnotation, "300"))
	c.Apply(upserts(waits)...)
	bound := decide(c, waits, 0)
	counts(c, 300, "before the pod shows its node,")
	less := bound.DeepCopy()
	less.Annotations[GPUMilliAnnotation] = "1"
	c.Apply(upserts(less)...)
	counts(c, 300, "after a change of the annotation,")
	next := shared()
	next.Apply(upserts(less)...)
	counts(next, 300, "for the next scheduler")
	if q := DeviceRequests(less, false)[GPUResource]; q.String() != "300m" {
		t.Errorf("DeviceRequests returns %s of the bound pod", q.String())
	}
	delete(less.Annotations, RecordAnnotation)
	last := shared()
	last.Apply(upserts(less)...)
	counts(last, 1000, "without a record")
}

// TestNodesOfferUnlistedDevices checks that devices that a node states only by annotation, or by Volcano's registration, are in its
// allocatable. Pods whose containers request devices cannot use them.
func TestNodesOfferUnlistedDevices(t *testing.T) {
	shares := node("shares-0", "cpu=8 pods=110", func(n *corev1.Node) {
		n.Annotations[NodeGPUsAnnotation], n.Annotations[GPUMemoryAnnotation] = "2", "16Gi"
	})
	cards := node("cards-0", "cpu=8 pods=110 volcano.sh/gpu-memory=32768 volcano.sh/gpu-number=2", func(n *corev1.Node) {
		n.Annotations["volcano.sh/gpu-unhealthy-ids"] = "1"
	})
	plugin := node("plugin-0", "cpu=8 pods=110 nvidia.com/gpu=2")
	c := cluster(t, shares, cards, plugin, pod("request", "nvidia.com/gpu=1"), pod("share", "", annotated(GPUMilliAnnotation, "500")))
	for _, tt := range []struct {
		node           *corev1.Node
		devices, bytes float64
		request        bool
	}{{shares, 2, 32 << 30, false}, {cards, 1, 16 << 30, false}, {plugin, 2, 0, true}} {
		row := c.Nodes.Index[tt.node.Name]
		offers := NodeOffers(tt.node)
		for name, want := range map[string]float64{GPUResource: tt.devices, GPUMemoryResource: tt.bytes} {
			dim, _ := c.Dims.Find(name)
			if got := c.Nodes.AllocatableOf(row).Get(dim) / c.Dims.Unit(dim); got != want {
				t.Errorf("%s offers %v %s, want %v", tt.node.Name, got, name, want)
			}
			if q := offers[corev1.ResourceName(name)]; q.AsApproximateFloat64() != want {
				t.Errorf("NodeOffers returns %s %s for %s, want %v", q.String(), name, tt.node.Name, want)
			}
		}
		g := &c.Nodes.GPUs[row][0]
		if g.Takes(c.Tasks["a/request"]) != tt.request || !g.Takes(c.Tasks["a/share"]) {
			t.Errorf("%s takes the request: %t, the share: %t", tt.node.Name, g.Takes(c.Tasks["a/request"]), g.Takes(c.Tasks["a/share"]))
		}
	}
	if offers := NodeOffers(plugin); len(offers) != 3 || len(plugin.Status.Allocatable) != 3 || len(shares.Status.Allocatable) != 2 {
		t.Errorf("NodeOffers returns %v, or changes the node", offers)
	}
}

// TestNobodyGaveTheseDevices checks that a pod that names its node holds no device there unless a device plugin or a binding gave it.
func TestNobodyGaveTheseDevices(t *testing.T) {
	other := func(p *corev1.Pod) { p.Spec.SchedulerName = corev1.DefaultSchedulerName }
	many := pod("p", "", on("n"), annotated(GPUCountAnnotation, "1000"))
	delete(many.Annotations, RecordAnnotation)
	shares := node("n", "cpu=8 pods=110", func(n *corev1.Node) { n.Annotations[NodeGPUsAnnotation] = "4" })
	all := annotated(GPUCountAnnotation, "4", GPUsAnnotation, "0,1")
	for _, tt := range []struct {
		name string
		node *corev1.Node
		pod  *corev1.Pod
		free int64 // thousandths of all devices
		used float64
	}{
		{"another scheduler's annotations", shares, pod("p", "", on("n"), other, all), 4000, 0},
		{"another scheduler's mistakes", shares, pod("p", "", on("n"), other, annotated(GPUCountAnnotation, "many")), 4000, 0},
		{"another scheduler's requests", gpuNode("n"), pod("p", "nvidia.com/gpu=1", on("n"), other), 3000, 1000},
		{"requests without a device plugin", shares, pod("p", "nvidia.com/gpu=1", on("n"), annotated(GPUsAnnotation, "0")), 4000, 0},
		{"more than the node has", shares, many, 0, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := cluster(t, queue("q"), group("g", "q"), tt.node, tt.pod)
			sum := int64(0)
			for _, free := range frees(c) {
				sum += free
			}
			dim, _ := c.Dims.Find(GPUResource)
			if got := c.Nodes.UsedOf(0).Get(dim); sum != tt.free || got != tt.used || c.Used.Get(dim) != tt.used {
				t.Errorf("%d thousandths are free, and %v used; want %d and %v", sum, got, tt.free, tt.used)
			}
		})
	}
}

// TestADevicePluginIsInstalled checks that a node that begins to list its devices gives them to pods whose containers request them.
func TestADevicePluginIsInstalled(t *testing.T) {
	p := pod("p", "nvidia.com/gpu=1", on("n"))
	c := cluster(t, node("n", "cpu=8 pods=110", func(n *corev1.Node) { n.Annotations[NodeGPUsAnnotation] = "4" }), p)
	dim, _ := c.Dims.Find(GPUResource)
	for _, listed := range []bool{true, false, true} {
		n := node("n", "cpu=8 pods=110", func(n *corev1.Node) { n.Annotations[NodeGPUsAnnotation] = "4" })
		want := 0.0
		if listed {
			n, want = node("n", "cpu=8 pods=110 nvidia.com/gpu=4"), 1000
		}
		apply(t, c, upserts(n)...)
		if got := c.Nodes.UsedOf(0).Get(dim); got != want || c.Nodes.GPUs[0][0].Free != 1000-int64(want) {
			t.Errorf("the node lists its devices: %t, and counts %v; %v", listed, got, c.Nodes.GPUs[0])
		}
	}
}

// TestDeviceMemoryIsNoRequest checks that containers cannot request device memory, because no kubelet and no device plugin grants it.
func TestDeviceMemoryIsNoRequest(t *testing.T) {
	c := NewCluster(Options{})
	errs := c.Apply(upserts(pod("p", "celsius.dev/gpu-memory=1Gi"))...)
	if len(errs) != 1 || c.Tasks["a/p"] != nil {
		t.Errorf("errors %v, and the pod is %v", errs, c.Tasks["a/p"])
	}
}

// TestExpectedDevices checks that the expected pods of a Job count with the devices of its templates.
func TestExpectedDevices(t *testing.T) {
	job := &batchv1alpha1.Job{ObjectMeta: metav1.ObjectMeta{Name: "train", Namespace: "a"}}
	task := batchv1alpha1.TaskSpec{Name: "worker", Replicas: 3}
	task.Template.Annotations = map[string]string{GPUMilliAnnotation: "500"}
	task.Template.Spec = pod("p", "cpu=1").Spec
	job.Spec.Tasks = []batchv1alpha1.TaskSpec{task}
	d, m := NewDims(), &mistakes{}
	s := readJobSpec(d, job, m)
	if len(m.errs) > 0 || len(s.roles) != 1 {
		t.Fatalf("%d roles, and %v", len(s.roles), m.errs)
	}
	if dim, _ := d.Find(GPUResource); s.roles[0].Request.Get(dim) != 500 {
		t.Errorf("each pod is to request %s", words(d, s.roles[0].Request))
	}
}
