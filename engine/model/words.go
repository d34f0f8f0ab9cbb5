package model

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Text formats r for people: "cpu 2, memory 4Gi, pods 1".
func (d *Dims) Text(r Resources) string {
	var b strings.Builder
	for _, i := range d.Sorted() {
		if !r.Has(i) {
			continue
		}
		if b.Len() > 0 {
			b.WriteString(", ")
		}
		b.WriteString(d.names[i] + " " + d.AmountText(i, r[i]))
	}
	if b.Len() == 0 {
		return "nothing"
	}
	return b.String()
}

// AmountText formats an amount of dimension i, in inner units, for people. Cores and pieces are written as 2 or 57.143. Bytes are written
// in the largest unit in which the amount is at least 1, as 43.75Ti. There are at most three digits after the point, or three significant
// digits below 1. Bytes that are exact only in powers of ten, as 1.5G, use these.
func (d *Dims) AmountText(i int, v float64) string {
	if math.IsInf(v, 1) {
		return "without limit"
	}
	if d.units[i] != 1 {
		return shortened(v / d.units[i])
	}
	whole, unit := scaled(v, 1024, "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
	if tens, ofTens := scaled(v, 1000, "k", "M", "G", "T", "P", "E"); !short(whole) && short(tens) {
		whole, unit = tens, ofTens
	}
	return shortened(whole) + unit
}

// AmountTexts writes two amounts of dimension i that a message compares. If AmountText would write the same text for two different amounts,
// AmountTexts uses the largest unit in which the texts differ. For example, it writes 16777212Ki and 16Gi as 16383.996Mi and 16384Mi.
func (d *Dims) AmountTexts(i int, a, b float64) (one, other string) {
	one, other = d.AmountText(i, a), d.AmountText(i, b)
	if one != other && math.Abs(a-b) > math.Abs(a)/1000 || a == b {
		return one, other
	}
	if d.units[i] != 1 {
		for digits := 3; digits < 15 && one == other; digits++ {
			one, other = rounded(a/d.units[i], digits), rounded(b/d.units[i], digits)
		}
		return one, other
	}
	units := []string{"", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"}
	for n, unit := range slices.Backward(units) {
		size := math.Pow(1024, float64(n))
		one, other = rounded(a/size, 3)+unit, rounded(b/size, 3)+unit
		if one != other && max(math.Abs(a), math.Abs(b)) >= size {
			break
		}
	}
	return one, other
}

// rounded formats a number with at most this many digits after the point.
func rounded(v float64, digits int) string {
	text := strconv.FormatFloat(v, 'f', digits, 64)
	return strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
}

// scaled converts an amount into the largest unit in which it is at least 1.
func scaled(v, step float64, units ...string) (whole float64, unit string) {
	for _, larger := range units {
		if math.Abs(v) < step {
			break
		}
		v, unit = v/step, larger
	}
	return v, unit
}

// short reports whether three digits after the point are exact.
func short(v float64) bool { return math.Abs(1000*v-math.Round(1000*v)) < 1e-9 }

func shortened(v float64) string {
	if math.Abs(v) >= 1 {
		v = math.Round(1000*v) / 1000
	} else {
		v, _ = strconv.ParseFloat(strconv.FormatFloat(v, 'g', 3, 64), 64)
	}
	return strconv.FormatFloat(v+0, 'f', -1, 64)
}

// RowName returns the name of a row of a table.
func RowName(table, rule string) string {
	if table == "" || rule == "" {
		return table + rule
	}
	return table + "/" + rule
}

// String returns a reason for people: the row that gave it, and its text.
func (r Reason) String() string {
	row := RowName(r.Table, r.Rule)
	switch {
	case row == "":
		return r.Text
	case r.Text == "":
		return row
	}
	return row + ": " + r.Text
}

// String returns a count of nodes for people, without the row.
func (n NodeCount) String() string {
	if n.Example {
		return n.Why()
	}
	return strconv.Itoa(n.Count) + " " + n.Text
}

// Why returns the text of the row, without the number of nodes.
func (n NodeCount) Why() string {
	if n.Example && n.Count > 1 {
		return fmt.Sprintf("%s, and %d like it", n.Text, n.Count-1)
	}
	return n.Text
}

// String describes for people why something waits: its reason, which rows rejected how many nodes as far as the reason does not state it,
// and why no pod is evicted for it.
func (w *Wait) String() string {
	parts := []string{w.withNodes()}
	for _, why := range w.InVain {
		parts = append(parts, why.String())
	}
	return strings.Join(parts, "; ")
}

// String returns for people why no pod is evicted.
func (v InVain) String() string {
	parts := make([]string, len(v.Nodes))
	for i, n := range v.Nodes {
		parts[i] = n.String()
	}
	return v.What() + ": " + strings.Join(parts, ", ")
}

// What returns the fact without its reasons.
func (v InVain) What() string {
	of := cmp.Or(map[string]string{"job": "its own job", "queue": "its queue"}[v.Scope], "other queues")
	return "nobody of " + of + " goes for it in " + v.Action
}

func (w *Wait) withNodes() string {
	told := true
	for _, n := range w.Nodes {
		told = told && strings.Contains(w.Reason.Text, n.Text)
	}
	own := RowName(w.Reason.Table, w.Reason.Rule)
	of := func(n NodeCount) bool { return RowName(n.Table, n.Rule) == own }
	if told && !slices.ContainsFunc(w.Nodes, func(n NodeCount) bool { return !of(n) }) {
		return w.Why()
	}
	var parts []string
	for _, n := range byRow(w.Nodes, told) {
		part := strconv.Itoa(n.Count) + " " + RowName(n.Table, n.Rule)
		if !told {
			part += " " + n.Why()
		}
		parts = append(parts, part)
	}
	return w.Why() + " (" + strings.Join(parts, ", ") + ")"
}

// Why returns the reason for people, after what happened to the task in a turn that was undone.
func (w *Wait) Why() string {
	switch {
	case w.Fared.Node != "":
		return "found node " + w.Fared.Node + ", rolled back: " + w.Reason.String()
	case w.Fared.Untried:
		return "not tried, as its job's turn had ended: " + w.Reason.String()
	}
	return w.Reason.String()
}

// byRow sums the counts of each row if the output already contains the texts.
func byRow(nodes []NodeCount, told bool) []NodeCount {
	if !told {
		return nodes
	}
	var out []NodeCount
	for _, n := range nodes {
		same := func(o NodeCount) bool { return o.Table == n.Table && o.Rule == n.Rule }
		if i := slices.IndexFunc(out, same); i >= 0 {
			out[i].Count += n.Count
			continue
		}
		out = append(out, n)
	}
	return out
}

// mostParts is the maximum number of parts of a score in a line.
const mostParts = 5

// Why returns for people, in one line, why a task was placed on its node: the reason, and the parts of the score that are not 0, largest
// first.
func (b *Bind) Why() string {
	parts := slices.DeleteFunc(slices.Clone(b.Scores), func(s RowScore) bool { return s.Score == 0 })
	slices.SortStableFunc(parts, func(a, b RowScore) int { return cmp.Compare(math.Abs(b.Score), math.Abs(a.Score)) })
	var words []string
	for i, s := range parts {
		if i == mostParts {
			words = append(words, fmt.Sprintf("and %d more", len(parts)-i))
			break
		}
		words = append(words, Score(s.Score)+" "+RowName(s.Table, s.Rule))
	}
	if len(words) == 0 {
		return b.Reason.String()
	}
	return b.Reason.String() + " (" + strings.Join(words, ", ") + ")"
}

// Score formats a score for people, with at most three digits after the point.
func Score(x float64) string {
	text := strings.TrimRight(strconv.FormatFloat(x, 'f', 3, 64), "0")
	if text = strings.TrimSuffix(text, "."); text == "-0" {
		return "0"
	}
	return text
}
