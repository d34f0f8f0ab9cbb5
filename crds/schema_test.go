package crds_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// schemaNode is an openAPIV3Schema, or a part of one.
type schemaNode map[string]any

// each calls visit for the schema and every schema below it. The path is as the tables
// write it: spec.tasks[].name, status.taskStatusCount{}.phase.
func (s schemaNode) each(path string, visit func(path string, s schemaNode)) {
	visit(path, s)
	for _, name := range sortedKeys(s.properties()) {
		s.property(name).each(strings.TrimPrefix(path+"."+name, "."), visit)
	}
	if items := s.child("items"); items != nil {
		items.each(path+"[]", visit)
	}
	if values := s.child("additionalProperties"); values != nil {
		values.each(path+"{}", visit)
	}
}

func (s schemaNode) properties() map[string]any {
	p, _ := s["properties"].(map[string]any)
	return p
}

func (s schemaNode) property(name string) schemaNode {
	p, _ := s.properties()[name].(map[string]any)
	return p
}

func (s schemaNode) child(name string) schemaNode {
	c, _ := s[name].(map[string]any)
	return c
}

func (s schemaNode) strings(name string) []string {
	var out []string
	list, _ := s[name].([]any)
	for _, v := range list {
		out = append(out, fmt.Sprint(v))
	}
	return out
}

// summary writes what a schema demands in one line: "integer =3 >=0".
func (s schemaNode) summary() string {
	words := []string{s.typeName()}
	for _, w := range []struct{ key, form string }{
		{"default", "=%v"},
		{"minimum", ">=%v"},
		{"maximum", "<=%v"},
		{"minItems", "items>=%v"},
		{"minLength", "len>=%v"},
		{"maxLength", "len<=%v"},
		{"pattern", "~%v"},
	} {
		if v, ok := s[w.key]; ok && s["x-kubernetes-int-or-string"] == nil && s.typeName() != "time" {
			words = append(words, fmt.Sprintf(w.form, v))
		}
	}
	if enum := s.strings("enum"); enum != nil {
		slices.Sort(enum)
		words = append(words, strings.Join(enum, "|"))
	}
	if len(s.strings("required")) > 0 {
		words = append(words, "required:"+strings.Join(s.strings("required"), ","))
	}
	return strings.Join(words, " ")
}

func (s schemaNode) typeName() string {
	switch {
	case s["x-kubernetes-int-or-string"] == true:
		return "quantity"
	case s["type"] == nil && s["x-kubernetes-preserve-unknown-fields"] == true:
		return "any"
	case s["format"] == "date-time":
		return "time"
	}
	name, _ := s["type"].(string)
	return name
}

// check says where a value does not have the structure that the schema demands. Rules in
// CEL are not evaluated here.
func (s schemaNode) check(path string, value any) []string {
	switch v := value.(type) {
	case map[string]any:
		return s.checkObject(path, v)
	case []any:
		return s.checkList(path, v)
	default:
		return s.checkScalar(path, v)
	}
}

func (s schemaNode) checkObject(path string, value map[string]any) []string {
	open := s["x-kubernetes-preserve-unknown-fields"] == true
	if s["type"] != "object" && !open {
		return []string{fmt.Sprintf("%s: object, want %s", path, s.typeName())}
	}
	var bad []string
	for _, name := range s.strings("required") {
		if _, ok := value[name]; !ok {
			bad = append(bad, fmt.Sprintf("%s.%s: missing", path, name))
		}
	}
	for _, name := range sortedKeys(value) {
		below := strings.TrimPrefix(path+"."+name, ".")
		switch {
		case s.property(name) != nil:
			bad = append(bad, s.property(name).check(below, value[name])...)
		case s.child("additionalProperties") != nil:
			bad = append(bad, s.child("additionalProperties").check(below, value[name])...)
		case !open && path+name != "metadata" && path != "metadata":
			bad = append(bad, below+": would be pruned")
		}
	}
	return bad
}

func (s schemaNode) checkList(path string, value []any) []string {
	if s["type"] != "array" && s.typeName() != "any" {
		return []string{fmt.Sprintf("%s: list, want %s", path, s.typeName())}
	}
	var bad []string
	if least, ok := s["minItems"].(float64); ok && float64(len(value)) < least {
		bad = append(bad, fmt.Sprintf("%s: %d items, want %v", path, len(value), least))
	}
	if items := s.child("items"); items != nil {
		for i, v := range value {
			bad = append(bad, items.check(fmt.Sprintf("%s[%d]", path, i), v)...)
		}
	}
	return bad
}

func (s schemaNode) checkScalar(path string, value any) []string {
	if !s.takes(value) {
		return []string{fmt.Sprintf("%s: %v, want %s", path, value, s.typeName())}
	}
	if enum := s.strings("enum"); enum != nil && !slices.Contains(enum, fmt.Sprint(value)) {
		return []string{fmt.Sprintf("%s: %v, want one of %v", path, value, enum)}
	}
	if pattern, ok := s["pattern"].(string); ok && !regexp.MustCompile(pattern).MatchString(fmt.Sprint(value)) {
		return []string{fmt.Sprintf("%s: %v, want %s", path, value, pattern)}
	}
	n, isNumber := value.(float64)
	if least, ok := s["minimum"].(float64); ok && isNumber && n < least {
		return []string{fmt.Sprintf("%s: %v, want at least %v", path, n, least)}
	}
	if most, ok := s["maximum"].(float64); ok && isNumber && n > most {
		return []string{fmt.Sprintf("%s: %v, want at most %v", path, n, most)}
	}
	return nil
}

// takes says whether the schema's type takes the value.
func (s schemaNode) takes(value any) bool {
	name := s.typeName()
	switch v := value.(type) {
	case string:
		return slices.Contains([]string{"string", "time", "quantity", "any"}, name)
	case bool:
		return name == "boolean" || name == "any"
	case float64:
		whole := v == float64(int64(v))
		return name == "number" || name == "any" || whole && (name == "integer" || name == "quantity")
	default:
		return false
	}
}
