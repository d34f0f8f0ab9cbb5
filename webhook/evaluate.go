package webhook

import (
	"errors"
	"fmt"
	"slices"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"github.com/celsius-scheduler/celsius/crds/decode"
	"github.com/celsius-scheduler/celsius/rules/eval"
	"github.com/celsius-scheduler/celsius/rules/typed"
	"github.com/celsius-scheduler/celsius/statemachines/jobplugin"
)

// Mistake is one error in an object.
type Mistake struct {
	// Rule is the row that found the mistake, or "" if the schema did.
	Rule string
	// Field is the path of the field, for example spec.tasks[0].name.
	Field string
	// Message states what is wrong and what would be correct.
	Message string
}

// String gives "field: message".
func (m Mistake) String() string {
	if m.Field == "" {
		return m.Message
	}
	return m.Field + ": " + m.Message
}

// Request is the input of a table. Objects are JSON: maps of strings, bools, int64, float64, lists and maps.
type Request struct {
	// Operation is CREATE, UPDATE or DELETE.
	Operation string
	// Object is the new state; a DELETE has none. OldObject is the state before an update or a deletion.
	Object, OldObject map[string]any
	// Queues returns all queues. It is called only if a row reads them.
	Queues func() ([]map[string]any, error)
	// NamespaceAnnotations returns the annotations of the object's namespace. It is called only if a row reads them.
	NamespaceAnnotations func() (map[string]string, error)
	// SchedulerNames are the names of our schedulers. The first one is the default.
	SchedulerNames []string
	// PolicyEvents and PolicyActions are the events and actions that a job's policies may name.
	PolicyEvents, PolicyActions []string
	// CommandActions are the actions that a Command may name, by the kind of its target.
	CommandActions map[string][]string
	// Related returns the object that this object refers to, see Related. It is called only if a row reads it. nil means unknown.
	Related func() (*Related, error)
	// JobTemplates returns the existing JobTemplates that a JobFlow names. It is called only if a row reads them.
	JobTemplates func() ([]JobTemplate, error)
	// User is the user who sent the request.
	User User
	// JobPlugins are the plugins that a Job may have. nil means none.
	JobPlugins *jobplugin.Set
}

// frame is the evaluation of a table for one state of an object.
type frame struct {
	table   *Table
	request Request
	fixed   typed.Roots
	queues  ref.Val
	// templates caches the result of jobTemplates.
	templates ref.Val
}

func (t *Table) frame(r Request) *frame {
	f := &frame{table: t, request: r}
	f.fixed = typed.Roots{
		"object": typed.Object(t.object, r.Object), "oldObject": typed.Object(t.object, r.OldObject),
		"operation": types.String(r.Operation), "limits": typed.Object(t.limits, t.limitValues),
		"schedulerNames": typed.Strings(r.SchedulerNames),
		"policyEvents":   typed.Strings(r.PolicyEvents), "policyActions": typed.Strings(r.PolicyActions),
		"user":           r.User.value(t.user),
		"commandActions": types.DefaultTypeAdapter.NativeToValue(r.CommandActions),
		"variables":      t.variables.In(f),
	}
	return f
}

// allQueues lists the queues, and caches the list.
func (f *frame) allQueues() ref.Val {
	if f.queues != nil {
		return f.queues
	}
	if f.request.Queues == nil {
		return types.NewErr("the queues are not known")
	}
	list, err := f.request.Queues()
	if err != nil {
		f.queues = types.WrapErr(err)
		return f.queues
	}
	out := make([]ref.Val, len(list))
	for i, q := range list {
		out[i] = typed.Object(f.table.queue, q)
	}
	f.queues = types.NewRefValList(types.DefaultTypeAdapter, out)
	return f.queues
}

// ofNamespace returns the annotations of the object's namespace.
func (f *frame) ofNamespace() ref.Val {
	if f.request.NamespaceAnnotations == nil {
		return types.NewErr("the namespace is not known")
	}
	found, err := f.request.NamespaceAnnotations()
	if err != nil {
		return types.WrapErr(err)
	}
	return types.NewStringStringMap(types.DefaultTypeAdapter, found)
}

// plugins lists the plugins that a Job may have, with the plugins that each of them needs.
func (f *frame) plugins() ref.Val {
	var out []ref.Val
	if set := f.request.JobPlugins; set != nil {
		for _, name := range set.Names() {
			needs := []any{}
			for _, needed := range set.Needs(name) {
				needs = append(needs, needed)
			}
			out = append(out, typed.Object(f.table.plugin, map[string]any{"name": name, "needs": needs}))
		}
	}
	return types.NewRefValList(types.DefaultTypeAdapter, out)
}

// pluginMistakes returns the mistakes that the plugins find in the object, which is a Job.
func (f *frame) pluginMistakes() ref.Val {
	if f.request.JobPlugins == nil {
		return types.NewErr("the job plugins are not known")
	}
	found, err := f.request.JobPlugins.Mistakes(f.request.Object)
	if err != nil {
		return types.WrapErr(err)
	}
	var out []ref.Val
	for _, m := range found {
		out = append(out, typed.Object(f.table.mistake, map[string]any{"field": m.Field, "message": m.Message}))
	}
	return types.NewRefValList(types.DefaultTypeAdapter, out)
}

// ResolveName implements cel.Activation for the names that all rows can read.
func (f *frame) ResolveName(name string) (any, bool) {
	switch name {
	case "queues":
		return f.allQueues(), true
	case "namespaceAnnotations":
		return f.ofNamespace(), true
	case "jobPlugins":
		return f.plugins(), true
	case "pluginMistakes":
		return f.pluginMistakes(), true
	case "related":
		return f.relatedTo(), true
	case "jobTemplates":
		return f.jobTemplates(), true
	}
	return f.fixed.ResolveName(name)
}

// misshapen lists where an object violates the schema of its kind. The API server checks the schema first, but its schema may be older than
// ours.
func (t *Table) misshapen(object map[string]any) (mistakes []Mistake) {
	t.object.Check("", object, func(path, message string) { mistakes = append(mistakes, Mistake{Field: path, Message: message}) })
	return mistakes
}

// unreadable lists where an object violates its schema, exceeds the table's bounds, or cannot be decoded by the programs that watch it. It
// checks these in order and stops at the first that fails, because other checks of a very large object take too long.
func (t *Table) unreadable(r Request) (mistakes []Mistake, err error) {
	if mistakes = t.misshapen(r.Object); len(mistakes) > 0 {
		return mistakes, nil
	}
	f := t.frame(r)
	if applies, err := f.matches(); err != nil || applies {
		if err == nil {
			mistakes, err = f.mistakes(t.bounds)
		}
		if err != nil || len(mistakes) > 0 {
			return mistakes, err
		}
	}
	return t.undecodable(r.Object), nil
}

// undecodable reports the field at which the programs that watch an object cannot decode it.
func (t *Table) undecodable(object map[string]any) []Mistake {
	if wrong := decode.Value(object, t.goType); wrong != nil {
		return []Mistake{{Field: wrong.Field, Message: wrong.ErrorBody()}}
	}
	return nil
}

// Check returns all mistakes of the object at once, and warnings about requests that will have no effect. An error means that a row could
// not be evaluated. It states nothing about the object.
func (t *Table) Check(r Request) (mistakes []Mistake, warnings []string, err error) {
	if r.Operation != opDelete { // a stored object that cannot be read can still be deleted
		if mistakes, err := t.unreadable(r); err != nil || len(mistakes) > 0 {
			return mistakes, nil, err
		}
	}
	for _, table := range t.all() {
		wrong, told, within, err := table.ask(r, table == t && r.Operation != opDelete)
		if err != nil {
			return nil, nil, err
		}
		if within {
			refused, warned, err := table.included(r)
			if err != nil {
				return nil, nil, err
			}
			wrong, told = append(wrong, refused...), append(told, warned...)
		}
		mistakes = append(mistakes, wrong...)
		for _, w := range told {
			warnings = append(warnings, w.String())
		}
		if !within { // rows must not traverse an object of unlimited size
			break
		}
	}
	return mistakes, warnings, nil
}

// ask evaluates the table's own rows for a readable object. bounded states that the object is known to be within the table's bounds. The
// result within states that it is.
func (t *Table) ask(r Request, bounded bool) (mistakes, warnings []Mistake, within bool, err error) {
	f := t.frame(r)
	applies, err := f.matches()
	if err != nil {
		return nil, nil, true, err
	}
	told := slices.DeleteFunc(slices.Clone(t.warnings), func(r *row) bool { return r.unmatched == applies })
	if !applies {
		warnings, err = f.mistakes(told)
		return nil, warnings, true, err
	}
	if !bounded {
		if mistakes, err := f.mistakes(t.bounds); err != nil || len(mistakes) > 0 {
			return mistakes, nil, false, err
		}
	}
	if mistakes, err = f.mistakes(t.validations); err != nil {
		return nil, nil, false, err
	}
	warnings, err = f.mistakes(told)
	return mistakes, warnings, true, err
}

// mistakes lists the mistakes that rows find. It stops at mostMistakes, because an object can have 30,000 mistakes, and each costs several
// KiB.
func (f *frame) mistakes(rows []*row) ([]Mistake, error) {
	var out []Mistake
	for _, row := range rows {
		err := f.each(row, func(v *visit) error {
			if err := v.mistake(&out); err != nil || len(out) < mostMistakes {
				return err
			}
			return errManyMistakes
		})
		if errors.Is(err, errManyMistakes) {
			break
		}
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// mostMistakes limits how many mistakes the rows of one table report. An answer shows mostCauses of them.
const mostMistakes = 200

// errManyMistakes ends the evaluation of rows at mostMistakes.
var errManyMistakes = errors.New("there are many mistakes")

// Default returns a copy of the object with the missing values filled in. The rows run in order, and each sees the values that earlier rows
// wrote.
func (t *Table) Default(r Request) (object map[string]any, mistakes []Mistake, err error) {
	if mistakes, err := t.unreadable(r); err != nil || len(mistakes) > 0 {
		return nil, mistakes, err
	}
	for _, table := range t.all() {
		if mistakes, err := table.fillIn(&r, table == t); err != nil || len(mistakes) > 0 {
			return nil, mistakes, err
		}
	}
	return r.Object, nil, nil
}

// fillIn applies the defaults of the table's own rows. It replaces r.Object with a changed copy. bounded states that the object is known to
// be within the table's bounds.
func (t *Table) fillIn(r *Request, bounded bool) ([]Mistake, error) {
	f := t.frame(*r)
	if applies, err := f.matches(); err != nil || !applies {
		return nil, err
	}
	if !bounded {
		if mistakes, err := f.mistakes(t.bounds); err != nil || len(mistakes) > 0 {
			return mistakes, err
		}
	}
	for _, row := range t.defaults {
		next := r.Object
		err := f.each(row, func(v *visit) error {
			var err error
			next, err = v.write(next)
			return err
		})
		if err != nil {
			return nil, err
		}
		r.Object = next
		f = t.frame(*r)
	}
	next, err := f.grouped(r.Object)
	r.Object = next
	return nil, err
}

// matches reports whether the table's match conditions select the object.
func (f *frame) matches() (bool, error) {
	for _, row := range f.table.match {
		v := &visit{Activation: f, row: row}
		if yes, err := v.ask(row.expression); err != nil {
			return false, fmt.Errorf("rule %s: %w", row.name, err)
		} else if !yes {
			return false, nil
		}
	}
	return true, nil
}

// each calls do for every element of the lists in a row's forEach, or once if the row has none.
func (f *frame) each(r *row, do func(*visit) error) error {
	if len(r.operations) > 0 && !slices.Contains(r.operations, f.request.Operation) {
		return nil
	}
	err := typed.Each(r.loops, f, func(in cel.Activation) error {
		v := &visit{Activation: in, row: r}
		if r.when != nil {
			if yes, err := v.ask(r.when); err != nil || !yes {
				return err
			}
		}
		return do(v)
	})
	if err != nil {
		return fmt.Errorf("rule %s: %w", r.name, err)
	}
	return nil
}

// visit is the evaluation of one row at one element of its lists.
type visit struct {
	cel.Activation
	row *row
}

func (v *visit) failed(got ref.Val) error {
	if err, ok := got.(*types.Err); ok {
		return err
	}
	return fmt.Errorf("it gave a %s", got.Type().TypeName())
}

func (v *visit) ask(e *eval.Expr) (bool, error) {
	got := e.Eval(v)
	yes, ok := got.(types.Bool)
	if !ok {
		return false, v.failed(got)
	}
	return bool(yes), nil
}

// mistake adds the row's mistake to out if the row's condition is false or missing.
func (v *visit) mistake(out *[]Mistake) error {
	if v.row.expression != nil {
		if holds, err := v.ask(v.row.expression); err != nil || holds {
			return err
		}
	}
	path, err := v.row.fieldPath.Render(v)
	if err != nil {
		return err
	}
	message, err := v.row.message.Render(v)
	if err != nil {
		return err
	}
	*out = append(*out, Mistake{Rule: v.row.name, Field: path, Message: message})
	return nil
}

// write returns a copy of the object with the row's value in it.
func (v *visit) write(object map[string]any) (map[string]any, error) {
	path, err := v.row.fieldPath.Render(v)
	if err != nil {
		return nil, err
	}
	steps, err := typed.ParsePath(path)
	if err != nil {
		return nil, err
	}
	given, err := typed.Plain(v.row.expression.Eval(v))
	if err != nil {
		return nil, err
	}
	next, err := typed.Put(object, steps, given)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return next.(map[string]any), nil
}

// Parent implements cel.Activation.
func (f *frame) Parent() cel.Activation { return nil }
