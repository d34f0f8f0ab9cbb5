package engine_test

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	gocmp "github.com/google/go-cmp/cmp"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
)

// TestReferenceSameField compares the engine with the reference under policies whose rows read one field at several sites. A key of
// remembered results may omit a field because another part of the key contains it. That part can be missing: a job without pods has no
// class of tasks. Half of the jobs in these worlds have no pods, and all objects share few values, so that keys collide.
func TestReferenceSameField(t *testing.T) {
	t.Parallel()
	var worlds, mixed atomic.Int64
	t.Cleanup(func() {
		t.Logf("%d worlds; in %d a job without pods is refused, and another one is admitted", worlds.Load(), mixed.Load())
		if worlds.Load() >= 1500 && mixed.Load() < worlds.Load()/10 {
			t.Errorf("of %d worlds only %d have jobs without pods that are refused and admitted: want a tenth", worlds.Load(), mixed.Load())
		}
	})
	for fields := range slices.Chunk(sameFields(newDrawer(0)), 5) {
		t.Run(fields[0].text, func(t *testing.T) {
			t.Parallel()
			var tried []*policy.Policy
			for seed := range uint64(4 * len(fields)) {
				tried = append(tried, newDrawer(seed).sameField(t, fields[seed/4]))
			}
			rapid.Check(t, func(t *rapid.T) {
				w, p := drawWorldWithoutPods(t), one(t, "policy", tried...)
				r := run{world: w, policies: []*policy.Policy{p}, noErrors: true}
				want := byReference(t, r, new(seenWorlds))
				worlds.Add(1)
				if slices.ContainsFunc(want, isMixed) {
					mixed.Add(1)
				}
				if diff := gocmp.Diff(want, r.plans(t)); diff != "" {
					w.Log(t)
					t.Fatalf("-reference +engine with every memory:\n%s", diff)
				}
				r.forgets = true
				if diff := gocmp.Diff(want, r.plans(t)); diff != "" {
					w.Log(t)
					t.Fatalf("-reference +engine without memory:\n%s", diff)
				}
			})
		})
	}
}

// isMixed reports whether a plan refuses the admission of a job and admits another one.
func isMixed(plan string) bool {
	_, waits, _ := strings.Cut(plan, `"waits": [`)
	return strings.Contains(plan, `"admits": [`) && strings.Contains(waits, `"site": "jobEnqueueable"`)
}

// sameFields lists the fields of jobs, tasks and queues that a condition can be written over.
func sameFields(d *drawer) (out []path) {
	for _, p := range d.paths([]string{"job", "task", "queue"}, 1) {
		if p.text != "queue.name" && d.over(p.text, p.typ) != "" {
			out = append(out, p)
		}
	}
	return out
}

// over returns a condition on a value that is true for some of its values; "": the type has none.
func (d *drawer) over(value string, t *cel.Type) string {
	switch t.Kind() {
	case types.BoolKind:
		return pick(d, value, "!"+value)
	case types.IntKind:
		return value + pick(d, " % 2 == 0", " > 1", " < 2")
	case types.DoubleKind:
		return value + pick(d, " > 1.0", " < 2.0")
	case types.StringKind:
		return "hash01([" + value + "])" + pick(d, " < 0.5", " > 0.4")
	case types.TimestampKind:
		return value + pick(d, ".getSeconds() % 2 == 0", ".getSeconds() % 3 != 1")
	case types.ListKind:
		return "size(" + value + ")" + pick(d, " % 2 == 0", " > 1", " < 2")
	case types.MapKind:
		if t.Parameters()[1].Kind() != types.StringKind {
			return "size(" + value + ") % 2 == 0"
		}
		return value + pick(d, `[?"class"].orValue("") != "experiment"`, `[?"class"].orValue("") == "production"`)
	default:
	}
	if t.IsExactType(d.objects["Resources"].Type) {
		return value + pick(d, ".cpu < 3.0", ".memory > 1000000000.0")
	}
	return ""
}

// sameField returns a policy whose rows read one field. They read it always where jobs are admitted and where nodes are chosen, and at some
// other sites.
func (d *drawer) sameField(t *testing.T, field path) *policy.Policy {
	t.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, "apiVersion: scheduling.celsius.dev/v1alpha1\nkind: SchedulingPolicy\nmetadata: {name: same}\nspec:\n  pipeline: %s\n",
		pick(d, "[enqueue, allocate, backfill]", "[enqueue, allocate, preempt, reclaim, backfill]", "[allocate, enqueue, backfill]"))
	b.WriteString("  tiers:\n  - name: house\n    tables:\n    - name: house\n      inline:\n        description: rows over one field\n")
	always := []string{policy.JobEnqueueable, pick(d, policy.Predicates, policy.Scores)}
	for _, s := range policy.Sites() {
		value := atSite(s, field.text)
		often := 4
		if s.Name == policy.JobValid || s.Name == policy.JobReady {
			often = 8 // most jobs must reach the later sites
		}
		if value == "" || s.Name == policy.Victims || !slices.Contains(always, s.Name) && d.IntN(often) > 0 {
			continue
		}
		text := d.over(value, field.typ)
		if strings.HasPrefix(value, "job.tasks") {
			text = "job.tasks.exists(each, " + d.over("each"+strings.TrimPrefix(value, "job.tasks[]"), field.typ) + ")"
		}
		if s.Expression == "expression" && (slices.Contains(s.Keys, "weight") || s.Name == policy.VictimCost || s.Name == policy.BeyondDue) {
			text = "(" + text + ") ? 1.0 : 2.0"
		}
		if s.Name == policy.Predicates {
			text += ` || node.name == "n1"`
		}
		fmt.Fprintf(&b, "        %s:\n        - {name: row-%d, %s: %q}\n", s.Name, d.IntN(1000), s.Expression, text)
	}
	if d.IntN(3) == 0 { // switches off a memory: a row reads the time, or the whole cluster
		b.WriteString("    - name: moving\n      inline:\n        description: rows that move\n" + pick(d,
			"        taskFeasible:\n        - {name: row-late, expression: \"(now - job.createdAt).getSeconds() % 2 < 2\"}\n",
			"        jobPipelined:\n        - {name: row-held, expression: \"cluster.used.cpu >= 0.0\"}\n"))
	}
	b.WriteString("  - name: shipped\n    tables: [{name: priority}, {name: gang}" + pick(d, "", ", {name: overcommit}") +
		pick(d, "", ", {name: drf}") + ", {name: predicates}" + pick(d, "", ", {name: proportion}") + ", {name: nodeorder}]\n")
	return loadWithout(t, b.String())
}

// atSite returns the path to a field from the roots of a site; "": there is none.
func atSite(s policy.Site, field string) string {
	root, rest, _ := strings.Cut(field, ".")
	has := func(name string) bool { return slices.Contains(s.Roots, name) }
	switch {
	case has(root):
		return field
	case root == "task" && has("job"):
		return "job.tasks[]." + rest
	case root == "job" && has("task"):
		return "task." + field
	case root == "queue" && has("job"):
		return "job.queue." + rest
	case has("preemptor") && root == "task":
		return "preemptor." + rest
	case has("preemptor"):
		return "preemptor.job." + strings.TrimPrefix(field, "job.")
	}
	return ""
}

// drawWorldWithoutPods draws a world of jobs that wait to be admitted. Half of them have no pods.
func drawWorldWithoutPods(t *rapid.T) *world {
	w := &world{}
	add := func(o ...metav1.Object) { w.objects = append(w.objects, o...) }
	for i, name := range []string{"low", "high"} {
		add(&schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Value: int32(100 * i)})
	}
	queues := rapid.IntRange(1, 2).Draw(t, "queues")
	for i := range queues {
		q := drawQueue(t, fmt.Sprint("q", i+1))
		q.Status.State, q.Labels = v1beta1.QueueStateOpen, map[string]string{"class": one(t, "queue's class", "experiment", "production")}
		add(q)
	}
	for i := range 2 {
		n := drawNode(t, fmt.Sprint("n", i+1))
		n.Spec.Taints, n.Spec.Unschedulable, n.Status.Conditions = nil, false, nil
		add(n)
	}
	groups := rapid.IntRange(2, 6).Draw(t, "groups")
	group := func(name string) *v1beta1.PodGroup {
		g := drawGroup(t, name, queues)
		g.Spec.MinTaskMember, g.Spec.MinMember, g.Status.Phase = nil, 1, v1beta1.PodGroupPending
		if class := one(t, "class", "experiment", "production", ""); class != "" {
			g.Labels, g.Annotations = map[string]string{"class": class}, map[string]string{"class": class}
		}
		if seldomer(t, "more members", 4) {
			g.Spec.MinMember = 2
		}
		if seldomer(t, "two promised CPUs", 2) { // otherwise most jobs are admitted without a vote
			g.Spec.MinResources = new(list("cpu=2"))
		}
		return g
	}
	var later []model.Delta
	for i := range groups {
		name := fmt.Sprint("g", i+1)
		g := group(name)
		if seldomer(t, "of a Job", 5) {
			add(ownedByAJob(t, g))
		}
		add(g)
		if rapid.Bool().Draw(t, "without pods") {
			if rapid.Bool().Draw(t, "later with pods") {
				p := drawPod(t, name+"-0", name, 2)
				p.Spec.NodeName = ""
				later = append(later, model.Delta{Object: p})
			}
			continue
		}
		for k := range rapid.IntRange(1, 2).Draw(t, "pods") {
			add(drawPod(t, fmt.Sprint(name, "-", k), name, 2))
		}
	}
	if seldomer(t, "a group changes", 2) {
		later = append(later, model.Delta{Object: group(fmt.Sprint("g", rapid.IntRange(1, groups).Draw(t, "which")))})
	}
	w.changes = [][]model.Delta{later}
	return w
}
