package typed

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types/ref"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/celsius-scheduler/celsius/rules"
)

// form is the permitted form of a JSON value.
type form uint8

const (
	anyForm form = iota // int-or-string, and values without a type
	stringForm
	intForm
	numberForm
	boolForm
	listForm
	mapForm
	objectForm
)

// want describes a form in a message.
func (f form) want() string {
	return [...]string{"any value", "a string", "a whole number", "a number", "true or false", "a list", "a map", "a map of its fields"}[f]
}

// Schema is a type of the rule language that was created from an OpenAPI schema.
type Schema struct {
	form form
	// small marks a 32-bit int.
	small bool
	typ   *cel.Type
	// elem is the type of the elements of a list or map.
	elem *Schema
	// object and fields are set for objects.
	object *rules.Object
	fields map[string]*Schema
}

// FromCRD reads the schema of a kind from its CustomResourceDefinition, in YAML. The name of a type is its path: Job, Job.spec,
// Job.spec.tasks[].
func FromCRD(data []byte, kind string) (*Schema, error) {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.Unmarshal(data, crd); err != nil {
		return nil, fmt.Errorf("schema of %s: %w", kind, err)
	}
	return FromSchema(crd.Spec.Versions[0].Schema.OpenAPIV3Schema, kind), nil
}

// FromSchema creates a type from the schema of a kind, and adds the fields of metadata, which the schema does not contain.
func FromSchema(p *apiextensionsv1.JSONSchemaProps, kind string) *Schema {
	root := p.DeepCopy()
	root.Properties["metadata"] = metadataSchema()
	return New(root, kind)
}

// New creates a type from an OpenAPI schema. The names of the type and of nested types are their paths.
func New(p *apiextensionsv1.JSONSchemaProps, name string) *Schema {
	return newSchema(p, name, shapes{})
}

// Type returns the type in the language.
func (s *Schema) Type() *cel.Type { return s.typ }

// IsAny reports whether the schema accepts any value.
func (s *Schema) IsAny() bool { return s.form == anyForm }

// Want describes for people which values the schema accepts.
func (s *Schema) Want() string { return s.form.want() }

// shapes contains the known objects by their fields. Objects with the same fields have one type, so that the policies of a job and of a
// task can be in one list.
type shapes map[string]*Schema

// metadataSchema returns the fields of metadata that rules need and a CustomResourceDefinition does not contain.
func metadataSchema() apiextensionsv1.JSONSchemaProps {
	text := func(doc string) apiextensionsv1.JSONSchemaProps {
		return apiextensionsv1.JSONSchemaProps{Type: "string", Description: doc}
	}
	texts := func(doc string) apiextensionsv1.JSONSchemaProps {
		elem := text("")
		return apiextensionsv1.JSONSchemaProps{Type: "object", Description: doc, AdditionalProperties: &apiextensionsv1.JSONSchemaPropsOrBool{
			Allows: true, Schema: &elem,
		}}
	}
	elem := text("")
	return apiextensionsv1.JSONSchemaProps{
		Type: "object", Description: "Name, labels, annotations and owners.",
		Properties: map[string]apiextensionsv1.JSONSchemaProps{
			"name":              text("Unset where generateName is to make it."),
			"generateName":      text("What a name is made from."),
			"namespace":         text("The namespace."),
			"uid":               text("Unique over time."),
			"deletionTimestamp": text("When its deletion was asked for."),
			"labels":            texts("The labels."),
			"annotations":       texts("The annotations."),
			"ownerReferences": {Type: "array", Description: "What it goes with.", Items: &apiextensionsv1.JSONSchemaPropsOrArray{
				Schema: &apiextensionsv1.JSONSchemaProps{
					Type: "object", Description: "One of those that it goes with.", Properties: map[string]apiextensionsv1.JSONSchemaProps{
						"apiVersion": text("The group and version of the owner."), "kind": text("The kind of the owner."),
						"name": text("The name of the owner."),
						"uid":  text("The UID of the owner."), "controller": {Type: "boolean", Description: "Whether the owner cares for it."},
					},
				},
			}},
			"finalizers": {Type: "array", Description: "What must happen before it is gone.", Items: &apiextensionsv1.JSONSchemaPropsOrArray{
				Schema: &elem,
			}},
		},
	}
}

func newSchema(p *apiextensionsv1.JSONSchemaProps, name string, known shapes) *Schema {
	switch {
	case p.XIntOrString, p.Type == "":
		return &Schema{form: anyForm, typ: cel.DynType}
	case p.Type == "string":
		return &Schema{form: stringForm, typ: cel.StringType}
	case p.Type == "integer":
		return &Schema{form: intForm, typ: cel.IntType, small: p.Format == "int32"}
	case p.Type == "number":
		return &Schema{form: numberForm, typ: cel.DoubleType}
	case p.Type == "boolean":
		return &Schema{form: boolForm, typ: cel.BoolType}
	case p.Type == "array" && p.Items != nil && p.Items.Schema != nil:
		elem := newSchema(p.Items.Schema, name+"[]", known)
		return &Schema{form: listForm, typ: cel.ListType(elem.typ), elem: elem}
	case len(p.Properties) > 0:
		return newObjectSchema(p, name, known)
	case p.AdditionalProperties != nil && p.AdditionalProperties.Schema != nil:
		elem := newSchema(p.AdditionalProperties.Schema, name+"{}", known)
		return &Schema{form: mapForm, typ: cel.MapType(cel.StringType, elem.typ), elem: elem}
	}
	return &Schema{form: anyForm, typ: cel.DynType}
}

func newObjectSchema(p *apiextensionsv1.JSONSchemaProps, name string, known shapes) *Schema {
	s := &Schema{form: objectForm, typ: cel.ObjectType(name), fields: map[string]*Schema{}}
	s.object = &rules.Object{Name: name, Type: s.typ, Doc: p.Description}
	var shape strings.Builder
	for _, field := range slices.Sorted(maps.Keys(p.Properties)) {
		below := p.Properties[field]
		f := newSchema(&below, name+"."+field, known)
		s.fields[field] = f
		s.object.Members = append(s.object.Members, &rules.Member{
			Name: field, Type: f.typ, Doc: below.Description, Changes: rules.ByObject,
			Get: func(o any) ref.Val { return read(o, field) },
			Has: func(o any) bool { return present(o, field) },
		})
		fmt.Fprintf(&shape, "%s %s %t\n", field, f.typ, f.small)
	}
	if first := known[shape.String()]; first != nil {
		return first
	}
	known[shape.String()] = s
	return s
}

// Objects adds the object types in a schema to out, by name.
func (s *Schema) Objects(out map[string]*rules.Object) {
	if s.object != nil && out[s.object.Name] != nil {
		return
	}
	if s.object != nil {
		out[s.object.Name] = s.object
	}
	if s.elem != nil {
		s.elem.Objects(out)
	}
	for _, f := range s.fields {
		f.Objects(out)
	}
}

// At returns the schema at a path, or nil if there is no such field.
func (s *Schema) At(path Path) *Schema {
	for _, p := range path {
		switch {
		case s == nil:
			return nil
		case s.form == objectForm && !p.isIndex:
			s = s.fields[p.key]
		case s.form == mapForm && !p.isIndex, s.form == listForm && p.isIndex:
			s = s.elem
		default:
			return nil
		}
	}
	return s
}

// Check reports values whose form differs from the schema, each with its path. Null counts as absent, and unknown fields are ignored.
func (s *Schema) Check(path string, value any, report func(path, message string)) {
	if value == nil || s.form == anyForm {
		return
	}
	switch v := value.(type) {
	case map[string]any:
		if s.form != mapForm && s.form != objectForm {
			break
		}
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if below := s.At(Path{{key: key}}); below != nil {
				below.Check(JoinPath(path, key), v[key], report)
			}
		}
		return
	case []any:
		if s.form != listForm {
			break
		}
		for i, item := range v {
			s.elem.Check(fmt.Sprintf("%s[%d]", path, i), item, report)
		}
		return
	default:
		if s.takes(v) {
			return
		}
	}
	want := s.form.want()
	if _, isInt := value.(int64); isInt && s.small {
		want = "a number of 32 bits"
	}
	report(path, fmt.Sprintf("is %s, must be %s", describe(value), want))
}

// takes reports whether a value that is not a list or a map has the form.
func (s *Schema) takes(value any) bool {
	switch v := value.(type) {
	case string:
		return s.form == stringForm
	case bool:
		return s.form == boolForm
	case int64:
		return s.form == numberForm || s.form == intForm && (!s.small || v >= math.MinInt32 && v <= math.MaxInt32)
	case float64:
		return s.form == numberForm || s.form == intForm && v == math.Trunc(v) && math.Abs(v) <= math.MaxInt32
	}
	return false
}

// describe describes a value for a message.
func describe(value any) string {
	switch v := value.(type) {
	case string:
		const most = 40
		if r := []rune(v); len(r) > most {
			return fmt.Sprintf("the string %q…", string(r[:most]))
		}
		return fmt.Sprintf("the string %q", v)
	case map[string]any:
		return "a map"
	case []any:
		return "a list"
	case bool:
		return fmt.Sprint(v)
	}
	return fmt.Sprintf("the number %v", value)
}
