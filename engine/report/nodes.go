package report

import (
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/celsius-scheduler/celsius/engine/model"
)

// Built-in reasons to reject nodes.

// NotReady counts nodes that accept no pods.
func NotReady() model.NodeCount { return refused("ready-node", "node(s) were not ready") }

// TooFewDevices counts nodes with fewer free devices than a task requests.
func TooFewDevices() model.NodeCount { return refused("devices", "node(s) had too few free devices") }

// Insufficient counts nodes that have too little of a dimension. never is the text of NeverFits.
func Insufficient(name, never string) model.NodeCount {
	if never != "" {
		name += " (" + never + ")"
	}
	return refused("fit", "Insufficient "+name)
}

// Refused returns the reason of one node that is counted in n.
func Refused(n model.NodeCount) model.Reason {
	return model.Reason{Site: "predicates", Table: n.Table, Rule: n.Rule, Text: n.Text}
}

func refused(rule, text string) model.NodeCount {
	return model.NodeCount{Table: "builtin", Rule: rule, Text: text}
}

// mostTexts is how many different texts are reported for a row whose message depends on the node, each with its count. mostNodes is how
// many nodes are examined for them. If there are more texts, or if each text names its node, the first text stands for all.
const (
	mostTexts = 3
	mostNodes = 128
)

// ByText returns the messages of a row for the count nodes that it rejects. It returns one message. If the row's message depends on the
// node, it returns a few with their counts, most nodes first.
func ByText(
	count int, refused iter.Seq[int32], tellsOfNode bool, nodes *model.Nodes, say func(row int32) model.NodeCount,
) []model.NodeCount {
	var out []model.NodeCount
	var first model.NodeCount
	looked, eachNamed := 0, true
	for row := range refused {
		told := say(row)
		named := tellsOfNode && strings.Contains(told.Text, nodes.Rows[row].Name)
		eachNamed = eachNamed && named
		if looked++; looked == 1 {
			first = told
			first.Count, first.Example = count, named
			if count == 1 || !tellsOfNode {
				return []model.NodeCount{first}
			}
		}
		i := slices.IndexFunc(out, func(n model.NodeCount) bool { return n.Text == told.Text })
		if i < 0 {
			i, out = len(out), append(out, told)
		}
		if out[i].Count++; looked > mostNodes || len(out) > mostTexts {
			first.Example = true
			return []model.NodeCount{first}
		}
	}
	if eachNamed {
		return []model.NodeCount{first}
	}
	slices.SortStableFunc(out, func(a, b model.NodeCount) int { return b.Count - a.Count })
	return out
}

// NoNode formats the counts as kube-scheduler does, with the row that rejected most nodes. Its reason is Unschedulable, unless one row
// rejects every node for the same reason.
func NoNode(site string, nodes []model.NodeCount) model.Reason {
	why := model.Reason{Site: site, Reason: "Unschedulable"}
	if len(nodes) == 0 {
		why.Table, why.Rule, why.Text = "builtin", "ready-node", "there are no nodes"
		return why
	}
	total := 0
	var parts []string
	for _, n := range nodes {
		if n.Everywhere != "" {
			why.Reason = n.Everywhere
		}
		total += n.Count
		parts = append(parts, n.String())
	}
	why.Table, why.Rule = nodes[0].Table, nodes[0].Rule
	why.Text = fmt.Sprintf("0/%d nodes are available: %s", total, strings.Join(parts, ", "))
	return why
}

// OnlyNode states why a task was placed on its node: there was no choice.
func OnlyNode(site string) model.Reason {
	return model.Reason{Site: site, Text: "the only node that fits"}
}

// Preferred states why a task was placed on its node, without the text: the row that contributed most to its lead over the second-best
// node; none if both are equal. runnerUp contains the scores of the second-best node.
func Preferred(site string, b *model.Bind, runnerUp []model.RowScore) model.Reason {
	why := model.Reason{Site: site}
	if b.Score == b.RunnerUpScore {
		return why
	}
	most := 0.0
	for _, s := range b.Scores {
		lead := s.Score
		for _, o := range runnerUp {
			if o.Table == s.Table && o.Rule == s.Rule {
				lead -= o.Score
			}
		}
		if lead > most {
			most, why.Table, why.Rule = lead, s.Table, s.Rule
		}
	}
	return why
}

// AppendPreferred appends the text of Preferred.
func AppendPreferred(text []byte, b *model.Bind) []byte {
	digits := func(v float64) { text = strconv.AppendFloat(text, v, 'g', 6, 64) }
	text = append(text, "score "...)
	digits(b.Score)
	if b.Score == b.RunnerUpScore {
		text = append(text, ", as "...)
		text = append(text, b.RunnerUp...)
		return append(text, " has; first in the order of nodes"...)
	}
	text = append(text, ", next "...)
	text = append(text, b.RunnerUp...)
	text = append(text, " with "...)
	digits(b.RunnerUpScore)
	return text
}
