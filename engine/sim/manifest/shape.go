package manifest

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/celsius-scheduler/celsius/crds/decode"
	"github.com/celsius-scheduler/celsius/rules/source"
)

// shape checks documents against the JSON form of Go types. It reports unknown fields and wrong types, each at its place, all at once. A
// document without issues can be decoded.
type shape struct {
	issues *source.Issues
	known  map[reflect.Type]structFields
}

// structFields contains the JSON fields of a struct, including embedded ones.
type structFields struct {
	names []string
	types map[string]reflect.Type
}

func newShape(issues *source.Issues) *shape {
	return &shape{issues: issues, known: map[reflect.Type]structFields{}}
}

// decode checks v against the type of into, which is a pointer, and fills it. It reports whether there was no issue.
func (s *shape) decode(v source.Value, into any) bool {
	before := len(*s.issues)
	s.check(v, reflect.TypeOf(into).Elem())
	if len(*s.issues) > before {
		return false
	}
	err := decoded(v, into)
	if err != nil {
		s.add(v.Issuef("", "cannot be read: %v", err))
	}
	return err == nil
}

// decoded decodes a value into an object, and ignores fields that the object does not have.
func decoded(v source.Value, into any) error {
	text, err := json.Marshal(v.Any())
	if err != nil {
		return fmt.Errorf("write JSON: %w", err)
	}
	if decode.Suspicious(text) { // a quantity with a long exponent would take hours
		if _, err := decode.Check(text, reflect.TypeOf(into)); err != nil {
			return err //nolint:wrapcheck // it names the field
		}
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("read JSON: %w", err)
	}
	return nil
}

func (s *shape) add(i source.Issue) { *s.issues = append(*s.issues, i) }

// check compares v and t recursively. A null is a missing field, as in Kubernetes.
func (s *shape) check(v source.Value, t reflect.Type) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if !v.Exists() || v.Kind() == source.Null || s.special(v, t) {
		return
	}
	switch t.Kind() {
	case reflect.Struct:
		f := s.fields(t)
		for _, field := range v.Fields(f.names, s.issues) {
			if ft, ok := f.types[field.Name]; ok {
				s.check(field.Value, ft)
			}
		}
	case reflect.Map:
		for _, field := range v.Fields(nil, s.issues) {
			s.check(field.Value, t.Elem())
		}
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			v.String(s.issues)
			return
		}
		for _, item := range v.Items(s.issues) {
			s.check(item, t.Elem())
		}
	default:
		s.scalar(v, t)
	}
}

func (s *shape) scalar(v source.Value, t reflect.Type) {
	switch t.Kind() {
	case reflect.String:
		v.String(s.issues)
	case reflect.Bool:
		v.Bool(s.issues)
	case reflect.Int, reflect.Int32, reflect.Int64:
		n := v.Int(s.issues)
		if t.Kind() == reflect.Int32 && (n > math.MaxInt32 || n < math.MinInt32) {
			s.add(v.Issuef("", "must fit in 32 bits, found %d", n))
		}
	case reflect.Float64:
		v.Float(s.issues)
	default: // interfaces and similar types accept any value
	}
}

// special handles types with their own JSON decoding.
func (s *shape) special(v source.Value, t reflect.Type) bool {
	switch t {
	case reflect.TypeFor[resource.Quantity]():
		s.quantity(v)
	case reflect.TypeFor[metav1.Time](), reflect.TypeFor[metav1.MicroTime]():
		s.timestamp(v)
	case reflect.TypeFor[metav1.Duration]():
		v.Duration(s.issues)
	case reflect.TypeFor[intstr.IntOrString]():
		if _, ok := v.Any().(int64); !ok {
			v.String(s.issues)
		}
	default:
		return s.trial(v, t)
	}
	return true
}

// trial decodes a value whose type has its own JSON decoding.
func (s *shape) trial(v source.Value, t reflect.Type) bool {
	target := reflect.New(t)
	reader, ok := reflect.TypeAssert[json.Unmarshaler](target)
	if !ok {
		return false
	}
	text, err := json.Marshal(v.Any())
	if err == nil {
		err = reader.UnmarshalJSON(text)
	}
	if err != nil {
		s.add(v.Issuef("", "cannot be read: %v", err))
	}
	return true
}

func (s *shape) quantity(v source.Value) {
	var text string
	switch x := v.Any().(type) {
	case string:
		text = x
	case int64, float64:
		text = fmt.Sprint(x)
	default:
		v.String(s.issues)
		return
	}
	q, err := decode.Quantity(text)
	switch {
	case err != nil:
		s.add(v.Issuef("", "%v, found %q", err, shortened(text)))
	case q.Sign() < 0:
		s.add(v.Issuef("", "must not be negative, found %s", text))
	}
}

// shortened returns the beginning of a text that is too long for a message.
func shortened(text string) string {
	if len(text) <= decode.MaxQuantityLength {
		return text
	}
	return text[:decode.MaxQuantityLength] + "…"
}

func (s *shape) timestamp(v source.Value) {
	before := len(*s.issues)
	text := v.String(s.issues)
	if len(*s.issues) > before {
		return
	}
	if _, err := time.Parse(time.RFC3339, text); err != nil {
		s.add(v.Issuef("write it as 2026-01-31T12:00:00Z", "must be a time, found %q", text))
	}
}

func (s *shape) fields(t reflect.Type) structFields {
	if f, ok := s.known[t]; ok {
		return f
	}
	f := structFields{types: map[string]reflect.Type{}}
	f.collect(t)
	s.known[t] = f
	return f
}

// collect adds a struct's own fields first, so that they hide embedded ones, as in encoding/json.
func (f *structFields) collect(t reflect.Type) {
	var embedded []reflect.Type
	for field := range t.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case field.Anonymous && name == "":
			embedded = append(embedded, field.Type)
			continue
		case !field.IsExported() || name == "-":
			continue
		case name == "":
			name = field.Name
		}
		if _, hidden := f.types[name]; !hidden {
			f.names = append(f.names, name)
			f.types[name] = field.Type
		}
	}
	for _, e := range embedded {
		for e.Kind() == reflect.Pointer {
			e = e.Elem()
		}
		f.collect(e)
	}
}
