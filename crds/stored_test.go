package crds_test

import (
	"context"
	"encoding/json"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	crdvalidation "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	schemacel "k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1"
	kubejson "k8s.io/apimachinery/pkg/util/json"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/yaml"

	"github.com/celsius-scheduler/celsius/crds"
	"github.com/celsius-scheduler/celsius/crds/decode"
)

// crdsByKind reads the manifests as the API server does, and has it judge them: rules that cost too much, say.
func crdsByKind(t testing.TB) map[string]*apiextensions.JSONSchemaProps {
	t.Helper()
	files, err := crds.Manifests.ReadDir("manifests")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]*apiextensions.JSONSchemaProps{}
	for _, f := range files {
		raw, err := crds.Manifests.ReadFile("manifests/" + f.Name())
		if err != nil {
			t.Fatal(err)
		}
		crd, internal := &apiextensionsv1.CustomResourceDefinition{}, &apiextensions.CustomResourceDefinition{}
		if err := yaml.Unmarshal(raw, crd); err != nil {
			t.Fatalf("%s: %v", f.Name(), err)
		}
		apiextensionsv1.SetDefaults_CustomResourceDefinition(crd)
		apiextensionsv1.SetDefaults_CustomResourceDefinitionSpec(&crd.Spec)
		if err := apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(crd, internal, nil); err != nil {
			t.Fatalf("%s: %v", f.Name(), err)
		}
		internal.Status.StoredVersions = []string{crd.Spec.Versions[0].Name}
		for _, wrong := range crdvalidation.ValidateCustomResourceDefinition(context.Background(), internal) {
			t.Errorf("%s: %v", f.Name(), wrong)
		}
		schema := internal.Spec.Validation
		if schema == nil {
			schema = internal.Spec.Versions[0].Schema
		}
		out[crd.Spec.Names.Kind] = schema.OpenAPIV3Schema
	}
	return out
}

// judge is what the API server does to a value of one schema before it stores it.
type judge struct {
	structural *structuralschema.Structural
	structure  validation.SchemaCreateValidator
	rules      *schemacel.Validator
}

func newJudge(t testing.TB, s *apiextensions.JSONSchemaProps) judge {
	t.Helper()
	structural, err := structuralschema.NewStructural(s)
	if err != nil {
		t.Fatal(err)
	}
	structure, _, err := validation.NewSchemaValidator(s)
	if err != nil {
		t.Fatal(err)
	}
	return judge{structural, structure, schemacel.NewValidator(structural, false, celconfig.PerCallLimit)}
}

// stores says whether a value is stored; it is as it is stored then.
func (j judge) stores(value any) bool {
	defaulting.PruneNonNullableNullsWithoutDefaults(value, j.structural)
	pruning.Prune(value, j.structural, false)
	defaulting.Default(value, j.structural)
	if len(validation.ValidateCustomResource(nil, value, j.structure)) > 0 {
		return false
	}
	if j.rules == nil {
		return true
	}
	errs, _ := j.rules.Validate(context.Background(), nil, j.structural, value, nil, celconfig.RuntimeCELCostBudget)
	return len(errs) == 0
}

// oddities are values to put into any field: those at the edges of what types of Kubernetes decode.
func oddities() []any {
	out := []any{
		nil, true, false, int64(0), int64(-1), int64(math.MaxInt32), int64(math.MaxInt32) + 1, int64(math.MinInt32) - 1, int64(math.MaxInt64),
		1.5, 1e3, 1e300, -1e-300, float64(1 << 62),
		[]any{},
		map[string]any{},
		[]any{nil},
		map[string]any{"a": nil},
	}
	for _, text := range []string{
		"", "a", " 1 ", "1", "-1", "+.5", "5.", "1e3", "1E", "1e", "1e1.5", "1e+.5", "1e9999", "1e-99999999", "1Ki", "1ki", "1KiB", "0x10", "NaN",
		"1_0", strings.Repeat("9", 100), "1\n", "१",
		"banana", "1m", "1h1m1s", "1m1h", "-5s", ".5h", "1.h", "1d", "9999999h", "2562047h47m16.854775807s", "2562047h47m16.854775808s", "1h ",
		"0", "1µs", strings.Repeat("1h", 40),
		"2024-01-01T00:00:00Z", "2024-01-01t00:00:00z", "2024-01-01T00:00:00", "2024-02-30T00:00:00Z", "2024-01-01T24:00:00Z",
		"2024-01-01T00:00:60Z", "2024-01-01T00:00:00+23:59",
		"2024-01-01T00:00:00+99:99", "2024-01-01T00:00:00,5Z", "2024-01-01T00:00:00.123456789Z", "2024-01-01", "0000-01-01T00:00:00Z",
		"true", "null", "a=b", "/a", "https://a",
	} {
		out = append(out, text)
	}
	var within []any
	for _, x := range out {
		within = append(within, []any{x}, map[string]any{"a": x})
	}
	return append(out, within...)
}

// decodable says why a value that is stored cannot be decoded into its Go type.
func decodable(value any, t reflect.Type) error {
	data, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return decode.JSON(data, reflect.New(t).Interface())
}

// TestWhatIsStoredDecodes puts odd values into every field of our kinds, one by one: the schema refuses them, or the Go type decodes them.
func TestWhatIsStoredDecodes(t *testing.T) {
	stored := map[string]int{}
	for kind, s := range crdsByKind(t) {
		root := reflect.TypeOf(samples()[kind])
		judged := map[string]bool{}
		eachField(t, s, root, kind, func(path string, s *apiextensions.JSONSchemaProps, of reflect.Type) {
			text, err := json.Marshal(s)
			if err != nil {
				t.Fatal(err)
			}
			alike := of.String() + string(text)
			if judged[alike] {
				return // containers come in three lists
			}
			judged[alike] = true
			j := newJudge(t, s)
			for _, value := range oddities() {
				value = kubeCopy(t, value)
				if !j.stores(value) {
					continue
				}
				stored[s.Type]++
				if err := decodable(value, of); err != nil {
					t.Errorf("%s: %#v is stored, and cannot be decoded: %v", path, value, err)
				}
			}
		})
		t.Logf("%s: %d different fields", kind, len(judged))
	}
	for _, typ := range []string{"string", "integer", "boolean", "array", "object", ""} {
		if stored[typ] == 0 {
			t.Errorf("no value was stored in a field of type %q: the test shows nothing", typ)
		}
	}
}

// kubeCopy is a value of its own, as the API server reads it.
func kubeCopy(t testing.TB, value any) any {
	t.Helper()
	data, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	var out any
	if err := kubejson.Unmarshal(data, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// eachField visits the schemas below a kind's metadata, each with its Go type.
func eachField(t testing.TB, s *apiextensions.JSONSchemaProps, of reflect.Type, path string,
	visit func(string, *apiextensions.JSONSchemaProps, reflect.Type),
) {
	t.Helper()
	for of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	if strings.Contains(path, ".") {
		visit(path, s, of)
	}
	for _, name := range sortedKeys(s.Properties) {
		below, ok := decode.FieldType(of, name)
		if !ok {
			t.Errorf("%s.%s: %s has no such field", path, name, of)
			continue
		}
		if below == reflect.TypeFor[v1.ObjectMeta]() && !strings.Contains(path, ".") {
			continue
		}
		p := s.Properties[name]
		eachField(t, &p, below, path+"."+name, visit)
	}
	if s.Items != nil && s.Items.Schema != nil {
		eachField(t, s.Items.Schema, of.Elem(), path+"[]", visit)
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		eachField(t, s.AdditionalProperties.Schema, of.Elem(), path+"{}", visit)
	}
}

// FuzzStored changes a good object of each kind in a few places, and holds that what is stored decodes.
func FuzzStored(f *testing.F) {
	kinds := crdsByKind(f)
	judges, good := map[string]judge{}, map[string]any{}
	for kind, s := range kinds {
		judges[kind] = newJudge(f, s)
		_, good[kind] = sample(f, kind)
	}
	for seed := range uint64(300) {
		f.Add(seed)
	}
	names, odd := sortedKeys(kinds), oddities()
	f.Fuzz(func(t *testing.T, seed uint64) {
		random := rand.New(rand.NewPCG(seed, 1))
		kind := names[random.IntN(len(names))]
		value := kubeCopy(t, good[kind])
		for range 1 + random.IntN(3) {
			change(random, value, odd)
		}
		if !judges[kind].stores(value) {
			return
		}
		if err := decodable(value, reflect.TypeOf(samples()[kind]).Elem()); err != nil {
			text, _ := json.Marshal(value)
			t.Errorf("%s is stored, and cannot be decoded: %v", text, err)
		}
	})
}

// change puts an odd value somewhere below a value, but into metadata.
func change(random *rand.Rand, value any, odd []any) {
	for {
		var below any
		var put func(any)
		switch v := value.(type) {
		case map[string]any:
			keys := sortedKeys(v)
			if len(keys) == 0 {
				return
			}
			key := keys[random.IntN(len(keys))]
			if _, isRoot := v["apiVersion"]; isRoot && (key == "metadata" || key == "kind" || key == "apiVersion") {
				key = "spec"
			}
			below, put = v[key], func(x any) { v[key] = x }
		case []any:
			if len(v) == 0 {
				return
			}
			i := random.IntN(len(v))
			below, put = v[i], func(x any) { v[i] = x }
		default:
			return
		}
		switch below.(type) {
		case map[string]any, []any:
			if random.IntN(4) > 0 {
				value = below
				continue
			}
		}
		put(odd[random.IntN(len(odd))])
		return
	}
}
