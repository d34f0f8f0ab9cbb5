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

// scoresMode is the mode of the cases that are made of tables/scores.jsonl: what one plugin says about one pod on each of
// some nodes, as the case began.
const scoresMode = "scores"

// Scored is what a plugin said about a pod on nodes among which one was to be chosen.
type Scored struct {
	Case, Kind, Plugin, Task string
	Arguments                json.RawMessage
	NodeScores               map[string]float64
}

// loadScores reads the table of scores. A plugin scores node by node and all nodes at once; both are one case here, for
// a table has but one section for it.
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

// tiers is the configuration with the row's plugin alone. The row has its arguments; that it heeds the tree of queues
// is a flag, which its case has.
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

// scores asks what the row's plugin said and lists the nodes for which the answer is another.
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

// scoresOf gives what each row says about the pod on each of the nodes, by the nodes' names.
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
