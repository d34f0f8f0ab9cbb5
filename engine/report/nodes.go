package report

import (
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/celsius-scheduler/celsius/engine/model"
)

// What refuses nodes beside the rows of a policy.

// NotReady is of nodes that take no pods.
func NotReady() model.NodeCount { return refused("ready-node", "node(s) were not ready") }

// TooFewDevices is of nodes that have not as many devices free as a task asks for.
func TooFewDevices() model.NodeCount { return refused("devices", "node(s) had too few free devices") }

// Insufficient is of nodes that have too little of a dimension; never: as NeverFits says it.
func Insufficient(name, never string) model.NodeCount {
	if never != "" {
		name += " (" + never + ")"
	}
	return refused("fit", "Insufficient "+name)
}

// Refused is why one node is refused that is counted so.
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

// ByText is what a row says of the nodes that it refuses, which are so many: one text, or, where its message tells of the node, a few
// with their counts, most nodes first.
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

// NoNode words a histogram as kube-scheduler does, under what refused most nodes. Its reason is Unschedulable, unless a row refuses every
// node alike.
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

// OnlyNode is why a task went where it did: there was no choice.
func OnlyNode(site string) model.Reason {
	return model.Reason{Site: site, Text: "the only node that fits"}
}

// Preferred is why a task went where it did, but for the text: the row that put the node ahead of the runner-up most; none, where the two
// are equal. runnerUp is what the rows gave to that one.
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
