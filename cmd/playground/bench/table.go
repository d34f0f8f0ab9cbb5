package bench

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// width is how many columns a report may take.
const width = 120

// table is rows of cells, of which the first is the head. What is in the first column begins at its left, all else ends at its right.
type table [][]string

// add adds a row. A float64 is written with as many digits as say something.
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

// figure writes a number: whole ones above a hundred, three digits below.
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

// orNone is a figure of which 0 means that there is none.
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

// wrap breaks a list that commas part, so that it stays within the width. Further lines are as far in as the heading is long.
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
