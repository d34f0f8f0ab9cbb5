package rules

import (
	"fmt"
	"slices"
	"strings"

	"github.com/celsius-scheduler/celsius/rules/source"
)

// Section is the shape of one section of a table: the keys that its rows may have.
type Section struct {
	Name string
	// Expression is the key of a row's main expression: "expression", or "by" for a sort key.
	Expression string
	// Keys are the additional keys of this section, besides name, description, when, reason, message and onError.
	Keys []string
}

// AttributeFunction is the shape of an accounting function: its arguments, each an expression or a word.
type AttributeFunction struct {
	Name string
	// Doc describes what the function computes.
	Doc  string
	Args []Argument
}

// Argument is one argument of an accounting function.
type Argument struct {
	Name     string
	Optional bool
	// Map states that the value is a mapping from names to expressions. Args stores each as "argument.name".
	Map bool
	Doc string
}

func (f AttributeFunction) argNames() []string {
	var out []string
	for _, a := range f.Args {
		out = append(out, a.Name)
	}
	return out
}

// Shape describes everything that a table may contain. The client provides it because only the client knows the sites.
type Shape struct {
	Sections   []Section
	Functions  []AttributeFunction
	Owners     []string // types of object that can have an attribute or a variable
	ParamTypes []string
}

// Table is a named set of rows with their params, as the author wrote it.
type Table struct {
	Name        string
	Description string
	At          source.Value
	Params      []*Param
	Variables   []*Variable
	Attributes  []*Attribute
	Sections    map[string][]*Row
}

// Param is a typed setting of a table.
type Param struct {
	Name, Type, Description string
	// Volcano is the argument of Volcano's plugin that sets this param; * stands for the key of a map.
	Volcano string
	// AsVolcano is the value that a converted configuration sets if the default behavior differs from Volcano's. If it is absent, the default
	// applies.
	AsVolcano  source.Value
	Deprecated string
	Default    source.Value // absent if there is no default
	Optional   bool
	Min, Max   source.Value // absent if there is no bound
	Enum       []string
	At         source.Value
}

// Variable is a named expression that the rows of its table share.
type Variable struct {
	Name       string
	On         string // the owner that it is memoized on; "" means once a cycle
	Expression source.Text
	At         source.Value
}

// Attribute is a computed field of an object.
type Attribute struct {
	Name, On, Settle, Description string
	Private                       bool
	When                          source.Text
	Expression                    source.Text
	// Function is the accounting function, or "" if Expression computes the value.
	Function string
	Args     map[string]source.Text
	At       source.Value
}

// Row is one rule of a table as its author wrote it.
type Row struct {
	Name, Description, Reason string
	Expression, When, Message source.Text
	Weight, Veto, Every       source.Text
	Normalize, Fold           string
	RoundMode                 string
	RoundStep                 source.Text
	Curable, Descending       bool
	Share                     bool
	OnError                   string
	At                        source.Value
}

// tableReader reads one table and collects its issues.
type tableReader struct {
	shape  Shape
	issues *source.Issues
}

// ReadTable reads the body of a table: a mapping of params, variables, attributes and sections. other lists the keys of v that the caller
// reads itself. All mistakes of form are added to issues.
func ReadTable(v source.Value, name string, shape Shape, other []string, issues *source.Issues) *Table {
	r := &tableReader{shape, issues}
	t := &Table{Name: name, At: v, Sections: map[string][]*Row{}}
	known := append([]string{"params", "variables", "attributes", "description"}, other...)
	for _, s := range shape.Sections {
		known = append(known, s.Name)
	}
	for _, f := range v.Fields(known, issues) {
		switch f.Name {
		case "params":
			t.Params = r.params(f.Value)
		case "variables":
			t.Variables = r.variables(f.Value)
		case "attributes":
			t.Attributes = r.attributes(f.Value)
		case "description":
			t.Description = f.Value.String(issues)
		default:
			if i := slices.IndexFunc(shape.Sections, func(s Section) bool { return s.Name == f.Name }); i >= 0 {
				t.Sections[f.Name] = r.rows(f.Value, shape.Sections[i])
			}
		}
	}
	return t
}

// unique reports invalid names, and names that occur twice in one list.
func (r *tableReader) unique(seen map[string]source.Value, name source.Value, text string) {
	if text == "" && name.Any() != "" {
		return // it is missing or not a string, which is reported elsewhere
	}
	if !isName(text) {
		*r.issues = append(*r.issues, name.Issuef("use letters, digits, - and _, and begin with a letter", "%q is not a name", text))
	}
	if first, ok := seen[text]; ok {
		line, _ := first.Pos()
		*r.issues = append(*r.issues, name.Issuef("give it a name of its own", "duplicate name %q (first on line %d)", text, line))
		return
	}
	seen[text] = name
}

func isName(s string) bool {
	for i, c := range s {
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		other := c >= '0' && c <= '9' || c == '-' || c == '_' || c == '.'
		if !letter && (i == 0 || !other) {
			return false
		}
	}
	return s != ""
}

func (r *tableReader) need(v source.Value, key string) source.Value {
	got := v.Get(key)
	if !got.Exists() && v.Kind() == source.Map {
		*r.issues = append(*r.issues, v.Issuef("add "+key, "%s is missing", key))
	}
	return got
}

func (r *tableReader) word(v source.Value, among []string) string {
	if !v.Exists() {
		return ""
	}
	s := v.String(r.issues)
	if s != "" && !slices.Contains(among, s) {
		hint := "one of " + strings.Join(among, ", ")
		if near := source.Nearest(s, among); near != "" {
			hint = fmt.Sprintf("did you mean %q? (%s)", near, hint)
		}
		*r.issues = append(*r.issues, v.Issuef(hint, "unknown value %q", s))
	}
	return s
}

func (r *tableReader) params(v source.Value) []*Param {
	var out []*Param
	for _, f := range v.Fields(nil, r.issues) {
		p := &Param{Name: f.Name, At: f.Value}
		for _, k := range f.Value.Fields(keyNames(ParamKeys()), r.issues) {
			r.param(p, k.Name, k.Value)
		}
		r.need(f.Value, "type")
		if !p.Optional && !p.Default.Exists() && f.Value.Kind() == source.Map {
			*r.issues = append(*r.issues, f.Value.Issuef("add default, or optional: true", "param %q has no default", p.Name))
		}
		out = append(out, p)
	}
	return out
}

// param reads one key of a param.
func (r *tableReader) param(p *Param, key string, v source.Value) {
	switch key {
	case "type":
		p.Type = r.word(v, r.shape.ParamTypes)
	case "default":
		p.Default = v
	case "optional":
		p.Optional = v.Bool(r.issues)
	case "min":
		p.Min = v
	case "max":
		p.Max = v
	case "enum":
		p.Enum = v.Strings(r.issues)
	case "description":
		p.Description = v.String(r.issues)
	case "volcano":
		p.Volcano = v.String(r.issues)
	case "asVolcano":
		p.AsVolcano = v
	case "deprecated":
		p.Deprecated = v.String(r.issues)
	}
}

func (r *tableReader) variables(v source.Value) []*Variable {
	var out []*Variable
	seen := map[string]source.Value{}
	for _, item := range v.Items(r.issues) {
		x := &Variable{At: item}
		for _, f := range item.Fields(append(keyNames(VariableKeys()), source.On), r.issues) {
			switch f.Name {
			case "name":
				x.Name = f.Value.String(r.issues)
				r.unique(seen, f.Value, x.Name)
			case "on", source.On:
				x.On = r.word(f.Value, r.shape.Owners)
			case "expression":
				x.Expression = f.Value.Text(r.issues)
			}
		}
		r.need(item, "name")
		r.need(item, "expression")
		out = append(out, x)
	}
	return out
}

func (r *tableReader) attributes(v source.Value) []*Attribute {
	var out []*Attribute
	seen := map[string]source.Value{}
	known := append(keyNames(AttributeKeys()), source.On)
	for _, f := range r.shape.Functions {
		known = append(known, f.Name)
	}
	for _, item := range v.Items(r.issues) {
		a := &Attribute{At: item}
		for _, f := range item.Fields(known, r.issues) {
			r.attributeField(a, f)
		}
		if !item.Get(source.On).Exists() {
			r.need(item, "on")
		}
		a.Name = r.need(item, "name").String(r.issues)
		r.unique(seen, item.Get("name"), strings.Trim(a.On+"."+a.Name, "."))
		if a.Function == "" && a.Expression.Value == "" && item.Kind() == source.Map {
			*r.issues = append(*r.issues, item.Issuef("add expression, or an accounting function", "attribute %q computes nothing", a.Name))
		}
		out = append(out, a)
	}
	return out
}

func (r *tableReader) attributeField(a *Attribute, f source.Field) {
	switch f.Name {
	case "name":
	case "on", source.On:
		a.On = r.word(f.Value, r.shape.Owners)
	case "settle":
		a.Settle = r.word(f.Value, Settlements())
	case "private":
		a.Private = f.Value.Bool(r.issues)
	case "when":
		a.When = f.Value.Text(r.issues)
	case "expression":
		a.Expression = f.Value.Text(r.issues)
	case "description":
		a.Description = f.Value.String(r.issues)
	default:
		i := slices.IndexFunc(r.shape.Functions, func(x AttributeFunction) bool { return x.Name == f.Name })
		if i < 0 {
			return
		}
		if a.Function != "" || a.Expression.Value != "" {
			*r.issues = append(*r.issues, f.Key.Issuef("keep one", "an attribute is one expression or one function, not both"))
		}
		a.Function = f.Name
		a.Args = r.arguments(f.Value, r.shape.Functions[i])
	}
}

// arguments reads the arguments of an accounting function.
func (r *tableReader) arguments(v source.Value, shape AttributeFunction) map[string]source.Text {
	out := map[string]source.Text{}
	for _, arg := range v.Fields(shape.argNames(), r.issues) {
		if k := slices.IndexFunc(shape.Args, func(x Argument) bool { return x.Name == arg.Name }); !shape.Args[k].Map {
			out[arg.Name] = arg.Value.Text(r.issues)
			continue
		}
		for _, entry := range arg.Value.Fields(nil, r.issues) {
			out[arg.Name+"."+entry.Name] = entry.Value.Text(r.issues)
		}
	}
	for _, arg := range shape.Args {
		if !arg.Optional {
			r.need(v, arg.Name)
		}
	}
	return out
}

func (r *tableReader) rows(v source.Value, section Section) []*Row {
	var out []*Row
	seen := map[string]source.Value{}
	known := keyNames(RowKeys(section))
	for _, item := range v.Items(r.issues) {
		row := &Row{At: item}
		mistaken := r.mistaken(item, section)
		for _, f := range item.Fields(append(mistaken, known...), r.issues) {
			if f.Name == "name" {
				row.Name = f.Value.String(r.issues)
				r.unique(seen, f.Value, row.Name)
				continue
			}
			r.rowField(row, f)
		}
		r.need(item, "name")
		if mistaken == nil {
			r.need(item, section.Expression)
		}
		out = append(out, row)
	}
	return out
}

// mistaken reports a row that has by instead of expression, or the reverse, and returns the wrong key.
func (r *tableReader) mistaken(item source.Value, section Section) []string {
	other := map[string]string{"expression": "by", "by": "expression"}[section.Expression]
	for _, f := range item.Fields(nil, &source.Issues{}) {
		if f.Name == other && !item.Get(section.Expression).Exists() {
			*r.issues = append(*r.issues, f.Key.Issuef("write "+section.Expression, "rows of %s have their expression under %s", section.Name,
				section.Expression))
			return []string{other}
		}
	}
	return nil
}

func (r *tableReader) rowField(row *Row, f source.Field) {
	switch f.Name {
	case "description":
		row.Description = f.Value.String(r.issues)
	case "expression", "by":
		row.Expression = f.Value.Text(r.issues)
	case "when":
		row.When = f.Value.Text(r.issues)
	case "reason":
		row.Reason = r.reason(f.Value)
	case "message":
		row.Message = f.Value.Text(r.issues)
	case "weight":
		row.Weight = f.Value.Text(r.issues)
	case "veto":
		row.Veto = f.Value.Text(r.issues)
	case "every":
		row.Every = f.Value.Text(r.issues)
	case "normalize":
		row.Normalize = r.word(f.Value, keyNames(Normalizations()))
	case "fold":
		row.Fold = r.word(f.Value, keyNames(Folds()))
	case "round":
		r.rounding(row, f.Value)
	case "curable", "descending", "share":
		*map[string]*bool{"curable": &row.Curable, "descending": &row.Descending, "share": &row.Share}[f.Name] = f.Value.Bool(r.issues)
	case "onError":
		row.OnError = r.word(f.Value, keyNames(ErrorAnswers()))
	}
}

// mostReason is the maximum length of a reason. Kubernetes requires the same form for the reasons of conditions and events.
const mostReason = 64

// reason reads the reason of a row. Programs read it in conditions and events.
func (r *tableReader) reason(v source.Value) string {
	s := v.String(r.issues)
	upper := s != "" && s[0] >= 'A' && s[0] <= 'Z'
	other := strings.IndexFunc(s, func(c rune) bool {
		return (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') && (c < '0' || c > '9')
	})
	switch {
	case s == "" && v.Any() != "": // it is missing or not a string, which is reported elsewhere
	case !upper || other >= 0:
		*r.issues = append(*r.issues, v.Issuef("write letters and digits in CamelCase, as in NotEnoughNodes; sentences belong in message",
			"the reason %.80q is not CamelCase", s))
	case len(s) > mostReason:
		*r.issues = append(*r.issues, v.Issuef("write a shorter one; details belong in message",
			"the reason has %d letters, and at most %d are allowed", len(s), mostReason))
	}
	return s
}

func (r *tableReader) rounding(row *Row, v source.Value) {
	for _, k := range v.Fields([]string{"mode", "step"}, r.issues) {
		if k.Name == "mode" {
			row.RoundMode = r.word(k.Value, keyNames(Roundings()))
		} else {
			row.RoundStep = k.Value.Text(r.issues)
		}
	}
	r.need(v, "mode")
}
