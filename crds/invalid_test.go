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

// TestRemediesOfSchema reads the manifests of samples/invalid that a schema refuses. The schema refuses each in the words of its head. Each
// line "# remedy: OLD => NEW" of the head changes the manifest as the message states. Then the schema accepts it. The manifests show each
// message of a rule of the schemas.
func TestRemediesOfSchema(t *testing.T) {
	judges, shown := map[string]judge{}, []string(nil)
	for kind, s := range crdsByKind(t) {
		j := newJudge(t, s)
		j.rules = schemacel.NewValidator(j.structural, true, celconfig.PerCallLimit) // of whole objects, with metadata
		judges[kind] = j
	}
	refusals := func(text string) []string {
		t.Helper()
		raw, err := yaml.YAMLToJSON([]byte(text))
		if err != nil {
			t.Fatalf("%v:\n%s", err, text)
		}
		object := map[string]any{}
		if err := kubejson.Unmarshal(raw, &object); err != nil {
			t.Fatal(err)
		}
		return judges[object["kind"].(string)].refusals(object)
	}
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
		body, remedies := "apiVersion: "+body, 0
		before := strings.Join(refusals(body), "\n")
		for line := range strings.Lines(head) {
			line = strings.TrimSpace(line)
			if words, ok := strings.CutPrefix(line, "# says: "); ok {
				shown = append(shown, words)
				if !strings.Contains(before, words) {
					t.Errorf("%s: the schema does not state %q, but:\n%s", file, words, before)
				}
			}
			remedy, ok := strings.CutPrefix(line, "# remedy: ")
			if !ok {
				continue
			}
			remedies++
			from, to, _ := strings.Cut(strings.ReplaceAll(remedy, `\n`, "\n"), " =>")
			if strings.Count(body, from) != 1 {
				t.Errorf("%s: %q is in the manifest %d times, want once", file, from, strings.Count(body, from))
				continue
			}
			if after := refusals(strings.Replace(body, from, strings.TrimPrefix(to, " "), 1)); len(after) > 0 {
				t.Errorf("%s: after the remedy %q:\n%s", file, remedy, strings.Join(after, "\n"))
			}
		}
		if remedies == 0 {
			t.Errorf("%s has no line # remedy: OLD => NEW", file)
		}
	}
	rules := map[string]string{}
	for kind, s := range definitions(t) {
		s.schema().each("", func(path string, s schemaNode) {
			list, _ := s["x-kubernetes-validations"].([]any)
			for _, r := range list {
				rules[r.(map[string]any)["message"].(string)] = kind + " " + path
			}
		})
	}
	for _, message := range slices.Sorted(maps.Keys(rules)) {
		if !slices.ContainsFunc(shown, func(words string) bool { return strings.Contains(words, message) }) {
			t.Errorf("%s: no manifest of samples/invalid shows %q", rules[message], message)
		}
	}
}
