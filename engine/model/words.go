package model

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Text writes r for people: "cpu 2, memory 4Gi, pods 1".
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

// AmountText writes an amount of dimension i, in inner units, for people: cores and pieces as 2 or 57.143, bytes in the largest
// unit of which there is one, as 43.75Ti. There are at most three digits after the point, or three that count where the whole is below 1.
// Bytes that are exact so by powers of ten only, as 1.5G, are written by these.
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

// rounded writes a number with at most so many digits after the point.
func rounded(v float64, digits int) string {
	text := strconv.FormatFloat(v, 'f', digits, 64)
	return strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
}

// scaled brings an amount into the largest unit of which there is one.
func scaled(v, step float64, units ...string) (whole float64, unit string) {
	for _, larger := range units {
		if math.Abs(v) < step {
			break
		}
		v, unit = v/step, larger
	}
	return v, unit
}

// short says that three digits after the point tell all.
func short(v float64) bool { return math.Abs(1000*v-math.Round(1000*v)) < 1e-9 }

func shortened(v float64) string {
	if math.Abs(v) >= 1 {
		v = math.Round(1000*v) / 1000
	} else {
		v, _ = strconv.ParseFloat(strconv.FormatFloat(v, 'g', 3, 64), 64)
	}
	return strconv.FormatFloat(v+0, 'f', -1, 64)
}

// RowName names a row of a table.
func RowName(table, rule string) string {
	if table == "" || rule == "" {
		return table + rule
	}
	return table + "/" + rule
}

// String is a reason for people: the row that gave it, and what it says.
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

// String is a count of nodes for people, without the row.
func (n NodeCount) String() string {
	if n.Example {
		return n.Why()
	}
	return strconv.Itoa(n.Count) + " " + n.Text
}

// Why is what the row says of the nodes, without how many they are.
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

// String is why nobody goes, for people.
func (v InVain) String() string {
	parts := make([]string, len(v.Nodes))
	for i, n := range v.Nodes {
		parts[i] = n.String()
	}
	return v.What() + ": " + strings.Join(parts, ", ")
}

// What it is, without why.
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

// Why is the reason for people, after how the task fared in a turn that was undone.
func (w *Wait) Why() string {
	switch {
	case w.Fared.Node != "":
		return "found node " + w.Fared.Node + ", rolled back: " + w.Reason.String()
	case w.Fared.Untried:
		return "not tried, as its job's turn had ended: " + w.Reason.String()
	}
	return w.Reason.String()
}

// byRow sums the counts of each row, where what they say is told already.
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

// mostParts is how many parts of a score are told in a line.
const mostParts = 5

// Why is why a task went where it goes, for people in a line: the reason, and the parts of the score that are not 0, the largest first.
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

// Score is a score for people: at most three digits after the point.
func Score(x float64) string {
	text := strings.TrimRight(strconv.FormatFloat(x, 'f', 3, 64), "0")
	if text = strings.TrimSuffix(text, "."); text == "-0" {
		return "0"
	}
	return text
}
