package explain

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/rules/source"
)

// widest is the maximum width of a column in characters. One long cell must not make each of many rows long.
const widest = 320

// Columns formats rows of cells. Each column except the last is as wide as its widest cell. Rows may have different lengths, and no line
// ends with a space. Control characters and line breaks are escaped, because users write names that a terminal could interpret, or that
// look like other rows.
func Columns(indent string, rows [][]string) string {
	var widths []int
	for i, row := range rows {
		rows[i] = shown(row)
	}
	for _, row := range rows {
		for i, cell := range row[:max(len(row)-1, 0)] {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], min(utf8.RuneCountInString(cell), widest))
		}
	}
	var out strings.Builder
	for _, row := range rows {
		var line strings.Builder
		line.WriteString(indent)
		for i, cell := range row {
			line.WriteString(cell)
			if i < len(row)-1 {
				line.WriteString(strings.Repeat(" ", max(widths[i]-utf8.RuneCountInString(cell), 0)+2))
			}
		}
		out.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
	return out.String()
}

// shown returns a row with shortened long values, and with visible control characters.
func shown(row []string) []string {
	for i, cell := range row {
		if text := source.Line(source.Short(cell)); text != cell {
			row = slices.Clone(row)
			row[i] = text
		}
	}
	return row
}

// Count returns "1 node", or "2 nodes".
func Count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return strconv.Itoa(n) + " " + what + "s"
}

// printf writes lines. It escapes line breaks in the texts that are inserted, because users write names that look like other lines.
func printf(out *strings.Builder, format string, args ...any) {
	out.WriteString(sprintf(format, args...))
}

// sprintf returns as a string what printf would write.
func sprintf(format string, args ...any) string {
	for i, arg := range args {
		if text, ok := arg.(string); ok {
			args[i] = source.Line(text)
		}
	}
	return fmt.Sprintf(format, args...)
}

func indented(text string) string {
	var out strings.Builder
	for line := range strings.Lines(text) {
		out.WriteString("  " + line)
	}
	return out.String()
}

// StatusCounts returns the number of a job's pods by status: "1 Pending, 2 Running", in the order of a pod's life.
func StatusCounts(j *model.Job) string {
	var parts []string
	var counts [model.NumStatus]int
	for _, t := range j.Tasks {
		counts[t.Shown()]++
	}
	for s := range model.NumStatus {
		if counts[s] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", counts[s], s))
		}
	}
	if len(parts) == 0 {
		return "none"
	}
	return strings.Join(parts, ", ")
}

// NodeState states whether a node accepts pods.
func NodeState(n *model.Node) string {
	switch {
	case !n.Ready:
		return "NotReady"
	case n.Unschedulable:
		return "Cordoned"
	}
	return "Ready"
}

// Numbers returns the form 0,2,3.
func Numbers(of []int) string {
	words := make([]string, len(of))
	for i, n := range of {
		words[i] = strconv.Itoa(n)
	}
	return strings.Join(words, ",")
}

// Place returns a node, and the devices and CPUs held there.
func Place(b *model.Bind) string {
	out := b.Node
	if len(b.GPUs) > 0 {
		out += " gpu " + Numbers(b.GPUs)
	}
	if b.CPUs != "" {
		out += " cpu " + b.CPUs
	}
	return out
}

// Fold groups neighbours that differ only in the number at the end of their names, if the numbers increase by one: worker-0, worker-1,
// worker-2. If down returns true for the first of them, the numbers may decrease instead.
func Fold[T any](lines []T, name func(*T) string, same func(a, b *T) bool, down func(*T) bool) (out [][]T) {
	for i := 0; i < len(lines); {
		prefix, first, ok := Numbered(name(&lines[i]))
		follows := func(j, number int) bool {
			p, n, isNumbered := Numbered(name(&lines[j]))
			return isNumbered && p == prefix && n == number && same(&lines[j], &lines[i])
		}
		j, step := i+1, 1
		if ok && j < len(lines) && down(&lines[i]) && follows(j, first-1) {
			step = -1
		}
		for ok && j < len(lines) && follows(j, first+step*(j-i)) {
			j++
		}
		out = append(out, lines[i:j])
		i = j
	}
	return out
}

// Range returns the name of neighbours that Fold grouped, from the names of the first and the last: worker-[0-2].
func Range(first, last string) string {
	if first == last {
		return first
	}
	prefix, from, _ := Numbered(first)
	_, to, _ := Numbered(last)
	return fmt.Sprintf("%s[%d-%d]", prefix, from, to)
}

// Numbered splits a name before the number at its end. A number with leading zeros does not count.
func Numbered(name string) (prefix string, n int, ok bool) {
	prefix = strings.TrimRight(name, "0123456789")
	digits := name[len(prefix):]
	n, err := strconv.Atoi(digits)
	if err != nil || strconv.Itoa(n) != digits || !strings.HasSuffix(prefix, "-") {
		return "", 0, false
	}
	return prefix, n, true
}

// BecauseOf returns what ForWhom returns and, if the pod is evicted for another pod, why that pod needs the eviction.
func BecauseOf(e *model.Evict, between string) string {
	if e.For == "" {
		return source.Line(ForWhom(e))
	}
	return source.Line(ForWhom(e)) + between + source.Line(needed(e))
}

// ForWhom returns for which task a pod is evicted, in which action, and by which rows.
func ForWhom(e *model.Evict) string {
	if e.For == "" {
		return fmt.Sprintf("in %s: %s", e.Action, e.Reason.Text)
	}
	return fmt.Sprintf("in %s: for %s, as %s", e.Action, e.For, permit(e.Rows))
}

// permit returns "a/x permits", or "a/x, b/y and c/z permit".
func permit(rows []string) string {
	if len(rows) < 2 {
		return enumerate(rows) + " permits"
	}
	return enumerate(rows) + " permit"
}

// enumerate joins rows: "a/x", or "a/x, b/y and c/z".
func enumerate(rows []string) string {
	last := len(rows) - 1
	if last < 1 {
		return strings.Join(rows, "")
	}
	return strings.Join(rows[:last], ", ") + " and " + rows[last]
}

// needed states why the preemptor does not fit without this eviction.
func needed(e *model.Evict) string {
	if row := model.RowName(e.Needed.Table, e.Needed.Rule); row != "" {
		return fmt.Sprintf("%s (%s)", e.Needed.Text, row)
	}
	return e.Needed.Text
}
