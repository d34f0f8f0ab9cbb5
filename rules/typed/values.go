package typed

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
)

// value is a JSON object in the form that rules read. A field that is absent (or null) reads as the zero value of its type, as in the Go
// types of the API. has() distinguishes it.
type value struct {
	schema *Schema
	fields map[string]any
	// memo contains the fields that were already read.
	memo map[string]ref.Val
}

// Object converts a JSON object for the language: maps of strings, bools, int64, float64, lists and maps. nil is an object without fields.
func Object(s *Schema, fields map[string]any) ref.Val { return newValue(s, fields) }

func newValue(s *Schema, fields map[string]any) *value {
	return &value{schema: s, fields: fields, memo: map[string]ref.Val{}}
}

// ConvertToNative implements ref.Val.
func (v *value) ConvertToNative(t reflect.Type) (any, error) {
	if t == reflect.TypeFor[map[string]any]() {
		return v.fields, nil
	}
	return nil, fmt.Errorf("%s has no other form", v.schema.typ.TypeName())
}

// ConvertToType implements ref.Val.
func (v *value) ConvertToType(t ref.Type) ref.Val {
	if t == types.TypeType {
		return v.schema.typ
	}
	return types.NewErr("%s cannot become a %s", v.schema.typ.TypeName(), t.TypeName())
}

// Equal implements ref.Val. It compares the fields; null equals absent.
func (v *value) Equal(other ref.Val) ref.Val {
	o, ok := other.(*value)
	return types.Bool(ok && Same(v.fields, o.fields))
}

// Type implements ref.Val.
func (v *value) Type() ref.Type { return v.schema.typ }

// Value implements ref.Val. It returns the wrapper itself, from which fields are read.
func (v *value) Value() any { return v }

func read(object any, field string) ref.Val {
	v, ok := object.(*value)
	if !ok {
		return types.NewErr("%T has no field %s", object, field)
	}
	if got, ok := v.memo[field]; ok {
		return got
	}
	got := wrap(v.schema.fields[field], v.fields[field])
	v.memo[field] = got
	return got
}

func present(object any, field string) bool {
	v, ok := object.(*value)
	return ok && v.fields[field] != nil
}

// wrap converts a JSON value for the language. The value must have the schema's form, or be null.
func wrap(s *Schema, v any) ref.Val {
	switch s.form {
	case objectForm:
		fields, _ := v.(map[string]any)
		return newValue(s, fields)
	case listForm:
		items, _ := v.([]any)
		out := make([]ref.Val, len(items))
		for i, item := range items {
			out[i] = wrap(s.elem, item)
		}
		return types.NewRefValList(types.DefaultTypeAdapter, out)
	case mapForm:
		items, _ := v.(map[string]any)
		out := make(map[ref.Val]ref.Val, len(items))
		for key, item := range items {
			out[types.String(key)] = wrap(s.elem, item)
		}
		return types.NewRefValMap(types.DefaultTypeAdapter, out)
	case stringForm:
		text, _ := v.(string)
		return types.String(text)
	case boolForm:
		yes, _ := v.(bool)
		return types.Bool(yes)
	case intForm:
		if f, ok := v.(float64); ok {
			return types.Int(f)
		}
		n, _ := v.(int64)
		return types.Int(n)
	case numberForm:
		if n, ok := v.(int64); ok {
			return types.Double(n)
		}
		f, _ := v.(float64)
		return types.Double(f)
	case anyForm:
	}
	if v == nil {
		return types.NullValue
	}
	return types.DefaultTypeAdapter.NativeToValue(v)
}

// Plain converts a value of the language to JSON: strings, bools, int64, float64, lists and maps.
func Plain(v ref.Val) (any, error) {
	switch x := v.(type) {
	case *value:
		return x.fields, nil
	case types.String:
		return string(x), nil
	case types.Bool:
		return bool(x), nil
	case types.Int:
		return int64(x), nil
	case types.Double:
		return float64(x), nil
	case *types.Err:
		return nil, x
	case traits.Lister:
		out := []any{}
		for it := x.Iterator(); it.HasNext() == types.True; {
			item, err := Plain(it.Next())
			if err != nil {
				return nil, err
			}
			out = append(out, item)
		}
		return out, nil
	case traits.Mapper:
		out := map[string]any{}
		for it := x.Iterator(); it.HasNext() == types.True; {
			key := it.Next()
			item, err := Plain(x.Get(key))
			if err != nil {
				return nil, err
			}
			out[fmt.Sprint(key.Value())] = item
		}
		return out, nil
	}
	return nil, fmt.Errorf("%s has no form in JSON", v.Type().TypeName())
}

// Say converts a value to a text for people.
func Say(v ref.Val) string {
	switch x := v.(type) {
	case types.String:
		return string(x)
	case traits.Lister:
		var out []string
		for it := x.Iterator(); it.HasNext() == types.True; {
			out = append(out, Say(it.Next()))
		}
		return strings.Join(out, ", ")
	}
	if text, ok := v.ConvertToType(types.StringType).(types.String); ok {
		return string(text)
	}
	return fmt.Sprint(v.Value())
}

// Same reports whether two JSON values are equal. Null equals absent, and whole numbers are equal in any notation.
func Same(a, b any) bool {
	switch x := a.(type) {
	case map[string]any:
		y, ok := b.(map[string]any)
		if !ok {
			return false
		}
		for key := range x {
			if !Same(x[key], y[key]) {
				return false
			}
		}
		for key := range y {
			if x[key] == nil && y[key] != nil {
				return false
			}
		}
		return true
	case []any:
		y, ok := b.([]any)
		return ok && slices.EqualFunc(x, y, Same)
	case int64:
		if y, ok := b.(float64); ok {
			return float64(x) == y
		}
	case float64:
		if y, ok := b.(int64); ok {
			return x == float64(y)
		}
	}
	return a == b
}

// Path is the path of a field in an object.
type Path []step

// step is one step of a path: an index, or a key.
type step struct {
	key     string
	index   int
	isIndex bool
}

// ParsePath parses paths such as spec.tasks[0].name and metadata.labels["a.b/c"].
func ParsePath(path string) (Path, error) {
	var out Path
	for rest := path; rest != ""; {
		if inside, found := strings.CutPrefix(rest, "["); found {
			if quoted, err := strconv.QuotedPrefix(inside); err == nil {
				key, _ := strconv.Unquote(quoted)
				after, closed := strings.CutPrefix(inside[len(quoted):], "]")
				if !closed {
					return nil, fmt.Errorf("%q is no path such as spec.tasks[0].name", path)
				}
				out, rest = append(out, step{key: key}), after
				continue
			}
			digits, after, closed := strings.Cut(inside, "]")
			index, err := strconv.ParseUint(digits, 10, 31)
			if err != nil || !closed {
				return nil, fmt.Errorf("%q is no path such as spec.tasks[0].name", path)
			}
			out, rest = append(out, step{index: int(index), isIndex: true}), after
			continue
		}
		if len(out) > 0 {
			rest = strings.TrimPrefix(rest, ".")
		}
		end := strings.IndexAny(rest, ".[")
		if end < 0 {
			end = len(rest)
		}
		if end == 0 {
			return nil, fmt.Errorf("%q is no path such as spec.tasks[0].name", path)
		}
		out, rest = append(out, step{key: rest[:end]}), rest[end:]
	}
	return out, nil
}

// Get returns the value at the path, or nil.
func (path Path) Get(root any) any {
	for _, p := range path {
		switch at := root.(type) {
		case []any:
			if !p.isIndex || p.index >= len(at) {
				return nil
			}
			root = at[p.index]
		case map[string]any:
			root = at[p.key]
		default:
			return nil
		}
	}
	return root
}

// Key returns the path of a field below this path.
func (path Path) Key(key string) Path { return append(slices.Clone(path), step{key: key}) }

// Index returns the path of an element below this path.
func (path Path) Index(index int) Path {
	return append(slices.Clone(path), step{index: index, isIndex: true})
}

// String formats the path in the form that ParsePath reads.
func (path Path) String() string {
	out := ""
	for _, p := range path {
		if p.isIndex {
			out += fmt.Sprintf("[%d]", p.index)
			continue
		}
		out = JoinPath(out, p.key)
	}
	return out
}

// JoinPath appends a key to a path.
func JoinPath(path, key string) string {
	if strings.ContainsAny(key, ".[]/ ") || key == "" {
		return path + "[" + strconv.Quote(key) + "]"
	}
	return strings.TrimPrefix(path+"."+key, ".")
}

// Put returns a copy of root with a value at the path. It creates missing objects on the path. It does not change root.
func Put(root any, path Path, v any) (any, error) {
	if len(path) == 0 {
		return v, nil
	}
	p := path[0]
	if p.isIndex {
		list, _ := root.([]any)
		if p.index >= len(list) {
			return nil, fmt.Errorf("there is no element %d in a list of %d", p.index, len(list))
		}
		below, err := Put(list[p.index], path[1:], v)
		if err != nil {
			return nil, err
		}
		list = slices.Clone(list)
		list[p.index] = below
		return list, nil
	}
	fields, ok := root.(map[string]any)
	if root != nil && !ok {
		return nil, fmt.Errorf("%s has no field %s", describe(root), p.key)
	}
	below, err := Put(fields[p.key], path[1:], v)
	if err != nil {
		return nil, err
	}
	if fields = maps.Clone(fields); fields == nil {
		fields = map[string]any{}
	}
	fields[p.key] = below
	return fields, nil
}

// Strings returns a list of strings.
func Strings(items []string) ref.Val { return types.NewStringList(types.DefaultTypeAdapter, items) }

// Roots contains the variables of one evaluation.
type Roots map[string]ref.Val

// ResolveName implements cel.Activation.
func (r Roots) ResolveName(name string) (any, bool) {
	v, ok := r[name]
	return v, ok
}

// Parent implements cel.Activation.
func (r Roots) Parent() cel.Activation { return nil }
