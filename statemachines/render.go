package statemachines

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/celsius-scheduler/celsius/rules/eval"
)

// Arrow is a connection from one phase to another, with the names of all transitions that use it.
type Arrow struct {
	From, To string
	Labels   []string
}

// Arrows lists the connections between phases in the order of the file. Transitions within a phase are omitted.
func (m *Machine) Arrows() []Arrow {
	var out []Arrow
	add := func(from, to, label string) {
		i := slices.IndexFunc(out, func(a Arrow) bool { return a.From == from && a.To == to })
		if i < 0 {
			out = append(out, Arrow{From: from, To: to})
			i = len(out) - 1
		}
		if !slices.Contains(out[i].Labels, label) {
			out[i].Labels = append(out[i].Labels, label)
		}
	}
	for _, p := range m.phases {
		for _, r := range p.rows {
			if r.to != "" && r.to != p.name {
				add(p.name, r.to, r.title())
			}
			for _, n := range r.next {
				if n.to != p.name {
					add(p.name, n.to, m.wayLabel(p, r, n))
				}
			}
		}
	}
	return out
}

// wayLabel returns the name of a transition. It includes the action, unless the plain action has the same transition.
func (m *Machine) wayLabel(p *phase, r *row, n *nextRow) string {
	plain := p.answer(m.policies.otherwise)
	same := func(o *nextRow) bool { return o.name == n.name && o.to == n.to }
	if plain == r || plain != nil && slices.ContainsFunc(plain.next, same) {
		return n.label()
	}
	return r.title() + " if " + n.label()
}

// title returns the action in the form for people.
func (r *row) title() string {
	if r.action == anyAction {
		return "any other action"
	}
	return r.action
}

// label returns the name of a transition, or its guard if it has no name.
func (n *nextRow) label() string {
	switch {
	case n.at.Get("name").Exists():
		return n.name
	case n.when != nil:
		return written(n.when)
	case n.after > 0:
		return "after " + n.after.String()
	}
	return "always"
}

// written returns an expression on one line, or "".
func written(e *eval.Expr) string {
	if e == nil {
		return ""
	}
	return strings.Join(strings.Fields(e.Text.Value), " ")
}

func (m *Machine) entries() []string {
	out := []string{m.Initial}
	for _, p := range m.phases {
		if p.entry && p.name != m.Initial {
			out = append(out, p.name)
		}
	}
	return out
}

// Mermaid returns the machine as a Mermaid state diagram.
func (m *Machine) Mermaid() string {
	// Mermaid would read these characters as the end of a label or as the beginning of an entity.
	safe := strings.NewReplacer("#", "#35;", ":", "#58;", ";", "#59;")
	var b strings.Builder
	b.WriteString("stateDiagram-v2\n")
	for _, e := range m.entries() {
		fmt.Fprintf(&b, "    [*] --> %s\n", e)
	}
	for _, a := range m.Arrows() {
		var labels []string
		for _, l := range a.Labels {
			labels = append(labels, safe.Replace(l))
		}
		fmt.Fprintf(&b, "    %s --> %s: %s\n", a.From, a.To, strings.Join(labels, ", "))
	}
	for _, p := range m.phases {
		if p.final {
			fmt.Fprintf(&b, "    %s --> [*]\n", p.name)
		}
	}
	return b.String()
}

// Dot returns the machine in the language of Graphviz.
func (m *Machine) Dot() string {
	var b strings.Builder
	fmt.Fprintf(&b, "digraph %q {\n    node [shape=box, style=rounded];\n", m.Name)
	for _, e := range m.entries() {
		fmt.Fprintf(&b, "    %q [shape=point];\n    %q -> %q;\n", "to "+e, "to "+e, e)
	}
	for _, p := range m.phases {
		ends := 1
		if p.final {
			ends = 2
		}
		fmt.Fprintf(&b, "    %q [peripheries=%d, tooltip=%q];\n", p.name, ends, p.description)
	}
	for _, a := range m.Arrows() {
		fmt.Fprintf(&b, "    %q -> %q [label=%q];\n", a.From, a.To, strings.Join(a.Labels, "\n"))
	}
	b.WriteString("}\n")
	return b.String()
}

// PhaseText describes one phase.
type PhaseText struct {
	Name, Description string
	Final             bool
	Rows              []RowText
}

// RowText describes one row of a phase: the action, the effect, and the transitions in the order of their evaluation.
type RowText struct {
	Action, Does string
	Ways         []WayText
}

// WayText describes one transition. Guard is "" if it is always taken.
type WayText struct {
	Name, Guard, To, Message string
	After                    time.Duration
	Counts                   []string
	// Sets are the fields that are written into the object, for example "parent: root".
	Sets []string
}

// Text returns all phases for the reference.
func (m *Machine) Text() []PhaseText {
	var out []PhaseText
	for _, p := range m.phases {
		t := PhaseText{Name: p.name, Description: p.description, Final: p.final}
		for _, r := range p.rows {
			t.Rows = append(t.Rows, r.text())
		}
		out = append(out, t)
	}
	return out
}

func (r *row) text() RowText {
	t := RowText{Action: r.action, Does: r.do.name}
	if r.retain != "" {
		t.Does += ", retain " + r.retain
	}
	if r.to != "" {
		t.Ways = []WayText{{To: r.to, Counts: r.count, Sets: setTexts(r.set)}}
	}
	for _, n := range r.next {
		t.Ways = append(t.Ways, WayText{
			Name: n.label(), Guard: written(n.when), To: n.to, Message: n.message, After: n.after,
			Counts: append(slices.Clone(r.count), n.count...), Sets: setTexts(r.sets(n)),
		})
	}
	return t
}

func setTexts(set map[string]string) []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(set)) {
		out = append(out, name+": "+set[name])
	}
	return out
}

// WordText describes an action or an effect.
type WordText struct {
	Name, Description string
	// Of is the target of an action; "" means the whole object. Internal: no policy may name it. Command: only a Command may name it.
	Of                string
	Internal, Command bool
	// Retain are the rows that override what is retained: name, guard, value.
	Retain [][3]string
}

// Actions returns the actions for the reference.
func (m *Machine) Actions() []WordText {
	var out []WordText
	for _, a := range m.actions {
		out = append(out, WordText{Name: a.name, Description: a.description, Of: a.of, Internal: a.internal, Command: a.command})
	}
	return out
}

// Effects returns the effects for the reference.
func (m *Machine) Effects() []WordText {
	var out []WordText
	for _, e := range m.effects {
		w := WordText{Name: e.name, Description: e.kind.doc}
		for _, r := range e.retain {
			w.Retain = append(w.Retain, [3]string{r.name, written(r.when), r.retain})
		}
		out = append(out, w)
	}
	return out
}

// EventText describes a row of events.
type EventText struct {
	Name, Description, From, Event, Guard, While, Since string
	After                                               time.Duration
	// No policy applies to Internal events. Only policies with a timeout apply to NeedsTimeout events.
	Internal, NeedsTimeout bool
}

// EventTexts returns the rows of events for the reference.
func (m *Machine) EventTexts() []EventText {
	var out []EventText
	for _, r := range m.events {
		out = append(out, EventText{
			Name: r.name, Description: r.description, From: r.from, Event: r.event, Guard: written(r.when), While: written(r.while),
			Since: written(r.since), After: r.after,
			Internal: slices.Contains(m.policies.internal, r.event), NeedsTimeout: slices.Contains(m.policies.needTimeout, r.event),
		})
	}
	return out
}
