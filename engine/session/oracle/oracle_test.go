package oracle_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/imagelocality"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/interpodaffinity"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeaffinity"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeports"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/noderesources"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeunschedulable"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/podtopologyspread"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/tainttoleration"

	"github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/engine/session"
	"github.com/celsius-scheduler/celsius/engine/verdict"
	"github.com/celsius-scheduler/celsius/rules/source"
)

// Only the built-in tables: the test compares their rows.
const shipped = `
apiVersion: scheduling.celsius.dev/v1alpha1
kind: SchedulingPolicy
metadata: {name: kubernetes}
spec:
  pipeline: [allocate]
  tiers:
  - name: only
    tables:
    - name: predicates
    - name: nodeorder
      params: {nodeAffinity: 1, taintToleration: 1, imageLocality: 1, podAffinity: 1, podTopologySpread: 1, balancedResource: 0}
`

// filters returns the rows of predicates, each with its plugin, and with the stress that makes it decide.
func filters() map[string][2]string {
	return map[string][2]string{
		"unschedulable": {nodeunschedulable.Name, "cordoned"},
		"node-affinity": {nodeaffinity.Name, "nodeAffinity"},
		"taints":        {tainttoleration.Name, "taints"},
		"ports":         {nodeports.Name, "ports"},
		"pod-affinity":  {interpodaffinity.Name, "affinity"},
		"spread":        {podtopologyspread.Name, "spread"},
		"fit":           {noderesources.Name, "resources"},
	}
}

func scorers() map[string]string {
	return map[string]string{
		"least-requested": noderesources.Name,
		"node-affinity":   nodeaffinity.Name,
		"taints":          tainttoleration.Name,
		"image-locality":  imagelocality.Name,
		"pod-affinity":    interpodaffinity.Name,
		"spread":          podtopologyspread.Name,
	}
}

// tallied counts what a run has compared.
type tallied struct {
	yes, no map[string]int // verdicts of filters, if the filter is stressed
	scored  map[string]int // number of pods whose feasible nodes got scores
	varied  map[string]int // number of those for which the scores differed
	pods    int
	placed  int
}

// run is one world on both sides.
type run struct {
	*testing.T
	*maker
	seen *tallied
	c    *model.Cluster
	s    *session.Session
	x    *model.Txn
	k    *kubernetes
	now  time.Time
}

func (r *run) apply(objects ...any) {
	r.Helper()
	r.x.Commit()
	r.c.CloseCycle()
	for _, o := range objects {
		for _, err := range r.c.Apply(model.Delta{Object: o}) {
			r.Fatal(err)
		}
	}
	r.now = r.now.Add(time.Second)
	r.s.Begin(r.now)
}

// TestKubernetesAgrees evaluates kube-scheduler's own plugins for 10,000 random pods, each on every node of its world. It places, evicts
// and undoes in between.
func TestKubernetesAgrees(t *testing.T) {
	p := load(t)
	const worlds, each = 100, 100
	seen := &tallied{yes: map[string]int{}, no: map[string]int{}, scored: map[string]int{}, varied: map[string]int{}}
	for seed := range worlds {
		if newRun(t, p, uint64(seed), seen).play(each); t.Failed() {
			t.Fatalf("in the world of seed %d", seed)
		}
	}
	t.Logf("%d pods asked about, %d placed", seen.pods, seen.placed)
	for row, f := range filters() {
		yes, no := seen.yes[row], seen.no[row]
		share := float64(yes) / float64(yes+no)
		t.Logf("filter %-15s %7d verdicts, %4.1f %% feasible", f[0], yes+no, 100*share)
		if !(share >= 0.2 && share <= 0.8) {
			t.Errorf("%s: %.1f %% of %d verdicts are feasible; a comparison needs both kinds", f[0], 100*share, yes+no)
		}
	}
	for row, plugin := range scorers() {
		t.Logf("score  %-15s (%s) %5d pods scored, %5d of them not all the same", plugin, row, seen.scored[row], seen.varied[row])
		if seen.varied[row]*10 < seen.scored[row] || seen.scored[row] == 0 {
			t.Errorf("%s: only %d of %d pods have scores that differ", plugin, seen.varied[row], seen.scored[row])
		}
	}
}

func load(t *testing.T) *policy.Policy {
	t.Helper()
	docs, issues := source.Parse("kubernetes.yaml", []byte(shipped))
	if issues.Err() != nil || len(docs) != 1 {
		t.Fatal(issues)
	}
	p, issues := policy.Load(docs[0])
	if issues.Err() != nil {
		t.Fatal(issues)
	}
	return p
}

func newRun(t *testing.T, p *policy.Policy, seed uint64, seen *tallied) *run {
	t.Helper()
	m := &maker{Rand: rand.New(rand.NewPCG(seed, 1)), stressed: map[string]bool{}, nodes: 12}
	var all []string
	for _, f := range filters() {
		all = append(all, f[1])
	}
	slices.Sort(all)
	// Each is stressed equally often. Affinity and spread, which this test is for, are stressed in every other world.
	m.stressed[all[int(seed)%len(all)]] = true
	m.stressed[[]string{"affinity", "spread", "none", "none"}[seed%4]] = true
	r := &run{T: t, maker: m, seen: seen, c: model.NewCluster(model.Options{}), now: time.Unix(1e9, 0)}
	spaces := m.namespaces()
	r.k = newKubernetes(t, spaces)
	r.x, r.s = r.c.Begin(), session.New(r.c, p)
	queue := &v1beta1.Queue{}
	queue.Name = "default"
	objects := []any{queue}
	for _, n := range spaces {
		group := &v1beta1.PodGroup{}
		group.Namespace, group.Name, group.Spec.Queue, group.Status.Phase = n.Name, "g", "default", v1beta1.PodGroupInqueue
		objects = append(objects, n, group)
	}
	for i := range m.nodes {
		n := m.node(i)
		objects = append(objects, n)
		r.k.setNode(n)
	}
	for range 10 {
		pod := m.pod()
		node := fmt.Sprintf("n%02d", m.IntN(m.nodes))
		leaving := m.chance(4)
		r.k.put(pod, node, leaving)
		there := pod.DeepCopy()
		there.Spec.NodeName, there.Status.Phase = node, corev1.PodRunning
		if leaving {
			there.DeletionTimestamp = r.k.placed[pod.Namespace+"/"+pod.Name].DeletionTimestamp
		}
		objects = append(objects, there)
	}
	r.apply(objects...)
	return r
}

// play evaluates this many pods, five per cycle.
func (r *run) play(pods int) {
	for left := pods; left > 0; left -= 5 {
		var waiting []any
		var keys []string
		var pod *corev1.Pod
		for i := range 5 {
			if i == 0 || r.chance(3) {
				pod = r.pod()
			} else {
				pod = r.another(pod) // of the same class, so that its caches must be updated
			}
			waiting = append(waiting, pod)
			keys = append(keys, model.Key(pod.Namespace, pod.Name))
		}
		r.apply(append(waiting, r.changes()...)...)
		mark, undo := r.x.Mark(), []func(){}
		for _, key := range keys {
			undo = append(undo, r.decide(r.c.Tasks[key]))
			if r.Failed() {
				return
			}
		}
		if r.chance(4) {
			r.x.Rollback(mark)
			slices.Reverse(undo)
			for _, u := range undo {
				u()
			}
			// A task that was undone is evaluated again, in the present state.
			r.decide(r.c.Tasks[keys[0]])
		}
		r.bind()
	}
}

// changes returns changes between cycles: a node gets other labels, or a pod is deleted.
func (r *run) changes() []any {
	var out []any
	if r.chance(3) {
		n := r.node(r.IntN(r.nodes))
		n.Status.Allocatable, n.Status.Capacity = r.k.nodes[n.Name].Status.Allocatable, r.k.nodes[n.Name].Status.Capacity
		r.k.setNode(n)
		out = append(out, n)
	}
	return out
}

// bind makes allocated tasks Binding, lets pods end so that the world does not fill up, and lets pods leave.
func (r *run) bind() {
	var over []model.Delta
	for _, t := range r.c.TasksByKey() {
		switch {
		case t.Status == model.Allocated:
			r.x.Bind(t)
		case t.Status == model.Pending, t.Node != model.NoNode && r.chance(12):
			over = append(over, model.Delta{Op: model.Delete, Object: t.Object})
			r.k.put(t.Object, "", false)
		case (t.Status == model.Binding || t.Status == model.Running) && r.chance(10):
			r.x.Evict(t)
			r.k.put(t.Object, r.c.Nodes.Rows[t.Node].Name, true)
		}
	}
	r.x.Commit()
	r.c.CloseCycle()
	r.c.Apply(over...)
	r.s.Begin(r.now)
}

// decide compares the results of both sides for a pod, and places it where our side would. undo undoes the placement on the other side.
func (r *run) decide(t *model.Task) (undo func()) {
	r.seen.pods++
	undo = func() {}
	feasible := r.verdicts(t)
	choice, ok := r.s.Class(t).Choose()
	ok = ok && !choice.Later
	if ok != (len(feasible) > 0) || ok && choice.Feasible != len(feasible) {
		r.Errorf("%s: Kubernetes finds %v feasible, we choose among %d", t.Key, feasible, choice.Feasible)
	}
	if r.Failed() || !ok {
		return undo
	}
	r.scores(t, feasible, &choice)
	if r.chance(5) {
		return undo
	}
	node := r.c.Nodes.Rows[choice.Row].Name
	r.x.Allocate(t, choice.Row, nil)
	r.seen.placed++
	r.k.put(t.Object, node, false)
	return func() { r.k.put(t.Object, "", false) }
}

// verdicts compares the filters one by one, on every node, and returns the nodes that pass all of them.
func (r *run) verdicts(t *model.Task) []string {
	ours := r.ours(t)
	var out []string
	passes := map[string]bool{}
	nodes := slices.Sorted(maps.Keys(r.k.nodes))
	for _, node := range nodes {
		passes[node] = true
	}
	for name, f := range filters() {
		theirs, asked := r.k.filter(f[0], t.Object)
		counts := asked && r.stressed[f[1]]
		for _, node := range nodes {
			if ours[name][node] != theirs[node] {
				r.Errorf("%s on %s: row %s says %t, %s %t; it asks %+v", t.Key, node, name, ours[name][node], f[0], theirs[node], t.PodTerms)
			}
			passes[node] = passes[node] && theirs[node]
			if counts && theirs[node] {
				r.seen.yes[name]++
			} else if counts {
				r.seen.no[name]++
			}
		}
	}
	for _, node := range nodes {
		if passes[node] {
			out = append(out, node)
		}
	}
	return out
}

// ours returns the verdicts of our rows, by row and node.
func (r *run) ours(t *model.Task) map[string]map[string]bool {
	out := map[string]map[string]bool{"fit": {}}
	for row, node := range r.c.Nodes.Rows {
		said, err := r.s.Ask(policy.Predicates, session.Subject{Task: t, Node: node.Name})
		if err != nil {
			r.Fatal(err)
		}
		for _, s := range said {
			if out[s.Rule.Name] == nil {
				out[s.Rule.Name] = map[string]bool{}
			}
			out[s.Rule.Name][node.Name] = s.Value != "false"
		}
		// The built-in checks and the number of pods are one plugin in kube-scheduler.
		out["fit"][node.Name] = r.c.Nodes.FitsIdle(t.Request, int32(row)) && out["pod-count"][node.Name]
	}
	return out
}

// scores compares what the rows of nodeorder add, normalised, on the nodes to choose from.
func (r *run) scores(t *model.Task, feasible []string, choice *verdict.Choice) {
	got := map[string]map[string]int64{}
	for row := range scorers() {
		got[row] = map[string]int64{}
	}
	for _, node := range feasible {
		for _, s := range choice.Scores(nil, r.c.Nodes.Index[node]) {
			if got[s.Rule] != nil && s.Score != 0 {
				got[s.Rule][node] = int64(s.Score)
			}
		}
	}
	for row, plugin := range scorers() {
		want := r.k.scores(plugin, t.Object, feasible)
		if len(want) > 0 {
			r.seen.scored[row]++
		}
		values := map[int64]bool{}
		for node, v := range want {
			if values[v] = true; v == 0 {
				delete(want, node)
			}
		}
		if len(values) > 1 {
			r.seen.varied[row]++
		}
		if diff := cmp.Diff(want, got[row]); diff != "" {
			r.Errorf("%s: row %s scores otherwise than %s on %s (-theirs +ours)\n%s%+v", t.Key, row, plugin, strings.Join(feasible, " "), diff,
				t.PodTerms)
		}
	}
}
