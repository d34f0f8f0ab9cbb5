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

// condition is a when that stands before the rows of some tables: of one, or of all of a tier.
type condition struct {
	text   source.Text
	before []*entry
	expr   *eval.Expr // nil: none was written, or there is a mistake in it
}

// conditions compiles the when of a table, and before the first table of a tier that of the tier, which sees no params or variables.
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

// condition compiles a when, which may read what all rows see before which it stands.
func (s *TableScope) condition(c *condition, guards ...*eval.Expr) {
	if c.text.Value == "" {
		return
	}
	if !slices.ContainsFunc(c.before, func(e *entry) bool { return e.asked() != nil }) {
		c.inVain(s.loader)
	}
	var roots []string
	blind := map[string]string{} // which rows do not see a root
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

// inVain warns of a condition without rows behind it.
func (c *condition) inVain(l *loader) {
	i := c.text.Issue(0, len([]rune(c.text.Value)), "this when stands before no rows, and decides nothing", "remove it")
	i.Severity = source.Warning
	l.report(i)
}

// blind names the rows behind a condition that do not see a root; "": all see it.
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

// asked lists the sites at which the table has rows.
func (e *entry) asked() []Site {
	var out []Site
	for _, s := range Sites() {
		if !e.off[s.Name] && len(e.table.Sections[s.Name]) > 0 {
			out = append(out, s)
		}
	}
	return out
}

// when compiles the when of a row, after that of its share, and those of its tier and its table; nil: there is none. false: there is a
// mistake in it.
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
		return all[0], true // it is nobody's but ours
	}
	when = s.compile(allOf(all), roots, rules.Bool())
	return when, when != nil
}

// allOf is the text of a condition that holds where all of some do.
func allOf(all []*eval.Expr) source.Text {
	if len(all) == 1 {
		return source.Join(all[0].Text)
	}
	var parts []source.Text
	for i, e := range all {
		end := ")"
		if strings.Contains(e.Text.Value, "//") {
			end = "\n)" // where a comment ends
		}
		parts = append(parts, source.NewText([]string{"(", " && ("}[min(i, 1)]), e.Text, source.NewText(end))
	}
	return source.Join(parts...)
}
