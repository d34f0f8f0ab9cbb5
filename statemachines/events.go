package statemachines

import (
	"fmt"
	"time"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/traits"

	"github.com/celsius-scheduler/celsius/rules/eval"
	"github.com/celsius-scheduler/celsius/rules/source"
)

// eventRow derives an event from a change.
type eventRow struct {
	name, description, from, event, otherwise string
	when, while, since, exitCodes             *eval.Expr
	after                                     time.Duration
	at                                        source.Value
}

// Event is the meaning of a change for the lifecycle.
type Event struct {
	// Request is the input for Action. Its JobUID and Version are those of the changed object.
	Request
	// Row is the name of the row that gave the event. Together with the UID of the pod it is the key of a delayed event or action.
	Row string
	// Since is when the cause began, if the row states it. Otherwise it is the time of the change. The timeout of a policy counts from it.
	Since time.Time
	// Dated reports whether the row itself states when the cause began. Fact reports that the cause cannot end: the row has neither `while`
	// nor `after`. An example is the row of a failed pod.
	Dated, Fact bool
	// Delayed events happen at Due, if Holds is still true then. Other events have happened, and their Due is zero.
	Delayed bool
	Due     time.Time
}

// Events returns the events of a change of a source. These are the first row without `after` that is true, and every row with `after` that
// is true, as a delayed event. An error is that of a guard (a *RowError). The rows after it were still evaluated, so the returned events
// are valid even with an error.
func (m *Machine) Events(source string, c Change) ([]Event, error) {
	o, err := m.Observe(source, c.facts())
	if err != nil {
		return nil, err
	}
	return o.Events(c)
}

func (c Change) facts() Facts {
	return Facts{Job: c.Job, Queue: c.Queue, CronJob: c.CronJob, Flow: c.Flow, Now: c.Now}
}

// Observer derives events from changes of one source, with facts that stay the same.
type Observer struct {
	m      *Machine
	source string
	rows   []*eventRow
	vars   roots
}

// Observe returns an Observer of a source.
func (m *Machine) Observe(source string, f Facts) (Observer, error) {
	if _, ok := m.kind.sources[source]; !ok {
		return Observer{}, fmt.Errorf("state machine %s: nothing happens to a %q", m.Name, source)
	}
	o := Observer{m: m, source: source, vars: m.kind.bind(f)}
	for _, r := range m.events {
		if r.from == source {
			o.rows = append(o.rows, r)
		}
	}
	return o, nil
}

// Calling returns an Observer with only the rows that matter for an action other than the plain action, under a Job's policies. The first
// row that is true hides the rows after it. Therefore it keeps all rows up to the last one that may lead to another action.
func (o Observer) Calling(p Policies) Observer {
	last := 0
	for i, r := range o.rows {
		if o.m.mayCall(r, p) {
			last = i + 1
		}
	}
	o.rows = o.rows[:last]
	return o
}

// Idle reports that the Observer returns no events for any change.
func (o Observer) Idle() bool { return len(o.rows) == 0 }

// Events does the same as Machine.Events, with the observer's job, queue and time.
func (o Observer) Events(c Change) ([]Event, error) {
	m, vars := o.m, o.vars
	bindChange(vars, o.source, c)
	var out []Event
	var failed error
	found := false
	for _, r := range o.rows {
		if found && r.after == 0 {
			continue
		}
		e, holds, err := m.event(r, vars, c)
		if err != nil && failed == nil {
			failed = err
		}
		if err != nil || !holds {
			continue
		}
		out = append(out, e)
		found = found || r.after == 0
	}
	return out, failed
}

// Holds reports whether the cause of a delayed event or action still lasts, after a change of the same object. It evaluates the row's
// `while`. For a row with `after` and without `while`, it evaluates its guard. A cause that is a fact, such as a failed pod, always lasts.
func (m *Machine) Holds(row, source string, c Change) (bool, error) {
	for _, r := range m.events {
		if r.name != row || r.from != source {
			continue
		}
		lasts := r.while
		if lasts == nil && r.after > 0 {
			lasts = r.when
		}
		vars := m.kind.bind(c.facts())
		bindChange(vars, source, c)
		return m.holds(lasts, r.name, roots(vars))
	}
	return false, nil
}

func (m *Machine) event(r *eventRow, vars roots, c Change) (Event, bool, error) {
	holds, err := m.holds(r.when, r.name, vars)
	if err != nil || !holds {
		return Event{}, false, err
	}
	e := Event{Row: r.name, Delayed: r.after > 0, Fact: r.fact(), Request: Request{Event: r.event, Otherwise: r.otherwise, Action: c.Action}}
	if c.Task != nil {
		e.Task = c.Task.Name
	}
	if c.Pod != nil {
		e.Pod, e.PodUID, e.Version, e.HasVersion = c.Pod.Name, c.Pod.UID, c.Pod.Version, true
	}
	if e.ExitCodes, err = m.exitCodes(r, vars); err != nil {
		return Event{}, false, err
	}
	if e.Since, e.Dated, err = m.since(r, vars, c.Now); err != nil {
		return Event{}, false, err
	}
	if e.Delayed {
		e.Due = e.Since.Add(r.after)
	}
	return e, true, nil
}

// since returns when the cause of a row's event began, and whether the row states it. Otherwise it returns now.
func (m *Machine) since(r *eventRow, vars roots, now time.Time) (at time.Time, dated bool, err error) {
	if r.since == nil {
		return now, false, nil
	}
	switch v := r.since.Eval(vars).(type) {
	case types.Timestamp:
		return v.Time, true, nil
	case *types.Err:
		return now, false, rowError(r.since, r.name, v)
	default: // no value
		return now, false, nil
	}
}

// fact reports whether the cause of the row's event cannot end.
func (r *eventRow) fact() bool { return r.while == nil && r.after == 0 }

// EventRow is the part of a row of events that a controller needs for a stored cause.
type EventRow struct {
	From, Otherwise string
	After           time.Duration
	Fact            bool
}

// EventRow returns the row of events with that name.
func (m *Machine) EventRow(name string) (EventRow, bool) {
	for _, r := range m.events {
		if r.name == name {
			return EventRow{r.from, r.otherwise, r.after, r.fact()}, true
		}
	}
	return EventRow{}, false
}

func (m *Machine) exitCodes(r *eventRow, vars roots) ([]int32, error) {
	if r.exitCodes == nil {
		return nil, nil
	}
	v := r.exitCodes.Eval(vars)
	if err, ok := v.(*types.Err); ok {
		return nil, rowError(r.exitCodes, r.name, err)
	}
	list, ok := v.(traits.Lister)
	if !ok {
		return nil, rowError(r.exitCodes, r.name, fmt.Errorf("gives %s", v.Type().TypeName()))
	}
	var out []int32
	for it := list.Iterator(); it.HasNext() == types.True; {
		if n, ok := it.Next().(types.Int); ok {
			out = append(out, int32(n))
		}
	}
	return out, nil
}
