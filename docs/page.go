package docs

import (
	"fmt"
	"strings"
)

// generated opens every generated document.
const generated = "<!-- Written by `make generate` from what the compiler knows. Do not edit. -->\n"

// page is a Markdown document in the making.
type page struct{ b strings.Builder }

// heading opens a section, level 1 to 6.
func (p *page) heading(level int, text string) {
	fmt.Fprintf(&p.b, "\n%s %s\n", strings.Repeat("#", level), text)
}

// para is a paragraph.
func (p *page) para(format string, args ...any) {
	fmt.Fprintf(&p.b, "\n%s\n", strings.TrimSpace(fmt.Sprintf(format, args...)))
}

// fence is a block of code.
func (p *page) fence(language, code string) {
	fmt.Fprintf(&p.b, "\n```%s\n%s\n```\n", language, strings.Trim(code, "\n"))
}

// table is a table; one without rows is left out.
func (p *page) table(head []string, rows [][]string) {
	if len(rows) == 0 {
		return
	}
	p.b.WriteString("\n")
	p.row(head)
	p.b.WriteString("|" + strings.Repeat(" --- |", len(head)) + "\n")
	for _, r := range rows {
		p.row(r)
	}
}

func (p *page) row(cells []string) {
	p.b.WriteString("|")
	for _, c := range cells {
		p.b.WriteString(" " + cell(c) + " |")
	}
	p.b.WriteString("\n")
}

// list is a list of sentences; one without items is left out.
func (p *page) list(items []string) {
	if len(items) > 0 {
		p.b.WriteString("\n")
	}
	for _, item := range items {
		p.b.WriteString("- " + item + "\n")
	}
}

func (p *page) bytes() []byte { return []byte(strings.TrimLeft(p.b.String(), "\n")) }

// cell keeps a text from breaking its table.
func cell(text string) string {
	return strings.ReplaceAll(strings.Join(strings.Fields(text), " "), "|", `\|`)
}

// code sets a text as code; "" stays "".
func code(text string) string {
	if text == "" {
		return ""
	}
	if strings.Contains(text, "`") {
		return "`` " + text + " ``"
	}
	return "`" + text + "`"
}

// codes sets each text as code.
func codes(texts []string) string {
	var out []string
	for _, t := range texts {
		out = append(out, code(t))
	}
	return strings.Join(out, ", ")
}

// sentence begins with a capital and ends with a full stop.
func sentence(text string) string {
	text = strings.TrimSpace(text)
	if text == "" {
		return ""
	}
	if !strings.HasPrefix(text, "`") {
		text = strings.ToUpper(text[:1]) + text[1:]
	}
	if strings.HasSuffix(text, ".") || strings.HasSuffix(text, "?") {
		return text
	}
	return text + "."
}
