package bench

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// width is the maximum width of a report in columns.
const width = 120

// table contains rows of cells. The first row is the header. The first column is left-aligned, and the others are right-aligned.
type table [][]string

// add adds a row. It formats a float64 with significant digits only.
func (t *table) add(cells ...any) {
	var row []string
	for _, cell := range cells {
		if n, ok := cell.(float64); ok {
			row = append(row, figure(n))
		} else {
			row = append(row, fmt.Sprint(cell))
		}
	}
	*t = append(*t, row)
}

// figure formats a number: without decimals from 100, and with three digits below.
func figure(n float64) string {
	switch {
	case n == 0:
		return "0"
	case n >= 100:
		return fmt.Sprintf("%.0f", n)
	case n >= 10:
		return fmt.Sprintf("%.1f", n)
	case n >= 1:
		return fmt.Sprintf("%.2f", n)
	}
	return fmt.Sprintf("%.3f", n)
}

// orNone returns "-" for 0, and otherwise the number.
func orNone(n float64) any {
	if n == 0 {
		return "-"
	}
	return n
}

func (t table) String() string {
	var widths []int
	for _, row := range t {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	var out strings.Builder
	for _, row := range t {
		line := ""
		for i, cell := range row {
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if i == 0 {
				line = cell + pad
			} else {
				line += "  " + pad + cell
			}
		}
		out.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	return out.String()
}

// wrap breaks a list at its commas, so that it fits into the width. Further lines are indented by the length of the heading.
func wrap(heading, list string) string {
	out, line := "", heading
	for i, item := range strings.Split(list, ", ") {
		switch {
		case i == 0:
			line += item
		case utf8.RuneCountInString(line)+2+utf8.RuneCountInString(item) > width-1:
			out += line + ",\n"
			line = strings.Repeat(" ", utf8.RuneCountInString(heading)) + item
		default:
			line += ", " + item
		}
	}
	return out + line
}

// list writes a heading and a list.
func (b *bench) list(heading, list string) { b.say("%s", wrap(heading, list)) }
