package model

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	podresource "k8s.io/component-helpers/resource"
	"pgregory.net/rapid"
)

// kubeletCounts returns what the kubelet counts for a pod. It calls Kubernetes' own helper with every feature that the status shows.
func kubeletCounts(o *corev1.Pod) corev1.ResourceList {
	list := podresource.PodRequests(o, podresource.PodResourcesOptions{
		UseStatusResources: true,
		InPlacePodLevelResourcesVerticalScalingEnabled: true,
		UseDRANodeAllocatableResourceClaimStatus:       true,
	})
	list[corev1.ResourcePods] = *resource.NewQuantity(1, resource.DecimalSI)
	return list
}

// anyRequests returns a pod with containers, init containers, sidecars, overhead and pod-level requests, in amounts as users write them.
func anyRequests(t *rapid.T, name string) *corev1.Pod {
	amounts := []string{
		"", "cpu=100m memory=64Mi", "cpu=1 memory=1Gi", "cpu=6 memory=512Mi", "cpu=250m", "memory=3G", "cpu=2 nvidia.com/gpu=1",
		"cpu=1 hugepages-2Mi=4Mi", "cpu=1 ephemeral-storage=10Gi",
	}
	granted := []string{"", "", "cpu=3 memory=2Gi", "cpu=50m memory=32Mi"}
	p := pod(name, draw(t, "main", amounts...))
	statuses := func(ctrs []corev1.Container, prefix string) (out []corev1.ContainerStatus) {
		for i := range ctrs {
			ctrs[i].Name = fmt.Sprint(prefix, i)
			if text := draw(t, "granted", granted...); text != "" {
				out = append(out, corev1.ContainerStatus{
					Name: ctrs[i].Name, AllocatedResources: list(text), Resources: &corev1.ResourceRequirements{Requests: list(text)},
				})
			}
		}
		return out
	}
	for range rapid.IntRange(0, 2).Draw(t, "more containers") {
		p.Spec.Containers = append(p.Spec.Containers, container(draw(t, "container", amounts...)))
	}
	for range rapid.IntRange(0, 3).Draw(t, "init containers") {
		one := draw(t, "kind", container, sidecar)
		p.Spec.InitContainers = append(p.Spec.InitContainers, one(draw(t, "init", amounts...)))
	}
	p.Spec.Overhead = list(draw(t, "overhead", "", "", "cpu=250m memory=120Mi"))
	if text := draw(t, "pod level", "", "", "cpu=4", "cpu=2 memory=4Gi"); text != "" {
		p.Spec.Resources = &corev1.ResourceRequirements{Requests: list(text)}
	}
	p.Spec.NodeName = draw(t, "on", "", "n1", "n2")
	p.Spec.SchedulerName = draw(t, "scheduler", "celsius", "celsius", "default-scheduler")
	if p.Spec.NodeName == "" {
		return p
	}
	p.Status.Phase = draw(t, "phase", corev1.PodPending, corev1.PodRunning, corev1.PodRunning, corev1.PodSucceeded, corev1.PodFailed)
	p.Status.ContainerStatuses = statuses(p.Spec.Containers, "main-")
	p.Status.InitContainerStatuses = statuses(p.Spec.InitContainers, "init-")
	if text := draw(t, "pod granted", granted...); text != "" && p.Spec.Resources != nil {
		p.Status.Resources, p.Status.AllocatedResources = &corev1.ResourceRequirements{Requests: list(text)}, list(text)
	}
	if draw(t, "claims", false, false, true) {
		p.Status.NodeAllocatableResourceClaimStatuses = []corev1.NodeAllocatableResourceClaimStatus{{Resources: list("cpu=1")}}
	}
	if draw(t, "deleting", false, false, true) {
		deleting(p)
	}
	return p
}

// TestSumsAreTheKubelets checks that the sums of every node, queue and job are the sums of what Kubernetes' helper returns for their pods.
// This is so from the binding until the pod is finished, in any order of events, and also for pods that a cycle places.
func TestSumsAreTheKubelets(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := NewCluster(Options{})
		c.Apply(upserts(node("n1", "cpu=64 memory=256Gi pods=110 nvidia.com/gpu=8"), node("n2", "cpu=64 memory=256Gi pods=110"),
			group("g", "q"), queue("q"))...)
		for range rapid.IntRange(1, 12).Draw(t, "changes") {
			o := anyRequests(t, draw(t, "pod", "p1", "p2", "p3", "p4"))
			if old := c.Tasks["a/"+o.Name]; old != nil && old.NodeName != "" {
				o.Spec.NodeName = old.NodeName // a binding is final
			}
			for _, err := range c.Apply(upserts(o)...) {
				t.Fatal(err)
			}
			if err := c.Check(); err != nil {
				t.Fatal(err)
			}
		}
		sumsAreTheKubelets(t, c)
		x := c.Begin()
		for _, task := range c.TasksByKey() {
			if task.Status == Pending && !task.Foreign && task.GPUCount == 0 {
				x.Allocate(task, c.Nodes.Index["n2"], nil)
			}
		}
		sumsAreTheKubelets(t, c)
	})
}

func sumsAreTheKubelets(t *rapid.T, c *Cluster) {
	nodes, job := map[string]Resources{"n1": {}, "n2": {}}, Resources{}
	for _, task := range c.TasksByKey() {
		counts := c.Dims.Resources(kubeletCounts(task.Object))
		if phase := task.Object.Status.Phase; task.NodeName == "" || phase == corev1.PodSucceeded || phase == corev1.PodFailed {
			continue
		}
		if gpus := c.Dims.Intern("nvidia.com/gpu"); task.NodeName == "n2" && counts.Has(gpus) {
			counts[gpus] = Absent() // the kubelet ignores extended resources that its node does not list
		}
		nodes[task.NodeName] = nodes[task.NodeName].Add(counts)
		if task.Unadmitted {
			continue
		}
		if !task.Foreign && task.Status != Releasing {
			job = job.Add(counts)
		}
	}
	for name, want := range nodes {
		same(t, c, "node "+name, want, c.Nodes.UsedOf(c.Nodes.Index[name]))
	}
	same(t, c, "job", job, c.Jobs["a/g"].Allocated)
	same(t, c, "queue", job, c.Queues["q"].Allocated)
}

func same(t *rapid.T, c *Cluster, what string, want, got Resources) {
	for i := range c.Dims.Len() {
		if want.Get(i) != got.Get(i) {
			t.Fatalf("%s counts %s %s, Kubernetes counts %s", what, c.Dims.Name(i), c.Dims.AmountText(i, got.Get(i)),
				c.Dims.AmountText(i, want.Get(i)))
		}
	}
}
