package main

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	batchv1alpha1 "github.com/celsius-scheduler/celsius/crds/batch/v1alpha1"
	busv1alpha1 "github.com/celsius-scheduler/celsius/crds/bus/v1alpha1"
	"github.com/celsius-scheduler/celsius/crds/decode"
	flowv1alpha1 "github.com/celsius-scheduler/celsius/crds/flow/v1alpha1"
	nodeinfov1alpha1 "github.com/celsius-scheduler/celsius/crds/nodeinfo/v1alpha1"
	policyv1alpha1 "github.com/celsius-scheduler/celsius/crds/policy/v1alpha1"
	schedulingv1beta1 "github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
)

const preserveUnknown = "x-kubernetes-preserve-unknown-fields"

// goType is the Go type that a kind is decoded into.
func goType(kind string) (reflect.Type, error) {
	for _, object := range []any{
		batchv1alpha1.CronJob{},
		batchv1alpha1.Job{},
		busv1alpha1.Command{},
		flowv1alpha1.JobFlow{},
		flowv1alpha1.JobTemplate{},
		nodeinfov1alpha1.Numatopology{},
		policyv1alpha1.SchedulingPolicy{},
		schedulingv1beta1.PodGroup{},
		schedulingv1beta1.Queue{},
	} {
		if t := reflect.TypeOf(object); t.Name() == kind {
			return t, nil
		}
	}
	return nil, fmt.Errorf("kind %s has no Go type here", kind)
}

// strict has a schema refuse what its Go type cannot decode: controller-gen writes down the JSON type of a
// type that decodes itself, and not which of its values there are. A type of which nothing is known here is an error.
func strict(schema map[string]any, t reflect.Type, path string) error {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	items, isList := schema["items"].(map[string]any)
	values, isMap := schema["additionalProperties"].(map[string]any)
	kind := t.Kind()
	switch {
	case strictLeaf(schema, t), strictScalar(schema, kind):
		return nil
	case kind == reflect.Struct:
		return strictStruct(schema, t, path)
	case kind == reflect.Slice && isList:
		return strict(items, t.Elem(), path+"[]")
	case kind == reflect.Map && isMap:
		return strict(values, t.Elem(), path+"{}")
	case kind == reflect.Map && schema["type"] == "object" && t.Elem() == reflect.TypeFor[runtime.RawExtension]():
		return nil
	}
	return fmt.Errorf("%s: it is not known what of %v a %s cannot decode; add it to strict", path, schema["type"], t)
}

// strictScalar says whether a schema lets nothing pass that the Go kind cannot hold. The API server refuses what is beyond 64 bits.
func strictScalar(schema map[string]any, kind reflect.Kind) bool {
	is := map[reflect.Kind]string{
		reflect.String: "string", reflect.Bool: "boolean", reflect.Int32: "integer", reflect.Int: "integer", reflect.Int64: "integer",
	}[kind]
	return is != "" && schema["type"] == is && (schema["format"] == "int32") == (kind == reflect.Int32)
}

func strictStruct(schema map[string]any, t reflect.Type, path string) error {
	properties, _ := schema["properties"].(map[string]any)
	if schema[preserveUnknown] == true {
		// What is kept is decoded, so that it has to be described.
		if properties == nil {
			properties = map[string]any{}
			schema["properties"] = properties
		}
		addMissing(properties, t)
	}
	for name, p := range properties {
		property, ok := p.(map[string]any)
		of, known := decode.FieldType(t, name)
		if !ok || !known {
			return fmt.Errorf("%s.%s: %s has no such field", path, name, t)
		}
		if of == reflect.TypeFor[metav1.ObjectMeta]() && !strings.Contains(path, ".") {
			continue // the API server decodes that itself
		}
		if err := strict(property, of, path+"."+name); err != nil {
			return err
		}
	}
	return nil
}

// strictLeaf knows the types that decode themselves.
func strictLeaf(schema map[string]any, t reflect.Type) (known bool) {
	switch t {
	case reflect.TypeFor[resource.Quantity]():
		schema["pattern"] = fmt.Sprintf(`^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]{1,%d})?$`,
			decode.MaxExponentDigits)
		schema["maxLength"] = decode.MaxQuantityLength
	case reflect.TypeFor[metav1.Duration]():
		const longest = 64 // what a rule costs depends on it
		schema["maxLength"] = longest
		addRule(schema, "duration(self) == duration(self)", "must be a duration such as 90s or 1h30m")
	case reflect.TypeFor[metav1.Time](), reflect.TypeFor[metav1.MicroTime]():
		// The format date-time lets other spellings pass than Go's decoder, and, without a rule that reads it, a list.
		schema["format"] = "date-time"
		addRule(schema, "self >= timestamp('0001-01-01T00:00:00Z')", "must be a time such as 2006-01-02T15:04:05Z")
		schema["pattern"] = `^[0-9]{4}-[0-9]{2}-[0-9]{2}T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]` +
			`(\.[0-9]{1,9})?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$`
	case reflect.TypeFor[intstr.IntOrString]():
		schema["minimum"], schema["maximum"] = math.MinInt32, math.MaxInt32
	case reflect.TypeFor[runtime.RawExtension](), reflect.TypeFor[metav1.FieldsV1]():
		// They take whatever there is.
	default:
		return false
	}
	return true
}

func addRule(schema map[string]any, rule, message string) {
	rules, _ := schema["x-kubernetes-validations"].([]any)
	has := func(r any) bool {
		m, _ := r.(map[string]any)
		return m["rule"] == rule
	}
	if !slices.ContainsFunc(rules, has) {
		schema["x-kubernetes-validations"] = append(rules, map[string]any{"rule": rule, "message": message})
	}
}

// addMissing describes the fields of a struct that its schema leaves out.
func addMissing(properties map[string]any, t reflect.Type) {
	for f := range t.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name != "" && properties[name] == nil {
			properties[name] = describedBy(f.Type)
		}
	}
}

// describedBy is the schema of a simple type.
func describedBy(t reflect.Type) map[string]any {
	nullable := t.Kind() == reflect.Pointer
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	schema := map[string]any{}
	switch {
	case t == reflect.TypeFor[metav1.Time]():
		schema["type"], nullable = "string", true // programs write null
	case t == reflect.TypeFor[metav1.FieldsV1]():
		schema["type"], schema[preserveUnknown] = "object", true
	case t.Kind() == reflect.Struct:
		properties := map[string]any{}
		addMissing(properties, t)
		schema["type"], schema["properties"] = "object", properties
	case t.Kind() == reflect.Slice:
		schema["type"], schema["items"] = "array", describedBy(t.Elem())
	case t.Kind() == reflect.Map:
		schema["type"], schema["additionalProperties"] = "object", describedBy(t.Elem())
	case t.Kind() == reflect.Bool:
		schema["type"] = "boolean"
	case t.Kind() == reflect.Int64:
		schema["type"], schema["format"] = "integer", "int64"
	default:
		schema["type"] = "string"
	}
	if nullable {
		schema["nullable"] = true
	}
	return schema
}
