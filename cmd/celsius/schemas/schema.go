package schemas

import "maps"

// Schema is a JSON Schema with the keywords that our schemas use.
type Schema struct {
	Dialect     string `json:"$schema,omitempty"`
	Ref         string `json:"$ref,omitempty"`
	Title       string `json:"title,omitempty"`
	Description string `json:"description,omitempty"`
	Type        any    `json:"type,omitempty"` // a word or a list of words
	Default     any    `json:"default,omitempty"`
	Values
	Contents
	Logic
}

// Values restricts scalars.
type Values struct {
	Const any   `json:"const,omitempty"`
	Enum  []any `json:"enum,omitempty"`
	// Docs are the descriptions of the values in Enum, in the same order. Editors show them, and validators ignore them.
	Docs      []string `json:"enumDescriptions,omitempty"`
	Pattern   string   `json:"pattern,omitempty"`
	Minimum   *float64 `json:"minimum,omitempty"`
	Maximum   *float64 `json:"maximum,omitempty"`
	MinLength *int64   `json:"minLength,omitempty"`
	MaxLength *int64   `json:"maxLength,omitempty"`
}

// Contents restricts mappings and lists.
type Contents struct {
	Properties map[string]*Schema `json:"properties,omitempty"`
	Required   []string           `json:"required,omitempty"`
	// Additional is false, or a *Schema.
	Additional any     `json:"additionalProperties,omitempty"`
	Items      *Schema `json:"items,omitempty"`
	MinItems   *int64  `json:"minItems,omitempty"`
	MaxItems   *int64  `json:"maxItems,omitempty"`
}

// Logic combines schemas.
type Logic struct {
	AllOf []*Schema `json:"allOf,omitempty"`
	AnyOf []*Schema `json:"anyOf,omitempty"`
	OneOf []*Schema `json:"oneOf,omitempty"`
	Not   *Schema   `json:"not,omitempty"`
	If    *Schema   `json:"if,omitempty"`
	Then  *Schema   `json:"then,omitempty"`
	Else  *Schema   `json:"else,omitempty"`
}

const draft = "http://json-schema.org/draft-07/schema#"

func described(s *Schema, doc string) *Schema {
	s.Description = doc
	return s
}

func text() *Schema    { return &Schema{Type: "string"} }
func boolean() *Schema { return &Schema{Type: "boolean"} }

// expression is the schema of CEL. Numbers, true and false are also expressions.
func expression() *Schema { return &Schema{Type: []string{"string", "number", "boolean"}} }

func listOf(items *Schema) *Schema { return &Schema{Type: "array", Contents: Contents{Items: items}} }

func mapOf(values *Schema) *Schema {
	return &Schema{Type: "object", Contents: Contents{Additional: values}}
}

// object is the schema of a mapping with these fields and no others.
func object(doc string, fields map[string]*Schema, required ...string) *Schema {
	return &Schema{Description: doc, Type: "object", Contents: Contents{Properties: fields, Required: required, Additional: false}}
}

func words(of []string, docs ...string) *Schema {
	s := &Schema{Type: "string", Values: Values{Docs: docs}}
	for _, w := range of {
		s.Enum = append(s.Enum, w)
	}
	return s
}

// when applies a schema only to values that match a condition.
func when(condition, then *Schema) *Schema { return &Schema{Logic: Logic{If: condition, Then: then}} }

// having matches an object in which a field has a value.
func having(field string, value any) *Schema {
	return &Schema{Contents: Contents{
		Properties: map[string]*Schema{field: {Values: Values{Const: value}}}, Required: []string{field},
	}}
}

// metadata is the schema of a cluster object's metadata. Other fields that the API server accepts are not checked.
func metadata(namespaced bool) *Schema {
	fields := map[string]*Schema{
		"name":        described(text(), "The name of the object."),
		"labels":      described(mapOf(text()), "What the object is found by."),
		"annotations": described(mapOf(text()), "What is told of the object."),
	}
	if namespaced {
		fields["namespace"] = described(text(), "The namespace of the object.")
	}
	return &Schema{Type: "object", Contents: Contents{Properties: fields}}
}

// Applying returns the schemas that apply to a value together with this one: itself, and the ones from its conditions.
func (s *Schema) Applying(value any) []*Schema {
	if s == nil {
		return nil
	}
	out := []*Schema{s}
	for _, list := range [][]*Schema{s.AllOf, s.AnyOf, s.OneOf} {
		for _, part := range list {
			out = append(out, part.Applying(value)...)
		}
	}
	if s.If != nil {
		if s.If.holds(value) {
			out = append(out, s.Then.Applying(value)...)
		} else {
			out = append(out, s.Else.Applying(value)...)
		}
	}
	return out
}

// holds reports whether a value matches a condition that consists of having, required and not.
func (s *Schema) holds(value any) bool {
	fields, _ := value.(map[string]any)
	for _, name := range s.Required {
		if _, ok := fields[name]; !ok {
			return false
		}
	}
	for name, field := range s.Properties {
		if v, ok := fields[name]; ok && field.Const != nil && field.Const != v {
			return false
		}
	}
	for _, part := range s.AllOf {
		if !part.holds(value) {
			return false
		}
	}
	any := len(s.AnyOf) == 0
	for _, part := range s.AnyOf {
		any = any || part.holds(value)
	}
	return any && (s.Not == nil || !s.Not.holds(value))
}

func (s *Schema) withFields(more map[string]*Schema) *Schema {
	maps.Copy(s.Properties, more)
	return s
}
