package session

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/celsius-scheduler/celsius/engine/language"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/rules/source"
)

// numbered returns an expression for a number that distinguishes values of an expression; "": its type has none.
func numbered(text string, t *cel.Type) string {
	switch t.Kind() {
	case types.BoolKind:
		return "(" + text + " ? 1.0 : 0.0)"
	case types.IntKind, types.DoubleKind:
		return "double(" + text + ")"
	case types.StringKind:
		return "hash01(" + text + ")"
	case types.TimestampKind:
		return "double(int(" + text + "))"
	case types.DurationKind:
		return "double((" + text + ").getSeconds())"
	case types.MapKind:
		return "double((" + text + ").size())"
	case types.ListKind:
		if each := numbered("x", t.Parameters()[0]); each != "" && t.Parameters()[0].Kind() != types.ListKind {
			return "(" + text + ").map(x, " + each + ").sum()"
		}
		return "double((" + text + ").size())"
	default:
	}
	if t.IsExactType(language.ResourcesType()) {
		return "((" + text + ").cpu + (" + text + ").memory / 1000000000.0 + 100.0 * (" + text + ").pods)"
	}
	return ""
}

// tableOf returns a table with a reading at every site whose results are cached, and in computed fields; "": there is no such site.
func tableOf(r *reading) string {
	number := numbered(r.Text.Value, r.Type)
	only := func(root string) bool { return r.Reads.Only(root, "cluster", "now") }
	asked := r.Reads.Only("task", "job", "queue", "node", "cluster", "now")
	if number == "" || !asked || slices.ContainsFunc(r.Reads.All, policy.OfAnswers) {
		return ""
	}
	var b strings.Builder
	b.WriteString("attributes:\n")
	for on, over := range map[string]string{"task": "task", "job": "job", "queue": "", "node": ""} {
		if !only(on) {
			continue
		}
		fmt.Fprintf(&b, "- {on: %s, name: held, expression: %q}\n", on, number)
		if over != "" {
			fmt.Fprintf(&b, "- {on: queue, name: total, sum: {over: %s, of: %q, when: %q}}\n", over, "1.0", number+" > 0.5")
		}
		break
	}
	fmt.Fprintf(&b, "predicates:\n- {name: asked, expression: %q}\nscores:\n- {name: asked, expression: %q}\n", number+" <= 1.0", number)
	for site, root := range map[string]string{policy.QueueOrder: "queue", policy.JobOrder: "job"} {
		if only(root) {
			fmt.Fprintf(&b, "%s:\n- {name: asked, by: %q}\n", site, number)
			break
		}
	}
	return b.String()
}

// memory compares a session with new evaluations of the same expressions on a cluster with the same history.
type memory struct {
	*declarations
	p    *policy.Policy
	diff string
}

// Check compares both.
func (m *memory) Check(t *rapid.T) {
	if m.diff != "" {
		return
	}
	w := policy.NewWorld(m.afresh.c, m.p, nowhereComputed{})
	w.BeginAt(m.now)
	w.UsedAtStart = m.afresh.s.UsedAtStart
	if diff := gocmp.Diff(m.afreshOrders(w), m.orders()); diff != "" {
		m.diff = "orders (-afresh +remembered): " + diff
	}
	if diff := gocmp.Diff(m.afreshFields(w), m.fields()); diff != "" {
		m.diff = "computed fields (-afresh +remembered): " + diff
	}
	for _, task := range m.remembers.c.TasksByKey() {
		if task.Status == model.Pending && !task.Job.Orphan && task.Job.Queue != nil {
			m.nodes(w, task, m.afresh.c.Tasks[task.Key])
		}
	}
}

// nodes compares the results of predicates and scores for each node.
func (m *memory) nodes(w *language.World, task, twin *model.Task) {
	s := m.remembers.s
	c := s.Class(task)
	ch, chosen := c.Choose()
	var among []int32
	for row := range c.Cells {
		if chosen && c.Cells[row].Verdict == 0 && c.Cells[row].Fits == c.Cells[ch.Row].Fits {
			among = append(among, int32(row))
		}
	}
	predicate, score := m.p.Rules(policy.Predicates)[0], m.p.Rules(policy.Scores)[0]
	w.Among(twin, among, func() {
		for _, row := range s.c.Nodes.ByOrder() {
			if n := s.c.Nodes.Rows[row]; n == nil || !n.Ready {
				continue
			}
			f := w.Frame().OfTask(twin).OnNode(row)
			no := predicate.Expression.Eval(f) != types.True
			if said := c.Cells[row].Verdict == int16(predicate.Number); said != no && m.diff == "" {
				m.diff = fmt.Sprintf("the predicate of %s on node %d: afresh it says no: %v, remembered: %v", task.Key, row, no, said)
			}
			if !slices.Contains(among, row) {
				continue
			}
			value, ok := score.Expression.Eval(f).(types.Double)
			if got := c.Rows.Raw[0][row]; ok && float64(value) != got && isScore(float64(value)) && m.diff == "" {
				m.diff = fmt.Sprintf("the score of %s on node %d: afresh %v, remembered %v", task.Key, row, value, got)
			}
		}
	})
}

func isScore(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }

func (m *memory) orders() map[string][]string {
	out, x := map[string][]string{}, &m.remembers
	if len(m.p.Rules(policy.QueueOrder)) > 0 {
		for _, q := range taken(x.queues) {
			out[policy.QueueOrder] = append(out[policy.QueueOrder], q.Name)
		}
	}
	if len(m.p.Rules(policy.JobOrder)) > 0 {
		for _, j := range inOrder(x.jobs) {
			out[policy.JobOrder] = append(out[policy.JobOrder], j.Key)
		}
	}
	return out
}

// afreshOrders sorts by the row's keys.
func (m *memory) afreshOrders(w *language.World) map[string][]string {
	out := map[string][]string{}
	queueTie := func(a, b *model.Queue) int { return a.CreatedAt.Compare(b.CreatedAt) }
	for _, r := range m.p.Rules(policy.QueueOrder) {
		of := func(q *model.Queue) (*language.Frame, string) { return w.Frame().OfQueue(q), q.Name }
		out[policy.QueueOrder] = sortedBy(r, w.Cluster().QueuesByName(), of, queueTie)
	}
	for _, r := range m.p.Rules(policy.JobOrder) {
		jobs := slices.DeleteFunc(w.Cluster().JobsByKey(), func(j *model.Job) bool { return j.Orphan || j.Queue == nil })
		of := func(j *model.Job) (*language.Frame, string) { return w.Frame().OfJobAlone(j), j.Key }
		out[policy.JobOrder] = sortedBy(r, jobs, of, policy.JobAge)
	}
	return out
}

// sortedBy returns the names of objects in the order of a row.
func sortedBy[T any](r *policy.Rule, all []T, of func(T) (*language.Frame, string), tie func(a, b T) int) (out []string) {
	key := func(x T) language.Key {
		f, _ := of(x)
		k, _ := language.KeyOf(r.Expression.Eval(f))
		return k
	}
	all = slices.Clone(all)
	slices.SortStableFunc(all, func(a, b T) int {
		x, y := key(a), key(b)
		return cmp.Or(r.Compare(&x, &y), tie(a, b))
	})
	for _, x := range all {
		_, name := of(x)
		out = append(out, name)
	}
	return out
}

// fields returns the values of computed fields in the session.
func (m *memory) fields() map[string][]string {
	out, s := map[string][]string{}, m.remembers.s
	for _, x := range m.p.Attributes() {
		for _, owner := range s.Owners(x.On) {
			out[x.Name] = append(out[x.Name], language.OwnerName(owner)+" "+language.Text(policy.ReadAttribute(x, owner)))
		}
	}
	return out
}

func (m *memory) afreshFields(w *language.World) map[string][]string {
	out := map[string][]string{}
	for _, x := range m.p.Attributes() {
		for _, owner := range w.Owners(x.On) {
			var v ref.Val
			if x.Expr != nil {
				v = x.Expr.Eval(w.FrameOf(owner))
			} else {
				v = m.total(w, x, language.Owner(owner).(*model.Queue))
			}
			out[x.Name] = append(out[x.Name], language.OwnerName(owner)+" "+language.Text(v))
		}
	}
	return out
}

// total counts the members of a queue for which the condition is true.
func (m *memory) total(w *language.World, x *policy.Attribute, q *model.Queue) ref.Val {
	sum := 0.0
	count := func(f *language.Frame) {
		if x.Args["when"].Eval(f) == types.True {
			sum++
		}
	}
	for _, j := range w.Cluster().JobsByKey() {
		switch {
		case j.Queue != q:
		case x.Over == "task":
			for _, t := range j.Tasks {
				count(w.Frame().OfTaskAlone(t))
			}
		case !j.Orphan:
			count(w.Frame().OfJobAlone(j))
		}
	}
	return types.Double(sum)
}

// remember takes random steps under a policy, and returns which cached value was wrong, "" if none.
func (d *declarations) remember(p *policy.Policy, seed int) string {
	m := &memory{declarations: d, p: p}
	rapid.Custom(func(t *rapid.T) bool {
		d.twins = newTwins(p, nil)
		d.start(t)
		t.Repeat(rapid.StateMachineActions(m))
		return true
	}).Example(seed)
	return m.diff
}

// TestRemembered checks that the cached result of any field or function equals a new evaluation. It covers any site and any computed field,
// after any changes. This is so for correct declarations, including the fields of these tests. The count of tasks in a node's zone, wrongly
// declared as a value of the node, must differ.
func TestRemembered(t *testing.T) {
	t.Parallel()
	v := withMisdeclared()
	dialect, err := policy.NewDialect(policy.Verbs(), v, policy.AccountingFunctions())
	if err != nil {
		t.Fatal(err)
	}
	wrongly := map[string]string{}
	for _, r := range readingsOf(t, v) {
		table := tableOf(&r)
		if table == "" {
			continue
		}
		docs, _ := source.Parse("policy.yaml", []byte(policyText(table)))
		p, issues := dialect.Load(docs[0])
		if p == nil {
			t.Fatalf("%v\n%s", issues, table)
		}
		wrong := strings.Contains(strings.ToLower(r.name), "wrongly")
		seeds := 3
		if wrong {
			seeds = 30 // until the error is found
		}
		for seed := range seeds {
			diff := (&declarations{}).remember(p, seed)
			if diff != "" && wrong {
				wrongly[r.name] = diff
			} else if diff != "" {
				t.Errorf("%s (%s): %s\n%s", r.name, r.Text.Value, diff, table)
			}
			if diff != "" {
				break
			}
		}
	}
	if wrongly["Node.zoneTasksWrongly"] == "" {
		t.Errorf("that a count of a zone is said to be the node's own is not found out; found: %v", slices.Sorted(maps.Keys(wrongly)))
	}
	t.Log("remembered wrongly: ", slices.Sorted(maps.Keys(wrongly)))
}
