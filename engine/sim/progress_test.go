package sim

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
	"github.com/celsius-scheduler/celsius/engine"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/engine/proof"
	"github.com/celsius-scheduler/celsius/engine/sim/manifest"
	"github.com/celsius-scheduler/celsius/engine/volume"
)

// claimants contains policies by which jobs take resources from each other: pipelines, and tables by tier.
var claimants = map[string][]string{
	"shipped": {
		"preempt, reclaim", "{name: priority}, {name: gang}, {name: conformance}, {name: pdb}",
		"{name: overcommit}, {name: drf}, {name: predicates}, {name: proportion}, {name: nodeorder}",
	},
	"reclaim first": {
		"reclaim, preempt", "{name: priority}, {name: gang}, {name: conformance}, {name: pdb}",
		"{name: overcommit}, {name: drf}, {name: predicates}, {name: proportion}, {name: nodeorder}",
	},
	"one tier": {
		"preempt, reclaim",
		"{name: priority}, {name: gang}, {name: conformance}, {name: pdb}, {name: drf}, {name: predicates}, {name: proportion}",
	},
	"capacities": {
		"preempt, reclaim", "{name: priority}, {name: gang}, {name: conformance}, {name: pdb}, {name: predicates}, {name: capacity}",
	},
	"a tree": {
		"reclaim", "{name: priority}, {name: gang}, {name: conformance}, {name: pdb}, {name: predicates}, " +
			"{name: capacity, params: {hierarchy: true, ancestorReclaimLevel: 1}}",
	},
	"shares": {"preempt, reclaim", "{name: gang}, {name: conformance}, {name: pdb}, {name: drf}, {name: predicates}, {name: proportion}"},
	"gangs": {
		"gangpreempt, gangreclaim", "{name: priority}, {name: gang}, {name: conformance}, {name: pdb}, {name: predicates}, {name: proportion}",
	},
	"gangs by capacities": {
		"gangpreempt, gangreclaim", "{name: priority}, {name: gang}, {name: conformance}, {name: pdb}, {name: predicates}, {name: capacity}, " +
			"{name: truce}",
	},
}

// unchanging draws a world in which all objects exist from the beginning, and no pod ends by itself. Residents fill the nodes, and other
// jobs wait. Some pods are protected.
type unchanging struct {
	*rapid.T
	strings.Builder
	free []amounts // free resources by node
}

// amounts contains cores, and gibibytes of memory.
type amounts struct{ cpu, memory int }

func (w *unchanging) upTo(label string, least, most int) int {
	return rapid.IntRange(least, most).Draw(w.T, label)
}

func (w *unchanging) pick(label string, from ...string) string {
	return rapid.SampledFrom(from).Draw(w.T, label)
}

func (w *unchanging) line(format string, args ...any) {
	w.WriteString(fmt.Sprintf(format, args...) + "\n")
}

// drawUnchanging draws the text of such a world. With tree, q1 and q2 are the parents of the other queues.
func drawUnchanging(t *rapid.T, tree bool) string {
	w := unchanging{T: t}
	w.line("apiVersion: sim.celsius.dev/v1alpha1\nkind: World\npriorityClasses: {low: 1, high: 5, system-node-critical: 9}\nnodes:")
	for i := range w.upTo("nodes", 1, 4) {
		w.free = append(w.free, amounts{w.upTo("cpu of a node", 2, 5), w.upTo("memory of a node", 2, 5)})
		w.line("- {name: n%d, cpu: %d, memory: %dGi}", i, w.free[i].cpu, w.free[i].memory)
	}
	w.line("queues:")
	queues := w.upTo("queues", 1, 4)
	if tree {
		w.line("- {name: above1, deserved: {cpu: 4, memory: 4Gi}}\n- {name: above2, deserved: {cpu: 4, memory: 4Gi}}")
	}
	for i := range queues {
		more := ""
		if tree {
			more = ", parent: " + w.pick("parent", "above1", "above2", "root")
		}
		if w.upTo("not reclaimable", 0, 5) == 0 {
			more += ", reclaimable: false"
		}
		w.line("- {name: q%d, weight: %d, deserved: {cpu: %d, memory: %dGi}%s}", i, w.upTo("weight", 1, 3), w.upTo("deserved cpu", 0, 4),
			w.upTo("deserved memory", 0, 4), more)
	}
	w.line("jobs:")
	residents := w.upTo("residents", 2, 5)
	for i := range residents + w.upTo("others", 1, 4) {
		w.job(fmt.Sprintf("j%d", i), fmt.Sprintf("q%d", w.upTo("queue", 0, queues-1)), i < residents)
	}
	if w.upTo("budget", 0, 2) == 0 {
		w.line("---\napiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: held, namespace: default}\n"+
			"spec: {minAvailable: %d, selector: {matchLabels: {app: held}}}", w.upTo("available", 0, 3))
	}
	return w.String()
}

// job draws a job of up to four pods. The pods of a resident are on nodes, as many as fit.
func (w *unchanging) job(name, queue string, resident bool) {
	asks := amounts{w.upTo("cpu of a pod", 0, 2), w.upTo("memory of a pod", 0, 2)}
	class := w.pick("class", "", "low", "high", "high")
	if resident {
		class = w.pick("class of a resident", "", "low", "low", "high")
	}
	pod := fmt.Sprintf("cpu: %d, memory: %dGi, labels: {app: %s}", asks.cpu, asks.memory, w.pick("app", "free", "free", "held"))
	switch w.upTo("protected", 0, 9) {
	case 0:
		pod += `, annotations: {volcano.sh/preemptable: "false"}`
	case 1:
		pod += ", priority: system-node-critical"
	default:
		pod += fmt.Sprintf(", priority: %q", class)
	}
	var tasks []string
	for k := range w.upTo("pods", 1, 4) {
		where := ""
		if resident {
			at := slices.IndexFunc(w.free, func(room amounts) bool { return room.cpu >= asks.cpu && room.memory >= asks.memory })
			if at < 0 {
				break
			}
			w.free[at] = amounts{w.free[at].cpu - asks.cpu, w.free[at].memory - asks.memory}
			where = fmt.Sprintf(", node: n%d", at)
		}
		tasks = append(tasks, fmt.Sprintf("{name: t%d, %s%s}", k, pod, where))
	}
	if len(tasks) > 0 {
		w.line("- {name: %s, queue: %s, min: %d, priority: %q, tasks: [%s]}", name, queue, w.upTo("min", 0, len(tasks)), class,
			strings.Join(tasks, ", "))
	}
}

// states contains the states of a world: how many pods of each job are on each node. Pods of one job are alike.
type states struct {
	seen map[string]int
	last string
	n    int
	back []string
}

func (s *states) add(c *model.Cluster) {
	count := map[string]int{}
	for _, t := range c.TasksByKey() {
		if t.Status.HoldsResources() || t.Status == model.Releasing && t.Node != model.NoNode {
			count[fmt.Sprintf("%s on %s %v", t.Job.Key, t.NodeName, t.Status == model.Releasing)]++
		}
	}
	var text strings.Builder
	for _, k := range slices.Sorted(maps.Keys(count)) {
		fmt.Fprintf(&text, "%d of %s\n", count[k], k)
	}
	s.n++
	if text.String() == s.last {
		return
	}
	if at, known := s.seen[text.String()]; known {
		s.back = append(s.back, fmt.Sprintf("after cycle %d it is as after cycle %d:\n%s", s.n, at, text.String()))
	}
	s.last = text.String()
	s.seen[s.last] = s.n
}

// played is the result of a world's run.
type played struct {
	world    string
	evicted  map[string]int // number of evicted pods by action
	whole    bool           // a whole gang was evicted
	last     int            // the last cycle with an eviction
	wrong    []string
	needless int // evictions for a gang that a later action made unnecessary
	states   states
}

// play runs a world by the clock for this number of cycles, and checks each eviction against the objects.
func play(t *rapid.T, p *policy.Policy, world string, cycles int) *played {
	out := &played{world: world, evicted: map[string]int{}, states: states{seen: map[string]int{}}}
	decide := new(proof.Run).Checked(new(engine.Decider).Decide, func(_ *model.Plan, found []proof.Violation) {
		for _, v := range found {
			switch v.Kind {
			case proof.AtEnd, proof.Lost:
			case proof.Needed:
				out.needless++
			default:
				out.wrong = append(out.wrong, v.String())
			}
		}
	})
	w := NewWorld(Options{Volumes: volume.New, Decide: func(c *model.Cluster, p *policy.Policy, now time.Time) *model.Plan {
		plan := decide(c, p, now)
		out.states.add(c)
		for _, e := range plan.Evicts {
			out.evicted[e.Action]++
			out.last, out.whole = out.states.n, out.whole || e.Whole
			out.evictedRightly(c, &e)
		}
		return plan
	}})
	w.Policy = p
	if _, issues := w.Load(manifest.Source{Name: "world.yaml", Data: []byte(world)}); issues.Err() != nil {
		t.Fatalf("%s\n%v", world, issues)
	}
	if _, err := w.RunFor(RunOptions{Until: w.Now().Add(25 * time.Minute), Cycles: cycles}); err != nil {
		t.Fatal(err)
	}
	out.wrong = append(out.wrong, out.states.back...)
	return out
}

// evictedRightly finds protected victims, and gangs that an eviction breaks.
func (x *played) evictedRightly(c *model.Cluster, e *model.Evict) {
	task := c.Tasks[e.Task]
	if task.Object.Annotations["volcano.sh/preemptable"] == "false" || task.Object.Spec.PriorityClassName == "system-node-critical" {
		x.wrong = append(x.wrong, e.Task+" is protected, and goes")
	}
	spec := task.Job.Queue.Object.(*v1beta1.Queue).Spec
	if e.Queue != e.ForQueue && spec.Reclaimable != nil && !*spec.Reclaimable {
		x.wrong = append(x.wrong, e.Task+" goes, and nothing may be taken from its queue")
	}
	if left := task.Job.Ready(); left > 0 && left < task.Job.MinMember {
		x.wrong = append(x.wrong, fmt.Sprintf("%s goes, and of the %d that its gang needs %d are left", e.Task, task.Job.MinMember, left))
	}
}

// TestEvictionsMakeProgress runs worlds in which no object is created and no pod ends. Each eviction is as its plan states, no protected
// pod is evicted, and no gang is broken. No state occurs twice, and no pod is evicted after 20 cycles.
func TestEvictionsMakeProgress(t *testing.T) {
	t.Parallel()
	var all, evicting, whole, needless, latest atomic.Int64
	by := map[string]*atomic.Int64{"preempt": {}, "reclaim": {}, "gangpreempt": {}, "gangreclaim": {}}
	t.Cleanup(func() {
		t.Logf("%d worlds; in %d somebody is evicted (by preempt in %d, reclaim %d, gangpreempt %d, gangreclaim %d), in %d gangs as a whole; "+
			"the last in cycle %d; %d were made needless by a later action", all.Load(), evicting.Load(), by["preempt"].Load(), by["reclaim"].Load(),
			by["gangpreempt"].Load(), by["gangreclaim"].Load(), whole.Load(), latest.Load(), needless.Load())
		if all.Load() >= 800 && (evicting.Load() < 40 || needless.Load() > 4+evicting.Load()/50) {
			t.Error("these are too few that evict, or too many that are needless")
		}
	})
	for name, tiers := range claimants {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := takerPolicyOf(t, "[enqueue, allocate, "+tiers[0]+", backfill]", tiers[1:])
			rapid.Check(t, func(t *rapid.T) {
				x := play(t, p, drawUnchanging(t, name == "a tree"), 30)
				all.Add(1)
				needless.Add(int64(x.needless))
				for action := range x.evicted {
					by[action].Add(1)
				}
				if x.whole {
					whole.Add(1)
				}
				if len(x.evicted) > 0 {
					evicting.Add(1)
				}
				for old := latest.Load(); old < int64(x.last) && !latest.CompareAndSwap(old, int64(x.last)); old = latest.Load() {
				}
				if x.last > 20 {
					x.wrong = append(x.wrong, fmt.Sprintf("somebody is still evicted in cycle %d", x.last))
				}
				if len(x.wrong) > 0 {
					t.Fatalf("%s\n%s", x.world, strings.Join(x.wrong, "\n"))
				}
			})
		})
	}
}

// dueWithin is the maximum number of cycles until a queue has its deserved share: one that evicts, those while pods terminate, and one that
// places. A few more are for queues that can reclaim only after others.
const dueWithin = 12

// TestQueuesGetTheirDue runs worlds in which all pods request one core. A queue that uses more than its deserved share gives it back within
// this number of cycles, as far as other queues wait for it. Meanwhile no queue at or below its deserved share loses a pod, and no queue
// takes more than its own share.
func TestQueuesGetTheirDue(t *testing.T) {
	t.Parallel()
	var all, evicting atomic.Int64
	t.Cleanup(func() {
		if t.Logf("%d worlds, somebody is evicted in %d", all.Load(), evicting.Load()); all.Load() >= 100 && evicting.Load() < all.Load()/10 {
			t.Error("these are too few")
		}
	})
	p := takerPolicyOf(t, "[enqueue, allocate, reclaim, backfill]", []string{"{name: priority}, {name: predicates}, {name: capacity}"})
	rapid.Check(t, func(t *rapid.T) {
		w, due, wants := drawDues(t)
		taken := 0
		var last *model.Cluster
		world := NewWorld(Options{Volumes: volume.New, Decide: func(c *model.Cluster, p *policy.Policy, now time.Time) *model.Plan {
			held := holding(c)
			plan := new(engine.Decider).Decide(c, p, now)
			last, taken = c, taken+len(plan.Evicts)
			for _, e := range plan.Evicts {
				if held[e.Queue]--; held[e.Queue] < due[e.Queue] {
					t.Fatalf("%s\n%s goes, and its queue had no more than its due of %d", w, e.Task, due[e.Queue])
				}
				if held[e.ForQueue]++; held[e.ForQueue] > due[e.ForQueue] {
					t.Fatalf("%s\n%s goes for %s, whose queue has more than its due of %d then", w, e.Task, e.For, due[e.ForQueue])
				}
			}
			return plan
		}})
		world.Policy = p
		if _, issues := world.Load(manifest.Source{Name: "world.yaml", Data: []byte(w)}); issues.Err() != nil {
			t.Fatalf("%s\n%v", w, issues)
		}
		if _, err := world.RunFor(RunOptions{Idle: true, Cycles: dueWithin}); err != nil {
			t.Fatal(err)
		}
		if all.Add(1); taken > 0 {
			evicting.Add(1)
		}
		for q, held := range holding(last) {
			wants[q] -= held
			due[q] -= held
		}
		for q := range due {
			if min(due[q], wants[q]) > 0 {
				t.Fatalf("%s\nqueue %s lacks %d of its due, and wants %d more", w, q, due[q], wants[q])
			}
		}
	})
}

// drawDues draws a world of queues whose deserved shares fit into the cluster. The first queue exists before the others. It also returns
// the deserved share and the demand of each queue, in cores.
func drawDues(t *rapid.T) (text string, due, wants map[string]int) {
	w := unchanging{T: t}
	w.line("apiVersion: sim.celsius.dev/v1alpha1\nkind: World\nnodes:")
	left := 0
	for i := range w.upTo("nodes", 1, 4) {
		n := w.upTo("cores", 1, 4)
		left += n
		w.line("- {name: n%d, cpu: %d}", i, n)
	}
	w.line("queues:")
	due, wants = map[string]int{}, map[string]int{}
	for i := range w.upTo("queues", 2, 4) {
		q := fmt.Sprintf("q%d", i)
		due[q] = w.upTo("due", 0, left)
		left -= due[q]
		w.line("- {name: %s, deserved: {cpu: %d}}", q, due[q])
	}
	w.line("jobs:")
	comes := ""
	for _, q := range slices.Sorted(maps.Keys(due)) {
		for k := range w.upTo("jobs", 1, 3) {
			n := w.upTo("pods", 1, 6)
			wants[q] += n
			w.line("- {name: %s-%d, queue: %s, replicas: %d, min: 0, cpu: 1%s}", q, k, q, n, comes)
		}
		comes = ", comes: 5s"
	}
	return w.String(), due, wants
}

// holding returns how many pods of each queue have a node and are not evicted.
func holding(c *model.Cluster) map[string]int {
	out := map[string]int{}
	for _, t := range c.TasksByKey() {
		if t.Status.HoldsResources() {
			out[t.Job.QueueName]++
		}
	}
	return out
}
