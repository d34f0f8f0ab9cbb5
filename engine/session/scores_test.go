package session

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/celsius-scheduler/celsius/engine/model"
)

// fourNodes returns n1 to n4 with labels s of the given values; none if a value is "". The pod a/p fits everywhere.
func fourNodes(t *testing.T, values ...string) *model.Cluster {
	t.Helper()
	objects := []any{aQueue("q"), aGroup("g", "q"), aPod("p", "cpu=1")}
	for i, v := range values {
		objects = append(objects, aNode(fmt.Sprintf("n%d", i+1), "cpu=4 pods=9", func(n *corev1.Node) {
			if v != "" {
				n.Labels["s"] = v
			}
		}))
	}
	return aCluster(t, objects...)
}

// scoresOf returns the total of each node for a/p, and the chosen node.
func scoresOf(t *testing.T, s *Session) (totals []string, best string) {
	t.Helper()
	class := s.Class(s.c.Tasks["a/p"])
	choice, ok := class.Choose()
	if !ok {
		t.Fatal("no node")
	}
	for _, row := range s.c.Nodes.ByOrder() {
		totals = append(totals, fmt.Sprintf("%.6g", class.Chooser.Total(int(row), choice.Ranks)))
	}
	return totals, s.c.Nodes.Rows[choice.Row].Name
}

// TestScores checks value -> normalize -> round -> x weight -> sum (docs/rule-language.md, Scores).
func TestScores(t *testing.T) {
	const raw = "double(node.labels['s'])"
	row := func(more string) string {
		return "scores: [{name: r, when: \"'s' in node.labels\", expression: \"" + raw + "\"" + more + "}]"
	}
	for _, test := range []struct {
		name, table string
		values      []string
		want        string // totals
		best        string
	}{
		{"as they are", row(""), []string{"1", "4", "2"}, "1 4 2", "n2"},
		{"negative sums are legal", row(", weight: -2"), []string{"1", "4", "2"}, "-2 -8 -4", "n1"},
		{"ties go by name", row(""), []string{"3", "4", "4"}, "3 4 4", "n2"},
		{"a guard that is false gives 0", row(""), []string{"-1", "", "-2"}, "-1 0 -2", "n2"},
		{"max", row(", normalize: max"), []string{"1", "4", "2"}, "25 100 50", "n2"},
		{"max of nothing but 0", row(", normalize: max"), []string{"0", "0"}, "0 0", "n1"},
		{"inverseMax", row(", normalize: inverseMax"), []string{"1", "4", "2"}, "75 0 50", "n1"},
		{"inverseMax of nothing but 0", row(", normalize: inverseMax"), []string{"0", "0"}, "100 100", "n1"},
		{"minMax", row(", normalize: minMax"), []string{"1", "4", "2"}, "0 100 33.3333", "n2"},
		{"minMax of equals", row(", normalize: minMax"), []string{"3", "3"}, "0 0", "n1"},
		{"inverseSum", row(", normalize: inverseSum"), []string{"1", "4", "2"}, "100 25 75", "n1"},
		{"inverseSum of nothing but 0", row(", normalize: inverseSum"), []string{"0", "0"}, "100 100", "n1"},
		{"none", row(", normalize: none"), []string{"1", "4"}, "1 4", "n2"},
		{"who has no opinion takes no part in the range", row(", normalize: minMax"), []string{"2", "", "4"}, "0 0 100", "n3"},
		{"ceil", row(", round: {mode: ceil}"), []string{"1.9", "-1.9", "2"}, "2 -1 2", "n1"},
		{"trunc", row(", round: {mode: trunc}"), []string{"1.9", "-1.9", "2"}, "1 -1 2", "n3"},
		{"floor", row(", round: {mode: floor}"), []string{"1.9", "-1.9", "2"}, "1 -2 2", "n3"},
		{"nearest", row(", round: {mode: nearest}"), []string{"1.6", "1.4", "-1.6"}, "2 1 -2", "n1"},
		{"halves away from 0", row(", round: {mode: nearest}"), []string{"0.5", "2.5", "-2.5"}, "1 3 -3", "n2"},
		{"a step", row(", round: {mode: floor, step: 5}"), []string{"4", "13", "-1"}, "0 10 -5", "n2"},
		{"a step below 1", row(", round: {mode: nearest, step: 0.5}"), []string{"1.3", "1.8"}, "1.5 2", "n2"},
		{"normalised, rounded, then weighed", row(", normalize: max, round: {mode: trunc}, weight: 0.5"), []string{"1", "3"}, "16.5 50", "n2"},
		{"the largest weight", row(", weight: 1e50"), []string{"1e20", "-1e20", "2"}, "1e+70 -1e+70 2e+50", "n1"},
		{"the largest scores", row(", normalize: minMax"), []string{"1e100", "-1e100", "0"}, "100 0 50", "n1"},
		{"a score that is too small to count is 0", row(", normalize: max"), []string{"-1e100", "1e-101"}, "0 0", "n1"},
		{"a weight of 0 switches off", row(", weight: 0"), []string{"1", "3"}, "0 0", "n1"},
		{"weight and step of params", "params: {w: {type: double, default: 2}, step: {type: int, default: 10}}\n" +
			row(", weight: params.w, round: {mode: floor, step: params.step * 2}"), []string{"25", "59"}, "40 80", "n2"},
		{"an int is a number", "scores: [{name: r, expression: \"node.name == 'n2' ? 3 : 1\"}]", []string{"", ""}, "1 3", "n2"},
		{"rows are summed", row("") + "\n", []string{"1", "2"}, "1 2", "n2"},
		{"several rows, each in its own range", "scores:\n- {name: a, expression: \"" + raw +
			"\", normalize: max}\n- {name: b, expression: \"node.name == 'n1' ? 1.0 : 0.0\", weight: 60}\n", []string{"1", "2"}, "110 100", "n1"},
	} {
		t.Run(test.name, func(t *testing.T) {
			totals, best := scoresOf(t, begun(t, fourNodes(t, test.values...), test.table))
			if got := strings.Join(totals, " "); got != test.want || best != test.best {
				t.Errorf("got %s, best %s; want %s, best %s", got, best, test.want, test.best)
			}
		})
	}
}

// TestScoresAreNormalisedOverTheGroup checks that only the nodes to choose from determine the range of a column: those that fit now,
// otherwise those that fit later.
func TestScoresAreNormalisedOverTheGroup(t *testing.T) {
	table := "scores: [{name: r, expression: \"double(node.labels['s'])\", normalize: minMax}]\npredicates: [{name: not-the-first, " +
		"expression: \"node.name != 'n1'\"}]"
	c := fourNodes(t, "-100", "1", "2", "5")
	apply(t, c, aPod("full", "cpu=4", runningOn("n4")))
	totals, best := scoresOf(t, begun(t, c, table))
	if best != "n3" || totals[1] != "0" || totals[2] != "100" {
		t.Errorf("n1 is not fit, n4 is full: n2 and n3 are between 0 and 100; got %v, best %s", totals, best)
	}
	apply(t, c, aPod("full2", "cpu=4", runningOn("n2")), aPod("full3", "cpu=4", runningOn("n3")),
		aPod("full", "cpu=4", runningOn("n4"), leaving), aPod("full3", "cpu=4", runningOn("n3"), leaving))
	s := begun(t, c, table)
	choice, ok := s.Class(c.Tasks["a/p"]).Choose()
	if !ok || !choice.Later || c.Nodes.Rows[choice.Row].Name != "n4" || choice.Score != 100 || choice.Feasible != 2 {
		t.Errorf("n3 and n4 are being released: %+v, %t", choice, ok)
	}
	if c.Nodes.Rows[choice.RunnerUp].Name != "n3" || choice.RunScore != 0 {
		t.Errorf("the next is n3 with 0: %+v", choice)
	}
}

// TestNowBeforeLater checks that nodes that fit now come before nodes that fit later, whatever their scores.
func TestNowBeforeLater(t *testing.T) {
	c := fourNodes(t, "1", "9")
	apply(t, c, aPod("leaving", "cpu=4", runningOn("n2"), leaving))
	choice, ok := begun(t, c, "scores: [{name: r, expression: \"double(node.labels['s'])\"}]").Class(c.Tasks["a/p"]).Choose()
	if !ok || choice.Later || c.Nodes.Rows[choice.Row].Name != "n1" || choice.RunnerUp != model.NoNode {
		t.Errorf("got %+v, %t", choice, ok)
	}
}

// TestScoresThatAreNoNumbers checks that NaN, infinity and numbers beyond the bounds of scores are errors of the row, with any
// normalisation. The row then has no opinion on the node.
func TestScoresThatAreNoNumbers(t *testing.T) {
	const bounds = ", but a score must be a number from -1e+100 to 1e+100"
	for _, test := range []struct{ name, expression, want, fault string }{
		{"NaN", "node.name == 'n1' ? 0.0 / 0.0 : double(node.labels['s'])", "0 100 0", "the score is NaN" + bounds},
		{"infinity", "node.name == 'n1' ? 1.0 / 0.0 : double(node.labels['s'])", "0 100 0", "the score is +Inf" + bounds},
		{"too large", "node.name == 'n1' ? 1.7e308 : double(node.labels['s'])", "0 100 0", "the score is 1.7e+308" + bounds},
		{"too small", "node.name == 'n1' ? -1.7e308 : double(node.labels['s'])", "0 100 0", "the score is -1.7e+308" + bounds},
		{"an error", "node.name == 'n1' ? double(node.labels['none']) : double(node.labels['s'])", "0 100 0", "no such key: none"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := begun(t, fourNodes(t, "9", "4", "2"), "scores: [{name: r, normalize: minMax, expression: \""+test.expression+"\"}]")
			totals, _ := scoresOf(t, s)
			if got := strings.Join(totals, " "); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
			want := []model.RuleError{{Site: "scores", Table: "mine", Rule: "r", Count: 1, Object: "a/p on n1", Text: test.fault}}
			if diff := cmp.Diff(want, s.Faults()); diff != "" {
				t.Errorf("faults (-want +got)\n%s", diff)
			}
		})
	}
}

// TestScoresByRow checks that the parts of a score in an explanation add up to the score.
func TestScoresByRow(t *testing.T) {
	table := "scores:\n- {name: a, expression: \"double(node.labels['s'])\", normalize: max, weight: 2}\n- {name: b, expression: \"7\"}\n- " +
		"{name: c, when: \"node.name == 'n1'\", expression: \"1\"}"
	s := begun(t, fourNodes(t, "1", "2"), table)
	choice, _ := s.Class(s.c.Tasks["a/p"]).Choose()
	want := []model.RowScore{{Table: "mine", Rule: "a", Score: 200}, {Table: "mine", Rule: "b", Score: 7}}
	if diff := cmp.Diff(want, choice.Scores(nil, choice.Row)); diff != "" || choice.Score != 207 {
		t.Errorf("score %g, parts (-want +got)\n%s", choice.Score, diff)
	}
	want = []model.RowScore{{Table: "mine", Rule: "a", Score: 100}, {Table: "mine", Rule: "b", Score: 7}, {Table: "mine", Rule: "c", Score: 1}}
	if diff := cmp.Diff(want, choice.Scores(nil, choice.RunnerUp)); diff != "" || choice.RunScore != 108 {
		t.Errorf("runner-up %g, parts (-want +got)\n%s", choice.RunScore, diff)
	}
	raw := []model.RowScore{{Table: "mine", Rule: "a", Score: 2}, {Table: "mine", Rule: "b", Score: 7}, {Table: "mine", Rule: "c", Score: 1}}
	if diff := cmp.Diff(raw, s.Score(s.c.Tasks["a/p"], 0)); diff != "" {
		t.Errorf("asked alone, nothing is normalised (-want +got)\n%s", diff)
	}
}
