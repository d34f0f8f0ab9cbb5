package webhook

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/celsius-scheduler/celsius/rules"
	"github.com/celsius-scheduler/celsius/rules/eval"
	"github.com/celsius-scheduler/celsius/rules/source"
	"github.com/celsius-scheduler/celsius/rules/typed"
)

// Table contains the compiled rows of admission for one kind. It is immutable and safe to share.
type Table struct {
	// Kind is the kind of the checked objects. Name distinguishes the tables of one kind.
	Kind, Name string

	schemas
	goType      reflect.Type   // the Go type into which watchers decode the kind
	limitValues map[string]any // int64, by name
	variables   typed.Variables
	match       []*row
	bounds      []*row
	defaults    []*row
	validations []*row
	warnings    []*row
	includes    []*include
	groups      []*resourceGroup
	own         []*Table // the cluster's own tables, which run after this one
}

// schemas are the types that rows read.
type schemas struct {
	object, queue, plugin, mistake, user, related, template, limits *typed.Schema
}

// row is one rule.
type row struct {
	name       string
	operations []string
	loops      []typed.Loop
	when       *eval.Expr
	expression *eval.Expr // for a default, the expression of its value
	fieldPath  *typed.Text
	message    *typed.Text
	unmatched  bool // it runs only for objects that the match conditions exclude
}

// The header of a file of rows.
const (
	tableVersion = "rules.celsius.dev/v1alpha1"
	tableKind    = "AdmissionRules"
)

// The operations that a row can apply to.
const (
	opCreate = "CREATE"
	opUpdate = "UPDATE"
	opDelete = "DELETE"
)

// Load compiles a table. It returns all mistakes at once, each with its position. If one has severity Error, it returns no Table.
func Load(doc *source.Document) (*Table, source.Issues) {
	if isGroups(doc.Root) {
		return loadGroups(doc)
	}
	c := &compiler{table: &Table{}, names: map[string]source.Value{}}
	if err := c.open(doc.Root); err != nil {
		return nil, append(c.issues, doc.Root.Issuef("", "%v", err))
	}
	if c.issues.Err() == nil {
		c.read(doc.Root)
	}
	c.issues.Sort()
	if c.issues.Err() != nil {
		return nil, c.issues
	}
	return c.table, c.issues
}

// compiler is the state of one Load.
type compiler struct {
	table  *Table
	lang   *rules.Language
	roots  map[string]*cel.Type
	names  map[string]source.Value
	issues source.Issues
}

func (c *compiler) report(i source.Issue) { c.issues = append(c.issues, i) }

func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// header reads the header of a file.
func (c *compiler) header(root source.Value, kind string) {
	for _, want := range [][2]string{{"apiVersion", tableVersion}, {"kind", kind}} {
		if got := root.Get(want[0]).String(&c.issues); got != want[1] {
			c.report(root.Get(want[0]).Issuef("write "+want[1], "%s is %q", want[0], got))
		}
	}
	metadata := root.Get("metadata")
	metadata.Fields(keysOf("metadata"), &c.issues)
	c.table.Name = metadata.Get("name").String(&c.issues)
}

// open reads the kind of the table, and creates the language for it.
func (c *compiler) open(root source.Value) error {
	c.header(root, tableKind)
	of := root.Get("of")
	kind := of.String(&c.issues)
	if _, ok := kinds()[kind]; !ok {
		c.report(of.Issuef("write one of "+strings.Join(sorted(kinds()), ", "), "there are no rules of admission for %q", kind))
		return nil
	}
	return c.about(kind, root)
}

// about creates the language for objects of a kind.
func (c *compiler) about(name string, root source.Value) (err error) {
	kind := kinds()[name]
	c.table.Kind, c.table.goType = name, kind.goType
	if c.table.object, err = kind.schema(name); err != nil {
		return err
	}
	if c.table.queue = c.table.object; name != queueKind {
		if c.table.queue, err = kinds()[queueKind].schema(queueKind); err != nil {
			return err
		}
	}
	c.readLimits(root.Get("limits"))
	c.table.mistake, c.table.plugin, c.table.user, c.table.related = mistakeSchema(), pluginSchema(), userSchema(), relatedSchema()
	c.table.template = templateSchema()
	return c.speak()
}

// speak creates the language of the table's rows.
func (c *compiler) speak() (err error) {
	byName := map[string]*rules.Object{}
	for _, s := range []*typed.Schema{
		c.table.object, c.table.queue, c.table.limits, c.table.mistake, c.table.plugin, c.table.user, c.table.related, c.table.template,
	} {
		s.Objects(byName)
	}
	var objects []*rules.Object
	for _, name := range sorted(byName) {
		objects = append(objects, byName[name])
	}
	c.lang, err = rules.NewLanguage(rules.Vocabulary{Objects: objects, Functions: slices.Concat(
		functions(c.table.mistake), cronFunctions(), flowFunctions(), treeFunctions(c.table.queue), userFunctions(c.table.user))})
	if err != nil {
		return fmt.Errorf("rules of admission: %w", err)
	}
	c.roots = map[string]*cel.Type{
		"object": c.table.object.Type(), "oldObject": c.table.object.Type(), "operation": cel.StringType, "limits": c.table.limits.Type(),
		"queues": cel.ListType(c.table.queue.Type()), "schedulerNames": cel.ListType(cel.StringType),
		"policyEvents": cel.ListType(cel.StringType), "policyActions": cel.ListType(cel.StringType),
		"jobPlugins": cel.ListType(c.table.plugin.Type()), "pluginMistakes": cel.ListType(c.table.mistake.Type()),
		"namespaceAnnotations": cel.MapType(cel.StringType, cel.StringType),
		"commandActions":       cel.MapType(cel.StringType, cel.ListType(cel.StringType)),
		"related":              cel.ListType(c.table.related.Type()),
		"jobTemplates":         cel.MapType(cel.StringType, c.table.template.Type()),
		"user":                 c.table.user.Type(),
		"variables":            typed.VariablesType(),
	}
	return nil
}

func (c *compiler) read(root source.Value) {
	for _, f := range root.Fields(keysOf("rules"), &c.issues) {
		if f.Name == "variables" {
			c.readVariables(f.Value)
		}
	}
	c.table.match = c.rows(root.Get("matchConditions"), section{name: "matchConditions"})
	c.table.bounds = c.rows(root.Get("bounds"), section{name: "bounds", path: true, message: true})
	c.table.defaults = c.rows(root.Get("defaults"), section{name: "defaults", value: "value", path: true})
	c.table.validations = c.rows(root.Get("validations"), section{name: "validations", path: true, message: true})
	c.table.includes = c.readIncludes(root.Get("includes"))
	c.table.warnings = c.rows(root.Get("warnings"), section{name: "warnings", path: true, message: true})
}

// section defines which keys the rows of a section have.
type section struct {
	name string
	// value is the key of the main expression if it is not "expression". A main expression under "expression" returns a bool.
	value         string
	path, message bool
}

// keys returns the required keys of a row, and the part of the file that lists all its keys. A row with a message needs no expression: it
// then reports its message for each object that it is evaluated for.
func (s section) keys() (must []string, part string) {
	switch {
	case s.message:
		return []string{"name", "fieldPath", "message"}, "row"
	case s.value != "":
		return []string{"name", "fieldPath", s.value}, "default"
	}
	return []string{"name", "expression"}, "condition"
}

// operations returns the operations that the table handles.
func (t *Table) operations() []string {
	if kinds()[t.Kind].deletions {
		return []string{opCreate, opUpdate, opDelete}
	}
	return []string{opCreate, opUpdate}
}

// unique reads a name and reports it if another row or variable has it.
func (c *compiler) unique(v source.Value) string {
	name := v.String(&c.issues)
	if first, twice := c.names[name]; twice {
		line, _ := first.Pos()
		c.report(v.Issuef("give it a name of its own", "duplicate name %q (first on line %d)", name, line))
	}
	c.names[name] = v
	return name
}

// need reports missing keys.
func (c *compiler) need(v source.Value, keys []string) {
	for _, key := range keys {
		if !v.Get(key).Exists() && v.Kind() == source.Map {
			c.report(v.Issuef("add "+key, "%s is missing", key))
		}
	}
}

// readLimits reads the numbers that a cluster's owner can set. Rows read them as limits.
func (c *compiler) readLimits(v source.Value) {
	fields := map[string]apiextensionsv1.JSONSchemaProps{}
	c.table.limitValues = map[string]any{}
	for _, item := range v.Items(&c.issues) {
		item.Fields(keysOf("limit"), &c.issues)
		c.need(item, []string{"name", "value"})
		name, value := c.unique(item.Get("name")), item.Get("value").Int(&c.issues)
		if value < 1 && item.Get("value").Exists() {
			c.report(item.Get("value").Issuef("write 1 or more", "the limit is %d", value))
		}
		fields[name] = apiextensionsv1.JSONSchemaProps{Type: "integer", Description: item.Get("description").String(&c.issues)}
		c.table.limitValues[name] = value
	}
	c.table.limits = typed.New(&apiextensionsv1.JSONSchemaProps{Type: "object", Properties: fields}, "Limits")
}

// Limits returns the limits that the table's rows read, by name.
func (t *Table) Limits() map[string]int64 {
	out := map[string]int64{}
	for name, value := range t.limitValues {
		if n, ok := value.(int64); ok {
			out[name] = n
		}
	}
	return out
}

// WithLimits returns a copy of the table with other limits. It returns an error if a name is unknown or a limit is less than 1.
func (t *Table) WithLimits(limits map[string]int64) (*Table, error) {
	known := sorted(t.limitValues)
	next := *t
	next.limitValues = maps.Clone(t.limitValues)
	for _, name := range sorted(limits) {
		if _, ok := t.limitValues[name]; !ok {
			hint := "the limits are " + strings.Join(known, ", ")
			if near := source.Nearest(name, known); near != "" {
				hint = fmt.Sprintf("did you mean %s? %s", near, hint)
			}
			return nil, fmt.Errorf("there is no limit %q of a %s; %s", name, t.Kind, hint)
		}
		if limits[name] < 1 {
			return nil, fmt.Errorf("limit %s of a %s is %d; write 1 or more", name, t.Kind, limits[name])
		}
		next.limitValues[name] = limits[name]
	}
	return &next, nil
}

// withLimits returns copies of tables, each with the limits that it has. It returns an error if no table has a limit of that name, or if a
// limit is less than 1.
func withLimits(limits map[string]int64, tables ...*Table) ([]*Table, error) {
	left, out := maps.Clone(limits), make([]*Table, len(tables))
	for i, t := range tables {
		own := maps.Clone(limits)
		maps.DeleteFunc(own, func(name string, _ int64) bool { return t.limitValues[name] == nil })
		maps.DeleteFunc(left, func(name string, _ int64) bool { return t.limitValues[name] != nil })
		var err error
		if out[i], err = t.WithLimits(own); err != nil {
			return nil, err
		}
	}
	if len(left) > 0 {
		var known []string
		for _, t := range tables {
			known = append(known, sorted(t.limitValues)...)
		}
		name := sorted(left)[0]
		return nil, fmt.Errorf("there is no limit %q: %s", name, source.Suggest(name, known))
	}
	return out, nil
}

func (c *compiler) readVariables(v source.Value) {
	for _, item := range v.Items(&c.issues) {
		item.Fields(keysOf("variable"), &c.issues)
		c.need(item, []string{"name", "expression"})
		name := c.unique(item.Get("name"))
		if e := c.compile(item.Get("expression").Text(&c.issues), nil, rules.Anything()); e != nil {
			c.table.variables.Add(name, e)
		}
	}
}

func (c *compiler) rows(v source.Value, s section) []*row {
	var out []*row
	must, part := s.keys()
	for _, item := range v.Items(&c.issues) {
		item.Fields(keysOf(part), &c.issues)
		if item.Get("unmatched").Exists() && s.name != "warnings" {
			c.report(item.Get("unmatched").Issuef("leave it out", "unmatched is for warnings only, and this is a row of %s", s.name))
		}
		c.need(item, must)
		r := c.opened(item)
		loops, extra, ok := typed.ReadLoops(item.Get("forEach"), c.compile, c.roots, &c.issues)
		if !ok {
			continue // the other keys read elements of unknown type
		}
		r.loops = loops
		if when := item.Get("when"); when.Exists() {
			r.when = c.compile(when.Text(&c.issues), extra, rules.Bool())
		}
		if s.path {
			r.fieldPath = c.text(item.Get("fieldPath").Text(&c.issues), extra)
		}
		if s.message {
			r.message = c.text(item.Get("message").Text(&c.issues), extra)
		}
		switch expression := item.Get("expression"); {
		case s.value != "":
			r.expression = c.compile(item.Get(s.value).Text(&c.issues), extra, rules.Anything())
		case expression.Exists() || !s.message:
			r.expression = c.compile(expression.Text(&c.issues), extra, rules.Bool())
		}
		if s.path {
			c.target(r, item.Get("fieldPath"), s.value != "")
		}
		out = append(out, r)
	}
	return out
}

// opened reads the keys that a row has in any section, such as its name and its operations.
func (c *compiler) opened(item source.Value) *row {
	r := &row{name: c.unique(item.Get("name")), unmatched: item.Get("unmatched").Bool(&c.issues)}
	r.operations = item.Get("operations").Strings(&c.issues)
	for _, op := range r.operations {
		if !slices.Contains(c.table.operations(), op) {
			c.report(item.Get("operations").Issuef("write "+strings.Join(c.table.operations(), " or "), "there is no operation %q", op))
		}
	}
	return r
}

// compile checks an expression that may read extra, the roots of all rows, and the variables so far.
func (c *compiler) compile(t source.Text, extra map[string]*cel.Type, want rules.Kind) *eval.Expr {
	all := map[string]*cel.Type{}
	maps.Copy(all, c.roots)
	maps.Copy(all, extra)
	scope, err := c.lang.Scope(all, c.table.variables.Object())
	if err != nil {
		c.report(t.Issue(0, 1, err.Error(), ""))
		return nil
	}
	e, issues := eval.Compile(scope, t, want)
	c.issues = append(c.issues, issues...)
	return e
}

// text compiles the {{CEL}} parts of a text.
func (c *compiler) text(t source.Text, extra map[string]*cel.Type) *typed.Text {
	compile := func(part source.Text) *eval.Expr { return c.compile(part, extra, rules.Anything()) }
	return typed.ParseText(t, compile, c.report)
}

// target reports a fieldPath that the kind does not have, and a default whose type differs from its field. It checks nothing if CEL parts
// of the path are more than indexes, because the field is then unknown. written states that the row writes the field.
func (c *compiler) target(r *row, at source.Value, written bool) {
	if r.fieldPath == nil {
		return
	}
	path, ok := r.fieldPath.Sample()
	if !ok {
		return
	}
	var field *typed.Schema
	if steps, err := typed.ParsePath(path); err == nil {
		field = c.table.object.At(steps)
	}
	if field == nil {
		c.report(at.Issuef("write the path of a field, such as spec.tasks[{{i}}].name of a Job", "%s has no such field", c.table.Kind))
		return
	}
	if !written || r.expression == nil || field.IsAny() {
		return
	}
	got := r.expression.Type
	if got.Kind() != types.DynKind && (got.Kind() != field.Type().Kind() || got.Kind() != types.ListKind && !got.IsExactType(field.Type())) {
		c.report(at.Issuef("", "the field is %s, the value of type %s", field.Want(), got))
	}
}
