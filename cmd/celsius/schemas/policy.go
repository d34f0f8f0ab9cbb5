package schemas

import (
	"fmt"
	"maps"
	"slices"

	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/engine/policy/kinds"
	"github.com/celsius-scheduler/celsius/rules"
	"github.com/celsius-scheduler/celsius/rules/source"
)

// refine replaces parts of the manifest's schema with what the compiler accepts. The manifest accepts more, because later versions may have
// additional values.
func refine(s *Schema, shipped map[string]*rules.Table) error {
	spec := s.Properties["spec"]
	spec.Additional = false
	actions, docs, err := shippedActions()
	if err != nil {
		return err
	}
	pipeline := spec.Properties["pipeline"]
	pipeline.Items = &Schema{Type: "string", Logic: Logic{AnyOf: []*Schema{words(actions, docs...), text()}}}
	action := spec.Properties["actions"].Items
	action.Properties["description"] = described(text(), "What it is for.")
	action.Additional = false
	action.Properties["steps"].Items = step()
	body, err := table()
	if err != nil {
		return err
	}
	tier := spec.Properties["tiers"].Items
	tier.Additional = false
	entry(tier.Properties["tables"].Items, body, shipped)
	return nil
}

// shippedActions returns the names and descriptions of the built-in actions.
func shippedActions() (names, docs []string, err error) {
	doc, issues := policy.Embedded("actions")
	if doc == nil {
		return nil, nil, issues
	}
	for _, item := range doc.Root.Get("actions").Items(&issues) {
		names = append(names, item.Get("name").String(&issues))
		docs = append(docs, item.Get("description").String(&issues))
	}
	return names, docs, issues.Err()
}

// step returns the schema of a verb with its parameters.
func step() *Schema {
	verb := &Schema{Description: "What the step does.", Type: "string"}
	out := &Schema{Type: "object", Contents: Contents{Properties: map[string]*Schema{"verb": verb}, Required: []string{"verb"}}}
	for _, v := range policy.Verbs() {
		verb.Enum, verb.Docs = append(verb.Enum, v.Name), append(verb.Docs, v.Doc)
		fields := map[string]*Schema{"verb": {Description: verb.Description}}
		for _, p := range v.Parameters {
			fields[p.Name] = described(parameter(p.Kind), p.Doc+" Default: "+p.Kind.Otherwise()+".")
		}
		out.AllOf = append(out.AllOf, when(having("verb", v.Name), object(v.Doc, fields)))
	}
	return out
}

func parameter(kind kinds.Kind) *Schema {
	switch k := kind.(type) {
	case kinds.Flag:
		return boolean()
	case kinds.Word:
		return words(k.Of)
	case kinds.Words:
		return listOf(words(k.Of))
	case kinds.Period:
		return text()
	}
	return expression()
}

// entry refines the schema of a table in a tier. The table is a built-in one, named by the entry or by its key table and with params, or it
// is written inline.
func entry(s *Schema, body *Schema, shipped map[string]*rules.Table) {
	names, docs := tableNames(shipped)
	s.Additional = false
	s.Properties["inline"] = body
	s.Properties["table"] = described(words(names, docs...), s.Properties["table"].Description)
	has := func(field string) *Schema { return &Schema{Contents: Contents{Required: []string{field}}} }
	bare := &Schema{Logic: Logic{Not: &Schema{Logic: Logic{AnyOf: []*Schema{has("inline"), has("table")}}}}}
	s.AllOf = append(s.AllOf, when(bare, &Schema{Contents: Contents{Properties: map[string]*Schema{"name": words(names, docs...)}}}),
		&Schema{Logic: Logic{Not: &Schema{Contents: Contents{Required: []string{"inline", "table"}}}}})
	for _, name := range names {
		t := shipped[name]
		params := map[string]*Schema{}
		for _, p := range t.Params {
			params[p.Name] = param(p)
		}
		named := &Schema{Logic: Logic{AnyOf: []*Schema{
			having("table", name), {Logic: Logic{AllOf: []*Schema{having("name", name), bare}}},
		}}}
		s.AllOf = append(s.AllOf, when(named, &Schema{Contents: Contents{Properties: map[string]*Schema{
			"params": object("Params of the table "+name+".", params),
		}}}))
	}
	sections, about := []string{"attributes"}, []string{"Its computed fields."}
	for _, site := range policy.Sites() {
		sections, about = append(sections, site.Name), append(about, site.Doc)
	}
	for _, key := range []string{"only", "without"} {
		s.Properties[key] = described(listOf(words(sections, about...)), s.Properties[key].Description)
	}
}

func tableNames(shipped map[string]*rules.Table) (names, docs []string) {
	names = slices.Sorted(maps.Keys(shipped))
	for _, name := range names {
		docs = append(docs, shipped[name].Description)
	}
	return names, docs
}

// param returns the schema of the value that a policy sets for a param.
func param(p *rules.Param) *Schema {
	s := ofParamType(p.Type)
	one := s
	switch {
	case s.Items != nil:
		one = s.Items
	case s.Additional != nil:
		one, _ = s.Additional.(*Schema)
	}
	for _, word := range p.Enum {
		one.Enum = append(one.Enum, word)
	}
	if one.Type == "number" || one.Type == "integer" {
		one.Minimum, one.Maximum = number(p.Min), number(p.Max)
	}
	if p.Default.Exists() {
		s.Default = p.Default.Any()
	}
	s.Description = p.Description
	if p.Deprecated != "" {
		s.Description += " Deprecated: " + p.Deprecated
	}
	return s
}

func number(v source.Value) *float64 {
	if !v.Exists() {
		return nil
	}
	var ignored source.Issues // built-in tables have no issues
	n := v.Float(&ignored)
	return &n
}

func ofParamType(name string) *Schema {
	switch name {
	case "bool":
		return boolean()
	case "int":
		return &Schema{Type: "integer"}
	case "double":
		return &Schema{Type: "number"}
	case "list(string)":
		return listOf(text())
	case "map(string,double)":
		return mapOf(&Schema{Type: "number"})
	case "map(string,string)":
		return mapOf(text())
	}
	return text()
}

// table returns the schema of the body of a table.
func table() (*Schema, error) {
	shape := policy.Shape()
	owners := words(shape.Owners)
	special := map[string]*Schema{
		"param.type": words(shape.ParamTypes), "variable.on": owners, "attribute.on": owners, "attribute.settle": words(rules.Settlements()),
		"row.onError": fromKeys(rules.ErrorAnswers()), "row.normalize": fromKeys(rules.Normalizations()), "row.fold": fromKeys(rules.Folds()),
		"row.round": object("", map[string]*Schema{"mode": fromKeys(rules.Roundings()), "step": expression()}, "mode"),
		"row.every": expression(),
	}
	mapping := func(part string, keys []rules.Key, required ...string) (*Schema, error) {
		return ofKeys(part, keys, func(k rules.Key) (*Schema, error) { return special[part+"."+k.Name], nil }, required...)
	}
	params, err := mapping("param", rules.ParamKeys(), "type")
	if err != nil {
		return nil, err
	}
	variables, err := mapping("variable", rules.VariableKeys(), "name", "expression")
	if err != nil {
		return nil, err
	}
	attributes, err := mapping("attribute", rules.AttributeKeys(), "name", "on")
	if err != nil {
		return nil, err
	}
	for _, fn := range shape.Functions {
		attributes.Properties[fn.Name] = accounting(fn)
	}
	fields := map[string]*Schema{
		"description": described(text(), "What the table does."),
		"params":      described(mapOf(params), "Settings of the table, by name."),
		"variables":   described(listOf(variables), "Expressions that rows share."),
		"attributes":  described(listOf(attributes), "Computed fields of objects, for this table and those after it."),
	}
	for _, site := range policy.Sites() {
		row, err := mapping("row", rules.RowKeys(site.Section), "name", site.Expression)
		if err != nil {
			return nil, err
		}
		fields[site.Name] = described(listOf(row), site.Doc)
	}
	return object("A table: rows by section, and what they rest on.", fields), nil
}

func accounting(fn rules.AttributeFunction) *Schema {
	fields, required := map[string]*Schema{}, []string{}
	for _, arg := range fn.Args {
		fields[arg.Name] = described(expression(), arg.Doc)
		if arg.Map {
			fields[arg.Name] = described(mapOf(expression()), arg.Doc)
		}
		if !arg.Optional {
			required = append(required, arg.Name)
		}
	}
	return object(fn.Doc, fields, required...)
}

// fromKeys returns a choice of words, each with its meaning.
func fromKeys(keys []rules.Key) *Schema {
	var of, docs []string
	for _, k := range keys {
		doc := k.Doc
		if k.Value != "" {
			doc = k.Value + ". " + k.Doc
		}
		of, docs = append(of, k.Name), append(docs, doc)
	}
	return words(of, docs...)
}

// ruleTable returns the schema of a table in a separate document.
func ruleTable() (*Schema, error) {
	s, err := table()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", policy.TableKind, err)
	}
	s.Required = append(s.Required, "apiVersion", "kind", "metadata")
	return s.withFields(map[string]*Schema{
		"apiVersion": {Type: "string", Values: Values{Const: rulesVersion}},
		"kind":       {Type: "string", Values: Values{Const: policy.TableKind}},
		"metadata":   object("Names the table.", map[string]*Schema{"name": described(text(), "The name of the table.")}, "name"),
	}), nil
}
