package report_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/report"
	"github.com/celsius-scheduler/celsius/engine/volume"
)

// amounts parses "cpu=1 memory=2Gi".
func amounts(text string) corev1.ResourceList {
	out := corev1.ResourceList{}
	for part := range strings.FieldsSeq(text) {
		name, amount, _ := strings.Cut(part, "=")
		if name == "gpu" {
			name = "nvidia.com/gpu"
		}
		out[corev1.ResourceName(name)] = resource.MustParse(amount)
	}
	return out
}

// machines returns nodes that allocate the same amounts. They have the label kubernetes.io/hostname unless their name starts with "bare".
func machines(count int, name, allocatable string) (out []any) {
	for i := range count {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", name, i), Labels: map[string]string{}}}
		n.Status.Allocatable = amounts("pods=110 " + allocatable)
		if !strings.HasPrefix(name, "bare") {
			n.Labels[corev1.LabelHostname] = n.Name
		}
		out = append(out, n)
	}
	return out
}

type podEdit func(*corev1.Pod)

// replicas returns pods of one task of the gang.
func replicas(count int, task, requests string, edits ...podEdit) (out []any) {
	for i := range count {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("nccl-%s-%d", cmp.Or(task, "pod"), i), Namespace: "speech", Labels: map[string]string{"app": "nccl"},
			Annotations: map[string]string{model.GroupAnnotation: "nccl"},
		}}
		if task != "" {
			p.Annotations[model.RoleAnnotation] = task
		}
		p.Spec.SchedulerName = "celsius"
		p.Spec.Containers = []corev1.Container{{Name: "train", Resources: corev1.ResourceRequirements{Requests: amounts(requests)}}}
		for _, edit := range edits {
			edit(p)
		}
		out = append(out, p)
	}
	return out
}

// hostPort returns an edit that adds a host port, written "PORT", "PORT/PROTOCOL" or "PORT/PROTOCOL/IP".
func hostPort(text string) podEdit {
	parts := append(strings.Split(text, "/"), "", "")
	port := corev1.ContainerPort{Protocol: corev1.Protocol(parts[1]), HostIP: parts[2]}
	if _, err := fmt.Sscan(parts[0], &port.HostPort); err != nil {
		panic(err)
	}
	return func(p *corev1.Pod) { p.Spec.Containers[0].Ports = append(p.Spec.Containers[0].Ports, port) }
}

func labelled(keysAndValues ...string) podEdit {
	return func(p *corev1.Pod) {
		for i := 0; i < len(keysAndValues); i += 2 {
			p.Labels[keysAndValues[i]] = keysAndValues[i+1]
		}
	}
}

// gated adds a scheduling gate to a pod.
func gated(p *corev1.Pod) {
	p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "example.com/dataset"}}
}

// numbered gives each pod a label of its own.
func numbered(p *corev1.Pod) { p.Labels["index"] = p.Name }

// apartFrom returns an edit that keeps pods with the label app=nccl in the same namespace off the pod's node.
func apartFrom(edits ...func(*corev1.PodAffinityTerm)) podEdit {
	term := corev1.PodAffinityTerm{
		TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "nccl"}},
	}
	for _, edit := range edits {
		edit(&term)
	}
	return func(p *corev1.Pod) {
		if p.Spec.Affinity == nil {
			p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{}}
		}
		of := p.Spec.Affinity.PodAntiAffinity
		of.RequiredDuringSchedulingIgnoredDuringExecution = append(of.RequiredDuringSchedulingIgnoredDuringExecution, term)
	}
}

func selecting(key string, how metav1.LabelSelectorOperator, values ...string) func(*corev1.PodAffinityTerm) {
	return func(term *corev1.PodAffinityTerm) {
		term.LabelSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: key, Operator: how, Values: values}}}
	}
}

func running(on string) podEdit {
	return func(p *corev1.Pod) { p.Spec.NodeName, p.Status.Phase = on, corev1.PodRunning }
}

// gangOf returns the PodGroup of the pods of replicas. roles are minimums, written "task=1".
func gangOf(minMember int, roles ...string) any {
	g := &v1beta1.PodGroup{ObjectMeta: metav1.ObjectMeta{Name: "nccl", Namespace: "speech"}}
	g.Spec.MinMember = int32(minMember)
	for _, role := range roles {
		name, text, _ := strings.Cut(role, "=")
		if g.Spec.MinTaskMember == nil {
			g.Spec.MinTaskMember = map[string]int32{}
		}
		var least int32
		if _, err := fmt.Sscan(text, &least); err != nil {
			panic(err)
		}
		g.Spec.MinTaskMember[name] = least
	}
	return g
}

// clusterOf returns a cluster with the objects.
func clusterOf(t interface{ Fatal(args ...any) }, objects ...any) (*model.Cluster, *model.Job) {
	c := model.NewCluster(model.Options{Volumes: volume.New})
	for _, o := range objects {
		if errs := c.Apply(model.Delta{Object: o}); len(errs) > 0 {
			t.Fatal(errs)
		}
	}
	return c, c.Jobs["speech/nccl"]
}

// sizesOf returns the sizes of all nodes.
func sizesOf(c *model.Cluster, apart report.Apart) report.Sizes {
	sizes := report.Sizes{Shapes: report.Shapes(&c.Nodes), Kinds: report.Kinds(&c.Nodes), Apart: apart}
	for _, row := range c.Nodes.ByOrder() {
		sizes.Largest, sizes.Sum = sizes.Largest.Max(c.Nodes.AllocatableOf(row)), sizes.Sum.Add(c.Nodes.AllocatableOf(row))
	}
	return sizes
}

func all(lists ...[]any) []any { return slices.Concat(lists...) }

// differing returns nodes of count kinds, the smallest of which has the given memory.
func differing(count int, memory int64) (out []any) {
	for i := range count {
		out = append(out, machines(1, fmt.Sprintf("dgx%d", i), fmt.Sprintf("cpu=64 memory=%d gpu=4", memory+int64(i)*4096))...)
	}
	return out
}

// TestGangNeedsMorePlaces checks that NeverStarts reports a gang that can never start because the nodes can hold too few of its pods.
func TestGangNeedsMorePlaces(t *testing.T) {
	t.Parallel()
	const gi = 1 << 30
	a10, tail := machines(2, "a10", "cpu=64 memory=256Gi gpu=4"), "lower minAvailable, or add nodes"
	small, big := "cpu=2 memory=8Gi gpu=1", "cpu=2 memory=140Gi gpu=1"
	const isIn, notIn = metav1.LabelSelectorOpIn, metav1.LabelSelectorOpNotIn
	const exists, doesNotExist = metav1.LabelSelectorOpExists, metav1.LabelSelectorOpDoesNotExist
	of3 := func(edits ...podEdit) []any { return replicas(3, "", small, edits...) }
	only2 := "the nodes can hold at most 2 of the 3 pods that must start together, because "
	byPort := only2 + "each uses host port 29500 of its node: the job can never start; remove the host port, " + tail
	byTerm := only2 + "the anti-affinity of each keeps the others off its node: the job can never start; remove the anti-affinity, " + tail
	byMemory := only2 + "each requests memory 140Gi: the job can never start; request less, " + tail
	for name, test := range map[string]struct {
		objects []any
		gang    any
		off     bool // the policy reads neither host ports nor anti-affinity
		want    string
	}{
		"a node holds one by its memory":               {all(a10, replicas(3, "", big)), gangOf(3), false, byMemory},
		"and it does not matter what the policy reads": {all(a10, replicas(3, "", big)), gangOf(3), true, byMemory},
		"a node holds two by its memory":               {all(a10, replicas(3, "", "cpu=2 memory=128Gi gpu=1")), gangOf(3), false, ""},
		"two must start":                               {all(a10, replicas(3, "", big)), gangOf(2), false, ""},
		"one pod runs": {
			all(a10, replicas(1, "first", "cpu=2 memory=140Gi", running("a10-0")), replicas(2, "", big)), gangOf(3), false, "",
		},
		"a pod of unknown status may run again": {
			all(a10, replicas(1, "first", "cpu=2 memory=140Gi", func(p *corev1.Pod) { p.Status.Phase = corev1.PodUnknown }),
				replicas(3, "", big)),
			gangOf(3), false, "",
		},
		"more pods may come": {all(a10, replicas(3, "", big)), gangOf(4), false, ""},
		"other nodes hold more": {
			all(a10, machines(1, "a100", "cpu=128 memory=1Ti gpu=8"), replicas(9, "", big)), gangOf(9), false, "",
		},
		"other nodes hold too few": {
			all(a10, machines(1, "a100", "cpu=128 memory=1Ti gpu=4"), replicas(7, "", big)), gangOf(7), false,
			"the nodes can hold at most 6 of the 7 pods that must start together, because each requests memory 140Gi and nvidia.com/gpu 1: " +
				"the job can never start; request less, " + tail,
		},
		"two and a half nodes' worth of GPUs": {
			all(machines(4, "h100", "cpu=96 memory=1Ti gpu=8"), replicas(5, "", "cpu=8 memory=100Gi gpu=5")), gangOf(5), false,
			"the nodes can hold at most 4 of the 5 pods that must start together, because each requests nvidia.com/gpu 5: " +
				"the job can never start; request less, " + tail,
		},
		"tasks together": {
			all(a10, replicas(1, "master", big), replicas(2, "worker", big)), gangOf(3), false, byMemory,
		},
		"one task of two": {
			all(a10, replicas(1, "launcher", "cpu=1 memory=1Gi"), replicas(3, "worker", big)), gangOf(4), false,
			"the nodes can hold at most 3 of the 4 pods that must start together, because each pod of task worker requests memory 140Gi: " +
				"the job can never start; request less, " + tail,
		},
		"a pod that fits no node": {
			all(a10, replicas(1, "launcher", "cpu=1"), replicas(1, "worker", "gpu=5")), gangOf(2), false,
			"the pod of task worker requests nvidia.com/gpu 5, but the largest node has 4: it can never start; request less, or add a larger node",
		},
		"a pod that fits no node, and that the gang does not need": {
			all(a10, replicas(1, "launcher", "cpu=1"), replicas(1, "worker", "gpu=5")), gangOf(1), false, "",
		},
		"a pod that fits no node, after the gang has started": {
			all(a10, replicas(1, "launcher", "cpu=1", running("a10-0")), replicas(1, "worker", "gpu=5")), gangOf(1), false,
			"the pod of task worker requests nvidia.com/gpu 5, but the largest node has 4: it can never start; request less, or add a larger node",
		},
		"pods of two tasks fit no node, and the gang needs one task": {
			all(a10, replicas(1, "extra", "gpu=9"), replicas(1, "launcher", "cpu=1"), replicas(1, "worker", "gpu=5")),
			gangOf(2, "launcher=1", "worker=1"), false,
			"the pod of task worker requests nvidia.com/gpu 5, but the largest node has 4: it can never start; request less, or add a larger node",
		},
		"one task of two, but the others are enough": {
			all(a10, replicas(1, "launcher", "cpu=1 memory=1Gi"), replicas(3, "worker", big)), gangOf(3), false, "",
		},
		"the minimum of a task": {
			all(a10, replicas(1, "launcher", "cpu=1 memory=1Gi"), replicas(3, "worker", big)),
			gangOf(3, "worker=3"), false,
			"the nodes can hold at most 2 of the 3 pods of task worker that must start together, because each requests memory 140Gi: " +
				"the job can never start; request less, lower minAvailable of task worker, or add nodes",
		},
		"minimums of tasks that the gang does not cover": {
			all(a10, replicas(1, "launcher", "cpu=1 memory=1Gi"), replicas(3, "worker", big)),
			gangOf(2, "worker=3"), false, "",
		},
		"pods that request nothing count before they have a node": {all(a10, replicas(3, "", "", hostPort("29500"))), gangOf(3), false, ""},

		"host port":                           {all(a10, of3(hostPort("29500"))), gangOf(3), false, byPort},
		"the policy does not read host ports": {all(a10, of3(hostPort("29500"))), gangOf(3), true, ""},
		"host port and two nodes are enough":  {all(a10, of3(hostPort("29500"))), gangOf(2), false, ""},
		"one host port by two protocols": {
			all(a10, replicas(2, "a", small, hostPort("53")), replicas(2, "b", small, hostPort("53/UDP"))), gangOf(4), false, "",
		},
		"one host port by two addresses": {
			all(a10, replicas(2, "a", small, hostPort("53/TCP/10.0.0.1")), replicas(2, "b", small, hostPort("53/TCP/10.0.0.2"))),
			gangOf(4), false, "",
		},
		"host ports of their own": {
			all(a10, replicas(1, "a", small, hostPort("29500")), replicas(1, "b", small, hostPort("29501")),
				replicas(1, "c", small, hostPort("29502"))),
			gangOf(3), false, "",
		},
		"two tasks with the same host port": {
			all(a10, replicas(1, "master", "cpu=4", hostPort("29500"), hostPort("8080")), replicas(2, "worker", small, hostPort("29500"))),
			gangOf(3), false, byPort,
		},
		"a host port on the nodes that have GPUs": {
			all(a10, machines(3, "cpu", "cpu=64 memory=256Gi"), replicas(1, "master", "cpu=4", hostPort("29500")),
				replicas(3, "worker", small, hostPort("29500"))),
			gangOf(4), false,
			"the nodes can hold at most 3 of the 4 pods that must start together, because each pod of task worker uses host port " +
				"29500 of its node: the job can never start; remove the host port, " + tail,
		},

		"anti-affinity":                          {all(a10, of3(apartFrom())), gangOf(3), false, byTerm},
		"the policy does not read anti-affinity": {all(a10, of3(apartFrom())), gangOf(3), true, ""},
		"nodes without the label hostname do not restrict": {
			all(machines(2, "bare", "cpu=64 memory=256Gi gpu=4"), of3(apartFrom())), gangOf(3), false, "",
		},
		"one node without the label hostname": {
			all(machines(1, "a10", "cpu=64 memory=256Gi gpu=4"), machines(1, "bare", "cpu=64 memory=256Gi gpu=1"), of3(apartFrom())),
			gangOf(3), false, byTerm,
		},
		"anti-affinity by zone": {
			all(a10, of3(apartFrom(func(term *corev1.PodAffinityTerm) { term.TopologyKey = corev1.LabelTopologyZone }))), gangOf(3), false, "",
		},
		"anti-affinity to other labels":      {all(a10, of3(apartFrom(), labelled("app", "nemo"))), gangOf(3), false, ""},
		"anti-affinity by an expression":     {all(a10, of3(apartFrom(selecting("app", isIn, "nccl", "nemo")))), gangOf(3), false, byTerm},
		"an expression of other values":      {all(a10, of3(apartFrom(selecting("app", notIn, "nccl")))), gangOf(3), false, ""},
		"an expression of any value":         {all(a10, of3(apartFrom(selecting("app", exists)))), gangOf(3), false, byTerm},
		"no value":                           {all(a10, of3(apartFrom(selecting("app", doesNotExist)))), gangOf(3), false, ""},
		"the second term":                    {all(a10, of3(apartFrom(selecting("db", exists)), apartFrom())), gangOf(3), false, byTerm},
		"each is apart from pods of its own": {all(a10, of3(numbered, apartFrom(matching("index")))), gangOf(3), false, ""},
		"each is apart from the others":      {all(a10, of3(numbered, apartFrom(mismatching("index")))), gangOf(3), false, ""},
		"anti-affinity in its own namespace": {all(a10, of3(apartFrom(in("speech", "nlp")))), gangOf(3), false, byTerm},
		"anti-affinity in another namespace": {all(a10, of3(apartFrom(in("nlp")))), gangOf(3), false, ""},
		"anti-affinity in all namespaces":    {all(a10, of3(apartFrom(inLabelled(nil)))), gangOf(3), false, byTerm},
		"anti-affinity in labelled ones": {
			all(a10, of3(apartFrom(inLabelled(map[string]string{corev1.LabelMetadataName: "speech"})))), gangOf(3), false, "", // they can change
		},
		"a selector of nothing": {
			all(a10, of3(apartFrom(func(term *corev1.PodAffinityTerm) { term.LabelSelector = nil }))), gangOf(3), false, "",
		},

		"nodes of many kinds": {
			all(differing(100, 200*gi), replicas(101, "", big)), gangOf(101), false,
			"the nodes can hold at most 100 of the 101 pods that must start together, because each requests memory 140Gi: " +
				"the job can never start; request less, " + tail,
		},
		"nodes of many kinds that hold just two by rounding": {
			all(differing(100, 280*gi-1<<20), replicas(101, "", big)), gangOf(101), false, "",
		},
		"nodes of more kinds than rounding joins": {
			all(differing(100, 200*gi), spread(70), replicas(271, "", big)), gangOf(271), false, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, j := clusterOf(t, all(test.objects, []any{test.gang})...)
			got := report.NeverStarts(c, j, sizesOf(c, report.Apart{HostPorts: !test.off, PodAffinity: !test.off}))
			if got != test.want {
				t.Errorf("%s\nwant\n%s", got, test.want)
			}
		})
	}
}

func matching(key string) func(*corev1.PodAffinityTerm) {
	return func(term *corev1.PodAffinityTerm) { term.MatchLabelKeys = []string{key} }
}

func mismatching(key string) func(*corev1.PodAffinityTerm) {
	return func(term *corev1.PodAffinityTerm) { term.MismatchLabelKeys = []string{key} }
}

func in(namespaces ...string) func(*corev1.PodAffinityTerm) {
	return func(term *corev1.PodAffinityTerm) { term.Namespaces = namespaces }
}

func inLabelled(labels map[string]string) func(*corev1.PodAffinityTerm) {
	return func(term *corev1.PodAffinityTerm) {
		term.NamespaceSelector = &metav1.LabelSelector{MatchLabels: labels}
	}
}

// spread returns nodes whose amounts differ greatly.
func spread(count int) (out []any) {
	for i := range count {
		out = append(out, machines(1, fmt.Sprintf("edge%d", i), fmt.Sprintf("cpu=64 memory=%dGi gpu=1", 200+2*i))...)
	}
	return out
}

// TestNodeKinds checks that nodes are counted by what they allocate, and that amounts are rounded up if there are too many kinds.
func TestNodeKinds(t *testing.T) {
	t.Parallel()
	kinds := func(objects []any) (c *model.Cluster, counts []int64, nodes int64) {
		c, _ = clusterOf(t, objects...)
		for _, kind := range report.Kinds(&c.Nodes) {
			counts, nodes = append(counts, kind.Count), nodes+kind.Count
		}
		return c, counts, nodes
	}
	_, counts, _ := kinds(all(machines(3, "a10", "cpu=64 gpu=4"), machines(2, "bare", "cpu=64 gpu=4"), machines(4, "cpu", "cpu=64")))
	if want := []int64{3, 2, 4}; !slices.Equal(counts, want) {
		t.Errorf("%v nodes of each kind, want %v", counts, want)
	}
	if _, counts, nodes := kinds(differing(64, 1<<38)); len(counts) != 64 || nodes != 64 {
		t.Errorf("%d kinds of %d nodes, want 64 of 64", len(counts), nodes)
	}
	c, counts, nodes := kinds(differing(65, 1<<38))
	if len(counts) > 2 || nodes != 65 {
		t.Errorf("%d kinds of %d nodes, want 2 of 65, as the amounts are rounded", len(counts), nodes)
	}
	for _, kind := range report.Kinds(&c.Nodes) {
		for _, row := range c.Nodes.ByOrder() {
			is, rounded := c.Nodes.AllocatableOf(row).Get(model.Memory), kind.Allocatable.Get(model.Memory)
			if rounded < 1<<38 || rounded > is*1.01 {
				t.Errorf("memory %v is rounded to %v, want it rounded up by less than a hundredth", is, rounded)
			}
		}
	}
	if _, counts, _ := kinds(spread(100)); counts != nil {
		t.Errorf("%d kinds, want none, as there are too many", len(counts))
	}
}

// TestGangThatFitsIsNeverNamed compares NeverStarts and GangNeverStarts with every way to place a small gang on a small cluster.
func TestGangThatFitsIsNeverNamed(t *testing.T) {
	t.Parallel()
	named, fitting, larger, never, behindGates := 0, 0, 0, 0, 0
	rapid.Check(t, func(t *rapid.T) {
		for range 8 {
			a := tryGang(t)
			if fault := a.fault(); fault != "" {
				t.Fatalf("%s\n%s; it can be placed so: %s", a.why, fault, a.places)
			}
			count(&named, strings.HasPrefix(a.why, "the nodes can hold"))
			count(&fitting, a.startsNow)
			count(&larger, a.starts && a.someLarge)
			count(&behindGates, a.starts && a.never)
			count(&never, !a.starts && a.never)
		}
	})
	counts := fmt.Sprintf("%d gangs are named, %d never start, %d do not start before gates are removed, %d can start, %d of them with a pod "+
		"larger than every node", named, never, behindGates, fitting, larger)
	t.Log(counts)
	if slices.Contains([]int{named, never, larger, behindGates, fitting - larger}, 0) {
		t.Errorf("%s: want some of each", counts)
	}
}

// triedGang contains the reports about a gang, and whether it can start.
type triedGang struct {
	why      string // what NeverStarts states
	never    bool   // what GangNeverStarts reports
	hasGates bool   // some pod has a scheduling gate
	// starts reports whether the gang can start if gates are removed, and startsNow whether it can start before that.
	starts, startsNow bool
	// allLarge reports whether no waiting pod fits a node, and someLarge whether some do not, and others do.
	allLarge, someLarge bool
	places              string
}

func tryGang(t *rapid.T) triedGang {
	c, j := clusterOf(t, drawGang(t)...)
	apart := report.Apart{HostPorts: rapid.Bool().Draw(t, "ports are read"), PodAffinity: rapid.Bool().Draw(t, "terms are read")}
	x := newPlacer(c, j, apart)
	a := triedGang{why: report.NeverStarts(c, j, sizesOf(c, apart)), never: report.GangNeverStarts(c, j, sizesOf(c, apart))}
	a.starts, a.hasGates = x.starts(0), slices.ContainsFunc(x.waiting, func(task *model.Task) bool { return task.Gated })
	if a.startsNow = a.starts; a.starts && a.hasGates {
		x = newPlacer(c, j, apart)
		x.gates = true
		a.startsNow = x.starts(0)
	}
	fitting := x.fitting()
	a.allLarge, a.someLarge, a.places = fitting == 0, 0 < fitting && fitting < len(x.waiting), x.text()
	return a
}

// fault states which report about a gang is wrong; "": none.
func (a *triedGang) fault() string {
	switch {
	case a.never && a.startsNow:
		return "it is reported that it never starts"
	case a.never && a.why == "" && !a.hasGates:
		return "it never starts, but no text states why"
	case a.why != "" && a.starts && !a.allLarge:
		return "a pod is named that the gang does not need"
	case a.starts && strings.HasPrefix(a.why, "the nodes can hold"):
		return "it is stated that it never starts"
	}
	return ""
}

func count(n *int, when bool) {
	if when {
		*n++
	}
}

// drawGang draws a cluster of up to 3 nodes, and a gang of up to 9 pods.
func drawGang(t *rapid.T) (objects []any) {
	draw := func(what string, of ...string) string { return rapid.SampledFrom(of).Draw(t, what) }
	nodes := rapid.IntRange(1, 3).Draw(t, "nodes")
	for i := range nodes {
		objects = append(objects, machines(1, fmt.Sprintf("%s%d", draw("node", "a10", "a10", "bare"), i),
			fmt.Sprintf("cpu=%s memory=%s", draw("cpu", "3", "5", "8"), draw("memory", "5", "5", "8")))...)
	}
	pods := 0
	for range rapid.IntRange(1, 3).Draw(t, "kinds of pods") {
		task, edits := draw("task", "master", "worker"), drawPodEdits(draw)
		requests := draw("requests", "", "cpu=1", "cpu=2 memory=1", "memory=3", "memory=3", "cpu=2 memory=3", "cpu=9",
			"memory=6")
		for range rapid.IntRange(1, 3).Draw(t, "pods") {
			name := fmt.Sprintf("nccl-%d", pods)
			status := draw("status", "Pending", "Pending", "Pending", "Pending", "Pending", "Succeeded", "Unknown")
			pods++
			objects = append(objects, replicas(1, task, requests, append([]podEdit{func(p *corev1.Pod) {
				p.Name, p.Status.Phase = name, corev1.PodPhase(status)
			}}, edits...)...)...)
		}
	}
	least := map[string]int{}
	for _, task := range []string{"master", "worker"} {
		if n := rapid.IntRange(0, 3).Draw(t, "least of "+task); n > 0 {
			least[task] = n
		}
	}
	var roles []string
	for _, task := range slices.Sorted(maps.Keys(least)) {
		roles = append(roles, fmt.Sprintf("%s=%d", task, least[task]))
	}
	return append(objects, gangOf(rapid.IntRange((2*pods+2)/3, pods).Draw(t, "min"), roles...))
}

// drawPodEdits draws edits for some pods of a gang.
func drawPodEdits(draw func(what string, of ...string) string) []podEdit {
	edits := []podEdit{labelled("app", draw("app", "nccl", "nccl", "nemo"))}
	if draw("gates", "", "", "", "", "gated") != "" {
		edits = append(edits, gated)
	}
	if port := draw("port", "", "", "29500", "29500", "29500", "29500/UDP", "29500/TCP/10.0.0.1"); port != "" {
		edits = append(edits, hostPort(port))
	}
	switch draw("term", "", "", "app", "app", "any", "matching", "mismatching", "nemo") {
	case "app":
		edits = append(edits, apartFrom())
	case "any":
		edits = append(edits, apartFrom(selecting("app", metav1.LabelSelectorOpExists)))
	case "matching":
		edits = append(edits, numbered, apartFrom(matching("index")))
	case "mismatching":
		edits = append(edits, numbered, apartFrom(mismatching("index")))
	case "nemo":
		edits = append(edits, apartFrom(selecting("app", metav1.LabelSelectorOpIn, "nemo")))
	}
	return edits
}

// placer tries every way to place the waiting pods of a gang on empty nodes.
type placer struct {
	c       *model.Cluster
	j       *model.Job
	apart   report.Apart
	waiting []*model.Task
	on      map[*model.Task]int32
	gates   bool // pods keep their scheduling gates
}

func newPlacer(c *model.Cluster, j *model.Job, apart report.Apart) *placer {
	x := &placer{c: c, j: j, apart: apart, on: map[*model.Task]int32{}}
	for _, task := range j.Tasks {
		if task.Waits() {
			x.waiting = append(x.waiting, task)
		}
	}
	return x
}

// starts reports whether the gang can start if the first n pods do not move. Each of them keeps its node, or stays without one. The others
// may use any node.
func (x *placer) starts(n int) bool {
	if n == len(x.waiting) {
		return x.isWhole()
	}
	task := x.waiting[n]
	for _, row := range x.c.Nodes.ByOrder() {
		if x.takes(row, task) {
			x.on[task] = row
			if x.starts(n + 1) {
				return true
			}
			delete(x.on, task)
		}
	}
	return x.starts(n + 1)
}

// fitting counts the waiting pods that fit some empty node.
func (x *placer) fitting() (n int) {
	empty := &placer{c: x.c}
	for _, task := range x.waiting {
		if slices.ContainsFunc(x.c.Nodes.ByOrder(), func(row int32) bool { return empty.takes(row, task) }) {
			n++
		}
	}
	return n
}

// takes reports whether one more pod fits on a node.
func (x *placer) takes(row int32, task *model.Task) bool {
	if x.gates && task.Gated {
		return false
	}
	free := x.c.Nodes.AllocatableOf(row)
	_, named := x.c.Nodes.Rows[row].Labels[corev1.LabelHostname]
	for other, at := range x.on {
		if at != row {
			continue
		}
		free = free.Sub(other.Request)
		if x.apart.HostPorts && samePort(task, other) || x.apart.PodAffinity && named && (keepsOff(task, other) || keepsOff(other, task)) {
			return false
		}
	}
	return task.Request.Fits(free)
}

func samePort(a, b *model.Task) bool {
	for _, one := range a.HostPorts {
		for _, other := range b.HostPorts {
			if one.Port == other.Port && one.Protocol == other.Protocol && (one.IP == other.IP || one.IP == "0.0.0.0" || other.IP == "0.0.0.0") {
				return true
			}
		}
	}
	return false
}

// keepsOff reports whether the anti-affinity of a pod keeps another off its node.
func keepsOff(a, b *model.Task) bool {
	return a.PodTerms != nil && slices.ContainsFunc(a.PodTerms.RequiredAntiAffinity, func(term model.PodTerm) bool {
		return term.Who.HasNamespace(b.Namespace, nil) && term.Who.HasLabels(b.Labels)
	})
}

// isWhole reports whether the gang can start, if the pods of unknown status run again.
func (x *placer) isWhole() bool {
	ready := x.j.Ready() + x.j.Counts[model.Unknown]
	ofRole := map[string]int64{}
	for _, r := range x.j.Roles {
		ofRole[r.Name] = r.Holding() + r.Counts[model.Succeeded] + r.Counts[model.Unknown]
	}
	for _, task := range x.waiting {
		if _, placed := x.on[task]; placed || task.BestEffort {
			ready++
			ofRole[task.Role]++
		}
	}
	if ready < x.j.MinMember {
		return false
	}
	return x.j.MinMember < x.j.RoleMinTotal || !slices.ContainsFunc(x.j.Roles, func(r *model.Role) bool { return ofRole[r.Name] < r.Min })
}

func (x *placer) text() string {
	var out []string
	for task, row := range x.on {
		out = append(out, task.Name+" on "+x.c.Nodes.Rows[row].Name)
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}
