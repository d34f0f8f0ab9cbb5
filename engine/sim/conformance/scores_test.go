package conformance

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
)

// scoreRow is one line of tables/scores.jsonl: what one plugin said of some nodes for a task.
type scoreRow struct {
	Case, Kind, Plugin, Task string
	Arguments                map[string]any
	NodeScores               map[string]float64
	// First says that nothing had been placed yet: the state is the case's.
	First bool
}

// scoreRows reads the recorded scores; without CONFORMANCE the test is skipped.
func scoreRows(t *testing.T) (rows []scoreRow, cases []*Case) {
	t.Helper()
	dir := os.Getenv("CONFORMANCE")
	if dir == "" {
		t.Skip("CONFORMANCE is not set")
	}
	data, err := os.ReadFile(filepath.Join(dir, "tables", "scores.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(data) {
		var r scoreRow
		if err := json.Unmarshal(line, &r); err != nil {
			t.Fatal(err)
		}
		rows = append(rows, r)
	}
	if cases, err = Load(dir); err != nil {
		t.Fatal(err)
	}
	return rows, cases
}

// Each plugin's recorded scores are the sums of its table's rows, over the nodes that were scored. What Volcano calls
// batchNodeOrder of nodeorder is here the whole of it.
func TestRecordedScores(t *testing.T) {
	rows, cases := scoreRows(t)
	r := runner(t)
	compared := map[string]int{}
	for _, row := range rows {
		c := find(cases, row.Case)
		if !row.First || r.tables[row.Plugin] == nil || c == nil {
			continue
		}
		if why := scoresMissing(r, c, row); why != "" {
			t.Logf("%s %s: %s", row.Case, row.Plugin, why)
			continue
		}
		compared[row.Plugin]++
		got, err := ourScores(r, c, row)
		if err != nil {
			t.Fatalf("%s: %v", row.Case, err)
		}
		for node, want := range row.NodeScores {
			if math.Abs(got[node]-want) > scoreSlack {
				t.Errorf("%s: %s of %s on %s: %v, Volcano %v", row.Case, row.Plugin, row.Task, node, got[node], want)
			}
		}
	}
	all := 0
	for _, n := range compared {
		all += n
	}
	t.Logf("scores: %d passed: %v", all, compared)
	for _, plugin := range []string{"binpack", "nodeorder", "resource-strategy-fit"} {
		if compared[plugin] == 0 {
			t.Errorf("no scores of %s were compared", plugin)
		}
	}
}

// scoresMissing says what of the row the plugin's table does not have yet.
func scoresMissing(r *Runner, c *Case, row scoreRow) string {
	for name, v := range row.Arguments {
		_, nested := v.(map[string]any)
		if !nested && fmt.Sprint(v) != "0" && !policy.Takes(r.tables[row.Plugin], name) {
			return name + " is not there yet"
		}
	}
	only := *c
	only.Config.Tiers = mustJSON([]any{map[string]any{"plugins": []any{map[string]any{"name": row.Plugin}}}})
	return r.missingTerm(&only)
}

// ourScores are what the rows of the plugin's table say, normalised over the nodes of the row.
func ourScores(r *Runner, c *Case, row scoreRow) (map[string]float64, error) {
	plugin := map[string]any{"name": row.Plugin, "enableNodeOrder": true, "enablePredicate": false, "arguments": row.Arguments}
	for _, p := range pluginsOf(c) {
		if p["name"] == row.Plugin && p[hierarchyFlag] != nil {
			plugin[hierarchyFlag] = p[hierarchyFlag]
		}
	}
	only := *c
	only.Config.Tiers = mustJSON([]any{map[string]any{"plugins": []any{plugin}}})
	s, err := r.open(&only)
	if err != nil {
		return nil, err
	}
	// The others were not fit, so they take no part in what is normalised.
	for _, n := range slices.Clone(s.state.Nodes.Rows) {
		if n == nil {
			continue
		}
		if _, scored := row.NodeScores[n.Name]; !scored {
			s.state.Apply(model.Delta{Op: model.Delete, Object: n.Object})
		}
	}
	ask := policy.NewSession(s.state, s.policy)
	ask.Begin(c.Origin.RecordedAt)
	task := s.state.Tasks[row.Task]
	if task == nil {
		return nil, fmt.Errorf("the case has no pod %s", row.Task)
	}
	score := func(node int32) []model.RowScore { return ask.Score(task, node) }
	if slices.ContainsFunc(s.policy.Rules(policy.Scores), func(x *policy.Rule) bool { return x.Normalize != "" }) {
		choice, ok := ask.Class(task).Choose()
		if !ok {
			return nil, fmt.Errorf("%s fits nowhere", row.Task)
		}
		score = choice.Scores
	}
	out := map[string]float64{}
	for name := range row.NodeScores {
		for _, x := range score(s.state.Nodes.Index[name]) {
			out[name] += x.Score
		}
	}
	return out, nil
}

func pluginsOf(c *Case) []map[string]any {
	var tiers []struct{ Plugins []map[string]any }
	if json.Unmarshal(c.Config.Tiers, &tiers) != nil {
		return nil
	}
	var out []map[string]any
	for _, t := range tiers {
		out = append(out, t.Plugins...)
	}
	return out
}

func mustJSON(v any) json.RawMessage {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return text
}
