package session

import (
	"cmp"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/cel-go/cel"
	celtypes "github.com/google/cel-go/common/types"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/celsius-scheduler/celsius/engine/language"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/engine/policy/facts"
	policytext "github.com/celsius-scheduler/celsius/engine/policy/text"
	"github.com/celsius-scheduler/celsius/engine/quota"
	"github.com/celsius-scheduler/celsius/rules"
	"github.com/celsius-scheduler/celsius/rules/eval"
	"github.com/celsius-scheduler/celsius/rules/source"
	"github.com/celsius-scheduler/celsius/rules/tables"
)

// policySeeds returns the built-in policies, and a policy for each built-in table.
func policySeeds(t testing.TB) []string {
	t.Helper()
	var out []string
	files, err := fs.Glob(tables.FS, "*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		data, err := fs.ReadFile(tables.FS, name)
		if err != nil {
			t.Fatal(err)
		}
		switch name {
		case "default.yaml":
			out = append(out, string(data))
		case "actions.yaml":
			_, actions, _ := strings.Cut(string(data), "actions:\n")
			out = append(out, "apiVersion: scheduling.celsius.dev/v1alpha1\nkind: SchedulingPolicy\nmetadata: {name: x}\nspec:\n  pipeline: "+
				"[enqueue, backfill]\n  actions:\n"+indented(actions, "  "))
		default:
			_, body, _ := strings.Cut(string(data), "description:")
			out = append(out, policyText("description:"+body))
		}
	}
	return out
}

// FuzzLoad checks that no file causes a panic, that every issue is inside the file, and that a policy without mistakes can be resolved.
func FuzzLoad(f *testing.F) {
	for _, seed := range policySeeds(f) {
		f.Add([]byte(seed))
	}
	files, err := filepath.Glob("testdata/issues/*.txtar")
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		for part := range strings.SplitSeq(string(data), "-- ") {
			if _, file, ok := strings.Cut(part, " --\n"); ok && strings.Contains(file, "kind: SchedulingPolicy") {
				f.Add([]byte(file))
			}
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 1<<13 {
			t.Skip("takes only time")
		}
		docs, issues := source.Parse("fuzz.yaml", data)
		for _, doc := range docs {
			p, found := policy.Load(doc)
			if (p == nil) != (found.Err() != nil) {
				t.Fatalf("a policy: %t, and issues %v", p != nil, found)
			}
			issues = append(issues, found...)
			if p == nil {
				continue
			}
			facts.Of(p)
			if out, found := policytext.Resolve(doc, nil); found.Err() != nil || len(out) == 0 {
				t.Fatalf("it does not resolve: %v", found)
			}
		}
		insideFile(t, issues, "fuzz.yaml", data)
	})
}

// insideFile fails the test for an issue outside of its file.
func insideFile(t *testing.T, issues source.Issues, file string, data []byte) {
	t.Helper()
	lines := strings.Split(strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(strings.TrimPrefix(string(data), "\ufeff")), "\n")
	for _, i := range issues {
		if i.File != file || i.Line < 1 || i.Line > len(lines) || i.Column < 1 || i.Width < 1 {
			t.Errorf("an issue lies outside of the file: %s", i.Render())
			continue
		}
		if line := lines[i.Line-1]; utf8.ValidString(line) && i.Column+i.Width-2 > utf8.RuneCountInString(line) {
			t.Errorf("an issue lies outside of its line %q: %s", line, i.Render())
		}
	}
}

// FuzzExpression checks that no expression causes a panic in the compiler or on a world, and that its value has the declared type.
func FuzzExpression(f *testing.F) {
	for _, seed := range policySeeds(f) {
		docs, _ := source.Parse("seed.yaml", []byte(seed))
		for _, text := range inlineExpressions(docs[0].Root.Get("spec")) {
			f.Add(text)
		}
	}
	for _, x := range allMembers() {
		f.Add(x)
	}
	for _, fn := range language.Functions() {
		for i := range fn.Overloads {
			f.Add(sampleCall(fn, &fn.Overloads[i]))
		}
	}
	scope, frame := everyRoot(f)
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 1<<10 || !utf8.ValidString(text) {
			t.Skip("takes only time")
		}
		e, issues := eval.Compile(scope, source.NewText(text), rules.Anything())
		if e == nil {
			if issues.Err() == nil {
				t.Fatal("neither an expression nor an issue")
			}
			return
		}
		v := e.Eval(frame)
		if celtypes.IsError(v) || v == celtypes.NullValue {
			return
		}
		switch e.Type.Kind() {
		case celtypes.BoolKind, celtypes.IntKind, celtypes.DoubleKind, celtypes.StringKind, celtypes.StructKind, celtypes.ListKind,
			celtypes.MapKind, celtypes.TimestampKind, celtypes.DurationKind:
			if v.Type().TypeName() != e.Type.TypeName() {
				t.Errorf("%s gives %v, a %s, not a %s", text, v, v.Type().TypeName(), e.Type)
			}
		default: // values of other types do not state their type
		}
		_ = fmt.Sprint(text, e.Reads.Strings())
	})
}

// inlineExpressions returns the expressions in the inline tables of a policy.
func inlineExpressions(spec source.Value) []string {
	var out []string
	var quiet source.Issues
	for _, tier := range spec.Get("tiers").Items(&quiet) {
		for _, entry := range tier.Get("tables").Items(&quiet) {
			out = append(out, rowExpressions(entry.Get("inline"))...)
		}
	}
	return out
}

func rowExpressions(table source.Value) []string {
	var out []string
	var quiet source.Issues
	for _, section := range table.Fields(nil, &quiet) {
		if section.Value.Kind() != source.List {
			continue
		}
		for _, row := range section.Value.Items(&quiet) {
			for _, key := range []string{"expression", "by", "when"} {
				if v := row.Get(key); v.Exists() {
					out = append(out, v.Text(&quiet).Value)
				}
			}
		}
	}
	return out
}

// everyRoot returns a scope with all roots, and a frame in which each has a value.
func everyRoot(t testing.TB) (*rules.Scope, cel.Activation) {
	t.Helper()
	lang, err := rules.NewLanguage(policy.Vocabulary())
	if err != nil {
		t.Fatal(err)
	}
	roots := policy.RootTypes()
	roots["typical"], roots["tree"] = language.TypicalType(), language.ShareTreeType() // these are not roots, but only values of attributes
	roots["said"] = language.AnswerType()
	scope, err := lang.Scope(roots)
	if err != nil {
		t.Fatal(err)
	}
	c := aCluster(t,
		aNode("n1", "cpu=8 memory=16Gi pods=10 nvidia.com/gpu=2", func(n *corev1.Node) {
			n.Labels["zone"], n.Annotations["celsius.dev/gpu-model"] = "east", "A100"
			n.Spec.Taints = []corev1.Taint{{Key: "k", Value: "v", Effect: corev1.TaintEffectPreferNoSchedule}}
		}),
		&policyv1.PodDisruptionBudget{
			ObjectMeta: metav1.ObjectMeta{Name: "b", Namespace: "a"}, Spec: policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{}},
		},
		aQueue("q"), aQuota("quota", "cpu=4", "cpu=1"), aGroup("g", "q"), aPod("p1", "cpu=1 memory=1Gi"),
		aPod("p2", "cpu=2 memory=1Gi nvidia.com/gpu=1", runningOn("n1"), annotated("volcano.sh/task-spec", "worker")))
	s := New(c, loaded(t, policyText("jobOrder: []")))
	s.Begin(noon())
	f := s.ask.Frame().OfTask(c.Tasks["a/p1"])
	f.Node, f.GPU = s.NodeView(0), s.NodeView(0).DevicesNow().Views[0]
	f.Victim, f.Preemptor = s.TaskView(c.Tasks["a/p2"]), s.TaskView(c.Tasks["a/p1"])
	f.Request, f.Scope = s.Amounts(c.Tasks["a/p1"].Request), celtypes.String("queue")
	tree := language.NewShareTree(quota.NewShares(c.Total), map[*model.Queue][]string{})
	return scope,
		&alsoValues{f, map[string]any{
			"typical": language.NewTypical(quota.NewTypical(c.Shapes(), 1, language.Machines(c))), "tree": tree,
			"said": s.Answer("http://x", "", f.Task),
		}}
}

// alsoValues is a Frame with more names, for values that only attributes return.
type alsoValues struct {
	*language.Frame
	values map[string]any
}

// ResolveName implements cel.Activation.
func (a *alsoValues) ResolveName(name string) (any, bool) {
	if v, ok := a.values[name]; ok {
		return v, true
	}
	return a.Frame.ResolveName(name)
}

// allMembers returns an expression for every member of every object, from a root that reaches it.
func allMembers() []string {
	from := map[string]string{
		"Task": "task", "Job": "job", "Role": "job.roles[0]", "Queue": "queue", "QueueSpec": "queue.spec", "Node": "node",
		"Taint": "node.taints[0]", "GPU": "gpu", "Typical": "typical", "Cluster": "cluster", "Resources": "request",
		"Namespace": "job.namespaceInfo", "Quota": "job.quotas[0]", "NodeGroups": "queue.nodeGroups",
		"Budget": "task.disruptionBudgets[0]",
	}
	var out []string
	for _, o := range language.Objects() {
		for _, m := range o.Members {
			if !m.Hidden {
				out = append(out, from[o.Name]+"."+m.Name)
			}
		}
	}
	return out
}

// sampleValues returns an expression for each type of argument.
func sampleValues() map[string]string {
	return map[string]string{
		"Cluster": "cluster", "map(string, Resources)": "{job.nodeClass: job.request}",
		"Task": "task", "Node": "node", "Job": "job", "NodeGroups": "queue.nodeGroups", "GPU": "gpu", "Queue": "queue", "ShareTree": "tree",
		"Typical": "typical", "Answer": "said", "Buckets": "job.taskBuckets()", "Resources": "task.request", "int": "2", "double": "1.5",
		"string":                    "'cpu'",
		"google.protobuf.Timestamp": "now", "google.protobuf.Duration": "duration('90m')",
		"optional_type(google.protobuf.Duration)": "optional.of(duration('1h'))",
		"list(string)": "['cpu', 'memory', 'nvidia.com/gpu']", "map(string, double)": "{'cpu': 2.0}", "map(string, int)": "{'cpu': 2}",
		"map(string, string)": "{'cpu': 'MostAllocated'}",
	}
}

// sampleCall returns a call of one overload with arguments of its types.
func sampleCall(f *rules.Function, o *rules.Overload) string {
	name := f.Name
	var args []string
	for _, a := range f.Written(o) {
		args = append(args, cmp.Or(sampleValues()[a.String()], "no sample of "+a.String()))
	}
	if name == "inWindow" {
		args = []string{"now", "'22:00-06:00'", "'UTC'"}
	}
	switch {
	case name == "_[_]":
		return args[0] + "[" + args[1] + "]"
	case name == "@in":
		return args[0] + " in " + args[1]
	case strings.HasPrefix(name, "_"):
		return args[0] + " " + strings.Trim(name, "_") + " " + args[1]
	case o.Member:
		return args[0] + "." + name + "(" + strings.Join(args[1:], ", ") + ")"
	}
	return name + "(" + strings.Join(args, ", ") + ")"
}
