package session

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
	"github.com/celsius-scheduler/celsius/engine/language"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/engine/volume"
	"github.com/celsius-scheduler/celsius/rules/source"
)

// The tests of this file put rows with fixed opinions into random tables and tiers. They compare the policy's answers with a combination
// that follows docs/rule-language.md, Sections: see the functions that begin with "by".

// fixed is a row of a yes-or-no site with a fixed opinion.
type fixed struct {
	table, row string
	says       language.Opinion
	text       string // the other fields of the row, as YAML
	dropped    bool   // its guard is always false, as if it did not exist
}

// opinions returns the ways in which a row can get an opinion. denies is the opinion that a denial means at the site.
func opinions(denies language.Opinion) []fixed {
	const errs = `expression: "1 / (cluster.nodeCount - cluster.nodeCount) == 1"`
	allows := language.Yes
	if denies == language.Yes {
		allows = language.No
	}
	return []fixed{
		{says: language.Yes, text: `expression: "true"`},
		{says: language.No, text: `expression: "false"`},
		{says: language.Yes, text: `when: "true", expression: "true"`},
		{says: language.Abstain, text: `when: "cluster.nodeCount < 0", expression: "false"`},
		{says: language.Abstain, text: `when: "false", expression: "false"`, dropped: true},
		{says: denies, text: errs},
		{says: allows, text: errs + ", onError: allow"},
		{says: language.Abstain, text: errs + ", onError: skip"},
	}
}

// layout contains tables in tiers: names of tables by tier.
type layout [][]string

// drawLayout shuffles the tables and splits them into tiers.
func drawLayout(t *rapid.T, tables []string, label string) layout {
	var out layout
	for i, name := range rapid.Permutation(tables).Draw(t, label) {
		if i == 0 || rapid.Bool().Draw(t, "cut") {
			out = append(out, nil)
		}
		out[len(out)-1] = append(out[len(out)-1], name)
	}
	return out
}

// policy returns a policy of inline tables. rows contains the rows of a table by site, as YAML.
func (l layout) policy(rows map[string]map[string][]string) string {
	var b strings.Builder
	b.WriteString("apiVersion: scheduling.celsius.dev/v1alpha1\nkind: SchedulingPolicy\nmetadata: {name: p}\nspec:\n  pipeline: " +
		"[allocate]\n  tiers:\n")
	for i, tier := range l {
		fmt.Fprintf(&b, "  - name: tier-%d\n    tables:\n", i)
		for _, table := range tier {
			fmt.Fprintf(&b, "    - name: %s\n      inline:\n        description: made up\n", table)
			for _, site := range slices.Sorted(maps.Keys(rows[table])) {
				fmt.Fprintf(&b, "        %s:\n", site)
				for _, row := range rows[table][site] {
					fmt.Fprintf(&b, "        - %s\n", row)
				}
			}
		}
	}
	return b.String()
}

// tierWorld returns two jobs, a and b, with one pod each, and a node.
func tierWorld(t *rapid.T) *model.Cluster {
	c := model.NewCluster(model.Options{Volumes: volume.New})
	deltas := []model.Delta{
		{Op: model.Upsert, Object: &v1beta1.Queue{ObjectMeta: metav1.ObjectMeta{Name: "q"}}},
		{Op: model.Upsert, Object: &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}, Status: corev1.NodeStatus{
			Allocatable: corev1.ResourceList{"cpu": resource.MustParse("4"), "pods": resource.MustParse("9")},
			Conditions:  []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
		}}},
	}
	for _, name := range []string{"a", "b"} {
		deltas = append(deltas,
			model.Delta{Op: model.Upsert, Object: &v1beta1.PodGroup{
				ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "x"},
				Spec:       v1beta1.PodGroupSpec{Queue: "q", MinMember: 1},
			}},
			model.Delta{Op: model.Upsert, Object: &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "x", Annotations: map[string]string{model.GroupAnnotation: name}},
				Spec:       corev1.PodSpec{SchedulerName: "celsius"},
			}})
	}
	if errs := c.Apply(deltas...); len(errs) > 0 {
		t.Fatal(errs)
	}
	return c
}

func openSession(t *rapid.T, c *model.Cluster, text string) *Session {
	docs, issues := source.Parse("tiers.yaml", []byte(text))
	if issues.Err() != nil {
		t.Fatalf("%v\n%s", issues, text)
	}
	p, issues := policy.Load(docs[0])
	if issues.Err() != nil {
		t.Fatalf("%v\n%s", issues, text)
	}
	s := New(c, p)
	s.Begin(time.Unix(1_800_000_000, 0))
	return s
}

// ruling is an answer and the row that gave it, "" for none.
type ruling struct {
	yes bool
	by  string
}

// byAll combines opinions: a "no" of any row is the answer, wherever the row is; the first such row is named.
func byAll(tiers [][]fixed) ruling {
	for _, tier := range tiers {
		for _, r := range tier {
			if r.says == language.No {
				return ruling{false, r.table + "/" + r.row}
			}
		}
	}
	return ruling{true, ""}
}

// byAny combines opinions: a "yes" of any row is the answer, wherever the row is; the first such row is named.
func byAny(tiers [][]fixed) ruling {
	for _, tier := range tiers {
		for _, r := range tier {
			if r.says == language.Yes {
				return ruling{true, r.table + "/" + r.row}
			}
		}
	}
	return ruling{false, ""}
}

// byVote combines opinions: in each tier a refusal decides, otherwise a permit, otherwise the next tier. If no row has an opinion, the
// answer is a permit.
func byVote(tiers [][]fixed) ruling {
	for _, tier := range tiers {
		for _, say := range []language.Opinion{language.No, language.Yes} {
			for _, r := range tier {
				if r.says == say {
					return ruling{say == language.Yes, r.table + "/" + r.row}
				}
			}
		}
	}
	return ruling{true, ""}
}

// byFirstTier combines opinions: all rows of the first tier with rows must agree. Rows without an opinion do not count; if no row has one,
// the answer is no.
func byFirstTier(tiers [][]fixed) ruling {
	for _, tier := range tiers {
		if len(tier) == 0 {
			continue
		}
		yes := false
		for _, r := range tier {
			if r.says == language.No {
				return ruling{}
			}
			yes = yes || r.says == language.Yes
		}
		return ruling{yes: yes}
	}
	return ruling{}
}

// combination is how the rows of one site combine, and how a session evaluates the site.
type combination struct {
	site    string
	combine func([][]fixed) ruling
	ask     func(*Session, *model.Task) policy.Answer
}

func combinations() []combination {
	job := func(ask func(*Session, *model.Job) policy.Answer) func(*Session, *model.Task) policy.Answer {
		return func(s *Session, t *model.Task) policy.Answer { return ask(s, t.Job) }
	}
	return []combination{
		{policy.JobValid, byAll, job((*Session).Valid)},
		{policy.JobReady, byAll, job((*Session).Ready)},
		{policy.JobPipelined, byVote, job((*Session).Pipelined)},
		{policy.JobEnqueueable, byVote, job((*Session).Enqueueable)},
		{policy.JobStarving, byFirstTier, func(s *Session, t *model.Task) policy.Answer { return policy.Answer{Yes: s.Starving(t.Job)} }},
		{policy.Overused, byAny, func(s *Session, t *model.Task) policy.Answer { return s.Overused(t.Job.Queue) }},
		{policy.Allocatable, byAll, (*Session).Allocatable},
		{policy.Preemptive, byAll, func(s *Session, t *model.Task) policy.Answer { return s.Preemptive(t.Job, t.Request) }},
		{policy.TaskFeasible, byAll, (*Session).Feasible},
		{policy.Predicates, byAll, func(s *Session, t *model.Task) policy.Answer { return s.Fits(t, s.c.Nodes.Index["n"]) }},
	}
}

// drawRows draws up to three rows of each site for each table.
func drawRows(t *rapid.T, tables []string) map[string]map[string][]fixed {
	rows := map[string]map[string][]fixed{}
	for _, table := range tables {
		rows[table] = map[string][]fixed{}
		for _, c := range combinations() {
			denies := language.No
			if c.site == policy.Overused {
				denies = language.Yes
			}
			for i := range rapid.IntRange(0, 3).Draw(t, c.site) {
				r := rapid.SampledFrom(opinions(denies)).Draw(t, "opinion")
				r.table, r.row = table, fmt.Sprintf("row-%d", i)
				rows[table][c.site] = append(rows[table][c.site], r)
			}
		}
	}
	return rows
}

func texts(rows map[string]map[string][]fixed) map[string]map[string][]string {
	out := map[string]map[string][]string{}
	for table, sites := range rows {
		out[table] = map[string][]string{}
		for site, list := range sites {
			for _, r := range list {
				out[table][site] = append(out[table][site], fmt.Sprintf("{name: %s, %s}", r.row, r.text))
			}
		}
	}
	return out
}

// tiers returns the rows of one site by tier, without the dropped rows.
func (l layout) tiers(rows map[string]map[string][]fixed, site string) [][]fixed {
	out := make([][]fixed, len(l))
	for i, tier := range l {
		for _, table := range tier {
			for _, r := range rows[table][site] {
				if !r.dropped {
					out[i] = append(out[i], r)
				}
			}
		}
	}
	return out
}

// TestTiersCombine compares every yes-or-no site with the reference, over two layouts of the same tables. If all or any row decides, the
// layout must not matter.
func TestTiersCombine(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tables := []string{"t1", "t2", "t3", "t4"}[:rapid.IntRange(0, 4).Draw(t, "tables")]
		rows := drawRows(t, tables)
		c := tierWorld(t)
		answers := map[string][]bool{}
		for _, label := range []string{"first layout", "second layout"} {
			l := drawLayout(t, tables, label)
			s := openSession(t, c, l.policy(texts(rows)))
			for _, x := range combinations() {
				a := x.ask(s, c.Tasks["x/a"])
				got, want := ruling{yes: a.Yes}, x.combine(l.tiers(rows, x.site))
				if a.Rule != nil {
					got.by = a.Rule.Table + "/" + a.Rule.Name
				}
				if got != want {
					t.Fatalf("%s in %v: got %v, want %v", x.site, l, got, want)
				}
				answers[x.site] = append(answers[x.site], got.yes)
			}
		}
		for _, site := range []string{
			policy.JobValid, policy.JobReady, policy.Overused, policy.Allocatable, policy.Preemptive,
			policy.TaskFeasible, policy.Predicates,
		} {
			if a := answers[site]; a[0] != a[1] {
				t.Fatalf("%s depends on how tables lie in tiers: %v", site, a)
			}
		}
	})
}

// sortKeys returns CEL values of one type each, in ascending order.
func sortKeys() [][]string {
	return [][]string{
		{"-3", "0", "12"},
		{"-0.5", "0.25", "1e300"},
		{"false", "true"},
		{"''", "'B'", "'a'", "'aa'"},
		{"duration('-1s')", "duration('1h')"},
		{"timestamp('2026-01-01T00:00:00Z')", "timestamp('2026-01-01T00:00:00.5Z')"},
		{"[1, 5]", "[2, -1]", "[2, 7]"},
		{"[[false, true], [true, false]]", "[[false, true], [true, true]]"},
	}
}

// sorting is a row of an order site: the indexes of the keys of a and b in their list, -1 for none.
type sorting struct {
	table, row string
	a, b       int
	descending bool
	text       string
}

// drawSorting draws the keys of the row for objects named a and b.
func drawSorting(t *rapid.T, root string) sorting {
	list := rapid.SampledFrom(sortKeys()).Draw(t, "type")
	key := rapid.IntRange(-1, len(list)-1)
	r := sorting{a: key.Draw(t, "a"), b: key.Draw(t, "b"), descending: rapid.Bool().Draw(t, "descending")}
	value := func(i int) string { return list[max(i, 0)] }
	r.text = fmt.Sprintf(`by: "%s.name == 'a' ? %s : %s", descending: %t`, root, value(r.a), value(r.b), r.descending)
	switch {
	case r.a < 0 && r.b < 0:
		r.text += `, when: "cluster.nodeCount < 0"`
	case r.a < 0:
		r.text += fmt.Sprintf(`, when: "%s.name != 'a'"`, root)
	case r.b < 0:
		r.text += fmt.Sprintf(`, when: "%s.name != 'b'"`, root)
	}
	return r
}

// byFirstDifference compares keys: the first row whose keys differ decides. An object without a key comes last, whichever way the row
// sorts.
func byFirstDifference(rows []sorting) (aFirst bool, by string) {
	for _, r := range rows {
		name := r.table + "/" + r.row
		switch {
		case r.a == r.b:
			continue
		case r.b < 0:
			return true, name
		case r.a < 0:
			return false, name
		}
		return r.a < r.b != r.descending, name
	}
	return true, "" // a is before b by name
}

// TestTiersOrder compares the orders with the reference. If the order of tables is the same, it does not matter which of them share a tier.
func TestTiersOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tables := []string{"t1", "t2", "t3"}
		rows := map[string][]sorting{}
		texts := map[string]map[string][]string{}
		roots := map[string]string{policy.JobOrder: "job", policy.TaskOrder: "task"}
		for _, table := range tables {
			texts[table] = map[string][]string{}
			for _, site := range slices.Sorted(maps.Keys(roots)) {
				for i := range rapid.IntRange(0, 2).Draw(t, site) {
					r := drawSorting(t, roots[site])
					r.table, r.row = table, fmt.Sprintf("row-%d", i)
					rows[table+site] = append(rows[table+site], r)
					texts[table][site] = append(texts[table][site], fmt.Sprintf("{name: %s, %s}", r.row, r.text))
				}
			}
		}
		c := tierWorld(t)
		l := drawLayout(t, tables, "layout")
		s := openSession(t, c, l.policy(texts))
		for _, site := range slices.Sorted(maps.Keys(roots)) {
			var all []sorting
			for _, tier := range l {
				for _, table := range tier {
					all = append(all, rows[table+site]...)
				}
			}
			want, wantBy := byFirstDifference(all)
			a, b := Subject{Job: c.Jobs["x/a"]}, Subject{Job: c.Jobs["x/b"]}
			if site == policy.TaskOrder {
				a, b = Subject{Task: c.Tasks["x/a"]}, Subject{Task: c.Tasks["x/b"]}
			}
			got, rule, err := s.Before(site, a, b)
			back, _, errBack := s.Before(site, b, a)
			gotBy := ""
			if rule != nil {
				gotBy = rule.Table + "/" + rule.Name
			}
			if err != nil || errBack != nil || got != want || gotBy != wantBy || back == got {
				t.Fatalf("%s in %v: a first %t by %q, the other way %t (%v, %v), want %t by %q", site, l, got, gotBy, back, err, errBack, want, wantBy)
			}
		}
	})
}
