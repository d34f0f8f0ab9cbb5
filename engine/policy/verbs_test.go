package policy

import (
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	policyv1alpha1 "github.com/celsius-scheduler/celsius/crds/policy/v1alpha1"
	"github.com/celsius-scheduler/celsius/engine/policy/kinds"
	"github.com/celsius-scheduler/celsius/rules"
)

// stepOfAPI returns the descriptions of a step's keys in the API's manifest.
func stepOfAPI(t *testing.T) map[string]string {
	t.Helper()
	data, err := os.ReadFile("../../crds/manifests/scheduling.celsius.dev_schedulingpolicies.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var at any
	if err := yaml.Unmarshal(data, &at); err != nil {
		t.Fatal(err)
	}
	into := func(path ...string) {
		for _, key := range path {
			at = at.(map[string]any)[key]
		}
	}
	into("spec", "versions")
	at = at.([]any)[0]
	into("schema", "openAPIV3Schema", "properties", "spec", "properties", "actions", "items", "properties", "steps", "items", "properties")
	out := map[string]string{}
	for name, property := range at.(map[string]any) {
		out[name], _ = property.(map[string]any)["description"].(string)
	}
	return out
}

// The API has a field of the right type for each parameter that verbs declare. Its description names the verbs that have it, and its words.
// All other fields of the API belong to a known verb.
func TestTheAPIHasWhatVerbsDeclare(t *testing.T) {
	t.Parallel()
	api := stepOfAPI(t)
	types := map[string]reflect.Type{}
	step := reflect.TypeFor[policyv1alpha1.Step]()
	for field := range step.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		types[name] = field.Type
	}
	having := map[string][]string{}
	for _, v := range Verbs() {
		for _, p := range v.Parameters {
			having[p.Name] = append(having[p.Name], v.Name)
			want, words := kindInAPI(p.Kind)
			if types[p.Name] != want {
				t.Errorf("%s of %s is a %v in the API, want %v", p.Name, v.Name, types[p.Name], want)
			}
			for _, word := range words {
				if !strings.Contains(api[p.Name], word) {
					t.Errorf("the API's description of %s does not name %s: %s", p.Name, word, api[p.Name])
				}
			}
		}
	}
	theAPINames(t, api, having)
}

// theAPINames checks that the descriptions of a step's keys name the verbs that have them.
func theAPINames(t *testing.T, api map[string]string, having map[string][]string) {
	t.Helper()
	for name, text := range api {
		before, _, _ := strings.Cut(text, ": ")
		verbs := strings.FieldsFunc(before, func(r rune) bool { return r == ',' || r == ' ' })
		switch {
		case name == "verb":
			for _, v := range namesOf(Verbs()) {
				if !strings.Contains(text, v+" ") {
					t.Errorf("the API's description of verb does not name %s", v)
				}
			}
		case before == "No verb yet":
			if len(having[name]) > 0 {
				t.Errorf("the API says that no verb has %s yet; these do: %v", name, having[name])
			}
		case before == "All verbs":
			if !slices.Equal(having[name], namesOf(Verbs())) {
				t.Errorf("the API says that all verbs have %s; these do: %v", name, having[name])
			}
		default:
			if !slices.Equal(verbs, having[name]) {
				t.Errorf("the API says that %v have %s; these do: %v", verbs, name, having[name])
			}
		}
	}
}

// kindInAPI returns the Go type in the API for a type of parameter, and its words.
func kindInAPI(k kinds.Kind) (reflect.Type, []string) {
	switch k := k.(type) {
	case kinds.Flag:
		return reflect.TypeFor[*bool](), nil
	case kinds.Words:
		return reflect.TypeFor[[]string](), k.Of
	case kinds.Word:
		return reflect.TypeFor[string](), k.Of
	case kinds.Count:
		return reflect.TypeFor[*runtime.RawExtension](), nil
	}
	return reflect.TypeFor[string](), nil
}

func namesOf(verbs []Verb) []string {
	var out []string
	for _, v := range verbs {
		out = append(out, v.Name)
	}
	return out
}

// Some verb evaluates each section.
func TestEverySiteIsAsked(t *testing.T) {
	t.Parallel()
	for _, s := range Sites() {
		if !slices.ContainsFunc(Verbs(), func(v Verb) bool { return v.Asks(s.Name) }) {
			t.Errorf("no verb asks the rows of %s", s.Name)
		}
	}
}

// The declarations of verbs are valid: their sites and reads exist, defaults compile, and keys are distinct.
func TestVerbsAreDeclaredSoundly(t *testing.T) {
	t.Parallel()
	for _, v := range Verbs() {
		p := compiled(t, "apiVersion: scheduling.celsius.dev/v1alpha1\nkind: SchedulingPolicy\nmetadata: {name: x}\nspec:\n  pipeline: [a]\n  "+
			"actions: [{name: a, steps: [{verb: "+v.Name+"}]}]\n")
		step := p.Actions[0].Steps[0]
		if step.Verb.Name != v.Name {
			t.Errorf("a step of %s is one of %s", v.Name, step.Verb.Name)
		}
		for _, site := range v.Sites {
			if SiteNamed(site) == nil {
				t.Errorf("%s asks %s, which is no site", v.Name, site)
			}
		}
		seen := map[string]bool{}
		for _, parameter := range v.Parameters {
			if seen[parameter.Name] {
				t.Errorf("%s has two parameters %s", v.Name, parameter.Name)
			}
			seen[parameter.Name] = true
		}
	}
	for _, key := range []string{KeyWhen, KeyJobs, KeyTasks, KeyVote, KeyGates, KeyCommit, KeyTurn, KeyOnNoNode, KeyAwaitPods} {
		if !slices.ContainsFunc(Verbs(), func(v Verb) bool {
			return slices.ContainsFunc(v.Keys(), func(k rules.Key) bool { return k.Name == key })
		}) {
			t.Errorf("no verb has %s", key)
		}
	}
}
