package jobplugin

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"

	"github.com/celsius-scheduler/celsius/crds/decode"
	"github.com/celsius-scheduler/celsius/rules/source"
	"github.com/celsius-scheduler/celsius/rules/typed"
)

// template is a value of an API type that contains CEL, in strings or in place of a value.
type template struct {
	text   *typed.Text // a scalar that contains CEL
	asText bool        // the field is a string, or bytes in base64, whatever the expression returns
	fixed  any         // a scalar without CEL
	list   []*template
	keys   []*typed.Text // keys of a map; fields contains the values
	fields []*template
	form   form
}

type form uint8

const (
	scalarForm form = iota
	listForm
	mapForm
)

// readTemplate compiles a value for a given type. It reports values that do not match the type at their position.
func (c *compiler) readTemplate(v source.Value, t reflect.Type, extra map[string]*cel.Type) *template {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch v.Kind() {
	case source.List:
		return c.listTemplate(v, t, extra)
	case source.Map:
		return c.mapTemplate(v, t, extra)
	default:
	}
	out := &template{form: scalarForm, fixed: v.Any(), asText: t.Kind() == reflect.String || isBytes(t)}
	if text, ok := out.fixed.(string); ok && strings.Contains(text, "{{") {
		out.text = c.text(v.Text(&c.issues), extra)
		if out.text != nil {
			c.checkWhole(v, out, t)
		}
		return out
	}
	if wrong := decode.Value(out.fixed, t); wrong != nil {
		c.report(v.Issuef("", "%s", wrong.ErrorBody()))
	}
	return out
}

// checkWhole reports an expression in place of a value if its type differs from the type of the field.
func (c *compiler) checkWhole(v source.Value, out *template, t reflect.Type) {
	whole := out.text.Whole()
	if whole == nil {
		if !out.asText && t.Kind() != reflect.Interface && !own(t) {
			c.report(v.Issuef("write it as {{…}} alone", "the field is %s, and this a text", kindOf(t)))
		}
		return
	}
	got := whole.Type.Kind()
	unknown := slices.Contains([]types.Kind{types.DynKind, types.AnyKind, types.ErrorKind}, got)
	if out.asText || own(t) || t.Kind() == reflect.Interface || unknown {
		return
	}
	want := map[types.Kind][]reflect.Kind{
		types.IntKind:    {reflect.Int, reflect.Int32, reflect.Int64, reflect.Float64},
		types.BoolKind:   {reflect.Bool},
		types.DoubleKind: {reflect.Float64},
		types.ListKind:   {reflect.Slice},
		types.MapKind:    {reflect.Map, reflect.Struct},
		types.StructKind: {reflect.Struct},
	}
	if !slices.Contains(want[got], t.Kind()) {
		c.report(v.Issuef("", "the field is %s, and the expression gives %s", kindOf(t), whole.Type))
	}
}

func isBytes(t reflect.Type) bool {
	return t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8
}

// own reports whether a type has its own form in JSON, as quantities do.
func own(t reflect.Type) bool {
	return reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]())
}

func kindOf(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Slice:
		return "a list"
	case reflect.Map, reflect.Struct:
		return "a map"
	case reflect.Bool:
		return "true or false"
	case reflect.String:
		return "a text"
	default:
		return "a number"
	}
}

func (c *compiler) listTemplate(v source.Value, t reflect.Type, extra map[string]*cel.Type) *template {
	out := &template{form: listForm}
	if t.Kind() != reflect.Slice || isBytes(t) {
		c.report(v.Issuef("", "the field is %s, and this a list", kindOf(t)))
		return out
	}
	for _, item := range v.Items(&c.issues) {
		out.list = append(out.list, c.readTemplate(item, t.Elem(), extra))
	}
	return out
}

// fieldType returns the type of a struct's field, or of the values of a map.
func fieldType(t reflect.Type, name string) (reflect.Type, bool) {
	if t.Kind() == reflect.Map {
		return t.Elem(), true
	}
	return decode.FieldType(t, name)
}

func (c *compiler) mapTemplate(v source.Value, t reflect.Type, extra map[string]*cel.Type) *template {
	out := &template{form: mapForm}
	if own(t) || t.Kind() != reflect.Struct && t.Kind() != reflect.Map {
		c.report(v.Issuef("", "the field is %s, and this a map", kindOf(t)))
		return out
	}
	for _, f := range v.Fields(nil, &c.issues) {
		below, ok := fieldType(t, f.Name)
		if !ok {
			c.report(f.Key.Issuef(nearestField(t, f.Name), "%s has no field %q", t.Name(), f.Name))
			continue
		}
		key := c.text(f.Key.Text(&c.issues), extra)
		if key == nil {
			continue
		}
		out.keys = append(out.keys, key)
		out.fields = append(out.fields, c.readTemplate(f.Value, below, extra))
	}
	return out
}

// nearestField returns a hint that names the most similar field.
func nearestField(t reflect.Type, name string) string {
	var known []string
	for f := range t.Fields() {
		if tagged, _, _ := strings.Cut(f.Tag.Get("json"), ","); tagged != "" && tagged != "-" {
			known = append(known, tagged)
		}
	}
	if near := source.Nearest(name, known); near != "" {
		return fmt.Sprintf("did you mean %q?", near)
	}
	return ""
}

// value evaluates the template and returns a JSON value.
func (t *template) value(in cel.Activation) (any, error) {
	switch t.form {
	case listForm:
		out := make([]any, len(t.list))
		for i, item := range t.list {
			var err error
			if out[i], err = item.value(in); err != nil {
				return nil, err
			}
		}
		return out, nil
	case mapForm:
		out := make(map[string]any, len(t.keys))
		for i, key := range t.keys {
			name, err := key.Render(in)
			if err != nil {
				return nil, err
			}
			if out[name], err = t.fields[i].value(in); err != nil {
				return nil, err
			}
		}
		return out, nil
	case scalarForm:
	}
	switch {
	case t.text == nil:
		return t.fixed, nil
	case t.asText || t.text.Whole() == nil:
		return t.text.Render(in)
	}
	v := t.text.Whole().Eval(in)
	if err, failed := v.(*types.Err); failed {
		return nil, fmt.Errorf("{{%s}}: %w", strings.TrimSpace(t.text.Whole().Text.Value), err)
	}
	return typed.Plain(v)
}

// into decodes a JSON value. An error names the field.
func into(value, out any) error {
	data, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("write JSON: %w", err)
	}
	return decode.JSON(data, out)
}
