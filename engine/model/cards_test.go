package model

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/celsius-scheduler/celsius/engine/cards"
)

// plainCards returns a node n with two cards of 8 GiB, as Volcano's device plugin for GPU memory and number describes them.
func plainCards(edits ...func(*corev1.Node)) *corev1.Node {
	return node("n", "cpu=64 pods=100 volcano.sh/gpu-memory=16384 volcano.sh/gpu-number=2", edits...)
}

// sharedCards returns a node n with cards of these UUIDs. Four pods can share each card.
func sharedCards(uuids ...string) *corev1.Node {
	return node("n", "cpu=64 pods=100 volcano.sh/vgpu-number=8 volcano.sh/vgpu-memory=16384 volcano.sh/vgpu-cores=200", func(n *corev1.Node) {
		text := ""
		for _, uuid := range uuids {
			text += uuid + ",4,8192,NVIDIA-A10,true,hami-core:"
		}
		n.Annotations[cards.RegisterAnnotation] = text
	})
}

func TestCardsHeld(t *testing.T) {
	type card struct{ Free, MemoryFree, Tasks int64 }
	tests := []struct {
		name string
		node *corev1.Node
		pods []any
		want []card
	}{
		{"plain cards are equal", plainCards(), nil, []card{{1000, 8192, 0}, {1000, 8192, 0}}},
		{
			"memory is of one card, the lowest that has it",
			plainCards(),
			[]any{
				pod("a", "volcano.sh/gpu-memory=6000", on("n"), created(1)), pod("b", "volcano.sh/gpu-memory=6000", on("n"), created(2)),
				pod("c", "volcano.sh/gpu-memory=2000", on("n"), created(3)),
			},
			[]card{{1000, 192, 2}, {1000, 2192, 1}},
		},
		{
			"another scheduler's binding says which",
			plainCards(),
			[]any{pod("a", "volcano.sh/gpu-memory=6000", on("n"), annotated(cards.IndexAnnotation, "1"))},
			[]card{{1000, 8192, 0}, {1000, 2192, 1}},
		},
		{
			"a number is of whole cards", plainCards(),
			[]any{pod("a", "volcano.sh/gpu-number=1", on("n"))},
			[]card{{0, 0, 1}, {1000, 8192, 0}},
		},
		{
			"a share has memory and cores",
			sharedCards("x", "y"),
			[]any{pod("a", "volcano.sh/vgpu-number=2 volcano.sh/vgpu-memory=1024 volcano.sh/vgpu-cores=30", on("n"))},
			[]card{{700, 7168, 1}, {700, 7168, 1}},
		},
		{
			"of a card, by percent, rounded down; percent comes before memory",
			sharedCards("x"),
			[]any{pod("a", "volcano.sh/vgpu-number=1 volcano.sh/vgpu-memory=1024 volcano.sh/vgpu-memory-percentage=33", on("n"))},
			[]card{{1000, 8192 - 2703, 1}},
		},
		{
			"without either it is all of the memory", sharedCards("x"),
			[]any{pod("a", "volcano.sh/vgpu-number=1", on("n"))},
			[]card{{1000, 0, 1}},
		},
		{
			"memory alone is of one card", sharedCards("x", "y"),
			[]any{pod("a", "volcano.sh/vgpu-memory=100", on("n"))},
			[]card{{1000, 8092, 1}, {1000, 8192, 0}},
		},
		{
			"another scheduler's binding says which by UUID", sharedCards("x", "y"),
			[]any{pod("a", "volcano.sh/vgpu-memory=100", on("n"), annotated("volcano.sh/vgpu-ids-new", "y,NVIDIA,100,0:"))},
			[]card{{1000, 8192, 0}, {1000, 8092, 1}},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := cluster(t, append([]any{tt.node}, tt.pods...)...)
			var got []card
			for _, g := range c.Nodes.GPUs[c.Nodes.Index["n"]] {
				got = append(got, card{g.Free, g.MemoryFree / cards.Unit, int64(g.TaskCount)})
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("cards (-want +got):\n%s", diff)
			}
		})
	}
}

func TestCardsThatAreBroken(t *testing.T) {
	c := cluster(t, plainCards(func(n *corev1.Node) { n.Annotations[cards.UnhealthyAnnotation] = "1, 7" }))
	if gpus := c.Nodes.GPUs[c.Nodes.Index["n"]]; gpus[0].Unhealthy || !gpus[1].Unhealthy {
		t.Errorf("cards %+v, want the second to be unhealthy", gpus)
	}
	errs := c.Apply(upserts(plainCards(func(n *corev1.Node) { n.Annotations[cards.UnhealthyAnnotation] = "0,one" }))...)
	const want = `Node n: metadata.annotations[volcano.sh/gpu-unhealthy-ids]: "one" is no card's number: write them as 0,2`
	if len(errs) != 1 || errs[0].Error() != want {
		t.Errorf("errors %v, want %s", errs, want)
	}
}

// TestCardsAreKnownByUUID checks that a card keeps its tasks when the node lists its cards in another order, or without one of them.
func TestCardsAreKnownByUUID(t *testing.T) {
	c := cluster(t, sharedCards("x", "y", "z"), pod("p", "volcano.sh/vgpu-number=2 volcano.sh/vgpu-memory=1024"))
	x, p := c.Begin(), c.Tasks["a/p"]
	x.Allocate(p, c.Nodes.Index["n"], []int{1, 2})
	x.Bind(p)
	x.Commit()
	for _, step := range []struct {
		uuids []string
		want  []int
	}{{[]string{"z", "x", "y"}, []int{0, 2}}, {[]string{"x", "y"}, []int{1}}} {
		apply(t, c, upserts(sharedCards(step.uuids...))...)
		if diff := cmp.Diff(step.want, p.GPUs); diff != "" {
			t.Errorf("%v: held (-want +got):\n%s", step.uuids, diff)
		}
		check(t, c)
	}
}

// TestCardsLater checks that promises and releases count for the future state of cards, and that undoing them restores the state.
func TestCardsLater(t *testing.T) {
	c := cluster(t, sharedCards("x"), pod("going", "volcano.sh/vgpu-memory=8000 volcano.sh/vgpu-cores=50", on("n"), deleting),
		pod("next", "volcano.sh/vgpu-memory=5000 volcano.sh/vgpu-cores=100"))
	row := c.Nodes.Index["n"]
	next, now := c.Tasks["a/next"], c.Nodes.GPUs[row][0]
	later := GPUsLater(&c.Nodes, row, nil)[0]
	if now.Takes(next) || !later.Takes(next) {
		t.Errorf("takes it now %t, later %t; want only later", now.Takes(next), later.Takes(next))
	}
	x := c.Begin()
	x.Pipeline(next, row, []int{0})
	if g := GPUsLater(&c.Nodes, row, nil)[0]; g.TaskCount != 1 || g.Free != 0 || g.MemoryFree != 3192*cards.Unit {
		t.Errorf("after the promise it will be %+v", g)
	}
	x.Rollback(0)
	if g := c.Nodes.GPUs[row][0]; g != now {
		t.Errorf("after it was undone the card is %+v, want %+v", g, now)
	}
}

func TestNoMoreShareThanACardLets(t *testing.T) {
	var pods []any
	for _, name := range []string{"a", "b", "c", "d"} {
		pods = append(pods, pod(name, "volcano.sh/vgpu-memory=10", on("n")))
	}
	c := cluster(t, append(pods, sharedCards("x"), pod("fifth", "volcano.sh/vgpu-memory=10"))...)
	if g := c.Nodes.GPUs[c.Nodes.Index["n"]][0]; g.Takes(c.Tasks["a/fifth"]) {
		t.Errorf("%+v takes a fifth", g)
	}
}

func TestCardMistakes(t *testing.T) {
	for requests, want := range map[string]string{
		"volcano.sh/gpu-memory=1 volcano.sh/gpu-number=1": "spec.containers[].resources.limits[volcano.sh/gpu-number]: " +
			"is requested in addition to volcano.sh/gpu-memory: a pod may request cards in one way only",
		"volcano.sh/gpu-memory=1 nvidia.com/gpu=1": "spec.containers[].resources.limits: " +
			"cards are asked for in Volcano's words (volcano.sh/gpu-memory), and in others as well; leave one of both away",
		"volcano.sh/vgpu-number=1 volcano.sh/vgpu-cores=101": "spec.containers[].resources.limits[volcano.sh/vgpu-cores]: " +
			"is 101, not from 0 to 100",
		"volcano.sh/vgpu-number=1 volcano.sh/vgpu-memory-percentage=0": "spec.containers[].resources.limits" +
			"[volcano.sh/vgpu-memory-percentage]: is 0, not from 1 to 100",
		"volcano.sh/gpu-number=2000": "spec.containers[].resources.limits[volcano.sh/gpu-number]: is 2000; no node has more than 1024 cards",
	} {
		c := NewCluster(Options{})
		errs := c.Apply(upserts(pod("p", requests))...)
		if len(errs) != 1 || errs[0].Error() != "Pod a/p: "+want {
			t.Errorf("%s: errors %v, want %s", requests, errs, want)
		}
	}
}

// TestWhatABindingWrites checks that a binding writes what Volcano's device plugins read.
func TestWhatABindingWrites(t *testing.T) {
	now := time.Unix(1700000000, 5)
	c := cluster(t, sharedCards("x", "y"),
		pod("share", "volcano.sh/vgpu-number=2 volcano.sh/vgpu-memory-percentage=50 volcano.sh/vgpu-cores=25"),
		pod("memory", "volcano.sh/gpu-memory=100"), pod("milli", "", annotated(GPUMilliAnnotation, "300")))
	ids := "x,NVIDIA,4096,25:y,NVIDIA,4096,25:"
	for name, tt := range map[string]struct {
		gpus []int
		want map[string]string
	}{
		"share": {[]int{0, 1}, map[string]string{
			GPUsAnnotation: "0,1", "volcano.sh/vgpu-ids-new": ids, "volcano.sh/devices-to-allocate": ids, "volcano.sh/vgpu-node": "n",
			"volcano.sh/vgpu-time": "1700000000", "volcano.sh/bind-time": "1700000000", "volcano.sh/bind-phase": "allocating",
		}},
		"memory": {[]int{1}, map[string]string{
			GPUsAnnotation: "1", "volcano.sh/gpu-index": "1", "volcano.sh/predicate-time": "1700000000000000005",
		}},
		"milli": {[]int{1}, map[string]string{GPUsAnnotation: "1"}},
	} {
		if diff := cmp.Diff(tt.want, BindAnnotations(&c.Nodes, c.Tasks["a/"+name], &Bind{Node: "n", GPUs: tt.gpus}, now)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if got := BindAnnotations(&c.Nodes, c.Tasks["a/milli"], &Bind{Node: "n"}, now); got != nil {
		t.Errorf("without devices: %v", got)
	}
}

// TestCardsAreRecorded checks that the record of a binding contains the pod's request, in the form of the pod.
func TestCardsAreRecorded(t *testing.T) {
	c := cluster(t, sharedCards("x", "y"), pod("p", "volcano.sh/vgpu-number=1 volcano.sh/vgpu-memory-percentage=50 volcano.sh/vgpu-cores=25"))
	x, p := c.Begin(), c.Tasks["a/p"]
	x.Allocate(p, c.Nodes.Index["n"], []int{1})
	x.Bind(p)
	x.Commit()
	r := p.Record()
	again := cluster(t, sharedCards("x", "y"), pod("p", "volcano.sh/vgpu-number=1", on("n"), annotated(RecordAnnotation, r.String())))
	if diff := cmp.Diff(c.Nodes.GPUs, again.Nodes.GPUs); diff != "" {
		t.Errorf("cards as the next leader finds them (-want +got):\n%s", diff)
	}
}
