package webhook

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/google/cel-go/cel"

	"github.com/celsius-scheduler/celsius/rules"
	"github.com/celsius-scheduler/celsius/rules/eval"
	"github.com/celsius-scheduler/celsius/rules/source"
	"github.com/celsius-scheduler/celsius/rules/typed"
)

// include checks an object that will be created later with the table of that object's kind. For example, it checks the Job of a template.
// The defaults of that kind are applied first, as they will be at creation.
type include struct {
	*row
	kind string
	// fields set the content of the created object.
	fields []filled
	// told renders the message at the row's own field for a mistake that the other rows found. If it is nil, the mistake keeps its message,
	// and its field is a path below the row's field.
	told *typed.Text
	// warned are rows of the other table whose mistakes become warnings, because they may no longer apply when the object is created.
	warned []string
	// only are the built-in validations that run, and no other check of the kind runs. If it is empty, all checks run.
	only   []string
	source source.Value
	// table is the table of the kind. If it is nil, the include is not linked and checks nothing.
	table *Table
}

// filled is a field of the object with the expression of its value.
type filled struct {
	path  typed.Path
	value *eval.Expr
}

// readIncludes compiles the includes of a table.
func (c *compiler) readIncludes(v source.Value) (out []*include) {
	for _, item := range v.Items(&c.issues) {
		item.Fields(keysOf("include"), &c.issues)
		c.need(item, []string{"name", "of", "fields"})
		i := &include{
			row: c.opened(item), kind: item.Get("of").String(&c.issues),
			warned: item.Get("warned").Strings(&c.issues), only: item.Get("only").Strings(&c.issues), source: item,
		}
		if _, ok := kinds()[i.kind]; !ok && item.Get("of").Exists() {
			c.report(item.Get("of").Issuef("write one of "+strings.Join(sorted(kinds()), ", "), "there are no rules of admission for %q", i.kind))
		}
		loops, extra, ok := typed.ReadLoops(item.Get("forEach"), c.compile, c.roots, &c.issues)
		if !ok {
			continue // the other keys read elements of unknown type
		}
		i.loops = loops
		if when := item.Get("when"); when.Exists() {
			i.when = c.compile(when.Text(&c.issues), extra, rules.Bool())
		}
		i.fields = c.filled(item.Get("fields"), i.kind, extra)
		if path := item.Get("fieldPath"); path.Exists() {
			i.fieldPath = c.text(path.Text(&c.issues), extra)
			c.target(i.row, path, false)
		}
		if message := item.Get("message"); message.Exists() {
			known := map[string]*cel.Type{toldName: cel.StringType}
			maps.Copy(known, extra)
			i.told = c.text(message.Text(&c.issues), known)
		}
		out = append(out, i)
	}
	return out
}

// toldName is the name under which the message of an include reads the mistake of the other rows.
const toldName = "told"

// telling is an include at one element of its lists, with the mistake of the other rows.
type telling struct {
	*visit
	told string
}

// ResolveName implements cel.Activation.
func (t telling) ResolveName(name string) (any, bool) {
	if name == toldName {
		return t.told, true
	}
	return t.visit.ResolveName(name)
}

// placed converts a mistake of the other rows into a mistake of this object.
func (i *include) placed(v *visit, at string, m Mistake) (Mistake, error) {
	if i.told == nil {
		m.Field = strings.Trim(at+"."+m.Field, ".")
		return m, nil
	}
	message, err := i.told.Render(telling{v, m.String()})
	return Mistake{Rule: m.Rule, Field: at, Message: message}, err
}

// filled compiles the fields of an object of a kind.
func (c *compiler) filled(v source.Value, kind string, extra map[string]*cel.Type) (out []filled) {
	of, known := kinds()[kind]
	if !known {
		return nil // it was already reported
	}
	schema, err := of.schema(kind)
	if err != nil {
		c.report(v.Issuef("", "%v", err))
		return nil
	}
	for _, item := range v.Items(&c.issues) {
		item.Fields(keysOf("field"), &c.issues)
		c.need(item, []string{"fieldPath", "value"})
		at := item.Get("fieldPath")
		path, err := typed.ParsePath(at.String(&c.issues))
		if err != nil || schema.At(path) == nil {
			c.report(at.Issuef("write the path of a field, such as spec", "%s has no such field", kind))
		}
		out = append(out, filled{path: path, value: c.compile(item.Get("value").Text(&c.issues), extra, rules.Anything())})
	}
	return out
}

// object creates the object to check.
func (i *include) object(v *visit) (map[string]any, error) {
	object := any(map[string]any{})
	for _, f := range i.fields {
		given, err := typed.Plain(f.value.Eval(v))
		if err == nil {
			object, err = typed.Put(object, f.path, given)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.path, err)
		}
	}
	return object.(map[string]any), nil
}

// unknownNames reports names in warned and only that are no row's name. Names in only must be built-in rows. Names in warned may also be
// rows of these tables.
func unknownNames(tables []*Table) (issues source.Issues) {
	if !slices.ContainsFunc(tables, func(t *Table) bool { return len(t.includes) > 0 }) {
		return nil
	}
	shipped, err := shippedTables()
	if err != nil {
		return source.Issues{{Message: err.Error()}}
	}
	for _, t := range tables {
		for _, i := range t.includes {
			i.among("warned", toldBy(slices.Concat(shipped, tables), i.kind, nested), &issues)
			i.among("only", validationsOf(shipped, i.kind), &issues)
		}
	}
	issues.Sort()
	return issues
}

// among reports unknown names in the list of a key.
func (i *include) among(key string, known []string, issues *source.Issues) {
	for _, item := range i.source.Get(key).Items(issues) {
		if name := item.String(issues); !slices.Contains(known, name) {
			*issues = append(*issues, item.Issuef(source.Suggest(name, known), "no row of %s is called %q", i.kind, name))
		}
	}
}

// validationsOf returns the names of the validations of a kind's tables.
func validationsOf(tables []*Table, kind string) (names []string) {
	for _, t := range tables {
		for _, r := range t.validations {
			if t.Kind == kind {
				names = append(names, r.name)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// toldBy returns the names of the rows that can report a mistake in an object of a kind. This includes rows for the objects that it
// creates.
func toldBy(tables []*Table, kind string, below int) []string {
	names := validationsOf(tables, kind)
	for _, t := range tables {
		if t.Kind != kind {
			continue
		}
		for _, r := range t.bounds {
			names = append(names, r.name)
		}
		for _, i := range t.includes {
			names = append(names, i.name)
			if below > 0 {
				names = append(names, toldBy(tables, i.kind, below-1)...)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// nested is the maximum depth of includes: a CronJob creates Jobs, and Jobs create pods.
const nested = 2

// linked returns tables whose includes use the tables of their kinds.
func linked(tables []*Table) []*Table {
	for range nested {
		out := make([]*Table, len(tables))
		for i, t := range tables {
			out[i] = t.linked(tables)
		}
		tables = out
	}
	return tables
}

func (t *Table) linked(to []*Table) *Table {
	next := *t
	next.includes, next.own = nil, nil
	for _, i := range t.includes {
		with := *i
		if at := slices.IndexFunc(to, func(other *Table) bool { return other.Kind == i.kind }); at >= 0 {
			with.table = to[at].narrowed(i.only)
		}
		next.includes = append(next.includes, &with)
	}
	for _, own := range t.own {
		next.own = append(next.own, own.linked(to))
	}
	return &next
}

// narrowed returns a table with only the named validations and none of the cluster's own tables. Without names it returns t.
func (t *Table) narrowed(names []string) *Table {
	if len(names) == 0 {
		return t
	}
	next := &Table{
		Kind: t.Kind, Name: t.Name, schemas: t.schemas, goType: t.goType, limitValues: t.limitValues, variables: t.variables, match: t.match,
	}
	for _, r := range t.validations {
		if slices.Contains(names, r.name) {
			next.validations = append(next.validations, r)
		}
	}
	return next
}

// included runs the rows of other kinds on the objects that will be created.
func (t *Table) included(r Request) (mistakes, warnings []Mistake, err error) {
	f := t.frame(r)
	if applies, err := f.matches(); err != nil || !applies || len(t.includes) == 0 {
		return nil, nil, err
	}
	for _, i := range t.includes {
		if i.table == nil {
			continue
		}
		err := f.each(i.row, func(v *visit) error {
			wrong, told, err := i.ask(v, r)
			mistakes, warnings = append(mistakes, wrong...), append(warnings, told...)
			return err
		})
		if err != nil {
			return nil, nil, err
		}
	}
	return mistakes, warnings, nil
}

// ask checks the object as if the same user created it now.
func (i *include) ask(v *visit, r Request) (mistakes, warnings []Mistake, err error) {
	object, err := i.object(v)
	if err != nil {
		return nil, nil, err
	}
	at := ""
	if i.fieldPath != nil {
		if at, err = i.fieldPath.Render(v); err != nil {
			return nil, nil, err
		}
	}
	r.Operation, r.Object, r.OldObject = opCreate, object, nil
	filled, wrong, err := i.table.Default(r)
	if err != nil {
		return nil, nil, fmt.Errorf("as a %s: %w", i.kind, err)
	}
	var told []string
	if len(wrong) == 0 {
		r.Object = filled
		if wrong, told, err = i.table.Check(r); err != nil {
			return nil, nil, fmt.Errorf("as a %s: %w", i.kind, err)
		}
	}
	for _, m := range wrong {
		said, err := i.placed(v, at, m)
		if err != nil {
			return nil, nil, err
		}
		if slices.Contains(i.warned, m.Rule) {
			warnings = append(warnings, said)
			continue
		}
		mistakes = append(mistakes, said)
	}
	for _, text := range told {
		field, message, _ := strings.Cut(text, ": ")
		said, err := i.placed(v, at, Mistake{Rule: i.name, Field: field, Message: message})
		if err != nil {
			return nil, nil, err
		}
		warnings = append(warnings, said)
	}
	return mistakes, warnings, nil
}
