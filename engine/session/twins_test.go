package session

import (
	"fmt"
	"slices"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
	"github.com/celsius-scheduler/celsius/engine/extender"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/engine/volume"
)

// twins are two clusters with the same history. One has a session with caches, which sees each change as it comes. The other has a session
// that is created again before each look, so that it has no caches.
type twins struct {
	remembers, afresh side
	now               time.Time
	saves             int
	created           int
	look              func(x *side) any // returns what is compared after each step
}

// side is a cluster, its session, and the transaction of the present cycle.
type side struct {
	c     *model.Cluster
	s     *Session
	txn   *model.Txn
	saves []model.Savepoint

	queues *Queues
	jobs   *Heap[*model.Job]

	forgets bool // drops its caches at each look and each cycle
}

// begin starts a cycle, and creates the heaps that it walks.
func (x *side) begin(now time.Time) {
	if x.forgets {
		cycle := x.s.Cycle
		x.s = x.s.Renewed()
		x.s.Cycle = cycle
	}
	x.s.Begin(now)
	x.walk()
}

func (x *side) walk() {
	x.queues, x.jobs = x.s.Queues(), x.s.Jobs()
	for _, q := range x.c.QueuesByName() {
		x.queues.Put(q)
	}
	for _, j := range x.c.JobsByKey() {
		if !j.Orphan && j.Queue != nil {
			x.jobs.Put(j)
		}
	}
}

func newTwins(p *policy.Policy, look func(x *side) any) *twins {
	w := &twins{now: noon(), look: look}
	for _, x := range w.sides() {
		x.c = model.NewCluster(model.Options{Volumes: volume.New})
		x.txn = x.c.Begin()
		x.s = New(x.c, p)
	}
	w.afresh.forgets = true
	return w
}

func (w *twins) sides() []*side { return []*side{&w.remembers, &w.afresh} }

func (w *twins) both(do func(x *side)) {
	for _, x := range w.sides() {
		do(x)
	}
}

// apply closes the cycle, because a delta never comes within one, and begins the next.
func (w *twins) apply(t *rapid.T, deltas ...model.Delta) {
	w.saves = 0
	w.both(func(x *side) {
		x.saves = nil
		x.txn.Commit()
		x.c.CloseCycle()
		for _, err := range x.c.Apply(deltas...) {
			t.Fatal(err)
		}
		x.begin(w.now)
	})
}

func drawOf[T any](t *rapid.T, label string, values ...T) T {
	return rapid.SampledFrom(values).Draw(t, label)
}

func twinNode(t *rapid.T) *corev1.Node {
	return aNode(drawOf(t, "node", "n1", "n2", "n3", "n4"),
		drawOf(t, "allocatable", "cpu=4 memory=8Gi pods=5", "cpu=2 memory=4Gi pods=9", "cpu=8 memory=2Gi pods=3"), func(n *corev1.Node) {
			if zone := drawOf(t, "zone", "", "east", "west"); zone != "" {
				n.Labels["zone"] = zone
			}
			n.Labels["host"], n.Labels[corev1.LabelHostname] = n.Name, n.Name
			n.Labels["rank"] = drawOf(t, "rank", "1", "1", "3", "none")
			n.Spec.Unschedulable = drawOf(t, "cordoned", false, false, false, true)
			if drawOf(t, "gpus", false, true) {
				n.Annotations[model.NodeGPUsAnnotation] = "2"
			}
			if drawOf(t, "unready", false, false, false, true) {
				n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionFalse}}
			}
			if effect := drawOf(t, "taint", "", "", corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule); effect != "" {
				n.Spec.Taints = []corev1.Taint{{Key: "k", Effect: effect}}
			}
		})
}

func (w *twins) twinPod(t *rapid.T) *corev1.Pod {
	w.created++
	return aPod(drawOf(t, "pod", "p1", "p2", "p3", "p4", "p5", "p6"),
		drawOf(t, "requests", "cpu=1", "cpu=1", "cpu=700m memory=1Gi", "cpu=300m memory=1Gi", ""), func(p *corev1.Pod) {
			p.UID = types.UID(fmt.Sprint("uid", w.created))
			p.Annotations[model.GroupAnnotation] = drawOf(t, "group", "g1", "g2", "g3")
			p.Labels["zone"] = drawOf(t, "wants", "east", "west", "any")
			if claim := drawOf(t, "claim", "", "", "c1", "c2", "c3"); claim != "" {
				p.Spec.Volumes = []corev1.Volume{aVolume(claim)}
			}
			if milli := drawOf(t, "milli", "", "", "400", "1000"); milli != "" {
				p.Annotations[model.GPUMilliAnnotation] = milli
			}
			p.Labels["app"] = drawOf(t, "app", "a", "a", "b")
			if drawOf(t, "terms", false, true) {
				twinTerms(t, p)
			}
			if drawOf(t, "nodes wanted", false, false, true) {
				twinNodeTerms(t, p)
			}
			if port := drawOf(t, "host port", int32(0), 0, 0, 80); port != 0 {
				p.Spec.Containers[0].Ports = []corev1.ContainerPort{{HostPort: port, ContainerPort: port, Protocol: corev1.ProtocolTCP}}
			}
			if drawOf(t, "tolerates", false, true) {
				p.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
			}
			if node := drawOf(t, "runs", "", "", "", "n1", "n2"); node != "" {
				runningOn(node)(p)
				if drawOf(t, "leaves", false, true) {
					leaving(p)
				}
			}
		})
}

// twinNodeTerms writes node affinity terms of a pod: by one label, by two, or by name.
func twinNodeTerms(t *rapid.T, p *corev1.Pod) {
	if p.Spec.Affinity == nil {
		p.Spec.Affinity = &corev1.Affinity{}
	}
	p.Spec.Affinity.NodeAffinity = &corev1.NodeAffinity{}
	if zone := drawOf(t, "selected zone", "", "east"); zone != "" {
		p.Spec.NodeSelector = map[string]string{"zone": zone}
	}
	if want := drawOf(t, "required", "", "not west", "rank", "name"); want != "" {
		term := map[string]corev1.NodeSelectorTerm{
			"not west": {MatchExpressions: []corev1.NodeSelectorRequirement{{
				Key: "zone", Operator: corev1.NodeSelectorOpNotIn,
				Values: []string{"west"},
			}}},
			"rank": {MatchExpressions: []corev1.NodeSelectorRequirement{
				{Key: "rank", Operator: corev1.NodeSelectorOpGt, Values: []string{"1"}},
				{Key: "zone", Operator: corev1.NodeSelectorOpExists},
			}},
			"name": {MatchFields: []corev1.NodeSelectorRequirement{{
				Key: "metadata.name", Operator: corev1.NodeSelectorOpIn,
				Values: []string{"n1"},
			}}},
		}[want]
		p.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution = &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{term},
		}
	}
	if drawOf(t, "preferred nodes", false, true) {
		p.Spec.Affinity.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution = []corev1.PreferredSchedulingTerm{{
			Weight: 7,
			Preference: corev1.NodeSelectorTerm{
				MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "zone", Operator: corev1.NodeSelectorOpIn, Values: []string{"east"}}},
			},
		}}
	}
}

// twinTerms writes a pod's terms about other pods.
func twinTerms(t *rapid.T, p *corev1.Pod) {
	term := func(name string) corev1.PodAffinityTerm {
		out := corev1.PodAffinityTerm{TopologyKey: drawOf(t, name+" topology", "zone", "zone", "host"), LabelSelector: twinSelector(t, name)}
		out.MatchLabelKeys = drawOf(t, name+" keys", nil, nil, []string{"zone"})
		out.NamespaceSelector = drawOf(t, name+" namespaces", nil, nil, &metav1.LabelSelector{},
			&metav1.LabelSelector{MatchLabels: map[string]string{"team": "x"}})
		return out
	}
	p.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{}, PodAntiAffinity: &corev1.PodAntiAffinity{}}
	for range drawOf(t, "terms of affinity", 0, 0, 1, 2) {
		p.Spec.Affinity.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution = append(
			p.Spec.Affinity.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution, term("near"))
	}
	if drawOf(t, "anti-affinity", false, true) {
		p.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution = []corev1.PodAffinityTerm{term("apart")}
	}
	if drawOf(t, "preferred", false, true) {
		p.Spec.Affinity.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution = []corev1.WeightedPodAffinityTerm{{Weight: drawOf(t,
			"weight", int32(1), 10), PodAffinityTerm: term("drawn")}}
		p.Spec.Affinity.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution = []corev1.WeightedPodAffinityTerm{{
			Weight:          3,
			PodAffinityTerm: term("repelled"),
		}}
	}
	for range drawOf(t, "constraints", 0, 0, 1, 2) {
		p.Spec.TopologySpreadConstraints = append(p.Spec.TopologySpreadConstraints, corev1.TopologySpreadConstraint{
			MaxSkew: drawOf(t, "skew", int32(1), 2), TopologyKey: drawOf(t, "over", "zone", "host", corev1.LabelHostname),
			WhenUnsatisfiable:  drawOf(t, "mode", corev1.DoNotSchedule, corev1.ScheduleAnyway),
			LabelSelector:      twinSelector(t, "counted"),
			MinDomains:         drawOf(t, "least domains", nil, nil, new(int32(3))),
			NodeAffinityPolicy: drawOf(t, "affinity policy", nil, new(corev1.NodeInclusionPolicyIgnore)),
			NodeTaintsPolicy:   drawOf(t, "taints policy", nil, new(corev1.NodeInclusionPolicyHonor)),
		})
	}
}

func twinSelector(t *rapid.T, name string) *metav1.LabelSelector {
	return drawOf(t, name+" selector", &metav1.LabelSelector{MatchLabels: map[string]string{"app": "a"}},
		&metav1.LabelSelector{MatchLabels: map[string]string{"app": "b"}},
		&metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: metav1.LabelSelectorOpExists}}},
		&metav1.LabelSelector{}, nil)
}

func twinGroup(t *rapid.T) *v1beta1.PodGroup {
	return aGroup(drawOf(t, "group", "g1", "g2", "g3"), drawOf(t, "queue", "q1", "q2", "q3"), func(g *v1beta1.PodGroup) {
		g.Spec.MinMember = drawOf(t, "minMember", int32(1), 2)
		if spare := drawOf(t, "spare", "", "", "1", "50%", "some"); spare != "" {
			g.Annotations = map[string]string{model.MinAvailableAnnotation: spare, model.MaxUnavailableAnnotation: spare}
		}
		g.Status.Phase = drawOf(t, "phase", v1beta1.PodGroupPending, v1beta1.PodGroupInqueue)
		if drawOf(t, "minResources", false, true) {
			list := amountList("cpu=1500m requests.cpu=1")
			g.Spec.MinResources = &list
		}
	})
}

func twinQueue(t *rapid.T) *v1beta1.Queue {
	return aQueue(drawOf(t, "queue", "q1", "q2", "q3", "top"), func(q *v1beta1.Queue) {
		q.Spec.Weight = drawOf(t, "weight", int32(1), 2)
		q.Spec.Parent = drawOf(t, "parent", "", "", "top", "q1", "q2", "q3", "nowhere")
		if q.Spec.Parent == q.Name {
			q.Spec.Parent = ""
		}
		list := amountList(drawOf(t, "capability", "", "", "cpu=2", "cpu=3 memory=4Gi"))
		q.Spec.Capability = list
		q.Spec.Deserved = amountList(drawOf(t, "deserved", "", "cpu=1", "cpu=2 memory=1Gi"))
		if drawOf(t, "guaranteed", false, false, true) {
			q.Spec.Guarantee.Resource = amountList("cpu=1")
		}
	})
}

// run fills the clusters, so that there are tasks to place, and takes random steps.
func (w *twins) run(t *rapid.T) {
	w.start(t)
	t.Repeat(rapid.StateMachineActions(w))
}

func (w *twins) start(t *rapid.T) {
	if drawOf(t, "forgetful", false, true) {
		w.both(func(x *side) { x.s.Keep = 0 })
	}
	var deltas []model.Delta
	for _, name := range []string{"q1", "q2", "q3", "top"} {
		deltas = append(deltas, model.Delta{Object: aQueue(name)})
	}
	for i, name := range []string{"g1", "g2", "g3"} {
		deltas = append(deltas, model.Delta{Object: aGroup(name, fmt.Sprint("q", i%2+1))})
	}
	for _, o := range someStorage() {
		deltas = append(deltas, model.Delta{Object: o})
	}
	for range 5 {
		deltas = append(deltas, model.Delta{Object: twinNode(t)}, model.Delta{Object: w.twinPod(t)})
	}
	if drawOf(t, "few classes", false, true) {
		w.remembers.s.verdicts.Classes.Entries = 10 // three classes, with four nodes
	}
	w.apply(t, deltas...)
}

// ChangeNode and the methods below are the steps of the machine.
func (w *twins) ChangeNode(t *rapid.T) {
	w.apply(t, model.Delta{Op: drawOf(t, "op", model.Upsert, model.Upsert, model.Upsert, model.Delete), Object: twinNode(t)})
}

func (w *twins) ChangePod(t *rapid.T) {
	pod := w.twinPod(t)
	op := drawOf(t, "op", model.Upsert, model.Upsert, model.Upsert, model.Delete)
	if old := w.remembers.c.Tasks[model.Key("a", pod.Name)]; old != nil && op == model.Delete {
		pod.UID = types.UID(old.UID)
	}
	w.apply(t, model.Delta{Op: op, Object: pod})
}

func (w *twins) ChangeGroup(t *rapid.T) {
	w.apply(t, model.Delta{Op: drawOf(t, "op", model.Upsert, model.Upsert, model.Upsert, model.Delete), Object: twinGroup(t)})
}

func (w *twins) ChangeQueue(t *rapid.T) {
	w.apply(t, model.Delta{Op: drawOf(t, "op", model.Upsert, model.Upsert, model.Upsert, model.Delete), Object: twinQueue(t)})
}

func (w *twins) ChangeQuota(t *rapid.T) {
	w.apply(t, model.Delta{
		Op:     drawOf(t, "op", model.Upsert, model.Upsert, model.Delete),
		Object: aQuota(drawOf(t, "quota", "x", "y"), drawOf(t, "hard", "cpu=4", "requests.cpu=4"), ""),
	})
}

func (w *twins) ChangeBudget(t *rapid.T) {
	w.apply(t, model.Delta{
		Op: drawOf(t, "op", model.Upsert, model.Upsert, model.Delete),
		Object: aBudget(drawOf(t, "budget", "x", "y"), drawOf(t, "allowed", int32(0), 1, 2), drawOf(t, "app", "a", "b"),
			drawOf(t, "gone", "p1", "p2", "none")),
	})
}

func (w *twins) ChangeMeasure(t *rapid.T) {
	w.apply(t, model.Delta{
		Op: drawOf(t, "op", model.Upsert, model.Upsert, model.Delete),
		Object: aMeasure(drawOf(t, "node", "n1", "n2", "n3", "n4"),
			drawOf(t, "usage", "cpu=1 memory=1Gi", "cpu=2 memory=1Gi", "cpu=1 memory=2Gi"), w.now.Add(-drawOf(t, "age", 0, time.Minute))),
	})
}

func (w *twins) ChangeNuma(t *rapid.T) {
	w.apply(t, model.Delta{
		Op: drawOf(t, "op", model.Upsert, model.Upsert, model.Delete),
		Object: aNuma(drawOf(t, "node", "n1", "n2", "n3", "n4"), drawOf(t, "policy", "best-effort", "single-numa-node"),
			drawOf(t, "free", "0-7", "0-3,6-7", "1,5"), drawOf(t, "cpus", 2, 4)),
	})
}

func (w *twins) ChangeAnswer(t *rapid.T) {
	of := extender.Subject{Kind: extender.Queue, Queue: drawOf(t, "queue", "q1", "q2")}
	if kind := drawOf(t, "kind", extender.Task, extender.Task, extender.Job, extender.Queue); kind != extender.Queue {
		of = extender.Subject{Kind: kind, Job: "a/" + drawOf(t, "group", "g1", "g2", "g3")}
	}
	w.apply(t, model.Delta{
		Op: drawOf(t, "op", model.Upsert, model.Upsert, model.Upsert, model.Delete),
		Object: anAnswer(drawOf(t, "answer", "x", "y", "z"), "http://x", of, drawOf(t, "says", extender.Yes, extender.No),
			drawOf(t, "refused", "", "no licence"), w.now.Add(-drawOf(t, "age", 0, time.Minute))),
	})
}

func (w *twins) ChangeStorage(t *rapid.T) {
	w.apply(t, model.Delta{Op: drawOf(t, "op", model.Upsert, model.Upsert, model.Delete), Object: twinStorage(t)})
}

func (w *twins) ChangeNamespace(t *rapid.T) {
	n := &corev1.Namespace{}
	n.Name, n.Labels = "a", map[string]string{"team": drawOf(t, "team", "x", "y")}
	w.apply(t, model.Delta{Op: drawOf(t, "op", model.Upsert, model.Delete), Object: n})
}

func (w *twins) NextCycle(t *rapid.T) {
	w.now = w.now.Add(drawOf(t, "later", 0, time.Second, time.Minute, 10*time.Hour))
	w.saves = 0
	w.both(func(x *side) {
		x.saves = nil
		x.txn.Commit()
		x.c.CloseCycle()
		x.begin(w.now)
	})
}

func (w *twins) SetAction(t *rapid.T) {
	name := drawOf(t, "action", "allocate", "backfill")
	w.both(func(x *side) {
		x.s.SetAction(name)
		x.walk()
	})
}

// task draws the key of one of the tasks with a status; "" if there is none.
func (w *twins) task(t *rapid.T, statuses ...model.Status) string {
	var keys []string
	for _, task := range w.remembers.c.TasksByKey() {
		if slices.Contains(statuses, task.Status) {
			keys = append(keys, task.Key)
		}
	}
	if len(keys) == 0 {
		return ""
	}
	return rapid.SampledFrom(keys).Draw(t, "task")
}

// Place places a task on the node that its class chooses.
func (w *twins) Place(t *rapid.T) {
	key := w.task(t, model.Pending)
	if key == "" {
		return
	}
	w.both(func(x *side) {
		task := x.c.Tasks[key]
		ch, ok := x.s.Class(task).Choose()
		if !ok {
			return
		}
		gpus := x.s.Devices(task, ch.Row, ch.Later)
		volumes, err := x.s.Bindings(task, ch.Row)
		if err != nil {
			return
		}
		defer x.txn.Reserve(task, volumes)
		if ch.Later {
			x.txn.Pipeline(task, ch.Row, gpus)
		} else {
			x.txn.Allocate(task, ch.Row, gpus)
		}
	})
}

func (w *twins) Unplace(t *rapid.T) {
	if key := w.task(t, model.Pipelined, model.Allocated); key != "" {
		w.both(func(x *side) { x.txn.Unplace(x.c.Tasks[key]) })
	}
}

func (w *twins) Evict(t *rapid.T) {
	if key := w.task(t, model.Running, model.Binding); key != "" {
		w.both(func(x *side) { x.txn.Evict(x.c.Tasks[key]) })
	}
}

func (w *twins) Bind(t *rapid.T) {
	if key := w.task(t, model.Allocated); key != "" {
		w.both(func(x *side) { x.txn.Bind(x.c.Tasks[key]) })
	}
}

func (w *twins) Admit(t *rapid.T) {
	key := drawOf(t, "job", "a/g1", "a/g2", "a/g3")
	if j := w.remembers.c.Jobs[key]; j != nil && j.Phase == model.PhasePending {
		w.both(func(x *side) { x.txn.Admit(x.c.Jobs[key], time.Time{}) })
	}
}

func (w *twins) Mark(*rapid.T) {
	w.saves++
	w.both(func(x *side) { x.saves = append(x.saves, x.txn.Mark()) })
}

func (w *twins) Rollback(t *rapid.T) {
	if w.saves == 0 {
		return
	}
	to := rapid.IntRange(0, w.saves-1).Draw(t, "savepoint")
	w.saves = to
	w.both(func(x *side) {
		x.txn.Rollback(x.saves[to])
		x.saves = x.saves[:to]
	})
}

// Check compares the results of both sides after each step.
func (w *twins) Check(t *rapid.T) {
	w.both(func(x *side) {
		if err := x.c.Check(); err != nil {
			t.Fatal(err)
		}
	})
	w.afresh.anew()
	afresh, remembered := w.look(&w.afresh), w.look(&w.remembers)
	if diff := cmp.Diff(afresh, remembered); diff != "" {
		t.Fatalf("what is remembered is wrong (-afresh +remembered):\n%s", diff)
	}
}
