package rules

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/operators"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apiserver/pkg/cel/environment"
)

// leftOut contains the functions of the base environment of Kubernetes that the dialect does not have, with the reason.
var leftOut = map[string]string{
	"path":           "authorizer: a row asks no API server",
	"group":          "authorizer",
	"resource":       "authorizer",
	"subresource":    "authorizer",
	"namespace":      "authorizer",
	"name":           "authorizer, and names of formats are not asked for: validate suffices",
	"serviceAccount": "authorizer",
	"check":          "authorizer",
	"allowed":        "authorizer",
	"reason":         "authorizer",
	"error":          "authorizer",
	"errored":        "authorizer",
	"fieldSelector":  "authorizer",
	"labelSelector":  "authorizer",
}

// TestKubernetesOptions checks that authors find everything that ValidatingAdmissionPolicy has: each function, overload and macro of the
// base environment of Kubernetes.
func TestKubernetesOptions(t *testing.T) {
	theirs, err := environment.MustBaseEnvSet(version.MajorMinor(1, 36)).Env(environment.StoredExpressions)
	if err != nil {
		t.Fatal(err)
	}
	l, err := NewLanguage(Vocabulary{})
	if err != nil {
		t.Fatal(err)
	}
	ours := l.base
	unused := map[string]bool{}
	for name := range leftOut {
		unused[name] = true
	}
	for _, name := range slices.Sorted(maps.Keys(theirs.Functions())) {
		delete(unused, name)
		if _, out := leftOut[name]; out || slices.Contains(redeclared(), name) {
			continue
		}
		mine := ours.Functions()[name]
		if mine == nil {
			t.Errorf("function %s is missing", name)
			continue
		}
		have := map[string]bool{}
		for _, o := range mine.OverloadDecls() {
			have[o.ID()] = true
		}
		for _, o := range theirs.Functions()[name].OverloadDecls() {
			if !have[o.ID()] {
				t.Errorf("function %s lacks overload %s", name, o.ID())
			}
		}
	}
	for name := range unused {
		t.Errorf("%s is left out, but Kubernetes has no such function", name)
	}
	macros := map[string]bool{}
	for _, m := range ours.Macros() {
		macros[m.MacroKey()] = true
	}
	for _, m := range theirs.Macros() {
		if !macros[m.MacroKey()] {
			t.Errorf("macro %s is missing", m.MacroKey())
		}
	}
}

// TestVocabularyMistakes checks that NewLanguage reports mistakes in a vocabulary. Code that compiles with the language does not meet them.
func TestVocabularyMistakes(t *testing.T) {
	v := Vocabulary{Functions: []*Function{{Name: "twice", Overloads: []Overload{
		{ID: "a", Args: []*cel.Type{cel.IntType}, Result: cel.IntType},
		{ID: "b", Args: []*cel.Type{cel.IntType}, Result: cel.IntType},
	}}}}
	if _, err := NewLanguage(v); err == nil || !strings.Contains(err.Error(), "rule language") {
		t.Errorf("two overloads of one signature: %v", err)
	}
}

// TestReferenceOfOperators checks that the reference prints the operators that the language has.
func TestReferenceOfOperators(t *testing.T) {
	crate, depot := cel.ObjectType("Crate"), cel.ObjectType("Depot")
	l, err := NewLanguage(Vocabulary{Objects: []*Object{{Name: "Crate", Type: crate}, {Name: "Depot", Type: depot}}, Functions: []*Function{
		{Name: "goesInto", Overloads: []Overload{
			{ID: "crate_goes_into_depot", Member: true, Args: []*cel.Type{crate, depot}, Result: cel.BoolType},
		}},
		{Name: "lot", Overloads: []Overload{{ID: "lot_string", Args: []*cel.Type{cel.StringType}, Result: cel.DoubleType}}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range l.Operators() {
		got = append(got, f.Name)
		if f.Doc == "" || len(f.Overloads) == 0 {
			t.Errorf("operator %s has no doc, or no signature", f.Name)
		}
	}
	want := []string{operators.Add, operators.Subtract, operators.Multiply, operators.Divide, operators.Equals, operators.NotEquals}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for _, test := range [][2]string{{"goesInto", "Crate.goesInto(Depot) -> bool"}, {"lot", "lot(string) -> double"}} {
		if got := l.functions[test[0]].Overloads[0].Signature(test[0]); got != test[1] {
			t.Errorf("signature %s, want %s", got, test[1])
		}
	}
}
