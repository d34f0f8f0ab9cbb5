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

// anyAction is the row for every action without a row of its own.
const anyAction = "*"

// Machine is a verified lifecycle. It is immutable and safe to share.
type Machine struct {
	// Name is one of Names; Description is for people.
	Name, Description string
	// Initial is the phase of an object without a phase.
	Initial string
	// Perpetual machines need no final phase.
	Perpetual bool
	// File is the file that contains the machine.
	File string

	kind     kind
	effects  []*effect
	actions  []*action
	events   []*eventRow
	policies policyRules
	phases   []*phase
	moves    []move
	pool     *sync.Pool // of *fsm.FSM, which are expensive to create
	at       source.Value
	shipped  bool
}

// effect is one effect that the machine uses.
type effect struct {
	name   string
	retain []retainRow
	kind   effectKind
}

// retainRow overrides what a row retains.
type retainRow struct {
	name, retain string
	when         *eval.Expr
}

// action is an action that can be requested for the object.
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

// row defines the effect of an action in a phase.
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

// nextRow is one transition. It is open while its guard is true.
type nextRow struct {
	name, to, reason, message string
	when                      *eval.Expr
	after                     time.Duration
	count                     []string
	set                       map[string]string
	at, toAt                  source.Value
}

// move is one transition in the form of looplab/fsm.
type move struct {
	from, event, to string
}

// Step is the result of Machine.Step: what to do now.
type Step struct {
	Phase, Action string
	// Row is the name of the row, for example Running/RestartJob or Failed/*.
	Row string
	// Effect is an effect of the machine's kind: sync, kill or restartPods for jobs, and sync, open or close for queues.
	Effect string
	// Retain states which pods the effect keeps: none, or finished (succeeded and failed). It is "" if the effect ends no pods. Asked is the
	// value of the row itself, before the effect's own rows override it.
	Retain, Asked string
	// Of is the target of the action: pod, task or partition. "" means the whole job.
	Of string
	// To is the next phase, whatever the counts are. It is "" if guards decide.
	To string

	row *row
}

// Outcome is the state of the object after the effect.
type Outcome struct {
	Phase   string
	Changed bool
	// Counters states by how much to increase each counter. It is nil if there are none.
	Counters map[string]int
	// Set contains the fields to write into the object. All values are strings, including true and false.
	Set map[string]string
	// Row is the name of the row that decided, for example Running/SyncJob/gang-broken. Reason and Message describe the object's state.
	Row, Reason, Message string
}

// RowError is a guard whose evaluation failed for one object.
type RowError struct {
	// Place is file:line:column of the guard. Row is its name.
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

// answer returns the row for an action, or the row "*", or nil.
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

// Final reports whether no transition leaves the phase.
func (m *Machine) Final(phase string) bool {
	p := m.phase(phase)
	return p != nil && p.final
}

// Shipped reports whether the machine is built-in.
func (m *Machine) Shipped() bool { return m.shipped }

// Phases lists the phases in the order of the file.
func (m *Machine) Phases() []string {
	var out []string
	for _, p := range m.phases {
		out = append(out, p.name)
	}
	return out
}

// Step returns the row for an action in a phase, and its effect. Phase "" means the initial phase. For an action that the machine does not
// know, it is the row "*". It returns an error if the phase is unknown, or if a guard of retain failed (a *RowError).
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

// Next returns the state of the object after the effect of s, with the facts after the effect. Phase "" stays "" if no transition applies.
// It returns an error if a guard failed (a *RowError), or if the machine has no such transition.
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

// sets returns the fields that a row and one of its transitions write.
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

// eventOf returns the name of a transition for looplab/fsm. The name is unique within a phase.
func eventOf(r *row, n *nextRow) string { return r.action + "/" + n.name }

// move runs a transition. looplab/fsm determines the next phase, not the row.
func (m *Machine) move(out Outcome, r *row, event, to string) (Outcome, error) {
	f, ok := m.pool.Get().(*fsm.FSM)
	if !ok {
		return Outcome{}, fmt.Errorf("state machine %s: the pool holds something else", m.Name)
	}
	f.SetState(r.phase)
	// The context never ends: if it ended during a transition, the instance would be unusable.
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

// holds evaluates a guard. A missing guard is true.
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

// assemble lists the transitions and creates the pool that runs them.
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

// Timer is a time at which an object must be checked again without a further change.
type Timer struct {
	// Row is the name of the row that will apply then.
	Row string
	At  time.Time
}

// Timers lists when rows with `after` of the phase will apply, if nothing changes until then. The earliest is first. At that time the
// controller runs the machine's plain action (Otherwise). A timer is not listed any more when the phase has changed or the row's guard is
// false. An error is that of a guard.
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

// Otherwise returns the plain action, SyncJob, which applies if no policy defines another one.
func (m *Machine) Otherwise() string { return m.policies.otherwise }
