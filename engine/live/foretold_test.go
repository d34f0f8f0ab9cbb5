package live

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/engine/recording"
	"github.com/celsius-scheduler/celsius/engine/session"
	"github.com/celsius-scheduler/celsius/engine/whatif"
)

// TestForetold replays recordings. Before each cycle it asks a what-if question about each job that is new in the cycle. It compares the
// answers with the decisions of the cycle.
func TestForetold(t *testing.T) {
	p, issues := policy.Default()
	if issues.Err() != nil {
		t.Fatal(issues.Err())
	}
	evicts, folder, told := crowding(t), t.TempDir(), newForetold()
	for n := range 300 {
		told.play(t, filepath.Join(folder, strconv.Itoa(n)), p, func(r *rig) {
			rapid.Custom(func(t *rapid.T) bool {
				(&randomHistory{rig: r, t: t, bound: map[string]string{}}).play()
				return true
			}).Example(n)
		})
	}
	random := told.asked
	for n := range 2 {
		told.play(t, filepath.Join(folder, fmt.Sprint("crowd-", n)), evicts, func(r *rig) { crowd(r, uint64(n)) })
	}
	t.Logf("of %d jobs that came, %d of them to crowds, what-if told of %d what was decided: bindings of %d, evictions for %d, waits of %d",
		told.asked, told.asked-random, told.agreed, told.bound, told.evicted, told.waited)
	if 1000*told.agreed < 999*told.asked {
		t.Errorf("that is less than 99.9 %%:\n%s", strings.Join(told.differences[:min(len(told.differences), 5)], "\n"))
	}
	if random < 200 || told.asked < 1000 || told.evicted < 20 || told.bound < 100 || told.waited < 100 {
		t.Errorf("that is too little to say: %d of random histories", random)
	}
}

// foretold compares the answers of what-if questions with the decisions.
type foretold struct {
	player  recording.Player
	asker   whatif.Asker
	session *session.Session // the session of the last cycle; nil: none yet
	before  map[string]bool  // jobs with pods in the last cycle
	told    map[string]fate  // the answers about the next cycle

	asked, agreed          int
	bound, evicted, waited int // jobs with a question
	differences            []string
}

// fate contains the decisions about a job: the nodes of its pods, its victims, and why it waits.
type fate struct {
	Binds, Promised, Evicts map[string]string
	Waits                   []string
}

func newForetold() *foretold {
	x := &foretold{}
	x.player.Before, x.player.After = x.ask, x.compare
	return x
}

// play runs and records a history, and asks about it.
func (x *foretold) play(t *testing.T, folder string, p *policy.Policy, history func(r *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := newRigOf(newFakeServer(t), p)
		_, end := recordingTo(folder, oneFile, r.loop)
		defer end()
		history(r)
	})
	files, err := recording.Files(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		x.session, x.before = nil, nil
		if err := x.player.Play(file); err != nil {
			t.Fatal(err)
		}
	}
}

// ask is called before each cycle of the player.
func (x *foretold) ask(m *recording.Moment) error {
	x.told = map[string]fate{}
	if x.session == nil {
		return nil
	}
	for _, j := range m.Cluster.JobsByKey() {
		if x.before[j.Key] || !comes(j) {
			continue
		}
		change := &whatif.Change{Delete: []string{j.Key}, Add: objectsOf(j)}
		answer, err := x.asker.Ask(whatif.Asked{Session: x.session, Now: m.Recorded.Now}, change)
		if err != nil {
			return fmt.Errorf("ask about %s: %w", j.Key, err)
		}
		o := answer.Jobs[0]
		x.told[j.Key] = fateOf(j.Key, &model.Plan{Binds: o.Binds, Pipelines: o.Promised, Evicts: o.Evicts, Waits: o.Waits})
	}
	return nil
}

// comes reports whether all of a job is new: it is not admitted, and none of its pods has a node.
func comes(j *model.Job) bool {
	return len(j.Tasks) > 0 && !j.Orphan && j.Phase == model.PhasePending && !slices.ContainsFunc(j.Tasks, func(t *model.Task) bool {
		return t.Foreign || t.Status != model.Pending || t.NodeName != ""
	})
}

// objectsOf returns the PodGroup of a job and its pods. Their order is different from the original one, because the order must not matter.
func objectsOf(j *model.Job) []metav1.Object {
	group, _ := j.Object.(*v1beta1.PodGroup)
	out := []metav1.Object{group}
	for _, t := range slices.Backward(j.Tasks) {
		out = append(out, t.Object)
	}
	return out
}

// compare is called after each cycle of the player.
func (x *foretold) compare(m *recording.Moment) error {
	if !m.Same() {
		return fmt.Errorf("cycle %d is decided otherwise after questions", m.Recorded.Number)
	}
	for _, key := range slices.Sorted(maps.Keys(x.told)) {
		is := fateOf(key, m.Plan)
		x.asked++
		if diff := cmp.Diff(x.told[key], is); diff != "" {
			x.differences = append(x.differences, fmt.Sprintf("cycle %d, job %s (-told +decided):\n%s", m.Recorded.Number, key, diff))
		} else {
			x.agreed++
		}
		for n, some := range map[*int]bool{&x.bound: len(is.Binds) > 0, &x.evicted: len(is.Evicts) > 0, &x.waited: len(is.Waits) > 0} {
			if some {
				*n++
			}
		}
	}
	x.session, x.before = m.Session, map[string]bool{}
	for key, j := range m.Cluster.Jobs {
		x.before[key] = len(j.Tasks) > 0
	}
	return nil
}

// fateOf returns the fate of a job in a plan.
func fateOf(job string, plan *model.Plan) fate {
	f := fate{Binds: placesOf(job, plan.Binds), Promised: placesOf(job, plan.Pipelines), Evicts: map[string]string{}}
	for i := range plan.Evicts {
		if e := &plan.Evicts[i]; e.ForJob == job {
			f.Evicts[e.Task] = e.Node
		}
	}
	for i := range plan.Waits {
		if w := &plan.Waits[i]; w.Job == job {
			f.Waits = append(f.Waits, w.Task+": "+w.Why())
		}
	}
	slices.Sort(f.Waits)
	return f
}

func placesOf(job string, binds []model.Bind) map[string]string {
	out := map[string]string{}
	for i := range binds {
		if b := &binds[i]; b.Job == job {
			out[b.Task] = b.Node
		}
	}
	return out
}

// crowding returns a policy by which jobs wait, displace pods of their queue, and reclaim their deserved share from other queues.
func crowding(t *testing.T) *policy.Policy {
	t.Helper()
	return loaded(t, `
apiVersion: scheduling.celsius.dev/v1alpha1
kind: SchedulingPolicy
metadata: {name: crowding}
spec:
  pipeline: [enqueue, allocate, preempt, reclaim, backfill]
  tiers:
  - name: first
    tables: [{name: priority}, {name: gang}, {name: conformance}]
  - name: second
    tables: [{name: drf}, {name: predicates}, {name: proportion}, {name: nodeorder}]
`)
}

// crowd creates hundreds of gangs in two queues with two priorities on six nodes, a few per second, while pods end.
func crowd(r *rig, seed uint64) {
	f, random := r.server, rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // no secret
	f.put(&schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "high"}, Value: 10}, testQueue("default"), testQueue("other"))
	for i := range 6 {
		f.put(testNode(fmt.Sprint("n", i), "8"))
	}
	left := map[string]int{} // by pod: the rounds until it ends, or is gone
	for round := range 240 {
		for i := range random.IntN(4) {
			name, size := fmt.Sprintf("g%d-%d", round, i), 1+random.IntN(3)
			g := testGroup(name, int32(1+random.IntN(size)))
			if random.IntN(3) == 0 {
				g.Spec.Queue = "other"
			}
			if random.IntN(4) == 0 {
				g.Spec.PriorityClassName = "high"
			}
			f.put(g)
			for n := range size {
				p := testPod(fmt.Sprintf("%s-%d", name, n), name, strconv.Itoa(1+random.IntN(3)))
				p.Annotations[model.PreemptableKey] = "true"
				p.Spec.TerminationGracePeriodSeconds, p.Spec.PriorityClassName = new(int64(30)), g.Spec.PriorityClassName
				f.put(p)
			}
		}
		f.deliver(-1)
		r.tick()
		for r.work() {
		}
		for _, key := range slices.Sorted(maps.Keys(f.pods)) {
			f.age(key, left, random)
		}
		time.Sleep(time.Second)
	}
}

// age runs a pod as soon as it is bound, ends it after some rounds, and removes it two rounds after its deletion.
func (f *fakeServer) age(key string, left map[string]int, random *rand.Rand) {
	p := f.pods[key]
	_, counts := left[key]
	switch {
	case p.DeletionTimestamp != nil:
		if left[key] = min(left[key], 2) - 1; left[key] <= 0 {
			f.drop(p)
		}
	case p.Spec.NodeName == "":
	case p.Status.Phase == corev1.PodPending:
		left[key] = 1 + random.IntN(12)
		f.as(key, func(p *corev1.Pod) { p.Status.Phase = corev1.PodRunning })
	case counts:
		if left[key]--; left[key] <= 0 {
			delete(left, key)
			f.as(key, func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded })
		}
	}
}
