package policy

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/celsius-scheduler/celsius/engine/policy/parts"
	"github.com/celsius-scheduler/celsius/rules"
	"github.com/celsius-scheduler/celsius/rules/eval"
	"github.com/celsius-scheduler/celsius/rules/source"
)

// condition is a when that applies to all rows of some tables: of one table, or of all tables of a tier.
type condition struct {
	text   source.Text
	before []*entry
	expr   *eval.Expr // nil: it is missing or has a mistake
}

// conditions compiles the when of a table. Before the first table of a tier it also compiles the when of the tier, which sees no params and
// no variables.
func (s *TableScope) conditions() {
	if s.entry.conditions == nil {
		return
	}
	tier, own := s.entry.conditions[0], s.entry.conditions[1]
	if tier.before[0] == s.entry {
		s.compiler.scopeOf(&entry{at: s.entry.at, table: &rules.Table{}}).condition(tier)
	}
	s.condition(own, tier.expr)
}

// condition compiles a when. It may read only roots that all its rows see.
func (s *TableScope) condition(c *condition, guards ...*eval.Expr) {
	if c.text.Value == "" {
		return
	}
	if !slices.ContainsFunc(c.before, func(e *entry) bool { return e.asked() != nil }) {
		c.inVain(s.loader)
	}
	var roots []string
	blind := map[string]string{} // the rows that do not see a root
	for _, root := range Roots() {
		if blind[root.Name] = c.blind(root.Name); blind[root.Name] == "" && !root.Everywhere {
			roots = append(roots, root.Name)
		}
	}
	from := len(s.issues)
	c.expr = s.compile(c.text, roots, rules.Bool(), guards...)
	for i := range s.issues[from:] {
		issue := &s.issues[from+i]
		if m := regexp.MustCompile(`^"(\w+)" is not known here$`).FindStringSubmatch(issue.Message); m != nil && blind[m[1]] != "" {
			issue.Message = fmt.Sprintf("%q is not known to the rows of %s, before which this when stands", m[1], blind[m[1]])
			issue.Hint = "write it in the rows that know it, or use the table twice, once with only these sections; " + issue.Hint
		}
		if !s.entry.table.At.Exists() {
			issue.Message = strings.Replace(issue.Message, "the table has no ", "a tier has no ", 1)
		}
	}
}

// inVain warns about a condition that applies to no rows.
func (c *condition) inVain(l *loader) {
	i := c.text.Issue(0, len([]rune(c.text.Value)), "this when stands before no rows, and decides nothing", "remove it")
	i.Severity = source.Warning
	l.report(i)
}

// blind returns the names of the sites with rows after a condition that do not see a root; "": all see it.
func (c *condition) blind(root string) string {
	var out []string
	for _, e := range c.before {
		var sites []string
		for _, site := range e.asked() {
			if !slices.Contains(append(everywhere(), site.Roots...), root) {
				sites = append(sites, site.Name)
			}
		}
		if sites != nil {
			out = append(out, fmt.Sprintf("%s of the table %q", strings.Join(sites, ", "), e.name))
		}
	}
	return strings.Join(out, ", and ")
}

// asked returns the sites for which the table has rows.
func (e *entry) asked() []Site {
	var out []Site
	for _, s := range Sites() {
		if !e.off[s.Name] && len(e.table.Sections[s.Name]) > 0 {
			out = append(out, s)
		}
	}
	return out
}

// when compiles the conditions of a row: those of its share, its tier, its table and its own; nil: none; false: there is a mistake.
func (s *TableScope) when(row *rules.Row, roots []string, share *parts.Share) (when *eval.Expr, ok bool) {
	var all []*eval.Expr
	if share != nil && share.When != "" {
		all = append(all, s.declared(share.When, roots, rules.Bool()))
	}
	for _, c := range s.entry.conditions {
		if c.expr != nil {
			all = append(all, c.expr)
		}
	}
	if row.When.Value != "" {
		own := s.compile(row.When, roots, rules.Bool(), all...)
		if len(all) == 0 || own == nil || s.sight != nil {
			return own, own != nil
		}
		all = append(all, own)
	}
	if len(all) == 0 {
		return nil, true
	}
	if len(all) == 1 && !all[0].Text.Written() {
		return all[0], true // it is generated, so no author needs its text
	}
	when = s.compile(allOf(all), roots, rules.Bool())
	return when, when != nil
}

// allOf returns the text of a condition that is true if all conditions are true.
func allOf(all []*eval.Expr) source.Text {
	if len(all) == 1 {
		return source.Join(all[0].Text)
	}
	var parts []source.Text
	for i, e := range all {
		end := ")"
		if strings.Contains(e.Text.Value, "//") {
			end = "\n)" // ends a comment
		}
		parts = append(parts, source.NewText([]string{"(", " && ("}[min(i, 1)]), e.Text, source.NewText(end))
	}
	return source.Join(parts...)
}
