package schemas

import (
	"encoding/json"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/celsius-scheduler/celsius/engine/sim/manifest"
)

// world returns the schema of the short format of simulate.
func world() *Schema {
	s := ofType(reflect.TypeFor[manifest.ShortWorld](), 0)
	s.Description = "A whole cluster in a few lines, for celsius simulate."
	s.Properties["apiVersion"] = &Schema{Type: "string", Values: Values{Const: manifest.WorldVersion}}
	s.Properties["kind"] = &Schema{Type: "string", Values: Values{Const: "World"}}
	s.Required = []string{"apiVersion", "kind"}
	return s
}

// deepest limits the depth of types that contain themselves.
const deepest = 20

// ofType returns the schema of what encoding/json reads into a type. As there, null equals an absent value.
func ofType(t reflect.Type, depth int) *Schema {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t {
	case reflect.TypeFor[resource.Quantity](), reflect.TypeFor[intstr.IntOrString]():
		return &Schema{Type: []string{"string", "number"}}
	case reflect.TypeFor[metav1.Time](), reflect.TypeFor[metav1.MicroTime](), reflect.TypeFor[metav1.Duration]():
		return text()
	}
	if _, own := reflect.TypeAssert[json.Unmarshaler](reflect.New(t)); own || depth > deepest {
		return &Schema{}
	}
	switch t.Kind() {
	case reflect.Struct:
		fields := map[string]*Schema{}
		structFields(t, depth, fields)
		return object("", fields)
	case reflect.Map:
		return mapOf(ofType(t.Elem(), depth+1))
	case reflect.Slice:
		return listOf(ofType(t.Elem(), depth+1))
	case reflect.String:
		return text()
	case reflect.Bool:
		return boolean()
	case reflect.Int, reflect.Int32, reflect.Int64:
		return &Schema{Type: "integer"}
	case reflect.Float64:
		return &Schema{Type: "number"}
	default:
		return &Schema{}
	}
}

// structFields adds a struct's own fields first, so that they hide embedded ones, as in encoding/json.
func structFields(t reflect.Type, depth int, fields map[string]*Schema) {
	var embedded []reflect.Type
	for f := range t.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "":
			embedded = append(embedded, f.Type)
		case f.IsExported() && name != "-" && name != "" && fields[name] == nil:
			fields[name] = ofType(f.Type, depth+1)
		}
	}
	for _, e := range embedded {
		structFields(e, depth, fields)
	}
}
