package session

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/engine/policy/facts"
)

// keysOf returns the keys of the rows of jobOrder for a job, in their order.
func keysOf(t *testing.T, s *Session, job string) string {
	t.Helper()
	said, err := s.Ask(policy.JobOrder, Subject{Job: s.c.Jobs["a/"+job]})
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, x := range said {
		out = append(out, x.Value)
	}
	return strings.Join(out, " ")
}

// twoJobs returns g and h of queue q, with one pending pod each, on one node.
func twoJobs(t *testing.T) *model.Cluster {
	t.Helper()
	return aCluster(t, aNode("n1", "cpu=8 pods=9"), aQueue("q"), aGroup("g", "q"), aGroup("h", "q"), aPod("p", "cpu=1"),
		aPod("r", "cpu=2", inGroup("h")))
}

// TestVariablesAreMemoised checks that a variable is computed once for its owner, until something changes. To show this, the test changes a
// value without informing the cluster.
func TestVariablesAreMemoised(t *testing.T) {
	c := twoJobs(t)
	s := begun(t, c, `
variables:
- {name: nodes, expression: cluster.nodeCount}
- {name: used, expression: cluster.used.cpu}
- {name: rank, on: job, expression: job.priority}
- {name: both, on: job, expression: "variables.nodes * 100 + variables.rank"}
jobOrder:
- {name: a, by: variables.nodes}
- {name: b, by: variables.used}
- {name: c, by: variables.rank}
- {name: d, by: variables.both}
`)
	expect := func(when, job, want string) {
		t.Helper()
		if got := keysOf(t, s, job); got != want {
			t.Errorf("%s: %s has %q, want %q", when, job, got, want)
		}
	}
	expect("at first", "g", "1 0 0 100")
	c.ReadyNodes, c.Jobs["a/g"].Priority, c.Jobs["a/h"].Priority = 2, 7, 8
	expect("unseen", "g", "1 0 0 100")
	expect("of another job", "h", "1 0 8 108")
	expect("one is remembered at a time", "g", "1 0 7 107")
	x := c.Begin()
	x.Allocate(c.Tasks["a/r"], 0, nil)
	c.Jobs["a/g"].Priority = 9
	expect("after a step: what only a cycle changes stays", "g", "1 2 9 109")
	x.Rollback(0)
	expect("after the rollback", "g", "1 0 9 109")
	s.Begin(noon())
	expect("the next cycle", "g", "2 0 9 209")
	s = anew(s)
	c.ReadyNodes, c.Jobs["a/g"].Priority = 3, 1
	expect("without memory", "g", "3 0 1 301")
}

// TestVariablesAreLazy checks that a variable is computed only when it is read.
func TestVariablesAreLazy(t *testing.T) {
	s := begun(t, twoJobs(t), `
variables:
- {name: broken, on: job, expression: "job.labels['none'] == ''"}
jobValid:
- {name: unread, expression: job.taskCount > 0 || variables.broken}
- {name: guarded, when: job.taskCount > 5, expression: variables.broken}
`)
	if a := s.Valid(s.c.Jobs["a/g"]); !a.Yes || len(s.Faults()) != 0 {
		t.Errorf("%+v, faults %v", a, s.Faults())
	}
	s = begun(t, s.c, `
variables: [{name: broken, on: job, expression: "job.labels['none'] == ''"}]
jobValid: [{name: reads, expression: variables.broken}]
`)
	if a := s.Valid(s.c.Jobs["a/g"]); a.Yes || len(s.Faults()) != 1 || s.Faults()[0].Rule != "reads" {
		t.Errorf("the row that reads it errs: %+v, faults %v", a, s.Faults())
	}
}

// TestActionIsReadAnew checks that a value that reads the action is computed again in each action of a cycle.
func TestActionIsReadAnew(t *testing.T) {
	s := begun(t, twoJobs(t), `
variables:
- {name: now, expression: action}
- {name: onJob, on: job, expression: "action + job.name"}
attributes:
- {on: job, name: stage, expression: action}
- {on: cluster, name: stage, expression: action}
- {on: cluster, name: counted, sum: {over: job, when: "action == 'b'", of: "1"}}
- {on: cluster, name: settled, settle: cycle, expression: action}
jobOrder:
- {name: a, by: variables.now}
- {name: b, by: variables.onJob}
- {name: c, by: job.stage}
- {name: d, by: cluster.counted}
- {name: e, by: cluster.stage}
- {name: f, by: "'[' + cluster.settled + ']'"}
- {name: g, by: action}
`)
	for _, test := range [][2]string{{"a", "a ag a 0 a [] a"}, {"b", "b bg b 2 b [] b"}, {"a", "a ag a 0 a [] a"}} {
		s.SetAction(test[0])
		if got := keysOf(t, s, "g"); got != test[1] {
			t.Errorf("in action %s: got %q, want %q", test[0], got, test[1])
		}
	}
}

// TestAttributesSettle checks that an attribute changes with every step, once per cycle, or never again, as it declares.
func TestAttributesSettle(t *testing.T) {
	c := twoJobs(t)
	s := begun(t, c, `
attributes:
- {on: job, name: current, expression: job.allocated.cpu}
- {on: job, name: cycle, settle: cycle, expression: job.allocated.cpu}
- {on: job, name: start, settle: start, expression: job.allocated.cpu}
- {on: job, name: late, settle: start, expression: job.current + 10}
- {on: queue, name: mixed, expression: cluster.used.cpu + queue.allocated.cpu}
- {on: cluster, name: total, expression: cluster.used.cpu}
jobOrder:
- {name: a, by: job.current}
- {name: b, by: job.cycle}
- {name: c, by: job.start}
- {name: e, by: job.queue.mixed}
- {name: f, by: cluster.total}
`)
	expect := func(when, job, want string) {
		t.Helper()
		if got := keysOf(t, s, job); got != want {
			t.Errorf("%s: %s has %q, want %q", when, job, got, want)
		}
	}
	expect("at first", "g", "0 0 0 0 0")
	x := c.Begin()
	x.Allocate(c.Tasks["a/p"], 0, nil)
	expect("after a step", "g", "1 0 0 2 1")
	expect("after a step of the other", "h", "0 0 0 2 1")
	s.Begin(noon().Add(time.Minute))
	expect("in the next cycle", "g", "1 1 0 2 1")
	mark := x.Mark()
	x.Allocate(c.Tasks["a/r"], 0, nil)
	expect("after another step", "h", "2 0 0 6 3")
	x.Rollback(mark)
	expect("after the rollback", "h", "0 0 0 2 1")
}

// TestAttributesWithoutValue checks that reading an attribute without a value, or with an error, is an error of the row.
func TestAttributesWithoutValue(t *testing.T) {
	s := begun(t, twoJobs(t), `
attributes:
- {on: job, name: guarded, when: "job.name == 'g'", expression: "7"}
- {on: job, name: broken, expression: "job.labels['none']"}
- {on: queue, name: due, waterFill: {among: queue.jobCount > 5, total: cluster.allocatable, weight: "1", demand: queue.request}}
- {on: queue, name: heavy, waterFill: {total: cluster.allocatable, weight: "0", demand: queue.request}}
jobOrder:
- {name: a, by: job.guarded}
- {name: b, by: job.broken}
- {name: c, by: job.queue.due.cpu}
- {name: d, by: job.queue.heavy.cpu}
`)
	if got, want := keysOf(t, s, "g"), "7 error: no such key: none error: due has no value for queue q: it takes no part error: weight of "+
		"queue q must be above 0, is 0"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got := keysOf(t, s, "h"); !strings.HasPrefix(got, "error: guarded has no value here: its guard is false") {
		t.Errorf("got %s", got)
	}
	want := []model.RuleError{{
		Site: "attributes", Table: "mine", Rule: "heavy", Count: 1, Object: "q",
		Text: "weight of queue q must be above 0, is 0",
	}}
	if diff := cmp.Diff(want, s.Faults()); diff != "" {
		t.Errorf("a weight that cannot be is an error of its queue (-want +got)\n%s", diff)
	}
}

// TestParams checks params of every type: set by the policy, with their default, and without one.
func TestParams(t *testing.T) {
	const table = `
params:
  flag: {type: bool, default: false}
  whole: {type: int, default: 3}
  part: {type: double, default: 0.5}
  word: {type: string, default: a, enum: [a, b]}
  wait: {type: duration, default: 90s, max: 1h}
  names: {type: list(string), default: [x, y]}
  weights: {type: "map(string,double)", default: {x: 1}}
  zones: {type: "map(string,string)", default: {}}
  maybe: {type: int, optional: true}
  perhaps: {type: "list(string)", optional: true}
jobOrder:
- {name: flag, by: params.flag}
- {name: whole, by: params.whole + 1}
- {name: part, by: params.part * 2}
- {name: word, by: params.word}
- {name: wait, by: params.wait > duration('1m')}
- {name: names, by: "params.names.size()"}
- {name: weights, by: "params.weights['x'] + double(params.weights.size())"}
- {name: zones, by: "params.zones[?'z'].orValue('none')"}
- {name: maybe, by: params.maybe.orValue(-1)}
- {name: perhaps, by: "params.perhaps.hasValue()"}
`
	for _, test := range [][2]string{
		{"", "false 4 1 a true 2 2 none -1 false"},
		{
			"{flag: true, whole: 7, part: 2, word: b, wait: 5s, names: [], weights: {x: 0.5, y: 2}, zones: {z: east}, maybe: 0, perhaps: []}",
			"true 8 4 b false 0 2.5 east 0 true",
		},
	} {
		text := policyText(table)
		if test[0] != "" {
			text = strings.Replace(text, "    - name: mine\n", "    - name: mine\n      params: "+test[0]+"\n", 1)
		}
		s := New(twoJobs(t), loaded(t, text))
		s.Begin(noon())
		if got := keysOf(t, s, "g"); got != test[1] {
			t.Errorf("params %s: got %q, want %q", test[0], got, test[1])
		}
	}
}

// TestConstantGuards checks that a row whose guard is always false is dropped, and that a guard that is always true is dropped.
func TestConstantGuards(t *testing.T) {
	for _, test := range []struct {
		when  string
		rules int
		bare  bool
	}{
		{"params.on", 1, true},
		{"!params.on", 0, false},
		{"params.on && cluster.nodeCount > 0", 1, false},
		{"1 > 2", 0, false},
		{"!params.on && cluster.nodeCount > 0", 0, false},
		{"cluster.nodeCount > 0 && !params.on", 0, false},
		{"!params.on && job.labels['none'] == ''", 0, false},
		{"params.on ? cluster.nodeCount > 0 : false", 1, false},
		{"variables.on", 1, true},
		{"!variables.on", 0, false},
		{"!variables.on && variables.some", 0, false},
		{"variables.some", 1, false},
	} {
		p := loaded(t, policyText("params: {on: {type: bool, default: true}}\nvariables: [{name: on, expression: params.on}, {name: some, "+
			"expression: cluster.nodeCount > 0}]\njobOrder: [{name: r, when: \""+test.when+"\", by: job.name}]"))
		got := p.Rules(policy.JobOrder)
		if len(got) != test.rules || p.RuleCount() != test.rules || len(got) == 1 && (got[0].When == nil) != test.bare {
			t.Errorf("when %s: %d rows, want %d", test.when, len(got), test.rules)
		}
	}
}

// TestOnlyAndWithout checks the names with which a table switches sections on and off.
func TestOnlyAndWithout(t *testing.T) {
	for _, test := range []struct{ entry, want string }{
		{"{name: gang}", "evictable jobOrder jobPipelined jobReady jobStarving jobValid preemptable reclaimable victims"},
		{"{name: gang, without: [jobReady, jobOrder]}", "evictable jobPipelined jobStarving jobValid preemptable reclaimable victims"},
		{"{name: gang, only: [jobReady]}", "evictable jobReady jobValid"}, // sections without a flag in Volcano stay
		{"{name: gang, only: []}", "evictable jobValid"},
		{"{name: drf, without: [jobOrder, queueOrder, attributes, preemptable, reclaimable]}", ""},
	} {
		p := loaded(t, "apiVersion: scheduling.celsius.dev/v1alpha1\nkind: SchedulingPolicy\nmetadata: {name: x}\nspec: {pipeline: "+
			"[allocate], tiers: [{name: t, tables: ["+test.entry+"]}]}\n")
		sites := map[string]bool{}
		for _, f := range facts.Of(p) {
			if f.Site != "attributes" {
				sites[f.Site] = true
			}
		}
		if got := strings.Join(slices.Sorted(maps.Keys(sites)), " "); got != test.want {
			t.Errorf("%s: rows of %s, want %s", test.entry, got, test.want)
		}
	}
}

// TestPolicyNames checks that a policy states its name and generation.
func TestPolicyNames(t *testing.T) {
	p := loaded(t, "apiVersion: scheduling.celsius.dev/v1alpha1\nkind: SchedulingPolicy\nmetadata: {name: night, generation: 3}\nspec: "+
		"{mode: Paused, pipeline: [backfill, allocate], tiers: [{name: a, tables: []}, {name: b, tables: []}]}\n")
	got := fmt.Sprint(p.Name, " ", p.Generation, " ", p.Mode, " ", p.Tiers, " ", p.Pipeline, " ", len(p.Actions))
	if want := "night 3 Paused [a b] [backfill allocate] 2"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if d, issues := policy.Default(); issues.Err() != nil || d.Mode != "Active" || d.Name != "default" {
		t.Errorf("the default policy: %v", issues)
	}
}

// groupOf returns a PodGroup with a minimum, and with the resources that it reserves.
func groupOf(name string, min int32, reserves string) *v1beta1.PodGroup {
	return aGroup(name, "q", func(g *v1beta1.PodGroup) {
		list := amountList(reserves)
		g.Spec.MinMember, g.Spec.MinResources = min, &list
	})
}

// TestProportionByHand checks the values that proportion computes for a queue, computed by hand (docs/volcano.md, Proportion).
func TestProportionByHand(t *testing.T) {
	weighted := func(name string, weight int32, capability string) *v1beta1.Queue {
		return aQueue(name, func(q *v1beta1.Queue) {
			q.Spec.Weight, q.Spec.Capability = weight, amountList(capability)
		})
	}
	q2 := aGroup("h", "r")
	c := aCluster(t, aNode("n1", "cpu=12 pods=99"), weighted("q", 1, ""), weighted("r", 3, "cpu=7"), weighted("idle", 9, ""),
		groupOf("g", 1, "cpu=2"), q2, aPod("p", "cpu=10"), aPod("s", "cpu=20", inGroup("h")))
	d, issues := policy.Default()
	if issues.Err() != nil {
		t.Fatal(issues)
	}
	s := New(c, d)
	s.Begin(noon())
	for _, test := range []struct{ queue, attribute, want string }{
		{"q", "deserved", "cpu 5, pods 1"}, // 12/4, and then the rest that r may not have; one pod is requested
		{"r", "deserved", "cpu 7, pods 1"}, // its capability
		{"q", "promised", "cpu 2"},
		{"r", "realCapability", "cpu 7, pods 99"},
	} {
		got, ok := s.QueueAmounts(c.Queues[test.queue], test.attribute)
		if !ok || c.Dims.Text(got.Positive()) != test.want {
			t.Errorf("%s.%s is %s, want %s", test.queue, test.attribute, c.Dims.Text(got), test.want)
		}
	}
	if got, ok := s.QueueAmounts(c.Queues["idle"], "deserved"); ok {
		t.Errorf("a queue without jobs takes no part, but deserves %s", c.Dims.Text(got))
	}
}
