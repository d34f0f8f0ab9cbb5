package model

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

func TestGPURequests(t *testing.T) {
	type wish struct {
		Count, Milli, Memory int64
		Models               []string
		Tag                  string
	}
	tests := []struct {
		name        string
		requests    string
		annotations []string
		want        wish
		err         string
	}{
		{name: "none", requests: "cpu=1", want: wish{}},
		{name: "whole devices", requests: "nvidia.com/gpu=2", want: wish{2, 1000, 0, nil, "2-gpu"}},
		{name: "a share", annotations: []string{GPUMilliAnnotation, "250"}, want: wish{1, 250, 0, nil, "share"}},
		{name: "a whole device by share", annotations: []string{GPUMilliAnnotation, "1000"}, want: wish{1, 1000, 0, nil, "1-gpu"}},
		{
			name: "shares of two devices", annotations: []string{GPUMilliAnnotation, "500", GPUCountAnnotation, "2"},
			want: wish{2, 500, 0, nil, "2-gpu"},
		},
		{name: "a count is of whole devices", annotations: []string{GPUCountAnnotation, "4"}, want: wish{4, 1000, 0, nil, "4-gpu"}},
		{name: "none by count", annotations: []string{GPUCountAnnotation, "0", GPUMilliAnnotation, "500"}, want: wish{}},
		{name: "memory alone", annotations: []string{GPUMemoryAnnotation, "4Gi"}, want: wish{1, 0, 4 << 30, nil, "share"}},
		{
			name: "models", requests: "nvidia.com/gpu=1", annotations: []string{GPUModelsAnnotation, "V100M32 | A10|V100M32"},
			want: wish{1, 1000, 0, []string{"A10", "V100M32"}, "1-gpu"},
		},
		{
			name: "a word", annotations: []string{GPUMilliAnnotation, "half"},
			err: `Pod a/p: metadata.annotations[celsius.dev/gpu-milli]: "half" is no whole number from 1 to 1000`,
		},
		{
			name: "too much", annotations: []string{GPUMilliAnnotation, "1001"},
			err: `Pod a/p: metadata.annotations[celsius.dev/gpu-milli]: "1001" is no whole number from 1 to 1000`,
		},
		{
			name: "below 0", annotations: []string{GPUCountAnnotation, "-1"},
			err: `Pod a/p: metadata.annotations[celsius.dev/gpu-count]: "-1" is no whole number from 0 to 1024`,
		},
		{
			name: "no memory", annotations: []string{GPUMemoryAnnotation, "4 sticks"},
			err: `Pod a/p: metadata.annotations[celsius.dev/gpu-memory]: "4 sticks" is no quantity such as 16Gi`,
		},
		{
			name: "two counts", requests: "nvidia.com/gpu=2", annotations: []string{GPUCountAnnotation, "1"},
			err: `Pod a/p: metadata.annotations[celsius.dev/gpu-count]: is 1, but the containers request nvidia.com/gpu: 2`,
		},
		{
			name: "whole and shared", requests: "nvidia.com/gpu=2", annotations: []string{GPUMilliAnnotation, "5"},
			err: `Pod a/p: metadata.annotations[celsius.dev/gpu-milli]: is 5, but the containers request whole devices ` +
				`(nvidia.com/gpu: 2); leave one of both away`,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := NewCluster(Options{})
			errs := c.Apply(upserts(pod("p", tt.requests, annotated(tt.annotations...)))...)
			check(t, c)
			task := c.Tasks["a/p"]
			if tt.err != "" {
				if len(errs) != 1 || errs[0].Error() != tt.err {
					t.Errorf("errors %v, want %s", errs, tt.err)
				}
				if task != nil {
					t.Error("a pod that cannot be read is a task")
				}
				return
			}
			if len(errs) > 0 {
				t.Fatal(errs)
			}
			if diff := cmp.Diff(tt.want, wish{task.GPUCount, task.GPUMilli, task.GPUMemory, task.GPUModels, task.GPUTag}); diff != "" {
				t.Errorf("wish (-want +got):\n%s", diff)
			}
			if wants := task.GPUCount > 0; wants == task.BestEffort && tt.requests == "" {
				t.Errorf("best effort is %t", task.BestEffort)
			}
		})
	}
}

func gpuNode(name string) *corev1.Node {
	return node(name, "cpu=64 pods=100 nvidia.com/gpu=4", func(n *corev1.Node) {
		n.Labels[GPUProductLabel] = "A100"
		n.Annotations[GPUMemoryAnnotation] = "80Gi"
	})
}

// frees returns the free thousandths of each device of node n.
func frees(c *Cluster) []int64 {
	var out []int64
	for _, g := range c.Nodes.GPUs[c.Nodes.Index["n"]] {
		out = append(out, g.Free)
	}
	return out
}

func TestDevicesOfNodes(t *testing.T) {
	c := cluster(t, gpuNode("label"), node("annotated", "cpu=1", func(n *corev1.Node) {
		n.Annotations[NodeGPUsAnnotation], n.Annotations[GPUModelAnnotation] = "2", "T4"
	}), node("none", "cpu=1"))
	want := map[string][]GPU{
		"label": {
			{Index: 0, Model: "A100", Capacity: 1000, Free: 1000, Memory: 80 << 30, MemoryFree: 80 << 30},
			{Index: 1, Model: "A100", Capacity: 1000, Free: 1000, Memory: 80 << 30, MemoryFree: 80 << 30},
			{Index: 2, Model: "A100", Capacity: 1000, Free: 1000, Memory: 80 << 30, MemoryFree: 80 << 30},
			{Index: 3, Model: "A100", Capacity: 1000, Free: 1000, Memory: 80 << 30, MemoryFree: 80 << 30},
		},
		"annotated": {
			{Model: "T4", Capacity: 1000, Free: 1000, Unlisted: true}, {Index: 1, Model: "T4", Capacity: 1000, Free: 1000, Unlisted: true},
		},
		"none": nil,
	}
	for name, gpus := range want {
		if diff := cmp.Diff(gpus, c.Nodes.GPUs[c.Nodes.Index[name]]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	errs := c.Apply(upserts(node("none", "cpu=1", func(n *corev1.Node) { n.Annotations[NodeGPUsAnnotation] = "many" }))...)
	if len(errs) != 1 ||
		errs[0].Error() != `Node none: metadata.annotations[celsius.dev/gpus-count]: "many" is no whole number from 0 to 1024` {
		t.Errorf("errors %v", errs)
	}
	if _, ok := c.Nodes.Index["none"]; !ok {
		t.Error("a node with a bad annotation is gone; its tasks still use it")
	}
}

func TestDevicesHeld(t *testing.T) {
	share := func(name, milli string, second int, edits ...func(*corev1.Pod)) *corev1.Pod {
		edits = append([]func(*corev1.Pod){on("n"), annotated(GPUMilliAnnotation, milli), created(second)}, edits...)
		return pod(name, "", edits...)
	}
	tests := []struct {
		name string
		pods []any
		free []int64
		held map[string][]int
	}{
		{
			"as annotated",
			[]any{share("p", "400", 1, annotated(GPUsAnnotation, "2"))},
			[]int64{1000, 1000, 600, 1000},
			map[string][]int{"p": {2}},
		},
		{
			"unsaid: the lowest that are free enough, the oldest pod first",
			[]any{share("young", "600", 2), share("old", "500", 1), share("third", "500", 3)},
			[]int64{0, 400, 1000, 1000},
			map[string][]int{"old": {0}, "young": {1}, "third": {0}},
		},
		{
			"unsaid goes beside what is annotated",
			[]any{share("a", "500", 1), share("b", "700", 2, annotated(GPUsAnnotation, "0"))},
			[]int64{300, 500, 1000, 1000},
			map[string][]int{"a": {1}, "b": {0}},
		},
		{
			"whole devices",
			[]any{pod("whole", "nvidia.com/gpu=2", on("n")), share("part", "1", 9)},
			[]int64{0, 0, 999, 1000},
			map[string][]int{"whole": {0, 1}, "part": {2}},
		},
		{
			"a device that the node lacks is passed over",
			[]any{share("p", "400", 1, annotated(GPUsAnnotation, "7"))},
			[]int64{1000, 1000, 1000, 1000},
			map[string][]int{"p": {7}},
		},
		{
			"releasing pods hold, finished ones do not",
			[]any{share("going", "400", 1, deleting), share("done", "400", 1, func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded })},
			[]int64{600, 1000, 1000, 1000},
			map[string][]int{"going": {0}, "done": nil},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for _, objects := range [][]any{append([]any{gpuNode("n")}, tt.pods...), append(append([]any{}, tt.pods...), gpuNode("n"))} {
				c := cluster(t, objects...)
				if diff := cmp.Diff(tt.free, frees(c)); diff != "" {
					t.Errorf("free (-want +got):\n%s", diff)
				}
				for name, want := range tt.held {
					if diff := cmp.Diff(want, c.Tasks["a/"+name].GPUs); diff != "" {
						t.Errorf("%s holds (-want +got):\n%s", name, diff)
					}
				}
			}
		})
	}
}

func TestMalformedDevices(t *testing.T) {
	for text, want := range map[string]string{
		"0,x": `"0,x" is no list of device numbers such as 0,1`,
		"-1":  `"-1" is no list of device numbers such as 0,1`,
		"0":   `"0" names 1 different devices, but the pod wants 2`,
		"1,1": `"1,1" names 1 different devices, but the pod wants 2`,
	} {
		c := NewCluster(Options{})
		errs := c.Apply(upserts(gpuNode("n"), pod("p", "cpu=3 nvidia.com/gpu=2", on("n"), annotated(GPUsAnnotation, text)))...)
		if len(errs) != 1 || errs[0].Error() != "Pod a/p: metadata.annotations[celsius.dev/gpus]: "+want {
			t.Errorf("%s: errors %v, want %s", text, errs, want)
		}
		if got := c.Used.Get(CPU); got != 3000 {
			t.Errorf("%s: %g of cpu used, want 3000: the pod runs, whatever its annotation says", text, got)
		}
		check(t, c)
	}
}

func TestDeviceMemory(t *testing.T) {
	c := cluster(t, gpuNode("n"),
		pod("half", "", on("n"), annotated(GPUMilliAnnotation, "500", GPUMemoryAnnotation, "30Gi", GPUsAnnotation, "0")),
		pod("alone", "", on("n"), annotated(GPUMemoryAnnotation, "60Gi")),
		pod("whole", "nvidia.com/gpu=1", on("n")))
	var got []int64
	for _, g := range c.Nodes.GPUs[c.Nodes.Index["n"]] {
		got = append(got, g.MemoryFree>>30)
	}
	// alone does not fit next to half; whole takes device 2 with all of its memory.
	if diff := cmp.Diff([]int64{50, 20, 0, 80}, got); diff != "" {
		t.Errorf("memory free in Gi (-want +got):\n%s", diff)
	}
}

func TestDevicesThatWeChoseStayChosen(t *testing.T) {
	c := cluster(t, gpuNode("n"), pod("p", "", annotated(GPUMilliAnnotation, "300")))
	x, p, row := c.Begin(), c.Tasks["a/p"], c.Nodes.Index["n"]
	chosen := []int{3}
	x.Allocate(p, row, chosen)
	chosen[0] = 1 // the cluster does not keep the caller's slice
	x.Bind(p)
	x.Commit()
	check(t, c)
	apply(t, c, upserts(pod("p", "", annotated(GPUMilliAnnotation, "300"), on("n")))...)
	if diff := cmp.Diff([]int64{1000, 1000, 1000, 700}, frees(c)); diff != "" {
		t.Errorf("free (-want +got):\n%s", diff)
	}
	if p != c.Tasks["a/p"] || p.Status != Running {
		t.Errorf("the task is %s, or another", p.Status)
	}
}

func TestDevicesAreGuessedAnew(t *testing.T) {
	share := func(name, milli string) *corev1.Pod {
		return pod(name, "", on("n"), annotated(GPUMilliAnnotation, milli))
	}
	few := node("n", "cpu=64 pods=100", func(n *corev1.Node) { n.Annotations[NodeGPUsAnnotation] = "1" })
	c := cluster(t, few, share("a", "700"), share("b", "700"))
	if got := c.Tasks["a/b"].GPUs; got != nil {
		t.Errorf("b holds %v, but the one device has no room beside a", got)
	}
	apply(t, c, upserts(gpuNode("n"))...)
	if diff := cmp.Diff([]int64{300, 300, 1000, 1000}, frees(c)); diff != "" {
		t.Errorf("with more devices (-want +got):\n%s", diff)
	}
	apply(t, c, Delta{Delete, few})
	if got := c.Tasks["a/a"].GPUs; got != nil {
		t.Errorf("without its node a holds %v", got)
	}
}

func TestPromisedDevicesAreNotHeld(t *testing.T) {
	c := cluster(t, gpuNode("n"), pod("next", "", annotated(GPUMilliAnnotation, "900")))
	x := c.Begin()
	x.Pipeline(c.Tasks["a/next"], c.Nodes.Index["n"], []int{0})
	x.Commit()
	apply(t, c, upserts(pod("p", "", on("n"), annotated(GPUMilliAnnotation, "900")))...)
	if diff := cmp.Diff([]int64{100, 1000, 1000, 1000}, frees(c)); diff != "" {
		t.Errorf("free (-want +got):\n%s", diff)
	}
}
