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

// Event is what a change means for the lifecycle.
type Event struct {
	// Request is what Action is to be asked with. Its JobUID and Version are those of the object that changed.
	Request
	// Row names the row that gave it; with the UID of the pod it is the key of a delayed event or action.
	Row string
	// Since is when the cause began, where the row knows, else the time of the change: the timeout of a policy counts
	// from it.
	Since time.Time
	// Delayed events are due at Due, if Holds still says true then; the others have happened, and Due is zero.
	Delayed bool
	Due     time.Time
}

// Events says what a change of a source (pod, podGroup, job, queue or command) means: of the rows without `after` the first
// that holds, and every row with `after` that does, as a delayed event. Errors are those of guards (a *RowError):
// the rows after it were still asked, so that the events that are returned beside an error can be used.
func (m *Machine) Events(source string, c Change) ([]Event, error) {
	if _, ok := m.kind.sources[source]; !ok {
		return nil, fmt.Errorf("state machine %s: nothing happens to a %q", m.Name, source)
	}
	vars := m.changeRoots(source, c)
	var out []Event
	var failed error
	found := false
	for _, r := range m.events {
		if r.from != source || found && r.after == 0 {
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

// Holds says whether the cause of a delayed event or action still lasts, after a change of the same object: the row's `while`, or, of a
// row with `after`, its guard. A cause that is a mere fact, such as a failed pod, lasts.
func (m *Machine) Holds(row, source string, c Change) (bool, error) {
	for _, r := range m.events {
		if r.name != row || r.from != source {
			continue
		}
		lasts := r.while
		if lasts == nil && r.after > 0 {
			lasts = r.when
		}
		return m.holds(lasts, r.name, m.changeRoots(source, c))
	}
	return false, nil
}

func (m *Machine) changeRoots(source string, c Change) roots {
	vars := m.kind.bind(Facts{Job: c.Job, Queue: c.Queue, CronJob: c.CronJob, Flow: c.Flow, Now: c.Now})
	bindChange(vars, source, c)
	return vars
}

func (m *Machine) event(r *eventRow, vars roots, c Change) (Event, bool, error) {
	holds, err := m.holds(r.when, r.name, vars)
	if err != nil || !holds {
		return Event{}, false, err
	}
	e := Event{Row: r.name, Delayed: r.after > 0, Request: Request{Event: r.event, Otherwise: r.otherwise, Action: c.Action}}
	if c.Task != nil {
		e.Task = c.Task.Name
	}
	if c.Pod != nil {
		e.Pod, e.PodUID, e.Version, e.HasVersion = c.Pod.Name, c.Pod.UID, c.Pod.Version, true
	}
	if e.ExitCodes, err = m.exitCodes(r, vars); err != nil {
		return Event{}, false, err
	}
	if e.Since, err = m.since(r, vars, c.Now); err != nil {
		return Event{}, false, err
	}
	if e.Delayed {
		e.Due = e.Since.Add(r.after)
	}
	return e, true, nil
}

// since says when the cause of a row's event began; now, where nobody knows.
func (m *Machine) since(r *eventRow, vars roots, now time.Time) (time.Time, error) {
	if r.since == nil {
		return now, nil
	}
	switch v := r.since.Eval(vars).(type) {
	case types.Timestamp:
		return v.Time, nil
	case *types.Err:
		return now, rowError(r.since, r.name, v)
	default: // missing
		return now, nil
	}
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
