package crds_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	schemacel "k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	kubejson "k8s.io/apimachinery/pkg/util/json"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/yaml"
)

// refusals returns the messages with which the API server refuses a new object that kubectl validates strictly.
func (j judge) refusals(object map[string]any) (out []string) {
	options := structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true}
	for _, path := range pruning.PruneWithOptions(object, j.structural, true, options) {
		out = append(out, fmt.Sprintf("unknown field %q", path))
	}
	defaulting.PruneNonNullableNullsWithoutDefaults(object, j.structural)
	defaulting.Default(object, j.structural)
	errs := validation.ValidateCustomResource(nil, object, j.structure)
	if len(errs) == 0 && j.rules != nil { // the API server evaluates rules only of objects with the right structure
		errs, _ = j.rules.Validate(context.Background(), nil, j.structural, object, nil, celconfig.RuntimeCELCostBudget)
	}
	for _, err := range errs {
		out = append(out, err.Error())
	}
	return out
}

// judges are the judges of whole objects, by kind.
type judges map[string]judge

func newJudges(t *testing.T) judges {
	t.Helper()
	out := judges{}
	for kind, s := range crdsByKind(t) {
		j := newJudge(t, s)
		j.rules = schemacel.NewValidator(j.structural, true, celconfig.PerCallLimit) // of whole objects, with metadata
		out[kind] = j
	}
	return out
}

// refusals returns the messages with which the API server refuses a manifest.
func (js judges) refusals(t *testing.T, manifest string) []string {
	t.Helper()
	raw, err := yaml.YAMLToJSON([]byte(manifest))
	if err != nil {
		t.Fatalf("%v:\n%s", err, manifest)
	}
	object := map[string]any{}
	if err := kubejson.Unmarshal(raw, &object); err != nil {
		t.Fatal(err)
	}
	kind, _ := object["kind"].(string)
	return js[kind].refusals(object)
}

// invalidBySchema is a manifest of samples/invalid that a schema refuses: the words of its head, the remedies, and the manifest itself.
type invalidBySchema struct {
	file           string
	says, remedies []string
	body           string
}

// readInvalid reads the manifests of samples/invalid that a schema refuses.
func readInvalid(t *testing.T) (out []invalidBySchema) {
	t.Helper()
	files, err := filepath.Glob("../samples/invalid/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		head, body, _ := strings.Cut(string(text), "\napiVersion: ")
		if !strings.Contains(head, "\n# schema: yes") {
			continue
		}
		m := invalidBySchema{file: file, body: "apiVersion: " + body}
		for line := range strings.Lines(head) {
			line = strings.TrimSpace(line)
			if words, ok := strings.CutPrefix(line, "# says: "); ok {
				m.says = append(m.says, words)
			}
			if remedy, ok := strings.CutPrefix(line, "# remedy: "); ok {
				m.remedies = append(m.remedies, strings.ReplaceAll(remedy, `\n`, "\n"))
			}
		}
		out = append(out, m)
	}
	return out
}

// TestRemediesOfSchema reads the manifests of samples/invalid that a schema refuses. The schema refuses each in the words of its head. Each
// line "# remedy: OLD => NEW" of the head changes the manifest as the message states. Then the schema accepts it.
func TestRemediesOfSchema(t *testing.T) {
	js := newJudges(t)
	for _, m := range readInvalid(t) {
		before := strings.Join(js.refusals(t, m.body), "\n")
		for _, words := range m.says {
			if !strings.Contains(before, words) {
				t.Errorf("%s: the schema does not state %q, but:\n%s", m.file, words, before)
			}
		}
		for _, remedy := range m.remedies {
			from, to, _ := strings.Cut(remedy, " =>")
			if strings.Count(m.body, from) != 1 {
				t.Errorf("%s: %q is in the manifest %d times, want once", m.file, from, strings.Count(m.body, from))
				continue
			}
			if after := js.refusals(t, strings.Replace(m.body, from, strings.TrimPrefix(to, " "), 1)); len(after) > 0 {
				t.Errorf("%s: after the remedy %q:\n%s", m.file, remedy, strings.Join(after, "\n"))
			}
		}
		if len(m.remedies) == 0 {
			t.Errorf("%s has no line # remedy: OLD => NEW", m.file)
		}
	}
}

// TestInvalidShowsEachRule checks that the manifests of samples/invalid show each message of a rule of the schemas.
func TestInvalidShowsEachRule(t *testing.T) {
	var shown []string
	for _, m := range readInvalid(t) {
		shown = append(shown, m.says...)
	}
	rules := map[string]string{}
	for kind, d := range definitions(t) {
		d.schema().each("", func(path string, s schemaNode) {
			list, _ := s["x-kubernetes-validations"].([]any)
			for _, r := range list {
				rule, _ := r.(map[string]any)
				rules[fmt.Sprint(rule["message"])] = kind + " " + path
			}
		})
	}
	for _, message := range slices.Sorted(maps.Keys(rules)) {
		if !slices.ContainsFunc(shown, func(words string) bool { return strings.Contains(words, message) }) {
			t.Errorf("%s: no manifest of samples/invalid shows %q", rules[message], message)
		}
	}
}
