package proof_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/celsius-scheduler/celsius/engine"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/engine/proof"
	"github.com/celsius-scheduler/celsius/engine/report"
	"github.com/celsius-scheduler/celsius/engine/sim"
	"github.com/celsius-scheduler/celsius/engine/sim/manifest"
	"github.com/celsius-scheduler/celsius/engine/volume"
	"github.com/celsius-scheduler/celsius/rules/source"
)

// preempting is a policy that evicts pods of lower priority and keeps gangs whole.
const preempting = `apiVersion: scheduling.celsius.dev/v1alpha1
kind: SchedulingPolicy
metadata: {name: p}
spec:
  pipeline: [preempt]
  tiers:
  - name: first
    tables:
    - {name: priority}
    - {name: gang}
    - {name: house, inline: {preemptable: [{name: small, expression: victim.request.cpu < 2.0}]}}
    - {name: predicates}
`

// full is a world in which two pods of low must go for new. The pod new has no place on n2, where a gang runs.
const full = `apiVersion: sim.celsius.dev/v1alpha1
kind: World
nodes: [{name: n1, cpu: 5}, {name: n2, cpu: 3}, {name: n3, cpu: 1}]
priorityClasses: {high: 5}
jobs:
- {name: low, replicas: 4, min: 1, cpu: 1, node: n1}
- {name: peer, priority: high, cpu: 1, node: n1}
- {name: gang, replicas: 3, cpu: 1, node: n2}
- {name: aside, cpu: 1, node: n3}
- {name: new, priority: high, cpu: 2, phase: Inqueue}
- {name: idler, priority: high, phase: Inqueue}
pods: [{name: other, scheduler: default-scheduler, node: n3}]
`

// newWorld makes a world from these texts, at the beginning of its first cycle.
func newWorld(t *testing.T, policyText, worldText string) (*model.Cluster, *policy.Policy) {
	t.Helper()
	w := sim.NewWorld(sim.Options{Volumes: volume.New})
	_, issues := w.Load(manifest.Source{Name: "world.yaml", Data: []byte(worldText)})
	if issues.Err() != nil {
		t.Fatal(issues)
	}
	docs, issues := source.Parse("policy.yaml", []byte(policyText))
	if issues.Err() != nil {
		t.Fatal(issues)
	}
	p, issues := policy.Load(docs[0])
	if issues.Err() != nil {
		t.Fatal(issues)
	}
	return w.Cluster(), p
}

// hand makes a plan step by step, without the engine.
type hand struct {
	c    *model.Cluster
	txn  *model.Txn
	plan *model.Plan
}

// evict evicts pods for another pod, and gives the reasons that the engine would give.
func (h hand) evict(preemptor string, victims ...string) {
	for _, name := range victims {
		t := h.c.Tasks["default/"+name]
		h.txn.Evict(t)
		by := h.c.Tasks["default/"+preemptor]
		first := model.Reason{Site: policy.Preemptable, Table: "priority", Rule: "strictly-lower"}
		e := report.Evict(t, by, "preempt", "", first, []string{"priority/strictly-lower", "house/small"})
		h.plan.Evicts = append(h.plan.Evicts, report.Needed(e, by, report.Refused(report.Insufficient("cpu", ""))))
	}
	h.txn.Commit()
}

// promise promises a node to a pod.
func (h hand) promise(pod, node string) {
	t := h.c.Tasks["default/"+pod]
	h.plan.Pipelines = append(h.plan.Pipelines, model.Bind{
		Task: t.Key, UID: t.UID, Job: t.Job.Key, Queue: t.Job.QueueName, Node: node,
		Action: "preempt",
	})
}

func now() time.Time { return time.Date(2026, 1, 5, 12, 0, 0, 0, time.UTC) }

// TestWrongPlans checks that the checker finds each kind of wrong plan, and nothing in a right one.
func TestWrongPlans(t *testing.T) {
	t.Parallel()
	right := func(h hand) { h.evict("new-0", "low-3", "low-2"); h.promise("new-0", "n1") }
	tests := []struct {
		name string
		make func(h hand)
		want string // the kinds of violations, each with the victim
	}{
		{"right", right, ""},
		{
			"a needless victim", func(h hand) { h.evict("new-0", "low-1"); right(h) },
			"certificate low-1, certificate low-2, certificate low-3, needed low-1, needed low-2, needed low-3",
		},
		{"too few go", func(h hand) { h.evict("new-0", "low-3"); h.promise("new-0", "n1") }, "fit"},
		{
			"promised where it does not fit", func(h hand) { right(h); h.plan.Pipelines[0].Node = "n3" },
			"certificate low-2, certificate low-3, fit",
		},
		{"promised nothing", func(h hand) { h.evict("new-0", "low-3", "low-2") }, "certificate low-2, certificate low-3"},
		{
			"promised a node that is not there", func(h hand) { right(h); h.plan.Pipelines[0].Node = "n9" },
			"certificate low-2, certificate low-3, fit",
		},
		{"a row says no of one", func(h hand) { h.evict("new-0", "low-3", "peer-0"); h.promise("new-0", "n1") }, "legal peer-0"},
		{"rows left out", func(h hand) { right(h); h.plan.Evicts[1].Rows = nil }, "certificate low-2"},
		{"a row that there is not", func(h hand) { right(h); h.plan.Evicts[1].Rows[1] = "gang/no-such" }, "row low-2"},
		{"another row first", func(h hand) { right(h); slices.Reverse(h.plan.Evicts[1].Rows) }, "certificate low-2"},
		{"a row that would not refuse", func(h hand) {
			right(h)
			h.plan.Evicts[0].Needed = model.Reason{Site: policy.Predicates, Table: "predicates", Rule: "node-affinity", Text: "?"}
		}, "certificate low-3"},
		{"not said what would refuse", func(h hand) { right(h); h.plan.Evicts[0].Needed = model.Reason{} }, "certificate low-3"},
		{"not said for whom", func(h hand) { right(h); h.plan.Evicts[0].For = "" }, "certificate low-3"},
		{"for a pod of another job", func(h hand) { right(h); h.plan.Evicts[0].ForJob = "default/low" }, "certificate low-3"},
		{"another action", func(h hand) {
			right(h)
			h.plan.Evicts[0].Action, h.plan.Evicts[1].Action = "reclaim", "reclaim"
		}, "certificate"},
		{"another node", func(h hand) { right(h); h.plan.Evicts[0].Node = "n2" }, "certificate low-3"},
		{"one twice", func(h hand) { right(h); h.plan.Evicts = append(h.plan.Evicts, h.plan.Evicts[0]) }, "twice low-3"},
		{"another scheduler's", func(h hand) {
			right(h)
			h.plan.Evicts = append(h.plan.Evicts, h.plan.Evicts[0])
			h.plan.Evicts[2].Task = "default/other"
		}, "foreign other"},
		{"no such pod", func(h hand) { right(h); h.plan.Evicts[0].Task = "default/nobody" }, "foreign nobody, untold low-3"},
		{"one of whom nothing is told", func(h hand) { right(h); h.txn.Evict(h.c.Tasks["default/aside-0"]) }, "untold aside-0"},
		{
			"part of a gang", func(h hand) { h.evict("new-0", "gang-0", "gang-1"); h.promise("new-0", "n2") },
			"gang gang-0, gang gang-1, legal gang-0, legal gang-1",
		},
		{
			"a gang as a whole", func(h hand) { h.evict("new-0", "gang-0", "gang-1", "gang-2"); h.promise("new-0", "n2") },
			"certificate gang-0, certificate gang-1, certificate gang-2, legal gang-0, legal gang-1, legal gang-2, needed gang-0, " +
				"needed gang-1, needed gang-2",
		},
		{
			"for one that asks for nothing", func(h hand) { h.evict("idler-0", "low-3"); h.promise("idler-0", "n1") },
			"bestEffort low-3, certificate low-3, idle, needed low-3",
		},
		{"one that is spared", func(h hand) { right(h); h.c.Tasks["default/low-3"].Spare(now().Add(time.Minute)) }, "candidate low-3"},
		{"where another node has room", func(h hand) {
			right(h)
			n := h.c.Nodes.Rows[h.c.Nodes.Index["n1"]].Object.DeepCopy()
			n.Name, n.UID = "n4", "n4"
			n.Labels = nil
			h.c.Apply(model.Delta{Object: n})
		}, "idle"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			c, p := newWorld(t, preempting, full)
			cycle := new(proof.Run).Begin(c, p, now())
			h := hand{c, c.Begin(), &model.Plan{Now: now()}}
			test.make(h)
			got := map[string]bool{}
			wrong := cycle.Check(h.plan)
			for _, v := range wrong {
				got[strings.TrimSpace(string(v.Kind)+" "+strings.TrimPrefix(v.Victim, "default/"))] = true
			}
			if kinds := strings.Join(slices.Sorted(maps.Keys(got)), ", "); kinds != test.want {
				t.Errorf("found %q, want %q:\n%v", kinds, test.want, wrong)
			}
			if err := c.Check(); err != nil {
				t.Error(err)
			}
			for _, v := range h.plan.Evicts {
				if task := c.Tasks[v.Task]; task != nil && !task.Foreign && task.Status != model.Releasing {
					t.Errorf("%s is %s after the check", task.Key, task.Status)
				}
			}
			if task := c.Tasks["default/new-0"]; task.Status != model.Pending {
				t.Errorf("%s is %s after the check", task.Key, task.Status)
			}
		})
	}
}

// TestTheEnginesPlan checks that the engine makes the right plan of TestWrongPlans. It also checks that a victim that already leaves is not
// evicted again.
func TestTheEnginesPlan(t *testing.T) {
	t.Parallel()
	c, p := newWorld(t, preempting, full)
	var run proof.Run
	decide := run.Checked(new(engine.Decider).Decide, func(_ *model.Plan, wrong []proof.Violation) { t.Error(wrong) })
	plan := decide(c, p, now())
	var who []string
	for _, e := range plan.Evicts {
		who = append(who, fmt.Sprintf("%s %s %v", e.Task, e.For, e.Rows))
	}
	if got, want := strings.Join(who, ", "), "default/low-3 default/new-0 [priority/strictly-lower house/small], "+
		"default/low-2 default/new-0 [priority/strictly-lower house/small]"; got != want {
		t.Errorf("the engine evicts %s, want %s", got, want)
	}
	wrong := run.Begin(c, p, now()).Check(plan)
	if len(wrong) < 2 || wrong[0].Kind != proof.Twice || wrong[1].Kind != proof.Twice {
		t.Errorf("the same again: %v", wrong)
	}
}

// TestStable checks that the checker finds a victim that would in turn evict the pod that it left for.
func TestStable(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ row, want string }{
		{"victim.job.name < preemptor.job.name", ""},
		{"victim.job.name != preemptor.job.name", "stable"},
	} {
		c, p := newWorld(t, `apiVersion: scheduling.celsius.dev/v1alpha1
kind: SchedulingPolicy
metadata: {name: p}
spec:
  pipeline: [preempt]
  tiers:
  - name: first
    tables:
    - {name: priority, without: [preemptable]}
    - {name: house, inline: {preemptable: [{name: by-name, expression: `+tt.row+`}]}}
    - {name: predicates}
`, `apiVersion: sim.celsius.dev/v1alpha1
kind: World
nodes: [{name: n1, cpu: 2}]
jobs:
- {name: low, replicas: 2, min: 1, cpu: 1, node: n1}
- {name: new, cpu: 1, phase: Inqueue}
`)
		cycle := new(proof.Run).Begin(c, p, now())
		h := hand{c, c.Begin(), &model.Plan{Now: now()}}
		h.evict("new-0", "low-1")
		h.plan.Evicts[0].Rows = []string{"house/by-name"}
		h.plan.Evicts[0].Reason.Table, h.plan.Evicts[0].Reason.Rule = "house", "by-name"
		h.promise("new-0", "n1")
		var found []string
		for _, v := range cycle.Check(h.plan) {
			found = append(found, string(v.Kind))
		}
		if got := strings.Join(found, " "); got != tt.want {
			t.Errorf("%s: found %q, want %q", tt.row, got, tt.want)
		}
	}
}

// TestAtEnd checks that the checker asks the rows again at the end. A row allowed one eviction, and denies it now that another pod goes as
// well.
func TestAtEnd(t *testing.T) {
	t.Parallel()
	c, p := newWorld(t, strings.Replace(preempting, "- {name: gang}\n", "- {name: gang}\n    - {name: own, inline: {preemptable: "+
		"[{name: not-the-last, veto: true, expression: victim.index != 2 || victim.job.runningTasks > 2}]}}\n", 1),
		`apiVersion: sim.celsius.dev/v1alpha1
kind: World
nodes: [{name: n1, cpu: 3}]
priorityClasses: {high: 5}
jobs:
- {name: low, replicas: 3, min: 1, cpu: 1, node: n1}
- {name: first, priority: high, cpu: 1, phase: Inqueue}
- {name: second, priority: high, cpu: 1, phase: Inqueue}
`)
	cycle := new(proof.Run).Begin(c, p, now())
	h := hand{c, c.Begin(), &model.Plan{Now: now()}}
	h.evict("first-0", "low-2")
	h.promise("first-0", "n1")
	h.evict("second-0", "low-1")
	h.promise("second-0", "n1")
	if got, want := fmt.Sprint(cycle.Check(h.plan)), "[atEnd: pod default/low-2 goes for default/first-0, but the rows of preemptable do not "+
		"let it any more at the end of the action (legal)]"; got != want {
		t.Errorf("found %s, want %s", got, want)
	}
}

// TestEnough checks that a check can stop anywhere. Its findings are then a part of all findings, and the cluster is unchanged.
func TestEnough(t *testing.T) {
	t.Parallel()
	whole, cuts := "", 0
	for asks := 100; ; asks-- {
		c, p := newWorld(t, preempting, full)
		left := asks
		run := proof.Run{Enough: func() bool { left--; return left < 0 }}
		cycle := run.Begin(c, p, now())
		h := hand{c, c.Begin(), &model.Plan{Now: now()}}
		h.evict("new-0", "low-1", "low-3", "low-2")
		h.promise("new-0", "n1")
		found := fmt.Sprint(cycle.Check(h.plan))
		if err := c.Check(); err != nil {
			t.Error(err)
		}
		switch cut := cycle.Cut(); {
		case asks == 100 && (cut || len(found) < 100):
			t.Fatalf("with all the time in the world it is cut (%v), or finds little: %s", cut, found)
		case asks == 100:
			whole = found
		case !cut && found != whole:
			t.Errorf("after %d questions %s is found, and it is not said that it was cut", asks, found)
		case !strings.HasPrefix(whole, strings.TrimSuffix(found, "]")):
			t.Errorf("after %d questions %s is found, which is not the beginning of %s", asks, found, whole)
		case cut:
			cuts++
		}
		if asks == 0 {
			break
		}
	}
	if cuts < 5 {
		t.Errorf("cut in %d places: it asks too rarely", cuts)
	}
}
