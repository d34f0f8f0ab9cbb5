package conformance

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/rules/source"
)

// scoresMode is the mode of cases from tables/scores.jsonl: the scores of one plugin for one pod on several nodes, at the start of a case.
const scoresMode = "scores"

// Scored contains the scores of a plugin for a pod on candidate nodes.
type Scored struct {
	Case, Kind, Plugin, Task string
	Arguments                json.RawMessage
	NodeScores               map[string]float64
}

// loadScores reads the table of scores. A plugin scores single nodes and all nodes at once. Both are one case here, because a table has
// only one section for them.
func loadScores(file string, byID map[string]*Case) ([]*Case, error) {
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var out []*Case
	made := map[string]*Case{}
	seen := map[string]int{}
	for i, line := range bytes.Split(bytes.TrimSpace(data), []byte("\n")) {
		var row Scored
		if err := json.Unmarshal(line, &row); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", file, i+1, err)
		}
		base := byID[row.Case]
		if base == nil {
			return nil, fmt.Errorf("%s:%d: there is no case %s", file, i+1, row.Case)
		}
		id := strings.Join([]string{"scores", row.Case, row.Plugin, row.Task}, ".")
		nth := seen[id+row.Kind]
		seen[id+row.Kind]++
		if row.Task == "" || nth > 0 {
			id += "." + strconv.Itoa(nth)
		}
		if c := made[id]; c != nil {
			for node, score := range row.NodeScores {
				c.Scored.NodeScores[node] += score
			}
			continue
		}
		c := &Case{ID: id, Mode: scoresMode, Input: base.Input, InputRef: row.Case, Scored: &row}
		c.Origin.Package, c.Origin.RecordedAt = "tables/scores", base.Origin.RecordedAt
		c.Observed.NodeUsage, c.started = base.Observed.NodeUsage, base.started
		c.Config.ServerOptions.SchedulerNames = base.Config.ServerOptions.SchedulerNames
		if c.Config.Tiers, err = row.tiers(base); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", file, i+1, err)
		}
		made[id] = c
		out = append(out, c)
	}
	return out, nil
}

// tiers returns the configuration with only the row's plugin. The row contains the plugin's arguments. Its support for the tree of queues
// is a flag, which the row's case contains.
func (x *Scored) tiers(base *Case) (json.RawMessage, error) {
	plugin := map[string]any{"name": x.Plugin, "enableNodeOrder": true}
	conf, err := base.conf()
	if err != nil {
		return nil, err
	}
	var issues source.Issues
	for _, p := range slices.Concat(conf.Tiers...) {
		for _, f := range p.Flags {
			if p.Name == x.Plugin && f.Name == hierarchyFlag {
				plugin[hierarchyFlag] = f.Value.Bool(&issues)
			}
		}
	}
	if len(x.Arguments) > 0 {
		plugin["arguments"] = x.Arguments
	}
	return json.Marshal([]any{map[string]any{"plugins": []any{plugin}}})
}

// scores computes the scores of the row's plugin and returns the nodes whose score differs.
func (s *opened) scores() []string {
	x := s.c.Scored
	scores, names, err := s.scoresOf(x)
	if err != nil {
		return []string{err.Error()}
	}
	var d differ
	for i, rows := range scores {
		ours, theirs := strconv.FormatFloat(sumOf(rows), 'f', -1, 64), strconv.FormatFloat(x.NodeScores[names[i]], 'f', -1, 64)
		if !sameAnswer(ours, theirs) {
			d.add("score of "+x.Task+" on "+names[i], ours, theirs)
		}
	}
	return d.lines
}

// scoresOf returns the scores of each row for the pod on each of the nodes, ordered by node name.
func (s *opened) scoresOf(x *Scored) (scores [][]model.RowScore, names []string, err error) {
	a := s.asker()
	t, err := a.task(x.Task)
	if err != nil {
		return nil, nil, err
	}
	names = slices.Sorted(maps.Keys(x.NodeScores))
	nodes := make([]int32, len(names))
	for i, name := range names {
		row, ok := s.state.Nodes.Index[name]
		if !ok {
			return nil, nil, fmt.Errorf("the case has no node %s", name)
		}
		nodes[i] = row
	}
	return a.s.ScoreAmong(t, nodes), names, nil
}

func sumOf(rows []model.RowScore) float64 {
	sum := 0.0
	for _, r := range rows {
		sum += r.Score
	}
	return sum
}
