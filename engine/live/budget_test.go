package live

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	batchv1alpha1 "github.com/celsius-scheduler/celsius/crds/batch/v1alpha1"
	"github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
	"github.com/celsius-scheduler/celsius/engine/explain"
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/engine/session"
	"github.com/celsius-scheduler/celsius/engine/whatif"
)

// spreading adds a number of terms of spread and anti-affinity to a pod, each for different labels.
func spreading(spec *corev1.PodSpec, of string, terms int) {
	spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{}}
	for i := range terms {
		about := &metav1.LabelSelector{MatchLabels: map[string]string{fmt.Sprintf("experiment-%s-%d", of, i): "ablation"}}
		if i%2 == 0 {
			spec.TopologySpreadConstraints = append(spec.TopologySpreadConstraints, corev1.TopologySpreadConstraint{
				MaxSkew: 1, TopologyKey: corev1.LabelHostname, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: about,
			})
			continue
		}
		spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution = append(
			spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution,
			corev1.PodAffinityTerm{TopologyKey: corev1.LabelHostname, LabelSelector: about})
	}
}

// askedWorld returns a cluster of 2,000 nodes with 200 running jobs, after two cycles.
func askedWorld(t *testing.T) *rig {
	t.Helper()
	r := newRig(t)
	r.looking = newLooking()
	for i := range 2000 {
		r.server.put(testNode(fmt.Sprintf("gpu-%04d", i), "16"))
	}
	r.server.put(testQueue("default"))
	for i := range 200 {
		name := fmt.Sprintf("train-%d", i)
		r.server.put(testGroup(name, 1), testPod(name+"-0", name, "2"))
	}
	r.server.deliver(-1)
	r.once(time.Now())
	for r.work() {
	}
	r.server.deliver(-1)
	r.once(time.Now())
	return r
}

// searchJob returns a change that adds a job with the given number of roles, of pods per role and of terms per pod. Each role has its own
// terms.
func searchJob(roles, replicas, terms int) *whatif.Change {
	job := &batchv1alpha1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "hyperparameter-search"}}
	job.Spec.Queue, job.Spec.MinAvailable = "default", 1
	for i := range roles {
		task := batchv1alpha1.TaskSpec{Name: fmt.Sprintf("worker-%d", i), Replicas: int32(replicas)}
		task.Template.Spec.Containers = []corev1.Container{{Name: "main", Image: "example.org/train", Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")},
		}}}
		if spreading(&task.Template.Spec, fmt.Sprint(i), terms); terms == 0 {
			task.Template.Spec.Affinity = nil
		}
		job.Spec.Tasks = append(job.Spec.Tasks, task)
	}
	return &whatif.Change{Add: []metav1.Object{job}}
}

// remembered is the state of the loop that its next cycle starts from.
type remembered struct {
	session   *session.Session
	clock     uint64 // counts changes of the model, including tentative ones
	evaluated uint64 // rows, since the session began
}

func (r *rig) remembered() remembered {
	out := remembered{session: r.decider.Session(), clock: r.cluster.Clock}
	for _, rule := range out.session.Policy().All {
		out.evaluated += out.session.Evaluated(rule)
	}
	return out
}

// A question holds the loop only for a snapshot. This is true of the first question, of later ones, of one about another policy, and of one
// that is broken off. A question changes nothing that the loop remembers. So the next cycle evaluates as many rows as without questions,
// and decides the same. The job with 2,000 pods took minutes in the loop.
func TestQuestionsRunOutsideOfTheLoop(t *testing.T) { //nolint:gocyclo // one story
	asked, unasked := askedWorld(t), askedWorld(t)
	other := loaded(t, strings.Replace(askingAnother, "NAME", "another", 1))
	var asker whatif.Asker
	for _, q := range []struct {
		name    string
		change  *whatif.Change
		patient time.Duration
		broken  bool
	}{
		{name: "first question", change: searchJob(1, 20, 0), patient: time.Minute},
		{name: "second question", change: searchJob(1, 20, 0), patient: time.Minute},
		{name: "another policy", change: &whatif.Change{Policy: other}, patient: time.Minute},
		{name: "2,000 pods with 60 terms each", change: searchJob(100, 20, 60), patient: 300 * time.Millisecond, broken: true},
		{name: "after a question that was broken off", change: searchJob(1, 20, 0), patient: time.Minute},
	} {
		t.Run(q.name, func(t *testing.T) {
			before, readings := asked.remembered(), 0
			asked.clock = func() time.Time { // each reading takes a millisecond
				readings++
				return time.UnixMilli(int64(readings))
			}
			ctx, stop := context.WithTimeout(t.Context(), q.patient)
			defer stop()
			var answer *whatif.Answer
			var wrong error
			held, err := asked.ask(ctx, func(x *explain.Cycle) {
				answer, wrong = asker.Ask(whatif.Asked{Session: x.Session, Now: time.Now()}, q.change)
			})
			t.Logf("the loop was held for %s and %d readings of the clock", held, readings)
			if held > 20*lookMost { // real time, on a machine with other work; it was minutes before
				t.Errorf("the loop was held for %s", held)
			}
			switch {
			case q.broken && (err == nil || !strings.Contains(err.Error(), "ask a smaller question")):
				t.Errorf("the answer is %v", err)
			case !q.broken && (err != nil || wrong != nil || answer == nil):
				t.Errorf("the answer is %v: %v, %v", answer, err, wrong)
			}
			if after := asked.remembered(); after != before {
				t.Errorf("the question changed what the loop remembers: %+v, before %+v", after, before)
			}
			if err := asked.cluster.Check(); err != nil {
				t.Error(err)
			}
		})
	}
	var plans [2]string
	var evaluated [2]uint64
	for i, r := range []*rig{asked, unasked} {
		r.server.put(testGroup("after", 2), testPod("after-0", "after", "2"), testPod("after-1", "after", "2"))
		r.server.deliver(-1)
		before := r.remembered()
		r.once(time.Now())
		after := r.remembered()
		if evaluated[i] = after.evaluated - before.evaluated; after.session != before.session {
			t.Error("the cycle began with a new session")
		}
		text, err := json.Marshal(r.plan.Binds)
		if err != nil || len(r.plan.Binds) != 2 {
			t.Fatalf("%v, binds %s", err, text)
		}
		plans[i] = string(text)
	}
	if plans[0] != plans[1] || evaluated[0] != evaluated[1] {
		t.Errorf("the decision differs after questions: %d evaluations, %s\nwithout: %d evaluations, %s", evaluated[0], plans[0], evaluated[1],
			plans[1])
	}
}

const askingAnother = `apiVersion: scheduling.celsius.dev/v1alpha1
kind: SchedulingPolicy
metadata: {name: NAME}
spec:
  pipeline: [enqueue, allocate]
  tiers:
  - name: only
    tables:
    - {name: gang}
    - {name: predicates}
    - {name: binpack}
`

// A snapshot reads the clock after every few hundred tasks, so that it ends within its budget on a cluster of any size. A snapshot that was
// broken off changes nothing, and the question asks for another one.
func TestSnapshotsAreBrokenOff(t *testing.T) {
	r := askedWorld(t)
	r.server.put(testGroup("inference", 1))
	for i := range 2000 {
		r.server.put(runningOn(testPod(fmt.Sprintf("inference-%d", i), "inference", "1"), fmt.Sprintf("gpu-%04d", i)))
	}
	r.server.deliver(-1)
	r.once(time.Now())
	before, readings, reading := r.remembered(), 0, 20*time.Millisecond
	r.clock = func() time.Time {
		readings++
		return time.UnixMilli(0).Add(time.Duration(readings) * reading)
	}
	ctx, stop := context.WithTimeout(t.Context(), time.Second)
	defer stop()
	_, err := r.ask(ctx, func(*explain.Cycle) { t.Error("the question got a model in spite of the budget") })
	if err == nil || !strings.Contains(err.Error(), "ask again when the scheduler has more CPU") {
		t.Errorf("the answer is %v", err)
	}
	readings, reading = 0, 0
	if _, err := r.ask(t.Context(), func(*explain.Cycle) {}); err != nil {
		t.Error(err)
	}
	if tasks := len(r.cluster.Tasks); tasks < 2000 || readings < tasks/512 {
		t.Errorf("the snapshot of %d tasks read the clock %d times", tasks, readings)
	}
	if after := r.remembered(); after != before {
		t.Errorf("the snapshots changed what the loop remembers: %+v, before %+v", after, before)
	}
}

// A question fails if it comes while another one has the turn, while a cycle runs, or before the first cycle. It succeeds when it is asked
// again.
func TestQuestionsAreAskedAgain(t *testing.T) {
	r := newRig(t)
	r.looking = newLooking()
	r.server.put(testNode("n1", "16"), testQueue("default"))
	r.server.deliver(-1)
	patience := func() context.Context {
		ctx, stop := context.WithTimeout(t.Context(), 10*time.Millisecond)
		t.Cleanup(stop)
		return ctx
	}
	refused := func(err error, words string) {
		t.Helper()
		if err == nil || err.Error() != words {
			t.Errorf("the answer is %v, want %s", err, words)
		}
	}
	again := func() {
		t.Helper()
		isAsked := false
		if _, err := r.ask(t.Context(), func(*explain.Cycle) { isAsked = true }); err != nil || !isAsked {
			t.Errorf("asked again, the answer is %v", err)
		}
	}
	_, err := r.ask(t.Context(), func(*explain.Cycle) {})
	refused(err, "there was no cycle yet; ask again")
	r.once(time.Now())
	again()
	refused(r.Look(patience(), func(*explain.Cycle) {}), "the scheduler is busy with a cycle; ask again") // the loop takes no question
	again()
	r.turn <- struct{}{}
	refused(r.Look(patience(), func(*explain.Cycle) {}), "other questions are being answered; ask again")
	<-r.turn
	again()
}

// BenchmarkQuestion measures the first question about a cluster of 10,000 nodes and 50,000 running pods. held-ms is the longest time for
// which a question holds the loop.
func BenchmarkQuestion(b *testing.B) {
	f := newFakeServer(b)
	p, issues := policy.Default()
	if issues.Err() != nil {
		b.Fatal(issues.Err())
	}
	r := newRigOf(f, p)
	r.looking = newLooking()
	f.put(testQueue("default"))
	for i := range 10_000 {
		node := fmt.Sprintf("gpu-%05d", i)
		group := testGroup(fmt.Sprintf("train-%d", i), 1)
		group.Status.Phase = v1beta1.PodGroupRunning
		f.put(testNode(node, "16"), group)
		for k := range 5 {
			f.put(runningOn(testPod(fmt.Sprintf("train-%d-%d", i, k), group.Name, "2"), node))
		}
	}
	f.deliver(-1)
	r.once(time.Now())
	for name, do := range map[string]func(x *explain.Cycle) error{
		"what-if": func(x *explain.Cycle) error {
			_, err := new(whatif.Asker).Ask(whatif.Asked{Session: x.Session, Now: time.Now()}, searchJob(1, 20, 0))
			return err //nolint:wrapcheck // a test
		},
		"explain": func(x *explain.Cycle) error {
			_, err := x.Object(explain.Job, "default", "train-77")
			return err //nolint:wrapcheck // a test
		},
	} {
		b.Run(name, func(b *testing.B) {
			var most time.Duration
			for b.Loop() {
				r.copied = nil
				var wrong error
				held, err := r.ask(b.Context(), func(x *explain.Cycle) { wrong = do(x) })
				if err != nil || wrong != nil {
					b.Fatal(err, wrong)
				}
				most = max(most, held)
			}
			b.ReportMetric(float64(most.Microseconds())/1000, "held-ms")
		})
	}
}

// Questions run while the loop schedules. The race detector finds data that they share with the loop.
func TestQuestionsRunDuringCycles(t *testing.T) {
	r := newRig(t)
	r.looking = newLooking()
	for i := range 20 {
		r.server.put(testNode(fmt.Sprintf("gpu-%02d", i), "16"))
	}
	r.server.put(testQueue("default"), testGroup("first", 1), testPod("first-0", "first", "2"))
	r.server.deliver(-1)
	r.once(time.Now())
	other := loaded(t, strings.Replace(askingAnother, "NAME", "another", 1))
	const questions = 12
	answered := make(chan error, 1)
	go func() {
		var asker whatif.Asker
		for i := range questions {
			change := searchJob(1, 4, 4)
			if i%3 == 2 {
				change = &whatif.Change{Policy: other}
			}
			var wrong error
			err := r.Look(t.Context(), func(x *explain.Cycle) {
				if _, wrong = asker.Ask(whatif.Asked{Session: x.Session, Now: time.Now()}, change); wrong == nil {
					_, wrong = x.Object(explain.Job, "default", "first")
				}
			})
			if err := errors.Join(err, wrong); err != nil {
				answered <- err
				return
			}
		}
		answered <- nil
	}()
	for cycle := 0; ; cycle++ {
		select {
		case q := <-r.looks:
			r.look(q)
		case err := <-answered:
			if err != nil || cycle < questions {
				t.Errorf("%d cycles, and the answer is %v", cycle, err)
			}
			return
		default:
			name := fmt.Sprintf("train-%d", cycle)
			r.server.put(testGroup(name, 1), testPod(name+"-0", name, "1"))
			r.server.deliver(-1)
			r.once(time.Now())
			for r.work() {
			}
			time.Sleep(time.Millisecond)
		}
	}
}
