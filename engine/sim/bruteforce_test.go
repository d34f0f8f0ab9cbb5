package sim

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"

	"github.com/celsius-scheduler/celsius/engine"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/engine/sim/manifest"
	"github.com/celsius-scheduler/celsius/engine/volume"
)

// small is a world in which a test can try every set of victims. It has up to 4 nodes, up to 5 jobs with running pods, and one waiting job.
// Pods request only cpu and memory. The pods of one job may request different amounts.
type small struct {
	idle  []asked // idle resources by node
	pods  []running
	least map[string]int // number of pods that a job must keep
	wait  struct {
		pods, min, priority int
		each                asked
	}
	other bool // the waiting job is in another queue than the others
	text  string
}

type asked struct{ cpu, memory int }

func (a asked) String() string { return fmt.Sprintf("cpu: %d, memory: %dGi", a.cpu, a.memory) }

func (a asked) fits(b asked) bool { return b.cpu <= a.cpu && b.memory <= a.memory }

func (a asked) add(b asked, times int) asked {
	return asked{a.cpu + times*b.cpu, a.memory + times*b.memory}
}

func drawAmounts(t *rapid.T, most int) asked {
	return asked{rapid.IntRange(1, most).Draw(t, "cpu"), rapid.IntRange(1, most).Draw(t, "memory")}
}

type running struct {
	job, task      string
	node, priority int
	asks           asked
}

func drawSmall(t *rapid.T, other bool) *small {
	w := &small{least: map[string]int{}, other: other}
	var nodes, jobs strings.Builder
	for i := range rapid.IntRange(1, 4).Draw(t, "nodes") {
		w.idle = append(w.idle, drawAmounts(t, 4))
		fmt.Fprintf(&nodes, "- {name: n%d, %v}\n", i, w.idle[i])
	}
	for i := range rapid.IntRange(3, 5).Draw(t, "jobs") {
		name, priority := fmt.Sprintf("j%d", i), rapid.IntRange(0, 2).Draw(t, "priority")
		var tasks []string
		for k := range rapid.IntRange(1, 3).Draw(t, "pods") {
			n, asks := rapid.IntRange(0, len(w.idle)-1).Draw(t, "node"), drawAmounts(t, 2)
			if w.idle[n].fits(asks) {
				w.idle[n] = w.idle[n].add(asks, -1)
				w.pods = append(w.pods, running{name, fmt.Sprintf("t%d", k), n, priority, asks})
				tasks = append(tasks, fmt.Sprintf("{name: t%d, min: 0, %v, node: n%d}", k, asks, n))
			}
		}
		if len(tasks) == 0 {
			continue
		}
		w.least[name] = rapid.IntRange(0, len(tasks)).Draw(t, "min")
		fmt.Fprintf(&jobs, "- {name: %s, queue: lent, priority: p%d, min: %d, tasks: [%s]}\n", name, priority, w.least[name],
			strings.Join(tasks, ", "))
	}
	w.wait.pods, w.wait.each = rapid.IntRange(1, 4).Draw(t, "waiting"), drawAmounts(t, 3)
	w.wait.min = rapid.IntRange(1, w.wait.pods).Draw(t, "least")
	w.wait.priority = rapid.IntRange(1, 2).Draw(t, "priority")
	queue := "lent"
	if w.other {
		queue = "due"
	}
	w.text = fmt.Sprintf("apiVersion: sim.celsius.dev/v1alpha1\nkind: World\npriorityClasses: {p0: 0, p1: 10, p2: 20}\n"+
		"queues: [{name: lent}, {name: due}]\nnodes:\n%sjobs:\n%s- {name: wait, queue: %s, priority: p%d, replicas: %d, min: %d, %v}\n",
		nodes.String(), jobs.String(), queue, w.wait.priority, w.wait.pods, w.wait.min, w.wait.each)
	return w
}

// room returns how many of the waiting pods fit after a set of running pods is evicted.
func (w *small) room(gone uint) (room int) {
	for n, idle := range w.idle {
		for i, p := range w.pods {
			if p.node == n && gone&(1<<i) != 0 {
				idle = idle.add(p.asks, 1)
			}
		}
		room += min(idle.cpu/w.wait.each.cpu, idle.memory/w.wait.each.memory)
	}
	return min(room, w.wait.pods)
}

// legal reports whether a set may be evicted. It may contain only pods of jobs with lower priority in the same queue, and of no job more
// than it can lose.
func (w *small) legal(gone uint) bool {
	left := map[string]int{}
	for i, p := range w.pods {
		if gone&(1<<i) == 0 {
			left[p.job]++
		} else if !w.other && p.priority >= w.wait.priority {
			return false
		}
	}
	for i, p := range w.pods {
		if gone&(1<<i) != 0 && left[p.job] < w.least[p.job] {
			return false
		}
	}
	return true
}

// TestEveryWayIsTried compares the search for victims with all sets of victims, in small worlds. Each victim may be evicted, all of them
// are needed, and if any set is sufficient, the search finds one.
func TestEveryWayIsTried(t *testing.T) {
	t.Parallel()
	p := takerPolicy(t, []string{
		"{name: priority}, {name: gang}, {name: predicates}, {name: house, inline: {reclaimable: [{name: any, expression: 'true'}]}}",
	})
	var ways, missed atomic.Int64
	t.Cleanup(func() {
		of, n := ways.Load(), missed.Load()
		if t.Logf("in %d worlds there was a way, of which %d were missed", of, n); n > 0 {
			t.Error("none may be")
		}
	})
	checkWorlds(t, func(t *rapid.T) {
		w := drawSmall(t, rapid.Bool().Draw(t, "other queue"))
		plan := w.cycle(t, p)
		gone, start := w.gone(plan), len(plan.Binds)+len(plan.Pipelines)
		if problem := w.problem(gone, start); problem != "" {
			t.Fatalf("%s\n%s: %+v", w.text, problem, plan.Evicts)
		}
		if gone != 0 {
			ways.Add(1)
		}
		if set := w.way(w.wait.min); start == 0 && set != 0 {
			ways.Add(1)
			missed.Add(1)
			t.Logf("%s\nmissed: %b of %v", w.text, set, w.pods)
		}
	})
}

// checkWorlds checks 20 worlds in each check of rapid, because few of them have only one way.
func checkWorlds(t *testing.T, check func(t *rapid.T)) {
	t.Helper()
	rapid.Check(t, func(t *rapid.T) {
		for range 20 {
			check(t)
		}
	})
}

func (w *small) cycle(t *rapid.T, p *policy.Policy) *model.Plan {
	world := NewWorld(Options{Volumes: volume.New, Decide: new(engine.Decider).Decide})
	world.Policy = p
	if _, issues := world.Load(manifest.Source{Name: "world.yaml", Data: []byte(w.text)}); issues.Err() != nil {
		t.Fatalf("%s\n%v", w.text, issues)
	}
	plan, err := world.Cycle()
	if err != nil {
		t.Fatal(err)
	}
	return plan
}

// gone returns the victims of a plan as a set.
func (w *small) gone(plan *model.Plan) (set uint) {
	for i, p := range w.pods {
		if slices.ContainsFunc(plan.Evicts, func(e model.Evict) bool { return e.Task == fmt.Sprintf("default/%s-%s-0", p.job, p.task) }) {
			set |= 1 << i
		}
	}
	return set
}

// problem returns what is wrong with evicting a set of victims so that start pods can start; "": nothing.
func (w *small) problem(gone uint, start int) string {
	if !w.legal(gone) || gone != 0 && start < w.wait.min || start > w.room(gone) {
		return "may not go, or for nothing"
	}
	for i := range w.pods {
		if bit := uint(1) << i; gone&bit != 0 && w.legal(gone&^bit) && w.room(gone&^bit) >= start {
			return "one too many goes"
		}
	}
	return ""
}

// way returns a set that is sufficient for start pods; 0: none.
func (w *small) way(start int) uint {
	for set := uint(1); set < 1<<len(w.pods); set++ {
		if w.legal(set) && w.room(set) >= start {
			return set
		}
	}
	return 0
}

// ofGangs checks a set by the rules of gangs. The result legal means that it may be evicted. All its pods are in the same queue, of jobs
// with lower priority. Of each job it contains the pods that the job can lose, or all pods. The result most is the importance of the most
// important victim. Whole jobs count more than pods that a job can lose, and both are ordered by cpu. The result entire means that the set
// contains all pods of its jobs.
func (w *small) ofGangs(gone uint) (most int, entire, legal bool) {
	left := map[string]int{}
	for i, p := range w.pods {
		if gone&(1<<i) == 0 {
			left[p.job]++
		}
	}
	most, entire = -1, true
	for i, p := range w.pods {
		if gone&(1<<i) == 0 {
			continue
		}
		matters := p.asks.cpu
		if left[p.job] < w.least[p.job] {
			matters += 10
		}
		if p.priority >= w.wait.priority || matters >= 10 && left[p.job] > 0 {
			return 0, false, false
		}
		most, entire = max(most, matters), entire && left[p.job] == 0
	}
	return most, entire, true
}

// problemOfGangs returns what is wrong with a set of victims after which start pods can start; "": nothing.
func (w *small) problemOfGangs(gone uint, start int) string {
	most, _, legal := w.ofGangs(gone)
	if !legal || gone != 0 && start < w.wait.min || start > w.room(gone) {
		return "may not go, or for nothing"
	}
	for set := uint(1); gone != 0 && set < 1<<len(w.pods); set++ {
		switch worst, entire, legal := w.ofGangs(set); {
		case !legal || w.room(set) < start:
		case entire && worst < most:
			return fmt.Sprintf("somebody goes who matters more than all of %b", set)
		case set != gone && set&^gone == 0:
			return fmt.Sprintf("%b is enough", set)
		}
	}
	return ""
}

// TestEveryWayOfGangsIsTried compares gangpreempt with all sets of pods that gangs can lose, and of whole gangs. No subset of the victims
// is sufficient. No set of whole jobs with a less important most important part is sufficient. If any set is sufficient, one is found.
func TestEveryWayOfGangsIsTried(t *testing.T) {
	t.Parallel()
	p := takerPolicyOf(t, "[enqueue, allocate, gangpreempt]", []string{
		"{name: priority}, {name: gang}, {name: predicates}, " +
			"{name: house, inline: {victimCost: [{name: cpu, fold: max, expression: double(victim.request.cpu)}]}}",
	})
	checkWorlds(t, func(t *rapid.T) {
		w := drawSmall(t, false)
		plan := w.cycle(t, p)
		gone, start := w.gone(plan), len(plan.Binds)+len(plan.Pipelines)
		if problem := w.problemOfGangs(gone, start); problem != "" {
			t.Fatalf("%s\n%b goes of %v for %d: %s", w.text, gone, w.pods, start, problem)
		}
		for set := uint(1); start == 0 && set < 1<<len(w.pods); set++ {
			if _, _, legal := w.ofGangs(set); legal && w.room(set) >= w.wait.min {
				t.Fatalf("%s\nmissed: %b of %v", w.text, set, w.pods)
			}
		}
	})
}
