package statemachines

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/cel-go/common/types"
	"github.com/looplab/fsm"

	"github.com/celsius-scheduler/celsius/rules/eval"
	"github.com/celsius-scheduler/celsius/rules/source"
)

// anyAction answers for every action that a phase has no row of its own for.
const anyAction = "*"

// Machine is a verified lifecycle: immutable, safe to share.
type Machine struct {
	// Name is job or queue; Description is for people.
	Name, Description string
	// Initial is the phase of an object that has none yet.
	Initial string
	// Perpetual machines need no final phase.
	Perpetual bool
	// File is where it was read from.
	File string

	kind     kind
	effects  []*effect
	actions  []*action
	events   []*eventRow
	policies policyRules
	phases   []*phase
	moves    []move
	pool     *sync.Pool // of *fsm.FSM, which are expensive to make
	at       source.Value
	shipped  bool
}

// effect is one effect that the machine uses.
type effect struct {
	name   string
	retain []retainRow
	kind   effectKind
}

// retainRow overrules what a row says is retained.
type retainRow struct {
	name, retain string
	when         *eval.Expr
}

// action is something that can be asked of the object.
type action struct {
	name, description string
	internal, command bool
	of                string
}

type phase struct {
	name, description string
	final, entry      bool
	rows              []*row
	at                source.Value
}

// row says what an action does in a phase.
type row struct {
	phase, action string
	do            *effect
	retain        string
	to            string
	count         []string
	set           map[string]string
	next          []*nextRow
	at, toAt      source.Value
}

// nextRow is one way on, open while its guard holds.
type nextRow struct {
	name, to, reason, message string
	when                      *eval.Expr
	after                     time.Duration
	count                     []string
	set                       map[string]string
	at, toAt                  source.Value
}

// move is one transition, as looplab/fsm knows it.
type move struct {
	from, event, to string
}

// Step is what to do now.
type Step struct {
	Phase, Action string
	// Row names the row that answered: Running/RestartJob, Failed/*.
	Row string
	// Effect is sync, kill or restartPods; for queues sync, open or close.
	Effect string
	// Retain says which pods the effect leaves: none, or finished (succeeded and failed); "" where the effect asks
	// for none of them. Asked is what the row itself says, before the effect's own rows overruled it.
	Retain, Asked string
	// Of is what the action aims at: pod, task, partition; "" is the whole job.
	Of string
	// To is where the row leads whatever the counts are then; "" where guards decide.
	To string

	row *row
}

// Outcome is where the object stands after the effect.
type Outcome struct {
	Phase   string
	Changed bool
	// Counters are to be increased, each by its number; nil where there are none.
	Counters map[string]int
	// Set is what is to be written into the object, a text by the name of the field; true and false are texts as well.
	Set map[string]string
	// Row names what decided: Running/SyncJob/gang-broken. Reason and Message are its words for the object's state.
	Row, Reason, Message string
}

// RowError is a guard that failed while it was evaluated: the data of one object do not agree with it.
type RowError struct {
	// Place is file:line:column of the guard; Row names it.
	Place, Row string
	Err        error
}

// Error implements error.
func (e *RowError) Error() string { return fmt.Sprintf("%s: %s: %v", e.Place, e.Row, e.Err) }

// Unwrap implements error.
func (e *RowError) Unwrap() error { return e.Err }

func (m *Machine) phase(name string) *phase {
	if name == "" {
		name = m.Initial
	}
	i := slices.IndexFunc(m.phases, func(p *phase) bool { return p.name == name })
	if i < 0 {
		return nil
	}
	return m.phases[i]
}

func (m *Machine) action(name string) *action {
	i := slices.IndexFunc(m.actions, func(a *action) bool { return a.name == name })
	if i < 0 {
		return nil
	}
	return m.actions[i]
}

// answer gives the row for an action: its own, or that of "*"; nil if there is none.
func (p *phase) answer(action string) *row {
	var other *row
	for _, r := range p.rows {
		switch r.action {
		case action:
			return r
		case anyAction:
			other = r
		}
	}
	return other
}

func (r *row) name() string { return r.phase + "/" + r.action }

// Final says whether nothing leads out of the phase.
func (m *Machine) Final(phase string) bool {
	p := m.phase(phase)
	return p != nil && p.final
}

// Shipped says whether the machine came with Celsius.
func (m *Machine) Shipped() bool { return m.shipped }

// Phases lists the phases in the order written.
func (m *Machine) Phases() []string {
	var out []string
	for _, p := range m.phases {
		out = append(out, p.name)
	}
	return out
}

// Step finds the row that answers to an action in a phase, and says what it does; phase "" is the initial one. An
// action that the machine does not know is answered by the row "*". Errors: the phase is unknown, or a guard of
// retain failed (a *RowError).
func (m *Machine) Step(phase, action string, f Facts) (Step, error) {
	p := m.phase(phase)
	if p == nil {
		return Step{}, fmt.Errorf("state machine %s: there is no phase %q; known: %s", m.Name, phase, strings.Join(m.Phases(), ", "))
	}
	r := p.answer(action)
	if r == nil {
		return Step{}, fmt.Errorf("state machine %s: phase %s does not say what action %q does, and has no row \"*\"", m.Name, p.name, action)
	}
	s := Step{Phase: phase, Action: action, Row: r.name(), Effect: r.do.name, Retain: r.retain, Asked: r.retain, To: r.to, row: r}
	if a := m.action(action); a != nil {
		s.Of = a.of
	}
	for _, o := range r.do.retain {
		holds, err := m.holds(o.when, m.Name+" effect "+r.do.name+" retain "+o.name, m.kind.bind(f))
		if err != nil {
			return Step{}, err
		}
		if holds {
			s.Retain = o.retain
			break
		}
	}
	return s, nil
}

// Next says where the object stands after the effect of s, with the facts as they are then. Phase "" stays "" where
// nothing leads on. Errors: a guard failed (a *RowError), or the machine has no such transition.
func (m *Machine) Next(s Step, f Facts) (Outcome, error) {
	r := s.row
	if r == nil {
		return Outcome{}, fmt.Errorf("state machine %s: the step was not made by Step", m.Name)
	}
	out := Outcome{Phase: s.Phase, Row: s.Row, Set: r.set}
	out.count(r.count)
	if r.to != "" {
		return m.move(out, r, r.action, r.to)
	}
	vars := m.kind.bind(f)
	for _, n := range r.next {
		if n.after > 0 && (f.Since.IsZero() || f.Now.Sub(f.Since) < n.after) {
			continue
		}
		holds, err := m.holds(n.when, s.Row+"/"+n.name, vars)
		if err != nil {
			return Outcome{}, err
		}
		if holds {
			out.Row, out.Reason, out.Message = s.Row+"/"+n.name, n.reason, n.message
			out.count(n.count)
			out.Set = r.sets(n)
			return m.move(out, r, eventOf(r, n), n.to)
		}
	}
	return out, nil
}

// sets is what a row writes, and one of its ways on.
func (r *row) sets(n *nextRow) map[string]string {
	if len(r.set) == 0 {
		return n.set
	}
	out := maps.Clone(r.set)
	maps.Copy(out, n.set)
	return out
}

func (o *Outcome) count(counters []string) {
	for _, c := range counters {
		if o.Counters == nil {
			o.Counters = map[string]int{}
		}
		o.Counters[c]++
	}
}

// eventOf names a transition for looplab/fsm; in one phase the names differ.
func eventOf(r *row, n *nextRow) string { return r.action + "/" + n.name }

// move runs a transition: the phase that it ends in is what looplab/fsm says, not what the row says.
func (m *Machine) move(out Outcome, r *row, event, to string) (Outcome, error) {
	f, ok := m.pool.Get().(*fsm.FSM)
	if !ok {
		return Outcome{}, fmt.Errorf("state machine %s: the pool holds something else", m.Name)
	}
	f.SetState(r.phase)
	// The context is never done: one that ends in a transition would leave the instance unusable.
	err := f.Event(context.Background(), event)
	if stays := (fsm.NoTransitionError{}); err != nil && !errors.As(err, &stays) {
		return Outcome{}, fmt.Errorf("state machine %s: %s to %s: %w", m.Name, out.Row, to, err)
	}
	now := f.Current()
	m.pool.Put(f)
	out.Changed = now != out.Phase
	out.Phase = now
	return out, nil
}

// holds evaluates a guard; none always holds.
func (m *Machine) holds(when *eval.Expr, row string, vars roots) (bool, error) {
	if when == nil {
		return true, nil
	}
	switch v := when.Eval(vars).(type) {
	case types.Bool:
		return bool(v), nil
	case *types.Err:
		return false, rowError(when, row, v)
	default:
		return false, rowError(when, row, fmt.Errorf("gives %s", v.Type().TypeName()))
	}
}

func rowError(e *eval.Expr, row string, err error) *RowError {
	i := e.Text.Issue(0, 1, "", "")
	return &RowError{Place: fmt.Sprintf("%s:%d:%d", i.File, i.Line, i.Column), Row: row, Err: err}
}

// assemble lists the transitions and makes the pool that runs them.
func (m *Machine) assemble() {
	for _, p := range m.phases {
		for _, r := range p.rows {
			if r.to != "" {
				m.moves = append(m.moves, move{p.name, r.action, r.to})
			}
			for _, n := range r.next {
				m.moves = append(m.moves, move{p.name, eventOf(r, n), n.to})
			}
		}
	}
	m.pool = &sync.Pool{New: func() any {
		var events fsm.Events
		for _, t := range m.moves {
			events = append(events, fsm.EventDesc{Name: t.event, Src: []string{t.from}, Dst: t.to})
		}
		return fsm.NewFSM(m.Initial, events, nil)
	}}
}

// Timer is a moment at which an object must be looked at again though nothing happens to it.
type Timer struct {
	// Row names the row that will hold then.
	Row string
	At  time.Time
}

// Timers lists, the earliest first, when rows with `after` of the phase will hold, if nothing changes until then:
// the controller lets the machine's plain action (Otherwise) happen at that time. A timer is gone as soon as the
// phase has changed or the row's guard no longer holds, as it is then not listed. Errors are those of guards.
func (m *Machine) Timers(phase string, f Facts) ([]Timer, error) {
	p := m.phase(phase)
	if p == nil {
		return nil, nil
	}
	r := p.answer(m.policies.otherwise)
	if r == nil {
		return nil, nil
	}
	since := f.Since
	if since.IsZero() {
		since = f.Now
	}
	vars := m.kind.bind(f)
	var out []Timer
	for _, n := range r.next {
		if n.after == 0 {
			continue
		}
		holds, err := m.holds(n.when, r.name()+"/"+n.name, vars)
		if err != nil {
			return nil, err
		}
		if holds {
			out = append(out, Timer{Row: r.name() + "/" + n.name, At: since.Add(n.after)})
		}
	}
	slices.SortStableFunc(out, func(a, b Timer) int { return a.At.Compare(b.At) })
	return out, nil
}

// Otherwise is the plain action: what happens where no policy says more, SyncJob.
func (m *Machine) Otherwise() string { return m.policies.otherwise }
