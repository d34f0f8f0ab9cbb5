package statemachines

import (
	"fmt"
	"slices"
	"strings"

	"github.com/google/cel-go/common/types"

	"github.com/celsius-scheduler/celsius/rules/source"
)

// edge is one transition from a phase to another.
type edge struct {
	from, to string
	row      *row
	// next is nil if the row itself names the next phase, or can only stay.
	next *nextRow
	at   source.Value
}

// verify finds mistakes in a machine whose parts were all read without mistakes.
func (l *loader) verify() {
	known := true
	for _, t := range l.targets {
		if t.name == "" || l.m.phase(t.name) == nil {
			l.report(t.value.Issuef(suggest(t.name, l.m.Phases()), "there is no phase %q", t.name))
			known = false
		}
	}
	l.names()
	l.totality()
	l.dead()
	l.timers()
	if !known || l.damaged || l.m.Initial == "" || len(l.m.phases) == 0 {
		return
	}
	edges := l.edges()
	l.finals(edges)
	l.reachable(edges)
	if l.misguarded == 0 {
		l.cycles(edges)
	}
	if l.misguarded == 0 && len(l.issues.Errors()) == 0 && !l.trusted {
		l.circles(edges)
	}
}

// names checks that the API has all phases of the machine.
func (l *loader) names() {
	for _, p := range l.m.phases {
		if !slices.Contains(l.m.kind.phases, p.name) {
			l.report(p.at.Issuef(suggest(p.name, l.m.kind.phases), "the API has no phase %q of a %s", p.name, l.m.Name))
		}
	}
	for _, r := range l.m.events {
		if r.event == "" && r.at.Get("event").Exists() {
			l.report(r.at.Get("event").Issuef("name the event", "the event has no name"))
		}
	}
}

// totality checks that every phase has a row for every action.
func (l *loader) totality() {
	for _, p := range l.m.phases {
		if len(p.rows) == 0 && p.at.Exists() {
			l.report(p.at.Issuef(`add a row for "*"`, "phase %s has no actions", p.name))
			continue
		}
		var missing []string
		for _, a := range l.m.actions {
			if p.answer(a.name) == nil {
				missing = append(missing, a.name)
			}
		}
		if len(missing) > 0 {
			l.report(p.at.Issuef(`add them, or a row for "*" (every other action)`, "phase %s does not say what is done upon %s", p.name,
				strings.Join(missing, ", ")))
		}
	}
}

// dead warns of rows that are never reached, because an earlier row is always true.
func (l *loader) dead() {
	warn := func(at source.Value, before string) {
		i := at.Issuef("move it up, or give the row before it a guard", "the row is never reached: %s, before it, always holds", before)
		i.Severity = source.Warning
		l.report(i)
	}
	for _, p := range l.m.phases {
		for _, r := range p.rows {
			if i := slices.IndexFunc(r.next, func(n *nextRow) bool { return !n.at.Get("when").Exists() && !n.at.Get("after").Exists() }); i >= 0 {
				for _, n := range r.next[i+1:] {
					warn(n.at, r.next[i].name)
				}
			}
		}
	}
	always := map[string]string{}
	for _, r := range l.m.events {
		if r.at.Get("after").Exists() {
			continue
		}
		if before, ok := always[r.from]; ok {
			warn(r.at, before)
		} else if !r.at.Get("when").Exists() {
			always[r.from] = r.name
		}
	}
}

// timers checks that rows with `after` belong to the action that runs when a timer ends.
func (l *loader) timers() {
	plain := l.m.policies.otherwise
	for _, p := range l.m.phases {
		for _, r := range p.rows {
			for _, n := range r.next {
				if n.after > 0 && plain != "" && p.answer(plain) != r {
					l.report(n.at.Get("after").Issuef("move the row to the action "+plain,
						"when the time is over %s happens, which this row does not answer in phase %s", plain, p.name))
				}
			}
		}
	}
}

// edges lists all transitions. A row without a next phase is a transition from its phase to itself.
func (l *loader) edges() []edge {
	var out []edge
	for _, p := range l.m.phases {
		for _, r := range p.rows {
			switch {
			case r.to != "":
				out = append(out, edge{p.name, r.to, r, nil, r.toAt})
			case len(r.next) == 0:
				out = append(out, edge{p.name, p.name, r, nil, r.at})
			}
			for _, n := range r.next {
				out = append(out, edge{p.name, n.to, r, n, n.toAt})
			}
		}
	}
	return out
}

// finals checks that no transition leaves a final phase, and that a final phase can be reached from every phase.
func (l *loader) finals(edges []edge) {
	var final []string
	for _, p := range l.m.phases {
		if p.final {
			final = append(final, p.name)
			if l.m.Perpetual {
				l.report(p.at.Issuef("drop final, or perpetual", "phase %s is final, and the machine is perpetual", p.name))
			}
		}
	}
	for _, e := range edges {
		if slices.Contains(final, e.from) && e.to != e.from {
			l.report(e.at.Issuef("drop the way out, or final", "phase %s is final, and leads to %s", e.from, e.to))
		}
	}
	if l.m.Perpetual {
		return
	}
	if len(final) == 0 {
		l.report(l.m.at.Issuef("mark the phases in which an object ends with final: true, or the machine with perpetual: true",
			"no phase is final"))
		return
	}
	for _, p := range l.m.phases {
		if !slices.ContainsFunc(final, func(f string) bool { return route(edges, p.name, f) != nil }) {
			l.report(p.at.Issuef("add a way out, mark it final, or the machine perpetual", "from phase %s no final phase can be reached", p.name))
		}
	}
}

// reachable checks that every phase can be entered.
func (l *loader) reachable(edges []edge) {
	from := []string{l.m.Initial}
	for _, p := range l.m.phases {
		if p.entry {
			from = append(from, p.name)
		}
	}
	for _, p := range l.m.phases {
		if !slices.ContainsFunc(from, func(f string) bool { return route(edges, f, p.name) != nil }) {
			l.report(p.at.Issuef("add a row that leads to it, or entry: true if others write it", "phase %s cannot be reached from %s", p.name,
				strings.Join(from, " or ")))
		}
	}
}

// route returns the phases from one to another along edges, both included, or nil if there is no path. From a phase to itself it is that
// phase alone.
func route(edges []edge, from, to string) []string {
	came := map[string]string{from: ""}
	for queue := []string{from}; len(queue) > 0; queue = queue[1:] {
		if queue[0] == to {
			var out []string
			for at := to; at != from; at = came[at] {
				out = append(out, at)
			}
			out = append(out, from)
			slices.Reverse(out)
			return out
		}
		for _, e := range edges {
			if _, seen := came[e.to]; e.from == queue[0] && !seen {
				came[e.to] = e.from
				queue = append(queue, e.to)
			}
		}
	}
	return nil
}

// cycles refuses cycles that end and start work without limit. Such a cycle has a destructive transition that needs no command of a user.
// It has no transition that increases a counter which bounds a guard of the cycle. Cycles that only follow observed changes are permitted.
func (l *loader) cycles(edges []edge) {
	free := slices.DeleteFunc(slices.Clone(edges), func(e edge) bool {
		return l.commanded(e.row) || l.m.Final(e.from) && e.to != e.from // it was already reported
	})
	told := map[*row]bool{}
	for _, e := range free {
		if !e.destructive() || told[e.row] {
			continue
		}
		if way := l.unbounded(e, free); way != nil {
			told[e.row] = true
			l.report(e.row.at.Issuef(
				fmt.Sprintf("count (%s), and leave by a guard that the counter alone makes true before any other, such as {when: status.retryCount "+
					">= spec.maxRetry, to: Failed}; or mark the action command: true",
					strings.Join(l.m.kind.counterNames(), ", ")),
				"the row ends work (%s) and can come round for ever: %s", e.row.do.name, strings.Join(append([]string{e.from}, way...), " -> ")))
		}
	}
}

// unbounded returns a path back along which nothing bounds the edge, or nil if every path has a bound. A bound is a counter that the cycle
// both increases and has in a guard. A cycle without a bound therefore lacks one of the two for each counter.
func (l *loader) unbounded(e edge, edges []edge) []string {
	counters := l.m.kind.counterNames()
	for choice := range 1 << len(counters) {
		lacks := func(x edge) bool {
			for i, c := range counters {
				if choice>>i&1 == 0 && x.counts(c) || choice>>i&1 == 1 && l.guarded(x, c, edges) {
					return false
				}
			}
			return true
		}
		if !lacks(e) {
			continue
		}
		var left []edge
		for _, x := range edges {
			if lacks(x) {
				left = append(left, x)
			}
		}
		if way := route(left, e.to, e.from); way != nil {
			return way
		}
	}
	return nil
}

// commanded reports whether only a user's command leads to the row.
func (l *loader) commanded(r *row) bool {
	if r.action != anyAction {
		a := l.m.action(r.action)
		return a != nil && a.command
	}
	p := l.m.phase(r.phase)
	return !slices.ContainsFunc(l.m.actions, func(a *action) bool { return !a.command && p.answer(a.name) == r })
}

func (e edge) destructive() bool {
	return e.row.do != nil && (e.row.do.kind.restarts || e.row.do.kind.kills && e.row.retain == retainNone)
}

func (e edge) counts(counter string) bool {
	return slices.Contains(e.row.count, counter) || e.next != nil && slices.Contains(e.next.count, counter)
}

// guarded reports whether the edge closes once the counter is large. Then its own guard reads the counter and is false, or an earlier guard
// is true and leads to a phase outside the cycle.
func (l *loader) guarded(e edge, counter string, edges []edge) bool {
	if e.next == nil {
		return false
	}
	if holds, reads := l.atLarge(e.next, counter); reads && !holds {
		return true
	}
	for _, n := range e.row.next {
		if n == e.next {
			return false
		}
		if holds, reads := l.atLarge(n, counter); reads && holds && n.after == 0 && route(edges, n.to, e.from) == nil {
			return true
		}
	}
	return false
}

// atLarge evaluates a guard for an object in which only the counter is set, to its maximum.
func (l *loader) atLarge(n *nextRow, counter string) (holds, reads bool) {
	if n.when == nil || !slices.Contains(n.when.Reads.Strings(), "status."+counter) {
		return false, false
	}
	return n.when.Eval(roots(l.m.kind.bind(l.m.kind.counters[counter]))) == types.True, true
}
