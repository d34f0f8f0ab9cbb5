package policy

import (
	"strings"

	"github.com/celsius-scheduler/celsius/rules"
	"github.com/celsius-scheduler/celsius/rules/source"
)

// Seen is an expression, or a message with expressions in it, and what it sees.
type Seen struct {
	Text  source.Text
	Scope *rules.Scope
}

// See gives the expressions at or below a path of a document, a policy or a table, with what each sees, and the policy as far as it is
// compiled for that: of its rows only those at or below the path. It is for whoever helps the author along, so mistakes do no harm,
// neither there nor elsewhere: what they are about is not known, and the rest is.
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

// LoadTable compiles a table that is a document of its own, as it ships, with nothing before it. All mistakes come back at once, each at
// its place.
func (d *Dialect) LoadTable(doc *source.Document) source.Issues {
	l := d.loading()
	l.tableAlone(doc)
	l.issues.Sort()
	return l.issues
}

// IsTable says whether a document says of itself that it is a table.
func IsTable(doc *source.Document) bool { return doc.Root.Get("kind").Any() == TableKind }

// tableAlone compiles a table as the only one of a policy.
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

// sight is what a loader that only looks at a place has seen there.
type sight struct {
	path string
	seen []Seen
}

// misses says that a value is not on the way to what is looked at, which it never does where all is loaded.
func (s *sight) misses(v source.Value) bool { return s != nil && !onPath(s.path, v.Path()) }

// sees keeps an expression at the place, or below it.
func (s *sight) sees(text source.Text, scope *rules.Scope) {
	if s != nil && scope != nil && text.Written() && onPath(text.Path(), s.path) {
		s.seen = append(s.seen, Seen{text, scope})
	}
}

// onPath says whether a path begins with all steps of another.
func onPath(path, begin string) bool {
	rest, ok := strings.CutPrefix(path, begin)
	return ok && (rest == "" || begin == "" || rest[0] == '.' || rest[0] == '[')
}

// look compiles what the sight is about, and what that rests on.
func (c *compiler) look(spec source.Value, entries []*entry) {
	for _, e := range entries {
		c.table(e)
		if !c.sight.misses(e.at) {
			return // what comes after it, it does not see
		}
	}
	own := c.definitions(spec.Get("actions"))
	for _, name := range sortedKeys(own) {
		if !c.sight.misses(own[name]) {
			c.action(name, own[name])
		}
	}
}
