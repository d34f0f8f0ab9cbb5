package engine_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"github.com/celsius-scheduler/celsius/engine/extender"
	"github.com/celsius-scheduler/celsius/engine/language"
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/rules"
	"github.com/celsius-scheduler/celsius/rules/source"
)

// drawer writes random policies: shipped tables in tiers, and rows of expressions. It enumerates the whole vocabulary of the language for
// these expressions.
type drawer struct {
	*rand.Rand
	objects   map[string]*rules.Object
	functions []*rules.Function
	roots     map[string]*cel.Type
	names     int
	seed      uint64
	forced    bool // the policy must be able to displace pods
	// conditions draws the conditions of tables and tiers from a source of its own. So all other draws are the same with and without it.
	conditions *drawer
}

func newDrawer(seed uint64) *drawer {
	d := &drawer{Rand: rand.New(rand.NewPCG(seed, 7)), seed: seed, objects: map[string]*rules.Object{}, roots: map[string]*cel.Type{}}
	v := policy.Vocabulary()
	for _, o := range v.Objects {
		d.objects[o.Name] = o
	}
	answer := language.AnswerType()
	for _, f := range v.Functions {
		if args := f.Overloads[0].Args; len(args) == 0 || !args[0].IsExactType(answer) { // only tables have answers
			d.functions = append(d.functions, f)
		}
	}
	for _, r := range policy.Roots() {
		d.roots[r.Name] = r.Type
	}
	aside := *d
	aside.Rand = rand.New(rand.NewPCG(seed, 13))
	d.conditions = &aside
	return d
}

// condition returns, sometimes, a line with a "when" for a table or a tier with rows of these sites.
func (d *drawer) condition(indent string, sites ...policy.Site) string {
	d = d.conditions
	if d.IntN(3) > 0 {
		return ""
	}
	var roots []string
	for _, r := range policy.Roots() {
		blind := func(s policy.Site) bool { return !r.Everywhere && !slices.Contains(s.Roots, r.Name) }
		if !slices.ContainsFunc(sites, blind) && (r.Everywhere || len(sites) > 0) {
			roots = append(roots, r.Name)
		}
	}
	text := d.expression(cel.BoolType, roots, 1) + " || " + d.expression(cel.BoolType, roots, 1)
	return fmt.Sprintf("%swhen: %q # {left out if it is wrong}\n", indent, text)
}

func pick[T any](d *drawer, from ...T) T { return from[d.IntN(len(from))] }

// path is a way from a root to a value.
type path struct {
	text string
	typ  *cel.Type
}

// paths returns all ways from some roots, of at most the given number of steps.
func (d *drawer) paths(roots []string, steps int) []path {
	var all, at []path
	for _, r := range roots {
		at = append(at, path{r, d.roots[r]})
	}
	for range steps + 1 {
		all = append(all, at...)
		var next []path
		for _, p := range at {
			o := d.objects[p.typ.TypeName()]
			if o == nil || p.typ.Kind() != types.StructKind {
				continue
			}
			for _, m := range o.Members {
				if !m.Hidden && m.Get != nil && !m.Origin.Any(language.FromAnswers) {
					next = append(next, path{p.text + "." + m.Name, m.Type})
				}
			}
		}
		at = next
	}
	return all
}

// expression returns an expression of a type that reads some roots.
func (d *drawer) expression(t *cel.Type, roots []string, depth int) string {
	ways := slices.DeleteFunc(d.paths(roots, 2), func(p path) bool { return !p.typ.IsExactType(t) })
	if len(ways) > 0 && (depth == 0 || d.IntN(3) > 0) {
		return pick(d, ways...).text
	}
	if depth > 0 && d.IntN(3) == 0 {
		if call := d.call(t, roots, depth-1); call != "" {
			return call
		}
	}
	if depth > 0 {
		if text := d.combined(t, roots, depth-1); text != "" {
			return text
		}
	}
	return d.plain(t, roots)
}

// combined returns an expression that contains other expressions; "": there is none of that type.
func (d *drawer) combined(t *cel.Type, roots []string, depth int) string {
	sub := func(t *cel.Type) string { return d.expression(t, roots, depth) }
	resources := d.objects["Resources"].Type
	switch t.Kind() {
	case types.BoolKind:
		return pick(d,
			"("+sub(cel.IntType)+pick(d, " < ", " >= ", " == ", " != ")+sub(cel.IntType)+")",
			"("+sub(cel.DoubleType)+pick(d, " <= ", " > ")+sub(cel.DoubleType)+")",
			"("+sub(cel.StringType)+pick(d, " == ", " != ", " < ")+sub(cel.StringType)+")",
			"("+sub(cel.BoolType)+pick(d, " && ", " || ")+sub(cel.BoolType)+")", "!"+sub(cel.BoolType),
			sub(resources)+".fits("+sub(resources)+")", d.loop(roots))
	case types.IntKind:
		return pick(d, "("+sub(cel.IntType)+pick(d, " + ", " - ", " % ", " / ")+sub(cel.IntType)+")", "("+sub(cel.BoolType)+" ? "+
			sub(cel.IntType)+" : "+sub(cel.IntType)+")")
	case types.DoubleKind:
		return pick(d, "("+sub(cel.DoubleType)+pick(d, " + ", " - ", " * ", " / ")+sub(cel.DoubleType)+")", "double("+sub(cel.IntType)+")",
			sub(resources)+".cpu")
	default:
		return ""
	}
}

// plain returns an expression without other expressions in it.
func (d *drawer) plain(t *cel.Type, roots []string) string {
	switch t.Kind() {
	case types.BoolKind:
		return pick(d, "true", "false")
	case types.IntKind:
		return fmt.Sprint(d.IntN(5))
	case types.DoubleKind:
		return pick(d, "0.5", "2.0", "1000.0")
	case types.StringKind:
		return pick(d, `"east"`, `"worker"`, `"q1"`, `"n2"`, `"Pending"`)
	case types.TimestampKind:
		return "now"
	case types.DurationKind:
		return pick(d, "duration('90s')", "(now - "+d.expression(cel.TimestampType, roots, 0)+")")
	case types.ListKind:
		if t.Parameters()[0].Kind() == types.StringKind {
			return `["cpu", "memory"]`
		}
	default:
	}
	switch {
	case t.IsExactType(d.objects["Resources"].Type):
		return "cluster." + pick(d, "allocatable", "used", "usedAtStart")
	case t.IsExactType(cel.MapType(cel.StringType, cel.StringType)):
		return `{"zone": "east"}`
	}
	return ""
}

// loop returns an expression that loops over a list of objects.
func (d *drawer) loop(roots []string) string {
	ways := slices.DeleteFunc(d.paths(roots, 1), func(p path) bool {
		return p.typ.Kind() != types.ListKind || d.objects[p.typ.Parameters()[0].TypeName()] == nil
	})
	if len(ways) == 0 {
		return "true"
	}
	way := pick(d, ways...)
	d.roots["each"] = way.typ.Parameters()[0]
	return way.text + pick(d, ".exists(each, ", ".all(each, ") + d.expression(cel.BoolType, append([]string{"each"}, roots...), 0) + ")"
}

// call returns a call of a function with a result of this type; "": none could be written.
func (d *drawer) call(t *cel.Type, roots []string, depth int) string {
	var fitting []func() string
	for _, f := range d.functions {
		if strings.HasPrefix(f.Name, "_") || strings.HasPrefix(f.Name, "@") {
			continue
		}
		for _, o := range f.Overloads {
			if !o.Result.IsExactType(t) || o.Ints || o.Spread {
				continue
			}
			fitting = append(fitting, func() string {
				var args []string
				for i, arg := range o.Args {
					if i == 0 && f.Root != "" {
						continue
					}
					text := d.expression(arg, roots, depth)
					if text == "" {
						return ""
					}
					args = append(args, text)
				}
				if o.Member && f.Root == "" {
					return args[0] + "." + f.Name + "(" + strings.Join(args[1:], ", ") + ")"
				}
				return f.Name + "(" + strings.Join(args, ", ") + ")"
			})
		}
	}
	if len(fitting) == 0 {
		return ""
	}
	return pick(d, fitting...)()
}

func (d *drawer) name(of string) string {
	d.names++
	return fmt.Sprintf("%s-%d", of, d.names)
}

// row returns a row of a site, on a line of its own.
func (d *drawer) row(s policy.Site) string {
	want := cel.BoolType
	by := s.Expression
	switch {
	case by == "by":
		want = pick(d, cel.IntType, cel.DoubleType, cel.StringType, cel.BoolType)
	case slices.Contains(s.Keys, "weight"):
		want = pick(d, cel.IntType, cel.DoubleType)
	}
	expression := d.expression(want, s.Roots, 2)
	for want == cel.BoolType && d.IntN(2) == 0 { // otherwise most drawn rows would let nothing pass
		expression += pick(d, " || ", " || ", " && ") + d.expression(cel.BoolType, s.Roots, 1)
	}
	text := fmt.Sprintf("{name: %s, %s: %q", d.name("row"), by, expression)
	if d.IntN(3) == 0 {
		text += fmt.Sprintf(", when: %q", d.expression(cel.BoolType, s.Roots, 1))
	}
	if slices.Contains(s.Keys, "normalize") {
		text += ", normalize: " + pick(d, "none", "none", "max", "minMax", "inverseMax", "inverseSum") +
			pick(d, "", "", ", round: "+pick(d, "trunc", "floor", "nearest"))
	}
	if by == "expression" && want == cel.BoolType && d.IntN(2) == 0 {
		text += fmt.Sprintf(", message: %q", "it says {{"+d.expression(pick(d, cel.IntType, cel.StringType, cel.BoolType), s.Roots, 1)+"}}")
	}
	if d.IntN(2) == 0 {
		text += ", onError: " + pick(d, "deny", "allow", "skip")
	}
	return text + "}"
}

// attribute returns a computed field. Later draws may read it.
func (d *drawer) attribute() string {
	on := pick(d, "queue", "queue", "job", "node", "cluster", "task")
	t := pick(d, cel.IntType, cel.DoubleType, cel.BoolType)
	name := fmt.Sprintf("drawn%d", d.IntN(1<<30))
	text := fmt.Sprintf("{on: %s, name: %s, ", on, name)
	switch {
	case d.IntN(3) == 0 && (on == "queue" || on == "cluster"):
		member := pick(d, "job", "task")
		if on == "cluster" {
			member = pick(d, member, member, "node")
		}
		t = cel.DoubleType
		text += fmt.Sprintf("sum: {over: %s, of: %q, when: %q}", member, d.expression(t, []string{member}, 1),
			d.expression(cel.BoolType, []string{member}, 1))
	case d.IntN(4) == 0 && on == "queue":
		t = d.objects["Resources"].Type
		text += `waterFill: {total: cluster.allocatable, weight: double(queue.spec.weight), demand: queue.request, ceiling: queue.spec.limit}`
	default:
		text += fmt.Sprintf("expression: %q", d.expression(t, []string{on}, 2))
	}
	text += pick(d, "", "", ", settle: cycle", ", settle: start", ", settle: current") + "}"
	dup := *d.objects[strings.ToUpper(on[:1])+on[1:]]
	dup.Members = append(slices.Clone(dup.Members), &rules.Member{Name: name, Type: t, Get: func(any) ref.Val { return nil }})
	d.objects[dup.Name] = &dup
	return text
}

// rows returns a table with a few rows at a few sites.
func (d *drawer) rows() string {
	var b strings.Builder
	fmt.Fprintf(&b, "    - name: %s\n      inline:\n        description: drawn\n        attributes:\n", d.name("drawn"))
	for range d.IntN(3) {
		fmt.Fprintf(&b, "        - %s\n", d.attribute())
	}
	var sites []policy.Site
	for _, s := range policy.Sites() {
		if d.IntN(4) > 0 {
			continue
		}
		sites = append(sites, s)
		fmt.Fprintf(&b, "        %s:\n", s.Name)
		for range 1 + d.IntN(2) {
			fmt.Fprintf(&b, "        - %s\n", d.row(s))
		}
	}
	b.WriteString(d.condition("      ", sites...))
	return b.String()
}

// action returns an action of the user's own.
func (d *drawer) action(name string) string {
	gates := []string{
		"[overused, allocatable]", "[allocatable]", "[overused, allocatable, preemptive]", "[overused, beyondShare]", "[beyondShare]", "[]",
	}
	text := fmt.Sprintf("  - name: %s\n    steps:\n    - {verb: place, jobs: \"job.phase != 'Pending'\", gates: %s, commit: %s, turn: %s, "+
		"awaitPods: %s", name,
		pick(d, gates...), pick(d, "job", "job", "task"), pick(d, "untilReady", "untilFed", "oneTask", "all"), pick(d, "0s", "2s", "30s"))
	if d.IntN(2) == 0 {
		text += fmt.Sprintf(", onNoNode: %q", pick(d, "true", "job.ready", d.expression(cel.BoolType, []string{"job"}, 1)))
	}
	if d.IntN(3) == 0 {
		text += fmt.Sprintf(", tasks: %q", "!task.gated && task.status in ['Pending', 'Pipelined'] && ("+
			d.expression(cel.BoolType, []string{"task"}, 1)+")")
	}
	return text + d.blocks() + "}\n"
}

// blocks draws the parameter blocksQueue, for one of three steps.
func (d *drawer) blocks() string {
	if d.IntN(3) > 0 {
		return ""
	}
	own := d.expression(cel.BoolType, []string{"job"}, 1)
	return fmt.Sprintf(", blocksQueue: %q", pick(d, "true", "job.queue.spec.dequeueStrategy == 'fifo'", own))
}

// force returns a step that displaces.
func (d *drawer) force() string {
	if d.IntN(3) == 0 {
		return d.forceForGangs()
	}
	text := fmt.Sprintf("    - {verb: displace, jobs: \"job.phase != 'Pending'%s\", scope: %s, victims: %s, nodes: %s, gates: %s, "+
		"commit: %s, turn: %s, onNoNode: %q", pick(d, "", " && job.starving", " && !job.ready"),
		pick(d, "queue", "otherQueues", "otherQueues", "job"), pick(d, "preemptable", "reclaimable"),
		pick(d, "byScore", "byOrder", "byCost", "byCost"),
		pick(d, "[overused, allocatable]", "[allocatable]", "[preemptive]", "[]"), pick(d, "job", "task"),
		pick(d, "untilReady", "untilFed", "oneTask", "all"), pick(d, "true", d.expression(cel.BoolType, []string{"job"}, 1)))
	if d.IntN(2) == 0 {
		text += fmt.Sprintf(", candidates: %q", pick(d, "true", "!victim.bestEffort || preemptor.bestEffort",
			"("+d.expression(cel.BoolType, []string{"preemptor", "victim", "job"}, 1)+") || victim.status == 'Running'"))
	}
	return text + d.blocks() + "}\n"
}

// forceForGangs returns a step that makes room for gangs.
func (d *drawer) forceForGangs() string {
	return fmt.Sprintf("    - {verb: displace, unit: gang, jobs: \"job.phase != 'Pending'%s\", scope: %s, victims: %s, nodes: %s, gates: %s, "+
		"wholeBundles: %s, turn: %s, onNoNode: %q, candidates: %q%s}\n", pick(d, "", " && job.starving", " && !job.ready"),
		pick(d, "queue", "otherQueues"), pick(d, "evictable", "evictable", "preemptable", "reclaimable"), pick(d, "byScore", "byOrder", "byCost"),
		pick(d, "[overused, allocatable]", "[allocatable]", "[preemptive]", "[]"), pick(d, "true", "true", "false"),
		pick(d, "untilReady", "untilFed", "oneTask", "all"), pick(d, "true", "false"),
		pick(d, "true", "victim.status == 'Running'", "victim.job.priority <= job.priority"), d.blocks())
}

// naming returns a step that evicts.
func (d *drawer) naming() string {
	return fmt.Sprintf("    - {verb: evict, candidates: %q, budget: %q%s}\n", pick(d, "true", "victim.status == 'Running'"),
		pick(d, "1", "2", "cluster.nodeCount", d.expression(cel.IntType, []string{"cluster"}, 1)), pick(d, "", ", every: 30s", ", every: 2m"))
}

// policy returns a complete policy, without the rows that do not compile.
func (d *drawer) policy(t *testing.T) *policy.Policy {
	t.Helper()
	var b strings.Builder
	b.WriteString("apiVersion: scheduling.celsius.dev/v1alpha1\nkind: SchedulingPolicy\nmetadata: {name: drawn}\nspec:\n  actions:\n" +
		d.action("own") + "  - name: take\n    steps:\n" + d.force() + d.force() + "  - name: shed\n    steps:\n" + d.naming())
	pipelines := []string{
		"[enqueue, allocate, preempt, reclaim, backfill]", "[enqueue, reclaim, allocate, take]", "[enqueue, take, own]",
		"[enqueue, allocate, take, backfill]", "[enqueue, allocate, shuffle, preempt]", "[enqueue, shed, own]",
	}
	if !d.forced {
		pipelines = append(pipelines, "[enqueue, allocate, backfill]", "[enqueue, own, backfill]", "[own]", "[enqueue, own, allocate]",
			"[allocate, enqueue, own]")
	}
	fmt.Fprintf(&b, "  pipeline: %s\n  tiers:\n", pick(d, pipelines...))
	if d.forced {
		fmt.Fprintf(&b, "  - name: first\n    tables:\n    - %s\n", strings.ReplaceAll(choosy, "\n", "\n      "))
	}
	tables := slices.DeleteFunc(policy.ShippedNames(), func(name string) bool { return name == "extender" || d.IntN(5) < 2 })
	d.Shuffle(len(tables), func(i, k int) { tables[i], tables[k] = tables[k], tables[i] })
	if slices.Contains(tables, "capacity") { // both compute what a queue deserves
		tables = slices.DeleteFunc(tables, func(name string) bool { return name == "proportion" })
	}
	for tier := range 1 + d.IntN(3) {
		fmt.Fprintf(&b, "  - name: tier-%d\n%s    tables:\n", tier, d.condition("    "))
		if d.IntN(3) > 0 || len(tables) == 0 {
			b.WriteString(d.rows())
		}
		n := min(len(tables), 2+d.IntN(5))
		for _, name := range tables[:n] {
			fmt.Fprintf(&b, "    - name: %s # {left out with what follows}%s\n%s", name, pick(d, "", "", "", "\n      without: ["+
				pick(d, "jobOrder", "predicates", "scores", "jobReady", "jobEnqueueable")+"]"), d.condition("      "))
		}
		tables = tables[n:]
	}
	b.WriteString(d.extended(d.seed))
	return loadWithout(t, b.String())
}

// extended returns, for some policies, a tier with the table of extenders. It draws from a source of its own, so that all other draws are
// the same without it.
func (d *drawer) extended(seed uint64) string {
	r := rand.New(rand.NewPCG(seed, 11))
	if r.IntN(3) > 0 {
		return ""
	}
	out := fmt.Sprintf("  - name: asked\n    tables:\n    - {name: extender, params: {urlPrefix: 'http://extender', ignorable: %v",
		r.IntN(2) == 0)
	for _, verb := range slices.Sorted(maps.Keys(extender.Forms())) {
		if r.IntN(3) == 0 {
			out += ", " + verb + "Verb: " + verb
		}
	}
	return out + "}}\n"
}

// loadWithout compiles a policy without its wrong lines. A drawn line may be too expensive, or always fail.
func loadWithout(t *testing.T, text string) *policy.Policy {
	t.Helper()
	for range 40 {
		docs, issues := source.Parse("drawn.yaml", []byte(text))
		if issues.Err() != nil || len(docs) != 1 {
			t.Fatalf("%v\n%s", issues, text)
		}
		p, issues := policy.Load(docs[0])
		if issues.Err() == nil {
			return p
		}
		lines := strings.Split(text, "\n")
		for _, i := range issues {
			if i.Severity == source.Error {
				leaveOut(t, lines, i)
			}
		}
		text = strings.Join(lines, "\n")
	}
	t.Fatalf("too many mistakes:\n%s", text)
	return nil
}

// leaveOut removes the line of a mistake.
func leaveOut(t *testing.T, lines []string, i source.Issue) {
	t.Helper()
	line := lines[i.Line-1]
	if !strings.Contains(line, "{") || strings.Contains(line, "apiVersion") {
		t.Fatalf("%v\n%s", i, strings.Join(lines, "\n"))
	}
	switch {
	case strings.Contains(line, "verb: place"):
		lines[i.Line-1] = "    - {verb: place}"
	case strings.Contains(line, "verb: displace"):
		lines[i.Line-1] = "    - {verb: displace}"
	case strings.Contains(line, "verb: evict"):
		lines[i.Line-1] = "    - {verb: evict}"
	case strings.Contains(line, "{name: row-"), strings.Contains(line, "{on: "):
		lines[i.Line-1] = "        # left out"
	case strings.Contains(line, "# {left out with what follows}"):
		for at := i.Line - 1; at == i.Line-1 || strings.HasPrefix(lines[at], "      "); at++ {
			lines[at] = "    # left out"
		}
	default:
		lines[i.Line-1] = "    # left out"
	}
}

// samplePolicies returns the policies that ship.
func samplePolicies(t *testing.T) map[string]*policy.Policy {
	t.Helper()
	out := map[string]*policy.Policy{}
	for _, pattern := range []string{"../samples/policies/*.yaml", "../samples/policies/*/*.yaml", "../rules/tables/default.yaml"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			out[strings.TrimSuffix(filepath.Base(file), ".yaml")] = compile(t, file, data).policies[0]
		}
	}
	return out
}

// TestDrawnConditions checks that drawn policies contain rows behind conditions of tables and tiers: behind one condition, and behind
// several.
func TestDrawnConditions(t *testing.T) {
	t.Parallel()
	alone, several := 0, 0
	for seed := range uint64(20) {
		for _, r := range newDrawer(seed).policy(t).All {
			switch {
			case r.When == nil || !r.When.Text.Joined():
			case strings.HasPrefix(r.When.Text.Value, "(") && strings.Contains(r.When.Text.Value, ") && ("):
				several++
			default:
				alone++
			}
		}
	}
	t.Logf("%d rows behind one condition, %d behind several", alone, several)
	if alone < 50 || several < 50 {
		t.Errorf("%d rows behind one condition, %d behind several: want 50 each", alone, several)
	}
}
