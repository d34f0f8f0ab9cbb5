package engine_test

import (
	"cmp"
	"fmt"
	"hash/crc32"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
	"github.com/celsius-scheduler/celsius/engine"
	"github.com/celsius-scheduler/celsius/engine/action"
	"github.com/celsius-scheduler/celsius/engine/cards"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/engine/report"
	"github.com/celsius-scheduler/celsius/engine/session"
	"github.com/celsius-scheduler/celsius/engine/volume"
	"github.com/celsius-scheduler/celsius/rules/source"
)

// run is one way through the history of a world.
type run struct {
	world *world
	// order is the order in which the first objects come; nil: as they are listed.
	order []int
	// policies take turns. They are one policy, compiled several times.
	policies []*policy.Policy
	// forgets makes each cycle begin with nothing remembered.
	forgets bool
	// otherUIDs gives all objects UIDs in another order, because the UIDs of a cluster are random. The plans are written with the original
	// UIDs.
	otherUIDs bool
	// noErrors omits which rows erred, because remembered results are not evaluated again.
	noErrors bool
	// after is called with the cluster after each cycle.
	after func(c *model.Cluster, d *engine.Decider, plan *model.Plan)
}

// pauses returns the times of the cycles after each step of a history. Most of these cycles find nothing new.
func pauses() []time.Duration {
	return []time.Duration{0, time.Second, 21 * time.Second, 55 * time.Second}
}

// plans goes through the history, with some cycles after each step, and returns the plans as they are written. A bound pod runs in the next
// cycle.
func (r run) plans(t *rapid.T) []string {
	c := model.NewCluster(model.Options{Volumes: volume.New})
	var out []string
	var d *engine.Decider
	now := time.Unix(1_700_000_100, 0).UTC()
	for n, deltas := range r.history() {
		c.Apply(deltas...) // objects with mistakes are welcome too
		if p := r.policies[n%len(r.policies)]; d == nil || d.Session().Policy() != p {
			d = engine.NewDecider(session.New(c, p), nil)
		}
		for _, pause := range pauses() {
			if r.forgets {
				d = engine.NewDecider(d.Session().Renewed(), action.Forgetful())
			}
			plan := d.Cycle(now.Add(time.Duration(n)*time.Minute + pause))
			if err := c.Check(); err != nil {
				t.Fatalf("cycle %d, %v later: %v", n, pause, err)
			}
			if r.noErrors {
				withoutErrors(plan)
			}
			out = append(out, madeUp.ReplaceAllString(written(t, plan), ""))
			if r.after != nil {
				r.after(c, d, plan)
			}
			c.Apply(started(c, plan)...)
		}
	}
	return out
}

// withoutErrors removes the errors of a plan. How often a row is evaluated, and whether at all, depends on what is remembered.
func withoutErrors(plan *model.Plan) {
	plan.Errors = nil
	plan.Warnings = slices.DeleteFunc(plan.Warnings, func(text string) bool {
		return strings.HasPrefix(text, "pod ") || strings.HasPrefix(text, "job ")
	})
	if len(plan.Warnings) == 0 {
		plan.Warnings = nil
	}
}

// history returns the deltas to apply, step by step.
func (r run) history() [][]model.Delta {
	var first []model.Delta
	for i := range r.world.objects {
		if r.order != nil {
			i = r.order[i]
		}
		first = append(first, model.Delta{Object: r.world.objects[i]})
	}
	history := append([][]model.Delta{first}, r.world.changes...)
	if r.otherUIDs {
		return otherUIDs(history)
	}
	return history
}

// madeUp matches the prefix that otherUIDs puts before a UID.
var madeUp = regexp.MustCompile(`other-[0-9a-f]{8}-`)

func otherUIDs(history [][]model.Delta) [][]model.Delta {
	out := make([][]model.Delta, len(history))
	for i, deltas := range history {
		for _, d := range deltas {
			if o, ok := d.Object.(runtime.Object); ok {
				o := o.DeepCopyObject().(metav1.Object)
				if uid := o.GetUID(); uid != "" {
					o.SetUID(types.UID(fmt.Sprintf("other-%08x-%s", crc32.ChecksumIEEE([]byte(uid)), uid)))
				}
				d.Object = o
			}
			out[i] = append(out[i], d)
		}
	}
	return out
}

// refusedFor is the time for which a pod is spared after its eviction was refused. The pod may go again with the third of the pauses,
// although nothing else has changed since the second.
const refusedFor = 20 * time.Second

// started returns what follows from a plan: its bound pods run, and their volumes exist. Evictions are done or refused.
func started(c *model.Cluster, plan *model.Plan) []model.Delta {
	var out []model.Delta
	for _, b := range plan.Binds {
		out = append(out, bound(c, b)...)
		p := c.Tasks[b.Task].Object.DeepCopy()
		p.Spec.NodeName, p.Status.Phase = b.Node, corev1.PodRunning
		p.Annotations[model.RecordAnnotation] = c.Tasks[b.Task].Record().String()
		out = append(out, model.Delta{Object: p})
	}
	for n, e := range plan.Evicts { // some are refused, some pods are gone at once, others need time
		t := c.Tasks[e.Task]
		p := t.Object.DeepCopy()
		switch (n + len(plan.Evicts)) % 4 {
		case 0:
			t.Spare(plan.Now.Add(refusedFor))
			out = append(out, model.Delta{Op: model.Forget, Object: t.Object})
		case 1:
			out = append(out, model.Delta{Op: model.Delete, Object: p})
		default:
			p.DeletionTimestamp = new(at(60))
			out = append(out, model.Delta{Object: p})
		}
	}
	return out
}

func written(t *rapid.T, plan *model.Plan) string {
	text, err := report.Written(plan)
	if err != nil {
		t.Fatal(err)
	}
	if len(plan.Errors) == 0 {
		return text
	}
	return fmt.Sprintf("%s\n%+v", text, plan.Errors)
}

// compiled is a policy that was compiled twice from the same text.
type compiled struct {
	name     string
	policies []*policy.Policy
}

func compile(t testing.TB, name string, text []byte) compiled {
	t.Helper()
	out := compiled{name: name}
	for range 2 {
		docs, issues := source.Parse(name+".yaml", text)
		if len(docs) != 1 || issues.Err() != nil {
			t.Fatalf("%s: %d documents: %v", name, len(docs), issues)
		}
		p, issues := policy.Load(docs[0])
		if issues.Err() != nil {
			t.Fatal(issues)
		}
		out.policies = append(out.policies, p)
	}
	return out
}

// policyOf writes a policy of the default pipeline with these tables in one tier.
func policyOf(spec string, tables ...string) []byte {
	text := "apiVersion: scheduling.celsius.dev/v1alpha1\nkind: SchedulingPolicy\nmetadata: {name: tested}\nspec:\n  " + spec +
		"\n  tiers:\n  - name: only\n    tables:\n"
	if !strings.Contains(spec, "pipeline:") {
		text = strings.Replace(text, "\n  tiers:", "\n  pipeline: [enqueue, allocate, backfill]\n  tiers:", 1)
	}
	for _, table := range tables {
		text += "    - " + strings.ReplaceAll(table, "\n", "\n      ") + "\n"
	}
	return []byte(text)
}

// house is a table whose rows read the time, and values that change with every step.
const house = `name: house
inline:
  attributes:
  - {on: queue, name: held, settle: current, sum: {over: job, of: job.allocated}}
  - {on: node, name: filled, expression: node.used.share(node.allocatable)}
  variables:
  - {name: even, expression: now.getMinutes() % 2 == 0}
  queueOrder:
  - {name: least-held, by: queue.held.cpu}
  jobOrder:
  - {name: least-placed, by: double(job.allocatedTasks) / double(job.taskCount + 1)}
  taskOrder:
  - {name: by-turns, by: "variables.even ? task.index : -task.index"}
  predicates:
  - {name: not-crowded, curable: true, expression: "cluster.used.cpu < 8.0 || node.taskCount < 3",
    message: "{{task.name}}: {{cluster.used}} used"}
  scores:
  - {name: fewest-of-the-queue, expression: "-double(node.tasks.filter(t, t.queue != null && t.queue.name == queue.name).size())",
    normalize: minMax}
  - {name: filled, when: variables.even, expression: node.filled, weight: 3}
  - {name: held, expression: "queue.held.cpu * node.filled", normalize: max}`

// devices is a table whose rows read the typical tasks, and draw random numbers.
const devices = `name: devices
inline:
  attributes:
  - {on: cluster, name: typical, typicalTasks: {cover: 0.8}}
  scores:
  - {name: fragments, expression: "fragGain(task, node, cluster.typical)"}
  - {name: fill, expression: "fillGain(task, node, cluster.typical, 10)", weight: 0.05}
  - {name: chance, expression: "hash01([task.name, node.name])", normalize: max, weight: 0.01}
  deviceScores:
  - {name: fill, expression: "fillGain(task, node, gpu, cluster.typical, 10)"}
  - {name: fragments, expression: "fragGain(task, node, gpu, cluster.typical)"}`

// hours is a table whose rows change with time.
const hours = `name: hours
inline:
  attributes:
  - {on: job, name: waited, expression: (now - job.createdAt).getSeconds() / 30}
  variables:
  - {name: odd, expression: now.getMinutes() % 2 == 1}
  - {name: old, on: job, expression: now - job.createdAt > duration('150s')}
  jobOrder:
  - {name: aging, by: "job.priority + job.waited % 3", descending: true}
  - {name: minutes, by: (now - job.createdAt).getMinutes() % 2}
  jobEnqueueable:
  - {name: some-wait, when: "job.createdAt.getSeconds() % 3 == 0", expression: variables.old,
    message: "{{job.name}} has waited for {{job.waited}} half minutes"}
  allocatable:
  - {name: not-at-once, when: task.index % 4 == 3, expression: "now >= task.createdAt + duration('200s')", message: too soon}
  predicates:
  - {name: by-turns, when: variables.odd, expression: "node.taskCount < 3", message: "node(s) rest in odd minutes"}
  preemptable:
  - {name: any, expression: "true"}
  victimCost:
  - {name: spent, expression: "(victim.index + 1) * ((now - victim.createdAt).getSeconds() % 97)"}`

// takingBack is a pipeline with an action of its own that takes room back.
const takingBack = `actions:
  - name: shed
    steps:
    - {verb: displace, jobs: "job.phase != 'Pending'", scope: otherQueues, candidates: "victim.status in ['Running', 'Bound']",
      victims: reclaimable, gates: [allocatable], nodes: byOrder, commit: task, turn: oneTask, onNoNode: "true"}
  pipeline: [enqueue, allocate, preempt, reclaim, shed, shuffle, backfill]`

// takingGangs is a pipeline with an action that evicts gangs, of the same queue and of others.
const takingGangs = `actions:
  - name: oust
    steps:
    - {verb: displace, unit: gang, jobs: "job.phase != 'Pending'", scope: queue, victims: evictable, nodes: byCost, gates: [allocatable],
       onNoNode: "true"}
    - {verb: displace, unit: gang, jobs: "job.phase != 'Pending'", scope: otherQueues, victims: evictable, turn: all, nodes: byOrder}
  pipeline: [enqueue, allocate, oust, backfill]`

// choosy is a table that lets go pods that others protect.
const choosy = `name: choosy
inline:
  variables:
  - {name: odd, on: victim, expression: victim.index % 2 == 1}
  jobStarving:
  - {name: any, expression: job.pendingTasks > 0}
  preemptable:
  - {name: not-the-odd, veto: true, expression: "!variables.odd || victim.job.runningTasks > 1"}
  - {name: lower, expression: victim.priority < preemptor.priority}
  reclaimable:
  - {name: few-each, expression: "victim.queue.allocated.cpu > 1.0 && scope == 'otherQueues'"}
  evictable:
  - {name: not-the-large, veto: true, expression: "victim.request.cpu < 3.0"}
  - {name: few-each, expression: "scope == 'queue' ? victim.job.priority <= job.priority : victim.queue.allocated.cpu > 1.0"}
  victims:
  - {name: not-the-odd, veto: true, expression: "!variables.odd"}
  - {name: large, every: 1m, expression: "victim.request.cpu > 1.0 && victim.job.runningTasks > 1"}
  victimOrder:
  - {name: larger-first, by: victim.request.cpu, descending: true}
  victimCost:
  - {name: cpu, when: victim.index > 0, expression: victim.request.cpu}
  - {name: largest, fold: max, when: "victim.request.cpu > 1.0", expression: victim.request.cpu}
  - {name: last, fold: thenMax, expression: victim.index}`

// policies returns the policies for which the properties are checked.
func policies(t *testing.T) []compiled {
	t.Helper()
	shared := []string{"name: priority", "name: gang", "name: overcommit", "name: drf", "name: predicates", "name: proportion"}
	base, err := os.ReadFile("../rules/tables/default.yaml")
	if err != nil {
		t.Fatal(err)
	}
	launch, err := os.ReadFile("../samples/policies/launch.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return []compiled{
		compile(t, "default", base),
		compile(t, "binpack", policyOf("mode: Active", append(shared, "name: binpack")...)),
		compile(t, "house", policyOf("mode: Active", append([]string{house}, shared...)...)),
		compile(t, "devices", policyOf("mode: Active", append([]string{devices}, shared...)...)),
		compile(t, "launch", launch),
		compile(t, "hours", policyOf("pipeline: [enqueue, allocate, preempt, backfill]", append([]string{hours},
			append(shared, "name: nodeorder")...)...)),
		compile(t, "taking back", policyOf("mode: Active\n  "+takingBack,
			append([]string{"name: conformance"}, append(shared, "name: nodeorder")...)...)),
		compile(t, "taking back along the tree", policyOf("mode: Active\n  "+takingBack, "name: gang", "name: priority\nwithout: [jobStarving]",
			"name: predicates", "name: capacity\nparams: {hierarchy: true, ancestorReclaimLevel: 1}", choosy)),
		compile(t, "cards", policyOf("mode: Active", append(shared, "name: deviceshare\nparams: {policy: binpack, weight: 1}")...)),
		compile(t, "taking back cards", policyOf("mode: Active\n  "+takingBack, append([]string{"name: conformance"},
			append(shared, "name: deviceshare\nparams: {policy: spread, weight: 1}")...)...)),
		compile(t, "CPUs", policyOf("mode: Active", append(shared, "name: numaaware")...)),
		compile(t, "taking back CPUs", policyOf("mode: Active\n  "+takingBack, append([]string{"name: conformance"},
			append(shared, "name: numaaware")...)...)),
		compile(t, "taking back gangs", policyOf("mode: Active\n  "+takingGangs, "name: gang", "name: predicates", "name: drf", choosy)),
		compile(t, "taking back by gangs", policyOf("mode: Active\n  pipeline: [enqueue, allocate, gangpreempt, gangreclaim, backfill]",
			append([]string{"name: conformance"}, append(shared, "name: nodeorder")...)...)),
		compile(t, "paused", policyOf("mode: Paused", append(shared, "name: nodeorder")...)),
	}
}

// TestSameInputSameBytes checks that all ways through a history give the same plans, to the last byte. The ways are: a repetition, a run
// that remembers nothing, another order of the first objects, other UIDs, and a policy compiled again before each cycle.
func TestSameInputSameBytes(t *testing.T) {
	t.Parallel()
	for _, p := range policies(t) {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(t *rapid.T) {
				w := drawWorld(t)
				order := make([]int, len(w.objects))
				for i := range order {
					order[i] = i
				}
				order = rapid.Permutation(order).Draw(t, "order")
				plain := run{world: w, policies: p.policies[:1]}.plans(t)
				for _, v := range []struct {
					name string
					run  run
				}{
					{"once more", run{world: w, policies: p.policies[:1]}},
					{"nothing remembered", run{world: w, policies: p.policies[:1], forgets: true}},
					{"objects in another order", run{world: w, policies: p.policies[:1], order: order}},
					{"other UIDs", run{world: w, policies: p.policies[:1], otherUIDs: true}},
					{"the policy compiled again", run{world: w, policies: p.policies}},
				} {
					if diff := gocmp.Diff(plain, v.run.plans(t)); diff != "" {
						w.Log(t)
						t.Fatalf("%s (-as it is +so):\n%s", v.name, diff)
					}
				}
			})
		})
	}
}

// judge checks a plan against the objects.
type judge struct {
	t    *rapid.T
	w    *world
	c    *model.Cluster
	d    *engine.Decider
	plan *model.Plan

	pods  []*corev1.Pod     // in key order
	where map[string]string // pod -> node, of pods that are on a node after the plan
	bound map[string]model.Bind
}

func newJudge(t *rapid.T, w *world, c *model.Cluster, d *engine.Decider, plan *model.Plan) *judge {
	j := &judge{t: t, w: w, c: c, d: d, plan: plan, where: map[string]string{}, bound: map[string]model.Bind{}}
	for _, task := range c.TasksByKey() {
		p := task.Object
		j.pods = append(j.pods, p)
		if p.Spec.NodeName != "" && p.Status.Phase != corev1.PodSucceeded && p.Status.Phase != corev1.PodFailed {
			j.where[task.Key] = p.Spec.NodeName
		}
	}
	for _, b := range plan.Binds {
		if on, twice := j.where[b.Task]; twice {
			j.fatalf("%s is bound to %s, but was on %s", b.Task, b.Node, on)
		}
		j.where[b.Task], j.bound[b.Task] = b.Node, b
	}
	return j
}

func (j *judge) fatalf(format string, args ...any) {
	j.w.Log(j.t)
	j.t.Logf("%s", written(j.t, j.plan))
	j.t.Fatalf(format, args...)
}

func key(o metav1.Object) string { return model.Key(o.GetNamespace(), o.GetName()) }

// requests returns the requests of a pod in milli-units, from its object.
func requests(p *corev1.Pod) map[corev1.ResourceName]int64 {
	out := map[corev1.ResourceName]int64{corev1.ResourcePods: 1000}
	for name, q := range p.Spec.Containers[0].Resources.Requests {
		if name != cards.SharePercent { // no node has it as a resource
			out[name] = q.MilliValue()
		}
	}
	return out
}

// room checks that a node has enough of everything for its bound pods, including ports and devices. The node takes pods, and the pod may
// start.
func (j *judge) room() {
	used := j.used()
	for _, p := range j.pods {
		b, ok := j.bound[key(p)]
		if !ok {
			continue
		}
		node := j.c.Nodes.Rows[j.c.Nodes.Index[b.Node]]
		for name, v := range requests(p) {
			allocatable := node.Object.Status.Allocatable[name]
			if v > 0 && used[b.Node][name] > allocatable.MilliValue() {
				j.fatalf("%s is bound to %s, where %d milli of %s are used of %s", b.Task, b.Node, used[b.Node][name], name, allocatable.String())
			}
		}
		j.permitted(p, node)
	}
	j.ports()
	j.devices()
}

// used returns what the pods on each node count as, in milli-units.
func (j *judge) used() map[string]map[corev1.ResourceName]int64 {
	used := map[string]map[corev1.ResourceName]int64{}
	for _, p := range j.pods {
		node, there := j.where[key(p)]
		if !there {
			continue
		}
		if used[node] == nil {
			used[node] = map[corev1.ResourceName]int64{}
		}
		for name, v := range requests(p) {
			used[node][name] += v
		}
	}
	return used
}

// ports checks that no pod is bound to a node where another pod has its host port.
func (j *judge) ports() {
	ports := map[string]string{}
	for _, p := range j.pods {
		node, there := j.where[key(p)]
		if !there || len(p.Spec.Containers[0].Ports) == 0 {
			continue
		}
		_, now := j.bound[key(p)]
		other := ports[node]
		if _, then := j.bound[other]; other != "" && (now || then) {
			j.fatalf("%s and %s want the same port of %s", other, key(p), node)
		}
		ports[node] = key(p)
	}
}

// devices checks that no device in use is overfull.
func (j *judge) devices() {
	for row, gpus := range j.c.Nodes.GPUs {
		for _, g := range gpus {
			if g.Free < 0 && slices.ContainsFunc(j.plan.Binds, func(b model.Bind) bool {
				return b.Node == j.c.Nodes.Rows[row].Name && slices.Contains(b.GPUs, g.Index)
			}) {
				j.fatalf("device %d of %s has %d thousandths free", g.Index, j.c.Nodes.Rows[row].Name, g.Free)
			}
		}
	}
}

func (j *judge) permitted(p *corev1.Pod, node *model.Node) {
	zone, asks := p.Spec.NodeSelector["zone"]
	tainted := slices.ContainsFunc(node.Taints, func(t corev1.Taint) bool { return t.Effect == corev1.TaintEffectNoSchedule })
	switch {
	case len(node.Object.Status.Conditions) > 0, node.Object.Spec.Unschedulable:
		j.fatalf("%s is bound to %s, which takes no pods", key(p), node.Name)
	case asks && zone != node.Labels["zone"]:
		j.fatalf("%s is bound to %s, which is not in zone %s", key(p), node.Name, zone)
	case tainted && len(p.Spec.Tolerations) == 0:
		j.fatalf("%s is bound to %s in spite of its taint", key(p), node.Name)
	case len(p.Spec.SchedulingGates) > 0:
		j.fatalf("%s is bound, but has scheduling gates", key(p))
	}
}

// membersOf counts the pods of a group, by role. A pod that runs or ended well counts as started. A waiting pod without requests counts
// too. If tried is true, such pods were already tried, and only those with scheduling gates count.
func (j *judge) membersOf(group string, tried bool) (started int32, roles map[string]int32) {
	roles = map[string]int32{}
	for _, p := range j.pods {
		if p.Annotations[model.GroupAnnotation] != group || p.Spec.SchedulerName != "celsius" {
			continue
		}
		_, on := j.where[key(p)]
		waits := p.Spec.NodeName == "" && p.DeletionTimestamp == nil && len(requests(p)) == 1 && len(p.Spec.InitContainers) == 0 &&
			p.Annotations[model.GPUMilliAnnotation] == "" &&
			(!tried || len(p.Spec.SchedulingGates) > 0)
		if on && p.DeletionTimestamp == nil || waits || p.Status.Phase == corev1.PodSucceeded {
			started++
			roles[p.Annotations[model.RoleAnnotation]]++
		}
	}
	return started, roles
}

// gangs checks that the job of a bound pod has all pods that must start together. Allocate counts on pods without requests, which backfill
// tries after it.
func (j *judge) gangs() {
	for _, b := range j.plan.Binds {
		g, ok := j.c.Jobs[b.Job].Object.(*v1beta1.PodGroup)
		if !ok {
			j.fatalf("%s is bound for %s, which has no PodGroup", b.Task, b.Job)
		}
		started, roles := j.membersOf(g.Name, b.Action == "backfill")
		if started < g.Spec.MinMember {
			j.fatalf("%s is bound, but of the %d that must start together %d can", b.Task, g.Spec.MinMember, started)
		}
		total := int32(0)
		for _, n := range g.Spec.MinTaskMember {
			total += n
		}
		for role, n := range g.Spec.MinTaskMember {
			if g.Spec.MinMember >= total && roles[role] < n {
				j.fatalf("%s is bound, but of role %s only %d can start, of %d", b.Task, role, roles[role], n)
			}
		}
	}
}

// quotas checks the queue of each bound pod. It stays within what it deserves, except for pods, and within its capability, in all
// dimensions that were requested. A closed queue gets nothing.
func (j *judge) quotas() {
	asked := j.asked()
	for _, q := range j.c.QueuesByName() {
		spec := q.Object.(*v1beta1.Queue)
		if len(asked[q.Name]) > 0 && spec.Status.State == v1beta1.QueueStateClosed {
			j.fatalf("queue %s is closed, but pods of it are bound", q.Name)
		}
		deserved, ok := j.d.Session().QueueAmounts(q, "deserved")
		held := j.held(q.Name)
		for name := range asked[q.Name] {
			dim, _ := j.c.Dims.Find(string(name))
			if due := deserved.Get(dim) * 1000 / j.c.Dims.Unit(dim); !ok || name != corev1.ResourcePods && float64(held[name]) > due {
				j.fatalf("queue %s holds %d milli of %s, deserves %g", q.Name, held[name], name, due)
			}
			capability, limited := spec.Spec.Capability[name]
			guarantee := spec.Spec.Guarantee.Resource[name]
			if most := max(capability.MilliValue(), guarantee.MilliValue()); limited && held[name] > most {
				j.fatalf("queue %s holds %d milli of %s, may hold %d", q.Name, held[name], name, most)
			}
		}
	}
}

// asked returns what the bound pods request, by queue.
func (j *judge) asked() map[string]map[corev1.ResourceName]bool {
	asked := map[string]map[corev1.ResourceName]bool{}
	for _, p := range j.pods {
		b, ok := j.bound[key(p)]
		if !ok {
			continue
		}
		if asked[b.Queue] == nil {
			asked[b.Queue] = map[corev1.ResourceName]bool{}
		}
		for name, v := range requests(p) {
			if v > 0 {
				asked[b.Queue][name] = true
			}
		}
	}
	return asked
}

// held returns what the pods of a queue hold in milli-units: those on nodes, except those that leave.
func (j *judge) held(queue string) map[corev1.ResourceName]int64 {
	held := map[corev1.ResourceName]int64{}
	for _, p := range j.pods {
		_, on := j.where[key(p)]
		in := j.c.Tasks[key(p)].Job.QueueName // the queue at the time of binding: the group may be in another queue now
		if !on || in != queue || p.DeletionTimestamp != nil || p.Spec.SchedulerName != "celsius" {
			continue
		}
		for name, v := range requests(p) {
			held[name] += v
		}
	}
	return held
}

// reasons checks each waiting pod of this scheduler. The pod is placed, has a promise, or has a reason.
func (j *judge) reasons() {
	told := map[string]bool{}
	for _, b := range slices.Concat(j.plan.Binds, j.plan.Pipelines, j.plan.Holds) {
		told[b.Task] = true
	}
	for _, w := range j.plan.Waits {
		if w.Reason.Text == "" {
			j.fatalf("%s waits, but no text says why", cmp.Or(w.Task, w.Job))
		}
		told[cmp.Or(w.Task, w.Job)] = true
	}
	for _, task := range j.c.TasksByKey() {
		if task.Status == model.Pending && !task.Foreign && !told[task.Key] && !told[task.Job.Key] {
			j.fatalf("%s waits, and nothing says why", task.Key)
		}
	}
}

// TestPlansKeepPromises checks plans in all worlds. A plan overfills no node, starts gangs as a whole, keeps quotas, and binds nothing
// twice. It gives each waiting pod a reason.
func TestPlansKeepPromises(t *testing.T) {
	t.Parallel()
	for _, p := range policies(t) {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(t *rapid.T) {
				w := drawWorld(t)
				r := run{world: w, policies: p.policies[:1]}
				r.after = func(c *model.Cluster, d *engine.Decider, plan *model.Plan) {
					j := newJudge(t, w, c, d, plan)
					j.room()
					j.reasons()
					if p.name != "launch" {
						j.gangs()
					}
					if p.name != "launch" && p.name != "taking back gangs" { // these do not state what queues are due
						j.quotas()
					}
					if p.name == "paused" && len(plan.Binds)+len(plan.Admits)+len(plan.Pipelines)+len(plan.Holds) > 0 {
						j.fatalf("a paused policy decided something")
					}
					j.again()
				}
				r.plans(t)
			})
		})
	}
}

// again decides once more without a change. Bindings stay, and no pod is bound a second time.
func (j *judge) again() {
	plan := j.d.Cycle(j.plan.Now)
	for _, b := range plan.Binds {
		if first, twice := j.bound[b.Task]; twice {
			j.fatalf("%s was bound to %s, and again to %s", b.Task, first.Node, b.Node)
		}
	}
	for task, b := range j.bound {
		if t := j.c.Tasks[task]; t.Status != model.Binding || t.NodeName != b.Node {
			j.fatalf("%s was bound to %s, then it is %s on %q", task, b.Node, t.Status, t.NodeName)
		}
	}
	if err := j.c.Check(); err != nil {
		j.fatalf("%v", err)
	}
	j.plan.Binds = append(j.plan.Binds, plan.Binds...) // they start together with the others
}

// TestHeldTasksWaitForTheirGang checks a pod that is held for a gang that waits for room. The pod is not bound just because backfill places
// a pod of the gang without requests: that pod is held too.
func TestHeldTasksWaitForTheirGang(t *testing.T) {
	t.Parallel()
	c := model.NewCluster(model.Options{Volumes: volume.New})
	pod := func(name, requests string, edit func(p *corev1.Pod)) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "a", Annotations: map[string]string{model.GroupAnnotation: "g"}}}
		p.Spec = corev1.PodSpec{SchedulerName: "celsius", Containers: []corev1.Container{
			{Resources: corev1.ResourceRequirements{Requests: list(requests)}},
		}}
		edit(p)
		return p
	}
	waits := func(*corev1.Pod) {}
	leaves := func(p *corev1.Pod) {
		p.Spec.NodeName, p.Status.Phase, p.DeletionTimestamp = "n", corev1.PodRunning, new(at(60))
	}
	allocatable := list("cpu=4 memory=8Gi pods=8")
	for _, o := range []any{
		&v1beta1.Queue{ObjectMeta: metav1.ObjectMeta{Name: "q"}, Spec: v1beta1.QueueSpec{Weight: 1}},
		&v1beta1.PodGroup{ObjectMeta: metav1.ObjectMeta{Name: "g", Namespace: "a"}, Spec: v1beta1.PodGroupSpec{Queue: "q", MinMember: 4}},
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}, Status: corev1.NodeStatus{Allocatable: allocatable, Capacity: allocatable}},
		pod("empty", "", waits), pod("one", "cpu=1", waits), pod("two", "cpu=1", waits), pod("three", "cpu=1", waits),
		pod("old", "cpu=2", leaves),
	} {
		for _, err := range c.Apply(model.Delta{Object: o}) {
			t.Fatal(err)
		}
	}
	plan := engine.Decide(c, policies(t)[0].policies[0], at(100).Time)
	tasks := func(binds []model.Bind) (out []string) {
		for _, b := range binds {
			out = append(out, b.Task)
		}
		return out
	}
	got := [][]string{tasks(plan.Binds), tasks(plan.Holds), tasks(plan.Pipelines)}
	if diff := gocmp.Diff([][]string{nil, {"a/one", "a/three", "a/empty"}, {"a/two"}}, got); diff != "" {
		t.Errorf("bound, held and promised (-want +got):\n%s", diff)
	}
}

// TestRoomIsUsed checks that every pod is bound in the first cycle, if all have room and nothing prevents it.
func TestRoomIsUsed(t *testing.T) {
	t.Parallel()
	all := policies(t)
	for _, p := range all[:2] {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(t *rapid.T) {
				w, pods := drawSimpleWorld(t)
				r := run{world: w, policies: p.policies[:1]}
				wanted := pods
				r.after = func(_ *model.Cluster, _ *engine.Decider, plan *model.Plan) {
					now := wanted
					wanted = 0 // in later cycles
					if len(plan.Binds) != now || len(plan.Waits) > 0 {
						w.Log(t)
						t.Fatalf("%d of %d pods are bound\n%s", len(plan.Binds), pods, written(t, plan))
					}
				}
				r.plans(t)
			})
		})
	}
}
