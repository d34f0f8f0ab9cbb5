package docs

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/rules"
	"github.com/celsius-scheduler/celsius/rules/source"
)

const tablesIntro = `
Each of Volcano's plugins that this version has is a table: rows of the [rule language](rule-language.md) in a YAML file
under [rules/tables](../rules/tables). A policy names it in a tier, sets its params, and switches sections off with
` + "`without`" + ` or ` + "`only`" + `. What others rest on, and what Volcano has no flag for, ` + "`only`" +
	` leaves on: %s; beside it
` + "`without`" + ` may name these, as in ` + "`{name: gang, only: [jobReady], without: [jobValid]}`" +
	`. To change a row, print the table with ` + "`celsius policy show --resolved FILE`" + `, and edit the copy: an inline
table does all that a shipped one does. "Volcano" is the argument of Volcano's plugin that a param stands for.`

// tableReference writes tables.md.
func tableReference(shipped map[string]*rules.Table) ([]byte, error) {
	p := &page{}
	p.b.WriteString(generated)
	p.heading(1, "The tables that ship")
	p.para(tablesIntro, codes(policy.LeftOn()))
	names := slices.Sorted(maps.Keys(shipped))
	var rows [][]string
	for _, name := range names {
		rows = append(rows, []string{fmt.Sprintf("[%s](#%s)", name, name), sentence(shipped[name].Description), codes(sectionsOf(shipped[name]))})
	}
	p.table([]string{"table", "what it does", "sections"}, rows)
	p.para("Below them: [the default policy](#the-default-policy) and [the actions](#actions).")
	for _, name := range names {
		p.shippedTable(name, shipped[name])
	}
	if err := p.defaultPolicy(); err != nil {
		return nil, err
	}
	if err := p.shippedActions(); err != nil {
		return nil, err
	}
	return p.bytes(), nil
}

// sectionsOf lists the sections that a table has rows for, in the order of the sites.
func sectionsOf(t *rules.Table) []string {
	var out []string
	for _, s := range policy.Sites() {
		if len(t.Sections[s.Name]) > 0 {
			out = append(out, s.Name)
		}
	}
	return out
}

func (p *page) shippedTable(name string, t *rules.Table) {
	p.heading(2, name)
	p.para("%s [Source](../rules/tables/%s.yaml).", sentence(t.Description), name)
	p.params(t.Params)
	p.variables(t.Variables)
	p.attributes(t.Attributes)
	for _, s := range policy.Sites() {
		rows := t.Sections[s.Name]
		if len(rows) == 0 {
			continue
		}
		p.heading(3, s.Name)
		question, _, _ := strings.Cut(s.Doc+" ", ". ")
		question, answers, _ := strings.Cut(question, "? ")
		if answers != "" || strings.Contains(s.Doc, "? ") {
			question += "?"
		}
		p.para("_%s_", sentence(question))
		for _, row := range rows {
			p.ruleRow(row)
		}
	}
}

func (p *page) params(params []*rules.Param) {
	var rows [][]string
	for _, x := range params {
		value := "none"
		if x.Default.Exists() {
			value = code(plain(x.Default.Any()))
		}
		rows = append(rows, []string{code(x.Name), x.Type, value, boundsOf(x), meaningOf(x), code(x.Volcano)})
	}
	p.table([]string{"param", "type", "default", "bounds", "meaning", "Volcano"}, rows)
}

func meaningOf(x *rules.Param) string {
	if x.Deprecated == "" {
		return sentence(x.Description)
	}
	return sentence(x.Description) + " Deprecated: " + sentence(x.Deprecated)
}

func boundsOf(x *rules.Param) string {
	var out []string
	if x.Min.Exists() {
		out = append(out, "≥ "+plain(x.Min.Any()))
	}
	if x.Max.Exists() {
		out = append(out, "≤ "+plain(x.Max.Any()))
	}
	if len(x.Enum) > 0 {
		out = append(out, strings.Join(x.Enum, " or "))
	}
	return strings.Join(out, ", ")
}

// plain writes a value of YAML in one line.
func plain(v any) string {
	switch x := v.(type) {
	case []any:
		var out []string
		for _, item := range x {
			out = append(out, plain(item))
		}
		return "[" + strings.Join(out, ", ") + "]"
	case map[string]any:
		var out []string
		for _, key := range slices.Sorted(maps.Keys(x)) {
			out = append(out, key+": "+plain(x[key]))
		}
		return "{" + strings.Join(out, ", ") + "}"
	}
	return fmt.Sprint(v)
}

func (p *page) variables(variables []*rules.Variable) {
	var rows [][]string
	for _, v := range variables {
		on := v.On
		if on == "" {
			on = "cluster"
		}
		rows = append(rows, []string{code("variables." + v.Name), on, code(flat(v.Expression))})
	}
	p.table([]string{"variable", "on", "value"}, rows)
}

func (p *page) attributes(attributes []*rules.Attribute) {
	var rows [][]string
	for _, a := range attributes {
		value := code(flat(a.Expression))
		if a.Function != "" {
			value = fmt.Sprintf("[%s](rule-language.md#accounting-functions): %s", a.Function, argumentsOf(a))
		}
		if a.When.Value != "" {
			value += ", where " + code(flat(a.When))
		}
		var notes []string
		if a.Private {
			notes = append(notes, "this table only")
		}
		if a.Settle != "" {
			notes = append(notes, "settles: "+a.Settle)
		}
		rows = append(rows, []string{code(a.On + "." + a.Name), value, sentence(strings.Join(append(notes, a.Description), ". "))})
	}
	p.table([]string{"computed field", "value", ""}, rows)
}

// argumentsOf lists the arguments of an accounting function in the order in which it declares them.
func argumentsOf(a *rules.Attribute) string {
	var out []string
	for _, f := range policy.Shape().Functions {
		if f.Name != a.Function {
			continue
		}
		for _, x := range f.Args {
			if text, ok := a.Args[x.Name]; ok {
				out = append(out, x.Name+" "+code(flat(text)))
			}
			for _, name := range slices.Sorted(maps.Keys(a.Args)) {
				if field, ok := strings.CutPrefix(name, x.Name+"."); ok && x.Map {
					out = append(out, x.Name+" "+code(field+": "+flat(a.Args[name])))
				}
			}
		}
	}
	return strings.Join(out, ", ")
}

// flat is an expression in one line.
func flat(t source.Text) string { return strings.Join(strings.Fields(t.Value), " ") }

// ruleRow writes one row: its name and settings, its expression, what it tells people.
func (p *page) ruleRow(row *rules.Row) {
	head := "**" + row.Name + "**"
	if settings := settingsOf(row); settings != "" {
		head += " — " + settings
	}
	if row.Description != "" {
		head += " — " + sentence(row.Description)
	}
	p.para("%s", head)
	p.fence("cel", strings.TrimSpace(row.Expression.Value))
	if row.Message.Value != "" {
		said := "Says: “" + row.Message.Value + "”"
		if row.Reason != "" {
			said += ", reason " + code(row.Reason)
		}
		p.para("%s", said)
	}
}

// settingsOf lists what a row says beside its expression.
func settingsOf(row *rules.Row) string {
	var out []string
	add := func(key, value string) {
		if value != "" {
			out = append(out, key+" "+code(value))
		}
	}
	add("when", flat(row.When))
	add("weight", flat(row.Weight))
	add("normalize", row.Normalize)
	add("round", strings.TrimSpace(row.RoundMode+" "+flat(row.RoundStep)))
	add("veto", flat(row.Veto))
	add("every", flat(row.Every))
	add("onError", row.OnError)
	if row.Curable {
		out = append(out, "curable")
	}
	if row.Share {
		out = append(out, "share")
	}
	if row.Descending {
		out = append(out, "descending")
	}
	return strings.Join(out, ", ")
}

// defaultPolicy prints the policy that serves where there is no other.
func (p *page) defaultPolicy() error {
	p.heading(2, "The default policy")
	p.para("It serves where nobody names another, and is [Volcano's default configuration](../rules/tables/default.yaml), less what this " +
		"version does not have yet.")
	doc, issues := policy.Embedded("default")
	if err := issues.Err(); err != nil {
		return err
	}
	text, err := source.Write([]source.Entry{{Name: "spec", Value: doc.Root.Get("spec")}})
	if err != nil {
		return err
	}
	p.fence("yaml", string(text))
	return nil
}

// shippedActions prints the actions that a pipeline may name without defining them.
func (p *page) shippedActions() error {
	p.heading(2, "Actions")
	p.para("What a pipeline may name without defining it: steps of [verbs](rule-language.md#actions). [Source](../rules/tables/actions.yaml).")
	doc, issues := policy.Embedded("actions")
	if err := issues.Err(); err != nil {
		return err
	}
	for _, a := range doc.Root.Get("actions").Items(&issues) {
		p.heading(3, a.Get("name").String(&issues))
		p.para("%s", sentence(a.Get("description").String(&issues)))
		text, err := source.Write([]source.Entry{{Name: "steps", Value: a.Get("steps")}})
		if err != nil {
			return err
		}
		p.fence("yaml", string(text))
	}
	return issues.Err()
}
