package session

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/rules"
	"github.com/celsius-scheduler/celsius/rules/eval"
	"github.com/celsius-scheduler/celsius/rules/source"
)

// asked evaluates an expression for a task and a node, with other pods on the node.
func asked(t *testing.T, expression string, n *corev1.Node, p *corev1.Pod, others ...any) string {
	t.Helper()
	c := aCluster(t, append([]any{n, aQueue("q"), aGroup("g", "q"), p}, others...)...)
	s := begun(t, c, "jobOrder: []")
	lang, err := rules.NewLanguage(policy.Vocabulary())
	if err != nil {
		t.Fatal(err)
	}
	scope, err := lang.Scope(policy.RootTypes())
	if err != nil {
		t.Fatal(err)
	}
	e, issues := eval.Compile(scope, source.NewText(expression), rules.Anything())
	if issues.Err() != nil {
		t.Fatal(issues)
	}
	f := s.ask.Frame().OfTask(c.Tasks["a/"+p.Name])
	f.Node = s.NodeView(c.Nodes.Index[n.Name])
	return show(e.Eval(f))
}

func selects(kv ...string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.NodeSelector = map[string]string{}
		for i := 0; i < len(kv); i += 2 {
			p.Spec.NodeSelector[kv[i]] = kv[i+1]
		}
	}
}

func wants(key string, op corev1.NodeSelectorOperator, values ...string) corev1.NodeSelectorTerm {
	return corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: key, Operator: op, Values: values}}}
}

func requires(terms ...corev1.NodeSelectorTerm) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: terms},
		}}
	}
}

func prefers(terms ...corev1.PreferredSchedulingTerm) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: terms}}
	}
}

func labelled(kv ...string) func(*corev1.Node) {
	return func(n *corev1.Node) {
		for i := 0; i < len(kv); i += 2 {
			n.Labels[kv[i]] = kv[i+1]
		}
	}
}

func TestNodeAffinity(t *testing.T) {
	byName := corev1.NodeSelectorTerm{MatchFields: []corev1.NodeSelectorRequirement{{
		Key: "metadata.name", Operator: corev1.NodeSelectorOpIn,
		Values: []string{"n1"},
	}}}
	for _, test := range []struct {
		name string
		node func(*corev1.Node)
		pod  func(*corev1.Pod)
		want string
	}{
		{"no terms", labelled(), func(*corev1.Pod) {}, "true"},
		{"selector", labelled("zone", "east"), selects("zone", "east"), "true"},
		{"selector of another value", labelled("zone", "west"), selects("zone", "east"), "false"},
		{"selector of two", labelled("zone", "east"), selects("zone", "east", "disk", "ssd"), "false"},
		{"In", labelled("zone", "east"), requires(wants("zone", corev1.NodeSelectorOpIn, "west", "east")), "true"},
		{"NotIn holds where there is none", labelled(), requires(wants("zone", corev1.NodeSelectorOpNotIn, "east")), "true"},
		{"Exists", labelled(), requires(wants("zone", corev1.NodeSelectorOpExists)), "false"},
		{"DoesNotExist", labelled(), requires(wants("zone", corev1.NodeSelectorOpDoesNotExist)), "true"},
		{"Gt", labelled("cores", "16"), requires(wants("cores", corev1.NodeSelectorOpGt, "8")), "true"},
		{"Lt", labelled("cores", "16"), requires(wants("cores", corev1.NodeSelectorOpLt, "8")), "false"},
		{
			"one of two terms", labelled("zone", "east"),
			requires(wants("zone", corev1.NodeSelectorOpIn, "x"), wants("zone", corev1.NodeSelectorOpExists)), "true",
		},
		{"no term matches nothing", labelled("zone", "east"), requires(), "false"},
		{"by name", labelled(), requires(byName), "true"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := asked(t, "task.matchesNodeAffinity(node)", aNode("n1", "cpu=4 pods=9", test.node),
				aPod("p", "cpu=1", test.pod)); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

func TestNodeAffinityScore(t *testing.T) {
	terms := prefers(
		corev1.PreferredSchedulingTerm{Weight: 10, Preference: wants("zone", corev1.NodeSelectorOpIn, "east")},
		corev1.PreferredSchedulingTerm{Weight: 3, Preference: wants("disk", corev1.NodeSelectorOpExists)},
		corev1.PreferredSchedulingTerm{Weight: 0, Preference: wants("zone", corev1.NodeSelectorOpExists)})
	for _, test := range []struct {
		node func(*corev1.Node)
		pod  func(*corev1.Pod)
		want string
	}{
		{labelled("zone", "east", "disk", "ssd"), terms, "13"},
		{labelled("zone", "east"), terms, "10"},
		{labelled("zone", "west"), terms, "0"},
		{labelled("zone", "east"), func(*corev1.Pod) {}, "0"},
	} {
		if got := asked(t, "task.nodeAffinityScore(node)", aNode("n1", "cpu=4 pods=9", test.node),
			aPod("p", "cpu=1", test.pod)); got != test.want {
			t.Errorf("got %s, want %s", got, test.want)
		}
	}
}

func tainted(taints ...corev1.Taint) func(*corev1.Node) {
	return func(n *corev1.Node) { n.Spec.Taints = taints }
}

func tolerating(tolerations ...corev1.Toleration) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.Tolerations = tolerations }
}

func TestTaints(t *testing.T) {
	const all = "string(task.toleratesAll(node)) + ' ' + task.firstUntolerated(node) + ' ' + string(task.intolerablePreferNoSchedule(node))"
	no, never, rather := corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute, corev1.TaintEffectPreferNoSchedule
	taint := func(key, value string, effect corev1.TaintEffect) corev1.Taint {
		return corev1.Taint{Key: key, Value: value, Effect: effect}
	}
	equal := func(key, value string, effect corev1.TaintEffect) corev1.Toleration {
		return corev1.Toleration{Key: key, Operator: corev1.TolerationOpEqual, Value: value, Effect: effect}
	}
	for _, test := range []struct {
		name string
		node func(*corev1.Node)
		pod  func(*corev1.Pod)
		want string
	}{
		{"none", tainted(), tolerating(), "true  0"},
		{"not tolerated", tainted(taint("a", "1", no)), tolerating(), "false {a: 1} 0"},
		{"tolerated", tainted(taint("a", "1", no)), tolerating(equal("a", "1", no)), "true  0"},
		{"another value", tainted(taint("a", "1", no)), tolerating(equal("a", "2", no)), "false {a: 1} 0"},
		{"another effect", tainted(taint("a", "1", never)), tolerating(equal("a", "1", no)), "false {a: 1} 0"},
		{"any effect", tainted(taint("a", "1", never)), tolerating(equal("a", "1", "")), "true  0"},
		{"exists", tainted(taint("a", "1", no)), tolerating(corev1.Toleration{Key: "a", Operator: corev1.TolerationOpExists}), "true  0"},
		{
			"everything", tainted(taint("a", "1", no), taint("b", "", never)), tolerating(corev1.Toleration{Operator: corev1.TolerationOpExists}),
			"true  0",
		},
		{
			"the first that is not tolerated", tainted(taint("a", "1", no), taint("b", "2", never), taint("c", "3", no)),
			tolerating(equal("a", "1", no)), "false {b: 2} 0",
		},
		{"preferences do not exclude", tainted(taint("a", "1", rather), taint("b", "", rather)), tolerating(), "true  2"},
		{"a preference tolerated", tainted(taint("a", "1", rather), taint("b", "", rather)), tolerating(equal("a", "1", rather)), "true  1"},
		{"a toleration of NoSchedule is none of a preference", tainted(taint("a", "1", rather)), tolerating(equal("a", "1", no)), "true  1"},
		{"one of any effect is", tainted(taint("a", "1", rather)), tolerating(equal("a", "1", "")), "true  0"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := asked(t, all, aNode("n1", "cpu=4 pods=9", test.node), aPod("p", "cpu=1", test.pod)); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
	cordon := corev1.Toleration{Key: "node.kubernetes.io/unschedulable", Operator: corev1.TolerationOpExists, Effect: no}
	for want, pod := range map[string]*corev1.Pod{"true": aPod("p", "cpu=1", tolerating(cordon)), "false": aPod("p", "cpu=1")} {
		if got := asked(t, "task.toleratesUnschedulable()", aNode("n1", "cpu=4 pods=9"), pod); got != want {
			t.Errorf("toleratesUnschedulable: got %s, want %s", got, want)
		}
	}
}

func claiming(ports ...corev1.ContainerPort) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.Containers[0].Ports = ports }
}

func TestPortsFree(t *testing.T) {
	port := func(number int32, ip string, protocol corev1.Protocol) corev1.ContainerPort {
		return corev1.ContainerPort{HostPort: number, ContainerPort: 1, HostIP: ip, Protocol: protocol}
	}
	for _, test := range []struct {
		name        string
		mine, other func(*corev1.Pod)
		want        string
	}{
		{"none asked", claiming(), claiming(port(80, "", "")), "true"},
		{"none taken", claiming(port(80, "", "")), claiming(), "true"},
		{"taken", claiming(port(80, "", "")), claiming(port(80, "", "")), "false"},
		{"another", claiming(port(80, "", "")), claiming(port(81, "", "")), "true"},
		{"one of two", claiming(port(79, "", ""), port(80, "", "")), claiming(port(80, "", "")), "false"},
		{"another protocol", claiming(port(80, "", corev1.ProtocolUDP)), claiming(port(80, "", corev1.ProtocolTCP)), "true"},
		{"no protocol is TCP", claiming(port(80, "", "")), claiming(port(80, "", corev1.ProtocolTCP)), "false"},
		{"another address", claiming(port(80, "10.0.0.1", "")), claiming(port(80, "10.0.0.2", "")), "true"},
		{"every address", claiming(port(80, "10.0.0.1", "")), claiming(port(80, "0.0.0.0", "")), "false"},
		{"the same address", claiming(port(80, "10.0.0.1", "")), claiming(port(80, "10.0.0.1", "")), "false"},
		{"a container's port that is none of the host", claiming(port(0, "", "")), claiming(port(0, "", "")), "true"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := asked(t, "task.portsFree(node)", aNode("n1", "cpu=4 pods=9"), aPod("p", "cpu=1", test.mine),
				aPod("other", "cpu=1", test.other, runningOn("n1"))); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

// TestAllocationScores checks the allocation scores of Kubernetes, computed by hand.
func TestAllocationScores(t *testing.T) {
	const node, gpu = "cpu=4 memory=8Gi pods=9", "nvidia.com/gpu"
	for _, test := range []struct {
		name, node, used, asks, expression, want string
	}{
		{"least", node, "", "cpu=1 memory=2Gi", "node.leastAllocated(task, ['cpu', 'memory'])", "75"},
		// (75 + 62) / 2
		{"least: whole percents, a mean of whole percents", node, "", "cpu=1 memory=3Gi", "node.leastAllocated(task, ['cpu', 'memory'])", "68"},
		{"least beside others", node, "cpu=1 memory=2Gi", "cpu=1 memory=2Gi", "node.leastAllocated(task, ['cpu', 'memory'])", "50"},
		{"least of one", node, "cpu=1 memory=2Gi", "cpu=1 memory=4Gi", "node.leastAllocated(task, ['cpu'])", "50"},
		{"least: too much of one gives 0 for it", node, "", "cpu=5 memory=2Gi", "node.leastAllocated(task, ['cpu', 'memory'])", "37"},
		{
			"least: a resource that the node lacks is left out", node, "", "cpu=1 memory=2Gi",
			"node.leastAllocated(task, ['cpu', 'memory', '" + gpu + "', 'none'])", "75",
		},
		{"least of nothing known", node, "", "cpu=1", "node.leastAllocated(task, ['none'])", "0"},
		{"least: who asks nothing counts a little", node, "", "", "node.leastAllocated(task, ['cpu', 'memory'])", "97"}, // 97.5 and 97.56: 97, 97
		{"least: others who ask nothing count too", "cpu=1 pods=9", "pods=0", "cpu=100m", "node.leastAllocated(task, ['cpu'])", "80"},
		{"most", node, "", "cpu=1 memory=2Gi", "node.mostAllocated(task, ['cpu', 'memory'])", "25"},
		{"most: full", node, "cpu=3 memory=6Gi", "cpu=1 memory=2Gi", "node.mostAllocated(task, ['cpu', 'memory'])", "100"},
		{"most: too much counts as full", node, "cpu=4 memory=6Gi", "cpu=1 memory=2Gi", "node.mostAllocated(task, ['cpu', 'memory'])", "100"},
		{"balanced: nothing changes", node, "", "cpu=1 memory=2Gi", "node.balanced(task, ['cpu', 'memory'])", "75"},
		{"balanced: as bad as can be", node, "", "cpu=4", "node.balanced(task, ['cpu', 'memory'])", "50"},
		{"balanced: as good as can be", node, "cpu=4", "memory=8Gi", "node.balanced(task, ['cpu', 'memory'])", "100"},
		// 87 with the pod, 100 without it: 50 + 37/2
		{"balanced: half the difference of two", node, "", "cpu=2 memory=2Gi", "node.balanced(task, ['cpu', 'memory'])", "68"},
		// the deviation of 1, 0.5, 0.25 is 0.312: 68 and 100
		{
			"balanced: three", node + " " + gpu + "=4", "", "cpu=4 memory=4Gi " + gpu + "=1",
			"node.balanced(task, ['cpu', 'memory', '" + gpu + "'])", "59",
		},
		{
			"balanced: what the task does not ask for", node + " " + gpu + "=4", "", "cpu=2 memory=4Gi",
			"node.balanced(task, ['cpu', 'memory', '" + gpu + "'])", "75",
		},
		{"balanced: one alone", node, "", "cpu=3", "node.balanced(task, ['cpu'])", "75"},
		{"balanced: asks for nothing", node, "cpu=3", "", "node.balanced(task, ['cpu'])", "0"},
		{"binpack", node, "", "cpu=1 memory=2Gi", "node.binpack(task, 1.0, 1.0, [], {})", "0.25"},
		{"binpack beside others", node, "cpu=1 memory=2Gi", "cpu=1 memory=2Gi", "node.binpack(task, 1.0, 1.0, [], {})", "0.5"},
		{"binpack by weight", node, "", "cpu=1 memory=8Gi", "node.binpack(task, 3.0, 1.0, [], {})", "0.4375"}, // (3 * 0.25 + 1 * 1) / 4
		{"binpack: what is not asked for does not count", node, "memory=8Gi", "cpu=1", "node.binpack(task, 1.0, 1.0, [], {})", "0.25"},
		// (0.25 + 0.25 + 2*0.5) / 4
		{
			"binpack with a further resource", node + " " + gpu + "=4", gpu + "=1", "cpu=1 memory=2Gi " + gpu + "=1",
			"node.binpack(task, 1.0, 1.0, ['" + gpu + "'], {'" + gpu + "': 2.0})", "0.375",
		},
		{
			"binpack: a weight of 1 where the map has none", node + " " + gpu + "=4", gpu + "=1", "cpu=1 " + gpu + "=1",
			"node.binpack(task, 1.0, 1.0, ['" + gpu + "'], {'other': 9.0})", "0.375",
		},
		{"binpack: one that does not fit makes it 0", node, "", "cpu=5 memory=2Gi", "node.binpack(task, 1.0, 1.0, [], {})", "0"},
		{
			"binpack: one that the node lacks counts as 0", node, "", "cpu=2 " + gpu + "=1", "node.binpack(task, 1.0, 1.0, ['" + gpu + "'], {})",
			"0.25",
		},
		// (1*0.75 + 3*0.25) / 4
		{
			"a strategy for each", node, "", "cpu=1 memory=2Gi",
			"node.strategyFit(task, {'cpu': 'LeastAllocated', 'memory': 'MostAllocated'}, {'cpu': 1.0, 'memory': 3.0}, '')", "0.375",
		},
		{
			"a strategy for the rest", node, "", "cpu=1 memory=2Gi",
			"node.strategyFit(task, {'cpu': 'LeastAllocated'}, {'cpu': 1.0, 'memory': 1.0}, 'MostAllocated')", "0.5",
		},
		{"strategies beside others", node, "cpu=1", "cpu=1", "node.strategyFit(task, {}, {'cpu': 1.0}, 'MostAllocated')", "0.5"},
		{"strategies of what is not asked for", node, "", "cpu=1", "node.strategyFit(task, {}, {'memory': 1.0}, '')", "0"},
		{
			"one that the node lacks is a part of the mean", node, "", "cpu=1 " + gpu + "=1",
			"node.strategyFit(task, {}, {'cpu': 1.0, '" + gpu + "': 2.0}, '')", "0.25",
		},
		{"one that does not fit", node, "", "cpu=5 memory=2Gi", "node.strategyFit(task, {}, {'cpu': 1.0, 'memory': 1.0}, '')", "0"},
		{
			"a pattern", node + " " + gpu + "=4", "", gpu + "=1",
			"node.strategyFit(task, {'nvidia.com/*': 'MostAllocated'}, {'nvidia.com/*': 1.0}, '')", "0.25",
		},
		{
			"the longest pattern", node + " " + gpu + "=4", "", gpu + "=1",
			"node.strategyFit(task, {'nvidia*': 'LeastAllocated', 'nvidia.com/g*': 'MostAllocated'}, {'n*': 1.0}, '')", "0.25",
		},
		{
			"the name before any pattern", node + " " + gpu + "=4", "", gpu + "=1",
			"node.strategyFit(task, {'nvidia.com/*': 'MostAllocated', '" + gpu + "': 'LeastAllocated'}, {'n*': 1.0}, '')", "0.75",
		},
		{"a star alone, or within, is no pattern", node, "", "cpu=1", "node.strategyFit(task, {}, {'*': 1.0, 'c*u': 1.0, 'c*p*': 1.0}, '')", "0"},
		{"a weight of 0", node, "", "cpu=1 memory=2Gi", "node.strategyFit(task, {}, {'cpu': 0.0, 'memory': 1.0}, 'MostAllocated')", "0.25"},
		{"names of resources", node, "", gpu + "=1 memory=1 cpu=1", "task.request.names()", "cpu, memory, pods, " + gpu},
		{"names of none", node, "", "", "resources().names()", ""},
		{"JSON", node, "", "", "'{\"cpu\": 2, \"b\": 0.5}'.jsonNumbers()", "some b: 0.5, cpu: 2"},
		{"JSON of other things", node, "", "", "'{\"cpu\": \"2\"}'.jsonNumbers()", "none"},
		{"JSON of nothing", node, "", "", "'null'.jsonNumbers()", "none"},
		{"JSON that is none", node, "", "", "'{'.jsonNumbers()", "none"},
		{"binpack without weights", node, "", "cpu=1", "node.binpack(task, 0.0, 0.0, [], {})", "0"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var others []any
			if test.used != "" {
				used := test.used
				if used == "pods=0" {
					used = ""
				}
				others = append(others, aPod("other", used, runningOn("n1")))
			}
			if got := asked(t, test.expression, aNode("n1", test.node), aPod("p", test.asks), others...); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

func TestDevicesAndAnnotations(t *testing.T) {
	for _, test := range [][2]string{
		{"node.gpusWith(1000)", "1"},
		{"node.gpusWith(600)", "2"},
		{"node.gpusWith(0)", "3"},
		{"node.gpus.map(g, g.free)", "[500 700 1000]"},
		{"node.gpuFree", "2200"},
		{"node.gpuCapacity", "3000"},
		{"task.annotation('note')", "some of the annotation"},
		{"task.annotation('label')", "some of the label"},
		{"task.annotation('both')", "some annotation"},
		{"task.annotation('none')", "none"},
	} {
		mine := aPod("p", "cpu=1", annotated("note", "of the annotation", "both", "annotation"))
		mine.Labels["label"], mine.Labels["both"] = "of the label", "label"
		sharer := func(name, milli, device string) any {
			return aPod(name, "cpu=1", runningOn("n1"), annotated("celsius.dev/gpu-milli", milli, "celsius.dev/gpus", device))
		}
		got := asked(t, test[0], aNode("n1", "cpu=8 pods=9 nvidia.com/gpu=3"), mine, sharer("x", "500", "0"), sharer("y", "300", "1"))
		if test[0] == "node.gpus.map(g, g.free)" {
			got = asked(t, "node.gpus.map(g, string(g.free)).join(' ')", aNode("n1", "cpu=8 pods=9 nvidia.com/gpu=3"), mine, sharer("x", "500", "0"),
				sharer("y", "300", "1"))
			got = "[" + got + "]"
		}
		if got != test[1] {
			t.Errorf("%s: got %s, want %s", test[0], got, test[1])
		}
	}
}
