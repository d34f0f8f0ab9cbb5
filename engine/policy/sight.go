package policy

import (
	"strings"

	"github.com/celsius-scheduler/celsius/rules"
	"github.com/celsius-scheduler/celsius/rules/source"
)

// Seen is an expression, or a message with expressions, and the scope that it sees.
type Seen struct {
	Text  source.Text
	Scope *rules.Scope
}

// See returns the expressions at or below a path of a document (a policy or a table), with their scopes. It also returns the policy as far
// as it was compiled for that: of its rows, only those at or below the path. It is for tools that help authors, so mistakes do no harm: the
// parts with mistakes are unknown, and the rest is returned.
func (d *Dialect) See(doc *source.Document, path string) ([]Seen, *Policy) {
	l := d.loading()
	l.sight = &sight{path: path}
	if IsTable(doc) {
		p := l.tableAlone(doc)
		return l.sight.seen, p
	}
	p := l.policy(doc)
	return l.sight.seen, p
}

// LoadTable compiles a table in a document of its own, with no tables before it. It returns all mistakes at once, each with its place.
func (d *Dialect) LoadTable(doc *source.Document) source.Issues {
	l := d.loading()
	l.tableAlone(doc)
	l.issues.Sort()
	return l.issues
}

// IsTable reports whether the kind of a document is that of a table.
func IsTable(doc *source.Document) bool { return doc.Root.Get("kind").Any() == TableKind }

// tableAlone compiles a table as the only table of a policy.
func (l *loader) tableAlone(doc *source.Document) *Policy {
	l.header(doc.Root, tableVersion, TableKind)
	metadata := l.need(doc.Root, "metadata")
	metadata.Fields([]string{"name"}, &l.issues)
	e := &entry{name: l.name(metadata), at: doc.Root, off: map[string]bool{}, inline: true}
	e.table = rules.ReadTable(doc.Root, e.name, l.shape, tableHead(), &l.issues)
	p := newPolicy()
	newCompiler(l, p).table(e)
	return p
}

// sight collects the expressions that a loader sees at one path.
type sight struct {
	path string
	seen []Seen
}

// misses reports whether a value is not on the way to the path. It returns false if everything is loaded.
func (s *sight) misses(v source.Value) bool { return s != nil && !onPath(s.path, v.Path()) }

// sees adds an expression that is at or below the path.
func (s *sight) sees(text source.Text, scope *rules.Scope) {
	if s != nil && scope != nil && text.Written() && onPath(text.Path(), s.path) {
		s.seen = append(s.seen, Seen{text, scope})
	}
}

// onPath reports whether a path begins with all steps of another path.
func onPath(path, begin string) bool {
	rest, ok := strings.CutPrefix(path, begin)
	return ok && (rest == "" || begin == "" || rest[0] == '.' || rest[0] == '[')
}

// look compiles the part of the policy at the path, and everything that this part depends on.
func (c *compiler) look(spec source.Value, entries []*entry) {
	for _, e := range entries {
		c.table(e)
		if !c.sight.misses(e.at) {
			return // later tables are not visible to it
		}
	}
	own := c.definitions(spec.Get("actions"))
	for _, name := range sortedKeys(own) {
		if !c.sight.misses(own[name]) {
			c.action(name, own[name])
		}
	}
}
