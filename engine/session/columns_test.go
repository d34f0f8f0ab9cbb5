package session

import (
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
	_ "github.com/celsius-scheduler/celsius/engine/seeds"
)

// placement contains the complete answer for one task.
type placement struct {
	Node, RunnerUp  string
	Score, RunScore float64
	Later           bool
	Feasible        int
	Scores          []model.RowScore
	GPUs            []int
	Rejections      []model.NodeCount
}

// placements returns the answer for each pending task.
func placements(x *side) any {
	out := map[string]placement{}
	for _, task := range x.c.TasksByKey() {
		if task.Status == model.Pending && !task.Foreign && !task.Job.Orphan && task.Job.Queue != nil {
			out[task.Key] = x.placement(task)
		}
	}
	return out
}

func (x *side) placement(task *model.Task) placement {
	name := func(row int32) string {
		if row == model.NoNode {
			return ""
		}
		return x.c.Nodes.Rows[row].Name
	}
	class := x.s.Class(task)
	p := placement{Rejections: class.Rejections()}
	if ch, ok := class.Choose(); ok {
		p.Node, p.RunnerUp, p.Score, p.RunScore = name(ch.Row), name(ch.RunnerUp), ch.Score, ch.RunScore
		p.Later, p.Feasible, p.Scores = ch.Later, ch.Feasible, ch.Scores(nil, ch.Row)
		p.GPUs = x.s.Devices(task, ch.Row, ch.Later)
	}
	return p
}

// columnTables returns tables whose rows depend on different inputs, by section.
func columnTables() map[string]map[string]string {
	return map[string]map[string]string{
		"of objects": {
			"predicates": `
- {name: taints, expression: task.toleratesAll(node), message: "taint {{task.firstUntolerated(node)}}"}
- {name: cordon, expression: "!node.unschedulable", message: "{{task.name}} of {{job.name}} does not stand {{node.name}}"}
- {name: zone, when: "task.labels['zone'] != 'any'", expression: "'zone' in node.labels && node.labels['zone'] == task.labels['zone']",
    message: "{{task.labels['zone']}} is not {{node.labels[?'zone'].orValue('nowhere')}}"}
`,
			"scores": `
- {name: rank, when: "'rank' in node.labels && node.labels['rank'] != 'none'", expression: "double(node.labels['rank'])", weight: 1.7}
- {name: third, expression: "node.name == 'n3' ? 2.0 : 1.0"}
- {name: constant, expression: "3.0", normalize: max}
`,
		},
		"of use": {
			"predicates": `
- {name: few, curable: true, expression: node.taskCount < 4, message: "{{node.name}} has {{node.taskCount}} pods"}
`,
			"scores": `
- {name: least, expression: "node.leastAllocated(task, ['cpu', 'memory'])"}
- {name: balanced, expression: "node.balanced(task, ['cpu', 'memory'])", weight: 0.3, round: {mode: trunc}}
- {name: share, when: job.allocatedTasks > 0, expression: node.used.share(node.allocatable)}
`,
			"deviceScores": `
- {name: emptiest-device, expression: double(gpu.free)}
`,
		},
		"normalised": {"scores": `
- {name: by-max, expression: double(node.taskCount), normalize: max, weight: 2}
- {name: by-min-max, expression: "'zone' in node.labels ? 5.0 + node.idle.cpu : 5.0", normalize: minMax}
- {name: by-inverse-max, when: "!('zone' in node.labels) || node.labels['zone'] == 'east'",
    expression: "double(task.intolerablePreferNoSchedule(node))", normalize: inverseMax, round: {mode: trunc}}
- {name: by-inverse-sum, expression: node.used.cpu + 1.0, normalize: inverseSum}
- {name: same-everywhere, expression: "7.0", normalize: inverseSum}
`},
		"of time and cluster": {
			"attributes": `
- {on: queue, name: promised, sum: {over: job, when: "job.phase == 'Inqueue'", of: job.minResources}}
- {on: node, name: filled, expression: node.used.cpu / (node.allocatable.cpu + 1.0)}
- {on: cluster, name: asked, settle: cycle, sum: {over: job, of: job.request}}
`,
			"variables": `
- {name: late, expression: now.getHours() >= 20}
- {name: young, on: job, expression: "now - job.createdAt < duration('100m')"}
`,
			"predicates": `
- {name: night, expression: "!variables.late || node.name != 'n1'", message: "at {{now}} n1 sleeps"}
- {name: crowded, expression: "cluster.used.cpu < 6.0 || node.taskCount < 2", message: "{{cluster.used}} are used"}
- {name: promises, expression: queue.promised.cpu < 2.0 || node.filled < 0.5}
- {name: backfill, when: "action == 'backfill'", expression: "node.taskCount > 0", message: "{{action}}: nothing runs on {{node.name}}"}
`,
			"scores": `
- {name: youth, when: variables.young, expression: node.filled * cluster.asked.cpu}
- {name: crowd, expression: "cluster.used.cpu * double(node.taskCount)", normalize: max}
- {name: turns, expression: "now.getMinutes() % 2 == 0 ? double(node.taskCount) : -double(node.taskCount)"}
`,
		},
		"of what is computed of nodes": {
			"attributes": `
- {on: node, name: part, expression: node.used.cpu / (cluster.used.cpu + 1.0)}
`,
			"scores": `
- {name: part, expression: node.part}
`,
		},
		"of what is settled of nodes": {
			"attributes": `
- {on: node, name: before, settle: cycle, expression: node.used.cpu}
`,
			"scores": `
- {name: before, expression: node.before}
`,
		},
		"of the pods there": {
			"predicates": `
- {name: apart, expression: "!node.tasks.exists(t, t.job.uid == job.uid && t.job.allocatedTasks > 1)"}
`,
			"scores": `
- {name: together, expression: "double(node.tasks.filter(t, t.queue.name == queue.name).size())"}
`,
		},
		"of sums by zone, and of what follows for a pod": {
			"attributes": `
- {on: queue, name: usedByZone, private: true, when: queue.spec.weight > 1, sum: {over: task,
    when: "task.node != null && (task.holdsResources || task.status == 'Pipelined')", by: "task.node.labels[?'zone'].orValue('')",
    of: task.request}}
- {on: task, name: fullZones, when: task.queue.spec.weight > 1,
    expression: "['east', 'west'].filter(z, (task.queue.usedByZone[?z].orValue(resources()) + task.request).cpu > 1.5)"}
- {on: namespace, name: waiting, sum: {over: task, when: task.status == 'Pending', of: "1"}}
`,
			"variables": `
- {name: spec, on: queue, expression: queue.spec}
`,
			"predicates": `
- {name: room, when: variables.spec.weight > 1, expression: "!(node.labels[?'zone'].orValue('') in task.fullZones)"}
- {name: crowd, expression: job.namespaceInfo.waiting > 1 || node.taskCount < 2}
`,
			"scores": `
- {name: quota, expression: "double(job.quotas.size()) * node.idle.cpu"}
`,
		},
		"of the pods around": {
			"predicates": `
- {name: near-and-apart, when: task.hasPeerTerms, expression: task.affinityFits(node)}
- {name: spread, expression: task.spreadFits(node)}
`,
			"scores": `
- {name: near, expression: task.affinityScore(node), normalize: minMax}
- {name: few-around, when: task.spreadApplies(node), expression: task.spreadScore(node), normalize: inverseSum, round: {mode: trunc}}
- {name: both, expression: "task.spreadScore(node) + double(node.taskCount)"}
`,
		},
		"of spread alone": {
			"predicates": `
- {name: spread, when: task.hasSpread, expression: task.spreadFits(node) && node.taskCount < 4}
`,
			"scores": `
- {name: around, expression: task.spreadScore(node)}
`,
		},
		"of spread and volumes": {
			"predicates": `
- {name: volumes, when: task.hasVolumes, expression: task.volumesFit(node)}
`,
			"scores": `
- {name: around, when: task.spreadApplies(node), expression: task.spreadScore(node), normalize: inverseSum}
`,
		},
		"of the group in a predicate": {"predicates": `
- {name: few-around, expression: task.spreadScore(node) < 3.0}
`},
		"of each pod": {"scores": `
- {name: own, expression: "task.name == 'p1' ? double(node.taskCount) : 1.0", normalize: max}
`},
		"with errors": {
			"predicates": `
- {name: division, expression: "4 / (node.taskCount - 1) > -3", message: "divided"}
- {name: skipped, onError: skip, expression: "int(node.labels['rank']) > 0"}
`,
			"scores": `
- {name: by-nothing, expression: 1.0 / double(node.taskCount)}
- {name: by-word, expression: "double(node.labels['rank'])", normalize: minMax}
`,
		},
	}
}

// together returns one table with the rows of several.
func together(tables ...map[string]string) string {
	var b strings.Builder
	for _, section := range []string{"attributes", "variables", "predicates", "scores", "deviceScores"} {
		rows := ""
		for _, t := range tables {
			rows += strings.TrimPrefix(t[section], "\n")
		}
		if rows != "" {
			b.WriteString(section + ":\n" + rows)
		}
	}
	return b.String()
}

// TestColumnsAreWhatTheyWouldBeAfresh checks that a class chooses the same node with the same scores, and gives the same reasons, as
// without any caches. This is so whatever the history of the cluster.
func TestColumnsAreWhatTheyWouldBeAfresh(t *testing.T) {
	t.Parallel()
	tables := columnTables()
	policies := map[string]string{"together": together(tables["of objects"], tables["of use"], tables["normalised"],
		tables["of time and cluster"], tables["of the pods around"])}
	for name, table := range tables {
		policies[name] = together(table)
	}
	for _, name := range slices.Sorted(maps.Keys(policies)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := loaded(t, policyText(policies[name]))
			rapid.Check(t, func(t *rapid.T) { newTwins(p, placements).run(t) })
		})
	}
}

// TestClassesByKey checks that tasks are of different classes only if the entries of maps and amounts that rows read differ.
func TestClassesByKey(t *testing.T) {
	rows := "predicates: [{name: r, expression: \"task.annotations[?'a'].orValue('') != 'x' && !('b' in job.labels) && " +
		"job.minResources.cpu < 9.0\"}]"
	for _, test := range []struct {
		name        string
		first, then func(*corev1.Pod)
		classes     int
	}{
		{"alike", annotated(), annotated(), 1},
		{"by another key", annotated("c", "1"), annotated("c", "2"), 1},
		{"by the key", annotated("a", "1"), annotated("a", "2"), 2},
		{"with the key and without", annotated("a", ""), annotated(), 2},
	} {
		c := aCluster(t, aNode("n1", "cpu=9 pods=9"), aQueue("q"), aGroup("g", "q"), aPod("p1", "cpu=1", test.first),
			aPod("p2", "cpu=1", test.then))
		s := begun(t, c, rows)
		s.Class(c.Tasks["a/p1"])
		s.Class(c.Tasks["a/p2"])
		if got := len(s.verdicts.Classes.ByKey); got != test.classes {
			t.Errorf("%s: %d classes, want %d", test.name, got, test.classes)
		}
	}
}

// TestReadsThroughVariables checks that reads of an object are recorded even if a variable or an attribute returns the object.
func TestReadsThroughVariables(t *testing.T) {
	p := loaded(t, policyText(`
variables:
- {name: own, on: task, expression: task.queue}
- {name: either, on: job, expression: "job.minMember > 1 ? job.queue.nodeGroups : job.queue.nodeGroupsInherited"}
attributes: [{on: node, name: owner, expression: node.tasks}]
predicates:
- {name: field, expression: "variables.own.spec.weight > 1"}
- {name: elements, expression: "variables.either.required.exists(g, g == node.name)"}
- {name: function, expression: "variables.either.isEmpty()"}
- {name: attribute, expression: "node.owner.all(t, t.priority > 1)"}
`))
	want := map[string][]string{
		"field":     {"task.queue.spec.weight"},
		"elements":  {"job.queue.nodeGroups.required", "job.queue.nodeGroupsInherited.required"},
		"function":  {"job.queue.nodeGroups.antiPreferred", "job.queue.nodeGroupsInherited.preferred"},
		"attribute": {"node.owner[].priority"},
	}
	for _, r := range p.Rules(policy.Predicates) {
		for _, read := range want[r.Name] {
			if !slices.Contains(r.Reads.Strings(), read) {
				t.Errorf("%s reads %s, but %s is not among it", r.Name, r.Reads.Strings(), read)
			}
		}
	}
}
