package decode

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubejson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// JSON decodes as Kubernetes does: names of fields by case, unknown ones passed over. The error, where a field
// is at fault, is a *field.Error.
func JSON(data []byte, into any) error {
	value, err := Check(data, reflect.TypeOf(into))
	if err != nil {
		return err
	}
	if data, err = json.Marshal(value); err != nil { // numbers are written as the API server writes them, which takes no time to read
		return fmt.Errorf("write JSON: %w", err)
	}
	return kubejson.Unmarshal(data, into)
}

// Check says where JSON is not what a Go type can hold: a *field.Error for the first such field, in the order of
// their names, or an error about the JSON itself. The value, of maps and lists, can be decoded when it is written anew, and soon.
func Check(data []byte, t reflect.Type) (value any, err error) {
	if err := kubejson.Unmarshal(data, &value); err != nil {
		return nil, fmt.Errorf("it is not JSON: %w", err)
	}
	if wrong := Value(value, t); wrong != nil {
		return nil, wrong
	}
	return value, nil
}

// Value is Check for JSON that was read already, into maps and lists.
func Value(value any, t reflect.Type) *field.Error { return check(nil, t, value) }

var (
	unmarshaler = reflect.TypeFor[json.Unmarshaler]()
	quantity    = reflect.TypeFor[resource.Quantity]()
	duration    = reflect.TypeFor[metav1.Duration]()
	moment      = reflect.TypeFor[metav1.Time]()
)

func check(path *field.Path, t reflect.Type, value any) *field.Error {
	for t.Kind() == reflect.Pointer {
		if value == nil {
			return nil
		}
		t = t.Elem()
	}
	if t == quantity {
		return checkQuantity(path, value)
	}
	if reflect.PointerTo(t).Implements(unmarshaler) {
		return checkLeaf(path, t, value)
	}
	switch kind := t.Kind(); {
	case kind == reflect.Struct:
		return checkStruct(path, t, value)
	case kind == reflect.Map:
		return checkMap(path, t, value)
	case kind == reflect.Slice && t.Elem().Kind() != reflect.Uint8:
		return checkList(path, t, value)
	case kind == reflect.Interface, value != nil && kind == reflect.TypeOf(value).Kind() && (kind == reflect.String || kind == reflect.Bool):
		return nil
	}
	return checkLeaf(path, t, value)
}

func checkStruct(path *field.Path, t reflect.Type, value any) *field.Error {
	object, ok := value.(map[string]any)
	if !ok {
		return unlessNull(path, value, "must be an object")
	}
	for _, name := range slices.Sorted(maps.Keys(object)) {
		f, ok := FieldType(t, name)
		if !ok {
			continue
		}
		if wrong := check(child(path, name), f, object[name]); wrong != nil {
			return wrong
		}
	}
	return nil
}

func checkMap(path *field.Path, t reflect.Type, value any) *field.Error {
	object, ok := value.(map[string]any)
	if !ok {
		return unlessNull(path, value, "must be an object")
	}
	for _, key := range slices.Sorted(maps.Keys(object)) {
		if wrong := check(path.Key(key), t.Elem(), object[key]); wrong != nil {
			return wrong
		}
	}
	return nil
}

func checkList(path *field.Path, t reflect.Type, value any) *field.Error {
	list, ok := value.([]any)
	if !ok {
		return unlessNull(path, value, "must be a list")
	}
	for i, item := range list {
		if wrong := check(path.Index(i), t.Elem(), item); wrong != nil {
			return wrong
		}
	}
	return nil
}

// checkQuantity is for text what Quantity is; a number is written out in full.
func checkQuantity(path *field.Path, value any) *field.Error {
	text, isText := value.(string)
	if !isText {
		return checkLeaf(path, quantity, value)
	}
	if _, err := Quantity(strings.TrimSpace(text)); err != nil {
		return invalid(path, value, err.Error())
	}
	return nil
}

// checkLeaf has the type itself decode the value.
func checkLeaf(path *field.Path, t reflect.Type, value any) *field.Error {
	data, err := json.Marshal(value)
	if err == nil {
		err = kubejson.Unmarshal(data, reflect.New(t).Interface())
	}
	if err == nil {
		return nil
	}
	switch t {
	case duration:
		return invalid(path, value, "must be a duration such as 90s or 1h30m")
	case moment:
		return invalid(path, value, "must be a time such as 2006-01-02T15:04:05Z")
	default:
		return invalid(path, value, err.Error())
	}
}

// FieldType is the type of a struct's field by its name in JSON.
func FieldType(t reflect.Type, name string) (reflect.Type, bool) {
	for f := range t.Fields() {
		tagged, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case tagged == name:
			return f.Type, true
		case tagged == "" && (f.Anonymous || strings.Contains(options, "inline")) && f.Type.Kind() == reflect.Struct:
			if found, ok := FieldType(f.Type, name); ok {
				return found, true
			}
		}
	}
	return nil, false
}

func child(path *field.Path, name string) *field.Path {
	if path == nil {
		return field.NewPath(name)
	}
	return path.Child(name)
}

func unlessNull(path *field.Path, value any, detail string) *field.Error {
	if value == nil {
		return nil
	}
	return invalid(path, value, detail)
}

// invalid shows a value as far as it is short.
func invalid(path *field.Path, value any, detail string) *field.Error {
	const longest = 100
	shown := fmt.Sprint(value)
	if len(shown) > longest {
		shown = shown[:longest] + "…"
	}
	return field.Invalid(path, shown, detail)
}
