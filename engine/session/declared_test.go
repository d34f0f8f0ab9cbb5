package session

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/celsius-scheduler/celsius/engine/language"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/engine/verdict"
	"github.com/celsius-scheduler/celsius/rules"
	"github.com/celsius-scheduler/celsius/rules/eval"
	"github.com/celsius-scheduler/celsius/rules/source"
)

// reading is an expression with one field, or one call of a function. The test evaluates it for every possible object.
type reading struct {
	name string
	*eval.Expr
}

// readingsOf returns readings of all fields of a vocabulary, by several paths to their objects, and of all functions with sample arguments.
func readingsOf(t testing.TB, v rules.Vocabulary) (out []reading) {
	t.Helper()
	lang, err := rules.NewLanguage(v)
	if err != nil {
		t.Fatal(err)
	}
	scope, err := lang.Scope(policy.RootTypes())
	if err != nil {
		t.Fatal(err)
	}
	add := func(name, text string) {
		e, issues := eval.Compile(scope, source.NewText(text), rules.Anything())
		if issues.Err() != nil {
			t.Fatal(issues)
		}
		out = append(out, reading{name, e})
	}
	for _, o := range v.Objects {
		for _, m := range o.Members {
			for _, way := range waysTo(o.Name) {
				if m.Hidden {
					continue
				}
				if list, ok := strings.CutSuffix(way, "[]"); ok {
					add(o.Name+"."+m.Name, list+".map(each, each."+m.Name+")")
				} else {
					add(o.Name+"."+m.Name, way+"."+m.Name)
				}
			}
		}
	}
	for _, f := range v.Functions {
		for i := range f.Overloads {
			o := &f.Overloads[i]
			text := sampleCall(f, o)
			if strings.Contains(text, "tree") || strings.Contains(text, "typical") || strings.HasPrefix(text, "said.") {
				continue // they read only values of computed fields; what they read is the value itself
			}
			add(f.Name, text)
		}
	}
	return out
}

// waysTo returns paths to objects of a type, each by other links.
func waysTo(object string) []string {
	return map[string][]string{
		"Task": {"task", "node.tasks[]"}, "Job": {"job", "task.job", "node.tasks.map(t, t.job)[]"}, "Role": {"job.roles[]", "task.job.roles[]"},
		"Queue": {"queue", "job.queue", "task.queue"}, "QueueSpec": {"queue.spec", "job.queue.spec"}, "Node": {"node", "task.node"},
		"Taint": {"node.taints[]"}, "GPU": {"gpu", "node.gpus[]"}, "Cluster": {"cluster"}, "Namespace": {"job.namespaceInfo"},
		"Quota":      {"job.quotas[]"},
		"Budget":     {"task.disruptionBudgets[]", "node.tasks.map(t, t.disruptionBudgets).flatten()[]"},
		"NodeGroups": {"queue.nodeGroups", "queue.nodeGroupsInherited"},
	}[object]
}

// declarations checks fields and functions against their declared reads. It takes random steps and evaluates all readings after each step.
// It records readings whose value changed although none of the declared inputs changed.
type declarations struct {
	*twins
	readings []reading
	before   map[string]*glance
	objects  uint64
	cycle    uint64
	broken   map[string]string
}

// glance is a value at one moment, and the declared inputs at that moment.
type glance struct {
	value string
	told  [][]string
}

// happened returns the kind of changes since the last call, the rarest that is possible.
func (d *declarations) happened() rules.Changes {
	x := &d.afresh
	defer func() { d.objects, d.cycle = x.c.ObjectClock, x.s.Cycle }()
	switch {
	case d.objects != x.c.ObjectClock:
		return rules.ByObject
	case d.cycle != x.s.Cycle:
		return rules.ByCycle
	}
	return rules.ByAdmit
}

// Check evaluates every reading for every object.
func (d *declarations) Check(*rapid.T) {
	happened, now := d.happened(), map[string]*glance{}
	w := policy.NewWorld(d.afresh.c, d.afresh.s.p, nowhereComputed{})
	w.BeginAt(d.now)
	w.UsedAtStart = d.afresh.s.UsedAtStart
	for _, r := range d.readings {
		alike, ids := map[string]string{}, map[string]string{}
		d.each(w, r.Reads, func(of string, f *language.Frame) {
			value := string(language.Encode(nil, r.Eval(f)))
			if types.IsError(r.Eval(f)) {
				value = fmt.Sprint(r.Eval(f))
			}
			x := &glance{value: value, told: d.told(w, f, r.Reads)}
			now[r.Text.Value+" of "+of] = x
			d.compare(r, of, happened, x)
			d.distinct(r, f, of, x, alike, ids)
		})
	}
	d.before = now
}

func (d *declarations) breaks(r reading, of, how string) {
	if d.broken[r.name] == "" {
		d.broken[r.name] = r.Text.Value + " of " + of + " " + how
	}
}

func (d *declarations) compare(r reading, of string, happened rules.Changes, now *glance) {
	was := d.before[r.Text.Value+" of "+of]
	if was == nil || was.value == now.value {
		return
	}
	change := fmt.Sprintf("was %q and is %q", was.value, now.value)
	if changes := r.Reads.Changes(); changes < happened && (happened != rules.ByCycle || !policy.ReadsNow(r.Reads)) {
		d.breaks(r, of, change+", and is said to change "+r.Reads.Changes().String())
		return
	}
	for i, parts := range now.told {
		moved := len(was.told) == len(now.told) && !slices.ContainsFunc(parts, func(p string) bool { return slices.Contains(was.told[i], p) })
		if moved || len(was.told) != len(now.told) {
			return
		}
	}
	d.breaks(r, of, change+", and nothing changed that it is said to read")
}

// distinct checks that readings that are declared to distinguish objects do so, and that readings declared as amounts depend only on
// amounts.
func (d *declarations) distinct(r reading, f *language.Frame, of string, now *glance, alike, ids map[string]string) {
	if len(r.Reads.All) != 1 {
		return
	}
	read := r.Reads.All[0]
	if n, ok := f.Node.(*language.NodeView); ok && policy.InAmounts(read) {
		number := fmt.Sprint(d.described(n.Of.Row))
		if other, known := alike[number]; known && other != now.value {
			d.breaks(r, of, "is not that of another node with the same amounts")
		}
		alike[number] = now.value
	}
	if len(read.Steps) == 1 && policy.AnyOf(read, language.FromIdentity) {
		if other, known := ids[now.value]; known && other != of {
			d.breaks(r, of, "is that of "+other+", too")
		}
		ids[now.value] = of
	}
}

func (d *declarations) described(row int32) []uint64 {
	a := verdict.Alike{Nodes: &d.afresh.c.Nodes, Models: map[string]uint64{}}
	for _, name := range []string{"A100", "V100"} {
		a.Model(name)
	}
	a.Describe(row)
	return a.Scratch
}

// each calls ask with frames for all objects that are read.
func (d *declarations) each(w *language.World, reads *rules.Reads, ask func(of string, f *language.Frame)) {
	c, roots := w.Cluster(), reads.Roots()
	has := func(root string) bool { return slices.Contains(roots, root) }
	var frames []*language.Frame
	switch {
	case has("task"), has("preemptor"), has("victim"):
		for _, t := range c.TasksByKey() {
			frames = append(frames, w.Frame().OfTask(t))
		}
	case has("job"):
		for _, j := range c.JobsByKey() {
			frames = append(frames, w.Frame().OfJob(j))
		}
	case has("queue"):
		for _, q := range c.QueuesByName() {
			frames = append(frames, w.Frame().OfQueue(q))
		}
	default:
		frames = append(frames, w.Frame())
	}
	for _, f := range frames {
		f.Request = w.Amounts(nil)
		if !has("node") && !has("gpu") {
			ask(subjectOf(f), f)
			continue
		}
		for row, n := range c.Nodes.Rows {
			if n == nil {
				continue
			}
			g := *f
			g.OnNode(int32(row))
			if !has("gpu") {
				ask(subjectOf(&g), &g)
				continue
			}
			for i := range c.Nodes.GPUs[row] {
				g.OnDevice(&c.Nodes.GPUs[row][i], false)
				ask(fmt.Sprint(subjectOf(&g), " device ", i), &g)
			}
		}
	}
}

// subjectOf distinguishes the objects of a frame from earlier objects with the same names.
func subjectOf(f *language.Frame) (out string) {
	if t, ok := f.Task.(*language.TaskView); ok {
		out += t.Of.Key + " " + t.Of.UID
	} else if j, ok := f.Job.(*language.JobView); ok {
		out += fmt.Sprintf("%s %p", j.Of.Key, j.Of)
	} else if q, ok := f.Queue.(*language.QueueView); ok {
		out += q.Of.Name
	}
	if n, ok := f.Node.(*language.NodeView); ok {
		out += " on " + n.Of.Name
	}
	return out
}

// told returns, for each step of each read, the versions that report its changes. A change moves all versions of some step.
func (d *declarations) told(w *language.World, f *language.Frame, reads *rules.Reads) (out [][]string) {
	for _, read := range reads.All {
		root, _ := f.ResolveName(read.Root)
		if read.Root == "now" {
			out = append(out, []string{"time " + d.now.String()})
		}
		v, ok := root.(ref.Val)
		if !ok {
			continue
		}
		at, changes := []standing{{v, d.ownerOf(w, f, v)}}, rules.Static
		for _, step := range read.Steps {
			m := step.Member
			changes = max(changes, m.Changes)
			steps := map[int][]string{}
			for _, x := range at {
				for i, parts := range d.parts(w, x.owner, m.Origin, changes) {
					for len(steps[i]) < len(parts) {
						steps[i] = append(steps[i], "")
					}
					for k := range parts {
						steps[i][k] += fmt.Sprint(k, parts[k], ";")
					}
				}
			}
			for i := range len(steps) {
				out = append(out, steps[i])
			}
			at = d.onwards(w, f, at, m)
		}
	}
	return out
}

// standing is an object on a path, and the owner whose versions report its changes.
type standing struct {
	at    ref.Val
	owner any // *model.Task, *model.Job, *model.Queue, a row, or nil
}

func (d *declarations) ownerOf(_ *language.World, f *language.Frame, v ref.Val) any {
	switch x := v.(type) {
	case *language.NodeView:
		return x.Of.Row
	case *language.GPUView:
		return f.Node.(*language.NodeView).Of.Row
	}
	return language.Owner(v)
}

// onwards follows a field to the objects to which it leads.
func (d *declarations) onwards(w *language.World, f *language.Frame, from []standing, m *rules.Member) (out []standing) {
	for _, x := range from {
		next := m.Get(x.at.Value())
		list, ok := next.(traits.Lister)
		if !ok {
			list = types.NewRefValList(types.DefaultTypeAdapter, []ref.Val{next})
		}
		for i := range language.SizeOf(list) {
			v := list.Get(i)
			owner := x.owner
			if !m.Origin.Any(language.ToParts | language.ToMembers | language.ToTasks) {
				owner = d.ownerOf(w, f, v)
			}
			if !types.IsError(v) && v != types.NullValue {
				out = append(out, standing{v, owner})
			}
		}
	}
	return out
}

// parts returns the versions that report a change of something with an origin. Each entry contains all versions that move together.
func (d *declarations) parts(w *language.World, owner any, origin rules.Origin, changes rules.Changes) (out [][]string) {
	c := w.Cluster()
	// of a task on a node, whose version does not cover them
	if _, held := owner.(int32); held && origin.Any(language.ToJob|language.ToQueue|language.ToNode) {
		out = append(out, []string{fmt.Sprint("all ", c.Clock)})
	} else if origin.Any(language.FromOwn&^language.FromIdentity | language.ToTasks | language.ToJob | language.ToQueue | language.ToNode) {
		own := d.version(c, owner, origin, changes)
		if row, ok := owner.(int32); ok && origin.Any(language.FromAmounts) {
			own = append(own, fmt.Sprint(d.described(row)))
		}
		out = append(out, own)
	}
	add := func(some rules.Origin, what ...any) {
		if origin.Any(some) {
			out = append(out, []string{fmt.Sprint(what...)})
		}
	}
	add(language.FromRelated|language.FromOthersTerms|language.ToNamespace, "objects ", c.ObjectClock)
	add(language.FromImages|language.FromImageNodes, "nodes ", c.Nodes.Object)
	add(language.FromVolumes, "storage ", c.Storage.Version)
	add(language.FromPeers|language.FromCandidates|language.FromAnswers|language.FromAll|language.FromCluster, "all ", c.Clock)
	add(language.FromClock, "time ", d.now)
	if row, ok := owner.(int32); ok && origin.Any(language.FromDomain) {
		add(language.FromDomain, "zone ", d.zone(row))
	}
	return out
}

// version returns the versions that an object's own changes move.
func (d *declarations) version(c *model.Cluster, owner any, origin rules.Origin, changes rules.Changes) []string {
	spec := changes <= rules.ByObject && origin.Any(language.FromSpec|language.FromTerms)
	switch x := owner.(type) {
	case int32:
		if changes <= rules.ByObject {
			return []string{fmt.Sprint("object ", c.Nodes.Object[x])}
		}
		return []string{fmt.Sprint("node ", c.Nodes.Version[x])}
	case *model.Task:
		if spec {
			return []string{fmt.Sprint("job ", x.Job.Key, x.Job.Version), fmt.Sprint("pod ", d.spec(x))}
		}
		return []string{fmt.Sprint("job ", x.Job.Key, x.Job.Version)}
	case *model.Job:
		return []string{fmt.Sprint("job ", x.Version)}
	case *model.Queue:
		return []string{fmt.Sprint("queue ", x.Version)}
	}
	return []string{"nothing"}
}

// spec distinguishes versions of a pod. The request of a pod also depends on what its node lists, so the model reads the pod again with the
// node.
func (d *declarations) spec(t *model.Task) string {
	listed := ""
	if t.Node != model.NoNode {
		listed = fmt.Sprint(d.afresh.c.Nodes.AllocatableOf(t.Node))
	}
	return fmt.Sprintf("%p %s", t.Object, listed)
}

// zone returns the versions of the nodes in the same zone as a node.
func (d *declarations) zone(row int32) (out []uint64) {
	n := &d.afresh.c.Nodes
	for other, node := range n.Rows {
		if node != nil && node.Labels["zone"] == n.Rows[row].Labels["zone"] {
			out = append(out, n.Version[other])
		}
	}
	return out
}

// nowhereComputed contains no computed fields.
type nowhereComputed struct{}

func (nowhereComputed) Attribute(*policy.Attribute, ref.Val) ref.Val { return types.NewErr("none") }
func (nowhereComputed) Variable(*policy.Variable, *language.Frame) ref.Val {
	return types.NewErr("none")
}
func (nowhereComputed) Starving(j *model.Job) bool { return j.Counts[model.Pending] > 0 }

func (nowhereComputed) IsReady(*model.Job) bool { return false }

// walk takes random steps, and returns the violations.
func (d *declarations) walk(t *testing.T, p *policy.Policy) map[string]string {
	t.Helper()
	d.broken = map[string]string{}
	for seed := range walks {
		rapid.Custom(func(t *rapid.T) bool {
			d.twins, d.before = newTwins(p, nil), map[string]*glance{}
			d.start(t)
			t.Repeat(rapid.StateMachineActions(d))
			return true
		}).Example(seed)
	}
	return d.broken
}

const walks = 30

// ChangePodImage and the methods below are steps of the machine in addition to those of twins.
func (d *declarations) ChangePodImage(t *rapid.T) {
	if key := d.task(t, model.Pending, model.Running); key != "" {
		p := d.afresh.c.Tasks[key].Object.DeepCopy()
		p.Spec.Containers[0].Image = drawOf(t, "image", "a", "b")
		d.apply(t, model.Delta{Object: p})
	}
}

func (d *declarations) ChangeNodeImages(t *rapid.T) {
	row, ok := d.afresh.c.Nodes.Index[drawOf(t, "node", "n1", "n2", "n3", "n4")]
	if !ok {
		return
	}
	n := d.afresh.c.Nodes.Rows[row].Object.DeepCopy()
	n.Status.Images = nil
	for _, name := range drawOf(t, "images", nil, []string{"a"}, []string{"b"}, []string{"a", "b"}) {
		n.Status.Images = append(n.Status.Images, corev1.ContainerImage{Names: []string{name}, SizeBytes: 200 << 20})
	}
	d.apply(t, model.Delta{Object: n})
}

func (d *declarations) ChangeClass(t *rapid.T) {
	if drawOf(t, "of a pod", true, false) {
		p := d.twinPod(t)
		p.Spec.PriorityClassName = drawOf(t, "class", "low", "high")
		d.apply(t, model.Delta{Object: p})
		return
	}
	class := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: drawOf(t, "class", "low", "high")}}
	class.Value = drawOf(t, "value", int32(1), 100)
	class.PreemptionPolicy = drawOf(t, "policy", nil, new(corev1.PreemptNever))
	class.GlobalDefault = drawOf(t, "default", false, false, true)
	d.apply(t, model.Delta{Op: drawOf(t, "op", model.Upsert, model.Upsert, model.Delete), Object: class})
}

// TestDeclarations checks that a field or a function reads only what it declares: if its value changes, one of the declared inputs changed.
// It also checks that each wrong declaration is found, and that the equal reading with a correct declaration passes.
func TestDeclarations(t *testing.T) {
	t.Parallel()
	p, issues := policy.Default()
	if issues.Err() != nil {
		t.Fatal(issues)
	}
	d := &declarations{readings: readingsOf(t, withMisdeclared())}
	broken := d.walk(t, p)
	for _, x := range misdeclared() {
		name := x.object + "." + x.name + "Wrongly"
		if broken[name] == "" {
			t.Errorf("%s is not found out", name)
		}
		delete(broken, name)
	}
	if broken["wronglyInZone"] == "" {
		t.Error("a function that reads more than it says is not found out")
	}
	delete(broken, "wronglyInZone")
	for name, how := range broken {
		t.Errorf("%s: %s", name, how)
	}
}

// TestUndeclared checks that no policy can be compiled with a vocabulary in which a field or function does not declare its reads.
func TestUndeclared(t *testing.T) {
	field, function := policy.Vocabulary(), policy.Vocabulary()
	unsaid := &rules.Member{Name: "mystery", Type: cel.IntType, Get: func(any) ref.Val { return types.IntZero }}
	field.Objects[0].Members = append(field.Objects[0].Members, unsaid)
	silent := language.Method("mystery", "", []*cel.Type{language.NodeType()}, cel.BoolType, func(...ref.Val) ref.Val { return types.True })
	function.Functions = append(function.Functions, silent)
	for _, v := range []rules.Vocabulary{field, function} {
		docs, _ := source.Parse("policy.yaml", []byte(policyText("jobOrder: []")))
		if p, issues := policy.LoadIn(docs[0], policy.Verbs(), v, policy.AccountingFunctions()); p != nil ||
			!strings.Contains(issues.Error(), "mystery") {
			t.Errorf("what does not say what it reads is taken: %v", issues)
		}
	}
}
