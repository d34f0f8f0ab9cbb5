package session

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/cel-go/cel"
	celtypes "github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"pgregory.net/rapid"

	"github.com/celsius-scheduler/celsius/engine/language"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/engine/policy/facts"
	"github.com/celsius-scheduler/celsius/rules"
	"github.com/celsius-scheduler/celsius/rules/eval"
	"github.com/celsius-scheduler/celsius/rules/source"
)

// grammar writes random expressions with correct types, from everything in the language.
type grammar struct {
	byType map[string][]string    // reads of members, by their type
	calls  map[string][]signature // functions of the vocabulary, by their result type
	lists  map[string]string      // list types -> type of their elements
	inside map[string][]string    // variables of the surrounding loops, by type
	loops  int
}

type signature struct {
	f *rules.Function
	o *rules.Overload
}

// newGrammar reads the vocabulary. It follows members three levels deep from every root.
func newGrammar() *grammar {
	g := &grammar{byType: map[string][]string{}, calls: map[string][]signature{}, lists: map[string]string{}, inside: map[string][]string{}}
	known := map[string]*rules.Object{}
	for _, o := range language.Objects() {
		known[o.Name] = o
	}
	var follow func(path string, t *cel.Type, depth int)
	follow = func(path string, t *cel.Type, depth int) {
		g.byType[t.String()] = append(g.byType[t.String()], path)
		if t.Kind() == celtypes.ListKind {
			g.lists[t.String()] = t.Parameters()[0].String()
		}
		o := known[t.TypeName()]
		if o == nil || depth == 0 {
			return
		}
		for _, m := range o.Members {
			if !m.Hidden {
				follow(path+"."+m.Name, m.Type, depth-1)
			}
		}
	}
	for _, r := range policy.Roots() {
		if r.Name != "params" && r.Name != "variables" {
			follow(r.Name, r.Type, 2)
		}
	}
	for range 3 {
		follow("node", language.NodeType(), 1) // columns are of nodes, so the grammar contains more about them
		for _, key := range []string{"zone", "missing"} {
			g.byType["string"] = append(g.byType["string"], "node.labels['"+key+"']", "node.labels[?'"+key+"'].orValue('east')")
			g.byType["bool"] = append(g.byType["bool"], "('"+key+"' in node.labels)", "has(node.labels."+key+")")
		}
	}
	for _, f := range language.Functions() {
		for i := range f.Overloads {
			if o := &f.Overloads[i]; o.Eval != nil {
				g.calls[o.Result.String()] = append(g.calls[o.Result.String()], signature{f, o})
			}
		}
	}
	return g
}

// literals returns constants of the plain types.
func literals(t string) []string {
	return map[string][]string{
		"bool": {"true", "false"}, "int": {"0", "1", "2", "-3", "9223372036854775807"}, "double": {"0.0", "1.5", "-0.25", "1e300"},
		"string": {"''", "'cpu'", "'east'", "'Pending'", "'zone'"}, "google.protobuf.Duration": {"duration('10m')", "duration('0s')"},
		"list(string)": {"['cpu', 'east']", "[]"}, "map(string, double)": {"{'cpu': 2.0}"}, "map(string, int)": {"{'cpu': 2}"},
		"map(string, string)":                     {"{'cpu': 'MostAllocated'}"},
		"optional_type(google.protobuf.Duration)": {"optional.none()"},
	}[t]
}

// write returns an expression of a type; "" if there is none.
func (g *grammar) write(t *rapid.T, kind string, depth int) string {
	var forms []func() string
	if all := slices.Concat(literals(kind), g.byType[kind], g.inside[kind]); len(all) > 0 {
		forms = append(forms, func() string { return drawOf(t, kind, all...) })
	}
	if depth > 0 {
		forms = append(forms, g.operators(t, kind, depth-1)...)
		if calls := g.calls[kind]; len(calls) > 0 {
			forms = append(forms, func() string { return g.call(t, drawOf(t, "call", calls...), depth-1) })
		}
		forms = append(forms, func() string {
			return "(" + g.write(t, "bool", depth-1) + " ? " + g.write(t, kind, depth-1) + " : " + g.write(t, kind, depth-1) + ")"
		})
	}
	if len(forms) == 0 {
		t.Skip("nothing gives " + kind)
	}
	return forms[rapid.IntRange(0, len(forms)-1).Draw(t, "form")]()
}

// refusedFor returns why expressions with correct types are refused: they may cost too much, or their constants fail.
func refusedFor() []string {
	return []string{"over the limit of", "overflow", "by zero", "out of bounds", "no such key"}
}

// compiled writes an expression of a type into a format, and compiles it. If it is refused, compiled writes a less deep one. Any other
// mistake is a mistake of the grammar.
func (g *grammar) compiled(t *rapid.T, scope *rules.Scope, kind, format string) *eval.Expr {
	for depth := 4; ; depth-- {
		text := strings.ReplaceAll(format, "%s", g.write(t, kind, depth))
		e, issues := eval.Compile(scope, source.NewText(text), rules.Anything())
		if issues.Err() == nil {
			return e
		}
		refused := slices.ContainsFunc(refusedFor(), func(why string) bool { return strings.Contains(issues.Error(), why) })
		refused = refused || strings.Contains(text, "[][") // an element of an empty list has any type: the sum of two passes for an int
		if depth == 0 || !refused {
			t.Fatalf("%s does not compile: %v", text, issues)
		}
	}
}

func (g *grammar) call(t *rapid.T, s signature, depth int) string {
	var args []string
	for _, a := range s.f.Written(s.o) {
		args = append(args, g.write(t, a.String(), depth))
	}
	switch {
	case s.f.Name == "inWindow":
		return "inWindow(now, '22:00-06:00', 'UTC')"
	case s.o.Member:
		return args[0] + "." + s.f.Name + "(" + strings.Join(args[1:], ", ") + ")"
	}
	return s.f.Name + "(" + strings.Join(args, ", ") + ")"
}

// operators returns the forms of a type that CEL itself has.
func (g *grammar) operators(t *rapid.T, kind string, depth int) []func() string {
	w := func(kind string) string { return g.write(t, kind, depth) }
	numbers := func() string { return w(drawOf(t, "number", "int", "double")) }
	infix := func(operand func() string, list ...string) func() string {
		return func() string { return "(" + operand() + " " + drawOf(t, "operator", list...) + " " + operand() + ")" }
	}
	of := func(kind string) func() string { return func() string { return w(kind) } }
	switch kind {
	case "bool":
		return []func() string{
			infix(of("bool"), "&&", "||", "==", "!="), func() string { return "!" + w("bool") },
			infix(numbers, "<", "<=", ">", ">=", "==", "!="), infix(of("string"), "<", "<=", ">", ">=", "==", "!="),
			infix(of("google.protobuf.Timestamp"), "<", ">", "=="), infix(of("google.protobuf.Duration"), "<", ">", "=="),
			infix(of("Resources"), "==", "!="),
			func() string { return "(" + w("string") + " in " + w("list(string)") + ")" },
			func() string { return "(" + w("string") + " in " + w("map(string, string)") + ")" },
			func() string { return "(" + w("string") + " in " + w("Resources") + ")" },
			func() string { return "(" + w(drawOf(t, "object", "Node", "Task", "Job", "Queue")) + " == null)" },
			func() string { return "has(node.labels.zone)" }, func() string { return "has(task.startedAt)" },
			func() string { return w("string") + ".startsWith(" + w("string") + ")" },
			g.loop(t, depth, "bool", "all", "exists", "exists_one"),
		}
	case "int":
		return []func() string{
			infix(of("int"), "+", "-", "*", "/", "%"), func() string { return "-" + w("int") }, func() string { return "int(" + numbers() + ")" },
			func() string {
				return "size(" + w(drawOf(t, "sized", "string", "list(string)", "map(string, string)")) + ")"
			},
			func() string { return "math.greatest(" + w("int") + ", " + w("int") + ")" },
			func() string { return w("google.protobuf.Timestamp") + ".getHours('UTC')" },
		}
	case "double":
		return []func() string{
			func() string { // for two ints, the result would be an int
				sides := drawOf(t, "sides", [2]string{"double", "double"}, [2]string{"double", "int"}, [2]string{"int", "double"})
				return "(" + w(sides[0]) + " " + drawOf(t, "operator", "+", "-", "*", "/") + " " + w(sides[1]) + ")"
			},
			func() string { return "double(" + numbers() + ")" }, func() string { return "-" + w("double") },
			func() string { return w("Resources") + "[" + w("string") + "]" },
		}
	case "string":
		return []func() string{
			infix(of("string"), "+"), func() string { return w("map(string, string)") + "[" + w("string") + "]" },
			func() string { return w("map(string, string)") + "[?" + w("string") + "].orValue(" + w("string") + ")" },
			func() string { return "string(" + w("int") + ")" }, func() string { return w("list(string)") + "[" + w("int") + "]" },
		}
	case "Resources":
		return []func() string{infix(of("Resources"), "+", "-")}
	case "google.protobuf.Timestamp":
		return []func() string{func() string { return "(" + w(kind) + " + " + w("google.protobuf.Duration") + ")" }}
	case "google.protobuf.Duration":
		return []func() string{func() string {
			return "(" + w("google.protobuf.Timestamp") + " - " + w("google.protobuf.Timestamp") + ")"
		}}
	case "list(string)":
		return []func() string{g.loop(t, depth, "string", "map")}
	}
	return nil
}

// loop writes a comprehension over some list, with a body of a type.
func (g *grammar) loop(t *rapid.T, depth int, body string, macros ...string) func() string {
	return func() string {
		list := drawOf(t, "list", slices.Sorted(keysIn(g.lists))...)
		over := g.write(t, list, 0)
		g.loops++
		name, element := fmt.Sprint("x", g.loops), g.lists[list]
		before := g.inside[element]
		g.inside[element] = append(slices.Clone(before), name)
		inner := g.write(t, body, depth)
		g.inside[element] = before
		return over + "." + drawOf(t, "macro", macros...) + "(" + name + ", " + inner + ")"
	}
}

func keysIn[V any](m map[string]V) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

// sameValue reports whether two results are equal: the same error, or the same value of the same type.
func sameValue(a, b ref.Val) bool {
	if celtypes.IsError(a) || celtypes.IsError(b) {
		return celtypes.IsError(a) && celtypes.IsError(b) && fmt.Sprint(a) == fmt.Sprint(b)
	}
	x, ok := a.(celtypes.Double)
	y, ok2 := b.(celtypes.Double)
	if ok && ok2 {
		return math.Float64bits(float64(x)) == math.Float64bits(float64(y)) || math.IsNaN(float64(x)) && math.IsNaN(float64(y))
	}
	return a.Type().TypeName() == b.Type().TypeName() && (a.Equal(b) == celtypes.True || language.Text(a) == language.Text(b))
}

// compiledAgrees checks in random worlds that compiled expressions give the same values and errors as cel-go.
func compiledAgrees(t *rapid.T, scope *rules.Scope, p *policy.Policy) {
	kind := drawOf(t, "gives", "bool", "bool", "int", "double", "string", "Resources", "list(string)")
	e := newGrammar().compiled(t, scope, kind, "%s")
	if e.Interpreted != "" {
		t.Fatalf("%s is left to cel-go: %s", e.Text.Value, e.Interpreted)
	}
	agreesInWorlds(t, p, e)
}

// agreesInWorlds compares expressions with cel-go in two random worlds, one after the other, for each pod on each node.
func agreesInWorlds(t *rapid.T, p *policy.Policy, list ...*eval.Expr) {
	w := newTwins(p, nil)
	w.apply(t, model.Delta{Object: aQueue("q1")}, model.Delta{Object: aQueue("q2")})
	var batch eval.Batch
	for range 2 { // cached values of the first world must not appear in the second
		var deltas []model.Delta
		for range 3 {
			deltas = append(deltas, model.Delta{Object: twinNode(t)}, model.Delta{Object: twinGroup(t)}, model.Delta{Object: w.twinPod(t)},
				model.Delta{Object: w.twinPod(t)})
		}
		w.apply(t, deltas...)
		s := w.remembers.s
		for _, task := range w.remembers.c.TasksByKey() {
			f := s.ask.Frame().OfTask(task)
			f.Request, f.Scope = s.Amounts(task.Request), celtypes.String("queue")
			f.Victim, f.Preemptor = s.TaskView(task), s.TaskView(task)
			for _, e := range list {
				agreesOnNodes(t, e, f, &batch)
			}
			s.ask.Done()
		}
	}
}

// agreesOnNodes compares the closures of an expression with cel-go on every node, and the columns with the closures.
func agreesOnNodes(t *rapid.T, e *eval.Expr, f *language.Frame, batch *eval.Batch) {
	c := f.World.Cluster()
	var rows []int32
	wants := map[int32]ref.Val{}
	for row, n := range c.Nodes.Rows {
		if n == nil {
			continue
		}
		f.Node, f.GPU = f.World.NodeView(int32(row)), nil
		if gpus := f.World.NodeView(int32(row)).DevicesNow().Views; len(gpus) > 0 {
			f.GPU = gpus[0]
		}
		want, got := e.Interpret(f), e.Eval(f)
		if !sameValue(want, got) {
			t.Fatalf("%s\nfor %s:\n  cel-go:   %s\n  compiled: %s", e.Text.Value, f.Subject(), language.Text(want), language.Text(got))
		}
		typedAgrees(t, e, f, want)
		rows, wants[int32(row)] = append(rows, int32(row)), want
	}
	if strings.Contains(e.Text.Value, "gpu.") || strings.Contains(e.Text.Value, "gpu)") || strings.Contains(e.Text.Value, "gpu ") {
		return // it changes with the node, which no expression of a site does
	}
	columnsAgree(t, e, f, batch, rows, wants)
}

// columnsAgree compares an expression by column with its values. Each result must be correct or reported as failed, and no error may be
// missed.
func columnsAgree(t *rapid.T, e *eval.Expr, f *language.Frame, batch *eval.Batch, rows []int32, wants map[int32]ref.Val) {
	check := func(failed []int32, same func(i int, want ref.Val) bool) {
		for i, row := range rows {
			if !slices.Contains(failed, row) && !same(i, wants[row]) {
				t.Fatalf("%s by column, on %s: not %s", e.Text.Value, f.World.Cluster().Nodes.Rows[row].Name, language.Text(wants[row]))
			}
		}
	}
	switch e.Type.Kind() {
	case celtypes.BoolKind:
		out := make([]bool, len(rows))
		check(e.HoldsEach(batch, f, rows, out), func(i int, want ref.Val) bool { return want == celtypes.Bool(out[i]) })
	case celtypes.IntKind, celtypes.DoubleKind:
		out := make([]float64, len(rows))
		check(e.NumberEach(batch, f, rows, out), func(i int, want ref.Val) bool {
			x, ok := language.Number(want)
			return ok && (math.Float64bits(x) == math.Float64bits(out[i]) || math.IsNaN(x) && math.IsNaN(out[i]))
		})
	default: // is in no column
	}
}

// typedAgrees compares the typed methods, which return an unboxed value, with the value.
func typedAgrees(t *rapid.T, e *eval.Expr, f *language.Frame, want ref.Val) {
	switch e.Type.Kind() {
	case celtypes.BoolKind:
		x, err := e.Holds(f)
		if (err != nil) != celtypes.IsError(want) || err == nil && want != celtypes.Bool(x) {
			t.Fatalf("%s: Holds gives %t, %v; cel-go %s", e.Text.Value, x, err, language.Text(want))
		}
	case celtypes.IntKind, celtypes.DoubleKind:
		x, err := e.Number(f)
		if n, ok := language.Number(want); (err != nil) != celtypes.IsError(want) || err == nil &&
			(!ok || n != x && !(math.IsNaN(n) && math.IsNaN(x))) {
			t.Fatalf("%s: Number gives %v, %v; cel-go %s", e.Text.Value, x, err, language.Text(want))
		}
	default: // has no typed form
	}
}

func kernelFixture(t testing.TB) (*rules.Scope, *policy.Policy) {
	t.Helper()
	lang, err := rules.NewLanguage(policy.Vocabulary())
	if err != nil {
		t.Fatal(err)
	}
	scope, err := lang.Scope(policy.RootTypes())
	if err != nil {
		t.Fatal(err)
	}
	return scope, loaded(t, policyText("jobOrder: []"))
}

// TestCompiledIsCEL checks that compiled expressions give what cel-go gives.
func TestCompiledIsCEL(t *testing.T) {
	t.Parallel()
	scope, p := kernelFixture(t)
	rapid.Check(t, func(t *rapid.T) { compiledAgrees(t, scope, p) })
}

// FuzzCompiledIsCEL does what TestCompiledIsCEL does, for any duration.
func FuzzCompiledIsCEL(f *testing.F) {
	scope, p := kernelFixture(f)
	f.Fuzz(rapid.MakeFuzz(func(t *rapid.T) { compiledAgrees(t, scope, p) }))
}

// TestRootsByNumber checks that Frame finds its roots by number as by name.
func TestRootsByNumber(t *testing.T) {
	_, activation := everyRoot(t)
	f := activation.(*alsoValues).Frame
	names := language.RootNames()
	for _, r := range policy.Roots() {
		if !slices.Contains(names, r.Name) {
			t.Errorf("root %s has no number", r.Name)
		}
	}
	for number, name := range names {
		byName, ok := f.ResolveName(name)
		if got := f.Root(number); !ok || got != byName {
			t.Errorf("root %d, %s: %v by number, %v by name", number, name, got, byName)
		}
	}
}

// byRowForNow returns the rows of the built-in tables that are computed node by node, and why.
func byRowForNow() map[string]string {
	const (
		domains = "asked on the nodes of the domains where something changed, which are few; who is there is counted already"
		age     = "a guard that compares the time with when a node was measured, which is asked when it is measured anew"
		buckets = "asked of the pods of the few jobs whose owner says which roles belong together; where these are moves with each of them"
		cpus    = "asked of the nodes that tell of their CPUs, for pods that get some of their own"
		volumes = "asked for each pod with volumes by itself, through Kubernetes' own plugins, which take a node"
	)
	return map[string]string{
		"predicates/pod-affinity": domains, "predicates/spread": domains, "nodeorder/pod-affinity": domains, "nodeorder/spread": domains,
		"predicates/volume-sharing": volumes, "predicates/volume-limits": volumes, "predicates/volume-zone": volumes,
		"predicates/volume-binding":     volumes,
		"task-topology/with-its-bucket": buckets,
		"numaaware/aligned":             cpus, "numaaware/fewest-numa-nodes": cpus,
		"usage/cpu-usage": age, "usage/memory-usage": age, "usage/least-used": age,
	}
}

// TestTablesAreCompiled checks that every row and attribute of the built-in tables is compiled. The rows about nodes have a form by column,
// except those in a list.
func TestTablesAreCompiled(t *testing.T) {
	listed := byRowForNow()
	for _, name := range policy.ShippedNames() {
		p := loaded(t, fmt.Sprintf("apiVersion: scheduling.celsius.dev/v1alpha1\nkind: SchedulingPolicy\nmetadata: {name: x}\nspec:\n  "+
			"pipeline: [allocate]\n  tiers: [{name: a, tables: [{name: %s}]}]\n", name))
		for _, fact := range facts.Of(p) {
			if fact.Interpreted != "" {
				t.Errorf("%s %s/%s is left to cel-go: %s", fact.Site, fact.Table, fact.Name, fact.Interpreted)
			}
			row := fact.Table + "/" + fact.Name
			if why := listed[row]; fact.Columns && (fact.ByRow == "") != (why == "") {
				t.Errorf("%s %s: %s; the list says %q", fact.Site, row, fact.Compiled(), why)
			}
			delete(listed, row)
		}
	}
	for row := range listed {
		t.Errorf("%s is in the list, but no row that ships", row)
	}
}
