package lsp

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/engine/policy/facts"
	"github.com/celsius-scheduler/celsius/rules"
	"github.com/celsius-scheduler/celsius/rules/source"
)

// pointed is a word of an expression under the cursor.
type pointed struct {
	scope *rules.Scope // with the enclosing loops
	text  string       // the expression
	list  []token
	at    int // index of the word in list
	from  int // start of the expression in its scalar, in characters
}

// pointedAt returns the word of an expression under the cursor, or false.
func (c *Core) pointedAt(p *place) (pointed, bool) {
	seen, ok := c.seenAt(p)
	if !ok {
		return pointed{}, false
	}
	x := pointed{text: p.spot.Text().Value}
	offset := len(p.typed)
	if isMessage(p) {
		before, ok := inMessage(p.typed)
		if !ok {
			return pointed{}, false
		}
		start := len(p.typed) - len(before)
		x.from, offset = utf8.RuneCountInString(x.text[:start]), len(before)
		x.text, _, _ = strings.Cut(x.text[start:], "}}")
	}
	x.list = tokenize(x.text)
	x.at = slices.IndexFunc(x.list, func(t token) bool { return t.kind == word && t.start <= offset && offset <= t.end })
	if x.at < 0 {
		return pointed{}, false
	}
	x.scope = inLoops(seen.Scope, x.text, x.list[:x.at])
	return x, true
}

func (x *pointed) word() string { return x.list[x.at].text }

// dotted reports whether the word follows a dot.
func (x *pointed) dotted() bool {
	return x.at > 0 && x.list[x.at-1].isDot()
}

func (x *pointed) receiver() string {
	if !x.dotted() {
		return ""
	}
	return chain(x.text, x.list[:x.at-1])
}

func (x *pointed) called() bool { return x.at+1 < len(x.list) && x.list[x.at+1].text == "(" }

// member returns the field that the word names, or nil.
func (x *pointed) member() *rules.Member {
	if !x.dotted() || x.called() {
		return nil
	}
	return memberOf(x.scope, x.receiver()+"."+x.word())
}

// Hover describes the word at a position, or returns nil if nothing is known about it.
func (c *Core) Hover(t *Text, at Position) *Hover {
	p, ok := c.standing(t.text, t.offset(at))
	if !ok {
		return nil
	}
	if x, ok := c.pointedAt(&p); ok {
		start := x.from + utf8.RuneCountInString(x.text[:x.list[x.at].start])
		return hovering(x.tell(), p.part(t, start, utf8.RuneCountInString(x.word())))
	}
	return hovering(c.tellYAML(&p), p.part(t, 0, utf8.RuneCountInString(p.spot.Text().Value)))
}

func hovering(text string, at Range) *Hover {
	if text == "" {
		return nil
	}
	return &Hover{markdown(text), at}
}

// part returns the range of some characters of the scalar that contains the cursor.
func (p *place) part(t *Text, from, size int) Range {
	text := p.spot.Text()
	start := p.byteOf(t, text, from)
	return Range{t.position(start), t.position(max(start, p.byteOf(t, text, from+size)))}
}

// byteOf returns the byte offset of a character of a scalar.
func (p *place) byteOf(t *Text, text source.Text, offset int) int {
	line, column := text.Place(offset)
	return p.from + NewText(t.text[p.from:]).place(line, column)
}

// tell describes the word.
func (x *pointed) tell() string {
	if m := x.member(); m != nil {
		return tellField(x.receiver()+"."+m.Name, m)
	}
	name := x.word()
	if x.dotted() && x.scope.TypeOf(x.receiver()) == nil {
		name = x.receiver() + "." + name
	}
	if x.called() {
		if call, ok := x.scope.CallNamed(name); ok {
			return tellCall(call)
		}
		return ""
	}
	if t := x.scope.Root(name); t != nil && !x.dotted() {
		return heading(name, typeText(t)) + rootDocs()[name]
	}
	return ""
}

func heading(name, kind string) string { return fmt.Sprintf("**%s** `%s`\n\n", name, kind) }

func tellField(name string, m *rules.Member) string {
	out := heading(name, typeText(m.Type)) + fieldDoc(m)
	if m.Cost > 0 {
		out += fmt.Sprintf(" Reading it costs %d.", m.Cost)
	}
	if m.Reads != nil && len(m.Reads.All) > 0 {
		out += "\n\nIt reads " + codes(m.Reads.Strings()) + "."
	}
	return out
}

func codes(words []string) string {
	var out []string
	for _, w := range words {
		out = append(out, "`"+w+"`")
	}
	return strings.Join(out, ", ")
}

// tellCall describes a function, with its cost and what it reads.
func tellCall(call rules.Call) string {
	out := "**" + call.Name + "**\n\n" + callDoc(call)
	var cost uint64
	var reads []string
	for _, o := range call.Overloads {
		cost = max(cost, o.Cost)
		for _, r := range o.Reads {
			for i, arg := range o.Args {
				r = strings.ReplaceAll(r, fmt.Sprintf("{%d}", i), strings.ToLower(typeText(arg)))
			}
			if r != rules.Arguments && !slices.Contains(reads, r) {
				reads = append(reads, r)
			}
		}
	}
	if cost > 0 {
		out += fmt.Sprintf("\n\nA call costs %d.", cost)
	}
	if len(reads) > 0 {
		out += "\n\nIt reads " + codes(reads) + "."
	}
	return out
}

// tellYAML describes a key, a word, a table or a row.
func (c *Core) tellYAML(p *place) string {
	text := p.spot.Text().Value
	if p.spot.Key {
		for _, s := range c.schemasAt(p) {
			if f := s.Properties[text]; f != nil && f.Description != "" {
				return heading(text, typeWord(f)) + f.Description
			}
		}
		return ""
	}
	if t := c.shipped[text]; t != nil && p.kind.kind == policyKind && p.names("tables") {
		return tellTable(t)
	}
	if row := c.tellRow(p, text); row != "" {
		return row
	}
	for _, s := range c.schemasAt(p) {
		if i := slices.Index(s.Enum, any(text)); i >= 0 && i < len(s.Docs) {
			return heading(text, "a word") + s.Docs[i]
		}
	}
	return ""
}

// names reports whether the scalar is the name of an element of the list under that key, or of the element's table.
func (p *place) names(list string) bool {
	path := p.spot.Value.Path()
	return strings.Contains(path, "."+list+"[") && (p.holder().Path()+".name" == path || p.holder().Path()+".table" == path)
}

func tellTable(t *rules.Table) string {
	var out strings.Builder
	out.WriteString(heading(t.Name, "a table that ships") + t.Description)
	if len(t.Params) > 0 {
		out.WriteString("\n\nParams:\n")
		for _, p := range t.Params {
			fmt.Fprintf(&out, "- `%s` %s: %s\n", p.Name, p.Type, p.Description)
		}
	}
	var sections []string
	for _, site := range policy.Sites() {
		if len(t.Sections[site.Name]) > 0 {
			sections = append(sections, site.Name)
		}
	}
	return out.String() + "\n\nSections: " + codes(sections) + "."
}

// tellRow describes a row or an attribute with what the compiler knows about it. It returns "" for other names, or if the row has a
// mistake.
func (c *Core) tellRow(p *place, name string) string {
	holder := p.holder()
	if holder.Path()+".name" != p.spot.Value.Path() || p.kind.kind != policyKind && p.kind.kind != policy.TableKind {
		return ""
	}
	list := strings.Split(holder.Path(), ".")
	section, _, _ := strings.Cut(list[len(list)-1], "[")
	_, compiled := c.dialect.See(p.doc, holder.Path())
	if compiled == nil {
		return ""
	}
	for _, f := range facts.Of(compiled) {
		on, _ := holder.Get("on").Any().(string)
		if f.Site != section || f.Name != name && f.Name != on+"."+name {
			continue
		}
		cost := fmt.Sprint(f.Cost)
		if !f.Bounded {
			cost = "any amount"
		}
		if f.Metered {
			cost += ", in a budget"
		}
		doc, _ := holder.Get("description").Any().(string)
		out := heading(f.Name, f.Type) + strings.TrimSpace(doc+"\n\n") + "\n\n- costs " + cost + "\n- evaluated: " + f.Compiled()
		if len(f.Reads) > 0 {
			out += "\n- reads " + codes(f.Reads)
		}
		return out + "\n- holds: " + f.Cache
	}
	return ""
}

// hover serves textDocument/hover.
func (s *server) hover(t *open, at Position) (any, error) { return s.core.Hover(t.text, at), nil }
